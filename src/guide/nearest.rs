//! How to find the documents that are most similar to a text, however dissimilar they are.
//!
//! A [query](crate::Snapshot::query) returns the documents within the bounds of the schema, mostly
//! near-duplicates. [`Snapshot::nearest`](crate::Snapshot::nearest) returns the `n` nearest
//! documents, if the store has that many: related articles, the source of a quotation, a neighbour
//! to vote with.
//!
//! ```
//! use resemblance::{MinHash, Schema, Store, Text};
//!
//! let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(128)).build()?;
//! let store = Store::in_memory(schema)?;
//! for text in [
//!     "onions garlic tomatoes basil pasta",
//!     "onions garlic carrots celery lentils",
//!     "flour sugar butter eggs",
//! ] {
//!     store.insert(text, &store.sketch_text(text)?)?;
//! }
//! let snapshot = store.snapshot()?;
//! let asked = store.sketch_text("garlic onions tomatoes rice")?;
//! assert!(snapshot.query(&asked).run()?.is_empty()); // none is a near-duplicate
//!
//! let nearest = snapshot.nearest(&asked, 2).run()?;
//! assert_eq!(nearest[0].key_str().as_deref(), Some("onions garlic tomatoes basil pasta"));
//! assert_eq!(nearest[1].key_str().as_deref(), Some("onions garlic carrots celery lentils"));
//! # Ok::<(), resemblance::Error>(())
//! ```
//!
//! # What does it cost?
//!
//! The search first reads the buckets of a query, then the documents that share the first two rows
//! of a band, then all signatures. It stops when documents as near as the last one are found with a
//! probability of 0.9, or of [`min_recall`](crate::Nearest::min_recall).
//! [`Matches::scope`](crate::Matches::scope) and [`Matches::recall`](crate::Matches::recall) report
//! how far it went.
//!
//! With 128 values and the threshold 0.8 there are 13 bands. Their first two rows find a document
//! of similarity J with the probability 1 − (1 − J²)¹³: 0.98 at 0.5, 0.90 at 0.4, 0.71 at 0.3. If
//! there are ten documents of similarity 0.5, the search therefore reads few others; if the tenth
//! nearest has 0.3, several threads read all signatures. More bands find more: [`banding(32,
//! 4)`](crate::MinHash::banding) takes 100 bytes a document more than 13 bands of 7 rows, and the
//! first two rows of its bands find 0.95 at 0.3.
//!
//! Many signatures in one search, `snapshot.nearest(&many, n)`, share the scan.
//!
//! # How near are they really?
//!
//! Documents are ordered by estimates, which cannot separate documents that are almost equally
//! near. If the texts are available, [`verify`](crate::Nearest::verify) lets their exact
//! similarities decide which documents are the nearest, and in which order; each match records
//! whether its similarity [is exact](crate::Match::is_exact).
//!
//! # And if the store is too large?
//!
//! A search can answer [without a scan](crate::Nearest::without_scan); it may then return fewer
//! documents or have a lower recall, which the answer reports. It can also find [anything
//! near](crate::Nearest::within): one document within a distance, 1 − J, or none, with the
//! probability that one would have been found.
//!
//! ```
//! # use resemblance::{MinHash, Schema, Store};
//! # let store = Store::in_memory(Schema::builder().minhash(MinHash::new(128)).build()?)?;
//! # let sketcher = store.sketcher();
//! store.insert("a", &sketcher.features(["red", "green", "blue"])?)?;
//! let snapshot = store.snapshot()?;
//! let asked = sketcher.features(["one", "two", "three"])?;
//! let near = snapshot.nearest(&asked, 1).within(0.3, 1.5)?; // within 0.45, or none within 0.3
//! assert!(near.is_empty() && near.recall() >= Some(0.9));
//! # Ok::<(), resemblance::Error>(())
//! ```
