//! Identifiers of documents and clusters.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number that a store gives a document when it is inserted.
///
/// Numbers start at 0, rise in insertion order and are never reused: a replaced document gets a new
/// one. Sorting by id therefore sorts by time of insertion.
///
/// ```
/// use resemblance::DocumentId;
/// assert!(DocumentId::new(3) < DocumentId::new(10));
/// assert_eq!(DocumentId::new(3).get(), 3);
/// assert_eq!(DocumentId::new(3).to_string(), "3");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DocumentId(u64);

/// The number that a store gives a cluster that it keeps.
///
/// Numbers start at 0 and are never reused. A cluster that is united with a larger one gets the
/// number of that one, and its former number leads to the same cluster from then on.
///
/// ```
/// use resemblance::ClusterId;
/// assert_eq!(ClusterId::new(3).get(), 3);
/// assert_eq!(ClusterId::new(4711).to_string(), "4711");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClusterId(u64);

/// Makes and shows the ids of a type.
macro_rules! numbered {
    ($($id:ident)+) => {$(
        impl $id {
            /// Creates the id with this number.
            #[must_use]
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// Returns the number.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

numbered! { DocumentId ClusterId }
