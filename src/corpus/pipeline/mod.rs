//! Work on a stream by all threads, in the stream's order and in bounded memory: a corpus sketched.
//!
//! It knows neither texts nor stores: whoever reads gives an iterator, and the work as a closure.
//! It imports `error` and `invariant` alone.

mod ordered;

pub use ordered::{BatchLimits, Pipeline, WorkerPanicked};
