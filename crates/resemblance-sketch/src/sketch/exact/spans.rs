//! Finds the passages that two texts share.

use std::ops::Range;

use super::sets::{FeatureSet, containment, cosine, dice, jaccard, overlap};
use crate::error::Result;
use crate::invariant::bug;
use crate::sketch::hash::feature_hash;
use crate::text::{LocatedShingle, Text};

/// The passages that two texts share, as [`shared_spans`] finds them.
///
/// ```
/// use resemblance_sketch::Text;
/// use resemblance_sketch::exact::shared_spans;
/// let (old, new) = ("the price is 10 euros today", "the price is 12 euros today");
/// let shared = shared_spans(&Text::words(2), old, new)?;
/// let same: Vec<&str> = shared.spans_b.iter().map(|span| &new[span.clone()]).collect();
/// assert_eq!(same, ["the price is", "euros today"]);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SharedSpans {
    /// The spans of the first text that shared shingles cover. They are byte ranges of the original
    /// text, on character boundaries, ascending and without overlap.
    pub spans_a: Vec<Range<usize>>,
    /// The spans of the second text.
    pub spans_b: Vec<Range<usize>>,
    /// The number of distinct shingles of the first text.
    pub shingles_a: usize,
    /// The number of distinct shingles of the second text.
    pub shingles_b: usize,
    /// The number of distinct shingles that both texts have.
    pub shared: usize,
    /// The Jaccard similarity of the sets of shingles, 0 to 1; see [`jaccard`](super::jaccard()).
    pub jaccard: f64,
    /// The [`cosine`](super::cosine()) similarity of the sets, 0 to 1.
    pub cosine: f64,
    /// The [`dice`](super::dice()) coefficient of the sets, 0 to 1.
    pub dice: f64,
    /// The [`overlap`](super::overlap()) coefficient of the sets, 0 to 1.
    pub overlap: f64,
    /// The share of the first text's shingles that the second text contains, 0 to 1; see
    /// [`containment`](super::containment()).
    pub share_of_a: f64,
    /// The share of the second text's shingles that the first text contains.
    pub share_of_b: f64,
}

/// Returns the spans in which two texts share shingles: the answer to *why are they alike?*
///
/// A unit of a text (a word, a character, a code token) is covered if it belongs to a shingle that
/// the other text also has. A span is a maximal run of covered units, from the beginning of the
/// first to the end of the last. It includes text between its units that shingles leave out, such
/// as punctuation and stop words. A letter and its marks are in the same span.
///
/// As everywhere in this crate, shingles count as equal if their 64-bit hashes are equal. The
/// function takes at most 16 bytes of memory for each distinct shingle, plus the spans.
///
/// # Errors
///
/// The same as [`Text::validate`].
///
/// ```
/// use resemblance_sketch::Text;
/// use resemblance_sketch::exact::shared_spans;
///
/// let a = "He said: “The CAFÉ was closed,” and left.";
/// let b = "The cafe\u{301} was closed on Monday.";
/// let shared = shared_spans(&Text::words(3), a, b)?;
/// assert_eq!(&a[shared.spans_a[0].clone()], "The CAFÉ was closed");
/// assert_eq!(&b[shared.spans_b[0].clone()], "The cafe\u{301} was closed");
/// assert_eq!((shared.shingles_a, shared.shingles_b, shared.shared), (6, 4, 2));
/// assert_eq!((shared.jaccard, shared.share_of_a, shared.share_of_b), (2.0 / 8.0, 2.0 / 6.0, 2.0 / 4.0));
/// # Ok::<(), resemblance_sketch::SketchError>(())
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
        cosine: cosine(&hashes_a, &hashes_b),
        dice: dice(&hashes_a, &hashes_b),
        overlap: overlap(&hashes_a, &hashes_b),
        share_of_a: containment(&hashes_a, &hashes_b),
        share_of_b: containment(&hashes_b, &hashes_a),
    })
}

/// Returns the sorted hashes of the distinct shingles of a text. Sorts them each time their number
/// has doubled, to remove repeats.
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

/// Returns the spans of a text that the shingles of a set cover.
fn covered_spans(
    text: &Text,
    document: &str,
    shingles: &FeatureSet<u64>,
) -> Result<Vec<Range<usize>>> {
    let size = usize::from(text.length());
    let mut spans: Vec<Range<usize>> = Vec::new();
    // `unit` is the number of the first unit of a shingle, `covered_to` that of the first unit not
    // covered so far.
    let (mut unit, mut covered_to) = (0, 0);
    text.for_each_located_shingle(document, |LocatedShingle { utf8, place }| {
        if shingles
            .as_slice()
            .binary_search(&feature_hash(utf8))
            .is_ok()
        {
            match spans.last_mut() {
                // Units that result from one letter, such as a ligature, have the same place.
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

/// The longest passage that two texts share, as [`longest_shared_passage`] finds it.
///
/// ```
/// use resemblance_sketch::Text;
/// use resemblance_sketch::exact::longest_shared_passage;
/// let passage = longest_shared_passage(&Text::characters(3), "seashell", "a shell")?.unwrap();
/// assert_eq!((passage.a, passage.b, passage.shingles), (3..8, 2..7, 3));
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedPassage {
    /// Its byte range in the first text, on character boundaries.
    pub a: Range<usize>,
    /// Its byte range in the second text.
    pub b: Range<usize>,
    /// Its length: the number of consecutive shingles that are the same in both texts.
    pub shingles: usize,
}

/// Returns the longest passage that two texts share: the longest run of consecutive shingles that
/// both have in the same order. Among several of that length, it returns the one that begins first
/// in the second text, then in the first. Returns `None` if the texts share no shingle.
///
/// The function takes O(n log² n) steps for n shingles, and at most 24 bytes of memory for each.
///
/// # Errors
///
/// The same as [`Text::validate`].
///
/// ```
/// use resemblance_sketch::Text;
/// use resemblance_sketch::exact::longest_shared_passage;
///
/// let a = "To be, or not to be: that is the question.";
/// let b = "What is the question? Not to be that is";
/// let longest = longest_shared_passage(&Text::words(2), a, b)?.unwrap();
/// assert_eq!((&a[longest.a], &b[longest.b]), ("not to be: that is", "Not to be that is"));
/// assert_eq!(longest.shingles, 4);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
pub fn longest_shared_passage(text: &Text, a: &str, b: &str) -> Result<Option<SharedPassage>> {
    let (hashes_a, hashes_b) = (shingle_list(text, a)?, shingle_list(text, b)?);
    let Some((in_a, in_b, shingles)) = longest_run(&hashes_a, &hashes_b) else {
        return Ok(None);
    };
    let read_before = || bug("shingles that were read before");
    Ok(Some(SharedPassage {
        a: span_of_shingles(text, a, in_a..in_a + shingles)?.ok_or_else(read_before)?,
        b: span_of_shingles(text, b, in_b..in_b + shingles)?.ok_or_else(read_before)?,
        shingles,
    }))
}

/// Returns the hashes of all shingles of a text, in order.
fn shingle_list(text: &Text, document: &str) -> Result<Vec<u64>> {
    text.validate()?;
    let mut hashes = Vec::new();
    text.for_each_shingle(document, |shingle| {
        hashes.push(feature_hash(shingle.as_bytes()));
    });
    Ok(hashes)
}

/// Returns the span of a range of consecutive shingles in a text. Shingles are numbered from 0 in
/// the order of the text. The span is a byte range of the original text, on character boundaries.
/// Returns `None` if the range is empty or exceeds the last shingle.
///
/// # Errors
///
/// The same as [`Text::validate`].
///
/// ```
/// use resemblance_sketch::Text;
/// use resemblance_sketch::exact::span_of_shingles;
/// let text = "To be, or not to be";
/// let span = span_of_shingles(&Text::words(2), text, 1..3)?.unwrap();
/// assert_eq!(&text[span], "be, or not");
/// assert_eq!(span_of_shingles(&Text::words(2), text, 1..6)?, None);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
pub fn span_of_shingles(
    text: &Text,
    document: &str,
    shingles: Range<usize>,
) -> Result<Option<Range<usize>>> {
    let (mut start, mut end, mut number) = (None, None, 0);
    text.for_each_located_shingle(document, |LocatedShingle { place, .. }| {
        if number == shingles.start {
            start = Some(place.start);
        }
        number += 1;
        if !shingles.is_empty() && number == shingles.end {
            end = Some(place.end);
        }
    })?;
    Ok(start.zip(end).map(|(start, end)| start..end))
}

/// Returns where the longest common run begins in both, and its length.
fn longest_run(a: &[u64], b: &[u64]) -> Option<(usize, usize, usize)> {
    let (mut longest, mut below) = (None, a.len().min(b.len()) + 1);
    let mut length = 0;
    // If a run of some length is common, shorter runs are common too.
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

/// Returns where the first common run of this length begins in both.
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

/// Returns a hash of each run of this length. The hash is a polynomial, so each follows from the
/// one before.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::sample::Random;

    /// Two texts that share runs of words and letters of several scripts.
    fn random_pair(random: &mut Random) -> [String; 2] {
        const PIECES: &str = concat!(
            "the |Cat |cat, |a |b |été |e\u{301}te\u{301} |日本|語 |ΣΑΣ |x-y |😀|\n\n|— |か\u{3099} |",
            "to be "
        );
        [0, 1].map(|_| {
            let count = random.index(50);
            (0..count).map(|_| random.word(PIECES)).collect()
        })
    }

    fn naive_shingles(text: Text, document: &str) -> Vec<String> {
        let mut shingles = Vec::new();
        text.for_each_shingle(document, |shingle| shingles.push(shingle.to_owned()));
        shingles
    }

    fn recipes(n: u16) -> [Text; 5] {
        [
            Text::words(n),
            Text::words(n).unordered(),
            Text::code(n),
            Text::characters(n),
            Text::characters(n).remove_spaces(),
        ]
    }

    #[test]
    fn span_counts_equal_those_of_shingle_sets() {
        let mut random = Random(1);
        for _ in 0..100 {
            let [a, b] = random_pair(&mut random);
            for text in [1, 2, 5].into_iter().flat_map(recipes) {
                let set = |of| BTreeSet::from_iter(naive_shingles(text, of));
                let (set_a, set_b) = (set(&a), set(&b));
                let shared = set_a.intersection(&set_b).count();
                let found = shared_spans(&text, &a, &b).unwrap();
                let counts = (found.shingles_a, found.shingles_b, found.shared);
                assert_eq!(
                    counts,
                    (set_a.len(), set_b.len(), shared),
                    "{text} {a:?} {b:?}"
                );
                let ratio = |of: usize| {
                    if of == 0 {
                        1.0
                    } else {
                        shared as f64 / of as f64
                    }
                };
                let union = set_a.len() + set_b.len() - shared;
                let shares = [found.jaccard, found.share_of_a, found.share_of_b];
                assert_eq!(shares, [union, set_a.len(), set_b.len()].map(ratio));
                let is_one_empty = set_a.is_empty() != set_b.is_empty();
                let of = |length: f64| match length {
                    0.0 => f64::from(u8::from(!is_one_empty)),
                    _ => shared as f64 / length,
                };
                let (of_a, of_b) = (set_a.len() as f64, set_b.len() as f64);
                let others = [found.cosine, found.dice, found.overlap];
                let lengths = [(of_a * of_b).sqrt(), (of_a + of_b) / 2.0, of_a.min(of_b)];
                for (other, length) in others.into_iter().zip(lengths) {
                    assert!((other - of(length)).abs() < 1e-12, "{text} {a:?} {b:?}");
                }
            }
        }
    }

    /// Returns the units of a text that needs no normalisation, with their places. `is_between`
    /// separates them.
    fn naive_units(text: Text, document: &str) -> Vec<(String, Range<usize>)> {
        let mut units: Vec<(String, Range<usize>)> = Vec::new();
        let mut is_open = false;
        for (start, c) in document.char_indices() {
            let place = start..start + c.len_utf8();
            let lower = c.to_lowercase().to_string();
            match text.unit() {
                crate::text::ShingleUnit::Characters if c.is_whitespace() => {
                    if is_open {
                        units.push((" ".into(), place));
                    }
                    is_open = false;
                }
                crate::text::ShingleUnit::Characters => {
                    units.push((lower, place));
                    is_open = true;
                }
                _ if !c.is_alphanumeric() => is_open = false,
                _ => match units.last_mut().filter(|_| is_open) {
                    Some((unit, last)) => {
                        unit.push_str(&lower);
                        last.end = place.end;
                    }
                    None => {
                        units.push((lower, place));
                        is_open = true;
                    }
                },
            }
        }
        if units.last().is_some_and(|(unit, _)| unit == " ") {
            units.pop();
        }
        units
    }

    fn naive_spans(text: Text, document: &str, other: &str) -> Vec<Range<usize>> {
        let units = naive_units(text, document);
        let shingles_of = |units: &[(String, Range<usize>)]| {
            let size = usize::from(text.length()).min(units.len()).max(1);
            let joined = |run: &[(String, Range<usize>)]| {
                run.iter()
                    .map(|(unit, _)| format!("{unit}\0"))
                    .collect::<String>()
            };
            let shingles = units.windows(size).map(joined);
            (size, shingles.collect::<Vec<_>>())
        };
        let others: BTreeSet<String> = shingles_of(&naive_units(text, other))
            .1
            .into_iter()
            .collect();
        let (size, shingles) = shingles_of(&units);
        let mut is_covered = vec![false; units.len()];
        for (first, shingle) in shingles.iter().enumerate() {
            if others.contains(shingle) {
                is_covered[first..first + size].fill(true);
            }
        }
        let covered: Vec<(bool, &Range<usize>)> = is_covered
            .into_iter()
            .zip(units.iter().map(|(_, place)| place))
            .collect();
        let runs = covered.chunk_by(|a, b| a.0 == b.0).filter(|run| run[0].0);
        runs.map(|run| run[0].1.start..run[run.len() - 1].1.end)
            .collect()
    }

    #[test]
    fn spans_are_the_runs_of_units_that_shared_shingles_cover() {
        let mut random = Random(2);
        let mut spans = 0;
        for _ in 0..300 {
            let [a, b] =
                random_pair(&mut random).map(|text| text.replace(['\u{301}', '\u{3099}'], ""));
            for n in [1, 2, 3, 7, 200] {
                for text in [Text::words(n), Text::characters(n)] {
                    let found = shared_spans(&text, &a, &b).unwrap();
                    assert_eq!(
                        found.spans_a,
                        naive_spans(text, &a, &b),
                        "{text} {a:?} {b:?}"
                    );
                    assert_eq!(
                        found.spans_b,
                        naive_spans(text, &b, &a),
                        "{text} {b:?} {a:?}"
                    );
                    spans += found.spans_a.len();
                }
            }
        }
        assert!(spans > 3_000, "{spans}");
    }

    #[test]
    fn spans_cover_shared_shingles_only() {
        let mut random = Random(3);
        for _ in 0..200 {
            let [a, b] = random_pair(&mut random);
            for text in [Text::words(2), Text::words(3).unordered(), Text::code(2)] {
                let found = shared_spans(&text, &a, &b).unwrap();
                let others = BTreeSet::from_iter(naive_shingles(text, &b));
                let mut inside = 0;
                for span in &found.spans_a {
                    let shingles = naive_shingles(text, &a[span.clone()]);
                    inside += shingles
                        .iter()
                        .filter(|shingle| others.contains(*shingle))
                        .count();
                }
                let shingles = naive_shingles(text, &a);
                let shared = shingles
                    .iter()
                    .filter(|shingle| others.contains(*shingle))
                    .count();
                assert_eq!(inside, shared, "{text} {a:?} {b:?}");
            }
        }
    }

    #[test]
    fn the_longest_passage_is_the_longest_common_run_of_shingles() {
        let mut random = Random(4);
        for _ in 0..300 {
            let [a, b] = random_pair(&mut random);
            for text in [1, 3].into_iter().flat_map(recipes) {
                let (in_a, in_b) = (naive_shingles(text, &a), naive_shingles(text, &b));
                let common = |i: usize, j: usize| {
                    let pairs = in_a[i..].iter().zip(&in_b[j..]);
                    pairs.take_while(|(a, b)| a == b).count()
                };
                let starts = (0..in_b.len()).flat_map(|j| (0..in_a.len()).map(move |i| (i, j)));
                let longest = starts.map(|(i, j)| common(i, j)).max().unwrap_or(0);
                let found = longest_shared_passage(&text, &a, &b).unwrap();
                assert_eq!(found.as_ref().map_or(0, |found| found.shingles), longest);
                if let Some(found) = found.filter(|_| text == Text::words(3)) {
                    let cut = |of: &str, place: Range<usize>| naive_shingles(text, &of[place]);
                    assert_eq!(cut(&a, found.a.clone()), cut(&b, found.b));
                    assert_eq!(cut(&a, found.a).len(), longest);
                }
            }
        }
    }

    #[test]
    fn spans_refuse_an_invalid_text_recipe() {
        assert!(shared_spans(&Text::words(0), "a", "a").is_err());
        assert!(longest_shared_passage(&Text::words(0), "a", "a").is_err());
    }
}
