//! Builds signatures from features that are added one by one.

use std::fmt;

use super::containment::ShingleSelector;
use super::distinct::DistinctHashes;
use super::hash::feature_hash;
use super::hash_functions::HashFunctions;
use super::min_hash::MinHashState;
use super::signature::Signature;
use super::simhash::{WHOLE_WEIGHT, WeightedHash, add_up, count_repeats};
use crate::text::Shingler;

/// Features that are hashed together.
const PENDING_FEATURES: usize = 64;

/// The minimum number of entries at which equal features are combined before the document ends.
const MIN_ADDED_UP: usize = 1 << 16;

/// The unfinished signature of features without weights.
///
/// It takes the memory of the values. SimHash takes 19 to 30 bytes more for each distinct feature,
/// and weighted MinHash 16 to 48, because both need to know which features repeat.
pub(super) struct SignatureDraft<'a> {
    functions: &'a HashFunctions,
    state: Option<MinHashState<'a>>,
    /// The first `pending_count` entries are pending.
    pending: [u64; PENDING_FEATURES],
    pending_count: usize,
    gathered: GatheredFeatures,
    is_empty: bool,
}

/// Builds the signature of a text that arrives in pieces. Pieces may be cut anywhere.
///
/// It takes the memory of a few shingles and of the signature's values, whatever the length of the
/// text. [`Containment`](crate::Containment) takes 24 bytes more for each kept shingle. SimHash
/// takes 19 to 30 bytes more for each distinct shingle, and weighted MinHash 16 to 48, because both
/// need to know which shingles repeat.
///
/// ```
/// use resemblance_sketch::{MinHash, Schema, Text};
/// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(128)).build()?;
/// let sketcher = schema.sketcher();
/// let mut text = sketcher.streamed_text()?;
/// for piece in ["a te", "xt in pi", "eces"] {
///     text.push(piece);
/// }
/// assert_eq!(text.finish(), sketcher.text("a text in pieces")?);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
pub struct StreamedText<'a> {
    pub(super) shingler: Shingler,
    pub(super) draft: SignatureDraft<'a>,
    /// Cuts the shingles for containment, if their length differs.
    pub(super) kept_shingler: Option<Shingler>,
    pub(super) selector: Option<ShingleSelector>,
}

impl StreamedText<'_> {
    /// Adds the next piece of the text.
    pub fn push(&mut self, piece: &str) {
        let (draft, selector) = (&mut self.draft, &mut self.selector);
        match (&mut self.kept_shingler, selector) {
            (Some(shingler), Some(selector)) => {
                shingler.push(piece, |shingle: &[u8]| selector.push(feature_hash(shingle)));
                self.shingler
                    .push(piece, |shingle: &[u8]| draft.feature(shingle));
            }
            (_, selector) => self.shingler.push(piece, |shingle: &[u8]| {
                take(draft, selector, feature_hash(shingle));
            }),
        }
    }

    /// Returns the signature of all pieces together.
    #[must_use]
    pub fn finish(mut self) -> Signature {
        let (draft, selector) = (&mut self.draft, &mut self.selector);
        match (self.kept_shingler, selector) {
            (Some(shingler), Some(selector)) => {
                shingler.finish(|shingle: &[u8]| selector.push(feature_hash(shingle)));
                self.shingler
                    .finish(|shingle: &[u8]| draft.feature(shingle));
            }
            (_, selector) => self.shingler.finish(|shingle: &[u8]| {
                take(draft, selector, feature_hash(shingle));
            }),
        }
        let kept = self.selector.map(ShingleSelector::finish);
        self.draft.finish().with_kept(kept)
    }
}

/// Adds a feature, and offers it to the selector of shingles, if there is one.
#[inline]
fn take(draft: &mut SignatureDraft<'_>, selector: &mut Option<ShingleSelector>, hash: u64) {
    draft.hash(hash);
    if let Some(selector) = selector {
        selector.push(hash);
    }
}

impl fmt::Debug for StreamedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamedText").finish_non_exhaustive()
    }
}

/// The features that the draft keeps until the document ends.
enum GatheredFeatures {
    None,
    Distinct(DistinctHashes),
    /// Features for an exact set alone, which is sorted anyway. When there are `max_entries`, each is
    /// kept once.
    Repeated {
        hashes: Vec<u64>,
        max_entries: usize,
    },
    /// Features for their numbers of occurrences. When there are `max_entries` in `hashes`, they are
    /// added up in `counts`.
    Counted {
        hashes: Vec<u64>,
        counts: Vec<WeightedHash>,
        max_entries: usize,
    },
}

impl GatheredFeatures {
    fn extend(&mut self, hashes: &[u64]) {
        match self {
            Self::None => {}
            Self::Distinct(distinct) => distinct.extend(hashes),
            Self::Repeated {
                hashes: all,
                max_entries,
            } => {
                all.extend_from_slice(hashes);
                if all.len() >= *max_entries {
                    all.sort_unstable();
                    all.dedup();
                    *max_entries = (2 * all.len()).max(MIN_ADDED_UP);
                }
            }
            Self::Counted {
                hashes: all,
                counts,
                max_entries,
            } => {
                all.extend_from_slice(hashes);
                if all.len() >= *max_entries {
                    counts.extend(count_repeats(all));
                    all.clear();
                    add_up(counts);
                    // No fewer than all others, so that sorting costs O(log n) for each feature.
                    *max_entries = counts.len().max(MIN_ADDED_UP);
                }
            }
        }
    }
}

impl<'a> SignatureDraft<'a> {
    /// Creates the draft of a document with about `features` distinct features.
    pub(super) fn new(functions: &'a HashFunctions, features: usize) -> Self {
        let minhash = functions.minhash.as_ref();
        // The number is the caller's hint. It must not make the crate reserve much memory.
        let features = features.min(MIN_ADDED_UP);
        let gathered = if functions.needs_weights() || functions.counts_occurrences() {
            GatheredFeatures::Counted {
                hashes: Vec::with_capacity(features),
                counts: Vec::new(),
                max_entries: MIN_ADDED_UP,
            }
        } else if functions.simhash.is_some() {
            GatheredFeatures::Distinct(DistinctHashes::with_capacity(features))
        } else if functions.makes_sets() {
            GatheredFeatures::Repeated {
                hashes: Vec::with_capacity(features),
                max_entries: MIN_ADDED_UP,
            }
        } else {
            GatheredFeatures::None
        };
        Self {
            functions,
            state: minhash.map(|minhash| minhash.state()),
            pending: [0; PENDING_FEATURES],
            pending_count: 0,
            gathered,
            is_empty: true,
        }
    }

    /// Adds a feature by its bytes.
    #[inline(always)]
    pub(super) fn feature(&mut self, bytes: &[u8]) {
        self.hash(feature_hash(bytes));
    }

    /// Adds a feature by its hash.
    #[inline(always)]
    pub(super) fn hash(&mut self, hash: u64) {
        if let Some(slot) = self.pending.get_mut(self.pending_count) {
            *slot = hash;
        }
        self.pending_count += 1;
        if self.pending_count >= PENDING_FEATURES {
            self.update();
        }
    }

    #[inline(never)]
    fn update(&mut self) {
        let (pending, _) = self.pending.split_at(self.pending_count);
        self.pending_count = 0;
        if pending.is_empty() {
            return;
        }
        self.is_empty = false;
        if let Some(state) = &mut self.state {
            state.update(pending);
        }
        self.gathered.extend(pending);
    }

    /// Returns the signature of the added features.
    pub(super) fn finish(mut self) -> Signature {
        self.update();
        let functions = self.functions;
        let minhash = functions.minhash.as_ref().zip(self.state);
        let (mut weights, mut hashes) = (Vec::new(), Vec::new());
        match self.gathered {
            GatheredFeatures::None => {}
            GatheredFeatures::Distinct(distinct) => hashes = distinct.into_vec(),
            GatheredFeatures::Repeated {
                hashes: repeated, ..
            } => hashes = repeated,
            GatheredFeatures::Counted {
                hashes: mut rest,
                counts,
                ..
            } => {
                weights = counts;
                let is_long = !weights.is_empty();
                weights.reserve(rest.len());
                weights.extend(count_repeats(&mut rest));
                if is_long {
                    add_up(&mut weights);
                }
                // Only 2^48 occurrences would overflow, more than anyone can add one by one.
                weights
                    .iter_mut()
                    .for_each(|(_, weight)| *weight *= WHOLE_WEIGHT);
                if functions.simhash.is_some() {
                    hashes.extend(weights.iter().map(|&(hash, _)| hash));
                }
            }
        }
        let values = minhash.map(|(minhash, state)| {
            if minhash.needs_weights() {
                minhash.weighted(&weights)
            } else {
                state.finish()
            }
        });
        let simhash = functions.simhash.as_ref();
        let fingerprint = simhash.map(|simhash| match functions.counts_occurrences() {
            true => simhash.weighted(&weights, weights.iter().map(|(_, weight)| weight).sum()),
            false => simhash.unweighted(&hashes),
        });
        let set = match functions.needs_weights() {
            true => functions.weighted_set(&weights),
            false => functions.exact_set(hashes),
        };
        let signature = functions.signature(values, fingerprint, self.is_empty);
        signature.with_set(set)
    }
}
