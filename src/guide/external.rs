//! Signatures that another program made.
//!
//! A store keeps, indexes and compares signatures of another program like any others. Create them
//! from values of 32 bits ([`Signature::from_minhash`](crate::Signature::from_minhash)), from
//! values of 64 bits ([`from_minhash64`](crate::Signature::from_minhash64), which hashes them to 32
//! bits, so that they are not minima afterwards), from the smallest hashes of a set
//! ([`from_bottom_k`](crate::Signature::from_bottom_k), for a schema of
//! [`MinHash::bottom_k`](crate::MinHash::bottom_k)), or from fingerprints
//! ([`from_simhash`](crate::Signature::from_simhash),
//! [`from_fingerprint`](crate::Signature::from_fingerprint)).
//! [`MinHash::external`](crate::MinHash::external) declares the number of values, and
//! [`value_bits`](crate::MinHash::value_bits) their width (default: 32 bits). Wider values are
//! accepted too, and the store keeps their lowest bits. A store of external signatures does not
//! accept texts. The caller must ensure that all signatures are made in the same way.
//!
//! ```
//! use resemblance::{MinHash, Schema, Signature, Store};
//! # let made_elsewhere = |page: u64| (0..128).map(|i| i / 120 * page).collect::<Vec<u64>>();
//!
//! let schema = Schema::builder().minhash(MinHash::external(128).threshold(0.8)).build()?;
//! let store = Store::in_memory(schema)?;
//! store.insert("page/1", &Signature::from_minhash64(&made_elsewhere(1)))?;
//!
//! let copy = Signature::from_minhash64(&made_elsewhere(2));
//! let matches = store.snapshot()?.query(&copy).run()?;
//! assert_eq!(matches[0].key_str().as_deref(), Some("page/1"));
//! # Ok::<(), resemblance::Error>(())
//! ```
