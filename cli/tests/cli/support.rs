//! A folder to work in, the tool, and texts of known similarity.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The results of a run of the tool.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "stdout: {}\nstderr: {}",
            self.stdout,
            self.stderr
        );
        self
    }

    /// Checks that the last message on standard error contains all of these texts.
    #[track_caller]
    pub fn says(self, parts: &[&str]) -> Self {
        // With -v, one of the last lines is the time that a command took.
        let is_said = |line: &&str| !line.starts_with("resemblance: took ");
        let said: String = self.stderr.split_inclusive('\n').filter(is_said).collect();
        let start = said.rfind("resemblance: ");
        let last = start.map_or("", |start| &said[start..]);
        let is_message = |line: &str| line.starts_with("resemblance: ") || line.starts_with("  ");
        assert!(
            last.lines().all(is_message) && !last.is_empty(),
            "{}",
            self.stderr
        );
        for part in parts {
            assert!(last.contains(part), "{part:?} is not in {}", self.stderr);
        }
        self
    }

    pub fn lines(&self) -> Vec<&str> {
        self.stdout.lines().collect()
    }
}

/// The arguments of a run: a list, or a line of words, of which those in single quotes are one.
pub trait Arguments {
    fn words(&self) -> Vec<&str>;
}

impl Arguments for str {
    fn words(&self) -> Vec<&str> {
        let mut words = Vec::new();
        for (number, part) in self.split('\'').enumerate() {
            match number % 2 {
                0 => words.extend(part.split_whitespace()),
                _ => words.push(part),
            }
        }
        words
    }
}

impl Arguments for String {
    fn words(&self) -> Vec<&str> {
        self.as_str().words()
    }
}

impl Arguments for [&str] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl<const N: usize> Arguments for [&str; N] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl Arguments for Vec<&str> {
    fn words(&self) -> Vec<&str> {
        self.clone()
    }
}

impl<T: Arguments + ?Sized> Arguments for &T {
    fn words(&self) -> Vec<&str> {
        (*self).words()
    }
}

/// The verbs that print rows.
const ROW_VERBS: [&str; 14] = [
    "backup", "check", "clusters", "compact", "contain", "eval", "evict", "get", "pairs", "query",
    "reband", "repair", "stats", "tune",
];

/// A temporary folder in which the tool runs.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Makes a named pipe.
    pub fn pipe(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let made = Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        path
    }

    /// Returns a command that runs the tool with these arguments. Its tsv output has no header
    /// unless one is requested.
    pub fn command(&self, arguments: &(impl Arguments + ?Sized)) -> Command {
        let arguments = arguments.words();
        let prints_rows = |verb: &&&str| ROW_VERBS.contains(*verb);
        let verb = arguments.first().filter(prints_rows);
        // A position is printed alone.
        let says_header = arguments
            .iter()
            .any(|a| ["--header", "--no-header", "--position"].contains(a));
        let (verb, rest) = match verb {
            Some(verb) if !says_header => (vec![*verb, "--no-header"], &arguments[1..]),
            _ => (Vec::new(), &arguments[..]),
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_resemblance"));
        command
            .args(verb)
            .args(rest)
            .current_dir(self.0.path())
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR")
            .env_remove("CLICOLOR_FORCE")
            .env("RESEMBLANCE_CONFIG", "")
            .env("RESEMBLANCE_WAIT", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &(impl Arguments + ?Sized)) -> Ran {
        ran(self.command(arguments).output().unwrap())
    }

    pub fn run_with_input(&self, arguments: &(impl Arguments + ?Sized), input: &[u8]) -> Ran {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // the tool may stop before it has read everything
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        ran(output)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub fn read_text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    /// The lines of a report of dropped documents, behind the names of its columns.
    pub fn report(&self, name: &str) -> String {
        let text = self.read_text(name);
        let (header, lines) = text.split_once('\n').unwrap();
        assert!(header.starts_with("dropped\tsurvivor\t"), "{header}");
        lines.to_owned()
    }

    /// Every file below the folder, hidden ones too.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        collect(self.0.path(), self.0.path(), &mut names);
        names.sort();
        names
    }

    /// How many documents a store holds.
    pub fn count(&self, store: &str) -> u64 {
        let stats = self.run(&["stats", store, "--format", "tsv"]).expect(0);
        let line = stats
            .stdout
            .lines()
            .find(|l| l.starts_with("store\t\tdocuments\t"));
        line.unwrap().rsplit('\t').next().unwrap().parse().unwrap()
    }
}

fn collect(root: &Path, dir: &Path, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, names);
        } else {
            names.push(
                path.strip_prefix(root)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned(),
            );
        }
    }
}

pub fn ran(output: std::process::Output) -> Ran {
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// 200 words that no other number shares five of in a row.
pub fn text(number: u64) -> String {
    edited(number, 0)
}

/// Returns the text with `changes` words changed at distant places. Each change of one of 200 words
/// changes five of 196 shingles. One change leaves a Jaccard similarity of 191 / 201 = 0.95, two
/// leave 0.90, four leave 0.81.
pub fn edited(number: u64, changes: u64) -> String {
    let mut state = number;
    let mut text = String::new();
    for position in 0..200 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let word = if position % 40 == 20 && position / 40 < changes {
            "changed".to_owned()
        } else {
            format!("w{:x}", state >> 40)
        };
        let _ = write!(text, "{word} ");
    }
    text
}

/// One line of JSON.
pub fn line(id: &str, text: &str) -> String {
    let mut line = serde_json::json!({"id": id, "text": text}).to_string();
    line.push('\n');
    line
}

/// Lines with keys `0`, `1`, ... and texts unlike each other.
pub fn distinct(numbers: std::ops::Range<u64>) -> String {
    numbers
        .map(|number| line(&number.to_string(), &text(number)))
        .collect()
}

/// The same with texts of a few words.
#[cfg(unix)]
pub fn short(numbers: std::ops::Range<u64>) -> String {
    let end = |number| text(number).split_off(1_300);
    numbers
        .map(|number| line(&number.to_string(), &end(number)))
        .collect()
}

/// a, a-again (equal), b, a-near (0.95), c, b-near (0.95), d.
pub fn mixed() -> String {
    [
        line("a", &text(1)),
        line("a-again", &text(1)),
        line("b", &text(2)),
        line("a-near", &edited(1, 1)),
        line("c", &text(3)),
        line("b-near", &edited(2, 1)),
        line("d", &text(4)),
    ]
    .concat()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn gunzip(bytes: &[u8]) -> String {
    std::io::read_to_string(flate2::read::MultiGzDecoder::new(bytes)).unwrap()
}

pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 1).unwrap()
}

/// Prints past the test harness, which would swallow it.
pub fn say(text: &str) {
    let mut out = std::io::stderr().lock();
    writeln!(out, "{text}").unwrap();
}

#[cfg(all(unix, feature = "remote"))]
pub fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[cfg(all(unix, feature = "remote"))]
pub fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
