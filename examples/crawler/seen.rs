//! The crawler's memory: everything that it knows is in one store.
//!
//! A page is a document. Its key is the URL, its stamp is the day of the last visit, and its
//! payload is what the crawl needs to continue, such as the links. A page that was refused leaves a
//! *note*: a document with the page's URL and the signature of an empty text. Nothing is near a
//! note, so only its key finds it; it takes a small row and lengthens no bucket. (The page that the
//! copies resemble could instead list them in its payload. But each copy would rewrite that list,
//! which is quadratic for an error page with a million URLs.)
//!
//! So the store is the whole state of a crawl: what to visit again are the pages with an older stamp, and
//! what to visit for the first time are the links of the pages that no document has for a key.

use std::collections::HashSet;
use std::path::Path;

use resemblance::{
    Document, EvictPolicy, MinHash, Novelty, Revision, Schema, Sketcher, Store, Text,
};
use serde::{Deserialize, Serialize};

use super::Result;
use super::page::Page;
use super::site::HOME;

/// The data that is stored with a signature.
#[derive(Serialize, Deserialize)]
enum Seen {
    Page {
        title: String,
        links: Vec<String>,
    },
    /// A near-duplicate of another page, of this length in bytes. It is not kept.
    CopyOf {
        url: String,
        text_bytes: u64,
    },
    NotThere,
}

/// The result of the first visit to a page.
pub(crate) enum Verdict {
    Taken,
    Copy,
}

/// The work of a day.
pub(crate) struct Plan {
    /// Pages that have not been visited on that day.
    pub(crate) due: Vec<String>,
    /// Where the known pages lead.
    pub(crate) links: Vec<String>,
    /// All URLs of which the store knows something.
    pub(crate) known: HashSet<String>,
}

/// A summary of the store after a crawl.
#[derive(Default)]
pub(crate) struct Summary {
    pub(crate) pages: u64,
    pub(crate) copies: u64,
    pub(crate) copied_bytes: u64,
    pub(crate) not_there: u64,
}

/// Any number of threads may use it at the same time: what they write at about the same moment becomes
/// durable by one sync.
pub(crate) struct SeenPages {
    store: Store,
    sketcher: Sketcher,
}

impl SeenPages {
    /// Opens the store, or creates it. Continues where the last crawl stopped, however it ended.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let store = Store::open_or_create(path, schema()?)?;
        let sketcher = store.sketcher();
        Ok(Self { store, sketcher })
    }

    /// The day of the last visit that the store knows of, if there was any.
    pub(crate) fn last_day(&self) -> Result<Option<u64>> {
        let mut last = None;
        for record in self.store.snapshot()?.iter() {
            last = last.max(Some(record?.stamp()));
        }
        Ok(last)
    }

    /// Returns the remaining work of a day. It takes memory for every URL, as the frontier does; a
    /// crawler of the whole web would keep both on disk.
    pub(crate) fn plan(&self, day: u64) -> Result<Plan> {
        let mut plan = Plan {
            due: Vec::new(),
            links: vec![HOME.to_owned()],
            known: HashSet::new(),
        };
        for record in self.store.snapshot()?.iter() {
            let record = record?;
            let url = String::from_utf8(record.key().unwrap_or_default().to_vec())?;
            if let Seen::Page { links, .. } = serde_json::from_slice(record.payload())? {
                plan.links.extend(links);
                if record.stamp() < day {
                    plan.due.push(url.clone());
                }
            }
            plan.known.insert(url);
        }
        Ok(plan)
    }

    /// Inserts a page on its first visit unless the store has a near-duplicate. If several threads
    /// bring copies of a page at the same moment, exactly one of them inserts it. When this
    /// returns, the result survives a crash.
    pub(crate) fn take(&self, url: &str, day: u64, page: &Page) -> Result<Verdict> {
        let signature = self.sketcher.text(&page.text)?;
        let payload = payload_of(page)?;
        let document = Document::new(url).stamp(day).payload(&payload);
        match self.store.insert_if_new(document, &signature)? {
            Novelty::NearDuplicate(found) => {
                let copy = Seen::CopyOf {
                    url: found.key_str().unwrap_or_default().into_owned(),
                    text_bytes: page.text.len() as u64,
                };
                self.note(url, day, &copy)?;
                Ok(Verdict::Copy)
            }
            // The frontier gives out no URL that is known.
            _ => Ok(Verdict::Taken),
        }
    }

    /// Replaces a stored page by its current version, and returns how much has changed. If nothing
    /// has changed, only the page's row is written, with the new stamp. (A page that has become a
    /// copy of another one stays, because it may change again tomorrow.)
    pub(crate) fn renew(&self, url: &str, day: u64, page: &Page) -> Result<Revision> {
        let signature = self.sketcher.text(&page.text)?;
        let payload = payload_of(page)?;
        let document = Document::new(url).stamp(day).payload(&payload);
        Ok(self.store.upsert(document, &signature)?.revision)
    }

    /// Remembers that there is nothing under a URL.
    pub(crate) fn note_missing(&self, url: &str, day: u64) -> Result<()> {
        self.note(url, day, &Seen::NotThere)
    }

    fn note(&self, url: &str, day: u64, seen: &Seen) -> Result<()> {
        let payload = serde_json::to_vec(seen)?;
        let document = Document::new(url).stamp(day).payload(&payload);
        self.store.upsert(document, &self.sketcher.text("")?)?;
        Ok(())
    }

    /// Forgets everything that was last seen before a day: pages that no longer exist, and notes,
    /// because a copy or an error may be a different page by now. Returns the number of documents.
    pub(crate) fn forget_before(&self, day: u64) -> Result<u64> {
        Ok(self.store.evict(EvictPolicy::OlderThan(day)).run()?.evicted)
    }

    /// How many transactions have been made durable since the store was opened.
    pub(crate) fn commits(&self) -> u64 {
        self.store.metrics().transactions_committed
    }

    /// Returns counts of the current content.
    pub(crate) fn summary(&self) -> Result<Summary> {
        let mut summary = Summary::default();
        for record in self.store.snapshot()?.iter() {
            match serde_json::from_slice(record?.payload())? {
                Seen::Page { .. } => summary.pages += 1,
                Seen::NotThere => summary.not_there += 1,
                Seen::CopyOf { text_bytes, .. } => {
                    summary.copies += 1;
                    summary.copied_bytes += text_bytes;
                }
            }
        }
        Ok(summary)
    }
}

/// Two pages are near-duplicates if they share four fifths of their runs of three words.
fn schema() -> Result<Schema> {
    Ok(Schema::builder()
        .text(Text::words(3))
        .minhash(MinHash::new(128).threshold(0.8))
        .build()?)
}

fn payload_of(page: &Page) -> Result<Vec<u8>> {
    Ok(serde_json::to_vec(&Seen::Page {
        title: page.title.clone(),
        links: page.links.clone(),
    })?)
}
