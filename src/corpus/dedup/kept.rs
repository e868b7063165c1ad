//! The documents that a deduplicator has kept: in memory, or in a transaction that is never committed.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::corpus::dedup::memory_index::MemoryIndex;
use crate::engine::TemporaryFile;
use crate::error::{Error, Result};
use crate::options::StoreOptions;
use crate::read::ReadView;
use crate::schema::Schema;
use crate::sketch::Signature;
use crate::state::{OpenStore, create_in};
use crate::types::{Document, DocumentId, Novelty, Record};
use crate::write::{Arbiter, BatchTarget, WriteTransaction, check_batch, insert_batch};

/// Memory for kept documents, unless the caller says otherwise.
const DEFAULT_MEMORY_BYTES: u64 = 64 << 20;

/// Documents that are moved to a store together.
const MOVED_TOGETHER: usize = 4_096;

pub(super) struct KeptDocuments {
    place: Place,
    memory_bytes: u64,
}

enum Place {
    Memory(Box<DocumentsInMemory>),
    Store(Box<DocumentsInStore>),
}

struct DocumentsInMemory {
    index: MemoryIndex,
    /// Of the store that takes the documents when memory does not.
    folder: PathBuf,
    options: StoreOptions,
}

struct DocumentsInStore {
    // Never committed: nobody else reads the kept documents, and each commit would cost a sync.
    transaction: WriteTransaction,
    /// Dropped after the store is closed.
    _file: Option<TemporaryFile>,
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
        let make = |file: &Path| create_in(file, file, schema.clone(), options);
        let (file, store) = TemporaryFile::create(folder, options.shared_files(), make)?;
        // Dropping it removes the name, which an open file can do without on Unix alone.
        let file = (!cfg!(unix)).then_some(file);
        Self::begin(&Arc::new(store), file)
    }
}

fn as_document(record: &Record) -> Document<'_> {
    let document = record
        .key()
        .map_or_else(Document::without_key, Document::new);
    document.stamp(record.stamp()).payload(record.payload())
}

impl KeptDocuments {
    /// Keeps documents in memory, and beyond that in a temporary store. With a budget it is a store from
    /// the start: which candidates a budget leaves out depends on how they are kept.
    pub(super) fn create(folder: &Path, schema: Schema, options: &StoreOptions) -> Result<Self> {
        options.validate()?;
        let place = if options.probe_budget.is_some() {
            Place::Store(Box::new(DocumentsInStore::create(
                folder, &schema, options,
            )?))
        } else {
            Place::Memory(Box::new(DocumentsInMemory {
                index: MemoryIndex::new(folder.into(), schema, options)?,
                folder: folder.into(),
                options: options.clone(),
            }))
        };
        Ok(Self::in_place(place))
    }

    /// Keeps documents in a transaction of a store, beside those that it has.
    pub(super) fn in_store(store: &Arc<OpenStore>) -> Result<Self> {
        let store = DocumentsInStore::begin(store, None)?;
        Ok(Self::in_place(Place::Store(Box::new(store))))
    }

    fn in_place(place: Place) -> Self {
        Self {
            place,
            memory_bytes: DEFAULT_MEMORY_BYTES,
        }
    }

    pub(super) fn set_memory_bytes(&mut self, bytes: u64) {
        self.memory_bytes = bytes;
    }

    /// Sets the number of threads that look documents up in memory.
    pub(super) fn set_threads(&mut self, threads: NonZeroUsize) {
        if let Place::Memory(memory) = &mut self.place {
            memory.index.set_threads(threads);
        }
    }

    pub(super) fn view(&self) -> &dyn ReadView {
        match &self.place {
            Place::Memory(memory) => &memory.index,
            Place::Store(store) => store.transaction.view(),
        }
    }

    pub(super) fn len(&self) -> u64 {
        match &self.place {
            Place::Memory(memory) => memory.index.len(),
            Place::Store(store) => store.transaction.len(),
        }
    }

    pub(super) fn get_id(&self, id: DocumentId) -> Result<Option<Record>> {
        let view = self.view();
        view.context().run_checked(|| view.record(id.get()))
    }

    /// Inserts the documents of a batch that are new.
    pub(super) fn insert_new(
        &mut self,
        documents: &[(Document<'_>, &Signature)],
        arbiter: Arbiter<'_>,
    ) -> Result<Vec<Novelty>> {
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

    /// Inserts a document whose key no other has.
    pub(super) fn insert(
        &mut self,
        document: Document<'_>,
        signature: &Signature,
    ) -> Result<DocumentId> {
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
            let documents = records.iter().map(|r| (as_document(r), r.signature()));
            let documents: Vec<_> = documents.collect();
            store.transaction.insert_all(&documents)?;
        }
        self.place = Place::Store(Box::new(store));
        Ok(())
    }
}
