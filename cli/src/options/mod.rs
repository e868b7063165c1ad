//! The options that several verbs share.
//!
//! An option becomes a value of the library or of `output` here; it knows no verb.

mod bounds;
mod common;
mod corpus;
mod difference;
mod filter;
mod format;
mod join;
mod keep;
mod schema;
mod text;
mod verify;

pub(crate) use bounds::{
    BoundOptions, ByOptions, JoinLimits, PassageOptions, euclidean, parse_euclidean,
};
pub(crate) use common::{CommonOptions, parse_key, parse_keys, parse_seconds, read_keys};
pub(crate) use corpus::{CorpusOptions, StoredOptions, now, parse_age, parse_stamp};
pub(crate) use difference::differing_options;
pub(crate) use filter::FilterOptions;
pub(crate) use format::FormatOptions;
pub(crate) use join::{JoinOptions, ReadOptions, parse_part, parse_share};
pub(crate) use keep::{KeepRule, PolicyName, SurvivorOptions};
pub(crate) use schema::{ClusterOptions, SchemaOptions, TableGroups, parse_bits, simhash_of};
pub(crate) use text::default_text;
pub(crate) use verify::{
    VerifyOptions, must_compare_sets, must_have_similarities, must_use_texts, similarity_name,
};
