//! Reads redb's page trees page by page, to check and repair files that the engine refuses.

mod commit;
mod page_file;
mod remains;
mod walk;

pub use commit::{Commit, HeadDamage, open_commit};
pub use page_file::PageFile;
pub use remains::intact_rows;
pub use walk::{KeyRange, LeafPage, PageDamage, Tree, Walk, WalkStep};
