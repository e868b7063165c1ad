//! Signals.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Folder, distinct, line, mixed, ran, text};

pub fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// An `add` that has committed at least 100 documents and waits for more input.
pub fn adding(folder: &Folder, more: &[&str]) -> (Child, ChildStdin, BufReader<ChildStderr>) {
    let mut arguments = vec!["add", "a.rsm", "-", "--commit-every", "100", "-v"];
    arguments.extend(more);
    let mut child = folder
        .command(&arguments)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stdin.write_all(distinct(0..520).as_bytes()).unwrap();
    stdin.flush().unwrap();
    let mut message = String::new();
    while !message.starts_with("resemblance: committed") {
        message.clear();
        assert!(stderr.read_line(&mut message).unwrap() > 0);
    }
    assert_eq!(
        message,
        "resemblance: committed 100 documents of the first 100\n"
    );
    (child, stdin, stderr)
}

#[test]
fn interrupted_add_leaves_a_prefix_and_can_be_resumed() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let folder = Folder::new();
        folder.run("create a.rsm").expect(0);
        let (mut child, stdin, stderr) = adding(&folder, &[]);
        send(signal, &child);
        assert_eq!(child.wait().unwrap().code(), Some(code));
        drop(stdin);
        let messages: Vec<String> = stderr.lines().map(Result::unwrap).collect();
        let note = messages.last().unwrap();
        let count = folder.count("a.rsm");
        assert!((100..=520).contains(&count), "{count}");
        assert!(
            note.contains(&format!("committed {count} documents")),
            "{note}"
        );
        assert!(note.contains(&format!("--skip {count}")), "{note}");
        folder
            .run(&["get", "a.rsm", &(count - 1).to_string()])
            .expect(0);
        folder.run(&["get", "a.rsm", &count.to_string()]).expect(1);
        folder.run("check a.rsm").expect(0);
        let resume = ["add", "a.rsm", "-", "--skip", &count.to_string()];
        folder
            .run_with_input(&resume, distinct(0..520).as_bytes())
            .expect(0);
        assert_eq!(folder.count("a.rsm"), 520);
    }
}

/// Waits until another process has committed this number of documents to the store.
fn wait_for_commit(stderr: &mut BufReader<ChildStderr>, documents: u64) {
    let wanted = format!("resemblance: committed {documents} documents of the first {documents}\n");
    let mut message = String::new();
    while message != wanted {
        message.clear();
        assert!(stderr.read_line(&mut message).unwrap() > 0, "{wanted}");
    }
}

#[test]
fn idle_pipe_does_not_delay_commits() {
    for (more, at_once) in [
        (&["--commit-every", "10"][..], 50),
        (&["--commit-interval", "0.2"], 53),
        (&["--commit-interval", "0.2", "--upsert"], 53),
    ] {
        let folder = Folder::new();
        folder.run("create a.rsm").expect(0);
        let arguments = [&["add", "a.rsm", "-", "-v"], more].concat();
        let mut command = folder.command(&arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        stdin.write_all(distinct(0..53).as_bytes()).unwrap();
        wait_for_commit(&mut stderr, at_once);
        drop(stdin);
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert_eq!(folder.count("a.rsm"), 53);
    }
}

/// After a kill, documents may be written again, but none is missing.
#[test]
fn new_documents_of_a_pipe_are_handed_on_with_each_commit() {
    for signal in ["-TERM", "-KILL"] {
        let folder = Folder::new();
        folder.run("create a.rsm").expect(0);
        let arguments = "add a.rsm - --if-new -o - --commit-interval 0.2";
        let mut command = folder.command(arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let copies = distinct(0..9).replace("{\"id\":\"", "{\"id\":\"copy");
        stdin
            .write_all((distinct(0..20) + &copies).as_bytes())
            .unwrap();
        let mut written = String::new();
        while written.len() < distinct(0..20).len() {
            assert!(stdout.read_line(&mut written).unwrap() > 0);
        }
        assert_eq!(written, distinct(0..20));
        stdin.write_all(distinct(20..25).as_bytes()).unwrap();
        send(signal, &child);
        stdout.read_to_string(&mut written).unwrap();
        drop(stdin);
        child.wait().unwrap();
        let committed = folder.count("a.rsm");
        assert!(written.starts_with(&distinct(0..committed)), "{committed}");
        let again = folder.run_with_input(arguments, distinct(0..30).as_bytes());
        assert_eq!(again.expect(0).stdout, distinct(committed..30));
    }
}

#[test]
fn documents_that_no_reader_receives_are_not_added() {
    let folder = Folder::new();
    folder.run("create a.rsm").expect(0);
    let mut command = folder.command("add a.rsm - --if-new -o - --commit-every 10");
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(distinct(0..25).as_bytes()).unwrap();
    drop(stdin);
    ran(child.wait_with_output().unwrap())
        .expect(4)
        .says(&["cannot write to standard output", "nothing was added"]);
    assert_eq!(folder.count("a.rsm"), 0);
}

#[test]
fn signal_commits_documents_of_a_pipe_and_skip_resumes_there() {
    for (signal, more) in [
        ("-INT", &[][..]),
        ("-TERM", &["--upsert"]),
        ("-TERM", &["--if-new"]),
    ] {
        let folder = Folder::new();
        folder.run("create a.rsm").expect(0);
        let arguments = [&["add", "a.rsm", "-"], more].concat();
        let mut command = folder.command(&arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(distinct(0..50).as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(700));
        send(signal, &child);
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains("committed 50 documents"), "{stderr}");
        assert!(stderr.contains("--skip 50"), "{stderr}");
        assert_eq!(folder.count("a.rsm"), 50);
        let resume = [&["add", "a.rsm", "-", "--skip", "50"], more].concat();
        folder
            .run_with_input(&resume, distinct(0..60).as_bytes())
            .expect(0);
        assert_eq!(folder.count("a.rsm"), 60);
    }
}

#[test]
fn bad_document_of_a_pipe_keeps_earlier_documents() {
    let folder = Folder::new();
    folder.run("create a.rsm").expect(0);
    let input = distinct(0..5) + "not json\n" + &distinct(5..6);
    folder
        .run_with_input("add a.rsm -", input.as_bytes())
        .expect(3)
        .says(&["committed 5 documents", "--skip 5"]);
    assert_eq!(folder.count("a.rsm"), 5);
    // All or nothing, as requested.
    let more = distinct(5..7) + "not json\n";
    folder
        .run_with_input("add a.rsm - --atomic", more.as_bytes())
        .expect(3)
        .says(&["nothing was added"]);
    assert_eq!(folder.count("a.rsm"), 5);
}

#[test]
fn queries_from_a_pipe_are_answered_while_it_pauses() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.run("build a.rsm c.jsonl").expect(0);
    let mut child = folder
        .command("query a.rsm --corpus -")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..3 {
        stdin.write_all(line("q", &text(3)).as_bytes()).unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        assert_eq!(answer, "q\tc\t1.000000\n");
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A follower of changes sees those that other processes commit, until it is interrupted.
#[test]
fn changes_of_other_processes_are_followed() {
    let folder = Folder::new();
    folder.run("create a.rsm --clusters").expect(0);
    folder.write("c.jsonl", line("a", &text(1)) + &line("b", &text(1)));
    folder.run("add a.rsm c.jsonl").expect(0);
    let mut command = folder.command("changes a.rsm --follow=0.05 --no-header --format tsv");
    let mut child = command.spawn().unwrap();
    let mut changes = BufReader::new(child.stdout.take().unwrap());
    let mut next = || {
        let mut change = String::new();
        assert!(changes.read_line(&mut change).unwrap() > 0);
        change
    };
    assert_eq!(next(), "1\t1\t0\tjoined\t\tb\n");
    assert_eq!(next(), "2\t1\t0\tjoined\t\ta\n");
    // One writer stays, and others come and go.
    let mut writer = folder.command("add a.rsm - --commit-interval 0.05");
    let mut writer = writer.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = writer.stdin.take().unwrap();
    for position in 3..8 {
        let key = format!("key {position}");
        stdin.write_all(line(&key, &text(1)).as_bytes()).unwrap();
        let change = next();
        let (before, after) = change.split_once("\t0\tjoined\t\t").unwrap();
        assert!(before.starts_with(&format!("{position}\t")), "{change}");
        assert_eq!(after, format!("{key}\n"));
    }
    drop(stdin);
    assert_eq!(writer.wait().unwrap().code(), Some(0));
    folder.run("remove a.rsm a").expect(0);
    assert!(next().ends_with("\t0\tleft\t\t\\#0\n"));
    send("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    // Another follower continues there, and then with changes in the feed that a rebanding has begun.
    let mut command = folder.command("changes a.rsm --since 7 --limit 1 --follow --no-header");
    assert_eq!(ran(command.output().unwrap()).expect(0).lines().len(), 1);
    folder.run("reband a.rsm --threshold 0.9").expect(0);
    folder
        .run("changes a.rsm --since 8 --follow")
        .expect(2)
        .says(&["--since: found 8, expected", "read all clusters again"]);
    let mut command = folder.command("changes a.rsm --all --follow --no-header --format tsv");
    let mut child = command.spawn().unwrap();
    let mut changes = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..6 {
        assert!(changes.read_line(&mut String::new()).unwrap() > 0);
    }
    send("-TERM", &child);
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn killed_add_leaves_a_store_that_opens() {
    let folder = Folder::new();
    folder.run("create a.rsm").expect(0);
    let (mut child, stdin, _) = adding(&folder, &[]);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stdin);
    // reading repairs it
    folder.run("get a.rsm 99").expect(0);
    let count = folder.count("a.rsm");
    assert!(count >= 100 && count.is_multiple_of(100), "{count}");
    folder.run("check a.rsm").expect(0);
}

fn wait_for_temporary_file(folder: &Folder) {
    let start = Instant::now();
    while !folder
        .names()
        .iter()
        .any(|name| name.contains(".resemblance-"))
    {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "no temporary file appeared"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn interrupted_builds_and_dedups_leave_nothing() {
    for (arguments, reported) in [
        (&["build", "a.rsm", "-"][..], "not written: a.rsm\n"),
        (
            &["dedup", "-", "-o", "out.jsonl", "--temp-dir", "."],
            "not written: out.jsonl\n",
        ),
        (
            &[
                "decontaminate",
                "-",
                "--against",
                "c.jsonl",
                "-o",
                "out.jsonl",
            ],
            "not written: out.jsonl\n",
        ),
        (
            &[
                "dedup",
                "c.jsonl",
                "-",
                "-o",
                "out.jsonl",
                "--report",
                "r.tsv",
            ],
            "not written: r.tsv, out.jsonl\n",
        ),
    ] {
        let folder = Folder::new();
        folder.write("c.jsonl", mixed());
        let mut child = folder
            .command(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(distinct(0..300).as_bytes()).unwrap();
        wait_for_temporary_file(&folder);
        // Programs that pass a signal on make two of one.
        send("-INT", &child);
        send("-INT", &child);
        let ran = ran(child.wait_with_output().unwrap()).expect(130);
        drop(stdin);
        assert_eq!(folder.names(), ["c.jsonl"], "{arguments:?}");
        assert!(ran.stderr.contains(reported), "{}", ran.stderr);
    }
}

#[test]
fn progress_is_silent_without_a_terminal() {
    let folder = Folder::new();
    folder.run("create a.rsm").expect(0);
    let mut child = folder
        .command("add a.rsm -")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // longer than the second after which a bar would appear
    std::thread::sleep(Duration::from_millis(1300));
    stdin.write_all(distinct(0..3).as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let expected = "resemblance: 1 file as JSON Lines (3 documents)\n\
                    resemblance: read 3, added 3, dropped 0, skipped 0, empty 0\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
}

/// A wait for the other end of a named pipe ends with the first signal.
#[test]
fn signals_end_a_wait_for_a_pipe() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.run("build s.rsm c.jsonl").expect(0);
    folder.pipe("pipe");
    for command in [
        "dedup c.jsonl -o pipe",
        "dedup c.jsonl --dry-run --report pipe",
        "export s.rsm -o pipe",
        "import s.rsm pipe",
        "explain --pairs pipe --corpus c.jsonl",
        "pairs pipe",
    ] {
        let mut child = folder.command(command).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        assert!(child.try_wait().unwrap().is_none(), "{command}");
        send("-TERM", &child);
        let start = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if start.elapsed() > Duration::from_secs(20) {
                child.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(child.wait().unwrap().code(), Some(143), "{command}");
    }
}

/// Returns the lines of a queue from an offset on, with their offsets.
#[test]
fn later_signal_ends_what_does_not_answer() {
    let folder = Folder::new();
    // More than a pipe holds.
    folder.write("c.jsonl", distinct(0..2_000));
    let pipe = folder.pipe("pipe");
    let mut child = folder.command("dedup c.jsonl -o pipe").spawn().unwrap();
    let reader = std::fs::File::open(pipe).unwrap();
    let is_running = |child: &mut Child| {
        std::thread::sleep(Duration::from_millis(300));
        child.try_wait().unwrap().is_none()
    };
    assert!(is_running(&mut child));
    send("-INT", &child);
    send("-INT", &child);
    assert!(is_running(&mut child));
    std::thread::sleep(Duration::from_millis(1_000));
    send("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(reader);
}

fn messages(from: u64) -> String {
    let numbered = |at: u64| distinct(at..at + 1).replacen('{', &format!("{{\"offset\":{at},"), 1);
    (from..300).map(numbered).collect()
}

/// A repeated message would be an error, because its key would be in the store.
#[test]
fn killed_consumer_of_a_queue_continues_behind_its_position() {
    let folder = Folder::new();
    folder.run("create a.rsm").expect(0);
    let get = "get a.rsm --position queue/0";
    folder.run(get).expect(1).says(&["no position \"queue/0\""]);
    let add = "add a.rsm - --position queue/0=offset --commit-every 20";
    let mut kills = 0;
    loop {
        let found = folder.run(get).stdout;
        let next = found.trim().parse().map_or(0, |last: u64| last + 1);
        assert_eq!(folder.count("a.rsm"), next);
        if next == 300 {
            break;
        }
        let mut child = folder.command(add).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(messages(next).as_bytes()).unwrap();
        if kills < 5 {
            std::thread::sleep(Duration::from_millis(20 + 37 * kills));
            send("-KILL", &child);
            kills += 1;
        }
        drop(stdin);
        child.wait().unwrap();
    }
    // A queue that gives all messages again changes nothing.
    let listed = folder.run("list a.rsm").expect(0).stdout;
    let again = [add, "--if-new"].join(" ");
    let replayed = folder.run_with_input(&*again, messages(0).as_bytes());
    replayed.expect(0).says(&["added 0"]);
    assert_eq!(folder.run("list a.rsm").expect(0).stdout, listed);
    assert_eq!(folder.run(get).expect(0).stdout, "299\n");
    // A bad document has no position, and the next one passes it.
    let more =
        "not json\n".to_owned() + &line("301", &text(301)).replacen('{', "{\"offset\":\"x\",", 1);
    let skipping = [add, "--skip-bad"].join(" ");
    folder.run_with_input(&*skipping, more.as_bytes()).expect(0);
    assert_eq!(folder.run(get).expect(0).stdout, "x\n");
    let without = line("302", &text(302));
    let ran = folder.run_with_input(add, without.as_bytes());
    ran.expect(3).says(&["field \"offset\" is missing"]);
    folder.run("add a.rsm - --position queue").expect(2);
}
