//! Outcomes as tables.

use std::path::Path;
use std::time::Duration;

use crate::Result;
use crate::outcome::{Commit, Outcome, compare_answers};
use crate::table::{Cell, Table};

/// Where there are fewer than two of these, the stretch is a quarter.
const STRETCH_DOCUMENTS: u64 = 1_000_000;

/// The value below which a share of the samples lies. Sorts them.
pub fn percentile<T: Copy + Ord + Default>(samples: &mut [T], share: f64) -> T {
    samples.sort_unstable();
    let place = (samples.len() as f64 * share) as usize;
    samples
        .get(place.min(samples.len().saturating_sub(1)))
        .copied()
        .unwrap_or_default()
}

pub fn microseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// Prints all that is known, and fails if engines answered differently.
pub fn print(folder: &Path, outcomes: &[Outcome]) -> Result<()> {
    for outcome in outcomes {
        for settings in &outcome.settings {
            println!("- {}: {settings}", outcome.name);
        }
    }
    println!(
        "- files in {}; each engine in a process of its own, in turns, stopped while others work",
        folder.display()
    );
    println!();
    let mut table = Table::new(outcomes);
    let mut phases: Vec<&str> = Vec::new();
    for (phase, _) in outcomes.iter().flat_map(|outcome| &outcome.commits) {
        if !phases.contains(&phase.as_str()) {
            phases.push(phase);
        }
    }
    for phase in phases {
        add_commits(&mut table, outcomes, phase);
    }
    table.add_figures(outcomes);
    table.print();
    println!(
        "(a stretch is a million documents, or a quarter of fewer than two million; rates are \
         compared over the same documents; written: bytes handed to calls that write, as \
         /proc/self/io counts them)\n"
    );
    for outcome in outcomes {
        for note in &outcome.notes {
            println!("- {}: {note}", outcome.name);
        }
    }
    for line in compare_answers(outcomes)? {
        println!("- {line}");
    }
    println!();
    Ok(())
}

fn documents(commits: &[Commit]) -> u64 {
    commits.iter().map(|commit| commit.documents).sum()
}

/// Documents a second over the commits with documents between two numbers.
fn rate(commits: &[Commit], from: u64, to: u64) -> Option<f64> {
    let (mut before, mut inside, mut nanoseconds) = (0, 0, 0);
    for commit in commits {
        let after = before + commit.documents;
        if before < to && after > from {
            inside += commit.documents;
            nanoseconds += commit.nanoseconds;
        }
        before = after;
    }
    (inside > 0 && nanoseconds > 0).then(|| inside as f64 * 1e9 / nanoseconds as f64)
}

fn stretch(documents: u64) -> u64 {
    if documents >= 2 * STRETCH_DOCUMENTS {
        STRETCH_DOCUMENTS
    } else {
        documents.div_ceil(4)
    }
}

/// The rows of a run of commits. Rates are compared over the same documents: what the first
/// engine needed for those that the other reached.
fn add_commits(table: &mut Table, outcomes: &[Outcome], phase: &str) {
    let all: Vec<&[Commit]> = outcomes.iter().map(|one| one.commits(phase)).collect();
    let reached = |commits: &&[Commit]| {
        let reached = documents(commits);
        (reached > 0).then(|| Cell::plain(reached as f64))
    };
    table.add(
        format!("{phase}: documents"),
        all.iter().map(reached).collect(),
    );
    let first = all.first().copied().unwrap_or_default();
    for (label, range) in [
        ("documents a second", (|all| (0, all)) as fn(u64) -> _),
        ("- the first stretch", |all| (0, stretch(all))),
        ("- the last stretch", |all| (all - stretch(all), all)),
    ] {
        let cell = |commits: &&[Commit]| {
            let (from, to) = range(documents(commits));
            let theirs = rate(commits, from, to)?;
            let ours = rate(first, from, to);
            Some(Cell::with_ratio(theirs, ours.map(|ours| ours / theirs)))
        };
        table.add(format!("{phase}: {label}"), all.iter().map(cell).collect());
    }
    let slowing = |commits: &&[Commit]| {
        let all = documents(commits);
        let first = rate(commits, 0, stretch(all))?;
        rate(commits, all - stretch(all), all).map(|last| Cell::plain(last / first))
    };
    table.add(
        format!("{phase}: - the last by the first"),
        all.iter().map(slowing).collect(),
    );
    add_samples(table, &all, phase);
}

/// The rows of what commits take one by one.
fn add_samples(table: &mut Table, all: &[&[Commit]], phase: &str) {
    // The figures for single documents are small.
    let single = all.iter().flat_map(|one| one.iter());
    let (time_unit, size_unit, unit) = match single.clone().all(|one| one.documents == 1) {
        true => ("us", "KB", 1e3),
        false => ("ms", "MB", 1e6),
    };
    type Sample = fn(&Commit) -> u64;
    let (time, bytes): (Sample, Sample) = (|one| one.nanoseconds, |one| one.written_bytes);
    for (what, sample, unit_name) in [("", time, time_unit), ("written, ", bytes, size_unit)] {
        for (name, share) in [("median", 0.5), ("99.9 %", 0.999), ("most", 1.0)] {
            let values = all.iter().map(|commits| {
                let mut samples: Vec<u64> = commits.iter().map(sample).collect();
                // Nothing is written to a disk by what is in memory.
                let most = samples.iter().max().copied().unwrap_or_default();
                (most > 0).then(|| percentile(&mut samples, share) as f64 / unit)
            });
            let label = format!("{phase}: {what}{name}, {unit_name}");
            table.add_compared(label, &values.collect::<Vec<_>>(), false);
        }
    }
    let mean = all.iter().map(|commits| {
        let sum: u64 = commits.iter().map(bytes).sum();
        (sum > 0).then(|| sum as f64 / unit / commits.len() as f64)
    });
    let label = format!("{phase}: written, mean, {size_unit}");
    table.add_compared(label, &mean.collect::<Vec<_>>(), false);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_concern_the_requested_documents() {
        let commit = |nanoseconds| Commit {
            documents: 10,
            nanoseconds,
            written_bytes: 0,
        };
        let commits = [commit(1_000), commit(2_000), commit(5_000)];
        assert_eq!(rate(&commits, 0, 30), Some(30e9 / 8_000.0));
        assert_eq!(rate(&commits, 0, 20), Some(20e9 / 3_000.0));
        assert_eq!(rate(&commits, 20, 30), Some(10e9 / 5_000.0));
        assert_eq!(rate(&[], 0, 0), None);
        assert_eq!((stretch(10), stretch(3_000_000)), (3, 1_000_000));
    }
}
