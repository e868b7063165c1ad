//! Signatures of unions.
//!
//! Signatures that are minima can be merged: the signature of a union follows from those of its parts. A site's
//! signature can be made of its pages', or a day's of its hours'. Weighted and cut signatures, and fingerprints,
//! cannot be merged; [`Signature::merge`](crate::Signature::merge) returns an error for them.
//!
//! ```
//! use resemblance::{MinHash, Schema};
//!
//! let sketcher = Schema::builder().minhash(MinHash::one_pass(128)).build()?.sketcher();
//! let monday = sketcher.features(["a", "b"])?;
//! let tuesday = sketcher.features(["b", "c"])?;
//! assert_eq!(monday.merge(&tuesday)?, sketcher.features(["a", "b", "c"])?);
//! # Ok::<(), resemblance::Error>(())
//! ```
