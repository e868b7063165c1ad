//! redb's page trees, read page by page where the engine will not: to check and to repair.

mod commit;
mod page_file;
mod remains;
mod walk;

pub use commit::{Commit, HeadDamage, open_commit};
pub use page_file::PageFile;
pub use remains::intact_rows;
pub use walk::{KeyRange, LeafPage, PageDamage, Tree, Walk, WalkStep};
