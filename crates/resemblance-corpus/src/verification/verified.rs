//! Inserts documents that are new according to the exact similarity of their texts.

use std::sync::{Arc, Mutex, PoisonError};

use resemblance::exact::jaccard_from;
use resemblance::invariant::{at, bug};
use resemblance::search::Earlier;
use resemblance::{
    Document, Error, Join, Novelty, Result, Signature, Sketcher, Snapshot, WriteTransaction,
};
use resemblance_sketch::sketch::is_present;

use crate::dedup::RejectedCandidates;
use crate::verification::features::{FeatureSets, SetOverlap};

/// A text's signature, with its features if similarities are exact.
///
/// ```
/// use resemblance_corpus::verification::SketchedText;
/// use resemblance::{MinHash, Schema, Text};
///
/// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// let sketched = SketchedText::new(&schema.sketcher(), true, "the quick brown fox")?;
/// assert_eq!((sketched.features.len(), sketched.feature_bytes()), (3, 24));
///
/// // Documents other than texts.
/// let sketched = SketchedText::from_hashes(&schema.sketcher(), true, &[3, 1, 3])?;
/// assert_eq!(*sketched.features, [1, 3]);
/// let schema = Schema::builder().minhash(MinHash::weighted(64)).build()?;
/// let sketched = SketchedText::from_weighted_hashes(&schema.sketcher(), true, &[(3, 0.5), (1, 0.0)])?;
/// assert_eq!(*sketched.features, [3]);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SketchedText {
    /// The signature.
    pub signature: Signature,
    /// Its feature hashes, sorted and distinct; empty unless they were requested. [`FeatureSets`] share
    /// them.
    pub features: Arc<[u64]>,
}

impl SketchedText {
    /// Sketches a text, and keeps its features if `with_features`.
    ///
    /// # Errors
    ///
    /// The errors of [`Sketcher::text`].
    pub fn new(sketcher: &Sketcher, with_features: bool, text: &str) -> Result<Self> {
        let (signature, features) = if with_features {
            sketcher.text_and_features(text)?
        } else {
            (sketcher.text(text)?, Arc::default())
        };
        Ok(Self {
            signature,
            features,
        })
    }

    /// Sketches a set of features, given by their hashes in any order and with repeats, and keeps them if
    /// `with_features`.
    ///
    /// # Errors
    ///
    /// The errors of [`Sketcher::hashes`].
    pub fn from_hashes(sketcher: &Sketcher, with_features: bool, hashes: &[u64]) -> Result<Self> {
        Ok(Self {
            signature: sketcher.hashes(hashes.iter().copied())?,
            features: distinct(with_features, hashes.iter().copied()).into(),
        })
    }

    /// Sketches weighted features, given by their hashes. If `with_features`, keeps those with a
    /// positive weight.
    ///
    /// # Errors
    ///
    /// The errors of [`Sketcher::weighted_hashes`].
    pub fn from_weighted_hashes(
        sketcher: &Sketcher,
        with_features: bool,
        weights: &[(u64, f64)],
    ) -> Result<Self> {
        let present = weights.iter().filter(|(_, weight)| is_present(*weight));
        Ok(Self {
            signature: sketcher.weighted_hashes(weights.iter().copied())?,
            features: distinct(with_features, present.map(|(hash, _)| *hash)).into(),
        })
    }

    /// Puts the features into `features` for the stored document with a key, if that has the same
    /// signature and no features there. Returns true if it does.
    ///
    /// # Errors
    ///
    /// The errors of [`Snapshot::get`] and [`FeatureSets::put`].
    ///
    /// ```
    /// use resemblance::{MinHash, Schema, Store, Text};
    /// use resemblance_corpus::verification::{FeatureSets, SketchedText};
    ///
    /// let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?;
    /// let store = Store::in_memory(schema)?;
    /// store.insert("page", &store.sketch_text("a b c")?)?;
    /// let mut features = FeatureSets::new(std::env::temp_dir());
    /// let text = SketchedText::new(&store.sketcher(), true, "a b c")?;
    /// assert!(text.put_as_stored(&mut features, &store.snapshot()?, "page")?);
    /// assert!(!text.put_as_stored(&mut features, &store.snapshot()?, "other")?);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn put_as_stored(
        &self,
        features: &mut FeatureSets,
        snapshot: &Snapshot,
        key: impl AsRef<[u8]>,
    ) -> Result<bool> {
        let record = snapshot.get(key)?;
        let same = record.filter(|it| *it.signature() == self.signature && !features.has(it.id()));
        if let Some(record) = &same {
            features.put(record.id(), Arc::clone(&self.features))?;
        }
        Ok(same.is_some())
    }

    /// Returns the memory that the features take, in bytes.
    #[must_use]
    pub fn feature_bytes(&self) -> usize {
        self.features.len() * size_of::<u64>()
    }
}

/// Returns the hashes in ascending order and without repeats, if they are requested.
fn distinct(are_asked_for: bool, hashes: impl Iterator<Item = u64>) -> Vec<u64> {
    if !are_asked_for {
        return Vec::new();
    }
    let mut hashes: Vec<u64> = hashes.collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

/// Replaces estimates by exact similarities where `features` contains both documents. The result is
/// the same as passing their similarity to [`Join::verify`], but it is faster, because a comparison
/// stops when a pair is certain to be below the bound. Call it after setting the bounds. `None`
/// changes nothing.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
/// use std::sync::Arc;
/// use resemblance_corpus::verification::{FeatureSets, verify_exact};
///
/// let mut features = FeatureSets::new(folder.path());
/// for text in ["to be or not to be", "not to be or to be"] {
///     let id = store.insert(text, &store.sketch_text(text)?)?;
///     features.put(id, store.sketcher().feature_hashes(text)?)?;
/// }
/// let join = verify_exact(store.snapshot()?.pairs(), Arc::new(features));
/// assert!(join.run()?.all(|pair| pair.is_ok_and(|pair| pair.is_exact)));
/// # Ok::<(), resemblance::Error>(())
/// ```
pub fn verify_exact<'a, A>(
    join: Join<'a, A>,
    features: impl Into<Option<Arc<FeatureSets>>>,
) -> Join<'a, A> {
    let Some(features) = features.into() else {
        return join;
    };
    let floor = join.similarity_floor();
    join.verify(move |a, b| features.similarity_from(floor, a, b))
}

impl FeatureSets {
    /// Inserts each document that is new according to the exact similarity of its text, as
    /// [`InsertMany::verify`](resemblance::InsertMany::verify) does, and stores the features of the
    /// inserted ones. A candidate without stored features is compared by its estimate.
    ///
    /// # Errors
    ///
    /// The errors of [`InsertMany::run`](resemblance::InsertMany::run), and
    /// [`Error::Io`](resemblance::Error::Io) if features cannot be read or written. In that case,
    /// the transaction can only be rolled back.
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Novelty, Schema, Store, Text};
    /// use resemblance_corpus::verification::{FeatureSets, SketchedText};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(1)).minhash(MinHash::new(128)).build()?)?;
    ///
    /// let mut features = FeatureSets::new(std::env::temp_dir());
    /// let a = SketchedText::new(&store.sketcher(), true, "a b c d e f g h i j k")?;
    /// let b = SketchedText::new(&store.sketcher(), true, "a b c d e f g h i j k l")?;
    /// let batch = [(Document::new("a"), &a), (Document::new("b"), &b)];
    ///
    /// let mut transaction = store.begin_write()?;
    /// let found = features.insert_new(&mut transaction, &batch)?;
    /// let Novelty::NearDuplicate(found) = &found[1] else { panic!("it is like the first") };
    /// assert_eq!((found.similarity(), found.is_exact()), (Some(11.0 / 12.0), true));
    /// transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn insert_new(
        &mut self,
        transaction: &mut WriteTransaction,
        documents: &[(Document<'_>, &SketchedText)],
    ) -> Result<Vec<Novelty>> {
        let signed = signatures_of(documents);
        let insert = transaction.insert_many(&signed).if_new();
        self.keep_new(documents, None, |ask| insert.verify_from(ask).run())
    }

    /// Calls `insert`, which inserts the documents that are new and asks for the similarity of
    /// these texts to others. Stores the features of the inserted ones. If `rejected` is given, it
    /// receives the candidates whose similarity is below the bound, in order.
    pub(crate) fn keep_new(
        &mut self,
        documents: &[(Document<'_>, &SketchedText)],
        rejected: Option<&mut RejectedCandidates>,
        insert: impl FnOnce(&VerifyEarlier<'_>) -> Result<Vec<Novelty>>,
    ) -> Result<Vec<Novelty>> {
        let features_at = |index: usize| -> Result<&[u64]> {
            let (_, sketched) = at(documents, index)?;
            Ok(&sketched.features)
        };
        let stored: &Self = self;
        let bound = rejected.as_ref().map(|rejected| rejected.bound);
        let below: Mutex<Vec<(usize, Earlier, SetOverlap)>> = Mutex::default();
        let novelties = insert(&|index, earlier, floor| {
            let own = features_at(index)?;
            if let Some(bound) = bound {
                let overlap = match earlier {
                    Earlier::Stored(id) => stored.overlap_with(own, id)?,
                    Earlier::OfBatch(other) => Some(SetOverlap::of(own, features_at(other)?)),
                    _ => return Err(of_neither(earlier)),
                };
                let rejected = overlap.filter(|overlap| overlap.similarity() < bound);
                below
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend(rejected.map(|overlap| (index, earlier, overlap)));
                return Ok(overlap.map(SetOverlap::similarity));
            }
            match earlier {
                Earlier::Stored(id) => stored.similarity_to_from(floor, own, id),
                Earlier::OfBatch(other) => Ok(Some(jaccard_from(floor, own, features_at(other)?))),
                _ => Err(of_neither(earlier)),
            }
        })?;
        for (novelty, (_, sketched)) in novelties.iter().zip(documents) {
            if novelty.is_new() {
                self.put(novelty.id(), Arc::clone(&sketched.features))?;
            }
        }
        self.flush()?;
        if let Some(rejected) = rejected {
            for (document, earlier, overlap) in
                below.into_inner().unwrap_or_else(PoisonError::into_inner)
            {
                let candidate = match earlier {
                    Earlier::Stored(id) => id,
                    Earlier::OfBatch(other) => at(&novelties, other)?.id(),
                    _ => return Err(of_neither(earlier)),
                };
                rejected
                    .found
                    .push(overlap.compared(document as u64, candidate));
            }
            rejected.sort();
        }
        Ok(novelties)
    }
}

/// Returns the similarity of a document of the batch to an earlier one, or some number below the
/// floor if it is below.
type VerifyEarlier<'a> = dyn Fn(usize, Earlier, f64) -> Result<Option<f64>> + Sync + 'a;

fn of_neither(earlier: Earlier) -> Error {
    bug(format!("{earlier:?} is neither stored nor of the batch"))
}

/// Returns the documents of a batch with their signatures only.
pub(crate) fn signatures_of<'d>(
    documents: &'d [(Document<'_>, &'d SketchedText)],
) -> Vec<(Document<'d>, &'d Signature)> {
    let signature_of =
        |(document, text): &'d (Document<'_>, &'d SketchedText)| (document.into(), &text.signature);
    documents.iter().map(signature_of).collect()
}
