//! Runs the console blocks of the documents and the transcripts of `tests/transcripts`, and compares what commands print with what
//! is shown.
//!
//! In a document, a command without shown output must end with an exit code of 0 or 1. A shown line
//! `...` matches all further lines, and `[..]` matches any part of a line.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::Folder;

/// Beginnings of commands that are not run, with the reason.
const NOT_RUN: [(&str, &str); 8] = [
    ("cargo ", "builds this repository"),
    ("export AWS_", "needs a server"),
    ("RESEMBLANCE_", "builds this repository"),
    ("resemblance dedup 's3://", "needs a server"),
    ("resemblance pairs https://", "needs a server"),
    ("sqlite3 ", "is another program"),
    ("just ", "is another program"),
    ("benches/", "needs packages"),
];

/// Beginnings of commands whose shown output is not that of a test, with the reason.
const NOT_COMPARED: [(&str, &str); 1] = [(
    "resemblance dedup shard-*.jsonl.gz -o unique/ --job",
    "has to be killed",
)];

/// Options and verbs that name a new file.
const OUTPUTS: [&str; 7] = [
    "-o",
    "--report",
    "--dropped",
    "--annotate",
    "build",
    "create",
    "--svg",
];

struct Step {
    line: usize,
    command: String,
    shown: Vec<String>,
}

fn steps(document: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_console = false;
    for (index, line) in document.lines().enumerate() {
        if line.starts_with("```") {
            is_console = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_console) {
            let (command, shown) = (command.to_owned(), Vec::new());
            let line = index + 1;
            steps.push(Step {
                line,
                command,
                shown,
            });
        } else if is_console && let Some(step) = steps.last_mut() {
            step.shown.push(line.to_owned());
        }
    }
    for step in &mut steps {
        while step.shown.last().is_some_and(String::is_empty) {
            step.shown.pop();
        }
    }
    steps
}

fn line_agrees(shown: &str, printed: &str) -> bool {
    let mut parts = shown.split("[..]");
    let Some(mut rest) = parts.next().and_then(|first| printed.strip_prefix(first)) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
        last = Some(part);
    }
    rest.is_empty() || last == Some("")
}

fn agrees(shown: &[String], printed: &str) -> bool {
    let printed: Vec<&str> = printed.lines().collect();
    let compared = shown.iter().position(|line| line == "...");
    let count = compared.unwrap_or_else(|| printed.len().max(shown.len()));
    count <= printed.len()
        && count <= shown.len()
        && shown
            .iter()
            .zip(printed)
            .take(count)
            .all(|(shown, printed)| line_agrees(shown, printed))
}

/// Whether the tool lacks a feature, or this machine a program, that a command or section needs.
fn lacks_feature(command: &str) -> bool {
    let needs = |part, has: bool| !has && command.contains(part);
    needs(".db", cfg!(feature = "sqlite"))
        || needs(".parquet", cfg!(feature = "tables"))
        || needs("--html", cfg!(feature = "html"))
        || needs("page.html", cfg!(feature = "html"))
        || needs("(html)", cfg!(feature = "html"))
        || needs(".warc", cfg!(feature = "warc"))
        || needs("crawl/", cfg!(feature = "warc"))
        || needs("(warc)", cfg!(feature = "warc"))
        || needs("(sqlite)", cfg!(feature = "sqlite"))
        || needs("(tables)", cfg!(feature = "tables"))
        || command.contains("(zstd)") && Command::new("zstd").arg("-V").output().is_err()
}

/// Blocks are alternatives: removes what an earlier one has written.
fn remove_outputs(folder: &Folder, command: &str) {
    let words: Vec<&str> = command.split_whitespace().collect();
    for pair in words.windows(2).filter(|pair| OUTPUTS.contains(&pair[0])) {
        let path = folder.path(pair[1]);
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else if path.exists() && pair[1] != "-" {
            std::fs::remove_file(path).unwrap();
        }
    }
}

fn shell(folder: &Folder, command: &str) -> (Option<i32>, String) {
    let tool = Path::new(env!("CARGO_BIN_EXE_resemblance"));
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("bash")
        .args(["-o", "pipefail", "-c", &format!("exec 2>&1\n{command}")])
        .current_dir(folder.path(""))
        .env(
            "PATH",
            format!("{}:{path}", tool.parent().unwrap().display()),
        )
        .env("HOME", folder.path(""))
        .env("RESEMBLANCE_CONFIG", "")
        .env("LC_ALL", "C")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR")
        .env_remove("CLICOLOR_FORCE")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let code = match output.status.code() {
        // A program wrote into a pipe that `head` had closed.
        Some(141) => Some(0),
        code => code,
    };
    (code, String::from_utf8(output.stdout).unwrap())
}

/// The folder of the transcripts, and of the shell functions with which they write their corpora.
const TRANSCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/transcripts");

/// Runs a command that transcripts have beside those of the shell, and returns what it prints; `None` for any other command.
///
/// `sql FILE` runs the statements below it, in which the shell expands what it would expand in a quoted word. `tables` writes
/// ten documents in every form of a table.
fn run_builtin(folder: &Folder, command: &str) -> Option<String> {
    #[cfg(feature = "sqlite")]
    if let Some((file, statements)) = command
        .strip_prefix("sql ")
        .and_then(|command| command.split_once('\n'))
    {
        let expand = format!("source '{TRANSCRIPTS}/fixtures.sh'\ncat <<SQL\n{statements}\nSQL");
        let (_, statements) = shell(folder, &expand);
        let database = rusqlite::Connection::open(folder.path(file)).unwrap();
        return Some(crate::sqlite::rows(&database, &statements).join("\n"));
    }
    #[cfg(feature = "tables")]
    if command == "tables" {
        crate::tables::write_all(folder);
        return Some(String::new());
    }
    let _ = (folder, command);
    None
}

/// Returns the lines that a command prints, without blank ones and times, and its exit code in a last line unless it is 0.
fn printed_lines(folder: &Folder, command: &str) -> String {
    if let Some(printed) = run_builtin(folder, command) {
        return printed;
    }
    let (code, printed) = shell(
        folder,
        &format!("source '{TRANSCRIPTS}/fixtures.sh'\n{command}"),
    );
    let is_kept = |line: &&str| !line.is_empty() && !line.starts_with("resemblance: took ");
    let mut lines: Vec<&str> = printed.lines().filter(is_kept).collect();
    let exit = format!("exit {}", code.unwrap());
    lines.extend((code != Some(0)).then_some(exit.as_str()));
    lines.join("\n")
}

/// Returns the shown line with `[..]` that agrees with a printed one, or the printed one.
fn shown_for<'a>(shown: &'a [String], printed: &'a str) -> &'a str {
    let is_pattern = |line: &&String| line.contains("[..]") && line_agrees(line, printed);
    shown
        .iter()
        .find(is_pattern)
        .map_or(printed, String::as_str)
}

/// Runs the sections of the transcript `name`, each in an empty folder. A command continues in
/// lines that begin with `>`, and must print the lines below it, up to the next blank line. A
/// heading may name in brackets what its section requires.
///
/// `RESEMBLANCE_WRITE=1` writes what is printed into the transcript, where it differs.
fn replay(name: &str) {
    let path = format!("{TRANSCRIPTS}/{name}.txt");
    let transcript = std::fs::read_to_string(&path).unwrap();
    let (mut folder, mut is_left_out) = (Folder::new(), false);
    let (mut written, mut wrong) = (String::new(), Vec::new());
    let mut lines = transcript.lines().enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        written += &format!("{line}\n");
        if line.starts_with("## ") {
            (folder, is_left_out) = (Folder::new(), lacks_feature(line));
        }
        let Some(command) = line.strip_prefix("$ ") else {
            continue;
        };
        let mut command = command.to_owned();
        while let Some((_, more)) = lines.next_if(|(_, line)| line.starts_with("> ")) {
            written += &format!("{more}\n");
            command += &format!("\n{}", &more[2..]);
        }
        let mut shown = Vec::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.is_empty()) {
            shown.push(line.to_owned());
        }
        let mut kept = shown.join("\n");
        if !is_left_out {
            let printed = printed_lines(&folder, &command);
            if !agrees(&shown, &printed) {
                wrong.push(format!("{path}:{}: {line}\n{printed}\n", index + 1));
                kept = printed
                    .lines()
                    .map(|line| shown_for(&shown, line))
                    .collect::<Vec<_>>()
                    .join("\n");
            }
        }
        written += &kept;
        written += if kept.is_empty() { "" } else { "\n" };
    }
    if std::env::var_os("RESEMBLANCE_WRITE").is_some() {
        std::fs::write(path, written).unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

macro_rules! transcripts {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                replay(stringify!($name));
            }
        )*

        #[test]
        fn every_transcript_is_replayed() {
            let entries = std::fs::read_dir(TRANSCRIPTS).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<String> = names.filter(|name| name.ends_with(".txt")).collect();
            names.sort();
            assert_eq!(names, [$(concat!(stringify!($name), ".txt")),*]);
        }
    };
}

transcripts! { changes containment corpora exact kinds limits outputs readers searches stores tool vectors }

/// Follows the document at `path` in a folder in which `fixtures`, a script, was run.
fn follow(path: &str, fixtures: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = Folder::new();
    for name in ["docs/tutorial.awk", "examples/news.jsonl"] {
        folder.write(name, std::fs::read(root.join(name)).unwrap());
    }
    #[cfg(feature = "sqlite")]
    articles(&folder);
    #[cfg(feature = "tables")]
    parquet_files(&folder);
    let prepared = shell(&folder, &format!("set -e +o pipefail\n{fixtures}"));
    assert_eq!(prepared.0, Some(0), "fixtures: {}", prepared.1);
    let document = std::fs::read_to_string(root.join(path)).unwrap();
    let (mut wrong, mut run) = (Vec::new(), 0);
    for step in steps(&document) {
        let begins = |(beginning, _): &(&str, &str)| step.command.starts_with(beginning);
        if NOT_RUN.iter().any(begins) || lacks_feature(&step.command) {
            continue;
        }
        // A file that no command has written holds what the document shows.
        if let Some(name) = step
            .command
            .strip_prefix("cat ")
            .filter(|name| !folder.path(name).exists())
        {
            folder.write(name, step.shown.join("\n") + "\n");
        }
        remove_outputs(&folder, &step.command);
        let (code, printed) = shell(&folder, &step.command);
        run += 1;
        let is_compared = !step.shown.is_empty() && !NOT_COMPARED.iter().any(begins);
        let is_right = if is_compared {
            code == Some(0) && agrees(&step.shown, printed.trim_end())
        } else {
            // 1 means that nothing was found, or that documents were lost.
            matches!(code, Some(0 | 1))
        };
        if !is_right {
            let (line, command) = (step.line, &step.command);
            wrong.push(format!(
                "{path}:{line}: $ {command}\n(exit code {code:?})\n{printed}"
            ));
        }
    }
    assert!(run > 0, "{path}: no command was run");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[cfg(feature = "sqlite")]
fn articles(folder: &Folder) {
    let database = rusqlite::Connection::open(folder.path("articles.db")).unwrap();
    database
        .execute_batch(
            "CREATE TABLE articles (url TEXT, title TEXT, body TEXT, score REAL, seen INTEGER);
             INSERT INTO articles VALUES ('a/1', 'Rain', 'Heavy rain is expected tonight', 1, 100);
             INSERT INTO articles VALUES ('a/2', 'Rain', 'Heavy rain is expected tonight', 2, 200);
             ALTER TABLE articles ADD COLUMN text TEXT DEFAULT 'Heavy rain is expected in the north';",
        )
        .unwrap();
}

#[cfg(feature = "tables")]
fn parquet_files(folder: &Folder) {
    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    let texts = [
        "Heavy rain is expected",
        "Heavy rain is expected",
        "A bridge",
    ];
    let texts: ArrayRef = std::sync::Arc::new(StringArray::from_iter_values(texts));
    let columns = [("text", texts.clone()), ("content", texts)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for name in ["corpus.parquet", "data/train-1.parquet"] {
        folder.write(name, "");
        let compression = parquet::basic::Compression::UNCOMPRESSED;
        crate::tables::write_parquet(&folder.path(name), &batch, compression, 10);
    }
}

#[test]
fn readme_commands_print_what_it_shows() {
    follow("README.md", "");
}

#[test]
fn skill_commands_print_what_it_shows() {
    follow("SKILL.md", "");
}

#[test]
fn tutorial_commands_print_what_it_shows() {
    follow("docs/tutorial.md", "");
}

/// Corpora and stores by the names that documents give them.
const CORPORA: &str = "
    awk -f docs/tutorial.awk | head -n 60 > corpus.jsonl
    tail -n 20 corpus.jsonl > more.jsonl
    gzip -k corpus.jsonl
    resemblance build seen.rsm corpus.jsonl --stamp now --quiet
";

#[test]
fn tool_page_commands_print_what_it_shows() {
    let fixtures = "
        mkdir site
        cp corpus.jsonl.gz shard-1.jsonl.gz
        gzip -c more.jsonl > shard-2.jsonl.gz
        sed 's/\"text\"/\"html\"/' corpus.jsonl > crawl.jsonl
        resemblance dedup crawl.jsonl -o crawl.jsonl.zst --text-field html --quiet
        echo '<p>Heavy rain is expected in the north tonight</p>' | tee page.html > site/page.html
    ";
    let crawl = format!(
        "source '{TRANSCRIPTS}/fixtures.sh'
         mkdir crawl && crawl | tee crawl-1.warc.gz > crawl/1.warc.gz"
    );
    follow("docs/tool.md", &[CORPORA, fixtures, &crawl].concat());
}

#[test]
fn operations_page_commands_print_what_it_shows() {
    let fixtures = "
        mkdir backup && cp seen.rsm backup/ && cp seen.rsm a.rsm && cp seen.rsm b.rsm && cp seen.rsm all.rsm
    ";
    follow("docs/operations.md", &[CORPORA, fixtures].concat());
}

#[test]
fn schema_page_commands_print_what_it_shows() {
    let fixtures = "
        mkdir versions debian-docs
        head -n 12 corpus.jsonl | gzip | tee versions/docs.jsonl.gz > debian-docs/docs.jsonl.gz
        resemblance build pages.rsm corpus.jsonl --simhash 64 --quiet
    ";
    follow("docs/schema.md", &[CORPORA, fixtures].concat());
}

#[test]
fn containment_page_commands_print_what_it_shows() {
    let fixtures = "
        cp corpus.jsonl pages.jsonl && cp more.jsonl paragraphs.jsonl
        cp corpus.jsonl train.jsonl && cp more.jsonl tests.jsonl
    ";
    follow("docs/containment.md", &[CORPORA, fixtures].concat());
}

#[test]
fn features_page_commands_print_what_it_shows() {
    let fixtures = r#"
        echo '{"id": "d.jpg", "signature": "f0e4c2d1a5b69788"}' > new.jsonl
        echo '{"id": "ode", "features": [1, 2, 3, 4]}' | tee pieces.jsonl > recordings.jsonl
        values=$(seq -s, 128)
        echo "{\"id\": \"a\", \"signature\": [$values]}" > signatures.jsonl
    "#;
    follow("docs/features.md", fixtures);
}
