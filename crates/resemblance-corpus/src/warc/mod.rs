//! WARC files, which web crawlers write, and WET files, which hold the text of their pages.
//!
//! Its parser is its own: a reader of damaged files must be able to go back to the beginning of a
//! record and to search for the next one, in the compressed bytes and in the decompressed ones.

mod body;
mod charset;
mod head;
mod member;
mod page;
mod records;
mod rewindable;

pub(super) use records::open;
