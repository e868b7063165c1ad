//! --job: a run that was stopped continues, and its result is that of an uninterrupted run.

use std::fs::{File, FileTimes};
use std::time::Instant;

use crate::kills::run_and_kill;
use crate::sample::{one_in, trials};
use crate::support::{Folder, edited, gzip, line, text};

const SHARDS: u64 = 20;
const DOCUMENTS: u64 = 60;

/// Twenty files with near-duplicates across them, ids that several have, blank lines and bad documents; some of them
/// are compressed, and two of rows.
fn shards() -> Folder {
    let folder = Folder::new();
    for shard in 0..SHARDS {
        let numbers = (0..DOCUMENTS).map(|n| (n, shard * DOCUMENTS + n));
        let texts = numbers.map(|(n, number)| match n % 4 {
            0 => (n, edited(number * 7 % 300, number % 3)),
            1 => (n, text(number % 100)),
            _ => (number, text(number + 1_000)),
        });
        let texts: Vec<_> = texts.collect();
        if shard % 10 == 4 {
            let rows = texts
                .iter()
                .map(|(id, text)| format!("{id},{text},{}\n", id % 7));
            let rows = "id,text,quality\n".to_owned() + &rows.collect::<String>();
            folder.write(&format!("in/{shard:02}.csv"), rows);
            continue;
        }
        let rows = texts.iter().map(|(id, text)| {
            serde_json::json!({"id": id, "text": text, "quality": id % 7}).to_string() + "\n"
        });
        let lines = rows.collect::<String>() + "\nno JSON\n" + &line("", "");
        match shard % 5 {
            2 => folder.write(&format!("in/{shard:02}.jsonl.gz"), gzip(lines.as_bytes())),
            _ => folder.write(&format!("in/{shard:02}.jsonl"), lines),
        }
    }
    folder.write("in/empty.jsonl", "");
    folder
}

const DEDUP: [&str; 8] = [
    "dedup",
    "in",
    "-o",
    "out/",
    "--report",
    "r.tsv",
    "--skip-bad",
    // A kill may happen between the outputs.
    "--force",
];

/// The contents of all files that a run has made.
fn made(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let names = folder.names().into_iter();
    let names = names.filter(|name| name.starts_with("out/") || name == "r.tsv");
    names
        .map(|name| (name.clone(), folder.read(&name)))
        .collect()
}

fn with_job<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &["--job", "job"]].concat()
}

/// Each way is killed twice, 25 times with `RESEMBLANCE_TESTS=all`.
#[test]
fn job_killed_at_any_moment_resumes_to_the_same_bytes() {
    for way in [
        "--threshold 0.85",
        "--lost 0.05 --policy representative --keep quality:max",
    ] {
        let way: Vec<&str> = way.split(' ').collect();
        kill_and_resume(&[&DEDUP, &way[..]].concat(), trials(2, 25));
    }
}

fn kill_and_resume(way: &[&str], kills: u32) {
    let before = shards();
    let plain = before.copy();
    plain.run(way).expect(0);
    let expected = made(&plain);
    assert_eq!(expected.len(), 22);
    let arguments = with_job(way);
    let whole = before.copy();
    let start = Instant::now();
    whole.run(&arguments).expect(0);
    let mut lasts = start.elapsed();
    assert_eq!(made(&whole), expected);

    let (mut killed, mut state, mut taken_over) = (0, 0x9e37_79b9_u64, Vec::new());
    let is_in_the_midst = |count: &u64| (1..=SHARDS).contains(count);
    // Most kills happen before the first file or after the last: reading takes a small part of the
    // time, so that many are early.
    while killed < kills || killed < 40 * kills && !taken_over.iter().any(is_in_the_midst) {
        let folder = before.copy();
        let mut is_done = false;
        // Up to three times in a row, each at another moment.
        for _ in 0..=killed % 3 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let share = f64::from((state >> 32) as u32) / f64::from(u32::MAX);
            let (was_killed, _, lived) =
                run_and_kill(&folder, &arguments, lasts.mul_f64(share * share));
            is_done = !was_killed;
            if is_done {
                // It is quicker when less else is going on.
                lasts = lasts.min(lived);
                break;
            }
            killed += 1;
        }
        if !is_done {
            let ran = folder.run(&arguments).expect(0);
            let said = ran.stderr.lines().find(|line| line.contains("reusing"));
            let said = said.unwrap().rsplit(' ').nth(3).unwrap().to_owned();
            taken_over.push(said.parse::<u64>().unwrap());
        }
        let mut found = made(&folder);
        // A killed run may leave files that it had not renamed yet, as the help says.
        found.retain(|(name, _)| !name.starts_with("out/.resemblance-"));
        assert!(found == expected, "kill {killed}");
    }
    crate::support::say(&format!(
        "killed dedup --job: {killed} times within {lasts:.0?}; files reused: {taken_over:?}"
    ));
    assert!(taken_over.iter().any(is_in_the_midst), "{taken_over:?}");
}

/// Changes a file without changing its length or its time.
fn alter(folder: &Folder, name: &str) {
    let path = folder.path(name);
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    let changed = folder
        .read_text(name)
        .replace("\"quality\":1", "\"quality\":2");
    assert_ne!(changed, folder.read_text(name));
    folder.write(name, changed);
    let file = File::options().write(true).open(&path).unwrap();
    file.set_times(FileTimes::new().set_modified(modified))
        .unwrap();
}

/// In one way of two, in each with `RESEMBLANCE_TESTS=all`.
#[test]
fn resumed_job_repeats_no_work_with_any_reader() {
    let before = shards();
    let ways: [&[&str]; 6] = [
        &["dedup", "in", "-o", "out/", "--skip-bad"],
        &[
            "dedup",
            "in",
            "-o",
            "out/",
            "--skip-bad",
            "--verify",
            "estimate",
            "--value-bits",
            "8",
        ],
        &[
            "dedup",
            "in",
            "-o",
            "out/",
            "--skip-bad",
            "--simhash",
            "64",
            "--distance",
            "4",
        ],
        &[
            "dedup",
            "in",
            "-o",
            "out/",
            "--skip-bad",
            "--keep",
            "quality:max",
            "--policy",
            "cluster",
        ],
        &[
            "pairs",
            "in",
            "--skip-bad",
            "--near",
            "both",
            "--minhash",
            "64",
            "--simhash",
            "64",
        ],
        &["clusters", "in", "--skip-bad", "--threshold", "0.7"],
    ];
    for way in ways.into_iter().step_by(one_in(2)) {
        let result =
            |folder: &Folder, ran: &crate::support::Ran| (ran.stdout.clone(), made(folder));
        let plain = before.copy();
        let expected = plain.run(way).expect(0);
        let summary = expected.stderr.lines().last().unwrap().to_owned();
        let expected = result(&plain, &expected);
        let folder = before.copy();
        let first = folder.run(&with_job(way)).expect(0);
        assert_eq!(result(&folder, &first), expected, "{way:?}");
        assert!(first.stderr.contains("job job: reusing 0 of 21 files"));
        std::fs::remove_file(folder.path("job/000003.documents")).unwrap();
        let _ = std::fs::remove_dir_all(folder.path("out"));
        let second = folder.run(&with_job(way)).expect(0);
        assert!(second.stderr.contains("job job: reusing 20 of 21 files"));
        assert_eq!(result(&folder, &second), expected, "{way:?}");
        assert_eq!(second.stderr.lines().last().unwrap(), summary);
    }
}

#[test]
fn resumed_job_detects_changed_input_before_writing() {
    let folder = shards();
    let arguments = with_job(&DEDUP);
    let pairs = "pairs in --skip-bad --job of-pairs";
    folder.run(&arguments).expect(0);
    let found = folder.run(pairs).expect(0).stdout;
    for name in ["out", "r.tsv"] {
        let path = folder.path(name);
        let _ = std::fs::remove_dir_all(&path);
        let _ = std::fs::remove_file(&path);
    }
    alter(&folder, "in/00.jsonl");
    assert_eq!(folder.run(pairs).expect(0).stdout, found);
    let ran = folder.run(&arguments).expect(4);
    ran.says(&["the corpus was changed while it was being read"]);
    assert_eq!(made(&folder), []);
}

#[test]
fn job_folder_refuses_changed_files_and_rebuilds_damaged_ones() {
    let folder = shards();
    let arguments = with_job(&DEDUP);
    folder.run(&arguments).expect(0);
    let expected = made(&folder);
    let bytes = folder.read("job/000007.documents");
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 1;
    for damage in [&damaged[..], &bytes[..bytes.len() - 1], &[]] {
        folder.write("job/000007.documents", damage);
        let ran = folder.run(&arguments).expect(0);
        assert!(
            ran.stderr.contains("000007.documents is damaged"),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("reusing 20 of 21 files"));
        assert_eq!(made(&folder), expected);
        assert_eq!(folder.read("job/000007.documents"), bytes);
    }

    let lock = File::options()
        .write(true)
        .open(folder.path("job/lock"))
        .unwrap();
    lock.lock().unwrap();
    folder
        .run(&arguments)
        .expect(4)
        .says(&["another run is using the job in job"]);
    drop(lock);
    folder.write("in/05.jsonl", line("x", &text(1)));
    folder
        .run(&arguments)
        .expect(2)
        .says(&["an earlier version of in/05.jsonl"]);
    folder.write("in/more.jsonl", "");
    folder
        .run(&arguments)
        .expect(2)
        .says(&["21 files instead of 22"]);
}
