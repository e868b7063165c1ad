use super::*;
use crate::sample::one_in;

fn shape(run: u32, level: u8, first_id: u64, last_id: u64) -> RunShape {
    RunShape {
        run,
        level,
        first_id,
        last_id,
        documents: last_id + 1 - first_id,
        deleted: 0,
    }
}

/// Does as planned; gives the documents rewritten.
fn apply(runs: &mut Vec<RunShape>, plan: &MergePlan) -> u64 {
    let taken: Vec<RunShape> = runs
        .iter()
        .filter(|run| plan.runs.contains(&run.run))
        .copied()
        .collect();
    assert_eq!(taken.len(), plan.runs.len());
    assert!(taken.is_sorted_by_key(|run| run.first_id));
    let place = runs.iter().position(|run| *run == taken[0]).unwrap();
    runs.drain(place..place + taken.len());
    // Sealed runs are numbered upwards from 0, merged ones downwards.
    let lowest = runs.iter().chain(&taken).map(|run| run.run);
    let merged = lowest.filter(|number| *number > u32::MAX / 2).min();
    let number = merged.unwrap_or(u32::MAX) - 1;
    let (first, last) = (taken[0], taken[taken.len() - 1]);
    let merged = RunShape {
        documents: taken.iter().map(|run| run.documents - run.deleted).sum(),
        ..shape(number, plan.level, first.first_id, last.last_id)
    };
    runs.insert(place, merged);
    taken.iter().map(|run| run.documents).sum()
}

#[test]
fn levels_rewrite_postings_rarely() {
    const SEAL: u64 = 65_536;
    // 46 seals have 11 merges of 4 and one of 24, so 68 / 46; 153 have 38, 6 and one of 144, so
    // 440 / 153.
    for (documents, expected) in [(3_000_000, 68.0 / 46.0), (10_000_000, 440.0 / 153.0)] {
        let mut runs: Vec<RunShape> = Vec::new();
        let (mut sealed, mut rewritten) = (0, 0);
        while sealed < documents {
            runs.push(shape((sealed / SEAL) as u32, 0, sealed, sealed + SEAL - 1));
            sealed += SEAL;
            while let Some(plan) = plan(&runs, &[]) {
                rewritten += apply(&mut runs, &plan);
            }
            for level in 0..10 {
                let of_level = runs.iter().filter(|run| run.level == level);
                assert!(of_level.count() < fan_in(level));
            }
        }
        let rewrites = rewritten as f64 / sealed as f64;
        assert!((rewrites - expected).abs() < 1e-9, "{rewrites}");
    }
}

/// Merges under way in a store that only grows, each with what is left of it.
struct Growing {
    runs: Vec<RunShape>,
    merges: Vec<(MergePlan, u64)>,
    documents: u64,
}

impl Growing {
    fn seal(&mut self, documents: u64) {
        let (first, end) = (self.documents, self.documents + documents);
        let number = (first / documents) as u32;
        self.runs.push(shape(number, 0, first, end - 1));
        self.documents = end;
    }

    /// Returns the mean number of runs that a probe reads for each lane. Lanes that a merge has
    /// completed are in its output, the others in its inputs.
    fn probed_runs(&self) -> f64 {
        let saved = self.merges.iter().map(|(plan, left)| {
            let inputs = self.runs.iter().filter(|run| plan.runs.contains(&run.run));
            let all: u64 = inputs.map(|run| run.documents).sum();
            (1.0 - *left as f64 / all as f64) * (plan.runs.len() - 1) as f64
        });
        self.runs.len() as f64 - saved.sum::<f64>()
    }

    /// Advances merges by the work that this number of inserts pays for, the lowest level first.
    /// Returns the total work done.
    fn advance(&mut self, inserted: u64) -> u64 {
        let pace = Pace::together(self.merges.len());
        let mut debt = pace.postings(inserted);
        self.merges.sort_by_key(|(plan, _)| plan.level);
        for (_, left) in &mut self.merges {
            let due = debt.min(*left);
            debt -= due;
            *left -= due;
        }
        let done = pace.postings(inserted) - debt;
        let ended = self.merges.extract_if(.., |(_, left)| *left == 0);
        for (plan, _) in ended.collect::<Vec<_>>() {
            apply(&mut self.runs, &plan);
        }
        loop {
            let under_way: Vec<MergePlan> = self.merges.iter().map(|m| m.0.clone()).collect();
            let Some(plan) = plan(&self.runs, &under_way) else {
                return done;
            };
            let inputs = self.runs.iter().filter(|run| plan.runs.contains(&run.run));
            let left = inputs.map(|run| run.documents).sum();
            self.merges.push((plan, left));
        }
    }
}

/// A merge may wait for the previous one at its level, but no longer than it takes to create that
/// number of runs. A level therefore has fewer than twice that number. Each commit does at most
/// what the pace allows. Runs loads of a third of the length, or of the whole length with
/// `RESEMBLANCE_TESTS=all`.
#[test]
fn levels_bound_pending_merges() {
    for (seal, commit) in [(65_536, 8_192), (1_000, 1_000), (1_000, 40), (512, 1)] {
        let mut store = Growing {
            runs: Vec::new(),
            merges: Vec::new(),
            documents: 0,
        };
        let mut deepest = 0;
        for inserted in (commit..=seal * 1_500 / one_in(3) as u64).step_by(commit as usize) {
            if inserted / seal > (inserted - commit) / seal {
                store.seal(seal);
            }
            let done = store.advance(commit);
            // A merge into each level.
            let levels = store.runs.iter().map(|run| u64::from(run.level)).max();
            let levels = levels.unwrap_or(0) + 1;
            assert!(
                done * 4 <= commit * (5 * levels).max(12),
                "{done} at {inserted}"
            );
            for level in 0..=levels as u8 {
                let of_level = store.runs.iter().filter(|run| run.level == level);
                assert!(
                    of_level.count() < 2 * fan_in(level),
                    "{level} at {inserted}"
                );
            }
            deepest = deepest.max(levels);
        }
        assert!(deepest >= 4, "{deepest}");
    }
}

/// The figures of docs/design/writer.md for a load by commits of 8,192 documents, million by million.
#[test]
fn levels_bound_merges_per_posting_and_runs() {
    const COMMIT: u64 = 8_192;
    let mut store = Growing {
        runs: Vec::new(),
        merges: Vec::new(),
        documents: 0,
    };
    let (mut inserted, mut merged) = (0, 0);
    let stretch = |until: u64| {
        let (began, merged_before) = (inserted, merged);
        let (mut runs, mut commits) = (0.0, 0.0);
        while inserted < until {
            inserted += COMMIT;
            if inserted % 65_536 == 0 {
                store.seal(65_536);
            }
            merged += store.advance(COMMIT);
            runs += store.probed_runs();
            commits += 1.0;
        }
        let per_posting = (merged - merged_before) as f64 / (inserted - began) as f64;
        [per_posting, runs / commits].map(|mean| format!("{mean:.1}"))
    };
    // Postings merged for each that is inserted, and the runs that a probe asks, in the mean.
    let stretches = [1, 3, 10, 20]
        .map(|millions| millions * 1_000_000)
        .map(stretch);
    let expected = [
        ["0.8", "3.4"],
        ["1.8", "6.7"],
        ["2.0", "9.7"],
        ["3.0", "12.1"],
    ];
    assert_eq!(stretches, expected);
}

#[test]
fn a_lone_run_is_rewritten_before_half_of_it_is_deleted() {
    for documents in [1, 1_000, 1 << 30] {
        let removed = Pace::ALONE.moved(documents);
        assert!(removed <= documents / 4);
    }
    assert_eq!(Pace::together(1).postings(1_000), 3_000);
    let pace = Pace::together(4);
    assert_eq!((pace.postings(1_000), pace.moved(1_000)), (5_000, 200));
    let pace = Pace { quarters: 5 };
    assert_eq!((pace.postings(1_000), pace.moved(1_000)), (1_250, 800));
    assert_eq!(pace.postings(u64::MAX), u64::MAX / 4);
}

#[test]
fn levels_merge_the_lowest_neighbours_first() {
    let mut runs = vec![shape(9, 1, 0, 4), shape(2, 1, 5, 9), shape(7, 1, 10, 14)];
    runs.extend([shape(3, 1, 15, 19), shape(8, 1, 20, 29)]);
    assert_eq!(plan(&runs, &[]), None);
    runs.push(shape(4, 1, 30, 39));
    runs.extend([shape(5, 0, 40, 49), shape(6, 0, 50, 59)]);
    let level_1 = MergePlan {
        runs: vec![9, 2, 7, 3, 8, 4],
        level: 2,
    };
    assert_eq!(plan(&runs, &[]), Some(level_1.clone()));
    // The order of the list does not matter.
    let reversed: Vec<RunShape> = runs.iter().rev().copied().collect();
    assert_eq!(plan(&reversed, &[]), Some(level_1));
    runs.extend([
        shape(10, 0, 60, 69),
        shape(11, 0, 70, 79),
        shape(12, 0, 80, 89),
    ]);
    let level_0 = MergePlan {
        runs: vec![5, 6, 10, 11],
        level: 1,
    };
    assert_eq!(plan(&runs, &[]), Some(level_0));
}

#[test]
fn levels_run_one_merge_into_a_level() {
    let runs: Vec<RunShape> = (0..8)
        .map(|run| shape(run, 0, u64::from(run) * 10, u64::from(run) * 10 + 9))
        .collect();
    let first = plan(&runs, &[]).unwrap();
    assert_eq!(first.runs, [0, 1, 2, 3]);
    assert_eq!(plan(&runs, std::slice::from_ref(&first)), None);
    // Two runs that are compacted are several, too.
    let two = MergePlan {
        runs: vec![2, 3],
        level: 1,
    };
    assert_eq!(plan(&runs, &[two]), None);
    // A merge of one run alone, or into another level, delays no other merge.
    for (busy, level) in [(vec![3], 1), (vec![2, 3], 2)] {
        let other = MergePlan { runs: busy, level };
        let found = plan(&runs, &[other]).unwrap();
        assert_eq!(found.runs, [4, 5, 6, 7]);
    }
}

#[test]
fn larger_run_separates_neighbours_and_smaller_one_does_not() {
    let between = |level| {
        vec![
            shape(0, 1, 0, 9),
            shape(1, 1, 10, 19),
            shape(2, level, 20, 29),
            shape(3, 1, 30, 39),
            shape(4, 1, 40, 49),
            shape(5, 1, 50, 59),
            shape(6, 1, 60, 69),
        ]
    };
    assert_eq!(plan(&between(2), &[]), None);
    let all = MergePlan {
        runs: vec![0, 1, 2, 3, 4, 5, 6],
        level: 2,
    };
    assert_eq!(plan(&between(0), &[]), Some(all));
}

#[test]
fn runs_of_any_sizes_remain_few() {
    // Seals with large runs written between them.
    let mut runs: Vec<RunShape> = Vec::new();
    let mut first = 0;
    for number in 0..4_000u32 {
        let documents = if number % 3 == 0 {
            100_000 << (number % 5)
        } else {
            1
        };
        let level = level_of(documents, 65_536);
        runs.push(shape(number, level, first, first + documents - 1));
        first += documents;
        while let Some(plan) = plan(&runs, &[]) {
            apply(&mut runs, &plan);
        }
    }
    assert!(runs.len() < 80, "{}", runs.len());
    assert!(
        runs.windows(2)
            .all(|pair| pair[0].last_id + 1 == pair[1].first_id)
    );
}

#[test]
fn a_run_more_than_a_fifth_deleted_is_rewritten_alone() {
    let mut runs = vec![
        shape(0, 2, 0, 999),
        shape(1, 1, 1000, 1099),
        shape(2, 0, 1100, 1199),
    ];
    runs[0].deleted = 200;
    assert_eq!(plan(&runs, &[]), None);
    runs[0].deleted = 201;
    let alone = |run, level| {
        Some(MergePlan {
            runs: vec![run],
            level,
        })
    };
    assert_eq!(plan(&runs, &[]), alone(0, 2));
    // The share counts, not the number; of equals, the oldest.
    runs[1].deleted = 60;
    assert_eq!(plan(&runs, &[]), alone(1, 1));
    runs[2].deleted = 60;
    assert_eq!(plan(&runs, &[]), alone(1, 1));
    // All deleted, and nothing left to divide by.
    runs[2].documents = 0;
    assert_eq!(plan(&runs, &[]), alone(2, 0));
    runs[2].deleted = 0;
    runs[1].deleted = 0;
    runs[0].deleted = 0;
    assert_eq!(plan(&runs, &[]), None);
}

#[test]
fn bulk_runs_start_at_the_level_of_their_size() {
    for (documents, level) in [
        (0, 0),
        (1, 0),
        (262_143, 0),
        (262_144, 1),
        ((6 << 18) - 1, 1),
        (6 << 18, 2),
        (36 << 18, 3),
        (u64::MAX, 18),
    ] {
        assert_eq!(level_of(documents, 65_536), level, "{documents}");
    }
    assert_eq!(level_of(u64::MAX, 0), 24);
}
