//! The functions of the fuzz targets `json_lines` and `warc`, which read arbitrary bytes as a file.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken promise should stop the fuzzer"
)]

use std::borrow::Cow;
use std::fs::File;
use std::io::{Seek, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde_json::Value;

use super::documents::Corpus;
use super::error::CorpusError;
use super::input::{Compression, Encoder};
use super::line;
use super::reader::CorpusRecords;
#[cfg(feature = "warc")]
use super::record::CorpusDocument;
use super::record::CorpusRecord;
use super::settings::{CorpusSettings, SourceKind};
use super::source::{CorpusSource, SourceOrigin};
use super::store_file::STORE_MAGIC;
#[cfg(feature = "warc")]
use super::warc::{ArchiveCopy, PageFate};

/// Reads bytes as a file of lines: as they are, compressed, and compressed and truncated. Also
/// reads them as compressed data.
pub fn json_lines(data: &[u8]) {
    let (&[which, cut], bytes) = data.split_first_chunk().unwrap_or((&[0, 0], data));
    let names = [
        "plain.jsonl",
        "claimed.jsonl.gz",
        "claimed.jsonl.zst",
        "claimed.jsonl.bz2",
        "claimed.jsonl.xz",
    ];
    if which % 2 == 1 {
        let name = names[usize::from(which / 2) % names.len()];
        let (records, _) = read(name, bytes);
        records.iter().for_each(|record| any_line(&record.bytes));
        return;
    }
    let (records, result) = read(names[0], bytes);
    if bytes.starts_with(STORE_MAGIC) {
        assert!(result.is_err() && records.is_empty());
        return;
    }
    if Compression::from_content(bytes) != Compression::None {
        return;
    }
    result.unwrap();
    if let [
        CorpusRecord {
            problem: Some(_), ..
        },
    ] = records.as_slice()
    {
        // Bytes whose beginning shows that they are not text are not read.
        return;
    }
    assert_eq!(records, expected(bytes));
    records.iter().for_each(|record| any_line(&record.bytes));
    for (compression, name) in [
        (Compression::Gzip, names[1]),
        (Compression::Zstd, names[2]),
        (Compression::Bzip2, names[3]),
        (Compression::Xz, names[4]),
        (Compression::Gzip, names[0]),
        (Compression::Zstd, names[0]),
    ] {
        compressed(compression, name, bytes, &records, cut);
    }
}

fn compressed(
    compression: Compression,
    name: &str,
    bytes: &[u8],
    records: &[CorpusRecord],
    cut: u8,
) {
    let mut encoder = Encoder::new(compression, Vec::new()).unwrap();
    encoder.write_all(bytes).unwrap();
    let mut whole = encoder.finish().unwrap();
    let (found, result) = read(name, &whole);
    result.unwrap();
    assert_eq!(found, records);
    // A truncated file whose rest still identifies its format gives an error, never silently fewer
    // records.
    let left = 6 + usize::from(cut) * (whole.len() - 6) / 256;
    whole.truncate(left);
    let (found, result) = read(name, &whole);
    if let [
        CorpusRecord {
            problem: Some(problem),
            ..
        },
    ] = found.as_slice()
        && !problem.is_unreadable
        && result.is_ok()
    {
        // What is left begins like something other than text. The whole file is reported as that, and not read.
        return;
    }
    assert!(
        result.is_err(),
        "{name}: {left} bytes were taken for a whole file"
    );
    assert!(records.starts_with(&found));
}

/// Reads bytes as a WARC file, and copies all its records: the copy must have the same pages, and
/// no damaged records.
#[cfg(feature = "warc")]
pub fn warc(data: &[u8]) {
    let pages = |records: &[CorpusRecord], corpus: &Corpus| -> Vec<_> {
        let good = records.iter().filter(|record| record.problem.is_none());
        let parsed = good
            .filter(|record| record.documents() > 0)
            .map(|it| corpus.parse(it));
        // A key that is made has the number of the record in its file.
        let own_key = |page: &CorpusDocument<'_>| page.has_own_id.then(|| page.key.to_vec());
        let texts = parsed.map(|page| page.map(|page| (own_key(&page), page.content.into_owned())));
        texts.map(|page| page.map_err(|bad| bad.reason)).collect()
    };
    let corpus = corpus_of(SourceKind::Warc, "a.warc", data);
    let reader = CorpusRecords::new(Arc::clone(&corpus), Arc::default()).with_whole_tables();
    // A damaged dictionary, or a form of compression that is not one of WARC.
    let Ok(records) = reader.collect::<Result<Vec<_>, _>>() else {
        return;
    };
    let mut archive = ArchiveCopy::new(true);
    let mut copy = Vec::new();
    for record in records.iter().filter(|record| record.problem.is_none()) {
        archive.copy(record, PageFate::Copied, &mut copy).unwrap();
    }
    archive.end_file(&mut copy).unwrap();
    let expected = pages(&records, &corpus);
    let copied = corpus_of(SourceKind::Warc, "a.warc", &copy);
    let again = CorpusRecords::new(Arc::clone(&copied), Arc::default()).map(Result::unwrap);
    let again: Vec<_> = again.collect();
    assert_eq!(
        again.iter().find_map(|record| record.problem.as_ref()),
        None
    );
    assert_eq!(pages(&again, &copied), expected);
}

fn corpus_of(kind: SourceKind, name: &str, bytes: &[u8]) -> Arc<Corpus> {
    let mut file = spool();
    file.set_len(0).unwrap();
    file.rewind().unwrap();
    file.write_all(bytes).unwrap();
    let origin = SourceOrigin::Spool(Arc::new(file), name.into());
    Arc::new(Corpus {
        sources: vec![CorpusSource::new(kind, origin, name)],
        settings: CorpusSettings::default(),
        notes: Vec::new(),
        trims: None,
        left: Arc::default(),
        passed_over: Arc::default(),
    })
}

/// Returns all records up to an error.
fn read(name: &str, bytes: &[u8]) -> (Vec<CorpusRecord>, Result<(), CorpusError>) {
    let corpus = corpus_of(SourceKind::Lines, name, bytes);
    let mut reader = CorpusRecords::new(corpus, Arc::new(AtomicU64::new(0)));
    let mut records = Vec::new();
    for record in reader.by_ref() {
        match record {
            Ok(record) => records.push(record),
            Err(error) => {
                let reported = format!("{error:?}");
                assert!(reported.contains("jsonl"), "{reported} names no file");
                return (records, Err(error));
            }
        }
    }
    let totals = reader.totals();
    assert_eq!(totals.records, records.len() as u64);
    let lines = records.last().map_or(0, |record| record.line);
    assert!(totals.records + totals.blank >= lines);
    (records, Ok(()))
}

/// Returns a temporary file, one for all runs of a thread.
fn spool() -> File {
    thread_local! {
        static SPOOL: File = {
            let name = format!("resemblance-{}-{:?}", std::process::id(), std::thread::current().id());
            let path = std::env::temp_dir().join(name);
            let mut options = File::options();
            let file = options.read(true).write(true).create_new(true).open(&path).unwrap();
            // The name is not needed. On systems that keep the name of an open file, it remains
            // until the system clears the folder.
            let _ = std::fs::remove_file(path);
            file
        };
    }
    SPOOL.with(|file| file.try_clone().unwrap())
}

/// Returns the nonblank lines, by definition.
fn expected(bytes: &[u8]) -> Vec<CorpusRecord> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let records = lines.zip(1..).map(|(whole, line)| {
        let rest = whole.strip_prefix(b"\xef\xbb\xbf").filter(|_| line == 1);
        CorpusRecord {
            has_mark: rest.is_some(),
            ..CorpusRecord::new(0, line, rest.unwrap_or(whole).to_vec())
        }
    });
    records
        .filter(|record| !record.bytes.trim_ascii().is_empty())
        .collect()
}

/// Compares the result for a line with that of a parser that keeps everything.
fn any_line(bytes: &[u8]) {
    let settings = CorpusSettings::default();
    let parsed = line::parse(bytes, &settings, Cow::default);
    let value: Option<Value> = serde_json::from_slice(bytes).ok();
    let field = |name: &str| value.as_ref().and_then(|value| value.get(name));
    match parsed {
        Ok(document) => {
            assert!(std::str::from_utf8(bytes).is_ok());
            // The other parser also checks unrequested values, such as numbers out of range.
            let Some(Value::Object(_)) = value else {
                assert!(value.is_none());
                return;
            };
            let text = field("text").map(|text| text.as_str().unwrap());
            assert_eq!(text, document.content.text());
            match (field("id"), (document.has_own_id, document.key)) {
                (None | Some(Value::Null), (false, _)) => {}
                (Some(Value::String(id)), (true, key)) => assert_eq!(id.as_bytes(), &*key),
                (Some(Value::Number(_)), (true, key)) => {
                    let key = std::str::from_utf8(&key).unwrap();
                    assert!(key.parse::<f64>().is_ok(), "{key}");
                }
                (id, key) => panic!("of {id:?} the key {key:?} was made"),
            }
        }
        Err(bad) => {
            let reason = bad.reason;
            assert!(!reason.is_empty());
            let is_text = field("text").is_some_and(Value::is_string);
            // If a field occurs twice, the other parser keeps the last.
            if is_text && field("id").is_some_and(Value::is_string) {
                let parts = ["twice", "expected a string", "not valid Unicode"];
                let may_be_refused = parts.iter().any(|part| reason.contains(part));
                assert!(may_be_refused, "{reason}");
            }
        }
    }
}
