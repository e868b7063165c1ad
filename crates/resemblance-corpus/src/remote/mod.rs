//! Corpora that lie elsewhere: objects of S3 and files of web servers.
//!
//! Resolving a corpus notes the version of each object: its length, and the tag or the time by
//! which its server distinguishes versions. Each reading asks for that version. Lines and texts are
//! streamed, and tables are read in ranges. Only `transfers` uses futures.

mod address;
mod listing;
mod object;
mod ranges;
mod transfers;

pub(super) use listing::list;
pub use object::RemoteObject;
pub(super) use ranges::RangeReader;
