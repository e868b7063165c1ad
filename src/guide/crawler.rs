//! A crawler shares one store between its threads, remembers when it saw each page, and reads while it
//! writes.
//!
//! ```
//! use resemblance::{Document, Schema, SimHash, Store, Text};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("seen.rsm");
//!
//! let schema = Schema::builder()
//!     .text(Text::words(3))
//!     .simhash(SimHash::bits64().max_distance(3))
//!     .expected_documents(10_000_000) // decides the number of permuted tables
//!     .build()?;
//! let store = Store::open_or_create(&path, schema)?;
//!
//! std::thread::scope(|scope| {
//!     for worker in 0..4 {
//!         let store = store.clone();
//!         scope.spawn(move || -> resemblance::Result<()> {
//!             let url = format!("https://example.org/{worker}");
//!             let page = store.sketch_text("every worker fetched the very same page")?;
//!             let document = Document::new(&url).stamp(1_700_000_000).payload(b"text/html");
//!             // Durable when it returns, by a sync that it may share with other threads.
//!             if store.insert_if_new(document, &page)?.is_new() {
//!                 println!("{url} is new");
//!             }
//!             Ok(())
//!         });
//!     }
//! });
//! assert_eq!(store.snapshot()?.len(), 1); // exactly one of them was new
//! # Ok::<(), resemblance::Error>(())
//! ```
//!
//! A key, a stamp and a payload belong to a document. Here the key is the URL, the stamp the time
//! of the visit and the payload the media type; a crawler can also put a page's links into the
//! payload, so that after a crash the store knows which pages are still to be fetched.
//! `examples/crawler` in the repository is a complete crawler of that kind.
//! [`life_cycle`](super::life_cycle) shows how pages are renewed and evicted,
//! [`group_commit`](super::group_commit) how threads share syncs.
