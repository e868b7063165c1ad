//! Results to the byte.

use crate::support::{Folder, line, mixed, text};

fn folder() -> Folder {
    let folder = Folder::new();
    let corpus = [
        line("plain", &text(1)),
        line(
            "tab\tnew\nline\rback\\slash \"quoted\" \u{e9}\u{1F600}",
            &text(1),
        ),
        line("other", &text(2)),
    ];
    folder.write("c.jsonl", corpus.concat());
    folder
}

#[test]
fn pairs_are_written_in_every_format() {
    let folder = folder();
    let tsv = folder.run("pairs c.jsonl --header").expect(0).stdout;
    assert_eq!(
        tsv,
        "key_a\tkey_b\tsimilarity\n\
         plain\ttab\\tnew\\nline\\rback\\\\slash \"quoted\" \u{e9}\u{1F600}\t1.000000\n"
    );
    let json = folder.run("pairs c.jsonl --format jsonl").expect(0).stdout;
    assert_eq!(
        json,
        "{\"id_a\":0,\"key_a\":\"plain\",\"id_b\":1,\
         \"key_b\":\"tab\\tnew\\nline\\rback\\\\slash \\\"quoted\\\" \u{e9}\u{1F600}\",\
         \"similarity\":1.0,\"distance\":null}\n"
    );
    let table = folder.run("pairs c.jsonl --format table").expect(0).stdout;
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        ["key_a", "key_b", "similarity"]
    );
    assert!(lines[2].starts_with(" plain"));
    let both = "pairs c.jsonl --minhash 128 --simhash 64 --header";
    let tsv = folder.run(both).expect(0).stdout;
    assert!(tsv.starts_with("key_a\tkey_b\tsimilarity\tdistance\n"));
}

#[test]
fn clusters_are_written_in_every_format() {
    let folder = Folder::new();
    folder.write("c.jsonl", line("z", &text(1)) + &line("a", &text(1)));
    let tsv = folder.run("clusters c.jsonl --header").expect(0).stdout;
    assert_eq!(tsv, "cluster_key\tkey\nz\ta\nz\tz\n");
    let json = folder
        .run("clusters c.jsonl --format jsonl")
        .expect(0)
        .stdout;
    assert_eq!(
        json,
        "{\"cluster_id\":0,\"cluster_key\":\"z\",\"id\":1,\"key\":\"a\"}\n\
         {\"cluster_id\":0,\"cluster_key\":\"z\",\"id\":0,\"key\":\"z\"}\n"
    );
}

#[test]
fn query_results_are_written_as_jsonl() {
    let folder = folder();
    folder.run("build a.rsm c.jsonl").expect(0);
    let json = folder
        .run(&["query", "a.rsm", &text(2), "--format", "jsonl"])
        .expect(0)
        .stdout;
    assert_eq!(
        json,
        "{\"id\":2,\"key\":\"other\",\"similarity_estimate\":1.0,\"distance\":null}\n"
    );
}

#[test]
fn check_and_compact_write_jsonl() {
    let folder = folder();
    folder.run("build a.rsm c.jsonl").expect(0);
    assert_eq!(
        folder.run("check a.rsm --format jsonl").expect(0).stdout,
        ""
    );
    let json = folder.run("compact a.rsm --format jsonl").expect(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["size_before_bytes"].is_u64() && json["size_after_bytes"].is_u64());
}

#[test]
fn output_without_a_terminal_has_no_colour_or_animation() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    for arguments in [
        &["pairs", "c.jsonl"][..],
        &["pairs", "missing"],
        &["--help"],
        &["nonsense"],
        &["stats"],
    ] {
        let ran = folder.run(arguments);
        assert!(
            !ran.stdout.contains('\x1b') && !ran.stderr.contains('\x1b'),
            "{arguments:?}"
        );
    }
}

#[test]
fn quiet_prints_errors_only() {
    let folder = folder();
    for arguments in [
        &["build", "a.rsm", "c.jsonl", "-q"][..],
        &["pairs", "a.rsm", "-q"],
        &["check", "a.rsm", "--quiet"],
        &["dedup", "c.jsonl", "-o", "o.jsonl", "-q"],
    ] {
        assert_eq!(folder.run(arguments).expect(0).stderr, "", "{arguments:?}");
    }
    assert_ne!(folder.run("pairs missing -q").expect(4).stderr, "");
    folder.run("pairs a.rsm -q -v").expect(2);
}

#[test]
fn help_version_and_completions_are_printed() {
    let folder = Folder::new();
    let help = folder.run("--help").expect(0).stdout;
    for part in [
        "Exit codes:",
        "Examples:",
        "A CORPUS is",
        "dedup",
        "completions",
    ] {
        assert!(help.contains(part), "{part}");
    }
    for verb in [
        "create",
        "build",
        "add",
        "query",
        "get",
        "list",
        "remove",
        "evict",
        "pairs",
        "clusters",
        "dedup",
        "stats",
        "check",
        "compact",
        "reband",
        "repair",
        "backup",
        "export",
        "import",
        "tune",
        "eval",
        "completions",
        "man",
    ] {
        let help = folder.run(&[verb, "--help"]).expect(0).stdout;
        assert!(help.contains("Example"), "{verb}: {help}");
    }
    let version = folder.run("--version").expect(0).stdout;
    let format = resemblance::stats::FORMAT_VERSION;
    assert_eq!(
        version,
        format!(
            "resemblance {} (store format {format})\n",
            env!("CARGO_PKG_VERSION")
        )
    );
    for shell in ["bash", "zsh", "fish"] {
        let script = folder.run(&["completions", shell]).expect(0).stdout;
        assert!(script.contains("dedup") && script.len() > 1000, "{shell}");
    }
    std::fs::create_dir(folder.path("man1")).unwrap();
    folder.run("man man1").expect(0);
    for page in ["resemblance.1", "resemblance-dedup.1", "resemblance-list.1"] {
        let page = std::fs::read_to_string(folder.path("man1").join(page)).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
    }
    folder.write("none", "a file");
    folder.run("man none").expect(4).says(&["none"]);
    let bare = folder.run(&[]).expect(2);
    assert!(bare.stderr.contains("Usage:"));
}
