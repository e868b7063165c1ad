//! The tool is killed without warning, at moments spread over its work: what it has acknowledged is
//! there, nothing is there by halves, and the same command completes the work.
//!
//! `RESEMBLANCE_KILLS` sets how often each command is killed: by default once, or 3 times with
//! `RESEMBLANCE_TESTS=all`.

use std::process::ExitStatus;
use std::time::{Duration, Instant};

use crate::contents::Held;
use crate::sample::trials;
use crate::support::{Folder, Ran, distinct, edited, line, ran, say, short, text};

const KILLS: &str = "RESEMBLANCE_KILLS";

fn kills() -> u32 {
    let given = std::env::var(KILLS).ok();
    given.map_or(trials(1, 3), |given| given.parse().unwrap())
}

/// Runs the tool and kills it after so long, unless it has ended. Whether it was killed, what it had
/// written, and how long it lived.
pub fn run_and_kill(folder: &Folder, arguments: &[&str], delay: Duration) -> (bool, Ran, Duration) {
    let start = Instant::now();
    let mut child = folder.command(arguments).spawn().unwrap();
    let mut exited: Option<ExitStatus> = None;
    while exited.is_none() && start.elapsed() < delay {
        std::thread::sleep((delay - start.elapsed().min(delay)).min(Duration::from_millis(1)));
        exited = child.try_wait().unwrap();
    }
    if exited.is_none() {
        child.kill().unwrap();
    }
    let output = child.wait_with_output().unwrap();
    let was_killed = output.status.code().is_none();
    (was_killed, ran(output), start.elapsed())
}

/// Kills a command as often as it is to be, each time in a new copy of the folder. `verify` gets
/// the copy, what the command had written, and the number of the kill.
fn kill_all_along(
    name: &str,
    before: &Folder,
    arguments: &[&str],
    mut verify: impl FnMut(&Folder, &Ran, u32),
) {
    let whole = run_and_kill(&before.copy(), arguments, Duration::from_secs(600));
    assert_eq!(whole.1.code, Some(0), "{name}: {}", whole.1.stderr);
    let (mut lasts, wanted) = (whole.2, kills());
    let (mut survived, mut too_late) = (0, 0_u64);
    // SplitMix64's step: the moments are spread evenly, and never the same.
    let mut state = 0x9e37_79b9_u64;
    while survived < wanted {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let within = f64::from((state >> 32) as u32) / f64::from(u32::MAX);
        let share = (f64::from(survived) + within) / f64::from(wanted);
        let folder = before.copy();
        let (was_killed, ran, lived) = run_and_kill(&folder, arguments, lasts.mul_f64(share));
        if was_killed {
            verify(&folder, &ran, survived);
            survived += 1;
        } else {
            // It is done sooner when less else is going on.
            lasts = lasts.min(lived);
            too_late += 1;
            assert!(too_late < 200 + u64::from(wanted), "{name} is too quick");
        }
    }
    say(&format!(
        "killed {name}: {survived} times within {lasts:.0?}, {too_late} were too late"
    ));
}

/// A command that writes to a store.
struct Scenario<'a> {
    name: &'a str,
    before: Folder,
    arguments: Vec<&'a str>,
    store: &'a str,
    /// The contents of the store before, and after each commit.
    states: Vec<Option<Held>>,
    /// Returns the number of commits that the command has reported.
    acknowledged: fn(&Ran) -> usize,
    /// Returns the command that completes the work after a number of commits.
    resume: fn(&[&str], usize) -> Vec<String>,
    /// Whether doing it twice gives other ids.
    changes_ids: bool,
}

/// Someone uses the store first, and repairs it; sometimes that is killed too.
fn repair(folder: &Folder, store: &str, number: u32) {
    let first = match number % 4 {
        0 => ["check", store],
        1 => ["stats", store],
        2 => {
            run_and_kill(folder, &["stats", store], Duration::from_millis(4));
            return;
        }
        // the library, when its contents are looked at
        _ => return,
    };
    folder.run(&first).expect(0);
}

impl Scenario<'_> {
    fn run(&self) {
        let last = self.states.len() - 1;
        kill_all_along(
            self.name,
            &self.before,
            &self.arguments,
            |folder, ran, number| {
                let exists = folder.path(self.store).exists();
                if exists {
                    repair(folder, self.store, number);
                }
                let found = folder.held(self.store);
                let acknowledged = (self.acknowledged)(ran);
                let candidates = acknowledged..=last.min(acknowledged + 1);
                let state = candidates
                    .clone()
                    .find(|state| self.states[*state] == found);
                let count = found.as_ref().map(|found| found.records.len());
                let Some(state) = state else {
                    panic!(
                        "{}: {count:?} documents, expected a state of {candidates:?}\n{}",
                        self.name, ran.stderr
                    );
                };
                if exists {
                    folder.is_sound(self.store);
                }
                let left = folder.new_names(&self.before);
                for name in left.iter().filter(|name| *name != self.store) {
                    assert!(name.starts_with(".resemblance-"), "{}: {name}", self.name);
                }
                let again = (self.resume)(&self.arguments, state);
                if !again.is_empty() {
                    let again: Vec<&str> = again.iter().map(String::as_str).collect();
                    let done = folder.run(&again);
                    assert_eq!(done.code, Some(0), "{again:?}: {}", done.stderr);
                }
                let found = folder.held(self.store).unwrap();
                let expected = self.states[last].as_ref().unwrap();
                let is_same = if self.changes_ids {
                    found.by_key() == expected.by_key() && found.schema == expected.schema
                } else {
                    found == *expected
                };
                assert!(is_same, "{}: other contents than undisturbed", self.name);
                folder.is_sound(self.store);
            },
        );
    }
}

fn owned(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|part| part.to_string()).collect()
}

/// The same command again.
fn same_again(arguments: &[&str], _: usize) -> Vec<String> {
    owned(arguments)
}

/// Documents of the corpus that one commit of `add` takes. Of each commit the test makes its own store to compare with.
fn every() -> usize {
    trials(600, 100)
}

const DOCUMENTS: usize = 1_200;

/// Returns the last complete line that reports a commit.
fn committed(ran: &Ran) -> usize {
    let lines = ran.stderr.split_inclusive('\n');
    let whole = lines.rev().filter_map(|line| line.strip_suffix('\n'));
    let mut said =
        whole.filter_map(|line| line.split_once("documents of the first ")?.1.parse().ok());
    said.next()
        .map_or(0, |documents: usize| documents / every())
}

/// Keys from 600, some of which a store with 1,000 documents has. Every fifth text nearly equals an
/// earlier one.
fn corpus() -> Vec<String> {
    let number = |place: usize| place as u64;
    let text_of = |place: usize| match place % 5 {
        4 => edited(number(place / 2) + 5_000, 1),
        _ => text(number(place) + 5_000),
    };
    let line_of = |place: usize| line(&(600 + place).to_string(), &text_of(place));
    (0..DOCUMENTS).map(line_of).collect()
}

/// A folder with a store `a.rsm` of 1,000 documents, some of them removed, and a corpus.
fn filled(lines: &[String]) -> Folder {
    let folder = Folder::new();
    folder.write("first.jsonl", distinct(0..1_000));
    folder.run("build a.rsm first.jsonl -q").expect(0);
    remove(&folder, 0..100);
    folder.write("c.jsonl", lines.concat());
    folder
}

fn remove(folder: &Folder, numbers: std::ops::Range<u64>) {
    let keys: Vec<String> = numbers.map(|number| number.to_string()).collect();
    let mut arguments = vec!["remove", "a.rsm", "-q"];
    arguments.extend(keys.iter().map(String::as_str));
    folder.run(&arguments).expect(0);
}

/// Returns the contents of a store after each number of commits. They equal the result of a shorter
/// corpus.
fn states_of_adding(before: &Folder, arguments: &[&str], lines: &[String]) -> Vec<Option<Held>> {
    let state = |commits: usize| {
        let folder = before.copy();
        folder.write("c.jsonl", lines[..commits * every()].concat());
        folder.run(arguments).expect(0);
        folder.held("a.rsm")
    };
    (0..=DOCUMENTS / every()).map(state).collect()
}

#[test]
fn killed_add_keeps_acknowledged_documents() {
    let all = corpus();
    // without those that the store has
    let unknown: Vec<String> = all[400..].to_vec();
    let resume_after = |arguments: &[&str], commits: usize| {
        let mut arguments = owned(arguments);
        arguments.extend(["--skip".into(), (commits * every()).to_string()]);
        arguments
    };
    let commit_every = every().to_string();
    for (name, options, resume, changes_ids) in [
        (
            "add",
            &[][..],
            resume_after as fn(&[&str], usize) -> _,
            false,
        ),
        ("add --if-new", &["--if-new"], same_again, false),
        ("add --upsert", &["--upsert"], same_again, true),
        ("add --upsert --skip", &["--upsert"], resume_after, false),
    ] {
        let mut lines = if options.is_empty() {
            unknown.clone()
        } else {
            all.clone()
        };
        lines.extend(
            distinct(9_000..9_400)
                .split_inclusive('\n')
                .map(String::from),
        );
        lines.truncate(DOCUMENTS);
        let before = filled(&lines);
        let mut arguments = vec![
            "add",
            "a.rsm",
            "c.jsonl",
            "-v",
            "--commit-every",
            &commit_every,
        ];
        arguments.extend(options);
        Scenario {
            name,
            states: states_of_adding(&before, &arguments, &lines),
            before,
            arguments,
            store: "a.rsm",
            acknowledged: committed,
            resume,
            changes_ids,
        }
        .run();
    }
}

/// Tests a command with one commit, given how it reports the commit.
fn all_or_nothing(
    name: &str,
    before: Folder,
    arguments: &[&str],
    acknowledged: fn(&Ran) -> usize,
    resume: fn(&[&str], usize) -> Vec<String>,
) {
    let after = before.copy();
    after.run(arguments).expect(0);
    let store = "a.rsm";
    Scenario {
        name,
        states: vec![before.held(store), after.held(store)],
        before,
        arguments: arguments.to_vec(),
        store,
        acknowledged,
        resume,
        changes_ids: false,
    }
    .run();
}

/// The command again if it has done nothing: a second `build`, for one, finds the store in its way.
fn unless_done(arguments: &[&str], commits: usize) -> Vec<String> {
    if commits == 0 {
        owned(arguments)
    } else {
        Vec::new()
    }
}

/// Returns whether the counts that follow the commit were written.
fn has_summed_up(ran: &Ran) -> usize {
    let is_summary = |line: &str| {
        let rest = line.strip_prefix("resemblance: ").unwrap_or_default();
        line.ends_with('\n')
            && ["read ", "removed ", "made "]
                .iter()
                .any(|w| rest.starts_with(w))
    };
    usize::from(ran.stderr.split_inclusive('\n').any(is_summary))
}

fn has_a_result(ran: &Ran) -> usize {
    usize::from(ran.stdout.ends_with('\n'))
}

#[test]
fn killed_changes_are_whole_or_absent() {
    let lines: Vec<String> = distinct(2_000..3_500)
        .split_inclusive('\n')
        .map(String::from)
        .collect();
    let add = ["add", "a.rsm", "c.jsonl", "--atomic"];
    all_or_nothing(
        "add --atomic",
        filled(&lines),
        &add,
        has_summed_up,
        unless_done,
    );

    let keys: Vec<String> = (100..700).map(|number| number.to_string()).collect();
    let mut remove = vec!["remove", "a.rsm"];
    remove.extend(keys.iter().map(String::as_str));
    all_or_nothing("remove", filled(&[]), &remove, has_summed_up, unless_done);

    let reband = ["reband", "a.rsm", "--threshold", "0.5"];
    all_or_nothing("reband", filled(&[]), &reband, has_a_result, same_again);
}

#[test]
fn killed_compact_changes_no_answer() {
    let before = filled(&[]);
    before.write("c.jsonl", distinct(2_000..3_500));
    before.run("add a.rsm c.jsonl -q").expect(0);
    remove(&before, 300..700);
    let compacted = before.copy();
    compacted.run("compact a.rsm").expect(0);
    let size = |folder: &Folder| std::fs::metadata(folder.path("a.rsm")).unwrap().len();
    let expected = size(&compacted);
    let scenario = Scenario {
        name: "compact",
        states: vec![before.held("a.rsm"), before.held("a.rsm")],
        before,
        arguments: vec!["compact", "a.rsm"],
        store: "a.rsm",
        acknowledged: |_| 0,
        resume: same_again,
        changes_ids: false,
    };
    scenario.run();
    assert!(expected < size(&scenario.before));
}

#[test]
fn killed_build_leaves_a_whole_store_or_none() {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..2_000));
    let build = ["build", "a.rsm", "c.jsonl"];
    all_or_nothing("build", folder, &build, has_summed_up, unless_done);

    // Enough for the temporary file of a build with the least memory: 14 lanes of 8 bytes.
    let folder = Folder::new();
    folder.write("c.jsonl", short(0..12_000));
    let spilling = [
        "build",
        "a.rsm",
        "c.jsonl",
        "--memory",
        "1M",
        "--temp-dir",
        ".",
    ];
    all_or_nothing(
        "build that spills",
        folder,
        &spilling,
        has_summed_up,
        unless_done,
    );

    let create = ["create", "a.rsm"];
    all_or_nothing("create", Folder::new(), &create, has_summed_up, unless_done);
}

#[test]
fn killed_dedup_leaves_complete_output_or_none() {
    let before = Folder::new();
    before.write("c.jsonl", corpus().concat());
    before.write("d.jsonl", distinct(5_000..5_400));
    before.write("old.jsonl", "what was there\n");
    before.write("there/d.jsonl", "what was there\n");
    let file = "c.jsonl -o old.jsonl --force";
    let cluster = format!("{file} --policy cluster");
    let outputs = [
        "old.jsonl",
        "new/c.jsonl",
        "new/d.jsonl",
        "there/c.jsonl",
        "there/d.jsonl",
    ];
    for (name, arguments, comes_at_once) in [
        ("dedup", file, true),
        ("dedup --policy cluster", &cluster, true),
        ("dedup to a new folder", "c.jsonl d.jsonl -o new/", true),
        // one by one, as its help says
        (
            "dedup to a folder",
            "c.jsonl d.jsonl -o there/ --force",
            false,
        ),
    ] {
        let mut all = vec!["dedup", "--temp-dir", "."];
        all.extend(arguments.split(' '));
        let read = |folder: &Folder| {
            let files = outputs.map(|name| std::fs::read(folder.path(name)).ok());
            files.to_vec()
        };
        let after = before.copy();
        after.run(&all).expect(0);
        let (old, new) = (read(&before), read(&after));
        assert!(old != new);
        kill_all_along(name, &before, &all, |folder, ran, _| {
            let found = read(folder);
            if comes_at_once {
                assert!(found == new || found == old, "{name}");
            }
            for (place, file) in found.iter().enumerate() {
                assert!(*file == new[place] || *file == old[place], "{name}");
            }
            assert!(found == new || has_summed_up(ran) == 0, "{name}");
            let left = folder.new_names(&before);
            for left in left.iter().filter(|left| !outputs.contains(&left.as_str())) {
                let is_marked = |part: &str| part.starts_with(".resemblance-");
                assert!(left.split('/').any(is_marked), "{name}: {left}");
            }
            if found != new || arguments.contains("--force") {
                folder.run(&all).expect(0);
                assert!(read(folder) == new, "{name}");
            }
        });
    }
}

#[test]
fn killed_backup_leaves_a_whole_copy_or_none() {
    let before = filled(&[]);
    Scenario {
        name: "backup",
        states: vec![None, before.held("a.rsm")],
        before,
        arguments: vec!["backup", "a.rsm", "-o", "b.rsm"],
        store: "b.rsm",
        acknowledged: has_a_result,
        resume: unless_done,
        changes_ids: false,
    }
    .run();
}
