//! Finds repeated keys while the key lane is merged: equal keys have equal codes, so they are adjacent.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::iter::Peekable;

use crate::build::bulk_options::DuplicateKeys;
use crate::error::{Error, Result};
use crate::format::Posting;
use crate::invariant::{OrBug, invariant};
use crate::state::Tombstones;
use crate::types::DocumentId;

/// Reads the key of a document.
type KeyOf<'a> = dyn Fn(u64) -> Result<Option<Vec<u8>>> + 'a;

/// Iterates over the postings of the key lane; keeps the first or the last of documents with equal
/// keys.
pub(crate) struct OneOfEachKey<'a, I: Iterator> {
    postings: Peekable<I>,
    rule: DuplicateKeys,
    key_of: &'a KeyOf<'a>,
    repeated: &'a mut Tombstones,
    /// The postings of the current code that are kept, the next one last.
    kept: Vec<Posting>,
    /// The repetition that was inserted first in the build, and the id of the document that it
    /// repeats.
    earliest: Option<(u64, u64)>,
}

impl<'a, I: Iterator<Item = Result<Posting>>> OneOfEachKey<'a, I> {
    pub(crate) fn new(
        postings: I,
        rule: DuplicateKeys,
        key_of: &'a KeyOf<'a>,
        repeated: &'a mut Tombstones,
    ) -> Self {
        Self {
            postings: postings.peekable(),
            rule,
            key_of,
            repeated,
            kept: Vec::new(),
            earliest: None,
        }
    }

    /// Returns an error that names the earliest repetition, if there was any and the rule refuses it.
    pub(crate) fn check(&self) -> Result<()> {
        let Some((second, first)) = self.earliest.filter(|_| self.rule == DuplicateKeys::Refuse)
        else {
            return Ok(());
        };
        Err(Error::KeyTwice {
            key: (self.key_of)(second)?.or_bug("the key of a repeated document")?,
            first: DocumentId::new(first),
            second: DocumentId::new(second),
        })
    }

    /// Takes all postings of the next code. Keys are read only where a code is repeated.
    fn fill(&mut self) -> Result<()> {
        let Some(first) = self.postings.next().transpose()? else {
            return Ok(());
        };
        // Documents of different keys that share the code by chance are few.
        let mut by_key = BTreeMap::new();
        let is_same = |next: &Result<Posting>| {
            next.as_ref()
                .map_or(true, |posting| posting.code == first.code)
        };
        while let Some(next) = self.postings.next_if(is_same) {
            let posting = next?;
            // After a refusal only an earlier repetition matters.
            let is_later = self.earliest.is_some_and(|(second, _)| second < posting.id);
            if is_later && self.rule == DuplicateKeys::Refuse {
                continue;
            }
            if by_key.is_empty() {
                by_key.insert((self.key_of)(first.id)?, first);
            }
            match by_key.entry((self.key_of)(posting.id)?) {
                Entry::Vacant(entry) => drop(entry.insert(posting)),
                Entry::Occupied(mut entry) => {
                    if !is_later {
                        self.earliest = Some((posting.id, entry.get().id));
                    }
                    let left_out = match self.rule {
                        DuplicateKeys::KeepLast => entry.insert(posting).id,
                        DuplicateKeys::Refuse | DuplicateKeys::KeepFirst => posting.id,
                    };
                    let is_new = !self.repeated.contains(left_out);
                    invariant!(is_new, "document {left_out} repeats a key twice");
                    self.repeated.insert(left_out);
                }
            }
        }
        match by_key.is_empty() {
            true => self.kept.push(first),
            false => self.kept.extend(by_key.into_values()),
        }
        self.kept.sort_unstable_by(|a, b| b.cmp(a));
        Ok(())
    }
}

impl<I: Iterator<Item = Result<Posting>>> Iterator for OneOfEachKey<'_, I> {
    type Item = Result<Posting>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.kept.is_empty()
            && let Err(error) = self.fill()
        {
            return Some(Err(error));
        }
        self.kept.pop().map(Ok)
    }
}
