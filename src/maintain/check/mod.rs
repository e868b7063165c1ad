//! Checks the invariants of a store: rows against postings, both ways, and every page.

mod checker;
mod filters;
mod kept_clusters;
mod pages;

pub(crate) use checker::{check_file, check_snapshot};
