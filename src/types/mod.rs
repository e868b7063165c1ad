//! The types that callers pass and receive: documents, matches, reports, progress.
//!
//! Imports no other folder but `sketch`. Any folder may import it.

/// Lets an answer be read as the list that it has in a field, and iterated over.
macro_rules! dereferences_to_list {
    ($answer:ident, $list:ident: $item:ident) => {
        impl std::ops::Deref for $answer {
            type Target = [$item];

            fn deref(&self) -> &[$item] {
                &self.$list
            }
        }

        impl IntoIterator for $answer {
            type Item = $item;
            type IntoIter = std::vec::IntoIter<$item>;

            fn into_iter(self) -> Self::IntoIter {
                self.$list.into_iter()
            }
        }

        impl<'m> IntoIterator for &'m $answer {
            type Item = &'m $item;
            type IntoIter = std::slice::Iter<'m, $item>;

            fn into_iter(self) -> Self::IntoIter {
                self.$list.iter()
            }
        }
    };
}

mod certainty;
mod check_report;
mod cluster_change;
mod document;
mod filter;
mod matches;
mod novelty;
mod operation;
mod overlaps;
mod progress;

pub(crate) use crate::id::DocumentId;
pub use certainty::Certainty;
#[doc(hidden)]
pub use certainty::CertaintyBasis;
pub use check_report::{CheckReport, Problem};
pub use cluster_change::{ClusterChange, ClusterEvent};
pub use document::{Document, Record, StoredDocument, key_text};
pub(crate) use document::{KEY_LIMIT_BYTES, PAYLOAD_LIMIT_BYTES};
pub use filter::Filter;
pub use matches::{BudgetExceeded, Match, Matches, Scope};
pub use novelty::{Novelty, Revision, Upserted};
pub(crate) use operation::ReportSettings;
pub use operation::{Operation, Report};
pub use overlaps::{FrequentPassage, Overlap, Overlaps, PlacedPassage};
pub use progress::{Phase, Progress, Watch};
