//! The codes that a document is indexed under.

use crate::error::Result;
use crate::invariant::invariant;
use crate::sketch::Signature;
use crate::state::context::SharedContext;

/// Fills `row` with the code of a document in every lane of the store, or `None`: in the lane of keys for
/// a document without a key, in all others for one that is not indexed by its signature. `codes` is
/// scratch memory.
///
/// # Errors
/// [`Error::Bug`](crate::Error::Bug) if the signature does not have a code for each lane.
pub(crate) fn document_codes(
    context: &SharedContext,
    key_code: Option<u64>,
    signature: &Signature,
    codes: &mut Vec<u64>,
    row: &mut Vec<Option<u64>>,
) -> Result<()> {
    row.clear();
    row.push(key_code);
    if context.is_filed(signature) {
        codes.clear();
        context.band_codes(signature, codes)?;
        if let Some(fingerprint) = signature.fingerprint() {
            context.lanes.table_codes(&fingerprint, codes);
        }
        row.extend(codes.iter().copied().map(Some));
        let (found, expected) = (row.len(), usize::from(context.lanes.count()));
        invariant!(
            found == expected,
            "a signature has codes for {found} lanes of {expected}"
        );
    }
    row.resize(context.lanes.count().into(), None);
    Ok(())
}
