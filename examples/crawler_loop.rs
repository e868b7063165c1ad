//! The loop of a crawler that follows links, refuses copies, revisits pages and forgets lost pages.
//!
//! `cargo run --bin crawler_loop` prints:
//!
//! ```text
//! day 1: / is new
//! day 1: /rain is new
//! day 1: /mirror is like /rain, similarity 0.750
//! day 1: /old is new
//! day 8: / is known, edited: false
//! day 8: /rain is known, edited: true
//! day 8: /mirror is like /rain, similarity 0.750
//! day 8: /old is gone
//! forgotten: 1
//! ```

use resemblance::{Document, EvictPolicy, MinHash, Novelty, Schema, Store, Text};
use std::collections::{HashSet, VecDeque};

const RAIN: &str = "heavy rain is expected tonight and some of the rivers may rise";

/// Returns the text under a URL on a day, and its links.
fn fetch(url: &str, day: u64) -> Option<(String, &'static [&'static str])> {
    match url {
        "/" => Some(("all the news".into(), &["/rain", "/mirror", "/old"])),
        "/rain" => Some((format!("{RAIN} by day {day}"), &[])),
        "/mirror" => Some((format!("{RAIN} (copied)"), &[])),
        _ if day == 1 => Some(("gone next week".into(), &[])),
        _ => None,
    }
}

fn main() -> resemblance::Result<()> {
    let builder = Schema::builder().text(Text::words(3));
    let schema = builder.minhash(MinHash::new(128).threshold(0.6)).build()?;
    let store = Store::in_memory(schema)?; // to resume after a crash: Store::open_or_create
    for day in [1, 8] {
        let (mut frontier, mut queued) = (VecDeque::from(["/"]), HashSet::from(["/"]));
        while let Some(url) = frontier.pop_front() {
            let Some((text, links)) = fetch(url, day) else {
                println!("day {day}: {url} is gone");
                continue;
            };
            frontier.extend(links.iter().filter(|link| queued.insert(**link)));
            let page = store.sketch_text(&text)?;
            let document = || Document::new(url).stamp(day);
            match store.insert_if_new(document(), &page)? {
                Novelty::New { .. } => println!("day {day}: {url} is new"),
                Novelty::NearDuplicate(found) => println!("day {day}: {url} is like {found}"),
                _ => {
                    let is_edited = store.upsert(document(), &page)?.replaced.is_some();
                    println!("day {day}: {url} is known, edited: {is_edited}");
                }
            }
        }
    }
    let forgotten = store.evict(EvictPolicy::OlderThan(8)).run()?.evicted;
    println!("forgotten: {forgotten}");
    Ok(())
}
