//! SQLite databases that are locked, damaged or written to meanwhile, and unfinished tables of
//! verdicts. The transcript `readers` contains what the tool prints for databases.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use resemblance_corpus::{
    AddedColumn, ColumnValues, Corpus, CorpusError, CorpusRecords, CorpusSettings, VerdictTable,
};
use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::types::Value;
use rusqlite::{Batch, Connection, params};

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

/// Returns the rows of some statements, the values of each joined by `|`.
pub fn rows(database: &Connection, sql: &str) -> Vec<String> {
    let shown = |value| match value {
        Value::Null => "-".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => format!("{number:.2}"),
        Value::Text(text) => text,
        Value::Blob(bytes) => format!("{bytes:?}"),
    };
    let (mut rows, mut statements) = (Vec::new(), Batch::new(database, sql));
    while let Some(mut statement) = statements.next().unwrap() {
        let width = statement.column_count();
        let mut found = statement.query([]).unwrap();
        while let Some(row) = found.next().unwrap() {
            let values = (0..width).map(|index| shown(row.get_unwrap(index)));
            rows.push(values.collect::<Vec<_>>().join("|"));
        }
    }
    rows
}

fn names_of_tables(database: &Connection) -> Vec<String> {
    rows(
        database,
        "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name",
    )
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
        // The damaged part may be one that is not read.
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
        // Columns that are not requested may change.
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

/// The verdicts of additions, by their rows.
fn additions(database: &Connection) -> Vec<String> {
    rows(
        database,
        "SELECT row_id, kept, cluster, survivor, similarity_is FROM v ORDER BY 1",
    )
}

/// The store and the table of verdicts, for comparison.
fn outcome(folder: &Folder) -> (String, Vec<String>, Vec<String>) {
    let database = open(folder, "c.db");
    let listed = folder.run("list a.rsm --format jsonl").expect(0).stdout;
    (listed, additions(&database), names_of_tables(&database))
}

/// Returns an outcome in which similarities to documents of an earlier run, whose texts are not
/// available, look like exact ones.
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
    // Row 2 of the first commit, 9 of the second, and so on, stops the move of verdicts after the
    // store's commit. Whatever stops the pending verdicts does so before it.
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
        // A process that reads verdicts meanwhile sees none about a document that the store does
        // not contain.
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
        crate::kills::run_and_kill(&folder, &ADD, lasts.mul_f64(f64::from(kill) / 12.0));
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

/// The disk of the kept rows is full.
#[cfg(target_os = "linux")]
#[test]
fn verdicts_are_written_when_all_other_outputs_are_complete() {
    let folder = Folder::new();
    let database = write_database(&folder, "a.db", &mixed());
    let tables = "SELECT count(*) FROM sqlite_master WHERE name = 'verdicts'";
    folder
        .run("dedup a.db -o /dev/full --verdicts verdicts")
        .expect(4);
    assert_eq!(rows(&database, tables), ["0"]);
    folder
        .run("dedup a.db -o kept.jsonl --verdicts verdicts")
        .expect(0);
    assert_eq!(rows(&database, tables), ["1"]);
}
