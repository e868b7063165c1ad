//! Work on a stream by all threads, in the stream's order and in bounded memory.
//!
//! It knows neither corpora nor stores: whoever reads gives an iterator, and the work as a closure.

mod ordered;

pub(crate) use ordered::{BatchLimits, Pipeline, WorkerPanicked};
