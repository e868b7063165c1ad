//! What has been inserted of a batch.

use std::collections::HashMap;

use crate::query::Codes;
use crate::sketch::Signature;
use crate::state::SharedContext;
use crate::write::insert_many::Pair;

/// Documents of a piece that share a bucket with another one of it.
pub(crate) struct BatchCandidates<'d> {
    /// Each once, ascending by id.
    pub(crate) documents: Vec<(u64, &'d Signature)>,
    /// How many are in the fullest bucket.
    pub(crate) postings: usize,
}

/// The documents of a piece that have been inserted, filed in memory: those that come after them
/// are compared with them, whatever the store has done with them since.
pub(crate) struct BatchDedup<'d> {
    documents: &'d [Pair<'d>],
    codes: &'d Codes,
    keys: HashMap<&'d [u8], u64>,
    /// The last document of each bucket, as an index of `entries`.
    buckets: HashMap<(u16, u64), usize>,
    entries: Vec<Entry>,
}

/// A document filed in a bucket.
struct Entry {
    id: u64,
    code: u64,
    document: usize,
    /// The one before in the same bucket.
    earlier: Option<usize>,
}

impl<'d> BatchDedup<'d> {
    pub(crate) fn new(documents: &'d [Pair<'d>], codes: &'d Codes) -> Self {
        Self {
            documents,
            codes,
            keys: HashMap::new(),
            buckets: HashMap::new(),
            entries: Vec::new(),
        }
    }

    pub(crate) fn with_key(&self, key: &[u8]) -> Option<u64> {
        self.keys.get(key).copied()
    }

    /// Those that share a bucket with a document of the piece; of no bucket more than so many, and one.
    pub(crate) fn candidates(
        &self,
        context: &SharedContext,
        document: usize,
        most: usize,
    ) -> BatchCandidates<'d> {
        let mut found = Vec::new();
        let mut postings = 0;
        for (swept, code) in self.codes.row(document) {
            let mut in_bucket = 0;
            let mut next = self.buckets.get(&swept.bucket(context, code)).copied();
            while let Some(entry) = next.and_then(|index| self.entries.get(index)) {
                in_bucket += 1;
                if in_bucket > most {
                    break;
                }
                if self.codes.accepts(swept, code, entry.code) {
                    found.push((entry.id, entry.document));
                }
                next = entry.earlier;
            }
            postings = postings.max(in_bucket);
        }
        found.sort_unstable();
        found.dedup();
        let signature = |(id, document): (u64, usize)| Some((id, self.documents.get(document)?.1));
        BatchCandidates {
            documents: found.into_iter().filter_map(signature).collect(),
            postings,
        }
    }

    pub(crate) fn push(&mut self, context: &SharedContext, document: usize, id: u64) {
        let key = self.documents.get(document).and_then(|(d, _)| d.key);
        self.keys.extend(key.map(|key| (key, id)));
        for (swept, code) in self.codes.row(document) {
            let index = self.entries.len();
            let earlier = self.buckets.insert(swept.bucket(context, code), index);
            self.entries.push(Entry {
                id,
                code,
                document,
                earlier,
            });
        }
    }
}
