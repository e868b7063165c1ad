//! Streams of documents, read and written by section 13 alone.

use resemblance::schema::Rebanding;
use resemblance::{MinHash, Schema, SimHash, Store, Text};
use xxhash_rust::xxh3::xxh3_64;

use crate::spec::bytes::Bytes;
use crate::spec::dump;
use crate::spec::reader::{self, Document};
use crate::spec::schema;
use crate::spec::{code_block, hex, unhex};

const MAGIC: &[u8] = b"RESEMBX\x1a";

fn specified() -> Vec<u8> {
    let lines = code_block("stream").into_iter();
    let lines = lines.filter(|line| !line.starts_with("frame "));
    let bytes = lines.map(|line| unhex(line.split('#').next().unwrap()));
    bytes.collect::<Vec<_>>().concat()
}

/// Kind and body of each frame; their checksums are right.
fn frames(stream: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut bytes = Bytes::new(stream);
    assert_eq!(bytes.take(8), MAGIC);
    let mut frames = Vec::new();
    while !bytes.rest().is_empty() {
        let frame = bytes.rest();
        let (kind, length) = (bytes.u8(), bytes.u32() as usize);
        let body = bytes.take(length).to_vec();
        let number = (frames.len() as u64).to_le_bytes();
        let crc = crc32fast::hash(&[&number, &frame[..5 + length]].concat());
        assert_eq!(bytes.u32(), crc);
        frames.push((kind, body));
    }
    frames
}

/// The contents of a stream: a schema, a self-test and documents with their ids.
struct Stream {
    schema: schema::Schema,
    self_test: (u64, u64),
    documents: Vec<(u64, Document)>,
}

fn read(stream: &[u8]) -> Stream {
    let frames = frames(stream);
    let kinds: Vec<u8> = frames.iter().map(|(kind, _)| *kind).collect();
    let count = frames.len() - 2;
    assert_eq!(kinds, [vec![1], vec![2; count], vec![3]].concat());
    let mut bytes = Bytes::new(&frames[0].1);
    assert_eq!((bytes.u16(), bytes.u16()), (1, 1));
    assert_eq!(bytes.u64(), count as u64);
    let self_test = (bytes.u64(), bytes.u64());
    let schema = schema::Schema::decode(&mut bytes);
    assert!(bytes.rest().is_empty());
    let document = |(_, body): &(u8, Vec<u8>)| {
        let mut bytes = Bytes::new(body);
        let (id, length) = (bytes.u64(), bytes.u32() as usize);
        let mut row = Bytes::new(bytes.take(length));
        let (head, signature) = reader::read_document(&mut row, &schema);
        let payload = bytes.rest().to_vec();
        assert_eq!(head.has_payload, !payload.is_empty());
        let document = Document {
            key: head.key,
            stamp: head.stamp,
            payload,
            signature,
        };
        (id, document)
    };
    let documents = frames[1..=count].iter().map(document).collect();
    let mut end = Bytes::new(&frames[count + 1].1);
    assert_eq!(end.u64(), count as u64);
    let before = stream.len() - (1 + 4 + 16 + 4);
    assert_eq!(end.u64(), xxh3_64(&stream[..before]));
    assert!(end.rest().is_empty());
    Stream {
        schema,
        self_test,
        documents,
    }
}

/// A stream of frames.
fn write(frames: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut stream = MAGIC.to_vec();
    for (number, (kind, body)) in (0u64..).zip(frames) {
        let mut frame = vec![*kind];
        frame.extend((body.len() as u32).to_le_bytes());
        frame.extend(body);
        let crc = crc32fast::hash(&[&number.to_le_bytes(), frame.as_slice()].concat());
        stream.extend(frame);
        stream.extend(crc.to_le_bytes());
    }
    stream
}

fn export(store: &Store) -> Vec<u8> {
    let mut stream = Vec::new();
    store.snapshot().unwrap().export(&mut stream).run().unwrap();
    stream
}

#[test]
fn stream_of_two_documents_matches_the_specification() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two.rsm");
    dump::make(&path);
    let store = Store::open(&path).unwrap();
    let stream = export(&store);
    assert_eq!(hex(&stream), hex(&specified()));
    let read = read(&stream);
    drop(store);
    let store = reader::Store::read(&path);
    assert_eq!(read.schema, store.schema);
    assert_eq!(read.self_test, store.self_test);
    assert!(read.documents.into_iter().eq(store.documents));
    assert_eq!(write(&frames(&stream)), stream);
}

#[test]
fn independent_reader_reads_exported_streams() {
    let with = |minhash| {
        let builder = Schema::builder().text(Text::words(1)).minhash(minhash);
        builder.simhash(SimHash::bits128())
    };
    let builders = [
        with(MinHash::new(32)),
        with(MinHash::new(32).value_bits(32)),
        with(MinHash::new(32).value_bits(2)),
        with(MinHash::bottom_k(64)),
        with(MinHash::new(32)).exact(),
        with(MinHash::weighted(32)).exact(),
    ];
    for builder in builders {
        let schema = builder.build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.rsm");
        let store = Store::create(&path, schema).unwrap();
        for number in 0..50u32 {
            let text: String = (0..number)
                .map(|word| format!("w{} ", word * 7 % 61))
                .collect();
            let signature = store.sketch_text(&text).unwrap();
            let key = (number % 40).to_le_bytes();
            store.upsert(key, &signature).unwrap();
        }
        let stream = read(&export(&store));
        drop(store);
        let store = reader::Store::read(&path);
        assert_eq!(stream.schema, store.schema);
        assert_eq!(stream.self_test, store.self_test);
        assert_eq!(stream.documents.len(), 40);
        assert!(stream.documents.into_iter().eq(store.documents));
    }
}

type Change = fn(&mut Vec<u8>);

/// A stream that is assembled by the specification is imported. A stream that differs from what a
/// writer writes is refused, even if its checksums are right.
#[test]
fn streams_written_by_the_specification_are_imported() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    dump::make(&file("two.rsm"));
    let old = Store::open(file("two.rsm")).unwrap();
    let two = frames(&specified());
    let sealed = |mut frames: Vec<(u8, Vec<u8>)>| {
        let count = frames.len() as u64 - 1;
        let digest = xxh3_64(&write(&frames));
        frames.push((3, [count.to_le_bytes(), digest.to_le_bytes()].concat()));
        write(&frames)
    };
    // The second document twice, which has no key.
    let twice = vec![
        two[0].clone(),
        two[1].clone(),
        two[2].clone(),
        two[2].clone(),
    ];
    let schema = old.schema().clone();
    let other = schema.rebanded(&Rebanding::new().threshold(0.4)).unwrap();
    let new = Store::create(file("new.rsm"), other).unwrap();
    let report = new.import(&sealed(twice)[..]).run();
    assert_eq!(report.unwrap().inserted, 3);
    let snapshot = new.snapshot().unwrap();
    let second = old.snapshot().unwrap().iter().nth(1).unwrap().unwrap();
    let found = snapshot.query(second.signature()).run().unwrap();
    assert!(found.len() >= 2);

    // Document 0 has its row at byte 12, and its payload at its end.
    let changes: [(&str, Change); 9] = [
        ("a byte more in the row", |body| {
            body.insert(96, 0);
            body[8] += 1;
        }),
        ("a byte less in the row", |body| {
            body.remove(95);
            body[8] -= 1;
        }),
        ("another kind of row", |body| body[12] = 0xe2),
        ("no payload", |body| body.truncate(96)),
        ("a payload without its bit", |body| body[12] = 0x61),
        ("a stamp of 0", |body| body[13] = 0),
        ("a longer key", |body| body[21] = 5),
        ("a longer row", |body| body[8] += 1),
        ("a row beyond the body", |body| body[9] = 1),
    ];
    for (what, change) in changes {
        let mut forged = two[..3].to_vec();
        change(&mut forged[1].1);
        let store = Store::create(file(&what.replace(' ', "-")), schema.clone()).unwrap();
        let refused = store.import(&sealed(forged)[..]).run();
        assert!(refused.is_err(), "{what}");
        assert!(store.snapshot().unwrap().is_empty());
    }
    // A newer version is distinguished from damage.
    let mut newer = two[..3].to_vec();
    newer[0].1[2] = 2;
    let refused = new.import(&sealed(newer)[..]).run();
    assert!(matches!(
        refused,
        Err(resemblance::Error::NewerFormat { found: 2, .. })
    ));
}
