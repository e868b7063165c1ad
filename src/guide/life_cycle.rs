//! A store that runs for years: renew, replace and evict documents.
//!
//! [`touch`](crate::Store::touch) renews the stamp of a document in place.
//! [`upsert`](crate::Store::upsert) compares a document with its own last version, and leaves it in place if
//! nothing has changed. Evictions delete documents that are too old or too many.
//!
//! ```
//! use resemblance::{Document, EvictPolicy, MinHash, Revision, Schema, Store, Text};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("seen.rsm");
//!
//! let schema = Schema::builder().text(Text::words(3)).minhash(MinHash::new(128)).build()?;
//! let store = Store::open_or_create(&path, schema)?;
//! let visit = |url: &str, text: &str, day: u64| -> resemblance::Result<Revision> {
//!     let page = store.sketch_text(text)?;
//!     Ok(store.upsert(Document::new(url).stamp(day), &page)?.revision)
//! };
//!
//! let text = "the first of many words that stand on this page for as long as it is there";
//! assert_eq!(visit("example.org/a", text, 1)?, Revision::First);
//! assert!(matches!(visit("example.org/a", text, 7)?, Revision::Unchanged(_)));
//! match visit("example.org/a", "quite another text is here since yesterday", 8)? {
//!     Revision::Near(last) => println!("edited, {:?} like it was", last.similarity()),
//!     Revision::Different(last) => println!("new content in the place of document {}", last.id()),
//!     _ => {}
//! }
//! visit("example.org/b", "a page that nobody has asked for since", 1)?;
//! store.touch("example.org/a", 30)?;                  // "304 Not Modified"
//!
//! let report = store.evict(EvictPolicy::OlderThan(30 - 14)).run()?;  // not seen for a fortnight
//! assert_eq!((report.evicted, store.snapshot()?.len()), (1, 1));
//! store.evict(EvictPolicy::KeepNewest(1_000_000)).run()?;            // and no more than a million
//! let is_gone = |key: &[u8]| key.starts_with(b"gone.example/");
//! store.evict(EvictPolicy::matching(|document| document.key().is_some_and(is_gone))).run()?;
//! # Ok::<(), resemblance::Error>(())
//! ```
//!
//! - [`Revision::Unchanged`](crate::Revision::Unchanged) means that the whole stored signature is
//!   the same, which is more than a similarity of 1. It costs a look-up of the key and a row: no
//!   lane is probed, no posting is written, and nothing is synced if stamp and payload are the same
//!   too.
//! - [`Revision::Near`](crate::Revision::Near) means near by the schema, as in `insert_if_new`.
//! - An eviction reads the documents in pieces, with a snapshot for each, and deletes them in
//!   transactions of at most 1,000 documents
//!   ([`Operation::slice_documents`](crate::Operation::slice_documents)). The transaction rereads
//!   each document. It spares and counts documents that another thread has touched, replaced or
//!   deleted meanwhile. If the eviction is stopped, or the process crashes, the same call continues
//!   it.
//! - [`EvictPolicy::KeepNewest`](crate::EvictPolicy::KeepNewest) finds the oldest document to keep exactly, whatever the stamps,
//!   in 4 MiB of memory.
//! - [`Operation::dry_run`](crate::Operation::dry_run) only counts.
//! - A touch copies the pages that lead to its row. Each touch costs less if there are many in one
//!   transaction, or if they concern neighbouring documents.
