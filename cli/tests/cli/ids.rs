//! Where the keys of documents come from.

use crate::support::{Folder, line, text};

fn c4(numbers: std::ops::Range<u64>) -> String {
    let line = |number| serde_json::json!({"url": "u", "text": text(number)}).to_string() + "\n";
    numbers.map(line).collect()
}

/// The keys of a new store of this corpus.
fn keys(folder: &Folder, arguments: &[&str]) -> Vec<String> {
    let _ = std::fs::remove_file(folder.path("k.rsm"));
    folder
        .run(&[&["build", "k.rsm"], arguments].concat())
        .expect(0);
    let mut keys = Vec::new();
    for id in 0.. {
        let ran = folder.run(&[
            "get",
            "k.rsm",
            "-e",
            &format!("\\#{id}"),
            "-q",
            "--format",
            "jsonl",
        ]);
        if ran.code == Some(1) {
            return keys;
        }
        let record: serde_json::Value = serde_json::from_str(&ran.expect(0).stdout).unwrap();
        keys.push(record["key"].as_str().unwrap().to_owned());
    }
    keys
}

#[test]
fn every_verb_accepts_documents_without_ids() {
    let folder = Folder::new();
    folder.write("c4/a.json", c4(0..3));
    folder.write("c4/b.json", c4(1..3));
    assert_eq!(
        keys(&folder, &["c4"]),
        [
            "c4/a.json:1",
            "c4/a.json:2",
            "c4/a.json:3",
            "c4/b.json:1",
            "c4/b.json:2"
        ]
    );
    let pairs = folder.run("pairs c4 --no-header").expect(0);
    assert_eq!(
        pairs.stdout,
        "c4/a.json:2\tc4/b.json:1\t1.000000\nc4/a.json:3\tc4/b.json:2\t1.000000\n"
    );
    let reported = "documents without the field \"id\": 5; their keys are path:line\n";
    assert!(pairs.stderr.contains(reported), "{}", pairs.stderr);
    folder.run("clusters c4").expect(0);
    folder.run("create s.rsm").expect(0);
    folder.run("add s.rsm c4/a.json").expect(0);
    folder
        .run("add s.rsm c4/b.json --if-new")
        .expect(0)
        .says(&["added 0, dropped 2"]);
    folder.run("query s.rsm --corpus c4").expect(0);
    folder.run("eval c4").expect(0);
    folder.run("dedup c4 -o out --report r.tsv").expect(0);
    assert!(
        folder
            .report("r.tsv")
            .contains("c4/b.json:1\tc4/a.json:2\t")
    );
}

#[test]
fn colliding_ids_get_the_path_of_the_later_file() {
    let folder = Folder::new();
    folder.write("a.jsonl", line("1", &text(1)) + &line("2", &text(2)));
    folder.write("b.jsonl", line("2", &text(3)) + &line("3", &text(4)));
    let arguments = ["a.jsonl", "b.jsonl"];
    assert_eq!(keys(&folder, &arguments), ["1", "2", "b.jsonl:2", "3"]);
    let reported = "ids that an earlier file also has: 1; their keys are path:id";
    let ran = folder.run("pairs a.jsonl b.jsonl").expect(1);
    assert!(ran.stderr.contains(reported), "{}", ran.stderr);
    // Where an addition goes on, the keys are the same.
    folder.run("create s.rsm").expect(0);
    folder.run("add s.rsm a.jsonl").expect(0);
    folder
        .run("add s.rsm a.jsonl b.jsonl --skip 2")
        .expect(0)
        .says(&["added 2"]);
    folder.run("get s.rsm b.jsonl:2").expect(0);
    folder.write("x/s.json", c4(0..1));
    folder.write("y/s.json", c4(1..2));
    assert_eq!(keys(&folder, &["x", "y"]), ["x/s.json:1", "y/s.json:1"]);
    folder.write("x/t.txt", text(5));
    folder.write("y/t.txt", text(6));
    let texts = ["x", "y", "--include", "*.txt"];
    assert_eq!(keys(&folder, &texts), ["x/t.txt", "y/t.txt"]);
    // Within one file an id that comes twice is a mistake, and --skip-bad not the only way out.
    folder.write("twice.jsonl", line("1", &text(1)) + &line("1", &text(2)));
    folder.run("build t.rsm twice.jsonl").expect(3).says(&[
        "key \"1\" occurs twice\n  at twice.jsonl:2\n",
        "--id path gives",
    ]);
    assert_eq!(
        keys(&folder, &["twice.jsonl", "--id", "path"]),
        ["twice.jsonl:1", "twice.jsonl:2"]
    );
}

#[test]
fn generated_keys_belong_to_one_document() {
    let folder = Folder::new();
    folder.write("d1/p.jsonl", c4(0..1));
    folder.write("d2/p.jsonl", c4(1..2));
    folder.run("create s.rsm").expect(0);
    for path in ["d1/p.jsonl", "d2/p.jsonl"] {
        folder
            .run(&format!("add s.rsm {path} --if-new"))
            .expect(0)
            .says(&["added 1"]);
        folder
            .run(&format!("add s.rsm {path} --if-new"))
            .expect(0)
            .says(&["added 0"]);
    }
    assert_eq!(folder.count("s.rsm"), 2);
    // The same key for another document is no document that was there before.
    folder.write("d1/p.jsonl", c4(2..3));
    for options in ["--if-new", "--upsert", "--if-new --verify estimate"] {
        folder
            .run(&format!("add s.rsm d1/p.jsonl {options}"))
            .expect(3)
            .says(&[
                "key \"d1/p.jsonl:1\" is generated from the path of the file and the line",
                "--id FIELD",
                "at d1/p.jsonl:1",
            ]);
    }
    folder.write("t.txt", text(7));
    folder.run("add s.rsm t.txt --as files").expect(0);
    folder.write("t.txt", text(8));
    folder
        .run("add s.rsm t.txt --as files --if-new")
        .expect(3)
        .says(&[
            "key \"t.txt\" is generated from the path of the file,",
            "--upsert replaces",
        ]);
    folder.run("add s.rsm t.txt --as files --upsert").expect(0);
    assert_eq!(folder.count("s.rsm"), 3);
}

#[test]
fn id_option_selects_the_key() {
    let folder = Folder::new();
    let document = serde_json::json!({
        "id": "top", "meta": {"id": 7.50, "text": text(2)}, "line": "l", "text": text(1)
    });
    folder.write("c.jsonl", format!("\n{document}\n"));
    let key = |arguments: &[&str]| keys(&folder, &[&["c.jsonl"], arguments].concat()).concat();
    assert_eq!(key(&[]), "top");
    assert_eq!(key(&["--id", "meta.id"]), "7.5");
    assert_eq!(key(&["--id", "line"]), "2");
    assert_eq!(key(&["--id", "path"]), "c.jsonl:2");
    assert_eq!(key(&["--id-field", "line"]), "l");
    assert_eq!(key(&["--text-field", "meta.text"]), "top");
    folder.run("pairs c.jsonl --id url").expect(3).says(&[
        "field \"url\" is missing",
        "its fields are",
        "--id",
    ]);
    folder
        .run("pairs c.jsonl --id text")
        .expect(2)
        .says(&["must be different fields"]);
    // On standard input there is no path.
    let ran = folder.run_with_input("build i.rsm -", c4(0..1).as_bytes());
    ran.expect(0);
    folder.run("get i.rsm -- -:1").expect(0);
}

#[test]
fn text_field_joins_several_fields() {
    let folder = Folder::new();
    let parts = text(1);
    let (title, body) = parts.split_at(400);
    let lines = [
        serde_json::json!({"id": 1, "title": title.trim(), "body": body}),
        serde_json::json!({"id": 2, "title": text(1)}),
        serde_json::json!({"id": 3, "body": text(2), "title": null}),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    folder.write("c.jsonl", &lines);
    let arguments = "pairs c.jsonl --text-field title,body --no-header";
    let ran = folder.run(arguments).expect(0);
    assert!(ran.stdout.starts_with("1\t2\t"), "{}", ran.stdout);
    folder.write("c.jsonl", lines + "{\"id\": 4}\n");
    folder
        .run(arguments)
        .expect(3)
        .says(&["field \"title\" is missing\n  at c.jsonl:4"]);
}
