//! Reads the rows of `meta`, as far as they are intact.

use crate::engine::{Commit, Tree};
use crate::error::{Error, Result};
use crate::format::{Header, State, decode_meta, header};
use crate::maintain::repair::damaged_rows::each_row;
use crate::maintain::repair::loss_report::LossReport;
use crate::maintain::stored_keys::row_check;
use resemblance_sketch::schema::{Schema, UncheckedSchema};
use resemblance_sketch::sketch::DocumentFrequencies;

#[derive(Clone, Debug, Default)]
pub(super) struct MetaRows {
    pub(super) header: Option<Header>,
    pub(super) schema: Option<Schema>,
    pub(super) self_test: Option<(u64, u64)>,
    pub(super) state: Option<State>,
    pub(super) weights: Option<DocumentFrequencies>,
}

impl MetaRows {
    pub(crate) fn read(commit: &Commit, table: Option<&Tree>, losses: &mut LossReport) -> Self {
        let mut rows = Self::default();
        let mut errors = Vec::new();
        if let Some(table) = table {
            let take = |key: &[u8], row: Result<&[u8]>| {
                errors.extend(row.and_then(|row| rows.take(key, row)).err());
            };
            each_row(commit, table, losses, take, |_| {});
        }
        for error in errors {
            losses.error(error);
        }
        let is_there = [
            (header::HEADER, rows.header.is_some()),
            (header::SCHEMA, rows.schema.is_some()),
            (header::SELF_TEST, rows.self_test.is_some()),
            (header::STATE, rows.state.is_some()),
        ];
        for (name, _) in is_there.iter().filter(|(_, is_there)| !is_there) {
            let place = format!("table meta, row {name}");
            losses.error(Error::corrupt(place, "it cannot be read"));
        }
        rows
    }

    /// Takes a row over, if it is one of ours and intact.
    pub(super) fn take(&mut self, key: &[u8], row: &[u8]) -> Result<()> {
        row_check(header::META, key, row)?;
        match std::str::from_utf8(key) {
            Ok(header::HEADER) => self.header = Some(Header::decode(row)?),
            Ok(header::SCHEMA) => {
                let schema: UncheckedSchema = decode_meta(header::SCHEMA, row)?;
                self.schema = Some(schema.into_unchecked());
            }
            Ok(header::SELF_TEST) => self.self_test = Some(decode_meta(header::SELF_TEST, row)?),
            Ok(header::WEIGHTS) => self.weights = Some(header::decode_weights(row)?),
            Ok(header::STATE) => self.state = Some(decode_meta(header::STATE, row)?),
            _ => {}
        }
        Ok(())
    }

    /// Takes missing values from rows that were found elsewhere. The state of another commit does
    /// not apply to this one.
    pub(super) fn complete(&mut self, other: &Self) {
        self.header = self.header.or(other.header);
        self.self_test = self.self_test.or(other.self_test);
        if self.schema.is_none() {
            self.schema.clone_from(&other.schema);
        }
        if self.weights.is_none() {
            self.weights.clone_from(&other.weights);
        }
    }

    /// Returns the schema of the file, or else the given one, if this build computes the same
    /// hashes as the build that made the store.
    pub(super) fn usable_schema(&self, given: Option<&Schema>) -> Result<Schema> {
        if let Some(header) = &self.header
            && !header.admit()?
        {
            // A newer release wrote what this one would leave out.
            return Err(Error::ReadOnly);
        }
        let readable = self.schema.as_ref().or(given).cloned();
        let mut schema = readable.ok_or_else(|| {
            let detail = "it cannot be read; give the schema of the store";
            Error::corrupt("table meta, row schema", detail)
        })?;
        let given_weights = given.and_then(Schema::weights);
        if let Some(weights) = self.weights.as_ref().or(given_weights) {
            schema = schema.with_weights(weights.clone())?;
        }
        header::check_schema(&schema)?;
        let sketcher = schema.sketcher();
        let found = (sketcher.recipe_mark().fingerprint, sketcher.self_test()?);
        match self.self_test {
            Some(expected) if expected.0 != found.0 => Err(Error::InvalidParameter {
                parameter: "schema",
                found: format!("one whose signatures are made by recipe {:016x}", found.0),
                expected: format!("the store's, by recipe {:016x}", expected.0),
            }),
            Some(expected) if expected != found => Err(Error::SelfTest {
                detail: format!("found {found:016x?}, expected {expected:016x?}"),
            }),
            _ => Ok(schema),
        }
    }
}
