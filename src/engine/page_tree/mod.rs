//! redb's page trees, read page by page where the engine will not: for `check` and `repair`.

mod commit;
mod page_file;
mod remains;
mod tables;
mod walk;

pub(crate) use commit::{Commit, open_commit};
pub(crate) use page_file::PageFile;
pub(crate) use remains::intact_rows;
pub(crate) use tables::{ids_of, ids_of_chunks, problem_of, row_check};
pub(crate) use walk::{KeyRange, LeafPage, Tree, Walk, WalkStep};
