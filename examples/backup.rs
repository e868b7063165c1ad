//! Copies a store that is in use, and moves its documents into a store with another threshold.
//!
//! `cargo run --bin backup` prints:
//!
//! ```text
//! copied 2 of 3 documents
//! the copy is clean: true
//! imported 3 documents
//! ```

use std::fs::File;

use resemblance::{ExistingKeys, MinHash, Schema, Store, Text};

fn schema(threshold: f64) -> resemblance::Result<Schema> {
    let minhash = MinHash::new(128).threshold(threshold);
    let builder = Schema::builder().text(Text::words(2));
    Ok(builder.minhash(minhash).build()?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let file = |name: &str| folder.path().join(name);
    let store = Store::create(file("seen.rsm"), schema(0.8)?)?;
    store.insert(
        "a",
        &store.sketch_text("to be or not to be, that is the question")?,
    )?;
    store.insert(
        "b",
        &store.sketch_text("all the world's a stage, and all the men")?,
    )?;

    // The copy is one commit, whatever is written meanwhile. Every page is verified on the way.
    let snapshot = store.snapshot()?;
    store.insert(
        "c",
        &store.sketch_text("now is the winter of our discontent")?,
    )?;
    let copied = snapshot.backup(file("monday.rsm")).run()?.documents;
    println!("copied {copied} of {} documents", store.snapshot()?.len());
    println!(
        "the copy is clean: {}",
        Store::check(file("monday.rsm")).run()?.is_clean()
    );

    // A stream holds keys, stamps, payloads and signatures. The other store has other bands.
    store
        .snapshot()?
        .export(File::create(file("seen.stream"))?)
        .run()?;
    let other = Store::create(file("other.rsm"), schema(0.6)?)?;
    let import = other.import(File::open(file("seen.stream"))?);
    let imported = import.existing_keys(ExistingKeys::Skip).run()?.inserted;
    println!("imported {imported} documents");
    Ok(())
}
