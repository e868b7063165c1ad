//! Identical documents, which are looked for before all others.
//!
//! Candidates are ranked by similarity, distance and id. One with similarity 1 and distance 0 has the
//! signature's exact code in a lane that [`ProbePlan::identical_lane`](super::plan::ProbePlan::identical_lane)
//! names. So the first such one by id in that bucket is the best match of all, within any bounds, and the
//! other lanes need not be read. A caller who verifies is asked about those with an identical signature
//! in the order of their ids: the first that it says is equal, or cannot tell from it, is taken.

use crate::error::Result;
use crate::invariant::{at, at_mut};
use crate::query::candidates::{Candidate, MAX_IDENTICAL_TRIES};
use crate::query::collect::Found;
use crate::query::plan::IdenticalLane;
use crate::query::search::Search;
use crate::query::subject::Subject;
use crate::sketch::Signature;

impl Search<'_> {
    /// Looks for a document identical to each signature among the first with its exact code, by signature
    /// and then by id. Returns what was compared, ascending.
    pub(super) fn find_identical(
        &self,
        first_index: usize,
        signatures: &[&Signature],
        lane: IdenticalLane,
        exact: &[Candidate],
        found: &mut [Found],
    ) -> Result<Vec<Candidate>> {
        let mut compared = Vec::new();
        if lane.has_whole_signatures && !self.verifies() {
            for of_signature in exact.chunk_by(|a, b| a.query_index == b.query_index) {
                self.take_first_live(signatures, of_signature, found)?;
            }
            return Ok(compared);
        }
        // Mostly the first document is identical; if not, reading more at once costs less.
        let (mut begin, mut together) = (0, 1);
        while begin < MAX_IDENTICAL_TRIES {
            let mut now: Vec<Candidate> = Vec::new();
            for of_signature in exact.chunk_by(|a, b| a.query_index == b.query_index) {
                let query_index = at(of_signature, 0)?.query_index as usize;
                if !at(found, query_index)?.is_identical {
                    now.extend(of_signature.iter().skip(begin).take(together));
                }
            }
            if now.is_empty() {
                break;
            }
            now.sort_unstable();
            self.score(signatures, &now, found)?;
            for candidate in &now {
                let query_index = candidate.query_index as usize;
                let found = at_mut(found, query_index)?;
                self.take_identical(first_index + query_index, candidate.id, found)?;
            }
            compared.append(&mut now);
            (begin, together) = (begin + together, together * 2);
        }
        compared.sort_unstable();
        Ok(compared)
    }

    /// Takes a candidate that was scored, if it is identical and no other has been taken.
    fn take_identical(&self, index: usize, id: u64, found: &mut Found) -> Result<()> {
        let scored = found.near.of_id(id).filter(|_| !found.is_identical);
        let Some(scored) = scored.filter(|s| s.is_identical(self.view().context())) else {
            return Ok(());
        };
        if let Some(told) = self.told(index, id, self.floor())? {
            found.told.push((id, told));
            let verified = scored.verified(told, None);
            if verified.is_none_or(|verified| verified.similarity < 1.0) {
                return Ok(());
            }
        }
        found.near.retain(|scored| scored.id == id);
        found.is_identical = true;
        Ok(())
    }

    /// Takes the first of these documents, all identical to one signature, that was not deleted.
    fn take_first_live(
        &self,
        signatures: &[&Signature],
        candidates: &[Candidate],
        found: &mut [Found],
    ) -> Result<()> {
        for &Candidate {
            id, query_index, ..
        } in candidates
        {
            // A posting outlives its document until a flush or a merge drops it.
            let Some(document) = self.view().document_of(id, self.with_payloads())? else {
                self.view().expect_gone(id)?;
                continue;
            };
            let found = at_mut(found, query_index as usize)?;
            let signature = *at(signatures, query_index as usize)?;
            let subject = Subject::new(signature);
            let context = self.view().context();
            found.push(subject.scored(context, id, 0, signature.fingerprint()));
            found.is_identical = true;
            found.known = Some((id, document));
            break;
        }
        Ok(())
    }
}
