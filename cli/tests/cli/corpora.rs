//! What counts as a corpus.

use crate::support::{Folder, distinct, gzip, line, text, zstd};

fn keys(folder: &Folder, arguments: &[&str]) -> Vec<String> {
    // an empty store, so that nothing matches: query --corpus reads the whole corpus
    let _ = std::fs::remove_file(folder.path("k.rsm"));
    let mut build = vec!["build", "k.rsm"];
    build.extend(arguments);
    folder.run(&build).expect(0);
    let mut keys = Vec::new();
    for id in 0.. {
        let ran = folder.run(&["get", "k.rsm", "-e", &format!("\\#{id}"), "-q"]);
        if ran.code == Some(1) {
            return keys;
        }
        keys.push(ran.expect(0).stdout.split('\t').next().unwrap().to_owned());
    }
    keys
}

#[test]
fn field_options_name_text_and_id() {
    let folder = Folder::new();
    folder.write(
        "c.jsonl",
        format!(
            "{{\"url\":\"u\",\"body\":\"{}\",\"id\":[],\"text\":0}}\n",
            text(1)
        ),
    );
    let arguments = ["c.jsonl", "--id-field", "url", "--text-field", "body"];
    assert_eq!(keys(&folder, &arguments), ["u"]);
    folder.run("build x.rsm c.jsonl --id-field text").expect(2);
}

#[test]
fn integer_ids_become_decimal_keys() {
    let folder = Folder::new();
    let corpus = [
        format!("{{\"id\":12,\"text\":\"{}\"}}\n", text(1)),
        format!("{{\"id\":-3,\"text\":\"{}\"}}\n", text(2)),
        format!("{{\"id\":98765432109876543210,\"text\":\"{}\"}}\n", text(3)),
    ];
    folder.write("c.jsonl", corpus.concat());
    assert_eq!(
        keys(&folder, &["c.jsonl"]),
        ["12", "-3", "98765432109876543210"]
    );
    folder.write("d.jsonl", corpus[0].clone() + &line("12", &text(9)));
    folder
        .run("build x.rsm d.jsonl")
        .expect(3)
        .says(&["d.jsonl:2", "came before"]);
}

#[test]
fn compressed_files_are_read_past_their_first_member() {
    let folder = Folder::new();
    let (a, b) = (distinct(0..2), distinct(2..4));
    folder.write(
        "c.jsonl.gz",
        [gzip(a.as_bytes()), gzip(b.as_bytes())].concat(),
    );
    folder.write(
        "c.jsonl.zst",
        [zstd(a.as_bytes()), zstd(b.as_bytes())].concat(),
    );
    assert_eq!(keys(&folder, &["c.jsonl.gz"]), ["0", "1", "2", "3"]);
    assert_eq!(keys(&folder, &["c.jsonl.zst"]), ["0", "1", "2", "3"]);
}

#[test]
fn truncated_file_is_refused_even_with_skip_bad() {
    let folder = Folder::new();
    let (gz, zst) = (
        gzip(distinct(0..50).as_bytes()),
        zstd(distinct(0..50).as_bytes()),
    );
    folder.write("c.jsonl.gz", &gz[..gz.len() - 9]);
    folder.write("c.jsonl.zst", &zst[..zst.len() - 9]);
    folder.write("fake.jsonl.gz", distinct(0..2));
    for name in ["c.jsonl.gz", "c.jsonl.zst"] {
        for verb in [
            &["build", "x.rsm", name, "--skip-bad"][..],
            &["dedup", name, "-o", "x", "--skip-bad"],
        ] {
            folder
                .run(verb)
                .expect(3)
                .says(&[name, "is damaged or truncated"]);
        }
    }
    folder
        .run("build x.rsm fake.jsonl.gz")
        .expect(3)
        .says(&["is not gzip, as its name says"]);
    assert_eq!(
        folder.names(),
        ["c.jsonl.gz", "c.jsonl.zst", "fake.jsonl.gz"]
    );
}

#[test]
fn folder_of_text_files_is_a_corpus() {
    let folder = Folder::new();
    for (number, name) in [
        "t/b.txt",
        "t/a/x.txt",
        "t/a.md",
        "t/.hidden",
        "t/a/.git/config",
    ]
    .iter()
    .enumerate()
    {
        folder.write(name, text(number as u64));
    }
    folder.write("t/more.jsonl", distinct(10..12));
    assert_eq!(
        keys(&folder, &["t"]),
        ["t/a.md", "t/a/x.txt", "t/b.txt", "10", "11"]
    );
    assert_eq!(
        keys(&folder, &["t/", "--include", "*.txt"]),
        ["t/a/x.txt", "t/b.txt"]
    );
    assert_eq!(
        keys(&folder, &["t", "--include", "a/*", "--include", "*.md"]),
        ["t/a.md", "t/a/x.txt"]
    );
    let with_hidden = keys(&folder, &["t", "--hidden", "--include", "*[!l]"]);
    assert_eq!(
        with_hidden,
        [
            "t/.hidden",
            "t/a.md",
            "t/a/.git/config",
            "t/a/x.txt",
            "t/b.txt"
        ]
    );
    folder.write("t/latin1.txt", b"caf\xe9");
    folder
        .run("build x.rsm t")
        .expect(3)
        .says(&["invalid UTF-8 at byte 4\n  at t/latin1.txt\n"]);
    folder
        .run("build x.rsm t --skip-bad")
        .expect(0)
        .says(&["added 5", "skipped 1"]);
    folder
        .run("build y.rsm t --include [")
        .expect(2)
        .says(&["--include"]);
    let ran = folder.run("build y.rsm t --include *.nothing").expect(4);
    assert!(
        ran.stderr.contains("no file was found in t"),
        "{}",
        ran.stderr
    );
}

#[cfg(unix)]
#[test]
fn links_in_a_folder_are_read_unless_they_loop_or_dangle() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    folder.write("elsewhere/real.txt", text(1));
    folder.write("t/a.txt", text(2));
    symlink(folder.path("elsewhere/real.txt"), folder.path("t/link.txt")).unwrap();
    symlink(folder.path("t"), folder.path("t/loop")).unwrap();
    assert_eq!(keys(&folder, &["t"]), ["t/a.txt", "t/link.txt"]);
    symlink(folder.path("nowhere"), folder.path("t/dangling")).unwrap();
    folder.run("build x.rsm t").expect(4).says(&[
        "a link whose target does not exist\n  at t/dangling\n",
        "--skip-bad",
    ]);
    // It stops nothing that does not ask for it.
    folder.run("build x.rsm t --include *.txt").expect(0);
}

#[cfg(unix)]
#[test]
fn file_names_outside_utf8_become_keys() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    folder.write("t/a.txt", text(1));
    let name = folder.path("t").join(OsStr::from_bytes(b"b\xff\t.txt"));
    std::fs::write(name, text(1)).unwrap();
    let pairs = folder.run("pairs t").expect(0);
    assert_eq!(pairs.stdout, "t/a.txt\tt/b\\xFF\\t.txt\t1.000000\n");
    let json = folder.run("clusters t --format jsonl").expect(0).stdout;
    assert_eq!(
        json.lines().nth(1).unwrap(),
        "{\"cluster_id\":0,\"cluster_key\":\"t/a.txt\",\"id\":1,\"key\":null,\"key_hex\":\"742f62ff092e747874\"}"
    );
    folder.run("build s.rsm t").expect(0);
    folder
        .run(&["get", "s.rsm", "--escaped", "t/b\\xFF\\t.txt"])
        .expect(0);
    folder
        .run(&["remove", "s.rsm", "--escaped", "t/b\\xFF\\t.txt"])
        .expect(0);
}

#[test]
fn standard_input_is_read_as_lines() {
    let folder = Folder::new();
    folder
        .run_with_input("build a.rsm -", distinct(0..3).as_bytes())
        .expect(0);
    let more = gzip(distinct(3..6).as_bytes());
    folder.run_with_input("add a.rsm -", &more).expect(0);
    assert_eq!(folder.count("a.rsm"), 6);
    folder
        .run_with_input("add a.rsm -", b"{}\n")
        .expect(3)
        .says(&["field \"text\" is missing\n  at standard input:1"]);
    folder
        .run_with_input("add a.rsm - -", b"")
        .expect(3)
        .says(&["given twice"]);
    folder
        .run_with_input("build b.rsm -", b"")
        .expect(0)
        .says(&["read 0, added 0"]);
}

#[test]
fn a_very_long_line_is_read_in_linear_time() {
    let folder = Folder::new();
    let long = text(1).repeat(8_000);
    assert!(long.len() > 10_000_000);
    folder.write("c.jsonl", line("long", &long) + &distinct(0..1));
    folder
        .run("build a.rsm c.jsonl")
        .expect(0)
        .says(&["added 2"]);
}

#[cfg(not(feature = "remote"))]
#[test]
fn a_build_without_servers_says_how_to_get_them() {
    let folder = Folder::new();
    for input in [
        "s3://bucket/key.jsonl",
        "s3://bucket/*",
        "https://example.org/a.jsonl",
    ] {
        let refused = folder.run(&["pairs", input]).expect(4);
        refused.says(&[input, "--features remote"]);
    }
}

#[cfg(not(feature = "sqlite"))]
#[test]
fn a_build_without_sqlite_says_which_one_reads_it() {
    let folder = Folder::new();
    folder.write("in/c.any", b"SQLite format 3\0 and pages");
    folder.write("in/d.jsonl", distinct(0..3));
    for corpus in ["in/c.any", "in"] {
        folder.run(&["pairs", corpus]).expect(3).says(&[
            "SQLite",
            "requires the feature `sqlite`",
            "--features sqlite",
        ]);
    }
}
