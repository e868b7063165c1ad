//! Document frequencies that a store keeps: its features weigh by them, and no others are let in.

use crate::common::{Place, check_clean, refused};
use resemblance::schema::{DocumentFrequencies, SketchError};
use resemblance::{
    BulkOptions, Closed, Document, Error, MinHash, Schema, SimHash, Sketcher, Store, Text,
};

const CORPUS: [&str; 6] = [
    "the cat sat on the mat",
    "the dog sat on the log",
    "the bird and the bee",
    "a cat and a dog and a bird",
    "the log of the cat",
    "the mat of the dog",
];

fn plain() -> Schema {
    let minhash = MinHash::weighted(64).threshold(0.7);
    let builder = Schema::builder().text(Text::words(1)).minhash(minhash);
    builder.simhash(SimHash::bits64()).build().unwrap()
}

fn frequencies(texts: &[&str]) -> DocumentFrequencies {
    let mut frequencies = DocumentFrequencies::new();
    for text in texts {
        frequencies.add_text(&plain().sketcher(), text).unwrap();
    }
    frequencies
}

fn weighted() -> Schema {
    plain().with_weights(frequencies(&CORPUS)).unwrap()
}

fn filled(path: &std::path::Path) {
    let store = Store::create(path, weighted()).unwrap();
    for (number, text) in CORPUS.iter().enumerate() {
        let signature = store.sketch_text(text).unwrap();
        store.insert(number.to_string(), &signature).unwrap();
    }
    assert_eq!(store.close().unwrap(), Closed::File);
}

#[track_caller]
fn finds_all(path: &std::path::Path) {
    let store = Store::open(path).unwrap();
    assert_eq!(store.schema().weights(), Some(&frequencies(&CORPUS)));
    assert_eq!(
        store.schema().sketcher().text("a b").unwrap(),
        store.sketch_text("a b").unwrap()
    );
    let snapshot = store.snapshot().unwrap();
    for (number, text) in CORPUS.iter().enumerate() {
        let signature = store.sketch_text(text).unwrap();
        let found = snapshot.query(&signature).run().unwrap();
        assert_eq!(found[0].key(), Some(number.to_string().as_bytes()));
    }
    drop((snapshot, store));
    check_clean(path);
}

#[test]
fn store_applies_its_stored_weights() {
    let place = Place::new();
    filled(&place.store());
    finds_all(&place.store());
    let sketcher = Store::open(place.store()).unwrap().sketcher();
    let by_hand = plain().sketcher();
    for text in CORPUS {
        let expected = by_hand.weighted_text(text, &frequencies(&CORPUS)).unwrap();
        let found = sketcher.text(text).unwrap();
        assert_eq!(found.simhash(), expected.simhash());
        assert_eq!(found.minhash(), expected.minhash());
        let words: Vec<&str> = text.split(' ').collect();
        assert_eq!(sketcher.features(words).unwrap(), found);
        assert_eq!(sketcher.text_reader(text.as_bytes()).unwrap(), found);
        let same = sketcher.weighted_text(text, &frequencies(&CORPUS));
        assert_eq!(same.unwrap(), found);
    }
    assert!(matches!(
        sketcher.streamed_text(),
        Err(SketchError::InvalidParameter { .. })
    ));
}

#[test]
fn different_weights_are_refused() {
    let place = Place::new();
    filled(&place.store());
    let store = Store::open(place.store()).unwrap();
    let refused = |sketcher: &Sketcher| {
        let signature = sketcher.text("the cat sat").unwrap();
        let inserted = store.insert("new", &signature);
        assert!(
            matches!(inserted, Err(Error::SignatureMismatch { .. })),
            "{inserted:?}"
        );
        let snapshot = store.snapshot().unwrap();
        let found = snapshot.query(&signature).run();
        assert!(matches!(found, Err(Error::SignatureMismatch { .. })));
    };
    let others = frequencies(&CORPUS[1..]);
    refused(&plain().sketcher());
    refused(&plain().with_weights(others.clone()).unwrap().sketcher());
    let weighed = store.sketcher().weighted_text("the cat", &others);
    assert!(matches!(weighed, Err(SketchError::InvalidParameter { .. })));
    // And the other way round.
    let other = Store::create(place.file("plain.rsm"), plain()).unwrap();
    let signature = store.sketch_text("the cat").unwrap();
    assert!(matches!(
        other.insert(Document::without_key(), &signature),
        Err(Error::SignatureMismatch { .. })
    ));
}

#[test]
fn every_copy_keeps_the_weights() {
    let place = Place::new();
    let path = place.store();
    filled(&path);
    let store = Store::open(&path).unwrap();
    let copy = place.file("copy.rsm");
    store.snapshot().unwrap().backup(&copy).run().unwrap();
    finds_all(&copy);
    let mut stream = Vec::new();
    store.snapshot().unwrap().export(&mut stream).run().unwrap();
    drop(store);
    let repaired = place.file("repaired.rsm");
    Store::repair(&path, &repaired).run().unwrap();
    finds_all(&repaired);
    Store::compact(&path).run().unwrap();
    finds_all(&path);
    let imported = place.file("imported.rsm");
    let into = Store::create(&imported, weighted()).unwrap();
    into.import(stream.as_slice()).run().unwrap();
    assert_eq!(into.close().unwrap(), Closed::File);
    finds_all(&imported);
    let other = Store::create(place.file("plain.rsm"), plain()).unwrap();
    let refused = other.import(stream.as_slice()).run();
    assert!(matches!(
        refused,
        Err(Error::OtherRecipe {
            part: "weights of features",
            ..
        })
    ));
    let built = place.file("built.rsm");
    let mut build = Store::bulk_build(&built, weighted(), &BulkOptions::new()).unwrap();
    let sketcher = weighted().sketcher();
    for (number, text) in CORPUS.iter().enumerate() {
        let key = number.to_string();
        build
            .insert(Document::new(&key), &sketcher.text(text).unwrap())
            .unwrap();
    }
    build.finish().unwrap();
    finds_all(&built);
}

#[test]
fn unweighted_signatures_refuse_weights() {
    let minhash = |minhash| Schema::builder().minhash(minhash).build().unwrap();
    for schema in [minhash(MinHash::new(64)), minhash(MinHash::external(64))] {
        refused(schema.with_weights(frequencies(&CORPUS)), "weights");
    }
}

/// A store with 1,048,576 features was written and could never be opened again.
#[test]
fn weights_of_any_number_of_features_are_read() {
    let place = Place::new();
    let path = place.store();
    let features = 1 << 20;
    let counts = (0..features).map(|hash: u64| (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15), 1));
    let weights = DocumentFrequencies::from_counts(features, counts).unwrap();
    let schema = plain().with_weights(weights.clone()).unwrap();
    let store = Store::create(&path, schema).unwrap();
    store
        .insert("a", &store.sketch_text("a b").unwrap())
        .unwrap();
    assert_eq!(store.close().unwrap(), Closed::File);
    check_clean(&path);
    let repaired = place.file("repaired.rsm");
    Store::repair(&path, &repaired).run().unwrap();
    for path in [path, repaired] {
        let store = Store::open(path).unwrap();
        assert_eq!(store.schema().weights(), Some(&weights));
    }
}
