//! Many threads, and asynchronous programs.
//!
//! The one-call verbs of [`Store`](crate::Store), such as [`insert_if_new`](crate::Store::insert_if_new),
//! [`insert`](crate::Store::insert), [`upsert`](crate::Store::upsert), [`touch`](crate::Store::touch) and
//! [`remove`](crate::Store::remove), are durable when they return, and any number of threads may call
//! them. Calls that arrive during a commit are gathered; one transaction makes them in the order of their
//! arrival, and one sync makes all of them durable. There is no background thread: the first caller in a
//! group commits for all of them, and a lone writer pays nothing extra.
//!
//! [`StoreOptions::group_calls`](crate::StoreOptions::group_calls) bounds the size of a group, and
//! [`StoreOptions::group_wait`](crate::StoreOptions::group_wait) how long a call waits for others.
//! While threads wait for their turn with `insert_if_new`, they search the committed documents, so
//! that a page that is already in the store is answered without a transaction. Explicit
//! transactions ([`begin_write`](crate::Store::begin_write)) wait in the same queue, first come,
//! first served. If a thread that holds one would wait for itself, it gets
//! [`Error::Busy`](crate::Error::Busy).
//!
//! # Asynchronous programs
//!
//! [`Store::queue`](crate::Store::queue) queues changes. Each call returns a
//! [`Ticket`](crate::Ticket), a future that is ready when the change is durable. Tickets belong to
//! no runtime, because the store wakes them; a thread can [`wait`](crate::Ticket::wait) for one
//! too. At most 64 MiB of changes may wait, or
//! [`StoreOptions::queue_bytes`](crate::StoreOptions::queue_bytes); then queueing is
//! [`Error::QueueFull`](crate::Error::QueueFull). Queries and snapshots read the disk: call them
//! where your runtime runs blocking code, such as `spawn_blocking`.
//!
//! ```
//! use resemblance::{Document, Result, Signature, Store};
//!
//! async fn take(store: &Store, url: &str, fetched_at: u64, page: &Signature) -> Result<bool> {
//!     let document = Document::new(url).stamp(fetched_at);
//!     let ticket = store.queue().insert_if_new(document, page)?;
//!     Ok(ticket.await?.is_new())
//! }
//! ```
//!
//! The same commit from a thread:
//!
//! ```
//! use resemblance::{Closed, MinHash, Schema, Store};
//! # let store = Store::in_memory(Schema::builder().minhash(MinHash::new(128)).build()?)?;
//!
//! let sketcher = store.sketcher();
//! let first = store.queue().insert("a", &sketcher.features(["x"])?)?;
//! let second = store.queue().insert("b", &sketcher.features(["y"])?)?;
//! println!("{} and {}", first.wait()?, second.wait()?);
//! assert_eq!(store.snapshot()?.len(), 2);
//! assert_eq!(store.close()?, Closed::File); // waits for queued changes, and returns errors
//! # Ok::<(), resemblance::Error>(())
//! ```
//!
//! [`Store::flush`](crate::Store::flush) waits for everything that was queued. So do
//! [`Store::close`](crate::Store::close), which also returns errors, and dropping the last handle.
//! If a process ends without either, acknowledged changes are durable and queued ones are lost.
