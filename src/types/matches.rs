//! Matches, and the answer to a query.

use std::borrow::Cow;
use std::fmt;

use crate::id::DocumentId;
use crate::types::certainty::{Certainty, CertaintyBasis};
use crate::types::document::{Document, key_text};

/// The candidates that a probe with a budget left out: see
/// [`Query::probe_budget`](crate::Query::probe_budget).
///
/// It prints as a number, preceded by "at least" if there may be more.
///
/// ```
/// # use resemblance::{Document, MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// for _ in 0..10 {
///     store.insert(Document::without_key(), &page)?;
/// }
/// let matches = store.snapshot()?.query(&page).probe_budget(3).run()?;
/// let beyond = matches.budget_exceeded().expect("ten are more than three");
/// assert_eq!((beyond.documents, beyond.is_least), (7, false));
/// assert_eq!(beyond.to_string(), "7");
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetExceeded {
    /// The number of documents that share a bucket with the query and were not compared.
    pub documents: u64,
    /// True if some buckets were not read to their end, so there may be more such documents.
    pub is_least: bool,
}

impl fmt::Display for BudgetExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = if self.is_least { "at least " } else { "" };
        write!(f, "{prefix}{}", self.documents)
    }
}

/// A document that a query found.
///
/// ```
/// # use resemblance::{Document, MinHash, Schema, SimHash, Store, Text};
/// # let (minhash, simhash) = (MinHash::new(64), SimHash::bits64());
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(minhash).simhash(simhash).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// store.insert(Document::new("page/1").stamp(20).payload(b"a title"), &page)?;
/// let matches = store.snapshot()?.query(&page).with_payloads().run()?;
/// let found = &matches[0];
/// assert_eq!((found.id().get(), found.key(), found.stamp()), (0, Some(&b"page/1"[..]), 20));
/// assert_eq!(found.payload(), Some(&b"a title"[..])); // `None` without `with_payloads`
/// assert_eq!((found.similarity(), found.is_exact(), found.distance()), (Some(1.0), false, Some(0)));
/// assert_eq!(found.budget_exceeded(), None);
/// assert_eq!(found.key_str().as_deref(), Some("page/1")); // for people
/// assert_eq!(found.to_string(), "page/1, similarity 1.000, distance 0");
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    pub(crate) id: DocumentId,
    /// Its payload is empty unless the match has it.
    pub(crate) document: Document<'static>,
    pub(crate) has_payload: bool,
    pub(crate) similarity: Option<f64>,
    pub(crate) is_exact: bool,
    pub(crate) distance: Option<u32>,
    pub(crate) beyond: Option<BudgetExceeded>,
}

/// The key as text, or the id, and how near the document is.
impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key_str() {
            Some(key) => write!(f, "{key}")?,
            None => write!(f, "document {}", self.id)?,
        }
        if let Some(similarity) = self.similarity {
            write!(f, ", similarity {similarity:.3}")?;
        }
        match self.distance {
            Some(distance) => write!(f, ", distance {distance}"),
            None => Ok(()),
        }
    }
}

impl Match {
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

    /// Returns the payload, or `None` unless the query requested it with
    /// [`with_payloads`](crate::Query::with_payloads).
    #[must_use]
    pub fn payload(&self) -> Option<&[u8]> {
        self.has_payload.then_some(&*self.document.payload)
    }

    /// Returns the Jaccard similarity, 0 to 1. It is estimated from the two MinHash signatures
    /// unless it [is exact](Self::is_exact). Returns `None` if the schema has no MinHash and the
    /// match was not verified.
    #[must_use]
    pub fn similarity(&self) -> Option<f64> {
        self.similarity
    }

    /// Returns true if the similarity is exact: the closure of [`Query::verify`](crate::Query::verify)
    /// or [`Nearest::verify`](crate::Nearest::verify) returned it, or the store is
    /// [exact](crate::SchemaBuilder::exact). Otherwise it is an estimate.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Returns the exact Hamming distance of the two fingerprints, or `None` without SimHash in the
    /// schema.
    #[must_use]
    pub fn distance(&self) -> Option<u32> {
        self.distance
    }

    /// Returns the candidates that a [budget](crate::Query::probe_budget) left out when this
    /// document was found, among which there may be a better match. Returns `None` if none were
    /// left out.
    #[must_use]
    pub fn budget_exceeded(&self) -> Option<BudgetExceeded> {
        self.beyond
    }
}

/// The documents among which a query looked for matches.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text, search::Scope};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// # store.insert("a", &page)?;
/// let snapshot = store.snapshot()?;
/// assert_eq!(snapshot.query(&page).run()?.scope(), Scope::Candidates);
/// assert_eq!(snapshot.query(&page).scan().run()?.scope(), Scope::Scan);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// Documents that share a bucket with the query.
    Candidates,
    /// Documents that share the first two rows of a band, or the first blocks of a table's prefix.
    /// [`Nearest`](crate::Nearest) searches them.
    ShortBuckets,
    /// All documents.
    Scan,
}

/// The answer to a query. It contains the matches, best first (by greater similarity, then smaller
/// distance, then smaller id), each document once, and states how complete the answer is.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text, search::Scope};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// # store.insert("a", &page)?;
/// let matches = store.snapshot()?.query(&page).run()?;
/// assert_eq!((matches.scope(), matches.candidates()), (Scope::Candidates, 1));
/// assert!(matches.recall() >= Some(0.95)); // for a pair right at the bound
/// assert_eq!(matches.budget_exceeded(), None);
/// for found in &matches {
///     println!("{:?} {:?}", found.key_str(), found.similarity());
/// }
/// assert_eq!(matches[0].id().get(), 0); // it is a slice of matches, too
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Matches {
    pub(crate) matches: Vec<Match>,
    pub(crate) scope: Scope,
    pub(crate) recall: Option<f64>,
    pub(crate) certainty: CertaintyBasis,
    pub(crate) candidates: usize,
    pub(crate) beyond: Option<BudgetExceeded>,
}

impl Matches {
    /// Returns the documents among which the query searched for matches.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Returns the probability that a document exactly at the similarity bound is among the
    /// candidates. `None` means that no document within the bounds can be missing, because a bound
    /// that must be met is a distance, or because all documents were scanned. If a budget left out
    /// documents, neither statement holds: see [`budget_exceeded`](Self::budget_exceeded).
    ///
    /// In an answer of [`Nearest`](crate::Nearest) it is the probability that a document as near as
    /// the last one was found. It is 1 after a scan (a little less if [candidates are
    /// verified](crate::Nearest::verify)), and 0 if a search without a scan found fewer documents
    /// than requested.
    #[must_use]
    pub fn recall(&self) -> Option<f64> {
        self.recall
    }

    /// Returns how sure it is that no document within the bounds is missing, other than by the
    /// [limit](crate::Query::limit), which drops the least similar ones. In an answer of
    /// [`Nearest`](crate::Nearest) the bound is the similarity or distance of the last document: a
    /// nearer one is missed with this probability at most. For
    /// [`within`](crate::Nearest::within) it is the radius.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text, search::Certainty};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(128)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// # store.insert("a", &page)?;
    /// let snapshot = store.snapshot()?;
    /// let by_estimate = snapshot.query(&page).run()?.certainty();
    /// assert!(matches!(by_estimate, Certainty::Estimate { missed_at_most } if missed_at_most < 0.05));
    /// let with_margin = snapshot.query(&page).margin(3.0).run()?.certainty();
    /// assert!(matches!(with_margin, Certainty::Truth { missed_at_most } if missed_at_most < 0.05));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn certainty(&self) -> Certainty {
        self.certainty.certainty()
    }

    /// Returns what the certainty is computed from, for a copy of these matches.
    #[doc(hidden)]
    #[must_use]
    pub fn certainty_basis(&self) -> CertaintyBasis {
        self.certainty
    }

    /// Returns the number of documents that were compared with the query. This includes documents
    /// that equal a compared one, and for [`Nearest`](crate::Nearest) the documents of each stage.
    #[must_use]
    pub fn candidates(&self) -> usize {
        self.candidates
    }

    /// Returns the candidates that the [budget](crate::Query::probe_budget) left out. `None` means
    /// that it left none out, or that there was no budget.
    #[must_use]
    pub fn budget_exceeded(&self) -> Option<BudgetExceeded> {
        self.beyond
    }

    pub(crate) fn none(scope: Scope) -> Self {
        Self {
            matches: Vec::new(),
            scope,
            recall: None,
            certainty: CertaintyBasis::COMPLETE,
            candidates: 0,
            beyond: None,
        }
    }
}

dereferences_to_list!(Matches, matches: Match);
