//! Identical documents, which are looked for before all others.
//!
//! Candidates are ranked by similarity, distance and id. One with similarity 1 and distance 0 has the
//! signature's exact code in a lane that [`ProbePlan::identical_lane`](super::plan::ProbePlan::identical_lane)
//! names. So the first such one by id in that bucket is the best match of all, within any bounds, and the
//! other lanes need not be read.

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
        signatures: &[&Signature],
        lane: IdenticalLane,
        exact: &[Candidate],
        found: &mut [Found],
    ) -> Result<Vec<Candidate>> {
        let mut compared = Vec::new();
        if lane.exact_codes_are_identical {
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
                let found = at_mut(found, candidate.query_index as usize)?;
                let best = found.near.best();
                found.is_identical = best.is_some_and(|b| b.is_identical(self.view().context()));
            }
            compared.append(&mut now);
            (begin, together) = (begin + together, together * 2);
        }
        compared.sort_unstable();
        Ok(compared)
    }

    /// Takes the first of these documents, all identical to one signature, that was not deleted.
    fn take_first_live(
        &self,
        signatures: &[&Signature],
        candidates: &[Candidate],
        found: &mut [Found],
    ) -> Result<()> {
        for &Candidate { id, query_index } in candidates {
            // A posting outlives its document until a flush or a merge drops it.
            let Some(document) = self.view().document_of(id, self.with_payloads())? else {
                self.view().expect_gone(id)?;
                continue;
            };
            let found = at_mut(found, query_index as usize)?;
            let signature = *at(signatures, query_index as usize)?;
            let subject = Subject::new(signature);
            let context = self.view().context();
            found.push(subject.scored(context, id, 0, signature.simhash()));
            found.is_identical = true;
            found.known = Some((id, document));
            break;
        }
        Ok(())
    }
}
