//! Changes the threshold of a store without its texts: its signatures stay, and are indexed again.
//!
//! `cargo run --bin reband` prints:
//!
//! ```text
//! pairs at 0.8: 0
//! 2 documents indexed again
//! pairs at 0.5: 1
//! ```

use resemblance::schema::Rebanding;
use resemblance::{MinHash, Schema, Store, Text};

const FIRST: &str = "the committee met on monday to discuss the budget for the coming year";
const SECOND: &str = "on monday the committee met to discuss next year and the budget for the army";

/// Counts the pairs that the schema of the store calls near.
fn pairs(path: &std::path::Path) -> resemblance::Result<usize> {
    Ok(Store::open(path)?.snapshot()?.pairs().run()?.count())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("seen.rsm");
    let minhash = MinHash::new(128).threshold(0.8);
    let schema = Schema::builder()
        .text(Text::words(1))
        .minhash(minhash)
        .build()?;
    let store = Store::create(&path, schema)?;
    for (key, text) in [("first", FIRST), ("second", SECOND)] {
        store.insert(key, &store.sketch_text(text)?)?;
    }
    drop(store); // nobody else may have the file open
    println!("pairs at 0.8: {}", pairs(&path)?);

    // One commit: a crash leaves the old store.
    let report = Store::reband(&path, &Rebanding::new().threshold(0.5).recall(0.99)).run()?;
    println!("{} documents indexed again", report.documents);
    println!("pairs at 0.5: {}", pairs(&path)?);
    Ok(())
}
