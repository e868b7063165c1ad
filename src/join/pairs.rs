//! All near-duplicate pairs, one by one.

use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::invariant::invariant;
use crate::join::batch::JoinBatch;
use crate::join::compare::{Comparer, Cursor, Event};
use crate::join::gather::Gatherer;
use crate::join::settings::{LeftOut, Settings};
use crate::join::source::JoinSource;
use crate::join::verify::{Pair, PairSimilarity, ROUND_CANDIDATES, Verifier};
use crate::query::{SearchOptions, Wanted};
use crate::state::Tombstones;
use crate::types::{Certainty, DocumentId, Phase, Watch};
use resemblance_sketch::sketch::ValueLayout;

/// The pairs of a snapshot. Made by [`Snapshot::pairs`](crate::Snapshot::pairs).
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text, key_text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// for key in ["a", "b"] {
///     store.insert(key, &store.sketch_text("the same text under two keys")?)?;
/// }
/// let snapshot = store.snapshot()?;
/// let mut pairs = snapshot.pairs().run()?;
/// for pair in &mut pairs {
///     let pair = pair?; // the file is read on the way
///     let [a, b] = [snapshot.key(pair.a)?, snapshot.key(pair.b)?].map(Option::unwrap_or_default);
///     println!("{} {}", key_text(&a), key_text(&b));
/// }
/// assert!(pairs.left_out().is_empty());
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "nothing is read before it is iterated over"]
pub struct Pairs {
    source: Arc<dyn JoinSource>,
    settings: Settings,
    /// Reads the lanes. `None` until the caller asks for the first pair.
    gatherer: Option<Gatherer>,
    batch: JoinBatch,
    cursor: Cursor,
    events: std::vec::IntoIter<Event>,
    event_pairs: Option<EventPairs>,
    verify: Option<Arc<PairSimilarity>>,
    verified: std::vec::IntoIter<Result<Pair>>,
    /// Gathered while those before them were verified.
    next_candidates: Option<CandidateRound>,
    /// Pairs of signatures that have been compared.
    comparisons: u64,
    failed: bool,
    /// True once a similarity was unknown to the caller who verifies.
    pub(super) has_unknown: Arc<AtomicBool>,
}

/// Candidates that are verified together, and what failed after them.
#[derive(Default)]
struct CandidateRound {
    candidates: Vec<Pair>,
    failure: Option<Error>,
}

/// Iterates over the pairs of an event: members of its groups, at the positions of the next two.
pub(super) struct EventPairs {
    event: Event,
    a: usize,
    b: usize,
}

impl Pairs {
    pub(super) fn new(
        source: Arc<dyn JoinSource>,
        options: SearchOptions,
        links_only: bool,
    ) -> Result<Self> {
        Ok(Self {
            settings: Settings::new(&*source, options, links_only)?,
            source,
            gatherer: None,
            batch: JoinBatch::default(),
            cursor: Cursor::default(),
            events: Vec::new().into_iter(),
            event_pairs: None,
            verify: None,
            verified: Vec::new().into_iter(),
            next_candidates: None,
            comparisons: 0,
            failed: false,
            has_unknown: Arc::default(),
        })
    }

    /// Returns the pairs of the other documents.
    pub(super) fn without(mut self, hidden: Tombstones) -> Self {
        self.settings.hidden = hidden;
        self
    }

    /// Returns candidates as pairs, to be verified: all of them for a caller, otherwise those that
    /// the exact sets of the store can find near.
    pub(super) fn unverified(mut self, for_caller: bool) -> Self {
        self.settings.wanted = match for_caller {
            true => Wanted::All,
            false => Wanted::Plausible,
        };
        self
    }

    /// Returns these pairs with every candidate verified by the closure, which asks a caller or else
    /// compares the exact sets of the store.
    pub(super) fn verified(mut self, verify: Arc<PairSimilarity>, for_caller: bool) -> Self {
        self.verify = Some(verify);
        self.unverified(for_caller)
    }

    /// Returns the buckets, documents and pairs that [`Join::max_bucket`](crate::Join::max_bucket)
    /// has left out so far. After the last pair, this is the result for the whole join.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        let gatherer = self.gatherer.as_ref();
        gatherer.map_or_else(LeftOut::default, |gatherer| gatherer.left_out)
    }

    /// Returns how sure it is that a pair within the bounds is found. It is
    /// [uncertified](Certainty::Uncertified) once a limited bucket has left pairs out, or a closure
    /// that verifies did not know a similarity, so ask after the last pair.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(128)).exact().build()?;
    /// let mut pairs = Store::in_memory(schema)?.snapshot()?.pairs().run()?;
    /// assert!(pairs.next().is_none());
    /// assert_eq!(pairs.certainty().about(), Some("truth"));
    /// assert!(pairs.certainty().missed_at_most() < Some(0.05));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn certainty(&self) -> Certainty {
        if !self.left_out().is_empty() || self.has_unknown.load(Ordering::Relaxed) {
            return Certainty::Uncertified;
        }
        let (schema, settings) = (&self.source.context().schema, &self.settings);
        let verifies = settings.wanted != Wanted::Accepted;
        settings.bounds.basis(schema, verifies).certainty()
    }

    /// Returns the number of lanes that have been read so far, and the number of all lanes.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let minhash = MinHash::new(128).threshold(0.8);
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(minhash).build()?)?;
    /// let mut pairs = store.snapshot()?.pairs().run()?;
    /// assert_eq!(pairs.lanes_read(), (0, 13));
    /// assert!(pairs.next().is_none());
    /// assert_eq!(pairs.lanes_read(), (13, 13));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn lanes_read(&self) -> (usize, usize) {
        let total = self.settings.lanes.len();
        let gatherer = self.gatherer.as_ref();
        let left = gatherer.map_or(total, Gatherer::lanes_left);
        (total - left, total)
    }

    /// Reports the progress of the join.
    #[doc(hidden)]
    pub fn report(&self, watch: &mut Watch<'_>) -> Result<()> {
        let (done, total) = self.lanes_read();
        watch.report(Phase::JoiningLanes, done as u64, total as u64)
    }

    #[cfg(test)]
    pub(super) fn comparisons(&self) -> u64 {
        self.comparisons
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    #[cfg(test)]
    pub(super) fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// Returns the batch that is being compared.
    pub(super) fn batch(&self) -> &JoinBatch {
        &self.batch
    }

    /// Returns the events of the next round of comparisons, as indexes of groups of the batch, or
    /// `None` at the end of the join.
    pub(super) fn next_events(&mut self) -> Result<Option<Vec<Event>>> {
        let source = Arc::clone(&self.source);
        let goes_on = source.context().run_checked(|| self.next_round())?;
        Ok(goes_on.then(|| std::mem::take(&mut self.events).collect()))
    }

    fn next_candidate(&mut self) -> Result<Option<Pair>> {
        // Pairs that are already found need no reading.
        if let Some(pair) = self.next_event_pair() {
            return Ok(Some(pair));
        }
        let source = Arc::clone(&self.source);
        source.context().run_checked(|| self.advance())
    }

    fn next_verified(&mut self, verify: &PairSimilarity) -> Result<Option<Pair>> {
        loop {
            if let Some(pair) = self.verified.next() {
                return pair.map(Some);
            }
            let round = match self.next_candidates.take() {
                Some(round) => round,
                None => self.gather_candidates(),
            };
            if round.candidates.is_empty() && round.failure.is_none() {
                return Ok(None);
            }
            let verifier = Verifier::new(verify, &self.settings);
            // The join ends with a failure, so nothing is gathered after it.
            let is_last = round.failure.is_some();
            // Outside of the engine's guard, which would take a panic of the caller's for damage.
            // The next round is gathered while other threads verify this one.
            let (mut verified, next) = verifier.round(&round.candidates, || {
                (!is_last).then(|| self.gather_candidates())
            });
            verified.extend(round.failure.map(Err));
            self.verified = verified.into_iter();
            self.next_candidates = next;
        }
    }

    /// Gathers candidates to verify together: none at the end of the join.
    fn gather_candidates(&mut self) -> CandidateRound {
        let mut round = CandidateRound::default();
        while round.candidates.len() < ROUND_CANDIDATES && round.failure.is_none() {
            match self.next_candidate() {
                Ok(Some(candidate)) => round.candidates.push(candidate),
                Ok(None) => break,
                Err(error) => round.failure = Some(error),
            }
        }
        round
    }

    fn advance(&mut self) -> Result<Option<Pair>> {
        loop {
            if let Some(pair) = self.next_event_pair() {
                return Ok(Some(pair));
            }
            if let Some(event) = self.events.next() {
                self.event_pairs = Some(EventPairs::new(event));
            } else if !self.next_round()? {
                return Ok(None);
            }
        }
    }

    /// Makes the next comparisons. Returns false if there are no more.
    fn next_round(&mut self) -> Result<bool> {
        let settings = &self.settings;
        let gatherer = match &mut self.gatherer {
            Some(gatherer) => gatherer,
            None => self.gatherer.insert(Gatherer::new(&self.source, settings)?),
        };
        let (rows, read) = self.cursor.next_rows(settings, &self.batch);
        if rows.is_empty() {
            invariant!(
                self.cursor.is_at_end(&self.batch),
                "a batch has comparisons left"
            );
            // The memory is released before the next batch is made.
            self.batch = JoinBatch::default();
            self.cursor = Cursor::default();
            let Some(batch) = gatherer.next(&self.source, settings)? else {
                return Ok(false);
            };
            self.batch = batch;
            return Ok(true);
        }
        if let Some(piece) = read {
            let threads = settings.threads;
            let with_codes = settings.with_codes;
            self.batch
                .read_piece(&*self.source, piece, with_codes, threads)?;
        }
        let comparer = Comparer {
            lanes: settings.join_lanes.set(),
            settings,
            cut: &gatherer.cut,
            batch: &self.batch,
        };
        self.events = comparer.compare(&rows)?.into_iter();
        let comparisons: usize = rows.iter().map(|row| row.comparisons()).sum();
        self.comparisons += comparisons as u64;
        Ok(true)
    }

    /// Returns the next pair of the current event, or `None` if there is no further one.
    fn next_event_pair(&mut self) -> Option<Pair> {
        let event_pairs = self.event_pairs.as_mut()?;
        let event = event_pairs.event;
        let Some(ids) = event_pairs.next(&self.batch, self.settings.links_only) else {
            self.event_pairs = None;
            return None;
        };
        Some(self.pair(event, ids))
    }

    /// Returns two documents of an event as a pair, with the estimate of the event.
    pub(super) fn pair(&self, event: Event, (a, b): (u64, u64)) -> Pair {
        debug_assert_ne!(a, b, "a document is paired with itself");
        let layout = self.settings.layout;
        let (equal, distance) = match event {
            Event::Equal { .. } => (layout.map_or(0, ValueLayout::max_agreement), 0),
            Event::Near {
                equal, distance, ..
            } => (equal as usize, distance),
        };
        Pair {
            a: DocumentId::new(a.min(b)),
            b: DocumentId::new(a.max(b)),
            similarity: layout.map(|layout| layout.similarity(equal)),
            is_exact: false,
            distance: self.settings.has_fingerprints.then_some(distance),
        }
    }
}

impl EventPairs {
    pub(crate) fn new(event: Event) -> Self {
        let b = usize::from(matches!(event, Event::Equal { .. }));
        Self { event, a: 0, b }
    }

    /// Returns the next two documents, in the order of the second, then of the first. With
    /// `links_only`, each document is linked once to the first of its group, and the first ones of
    /// two groups are linked once.
    pub(crate) fn next(&mut self, batch: &JoinBatch, links_only: bool) -> Option<(u64, u64)> {
        let (a, b) = self.event.groups();
        let ids = (batch.members_of(a), batch.members_of(b));
        let pair = ids.0.get(self.a).zip(ids.1.get(self.b))?;
        self.a += 1;
        // Within one group, a document is paired with those before it.
        let end = if a == b { self.b } else { ids.0.len() };
        if links_only && a != b {
            // The members of each group are linked already, so one link connects the two.
            self.b = usize::MAX;
        } else if links_only || self.a == end {
            (self.a, self.b) = (0, self.b + 1);
        }
        Some((*pair.0, *pair.1))
    }
}

impl Iterator for Pairs {
    type Item = Result<Pair>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        // Pairs that were found before a fork need no reading, which would notice it.
        let forked = self.source.check_home();
        let found = match (forked, self.verify.clone()) {
            (Err(error), _) => Err(error),
            (Ok(()), Some(verify)) => self.next_verified(&*verify),
            (Ok(()), None) => self.next_candidate(),
        };
        let next = found.transpose();
        self.failed = !matches!(next, Some(Ok(_)));
        next
    }
}

/// After an error or the end nothing follows.
impl FusedIterator for Pairs {}

impl fmt::Debug for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pairs")
            .field("path", &self.source.context().path)
            .field("bounds", &self.settings.bounds)
            .field("options", &self.settings.options)
            .field("wanted", &self.settings.wanted)
            .finish_non_exhaustive()
    }
}
