//! One day's crawl, by many threads.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};

use resemblance::Revision;

use super::Result;
use super::frontier::{Frontier, Visit};
use super::http::Client;
use super::page::Page;
use super::seen::{SeenPages, Verdict};

/// The state that threads share.
pub(crate) struct Crawl<'a> {
    pub(crate) seen: &'a SeenPages,
    pub(crate) frontier: Frontier,
    pub(crate) server: SocketAddr,
    pub(crate) day: u64,
    /// Gets a line for every page, once the store has it for certain.
    pub(crate) log: Option<&'a File>,
    /// How many pages there are still to be before the process ends as in a crash.
    pub(crate) until_abort: Option<&'a AtomicU64>,
}

/// Counts of what was done.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) fetched: u64,
    pub(crate) fetched_bytes: u64,
    pub(crate) taken: u64,
    pub(crate) copies: u64,
    /// Bytes of text of the copies.
    pub(crate) copied_bytes: u64,
    pub(crate) unchanged: u64,
    pub(crate) nearly_unchanged: u64,
    pub(crate) rewritten: u64,
    pub(crate) not_there: u64,
}

impl Crawl<'_> {
    /// Fetches all that there is to fetch.
    pub(crate) fn run(&self, threads: usize) -> Result<Tally> {
        let mut all = Tally::default();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| self.work())).collect();
            for worker in workers {
                all += worker.join().map_err(|_| "a thread panicked")??;
            }
            Ok(all)
        })
    }

    fn work(&self) -> Result<Tally> {
        // However this function ends, no thread waits for its results.
        let _stop = StopAtEnd(&self.frontier);
        let mut client = Client::connect(self.server)?;
        let mut tally = Tally::default();
        while let Some(visit) = self.frontier.next() {
            let links = match &visit {
                Visit::First(url) => self.explore(&mut client, url, &mut tally)?,
                Visit::Again(url) => self.revisit(&mut client, url, &mut tally)?,
            };
            self.frontier.finish(&visit, links);
            if let Some(left) = self.until_abort
                && left.fetch_sub(1, Ordering::Relaxed) == 1
            {
                std::process::abort();
            }
        }
        Ok(tally)
    }

    /// Visits a page that a link has led to. The links of a copy are not followed: it leads where its
    /// original does, and session ids would lead to ever more copies.
    fn explore(&self, client: &mut Client, url: &str, tally: &mut Tally) -> Result<Vec<String>> {
        let Some(page) = fetch(client, url, tally)? else {
            self.seen.note_missing(url, self.day)?;
            self.log("noted", url)?;
            tally.not_there += 1;
            return Ok(Vec::new());
        };
        match self.seen.take(url, self.day, &page)? {
            Verdict::Taken => {
                self.log("taken", url)?;
                tally.taken += 1;
                Ok(page.links)
            }
            Verdict::Copy => {
                self.log("noted", url)?;
                tally.copies += 1;
                tally.copied_bytes += page.text.len() as u64;
                Ok(Vec::new())
            }
        }
    }

    /// Visits a page that is in the store. A page that no longer exists keeps the day of its last
    /// visit, and will be forgotten.
    fn revisit(&self, client: &mut Client, url: &str, tally: &mut Tally) -> Result<Vec<String>> {
        let Some(page) = fetch(client, url, tally)? else {
            tally.not_there += 1;
            return Ok(Vec::new());
        };
        let revision = self.seen.renew(url, self.day, &page)?;
        self.log("renewed", url)?;
        match revision {
            Revision::Unchanged(_) => tally.unchanged += 1,
            Revision::Near(_) => tally.nearly_unchanged += 1,
            _ => tally.rewritten += 1,
        }
        Ok(page.links)
    }

    fn log(&self, what: &str, url: &str) -> Result<()> {
        if let Some(mut log) = self.log {
            // In one piece, for other threads write as well.
            log.write_all(format!("{what} {} {url}\n", self.day).as_bytes())?;
        }
        Ok(())
    }
}

/// The page under a URL, if there is one.
fn fetch(client: &mut Client, url: &str, tally: &mut Tally) -> Result<Option<Page>> {
    let response = client.get(url)?;
    tally.fetched += 1;
    tally.fetched_bytes += response.body.len() as u64;
    Ok((response.status == 200).then(|| Page::of(url, &response.body)))
}

/// A thread that ends while there is work has failed, and the others are to end, too; at the end of all
/// work it makes no difference.
struct StopAtEnd<'a>(&'a Frontier);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.fetched += other.fetched;
        self.fetched_bytes += other.fetched_bytes;
        self.taken += other.taken;
        self.copies += other.copies;
        self.copied_bytes += other.copied_bytes;
        self.unchanged += other.unchanged;
        self.nearly_unchanged += other.nearly_unchanged;
        self.rewritten += other.rewritten;
        self.not_there += other.not_there;
    }
}
