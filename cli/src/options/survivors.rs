//! The options that say which of several near-duplicates survive.

use std::fmt;
use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::keep::KeepRule;

/// Of which documents one is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyName {
    /// Drop a document that is a near-duplicate of an earlier one that was kept
    First,
    /// Keep one document of each cluster, as `clusters` lists them
    Cluster,
    /// Keep documents with many near-duplicates, and drop these: as first, but in the order of their number
    Representative,
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::First => "first",
            Self::Cluster => "cluster",
            Self::Representative => "representative",
        })
    }
}

/// Which documents survive.
#[derive(Debug, Args)]
pub(crate) struct SurvivorOptions {
    /// Also drop near-duplicates of documents in this store, whose schema is used. A store has no texts,
    /// so documents are compared with it by estimate
    #[arg(long, value_name = "STORE")]
    pub(crate) against: Option<PathBuf>,
    /// The corpus that this store was made of, or a part of it: the similarity to documents whose texts
    /// are there is exact
    #[arg(long, value_name = "CORPUS", num_args = 1.., requires = "against")]
    pub(crate) texts: Vec<PathBuf>,
    /// Which documents survive
    #[arg(long, value_name = "POLICY", default_value = "first")]
    pub(crate) policy: PolicyName,
    /// Which of several near-duplicates survives: first, last, longest, or the one with the greatest or
    /// the least number in a field, such as quality:max or price:min; the earlier one of two alike. A
    /// document without that number comes last. Unless it is first, all documents are read before any is
    /// decided
    #[arg(long, value_name = "RULE", default_value = "first")]
    pub(crate) keep: KeepRule,
    /// Compare a document with at most N candidates, those that share the most buckets with it. This
    /// bounds the time where texts have much boilerplate, but some near-duplicates may stay. Documents
    /// with more candidates are counted. For --policy first
    #[arg(long, value_name = "N")]
    pub(crate) budget: Option<NonZeroU64>,
}
