//! The options that restrict a question to some of the documents of a store.

use std::ffi::OsString;
use std::path::Path;

use clap::Args;
use resemblance::Filter;

use super::common::parse_key;
use super::corpus::parse_age;
use crate::failure::{Failure, Result};
use crate::output::escape::PrintedKey;

/// The documents of a store that a question is about.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct FilterOptions {
    /// Only documents whose key begins with these bytes
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<OsString>,
    /// Only documents whose stamps are smaller than this age such as 14d (s, m, h, d, w, mo, y), stamp, or time such as
    /// 2026-01-31T08:00:00Z
    #[arg(long, value_name = "AGE|STAMP", value_parser = parse_age)]
    older_than: Option<u64>,
    /// Only documents whose stamps are at least this
    #[arg(long, value_name = "AGE|STAMP", value_parser = parse_age)]
    newer_than: Option<u64>,
}

impl FilterOptions {
    /// Returns the filter, or `None` if no option was given. `is_escaped` means that the prefix has
    /// escapes.
    pub(crate) fn filter(&self, is_escaped: bool) -> Result<Option<Filter<'static>>> {
        if self.given().is_none() {
            return Ok(None);
        }
        let mut filter = Filter::all();
        if let Some(stamp) = self.older_than {
            filter = filter.older_than(stamp);
        }
        if let Some(stamp) = self.newer_than {
            filter = filter.newer_than(stamp);
        }
        let Some(prefix) = &self.prefix else {
            return Ok(Some(filter));
        };
        match parse_key(prefix, is_escaped)? {
            PrintedKey::Key(prefix) => Ok(Some(filter.key_prefix(prefix))),
            PrintedKey::Id(id) => Err(Failure::usage(format!(
                "--prefix: found \\#{id}, expected the first bytes of keys"
            ))
            .with_note(format!("--from-id {id} starts at that document"))),
        }
    }

    /// Returns the name of an option that was given.
    fn given(&self) -> Option<&'static str> {
        let options = [
            ("prefix", self.prefix.is_some()),
            ("older-than", self.older_than.is_some()),
            ("newer-than", self.newer_than.is_some()),
        ];
        let given = options.into_iter().find(|(_, is_given)| *is_given);
        given.map(|(name, _)| name)
    }

    /// Fails if an option was given for a corpus.
    pub(crate) fn must_not_suit(&self, corpus: &Path) -> Result<()> {
        match self.given() {
            None => Ok(()),
            Some(name) => Err(Failure::usage(format!(
                "--{name} selects documents of a store, and {} is a corpus",
                corpus.display()
            ))),
        }
    }
}
