//! Texts in HTML: identifies the program that extracts their words, and extracts them.
//!
//! The seed of a schema depends on the program, so that only builds that extract the same words can
//! open a store.

mod extractor;
#[cfg(feature = "html")]
mod markup;

pub use extractor::HtmlExtractor;
