//! Watching a store as it works.
//!
//! [`Store::metrics`](crate::Store::metrics) counts the work of all handles of a store since it was
//! opened: documents by outcome, transactions by how they ended, calls that wait, flushes and
//! merges, queries and their candidates, reads, writes and syncs of the file, live snapshots, and
//! the durations of commits, calls and syncs. It returns a plain struct. A transaction counts once
//! it is committed. Counting takes no lock, and reads no clock for a document.
//!
//! ```
//! use resemblance::{MinHash, Schema, Store};
//! # let store = Store::in_memory(Schema::builder().minhash(MinHash::new(128)).build()?)?;
//! # let page = store.sketcher().hashes([1, 2, 3])?;
//! store.insert_if_new("a", &page)?;
//! store.insert_if_new("b", &page)?;
//!
//! let metrics = store.metrics();
//! assert_eq!((metrics.documents, metrics.near_duplicates), (1, 1));
//! println!("99 % of commits within {:?}", metrics.commit_latencies.quantile(0.99));
//! for (name, value) in metrics.numbers() {
//!     println!("resemblance_{name} {value}"); // the text format of Prometheus
//! }
//! # Ok::<(), resemblance::Error>(())
//! ```
//!
//! With the feature `log`, stores also write events through the crate `log`. Each names the path of its store, and none
//! holds keys, payloads or texts.
//!
//! | level | target | event |
//! |---|---|---|
//! | info | `resemblance::store` | a store was created, opened or closed, or recovered after a crash: how many documents, how long |
//! | debug | `resemblance::merge` | a run was flushed; a merge began or ended (events of a transaction that is rolled back later are written as well) |
//! | debug | `resemblance::upkeep` | a store was compacted or copied, or documents were imported or evicted |
//! | warn | `resemblance::store` | there are more documents than the schema expects; once for each opening |
//! | warn | `resemblance::store` | `insert_if_new` reached its budget in a hot bucket; once for each opening |
//! | warn | `resemblance::commit` | a commit took more than a second, and longer than any before |
//! | error | `resemblance::commit` | a commit failed, and the handle writes no more |
//! | error | `resemblance::damage` | damage was found; the event shows whether the handle can no longer be used |
