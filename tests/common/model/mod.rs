//! A store that goes through a sequence of steps beside its model: what the random sequences and the fuzzer run.

pub(crate) mod changes;
pub(crate) mod drawn;
pub(crate) mod episode;
pub(crate) mod evictions;
pub(crate) mod readers;
pub(crate) mod rebuild;
pub(crate) mod steps;
