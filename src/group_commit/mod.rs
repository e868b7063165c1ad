//! Makes the writes of many threads durable together: queue, leader and followers, tickets.
//!
//! Imports `write` and below.

mod commit_queue;
mod leader;
mod queue;
mod reply;
mod write_request;

pub use leader::Closed;
pub(crate) use leader::GroupCommitHandle;
pub use queue::{Queue, Ticket};
pub(crate) use write_request::WriteRequest;
