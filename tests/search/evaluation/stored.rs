//! Corpora in stores.

use std::collections::BTreeMap;

use resemblance::{DocumentId, Schema, Signature, Snapshot, Store, StoreOptions};
use tempfile::TempDir;

use crate::evaluation::corpus::{Corpus, Places};

/// Estimated similarity and distance, as far as the schema has them.
pub(crate) type Measures = (Option<f64>, Option<u32>);

/// A corpus in a store. The key of a document is its place in the corpus.
pub(crate) struct Stored {
    pub(crate) store: Store,
    pub(crate) signatures: Vec<Signature>,
    _folder: TempDir,
}

impl Stored {
    /// Creates a store whose memtable is flushed every `flush_after` documents, in several commits.
    pub(crate) fn new(corpus: &Corpus, schema: Schema, flush_after: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions::new().flush_after(flush_after);
        let path = folder.path().join("corpus.rsm");
        let store = options.create(path, schema).unwrap();
        let sketch = |text: &String| store.sketch_text(text).unwrap();
        let signatures: Vec<Signature> = corpus.texts.iter().map(sketch).collect();
        for (batch, signatures) in signatures.chunks(1_000).enumerate() {
            let mut transaction = store.begin_write().unwrap();
            for (place, signature) in (batch * 1_000..).zip(signatures) {
                transaction.insert(place.to_string(), signature).unwrap();
            }
            transaction.commit().unwrap();
        }
        Self {
            store,
            signatures,
            _folder: folder,
        }
    }

    /// Returns all pairs within the schema's bounds, from `Snapshot::pairs`. Each must occur once.
    pub(crate) fn pairs(&self) -> BTreeMap<Places, Measures> {
        let mut pairs = BTreeMap::new();
        let snapshot = self.store.snapshot().unwrap();
        for pair in snapshot.pairs().run().unwrap() {
            let pair = pair.unwrap();
            let places = (place(&snapshot, pair.a), place(&snapshot, pair.b));
            assert!(pair.a < pair.b && places.0 < places.1);
            let before = pairs.insert(places, (pair.similarity, pair.distance));
            assert!(before.is_none(), "{places:?} came twice");
        }
        pairs
    }

    /// The same by a query for each document.
    pub(crate) fn queried(&self) -> BTreeMap<Places, Measures> {
        let mut pairs = BTreeMap::new();
        let snapshot = self.store.snapshot().unwrap();
        for a in 0..self.signatures.len() {
            let query = snapshot.query_by_key(a.to_string()).unwrap().unwrap();
            for near in query.run().unwrap().iter() {
                let b = place(&snapshot, near.id());
                let measures = (near.similarity(), near.distance());
                let before = pairs.insert((a.min(b), a.max(b)), measures);
                // The lesser place is asked first, and gives the pair for the first time.
                assert_eq!(before, (b < a).then_some(measures));
            }
        }
        pairs
    }
}

fn place(snapshot: &Snapshot, id: DocumentId) -> usize {
    let key = snapshot.key(id).unwrap().unwrap();
    String::from_utf8(key).unwrap().parse().unwrap()
}
