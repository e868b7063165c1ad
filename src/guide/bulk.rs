//! A corpus owner builds a store offline and lists near-duplicates.
//!
//! [`Store::bulk_build`](crate::Store::bulk_build) sorts within the memory that it is given, and
//! beyond it in a temporary file. It is all or nothing: no file of that name exists before
//! [`finish`](crate::BulkBuild::finish) has returned.
//!
//! ```
//! use resemblance::{BulkOptions, Document, MinHash, Schema, Store, Text};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("corpus.rsm");
//! # let corpus = [("a", "one two three four five six"), ("b", "one two three four five six"), ("c", "else")];
//!
//! let schema = Schema::builder().text(Text::words(5)).minhash(MinHash::new(128)).build()?;
//! println!("{schema}"); // bands, rows, and the probability of finding a pair around the threshold
//!
//! let sketcher = schema.sketcher(); // clone it into as many threads as you like
//! let mut build = Store::bulk_build(&path, schema, &BulkOptions::new().memory_bytes(512 << 20))?;
//! for (key, text) in corpus {
//!     build.insert(Document::new(key), &sketcher.text(text)?)?;
//! }
//! build.finish()?;
//!
//! let snapshot = Store::open(&path)?.snapshot()?;
//! for pair in snapshot.pairs().min_similarity(0.9).run()? {
//!     let pair = pair?;
//!     println!("{} {} {:?}", pair.a, pair.b, pair.similarity);
//! }
//! for cluster in snapshot.clusters().run()? {
//!     println!("keep {}, drop {:?}", cluster[0], &cluster[1..]);
//! }
//! # assert_eq!(snapshot.clusters().run()?.count(), 1);
//! # Ok::<(), resemblance::Error>(())
//! ```
//!
//! [`BulkOptions::estimate`](crate::BulkOptions::estimate) estimates what a build needs, and
//! [`Join::estimate`](crate::Join::estimate) what listing pairs or clusters needs.
//! [`Join`](crate::Join) sets the number of threads and bounds the work in a large bucket;
//! [`Pairs::left_out`](crate::Pairs::left_out) then counts the pairs that were not compared.
