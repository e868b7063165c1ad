//! Queries: candidates from the lanes, verified from the stored signatures.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt;
use std::ops::Deref;

use crate::error::{Error, Result};
use crate::format::rows::SignatureRow;
use crate::id::DocumentId;
use crate::postings::CodeRange;
use crate::sketch::Signature;
use crate::store::bounds::{Bounds, By, Resolved};
use crate::store::core::Core;
use crate::store::record::Match;
use crate::store::source::{PostingTable, Source};

/// Where the matches of a query were looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// Among the documents that share a bucket with the query.
    Candidates,
    /// Among all documents.
    Scan,
}

/// The answer to a query: matches, best first (greater similarity, then lesser distance, then
/// lesser id), each document once, and how far the answer can be trusted to be complete.
#[derive(Clone, Debug, PartialEq)]
pub struct Matches {
    matches: Vec<Match>,
    scope: Scope,
    pub(super) recall: Option<f64>,
    candidates: usize,
}

impl Matches {
    /// Where they were looked for.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// The probability that a document right at the similarity bound is among the candidates.
    /// `None` means that none within the bounds can be missing: by distance alone, or by a scan;
    /// or, for `nearest`, that there was no bound.
    #[must_use]
    pub fn recall(&self) -> Option<f64> {
        self.recall
    }

    /// How many documents were compared with the query.
    #[must_use]
    pub fn candidates(&self) -> usize {
        self.candidates
    }

    /// The matches alone.
    #[must_use]
    pub fn into_vec(self) -> Vec<Match> {
        self.matches
    }

    pub(super) fn none(scope: Scope) -> Self {
        Self {
            matches: Vec::new(),
            scope,
            recall: None,
            candidates: 0,
        }
    }
}

impl Deref for Matches {
    type Target = [Match];

    fn deref(&self) -> &[Match] {
        &self.matches
    }
}

impl IntoIterator for Matches {
    type Item = Match;
    type IntoIter = std::vec::IntoIter<Match>;

    fn into_iter(self) -> Self::IntoIter {
        self.matches.into_iter()
    }
}

impl<'m> IntoIterator for &'m Matches {
    type Item = &'m Match;
    type IntoIter = std::slice::Iter<'m, Match>;

    fn into_iter(self) -> Self::IntoIter {
        self.matches.iter()
    }
}

/// A question to a snapshot or a transaction, put together and then [`run`](Self::run).
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// let store = Store::create(folder.path().join("pages.rsm"), schema)?;
/// let page = store.sketch_text("the quick brown fox jumps over the lazy dog")?;
/// store.insert("first", &page)?;
/// let matches = store.snapshot()?.query(&page).min_similarity(0.9).limit(10).run()?;
/// assert_eq!(matches[0].key(), Some(&b"first"[..]));
/// assert_eq!(matches[0].similarity(), Some(1.0));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "a query does nothing until it is run"]
pub struct Query<'a> {
    source: &'a dyn Source,
    signature: Cow<'a, Signature>,
    bounds: Bounds,
    limit: usize,
    scan: bool,
    exclude: Option<u64>,
}

impl fmt::Debug for Query<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query")
            .field("bounds", &self.bounds)
            .field("limit", &self.limit)
            .field("scan", &self.scan)
            .finish_non_exhaustive()
    }
}

impl<'a> Query<'a> {
    pub(crate) fn new(source: &'a dyn Source, signature: Cow<'a, Signature>) -> Self {
        Self {
            source,
            signature,
            bounds: Bounds::new(),
            limit: usize::MAX,
            scan: false,
            exclude: None,
        }
    }

    /// Leaves one document out.
    pub(crate) fn excluding(mut self, id: u64) -> Self {
        self.exclude = Some(id);
        self
    }

    /// All bounds at once.
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// See [`Bounds::min_similarity`].
    pub fn min_similarity(mut self, similarity: f64) -> Self {
        self.bounds = self.bounds.min_similarity(similarity);
        self
    }

    /// See [`Bounds::max_distance`].
    pub fn max_distance(mut self, distance: u32) -> Self {
        self.bounds = self.bounds.max_distance(distance);
        self
    }

    /// See [`Bounds::by`].
    pub fn by(mut self, by: By) -> Self {
        self.bounds = self.bounds.by(by);
        self
    }

    /// See [`Bounds::accept_lower_recall`].
    pub fn accept_lower_recall(mut self) -> Self {
        self.bounds = self.bounds.accept_lower_recall();
        self
    }

    /// At most this many matches, the best; all if not given.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Compares with every document: complete whatever the bounds, and slow.
    pub fn scan(mut self) -> Self {
        self.scan = true;
        self
    }

    /// Answers the question.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for bounds outside the schema,
    /// [`Error::SignatureMismatch`] for a signature of another kind, [`Error::Corrupt`] and
    /// [`Error::Io`] if the file cannot be read.
    pub fn run(self) -> Result<Matches> {
        let core = self.source.core();
        core.check_signature(&self.signature)?;
        let bounds = self.bounds.resolve(&core.schema, self.scan)?;
        core.guarded(|| {
            let subject = Subject {
                signature: &self.signature,
                exclude: self.exclude,
            };
            if self.scan {
                subject.scan(self.source, &bounds, self.limit)
            } else {
                subject.query(self.source, &bounds, self.limit)
            }
        })
    }
}

/// What is compared with the stored documents.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) signature: &'a Signature,
    pub(crate) exclude: Option<u64>,
}

/// A compared document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scored {
    id: u64,
    pub(crate) equal: usize,
    pub(crate) distance: u32,
}

impl Scored {
    /// The least is the best.
    pub(crate) fn rank(&self) -> (Reverse<usize>, u32, u64) {
        (Reverse(self.equal), self.distance, self.id)
    }
}

impl<'a> Subject<'a> {
    pub(crate) fn new(signature: &'a Signature) -> Self {
        Self {
            signature,
            exclude: None,
        }
    }

    /// Matches among the candidates of the bounds' families.
    pub(crate) fn query(
        &self,
        source: &dyn Source,
        bounds: &Resolved,
        limit: usize,
    ) -> Result<Matches> {
        if !source.core().is_filed(self.signature) {
            return Ok(Matches::none(Scope::Candidates));
        }
        let mut ids = Vec::new();
        if bounds.probes_bands() {
            self.probe_bands(source, &mut ids)?;
        }
        if let Some(most) = bounds.max_distance {
            self.probe_tables(source, most, &mut ids)?;
        }
        let accept = |equal, distance| bounds.accepts(equal, distance);
        let mut matches = self.verify(source, ids, limit, accept)?;
        matches.recall = bounds.recall;
        Ok(matches)
    }

    /// The best of the candidates of all families, however far.
    pub(crate) fn nearest(&self, source: &dyn Source, limit: usize) -> Result<Matches> {
        if !source.core().is_filed(self.signature) {
            return Ok(Matches::none(Scope::Candidates));
        }
        self.verify(source, self.candidates(source)?, limit, |_, _| true)
    }

    /// Documents that share a bucket, unverified, in no order, some of them several times.
    pub(crate) fn candidates(&self, source: &dyn Source) -> Result<Vec<u64>> {
        let mut ids = Vec::new();
        if source.core().is_filed(self.signature) {
            self.probe_bands(source, &mut ids)?;
            self.probe_tables(source, u32::MAX, &mut ids)?;
        }
        Ok(ids)
    }

    fn probe_bands(&self, source: &dyn Source, ids: &mut Vec<u64>) -> Result<()> {
        let Some(values) = self.signature.minhash() else {
            return Ok(());
        };
        let mut codes = Vec::new();
        source.core().lanes.band_codes(values, &mut codes)?;
        let ranges: Vec<CodeRange> = codes
            .iter()
            .zip(1..)
            .map(|(&code, lane)| CodeRange {
                lane,
                low_code: code,
                high_code: code,
            })
            .collect();
        source.probe(PostingTable::Bands, &ranges, &mut |_, posting| {
            ids.push(posting.id);
            Ok(())
        })
    }

    /// The distance is known from the code alone: those beyond `most` are left out at once.
    fn probe_tables(&self, source: &dyn Source, most: u32, ids: &mut Vec<u64>) -> Result<()> {
        let lanes = &source.core().lanes;
        let (Some(fingerprint), Some(design)) = (self.signature.simhash(), lanes.design()) else {
            return Ok(());
        };
        let first = 1 + lanes.band_count();
        let mut codes = Vec::new();
        let mut ranges = Vec::new();
        for (table, lane) in design.tables().iter().zip(first..) {
            let code = table.permute(fingerprint);
            let (low_code, high_code) = table.prefix_range(code);
            codes.push(code);
            ranges.push(CodeRange {
                lane,
                low_code,
                high_code,
            });
        }
        source.probe(PostingTable::Permuted, &ranges, &mut |index, posting| {
            let code = codes.get(index).copied().unwrap_or_default();
            if (code ^ posting.code).count_ones() <= most {
                ids.push(posting.id);
            }
            Ok(())
        })
    }

    fn verify(
        &self,
        source: &dyn Source,
        mut ids: Vec<u64>,
        limit: usize,
        accept: impl Fn(usize, u32) -> bool,
    ) -> Result<Matches> {
        ids.sort_unstable();
        ids.dedup();
        ids.retain(|id| Some(*id) != self.exclude);
        let mut scored = Vec::new();
        let mut compared = 0;
        source.live_signatures(&ids, &mut |id, row| {
            compared += 1;
            scored.extend(
                self.score(source, id, &row)
                    .filter(|s| accept(s.equal, s.distance)),
            );
            Ok(())
        })?;
        self.finish(source, scored, limit, Scope::Candidates, compared)
    }

    fn scan(&self, source: &dyn Source, bounds: &Resolved, limit: usize) -> Result<Matches> {
        if !source.core().is_filed(self.signature) {
            return Ok(Matches::none(Scope::Scan));
        }
        let shape = source.core().shape();
        let mut scored = Vec::new();
        let mut compared = 0;
        source.all_signature_rows(&mut |id, bytes| {
            let row = SignatureRow::decode(id, bytes, shape)?;
            if Some(id) != self.exclude {
                compared += 1;
                let score = self.score(source, id, &row);
                scored.extend(score.filter(|s| bounds.accepts(s.equal, s.distance)));
            }
            Ok(())
        })?;
        self.finish(source, scored, limit, Scope::Scan, compared)
    }

    /// `None` if the two cannot be near: one has no features and the other has, or neither has
    /// and the schema says that such documents are distinct.
    pub(crate) fn score(
        &self,
        source: &dyn Source,
        id: u64,
        row: &SignatureRow<'_>,
    ) -> Option<Scored> {
        if row.is_empty() != self.signature.is_empty() || !source.core().is_filed(self.signature) {
            return None;
        }
        let equal = row.equal_values(self.signature.minhash().unwrap_or_default());
        Some(self.scored(id, equal, row.fingerprint()))
    }

    /// [`score`](Self::score) of a document whose signature is in memory.
    pub(crate) fn score_signature(
        &self,
        core: &Core,
        id: u64,
        other: &Signature,
    ) -> Option<Scored> {
        if other.is_empty() != self.signature.is_empty() || !core.is_filed(self.signature) {
            return None;
        }
        let values = self.signature.minhash().zip(other.minhash());
        let (a, b) = values.unwrap_or_default();
        let equal = a.iter().zip(b).filter(|(a, b)| a == b).count();
        Some(self.scored(id, equal, other.simhash()))
    }

    fn scored(&self, id: u64, equal: usize, fingerprint: Option<u64>) -> Scored {
        let fingerprints = fingerprint.zip(self.signature.simhash());
        let distance = fingerprints.map_or(0, |(a, b)| (a ^ b).count_ones());
        Scored {
            id,
            equal,
            distance,
        }
    }

    pub(crate) fn finish(
        &self,
        source: &dyn Source,
        mut scored: Vec<Scored>,
        limit: usize,
        scope: Scope,
        candidates: usize,
    ) -> Result<Matches> {
        scored.sort_unstable_by_key(Scored::rank);
        scored.truncate(limit);
        let mut matches = Vec::with_capacity(scored.len());
        for scored in scored {
            let Some(key) = source.key_of(scored.id)? else {
                let place = format!("table documents, document {}", scored.id);
                return Err(Error::corrupt(
                    place,
                    "found no row, expected one (invariant 1)",
                ));
            };
            matches.push(self.matched(&scored, key));
        }
        Ok(Matches {
            matches,
            scope,
            recall: None,
            candidates,
        })
    }

    fn matched(&self, scored: &Scored, key: Option<Vec<u8>>) -> Match {
        let values = self.signature.minhash().map(<[u32]>::len);
        Match {
            id: DocumentId::new(scored.id),
            key,
            similarity: values.map(|values| scored.equal as f64 / values as f64),
            distance: self.signature.simhash().map(|_| scored.distance),
        }
    }

    /// This document compared with one that is known by id: what `insert_if_new` says of a key
    /// that is there already.
    pub(crate) fn compare(&self, source: &dyn Source, id: u64) -> Result<Match> {
        let mut found = Scored {
            id,
            equal: 0,
            distance: 0,
        };
        source.live_signatures(&[id], &mut |_, row| {
            found.equal = if row.is_empty() == self.signature.is_empty() {
                row.equal_values(self.signature.minhash().unwrap_or_default())
            } else {
                0
            };
            let fingerprints = row.fingerprint().zip(self.signature.simhash());
            found.distance = fingerprints.map_or(0, |(a, b)| (a ^ b).count_ones());
            Ok(())
        })?;
        Ok(self.matched(&found, source.key_of(id)?.flatten()))
    }
}
