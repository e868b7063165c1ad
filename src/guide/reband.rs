//! Another threshold, later.
//!
//! Signatures do not depend on the threshold; only the bands that they are indexed by do. So a store can change
//! its mind: [`Store::reband`](crate::Store::reband) indexes all documents again, from the signatures that it
//! holds and without their texts.
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
//! Rebanding sorts within the memory that an offline build takes, and is one commit: a crash or an
//! interruption leaves the old store. Nobody else may have the file open. The file grows by the new
//! postings, because the old ones are kept to the end; [`Store::compact`](crate::Store::compact)
//! gives their space back.
//!
//! [`Snapshot::design`](crate::Snapshot::design) and [`Stats`](crate::stats::Stats) report when a
//! store has more documents than its schema expects.
//! [`Rebanding::expected_documents`](crate::schema::Rebanding::expected_documents) fixes that.
