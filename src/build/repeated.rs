//! Finds repeated keys while the key lane is merged: equal keys have equal codes, so they are adjacent.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::format::Posting;
use crate::invariant::{OrBug, invariant};
use crate::state::Tombstones;
use crate::types::DocumentId;

/// Reads the key of a document.
type KeyOf<'a> = dyn Fn(u64) -> Result<Option<Vec<u8>>> + 'a;

/// Notes a document that is left out.
fn leave_out(repeated: &mut Tombstones, id: u64) -> Result<()> {
    invariant!(!repeated.contains(id), "document {id} repeats a key twice");
    repeated.insert(id);
    Ok(())
}

/// A document of the current code that is the first with its key.
struct FirstDocument {
    id: u64,
    /// Read when a second document has the code.
    key: Option<Vec<u8>>,
}

/// Iterates over the postings of the key lane; of documents with equal keys only the first stays.
pub(crate) struct FirstOfEachKey<'a, I> {
    postings: I,
    key_of: &'a KeyOf<'a>,
    repeated: &'a mut Tombstones,
    code: u64,
    /// All different: those that share the code by chance are few.
    first_documents: Vec<FirstDocument>,
    /// The repetition that came first in the build, and the id of the document that it repeats.
    earliest: Option<(u64, u64)>,
    /// True if only the earliest repetition matters, so that later ones are skipped.
    stops_at_earliest: bool,
}

impl<'a, I: Iterator<Item = Result<Posting>>> FirstOfEachKey<'a, I> {
    pub(crate) fn new(
        postings: I,
        key_of: &'a KeyOf<'a>,
        repeated: &'a mut Tombstones,
        stops_at_earliest: bool,
    ) -> Self {
        Self {
            postings,
            key_of,
            repeated,
            code: 0,
            first_documents: Vec::new(),
            earliest: None,
            stops_at_earliest,
        }
    }

    /// Returns an error that names the earliest repetition, if there was any.
    pub(crate) fn refusal(&self) -> Result<()> {
        let Some((second, first)) = self.earliest else {
            return Ok(());
        };
        Err(Error::KeyTwice {
            key: (self.key_of)(second)?.or_bug("the key of a repeated document")?,
            first: DocumentId::new(first),
            second: DocumentId::new(second),
        })
    }

    /// Returns whether an earlier document has the key of this one.
    fn is_repeated(&mut self, posting: Posting) -> Result<bool> {
        if self.first_documents.is_empty() || self.code != posting.code {
            self.code = posting.code;
            self.first_documents.clear();
            self.first_documents.push(FirstDocument {
                id: posting.id,
                key: None,
            });
            return Ok(false);
        }
        let later = self.earliest.is_some_and(|(second, _)| second < posting.id);
        if self.stops_at_earliest && later {
            return Ok(false);
        }
        let key = (self.key_of)(posting.id)?;
        for first in &mut self.first_documents {
            if first.key.is_none() {
                first.key = (self.key_of)(first.id)?;
            }
            if first.key == key {
                if !later {
                    self.earliest = Some((posting.id, first.id));
                }
                return Ok(true);
            }
        }
        self.first_documents.push(FirstDocument {
            id: posting.id,
            key,
        });
        Ok(false)
    }
}

impl<I: Iterator<Item = Result<Posting>>> Iterator for FirstOfEachKey<'_, I> {
    type Item = Result<Posting>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let posting = match self.postings.next()? {
                Ok(posting) => posting,
                failed => return Some(failed),
            };
            match self.is_repeated(posting) {
                Ok(false) => return Some(Ok(posting)),
                Ok(true) => {
                    if let Err(error) = leave_out(self.repeated, posting.id) {
                        return Some(Err(error));
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Iterates over the postings of the key lane; of documents with equal keys only the last stays.
pub(crate) struct LastOfEachKey<'a, I: Iterator> {
    postings: std::iter::Peekable<I>,
    key_of: &'a KeyOf<'a>,
    repeated: &'a mut Tombstones,
    /// The postings of the current code that stay, the next one last.
    kept: Vec<Posting>,
}

impl<'a, I: Iterator<Item = Result<Posting>>> LastOfEachKey<'a, I> {
    pub(crate) fn new(postings: I, key_of: &'a KeyOf<'a>, repeated: &'a mut Tombstones) -> Self {
        Self {
            postings: postings.peekable(),
            key_of,
            repeated,
            kept: Vec::new(),
        }
    }

    /// Takes all postings of the next code. Keys are read only where a code comes twice.
    fn fill(&mut self) -> Result<()> {
        let Some(first) = self.postings.next().transpose()? else {
            return Ok(());
        };
        self.kept.push(first);
        let is_same = |next: &Result<Posting>| {
            next.as_ref()
                .map_or(true, |posting| posting.code == first.code)
        };
        while let Some(next) = self.postings.next_if(is_same) {
            self.kept.push(next?);
        }
        if self.kept.len() > 1 {
            self.keep_last_of_each()?;
        }
        self.kept.reverse();
        Ok(())
    }

    fn keep_last_of_each(&mut self) -> Result<()> {
        let mut last_by_key = BTreeMap::new();
        for posting in std::mem::take(&mut self.kept) {
            let key = (self.key_of)(posting.id)?;
            if let Some(earlier) = last_by_key.insert(key, posting) {
                leave_out(self.repeated, earlier.id)?;
            }
        }
        self.kept.extend(last_by_key.into_values());
        self.kept.sort_unstable();
        Ok(())
    }
}

impl<I: Iterator<Item = Result<Posting>>> Iterator for LastOfEachKey<'_, I> {
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
