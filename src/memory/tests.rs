//! Compares collections with stores built from the same documents.

use std::ops::ControlFlow;
use std::sync::Mutex;

use super::Collection;
use crate::sample::{one_in, trials};
use crate::{
    BulkOptions, Document, DocumentId, DuplicateKeys, Error, MinHash, Pair, Schema, Signature,
    SimHash, Store, Text,
};
use resemblance_sketch::EmptyDocuments;

/// Documents that fill a mebibyte: fewer in a usual run, which have more to hold.
fn document_count() -> u64 {
    trials(500, 1_500)
}

/// The contents of each document.
fn payload() -> Vec<u8> {
    b"payload".repeat(trials(400, 1))
}

/// Texts in groups of ten that are near each other, some without words, some with an earlier key.
fn documents(schema: &Schema) -> Vec<(Option<String>, Signature)> {
    let sketcher = schema.sketcher();
    let document = |number: u64| {
        let family = number % 150;
        let words = (0..40).map(|word| match (number * 7 + word * 13) % 211 {
            0..8 => format!("own{number}x{word}"),
            _ => format!("w{family}x{word}"),
        });
        let text = words.collect::<Vec<_>>().join(" ");
        let text = if number % 97 == 5 { "" } else { &text };
        let key = match number % 10 {
            3 => None,
            7 => Some(format!("key {}", number % 100)),
            _ => Some(format!("key {number}")),
        };
        (key, sketcher.text(text).unwrap())
    };
    (0..document_count()).map(document).collect()
}

fn as_document<'d>(key: Option<&'d str>, payload: &'d [u8]) -> Document<'d> {
    let document = key.map_or_else(Document::without_key, Document::new);
    document.stamp(7).payload(payload)
}

/// The results of a job: pairs, clusters, the documents that were left out, and some documents.
#[derive(Debug, PartialEq)]
struct Answers {
    pairs: Vec<Pair>,
    clusters: Vec<Vec<DocumentId>>,
    left_out: Vec<(DocumentId, Vec<u8>)>,
    documents: u64,
    sample: Vec<Option<PlainRecord>>,
}

/// Key, signature, stamp and payload of a document.
type PlainRecord = (Option<Vec<u8>>, Signature, u64, Vec<u8>);

fn sample(
    get: impl Fn(DocumentId) -> crate::Result<Option<crate::Record>>,
) -> Vec<Option<PlainRecord>> {
    let record = |id| {
        let record = get(DocumentId::new(id)).unwrap()?;
        Some((
            record.key().map(<[u8]>::to_vec),
            record.signature().clone(),
            record.stamp(),
            record.payload().to_vec(),
        ))
    };
    (0..document_count() + 5).step_by(7).map(record).collect()
}

fn of_store(
    schema: &Schema,
    documents: &[(Option<String>, Signature)],
    rule: DuplicateKeys,
) -> Answers {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.rsm");
    let options = BulkOptions::new().duplicate_keys(rule);
    let mut build = Store::bulk_build(&path, schema.clone(), &options).unwrap();
    let payload = payload();
    for (key, signature) in documents {
        let document = as_document(key.as_deref(), &payload);
        build.insert(document, signature).unwrap();
    }
    let left_out = Mutex::new(Vec::new());
    let build = build.on_duplicate(|id, key| {
        left_out.lock().unwrap().push((id, key.to_vec()));
        ControlFlow::Continue(())
    });
    build.finish().unwrap();
    let snapshot = Store::open(&path).unwrap().snapshot().unwrap();
    Answers {
        pairs: snapshot
            .pairs()
            .run()
            .unwrap()
            .map(Result::unwrap)
            .collect(),
        clusters: snapshot.clusters().run().unwrap().collect(),
        left_out: left_out.into_inner().unwrap(),
        documents: snapshot.len(),
        sample: sample(|id| snapshot.get_id(id)),
    }
}

fn of_collection(
    schema: &Schema,
    documents: &[(Option<String>, Signature)],
    rule: DuplicateKeys,
    memory_bytes: u64,
) -> Answers {
    let folder = tempfile::tempdir().unwrap();
    let options = BulkOptions::new()
        .duplicate_keys(rule)
        .memory_bytes(memory_bytes);
    let mut collection = Collection::new(folder.path(), schema.clone(), &options).unwrap();
    let payload = payload();
    for (key, signature) in documents {
        let document = as_document(key.as_deref(), &payload);
        collection.insert(document, signature).unwrap();
    }
    assert_eq!(collection.len(), document_count());
    assert_eq!(collection.is_in_memory(), memory_bytes > 1 << 24);
    let left_out = Mutex::new(Vec::new());
    let collection = collection.on_duplicate(|id, key| {
        left_out.lock().unwrap().push((id, key.to_vec()));
        ControlFlow::Continue(())
    });
    let collected = collection.finish().unwrap();
    let joined = collected.pairs().threads(2).run().unwrap();
    let answers = Answers {
        pairs: joined.map(Result::unwrap).collect(),
        clusters: collected.clusters().run().unwrap().collect(),
        left_out: left_out.into_inner().unwrap(),
        documents: collected.len(),
        sample: sample(|id| collected.get_id(id)),
    };
    drop(collected);
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 0, "files are left");
    answers
}

/// Each schema with one of the rules and, on disk or in memory, one of the sizes in turn. With all of them,
/// and more documents, with `RESEMBLANCE_TESTS=all`.
#[test]
fn memory_index_answers_as_a_store() {
    let distance = one_in(2);
    let text = || Schema::builder().text(Text::words(2));
    let many = || MinHash::new(256).threshold(0.6);
    let schemas = [
        text().minhash(many()),
        text()
            .minhash(many())
            .empty_documents(EmptyDocuments::Alike),
        text().minhash(many().value_bits(8)),
        text().minhash(MinHash::bottom_k(64)),
        text()
            .simhash(SimHash::bits64().max_distance(6))
            .minhash(many()),
        text()
            .simhash(SimHash::bits128().max_distance(9))
            .minhash(many()),
    ];
    for (number, schema) in schemas.into_iter().enumerate() {
        let schema = schema.build().unwrap();
        let documents = documents(&schema);
        let rules = [DuplicateKeys::KeepFirst, DuplicateKeys::KeepLast].into_iter();
        for rule in rules.skip(number % distance).step_by(distance) {
            let expected = of_store(&schema, &documents, rule);
            assert!(!expected.left_out.is_empty());
            assert!(number == 3 || expected.pairs.len() > 100, "schema {number}");
            let sizes = [1 << 20, 1 << 30].into_iter();
            for memory_bytes in sizes.skip(number / 2 % distance).step_by(distance) {
                // Bottom-k has rows too small to fill a mebibyte.
                if number == 3 && memory_bytes == 1 << 20 {
                    continue;
                }
                let found = of_collection(&schema, &documents, rule, memory_bytes);
                assert!(
                    found == expected,
                    "schema {number}, {rule:?}, {memory_bytes}"
                );
            }
        }
    }
}

#[test]
fn memory_index_names_the_first_repeated_key() {
    let schema = Schema::builder()
        .text(Text::words(2))
        .minhash(MinHash::new(64));
    let schema = schema.build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut collection =
        Collection::new(folder.path(), schema.clone(), &BulkOptions::new()).unwrap();
    let signature = schema.sketcher().text("some text").unwrap();
    for key in ["a", "b", "c", "b", "a"] {
        collection.insert(key, &signature).unwrap();
    }
    match collection.finish().unwrap_err() {
        Error::KeyTwice { key, first, second } => {
            assert_eq!((&key[..], first.get(), second.get()), (&b"b"[..], 1, 3));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn memory_index_survives_bad_input_and_stops_on_request() {
    let schema = Schema::builder()
        .text(Text::words(2))
        .minhash(MinHash::new(64));
    let schema = schema.build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let options = BulkOptions::new().duplicate_keys(DuplicateKeys::KeepFirst);
    let mut collection = Collection::new(folder.path(), schema.clone(), &options).unwrap();
    let signature = schema.sketcher().text("some text").unwrap();
    collection.insert("a", &signature).unwrap();
    let long = "k".repeat(5_000);
    assert!(collection.insert(long.as_str(), &signature).is_err());
    let other = Signature::from_minhash(vec![1, 2, 3]);
    assert!(collection.insert("b", &other).is_err());
    collection.insert("a", &signature).unwrap();
    assert_eq!(collection.len(), 2);
    let stopped = collection
        .on_duplicate(|_, _| ControlFlow::Break(()))
        .finish();
    assert!(matches!(stopped, Err(Error::Stopped { .. })), "{stopped:?}");
}
