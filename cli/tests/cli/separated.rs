//! CSV and TSV: rows are the documents that lines of JSON are, and stay as they stand.

use crate::support::{Folder, edited, gunzip, gzip, line, mixed, text};

/// A value in quotes.
fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('"', "\"\""))
}

#[test]
fn csv_dedup_keeps_rows_byte_for_byte() {
    let folder = Folder::new();
    let lines = |number: u64| text(number).replacen(' ', "\r\n", 2);
    let header = "note,id,\"text\"\r\n";
    let rows = [
        format!("\"a, \"\"b\"\"\",one,{}\r\n", text(1)),
        format!(",two,{}\n", quoted(&lines(2))),
        format!("again,three,{}\n", edited(1, 1)),
        format!("  x ,\"four\",{}", quoted(&lines(3))),
    ];
    let [one, two, three, four] = &rows;
    let table = format!("\u{feff}{header}{one}\n{two}\r\n{three}{four}");
    folder.write("in.csv", &table);
    let ran = folder
        .run("dedup in.csv -o out.csv --dropped dropped.csv")
        .expect(0);
    let reported = "resemblance: 1 file as CSV (4 documents)\n";
    assert!(ran.stderr.contains(reported), "{}", ran.stderr);
    assert_eq!(
        folder.read_text("out.csv"),
        format!("\u{feff}{header}{one}{two}{four}")
    );
    assert_eq!(
        folder.read_text("dropped.csv"),
        format!("\u{feff}{header}{three}")
    );
    // The same compressed, from standard input, and in a folder; keys are ids, or say the line.
    folder.write("t.csv.gz", gzip(table.as_bytes()));
    folder.run("dedup t.csv.gz -o out/").expect(0);
    assert_eq!(
        gunzip(&folder.read("out/t.csv.gz")),
        folder.read_text("out.csv")
    );
    let piped = ["dedup", "-", "-o", "-", "--as", "csv"];
    let piped = folder.run_with_input(&piped, table.as_bytes()).expect(0);
    assert_eq!(piped.stdout, folder.read_text("out.csv"));
    let pairs = folder.run("pairs in.csv").expect(0);
    assert!(
        pairs.stdout.starts_with("one\tthree\t0.9"),
        "{}",
        pairs.stdout
    );
    let pairs = folder.run("pairs in.csv --id line").expect(0);
    assert!(pairs.stdout.starts_with("2\t8\t0.9"), "{}", pairs.stdout);
}

#[test]
fn csv_output_of_several_files_has_one_header() {
    let folder = Folder::new();
    let row = |id: &str, number| format!("{id}\t{}\n", text(number));
    folder.write("a.tsv", format!("id\ttext\n{}{}", row("1", 1), row("2", 2)));
    folder.write(
        "b.tsv",
        format!("\n\r\n\"id\"\ttext\n{}{}", row("3", 2), row("4", 4)),
    );
    folder.write("empty.tsv", "id\ttext\n");
    folder.write("other.tsv", "text\tid\n");
    folder.write("c.jsonl", mixed());
    let names = ["a.tsv", "b.tsv", "empty.tsv"];
    folder
        .run(&["dedup", names[0], names[1], names[2], "-o", "out.tsv"])
        .expect(0);
    let expected = format!("id\ttext\n{}{}{}", row("1", 1), row("2", 2), row("4", 4));
    assert_eq!(folder.read_text("out.tsv"), expected);
    folder.run("dedup empty.tsv -o nothing.tsv").expect(0);
    assert_eq!(folder.read_text("nothing.tsv"), "id\ttext\n");
    folder
        .run("dedup a.tsv other.tsv -o bad.tsv")
        .expect(2)
        .says(&["a.tsv and other.tsv have different columns", "-o FOLDER"]);
    folder
        .run("dedup a.tsv c.jsonl -o bad.tsv")
        .expect(2)
        .says(&["a.tsv and c.jsonl are TSV and JSON Lines"]);
    folder
        .run("dedup a.tsv -o bad.csv")
        .expect(2)
        .says(&["bad.csv has the name of CSV, but a.tsv is TSV"]);
    folder.run("dedup a.tsv c.jsonl other.tsv -o all").expect(2);
    folder
        .run("dedup a.tsv c.jsonl other.tsv -o all/")
        .expect(0);
    assert_eq!(folder.read_text("all/other.tsv"), "text\tid\n");
    assert_eq!(folder.read_text("all/a.tsv"), folder.read_text("a.tsv"));
}

#[test]
fn csv_faults_are_reported() {
    let folder = Folder::new();
    let cases: [(&str, &str, &[&str]); 7] = [
        ("", "an empty file, expected a header row", &["at t.csv"]),
        (
            "id,body\n1,a\n",
            "there is no column \"text\"",
            &["\"id\", \"body\": name one with --text-field"],
        ),
        (
            "id,text\n1,a\n2\n",
            "1 columns, expected 2 as in the first row",
            &["at t.csv:3"],
        ),
        (
            "id,text\n1,\"a\nb\"\n2,b,c\n",
            "3 columns, expected 2",
            &["at t.csv:4"],
        ),
        (
            "id,text\n1,\"a\" b\n",
            "text after the closing quote of column 2",
            &["at t.csv:2", "double a quote"],
        ),
        (
            "id,text\n1,a\n2,\"b\n3,c\n",
            "has a quote that is never closed",
            &["at t.csv:3"],
        ),
        (
            "id,text\n1,a\n",
            "there is no column \"key\"",
            &["name one with --id"],
        ),
    ];
    for (table, reason, others) in cases {
        folder.write("t.csv", table);
        let arguments = [
            "pairs",
            "t.csv",
            "--id",
            if reason.contains("key") { "key" } else { "id" },
        ];
        folder
            .run(&arguments)
            .expect(3)
            .says(&[&[reason], others].concat());
    }
    let good = format!("id,text\n1,{}\n2\n3,{}\n4,{}\n", text(1), text(1), text(2));
    folder.write("t.csv", good);
    let ran = folder.run("pairs t.csv --skip-bad").expect(0);
    assert_eq!(ran.stdout, "1\t3\t1.000000\n");
    folder
        .run("pairs t.csv --max-line 1K")
        .expect(3)
        .says(&["the row at t.csv:2 is longer than 1024 bytes"]);
    // A table under the name of lines is told.
    folder.write("t.jsonl", "id,text,more\n1,a,b\n");
    folder
        .run("pairs t.jsonl")
        .expect(3)
        .says(&["it looks like CSV, which --as csv"]);
}

#[test]
fn csv_columns_are_selected_by_field_options() {
    let folder = Folder::new();
    let rows = format!(
        "key,title,body,score,time,data\n007,t,{},1.5,2026-01-31T08:00:00Z,\n8,t,{},20,17,\"{{}}\"\n",
        text(1),
        text(1)
    );
    folder.write("t.csv", rows);
    let named = ["--id", "key", "--text-field", "title,body"];
    let dedup = [
        &["dedup", "t.csv", "-o", "out.csv", "--keep", "score:max"],
        &named[..],
    ]
    .concat();
    folder.run(&dedup).expect(0);
    assert!(folder.read_text("out.csv").ends_with(",20,17,\"{}\"\n"));
    let build = [
        "build",
        "a.rsm",
        "t.csv",
        "--stamp-field",
        "time",
        "--payload-field",
        "data",
    ];
    folder.run(&[&build, &named[..]].concat()).expect(0);
    for (key, stamp, payload) in [("007", 1_769_846_400, ""), ("8", 17, "7b7d")] {
        let got = folder
            .run(&format!("get a.rsm '{key}' --format jsonl"))
            .expect(0)
            .stdout;
        let got: serde_json::Value = serde_json::from_str(&got).unwrap();
        assert_eq!(got["stamp"], stamp, "{got}");
        assert_eq!(got["payload_hex"], payload, "{got}");
    }
    // Features in a column are JSON.
    folder.write(
        "f.csv",
        "id,features\n1,\"[\"\"a\"\",2,3]\"\n2,\"[\"\"a\"\",2,3]\"\n",
    );
    let pairs = folder.run("pairs f.csv --features").expect(0);
    assert_eq!(pairs.stdout, "1\t2\t1.000000\n");
}

#[test]
fn decontaminate_keeps_csv_tables() {
    let folder = Folder::new();
    folder.write("tests.jsonl", line("t", &text(2)));
    let rows = [1, 2, 3].map(|number| format!("{number},{}\n", text(number)));
    folder.write("train.csv", format!("id,text\n{}", rows.concat()));
    folder
        .run("decontaminate train.csv --against tests.jsonl -o clean.csv")
        .expect(0);
    assert_eq!(
        folder.read_text("clean.csv"),
        format!("id,text\n{}{}", rows[0], rows[2])
    );
}

#[test]
fn csv_without_a_header_stays_without() {
    let folder = Folder::new();
    let rows = format!("1;{}\n2;{}\n3;{}\n", text(1), text(1), text(2));
    folder.write("c.csv", &rows);
    let options = ["--separator", ";", "--columns", "id,text"];
    let run = |arguments: &[&str]| folder.run(&[arguments, &options].concat());
    run(&["dedup", "c.csv", "-o", "out.csv"]).expect(0);
    assert_eq!(
        folder.read_text("out.csv"),
        format!("1;{}\n3;{}\n", text(1), text(2))
    );
    run(&["dedup", "c.csv", "--annotate", "all.csv"]).expect(0);
    let annotated = folder.read_text("all.csv");
    assert!(
        annotated.starts_with(&format!("1;{};", text(1))),
        "{annotated}"
    );
    assert_eq!(annotated.lines().count(), 3);
    let ran = folder.run("pairs c.csv --separator ab").expect(2);
    assert!(ran.stderr.contains("one ASCII character"), "{}", ran.stderr);
}
