//! Texts that are HTML: which program takes the words out of them, and how.
//!
//! The seed of a schema tells it, so that stores are opened by builds alone that take the same words.

mod extractor;
#[cfg(feature = "html")]
mod markup;

pub use extractor::HtmlExtractor;
