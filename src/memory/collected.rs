//! A complete collection.

use std::sync::Arc;

use crate::engine::TemporaryFile;
use crate::error::Result;
use crate::join::{Clusters, Join, JoinSource, Pairs};
use crate::memory::documents::MemoryDocuments;
use crate::options::StoreOptions;
use crate::read::SnapshotView;
use crate::state::open_read_only;
use crate::types::{DocumentId, Record};
use resemblance_sketch::schema::Schema;

/// The documents of one job, made by [`Collection::finish`](crate::Collection::finish). Cheap to
/// clone.
///
/// ```
/// use resemblance::Collection;
/// # use resemblance::{BulkOptions, MinHash, Schema, Text};
///
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// # let sketcher = schema.sketcher();
/// # let options = BulkOptions::new();
/// # let mut collection = Collection::new(&std::env::temp_dir(), schema.clone(), &options)?;
/// # for key in ["a", "b", "c"] {
/// #     collection.insert(key, &sketcher.text("the same text under three keys")?)?;
/// # }
/// let collected = collection.finish()?;
/// assert_eq!((collected.len(), collected.is_empty()), (3, false));
/// let pair = collected.pairs().run()?.next().expect("all are near")?;
/// assert_eq!(collected.key(pair.b)?.as_deref(), Some(&b"b"[..]));
/// let clusters = collected.clusters().min_similarity(0.9).run()?;
/// for cluster in clusters {
///     let first = collected.get_id(cluster[0])?.expect("it is there");
///     assert_eq!(first.key(), Some(&b"a"[..]));
/// }
/// assert_eq!(collected.schema(), &schema);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone)]
pub struct Collected {
    source: Arc<dyn JoinSource>,
    // dropped after what reads it
    _file: Option<Arc<TemporaryFile>>,
}

impl std::fmt::Debug for Collected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collected")
            .field("documents", &self.len())
            .finish_non_exhaustive()
    }
}

impl Collected {
    pub(super) fn in_memory(documents: Arc<MemoryDocuments>) -> Self {
        Self {
            source: documents,
            _file: None,
        }
    }

    /// Opens a temporary store for reading. An open file can do without its name on Unix alone.
    pub(super) fn in_store(file: TemporaryFile, options: &StoreOptions) -> Result<Self> {
        let store = Arc::new(open_read_only(file.path(), options)?);
        Ok(Self {
            source: Arc::new(SnapshotView::open(&store)?),
            _file: (!cfg!(unix)).then(|| Arc::new(file)),
        })
    }

    /// Searches for all near pairs: see [`Snapshot::pairs`](crate::Snapshot::pairs).
    pub fn pairs<'a>(&self) -> Join<'a, Pairs> {
        Join::new(Arc::clone(&self.source))
    }

    /// Searches for the clusters of near pairs: see
    /// [`Snapshot::clusters`](crate::Snapshot::clusters).
    pub fn clusters<'a>(&self) -> Join<'a, Clusters> {
        Join::new(Arc::clone(&self.source))
    }

    /// Returns the number of documents.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.source.len()
    }

    /// Returns true if the collection has no documents.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the schema of the documents.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.source.context().schema
    }

    /// Returns the document with an id, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// The errors of [`Snapshot::get_id`](crate::Snapshot::get_id).
    pub fn get_id(&self, id: DocumentId) -> Result<Option<Record>> {
        let context = self.source.context();
        context.run_checked(|| self.source.record(id.get()))
    }

    /// Returns the key of a document, or `None` if there is no such document or it has no key.
    ///
    /// # Errors
    ///
    /// The errors of [`Snapshot::key`](crate::Snapshot::key).
    pub fn key(&self, id: DocumentId) -> Result<Option<Vec<u8>>> {
        let context = self.source.context();
        context.run_checked(|| self.source.key(id.get()))
    }
}
