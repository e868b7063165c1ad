//! The frozen data of Unicode 17.0.0. `ucd_17/` has the Unicode Consortium's files, cut to the
//! properties that texts are read with; the tables here are generated from them, never edited.
//! Only `text` imports this, and it imports nothing.

mod assigned_17;
mod unicode_17;
mod unsettled_17;

pub(crate) use assigned_17::ASSIGNED;
pub(crate) use unicode_17::{ALPHANUMERIC, LOWER_CASE, LOWER_CASE_LONG, WHITE_SPACE};
pub(crate) use unsettled_17::UNSETTLED;
