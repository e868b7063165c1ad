//! Documents, keys, payloads and stamps from nothing to the greatest: texts of 300,000 bytes, of a megabyte with
//! `RESEMBLANCE_TESTS=all`, or of 100 with `RESEMBLANCE_LONG`.

use std::io::Read;
use std::time::Instant;

use resemblance::schema::Permutations;
use resemblance::{
    BulkOptions, Document, Error, MinHash, Result, Schema, Signature, SimHash, Store, StoreOptions,
    Text,
};

use crate::common::sample::{is_all, one_in, trials};
use crate::common::small::{schema, signature};
use crate::common::{Place, Random, check_clean, refused};
use crate::limits::{is_long, note};

fn size_bytes() -> usize {
    if is_long() {
        100_000_000
    } else {
        trials(300_000, 1_000_000)
    }
}

fn kinds() -> Vec<Schema> {
    let minhash = |kind: MinHash, text| Schema::builder().minhash(kind).text(text);
    let simhash = |kind: SimHash, text| Schema::builder().simhash(kind).text(text);
    let tabulation = MinHash::new(64).permutations(Permutations::Tabulation);
    let builders = [
        minhash(MinHash::new(128), Text::words(5)),
        minhash(tabulation, Text::characters(256)),
        minhash(MinHash::one_pass(1_024), Text::code(5)),
        minhash(MinHash::bottom_k(1_024), Text::characters(9)),
        minhash(MinHash::weighted(128).value_bits(4), Text::words(1)),
        simhash(SimHash::bits64(), Text::words(256)),
        simhash(SimHash::bits128(), Text::words(3)),
    ];
    builders.map(|builder| builder.build().unwrap()).into()
}

/// Returns texts of `size_bytes`: ordinary text, one endless word, one repeated word, separators
/// only, and scalar values of four bytes.
fn texts() -> [(&'static str, String); 5] {
    let size = size_bytes();
    let mut words = String::with_capacity(size + 16);
    let mut random = Random(1);
    while words.len() < size {
        let word = random.below(200_000);
        words.push_str(&format!("w{word:x} "));
    }
    [
        ("words", words),
        ("one word", "x".repeat(size)),
        ("a word again and again", "again ".repeat(size / 6)),
        ("blanks", " \n".repeat(size / 2)),
        ("wide", "\u{10400}\u{1f600} ".repeat(size / 9)),
    ]
}

/// Hands out pieces of uneven lengths, which cut scalar values.
struct Pieces<'t> {
    rest: &'t [u8],
    random: Random,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = self.rest.len().min(buffer.len());
        let length = most.min(1 + self.random.below(70_000) as usize);
        let (piece, rest) = self.rest.split_at(length);
        buffer[..length].copy_from_slice(piece);
        self.rest = rest;
        Ok(length)
    }
}

/// Each text by one kind in two, by each with `RESEMBLANCE_TESTS=all`.
#[test]
fn long_texts_are_sketched_whole_and_in_pieces() {
    let (kinds, distance) = (kinds(), one_in(2));
    for (number, (name, text)) in texts().into_iter().enumerate() {
        for schema in kinds.iter().skip(number % distance).step_by(distance) {
            let begun = Instant::now();
            let sketcher = schema.sketcher();
            let whole = sketcher.text(&text).unwrap();
            let pieces = Pieces {
                rest: text.as_bytes(),
                random: Random(2),
            };
            let streamed = sketcher.text_reader(pieces).unwrap();
            assert_eq!(whole, streamed, "{name}, {schema}");
            let is_nothing = name == "blanks";
            assert_eq!(whole.is_empty(), is_nothing, "{name}, {schema}");
            let empty = sketcher.text("").unwrap();
            assert_eq!(whole == empty, is_nothing, "{name}, {schema}");
            note(&format!("{} bytes of {name}, {schema}", text.len()), begun);
        }
    }
}

#[test]
fn a_long_text_is_stored_and_found_beside_an_empty_one() {
    let [(_, text), ..] = texts();
    for schema in kinds() {
        let place = Place::new();
        let store = Store::create(place.store(), schema.clone()).unwrap();
        let long = store.sketch_text(&text).unwrap();
        let empty = store.sketch_text("").unwrap();
        store.insert("long", &long).unwrap();
        store.insert("empty", &empty).unwrap();
        let snapshot = store.snapshot().unwrap();
        let found = snapshot.query(&long).run().unwrap();
        assert_eq!(found.len(), 1, "{schema}");
        assert_eq!(found[0].key(), Some(&b"long"[..]));
        assert!(snapshot.query(&empty).run().unwrap().is_empty());
        let stored = snapshot.get("empty").unwrap().unwrap();
        assert!(stored.signature().is_empty());
        drop((snapshot, store));
        check_clean(&place.store());
    }
}

/// A way in.
type Insert = fn(&Store, Document<'_>, &Signature) -> Result<()>;

/// The number of the remaining way: an offline build.
const BUILD: usize = WAYS.len();

const WAYS: [Insert; 4] = [
    |store, document, signature| {
        let mut transaction = store.begin_write()?;
        transaction.insert(document, signature)?;
        transaction.commit()
    },
    |store, document, signature| {
        let mut transaction = store.begin_write()?;
        transaction.upsert(document, signature)?;
        transaction.commit()
    },
    |store, document, signature| {
        let mut transaction = store.begin_write()?;
        transaction.insert_if_new(document, signature)?;
        transaction.commit()
    },
    |store, document, signature| {
        let mut transaction = store.begin_write()?;
        transaction.insert_many(&[(document, signature)]).run()?;
        transaction.commit()
    },
];

/// Inserts documents with the shortest and longest keys, payloads and stamps, each in a separate
/// store. The longest payload takes long to write, so unless long tests are requested, one way of a
/// transaction and a build suffice for it.
fn extremes(way: usize) -> Vec<(Vec<u8>, Vec<u8>, u64)> {
    let largest = if is_long() || way == 0 || way == BUILD && is_all() {
        64 << 20
    } else {
        1 << 20
    };
    vec![
        (Vec::new(), Vec::new(), 0),
        (vec![0], vec![0], u64::MAX),
        (vec![0xff; 4_096], vec![1; 3], 1),
        (vec![0; 4_096], Vec::new(), u64::MAX - 1),
        (b"large".to_vec(), vec![7; largest], u64::MAX),
    ]
}

fn holds_extremes(store: &Store, way: usize, extremes: &[(Vec<u8>, Vec<u8>, u64)]) {
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.len(), extremes.len() as u64, "way {way}");
    for (number, (key, payload, stamp)) in (0..).zip(extremes) {
        let record = snapshot.get(key).unwrap().unwrap();
        assert!(record.payload() == payload, "way {way}");
        assert_eq!((record.key(), record.stamp()), (Some(&key[..]), *stamp));
        assert!(snapshot.contains(key).unwrap());
        assert_eq!(snapshot.key(record.id()).unwrap().as_ref(), Some(key));
        let found = snapshot.query(&signature(number)).run().unwrap();
        assert_eq!((found.len(), found[0].key()), (1, Some(&key[..])));
    }
    let [long, longer] = [vec![0; 4_097], vec![0; 100_000]];
    for key in [long, longer] {
        assert!(!snapshot.contains(&key).unwrap());
        assert!(snapshot.get(&key).unwrap().is_none());
    }
}

#[test]
fn keys_payloads_and_stamps_at_their_limits_are_stored() {
    let (long_key, long_payload) = (vec![0; 4_097], vec![0; (64 << 20) + 1]);
    for (way, insert) in WAYS.into_iter().enumerate() {
        let place = Place::new();
        let options = StoreOptions::new().flush_after(2);
        let store = options.create(place.store(), schema()).unwrap();
        let extremes = extremes(way);
        for (number, (key, payload, stamp)) in (0..).zip(&extremes) {
            let document = Document::new(key).payload(payload).stamp(*stamp);
            insert(&store, document, &signature(number)).unwrap();
        }
        refused(
            insert(&store, Document::new(&long_key), &signature(90)),
            "key",
        );
        let document = Document::new("new").payload(&long_payload);
        refused(insert(&store, document, &signature(91)), "payload");
        holds_extremes(&store, way, &extremes);
        drop(store);
        check_clean(&place.store());
        holds_extremes(&Store::open(place.store()).unwrap(), way, &extremes);
    }
}

#[test]
fn keys_payloads_and_stamps_at_their_limits_are_built() {
    let (long_key, long_payload) = (vec![0; 4_097], vec![0; (64 << 20) + 1]);
    let place = Place::new();
    let mut build = Store::bulk_build(place.store(), schema(), &BulkOptions::new()).unwrap();
    let extremes = extremes(BUILD);
    for (number, (key, payload, stamp)) in (0..).zip(&extremes) {
        let document = Document::new(key).payload(payload).stamp(*stamp);
        build.insert(document, &signature(number)).unwrap();
    }
    refused(
        build.insert(Document::new(&long_key), &signature(90)),
        "key",
    );
    let document = Document::new("new").payload(&long_payload);
    refused(build.insert(document, &signature(91)), "payload");
    let other = build.insert(Document::new("new"), &Signature::from_simhash(5));
    assert!(matches!(other, Err(Error::SignatureMismatch { .. })));
    assert_eq!(build.finish().unwrap().documents, extremes.len() as u64);
    check_clean(&place.store());
    holds_extremes(&Store::open(place.store()).unwrap(), BUILD, &extremes);
}
