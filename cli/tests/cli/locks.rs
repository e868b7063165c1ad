//! Which commands may use a store at the same time.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use resemblance::{Store, StoreOptions};

use crate::signals::{adding, send};
use crate::support::{Folder, distinct, edited, line, mixed, ran, text};

const READING: [&[&str]; 11] = [
    &["check", "a.rsm"],
    &["query", "a.rsm", "text"],
    &["get", "a.rsm", "1"],
    &["list", "a.rsm"],
    &["pairs", "a.rsm"],
    &["clusters", "a.rsm"],
    &["stats", "a.rsm"],
    &["dedup", "c.jsonl", "-o", "-", "--against", "a.rsm"],
    &["evict", "a.rsm", "--keep-newest", "1", "--dry-run"],
    &["export", "a.rsm", "-o", "exported"],
    &["backup", "a.rsm", "-o", "copy.rsm"],
];

const CHANGING: [&[&str]; 5] = [
    &["remove", "a.rsm", "1"],
    &["touch", "a.rsm", "2"],
    &["evict", "a.rsm", "--keep-newest", "1"],
    &["add", "a.rsm", "c.jsonl"],
    &["import", "a.rsm", "stream"],
];

/// These have the store for themselves.
const ALONE: [&[&str]; 2] = [
    &["compact", "a.rsm"],
    &["reband", "a.rsm", "--recall", "0.5"],
];

/// A folder with a store of three documents, a corpus and an exported stream.
fn filled() -> Folder {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(10..11));
    folder.run("build b.rsm c.jsonl -q").expect(0);
    folder.run("export b.rsm -o stream -q").expect(0);
    std::fs::remove_file(folder.path("b.rsm")).unwrap();
    folder.write("c.jsonl", distinct(0..3));
    folder.run("build a.rsm c.jsonl -q").expect(0);
    folder.write("c.jsonl", mixed());
    folder
}

#[test]
fn reading_verbs_run_beside_a_writer_and_writing_ones_name_it() {
    let folder = filled();
    let store = Store::open(folder.path("a.rsm")).unwrap();
    assert!(store.remove("0").unwrap().is_some());
    let this = match cfg!(target_os = "linux") {
        true => format!("(process {})", std::process::id()),
        false => "another process".to_owned(),
    };
    for arguments in READING {
        let ran = folder.run(arguments);
        assert!(
            matches!(ran.code, Some(0 | 1)),
            "{arguments:?} {}",
            ran.stderr
        );
    }
    // They see the last commit.
    folder.run("get a.rsm 0").expect(1);
    assert_eq!(folder.count("copy.rsm"), 2);
    folder
        .run("check a.rsm")
        .expect(0)
        .says(&["another process", "were not checked"]);
    let before = folder.read("a.rsm");
    for arguments in CHANGING.iter().chain(&ALONE) {
        folder
            .run(arguments)
            .expect(5)
            .says(&["a.rsm is in use by", &this]);
    }
    // These commands would replace it.
    for arguments in [
        &["create", "a.rsm"][..],
        &["build", "a.rsm", "c.jsonl"],
        &["dedup", "c.jsonl", "-o", "a.rsm"],
    ] {
        folder
            .run(arguments)
            .expect(4)
            .says(&["a.rsm", "already exists"]);
    }
    let forced = "dedup c.jsonl -o a.rsm --force";
    folder.run(forced).expect(2).says(&["a.rsm", "store"]);
    // Another name is the same file.
    std::fs::hard_link(folder.path("a.rsm"), folder.path("b.rsm")).unwrap();
    std::os::unix::fs::symlink("a.rsm", folder.path("c.rsm")).unwrap();
    for name in ["b.rsm", "c.rsm", "./a.rsm"] {
        assert_eq!(folder.count(name), 2);
        folder
            .run(&format!("remove {name} 1"))
            .expect(5)
            .says(&[name, &this]);
    }
    assert!(folder.read("a.rsm") == before);
    // None of it is in the way of the one that has it.
    assert!(store.remove("2").unwrap().is_some());
    drop(store);
    assert_eq!(folder.count("a.rsm"), 1);
    folder.run("get c.rsm 1").expect(0);
    for arguments in CHANGING.iter().chain(&ALONE) {
        let ran = folder.run(arguments);
        assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
    }
}

#[test]
fn readers_block_only_verbs_that_need_exclusive_access() {
    let folder = filled();
    let path = folder.path("a.rsm");
    let readers = [(); 2].map(|()| Store::open_read_only(&path).unwrap());
    let snapshot = readers[0].snapshot().unwrap();
    for arguments in READING {
        let ran = folder.run(arguments);
        assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
    }
    for arguments in ALONE {
        folder
            .run(arguments)
            .expect(5)
            .says(&["a.rsm is in use by"]);
    }
    folder.run("remove a.rsm 1").expect(0);
    assert_eq!((snapshot.len(), folder.count("a.rsm")), (3, 2));
    for reader in &readers {
        assert_eq!(reader.snapshot().unwrap().len(), 2);
    }
}

/// Starts `add` with a document of a number, which waits for its turn.
fn waiting(folder: &Folder, number: u64, more: &str) -> Child {
    let name = format!("{number}.jsonl");
    folder.write(&name, line(&name, &text(number)));
    let arguments = format!("add a.rsm {name} {more}");
    let mut command = folder.command(&arguments);
    command.env("RESEMBLANCE_WAIT", "60").spawn().unwrap()
}

#[test]
fn writing_verbs_wait_for_their_turn() {
    let folder = filled();
    let store = Store::open(folder.path("a.rsm")).unwrap();
    let started = Instant::now();
    folder
        .run("remove a.rsm 1 --wait 0.5")
        .expect(5)
        .says(&["a.rsm is in use by"]);
    assert!(started.elapsed() >= Duration::from_millis(500));
    // A signal ends the waiting.
    let impatient = waiting(&folder, 100, "");
    std::thread::sleep(Duration::from_millis(500));
    send("-INT", &impatient);
    assert_eq!(
        impatient.wait_with_output().unwrap().status.code(),
        Some(130)
    );
    let patient = waiting(&folder, 101, "");
    std::thread::sleep(Duration::from_millis(300));
    drop(store);
    ran(patient.wait_with_output().unwrap()).expect(0);
    assert_eq!(folder.count("a.rsm"), 4);

    let together: Vec<Child> = (0..6).map(|n| waiting(&folder, 200 + n, "")).collect();
    for child in together {
        ran(child.wait_with_output().unwrap()).expect(0);
    }
    assert_eq!(folder.count("a.rsm"), 10);
    folder.run("check a.rsm").expect(0);
}

#[test]
fn shared_writers_take_turns_while_all_have_the_store_open() {
    let folder = Folder::new();
    folder.run("create a.rsm --shared-writers").expect(0);
    folder
        .run("stats a.rsm")
        .expect(0)
        .says(&["shared writers"]);
    // This one waits for more documents, and lets others have the turn meanwhile.
    let mut idle = folder.command("add a.rsm - --if-new -q");
    let mut idle = idle
        .env("RESEMBLANCE_WAIT", "60")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = idle.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, line("first", &text(7)).as_bytes()).unwrap();
    let store = Store::open(folder.path("a.rsm")).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while store.snapshot().unwrap().is_empty() {
        assert!(Instant::now() < deadline, "the document is never committed");
        std::thread::sleep(Duration::from_millis(20));
    }
    let signature = store.sketch_text(&edited(7, 1)).unwrap();
    assert!(!store.insert_if_new("near", &signature).unwrap().is_new());
    // All of these have the same text.
    let together: Vec<Child> = (0..6)
        .map(|number| {
            let name = format!("{number}.jsonl");
            folder.write(&name, line(&name, &edited(9, 1)));
            let arguments = format!("add a.rsm {name} --if-new -q");
            let mut command = folder.command(&arguments);
            command.env("RESEMBLANCE_WAIT", "60").spawn().unwrap()
        })
        .collect();
    for child in together {
        ran(child.wait_with_output().unwrap()).expect(0);
    }
    assert_eq!(store.snapshot().unwrap().len(), 2);
    drop(stdin);
    assert_eq!(idle.wait().unwrap().code(), Some(0));
    folder.run("compact a.rsm --shared-writers off").expect(5);
    drop(store);
    for (setting, is_shared) in [("off", "0"), ("on", "1")] {
        let compact = format!("compact a.rsm --shared-writers {setting}");
        folder.run(&compact).expect(0);
        let stats = folder.run("stats a.rsm --format tsv").expect(0).stdout;
        let shown = format!("store\t\tshared_writers\t{is_shared}\n");
        assert!(stats.contains(&shown), "{stats}");
    }
    folder.run("check a.rsm").expect(0);
    assert_eq!(folder.count("a.rsm"), 2);
}

#[test]
fn followed_stats_grow_while_another_process_writes() {
    let folder = Folder::new();
    folder.run("create a.rsm").expect(0);
    let options = StoreOptions::new().wait(Duration::from_secs(60));
    let store = options.open(folder.path("a.rsm")).unwrap();
    for (format, column) in [("tsv", 0), ("jsonl", 1)] {
        let arguments = format!("stats a.rsm --follow=0.05 --format {format}");
        let mut child = folder.command(&arguments).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut documents = Vec::new();
        let mut commits = 0.0;
        while documents.len() < 20 || commits == 0.0 {
            let number = store.snapshot().unwrap().len();
            let signature = store.sketch_text(&text(number)).unwrap();
            store
                .insert(number.to_string().as_str(), &signature)
                .unwrap();
            let line = lines.next().unwrap().unwrap();
            let values: Vec<f64> = match column {
                0 => line
                    .split('\t')
                    .map(|value| value.parse().unwrap())
                    .collect(),
                _ => {
                    let values: serde_json::Value = serde_json::from_str(&line).unwrap();
                    let names = [
                        "documents",
                        "commits",
                        "documents_per_second",
                        "commits_per_second",
                    ];
                    names.map(|name| values[name].as_f64().unwrap()).to_vec()
                }
            };
            documents.push(values[0]);
            commits = values[3];
            assert!(documents.is_sorted(), "{documents:?}");
        }
        assert!(documents.last() > documents.first());
        send("-INT", &child);
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    // The reader of the output ends.
    let mut child = folder.command("stats a.rsm --follow=0.05").spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A process that reads a store as long as there may be more questions.
fn asking(folder: &Folder) -> Child {
    let mut command = folder.command("query a.rsm --corpus -");
    command.stdin(Stdio::piped()).spawn().unwrap()
}

/// The kernel lets go of the lock of a process that ends in whatever way.
#[test]
fn a_killed_process_leaves_no_lock() {
    let folder = filled();
    let mut documents = 3;
    for turn in 0..5_u64 {
        // One that writes, in the middle of it ...
        let (mut child, stdin, _) = adding(&folder, &["--upsert"]);
        folder.run("stats a.rsm").expect(0);
        folder.run("remove a.rsm nothing").expect(5);
        child.kill().unwrap();
        child.wait().unwrap();
        let new = line(&format!("new {turn}"), &text(9_000 + turn));
        folder.write("new.jsonl", new);
        folder.run("add a.rsm new.jsonl -q").expect(0);
        drop(stdin);
        let count = folder.count("a.rsm");
        assert!(count > documents, "{count} after {documents}");
        documents = count;

        // ... and one that reads, waiting for more questions.
        let mut reader = asking(&folder);
        let start = Instant::now();
        while folder.run("compact a.rsm").code != Some(5) {
            assert!(start.elapsed() < Duration::from_secs(60), "it never opens");
            if reader.try_wait().unwrap().is_some() {
                // It met the compaction that was to meet it.
                reader = asking(&folder);
            }
        }
        folder.run("stats a.rsm").expect(0);
        folder.run("remove a.rsm nothing").expect(1);
        reader.kill().unwrap();
        reader.wait().unwrap();
        folder.run("compact a.rsm").expect(0);
    }
    folder.run("check a.rsm").expect(0);
}

/// A store that was not closed is read in memory, until a writer recovers it. That is no damage.
#[cfg(target_os = "linux")]
#[test]
fn a_reader_names_the_writer_that_recovers_its_store() {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(1_000..4_000));
    folder.run("build a.rsm c.jsonl -q").expect(0);
    let question = folder.read_text("c.jsonl");
    let mut seen = false;
    for number in 0..20 {
        let (mut writer, stdin, _) = adding(&folder, &["--upsert"]);
        writer.kill().unwrap();
        writer.wait().unwrap();
        drop(stdin);
        let mut command = folder.command("query a.rsm --corpus - --cache 1M");
        let mut reader = command.stdin(Stdio::piped()).spawn().unwrap();
        let opened = format!("/proc/{}/fd", reader.id());
        let is_open = || {
            let mut files = std::fs::read_dir(&opened).unwrap().flatten();
            files.any(|file| {
                file.path()
                    .read_link()
                    .is_ok_and(|it| it.ends_with("a.rsm"))
            })
        };
        while !is_open() && reader.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        // The reader may still be recovering it.
        std::thread::sleep(Duration::from_millis(20 * number));
        folder.run("remove a.rsm nothing").expect(1);
        let mut stdin = reader.stdin.take().unwrap();
        // It may have ended.
        let _ = std::io::Write::write_all(&mut stdin, question.as_bytes());
        drop(stdin);
        let ran = ran(reader.wait_with_output().unwrap());
        assert!(matches!(ran.code, Some(0 | 5)), "{ran:?}");
        seen |= ran.stderr.contains("a.rsm: another process has opened")
            && ran.stderr.contains("give the command again");
        if seen {
            break;
        }
    }
    assert!(seen, "no reader lost its store");
}
