//! SQLite databases: the same documents as lines of JSON, whatever stands in their rows; files that are locked, damaged
//! or written to meanwhile; and tables of verdicts.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use resemblance_corpus::{
    AddedColumn, ColumnValues, Corpus, CorpusError, CorpusRecords, CorpusSettings, VerdictTable,
};
use rusqlite::types::Value;
use rusqlite::{Connection, params};
use serde_json::json;

use crate::support::{Folder, distinct, edited, line, mixed, text};

fn open(folder: &Folder, name: &str) -> Connection {
    Connection::open(folder.path(name)).unwrap()
}

/// A database with the documents of some lines in the table `articles`, with rowids 10, 20, and so on.
fn write_database(folder: &Folder, name: &str, lines: &str) -> Connection {
    let database = open(folder, name);
    database
        .execute_batch("CREATE TABLE articles (id TEXT, text TEXT, score REAL, seen TEXT)")
        .unwrap();
    insert(&database, lines);
    database
}

/// Adds the documents of some lines behind those that are there.
fn insert(database: &Connection, lines: &str) {
    let sql = "INSERT INTO articles (rowid, id, text, score, seen) \
         VALUES ((SELECT coalesce(max(rowid), 0) + 10 FROM articles), ?1, ?2, ?3, ?4)";
    let mut insert = database.prepare(sql).unwrap();
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let (id, text) = (line["id"].as_str(), line["text"].as_str());
        let score = text.map_or(0.0, |text| text.len() as f64);
        insert
            .execute(params![id, text, score, "2026-01-31T08:00:00Z"])
            .unwrap();
    }
}

/// All rows of a query, their values joined by `|`.
fn rows(database: &Connection, sql: &str) -> Vec<String> {
    let mut statement = database.prepare(sql).unwrap();
    let width = statement.column_count();
    let row = |row: &rusqlite::Row<'_>| {
        let value = |index| {
            Ok(match row.get::<_, Value>(index)? {
                Value::Null => "-".to_owned(),
                Value::Integer(number) => number.to_string(),
                Value::Real(number) => format!("{number:.2}"),
                Value::Text(text) => text,
                Value::Blob(bytes) => format!("{bytes:?}"),
            })
        };
        let values: rusqlite::Result<Vec<String>> = (0..width).map(value).collect();
        Ok(values?.join("|"))
    };
    let rows = statement.query_map([], row).unwrap();
    rows.map(Result::unwrap).collect()
}

fn names_of_tables(database: &Connection) -> Vec<String> {
    rows(
        database,
        "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name",
    )
}

fn lines(name: &str, folder: &Folder) -> Vec<serde_json::Value> {
    let text = folder.read_text(name);
    let line = |line| serde_json::from_str(line).unwrap();
    text.lines().map(line).collect()
}

#[test]
fn sqlite_verdicts_equal_those_of_json_lines() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    write_database(&folder, "c.db", &mixed());
    folder.write("tests.jsonl", line("t", &text(2)));
    let verdicts = ["c.jsonl", "c.db"].map(|form| {
        let report = |arguments: &[&str]| {
            let outputs = ["-o", "out.jsonl", "--report", "report.tsv", "--force"];
            folder.run(&[arguments, &outputs].concat()).expect(0);
            let kept = lines("out.jsonl", &folder);
            let kept = kept.iter().map(|line| line["id"].to_string());
            let kept: Vec<String> = kept.collect();
            folder.read_text("report.tsv") + &kept.join(" ")
        };
        folder.run(&format!("build a.rsm {form}")).expect(0);
        let stored = folder.run("list a.rsm --format tsv").expect(0);
        fs::remove_file(folder.path("a.rsm")).unwrap();
        folder.run("build b.rsm tests.jsonl").expect(0);
        let added = folder.run(&format!("add b.rsm {form} --if-new")).expect(0);
        let added = added.stderr.lines().last().unwrap().to_owned();
        let queried = folder
            .run(&format!("query b.rsm --corpus {form}"))
            .expect(0);
        fs::remove_file(folder.path("b.rsm")).unwrap();
        [
            folder.run(&["pairs", form]).expect(0).stdout,
            folder.run(&["clusters", form]).expect(0).stdout,
            folder
                .run(&format!("eval {form} --sample 10"))
                .expect(0)
                .stdout,
            report(&["dedup", form]),
            report(&["dedup", form, "--policy", "cluster", "--keep", "longest"]),
            report(&["decontaminate", form, "--against", "tests.jsonl"]),
            report(&["decontaminate", "tests.jsonl", "--against", form]),
            stored.stdout,
            added,
            queried.stdout,
        ]
    });
    let [of_lines, of_rows] = &verdicts;
    assert!(of_lines[0].lines().count() >= 3, "{}", of_lines[0]);
    assert_eq!(of_rows, of_lines);
}

#[test]
fn sqlite_rows_are_written_unchanged() {
    let folder = Folder::new();
    let database = open(&folder, "c.db");
    database
        .execute_batch("CREATE TABLE t (text, \"a \"\"b\"\"\" , n INTEGER, r REAL, bytes BLOB)")
        .unwrap();
    let values = [
        (text(1), Value::Null, i64::MIN, 0.1),
        (
            text(2),
            Value::Text("é\"\\\n\u{1}".into()),
            i64::MAX,
            -1e300,
        ),
        (text(3), Value::Integer(7), 0, f64::INFINITY),
        (text(4), Value::Blob(vec![0, 255]), -1, 2.0),
    ];
    for (text, odd, integer, real) in &values {
        let row = params![text, odd, integer, real, b"\x01\xfe"];
        database
            .execute("INSERT INTO t VALUES (?, ?, ?, ?, ?)", row)
            .unwrap();
    }
    folder
        .run("dedup c.db -o out.jsonl")
        .expect(0)
        .says(&["read 4, kept 4"]);
    let expected = values.map(|(text, odd, integer, real)| {
        let odd = match odd {
            Value::Null => json!(null),
            Value::Text(text) => json!(text),
            Value::Integer(number) => json!(number),
            _ => json!("00ff"),
        };
        // JSON has no infinite number.
        let real = real.is_finite().then_some(real);
        json!({"text": text, "a \"b\"": odd, "n": integer, "r": real, "bytes": "01fe"})
    });
    assert_eq!(lines("out.jsonl", &folder), expected);
    assert!(
        folder.read_text("out.jsonl").starts_with("{\"text\":"),
        "columns stay in their order"
    );
    // A folder gets a file that is named for what is in it, and an annotation more fields.
    folder
        .run("dedup c.db -o out/ --annotate all.jsonl")
        .expect(0);
    assert_eq!(folder.read("out/c.db.jsonl"), folder.read("out.jsonl"));
    assert_eq!(lines("all.jsonl", &folder)[1]["dedup_kept"], true);
    database
        .execute_batch("ALTER TABLE t ADD COLUMN dedup_kept")
        .unwrap();
    folder
        .run("dedup c.db --annotate more.jsonl")
        .expect(3)
        .says(&["\"dedup_kept\" already"]);
    folder
        .run("dedup c.db -o out.db")
        .expect(2)
        .says(&["out.db has the name of SQLite", "written as JSON Lines"]);
}

#[test]
fn sqlite_nulls_and_blobs_are_read_as_documents() {
    let folder = Folder::new();
    let database = open(&folder, "c.db");
    database
        .execute_batch("CREATE TABLE t (id, body); CREATE TABLE n (text TEXT)")
        .unwrap();
    let body = |number| Value::Blob(text(number).into_bytes());
    for (id, body) in [
        (Value::Integer(-7), body(1)),
        (Value::Real(1.5), Value::Text(text(2))),
        (Value::Text("é".into()), Value::Text(text(3))),
        (Value::Blob(b"b".to_vec()), Value::Text(text(4))),
        (Value::Null, Value::Text(text(5))),
        (Value::Integer(8), Value::Null),
        (Value::Integer(9), Value::Blob(vec![b'a', 0xff])),
        (Value::Integer(10), Value::Integer(3)),
        (Value::Integer(11), Value::Text(text(6))),
    ] {
        database
            .execute("INSERT INTO t VALUES (?, ?)", params![id, body])
            .unwrap();
    }
    let stored = |arguments: &[&str], code: i32, said: &[&str]| {
        let build = ["build", "a.rsm", "c.db"];
        folder
            .run(&[&build, arguments].concat())
            .expect(code)
            .says(said);
        if code > 0 {
            return Vec::new();
        }
        let listed = folder.run("list a.rsm --format jsonl").expect(0);
        fs::remove_file(folder.path("a.rsm")).unwrap();
        let key =
            |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["key"].clone();
        let mut keys: Vec<String> = listed.stdout.lines().map(|l| key(l).to_string()).collect();
        keys.sort();
        keys
    };
    let of_t = ["--table", "t", "--text-field", "body"];
    stored(&of_t, 3, &["c.db:6", "\"body\" is missing"]);
    let skipping = [&of_t[..], &["--skip-bad"]].concat();
    let expected = [
        "\"-7\"",
        "\"1.5\"",
        "\"11\"",
        "\"b\"",
        "\"c.db:5\"",
        "\"é\"",
    ];
    assert_eq!(stored(&skipping, 0, &["skipped 3"]), expected);
    // Those that are skipped are named by their rowids.
    let said = folder.run(&[&["build", "b.rsm", "c.db", "-v"], &skipping[..]].concat());
    for part in ["c.db:7", "invalid UTF-8 at byte 2", "c.db:8", "is a number"] {
        assert!(said.stderr.contains(part), "{part}: {}", said.stderr);
    }
    // Without a key the rowid stands for it, whatever it is.
    for (rowid, number) in [(-3, 1), (0, 2), (7, 3), (i64::MAX, 4)] {
        let row = params![rowid, text(number)];
        database
            .execute("INSERT INTO n (rowid, text) VALUES (?, ?)", row)
            .unwrap();
    }
    let max = format!("\"{}\"", i64::MAX);
    let keys = stored(&["--table", "n", "--id", "line"], 0, &["added 4"]);
    assert_eq!(keys, ["\"-3\"", "\"0\"", "\"7\"", &max]);
    let keys = stored(&["--table", "n"], 0, &["added 4"]);
    assert_eq!(keys[0], "\"c.db:-3\"");
    stored(
        &["--table", "n", "--id", "key"],
        3,
        &["there is no column \"key\"", "its columns are \"text\""],
    );
}

#[test]
fn any_table_or_view_is_read() {
    let folder = Folder::new();
    let database = write_database(&folder, "c.db", &mixed());
    let expected = folder.run("pairs c.db").expect(0).stdout;
    database
        .execute_batch(
            "CREATE TABLE \"odd \"\"name\"\" */ 'x'\" (rowid TEXT, oid TEXT, id TEXT, text TEXT);
             INSERT INTO \"odd \"\"name\"\" */ 'x'\" SELECT 'r', 'o', id, text FROM articles;
             CREATE TABLE w (place INTEGER, id TEXT, text TEXT, PRIMARY KEY (place)) WITHOUT ROWID;
             INSERT INTO w SELECT 1000 - rowid, id, text FROM articles;
             CREATE VIEW v AS SELECT id, upper(text) AS text, score FROM articles;
             CREATE INDEX by_text ON articles (text, id);
             CREATE VIRTUAL TABLE found USING fts5 (id, text);
             INSERT INTO found (rowid, id, text) SELECT rowid, id, text FROM articles;",
        )
        .unwrap();
    folder.run("pairs c.db").expect(3).says(&[
        "\"articles\"",
        "\"w\"",
        "\"v\"",
        "name one with --table",
    ]);
    folder
        .run("pairs c.db --table x")
        .expect(3)
        .says(&["there is no table \"x\""]);
    // What is no database has no tables.
    folder.write("tests.jsonl", line("t", &text(2)));
    let clean = "decontaminate c.db --table articles";
    folder
        .run(&format!("{clean} --against tests.jsonl -o clean.jsonl"))
        .expect(0)
        .says(&["read 7, kept 5, dropped 2"]);
    let is_unused = |inputs: &[&str], code| {
        let table: [&str; 2] = ["--table", "articles"];
        let ran = folder.run(&[&["pairs"], inputs, &table].concat());
        ran.expect(code)
            .stderr
            .contains("there is no SQLite database in tests.jsonl")
    };
    assert!(is_unused(&["tests.jsonl"], 1));
    assert!(!is_unused(&["tests.jsonl", "c.db"], 0));
    for table in ["articles", "ARTICLES", "odd \"name\" */ 'x'", "v", "found"] {
        let found = folder.run(&["pairs", "c.db", "--table", table]).expect(0);
        assert_eq!(found.stdout, expected, "{table}");
    }
    // In the order of the primary key, which is the other way round.
    folder.run("dedup c.db --table w -o w.jsonl").expect(0);
    let kept = lines("w.jsonl", &folder);
    let kept: Vec<_> = kept
        .iter()
        .map(|line| line["id"].as_str().unwrap())
        .collect();
    assert_eq!(kept, ["d", "b-near", "c", "a-near"]);
    // A view that asks for a function of its program is told as what it is.
    database
        .execute_batch("CREATE VIEW odd AS SELECT id, own(text) AS text FROM articles")
        .unwrap();
    folder
        .run("pairs c.db --table odd")
        .expect(3)
        .says(&["no such function: own"]);
}

#[test]
fn columns_are_named_by_the_options_for_fields() {
    let folder = Folder::new();
    let database = write_database(&folder, "c.db", &mixed());
    database
        .execute_batch(
            "UPDATE articles SET score = CASE id WHEN 'a-near' THEN 9 WHEN 'b-near' THEN NULL ELSE 1 END;
             ALTER TABLE articles ADD COLUMN title TEXT;
             UPDATE articles SET title = id || ' ' || id",
        )
        .unwrap();
    folder
        .run("dedup c.db -o out.jsonl --keep score:max")
        .expect(0)
        .says(&["kept 4"]);
    let kept = lines("out.jsonl", &folder);
    let kept: Vec<_> = kept
        .iter()
        .map(|line| line["id"].as_str().unwrap())
        .collect();
    assert_eq!(kept, ["b", "a-near", "c", "d"]);
    let options = "--stamp-field seen --payload-field title";
    let build = "build a.rsm c.db --text-field title,text --id id";
    folder.run(&format!("{build} {options}")).expect(0);
    let got = folder.run("get a.rsm c --format jsonl").expect(0).stdout;
    let got: serde_json::Value = serde_json::from_str(got.lines().next().unwrap()).unwrap();
    assert_eq!(got["stamp"], 1_769_846_400, "{got}");
    assert_eq!(got["payload_hex"], "632063", "{got}");
    folder
        .run("pairs c.db --max-line 100")
        .expect(3)
        .says(&["c.db:10", "the row is longer than 100 bytes"]);
}

#[test]
fn a_database_is_recognized_by_content_and_read_from_a_file() {
    let folder = Folder::new();
    write_database(&folder, "c.any", &mixed());
    let expected = folder.run("pairs c.any").expect(0);
    assert!(expected.stdout.contains("a-again"));
    fs::create_dir(folder.path("in")).unwrap();
    fs::copy(folder.path("c.any"), folder.path("in/c.any")).unwrap();
    assert_eq!(folder.run("pairs in").expect(0).stdout, expected.stdout);
    // A name is no address.
    if cfg!(unix) {
        let odd = "file:c.any?mode=memory";
        fs::copy(folder.path("c.any"), folder.path(odd)).unwrap();
        let found = folder.run(&["pairs", odd]).expect(0);
        assert_eq!(found.stdout, expected.stdout);
    }
    let wide = open(&folder, "wide.db");
    wide.execute_batch("PRAGMA encoding = 'UTF-16be'; CREATE TABLE t (id, text)")
        .unwrap();
    let plain = open(&folder, "c.any");
    for row in rows(&plain, "SELECT id || '#' || text FROM articles") {
        let (id, text) = row.split_once('#').unwrap();
        wide.execute("INSERT INTO t VALUES (?, ?)", params![id, text])
            .unwrap();
    }
    assert_eq!(
        folder.run("pairs wide.db").expect(0).stdout,
        expected.stdout
    );
    // A database and lines of JSON go into one file of lines.
    folder.write("more.jsonl", line("more", &text(8)));
    folder
        .run("dedup more.jsonl c.any -o both.jsonl")
        .expect(0)
        .says(&["read 8, kept 5"]);
    assert_eq!(
        lines("both.jsonl", &folder)[4]["score"],
        text(4).len() as f64
    );
    folder.run("pairs c.any --as parquet").expect(3);
    folder
        .run_with_input("pairs -", &folder.read("c.any"))
        .expect(3)
        .says(&["SQLite", "cannot be read from a pipe"]);
    folder.write("no.db", mixed());
    folder
        .run("pairs no.db")
        .expect(3)
        .says(&["no.db is damaged, truncated, or not SQLite"]);
    folder.write("empty.db", "");
    folder
        .run("pairs empty.db")
        .expect(3)
        .says(&["the database has no tables"]);
    folder
        .run("dedup c.any -o out.jsonl --job job")
        .expect(2)
        .says(&["--job", "SQLite"]);
    folder
        .run("dedup c.any -o out/ --level line")
        .expect(2)
        .says(&["--level"]);
}

#[test]
fn a_damaged_database_is_reported_as_such() {
    let folder = Folder::new();
    drop(write_database(&folder, "c.db", &distinct(0..40)));
    let bytes = folder.read("c.db");
    let page = 4096;
    assert!(bytes.len() > 10 * page);
    let run = |what: &str| {
        let ran = folder.run("pairs d.db");
        let code = ran.code.unwrap();
        // What was damaged may be nothing that is read.
        assert!([1, 3].contains(&code), "{what}: {code} {}", ran.stderr);
        assert!(
            !ran.stderr.contains("internal error"),
            "{what}: {}",
            ran.stderr
        );
        code
    };
    folder.write("d.db", &bytes[..bytes.len() / 2]);
    assert_eq!(run("cut short"), 3);
    folder
        .run("pairs d.db")
        .says(&["d.db is damaged, truncated, or not SQLite"]);
    let mut found = 0;
    for start in (100..bytes.len()).step_by(page / 2) {
        let mut damaged = bytes.clone();
        let end = bytes.len().min(start + 512);
        damaged[start..end].fill(0xff);
        folder.write("d.db", damaged);
        found += u32::from(run(&format!("at {start}")) == 3);
    }
    assert!(found > 3, "{found}");
}

#[test]
fn locked_database_is_waited_for_and_reported() {
    let folder = Folder::new();
    let database = write_database(&folder, "c.db", &mixed());
    database.execute_batch("BEGIN EXCLUSIVE").unwrap();
    folder
        .run("pairs c.db")
        .expect(4)
        .says(&["c.db has been locked by another program for 5 seconds"]);
    let reading = folder.command("pairs c.db").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    database.execute_batch("COMMIT").unwrap();
    let output = reading.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn unfinished_transaction_is_reported() {
    let folder = Folder::new();
    let database = write_database(&folder, "c.db", &distinct(0..200));
    database
        .execute_batch("BEGIN; UPDATE articles SET text = text || 'x'")
        .unwrap();
    database.cache_flush().unwrap();
    // As a kill would leave it: some pages are written, and what they were is in the journal.
    for (from, to) in [("c.db", "d.db"), ("c.db-journal", "d.db-journal")] {
        fs::copy(folder.path(from), folder.path(to)).unwrap();
    }
    let before = (folder.read("d.db"), folder.read("d.db-journal"));
    folder
        .run("pairs d.db")
        .expect(4)
        .says(&["d.db has an unfinished change"]);
    assert!((folder.read("d.db"), folder.read("d.db-journal")) == before);
    let recovered = open(&folder, "d.db");
    assert_eq!(rows(&recovered, "SELECT count(*) FROM articles"), ["200"]);
    folder.run("pairs d.db").expect(1);
}

#[test]
fn database_in_wal_mode_is_read_with_its_log() {
    let folder = Folder::new();
    let database = write_database(&folder, "c.db", "");
    database
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
        .unwrap();
    insert(&database, &mixed());
    assert!(fs::metadata(folder.path("c.db-wal")).unwrap().len() > 4096);
    folder.write("c.jsonl", mixed());
    let expected = folder.run("pairs c.jsonl").expect(0).stdout;
    assert_eq!(folder.run("pairs c.db").expect(0).stdout, expected);
    // A transaction that is open is neither seen nor waited for, and nothing is checkpointed.
    let before = folder.read("c.db");
    database
        .execute_batch("BEGIN IMMEDIATE; DELETE FROM articles")
        .unwrap();
    assert_eq!(folder.run("pairs c.db").expect(0).stdout, expected);
    database.execute_batch("ROLLBACK").unwrap();
    assert_eq!(folder.read("c.db"), before);
}

#[test]
fn database_is_read_in_one_transaction_beside_a_writer() {
    let folder = Folder::new();
    let database = write_database(&folder, "c.db", &distinct(0..300));
    database
        .execute_batch(
            "PRAGMA journal_mode = WAL;
             ALTER TABLE articles ADD COLUMN stamp INTEGER;
             UPDATE articles SET stamp = 0",
        )
        .unwrap();
    let stamp =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["stamp"].clone();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let writer = std::thread::spawn(move || {
        let mut changes = 0_i64;
        while !stopped.load(Ordering::Relaxed) {
            changes += 1;
            let sql = "UPDATE articles SET stamp = ?1";
            database.execute(sql, [changes]).unwrap();
        }
    });
    for _ in 0..3 {
        folder.run("build a.rsm c.db").expect(0);
        let listed = folder.run("list a.rsm --format jsonl").expect(0);
        let mut stamps: Vec<_> = listed.stdout.lines().map(stamp).collect();
        assert_eq!(stamps.len(), 300);
        stamps.dedup();
        assert_eq!(stamps.len(), 1, "{stamps:?}");
        fs::remove_file(folder.path("a.rsm")).unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
}

fn corpus_of(path: &Path) -> Arc<Corpus> {
    let settings = CorpusSettings::default();
    Arc::new(Corpus::resolve(&[path.to_path_buf()], settings).unwrap())
}

fn read(corpus: &Arc<Corpus>, is_whole: bool) -> CorpusRecords {
    let records = CorpusRecords::new(Arc::clone(corpus), Arc::default());
    let mut records = if is_whole {
        records.with_whole_tables()
    } else {
        records
    };
    assert!(records.by_ref().all(|record| record.is_ok()));
    records
}

#[test]
fn second_pass_detects_changed_rows() {
    for mode in ["DELETE", "WAL"] {
        let folder = Folder::new();
        let database = write_database(&folder, "c.db", &mixed());
        let sql = format!("PRAGMA journal_mode = {mode}");
        database.query_row(&sql, [], |_| Ok(())).unwrap();
        let corpus = corpus_of(&folder.path("c.db"));
        let before = read(&corpus, false).totals();
        assert_eq!(read(&corpus, true).totals(), before);
        let table = || VerdictTable::new(&corpus.sources[0], &corpus.settings, "v", false);
        let table = table().unwrap();
        let is_document = |_| Ok::<_, CorpusError>(true);
        // Columns that nobody asked for may change.
        database
            .execute_batch("UPDATE articles SET score = 7")
            .unwrap();
        assert_eq!(read(&corpus, true).totals(), before);
        database
            .execute_batch("UPDATE articles SET text = text || '.' WHERE id = 'd'")
            .unwrap();
        assert_ne!(read(&corpus, true).totals(), before);
        let kept = AddedColumn {
            name: "kept".to_owned(),
            values: ColumnValues::Truth(Box::new(|_| Some(true))),
        };
        let written = table.write(&corpus, &[kept], before, is_document);
        assert!(!written.unwrap());
        assert_eq!(names_of_tables(&database), ["articles"], "{mode}");
    }
}

#[test]
fn verdicts_join_with_the_rows() {
    let folder = Folder::new();
    let database = write_database(&folder, "c.db", &mixed());
    let source = "SELECT rowid, * FROM articles";
    let before = rows(&database, source);
    // A dry run wins over the table, too.
    folder
        .run("dedup c.db --verdicts v --dry-run")
        .expect(0)
        .says(&["read 7, kept 4, dropped 3"]);
    assert!(rows(&database, "SELECT name FROM sqlite_master WHERE name = 'v'").is_empty());
    folder
        .run("dedup c.db --verdicts v -o out.jsonl --report report.tsv")
        .expect(0)
        .says(&["read 7, kept 4, dropped 3"]);
    let verdicts = "SELECT row_id, kept, cluster, size, rank, survivor, similarity, distance, similarity_is FROM v";
    let expected = [
        "10|1|1|3|1|-|-|-|-",
        "20|0|1|3|2|a|1.00|-|equal",
        "30|1|3|2|1|-|-|-|-",
        "40|0|1|3|3|a|0.95|-|exact",
        "50|1|5|1|1|-|-|-|-",
        "60|0|3|2|2|b|0.95|-|exact",
        "70|1|7|1|1|-|-|-|-",
    ];
    assert_eq!(rows(&database, verdicts), expected);
    assert_eq!(rows(&database, source), before);
    let joined =
        "SELECT id FROM articles JOIN v ON v.row_id = articles.rowid WHERE kept ORDER BY 1";
    let kept = lines("out.jsonl", &folder);
    let kept: Vec<_> = kept
        .iter()
        .map(|line| line["id"].as_str().unwrap())
        .collect();
    assert_eq!(rows(&database, joined), kept);
    // The table that was made is none of the articles, and is not overwritten without being asked.
    folder
        .run("dedup c.db --verdicts v")
        .expect(4)
        .says(&["has verdicts already", "--force overwrites them"]);
    let options = "--policy cluster --keep last --force";
    folder
        .run(&format!("dedup c.db --verdicts V {options}"))
        .expect(0);
    assert_eq!(rows(&database, joined), ["a-near", "b-near", "c", "d"]);
    // What is no table of verdicts never is.
    database
        .execute_batch("CREATE TABLE other (kept); CREATE VIEW seen AS SELECT 1")
        .unwrap();
    for (name, code) in [
        ("articles", 4),
        ("other", 4),
        ("seen", 4),
        ("sqlite_x", 3),
        ("", 3),
    ] {
        let dedup = "dedup c.db --table articles --force";
        let words: Vec<&str> = dedup.split(' ').chain(["--verdicts", name]).collect();
        folder.run(&words).expect(code).says(&["another name"]);
    }
    let others = "dedup c.db --table other --text-field kept";
    folder
        .run(&format!("{others} --verdicts v --force"))
        .expect(4)
        .says(&["verdicts on the rows of \"articles\""]);
    folder.write("c.jsonl", mixed());
    for corpus in ["c.jsonl", "c.db c.jsonl"] {
        folder
            .run(&format!("dedup {corpus} --verdicts w"))
            .expect(2)
            .says(&["--verdicts"]);
    }
}

#[test]
fn verdicts_of_tables_without_rowids_use_the_primary_key() {
    let folder = Folder::new();
    let database = write_database(&folder, "c.db", &mixed());
    database
        .execute_batch("CREATE VIEW v AS SELECT id, text FROM articles WHERE id != 'd'")
        .unwrap();
    let dedup = "dedup c.db --table v --verdicts verdicts";
    folder.run(dedup).expect(0);
    let kept = "SELECT v.id FROM v JOIN verdicts ON v.id = verdicts.key WHERE kept ORDER BY 1";
    assert_eq!(rows(&database, kept), ["a", "b", "c"]);
    database
        .execute_batch("DROP TABLE verdicts; UPDATE articles SET id = 'a' WHERE id = 'c'")
        .unwrap();
    folder
        .run(dedup)
        .expect(3)
        .says(&["two rows have the same key", "c.db:5"]);
    assert_eq!(names_of_tables(&database), ["articles"]);
    folder.run("create a.rsm").expect(0);
    let add = "add a.rsm c.db --table v --if-new";
    folder
        .run(&format!("{add} --verdicts w"))
        .expect(3)
        .says(&["\"v\" has no rowid"]);
}

/// The verdicts of additions, by their rows.
fn additions(database: &Connection) -> Vec<String> {
    rows(
        database,
        "SELECT row_id, kept, cluster, survivor, similarity_is FROM v ORDER BY 1",
    )
}

#[test]
fn add_reads_only_rows_without_verdict() {
    let folder = Folder::new();
    let database = write_database(&folder, "c.db", &mixed());
    folder.run("create a.rsm").expect(0);
    let add = "add a.rsm c.db --if-new --verdicts v";
    folder
        .run(add)
        .expect(0)
        .says(&["read 7, added 4, dropped 3"]);
    let mut expected = vec![
        "10|1|store:0|-|-",
        "20|0|store:0|a|exact",
        "30|1|store:1|-|-",
        "40|0|store:0|a|exact",
        "50|1|store:2|-|-",
        "60|0|store:1|b|exact",
        "70|1|store:3|-|-",
    ];
    assert_eq!(additions(&database), expected);
    assert_eq!(names_of_tables(&database), ["articles", "v"]);
    let bytes = folder.read("c.db");
    let again = folder.run(add).expect(0);
    assert!(again.stderr.contains("(0 documents)"), "{}", again.stderr);
    assert!(folder.read("c.db") == bytes);
    // A row that is changed is not read again; those behind the last are.
    database
        .execute_batch("UPDATE articles SET text = 'other' WHERE id = 'd'")
        .unwrap();
    insert(&database, &line("e", &text(9)));
    insert(&database, &line("d-near", &edited(4, 1)));
    insert(&database, &line("e", &text(10)));
    folder
        .run(add)
        .expect(0)
        .says(&["read 3, added 1, dropped 1", "known keys 1"]);
    expected.extend([
        "80|1|store:4|-|-",
        "90|0|store:3|d|estimate",
        "100|0|store:4|e|key",
    ]);
    assert_eq!(additions(&database), expected);
    // Many rows, several commits, and a journal that has to be free of readers for each of them.
    insert(&database, &distinct(1_000..1_700));
    folder
        .run(&format!("{add} --commit-every 50"))
        .expect(0)
        .says(&["read 700, added 700"]);
    let kept = rows(&database, "SELECT sum(kept), count(*) FROM v");
    assert_eq!(kept, ["705|710"]);
    for wrong in ["--atomic", "--skip 1"] {
        folder.run(&format!("{add} {wrong}")).expect(2);
    }
    folder.run("add a.rsm c.db --verdicts v").expect(2);
}

#[test]
fn documents_already_in_the_store_get_verdicts() {
    let folder = Folder::new();
    let database = write_database(&folder, "c.db", &mixed());
    folder.run("create a.rsm").expect(0);
    folder.run("add a.rsm c.db --if-new").expect(0);
    // The same document once more, under the same key: the store has it for the first.
    insert(&database, &line("c", &text(3)));
    for (option, value) in [("--verify", "exact"), ("--threshold", "0.9")] {
        let add = "add a.rsm c.db --if-new --verdicts v";
        folder
            .run(&format!("{add} {option} {value}"))
            .expect(0)
            .says(&["added 0, dropped 3", "known keys 5"]);
        let kept = [
            "10|1|store:0|-|key",
            "30|1|store:1|-|key",
            "50|1|store:2|-|key",
            "70|1|store:3|-|key",
        ];
        let kept_rows = rows(
            &database,
            "SELECT row_id, kept, cluster, survivor, similarity_is FROM v WHERE kept",
        );
        assert_eq!(kept_rows, kept);
        assert_eq!(additions(&database)[7], "80|0|store:2|c|key");
        database.execute_batch("DROP TABLE v").unwrap();
    }
}

/// The store and the table of verdicts, for comparison.
fn outcome(folder: &Folder) -> (String, Vec<String>, Vec<String>) {
    let database = open(folder, "c.db");
    let listed = folder.run("list a.rsm --format jsonl").expect(0).stdout;
    (listed, additions(&database), names_of_tables(&database))
}

/// The same where similarities to documents of an earlier run, whose texts are not at hand, are not told from others.
fn as_exact(outcome: (String, Vec<String>, Vec<String>)) -> (String, Vec<String>, Vec<String>) {
    let (listed, verdicts, tables) = outcome;
    let verdicts = verdicts.iter().map(|v| v.replace("estimate", "exact"));
    (listed, verdicts.collect(), tables)
}

/// 30 documents, each third of which is near the one before, and an empty store.
fn with_near_ones() -> Folder {
    let folder = Folder::new();
    let number = |n: u64| match n % 3 {
        2 => line(&n.to_string(), &edited(n - 1, 1)),
        _ => line(&n.to_string(), &text(n)),
    };
    write_database(&folder, "c.db", &(0..30).map(number).collect::<String>());
    folder.run("create a.rsm").expect(0);
    folder
}

const ADD: [&str; 8] = [
    "add",
    "a.rsm",
    "c.db",
    "--if-new",
    "--verdicts",
    "v",
    "--commit-every",
    "7",
];

#[test]
fn run_that_ended_between_both_commits_is_completed() {
    let whole = with_near_ones();
    whole.run(&ADD).expect(0);
    let expected = outcome(&whole);
    assert_eq!((expected.0.lines().count(), expected.1.len()), (20, 30));
    // What was 2 in the first commit, 9 in the second, and so on, stops the move of verdicts after the commit of the
    // store; what stops the verdicts that wait does so before it.
    for row in [20, 90, 300] {
        let folder = with_near_ones();
        let database = open(&folder, "c.db");
        // The first run makes the table, so that the trigger can be there.
        insert_none(&folder);
        let trigger = format!(
            "CREATE TRIGGER stop BEFORE INSERT ON v WHEN new.row_id = {row} \
             BEGIN SELECT RAISE(ABORT, 'stopped here'); END"
        );
        database.execute_batch(&trigger).unwrap();
        folder
            .run(&ADD)
            .expect(4)
            .says(&["stopped here", "give the command again"]);
        let waiting = rows(&database, "SELECT count(*) FROM v_pending")[0].clone();
        assert!(["7", "2"].contains(&&*waiting), "{waiting}");
        let done: u64 = rows(&database, "SELECT count(*) FROM v")[0]
            .parse()
            .unwrap();
        let held = folder.count("a.rsm");
        assert!(held > done * 2 / 3, "the store is ahead: {held}, {done}");
        // Whoever reads verdicts meanwhile is told of nothing that the store does not have.
        database.execute_batch("DROP TRIGGER stop").unwrap();
        let again = folder.run(&ADD).expect(0);
        assert!(
            again.stderr.contains("completed the verdicts"),
            "{}",
            again.stderr
        );
        let found = outcome(&folder);
        let stopped = found.1.iter().find(|verdict| verdict.starts_with("90|"));
        assert_eq!(stopped.map(String::as_str), Some("90|0|store:5|7|exact"));
        assert_eq!(as_exact(found), expected, "{row}");
    }
}

/// Makes the table of verdicts, and reads no row.
fn insert_none(folder: &Folder) {
    let database = open(folder, "c.db");
    database
        .execute_batch("ALTER TABLE articles RENAME TO full; CREATE TABLE articles (id, text)")
        .unwrap();
    let add = ["--table", "articles"];
    folder.run(&[&ADD[..], &add].concat()).expect(0);
    database
        .execute_batch("DROP TABLE articles; ALTER TABLE full RENAME TO articles")
        .unwrap();
}

#[test]
fn verdicts_of_a_failed_commit_are_discarded() {
    let whole = with_near_ones();
    whole.run(&ADD).expect(0);
    let expected = outcome(&whole);
    let folder = with_near_ones();
    // The verdicts of the whole run wait, and the store has none of its documents.
    let database = open(&folder, "c.db");
    insert_none(&folder);
    let trigger =
        "CREATE TRIGGER stop BEFORE INSERT ON v BEGIN SELECT RAISE(ABORT, 'stopped here'); END";
    database.execute_batch(trigger).unwrap();
    folder.run(&ADD).expect(4);
    database.execute_batch("DROP TRIGGER stop").unwrap();
    fs::remove_file(folder.path("a.rsm")).unwrap();
    folder.run("create a.rsm").expect(0);
    folder.run(&ADD).expect(0);
    assert_eq!(outcome(&folder), expected);
}

#[cfg(unix)]
#[test]
fn killed_add_is_completed_by_the_next() {
    let whole = with_near_ones();
    let start = std::time::Instant::now();
    whole.run(&ADD).expect(0);
    let lasts = start.elapsed();
    let expected = outcome(&whole);
    let mut seen = std::collections::BTreeMap::new();
    for kill in 0..12_u32 {
        let folder = with_near_ones();
        let mut child = folder.command(&ADD).spawn().unwrap();
        std::thread::sleep(lasts.mul_f64(f64::from(kill) / 12.0));
        child.kill().unwrap();
        child.wait().unwrap();
        let database = open(&folder, "c.db");
        let reported = match names_of_tables(&database).contains(&"v".to_owned()) {
            true => rows(&database, "SELECT count(*) FROM v")[0].clone(),
            false => "none".to_owned(),
        };
        *seen.entry(reported).or_insert(0) += 1;
        folder.run(&ADD).expect(0);
        assert_eq!(as_exact(outcome(&folder)), expected);
    }
    crate::support::say(&format!("killed with so many verdicts: {seen:?}"));
}
