//! SimHash: find every document within a Hamming distance.
//!
//! A fingerprint of 64 or 128 bits stands for the whole document. Fingerprints of nearly identical documents
//! differ in few bits. A search within the schema's distance finds *every* fingerprint that is there; nothing
//! is missed by chance. A greater distance is an error, unless the caller asks for a
//! [`scan`](crate::Query::scan) of all documents.
//!
//! ```
//! use resemblance::{Error, Schema, Signature, SimHash, Store};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("fingerprints.rsm");
//!
//! let schema = Schema::builder().simhash(SimHash::bits64().max_distance(3)).build()?;
//! println!("{schema}"); // the permuted tables, and how likely similar sets come this near
//! let store = Store::create(&path, schema)?;
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
//! let too_far = snapshot.query(&asked).max_distance(4).run();
//! assert!(matches!(too_far, Err(Error::InvalidParameter { .. })));
//! assert_eq!(snapshot.query(&asked).max_distance(4).scan().run()?.len(), 3);
//! # Ok::<(), resemblance::Error>(())
//! ```
//!
//! [`SchemaBuilder::expected_documents`](crate::SchemaBuilder::expected_documents) decides how many permuted
//! tables a store gets: more tables take more room and read fewer candidates. A store that outgrows the number
//! still answers right, but reads more than it needs to; [`reband`](super::reband) mends that.
