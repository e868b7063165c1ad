//! Near-duplicates within one batch: its documents that have been inserted, indexed in memory.

use std::collections::HashMap;

use crate::error::Result;
use crate::format::Posting;
use crate::index::BucketMap;
use crate::invariant::{at, at_mut, invariant};
use crate::query::ProbePlan;
use crate::state::SharedContext;
use crate::types::Document;
use resemblance_sketch::sketch::Signature;

/// Inserted documents of a piece that share a bucket with another document of it.
pub(super) struct BatchCandidates<'d> {
    /// Ids with signatures, each document once, ascending by id.
    pub(super) documents: Vec<(u64, &'d Signature)>,
    /// Number of postings in the fullest of the buckets.
    pub(super) postings: usize,
}

/// Index of the documents of a piece that have been inserted.
///
/// Later documents are compared with these here and not in the store: a flush or a merge in between
/// does not change the answers.
pub(super) struct BatchDedup<'d> {
    documents: &'d [(Document<'d>, &'d Signature)],
    plan: &'d ProbePlan,
    ids_by_key: HashMap<&'d [u8], u64>,
    /// The postings of each lane of the plan, with the positions of documents in `inserted` as ids.
    lanes: Vec<BucketMap>,
    /// The ids of the inserted documents, and their indexes in the piece.
    inserted: Vec<(u64, usize)>,
}

impl<'d> BatchDedup<'d> {
    pub(super) fn new(documents: &'d [(Document<'d>, &'d Signature)], plan: &'d ProbePlan) -> Self {
        Self {
            documents,
            plan,
            ids_by_key: HashMap::new(),
            lanes: Vec::new(),
            inserted: Vec::new(),
        }
    }

    pub(super) fn signature(&self, query_index: usize) -> Result<&'d Signature> {
        Ok(at(self.documents, query_index)?.1)
    }

    pub(super) fn id_of_key(&self, key: &[u8]) -> Option<u64> {
        self.ids_by_key.get(key).copied()
    }

    /// Returns the inserted documents that share a bucket with the one at `query_index`, of each
    /// bucket the newest `max_postings`.
    ///
    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) if the index names a document that is not in the piece.
    pub(super) fn candidates(
        &self,
        context: &SharedContext,
        query_index: usize,
        max_postings: usize,
    ) -> Result<BatchCandidates<'d>> {
        let mut found = Vec::new();
        let mut postings = 0;
        for ((lane, code), map) in self.plan.row(query_index).zip(&self.lanes) {
            for near_code in lane.near_codes(context, code) {
                let (low_code, high_code) = lane.bucket_range(context, near_code);
                let mut in_bucket = 0;
                for posting in map.bucket(low_code, high_code) {
                    // One more than the budget is counted, so that the caller sees that it is exceeded.
                    in_bucket += 1;
                    if in_bucket > max_postings {
                        break;
                    }
                    if self.plan.accepts(lane, code, posting.code) {
                        found.push(*at(&self.inserted, posting.id as usize)?);
                    }
                }
                postings = postings.max(in_bucket);
            }
        }
        found.sort_unstable();
        found.dedup();
        let mut documents = Vec::with_capacity(found.len());
        for (id, document_index) in found {
            documents.push((id, self.signature(document_index)?));
        }
        Ok(BatchCandidates {
            documents,
            postings,
        })
    }

    /// Adds the document at an index of the piece, which has been inserted under `id`.
    ///
    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) if the index names a document that is not in the piece.
    pub(super) fn push(
        &mut self,
        context: &SharedContext,
        document_index: usize,
        id: u64,
    ) -> Result<()> {
        let (document, _) = at(self.documents, document_index)?;
        if let Some(key) = document.key() {
            self.ids_by_key.insert(key, id);
        }
        let position = self.inserted.len() as u64;
        self.inserted.push((id, document_index));
        for (column, (lane, code)) in self.plan.row(document_index).enumerate() {
            if self.lanes.len() == column {
                self.lanes.push(BucketMap::default());
            }
            let posting = Posting { code, id: position };
            let low_code = |code| lane.bucket_range(context, code).0;
            let is_taken = at_mut(&mut self.lanes, column)?.push(posting, low_code);
            invariant!(is_taken, "a piece of a batch has 2^32 documents");
        }
        Ok(())
    }
}
