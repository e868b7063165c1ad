//! Numbers of values, bands, rows, bits and tables at their bounds, against brute force; and just beyond.

use resemblance::schema::{KeptVector, Rebanding, SketchError};
use resemblance::{
    BulkOptions, Document, MinHash, Schema, SchemaBuilder, Signature, SimHash, Store, Vector,
};

use crate::common::oracle::{Entry, Model};
use crate::common::sample::{one_in, trials};
use crate::common::verify::whole_snapshot;
use crate::common::{Place, Random, check_clean, remove_all, sealing_after};

fn minhash(minhash: MinHash) -> SchemaBuilder {
    Schema::builder().minhash(minhash)
}

fn simhash(simhash: SimHash, documents: u64) -> SchemaBuilder {
    Schema::builder()
        .simhash(simhash)
        .expected_documents(documents)
}

fn vector(vector: Vector) -> SchemaBuilder {
    Schema::builder().vector(vector)
}

fn extremes() -> Vec<SchemaBuilder> {
    let bits64 = |distance| SimHash::bits64().max_distance(distance);
    let bits128 = |distance| SimHash::bits128().max_distance(distance);
    vec![
        minhash(MinHash::new(16).banding(1, 1)),
        minhash(MinHash::new(16).banding(1, 16)),
        minhash(MinHash::new(1_024).banding(1_024, 1)),
        minhash(MinHash::one_pass(1_024).banding(1, 1_024)),
        minhash(MinHash::new(32).banding(32, 1).code_bits(32)),
        minhash(MinHash::new(32).banding(16, 2).code_bits(64)),
        minhash(MinHash::new(1_024).banding(128, 8).value_bits(1)),
        minhash(MinHash::new(16).banding(16, 1).value_bits(1)),
        minhash(MinHash::bottom_k(64).banding(8, 1)),
        minhash(MinHash::bottom_k(1_024).banding(128, 1)),
        minhash(MinHash::bottom_k(1_024).banding(1, 128)),
        minhash(MinHash::new(64).threshold(1.0)),
        minhash(MinHash::new(64).banding(64, 1).threshold(1e-9)),
        simhash(bits64(1), 1),
        simhash(bits64(1), u64::MAX),
        simhash(bits64(10), 1),
        simhash(bits64(10), u64::MAX),
        simhash(bits128(1), u64::MAX),
        simhash(bits128(20), 1),
        simhash(bits128(20), u64::MAX),
        vector(Vector::cosine(2).values(16).banding(16, 1).threshold(0.5)),
        vector(Vector::cosine(5_000).values(1_024).kept(KeptVector::I8)),
        vector(Vector::euclidean(2, 1e-6).kept(KeptVector::F16)),
        vector(Vector::euclidean(60, 1e6).values(16)),
    ]
}

/// How many documents a store has: families of four.
fn documents() -> u64 {
    trials(32, 100)
}

/// Returns a signature in a family of four: it has the family's features, except that a few or many
/// are replaced.
fn signature(schema: &Schema, number: u64) -> Signature {
    const REPLACED: [u64; 4] = [0, 0, 1, 25];
    let (family, replaced) = (number / 4, REPLACED[(number % 4) as usize]);
    let feature = |place: u64| {
        let own = if place < replaced { number + 1 } else { 0 };
        Random(family * 1_000 + place).next().wrapping_add(own)
    };
    let sketcher = schema.sketcher();
    if let Some(vector) = schema.vector() {
        let component = |place| (feature(place) % 2_001) as f32 / 1_000.0 - 1.0;
        let components: Vec<f32> = (0..vector.dimensions().into()).map(component).collect();
        return sketcher.vector(&components).unwrap();
    }
    sketcher.hashes((0..60).map(feature)).unwrap()
}

/// Everything that the store finds, as brute force does.
fn finds_all(store: &Store, model: &Model) {
    let snapshot = store.snapshot().unwrap();
    let strangers = [signature(&model.schema, 9_999)];
    whole_snapshot(&snapshot, model, &[], &strangers, &mut Random(1));
    let (pairs, least) = (snapshot.pairs().run().unwrap(), documents() as usize / 5);
    assert!(
        pairs.count() >= least,
        "{}: few pairs prove little",
        model.schema
    );
}

/// One extreme in three with 32 documents, all with 100 with `RESEMBLANCE_TESTS=all`.
#[test]
fn schemas_at_their_bounds_find_what_brute_force_finds() {
    for builder in extremes().into_iter().step_by(one_in(3)) {
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
            model.insert(Entry::new(None, signature));
        }
        transaction.commit().unwrap();
        finds_all(&store, &model);
        drop(store);
        check_clean(&place.store());
        build.finish().unwrap();
        finds_all(&Store::open(&path).unwrap(), &model);
        check_clean(&path);
        let removed: Vec<u64> = (0..documents()).filter(|id| id % 4 == 1).collect();
        let store = Store::open(&path).unwrap();
        remove_all(&store, removed.iter().copied());
        model.documents.retain(|id, _| !removed.contains(id));
        drop(store);
        Store::compact(&path).run().unwrap();
        let left = Store::open(&path).unwrap().snapshot().unwrap();
        let strangers = [signature(&schema, 9_999)];
        whole_snapshot(&left, &model, &[], &strangers, &mut Random(1));
        drop(left);
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
        model.insert(Entry::new(None, signature(&schema, number)));
    }
    finds_all(&store, &model);
    drop(store);
    for (bands, rows, code_bits) in [(256, 1, 32), (1, 1, 64), (2, 128, 40), (256, 1, 64)] {
        let rebanding = Rebanding::new().banding(bands, rows).code_bits(code_bits);
        let options = BulkOptions::new().memory_bytes(1);
        let report = Store::reband(place.store(), &rebanding)
            .bulk(options.clone())
            .run()
            .unwrap();
        model.refile(report.schema);
        let store = Store::open(place.store()).unwrap();
        finds_all(&store, &model);
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
