//! Keeps the stories of a stream of articles, and draws a page that shows how they grow.
//!
//! ```text
//! cargo run --bin stories -- stories.html [ARTICLES.jsonl]
//! ```
//!
//! Articles are read a day at a time. Those of a day enter the store in one commit, and articles that were retracted
//! leave it. The store keeps a cluster for each story, with an id that lasts. After each day the program reads what has
//! changed from the store's feed, from where it stopped the day before, and never reads a whole cluster: `history.rs`
//! keeps a copy of the clusters, and `page.rs` draws it.
#![allow(clippy::print_stdout, reason = "it prints what it does")]

mod history;
mod page;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use resemblance::{Document, MinHash, Schema, Store, Text, schema::ClusterBounds};
use serde::Deserialize;

use self::history::{Article, History};

/// A line of the stream: a new article, or one that is retracted.
#[derive(Deserialize)]
struct Line {
    day: u64,
    #[serde(default)]
    id: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    text: String,
    retract: Option<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let page = arguments
        .next()
        .ok_or("usage: stories PAGE.html [ARTICLES.jsonl]")?;
    let own = || concat!(env!("CARGO_MANIFEST_DIR"), "/stories/articles.jsonl").into();
    let lines = std::fs::read_to_string(arguments.next().unwrap_or_else(own))?;
    let mut days: BTreeMap<u64, Vec<Line>> = BTreeMap::new();
    for line in lines.lines() {
        let line: Line = serde_json::from_str(line)?;
        days.entry(line.day).or_default().push(line);
    }

    // A summary of two stories shares half of its words with each.
    let minhash = MinHash::new(256).threshold(0.4);
    let schema = Schema::builder()
        .text(Text::words(2))
        .minhash(minhash)
        .exact();
    let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
    let (mut history, mut position) = (History::default(), 0);
    for (day, lines) in days {
        let mut transaction = store.begin_write()?;
        for line in lines {
            if let Some(key) = &line.retract {
                transaction.remove(key)?;
                continue;
            }
            let signature = store.sketch_text(&line.text)?;
            let document = Document::new(&line.id).stamp(day);
            let id = transaction.insert(document, &signature)?;
            let (key, title, text) = (line.id, line.title, line.text);
            history.articles.insert(
                id,
                Article {
                    day,
                    key,
                    title,
                    text,
                },
            );
        }
        transaction.commit()?;
        // The position could be kept in the store itself, by `set_position`.
        let mut changes = store.snapshot()?.cluster_changes(position)?;
        for change in &mut changes {
            history.apply(day, &change?);
        }
        position = changes.position();
        println!("day {day}: {} stories", history.stories().count());
    }
    std::fs::write(&page, page::draw(&history))?;
    println!("{position} changes, drawn to {}", page.display());
    Ok(())
}
