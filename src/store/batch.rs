//! Many signatures at once: the lanes are swept in the order of their codes, and each stored
//! signature is read once, however many ask for it.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::rows::SignatureRow;
use crate::lanes::hash_key;
use crate::postings::Wanted;
use crate::sketch::Signature;
use crate::store::bounds::Resolved;
use crate::store::core::Core;
use crate::store::source::{PostingTable, Source};

/// So many signatures are looked up together: bounds the memory of their codes. Fewer under test,
/// so that small batches have several pieces.
const PIECE_SIGNATURES: usize = if cfg!(test) { 100 } else { 16_384 };

/// So many candidates, some of them counted several times, are held together unless a single
/// signature has more: 48 bytes each with what their verification needs.
const PIECE_CANDIDATES: usize = if cfg!(test) { 500 } else { 1 << 20 };

/// So many keys are looked up together.
const PIECE_KEYS: usize = 1 << 20;

/// Which lanes are swept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Families {
    bands: bool,
    /// The greatest distance at which a fingerprint is a candidate.
    tables: Option<u32>,
}

impl Families {
    pub(crate) const ALL: Self = Self {
        bands: true,
        tables: Some(u32::MAX),
    };

    pub(crate) fn of(bounds: &Resolved) -> Self {
        Self {
            bands: bounds.probes_bands(),
            tables: bounds.max_distance,
        }
    }
}

/// A document that shares a bucket with the signature number `asker` of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    pub(crate) id: u64,
    pub(crate) asker: u32,
}

/// The pieces of a batch, in order.
#[derive(Debug)]
pub(crate) struct Pieces {
    /// The next one last.
    waiting: Vec<Range<usize>>,
}

impl Pieces {
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

impl Iterator for Pieces {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        self.waiting.pop()
    }
}

/// A lane that is swept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Swept {
    table: PostingTable,
    lane: u16,
}

/// The codes of a piece's signatures in the lanes that are swept.
#[derive(Debug)]
pub(crate) struct Codes {
    swept: Vec<Swept>,
    /// Signature by signature.
    codes: Vec<u64>,
    /// Which signatures ask: not those that are filed nowhere.
    asks: Vec<bool>,
    /// The greatest distance at which a fingerprint is a candidate.
    most: u32,
}

impl Codes {
    pub(crate) fn of<'s>(
        core: &Core,
        families: Families,
        signatures: impl Iterator<Item = &'s Signature>,
    ) -> Result<Self> {
        let bands = (1..).take(core.lanes.band_count().into());
        let tables = (1 + core.lanes.band_count()..).take(core.lanes.table_count().into());
        let of = |table| move |lane| Swept { table, lane };
        let mut swept = Vec::new();
        if families.bands {
            swept.extend(bands.map(of(PostingTable::Bands)));
        }
        if families.tables.is_some() {
            swept.extend(tables.map(of(PostingTable::Permuted)));
        }
        let (mut codes, mut asks) = (Vec::new(), Vec::new());
        for signature in signatures {
            let asks_for = core.is_filed(signature);
            if asks_for && families.bands {
                core.band_codes(signature, &mut codes)?;
            }
            if let Some(fingerprint) = signature.simhash()
                && asks_for
                && families.tables.is_some()
            {
                core.lanes.table_codes(fingerprint, &mut codes);
            }
            asks.push(asks_for);
            codes.resize(asks.len() * swept.len(), 0);
        }
        Ok(Self {
            swept,
            codes,
            asks,
            most: families.tables.unwrap_or_default(),
        })
    }

    /// Asks nothing for a signature.
    pub(crate) fn leave_out(&mut self, asker: usize) {
        if let Some(asks) = self.asks.get_mut(asker) {
            *asks = false;
        }
    }

    /// The codes of a signature with their lanes, if it asks.
    pub(crate) fn row(&self, asker: usize) -> impl Iterator<Item = (Swept, u64)> {
        let asks = self.asks.get(asker).copied().unwrap_or_default();
        let start = asker * self.swept.len();
        let codes = self.codes.get(start..).filter(|_| asks);
        let swept = self.swept.iter().copied();
        swept.zip(codes.unwrap_or_default().iter().copied())
    }

    /// Whether a posting of a signature's bucket makes a candidate: of a fingerprint the code alone
    /// tells the distance, or of one of 128 bits a part of it.
    pub(crate) fn accepts(&self, swept: Swept, code: u64, found: u64) -> bool {
        swept.table != PostingTable::Permuted || (code ^ found).count_ones() <= self.most
    }

    /// What is asked for in a lane, sorted.
    fn wanted(&self, core: &Core, column: usize, swept: Swept) -> Vec<Wanted> {
        let width = self.swept.len().max(1);
        let codes = self.codes.iter().skip(column).step_by(width);
        let askers = (0..).zip(codes).zip(&self.asks).filter(|(_, asks)| **asks);
        let wanted = askers.map(|((asker, &code), _)| {
            let (low_code, high_code) = core.lanes.bucket_range(swept.lane, code);
            Wanted {
                low_code,
                high_code,
                asker,
            }
        });
        let mut wanted: Vec<Wanted> = wanted.collect();
        wanted.sort_unstable_by_key(|wanted| (wanted.low_code, wanted.asker));
        wanted
    }
}

impl Swept {
    /// A name for the bucket of a code: equal for those that share it, and for no others.
    pub(crate) fn bucket(self, core: &Core, code: u64) -> (u16, u64) {
        (self.lane, core.lanes.bucket_range(self.lane, code).0)
    }
}

/// The candidates of a piece, ascending, each once; `None` if there are so many that the piece must
/// be halved.
pub(crate) fn candidates(source: &dyn Source, codes: &Codes) -> Result<Option<Vec<Candidate>>> {
    let can_be_halved = codes.asks.len() > 1;
    let mut found: Vec<Candidate> = Vec::new();
    let (mut fits, mut room) = (true, PIECE_CANDIDATES);
    for (column, &swept) in codes.swept.iter().enumerate() {
        let wanted = codes.wanted(source.core(), column, swept);
        let width = codes.swept.len();
        source.sweep(swept.table, swept.lane, &wanted, &mut |asker, posting| {
            let code = codes.codes.get(asker as usize * width + column);
            if code.is_some_and(|code| codes.accepts(swept, *code, posting.code)) {
                let id = posting.id;
                found.push(Candidate { id, asker });
            }
            if found.len() > room {
                // Documents that are alike meet in many lanes.
                found.sort_unstable();
                found.dedup();
                fits = !can_be_halved || found.len() <= PIECE_CANDIDATES / 2;
                room = found.len().saturating_mul(2).max(PIECE_CANDIDATES);
            }
            Ok(fits)
        })?;
        if !fits {
            return Ok(None);
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(Some(found))
}

/// Shows the signatures of the live ones among `candidates`, each read once, with who asks for it.
pub(crate) fn compare(
    source: &dyn Source,
    candidates: &[Candidate],
    visit: &mut dyn FnMut(Candidate, &SignatureRow<'_>),
) -> Result<()> {
    let mut ids: Vec<u64> = candidates.iter().map(|candidate| candidate.id).collect();
    ids.dedup();
    let mut compared = 0;
    let mut rest = candidates.iter().peekable();
    source.live_signatures(&ids, &mut |id, row| {
        while let Some(candidate) = rest.next_if(|candidate| candidate.id <= id) {
            if candidate.id == id {
                compared += 1;
                visit(*candidate, &row);
            }
        }
        Ok(())
    })?;
    source.core().note_candidates(compared);
    Ok(())
}

/// The live document with each key.
pub(crate) fn find_keys(source: &dyn Source, keys: &[Option<&[u8]>]) -> Result<Vec<Option<u64>>> {
    let mut known = vec![None; keys.len()];
    for (keys, known) in keys.chunks(PIECE_KEYS).zip(known.chunks_mut(PIECE_KEYS)) {
        let wanted = (0..).zip(keys).filter_map(|(asker, key)| {
            let code = hash_key((*key)?);
            Some(Wanted {
                low_code: code,
                high_code: code,
                asker,
            })
        });
        let mut wanted: Vec<Wanted> = wanted.collect();
        wanted.sort_unstable_by_key(|wanted| (wanted.low_code, wanted.asker));
        let mut found = Vec::new();
        source.sweep(PostingTable::Keys, 0, &wanted, &mut |asker, posting| {
            let id = posting.id;
            found.push(Candidate { id, asker });
            Ok(true)
        })?;
        // Newest first: a document that replaced another has the greater id.
        found.sort_unstable_by(|a, b| b.cmp(a));
        for Candidate { id, asker } in found {
            let key = keys.get(asker as usize).copied().flatten();
            let slot = known.get_mut(asker as usize).filter(|slot| slot.is_none());
            if let (Some(key), Some(slot)) = (key, slot)
                && source.has_key(id, key)?
            {
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
