//! Reading one version of a store: the view that searches read, snapshots, iteration.
//!
//! Imports `state` and below.

mod probe;
mod records;
mod snapshot_view;
mod stored_documents;
mod streams;
mod view;

pub(crate) use probe::RunReader;
pub use records::Records;
pub(crate) use snapshot_view::{SnapshotState, SnapshotView, position_in};
pub(crate) use stored_documents::StoredDocuments;
pub(crate) use view::{
    PostingTable, ReadView, Visit, VisitRow, VisitRows, VisitShare, visit_rows, visit_set,
};
