//! Tables of Unicode 17, generated and frozen.

#[cfg(feature = "languages")]
mod assigned_17;
mod unicode_17;

#[cfg(feature = "languages")]
pub(crate) use assigned_17::ASSIGNED;
pub(crate) use unicode_17::{ALPHANUMERIC, LOWER_CASE, LOWER_CASE_LONG, WHITE_SPACE};
