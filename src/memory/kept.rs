//! Documents that were new when they were inserted: in memory, or in a transaction that is never
//! committed.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;

use crate::engine::TemporaryFile;
use crate::error::{Error, Result};
use crate::invariant::OrBug;
use crate::memory::index::MemoryIndex;
use crate::memory::look_ahead::{LoneDocuments, LookAhead};
use crate::options::StoreOptions;
use crate::query::{Bounds, Query};
use crate::read::ReadView;
use crate::state::{OpenStore, create_in};
use crate::types::{Document, DocumentId, Novelty, Record};
use crate::write::{
    Arbiter, BatchTarget, SyncAskCaller, WriteTransaction, check_batch, insert_batch,
};
use resemblance_sketch::schema::Schema;
use resemblance_sketch::sketch::Signature;

/// Default memory for kept documents.
const DEFAULT_MEMORY_BYTES: u64 = 64 << 20;

/// Documents that are moved to a store together.
const MOVED_TOGETHER: usize = 4_096;

/// The documents of one pass, without those that are near an earlier kept document. They are in
/// memory while they fit, and otherwise in a temporary store. If they are compared with the
/// documents of a store, they are in a transaction of that store that is never committed.
///
/// ```
/// use std::num::NonZeroUsize;
/// use resemblance::{Bounds, Document, KeptDocuments, MinHash, Schema, StoreOptions, Text};
///
/// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// let mut kept = KeptDocuments::create(&std::env::temp_dir(), schema, &StoreOptions::new())?;
/// kept.set_memory_bytes(1 << 30); // some two million documents
/// kept.set_threads(NonZeroUsize::new(2).unwrap());
/// assert!(kept.is_empty());
///
/// let page = kept.schema().sketcher().text("to be or not to be")?;
/// let new = kept.insert_if_new(Document::new("a"), &page, Bounds::new(), None)?;
/// assert_eq!(kept.get_id(new.id())?.unwrap().key(), Some(&b"a"[..]));
///
/// let batch = [(Document::new("b"), &page), (Document::new("c"), &page)];
/// let novelties = kept.insert_many_if_new(&batch, None)?;
/// assert!(!novelties[0].is_new() && !novelties[1].is_new());
/// assert_eq!(kept.len(), 1);
/// # Ok::<(), resemblance::Error>(())
/// ```
///
/// A caller who can read the documents twice can look ahead, so that only some of them need memory:
///
/// ```
/// use resemblance::{Bounds, Document, KeptDocuments, MinHash, Schema, StoreOptions, Text};
///
/// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// let folder = std::env::temp_dir();
/// let mut kept = KeptDocuments::create(&folder, schema, &StoreOptions::new())?;
/// let texts = ["to be or not to be", "to have and have not", "to be or not to be"];
/// let pages: Vec<_> = texts.iter().map(|text| kept.schema().sketcher().text(text).unwrap()).collect();
/// kept.insert_if_new(Document::without_key().stamp(0), &pages[0], Bounds::new(), None)?;
/// kept.set_memory_bytes(100);
/// assert!(kept.is_nearly_full());
///
/// let mut ahead = kept.look_ahead(1 << 20)?.expect("bands alone decide");
/// ahead.insert(1, &pages[1])?;
/// ahead.insert(2, &pages[2])?;
/// let lone = ahead.finish()?;
/// assert_eq!([0, 1, 2].map(|number| lone.contains(number)), [false, true, false]);
/// kept.forget(&lone)?;
/// let last = Document::without_key().stamp(2);
/// assert!(!kept.insert_if_new(last, &pages[2], Bounds::new(), None)?.is_new());
/// # Ok::<(), resemblance::Error>(())
/// ```
pub struct KeptDocuments {
    place: Place,
    memory_bytes: u64,
}

enum Place {
    Memory(Box<DocumentsInMemory>),
    Store(Box<DocumentsInStore>),
}

struct DocumentsInMemory {
    index: MemoryIndex,
    /// The folder of the store that takes the documents when memory does not suffice.
    folder: PathBuf,
    options: StoreOptions,
}

struct DocumentsInStore {
    // Never committed: there are no other readers of the kept documents, and each commit would cost
    // a sync.
    transaction: WriteTransaction,
    /// Dropped after the store is closed.
    _file: Option<TemporaryFile>,
}

impl fmt::Debug for KeptDocuments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptDocuments")
            .field("documents", &self.len())
            .finish_non_exhaustive()
    }
}

impl DocumentsInStore {
    fn begin(store: &Arc<OpenStore>, file: Option<TemporaryFile>) -> Result<Self> {
        Ok(Self {
            transaction: WriteTransaction::begin(store)?,
            _file: file,
        })
    }

    /// Makes an empty temporary store.
    fn create(folder: &Path, schema: &Schema, options: &StoreOptions) -> Result<Self> {
        let schema = schema.clone().with_clusters(None)?;
        let make = |file: &Path| create_in(file, file, schema.clone(), options);
        let (file, store) = TemporaryFile::create(folder, options.shared_files(), make)?;
        // Dropping it removes the name, which an open file can do without on Unix alone.
        let file = (!cfg!(unix)).then_some(file);
        Self::begin(&Arc::new(store), file)
    }
}

impl KeptDocuments {
    /// Begins a pass that keeps documents in up to 64 MiB of memory (see
    /// [`set_memory_bytes`](Self::set_memory_bytes)), and beyond that in a temporary store in
    /// `folder`. With a probe budget they are in a store from the start, because the candidates
    /// that a budget leaves out depend on how documents are kept.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the schema cannot be indexed, or an option is out of range.
    pub fn create(folder: &Path, schema: Schema, options: &StoreOptions) -> Result<Self> {
        options.validate()?;
        let place = if options.probe_budget.is_some() {
            Place::Store(Box::new(DocumentsInStore::create(
                folder, &schema, options,
            )?))
        } else {
            let folder = options.shared_files().lasting(folder)?;
            Place::Memory(Box::new(DocumentsInMemory {
                index: MemoryIndex::new(folder.clone(), schema, options)?,
                folder,
                options: options.clone(),
            }))
        };
        Ok(Self::in_place(place))
    }

    /// Keeps documents in addition to those of a store, in a write transaction that is never
    /// committed.
    pub(crate) fn in_store(store: &Arc<OpenStore>) -> Result<Self> {
        let store = DocumentsInStore::begin(store, None)?;
        Ok(Self::in_place(Place::Store(Box::new(store))))
    }

    fn in_place(place: Place) -> Self {
        Self {
            place,
            memory_bytes: DEFAULT_MEMORY_BYTES,
        }
    }

    /// Sets the memory that documents may take, in bytes, before they are moved to a temporary
    /// store.
    pub fn set_memory_bytes(&mut self, bytes: u64) {
        self.memory_bytes = bytes;
    }

    /// Sets the number of threads that look up the documents of a batch while the kept documents
    /// are in memory. Decisions are the same for any number.
    pub fn set_threads(&mut self, threads: NonZeroUsize) {
        if let Place::Memory(memory) = &mut self.place {
            memory.index.set_threads(threads);
        }
    }

    /// Returns the schema by which documents are compared.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.view().context().schema
    }

    fn view(&self) -> &dyn ReadView {
        match &self.place {
            Place::Memory(memory) => &memory.index,
            Place::Store(store) => store.transaction.view(),
        }
    }

    /// Returns the number of kept documents, including the earlier documents of the store.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.place {
            Place::Memory(memory) => memory.index.len(),
            Place::Store(store) => store.transaction.len(),
        }
    }

    /// Returns true if no document is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the kept document with an id.
    ///
    /// # Errors
    ///
    /// The errors of [`Snapshot::get_id`](crate::Snapshot::get_id).
    pub fn get_id(&self, id: DocumentId) -> Result<Option<Record>> {
        let view = self.view();
        view.context().run_checked(|| view.record(id.get()))
    }

    /// Returns true if documents take more than three quarters of the memory, and none was moved
    /// to a temporary store yet. A caller who can read the remaining documents twice should then
    /// [look ahead](Self::look_ahead).
    #[must_use]
    pub fn is_nearly_full(&self) -> bool {
        match &self.place {
            Place::Memory(memory) => memory.index.size_bytes() > self.memory_bytes / 4 * 3,
            Place::Store(_) => false,
        }
    }

    /// Begins to look at the remaining documents of the pass, to find those that share no band with
    /// any other, kept ones included. These are never compared: they are new, and need not be kept.
    /// [`forget`](Self::forget) then makes room for the others. Kept documents are known by their
    /// stamps, which must ascend from one to the next.
    ///
    /// Returns `None` if a search reads more than the buckets of a document, which depends on the
    /// schema, or if the documents are not in memory.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] with the parameter `number` if stamps do not ascend, and the
    /// errors of [`LookAhead::insert`].
    pub fn look_ahead(&self, memory_bytes: u64) -> Result<Option<LookAhead>> {
        let Place::Memory(memory) = &self.place else {
            return Ok(None);
        };
        let schema = self.schema();
        // Tables are also searched in neighbouring buckets.
        if schema.simhash().is_some() || schema.containment().is_some() {
            return Ok(None);
        }
        let threads = memory.index.threads();
        let mut ahead = LookAhead::new(&memory.folder, schema, memory_bytes, threads)?;
        let view: &dyn ReadView = &memory.index;
        for id in 0..memory.index.len() {
            let record = view.record(id)?.or_bug("a document in memory")?;
            ahead.insert(record.stamp(), record.signature())?;
        }
        Ok(Some(ahead))
    }

    /// Removes the postings of kept documents that are among the `lone` ones, and returns their
    /// ids. Does nothing if the documents are not in memory.
    ///
    /// # Errors
    ///
    /// The errors of [`get_id`](Self::get_id).
    pub fn forget(&mut self, lone: &LoneDocuments) -> Result<HashSet<u64>> {
        let mut forgotten = HashSet::new();
        if let Place::Memory(memory) = &mut self.place {
            for id in 0..memory.index.len() {
                let view: &dyn ReadView = &memory.index;
                let record = view.record(id)?.or_bug("a document in memory")?;
                if lone.contains(record.stamp()) {
                    forgotten.insert(id);
                }
            }
            memory.index.forget(&forgotten);
        }
        Ok(forgotten)
    }

    /// Inserts the documents of a batch that are new by the schema's bounds. `verify` receives the
    /// index of a document of the batch, an earlier document and a floor. It returns their exact
    /// similarity, or any lower number if that is below the floor; `None` keeps the estimate.
    ///
    /// # Errors
    ///
    /// The errors of [`WriteTransaction::insert_many`](crate::WriteTransaction::insert_many). If an
    /// input is bad, no document of the batch is inserted.
    pub fn insert_many_if_new(
        &mut self,
        documents: &[(Document<'_>, &Signature)],
        verify: Option<&SyncAskCaller<'_>>,
    ) -> Result<Vec<Novelty>> {
        let arbiter = verify.map_or(Arbiter::Estimate, Arbiter::CallerOfAnyThread);
        let novelties = match &mut self.place {
            Place::Store(store) => store.transaction.insert_new(documents, arbiter),
            Place::Memory(memory) => {
                check_batch(documents, |document, signature| {
                    memory.index.check(document, signature)
                })?;
                insert_batch(&mut memory.index, documents, arbiter)
            }
        }?;
        self.stay_within_memory()?;
        Ok(novelties)
    }

    /// Inserts a document if it is new by bounds that may differ from those of the schema. `verify`
    /// receives a kept document and a floor. It returns the exact similarity, or any lower number
    /// if that is below the floor; `None` keeps the estimate.
    ///
    /// # Errors
    ///
    /// The errors of [`Query::run`] and of
    /// [`WriteTransaction::insert`](crate::WriteTransaction::insert).
    pub fn insert_if_new<'d>(
        &mut self,
        document: impl Into<Document<'d>>,
        signature: &Signature,
        bounds: Bounds,
        verify: Option<&dyn Fn(DocumentId, f64) -> Result<Option<f64>>>,
    ) -> Result<Novelty> {
        let context = self.view().context();
        let floor = bounds.resolve(&context.schema, false)?.similarity_floor();
        let mut query: Query<'_> =
            Query::new(self.view(), Cow::Borrowed(slice::from_ref(signature)));
        if let Some(verify) = verify {
            query = query.verify(move |id| verify(id, floor));
        }
        if let Some(budget) = context.options.probe_budget {
            query = query.probe_budget(budget);
        }
        let matches = query.bounds(bounds).limit(1).run()?;
        let beyond = matches.budget_exceeded();
        if let Some(mut found) = matches.into_iter().next() {
            found.beyond = beyond;
            return Ok(Novelty::NearDuplicate(found));
        }
        let id = self.insert(document.into(), signature)?;
        Ok(Novelty::New {
            id,
            left_out: beyond,
        })
    }

    /// Inserts a document whose key no other has.
    fn insert(&mut self, document: Document<'_>, signature: &Signature) -> Result<DocumentId> {
        let id = match &mut self.place {
            Place::Store(store) => store.transaction.insert(&document, signature),
            Place::Memory(memory) => {
                memory.index.check(&document, signature)?;
                let view: &dyn ReadView = &memory.index;
                if let Some(key) = document.key()
                    && let Some(id) = view.find_key(key)?
                {
                    return Err(Error::KeyExists {
                        key: key.to_vec(),
                        id: DocumentId::new(id),
                    });
                }
                memory.index.store_document(&document, signature)
            }
        }?;
        self.stay_within_memory()?;
        Ok(id)
    }

    /// Moves the documents to a temporary store once they take too much memory.
    fn stay_within_memory(&mut self) -> Result<()> {
        let Place::Memory(memory) = &self.place else {
            return Ok(());
        };
        if memory.index.size_bytes() <= self.memory_bytes {
            return Ok(());
        }
        let view: &dyn ReadView = &memory.index;
        let schema = &view.context().schema;
        let mut store = DocumentsInStore::create(&memory.folder, schema, &memory.options)?;
        let ids: Vec<u64> = (0..memory.index.len()).collect();
        for ids in ids.chunks(MOVED_TOGETHER) {
            let records = ids.iter().filter_map(|id| view.record(*id).transpose());
            let records = records.collect::<Result<Vec<_>>>()?;
            let documents = records.iter().map(|r| (Document::from(r), r.signature()));
            let documents: Vec<_> = documents.collect();
            store.transaction.insert_all(&documents)?;
        }
        self.place = Place::Store(Box::new(store));
        Ok(())
    }
}
