//! What people see: errors, headers, and what -v says.

use std::process::Command;

use crate::support::{Arguments, Folder, distinct, edited, gzip, line, mixed, ran, text};

#[test]
fn tsv_has_a_header_unless_no_header_is_given() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    // Not the helper, which leaves the header out.
    let rows = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_resemblance"));
        command.args(arguments).current_dir(folder.path("."));
        ran(command.output().unwrap()).expect(0).stdout
    };
    let with = rows(&["pairs", "c.jsonl"]);
    let (header, rest) = with.split_once('\n').unwrap();
    assert_eq!(header, "key_a\tkey_b\tsimilarity");
    assert_eq!(rows(&["pairs", "c.jsonl", "--no-header"]), rest);
    assert_eq!(rows(&["pairs", "c.jsonl", "--header"]), with);
    folder.run("build a.rsm c.jsonl").expect(0);
    let stats = rows(&["stats", "a.rsm"]);
    assert!(
        stats.starts_with("section\titem\tmeasure\tvalue\nstore\t"),
        "{stats}"
    );
}

#[test]
fn stats_as_json_are_one_object() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.run("build a.rsm c.jsonl").expect(0);
    let ran = folder.run("stats a.rsm --format json").expect(0);
    let stats: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(stats["store"]["documents"], 7);
    assert!(
        stats["schema"].as_str().unwrap().contains("words"),
        "{stats}"
    );
    for list in ["runs", "merges", "tables", "lanes", "buckets"] {
        assert!(stats[list].is_array(), "{list}");
    }
    let tables = stats["tables"].as_array().unwrap();
    let documents = tables.iter().find(|table| table["table"] == "documents");
    assert_eq!(documents.unwrap()["rows"], 7);
    assert!(stats["lanes"][0]["role"].is_string());
    assert!(stats["buckets"][0]["samples"][0]["id"].is_u64());
}

#[test]
fn errors_have_cause_place_and_advice() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed() + "{\"id\": 1}\n");
    let ran = folder.run("pairs c.jsonl -q").expect(3);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(
        lines,
        [
            "resemblance: field \"text\" is missing",
            "  at c.jsonl:8",
            "  its fields are \"id\": name one with --text-field",
            "  --skip-bad skips such documents",
        ]
    );
    folder.run("create a.rsm").expect(0);
    let ran = folder
        .run("query a.rsm 'some text' --threshold 0.5")
        .expect(2);
    assert!(!ran.stderr.contains('_'), "{}", ran.stderr);
    ran.says(&["--threshold: found 0.5", "--accept-lower-recall", "--scan"]);
}

#[test]
fn every_verb_prints_details_with_v() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.run("build a.rsm c.jsonl").expect(0);
    folder.run("build b.rsm c.jsonl").expect(0);
    for arguments in [
        &["query", "a.rsm", "text"][..],
        &["get", "a.rsm", "a"],
        &["pairs", "a.rsm"],
        &["clusters", "c.jsonl"],
        &["dedup", "c.jsonl", "-o", "-"],
        &["stats", "a.rsm"],
        &["check", "a.rsm"],
        &["add", "a.rsm", "c.jsonl", "--if-new"],
        &["touch", "a.rsm", "a"],
        &["remove", "a.rsm", "a"],
        &["evict", "a.rsm", "--keep-newest", "100"],
        &["export", "a.rsm", "-o", "a.stream"],
        &["import", "b.rsm", "a.stream", "--keys", "skip"],
        &["compact", "a.rsm"],
        &["backup", "a.rsm", "-o", "copy.rsm"],
        &["tune"],
    ] {
        let more = [arguments, &["-v"]].concat();
        let ran = folder.run(&more);
        assert!(
            ran.stderr.contains("resemblance: took "),
            "{arguments:?}: {}",
            ran.stderr
        );
    }
    let ran = folder.run("get a.rsm b -v").expect(0);
    assert!(
        ran.stderr.contains("a.rsm: 6 documents; "),
        "{}",
        ran.stderr
    );
}

#[test]
fn if_new_accepts_a_higher_threshold() {
    let folder = Folder::new();
    folder.write("c.jsonl", line("a", &text(1)));
    folder.write(
        "d.jsonl",
        line("near", &edited(1, 2)) + &line("same", &text(1)),
    );
    folder.run("build a.rsm c.jsonl").expect(0);
    folder
        .run("add a.rsm d.jsonl --if-new --threshold 0.99")
        .expect(0)
        .says(&["read 2, added 1, dropped 1"]);
    folder.run("get a.rsm near").expect(0);
    folder
        .run("add a.rsm d.jsonl --if-new --threshold 0.99")
        .expect(0)
        .says(&["read 2, added 0, dropped 1", "known keys 1"]);
    folder
        .run("add a.rsm d.jsonl --if-new --threshold 0.5")
        .expect(2)
        .says(&["--threshold 0.5 lies below 0.8"]);
    folder.run("add a.rsm d.jsonl --threshold 0.9").expect(2);
}

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

/// Words of languages without spaces are whole sentences: near-copies share no five of them.
#[test]
fn texts_of_one_shingle_cause_a_note_with_advice() {
    let folder = Folder::new();
    let sentence = |number: u32| -> String {
        let letters =
            (0..60).map(|at| char::from_u32(0x4e00 + (number * 7919 + at * 131) % 20_000));
        letters.map(Option::unwrap).collect()
    };
    let documents = |length: u32| -> String {
        let texts =
            (0..length).flat_map(|number| [sentence(number), sentence(number) + "\u{4e00}"]);
        texts
            .enumerate()
            .map(|(id, text)| line(&id.to_string(), &text))
            .collect()
    };
    folder.write("c.jsonl", documents(50));
    for verb in [
        "pairs c.jsonl",
        "build a.rsm c.jsonl",
        "dedup c.jsonl --dry-run",
    ] {
        let ran = folder.run(verb);
        let warned = "100 of 100 texts have at most one shingle";
        assert!(
            ran.stderr.contains(warned) && ran.stderr.contains("--chars 5"),
            "{}",
            ran.stderr
        );
    }
    let ran = folder.run("pairs c.jsonl --chars 5").expect(0);
    assert!(
        !ran.stderr.contains("one shingle") && ran.lines().len() == 50,
        "{}",
        ran.stderr
    );
    folder.write("d.jsonl", distinct(0..30));
    let ran = folder.run("pairs d.jsonl");
    assert!(!ran.stderr.contains("one shingle"), "{}", ran.stderr);
}
