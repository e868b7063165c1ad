//! The codes under which a document is indexed.

use crate::error::Result;
use crate::sketch::Signature;
use crate::state::context::SharedContext;

/// The code of a document in every lane of the store, `None` where it has none: without a key in
/// the key lane, without features in the others.
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
        if let Some(fingerprint) = signature.simhash() {
            context.lanes.table_codes(fingerprint, codes);
        }
        row.extend(codes.iter().copied().map(Some));
    }
    row.resize(context.lanes.count().into(), None);
    Ok(())
}
