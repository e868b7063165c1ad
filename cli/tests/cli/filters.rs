//! Questions about some of the documents of a store.

use crate::support::{Folder, edited, text};

/// Equal texts, whose keys begin with a/ or b/ in turn, with their numbers as stamps.
fn copies(documents: u64) -> String {
    let lines = (0..documents).map(|number| {
        let id = format!("{}/{number}", if number % 2 == 0 { "a" } else { "b" });
        let line = serde_json::json!({"id": id, "text": text(1), "stamp": number, "payload": "p"});
        format!("{line}\n")
    });
    lines.collect()
}

#[test]
fn filters_choose_documents_in_every_question() {
    let folder = Folder::new();
    folder.write("c.jsonl", copies(40));
    folder.write("page.txt", edited(1, 1));
    folder
        .run("build s.rsm c.jsonl --minhash 128 --containment 5 --window 4")
        .expect(0);
    let run = |arguments: &str| folder.run(arguments).expect(0).stdout;
    let matches = |options: &str| {
        let found = run(&format!(
            "query s.rsm --file page.txt --stamps --payloads {options}"
        ));
        let fields = found
            .lines()
            .map(|line| line.split('\t').collect::<Vec<_>>());
        let fields = fields.map(|fields| format!("{} {} {}", fields[0], fields[2], fields[4]));
        fields.collect::<Vec<_>>().join(", ")
    };
    let three = "b/11 11 p, b/13 13 p, b/15 15 p";
    assert_eq!(matches("--prefix b/ --newer-than 10 --limit 3"), three);
    assert_eq!(matches("--prefix b/ --newer-than 10 --nearest 3"), three);
    assert_eq!(matches("--prefix b/ --newer-than 10 --budget 3"), three);
    assert_eq!(matches("--within 0.3 --newer-than 39"), "b/39 39 p");
    let other = run("query s.rsm --key b/3 --older-than 4 --prefix b/");
    assert_eq!(other.lines().count(), 1);
    folder.write("q.jsonl", copies(2));
    let many = run("query s.rsm --corpus q.jsonl --older-than 5 --format jsonl --stamps");
    assert_eq!(many.lines().count(), 10);
    assert!(
        many.lines().all(|line| line.contains("\"stamp\":")),
        "{many}"
    );

    assert_eq!(run("pairs s.rsm --older-than 5").lines().count(), 10);
    let members = run("clusters s.rsm --prefix b/ --newer-than 36");
    assert_eq!(members, "b/37\tb/37\nb/37\tb/39\n");
    let found = run("contain --in s.rsm --query q.jsonl --prefix a/ --older-than 3 --stamps");
    let stamps: Vec<&str> = found
        .lines()
        .filter_map(|line| line.split('\t').next_back())
        .collect();
    assert_eq!(stamps, ["0", "2", "0", "2"]);
    run("contain --in s.rsm --query q.jsonl --boilerplate 19 --prefix a/");
    folder
        .run("contain --in s.rsm --query q.jsonl --boilerplate 20 --prefix a/")
        .expect(1);
    let listed = run("list s.rsm --prefix b/ --newer-than 36 --limit 1 --format jsonl");
    assert_eq!(listed.lines().count(), 1);
    assert!(listed.contains("\"key\":\"b/37\""), "{listed}");
    assert_eq!(
        run("list s.rsm --escaped --prefix b\\x2F --older-than 4 -q --format jsonl")
            .lines()
            .count(),
        2
    );

    for option in ["--prefix a/", "--older-than 5", "--newer-than 1w"] {
        let name = option.split(' ').next().unwrap();
        for verb in ["pairs", "clusters"] {
            let refused = folder.run(&format!("{verb} c.jsonl {option}")).expect(2);
            refused.says(&[name, "documents of a store, and c.jsonl is a corpus"]);
        }
    }
    let none = folder
        .run("query s.rsm --file page.txt --newer-than 99")
        .expect(1);
    none.says(&["no match"]);
}
