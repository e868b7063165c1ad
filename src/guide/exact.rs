//! Exact similarities instead of estimates.
//!
//! The module [`exact`](crate::exact) computes the values that signatures estimate: Jaccard,
//! weighted Jaccard and probability Jaccard similarity, and the containment of two sets. It also
//! computes cosine, Dice and overlap coefficients, and for fingerprints the Hamming distance and
//! the angle that it represents.
//!
//! If the documents are available, a closure gives exact similarities: `Query::verify`,
//! [`Join::verify`](crate::Join::verify) and [`InsertMany::verify`](crate::InsertMany::verify) call
//! it for every candidate. [`Match::is_exact`](crate::Match::is_exact) and
//! [`Pair::is_exact`](crate::Pair::is_exact) are true where it answered.
//! [`Sketcher::feature_hashes`](crate::Sketcher::feature_hashes) makes the sets to compare.
//!
//! Without the documents, a store of a schema that is [exact](crate::SchemaBuilder::exact) does the same: it keeps the sets.
//!
//! Verification makes the precision 1. It leaves the recall as it is: a pair that shares no band is still not a
//! candidate.
//!
//! ```
//! use resemblance::exact::{FeatureSet, containment, jaccard};
//! use resemblance::{Document, MinHash, Schema, Store, Text};
//!
//! let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(128)).build()?;
//! let store = Store::in_memory(schema)?;
//! let stored = ["a b c d e f g h i j", "k l m"];
//! for text in stored {
//!     store.insert(Document::without_key(), &store.sketch_text(text)?)?; // ids 0 and 1
//! }
//!
//! let features = |text| -> resemblance::Result<FeatureSet<u64>> {
//!     Ok(store.sketcher().feature_hashes(text)?.into_iter().collect())
//! };
//! let page = "a b c d e f g h i j k";
//! let asked = features(page)?;
//! let snapshot = store.snapshot()?;
//! let matches = snapshot
//!     .query(&store.sketch_text(page)?)
//!     .verify(|id| Ok(Some(jaccard(&asked, &features(stored[id.get() as usize])?))))
//!     .run()?;
//! assert_eq!(matches[0].similarity(), Some(10.0 / 11.0));
//! assert!(matches[0].is_exact());
//! assert_eq!(containment(&features(stored[0])?, &asked), 1.0);
//! # Ok::<(), resemblance::Error>(())
//! ```
