//! create, build, get, remove, stats, check, compact.

use crate::support::{Folder, distinct, line, mixed, text};

#[test]
fn create_makes_an_empty_store_and_shows_the_schema() {
    let folder = Folder::new();
    let ran = folder.run("create a.rsm").expect(0);
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains("13 bands of 7 rows"), "{}", ran.stderr);
    assert_eq!(folder.count("a.rsm"), 0);
    assert_eq!(folder.names(), ["a.rsm"]);
    assert_eq!(folder.run("-q create b.rsm").expect(0).stderr, "");
}

#[test]
fn every_schema_option_reaches_the_store() {
    let folder = Folder::new();
    let options = "--chars 9 --minhash 64 --bands 8 --rows 4 --threshold 0.5 --simhash 64 \
                   --distance 5 --expected 5000 --seed 7 --near both --empty alike";
    let mut arguments = vec!["create", "a.rsm"];
    arguments.extend(options.split_whitespace());
    let shown = folder.run(&arguments).expect(0).stderr;
    for part in [
        "characters 9",
        "seed 7",
        "64 values",
        "8 bands of 4 rows",
        "threshold 0.5",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.contains("distance"), "{shown}");
    let recall = folder.run("create b.rsm --recall 0.5").expect(0).stderr;
    assert!(!recall.contains("13 bands of 7 rows"), "{recall}");
}

#[test]
fn build_indexes_a_corpus() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    let ran = folder.run("build a.rsm c.jsonl").expect(0);
    assert_eq!(
        ran.stderr,
        "resemblance: 1 file as JSON Lines (7 documents)\n\
         resemblance: read 7, added 7, dropped 0, skipped 0, empty 0\n"
    );
    assert_eq!(folder.count("a.rsm"), 7);
    assert_eq!(folder.names(), ["a.rsm", "c.jsonl"]);
}

#[test]
fn build_gives_the_same_store_with_any_number_of_threads() {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..700));
    for threads in ["1", "5"] {
        let store = format!("{threads}.rsm");
        folder
            .run(&format!("build {store} c.jsonl --threads {threads}"))
            .expect(0);
    }
    let get = |store: &str, key: &str| {
        folder
            .run(&format!("get {store} '{key}' --format jsonl"))
            .expect(0)
            .stdout
    };
    for key in ["0", "255", "256", "257", "511", "512", "699"] {
        let record = get("1.rsm", key);
        assert!(
            record.starts_with(&format!("{{\"id\":{key},\"key\":\"{key}\",")),
            "{record}"
        );
        assert_eq!(record, get("5.rsm", key));
    }
}

#[test]
fn a_failed_build_leaves_nothing() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed() + "nonsense\n");
    folder.run("build a.rsm c.jsonl").expect(3).says(&[
        "c.jsonl:8",
        "not a JSON object",
        "--skip-bad",
    ]);
    assert_eq!(folder.names(), ["c.jsonl"]);
    let ran = folder.run("build a.rsm c.jsonl --skip-bad").expect(0);
    ran.says(&["read 8, added 7, dropped 0, skipped 1"]);
}

#[test]
fn build_refuses_a_repeated_key() {
    let folder = Folder::new();
    folder.write(
        "c.jsonl",
        line("k", &text(1)) + &line("x", &text(2)) + &line("k", &text(3)),
    );
    folder
        .run("build a.rsm c.jsonl")
        .expect(3)
        .says(&["c.jsonl:3", "key \"k\" came before"]);
    assert_eq!(folder.names(), ["c.jsonl"]);
    folder
        .run("build a.rsm c.jsonl --skip-bad")
        .expect(0)
        .says(&["added 2", "skipped 1"]);
    assert_eq!(
        folder
            .run("get a.rsm k --format jsonl")
            .stdout
            .find("\"id\":0,"),
        Some(1)
    );
}

#[test]
fn skipped_keys_are_named_with_their_places_in_order() {
    let folder = Folder::new();
    let corpus = line("a", &text(1)) + "\n\n" + &line("b", &text(2)) + "nonsense\n";
    let corpus = corpus + &line("b", "") + &line("a", &text(3)) + &line("a", &text(4));
    folder.write("c.jsonl", corpus);
    folder.write("d.jsonl", line("c", "") + &line("b", &text(5)));
    let refused = folder.run("build a.rsm d.jsonl c.jsonl").expect(3);
    // Bad lines are met first, repeated keys when all has been read.
    refused.says(&["c.jsonl:5", "--skip-bad"]);
    let skipping = "build a.rsm c.jsonl d.jsonl --skip-bad -v";
    let ran = folder.run(skipping).expect(0);
    let stderr = ran.stderr.clone();
    assert!(
        stderr.contains("read 8, added 4, dropped 0, skipped 4, empty 1"),
        "{stderr}"
    );
    let skipped = stderr.lines().filter(|line| line.contains("came before"));
    let expected = [("c.jsonl:6", "b"), ("c.jsonl:7", "a"), ("c.jsonl:8", "a")];
    let expected = expected
        .map(|(place, key)| format!("resemblance: skipped {place}: key \"{key}\" came before"));
    assert_eq!(skipped.collect::<Vec<_>>(), expected);
    folder.run("check a.rsm").expect(0);
}

#[test]
fn an_existing_file_is_never_overwritten() {
    let folder = Folder::new();
    folder.write("precious", "do not touch");
    folder.write("c.jsonl", mixed());
    folder
        .run("create precious")
        .expect(4)
        .says(&["precious already exists"]);
    folder
        .run("build precious c.jsonl")
        .expect(4)
        .says(&["precious already exists"]);
    assert_eq!(folder.read_text("precious"), "do not touch");
}

#[test]
fn get_prints_a_document() {
    let folder = Folder::new();
    folder.write("c.jsonl", line("a\tb", "one two three four five six"));
    let options = [
        "--minhash",
        "16",
        "--bands",
        "4",
        "--rows",
        "2",
        "--simhash",
        "64",
    ];
    let mut build = vec!["build", "a.rsm", "c.jsonl"];
    build.extend(options);
    folder.run(&build).expect(0);
    let ran = folder.run(&["get", "a.rsm", "a\tb", "--header"]).expect(0);
    let lines = ran.lines();
    assert_eq!(
        lines[0],
        "key\tstamp\tminhash\tsimhash\tpayload_hex\tpayload"
    );
    let fields: Vec<_> = lines[1].split('\t').collect();
    assert_eq!(fields[0], "a\\tb");
    assert_eq!(fields[2].split(',').count(), 16);
    assert_eq!(fields[3].len(), 16);
    assert_eq!(fields[4], "");
    let escaped = folder
        .run(&["get", "a.rsm", "--escaped", "a\\tb"])
        .expect(0);
    assert_eq!(escaped.lines(), [lines[1]]);
    let by_number = folder.run(&["get", "a.rsm", "--escaped", "\\#0"]).expect(0);
    assert_eq!(by_number.stdout, escaped.stdout);
    let json = folder
        .run(&["get", "a.rsm", "a\tb", "--format", "jsonl"])
        .expect(0)
        .stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["key"], "a\tb");
    assert_eq!(json["minhash"].as_array().unwrap().len(), 16);
    assert_eq!(json["simhash"], fields[3]);
    folder
        .run(&["get", "a.rsm", "a\\tb"])
        .expect(1)
        .says(&["no document has the key a\\\\tb"]);
    folder.run(&["get", "a.rsm", "--escaped", "a\\q"]).expect(2);
}

#[test]
fn remove_removes_documents() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.run("build a.rsm c.jsonl").expect(0);
    folder
        .run("remove a.rsm a b")
        .expect(0)
        .says(&["removed 2, not found 0"]);
    folder.run("get a.rsm a").expect(1);
    let ran = folder.run("remove a.rsm a c").expect(1);
    assert!(ran.stderr.contains("no document has the key a\n"));
    ran.says(&["removed 1, not found 1"]);
    folder
        .run(&["remove", "a.rsm", "--escaped", "\\#1"])
        .expect(0);
    assert_eq!(folder.count("a.rsm"), 3);
    let pairs = folder.run("pairs a.rsm").expect(1);
    assert_eq!(pairs.stdout, "");
}

#[test]
fn evict_removes_exactly_the_oldest() {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..10));
    folder.run("build a.rsm c.jsonl").expect(0);
    // Of an age, the tool's documents go in the order in which they came.
    let before = folder.read("a.rsm");
    let dry = "evict a.rsm --keep-newest 7 --dry-run --format tsv";
    let ran = folder.run(dry).expect(0);
    assert!(ran.stdout.starts_with("10\t3\t7\t0\t"), "{}", ran.stdout);
    ran.says(&["nothing was removed"]);
    assert_eq!(folder.read("a.rsm"), before);
    let slices = "evict a.rsm --keep-newest 7 --slice 2 --format jsonl";
    let ran = folder.run(slices).expect(0);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&json["evicted"], &json["left"]), (&3.into(), &7.into()));
    assert_eq!(json["slices"], 2);
    folder.run("get a.rsm 2").expect(1);
    folder.run("get a.rsm 3").expect(0);
    let nothing = "evict a.rsm --older-than 0 --header --format tsv";
    let ran = folder.run(nothing).expect(0);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(
        lines[0],
        "examined\tevicted\tleft\tslices\tlongest_slice_ms"
    );
    assert!(lines[1].starts_with("7\t0\t7\t0\t"), "{}", lines[1]);
    folder.run("evict a.rsm --older-than 1").expect(2).says(&[
        "all stamps are 0",
        "would remove all 7",
        "--force",
    ]);
    folder.run("evict a.rsm --older-than 1 --force").expect(0);
    assert_eq!(folder.count("a.rsm"), 0);
    folder.run("check a.rsm").expect(0);
}

#[test]
fn stats_print_the_figures_of_a_store() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.run("build a.rsm c.jsonl").expect(0);
    let tsv = folder.run("stats a.rsm").expect(0).stdout;
    for part in [
        "store\t\tdocuments\t7\n",
        "store\t\tnext_id\t7\n",
        "table\tdocuments\trows\t7\n",
        "lane\tkey\tpostings\t7\n",
    ] {
        assert!(tsv.contains(part), "{part}: {tsv}");
    }
    let json = folder.run("stats a.rsm --format jsonl").expect(0).stdout;
    assert_eq!(json.lines().count(), tsv.lines().count());
    for line in json.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(
            line["section"].is_string() && line["measure"].is_string(),
            "{line}"
        );
        assert_eq!(line["measure"] == "sample_key", line["value"].is_string());
    }
    let table = folder.run("stats a.rsm --format table").expect(0).stdout;
    assert!(
        table.contains("in the store now") && table.contains("Largest buckets"),
        "{table}"
    );
}

#[test]
fn check_passes_a_sound_store() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.run("build a.rsm c.jsonl").expect(0);
    let ran = folder.run("check a.rsm").expect(0);
    assert_eq!(ran.stdout, "");
    ran.says(&["a.rsm is sound", "checked 7 documents"]);
    let ran = folder.run("stats a.rsm --format json");
    ran.expect(0)
        .says(&["7 documents, ", ", threshold 0.8, healthy"]);
    let table = folder.run("check a.rsm --format table");
    assert_eq!(table.expect(0).stdout, "");
    let made = folder.run("create b.rsm").expect(0);
    assert_eq!(made.stderr.lines().count(), 2, "{}", made.stderr);
}

#[test]
fn compact_prints_both_sizes_and_keeps_everything() {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..300));
    folder.run("build a.rsm c.jsonl").expect(0);
    let keys: Vec<String> = (0..250).map(|key| key.to_string()).collect();
    let mut remove = vec!["remove", "a.rsm"];
    remove.extend(keys.iter().map(String::as_str));
    folder.run(&remove).expect(0);
    let ran = folder.run("compact a.rsm").expect(0);
    let sizes: Vec<u64> = ran
        .stdout
        .trim_end()
        .split('\t')
        .map(|n| n.parse().unwrap())
        .collect();
    assert!(sizes[1] < sizes[0], "{sizes:?}");
    assert_eq!(folder.count("a.rsm"), 50);
    folder.run("get a.rsm 299").expect(0);
    folder.run("check a.rsm").expect(0);
}

/// The engine doubles a file to have room, and fills it from both ends. Verbs that change a store leave none of that.
#[cfg(unix)]
#[test]
fn shrinking_changes_leave_no_sparse_file() {
    use std::os::unix::fs::MetadataExt;

    let folder = Folder::new();
    let line = |number| {
        let words: Vec<String> = (0..40).map(|word| format!("{number}w{word}")).collect();
        let text = words.join(" ");
        serde_json::json!({"id": format!("k{number}"), "text": text, "payload": "x".repeat(900)})
    };
    let lines: Vec<String> = (0..3_000).map(|number| line(number).to_string()).collect();
    folder.write("c.jsonl", lines.join("\n"));
    folder.run("build a.rsm c.jsonl").expect(0);
    folder.run("export a.rsm -o a.stream").expect(0);
    let removed: Vec<String> = (0..1_500).map(|number| format!("k{number}")).collect();
    let mut remove = vec!["remove", "a.rsm"];
    remove.extend(removed.iter().map(String::as_str));
    for change in [
        remove,
        vec!["import", "a.rsm", "a.stream", "--keys", "replace"],
        vec!["evict", "a.rsm", "--keep-newest", "1400"],
        vec!["touch", "a.rsm", "k2999"],
    ] {
        folder.run(&change).expect(0);
        let file = std::fs::metadata(folder.path("a.rsm")).unwrap();
        let (length, written) = (file.len(), file.blocks() * 512);
        assert!(
            length < written + (2 << 20),
            "{}: {length}, {written}",
            change[0]
        );
    }
}

#[test]
fn remove_by_prefix_requires_force_for_nearly_all() {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..20));
    folder.run("build a.rsm c.jsonl").expect(0);
    let dry = folder.run("remove a.rsm --prefix 1 --dry-run");
    dry.expect(0).says(&["11 documents would be removed"]);
    assert_eq!(folder.count("a.rsm"), 20);
    folder
        .run("remove a.rsm --prefix 1")
        .expect(0)
        .says(&["removed 11"]);
    assert_eq!(folder.count("a.rsm"), 9);
    folder.run("remove a.rsm --prefix 1").expect(1);
    for wrong in [
        &["--prefix", ""][..],
        &["--prefix", "2", "3"],
        &["--prefix", "\\#2", "--escaped"],
        &["2", "--force"],
        &[],
    ] {
        folder
            .run(&[&["remove", "a.rsm"], wrong].concat())
            .expect(2);
    }
    folder.run("remove a.rsm 0 3 4 5 6 7 8 9").expect(0);
    folder
        .run("remove a.rsm --prefix 2")
        .expect(2)
        .says(&["1 of 1 documents", "--force"]);
    folder.run("remove a.rsm --prefix 2 --force").expect(0);
    assert_eq!(folder.count("a.rsm"), 0);
}

#[test]
fn create_like_copies_the_schema() {
    let folder = Folder::new();
    folder.run("create a.rsm --chars 9 --simhash 64").expect(0);
    folder.run("create b.rsm --like a.rsm --chars 9").expect(0);
    let schema = |store| {
        let stats = folder
            .run(&format!("stats {store} --format json"))
            .expect(0)
            .stdout;
        let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
        stats["schema"].clone()
    };
    assert_eq!(schema("a.rsm"), schema("b.rsm"));
    for wrong in ["--words 3", "--distance 2"] {
        folder
            .run(&format!("create c.rsm --like a.rsm {wrong}"))
            .expect(2);
    }
    folder.run("create c.rsm --like missing").expect(4);
    assert_eq!(folder.names(), ["a.rsm", "b.rsm"]);
}

#[test]
fn payloads_in_utf8_are_printed_as_text() {
    let folder = Folder::new();
    let document = serde_json::json!({"id": "k", "text": text(1), "payload": "a title"});
    folder.write("c.jsonl", document.to_string() + "\n");
    folder.run("build a.rsm c.jsonl").expect(0);
    let get = folder.run("get a.rsm k").expect(0).stdout;
    assert!(get.ends_with("\t61207469746c65\ta title\n"), "{get}");
    let found = folder
        .run(&["query", "a.rsm", &text(1), "--payloads"])
        .expect(0);
    assert_eq!(found.stdout, "k\t1.000000\t61207469746c65\ta title\n");
    let plain = folder.run(&["query", "a.rsm", &text(1)]).expect(0);
    assert_eq!(plain.stdout, "k\t1.000000\n");
}

#[test]
fn options_of_corpora_are_refused_where_a_store_is_read() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.write("config.toml", "[pairs]\ntext-field = 'body'\n");
    folder.run(&["build", "a.rsm", "c.jsonl"]).expect(0);
    for arguments in [
        &["pairs", "a.rsm", "--text-field", "body"][..],
        &["clusters", "a.rsm", "--id", "line"],
        &["query", "a.rsm", "some words", "--skip-bad"],
        &["explain", "c.jsonl", "c.jsonl", "--hidden"],
        &["create", "b.rsm", "--table", "t"],
        &["tune", "--separator", ";"],
    ] {
        folder.run(arguments).expect(2).says(&["for a corpus"]);
    }
    // A default is for every run.
    folder
        .run(&["pairs", "a.rsm", "--config", "config.toml"])
        .expect(0);
    folder
        .run(&["query", "a.rsm", "--corpus", "c.jsonl", "--skip-bad"])
        .expect(0);
    let ran = folder
        .run(&["pairs", "c.jsonl", "--include", "*.md"])
        .expect(0);
    let reported = "--include is for folders, and none is given";
    assert!(ran.stderr.contains(reported), "{}", ran.stderr);
}

#[test]
fn check_describes_problems_in_words() {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..400));
    folder.run(&["build", "a.rsm", "c.jsonl"]).expect(0);
    let mut damaged = folder.read("a.rsm");
    for position in (damaged.len() / 16..damaged.len() - 1_000).step_by(4096) {
        damaged[position + 1_000] ^= 0xff;
    }
    folder.write("bad.rsm", damaged);
    let found = folder.run(&["check", "bad.rsm", "--header"]).expect(1);
    let lines = found.lines();
    assert_eq!(lines[0], "problem\tplace\tdetail");
    assert!(lines.len() > 1);
    for line in &lines[1..] {
        let first = line.split('\t').next().unwrap();
        assert!(first.contains(' '), "{line}");
    }
    let json = folder
        .run(&["check", "bad.rsm", "--format", "jsonl"])
        .expect(1);
    for line in json.lines() {
        let fields: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(fields["invariant"].is_u64(), "{line}");
    }
}
