//! Many asynchronous tasks write to one store with tokio, and share its transactions.
//!
//! `cargo run -p resemblance-examples --features tokio --bin async_tokio` prints:
//!
//! ```text
//! 100 tasks, 10 new reports
//! fewer transactions than tasks: true
//! asked for station 4: 1 found
//! ```

use resemblance::{MinHash, Schema, Store, Text};
use tokio::task::{JoinSet, spawn_blocking};

/// Ten tasks bring each text at about the same time.
async fn submit(store: Store, task: u32) -> resemblance::Result<bool> {
    let text = format!(
        "the report of station {} about the weather of today and tomorrow",
        task % 10
    );
    let signature = store.sketch_text(&text)?;
    // Queueing does not block. A full queue is an error, `QueueFull`, after which you wait for tickets.
    let ticket = store
        .queue()
        .insert_if_new(format!("task/{task}"), &signature)?;
    // The ticket belongs to no runtime. It is ready when the change is durable.
    Ok(ticket.await?.is_new())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let minhash = MinHash::new(128).threshold(0.9);
    let schema = Schema::builder()
        .text(Text::words(1))
        .minhash(minhash)
        .build()?;
    let store = Store::in_memory(schema)?; // on disk: Store::open_or_create("reports.rsm", schema)?

    let mut tasks = JoinSet::new();
    for task in 0..100 {
        tasks.spawn(submit(store.clone(), task));
    }
    let mut new = 0;
    while let Some(finished) = tasks.join_next().await {
        new += u32::from(finished??);
    }
    println!("100 tasks, {new} new reports");
    println!(
        "fewer transactions than tasks: {}",
        store.metrics().transactions_committed < 100
    );

    // Queries read the disk, so they run where the runtime runs blocking code.
    let asked =
        store.sketch_text("the report of station 4 about the weather of today and tomorrow")?;
    let found = spawn_blocking(move || store.snapshot()?.query(&asked).limit(1).run()).await??;
    println!("asked for station 4: {} found", found.len());
    Ok(())
}
