//! Finds the stored documents that share passages with a signature.

mod placed_passages;
mod request;
mod shared_hashes;

pub use request::ContainmentQuery;
pub(crate) use request::ShareOf;
