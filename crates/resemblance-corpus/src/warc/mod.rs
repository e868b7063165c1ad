//! WARC files, which web crawlers write, and WET files, which hold the text of their pages.
//!
//! Its parser is its own: a reader of damaged files must be able to go back to the beginning of a
//! record and to search for the next one, in the compressed bytes and in the decompressed ones.

mod archive;
#[cfg(feature = "warc")]
mod body;
#[cfg(feature = "warc")]
mod charset;
#[cfg_attr(
    not(feature = "warc"),
    expect(dead_code, reason = "WARC is not read, and so not copied")
)]
mod head;
#[cfg(feature = "warc")]
mod member;
#[cfg(feature = "warc")]
mod page;
#[cfg(feature = "warc")]
mod records;
#[cfg(feature = "warc")]
mod rewindable;

pub use archive::{ArchiveCopy, ArchiveCounts, PageFate, RevisitTarget};
#[cfg(feature = "warc")]
pub(super) use {page::line, records::open};
