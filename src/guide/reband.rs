//! Changing the threshold later.
//!
//! Signatures do not depend on the threshold. Only the bands of the index do. A store can therefore
//! change its threshold: [`Store::reband`](crate::Store::reband) reindexes all documents from the
//! stored signatures, without their texts.
//!
//! ```
//! use resemblance::{MinHash, Schema, Store, schema::Rebanding};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("seen.rsm");
//! # Store::create(&path, Schema::builder().minhash(MinHash::new(128)).build()?)?;
//!
//! let rebanding = Rebanding::new().threshold(0.6).recall(0.99);
//! let reband = Store::reband(&path, &rebanding);
//! println!("grows by {} bytes", reband.estimate()?.disk_bytes);
//! let report = reband.run()?;
//! println!("{} documents, now:\n{}", report.documents, report.schema);
//! # Ok::<(), resemblance::Error>(())
//! ```
//!
//! Threshold, recall, bands and rows, bits of a band's code, distance and number of expected
//! documents can change. Text recipe, seed, kind and number of hashes cannot, because signatures
//! depend on them. Ids, keys, payloads and stamps are kept, and the store then answers like one
//! that was created with the new schema.
//!
//! Rebanding sorts within the same memory as an offline build, and is one commit: a crash or an
//! interruption leaves the old store. No other process may have the file open. The file grows by
//! the new postings, because the old ones are kept until the end;
//! [`Store::compact`](crate::Store::compact) returns their space to the disk.
//!
//! [`Snapshot::design`](crate::Snapshot::design) and [`Stats`](crate::stats::Stats) report when a
//! store has more documents than its schema expects. To fix that, set
//! [`Rebanding::expected_documents`](crate::schema::Rebanding::expected_documents).
