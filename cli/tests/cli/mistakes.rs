//! Every kind of mistake: a clear sentence, the documented exit code, nothing lost.

#[cfg(unix)]
use std::fs::File;
#[cfg(target_os = "linux")]
use std::process::Stdio;

use crate::sample::one_in;
use crate::support::{Folder, distinct, mixed, ran, text};

#[test]
fn wrong_options_exit_with_usage() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    for arguments in [
        "nonsense",
        "build",
        "build a.rsm",
        "build a.rsm c.jsonl --words 3 --chars 3",
        "build a.rsm c.jsonl --bands 3",
        "build a.rsm c.jsonl --bands 3 --rows 3 --recall 0.9",
        "build a.rsm c.jsonl --simhash 63",
        "build a.rsm c.jsonl --simhash 64 --threshold 0.9",
        "build a.rsm c.jsonl --distance 2",
        "build a.rsm c.jsonl --threshold 0",
        "build a.rsm c.jsonl --threshold 1.1",
        "build a.rsm c.jsonl --threshold NaN",
        "build a.rsm c.jsonl --words 0",
        "build a.rsm c.jsonl --words 99999",
        "build a.rsm c.jsonl --minhash 0",
        "build a.rsm c.jsonl --threads 0",
        "build a.rsm c.jsonl --memory lots",
        "add a.rsm c.jsonl --if-new --upsert",
        "add a.rsm c.jsonl --commit-every 0",
        "evict a.rsm",
        "evict a.rsm --older-than 5 --keep-newest 5",
        "evict a.rsm --keep-newest 5 --slice 0",
        "evict a.rsm --keep-newest -5",
        "query a.rsm text --file c.jsonl",
        "query a.rsm text --escaped",
        "pairs c.jsonl --format xml",
        "completions tcl",
    ] {
        let ran = folder.run(arguments).expect(2);
        assert!(ran.stderr.starts_with("resemblance: "), "{}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
    assert_eq!(folder.names(), ["c.jsonl"]);
}

#[test]
fn missing_files_exit_with_io() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.run("create a.rsm").expect(0);
    for arguments in [
        "build x.rsm missing.jsonl",
        "add a.rsm missing.jsonl",
        "add missing.rsm c.jsonl",
        "query missing.rsm text",
        "query a.rsm --file missing.txt",
        "query a.rsm --corpus missing.jsonl",
        "get missing.rsm k",
        "remove missing.rsm k",
        "evict missing.rsm --keep-newest 5",
        "evict missing.rsm --keep-newest 5 --dry-run",
        "pairs missing",
        "clusters missing",
        "dedup missing.jsonl -o out.jsonl",
        "dedup c.jsonl -o missing/out.jsonl",
        "dedup c.jsonl -o out.jsonl --report missing/r.tsv",
        "stats missing.rsm",
        "check missing.rsm",
        "compact missing.rsm",
        "create missing/a.rsm",
        "build missing/a.rsm c.jsonl",
        "pairs c.jsonl --temp-dir missing",
        "dedup c.jsonl -o out.jsonl --temp-dir missing",
    ] {
        folder.run(arguments).expect(4).says(&["missing"]);
    }
    assert_eq!(folder.names(), ["a.rsm", "c.jsonl"]);
}

#[test]
fn other_files_are_reported_as_not_a_store() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.write("empty", "");
    folder.write("text", "x".repeat(10_000));
    for name in ["c.jsonl", "empty", "text"] {
        let before = folder.read(name);
        for arguments in [
            &["query", name, "text"][..],
            &["add", name, "c.jsonl"],
            &["get", name, "k"],
            &["remove", name, "k"],
            &["evict", name, "--keep-newest", "0"],
            &["stats", name],
            &["check", name],
            &["compact", name],
        ] {
            folder
                .run(arguments)
                .expect(6)
                .says(&[name, "is not a resemblance store"]);
        }
        assert_eq!(folder.read(name), before);
    }
    folder.run("build a.rsm c.jsonl").expect(0);
    for arguments in [
        &["build", "b.rsm", "a.rsm"][..],
        &["dedup", "a.rsm", "-o", "x"],
        &["query", "a.rsm", "--corpus", "a.rsm"],
    ] {
        folder
            .run(arguments)
            .expect(3)
            .says(&["a.rsm is a store, not a corpus"]);
    }
}

#[test]
fn check_finds_damage() {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..400));
    folder.run("build a.rsm c.jsonl").expect(0);
    let sound = folder.read("a.rsm");
    // cut in half
    folder.write("cut.rsm", &sound[..sound.len() / 2]);
    let cut = folder.run("check cut.rsm");
    assert!(
        matches!(cut.code, Some(1 | 6)),
        "{:?} {}",
        cut.code,
        cut.stderr
    );
    // one byte of every 4 KiB page behind those that lead to the others
    let mut damaged = sound.clone();
    for position in (sound.len() / 16..sound.len() - 1_000).step_by(4096) {
        damaged[position + 1_000] ^= 0xff;
    }
    folder.write("bad.rsm", damaged);
    let check = folder.run("check bad.rsm").expect(1);
    assert!(!check.stdout.is_empty());
}

/// With one damaged page in three, with each of 48 with `RESEMBLANCE_TESTS=all`.
#[test]
fn damage_is_reported_in_one_sentence_that_names_the_store() {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..400));
    folder.run("build a.rsm c.jsonl").expect(0);
    let sound = folder.read("a.rsm");
    let mut seen = 0;
    // the first page is the header, without which the file is no store
    let pages = (4096..sound.len()).step_by(4096).take(48);
    for start in pages.step_by(one_in(3)) {
        let mut damaged = sound.clone();
        damaged[start..start + 4096].fill(0);
        folder.write("bad.rsm", damaged);
        for arguments in [
            "stats bad.rsm",
            "pairs bad.rsm -q",
            "dedup c.jsonl --against bad.rsm -o - -q",
        ] {
            let ran = folder.run(arguments);
            if ran.code == Some(6) {
                ran.says(&["bad.rsm: ", "damage"]);
                seen += 1;
            } else {
                assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
                assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
            }
        }
        let check = folder.run("check bad.rsm");
        assert!(!check.stderr.contains("panicked"), "{}", check.stderr);
    }
    assert!(seen > 3 / one_in(3), "{seen}");
}

#[test]
fn outputs_never_overwrite_inputs_or_stores() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.write("texts/a.txt", text(1));
    folder.write("other/r.tsv", mixed());
    folder.run("build a.rsm c.jsonl").expect(0);
    let (names, store) = (folder.names(), folder.read("a.rsm"));
    for (arguments, sentence) in [
        ("c.jsonl -o o.jsonl --report o.jsonl", "both go to"),
        ("c.jsonl -o o.jsonl --report ./o.jsonl", "both go to"),
        ("c.jsonl -o - --report -", "both go to"),
        ("c.jsonl -o other --report other/c.jsonl", "both go to"),
        (
            "c.jsonl -o o.jsonl --report c.jsonl",
            "c.jsonl is read, and",
        ),
        (
            "texts -o out --report texts/a.txt",
            "this output would overwrite it",
        ),
        ("c.jsonl -o o.jsonl --report a.rsm", "is a store"),
        ("c.jsonl -o a.rsm", "is a store"),
        ("c.jsonl --against a.rsm -o ./a.rsm", "is a store"),
    ] {
        let arguments: Vec<_> = arguments.split(' ').collect();
        folder
            .run(&[&["dedup", "--force"], &*arguments].concat())
            .expect(2)
            .says(&[sentence]);
        assert_eq!(folder.names(), names);
        assert_eq!(folder.read_text("c.jsonl"), mixed());
        assert_eq!(folder.read("a.rsm"), store);
    }
    // a report may lie in the folder of the output, and two devices are no conflict
    std::fs::create_dir(folder.path("fresh")).unwrap();
    folder
        .run("dedup c.jsonl -o fresh --report fresh/x.tsv")
        .expect(0);
    #[cfg(unix)]
    folder
        .run("dedup c.jsonl -o /dev/null --report /dev/null")
        .expect(0);
}

#[cfg(target_os = "linux")]
#[test]
fn links_modes_and_streams_are_respected() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.write("private", "old");
    std::fs::set_permissions(folder.path("private"), PermissionsExt::from_mode(0o600)).unwrap();
    symlink("private", folder.path("link.jsonl")).unwrap();
    folder
        .run("dedup c.jsonl -o link.jsonl --force")
        .expect(4)
        .says(&["link.jsonl is a link", "the name that it leads to, private"]);
    assert_eq!(folder.read_text("private"), "old");
    folder.run("dedup c.jsonl -o private --force").expect(0);
    assert_eq!(folder.read_text("private").lines().count(), 4);
    assert!(std::fs::read_link(folder.path("link.jsonl")).is_ok());
    let mode = |name: &str| {
        let metadata = folder.path(name).metadata().unwrap();
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode("private"), 0o600);
    folder.run("build a.rsm c.jsonl").expect(0);
    std::fs::set_permissions(folder.path("a.rsm"), PermissionsExt::from_mode(0o640)).unwrap();
    folder.run("export a.rsm -o a.rss").expect(0);
    assert_eq!(mode("a.rss"), 0o640);
    folder.run("export a.rsm -o private --force").expect(0);
    assert_eq!(mode("private"), 0o640);
    folder.run("dedup c.jsonl -o new.jsonl").expect(0);
    assert_eq!(mode("new.jsonl"), mode("c.jsonl"));

    let stdout = File::create(folder.path("stdout")).unwrap();
    let mut command = folder.command("dedup c.jsonl -o /dev/stdout");
    ran(command.stdout(stdout).output().unwrap()).expect(0);
    assert_eq!(folder.read("stdout"), folder.read("new.jsonl"));
}

#[test]
fn errors_in_lines_name_file_and_line() {
    let folder = Folder::new();
    let cases: [(&[u8], &str); 7] = [
        (b"not json", "not a JSON object"),
        (b"[{}]", "a JSON array, expected one object per line"),
        (
            b"{\"id\":\"a\",\"text\":\"b\"",
            "the line ends inside a JSON object",
        ),
        (b"{\"id\":\"a\"}", "field \"text\" is missing"),
        (
            b"{\"id\":\"a\",\"text\":\"\xff\"}",
            "invalid UTF-8 at byte 19",
        ),
        (
            b"{\"id\":\"a\",\"text\":\"x\",\"text\":\"y\"}",
            "field \"text\" is there twice",
        ),
        (
            b"{\"id\":true,\"text\":\"x\"}",
            "field \"id\" is true or false",
        ),
    ];
    for (bad, reason) in cases {
        folder.write(
            "c.jsonl",
            [
                distinct(0..2).as_bytes(),
                b"\n",
                bad,
                b"\n",
                distinct(2..3).as_bytes(),
            ]
            .concat(),
        );
        for arguments in [
            "build a.rsm c.jsonl",
            "pairs c.jsonl",
            "clusters c.jsonl",
            "dedup c.jsonl -o out.jsonl",
        ] {
            let ran = folder.run(arguments).expect(3);
            assert_eq!(ran.stdout, "");
            ran.says(&[
                "\n  at c.jsonl:4\n",
                reason,
                "--skip-bad skips such documents",
            ]);
        }
    }
    assert_eq!(folder.names(), ["c.jsonl"]);
}

#[cfg(unix)]
#[test]
fn unreadable_files_are_io_errors() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    let mode = |mode| {
        std::fs::set_permissions(folder.path("c.jsonl"), PermissionsExt::from_mode(mode)).unwrap()
    };
    mode(0o000);
    // the superuser reads everything
    if File::open(folder.path("c.jsonl")).is_err() {
        folder
            .run("build a.rsm c.jsonl --skip-bad")
            .expect(4)
            .says(&["cannot read c.jsonl"]);
        assert_eq!(folder.names(), ["c.jsonl"]);
    }
    mode(0o600);
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_exits_with_io() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder
        .run("dedup c.jsonl -o /dev/full")
        .expect(4)
        .says(&["/dev/full", "No space left"]);
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    for arguments in [
        "pairs c.jsonl",
        "clusters c.jsonl --format jsonl",
        "pairs c.jsonl --format table",
        "dedup c.jsonl -o -",
        "completions bash",
    ] {
        let output = folder.command(arguments).stdout(full()).output().unwrap();
        ran(output).expect(4).says(&["No space left"]);
    }
    folder.run("dedup c.jsonl -o /dev/null").expect(0);
}

#[test]
fn closed_pipe_ends_the_tool_quietly() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    for arguments in [
        &["pairs", "c.jsonl", "-q"][..],
        &["clusters", "c.jsonl", "--format", "table", "-q"],
        &["dedup", "c.jsonl", "-o", "-", "-q"],
        &["completions", "bash"],
        &["--help"],
    ] {
        let mut child = folder.command(arguments).spawn().unwrap();
        drop(child.stdout.take());
        let ran = ran(child.wait_with_output().unwrap()).expect(0);
        assert_eq!(ran.stderr, "", "{arguments:?}");
    }
}

#[test]
fn options_that_contradict_the_schema_of_a_store_are_refused() {
    let folder = Folder::new();
    folder.run("create a.rsm --simhash 64").expect(0);
    folder
        .run(&["query", "a.rsm", &text(1), "--by", "minhash"])
        .expect(2);
    folder
        .run("pairs a.rsm --minhash 128")
        .expect(2)
        .says(&["--minhash", "own schema"]);
    folder
        .run("pairs a.rsm --threshold 0.9")
        .expect(2)
        .says(&["no MinHash"]);
    folder.run("add a.rsm c.jsonl --distance 4").expect(2);
    folder
        .run("pairs a.rsm --distance 64")
        .expect(2)
        .says(&["--distance", "at most 63"]);
    folder.run("create b.rsm").expect(0);
    folder
        .run("clusters b.rsm --threshold 0.7")
        .expect(2)
        .says(&["--threshold 0.7 lies below 0.8"]);
}

/// Runs the tool where no file may grow beyond so many blocks of 512 bytes.
#[cfg(target_os = "linux")]
fn run_limited(folder: &Folder, blocks: u32, arguments: &str) -> crate::support::Ran {
    let tool = env!("CARGO_BIN_EXE_resemblance");
    let script = format!("ulimit -f {blocks}; exec '{tool}' {arguments}");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).current_dir(folder.path("."));
    ran(command.output().unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn disk_that_fills_up_loses_no_committed_document() {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..6_000));
    for (arguments, what) in [
        ("build a.rsm c.jsonl", "temporary store in ."),
        (
            "dedup c.jsonl -o out.jsonl --report r.tsv",
            "cannot write out.jsonl",
        ),
        (
            "pairs c.jsonl --temp-dir . --memory 2M --verify estimate",
            "temporary store in .",
        ),
        (
            "pairs c.jsonl --temp-dir . --memory 2M",
            "temporary file in .",
        ),
    ] {
        let ran = run_limited(&folder, 4_000, arguments).expect(4);
        ran.says(&[what, "File too large"]);
        assert_eq!(folder.names(), ["c.jsonl"], "{arguments}");
    }
    folder.run("create a.rsm").expect(0);
    run_limited(&folder, 4_000, "add a.rsm c.jsonl --commit-every 500")
        .expect(4)
        .says(&["a.rsm: ", "File too large", "committed ", "give --skip "]);
    let count = folder.count("a.rsm");
    assert!(
        count > 0 && count < 6_000 && count.is_multiple_of(500),
        "{count}"
    );
    let skip = count.to_string();
    folder
        .run(&format!("add a.rsm c.jsonl --skip '{skip}'"))
        .expect(0);
    assert_eq!(folder.count("a.rsm"), 6_000);
    folder.run("check a.rsm").expect(0);
}

#[test]
fn more_threads_than_any_machine_has_are_refused() {
    let folder = Folder::new();
    folder.write("c.jsonl", "{\"text\":\"a b c d e f\"}\n");
    folder.write("defaults.toml", "threads = 100000000\n");
    for wrong in [
        "--threads=0",
        "--threads=1025",
        "--threads=100000000",
        "--threads=two",
        "--config=defaults.toml",
    ] {
        let ran = folder.run(&format!("pairs c.jsonl {wrong}")).expect(2);
        assert!(ran.stderr.contains("expected 1 to 1024"), "{}", ran.stderr);
    }
    folder.run("pairs c.jsonl --threads 1024").expect(1);
}

#[test]
fn names_from_other_tools_lead_to_the_right_option_or_verb() {
    let folder = Folder::new();
    for (arguments, parts) in [
        (
            "dedup c.jsonl -o o --format json",
            &["dedup has no option --format", "the name of an output file"][..],
        ),
        ("dedup c.jsonl -o o --jobs 4", &["use --threads"]),
        ("dedup c.jsonl -o o -j 4", &["-j", "--threads"]),
        ("dedup c.jsonl -o o --similarity 0.9", &["--threshold"]),
        ("pairs c.jsonl -t 0.9", &["-t", "--threshold"]),
        ("pairs c.jsonl -o o", &["pairs has no option -o", "> FILE"]),
        ("pairs c.jsonl --output o", &["--output", "> FILE"]),
        ("query s.rsm text --top 3", &["--limit"]),
        (
            "pairs c.jsonl --treshold 0.9",
            &["did you mean --threshold?"],
        ),
        (
            "pairs c.jsonl --nonsense",
            &["no option --nonsense", "pairs --help"],
        ),
        ("find s.rsm text", &["there is no verb find", "query finds"]),
        (
            "search s.rsm text",
            &["there is no verb search", "query finds"],
        ),
        ("dedupe c.jsonl", &["dedup writes"]),
        ("quary s.rsm", &["did you mean query?"]),
        ("nonsense", &["there is no verb nonsense", "--help"]),
        (
            "pairs c.jsonl --threshold x",
            &["--threshold: found \"x\", expected a number"],
        ),
        (
            "add s.rsm c.jsonl --commit-every 0",
            &["expected a whole number of at least 1"],
        ),
        (
            "add s.rsm c.jsonl --commit-interval 0",
            &["expected a number of seconds"],
        ),
        (
            "pairs c.jsonl --words 99999",
            &["--words: found \"99999\"", "whole number"],
        ),
    ] {
        let arguments: Vec<_> = arguments.split(' ').collect();
        let ran = folder.run(&arguments).expect(2);
        for part in parts {
            assert!(
                ran.stderr.contains(part),
                "{part:?} is not in {}",
                ran.stderr
            );
        }
        for rust in ["tip:", "literal", "digit", "non-zero", "error:"] {
            assert!(!ran.stderr.contains(rust), "{rust:?} is in {}", ran.stderr);
        }
    }
}

/// The corpus is not there: exit code 2 shows that nobody looked for it.
#[test]
fn families_that_the_signatures_lack_are_refused_before_anything_is_read() {
    let folder = Folder::new();
    for (store, schema) in [
        ("m.rsm", &["--minhash", "64"][..]),
        ("s.rsm", &["--simhash", "64"]),
        ("c.rsm", &["--containment", "5"]),
    ] {
        folder.run(&[&["create", store], schema].concat()).expect(0);
        for by in ["minhash", "simhash", "any", "both"] {
            if [("m.rsm", "minhash"), ("s.rsm", "simhash")].contains(&(store, by)) {
                continue;
            }
            for verb in [
                &["pairs", store][..],
                &["clusters", store],
                &["query", store, "text"],
                &["query", store, "--corpus", "missing"],
                &["dedup", "missing", "-o", "o", "--against", store],
            ] {
                let ran = folder.run(&[verb, &["--by", by]].concat()).expect(2);
                ran.says(&["--by", "the schema has "]);
            }
            for verb in [
                &["pairs", "missing"][..],
                &["clusters", "missing"],
                &["dedup", "missing", "-o", "o"],
                &["dedup", "missing", "-o", "o", "--policy", "cluster"],
                &["report", "missing", "-o", "o"],
                &["pairs", "missing", "--tf-idf"],
            ] {
                if verb.contains(&"--tf-idf") && store != "s.rsm" {
                    continue;
                }
                let ran = folder
                    .run(&[verb, schema, &["--by", by]].concat())
                    .expect(2);
                ran.says(&["--by", "the schema has "]);
            }
        }
        for verb in [
            &["pairs", "missing"][..],
            &["create", "x.rsm"],
            &["build", "x.rsm", "missing"],
        ] {
            for near in ["any", "both"] {
                let ran = folder
                    .run(&[verb, schema, &["--near", near]].concat())
                    .expect(2);
                ran.says(&["--near needs a schema with both families"]);
            }
        }
    }
    assert_eq!(folder.names(), ["c.rsm", "m.rsm", "s.rsm"]);
}
