use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use std::io::Write;
use std::sync::atomic::AtomicU64;

fn settings() -> CorpusSettings {
    CorpusSettings::default()
}

fn parse(line: &[u8]) -> Result<(Vec<u8>, String), String> {
    let settings = settings();
    let make_key = || unreachable!("the line has an id");
    let document = line::parse(line, &settings, make_key).map_err(|bad| bad.reason)?;
    let text = document.content.text().unwrap().to_owned();
    Ok((document.key.into_owned(), text))
}

fn corpus(paths: &[&Path]) -> Arc<Corpus> {
    let paths: Vec<_> = paths.iter().map(|path| path.to_path_buf()).collect();
    Arc::new(Corpus::resolve(&paths, settings()).unwrap())
}

/// The name of the source, the line, and the bytes.
type Seen = (String, u64, Vec<u8>);

/// Returns every record, and the error at the end if there was one.
fn read(corpus: &Arc<Corpus>) -> (Vec<Seen>, Option<CorpusError>) {
    let mut read = Vec::new();
    for record in CorpusRecords::new(Arc::clone(corpus), Arc::new(AtomicU64::new(0))) {
        match record {
            Ok(record) => {
                let source = &corpus.sources[record.source];
                let name = source.relative.to_string_lossy().into_owned();
                read.push((name, record.line, record.bytes.into()));
            }
            Err(error) => return (read, Some(error)),
        }
    }
    (read, None)
}

fn write(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    path
}

fn compressed(compression: Compression, bytes: &[u8]) -> Vec<u8> {
    let mut encoder = Encoder::new(compression, Vec::new()).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn json_line_becomes_a_key_and_a_text() {
    // A line, its key and its text.
    let cases = [
        [r#"{"id": "a", "text": "b"}"#, "a", "b"],
        [r#" {"text":"x\ny","id":"k\t"} "#, "k\t", "x\ny"],
        [r#"{"id": 17, "text": ""}"#, "17", ""],
        [r#"{"id": -5, "text": "b"}"#, "-5", "b"],
        [
            r#"{"id": 123456789012345678901234567890, "text": "b"}"#,
            "123456789012345678901234567890",
            "b",
        ],
        [r#"{"id": "", "text": "b"}"#, "", "b"],
        [r#"{"id": 1.50, "text": "b"}"#, "1.50", "b"],
        [
            r#"{"a":{"id":1,"id":[1,{}]},"id":"\u00e9","text":"\ud83d\ude00","z":null}"#,
            "é",
            "😀",
        ],
        ["{\"id\":\"a\",\"text\":\"b\"}\r\n", "a", "b"],
        [
            r#"{"\u0069d": "escaped name", "text": "b"}"#,
            "escaped name",
            "b",
        ],
    ];
    for [line, key, text] in cases {
        let expected = Ok((key.into(), text.into()));
        assert_eq!(parse(line.as_bytes()), expected, "{line}");
    }
}

#[test]
fn faults_of_a_line_are_reported() {
    const CASES: &str = r#"
nonsense => not a JSON object
[1] => a JSON array, expected one object per line
{"id":"a" => the line ends inside a JSON object (column 9)
{"id":"a","text":"b"} x => more text follows the JSON object on its line (column 23)
{"id":"a"} => field "text" is missing
{"id":"a","id":"a","text":""} => field "id" occurs twice
{"text":"a","text":"a","id":1} => field "text" occurs twice
{"id":"a","text":null} => field "text" is null, expected a string
{"id":"a","text":5} => field "text" is a number, expected a string
{"id":true,"text":""} => field "id" is true or false, expected a string or a number
{"id":{},"text":""} => field "id" is an object, expected a string or a number
{"id":"\ud800","text":""} => field "id" is not valid Unicode
{"id":"a","text":"\ud800"} => field "text" is not valid Unicode
"#;
    let cases = CASES
        .trim()
        .lines()
        .map(|case| case.split_once(" => ").unwrap());
    let cases = cases.map(|(line, expected)| (line.as_bytes(), expected));
    let invalid = (
        &b"{\"id\":\"a\",\"text\":\"\xff\"}"[..],
        "invalid UTF-8 at byte 19",
    );
    for (line, expected) in cases.chain([invalid]) {
        let found = parse(line).unwrap_err();
        let line = String::from_utf8_lossy(line);
        assert!(found.contains(expected), "{line}: {found}");
        assert!(!found.contains(" at line "), "{found}");
    }
}

#[test]
fn lines_keep_their_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let content = b"\xef\xbb\xbffirst\r\n\n  \nsecond \n\r\nlast";
    let path = write(dir.path(), "a.jsonl", content);
    let corpus = corpus(&[&path]);
    let (records, error) = read(&corpus);
    assert!(error.is_none());
    let name = || "a.jsonl".to_string();
    assert_eq!(
        records,
        [
            (name(), 1, b"first\r\n".to_vec()),
            (name(), 4, b"second \n".to_vec()),
            (name(), 6, b"last".to_vec()),
        ]
    );
    let mut records = CorpusRecords::new(corpus, Arc::new(AtomicU64::new(0)));
    assert!(records.next().unwrap().unwrap().has_mark);
    assert!(!records.next().unwrap().unwrap().has_mark);
    assert_eq!(records.by_ref().count(), 1);
    let totals = records.totals();
    assert_eq!((totals.records, totals.blank), (3, 3));
}

#[test]
fn every_member_of_a_compressed_file_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let expected: Vec<Vec<u8>> = vec![b"one\n".to_vec(), b"two\n".to_vec(), b"three".to_vec()];
    for (compression, name) in [
        (Compression::None, "a.jsonl"),
        (Compression::Gzip, "a.jsonl.gz"),
        (Compression::Zstd, "a.jsonl.zst"),
        (Compression::Bzip2, "a.jsonl.bz2"),
        (Compression::Xz, "a.jsonl.xz"),
        // The content decides if the name shows nothing.
        (Compression::Gzip, "gzip-inside.jsonl"),
        (Compression::Zstd, "zstd-inside"),
        (Compression::Bzip2, "bzip2-inside"),
        (Compression::Xz, "xz-inside"),
    ] {
        let mut bytes = compressed(compression, b"one\ntw");
        bytes.extend(compressed(compression, b"o\nthree"));
        let path = write(dir.path(), name, &bytes);
        let corpus = corpus(&[&path]);
        let (records, error) = read(&corpus);
        assert!(error.is_none(), "{name}: {error:?}");
        let lines: Vec<_> = records.into_iter().map(|(_, _, bytes)| bytes).collect();
        assert_eq!(lines, expected, "{name}");
        assert_eq!(corpus.size_bytes(), Some(bytes.len() as u64));
    }
}

#[test]
fn truncated_or_damaged_file_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    // Not compressible to nothing, so that every cut is within data.
    let mut state = 1_u64;
    let mut text = Vec::new();
    for _ in 0..300 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        text.extend(format!("{state:x}\n").bytes());
    }
    for (compression, name) in [
        (Compression::Gzip, "a.jsonl.gz"),
        (Compression::Zstd, "a.jsonl.zst"),
        (Compression::Bzip2, "a.jsonl.bz2"),
        (Compression::Xz, "a.jsonl.xz"),
    ] {
        let whole = compressed(compression, &text);
        for cut in (97..whole.len()).step_by(97).chain([1, whole.len() - 1]) {
            let path = write(dir.path(), name, &whole[..cut]);
            let (_, error) = read(&corpus(&[&path]));
            assert!(
                matches!(error, Some(CorpusError::Bad { .. })),
                "{name} cut at {cut}: {error:?}"
            );
        }
        let mut damaged = whole.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0x55;
        let path = write(dir.path(), name, &damaged);
        let corpus = corpus(&[&path]);
        let (records, error) = read(&corpus);
        // Zstandard frames have no checksum by default, so damage may pass as different text.
        if compression != Compression::Zstd {
            assert!(matches!(error, Some(CorpusError::Bad { .. })), "{error:?}");
        } else {
            assert!(error.is_some() || !records.is_empty());
        }
        let plain = write(dir.path(), name, &text);
        assert!(matches!(
            read(&self::corpus(&[&plain])).1,
            Some(CorpusError::Bad { .. })
        ));
    }
}

#[test]
fn a_folder_is_read_in_byte_order() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("texts");
    for name in [
        "b.txt",
        "a/z.txt",
        "a.txt",
        "a/.hidden",
        ".git/x",
        "Z.md",
        "a/b/c.txt",
    ] {
        write(&root, name, name.as_bytes());
    }
    write(&root, "lines.jsonl", b"{\"id\":1,\"text\":\"x\"}\n");
    write(&root, "empty.txt", b"");
    let names = |settings: CorpusSettings| -> Vec<String> {
        let corpus = Corpus::resolve(std::slice::from_ref(&root), settings).unwrap();
        let (records, error) = read(&Arc::new(corpus));
        assert!(error.is_none());
        records.into_iter().map(|(name, _, _)| name).collect()
    };
    assert_eq!(
        names(settings()),
        [
            "Z.md",
            "a.txt",
            "a/b/c.txt",
            "a/z.txt",
            "b.txt",
            "empty.txt",
            "lines.jsonl"
        ]
    );
    let mut all = settings();
    all.hidden = true;
    assert_eq!(names(all).len(), 9);
    let mut some = settings();
    some.include = patterns("*.{txt,log}").unwrap();
    assert_eq!(
        names(some),
        ["a.txt", "a/b/c.txt", "a/z.txt", "b.txt", "empty.txt"]
    );
}

#[test]
fn a_text_file_is_one_document() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a/b.txt", b"\xef\xbb\xbfone\ntwo\n\n");
    write(dir.path(), "bad.txt", b"ok\xff");
    let corpus = corpus(&[dir.path()]);
    let records: Vec<CorpusRecord> = CorpusRecords::new(Arc::clone(&corpus), Arc::default())
        .map(|record| record.unwrap())
        .collect();
    let document = corpus.parse(&records[0]).unwrap();
    assert_eq!(
        *document.key,
        *dir.path().join("a/b.txt").as_os_str().as_encoded_bytes()
    );
    assert_eq!(document.content.text(), Some("one\ntwo\n\n"));
    assert_eq!(records[0].bytes[..], *b"\xef\xbb\xbfone\ntwo\n\n");
    assert_eq!(
        corpus.parse(&records[1]).unwrap_err().reason,
        "invalid UTF-8 at byte 3"
    );
    assert!(corpus.position(records[1].source, 0).ends_with("bad.txt"));
}

#[test]
fn corpus_reads_arguments_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let b = write(dir.path(), "b.jsonl", b"1\n2\n");
    let a = write(dir.path(), "a.jsonl", b"3\n");
    let corpus = corpus(&[&b, &a]);
    let (records, _) = read(&corpus);
    let order: Vec<_> = records
        .iter()
        .map(|(name, line, _)| (&**name, *line))
        .collect();
    assert_eq!(order, [("b.jsonl", 1), ("b.jsonl", 2), ("a.jsonl", 1)]);
    assert!(corpus.position(1, 7).ends_with("a.jsonl:7"));
}

#[test]
fn unreadable_input_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing.jsonl");
    let error = Corpus::resolve(&[missing], settings()).unwrap_err();
    assert!(
        matches!(error, CorpusError::Io { reason, .. } if reason.ends_with("missing.jsonl does not exist"))
    );
    let twice = [PathBuf::from("-"), PathBuf::from("-")];
    assert!(matches!(
        Corpus::resolve(&twice, settings()),
        Err(CorpusError::Bad { .. })
    ));
    let store = write(dir.path(), "x.jsonl", b"redb\x1a\n\xa9\r\n");
    assert!(is_store(&store));
    assert!(!is_store(dir.path()));
    let (_, error) = read(&corpus(&[&store]));
    assert!(
        matches!(error, Some(CorpusError::Bad { reason, .. }) if reason.ends_with("is a store, not a corpus"))
    );
}

#[test]
fn change_between_two_reads_is_detected() {
    let dir = tempfile::tempdir().unwrap();
    let totals = |content: &[u8]| {
        let path = write(dir.path(), "a.jsonl", content);
        let mut records = CorpusRecords::new(corpus(&[&path]), Arc::default());
        records.by_ref().for_each(|record| drop(record.unwrap()));
        records.totals()
    };
    let first = totals(b"ab\nc\n");
    assert_eq!(first, totals(b"ab\nc\n"));
    assert_ne!(first, totals(b"ab\nd\n"));
    assert_ne!(first, totals(b"ab\nc"));
}

/// The stored inputs of the fuzzer. A published package has none.
#[test]
fn saved_fuzzer_inputs_pass() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    if !fuzz.exists() {
        return;
    }
    let all = |target: &str, run: fn(&[u8])| -> usize {
        let entries = std::fs::read_dir(fuzz.join("corpus").join(target)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let inputs = paths.inspect(|path| println!("{}", path.display()));
        inputs
            .map(|path| run(&std::fs::read(path).unwrap()))
            .count()
    };
    assert!(all("json_lines", super::fuzzing::json_lines) > 20);
    super::fuzzing::json_lines(&[]);
    #[cfg(feature = "warc")]
    assert!(all("warc", super::fuzzing::warc) > 5);
}

#[cfg(all(feature = "sqlite", feature = "tables"))]
#[test]
fn every_table_format_yields_the_same_documents() {
    use arrow_array::{Int64Array, RecordBatch, StringArray};

    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let columns = [
        ("id", Arc::new(Int64Array::from(vec![i64::MAX, -7])) as _),
        (
            "text",
            Arc::new(StringArray::from(vec!["a\n\"b\"", ""])) as _,
        ),
        ("n", Arc::new(Int64Array::from(vec![Some(1), None])) as _),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(path("t.parquet")).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let file = std::fs::File::create(path("t.arrow")).unwrap();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let database = rusqlite::Connection::open(path("t.db")).unwrap();
    let rows = format!(
        "CREATE TABLE t (id, text, n); INSERT INTO t VALUES ({}, 'a\n\"b\"', 1), (-7, '', NULL)",
        i64::MAX
    );
    database.execute_batch(&rows).unwrap();
    drop(database);
    let rows = format!("id,text,n\n{},\"a\n\"\"b\"\"\",1\n-7,,\n", i64::MAX);
    std::fs::write(path("t.csv"), rows).unwrap();
    let lines = format!(
        "{{\"id\":{},\"text\":\"a\\n\\\"b\\\"\",\"n\":1}}\n{{\"id\":-7,\"text\":\"\",\"n\":null}}\n",
        i64::MAX
    );
    std::fs::write(path("t.jsonl"), lines).unwrap();

    for name in ["t.parquet", "t.arrow", "t.db", "t.csv", "t.jsonl"] {
        let entries = CorpusReader::open(&[path(name)], settings()).unwrap();
        let documents = entries.map(|entry| entry.unwrap().document.unwrap());
        let documents: Vec<_> = documents
            .map(|document| {
                (
                    document.key.to_vec(),
                    document.content.text().unwrap().to_owned(),
                )
            })
            .collect();
        let expected = [(i64::MAX.to_string(), "a\n\"b\""), ("-7".to_owned(), "")];
        let expected = expected.map(|(key, text)| (key.into_bytes(), text.to_owned()));
        assert_eq!(documents, expected, "{name}");

        // Copied rows count as they do when they are read.
        let mut read = CorpusRecords::new(corpus(&[&path(name)]), Arc::default());
        assert_eq!(read.by_ref().map(Result::unwrap).count(), 2, "{name}");
        assert_eq!(read.last_number(), 1, "{name}");
        let records = CorpusRecords::new(corpus(&[&path(name)]), Arc::default());
        let mut whole = records.with_whole_tables();
        let first = whole.next().unwrap().unwrap();
        let is_table = ["t.parquet", "t.arrow"].contains(&name);
        assert_eq!(first.table_rows, is_table.then_some(2), "{name}");
        if name == "t.db" {
            assert!(first.bytes.ends_with(b",\"n\":1}\n"), "{:?}", first.bytes);
        }
        assert_eq!(
            whole.by_ref().map(Result::unwrap).count(),
            usize::from(!is_table)
        );
        assert_eq!(whole.totals(), read.totals(), "{name}");
    }
}

#[test]
fn stored_signature_values_become_the_same_signature() {
    use resemblance::{MinHash, Schema, Text};
    for minhash in [MinHash::new(64), MinHash::new(64).value_bits(32)] {
        let builder = Schema::builder().text(Text::words(1)).minhash(minhash);
        let schema = builder.build().unwrap();
        let made = schema.sketcher().text("to be or not to be").unwrap();
        let settings = CorpusSettings {
            content: ContentRule::new(&schema, false),
            ..settings()
        };
        let line = format!(
            r#"{{"id": "a", "signature": {:?}}}"#,
            made.minhash().unwrap()
        );
        let document = line::parse(line.as_bytes(), &settings, || unreachable!()).unwrap();
        let Content::Signature(read) = document.content else {
            panic!("the line has a signature");
        };
        assert_eq!(*read, made);
        assert_eq!(read.jaccard(&made).unwrap(), 1.0);
    }
}

/// Returns the error of reading a file with these bytes.
fn refusal(dir: &Path, name: &str, bytes: &[u8], settings: &CorpusSettings) -> Option<String> {
    let path = write(dir, name, bytes);
    let corpus = Arc::new(Corpus::resolve(&[path], settings.clone()).unwrap());
    let (_, error) = read(&corpus);
    error.map(|error| error.to_string())
}

#[test]
fn an_unclosed_quote_is_not_a_bad_row() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |name: &str, bytes: &[u8]| refusal(dir.path(), name, bytes, &settings()).unwrap();
    let found = refused("a.csv", b"id,text\n1,a\n2,\"b\n3,c\n4,d\n");
    assert!(
        found.contains("a.csv:3 has a quote that is never closed"),
        "{found}"
    );
    let found = refused("a.tsv", b"id\ttext\n1\t\"a\n");
    assert!(found.contains("a.tsv:2 has a quote"), "{found}");
    let found = refused("b.csv", b"id,\"text\n1,a\n");
    assert!(found.contains("b.csv:1 has a quote"), "{found}");
    let gzip = compressed(Compression::Gzip, b"id,text\n1,\"a\n");
    assert!(refused("c.csv.gz", &gzip).contains("c.csv.gz:2 has a quote"));
}

#[test]
fn lone_carriage_returns_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let lines = b"{\"id\":1,\"text\":\"a\"}\r{\"id\":2,\"text\":\"b\"}\r";
    let reason = |path: PathBuf| {
        let mut entries = CorpusReader::open(&[path], settings()).unwrap();
        entries
            .next()
            .unwrap()
            .unwrap()
            .document
            .unwrap_err()
            .reason
    };
    let zstd = compressed(Compression::Zstd, lines);
    for (name, bytes) in [
        ("a.csv", &b"text,id\ra b c,1\rd e f,2\r"[..]),
        ("b.csv", b"text,id\r\"a\nb\",1\r"),
        ("a.tsv", b"text\tid\ra\t1\r"),
        ("a.jsonl", lines),
        ("a.jsonl.zst", &zstd),
        ("folder/a.json", lines),
        ("folder/a.txt.zst", &zstd),
    ] {
        let path = write(dir.path(), name, bytes);
        let named = path.parent().unwrap().ends_with("folder");
        let path = if named {
            path.parent().unwrap().into()
        } else {
            path
        };
        let found = reason(path);
        assert!(
            found.starts_with("lines that end with only CR"),
            "{name}: {found}"
        );
    }
    // Between the parts of one object, carriage returns are spaces.
    let path = write(dir.path(), "one.jsonl", b"{\"id\":1,\r\"text\":\"a\"}\r\n");
    let mut entries = CorpusReader::open(&[path], settings()).unwrap();
    assert!(entries.next().unwrap().unwrap().document.is_ok());
}

#[test]
fn gzip_padding_and_empty_files_are_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = compressed(Compression::Gzip, b"one\n");
    bytes.extend([0; 700]);
    bytes.extend(compressed(Compression::Gzip, b"two\n"));
    bytes.extend([0; 512]);
    let path = write(dir.path(), "a.jsonl.gz", &bytes);
    let (records, error) = read(&corpus(&[&path]));
    assert!(error.is_none() && records.len() == 2, "{error:?}");
    bytes.push(1);
    assert!(refusal(dir.path(), "b.jsonl.gz", &bytes, &settings()).is_some());
    #[cfg(feature = "tables")]
    for name in ["empty/a.parquet", "empty/b.arrow"] {
        let path = write(dir.path(), name, b"");
        for path in [path.parent().unwrap(), &path] {
            let mut entries = CorpusReader::open(&[path], settings()).unwrap();
            let bad = entries.next().unwrap().unwrap().document.unwrap_err();
            assert!(
                bad.reason.starts_with("an empty file, expected"),
                "{name}: {bad}"
            );
        }
    }
    // The blocks of bgzip end with an empty one.
    let block = |text: &[u8]| {
        let builder = flate2::GzBuilder::new().extra(&b"BC\x02\0\0\0"[..]);
        let mut encoder = builder.write(Vec::new(), flate2::Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    };
    let bytes = [block(b"one\n"), block(b"two\n"), block(b"")].concat();
    assert_eq!(refusal(dir.path(), "c.jsonl.gz", &bytes, &settings()), None);
    let cut = &bytes[..bytes.len() - block(b"").len()];
    let found = refusal(dir.path(), "c.jsonl.gz", cut, &settings()).unwrap();
    assert!(found.contains("truncated: the empty block"), "{found}");
    for name in ["a.gz", "a.jsonl.zst", "a.jsonl.bz2", "a.jsonl.xz"] {
        assert_eq!(refusal(dir.path(), name, b"", &settings()), None, "{name}");
    }
}

#[test]
fn generated_keys_depend_on_the_path_only() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().to_str().unwrap();
    let line = b"{\"text\":\"a\"}\n";
    for name in ["d1/p.jsonl", "d2/p.jsonl", "d2/t.txt"] {
        write(dir.path(), name, line);
    }
    let keys = |paths: &[&str]| -> Vec<String> {
        let paths: Vec<_> = paths.iter().map(|path| format!("{root}/{path}")).collect();
        let entries = CorpusReader::open(&paths, settings()).unwrap();
        let keys = entries.map(|entry| entry.unwrap().document.unwrap().key.into_owned());
        keys.map(|key| String::from_utf8(key).unwrap().replace(root, ""))
            .collect()
    };
    assert_eq!(keys(&["d1/p.jsonl"]), ["/d1/p.jsonl:1"]);
    assert_eq!(
        keys(&["d2/p.jsonl", "d1/p.jsonl"]),
        ["/d2/p.jsonl:1", "/d1/p.jsonl:1"]
    );
    assert_eq!(keys(&["d2"]), ["/d2/p.jsonl:1", "/d2/t.txt:1"]);
    for same in ["./d2/p.jsonl", "d2//p.jsonl", "d2/./p.jsonl"] {
        assert_eq!(keys(&[same]), ["/d2/p.jsonl:1"], "{same}");
    }
}

#[test]
fn separated_tables_accept_any_separator_and_given_names() {
    let dir = tempfile::tempdir().unwrap();
    let with = |separator: Option<u8>, columns: &[&str]| CorpusSettings {
        separator,
        columns: columns.iter().map(|&name| name.to_owned()).collect(),
        ..settings()
    };
    let read = |name: &str, bytes: &[u8], settings: CorpusSettings| {
        let path = write(dir.path(), name, bytes);
        let entries = CorpusReader::open(&[path], settings).unwrap();
        let documents = entries.map(|entry| entry.unwrap().document);
        let texts = documents.map(|document| match document {
            Ok(document) => document.content.text().unwrap().to_owned(),
            Err(bad) => format!("{}; {}", bad.reason, bad.advice.join("; ")),
        });
        texts.collect::<Vec<_>>()
    };
    let rows = b"id;text\n1;a, b\n2;\"c;d\"\n";
    assert_eq!(read("a.csv", rows, with(Some(b';'), &[])), ["a, b", "c;d"]);
    let found = read("a.csv", rows, settings()).concat();
    assert!(found.contains("set --separator"), "{found}");
    let plain = b"1,a\n2,b\n";
    assert_eq!(
        read("b.csv", plain, with(None, &["id", "text"])),
        ["a", "b"]
    );
    assert_eq!(
        read("b.tsv", b"1\ta\n", with(Some(b';'), &["id", "text"])),
        ["a"]
    );
    let found = read("b.csv", plain, with(None, &["id", "body"])).concat();
    assert!(found.contains("there is no column \"text\""), "{found}");
}

#[test]
fn skip_unreadable_skips_unreadable_files() {
    let dir = tempfile::tempdir().unwrap();
    let lines: String = (0..2000)
        .map(|n| format!("{{\"id\":{n},\"text\":\"{}\"}}\n", n * n))
        .collect();
    let whole = compressed(Compression::Gzip, lines.as_bytes());
    write(dir.path(), "a.jsonl.gz", &whole[..whole.len() - 20]);
    write(dir.path(), "b.jsonl.gz", b"no gzip");
    write(dir.path(), "c.jsonl", b"{\"text\":\"c\"}\n");
    write(dir.path(), "d/x.log", b"{\"text\":\"d\"}\n");
    let unreadable = Arc::default();
    let settings = CorpusSettings {
        unreadable: Some(Arc::clone(&unreadable)),
        exclude: patterns("d/*").unwrap(),
        ..settings()
    };
    let corpus = Corpus::resolve(&[dir.path().to_path_buf()], settings.clone()).unwrap();
    let mut records = CorpusRecords::new(Arc::new(corpus), Arc::default());
    let last = records.by_ref().map(Result::unwrap).last().unwrap();
    assert_eq!(last.bytes[..], *b"{\"text\":\"c\"}\n");
    assert_eq!(records.take_finished().len(), 1);
    let named = ["a.jsonl.gz", "c.jsonl"].map(|name| dir.path().join(name));
    let corpus = Corpus::resolve(&named, settings).unwrap();
    let mut records = CorpusRecords::new(Arc::new(corpus), Arc::default());
    assert!(records.by_ref().all(|record| record.is_ok()));
    assert_eq!(records.take_finished().len(), 1);
    let messages = unreadable.lock().unwrap();
    let names = ["a.jsonl.gz is damaged", "b.jsonl.gz is not gzip"];
    assert_eq!(messages.len(), 2);
    for (message, name) in messages.iter().zip(names) {
        assert!(message.contains(name), "{message}");
    }
    assert!(matches!(
        Corpus::resolve(&[dir.path().to_path_buf()], self::settings()),
        Err(CorpusError::Bad { .. })
    ));
}

#[cfg(all(feature = "sqlite", unix))]
#[test]
fn sqlite_database_is_left_untouched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a b%20?#.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    let sql = "PRAGMA journal_mode = wal; CREATE TABLE t (id, text); INSERT INTO t VALUES (1, 'a'), (2, 'b')";
    database.execute_batch(sql).unwrap();
    let count = || {
        let entries = CorpusReader::open(&[&path], settings()).unwrap();
        let mut documents = 0;
        for entry in entries {
            entry.unwrap().document.unwrap();
            documents += 1;
        }
        documents
    };
    // Rows count that a writer has not yet moved into the file.
    assert_eq!(count(), 2);
    drop(database);
    assert_eq!(count(), 2);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    // The memory for computing a view is limited too.
    let view = rusqlite::Connection::open(dir.path().join("view.db")).unwrap();
    let sql = "CREATE VIEW v AS SELECT 1 AS id, CAST(zeroblob(900000000) AS TEXT) AS text";
    view.execute_batch(sql).unwrap();
    let small = CorpusSettings {
        window_bytes: 1 << 20,
        max_line_bytes: 1 << 20,
        table: Some("v".into()),
        ..settings()
    };
    let mut entries = CorpusReader::open(&[dir.path().join("view.db")], small).unwrap();
    let found = entries.next().unwrap().unwrap_err().to_string();
    assert!(found.contains("more than half of --memory"), "{found}");
    // A writer in between is detected.
    let mut entries = CorpusReader::open(&[&path], settings()).unwrap();
    assert!(entries.next().unwrap().is_ok());
    let database = rusqlite::Connection::open(&path).unwrap();
    database
        .execute_batch("INSERT INTO t VALUES (3, 'c')")
        .unwrap();
    let last = entries.last().unwrap();
    assert!(
        last.unwrap_err()
            .to_string()
            .contains("was written to while it was read")
    );
}

#[test]
fn scores_are_read_exactly() {
    let settings = CorpusSettings {
        score_field: Some(FieldPath::from_name("n")),
        ..settings()
    };
    let score = |number: &str| {
        let line = format!("{{\"id\":1,\"text\":\"\",\"n\":{number}}}");
        let document = line::parse(line.as_bytes(), &settings, || unreachable!()).unwrap();
        document.score.unwrap()
    };
    let numbers = [
        "-9007199254740993",
        "-9007199254740992",
        "0.5",
        "9007199254740992",
        "9007199254740993",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551614",
        "18446744073709551615",
        "1e300",
    ];
    for pair in numbers.windows(2) {
        assert!(score(pair[0]) < score(pair[1]), "{pair:?}");
    }
}

mod embeddings;
#[cfg(feature = "tables")]
mod hostile_tables;
#[cfg(feature = "warc")]
mod warc;
