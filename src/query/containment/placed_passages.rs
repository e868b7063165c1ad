//! Finds where a query and a document share passages, by the positions of their kept shingles.

use std::ops::Range;

use crate::error::Result;
use crate::types::PlacedPassage;
use resemblance_sketch::sketch::KeptShingle;

/// The number of places in the document that are followed at once. If a shingle is repeated more
/// often, only its first places are followed.
const TRIED_PLACES: usize = 64;

/// A document's kept shingles, in order, and by their hashes.
struct PlacedDocument<'a> {
    shingles: &'a [KeptShingle],
    /// Hashes with their places in `shingles`.
    places: Vec<(u64, usize)>,
}

impl<'a> PlacedDocument<'a> {
    fn new(shingles: &'a [KeptShingle]) -> Self {
        let hashes = shingles.iter().map(|(_, hash)| *hash);
        let mut places: Vec<(u64, usize)> = hashes.zip(0..).collect();
        places.sort_unstable();
        Self { shingles, places }
    }

    /// The first places of a hash.
    fn places_of(&self, hash: u64) -> impl Iterator<Item = usize> {
        let first = self.places.partition_point(|&(other, _)| other < hash);
        let tried = self.places.iter().skip(first).take(TRIED_PLACES);
        tried
            .take_while(move |(other, _)| *other == hash)
            .map(|(_, place)| *place)
    }

    /// Returns true if the step from one kept shingle of a query to the next is that from a place here to the
    /// next, and no longer than `max_gap` shingles.
    fn has_step(&self, place: usize, step: (&KeptShingle, &KeptShingle), max_gap: u64) -> bool {
        match self.shingles.get(place..) {
            Some([from, to, ..]) => {
                let gaps = (step.1.0 - step.0.0, to.0 - from.0);
                step.1.1 == to.1 && gaps.0 == gaps.1 && gaps.0 <= max_gap
            }
            // The last one of the document has no next.
            _ => false,
        }
    }
}

/// A run of consecutive kept shingles that both have, so far.
#[derive(Clone, Copy)]
struct OpenRun {
    /// The index among the kept shingles of the query at which the passage begins.
    start: usize,
    /// The place of its last one in the document.
    last: usize,
}

/// Returns the passages that begin with kept shingles of a query for which `begins` returns true,
/// in the order of the query. Each is as long as consecutive kept shingles of both are the same,
/// with the same gaps of at most `max_gap` shingles: then all shingles between are within these,
/// and are shared, too. A passage within another in the query is left out, and if the document has
/// it in several places, the first is returned.
pub(super) fn placed_passages(
    query: &[KeptShingle],
    document: &[KeptShingle],
    max_gap: u64,
    begins: impl Fn(u64) -> Result<bool>,
) -> Result<Vec<PlacedPassage>> {
    let document = PlacedDocument::new(document);
    let mut passages = Vec::new();
    // By start, then by place.
    let mut open: Vec<OpenRun> = Vec::new();
    let mut before = None;
    for (index, shingle) in query.iter().enumerate() {
        let step = before.zip(Some(shingle));
        let goes_on =
            |run: &OpenRun| step.is_some_and(|step| document.has_step(run.last, step, max_gap));
        let ended = open.iter().find(|run| !goes_on(run)).copied();
        let mut going: Vec<OpenRun> = open.iter().copied().filter(goes_on).collect();
        going.iter_mut().for_each(|run| run.last += 1);
        let longest = going.first().map_or(usize::MAX, |run| run.start);
        if let Some(run) = ended.filter(|run| run.start < longest) {
            passages.extend(passage(query, &document, run, index));
        }
        if begins(shingle.1)? {
            let mut taken: Vec<usize> = going.iter().map(|run| run.last).collect();
            taken.sort_unstable();
            let places = document.places_of(shingle.1);
            let new = places.filter(|place| taken.binary_search(place).is_err());
            going.extend(new.map(|last| OpenRun { start: index, last }));
            going.truncate(TRIED_PLACES);
        }
        (open, before) = (going, Some(shingle));
    }
    let last = open.first();
    passages.extend(last.and_then(|run| passage(query, &document, *run, query.len())));
    Ok(passages)
}

/// The passage of a run that ends before a kept shingle of the query.
fn passage(
    query: &[KeptShingle],
    document: &PlacedDocument<'_>,
    run: OpenRun,
    end: usize,
) -> Option<PlacedPassage> {
    let first = (run.last + 1).checked_sub(end - run.start)?;
    Some(PlacedPassage {
        query: span_of(query.get(run.start..end)?)?,
        document: span_of(document.shingles.get(first..=run.last)?)?,
    })
}

/// The shingles from the first kept one to the last.
fn span_of(kept: &[KeptShingle]) -> Option<Range<usize>> {
    let (first, last) = kept.first().zip(kept.last())?;
    let first = usize::try_from(first.0).ok()?;
    let last = usize::try_from(last.0).ok()?;
    Some(first..last + 1)
}
