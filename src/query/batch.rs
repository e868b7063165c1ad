//! Many signatures at once: the lanes are swept in the order of their codes, and each stored
//! signature is read once, however many ask for it.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::SignatureRow;
use crate::index::{ProbeRange, SweepControl};
use crate::invariant::{OrBug, at, at_mut, invariant};
use crate::lanes::hash_key;
use crate::query::budget::Budget;
use crate::query::families::{Families, identical_share_codes};
use crate::read::{PostingTable, ReadView};
use crate::sketch::Signature;
use crate::state::SharedContext;

/// Number of signatures in a piece, which bounds the memory of their codes. Fewer under test, so that
/// small batches have several pieces.
const PIECE_SIGNATURES: usize = if cfg!(test) { 100 } else { 16_384 };

/// So many candidates, some of them counted several times, are held together unless a single
/// signature has more: 48 bytes each with what their verification needs.
const PIECE_CANDIDATES: usize = if cfg!(test) { 500 } else { 1 << 20 };

/// Number of keys that are looked up together.
const PIECE_KEYS: usize = 1 << 20;

/// A document that shares a bucket with the signature number `query_index` of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    pub(crate) id: u64,
    pub(crate) query_index: u32,
}

/// The pieces of a batch, in order.
#[derive(Debug)]
pub(crate) struct SignaturePieces {
    /// The next one last.
    waiting: Vec<Range<usize>>,
}

impl SignaturePieces {
    pub(crate) fn of(signatures: usize) -> Self {
        let starts = (0..signatures).step_by(PIECE_SIGNATURES).rev();
        let piece = |start: usize| start..signatures.min(start + PIECE_SIGNATURES);
        Self {
            waiting: starts.map(piece).collect(),
        }
    }

    /// Puts back, as two halves, a piece that has too many candidates.
    pub(crate) fn halve(&mut self, piece: Range<usize>) {
        let middle = piece.start.midpoint(piece.end);
        self.waiting.push(middle..piece.end);
        self.waiting.push(piece.start..middle);
    }
}

impl Iterator for SignaturePieces {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        self.waiting.pop()
    }
}

/// A lane that a piece is probed in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbedLane {
    table: PostingTable,
    lane: u16,
}

/// The codes of a piece's signatures in the lanes that are probed.
#[derive(Debug)]
pub(crate) struct Codes {
    swept: Vec<ProbedLane>,
    /// Signature by signature.
    codes: Vec<u64>,
    /// Which signatures ask: not those that are filed nowhere.
    asks: Vec<bool>,
    /// The greatest distance at which a fingerprint is a candidate.
    most: u32,
}

impl Codes {
    pub(crate) fn of<'s>(
        context: &SharedContext,
        families: Families,
        signatures: impl Iterator<Item = &'s Signature>,
    ) -> Result<Self> {
        let bands = (1..).take(context.lanes.band_count().into());
        let tables = (1 + context.lanes.band_count()..).take(context.lanes.table_count().into());
        let of = |table| move |lane| ProbedLane { table, lane };
        let mut swept = Vec::new();
        if families.bands {
            swept.extend(bands.map(of(PostingTable::Bands)));
        }
        if families.max_distance.is_some() {
            swept.extend(tables.map(of(PostingTable::Permuted)));
        }
        let (mut codes, mut asks) = (Vec::new(), Vec::new());
        for signature in signatures {
            let asks_for = context.is_filed(signature);
            if asks_for && families.bands {
                context.band_codes(signature, &mut codes)?;
            }
            if let Some(fingerprint) = signature.simhash()
                && asks_for
                && families.max_distance.is_some()
            {
                context.lanes.table_codes(fingerprint, &mut codes);
            }
            asks.push(asks_for);
            let (found, expected) = (codes.len(), asks.len() * swept.len());
            // A signature that is indexed has a code in each lane; one that is not is never asked about.
            let is_whole = found == expected || !asks_for;
            invariant!(
                is_whole,
                "found {found} codes of a piece, expected {expected}"
            );
            codes.resize(expected, 0);
        }
        Ok(Self {
            swept,
            codes,
            asks,
            most: families.max_distance.unwrap_or_default(),
        })
    }

    /// Asks nothing for a signature.
    pub(crate) fn leave_out(&mut self, query_index: usize) {
        if let Some(asks) = self.asks.get_mut(query_index) {
            *asks = false;
        }
    }

    /// The codes of a signature with their lanes, if it asks.
    pub(crate) fn row(&self, query_index: usize) -> impl Iterator<Item = (ProbedLane, u64)> {
        let asks = self.asks.get(query_index).copied().unwrap_or_default();
        let start = query_index * self.swept.len();
        let codes = self.codes.get(start..).filter(|_| asks);
        let swept = self.swept.iter().copied();
        swept.zip(codes.unwrap_or_default().iter().copied())
    }

    fn code(&self, query_index: u32, column: usize) -> Option<u64> {
        let place = (query_index as usize).checked_mul(self.swept.len())?;
        self.codes.get(place.checked_add(column)?).copied()
    }

    /// Where documents that are identical to a signature are looked for: the first table, or the
    /// first band; `None` if not all of them need be there.
    pub(crate) fn first_column(&self, context: &SharedContext) -> Option<usize> {
        let is_table = |swept: &ProbedLane| swept.table == PostingTable::Permuted;
        let column = self.swept.iter().position(is_table).unwrap_or(0);
        let table = self.swept.get(column)?.table;
        identical_share_codes(context, table).then_some(column)
    }

    /// Whether a posting of a signature's bucket makes a candidate: of a fingerprint the code alone
    /// tells the distance, or of one of 128 bits a part of it.
    pub(crate) fn accepts(&self, swept: ProbedLane, code: u64, found: u64) -> bool {
        swept.table != PostingTable::Permuted || (code ^ found).count_ones() <= self.most
    }

    /// What is asked for in a lane, sorted.
    fn wanted(&self, context: &SharedContext, column: usize, swept: ProbedLane) -> Vec<ProbeRange> {
        let width = self.swept.len().max(1);
        let codes = self.codes.iter().skip(column).step_by(width);
        let query_indices = (0..).zip(codes).zip(&self.asks).filter(|(_, asks)| **asks);
        let wanted = query_indices.map(|((query_index, &code), _)| {
            let (low_code, high_code) = context.lanes.bucket_range(swept.lane, code);
            ProbeRange {
                low_code,
                high_code,
                query_index,
            }
        });
        let mut wanted: Vec<ProbeRange> = wanted.collect();
        wanted.sort_unstable_by_key(|wanted| (wanted.low_code, wanted.query_index));
        wanted
    }
}

impl ProbedLane {
    /// A name for the bucket of a code: equal for those that share it, and for no others.
    pub(crate) fn bucket(self, context: &SharedContext, code: u64) -> (u16, u64) {
        (self.lane, context.lanes.bucket_range(self.lane, code).0)
    }
}

/// Candidate and posting counts of one query, compared with its budget.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProbeCounts {
    /// Candidates.
    documents: usize,
    /// Postings in the fullest of its buckets.
    postings: usize,
    /// It has met more than the budget allows for, and not all of it was gathered.
    pub(super) is_over: bool,
}

impl ProbeCounts {
    /// That of a signature which is to be asked about by itself.
    pub(crate) fn over() -> Self {
        Self {
            is_over: true,
            ..Self::default()
        }
    }

    /// Whether a budget allows for these and so many more.
    pub(crate) fn is_within(self, budget: Budget, documents: usize, postings: usize) -> bool {
        !self.is_over
            && self.documents.saturating_add(documents) <= budget.documents()
            && self.postings.saturating_add(postings) <= budget.postings()
    }
}

/// Gathers the candidates of a piece, lane by lane.
pub(crate) struct CandidateSweep<'c> {
    source: &'c dyn ReadView,
    codes: &'c mut Codes,
    budget: Option<Budget>,
    found: Vec<Candidate>,
    room: usize,
    /// Signature by signature, if there is a budget.
    counts_per_query: Vec<ProbeCounts>,
}

/// The candidates of a piece, ascending, each once, without those of signatures that met more than
/// the budget allows for; and, if there is a budget, what each signature has met.
#[derive(Debug, Default)]
pub(crate) struct PieceCandidates {
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) counts_per_query: Vec<ProbeCounts>,
}

impl<'c> CandidateSweep<'c> {
    pub(crate) fn new(
        source: &'c dyn ReadView,
        codes: &'c mut Codes,
        budget: Option<Budget>,
    ) -> Self {
        let count = budget.map_or(0, |_| codes.asks.len());
        Self {
            source,
            codes,
            budget,
            found: Vec::new(),
            room: PIECE_CANDIDATES,
            counts_per_query: vec![ProbeCounts::default(); count],
        }
    }

    /// Whether a signature has met more than the budget allows for.
    pub(crate) fn is_over(&self, query_index: u32) -> bool {
        let meeting = self.counts_per_query.get(query_index as usize);
        meeting.is_some_and(|meeting| meeting.is_over)
    }

    /// Asks nothing more for a signature, whose candidates are not wanted.
    pub(crate) fn leave_out(&mut self, query_index: usize) {
        self.codes.leave_out(query_index);
    }

    /// Sweeps all lanes but those before and the one at `except`; `None` if there are so many
    /// candidates that the piece must be halved.
    pub(crate) fn finish(mut self, except: Option<usize>) -> Result<Option<PieceCandidates>> {
        for column in (0..self.codes.swept.len()).filter(|column| Some(*column) != except) {
            if !self.sweep(column, &mut |_| ())? {
                return Ok(None);
            }
        }
        let asks = &self.codes.asks;
        self.found
            .retain(|found| asks.get(found.query_index as usize) == Some(&true));
        self.found.sort_unstable();
        self.found.dedup();
        if let Some(budget) = self.budget {
            for found in &self.found {
                at_mut(&mut self.counts_per_query, found.query_index as usize)?.documents += 1;
            }
            for meeting in &mut self.counts_per_query {
                meeting.is_over = !meeting.is_within(budget, 0, 0);
            }
            let counts_per_query = &self.counts_per_query;
            let is_over = |query_index: u32| {
                counts_per_query
                    .get(query_index as usize)
                    .is_some_and(|m| m.is_over)
            };
            self.found.retain(|found| !is_over(found.query_index));
        }
        Ok(Some(PieceCandidates {
            candidates: self.found,
            counts_per_query: self.counts_per_query,
        }))
    }

    /// Sweeps a lane, and shows whose code is that of the signature; `false` if the piece must be halved.
    pub(crate) fn sweep(
        &mut self,
        column: usize,
        of_exact_code: &mut dyn FnMut(Candidate),
    ) -> Result<bool> {
        let (codes, source) = (&*self.codes, self.source);
        let swept = *at(&codes.swept, column)?;
        let can_be_halved = codes.asks.len() > 1;
        let (found, counts_per_query) = (&mut self.found, &mut self.counts_per_query);
        let is_over = |query_index: u32| {
            counts_per_query
                .get(query_index as usize)
                .is_some_and(|m| m.is_over)
        };
        let mut wanted = codes.wanted(source.context(), column, swept);
        wanted.retain(|wanted| !is_over(wanted.query_index));
        source.context().reads.add_lanes(wanted.len());
        let most = self.budget.map(Budget::postings);
        let mut counts = vec![0; counts_per_query.len()];
        let (mut fits, room) = (true, &mut self.room);
        source.sweep(
            swept.table,
            swept.lane,
            &wanted,
            &mut |query_index, posting| {
                if let (Some(most), Some(count)) = (most, counts.get_mut(query_index as usize)) {
                    *count += 1;
                    if *count > most {
                        return Ok(SweepControl::SkipRange);
                    }
                }
                let code = codes
                    .code(query_index, column)
                    .or_bug("the code of a signature")?;
                let candidate = Candidate {
                    id: posting.id,
                    query_index,
                };
                if codes.accepts(swept, code, posting.code) {
                    found.push(candidate);
                }
                if code == posting.code {
                    of_exact_code(candidate);
                }
                if found.len() > *room {
                    // Documents that are alike meet in many lanes.
                    found.sort_unstable();
                    found.dedup();
                    fits = !can_be_halved || found.len() <= PIECE_CANDIDATES / 2;
                    *room = found.len().saturating_mul(2).max(PIECE_CANDIDATES);
                }
                Ok(if fits {
                    SweepControl::GoOn
                } else {
                    SweepControl::End
                })
            },
        )?;
        for (meeting, count) in counts_per_query.iter_mut().zip(counts) {
            meeting.postings = meeting.postings.max(count);
            meeting.is_over |= most.is_some_and(|most| count > most);
        }
        Ok(fits)
    }
}

/// The candidates of a piece; `None` if there are so many that it must be halved.
pub(crate) fn candidates(
    source: &dyn ReadView,
    codes: &mut Codes,
    budget: Option<Budget>,
) -> Result<Option<PieceCandidates>> {
    CandidateSweep::new(source, codes, budget).finish(None)
}

/// Shows the signatures of the live ones among `candidates`, each read once, with who asks for it.
pub(crate) fn compare(
    source: &dyn ReadView,
    candidates: &[Candidate],
    visit: &mut dyn FnMut(Candidate, &SignatureRow<'_>) -> Result<()>,
) -> Result<()> {
    let mut ids: Vec<u64> = candidates.iter().map(|candidate| candidate.id).collect();
    ids.dedup();
    let mut compared = 0;
    let mut rest = candidates.iter().peekable();
    source.live_signatures(&ids, &mut |id, row| {
        while let Some(candidate) = rest.next_if(|candidate| candidate.id <= id) {
            if candidate.id == id {
                compared += 1;
                visit(*candidate, &row)?;
            }
        }
        Ok(())
    })?;
    source.context().note_candidates(compared);
    Ok(())
}

/// The live document with each key.
pub(crate) fn find_keys(source: &dyn ReadView, keys: &[Option<&[u8]>]) -> Result<Vec<Option<u64>>> {
    let mut known = vec![None; keys.len()];
    for (keys, known) in keys.chunks(PIECE_KEYS).zip(known.chunks_mut(PIECE_KEYS)) {
        let wanted = (0..).zip(keys).filter_map(|(query_index, key)| {
            let code = hash_key((*key)?);
            Some(ProbeRange {
                low_code: code,
                high_code: code,
                query_index,
            })
        });
        let mut wanted: Vec<ProbeRange> = wanted.collect();
        wanted.sort_unstable_by_key(|wanted| (wanted.low_code, wanted.query_index));
        let mut found = Vec::new();
        source.context().reads.add_lanes(wanted.len());
        source.sweep(
            PostingTable::Keys,
            0,
            &wanted,
            &mut |query_index, posting| {
                let id = posting.id;
                found.push(Candidate { id, query_index });
                Ok(SweepControl::GoOn)
            },
        )?;
        // Newest first: a document that replaced another has the greater id.
        found.sort_unstable_by(|a, b| b.cmp(a));
        for Candidate { id, query_index } in found {
            let key = at(keys, query_index as usize)?.or_bug("a key that was looked up")?;
            let slot = at_mut(known, query_index as usize)?;
            if slot.is_none() && source.has_key(id, key)? {
                *slot = Some(id);
            }
        }
    }
    Ok(known)
}

/// Says which document of a batch is wrong.
pub(crate) fn in_batch(error: Error, index: usize) -> Error {
    let of = |found| format!("{found}, at index {index} of the batch");
    match error {
        Error::InvalidParameter {
            parameter,
            found,
            expected,
        } => Error::InvalidParameter {
            parameter,
            found: of(found),
            expected,
        },
        Error::SignatureMismatch { found, expected } => Error::SignatureMismatch {
            found: of(found),
            expected,
        },
        other => other,
    }
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
