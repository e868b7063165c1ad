//! What stands in the place of results as Parquet in a build without the feature `tables`.

use std::convert::Infallible;

use super::column_kind::{ColumnKind, TypedValue};
use super::destination::Destination;
use crate::failure::{Failure, Result};

/// Nothing: this build writes none.
pub(super) struct ParquetRows(Infallible);

impl ParquetRows {
    pub(super) fn new(_: &[(&'static str, ColumnKind)], _: Destination) -> Result<Self> {
        Err(Failure::usage(
            "this build does not write Parquet; cargo install --path cli --features tables makes one that \
             does",
        ))
    }

    pub(super) fn row<'a>(&mut self, _: impl Iterator<Item = TypedValue<'a>>) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn finish(self) -> Result<()> {
        match self.0 {}
    }
}
