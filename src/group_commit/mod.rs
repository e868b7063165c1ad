//! Writes of many threads made durable together: queue, leader and followers, tickets.
//!
//! Imports `write` and below.

mod commit;
mod line;
mod queue;
mod reply;
mod write_request;

pub(crate) use line::Group;
pub use queue::{Queue, Ticket};
pub(crate) use write_request::{Answer, Call};
