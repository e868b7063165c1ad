//! What stands in a column of results, for forms that have types.

/// The kind of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// A document: its number and its key.
    Document,
    /// A string.
    Text,
    /// An integer from 0 on.
    Count,
    /// A number.
    Number,
}

/// A value of a result, as forms with types take it.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(feature = "tables"),
    allow(
        dead_code,
        reason = "Parquet is the form with types, which such a build has not"
    )
)]
pub(super) enum TypedValue<'a> {
    Document(u64, Option<&'a [u8]>),
    Text(Option<&'a [u8]>),
    Count(Option<u64>),
    Number(Option<f64>),
    /// One that has no type of these.
    Other,
}
