//! Remote corpora: objects in S3 and files on web servers.
//!
//! Resolving a corpus records the version of each object: its length, and the tag or time by which
//! its server distinguishes versions. Each reading requests that version. Lines and texts are
//! streamed; tables are read in ranges. Only `transfers` uses futures.

mod address;
mod listing;
mod object;
mod ranges;
mod transfers;

pub(super) use listing::list;
pub use object::RemoteObject;
pub(super) use ranges::RangeReader;
