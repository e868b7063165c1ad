//! Disks that fill up, and files that may not grow: a clear error, everything as it was before, and
//! the same command completes the work once there is room.
//!
//! `RESEMBLANCE_TESTS=all` makes the steps finer in which the room grows, `RESEMBLANCE_LONG` finer still.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::contents::Held;
use crate::sample::trials;
use crate::signals::adding;
use crate::support::{Arguments, Folder, Ran, distinct, ran, say, short};

/// How many amounts of room are tried.
fn steps() -> u64 {
    match std::env::var("RESEMBLANCE_LONG") {
        Ok(_) => 40,
        Err(_) => trials(2, 8),
    }
}

/// The room of a step: little is tried more often than much.
fn room_bytes(most_bytes: u64, step: u64) -> u64 {
    most_bytes * step * step / steps() / steps()
}

/// Documents of the corpus that one commit of `add` takes.
const EVERY: usize = 200;
const DOCUMENTS: usize = 1_000;

/// A folder with a store `a.rsm` of 1,000 documents without any room in it, and a corpus.
fn filled() -> Folder {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..1_000));
    folder.run("build a.rsm c.jsonl -q").expect(0);
    folder.run("compact a.rsm -q").expect(0);
    folder.write("c.jsonl", distinct(5_000..5_000 + DOCUMENTS as u64));
    folder
}

/// A command that runs out of room.
struct Scenario {
    arguments: Vec<String>,
    before: Folder,
    /// The path that it creates or changes.
    output: &'static str,
    /// The contents of that path before, and after each commit.
    states: Vec<Contents>,
    /// Room in bytes with which it surely succeeds.
    most_bytes: u64,
}

/// The contents of a path: nothing, a store, or another file.
#[derive(PartialEq)]
enum Contents {
    Nothing,
    Store(Held),
    Bytes(Vec<u8>),
}

fn contents(path: &Path) -> Contents {
    match path.extension() {
        Some(extension) if extension == "rsm" => {
            Held::of(path).map_or(Contents::Nothing, Contents::Store)
        }
        _ => std::fs::read(path).map_or(Contents::Nothing, Contents::Bytes),
    }
}

impl Scenario {
    fn new(before: &Folder, arguments: &str, output: &'static str) -> Self {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let mut states = vec![contents(&before.path(output))];
        // The result of several commits equals that of a shorter corpus.
        let lines = before.read_text("c.jsonl");
        let lines: Vec<&str> = lines.split_inclusive('\n').collect();
        let commits = match arguments[0] {
            "add" => DOCUMENTS / EVERY,
            _ => 1,
        };
        let mut most_bytes = 0;
        for commits in (0..commits).rev() {
            let folder = before.copy();
            folder.write("c.jsonl", lines[..DOCUMENTS - commits * EVERY].concat());
            folder.run(&arguments).expect(0);
            states.push(contents(&folder.path(output)));
            let size = |name: &String| std::fs::metadata(folder.path(name)).unwrap().len();
            most_bytes = folder.names().iter().map(size).sum::<u64>() * 2 + (2 << 20);
        }
        Self {
            arguments: arguments.iter().map(|part| part.to_string()).collect(),
            before: before.copy(),
            output,
            states,
            most_bytes,
        }
    }

    fn arguments(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }

    /// Checks what a run that may have failed has left, and returns whether it has failed. `errors`
    /// are the texts that its message may contain.
    fn verify(&self, ran: &Ran, output: &Path, names: &[String], errors: &[&str]) -> bool {
        let found = contents(output);
        let command = self.arguments.join(" ");
        if ran.code == Some(0) {
            assert!(found == *self.states.last().unwrap(), "{command}");
            return false;
        }
        assert_eq!(ran.code, Some(4), "{command}: {}", ran.stderr);
        let message = ran
            .stderr
            .rsplit("resemblance: ")
            .next()
            .unwrap_or_default();
        let is_clear = errors.iter().any(|error| message.contains(error));
        let names_place = [self.output, "temporary store in ", "temporary file in "];
        let names_place = names_place.iter().any(|name| message.contains(name));
        assert!(is_clear && names_place, "{command}: {message}");
        let committed = message
            .split_once("--skip ")
            .map(|(_, skip)| skip.trim_end().parse());
        let commits = committed.map_or(0, |documents: Result<usize, _>| documents.unwrap() / EVERY);
        assert!(found == self.states[commits], "{command}: {message}");
        let mut expected = self.before.names();
        expected.sort();
        assert_eq!(names, expected, "{command}: {message}");
        true
    }

    /// Returns the command that completes the work after a failure.
    fn again(&self, ran: &Ran) -> Vec<String> {
        let skip = ran.stderr.split_once("--skip ");
        let skip = skip.map(|(_, skip)| format!("--skip {}", skip.trim_end()));
        let more = skip.iter().flat_map(|skip| skip.split(' '));
        let arguments = self.arguments.iter().map(String::as_str);
        arguments.chain(more).map(String::from).collect()
    }
}

const REMOVED: &str = "remove a.rsm 1 2 3 5 8 13 21 34 55 89 144 233 377 610 987";

/// All commands that write, and what they write to.
fn scenarios() -> Vec<Scenario> {
    let before = filled();
    let removed = before.copy();
    removed.run(REMOVED).expect(0);
    let output = filled();
    output.write("o.jsonl", "what was there\n");
    let every = format!("--commit-every {EVERY}");
    let new = |arguments: &str, output| Scenario::new(&before, arguments, output);
    vec![
        new(&format!("add a.rsm c.jsonl {every}"), "a.rsm"),
        new(&format!("add a.rsm c.jsonl --if-new {every}"), "a.rsm"),
        new(REMOVED, "a.rsm"),
        Scenario::new(&removed, "compact a.rsm", "a.rsm"),
        new("reband a.rsm --threshold 0.5", "a.rsm"),
        new("create b.rsm", "b.rsm"),
        new("build b.rsm c.jsonl", "b.rsm"),
        new("dedup c.jsonl -o o.jsonl --temp-dir .", "o.jsonl"),
        Scenario::new(
            &output,
            "dedup c.jsonl -o o.jsonl --force --policy cluster --temp-dir .",
            "o.jsonl",
        ),
    ]
}

#[test]
fn file_size_limit_loses_no_committed_document() {
    let (mut tried, mut failed) = (0, 0);
    for scenario in scenarios() {
        for step in 0..steps() {
            let folder = scenario.before.copy();
            let blocks = 1 + room_bytes(scenario.most_bytes, step) / 512;
            let tool = env!("CARGO_BIN_EXE_resemblance");
            let script = format!("ulimit -f {blocks}; exec '{tool}' \"$@\"");
            let mut command = Command::new("sh");
            command
                .args(["-c", &script, "sh"])
                .args(&scenario.arguments);
            let limited = ran(command.current_dir(folder.path(".")).output().unwrap());
            let output = folder.path(scenario.output);
            let names = folder.names();
            let errors = ["file too large\n  raise the limit on the size of files"];
            tried += 1;
            if scenario.verify(&limited, &output, &names, &errors) {
                failed += 1;
                let again = scenario.again(&limited);
                folder
                    .run(&again.iter().map(String::as_str).collect::<Vec<_>>())
                    .expect(0);
                assert!(contents(&output) == *scenario.states.last().unwrap());
            }
            if scenario.output.ends_with(".rsm") {
                folder.is_sound(scenario.output);
            }
        }
    }
    say(&format!(
        "files limited {tried} times, {failed} of them too small"
    ));
    assert!(failed > 0 && failed < tried);
}

/// A file system in memory, visible only to the processes in its namespace. It disappears with the
/// process that holds it.
struct SmallDisk {
    holder: Child,
    place: PathBuf,
    _folder: Folder,
}

impl SmallDisk {
    /// `None` where that is not permitted.
    fn mount() -> Option<Self> {
        let folder = Folder::new();
        let place = std::fs::canonicalize(folder.path(".")).unwrap();
        let script = "mount -t tmpfs -o size=64m,mode=777 tmpfs \"$0\" && echo mounted && exec cat";
        let holder = Command::new("unshare")
            .args(["--map-root-user", "--mount", "sh", "-c", script])
            .arg(&place)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut holder = holder.ok()?;
        let mut said = String::new();
        let mut lines = BufReader::new(holder.stdout.take()?);
        lines.read_line(&mut said).unwrap();
        let disk = Self {
            holder,
            place,
            _folder: folder,
        };
        let is_usable = said == "mounted\n" && disk.within("true", &[]).code == Some(0);
        is_usable.then_some(disk)
    }

    /// Runs a program in the root of the file system.
    fn within(&self, program: &str, arguments: &[&str]) -> Ran {
        let script = "cd \"$0\" && exec \"$@\"";
        let mut command = Command::new("nsenter");
        command
            .args(["--user", "--preserve-credentials", "--mount", "--target"])
            .arg(self.holder.id().to_string())
            .args(["sh", "-c", script])
            .arg(&self.place)
            .arg(program)
            .args(arguments);
        match command.output() {
            Ok(output) => ran(output),
            Err(_) => Ran {
                code: None,
                stdout: String::new(),
                stderr: String::new(),
            },
        }
    }

    fn run(&self, arguments: &(impl Arguments + ?Sized)) -> Ran {
        self.within(env!("CARGO_BIN_EXE_resemblance"), &arguments.words())
    }

    /// Where this process finds a file of it.
    fn path(&self, name: &str) -> PathBuf {
        let root = format!("/proc/{}/root", self.holder.id());
        let place = self.place.strip_prefix("/").unwrap();
        Path::new(&root).join(place).join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path("")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// Makes its contents equal to a folder, and leaves this number of bytes free.
    fn fill(&self, folder: &Folder, room_bytes: u64) {
        self.resize(64 << 20);
        for name in self.names() {
            std::fs::remove_file(self.path(&name)).unwrap();
        }
        let mut taken_bytes = 0;
        for name in folder.names() {
            // Not by a system call that copies holes as such.
            std::fs::write(self.path(&name), folder.read(&name)).unwrap();
            taken_bytes += std::fs::metadata(self.path(&name)).unwrap().blocks() * 512;
        }
        self.resize(taken_bytes + room_bytes.next_multiple_of(4_096));
    }

    fn resize(&self, size_bytes: u64) {
        let options = format!("remount,size={size_bytes}");
        let place = self.place.to_string_lossy();
        self.within("mount", &["-o", &options, &place]).expect(0);
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The end of its input ends it, and with it the file system.
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

#[test]
fn full_file_system_loses_no_committed_document() {
    let Some(disk) = SmallDisk::mount() else {
        say("skipped: no small file system can be mounted here");
        return;
    };
    let (mut tried, mut failed) = (0, 0);
    for scenario in scenarios() {
        for step in 0..steps() {
            disk.fill(&scenario.before, room_bytes(scenario.most_bytes / 2, step));
            let full = disk.run(&scenario.arguments());
            let (output, names) = (disk.path(scenario.output), disk.names());
            if scenario.output.ends_with(".rsm") && output.exists() {
                // Someone reads it while there is no room yet.
                disk.run(&["stats", scenario.output]).expect(0);
            }
            tried += 1;
            let errors = ["no space left on device\n  make room there"];
            let has_failed = scenario.verify(&full, &output, &names, &errors);
            disk.resize(64 << 20);
            if has_failed {
                failed += 1;
                let again = scenario.again(&full);
                let again: Vec<&str> = again.iter().map(String::as_str).collect();
                disk.run(&again).expect(0);
                assert!(contents(&output) == *scenario.states.last().unwrap());
            }
            if scenario.output.ends_with(".rsm") {
                disk.run(&["check", scenario.output]).expect(0);
            }
        }
    }
    say(&format!(
        "a file system filled {tried} times, {failed} of them too small"
    ));
    assert!(failed > 0 && failed < tried);
}

/// The store is on a disk with room, and the temporary files are not.
#[test]
fn full_temporary_folder_loses_no_committed_document() {
    let Some(disk) = SmallDisk::mount() else {
        say("skipped: no small file system can be mounted here");
        return;
    };
    let folder = Folder::new();
    // 13 bands and the key make more than 1 MiB, the least memory for sorting.
    folder.write("c.jsonl", short(0..12_000));
    folder.run("build a.rsm c.jsonl").expect(0);
    let before = folder.held("a.rsm");
    let place = folder.path("");
    let place = place.to_string_lossy();
    let mut failed = 0;
    for (arguments, output) in [
        ("build @b.rsm @c.jsonl --memory 1M", "b.rsm"),
        ("reband @a.rsm --threshold 0.5 --memory 1M", "a.rsm"),
        ("dedup @c.jsonl -o @o.jsonl", "o.jsonl"),
        ("dedup @c.jsonl -o @p.jsonl --verify exact", "p.jsonl"),
    ] {
        let arguments = arguments.replace('@', &place) + " --temp-dir .";
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let names = folder.names();
        for step in 0..steps() {
            disk.resize(4_096 + room_bytes(3 << 20, step).next_multiple_of(4_096));
            let full = disk.run(&arguments);
            assert_eq!(disk.names(), [""; 0], "{arguments:?}");
            if full.code == Some(0) {
                break;
            }
            failed += 1;
            let message = full.expect(4).stderr;
            let parts = ["temporary ", "no space left on device", "  make room there"];
            let is_clear = parts.iter().all(|part| message.contains(part));
            // What is begun in the library has the whole path of the folder.
            let places = [
                " in .: ".to_owned(),
                format!(" in {}: ", disk.place.display()),
            ];
            let is_named = places.iter().any(|place| message.contains(place));
            assert!(is_clear && is_named, "{arguments:?}: {message}");
            assert_eq!(folder.names(), names);
            assert!(output != "a.rsm" || folder.held("a.rsm") == before);
        }
        disk.resize(64 << 20);
        if output != "a.rsm" {
            let _ = std::fs::remove_file(folder.path(output));
        }
        disk.run(&arguments).expect(0);
        folder.is_sound("a.rsm");
    }
    assert!(failed >= 4, "{failed}");
}

/// A killed process left a store without any room on a full disk. Repairing it once succeeded, but
/// closing it failed, and the next opening required the repair again.
#[test]
fn store_is_readable_on_a_full_disk() {
    let Some(disk) = SmallDisk::mount() else {
        say("skipped: no small file system can be mounted here");
        return;
    };
    let folder = filled();
    let mut command = folder.command("add a.rsm -");
    let command = command.stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The engine's mark of a file that is open for writing.
    let is_marked = || folder.read("a.rsm")[9] & 2 != 0;
    while !is_marked() {
        if child.try_wait().unwrap().is_some() {
            // It met the reader that was to meet it.
            child = command.spawn().unwrap();
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    disk.fill(&folder, 0);
    let read = disk.run("get a.rsm 7").expect(0);
    assert_eq!(read.stderr, "");
    disk.resize(64 << 20);
    disk.run("get a.rsm 7").expect(0);
    disk.run("check a.rsm").expect(0);
}

#[test]
fn unclosed_store_is_read_without_writing() {
    let folder = Folder::new();
    folder.run("create a.rsm").expect(0);
    let (mut child, stdin, _) = adding(&folder, &[]);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stdin);
    let mut command = Command::new("sh");
    let script = "ulimit -f 0; exec \"$0\" stats a.rsm";
    command.args(["-c", script, env!("CARGO_BIN_EXE_resemblance")]);
    let limited = ran(command.current_dir(folder.path(".")).output().unwrap());
    limited.expect(0);
    assert!(folder.count("a.rsm") >= 100);
    folder.is_sound("a.rsm");
}
