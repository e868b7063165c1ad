//! Keys by document id, and changes of documents by their keys.

use std::collections::HashMap;

use resemblance::DocumentId;

use super::context::Context;
use super::subject::JoinedDocuments;
use crate::failure::Result;
use crate::output::escape::{PrintedKey, printed};
use crate::output::{DocumentLabel, PairSorter};

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
            context
                .messages
                .note(format!("no document has the key {key}"));
        }
    }
    Ok((changed, missing))
}

/// The map's own cost of an entry, about.
const ENTRY_BYTES: u64 = 96;

/// Looks keys up and remembers them: in a list of pairs every document comes several times.
pub(crate) struct KeyCache {
    documents: JoinedDocuments,
    held: HashMap<u64, DocumentLabel>,
    held_bytes: u64,
    memory_bytes: u64,
}

impl KeyCache {
    /// A cache of keys and a sorter for rows of them, which share the memory for results.
    pub(crate) fn with_sorter(
        context: &Context,
        documents: &JoinedDocuments,
    ) -> (Self, PairSorter) {
        let share = context.results_bytes() / 4;
        let sorter = PairSorter::new(context.results_bytes() - share, context.temp_dir.clone());
        (Self::new(documents.clone(), share), sorter)
    }

    /// When so many bytes of keys are held, all are forgotten.
    fn new(documents: JoinedDocuments, memory_bytes: u64) -> Self {
        Self {
            documents,
            memory_bytes,
            held: HashMap::new(),
            held_bytes: 0,
        }
    }

    pub(crate) fn label(&mut self, id: DocumentId) -> Result<DocumentLabel> {
        if let Some(label) = self.held.get(&id.get()) {
            return Ok(label.clone());
        }
        let key = self.documents.key(id)?;
        let label = DocumentLabel::new(id.get(), key.as_deref());
        self.held_bytes += ENTRY_BYTES + key.map_or(0, |key| key.len() as u64);
        if self.held_bytes > self.memory_bytes {
            self.held.clear();
            self.held_bytes = 0;
        }
        self.held.insert(id.get(), label.clone());
        Ok(label)
    }
}
