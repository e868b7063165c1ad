//! What the crawler has seen: all that it knows, in one store.
//!
//! A page is a document: its key is the URL, its stamp the day of the last visit, its payload what it
//! takes to go on with the crawl, its links among it. A page that was refused leaves a *note*, a document
//! under its URL whose signature is that of an empty text: nothing is near it, so that it is found by its
//! key and by nothing else, costs a small row, and makes no bucket longer. (A list of copies in the payload of
//! the page that they resemble would be written anew for every one of them, which is quadratic for an
//! error page with a million URLs.)
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

/// What is kept beside a signature.
#[derive(Serialize, Deserialize)]
enum Seen {
    Page {
        title: String,
        links: Vec<String>,
    },
    /// Nearly the same as another page, so many bytes long, and not kept.
    CopyOf {
        url: String,
        text_bytes: u64,
    },
    NotThere,
}

/// What became of a page that was visited for the first time.
pub(crate) enum Verdict {
    Taken,
    Copy,
}

/// What there is to do on a day.
pub(crate) struct Plan {
    /// Pages that have not been visited on that day.
    pub(crate) due: Vec<String>,
    /// Where the known pages lead.
    pub(crate) links: Vec<String>,
    /// All URLs of which the store knows something.
    pub(crate) known: HashSet<String>,
}

/// What a store holds after a crawl.
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
    /// Opens the store, or makes one. However the last crawl ended, it goes on from here.
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

    /// What is left to do on a day. It takes memory for every URL, as the frontier does: a crawler of
    /// the whole web would keep that on disk, too.
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

    /// Takes a page that is visited for the first time, unless a page like it is there already: of many
    /// threads that bring copies of a page at the same moment, one is told that it is taken. When this
    /// returns, a crash changes nothing about it.
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

    /// Stores a page as it is now in place of what it was, and says how much has changed. Of one that has
    /// not, no more is written than its row, with the new stamp. (One that has become a copy of another page
    /// stays, for it may be another page again tomorrow.)
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

    /// Forgets what was last seen before a day: pages that are gone, and notes, for what was a copy or an
    /// error may be another page by now. Returns how many.
    pub(crate) fn forget_before(&self, day: u64) -> Result<u64> {
        Ok(self.store.evict(EvictPolicy::OlderThan(day)).run()?.evicted)
    }

    /// How many transactions have been made durable since the store was opened.
    pub(crate) fn commits(&self) -> u64 {
        self.store.metrics().transactions_committed
    }

    /// What there is now.
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

/// Pages are alike when they share four fifths of their runs of three words.
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
