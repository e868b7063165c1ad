//! SimHash: find every document within a Hamming distance.
//!
//! A fingerprint of 32 to 256 bits represents the whole document. Fingerprints of nearly identical
//! documents differ in few bits. A search finds *every* fingerprint within the schema's distance,
//! or within any other distance that you set. It misses nothing by chance. Beyond the distance that
//! the tables cover with whole buckets, it also reads nearby buckets, or compares with all
//! documents where that costs less; [`Matches::scope`](crate::Matches::scope) reports which.
//!
//! ```
//! use resemblance::{Schema, Signature, SimHash, Store};
//!
//! let schema = Schema::builder().simhash(SimHash::bits64().max_distance(3)).build()?;
//! println!("{schema}"); // the permuted tables, and how likely similar sets come this near
//! let store = Store::in_memory(schema)?;
//! store.insert("a", &Signature::from_simhash(0b0000))?;
//! store.insert("b", &Signature::from_simhash(0b0111))?;
//! store.insert("c", &Signature::from_simhash(0b1111))?;
//!
//! let snapshot = store.snapshot()?;
//! let asked = Signature::from_simhash(0);
//! let matches = snapshot.query(&asked).run()?;
//! let distances: Vec<_> = matches.iter().map(|found| found.distance()).collect();
//! assert_eq!(distances, [Some(0), Some(3)]);
//!
//! let further = snapshot.query(&asked).max_distance(4).run()?;
//! assert_eq!((further.len(), further.recall()), (3, None)); // none is missed
//! # Ok::<(), resemblance::Error>(())
//! ```
//!
//! [`SchemaBuilder::expected_documents`](crate::SchemaBuilder::expected_documents) determines the
//! permuted tables of a store: fewer tables take less space, and longer prefixes give fewer
//! candidates. A store with more documents still gives right answers, but reads more than
//! necessary; [`reband`](super::reband) fixes that.
