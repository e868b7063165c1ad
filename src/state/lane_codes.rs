//! The codes that a document is indexed under.

use crate::error::Result;
use crate::invariant::{OrBug, invariant};
use crate::lanes::LaneCode;
use crate::sketch::Signature;
use crate::state::context::SharedContext;

/// Fills `row` with the codes of a document in the lanes of the store, in the order of the lanes: none in
/// the lane of keys for a document without a key, none in all others for one that is not indexed by its
/// signature, and any number in the lane of kept hashes, ascending. `codes` is scratch memory.
///
/// # Errors
/// [`Error::Bug`](crate::Error::Bug) if the signature does not have a code for each band and table.
pub(crate) fn document_codes(
    context: &SharedContext,
    key_code: Option<u64>,
    signature: &Signature,
    codes: &mut Vec<u64>,
    row: &mut Vec<LaneCode>,
) -> Result<()> {
    row.clear();
    row.extend(key_code.map(|code| LaneCode { lane: 0, code }));
    if !context.is_filed(signature) {
        return Ok(());
    }
    codes.clear();
    context.band_codes(signature, codes)?;
    if let Some(fingerprint) = signature.fingerprint() {
        context.lanes.table_codes(&fingerprint, codes);
    }
    let (found, expected) = (1 + codes.len(), usize::from(context.lanes.single_count()));
    invariant!(
        found == expected,
        "a signature has codes for {found} lanes of {expected}"
    );
    row.extend(
        (1..)
            .zip(&*codes)
            .map(|(lane, &code)| LaneCode { lane, code }),
    );
    if let Some(lane) = context.lanes.kept_lane() {
        let hashes = signature
            .kept_hashes()
            .or_bug("kept hashes of a signature")?;
        row.extend(hashes.iter().map(|&code| LaneCode { lane, code }));
    }
    Ok(())
}
