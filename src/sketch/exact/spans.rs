//! Where two texts are alike.

use std::ops::Range;

use super::sets::{FeatureSet, containment, jaccard};
use crate::error::Result;
use crate::invariant::OrBug;
use crate::sketch::hash::feature_hash;
use crate::text::{LocatedShingle, Text};

/// What two texts share, as [`shared_spans`] finds it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SharedSpans {
    /// The spans of the first text that are covered by shared shingles: byte ranges of the text as it was
    /// given, each between two scalar values, ascending, without overlap.
    pub spans_a: Vec<Range<usize>>,
    /// Those of the second text.
    pub spans_b: Vec<Range<usize>>,
    /// The number of distinct shingles of the first text.
    pub shingles_a: usize,
    /// The number of distinct shingles of the second text.
    pub shingles_b: usize,
    /// The number of distinct shingles that both have.
    pub shared: usize,
    /// The Jaccard similarity of the sets of shingles, 0 to 1, as [`jaccard`](super::jaccard()) gives it.
    pub jaccard: f64,
    /// The share of the first text's shingles that the second one has, 0 to 1, as
    /// [`containment`](super::containment()) gives it.
    pub share_of_a: f64,
    /// The share of the second text's shingles that the first one has.
    pub share_of_b: f64,
}

/// Where two texts share shingles: the answer to *why are they alike?*
///
/// A unit of a text (a word, a character, a code token) is covered if it is in a shingle that the other
/// text has. A span goes from the beginning of a covered unit to the end of the last one, as long as all units
/// between are covered. What the text leaves out, such as punctuation, marks and stop words, is in a
/// span if it stands between its units. A letter is in a span with its marks.
///
/// Shingles count as equal if their hashes of 64 bits are, as everywhere in this crate. It takes 8 bytes of memory
/// for each distinct shingle, and the spans.
///
/// # Errors
///
/// As [`Text::validate`].
///
/// ```
/// use resemblance::Text;
/// use resemblance::exact::shared_spans;
///
/// let a = "He said: “The CAFÉ was closed,” and left.";
/// let b = "The cafe\u{301} was closed on Monday.";
/// let shared = shared_spans(&Text::words(3), a, b)?;
/// assert_eq!(&a[shared.spans_a[0].clone()], "The CAFÉ was closed");
/// assert_eq!(&b[shared.spans_b[0].clone()], "The cafe\u{301} was closed");
/// assert_eq!((shared.shingles_a, shared.shingles_b, shared.shared), (6, 4, 2));
/// assert_eq!((shared.jaccard, shared.share_of_a, shared.share_of_b), (2.0 / 8.0, 2.0 / 6.0, 2.0 / 4.0));
/// # Ok::<(), resemblance::Error>(())
/// ```
pub fn shared_spans(text: &Text, a: &str, b: &str) -> Result<SharedSpans> {
    let (hashes_a, hashes_b) = (shingle_set(text, a)?, shingle_set(text, b)?);
    Ok(SharedSpans {
        spans_a: covered_spans(text, a, &hashes_b)?,
        spans_b: covered_spans(text, b, &hashes_a)?,
        shingles_a: hashes_a.len(),
        shingles_b: hashes_b.len(),
        shared: hashes_a.shared(&hashes_b),
        jaccard: jaccard(&hashes_a, &hashes_b),
        share_of_a: containment(&hashes_a, &hashes_b),
        share_of_b: containment(&hashes_b, &hashes_a),
    })
}

/// The hashes of the shingles of a text, sorted whenever they have become twice as many.
fn shingle_set(text: &Text, document: &str) -> Result<FeatureSet<u64>> {
    const MIN_HASHES: usize = 1 << 12;
    text.validate()?;
    let (mut hashes, mut max_hashes) = (Vec::new(), MIN_HASHES);
    text.for_each_shingle(document, |shingle| {
        hashes.push(feature_hash(shingle.as_bytes()));
        if hashes.len() >= max_hashes {
            hashes.sort_unstable();
            hashes.dedup();
            max_hashes = MIN_HASHES.max(2 * hashes.len());
        }
    });
    Ok(hashes.into_iter().collect())
}

/// The spans of a text that are covered by shingles of a set.
fn covered_spans(
    text: &Text,
    document: &str,
    shingles: &FeatureSet<u64>,
) -> Result<Vec<Range<usize>>> {
    let size = usize::from(text.length());
    let mut spans: Vec<Range<usize>> = Vec::new();
    // Numbers of units: of the first one of a shingle, and of the first one that is not covered so far.
    let (mut unit, mut covered_to) = (0, 0);
    text.for_each_located_shingle(document, |LocatedShingle { utf8, place }| {
        if shingles
            .as_slice()
            .binary_search(&feature_hash(utf8))
            .is_ok()
        {
            match spans.last_mut() {
                // Units that come of one letter, such as those of a ligature, have the same place.
                Some(last) if unit <= covered_to || place.start < last.end => {
                    last.end = last.end.max(place.end);
                }
                _ => spans.push(place),
            }
            covered_to = unit + size;
        }
        unit += 1;
    })?;
    Ok(spans)
}

/// The longest passage of two texts, as [`longest_shared_passage`] finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedPassage {
    /// Its byte range in the first text, between two scalar values.
    pub a: Range<usize>,
    /// Its byte range in the second text.
    pub b: Range<usize>,
    /// Its length: so many consecutive shingles are the same in both texts.
    pub shingles: usize,
}

/// The longest passage that two texts share: the longest run of consecutive shingles that both have in the
/// same order. Of several the one that comes first in the second text, and then in the first. `None` if they
/// share no shingle.
///
/// It takes O(n log² n) steps for n shingles, and 24 bytes of memory for each at most.
///
/// # Errors
///
/// As [`Text::validate`].
///
/// ```
/// use resemblance::Text;
/// use resemblance::exact::longest_shared_passage;
///
/// let a = "To be, or not to be: that is the question.";
/// let b = "What is the question? Not to be that is";
/// let longest = longest_shared_passage(&Text::words(2), a, b)?.unwrap();
/// assert_eq!((&a[longest.a], &b[longest.b]), ("not to be: that is", "Not to be that is"));
/// assert_eq!(longest.shingles, 4);
/// # Ok::<(), resemblance::Error>(())
/// ```
pub fn longest_shared_passage(text: &Text, a: &str, b: &str) -> Result<Option<SharedPassage>> {
    let (hashes_a, hashes_b) = (shingle_list(text, a)?, shingle_list(text, b)?);
    let Some((in_a, in_b, shingles)) = longest_run(&hashes_a, &hashes_b) else {
        return Ok(None);
    };
    Ok(Some(SharedPassage {
        a: place_of_run(text, a, in_a, shingles)?,
        b: place_of_run(text, b, in_b, shingles)?,
        shingles,
    }))
}

/// The hashes of the shingles of a text in their order.
fn shingle_list(text: &Text, document: &str) -> Result<Vec<u64>> {
    text.validate()?;
    let mut hashes = Vec::new();
    text.for_each_shingle(document, |shingle| {
        hashes.push(feature_hash(shingle.as_bytes()));
    });
    Ok(hashes)
}

/// The place of so many shingles, from one on.
fn place_of_run(
    text: &Text,
    document: &str,
    first: usize,
    shingles: usize,
) -> Result<Range<usize>> {
    let (mut start, mut end, mut number) = (None, None, 0);
    text.for_each_located_shingle(document, |LocatedShingle { place, .. }| {
        if number == first {
            start = Some(place.start);
        }
        number += 1;
        if number == first + shingles {
            end = Some(place.end);
        }
    })?;
    let start = start.or_bug("a shingle that was there before")?;
    Ok(start..end.or_bug("a shingle that was there before")?)
}

/// Where the longest common run begins in both, and its length.
fn longest_run(a: &[u64], b: &[u64]) -> Option<(usize, usize, usize)> {
    let (mut longest, mut below) = (None, a.len().min(b.len()) + 1);
    let mut length = 0;
    // Where a run of some length is common, shorter ones are too.
    while below - length > 1 {
        let tried = length + (below - length) / 2;
        match common_run(a, b, tried) {
            Some((in_a, in_b)) => {
                longest = Some((in_a, in_b, tried));
                length = tried;
            }
            None => below = tried,
        }
    }
    longest
}

/// Where the first run of this length that both have begins in both.
fn common_run(a: &[u64], b: &[u64], length: usize) -> Option<(usize, usize)> {
    let mut runs: Vec<(u64, usize)> = run_hashes(a, length).zip(0..).collect();
    runs.sort_unstable();
    run_hashes(b, length)
        .zip(b.windows(length))
        .zip(0..)
        .find_map(|((hash, run), in_b)| {
            let first = runs.partition_point(|&(other, _)| other < hash);
            let same = runs
                .iter()
                .skip(first)
                .take_while(|&&(other, _)| other == hash);
            let mut places = same.map(|&(_, in_a)| in_a);
            let in_a = places.find(|&in_a| a.get(in_a..in_a + length) == Some(run))?;
            Some((in_a, in_b))
        })
}

/// A hash of each run of this length: a polynomial, so that each follows from the one before it.
fn run_hashes(hashes: &[u64], length: usize) -> impl Iterator<Item = u64> {
    const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
    let add = |run: u64, hash: &u64| run.wrapping_mul(BASE).wrapping_add(*hash);
    let (head, tail) = hashes.split_at(length.min(hashes.len()));
    let leading = (1..length).fold(1_u64, |power, _| power.wrapping_mul(BASE));
    let mut run = head.iter().fold(0, add);
    let first = (head.len() == length).then_some(run);
    let others = tail.iter().zip(hashes).map(move |(next, gone)| {
        run = add(run.wrapping_sub(gone.wrapping_mul(leading)), next);
        run
    });
    first.into_iter().chain(others)
}
