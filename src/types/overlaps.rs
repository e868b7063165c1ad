//! Documents that share passages with a query.

use std::borrow::Cow;
use std::ops::Range;

use crate::id::DocumentId;
use crate::types::document::{Document, key_text};

/// A document that shares passages with a query, according to the kept hashes of both.
///
/// ```
/// # use resemblance::{Containment, Document, Schema, Store, Text};
/// let containment = Containment::new(2).window(1); // keeps all shingles
/// let schema = Schema::builder().text(Text::words(2)).containment(containment).build()?;
/// let store = Store::in_memory(schema)?;
/// let page = store.sketch_text("one two three four five six seven eight nine")?;
/// store.insert(Document::new("page").stamp(7), &page)?;
/// let query = store.sketch_text("six seven eight nine and then ten")?;
/// let found = store.snapshot()?.overlaps(&query).run()?;
/// let overlap = &found[0];
/// assert_eq!((overlap.id().get(), overlap.key()), (0, Some(&b"page"[..])));
/// assert_eq!((overlap.key_str().as_deref(), overlap.stamp()), (Some("page"), 7));
/// assert_eq!((overlap.shared_hashes(), overlap.document_hashes()), (3, 8));
/// assert_eq!((overlap.query_share(), overlap.document_share()), (0.5, 0.375));
/// assert_eq!(overlap.longest_run(), Some(3)); // "six seven", "seven eight", "eight nine"
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Overlap {
    pub(crate) id: DocumentId,
    pub(crate) document: Document<'static>,
    pub(crate) shared: u32,
    /// Kept hashes of the query, those that are capped left out.
    pub(crate) query_hashes: u32,
    pub(crate) document_hashes: u32,
    pub(crate) longest_run: Option<u64>,
    pub(crate) passages: Option<Vec<PlacedPassage>>,
    pub(crate) scale: Option<u32>,
}

impl Overlap {
    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> DocumentId {
        self.id
    }

    /// Returns the key, or `None` if the document has none.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        self.document.key()
    }

    /// Returns the key as text for people, as [`key_text`] does.
    #[must_use]
    pub fn key_str(&self) -> Option<Cow<'_, str>> {
        self.key().map(key_text)
    }

    /// Returns the stamp, or 0 if none was set.
    #[must_use]
    pub fn stamp(&self) -> u64 {
        self.document.stamp
    }

    /// Returns the number of kept hashes that the document and the query share.
    #[must_use]
    pub fn shared_hashes(&self) -> u32 {
        self.shared
    }

    /// Returns the number of kept hashes of the document.
    #[must_use]
    pub fn document_hashes(&self) -> u32 {
        self.document_hashes
    }

    /// Returns the share of the query's different shingles that the document contains, 0 to 1. This
    /// is an estimate: the share of the query's kept hashes, without capped ones. If the document
    /// contains the whole query, and the query has at least one window of shingles, it is 1. With
    /// [scaled](crate::Containment::scaled) hashes it is unbiased if the query has any kept hash.
    #[must_use]
    pub fn query_share(&self) -> f64 {
        f64::from(self.shared) / f64::from(self.query_hashes)
    }

    /// Returns the share of the document's different shingles that the query contains, 0 to 1. This
    /// is an estimate like [`query_share`](Self::query_share), but capped hashes count as not
    /// shared.
    #[must_use]
    pub fn document_share(&self) -> f64 {
        f64::from(self.shared) / f64::from(self.document_hashes)
    }

    /// Returns the approximate variance of [`query_share`](Self::query_share) for
    /// [scaled](crate::Containment::scaled) hashes. It is the variance of a sample of m of s × m
    /// shingles: c (1 − c) / m × (1 − 1 / s) for a share of c and m kept hashes. Returns `None` for
    /// windows, which are not a random sample.
    ///
    /// ```
    /// # use resemblance::{Containment, Schema, Store};
    /// let schema = Schema::builder().containment(Containment::new(1).scaled(10)).build()?;
    /// let store = Store::in_memory(schema)?;
    /// store.insert("set", &store.sketcher().hashes(0..6_000)?)?;
    /// let query = store.sketcher().hashes(3_000..9_000)?;
    /// let found = store.snapshot()?.overlaps(&query).run()?;
    /// let deviation = found[0].query_share_variance().unwrap().sqrt();
    /// assert!((found[0].query_share() - 0.5).abs() < 4.0 * deviation && deviation < 0.03);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn query_share_variance(&self) -> Option<f64> {
        let (share, scale) = (self.query_share(), f64::from(self.scale?));
        let of_sample = share * (1.0 - share) / f64::from(self.query_hashes);
        Some(of_sample * (1.0 - 1.0 / scale))
    }

    /// Returns the estimated length, in shingles, of the longest passage of the query that the
    /// document contains. The passage extends from the first to the last of consecutive kept
    /// shingles of the query whose hashes the document has. The real passage may be longer on both
    /// sides by less than a window, and the document may contain its parts in different places.
    /// Returns `None` if the query comes from a store without
    /// [positions](crate::Containment::positions), which does not keep the order of its shingles.
    #[must_use]
    pub fn longest_run(&self) -> Option<u64> {
        self.longest_run
    }

    /// Returns the positions of the shared passages, in the order of the query; `None` unless the
    /// schema keeps [positions](crate::Containment::positions).
    ///
    /// Each passage is a run of shingles that occurs in both, and begins and ends with a kept
    /// shingle. The common text may be up to w − 1 shingles longer on each side. A passage is split
    /// if two kept shingles are further apart than the length of a shingle (with features, if a
    /// shingle between them is not kept). Every kept shingle of the query that the document has is
    /// in one of the passages, except for capped ones at the ends. If the longest passage occurs in
    /// several places of the document, the first is returned. If a shingle occurs in the document
    /// more than 64 times, only the first 64 places are tried.
    ///
    /// ```
    /// # use resemblance::{Containment, Schema, Store};
    /// let containment = Containment::new(1).window(1).positions(true);
    /// let schema = Schema::builder().containment(containment).build()?;
    /// let store = Store::in_memory(schema)?;
    /// store.insert("song", &store.sketcher().hashes([5, 6, 7, 8, 9])?)?;
    /// let found = store.snapshot()?.overlaps(&store.sketcher().hashes([1, 7, 8, 2])?).run()?;
    /// let passage = &found[0].passages().unwrap()[0];
    /// assert_eq!((passage.query.clone(), passage.document.clone()), (1..3, 2..4));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn passages(&self) -> Option<&[PlacedPassage]> {
        self.passages.as_deref()
    }
}

/// A passage that a query and a document share, in shingles: see [`Overlap::passages`].
///
/// Shingles count from 0. In a text, a range of shingles `a..b` of k units covers the units `a..b +
/// k − 1`; [`exact::span_of_shingles`](crate::exact::span_of_shingles) finds its bytes if the text
/// is available, with [`Schema::containment_text`](crate::Schema::containment_text).
///
/// ```
/// # use resemblance::{Containment, Schema, Store, Text};
/// use resemblance::exact::span_of_shingles;
/// # let containment = Containment::new(2).window(1).positions(true);
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).containment(containment).build()?)?;
/// # store.insert("page", &store.sketch_text("whether to be or not to be tired")?)?;
/// let text = "Let us: be or not?";
/// let found = store.snapshot()?.overlaps(&store.sketch_text(text)?).run()?;
/// let passage = &found[0].passages().unwrap()[0];
/// let cut = store.schema().containment_text().unwrap();
/// let span = span_of_shingles(&cut, text, passage.query.clone())?.unwrap();
/// assert_eq!((&text[span], passage.document.clone()), ("be or not", 2..4));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlacedPassage {
    /// The range of shingles in the query.
    pub query: Range<usize>,
    /// The range of shingles in the document. It has the same length.
    pub document: Range<usize>,
}

/// The answer to a query about shared passages: documents, ordered by how much they share, most
/// first (ties by id).
///
/// ```
/// # use resemblance::{Containment, Schema, Store, Text};
/// # let containment = Containment::new(2).window(1);
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).containment(containment).build()?)?;
/// for (key, text) in [("a", "all rights reserved here"), ("b", "all rights reserved there")] {
///     store.insert(key, &store.sketch_text(text)?)?;
/// }
/// let query = store.sketch_text("all rights reserved there too")?;
/// let found = store.snapshot()?.overlaps(&query).max_document_frequency(1).run()?;
/// // "all rights" and "rights reserved" are in two documents, more than one.
/// assert_eq!((found.query_hashes(), found.capped_hashes()), (4, 2));
/// assert_eq!((found.len(), found[0].shared_hashes()), (1, 1));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Overlaps {
    pub(crate) overlaps: Vec<Overlap>,
    pub(crate) query_hashes: usize,
    pub(crate) capped_hashes: usize,
}

impl Overlaps {
    /// Returns the number of kept hashes of the query.
    #[must_use]
    pub fn query_hashes(&self) -> usize {
        self.query_hashes
    }

    /// Returns the number of the query's kept hashes that were ignored, because more documents have
    /// them than the [cap](crate::ContainmentQuery::max_document_frequency) allows. A shared
    /// passage is not found if all its kept hashes are capped. If this number is 0 and hashes are
    /// kept by windows, every shared passage of the guaranteed length is found.
    #[must_use]
    pub fn capped_hashes(&self) -> usize {
        self.capped_hashes
    }
}

dereferences_to_list!(Overlaps, overlaps: Overlap);

/// A passage of a text that many documents have: see
/// [`ContainmentQuery::frequent_passages`](crate::ContainmentQuery::frequent_passages).
///
/// ```
/// use resemblance::exact::span_of_shingles;
/// # use resemblance::{Containment, Schema, Store, Text};
/// # let containment = Containment::new(2).window(1);
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).containment(containment).build()?)?;
/// store.insert("a", &store.sketch_text("Cats purr. Home | About us")?)?;
/// store.insert("b", &store.sketch_text("Dogs bark. Home | About us")?)?;
/// let text = "Mice squeak. Home | About us";
/// let page = store.sketch_text(text)?;
/// let snapshot = store.snapshot()?;
/// let passages = snapshot.overlaps(&page).max_document_frequency(1).frequent_passages()?;
/// let menu = passages[0][0];
/// let shingles = menu.first_shingle as usize..menu.last_shingle as usize + 1;
/// let cut = store.schema().containment_text().unwrap();
/// let span = span_of_shingles(&cut, text, shingles)?.unwrap();
/// assert_eq!((&text[span], menu.documents), ("Home | About us", 2));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrequentPassage {
    /// The number of its first kept shingle among all shingles of the text, from 0.
    pub first_shingle: u64,
    /// The number of its last kept shingle.
    pub last_shingle: u64,
    /// The number of documents that have the rarest of its kept shingles.
    pub documents: u64,
}
