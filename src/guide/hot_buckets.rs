//! Templates, error pages and boilerplate put many documents into one bucket, and a probe examines all of
//! them. Four things bound what that costs.
//!
//! - *Equal* documents, those with the same signature, are compared once. Where about one in a
//!   thousand consecutive documents has the same signature as another, the store records that when
//!   it writes their postings to a run. A search that meets one of them skips the others, and its
//!   answer is the same as if it had compared each:
//!   [`Matches::candidates`](crate::Matches::candidates) counts all of them. A caller who verifies
//!   is asked about each. Documents that are not in a run yet are compared one by one; there are
//!   fewer of them than [`StoreOptions::flush_after`](crate::StoreOptions::flush_after).
//! - `insert_if_new` and the other duplicate checks look for an *identical* document first. If
//!   there is one, the check costs the look-up of its key, one additional lane and one record,
//!   however many documents share its buckets. (The identical document must be among the first
//!   fifteen of the lane's bucket. Otherwise the check costs as much as any other.)
//! - A *probe budget* bounds the rest. With [`Query::probe_budget`](crate::Query::probe_budget), a
//!   query is compared with at most n documents, those that share the most buckets with it. From
//!   each run, it reads at most n postings of a bucket, or 1,024 if that is more.
//!   [`StoreOptions::probe_budget`](crate::StoreOptions::probe_budget) does the same for duplicate
//!   checks.
//! - [`Snapshot::stats`](crate::Snapshot::stats) names the largest buckets, each with the keys of up to five of
//!   its documents. Printing [`Stats`](crate::stats::Stats) shows a summary.
//!
//! The budget is the only option that can change an answer, so every answer reports whether it did.
//! [`Matches::budget_exceeded`](crate::Matches::budget_exceeded) and
//! [`Novelty::budget_exceeded`](crate::Novelty::budget_exceeded) give the number of documents that
//! were not compared, as a lower bound if a bucket was not read to its end. A document that may be
//! a duplicate of one that was not compared is [`Novelty::New`](crate::Novelty::New) with them in
//! `left_out`. With a budget of at least the number of candidates, answers are the same as without
//! one.
//!
//! ```
//! use resemblance::{MinHash, Schema, Store, Text};
//!
//! let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(128)).build()?;
//! let store = Store::options().probe_budget(1_000).create_in_memory(schema)?;
//! let page = store.sketch_text("404: the page that you were looking for is not here")?;
//! let novelty = store.insert_if_new("https://example.org/404", &page)?;
//! if let Some(left_out) = novelty.budget_exceeded() {
//!     println!("compared with a part only, {left_out} were left out");
//! }
//! assert!(novelty.is_new());
//!
//! for bucket in store.snapshot()?.stats().run()?.buckets {
//!     let first = bucket.samples.first().and_then(|sample| sample.key.as_deref());
//!     println!("{}: {} documents, the first is {first:?}", bucket.role, bucket.documents);
//! }
//! # Ok::<(), resemblance::Error>(())
//! ```
