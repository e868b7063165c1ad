//! Signatures that were made elsewhere.
//!
//! Values of 32 bits ([`Signature::from_minhash`](crate::Signature::from_minhash)), of 64 bits
//! ([`from_minhash64`](crate::Signature::from_minhash64), which cuts them to 32 by a hash, after which they are
//! no minima any more), the smallest hashes of a set ([`from_bottom_k`](crate::Signature::from_bottom_k), for a
//! schema of [`MinHash::bottom_k`](crate::MinHash::bottom_k)) and fingerprints
//! ([`from_simhash`](crate::Signature::from_simhash), [`from_fingerprint`](crate::Signature::from_fingerprint)) are
//! stored, indexed and compared like any others. [`MinHash::external`](crate::MinHash::external) declares their
//! number, and with [`value_bits`](crate::MinHash::value_bits) their width, 32 bits if not given. Values may be given
//! with that width, or whole: then their lowest bits are kept. A store of external signatures takes no texts. The
//! caller answers for their having been made alike.
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
