//! Kinds of signatures, both families in one store, and the bits that are kept of hashes.
//!
//! `docs/schema.md` in the repository compares the kinds. Use [`MinHash::new`](crate::MinHash::new)
//! unless you have a reason for another kind.
//!
//! ```
//! use resemblance::{MinHash, Combine, Schema, SimHash, Text};
//!
//! let schema = Schema::builder()
//!     .text(Text::words(5))
//!     .minhash(MinHash::one_pass(512).threshold(0.7))
//!     .simhash(SimHash::bits128().max_distance(6))
//!     .near(Combine::Both) // near by both; by default near by any: `Combine::Any`
//!     .build()?;
//! println!("{schema}");
//! # assert_eq!(schema.minhash().unwrap().values(), 512);
//! # Ok::<(), resemblance::Error>(())
//! ```
//!
//! # Bits a value
//!
//! A signature keeps 16 bits of each hash unless
//! [`MinHash::value_bits`](crate::MinHash::value_bits) sets another number: 1, 2, 4, 8, 16 or 32
//! (b-bit MinHash, Li and König 2010). The estimate is unbiased; its variance is (1 − J)(J + 1 /
//! (2ᵇ − 1)) / k. The bands are made of the hashes as they are stored, and chosen so that they
//! reach the recall when chance agreement is taken into account.
//!
//! ```
//! use resemblance::{MinHash, Schema};
//!
//! let schema = Schema::builder().minhash(MinHash::new(128).value_bits(1)).build()?;
//! let deviation = schema.minhash().unwrap().variance(0.8).sqrt();
//! assert_eq!(format!("{deviation:.4}"), "0.0530");
//! # Ok::<(), resemblance::Error>(())
//! ```
