//! Copies, documents that move between stores, and damaged files.
//!
//! [`Snapshot::backup`](crate::Snapshot::backup) copies a store while all threads continue reading
//! and writing. The copy is the snapshot, with the same ids and answers. Every checksum is verified
//! on the way, and the file gets its name only when it is complete and durable.
//! [`Snapshot::export`](crate::Snapshot::export) writes documents as a stream that
//! [`Store::import`](crate::Store::import) reads into another store with the same recipe, whatever
//! its bands.
//!
//! ```
//! use resemblance::{ExistingKeys, MinHash, Schema, Store, Text};
//! # let folder = tempfile::tempdir()?;
//! # let file = |name: &str| folder.path().join(name);
//! # let schema = |threshold| {
//! #     let minhash = MinHash::new(128).threshold(threshold);
//! #     Schema::builder().text(Text::words(2)).minhash(minhash).build()
//! # };
//! # let store = Store::create(file("seen.rsm"), schema(0.8)?)?;
//! # store.insert("a", &store.sketch_text("to be or not to be, that is the question")?)?;
//! let report = store.snapshot()?.backup(file("monday.rsm")).run()?; // while the store is in use
//! assert_eq!(report.documents, 1);
//!
//! let stream = std::fs::File::create(file("seen.stream"))?;
//! store.snapshot()?.export(stream).run()?;                      // keys, stamps, payloads, signatures
//! let other = Store::create(file("other.rsm"), schema(0.6)?)?;  // other bands, the same recipe
//! let stream = std::fs::File::open(file("seen.stream"))?;
//! let report = other.import(stream).existing_keys(ExistingKeys::Skip).run()?;
//! assert_eq!(report.inserted, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Damage
//!
//! [`Store::check`](crate::Store::check) reads every page and every row, and names each that is damaged.
//! [`Store::repair`](crate::Store::repair) makes a new store of every document that can still be read.
//!
//! ```
//! use resemblance::{MinHash, Schema, Store};
//! # let folder = tempfile::tempdir().unwrap();
//! # let file = |name: &str| folder.path().join(name);
//! # let made = Store::create(file("seen.rsm"), Schema::builder().minhash(MinHash::new(128)).build()?)?;
//! # made.insert("a", &made.sketcher().features(["x"])?)?;
//! # drop(made);
//!
//! let report = Store::check(file("seen.rsm")).run()?;
//! assert!(report.is_clean());
//!
//! let report = Store::repair(file("seen.rsm"), file("new.rsm")).run()?;
//! assert!(report.is_complete());
//! # Ok::<(), resemblance::Error>(())
//! ```
