//! Kept hashes: the hashes of selected shingles of a document, by which shared passages are found.

use std::collections::VecDeque;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::hash::{GOLDEN_GAMMA, derive, mix64, stream};
use crate::error::{Result, SketchError};

/// The number of bits of a kept hash. The probability that a hash collides with any of 500 million
/// different ones is 3 × 10⁻⁵.
pub const KEPT_HASH_BITS: u8 = 44;

/// The window sizes that a schema accepts, in shingles.
const WINDOWS: std::ops::RangeInclusive<u16> = 1..=1_024;

/// The scales that a schema accepts.
const SCALES: std::ops::RangeInclusive<u32> = 1..=1_000_000;

/// The default window.
const DEFAULT_WINDOW: u16 = 8;

/// The rule that selects which shingles of a document a schema keeps. Kept shingles find shared
/// passages: *is this paragraph in that page?*
///
/// A document is cut into shingles of k units (words, characters or code tokens, depending on the
/// schema's [`Text`](crate::Text)). The signature keeps the hashes of some shingles, and the index
/// contains them. There are two ways to select them:
///
/// - **By windows** (Schleimer, Wilkerson and Aiken, *Winnowing*, 2003; the default): from every w
///   consecutive shingles, keep the one with the smallest hash (the rightmost if several are
///   equal). This keeps about 2 / (w + 1) of all shingles. **It finds every passage of w shingles
///   (w + k − 1 units) that two documents share**, and no passage shorter than k units.
/// - **Scaled** (FracMinHash: Irber et al. 2022): keep each shingle with probability 1 / s,
///   independently of its neighbours. This takes less space and guarantees no passage, but it gives
///   an unbiased estimate, with known variance, of the share of the query that a document contains.
///
/// If the document is given as features instead of a text, the features in their order are its
/// shingles.
///
/// ```
/// use resemblance_sketch::{Containment, Schema, Text};
/// let containment = Containment::new(5).window(8);
/// let schema = Schema::builder().text(Text::words(5)).containment(containment).build()?;
/// let sketcher = schema.sketcher();
/// let page = sketcher.text("when in the course of human events it becomes necessary for one people")?;
/// // 13 words have 9 shingles of 5 words, and these have two windows of 8.
/// assert!((1..=2).contains(&page.kept_hashes().unwrap().len()));
/// assert_eq!((containment.shingle_units(), containment.window_shingles()), (5, Some(8)));
/// assert_eq!((containment.min_shared_units(), containment.scale()), (Some(12), None));
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "StoredContainment", into = "StoredContainment")]
#[must_use]
pub struct Containment {
    units: u16,
    selection: Selection,
    has_positions: bool,
}

/// The encoded form of containment. Frozen.
#[derive(Serialize, Deserialize)]
struct StoredContainment {
    units: u16,
    rule: StoredRule,
}

/// The rule that selects shingles, with or without their positions.
#[derive(Serialize, Deserialize)]
enum StoredRule {
    Window(u16),
    Scaled(u32),
    PlacedWindow(u16),
    PlacedScaled(u32),
}

impl From<StoredContainment> for Containment {
    fn from(stored: StoredContainment) -> Self {
        let (selection, has_positions) = match stored.rule {
            StoredRule::Window(window) => (Selection::Window(window), false),
            StoredRule::Scaled(scale) => (Selection::Scaled(scale), false),
            StoredRule::PlacedWindow(window) => (Selection::Window(window), true),
            StoredRule::PlacedScaled(scale) => (Selection::Scaled(scale), true),
        };
        Self {
            units: stored.units,
            selection,
            has_positions,
        }
    }
}

impl From<Containment> for StoredContainment {
    fn from(containment: Containment) -> Self {
        Self {
            units: containment.units,
            rule: match (containment.selection, containment.has_positions) {
                (Selection::Window(window), false) => StoredRule::Window(window),
                (Selection::Scaled(scale), false) => StoredRule::Scaled(scale),
                (Selection::Window(window), true) => StoredRule::PlacedWindow(window),
                (Selection::Scaled(scale), true) => StoredRule::PlacedScaled(scale),
            },
        }
    }
}

/// The rule that selects shingles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Selection {
    /// Keep the smallest of this number of consecutive hashes.
    Window(u16),
    /// Keep one hash in this number.
    Scaled(u32),
}

impl Containment {
    /// Keeps shingles of `k` units, 1 to 256, with a [window](Self::window) of 8. `k` is
    /// independent of the shingle length of [`Text`](crate::Text), which MinHash and SimHash use.
    pub const fn new(k: u16) -> Self {
        Self {
            units: k,
            selection: Selection::Window(DEFAULT_WINDOW),
            has_positions: false,
        }
    }

    /// Keeps the shingle with the smallest hash of every `w` consecutive shingles, 1 to 1,024. A
    /// window of 1 keeps all shingles.
    pub const fn window(mut self, w: u16) -> Self {
        self.selection = Selection::Window(w);
        self
    }

    /// Keeps each shingle with probability 1 / `s`, where `s` is 1 to 1,000,000, instead of using
    /// windows.
    ///
    /// ```
    /// # use resemblance_sketch::{Containment, Schema};
    /// let schema = Schema::builder().containment(Containment::new(1).scaled(10)).build()?;
    /// let signature = schema.sketcher().hashes(0..10_000)?;
    /// assert!((850..1_150).contains(&signature.kept_hashes().unwrap().len()));
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub const fn scaled(mut self, s: u32) -> Self {
        self.selection = Selection::Scaled(s);
        self
    }

    /// Also keeps the positions of each kept shingle in its document. Answers then contain the
    /// positions of shared passages in both texts (`Overlap::passages` of a store), without access
    /// to the texts. In a document of n shingles, each occurrence of a kept shingle takes about
    /// (log₂ n + 2) / 8 more bytes: 1.6 bytes for two thousand shingles.
    ///
    /// ```
    /// # use resemblance_sketch::{Containment, Schema, Text};
    /// let containment = Containment::new(2).window(1).positions(true);
    /// assert!(containment.has_positions());
    /// let schema = Schema::builder().text(Text::words(2)).containment(containment).build()?;
    /// let page = schema.sketcher().text("whether to be or not to be tired")?;
    /// assert_eq!(page.kept_hashes().map(<[u64]>::len), Some(6));
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub const fn positions(mut self, are_kept: bool) -> Self {
        self.has_positions = are_kept;
        self
    }

    /// Returns true if the [positions](Self::positions) of kept shingles are kept.
    ///
    /// ```
    /// use resemblance_sketch::Containment;
    ///
    /// assert!(!Containment::new(8).has_positions());
    /// assert!(Containment::new(8).positions(true).has_positions());
    /// ```
    #[must_use]
    pub fn has_positions(&self) -> bool {
        self.has_positions
    }

    /// Returns the number of units in a shingle.
    #[must_use]
    pub fn shingle_units(&self) -> u16 {
        self.units
    }

    /// Returns the number of shingles in a window, or `None` if shingles are
    /// [scaled](Self::scaled).
    #[must_use]
    pub fn window_shingles(&self) -> Option<u16> {
        match self.selection {
            Selection::Window(window) => Some(window),
            Selection::Scaled(_) => None,
        }
    }

    /// Returns s if one in s shingles is kept, or `None` if shingles are selected by
    /// [windows](Self::window).
    #[must_use]
    pub fn scale(&self) -> Option<u32> {
        match self.selection {
            Selection::Window(_) => None,
            Selection::Scaled(scale) => Some(scale),
        }
    }

    /// Returns the minimum length, in units, at which every shared passage is found: w + k − 1.
    /// Returns `None` if shingles are [scaled](Self::scaled), because that can miss any passage.
    #[must_use]
    pub fn min_shared_units(&self) -> Option<u32> {
        self.window_shingles().map(|_| self.guaranteed_units())
    }

    /// Returns w + k − 1, where w is 1 if shingles are scaled.
    pub(crate) fn guaranteed_units(&self) -> u32 {
        let window = self.window_shingles().unwrap_or(1);
        // A build refuses 0 for either, but they can be asked before.
        (u32::from(window) + u32::from(self.units)).saturating_sub(1)
    }

    pub(super) fn validate(&self) -> Result<()> {
        let expected = "shingles of 1 to 256 units";
        let is_valid = (1..=256).contains(&self.units);
        SketchError::require(is_valid, "containment", self.units, expected)?;
        match self.selection {
            Selection::Window(w) => {
                let is_within = WINDOWS.contains(&w);
                SketchError::require(is_within, "containment window", w, "1 to 1,024")
            }
            Selection::Scaled(s) => {
                let is_within = SCALES.contains(&s);
                SketchError::require(is_within, "containment scale", s, "1 to 1,000,000")
            }
        }
    }

    /// Appends the bytes of this rule that the fingerprint of a recipe contains. Frozen.
    pub(super) fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(b"containment");
        bytes.extend_from_slice(&self.units.to_le_bytes());
        let (kind, number) = match self.selection {
            Selection::Window(window) => (0, window.into()),
            Selection::Scaled(scale) => (1, scale),
        };
        bytes.push(kind + 2 * u8::from(self.has_positions));
        bytes.extend_from_slice(&number.to_le_bytes());
    }
}

impl fmt::Display for Containment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shingles of {}, ", self.units)?;
        match self.selection {
            Selection::Window(window) => write!(f, "windows of {window}")?,
            Selection::Scaled(scale) => write!(f, "one in {scale}")?,
        }
        f.write_str(if self.has_positions {
            ", with positions"
        } else {
            ""
        })
    }
}

/// A kept shingle: its position among the shingles of its document, from 0, and its hash.
pub type KeptShingle = (u64, u64);

/// The kept hashes of a document.
#[derive(Clone, Debug, Default)]
pub struct KeptHashes {
    /// In ascending order, without repeats.
    pub hashes: Vec<u64>,
    /// The kept shingles in the order of the document, with repeats. Empty if the hashes come from
    /// a store that does not keep positions.
    pub shingles: Vec<KeptShingle>,
    /// True if positions are part of the signature.
    pub are_placed: bool,
}

/// Selects shingles, one after another.
#[derive(Debug)]
pub(super) struct ShingleSelector {
    key: u64,
    selection: Selection,
    has_positions: bool,
    /// The shingles that can still become the smallest of a window: positions and hashes, ascending
    /// by hash.
    candidates: VecDeque<(u64, u64)>,
    /// The number of shingles so far.
    count: u64,
    kept: Vec<KeptShingle>,
}

impl ShingleSelector {
    pub(super) fn new(containment: &Containment, seed: u64) -> Self {
        Self {
            key: derive(seed, stream::CONTAINMENT_KEY),
            selection: containment.selection,
            has_positions: containment.has_positions,
            candidates: VecDeque::new(),
            count: 0,
            kept: Vec::new(),
        }
    }

    /// Adds the next shingle, given by the hash of its bytes.
    #[inline]
    pub(super) fn push(&mut self, feature_hash: u64) {
        let mixed = mix64(feature_hash ^ self.key);
        let position = self.count;
        self.count += 1;
        match self.selection {
            Selection::Window(window) => self.push_to_window(position, mixed, window.into()),
            Selection::Scaled(scale) => {
                if mixed <= u64::MAX / u64::from(scale) {
                    self.kept.push((position, kept_hash(mixed, KEPT_HASH_BITS)));
                }
            }
        }
    }

    #[inline]
    fn push_to_window(&mut self, position: u64, mixed: u64, window: u64) {
        // An equal hash further right replaces the one before.
        while self.candidates.back().is_some_and(|last| last.1 >= mixed) {
            self.candidates.pop_back();
        }
        self.candidates.push_back((position, mixed));
        if self
            .candidates
            .front()
            .is_some_and(|first| first.0 + window <= position)
        {
            self.candidates.pop_front();
        }
        if position + 1 >= window {
            self.keep_least();
        }
    }

    /// Keeps the smallest hash of the current window, unless it is the one kept for the window
    /// before.
    fn keep_least(&mut self) {
        if let Some(&(position, mixed)) = self.candidates.front()
            && self.kept.last().is_none_or(|last| last.0 != position)
        {
            self.kept.push((position, kept_hash(mixed, KEPT_HASH_BITS)));
        }
    }

    pub(super) fn finish(mut self) -> KeptHashes {
        // A document shorter than a window is one window.
        if let Selection::Window(window) = self.selection
            && self.count < window.into()
        {
            self.keep_least();
        }
        let mut hashes: Vec<u64> = self.kept.iter().map(|(_, hash)| *hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        KeptHashes {
            hashes,
            shingles: self.kept,
            are_placed: self.has_positions,
        }
    }
}

/// Returns the hash under which a shingle is indexed. It is uniform for every rule of selection.
/// Frozen.
pub(super) fn kept_hash(mixed: u64, bits: u8) -> u64 {
    mix64(mixed.wrapping_add(GOLDEN_GAMMA)) >> (64 - bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(containment: Containment, hashes: &[u64]) -> Vec<KeptShingle> {
        let mut selector = ShingleSelector::new(&containment, 9);
        hashes.iter().for_each(|hash| selector.push(*hash));
        selector.finish().shingles
    }

    /// Follows the definition: the rightmost of the smallest hashes of each window, each shingle
    /// once.
    fn winnowed(window: usize, hashes: &[u64]) -> Vec<KeptShingle> {
        let mixed = hashes
            .iter()
            .map(|hash| mix64(hash ^ derive(9, stream::CONTAINMENT_KEY)));
        let mixed: Vec<(u64, u64)> = (0..).zip(mixed).collect();
        let windows = mixed.windows(window.min(mixed.len()).max(1));
        let least = windows.filter_map(|window| {
            window
                .iter()
                .min_by_key(|(position, mixed)| (*mixed, u64::MAX - position))
        });
        let mut least: Vec<(u64, u64)> = least.copied().collect();
        least.dedup();
        let shingle = |(position, mixed)| (position, kept_hash(mixed, KEPT_HASH_BITS));
        least.into_iter().map(shingle).collect()
    }

    #[test]
    fn winnowing_keeps_the_rightmost_least_shingle() {
        for window in [1, 2, 3, 8, 50, 1_024] {
            let containment = Containment::new(1).window(window);
            for length in [0, 1, 2, 7, 8, 9, 100, 1_500] {
                // Few distinct hashes, so that many are equal; then many distinct ones.
                for values in [1, 3, 40, 1 << 40] {
                    let hashes: Vec<u64> = (0..length).map(|i| mix64(i) % values).collect();
                    let expected = winnowed(window.into(), &hashes);
                    assert_eq!(
                        kept(containment, &hashes),
                        expected,
                        "{window} {length} {values}"
                    );
                }
            }
        }
    }

    #[test]
    fn guaranteed_length_of_refused_numbers_is_finite() {
        let units = |units, window| Containment::new(units).window(window).min_shared_units();
        assert_eq!((units(0, 0), units(0, 1)), (Some(0), Some(0)));
        assert_eq!(units(u16::MAX, u16::MAX), Some(131_069));
    }

    #[test]
    fn winnowing_keeps_two_in_w_plus_one() {
        let hashes: Vec<u64> = (0..100_000).map(mix64).collect();
        for window in [1, 4, 8, 20] {
            let count = kept(Containment::new(1).window(window), &hashes).len() as f64;
            let expected = 2.0 / (f64::from(window) + 1.0) * 100_000.0;
            assert!((count / expected - 1.0).abs() < 0.02, "{window}: {count}");
        }
        let scaled = kept(Containment::new(1).scaled(50), &hashes).len();
        assert!((1_800..2_200).contains(&scaled), "{scaled}");
        assert_eq!(
            kept(Containment::new(1).scaled(1), &hashes).len(),
            hashes.len()
        );
    }
}
