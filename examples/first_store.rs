//! Stores a document, refuses a near-duplicate of it, and finds it again after reopening the file.
//!
//! `cargo run --bin first_store` prints:
//!
//! ```text
//! ap/1 is stored
//! blog/7 is like ap/1, similarity 0.906
//! ap/2 is stored
//! the file holds 2 documents
//! found: ap/1, similarity 0.891
//! ```

use resemblance::{MinHash, Novelty, Schema, Store, Text};

const BRIDGE: &str = "The council set aside two million on Monday to repair the old bridge.";
const RAIN: &str = "Heavy rain is expected in the north tonight, and rivers may rise.";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("news.rsm");

    // Texts are compared by the sets of five words in a row that they contain.
    let schema = Schema::builder()
        .text(Text::words(5))
        .minhash(MinHash::new(128).threshold(0.8))
        .build()?;
    let store = Store::create(&path, schema)?;

    let copy = format!("{BRIDGE} (AP)");
    for (key, text) in [("ap/1", BRIDGE), ("blog/7", &copy), ("ap/2", RAIN)] {
        let signature = store.sketch_text(text)?;
        // One durable step: when it returns, the document survives a crash.
        match store.insert_if_new(key, &signature)? {
            Novelty::NearDuplicate(found) => println!("{key} is like {found}"),
            _ => println!("{key} is stored"),
        }
    }
    drop(store);

    // The schema is in the file.
    let store = Store::open(&path)?;
    let snapshot = store.snapshot()?;
    println!("the file holds {} documents", snapshot.len());
    let asked = store.sketch_text(&format!("{BRIDGE} (Reuters)"))?;
    for found in snapshot.query(&asked).limit(10).run()? {
        println!("found: {found}");
    }
    Ok(())
}
