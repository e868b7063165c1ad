//! Columns and values that several verbs print alike.

use resemblance::{Overlap, Schema};

use super::pair_sorter::DocumentLabel;
use super::value::{Column, ColumnKind, Value};
use crate::bug::bug;
use crate::failure::Result;

/// The columns that say how near two documents are; `similarity` names the first.
pub(crate) fn nearness_columns(schema: &Schema, similarity: &'static str) -> [Column; 2] {
    [
        Column::of(similarity, ColumnKind::Number).shown_if(schema.minhash().is_some()),
        Column::of("distance", ColumnKind::Count).shown_if(schema.simhash().is_some()),
    ]
}

/// A document in a result.
pub(crate) fn document_value(label: &DocumentLabel) -> Value<'_> {
    Value::Document {
        id: label.id(),
        key: label.key(),
    }
}

/// The longest passage that a document shares with a text that was just read, whose order is known.
pub(crate) fn longest_run(overlap: &Overlap) -> Result<u64> {
    let run = overlap.longest_run();
    Ok(run.ok_or_else(|| bug("a text without the order of its shingles"))?)
}
