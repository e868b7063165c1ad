//! Texts that are HTML: which program takes the words out of them, and how.
//!
//! The seed of a schema depends on it, so that only builds that extract the same words open a
//! store.

mod extractor;
#[cfg(feature = "html")]
mod markup;

pub use extractor::HtmlExtractor;
