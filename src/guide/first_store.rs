//! An application that must not accept the same thing twice.
//!
//! [`Store::insert_if_new`](crate::Store::insert_if_new) looks for a near-duplicate and inserts the
//! document in one durable step. If two threads bring near-duplicates at the same moment, exactly
//! one learns that its document is new.
//!
//! ```
//! use resemblance::{MinHash, Novelty, Schema, Store, Text};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("articles.rsm");
//!
//! // Sets of three words in a row; near is an estimated Jaccard similarity of 0.7 or more.
//! let schema = Schema::builder()
//!     .text(Text::words(3))
//!     .minhash(MinHash::new(128).threshold(0.7))
//!     .build()?;
//! let store = Store::open_or_create(&path, schema)?;
//!
//! let submitted = "The committee met on Monday to discuss the budget for the coming year, and after \
//!     four hours of debate it adopted the plan that its chair had proposed in the spring.";
//! let page = store.sketch_text(submitted)?;
//! assert!(store.insert_if_new("article/17", &page)?.is_new()); // one durable step, safe from many threads
//!
//! let copy = store.sketch_text(&submitted.replace("four hours", "hours"))?;
//! match store.insert_if_new("article/18", &copy)? {
//!     Novelty::New { id, .. } => println!("inserted as document {id}"),
//!     Novelty::NearDuplicate(found) => println!("like {:?}, {:?}", found.key_str(), found.similarity()),
//!     _ => println!("the key is in the store already"),
//! }
//! assert_eq!(store.snapshot()?.len(), 1); // the copy is not in the store
//! # Ok::<(), resemblance::Error>(())
//! ```
//!
//! # Transactions
//!
//! A [`WriteTransaction`](crate::WriteTransaction) makes many changes together. All of them are in
//! the store after [`commit`](crate::WriteTransaction::commit) has returned `Ok`, and none if the
//! transaction is dropped. A [`Snapshot`](crate::Snapshot) reads one commit, whatever is written
//! meanwhile.
//!
//! ```
//! use resemblance::{MinHash, Schema, Store};
//!
//! // Without a text recipe a store takes features: here sets of words.
//! let store = Store::in_memory(Schema::builder().minhash(MinHash::new(128)).build()?)?;
//! let sketcher = store.sketcher();
//!
//! let mut transaction = store.begin_write()?;
//! transaction.insert("a", &sketcher.features(["red", "green", "blue"])?)?;
//! transaction.insert("b", &sketcher.features(["one", "two", "three"])?)?;
//! let before = store.snapshot()?;
//! transaction.commit()?;
//!
//! assert_eq!(before.len(), 0);
//! let after = store.snapshot()?;
//! let asked = sketcher.features(["blue", "green", "red"])?;
//! let matches = after.query(&asked).min_similarity(0.9).limit(10).run()?; // best first
//! assert_eq!(matches[0].key_str().as_deref(), Some("a"));
//! # Ok::<(), resemblance::Error>(())
//! ```
//!
//! [`Sketcher::weighted_features`](crate::Sketcher::weighted_features) and
//! [`Sketcher::weighted_hashes`](crate::Sketcher::weighted_hashes) take features with weights,
//! [`Sketcher::hashes`](crate::Sketcher::hashes) takes 64-bit hashes.
