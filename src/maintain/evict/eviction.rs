//! Eviction: removes documents by their age, their number, or the caller's decision, in short
//! transactions.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::maintain::evict::newest::{Age, Memory, age_of_rank};
use crate::maintain::evict::policy::{EvictPolicy, Judge};
use crate::observe::{UPKEEP, log as events};
use crate::read::SnapshotView;
use crate::read::StoredDocuments;
use crate::state::OpenStore;
use crate::types::{DocumentId, Operation, Phase, ReportSettings, StoredDocument, Watch};
use crate::write::WriteTransaction;

const MAX_SLICE_DOCUMENTS: usize = 1_000_000;

/// How an eviction divides its work into transactions.
#[derive(Clone, Copy, Debug)]
pub struct Slices {
    documents: usize,
    is_dry_run: bool,
}

impl Slices {
    fn validate(self) -> Result<()> {
        if (1..=MAX_SLICE_DOCUMENTS).contains(&self.documents) {
            return Ok(());
        }
        let expected = format!("1 to {MAX_SLICE_DOCUMENTS}");
        Err(Error::invalid("slice_documents", self.documents, expected))
    }
}

/// Describes the eviction of documents by a policy.
pub(crate) fn evict<'a>(
    store: &'a Arc<OpenStore>,
    policy: EvictPolicy<'a>,
) -> Operation<'a, EvictReport> {
    let slices = Slices {
        documents: 1_000,
        is_dry_run: false,
    };
    Operation::new("the eviction", slices, |slices, watch| {
        evict_in_slices(store, policy, slices, watch)
    })
}

impl Operation<'_, EvictReport> {
    /// Sets the maximum number of documents that one transaction removes, 1 to 1,000,000. Default:
    /// 1,000. Other writers wait for at most one such transaction.
    ///
    /// ```
    /// # use resemblance::{EvictPolicy, MinHash, Schema, Store};
    /// # let store = Store::in_memory(Schema::builder().minhash(MinHash::new(64)).build()?)?;
    /// let policy = EvictPolicy::KeepNewest(1_000_000);
    /// let report = store.evict(policy).slice_documents(200).run()?;
    /// assert_eq!(report.slices, 0);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn slice_documents(mut self, documents: usize) -> Self {
        self.settings.documents = documents;
        self
    }

    /// Sets whether to remove nothing and only count, in the report, the documents that would be
    /// removed. Off by default.
    ///
    /// ```
    /// # use resemblance::{EvictPolicy, MinHash, Schema, Store};
    /// # let store = Store::in_memory(Schema::builder().minhash(MinHash::new(64)).build()?)?;
    /// # store.insert("a", &store.sketcher().hashes([1])?)?;
    /// let report = store.evict(EvictPolicy::KeepNewest(0)).dry_run(true).run()?;
    /// assert_eq!((report.evicted, store.snapshot()?.len()), (1, 1));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn dry_run(mut self, on: bool) -> Self {
        self.settings.is_dry_run = on;
        self
    }
}

/// The result of an eviction.
///
/// ```
/// # use resemblance::{EvictPolicy, MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// # store.insert("a", &page)?;
/// let report = store.evict(EvictPolicy::KeepNewest(0)).run()?;
/// assert_eq!((report.examined, report.evicted, report.spared), (1, 1, 0));
/// println!("others waited for {:?} at most", report.longest_slice);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EvictReport {
    /// The number of documents that were examined. It is 0 for [`EvictPolicy::KeepNewest`] if the
    /// store has no more documents than it keeps.
    pub examined: u64,
    /// The number of documents that were removed, or would be removed if this is a dry run.
    pub evicted: u64,
    /// The number of documents that were selected, but were touched, replaced or removed by others
    /// before their turn.
    pub spared: u64,
    /// The number of transactions.
    pub slices: u64,
    /// The longest time for which a transaction kept other writers waiting, including its commit.
    pub longest_slice: Duration,
}

impl ReportSettings for EvictReport {
    type Settings = Slices;
}

/// Evicts the documents that the policy names.
fn evict_in_slices(
    store: &Arc<OpenStore>,
    policy: EvictPolicy<'_>,
    slices: Slices,
    watch: &mut Watch<'_>,
) -> Result<EvictReport> {
    slices.validate()?;
    if !slices.is_dry_run {
        // A handle that cannot write fails at once, even if nothing would be evicted.
        drop(WriteTransaction::begin(store)?);
    }
    let first = SnapshotView::open(store)?;
    let mut eviction = EvictionRun::new(store, slices, &first);
    // While the first snapshot lives, the space of evicted documents is not used again.
    match policy {
        EvictPolicy::OlderThan(stamp) => {
            drop(first);
            eviction.run(&mut |document| document.stamp() < stamp, false, watch)
        }
        EvictPolicy::KeepNewest(documents) => {
            if first.len() <= documents {
                return Ok(eviction.report);
            }
            eviction.left = first.len() - documents;
            let oldest_kept = oldest_kept(&first, eviction.left, watch)?;
            drop(first);
            eviction.run(
                &mut |document| (document.stamp(), document.id().get()) < oldest_kept,
                false,
                watch,
            )
        }
        EvictPolicy::Where(mut judge) => {
            drop(first);
            eviction.run(&mut *judge, true, watch)
        }
    }
}

/// An eviction under way.
struct EvictionRun<'a> {
    store: &'a Arc<OpenStore>,
    slices: Slices,
    /// True if the policy asks for payloads.
    with_payloads: bool,
    /// Ids that have not been read yet. Documents inserted meanwhile have greater ones.
    ids: Range<u64>,
    /// Number of documents at the beginning.
    total: u64,
    /// Documents that may still be evicted.
    left: u64,
    /// Ids of documents to evict in the next slices.
    chosen: Vec<u64>,
    report: EvictReport,
}

impl<'a> EvictionRun<'a> {
    fn new(store: &'a Arc<OpenStore>, slices: Slices, first: &SnapshotView) -> Self {
        Self {
            store,
            slices,
            with_payloads: false,
            ids: 0..first.inner.version.state.next_id,
            total: first.len(),
            left: u64::MAX,
            chosen: Vec::new(),
            report: EvictReport::default(),
        }
    }

    /// Looks at all documents, each piece of them as it is by then.
    fn run(
        mut self,
        judge: &mut Judge<'_>,
        with_payloads: bool,
        watch: &mut Watch<'_>,
    ) -> Result<EvictReport> {
        self.with_payloads = with_payloads;
        let mut documents = StoredDocuments::default();
        while !self.ids.is_empty() {
            self.report(watch)?;
            let snapshot = SnapshotView::open(self.store)?;
            self.ids.start = documents.read(&snapshot, self.ids.clone(), with_payloads)?;
            drop(snapshot);
            self.take(&documents, judge, watch)?;
        }
        self.evict_chosen(judge)?;
        self.report(watch)?;
        let message = format_args!("evicted: {:?}", self.report);
        events::debug(UPKEEP, &self.store.context.path, message);
        Ok(self.report)
    }

    /// Chooses among documents, and evicts whenever enough are chosen.
    fn take(
        &mut self,
        documents: &StoredDocuments,
        judge: &mut Judge<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<()> {
        for (id, document) in documents.iter() {
            self.report.examined += 1;
            if !judge(&StoredDocument::new(*id, document)) {
                continue;
            }
            if self.slices.is_dry_run {
                self.report.evicted += 1;
                continue;
            }
            self.chosen.push(*id);
            if self.chosen.len() >= self.slices.documents {
                self.evict_chosen(judge)?;
                self.report(watch)?;
            }
        }
        Ok(())
    }

    /// Removes those of the chosen documents that are still to be removed, in one transaction.
    fn evict_chosen(&mut self, judge: &mut Judge<'_>) -> Result<()> {
        let chosen = std::mem::take(&mut self.chosen);
        if chosen.is_empty() {
            return Ok(());
        }
        let mut transaction = WriteTransaction::begin(self.store)?;
        let begun = Instant::now();
        let mut evicted = 0;
        for id in &chosen {
            let document = transaction.document_of(*id, self.with_payloads)?;
            let is_to_go = document.is_some_and(|it| judge(&StoredDocument::new(*id, &it)));
            if is_to_go && evicted < self.left {
                transaction.remove_id(DocumentId::new(*id))?;
                evicted += 1;
            }
        }
        transaction.note_evicted(evicted);
        transaction.commit()?;
        let report = &mut self.report;
        report.longest_slice = report.longest_slice.max(begun.elapsed());
        report.slices += 1;
        report.evicted += evicted;
        report.spared += chosen.len() as u64 - evicted;
        self.left -= evicted;
        Ok(())
    }

    fn report(&self, watch: &mut Watch<'_>) -> Result<()> {
        watch.report(Phase::EvictingDocuments, self.report.examined, self.total)
    }
}

/// Returns the age of the document that exactly this number are older than, the greatest age if all
/// are.
fn oldest_kept(snapshot: &SnapshotView, older: u64, watch: &mut Watch<'_>) -> Result<Age> {
    let total = snapshot.len();
    if older >= total {
        // No document has the greatest id.
        return Ok((u64::MAX, u64::MAX));
    }
    let end = snapshot.inner.version.state.next_id;
    let mut piece = StoredDocuments::default();
    let mut documents = 0;
    age_of_rank(older, total, Memory::default(), &mut |visit| {
        let mut from = 0;
        while from < end {
            // The number of passes is not known at the beginning.
            watch.report(Phase::ReadingDocuments, documents, None)?;
            from = piece.read(snapshot, from..end, false)?;
            for (id, document) in piece.iter() {
                visit((document.stamp, *id));
                documents += 1;
            }
        }
        watch.report(Phase::ReadingDocuments, documents, None)
    })
}
