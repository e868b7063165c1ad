//! Collects documents for a collection.

use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::build::{BuildCallbacks, BulkBuild, BulkOptions, bulk_build};
use crate::engine::TemporaryFile;
use crate::error::{Error, Result};
use crate::invariant::OrBug;
use crate::memory::collected::Collected;
use crate::memory::documents::MemoryDocuments;
use crate::types::{Document, DocumentId, Progress};
use resemblance_sketch::schema::Schema;
use resemblance_sketch::sketch::Signature;

/// The documents of one job, such as a search for the pairs of a corpus. They are in memory while
/// they fit into [`BulkOptions::memory_bytes`], and otherwise in a temporary store, which is built
/// offline. Answers and their order are the same either way.
///
/// ```
/// use resemblance::Collection;
/// use resemblance::{BulkOptions, MinHash, Schema, Text};
///
/// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// let sketcher = schema.sketcher();
/// let mut collection = Collection::new(&std::env::temp_dir(), schema, &BulkOptions::new())?;
/// for key in ["a", "b", "c"] {
///     collection.insert(key, &sketcher.text("the same text under three keys")?)?;
/// }
/// assert_eq!((collection.len(), collection.is_empty()), (3, false));
/// let collected = collection.finish()?;
/// assert_eq!(collected.pairs().run()?.count(), 3);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "documents are joined once the collection is finished"]
pub struct Collection<'w> {
    folder: PathBuf,
    schema: Schema,
    options: BulkOptions,
    held: Held,
    callbacks: BuildCallbacks<'w>,
}

enum Held {
    Memory(Box<MemoryDocuments>),
    Store(Box<StoreInTheMaking>),
    /// Moving the documents into a store has failed.
    Failed(String),
}

/// A temporary store that takes what memory does not.
struct StoreInTheMaking {
    build: BulkBuild<'static>,
    file: TemporaryFile,
}

impl fmt::Debug for Collection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collection")
            .field("documents", &self.len())
            .field("is_in_memory", &self.is_in_memory())
            .finish_non_exhaustive()
    }
}

impl<'w> Collection<'w> {
    /// Creates an empty collection. `folder` is for the temporary store, and for temporary files of
    /// sorting unless the options name another folder.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the schema cannot be indexed.
    pub fn new(folder: &Path, schema: Schema, options: &BulkOptions) -> Result<Self> {
        let folder = options.store.shared_files().lasting(folder)?;
        let documents = MemoryDocuments::new(folder.clone(), schema.clone())?;
        Ok(Self {
            folder,
            schema,
            options: options.clone(),
            held: Held::Memory(Box::new(documents)),
            callbacks: BuildCallbacks::default(),
        })
    }

    /// Inserts a document with the next id, starting with 0. Repeated keys are detected only by
    /// [`finish`](Self::finish).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for a key of more than 4,096 bytes or a payload of more than 64
    /// MiB, [`Error::SignatureMismatch`] for a signature that does not fit the schema; the
    /// collection can continue without the document. [`Error::Io`] if, for example, a disk is full:
    /// it cannot continue.
    pub fn insert<'d>(
        &mut self,
        document: impl Into<Document<'d>>,
        signature: &Signature,
    ) -> Result<DocumentId> {
        let document = document.into();
        let id = match &mut self.held {
            Held::Memory(documents) => {
                documents.validate(&document, signature)?;
                documents.push(&document, signature)?
            }
            Held::Store(making) => return making.build.insert(document, signature),
            Held::Failed(reason) => return Err(closed(reason)),
        };
        self.stay_within_memory()?;
        Ok(id)
    }

    /// Moves the documents into a store once they take too much memory.
    fn stay_within_memory(&mut self) -> Result<()> {
        let Held::Memory(documents) = &mut self.held else {
            return Ok(());
        };
        if documents.size_bytes() <= self.options.memory_bytes {
            return Ok(());
        }
        let moved = moved(documents, &self.folder, &self.schema, &self.options);
        self.held = match moved {
            Ok(making) => Held::Store(Box::new(making)),
            Err(error) => {
                self.held = Held::Failed(error.to_string());
                return Err(error);
            }
        };
        Ok(())
    }

    /// Returns the number of documents inserted so far.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.held {
            Held::Memory(documents) => documents.taken(),
            Held::Store(making) => making.build.len(),
            Held::Failed(_) => 0,
        }
    }

    /// Returns true if no document has been inserted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true as long as all documents are in memory.
    pub(super) fn is_in_memory(&self) -> bool {
        matches!(self.held, Held::Memory(_))
    }

    /// Sets the callback that receives the progress of [`finish`](Self::finish), and may stop it:
    /// see [`BulkBuild::on_progress`].
    ///
    /// ```
    /// use resemblance::Collection;
    /// use std::ops::ControlFlow;
    /// # use resemblance::{BulkOptions, MinHash, Schema};
    ///
    /// # let schema = Schema::builder().minhash(MinHash::new(64)).build()?;
    /// let collection = Collection::new(&std::env::temp_dir(), schema, &BulkOptions::new())?;
    /// let collection = collection.on_progress(|progress| {
    ///     eprintln!("{progress}");
    ///     ControlFlow::Continue(())
    /// });
    /// assert!(collection.finish()?.is_empty());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn on_progress(
        mut self,
        callback: impl FnMut(Progress) -> ControlFlow<()> + Send + 'w,
    ) -> Self {
        self.callbacks.on_progress = Some(Box::new(callback));
        self
    }

    /// Sets a callback for the documents that [`finish`](Self::finish) leaves out because of their
    /// keys: see [`BulkBuild::on_duplicate`].
    ///
    /// ```
    /// use resemblance::Collection;
    /// use std::ops::ControlFlow;
    /// # use resemblance::{BulkOptions, DuplicateKeys, MinHash, Schema};
    ///
    /// # let schema = Schema::builder().minhash(MinHash::new(64)).build()?;
    /// # let page = schema.sketcher().hashes([1])?;
    /// let options = BulkOptions::new().duplicate_keys(DuplicateKeys::KeepFirst);
    /// let mut left_out = Vec::new();
    /// let collection = Collection::new(&std::env::temp_dir(), schema, &options)?;
    /// let mut collection = collection.on_duplicate(|id, _key| {
    ///     left_out.push(id.get());
    ///     ControlFlow::Continue(())
    /// });
    /// collection.insert("a", &page)?;
    /// collection.insert("a", &page)?;
    /// assert_eq!(collection.finish()?.len(), 1);
    /// assert_eq!(left_out, [1]);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn on_duplicate(
        mut self,
        callback: impl FnMut(DocumentId, &[u8]) -> ControlFlow<()> + Send + 'w,
    ) -> Self {
        self.callbacks.on_duplicate = Some(Box::new(callback));
        self
    }

    /// Completes the collection.
    ///
    /// # Errors
    ///
    /// [`Error::KeyTwice`] if a key is repeated and the options refuse that; [`Error::Stopped`] if
    /// a callback stops it; [`Error::Io`].
    pub fn finish(mut self) -> Result<Collected> {
        let callbacks = std::mem::take(&mut self.callbacks);
        callbacks.run("the collection", |watch, on_duplicate| match self.held {
            Held::Failed(reason) => Err(closed(&reason)),
            Held::Memory(mut documents) => {
                for id in documents.leave_out_repeated(self.options.duplicate_keys)? {
                    let document = documents.document(id)?;
                    let key = document.key().or_bug("the key of a repeated document")?;
                    watch.obey(on_duplicate(DocumentId::new(id), key))?;
                }
                Ok(Collected::in_memory(Arc::new(*documents)))
            }
            Held::Store(making) => {
                let StoreInTheMaking { build, file } = *making;
                build.finish_watched(watch, on_duplicate)?;
                Collected::in_store(file, &self.options.store)
            }
        })
    }
}

/// Begins a temporary store, and puts documents into it.
fn moved(
    documents: &MemoryDocuments,
    folder: &Path,
    schema: &Schema,
    options: &BulkOptions,
) -> Result<StoreInTheMaking> {
    let shared_files = options.store.shared_files();
    let schema = schema.clone().with_clusters(None)?;
    let (file, mut build) = TemporaryFile::create(folder, shared_files, |path| {
        bulk_build(path, schema.clone(), options)
    })?;
    for document in documents.all() {
        let (document, signature) = document?;
        build.insert(document, &signature)?;
    }
    Ok(StoreInTheMaking { build, file })
}

fn closed(reason: &str) -> Error {
    Error::Closed {
        reason: format!("the collection failed: {reason}"),
    }
}
