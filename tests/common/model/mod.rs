//! Runs a sequence of steps on a store and on its model. The random sequences and the fuzzer use
//! it.

pub(crate) mod changes;
pub(crate) mod drawn;
pub(crate) mod episode;
pub(crate) mod evictions;
pub(crate) mod readers;
pub(crate) mod rebuild;
pub(crate) mod steps;
