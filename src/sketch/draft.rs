//! Signatures in the making.

use std::fmt;

use crate::sketch::distinct::DistinctHashes;
use crate::sketch::hash::feature_hash;
use crate::sketch::hasher::State;
use crate::sketch::signature::Signature;
use crate::sketch::simhash::{WHOLE_WEIGHT, Weighted, add_up};
use crate::sketch::sketcher::Sketcher;
use crate::text::Shingler;

/// Features that are taken in together.
const PENDING_FEATURES: usize = 256;

/// Features from which on repeats are added up early, where they are counted.
const LEAST_GATHERED: usize = 1 << 16;

/// A signature of features without weights in the making. Memory: that of the values; with SimHash
/// 19 to 30 bytes for each distinct feature besides, with weighted MinHash 16 to 48, for both need
/// to know which features repeat.
pub(crate) struct Draft<'a> {
    sketcher: &'a Sketcher,
    state: Option<State>,
    pending: Vec<u64>,
    gathered: Gathered,
    empty: bool,
}

/// The signature of a text that comes in pieces, cut anywhere.
///
/// Memory: a few shingles and the values of the signature, however long the text is. With SimHash 19
/// to 30 bytes for each distinct shingle besides, with weighted MinHash 16 to 48: what repeats must
/// be known.
///
/// ```
/// use resemblance::{MinHash, Schema, Text};
/// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(128)).build()?;
/// let sketcher = schema.sketcher();
/// let mut text = sketcher.streamed_text()?;
/// for piece in ["a te", "xt in pi", "eces"] {
///     text.push(piece);
/// }
/// assert_eq!(text.finish(), sketcher.text("a text in pieces")?);
/// # Ok::<(), resemblance::Error>(())
/// ```
pub struct StreamedText<'a> {
    pub(crate) shingler: Shingler,
    pub(crate) draft: Draft<'a>,
}

impl StreamedText<'_> {
    /// Adds the next piece of the text.
    pub fn push(&mut self, piece: &str) {
        let draft = &mut self.draft;
        self.shingler
            .push(piece, |shingle| draft.feature(shingle.as_bytes()));
    }

    /// The signature of all pieces together.
    #[must_use]
    pub fn finish(mut self) -> Signature {
        let draft = &mut self.draft;
        self.shingler
            .finish(|shingle| draft.feature(shingle.as_bytes()));
        self.draft.finish()
    }
}

impl fmt::Debug for StreamedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamedText").finish_non_exhaustive()
    }
}

/// What must be kept until the end.
enum Gathered {
    Nothing,
    Distinct(DistinctHashes),
    /// Features, how often each has come, and the number of them at which they are added up next.
    Counted(Vec<Weighted>, usize),
}

impl Gathered {
    fn take(&mut self, hashes: &[u64]) {
        match self {
            Self::Nothing => {}
            Self::Distinct(all) => all.extend(hashes),
            Self::Counted(all, most) => {
                all.extend(hashes.iter().map(|&hash| (hash, 1)));
                if all.len() >= *most {
                    add_up(all);
                    *most = (2 * all.len()).max(LEAST_GATHERED);
                }
            }
        }
    }
}

impl<'a> Draft<'a> {
    /// For about so many features.
    pub(crate) fn new(sketcher: &'a Sketcher, features: usize) -> Self {
        let inner = &sketcher.inner;
        let minhash = inner.minhash.as_ref();
        let gathered = if minhash.is_some_and(|minhash| minhash.needs_weights()) {
            Gathered::Counted(Vec::new(), LEAST_GATHERED)
        } else if inner.simhash.is_some() {
            Gathered::Distinct(DistinctHashes::with_room(features))
        } else {
            Gathered::Nothing
        };
        Self {
            sketcher,
            state: minhash.map(|minhash| minhash.state()),
            pending: Vec::with_capacity(PENDING_FEATURES),
            gathered,
            empty: true,
        }
    }

    /// Adds a feature by its bytes.
    #[inline]
    pub(crate) fn feature(&mut self, bytes: &[u8]) {
        self.hash(feature_hash(bytes));
    }

    /// Adds a feature by its hash.
    #[inline]
    pub(crate) fn hash(&mut self, hash: u64) {
        self.pending.push(hash);
        if self.pending.len() >= PENDING_FEATURES {
            self.update();
        }
    }

    fn update(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        self.empty = false;
        if let (Some(minhash), Some(state)) = (&self.sketcher.inner.minhash, &mut self.state) {
            minhash.update(state, &self.pending);
        }
        self.gathered.take(&self.pending);
        self.pending.clear();
    }

    /// The signature of the features added.
    pub(crate) fn finish(mut self) -> Signature {
        self.update();
        let inner = &self.sketcher.inner;
        let minhash = inner.minhash.as_ref().zip(self.state);
        let (mut weights, mut distinct) = (Vec::new(), Vec::new());
        match self.gathered {
            Gathered::Nothing => {}
            Gathered::Distinct(all) => distinct = all.into_vec(),
            Gathered::Counted(mut all, _) => {
                add_up(&mut all);
                if inner.simhash.is_some() {
                    distinct.extend(all.iter().map(|&(hash, _)| hash));
                }
                let weigh = |(hash, count): Weighted| (hash, count.saturating_mul(WHOLE_WEIGHT));
                weights.extend(all.into_iter().map(weigh));
            }
        }
        let values = minhash.map(|(minhash, state)| {
            if minhash.needs_weights() {
                minhash.weighted(&weights)
            } else {
                minhash.finish(state)
            }
        });
        let simhash = inner.simhash.as_ref();
        let fingerprint = simhash.map(|simhash| simhash.unweighted(&distinct));
        self.sketcher.signature(values, fingerprint, self.empty)
    }
}
