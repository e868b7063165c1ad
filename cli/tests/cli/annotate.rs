//! dedup --annotate: every document as it came, with what became of it.

use crate::support::{Folder, edited, gunzip, gzip, line, mixed, text};

/// The values that a line of JSON was given, from its last field of the input on.
fn added(line: &str) -> &str {
    let start = line.find(",\"dedup_kept\"").unwrap();
    &line[start..]
}

#[test]
fn annotate_appends_columns_and_keeps_the_rest() {
    let folder = Folder::new();
    folder.write("a.jsonl.gz", gzip(mixed().as_bytes()));
    let rows = [
        ("x", text(1)),
        ("y,\"z\"", text(9)),
        ("z\ty", text(9)),
        ("w", edited(2, 1)),
    ];
    let quoted = |id: &str| format!("\"{}\"", id.replace('"', "\"\""));
    let rows = rows.map(|(id, text)| format!("{},{text}\r\n", quoted(id)));
    folder.write("b.csv", "id,text\r\n".to_owned() + &rows.concat());
    let arguments = "dedup a.jsonl.gz b.csv --annotate out/";
    let ran = folder.run(arguments).expect(0);
    ran.says(&["read 11, kept 5, dropped 6", "dropped as equal 3"]);
    assert_eq!(
        folder.names(),
        ["a.jsonl.gz", "b.csv", "out/a.jsonl.gz", "out/b.csv"]
    );

    let annotated = gunzip(&folder.read("out/a.jsonl.gz"));
    for (found, before) in annotated.lines().zip(mixed().lines()) {
        let open = before.strip_suffix('}').unwrap();
        assert_eq!(found.strip_suffix(added(found)), Some(open));
    }
    let second = ",\"dedup_kept\":false,\"dedup_cluster\":\"1\",\"dedup_size\":4,\"dedup_rank\":2,\
                  \"dedup_survivor\":\"a\",\"dedup_similarity\":1.0,\"dedup_similarity_is\":\"equal\"}";
    assert_eq!(added(annotated.lines().nth(1).unwrap()), second);

    let annotated = folder.read_text("out/b.csv");
    let header = "id,text,dedup_kept,dedup_cluster,dedup_size,dedup_rank,dedup_survivor,\
                  dedup_similarity,dedup_similarity_is\r\n";
    let found: Vec<_> = annotated.split_inclusive('\n').collect();
    assert_eq!(found[0], header);
    let ends = [
        ",false,1,4,4,a,1.0,equal\r\n",
        ",true,9,2,1,,,\r\n",
        ",false,9,2,2,\"y,\"\"z\"\"\",1.0,equal\r\n",
    ];
    for ((found, before), end) in found[1..].iter().zip(&rows).zip(ends) {
        let expected = before.strip_suffix("\r\n").unwrap().to_owned() + end;
        assert_eq!(*found, expected);
    }
    let last = rows[3].strip_suffix("\r\n").unwrap().to_owned() + ",false,3,3,3,b,1.0,equal\r\n";
    assert_ne!(
        found[4], last,
        "b-near has this text, and was dropped itself"
    );
    assert!(found[4].contains(",false,3,3,3,b,0.9") && found[4].ends_with(",exact\r\n"));
}

#[test]
fn annotate_reports_survivors_of_a_store_and_emptied_texts() {
    let folder = Folder::new();
    folder.write("seen.jsonl", line("x", &text(8)) + &line("seen", &text(1)));
    folder.run("build seen.rsm seen.jsonl").expect(0);
    let corpus = mixed() + "no JSON\n" + &line("gone", &text(4));
    folder.write("c.jsonl", corpus);
    let arguments = "dedup c.jsonl --annotate - --annotate-prefix near --against seen.rsm --level paragraph,document --skip-bad";
    let ran = folder.run(arguments).expect(0);
    let ran = ran.says(&["emptied 2"]);
    let lines = ran.lines();
    // The bad one is not there.
    assert_eq!(lines.len(), 8);
    let rows: Vec<serde_json::Value> = lines
        .iter()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let texts: Vec<_> = mixed().lines().map(str::to_owned).collect();
    assert!(
        lines[1].starts_with(texts[1].strip_suffix('}').unwrap()),
        "the text is whole"
    );
    let of = |row: usize| {
        let names = [
            "kept",
            "cluster",
            "size",
            "rank",
            "survivor",
            "similarity_is",
        ];
        let values = names.map(|name| rows[row][format!("near_{name}")].to_string());
        values.join(" ")
    };
    assert_eq!(of(0), "false \"store:1\" 3 2 \"seen\" \"estimate\"");
    assert_eq!(of(1), "false null null null null null");
    assert_eq!(of(2), "true \"3\" 2 1 null null");
    assert_eq!(of(3), "false \"store:1\" 3 3 \"seen\" \"estimate\"");
    assert_eq!(of(4), "true \"5\" 1 1 null null");
    assert_eq!(of(5), "false \"3\" 2 2 \"b\" \"exact\"");
    assert_eq!(of(7), "false null null null null null");
}

#[test]
fn annotate_refuses_existing_column_names_before_reading() {
    let folder = Folder::new();
    let taken = "{\"text\": \"a b c d e\", \"dedup_size\": null}\n";
    folder.write("a.jsonl", taken.to_owned() + "no JSON");
    folder.write("b.csv", "text,dedup_kept\na,b");
    for (name, field) in [("a.jsonl", "dedup_size"), ("b.csv", "dedup_kept")] {
        let ran = folder
            .run(&format!("dedup {name} --annotate out/"))
            .expect(3);
        ran.says(&[
            name,
            &format!("field or column {field:?} already"),
            "--annotate-prefix",
        ]);
    }
    // Further lines are looked at as they are written.
    folder.write("c.jsonl", line("x", &text(1)) + taken);
    let ran = folder.run("dedup c.jsonl --annotate out.jsonl").expect(3);
    ran.says(&["c.jsonl:2", "\"dedup_size\" already"]);
    let named = "dedup c.jsonl --annotate - --annotate-prefix x";
    assert!(
        folder
            .run(named)
            .expect(0)
            .stdout
            .contains("\"dedup_size\": null,\"x_kept\":true")
    );

    folder.write("texts/a.txt", "a text");
    let ran = folder.run("dedup texts --annotate out/").expect(3);
    ran.says(&["a.txt: a text"]);
    let same = "dedup c.jsonl -o x.jsonl --annotate x.jsonl";
    folder
        .run(same)
        .expect(2)
        .says(&["the annotated documents"]);
    let level = "dedup c.jsonl --annotate x.jsonl --level line";
    folder
        .run(level)
        .expect(2)
        .says(&["--annotate is for near-duplicate documents"]);
    assert_eq!(
        folder.names(),
        ["a.jsonl", "b.csv", "c.jsonl", "texts/a.txt"]
    );
}
