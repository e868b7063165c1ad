//! Writes of many threads made durable together: queue, leader and followers, tickets.
//!
//! Imports `write` and below.

mod commit_queue;
mod line;
mod queue;
mod reply;
mod write_request;

pub(crate) use commit_queue::CommitQueueHandle;
pub use queue::{Queue, Ticket};
