//! Signatures of unions.
//!
//! Signatures that are minima can be merged: the signature of a union follows from those of its
//! parts. For example, the signature of a site can be made from those of its pages, and that of a
//! day from those of its hours. The values must be whole: a schema keeps 16 bits of them unless
//! [`value_bits`](crate::MinHash::value_bits) is
//! 32. Weighted and cut signatures, and fingerprints, cannot be merged;
//! [`Signature::merge`](crate::Signature::merge) returns an error for them.
//!
//! ```
//! use resemblance::{MinHash, Schema};
//!
//! let schema = Schema::builder().minhash(MinHash::one_pass(128).value_bits(32)).build()?;
//! let sketcher = schema.sketcher();
//! let monday = sketcher.features(["a", "b"])?;
//! let tuesday = sketcher.features(["b", "c"])?;
//! assert_eq!(monday.merge(&tuesday)?, sketcher.features(["a", "b", "c"])?);
//! # Ok::<(), resemblance::Error>(())
//! ```
