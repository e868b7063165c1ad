//! Numbers of values, bands, rows, bits and tables at their bounds, against brute force; and just beyond.

use std::sync::Arc;

use resemblance::schema::{Rebanding, SketchError};
use resemblance::search::Scope;
use resemblance::{
    BulkOptions, Document, MinHash, Schema, SchemaBuilder, Signature, SimHash, Store,
};

use crate::common::oracle::{Entry, Model};
use crate::common::question::Question;
use crate::common::sample::{one_in, trials};
use crate::common::{Place, Random, check_clean, sealing_after};

fn minhash(minhash: MinHash) -> SchemaBuilder {
    Schema::builder().minhash(minhash)
}

fn simhash(simhash: SimHash, documents: u64) -> SchemaBuilder {
    Schema::builder()
        .simhash(simhash)
        .expected_documents(documents)
}

fn extremes() -> Vec<(&'static str, SchemaBuilder)> {
    let bits64 = |distance| SimHash::bits64().max_distance(distance);
    let bits128 = |distance| SimHash::bits128().max_distance(distance);
    vec![
        (
            "fewest values, one band",
            minhash(MinHash::new(16).banding(1, 1)),
        ),
        ("all in one band", minhash(MinHash::new(16).banding(1, 16))),
        ("most bands", minhash(MinHash::new(1_024).banding(1_024, 1))),
        (
            "most rows",
            minhash(MinHash::one_pass(1_024).banding(1, 1_024)),
        ),
        (
            "shortest codes",
            minhash(MinHash::new(32).banding(32, 1).code_bits(32)),
        ),
        (
            "longest codes",
            minhash(MinHash::new(32).banding(16, 2).code_bits(64)),
        ),
        (
            "one bit",
            minhash(MinHash::new(1_024).banding(128, 8).value_bits(1)),
        ),
        (
            "one bit of the fewest",
            minhash(MinHash::new(16).banding(16, 1).value_bits(1)),
        ),
        (
            "fewest hashes",
            minhash(MinHash::bottom_k(64).banding(8, 1)),
        ),
        (
            "most hashes",
            minhash(MinHash::bottom_k(1_024).banding(128, 1)),
        ),
        (
            "most hashes in a band",
            minhash(MinHash::bottom_k(1_024).banding(1, 128)),
        ),
        (
            "highest threshold",
            minhash(MinHash::new(64).threshold(1.0)),
        ),
        (
            "lowest threshold",
            minhash(MinHash::new(64).banding(64, 1).threshold(1e-9)),
        ),
        ("least distance", simhash(bits64(1), 1)),
        ("least distance of many", simhash(bits64(1), u64::MAX)),
        ("greatest distance", simhash(bits64(10), 1)),
        ("greatest distance of many", simhash(bits64(10), u64::MAX)),
        ("wide, least distance", simhash(bits128(1), u64::MAX)),
        ("wide, greatest distance", simhash(bits128(20), 1)),
        (
            "wide, greatest distance of many",
            simhash(bits128(20), u64::MAX),
        ),
    ]
}

/// How many documents a store has: families of four.
fn documents() -> u64 {
    trials(32, 100)
}

/// Families of four: all features of the family, but for a few or for many of its own.
fn signature(schema: &Schema, number: u64) -> Signature {
    const REPLACED: [u64; 4] = [0, 0, 1, 25];
    let (family, replaced) = (number / 4, REPLACED[(number % 4) as usize]);
    let feature = |place: u64| {
        let own = if place < replaced { number + 1 } else { 0 };
        Random(family * 1_000 + place).next().wrapping_add(own)
    };
    schema.sketcher().hashes((0..60).map(feature)).unwrap()
}

fn entry(schema: &Schema, number: u64) -> Entry {
    Entry {
        key: None,
        signature: signature(schema, number),
        stamp: 0,
        payload: Vec::new(),
    }
}

/// Everything that the store finds, as brute force does.
fn finds_all(store: &Store, model: &Model, name: &str) {
    let snapshot = store.snapshot().unwrap();
    let question = Question::default();
    for entry in model.documents.values().step_by(5) {
        let asked = &entry.signature;
        let expected = model.query(asked, &question, None).unwrap();
        let answer = snapshot.query(asked).run().unwrap();
        let ids: Vec<u64> = answer.iter().map(|found| found.id().get()).collect();
        let expected_ids: Vec<u64> = expected.found.iter().map(|found| found.id).collect();
        assert_eq!(ids, expected_ids, "{name}");
        // Of 128 bits a code tells a part of the distance only, so that more are compared.
        let compared = answer.candidates();
        let is_wide = asked.fingerprint().is_some_and(|it| it.bits() == 128);
        assert!(compared >= expected.compared, "{name}");
        // Where many buckets would be read, all are compared.
        let is_scan = answer.scope() == Scope::Scan;
        assert!(
            compared == expected.compared || is_wide || is_scan,
            "{name}"
        );
        let seen = snapshot.candidates(asked).unwrap();
        let mut expected = model.candidates(asked);
        expected.sort_unstable();
        assert!(seen.iter().map(|id| id.get()).eq(expected), "{name}");
    }
    let expected = model.pairs(&question).unwrap();
    let pairs = snapshot.pairs().threads(2).run().unwrap();
    let mut pairs: Vec<(u64, u64)> = pairs
        .map(Result::unwrap)
        .map(|pair| (pair.a.get(), pair.b.get()))
        .collect();
    pairs.sort_unstable();
    assert!(pairs.iter().eq(expected.keys()), "{name}");
    let least = documents() as usize / 5;
    assert!(pairs.len() >= least, "{name}: {} prove little", pairs.len());
}

/// One extreme in three with 32 documents, all with 100 with `RESEMBLANCE_TESTS=all`.
#[test]
fn schemas_at_their_bounds_find_what_brute_force_finds() {
    for (name, builder) in extremes().into_iter().step_by(one_in(3)) {
        let schema = builder.build().unwrap();
        let place = Place::new();
        let mut model = Model::new(schema.clone());
        let store = sealing_after(30)
            .create(place.store(), schema.clone())
            .unwrap();
        let path = place.file("built");
        let mut build = Store::bulk_build(&path, schema.clone(), &BulkOptions::new()).unwrap();
        let mut transaction = store.begin_write().unwrap();
        for number in 0..documents() {
            let signature = signature(&schema, number);
            transaction
                .insert(Document::without_key(), &signature)
                .unwrap();
            build.insert(Document::without_key(), &signature).unwrap();
            model.insert(entry(&schema, number));
        }
        transaction.commit().unwrap();
        finds_all(&store, &model, name);
        drop(store);
        check_clean(&place.store());
        build.finish().unwrap();
        finds_all(&Store::open(&path).unwrap(), &model, name);
        check_clean(&path);
        let removed: Vec<u64> = (0..documents()).filter(|id| id % 4 == 1).collect();
        let store = Store::open(&path).unwrap();
        let mut transaction = store.begin_write().unwrap();
        for id in removed {
            assert!(
                transaction
                    .remove_id(resemblance::DocumentId::new(id))
                    .unwrap()
            );
            model.documents.remove(&id).map(Arc::into_inner).unwrap();
        }
        transaction.commit().unwrap();
        drop(store);
        Store::compact(&path).run().unwrap();
        let left = Store::open(&path).unwrap().snapshot().unwrap().len();
        assert_eq!(left, documents() / 4 * 3);
        check_clean(&path);
    }
}

/// From the fewest bands to the most and back: with 32 documents, with 100 with `RESEMBLANCE_TESTS=all`.
#[test]
fn reband_works_between_the_bounds_of_a_schema() {
    let schema = minhash(MinHash::new(256).banding(1, 256).threshold(0.9))
        .build()
        .unwrap();
    let place = Place::new();
    let store = Store::create(place.store(), schema.clone()).unwrap();
    let mut model = Model::new(schema.clone());
    for number in 0..documents() {
        store
            .insert(Document::without_key(), &signature(&schema, number))
            .unwrap();
        model.insert(entry(&schema, number));
    }
    finds_all(&store, &model, "one band of 256");
    drop(store);
    for (bands, rows, code_bits) in [(256, 1, 32), (1, 1, 64), (2, 128, 40), (256, 1, 64)] {
        let rebanding = Rebanding::new().banding(bands, rows).code_bits(code_bits);
        let options = BulkOptions::new().memory_bytes(1);
        let report = Store::reband(place.store(), &rebanding)
            .bulk(options.clone())
            .run()
            .unwrap();
        let mut rebanded = Model::new(report.schema);
        rebanded.documents = model.documents.clone();
        let store = Store::open(place.store()).unwrap();
        finds_all(&store, &rebanded, &format!("{bands} bands of {rows}"));
        drop(store);
        check_clean(&place.store());
    }
}

#[test]
fn schema_values_out_of_bounds_are_refused_by_name() {
    let refused = |builder: SchemaBuilder, name: &str| match builder.build() {
        Err(error @ SketchError::InvalidParameter { parameter, .. }) => {
            assert!(parameter.contains(name), "{error}, expected {name}");
        }
        other => panic!("{other:?}, expected an error about {name}"),
    };
    for values in [0, 1, 15, 1_025, u16::MAX] {
        refused(minhash(MinHash::new(values)), "values");
        refused(minhash(MinHash::one_pass(values)), "values");
        refused(minhash(MinHash::weighted(values)), "values");
        refused(minhash(MinHash::external(values)), "values");
    }
    for values in [0, 63, 1_025] {
        refused(minhash(MinHash::bottom_k(values)), "values");
    }
    for (bands, rows, name) in [(0, 1, "bands"), (1, 0, "rows")] {
        refused(minhash(MinHash::new(128).banding(bands, rows)), name);
    }
    // Products that would wrap among them.
    for (bands, rows) in [
        (129, 1),
        (1, 129),
        (16, 9),
        (256, 256),
        (u16::MAX, u16::MAX),
    ] {
        refused(minhash(MinHash::new(128).banding(bands, rows)), "band");
    }
    for bits in [0, 31, 65, 255] {
        refused(minhash(MinHash::new(128).code_bits(bits)), "code_bits");
    }
    for bits in [0, 3, 31, 33, 64, 255] {
        refused(minhash(MinHash::new(128).value_bits(bits)), "value_bits");
    }
    for distance in [0, 11, 64, 255] {
        refused(
            simhash(SimHash::bits64().max_distance(distance), 1),
            "max_distance",
        );
    }
    for distance in [0, 21, 128, 255] {
        refused(
            simhash(SimHash::bits128().max_distance(distance), 1),
            "max_distance",
        );
    }
}
