//! Messages for people: errors, headers, and the output of -v.

use crate::support::{Arguments, Folder, distinct, gzip, mixed, ran, text};

/// Files and stores to make mistakes with.
fn folder_for_mistakes() -> Folder {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.write("d.jsonl", distinct(10..12));
    folder.write("dup.jsonl", distinct(0..2) + &distinct(0..1));
    folder.write("bad.jsonl", distinct(20..22) + "{\"id\": \"x\"\n");
    folder.write("latin.jsonl", b"{\"text\": \"caf\xe9\"}\n");
    folder.write("array.jsonl", "[1, 2]\n");
    folder.write("notext.jsonl", "{\"body\": \"a b c\", \"url\": \"x\"}\n");
    folder.write("numbers.jsonl", "{\"text\": 7}\n");
    folder.write("semi.csv", "id;text\n1;a b c\n");
    folder.write("t.csv", "id,text\n1,a b c\n");
    folder.write("text.txt", text(1));
    folder.write("texts/a.txt", text(1));
    folder.write("not.rsm", "x".repeat(10_000));
    let compressed = gzip(distinct(0..50).as_bytes());
    folder.write("cut.jsonl.gz", &compressed[..compressed.len() / 2]);
    folder.write("bad.toml", "[pairs\n");
    folder.write("typo.toml", "[pairs]\nthreshhold = 0.9\n");
    folder.write("words.toml", "[pairs]\nthreshold = 'high'\n");
    std::fs::create_dir(folder.path("empty")).unwrap();
    for (store, schema) in [
        ("m.rsm", &[][..]),
        ("s.rsm", &["--simhash", "64"]),
        ("p.rsm", &["--containment", "5"]),
    ] {
        let build = ["build", store, "c.jsonl"];
        folder.run(&[&build, schema].concat()).expect(0);
    }
    folder.run("create e.rsm").expect(0);
    folder.run("create f.rsm --features").expect(0);
    folder
}

/// All messages in one file, which is read as a document. `RESEMBLANCE_WRITE=1` writes it.
#[cfg(target_os = "linux")]
#[test]
fn messages_are_those_that_were_collected() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mistakes.txt");
    let collected = std::fs::read_to_string(path).unwrap();
    let folder = folder_for_mistakes();
    let names = folder.names();
    let (mut found, mut mistakes, mut wrong) = (String::new(), 0, Vec::new());
    let is_kept = |line: &&str| {
        ["#", "$", "This", "names"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    for line in collected.lines().filter(is_kept) {
        found += line;
        found.push('\n');
        let Some(command) = line.strip_prefix("$ ") else {
            if !line.starts_with("This") {
                found.push('\n');
            }
            continue;
        };
        mistakes += 1;
        let mut arguments = command.words();
        let variable = arguments[0].split_once('=');
        if variable.is_some() {
            arguments.remove(0);
        }
        let mut tool = folder.command(&arguments);
        let ran = ran(tool.envs(variable).output().unwrap());
        let code = ran.code.unwrap();
        let is_said = |word: &&str| ran.stderr.contains(*word);
        let of_rust = [
            "panicked", "literal", "non-zero", "EOF", "Os {", "Error(", "\\x0A",
        ];
        if of_rust.iter().any(is_said) || !ran.stderr.starts_with("resemblance: ") {
            wrong.push(command);
        }
        found += &format!("{}exit {code}\n\n", ran.stderr.replace("\n\n", "\n"));
    }
    assert!(mistakes >= 200, "{mistakes}");
    assert_eq!(folder.names(), names, "a mistake changes no files");
    if std::env::var_os("RESEMBLANCE_WRITE").is_some() {
        std::fs::write(path, found).unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let differing = found
        .lines()
        .zip(collected.lines())
        .find(|(found, collected)| found != collected);
    assert_eq!(differing, None, "RESEMBLANCE_WRITE=1 writes {path}");
    assert_eq!(found.lines().count(), collected.lines().count());
}
