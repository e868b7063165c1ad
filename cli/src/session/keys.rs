//! Keys by document id, and changes of documents by their keys.

use super::context::Context;
use super::subject::JoinedDocuments;
use crate::failure::Result;
use crate::output::PairSorter;
use crate::output::escape::{PrintedKey, printed};

/// Changes the documents with these keys one by one, until the run is interrupted. `change` returns false
/// for a key that the store does not have, which is named then. Returns how many were changed, and how many
/// were missing.
pub(crate) fn change_each(
    context: &Context,
    keys: &[PrintedKey],
    mut change: impl FnMut(&PrintedKey) -> Result<bool>,
) -> Result<(u64, u64)> {
    let (mut changed, mut missing) = (0, 0);
    for key in keys {
        context.interrupt.check()?;
        if change(key)? {
            changed += 1;
        } else {
            missing += 1;
            let key = printed(key);
            context.note(format!("no document has the key {key}"));
        }
    }
    Ok((changed, missing))
}

/// Returns a sorter for pairs of these documents, by their keys.
pub(crate) fn pair_sorter(context: &Context, documents: &JoinedDocuments) -> PairSorter {
    let documents = documents.clone();
    PairSorter::new(
        context.results_bytes(),
        context.temp_dir.clone(),
        move |id| documents.key(id),
    )
}
