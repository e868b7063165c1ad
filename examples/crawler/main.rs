//! A crawler that remembers what it has seen: many threads, one store, and no page taken twice, however
//! often it is killed.
//!
//! ```text
//! cargo run --release --bin crawler -- seen.rsm
//! ```
//!
//! It crawls a site that it serves itself on loopback, day after day. It revisits known pages,
//! follows links to new ones, refuses near-duplicates, and forgets pages that it has not seen for
//! long. Stop it in any way (Ctrl-C, `kill -9`, `--kill-after 500`) and start it again: it
//! continues.
//!
//! `seen.rs` is where the store is used. The rest is a crawler: `crawl.rs` has its threads, `frontier.rs`
//! what they share, `page.rs` takes text and links out of HTML, `http.rs` is the network and `site.rs` the
//! world.
#![allow(
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "it prints what it does, and knows the lengths of what it made"
)]

mod crawl;
mod frontier;
mod http;
mod page;
mod seen;
pub(crate) mod site;

use std::fs::{File, OpenOptions};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use self::crawl::{Crawl, Tally};
use self::frontier::Frontier;
use self::seen::SeenPages;
use self::site::Site;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const USAGE: &str = "\
usage: cargo run --release --bin crawler -- STORE [options]

  --articles 2000   of the site; each has several URLs
  --days 4          how many days are crawled, those included that the store has had
  --keep-days 1     what was not seen for longer is forgotten
  --threads 32
  --kill-after N    ends as in a crash after so many pages
  --log FILE        gets a line for every page: taken, renewed, or noted as a copy or as missing";

struct Options {
    store: PathBuf,
    articles: u64,
    days: u64,
    keep_days: u64,
    threads: usize,
    kill_after: Option<AtomicU64>,
    log: Option<File>,
}

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("crawler: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Crawls from where the store is to the last day.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> Result<()> {
    let options = Options::parse(arguments)?;
    // The site has a separate clock.
    let today = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&today);
    let site = Site {
        articles: options.articles,
    };
    let server = http::serve(move |url| site.answer(url, clock.load(Ordering::Relaxed)))?;

    let seen = SeenPages::open(&options.store)?;
    let first_day = match seen.last_day()? {
        None => 1,
        Some(day) => {
            let summary = seen.summary()?;
            let (pages, notes) = (summary.pages, summary.copies + summary.not_there);
            println!("going on: {pages} pages and {notes} notes are there, it is day {day}");
            day
        }
    };
    for day in first_day..=options.days {
        today.store(day, Ordering::Relaxed);
        crawl_one_day(&options, &seen, server, day)?;
    }
    print_summary(&options, &seen)
}

fn crawl_one_day(options: &Options, seen: &SeenPages, server: SocketAddr, day: u64) -> Result<()> {
    let start = Instant::now();
    let commits = seen.commits();
    let plan = seen.plan(day)?;
    let crawl = Crawl {
        seen,
        frontier: Frontier::new(plan.due, plan.links, plan.known),
        server,
        day,
        log: options.log.as_ref(),
        until_abort: options.kill_after.as_ref(),
    };
    let tally = crawl.run(options.threads)?;
    let (seconds, commits) = (start.elapsed().as_secs_f64(), seen.commits() - commits);
    let forgotten = seen.forget_before(day.saturating_sub(options.keep_days))?;
    print_day(day, &tally, seconds, commits, forgotten);
    Ok(())
}

fn print_day(day: u64, tally: &Tally, seconds: f64, commits: u64, forgotten: u64) {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    println!(
        "day {day}: {} pages fetched, {:.1} MB, in {seconds:.1} s: {:.0} a second, {commits} commits",
        tally.fetched,
        megabytes(tally.fetched_bytes),
        tally.fetched as f64 / seconds,
    );
    let again = tally.unchanged + tally.nearly_unchanged + tally.rewritten;
    if again > 0 {
        println!(
            "  {again} visited again: {} unchanged, {} nearly, {} rewritten",
            tally.unchanged, tally.nearly_unchanged, tally.rewritten
        );
    }
    println!(
        "  {} taken, {} near-duplicates refused with {:.1} MB of text, {} not there, {forgotten} forgotten",
        tally.taken,
        tally.copies,
        megabytes(tally.copied_bytes),
        tally.not_there,
    );
}

fn print_summary(options: &Options, seen: &SeenPages) -> Result<()> {
    let summary = seen.summary()?;
    let file_bytes = std::fs::metadata(&options.store)?.len();
    println!(
        "{}: {} pages, notes of {} copies ({:.1} MB of text that is stored once) and of {} missing pages, \
         in {:.1} MB",
        options.store.display(),
        summary.pages,
        summary.copies,
        summary.copied_bytes as f64 / 1e6,
        summary.not_there,
        file_bytes as f64 / 1e6,
    );
    Ok(())
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let store = arguments.next().filter(|name| !name.starts_with('-'));
        let mut options = Self {
            store: store.ok_or(USAGE)?.into(),
            articles: 2_000,
            days: 4,
            keep_days: 1,
            threads: 32,
            kill_after: None,
            log: None,
        };
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(USAGE)?;
            match name.as_str() {
                "--articles" => options.articles = value.parse()?,
                "--days" => options.days = value.parse()?,
                "--keep-days" => options.keep_days = value.parse()?,
                "--threads" => options.threads = value.parse()?,
                "--kill-after" => options.kill_after = Some(AtomicU64::new(value.parse()?)),
                "--log" => {
                    let file = OpenOptions::new().create(true).append(true).open(value)?;
                    options.log = Some(file);
                }
                _ => return Err(USAGE.into()),
            }
        }
        Ok(options)
    }
}
