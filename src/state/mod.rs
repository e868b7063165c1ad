//! The parts that all handles of an open store share, and the version that each commit makes.
//!
//! Imports `index`, `engine` and below. Its only operation is to open a store.

mod context;
mod full_buckets;
mod load;
mod open;
mod open_store;
mod run_set;
mod tombstones;
mod version_set;
mod writer_lock;

pub(crate) use context::{SetPlace, SharedContext, document_codes, shape_of, whole_shape_of};
pub(crate) use full_buckets::{BucketKey, FullBuckets};
pub(crate) use open::{
    create, create_in, create_in_memory, current, may_write, open, open_read_only, write_schema,
};
pub(crate) use open_store::OpenStore;
pub(crate) use run_set::{Run, RunSet};
pub(crate) use tombstones::{MergeDrops, TombstoneDelta, Tombstones};
pub(crate) use version_set::Version;
pub(crate) use writer_lock::{WriterGuard, WriterLock};
