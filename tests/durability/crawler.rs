//! The example crawler, killed at many moments and started again until it is done: no page is taken
//! twice, nothing that was acknowledged is lost, and in the end it has what a crawl without a break has.

#[allow(dead_code, reason = "what is not asked of it here")]
#[path = "../../examples/crawler/main.rs"]
mod example;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use crate::common::killing::{command, store_of};
use crate::common::sample::trials;
use crate::common::{Place, Random, check_clean};
use example::site::{HOME, Site};
use resemblance::Store;

/// 60 articles, 120 with `RESEMBLANCE_TESTS=all`.
fn articles() -> u64 {
    trials(60, 120)
}

/// Enough days for pages to change, appear and disappear, and for notes to be forgotten and made
/// again.
const DAYS: u64 = 4;

fn site() -> Site {
    Site {
        articles: articles(),
    }
}

const PROGRAM: &str = "crawler::crawler_in_a_child";

/// After how many pages it aborts, if it is to.
const ABORT: &str = "RESEMBLANCE_CRAWLER_ABORT";

/// Not a test: the crawler itself.
#[test]
fn crawler_in_a_child() {
    let Some(store) = store_of(PROGRAM) else {
        return;
    };
    let (store, log) = (
        store.display().to_string(),
        log_of(&store).display().to_string(),
    );
    let (articles, days) = (articles().to_string(), DAYS.to_string());
    let mut arguments = vec![&*store, "--log", &log, "--threads", "4"];
    arguments.extend(["--articles", &articles, "--days", &days]);
    let abort = std::env::var(ABORT).ok();
    if let Some(pages) = &abort {
        arguments.extend(["--kill-after", pages]);
    }
    example::run(arguments.into_iter().map(str::to_owned)).unwrap();
}

fn log_of(store: &Path) -> PathBuf {
    store.with_extension("log")
}

fn start(store: &Path, abort: Option<u64>) -> Child {
    let mut command = command(PROGRAM, store);
    command.envs(abort.map(|pages| (ABORT, pages.to_string())));
    command.spawn().unwrap()
}

/// A line of the log: what the crawler did, on which day, and with which page.
type Line = (String, u64, String);

/// Returns the acknowledged changes.
fn acknowledged(store: &Path) -> Vec<Line> {
    let log = std::fs::read_to_string(log_of(store)).unwrap_or_default();
    let mut lines: Vec<&str> = log.split('\n').collect();
    // Only a truncated line can follow the last line break.
    lines.pop();
    let line = |line: &str| {
        let [what, day, url] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}: not a line of the log");
        };
        (what.to_owned(), day.parse().unwrap(), url.to_owned())
    };
    lines.into_iter().map(line).collect()
}

/// The pages in a store by what they are about; that none is near another.
fn subjects(store: &Store) -> BTreeMap<String, String> {
    let snapshot = store.snapshot().unwrap();
    let pairs: Vec<_> = snapshot.pairs().run().unwrap().collect();
    assert!(pairs.is_empty(), "taken twice: {pairs:?}");
    let mut subjects = BTreeMap::new();
    for record in snapshot.iter() {
        let record = record.unwrap();
        // Notes have no content.
        if !record.signature().is_empty() {
            let url = String::from_utf8(record.key().unwrap().to_vec()).unwrap();
            let other = subjects.insert(site().subject(&url).unwrap(), url);
            assert_eq!(other, None, "taken twice");
        }
    }
    subjects
}

/// Returns the pages that exist on a day, according to the site.
fn shown(day: u64) -> BTreeSet<String> {
    let articles = (0..articles()).map(|number| format!("{HOME}article/{number}"));
    let sections = (0..3).map(|number| format!("{HOME}section/{number}"));
    let others = [HOME.to_owned(), format!("{HOME}old/1")];
    let urls = articles.chain(sections).chain(others);
    let urls = urls.filter(|url| site().answer(url, day).status == 200);
    urls.map(|url| site().subject(&url).unwrap()).collect()
}

/// Checks that nothing was done twice, and that the store contains what the log says.
fn holds_what_was_acknowledged(path: &Path) {
    let lines = acknowledged(path);
    let mut done = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for (what, day, url) in &lines {
        assert!(done.insert((day, url)), "{url}: twice on day {day}");
        let is_first = what != "taken" || taken.insert(site().subject(url));
        assert!(is_first, "{url}: taken, and so was a copy of it");
    }
    let store = Store::open(path).unwrap();
    let subjects = subjects(&store);
    for (what, _, url) in &lines {
        // Pages that no longer exist on the site may be forgotten.
        if what != "noted" && site().answer(url, DAYS).status == 200 {
            let subject = site().subject(url).unwrap();
            assert_eq!(subjects.get(&subject), Some(url), "{url} is lost");
        }
    }
}

fn finish(path: &Path) {
    assert!(start(path, None).wait().unwrap().success());
}

/// Starts the crawler, and kills it when the log has this number of new lines. Returns whether it
/// had finished before.
fn run_and_kill(path: &Path, lines: u64, delay: Duration, random: &mut Random) -> bool {
    let by_itself = random.below(3) == 0;
    let wanted = acknowledged(path).len() as u64 + lines;
    let mut child = start(path, by_itself.then_some(lines + 1));
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if !by_itself && acknowledged(path).len() as u64 >= wanted {
            std::thread::sleep(delay);
            child.kill().unwrap();
            break child.wait().unwrap();
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    // Done, or ended by a signal.
    assert!(status.success() || status.code().is_none(), "{status}");
    status.success()
}

#[test]
fn killed_crawler_resumes_without_taking_a_page_twice() {
    let place = Place::new();
    let unbroken = place.file("unbroken.rsm");
    finish(&unbroken);
    holds_what_was_acknowledged(&unbroken);

    let path = place.file("killed.rsm");
    let mut random = Random(6);
    let mut kills = 0;
    loop {
        let (lines, delay) = (random.below(articles()), random.below(5_000));
        if run_and_kill(&path, lines, Duration::from_micros(delay), &mut random) {
            break;
        }
        kills += 1;
        assert!(kills < 200, "it does not come to an end");
        // Else the crawler itself is the first to open what was left.
        if kills % 2 == 0 && path.exists() {
            check_clean(&path);
            holds_what_was_acknowledged(&path);
        }
    }
    // It may have been done just before it was killed.
    finish(&path);
    assert!(kills >= 4, "{kills}: it was hardly ever killed");
    eprintln!("killed a crawler {kills} times");
    holds_what_was_acknowledged(&path);
    check_clean(&path);

    let found = |path: &Path| -> BTreeSet<String> {
        let subjects = subjects(&Store::open(path).unwrap());
        subjects.into_keys().collect()
    };
    assert_eq!(found(&unbroken), shown(DAYS));
    assert_eq!(found(&path), shown(DAYS));
}
