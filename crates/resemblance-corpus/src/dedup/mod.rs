//! Removes near-duplicates from a corpus.
//!
//! A [`Deduplicator`] decides on documents as they arrive: a document is kept unless it is near one
//! that was kept before. If all documents are in a collection or a store, [`duplicates`] lists
//! those to remove, by one of three policies and the caller's preference. Both compare by
//! estimates, or exactly if [`FeatureSets`](crate::verification::FeatureSets) contain the features.
//! [`RepeatedParts`] removes paragraphs and lines that have appeared in an earlier text.

mod contained;
mod deduplicator;
mod duplicates;
mod equal_documents;
mod evidence;
mod in_order;
mod policy;
mod repeats;
mod review;
mod stored;

pub use deduplicator::Deduplicator;
pub use duplicates::{Duplicate, Duplicates, duplicates};
pub use equal_documents::EqualDocuments;
pub(crate) use evidence::RejectedCandidates;
pub use evidence::{ComparedCandidate, DropRule, FeatureShares};
pub use policy::{DedupPolicy, Preference};
pub use repeats::{RepeatedParts, TextPart, TextParts, Trimmed};
pub use review::{ReviewSample, ReviewSide};
pub use stored::{StoredHolders, StoredSets};
