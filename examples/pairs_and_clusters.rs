//! Lists the near-duplicate pairs of a store, and groups them into clusters.
//!
//! `cargo run --bin pairs_and_clusters` prints:
//!
//! ```text
//! pair 0 2, similarity 0.930
//! pair 0 3, similarity 0.828
//! pair 2 3, similarity 0.891
//! pair 1 4, similarity 0.711
//! keep 0, drop [DocumentId(2), DocumentId(3)]
//! keep 1, drop [DocumentId(4)]
//! ```

use resemblance::{Document, MinHash, Schema, Store, Text};

const TEXTS: [&str; 5] = [
    "the committee met on monday to discuss the budget for the coming year",
    "rain is expected in the north tomorrow with strong winds along the coast",
    "the committee met on monday to discuss the budget for the coming year again",
    "a committee met on monday to discuss the budget for the coming year again",
    "rain is expected in the north today with strong winds along the coast",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let minhash = MinHash::new(128).threshold(0.7);
    let schema = Schema::builder()
        .text(Text::words(2))
        .minhash(minhash)
        .build()?;
    let store = Store::in_memory(schema)?;
    for text in TEXTS {
        store.insert(Document::without_key(), &store.sketch_text(text)?)?; // ids 0 to 4
    }

    let snapshot = store.snapshot()?; // isolated from later writes
    for pair in snapshot.pairs().run()? {
        let pair = pair?;
        let similarity = pair.similarity.unwrap_or(0.0);
        println!("pair {} {}, similarity {similarity:.3}", pair.a, pair.b);
    }

    // Pairs link the members of a cluster, which need not all be near each other.
    for cluster in snapshot.clusters().run()? {
        let (kept, dropped) = cluster.split_first().ok_or("a cluster is empty")?;
        println!("keep {kept}, drop {dropped:?}");
    }
    Ok(())
}
