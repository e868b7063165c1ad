//! Where the store is used: articles by address, no near-duplicate twice.

use std::path::Path;

use resemblance::{Document, EvictPolicy, MinHash, Novelty, Result, Schema, Store, Text};

/// Articles whose texts have at least this Jaccard similarity are taken for the same.
const THRESHOLD: f64 = 0.7;

/// The articles, shared by all threads.
pub(crate) struct Articles {
    store: Store,
}

/// What came of an article.
#[derive(Debug, PartialEq)]
pub(crate) enum Added {
    Stored,
    /// The article that it resembles, and how much.
    Refused(String, f64),
}

/// An article that resembles another text.
#[derive(Debug)]
pub(crate) struct Similar {
    pub(crate) address: String,
    pub(crate) title: String,
    pub(crate) similarity: f64,
}

impl Articles {
    /// Opens the articles, or makes the file if there is none.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let schema = Schema::builder()
            .text(Text::words(3))
            .minhash(MinHash::new(128).threshold(THRESHOLD))
            .build()?;
        let store = Store::open_or_create(path, schema)?;
        Ok(Self { store })
    }

    /// Stores an article, durably, unless its address or a near-duplicate of it is there.
    pub(crate) fn add(&self, address: &str, title: &str, text: &str, now: u64) -> Result<Added> {
        let document = Document::from((address, title)).stamp(now);
        let signature = self.store.sketch_text(text)?;
        let novelty = self.store.insert_if_new(document, &signature)?;
        Ok(match &novelty {
            Novelty::KeyExists(found) | Novelty::NearDuplicate(found) => {
                let address = found.key_str().unwrap_or_default().into_owned();
                Added::Refused(address, found.similarity().unwrap_or(0.0))
            }
            _ => Added::Stored,
        })
    }

    /// Returns the ten articles that are most like a text.
    pub(crate) fn top_ten(&self, text: &str) -> Result<Vec<Similar>> {
        let (snapshot, signature) = (self.store.snapshot()?, self.store.sketch_text(text)?);
        let mut similar = Vec::new();
        for found in snapshot.nearest(&signature, 10).run()?.iter() {
            let record = snapshot.get_id(found.id())?;
            let title = record.map(|record| String::from_utf8_lossy(record.payload()).into_owned());
            similar.push(Similar {
                address: found.key_str().unwrap_or_default().into_owned(),
                title: title.unwrap_or_default(),
                similarity: found.similarity().unwrap_or(0.0),
            });
        }
        Ok(similar)
    }

    /// Forgets the articles from before a time. Returns how many those were.
    pub(crate) fn forget_before(&self, time: u64) -> Result<u64> {
        Ok(self
            .store
            .evict(EvictPolicy::OlderThan(time))
            .run()?
            .evicted)
    }

    /// Copies the file, while articles come and go.
    pub(crate) fn backup(&self, path: &Path) -> Result<u64> {
        Ok(self.store.snapshot()?.backup(path).run()?.documents)
    }

    pub(crate) fn len(&self) -> Result<u64> {
        Ok(self.store.snapshot()?.len())
    }
}
