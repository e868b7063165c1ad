//! Whether a store keeps its invariants: rows against postings, both ways, and every page.

mod check;
mod filters;
mod pages;

pub(crate) use check::{check_file, check_snapshot};
