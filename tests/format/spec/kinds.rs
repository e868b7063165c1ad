//! Stores of every kind of signature, read by the independent reader.

use std::path::Path;

use resemblance::schema::{ClusterBounds, EmptyDocuments, KeptVector, Linkage, Rebanding};
use resemblance::{
    Combine, Containment, Document, DocumentId, MinHash, Schema, SchemaBuilder, Signature, SimHash,
    Store, StoreOptions, Vector,
};

use crate::common::sample::one_in;
use crate::spec::minhash::{Features, Kind};
use crate::spec::reader;
use crate::spec::recipe::{self, mix64};
use crate::spec::signatures::minhash_of;
use crate::spec::stored::{self, Model};

const DOCUMENTS: u64 = 70;
const SEAL_AFTER: u64 = 30;

/// Features of neighbouring documents are mostly the same. Every tenth document has none.
fn features(number: u64) -> Vec<u64> {
    let first = number / 3 * 40 + number % 3;
    let count = if number % 10 == 9 { 0 } else { 3 + number };
    (first..first + count).map(mix64).collect()
}

/// Returns an external signature with values of this number of bits.
fn external(own: &reader::Store, number: u64) -> (Signature, recipe::Signature) {
    let minhash = own.schema.minhash.unwrap();
    let hashes: Features = features(number).into_iter().map(|hash| (hash, 1)).collect();
    let mut values = Kind::OnePass.values(1, minhash.values, &hashes);
    if !hashes.is_empty() {
        let bits = minhash.value_bits;
        values.iter_mut().for_each(|value| *value >>= 32 - bits);
    }
    let signature = recipe::Signature {
        values: values.clone(),
        empty: hashes.is_empty(),
        ..recipe::Signature::default()
    };
    (Signature::from_minhash(values), signature)
}

/// Returns the signature of a document with a vector, and with features if it has anything beside it. Vectors of
/// neighbouring documents are near each other.
fn with_vector(store: &Store, own: &reader::Store, number: u64) -> (Signature, recipe::Signature) {
    let dimensions = store.schema().vector().unwrap().dimensions();
    let component = |place: u16| {
        let place = u64::from(place);
        let steps = mix64(((number / 3) << 32) + place) % 2_001 + number % 3 * (place % 5);
        steps as f32 / 1_000.0 - 1.0
    };
    let vector: Vec<f32> = (0..dimensions).map(component).collect();
    let (sketcher, recipe) = (store.sketcher(), &own.schema.recipe);
    let Some(beside) = sketcher.beside_vector() else {
        let found = sketcher.vector(&vector).unwrap();
        return (found, recipe.vector(&vector, recipe::Signature::default()));
    };
    let hashes = [features(number), vec![number]].concat();
    let found = beside.hashes(hashes.iter().copied()).unwrap();
    let found = sketcher.with_vector(found, &vector).unwrap();
    let beside = recipe.beside_vector().unwrap().hashes(hashes);
    (found, recipe.vector(&vector, beside))
}

/// The same document by the library, and by the independent recipe.
fn document(store: &Store, own: &reader::Store, number: u64) -> (Signature, recipe::Signature) {
    if own
        .schema
        .minhash
        .is_some_and(|minhash| minhash.kind == Kind::External)
    {
        return external(own, number);
    }
    if store.schema().vector().is_some() {
        return with_vector(store, own, number);
    }
    let features = features(number);
    let sketcher = store.sketcher();
    if !number.is_multiple_of(4) {
        let found = sketcher.hashes(features.iter().copied()).unwrap();
        return (found, own.schema.recipe.hashes(features));
    }
    let weighted = |(i, hash): (usize, &u64)| (*hash, (i * i) as f64 / 7.0);
    let weighted = || features.iter().enumerate().map(weighted);
    let found = sketcher.weighted_hashes(weighted()).unwrap();
    (found, own.schema.recipe.weighted(weighted()))
}

/// Creates a store with two runs, a memtable and removed documents. Returns the expected contents.
fn make(path: &Path, schema: Schema) -> Model {
    let options = StoreOptions::new().flush_after(SEAL_AFTER);
    drop(options.create(path, schema).unwrap());
    let own = reader::Store::read(path);
    let store = options.open(path).unwrap();
    let mut model = Model::new();
    for number in 0..DOCUMENTS {
        let (found, signature) = document(&store, &own, number);
        let key = format!("{number}");
        let mut transaction = store.begin_write().unwrap();
        let document = Document::new(&key);
        let id = transaction.insert(document, &found).unwrap();
        if number % 9 == 8 {
            let id = DocumentId::new(number / 2);
            assert!(transaction.remove_id(id).unwrap());
            model.remove(&id.get()).unwrap();
        }
        transaction.commit().unwrap();
        let expected = reader::Document {
            key: Some(key.into_bytes()),
            stamp: 0,
            payload: Vec::new(),
            signature: own.schema.stored(signature),
        };
        model.insert(id.get(), expected);
    }
    model
}

fn check(builder: SchemaBuilder) {
    let schema = builder.build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kind.rsm");
    let model = make(&path, schema);
    let read = reader::Store::read(&path);
    let seen = stored::check(&read, &model);
    assert!(seen.unflushed > 0 && seen.dead_postings > 0, "{seen:?}");
    let has_empty = model.values().any(|document| document.signature.empty);
    assert_eq!(
        has_empty,
        !matches!(read.schema.recipe.minhash, Some((Kind::Vector(_), _)))
    );
    let lanes = read.blocks["bands"].iter().chain(&read.blocks["permuted"]);
    assert!(lanes.count() > 0);
}

/// Section 7.7: what differs after a rebanding, and what does not.
fn check_rebanded(schema: Schema, rebanding: &Rebanding) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kind.rsm");
    let model = make(&path, schema);
    let before = reader::Store::read(&path);
    Store::reband(&path, rebanding).run().unwrap();
    let after = reader::Store::read(&path);
    let seen = stored::check(&after, &model);
    assert_eq!((seen.unflushed, seen.buried, seen.outputs), (0, 0, 0));
    assert_ne!(after.schema, before.schema);
    assert_eq!(after.schema.recipe, before.schema.recipe);
    assert_eq!(after.self_test, before.self_test);
    let lanes = [&before, &after].map(|store| store.lanes.len() as u64);
    assert_ne!(lanes[0], lanes[1]);
    let state = reader::State {
        commit: before.state.commit + 1,
        next_run: before.state.next_run + 1,
        flushed_below: before.state.next_id,
        unflushed_documents: 0,
        postings_moved: before.state.postings_moved / lanes[0] * lanes[1],
        deleted_documents: 0,
        ..before.state
    };
    assert_eq!(after.state, state);
    let run = &after.runs[&before.state.next_run];
    assert_eq!(after.runs.len(), 1);
    assert_eq!(run.ids, 0..=DOCUMENTS - 1);
    assert_eq!(run.documents, model.len() as u64);
}

#[test]
fn rebanded_stores_follow_the_specification() {
    let all = Rebanding::new()
        .max_distance(5)
        .threshold(0.5)
        .code_bits(64);
    for minhash in [
        minhash_of(Kind::PairMultiply, 40),
        minhash_of(Kind::BottomK, 100),
        minhash_of(Kind::OnePass, 40).value_bits(4),
        MinHash::new(40),
    ] {
        let simhash = SimHash::bits64().max_distance(1);
        let schema = Schema::builder().minhash(minhash).simhash(simhash);
        check_rebanded(schema.build().unwrap(), &all);
    }
}

#[test]
fn containment_stores_follow_the_specification() {
    for containment in [
        Containment::new(1).window(1),
        Containment::new(9).window(7),
        Containment::new(3).scaled(4),
        Containment::new(2).window(3).positions(true),
        Containment::new(1).scaled(2).positions(true),
    ] {
        check(Schema::builder().containment(containment));
        let beside = Schema::builder().containment(containment).seed(5);
        let beside = beside.minhash(MinHash::new(16).banding(3, 3));
        check(beside.simhash(SimHash::bits64().max_distance(1)));
    }
}

#[test]
fn exact_stores_follow_the_specification() {
    let banded = |minhash: MinHash| Schema::builder().minhash(minhash.banding(3, 3)).exact();
    for minhash in [
        MinHash::new(16),
        MinHash::weighted(16),
        MinHash::probability(16),
    ] {
        check(banded(minhash));
        check(banded(minhash).containment(Containment::new(1).window(1)));
        let distinct = Containment::new(2).window(2);
        check(
            banded(minhash)
                .containment(distinct)
                .seed(5)
                .simhash(SimHash::bits64().max_distance(1)),
        );
        check_rebanded(
            banded(minhash).build().unwrap(),
            &Rebanding::new().threshold(0.5),
        );
    }
}

#[test]
fn vector_stores_follow_the_specification() {
    let cosine = |dimensions| Vector::cosine(dimensions).banding(8, 6);
    let distant = Vector::euclidean(5, 0.1).banding(8, 4);
    for vector in [
        cosine(5).values(64),
        cosine(300).values(600).kept(KeptVector::F16),
        cosine(5).values(300).kept(KeptVector::I8),
        cosine(5).values(64).estimated(),
        distant.values(300),
        distant.values(40).kept(KeptVector::F16),
        distant.values(40).kept(KeptVector::I8),
        distant.values(40).estimated(),
    ] {
        let builder = Schema::builder().vector(vector).seed(7);
        check(builder.clone());
        let builder = builder.simhash(SimHash::bits64().max_distance(1));
        check(builder.containment(Containment::new(1).scaled(2)));
        let schema = Schema::builder().vector(vector).build().unwrap();
        check_rebanded(schema, &Rebanding::new().banding(9, 3));
    }
}

#[test]
fn stores_that_keep_clusters_follow_the_specification() {
    let bounds = ClusterBounds::default();
    let minhash = MinHash::new(16).banding(16, 1).threshold(0.1);
    let both = Schema::builder()
        .minhash(minhash)
        .simhash(SimHash::bits64());
    for builder in [
        Schema::builder().minhash(minhash).clusters(bounds),
        Schema::builder().minhash(minhash).exact().clusters(bounds),
        both.clone()
            .clusters(bounds.min_similarity(0.2).max_distance(2)),
        both.clone().near(Combine::Both).clusters(bounds),
        both.clone().clusters(bounds.linkage(Linkage::Star)),
        both.clusters(bounds.linkage(Linkage::Complete)),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kind.rsm");
        let schema = builder.build().unwrap();
        let model = make(&path, schema.clone());
        let read = reader::Store::read(&path);
        stored::check(&read, &model);
        let expected = (
            bounds_of(&schema),
            u32::from(schema.near() == Combine::Both),
        );
        assert_eq!((read.schema.clusters, read.schema.near), expected);
        let linkage = match schema.clusters().unwrap().linkage {
            Linkage::Star => 2,
            Linkage::Complete => 3,
            _ => 1,
        };
        assert_eq!(read.schema.linkage, linkage);
        let snapshot = Store::open(&path).unwrap().snapshot().unwrap();
        let largest = snapshot.largest_clusters(1_000).unwrap();
        assert!(!largest.is_empty() || schema.near() == Combine::Both);
        for (id, members) in &largest {
            assert_eq!(read.clusters[&id.get()].len() as u64, *members);
        }
        assert_eq!(largest.len(), read.clusters.len());
    }
}

fn bounds_of(schema: &Schema) -> Option<(Option<f64>, Option<u8>)> {
    let bounds = schema.clusters().unwrap();
    Some((bounds.min_similarity, bounds.max_distance))
}

fn values_of(kind: Kind) -> u16 {
    if kind == Kind::BottomK { 64 } else { 40 }
}

#[test]
fn stores_of_every_kind_follow_the_specification() {
    for kind in Kind::ALL {
        let minhash = minhash_of(kind, values_of(kind)).banding(4, 2);
        let mut schema = Schema::builder().seed(7).minhash(minhash.code_bits(36));
        if kind != Kind::External {
            schema = schema.simhash(SimHash::bits64().max_distance(2));
        }
        check(schema);
    }
}

#[test]
fn wide_fingerprint_stores_follow_the_specification() {
    let simhash = SimHash::bits128().max_distance(9);
    check(Schema::builder().simhash(simhash.clone()));
    let schema = Schema::builder().simhash(simhash);
    let schema = schema.minhash(MinHash::bottom_k(100).banding(6, 2));
    check(schema);
}

#[test]
fn short_fingerprint_stores_follow_the_specification() {
    let short = SimHash::bits32().tables(&[(3, 2), (1, 1)]);
    check(Schema::builder().simhash(short.clone()));
    let both = Schema::builder().minhash(MinHash::new(16).banding(3, 3));
    check(both.simhash(short));
    let by_hand = SimHash::bits64().tables(&[(5, 2)]);
    check(Schema::builder().simhash(by_hand));
}

/// Tests one schema in three, which covers every kind and every number of bits, or all with
/// `RESEMBLANCE_TESTS=all`.
#[test]
fn stores_of_cut_values_follow_the_specification() {
    let kinds = [
        Kind::PairMultiply,
        Kind::OnePass,
        Kind::Weighted,
        Kind::Probability,
    ];
    let of_bits = [1, 2, 4, 8, 16].into_iter();
    let cases = of_bits.flat_map(|bits| kinds.map(|kind| (bits, kind)));
    for (bits, kind) in cases.step_by(one_in(3)) {
        let minhash = minhash_of(kind, 41).value_bits(bits);
        let minhash = minhash.banding(5, 3).code_bits(31 + bits * 2);
        check(Schema::builder().minhash(minhash));
    }
}

#[test]
fn stores_of_external_values_follow_the_specification() {
    for bits in [1, 8, 16] {
        let minhash = MinHash::external(40).value_bits(bits).banding(10, 4);
        check(Schema::builder().minhash(minhash));
    }
}

#[test]
fn empty_documents_have_postings_where_they_are_alike() {
    for kind in [
        Kind::BottomK,
        Kind::OnePass,
        Kind::Weighted,
        Kind::Probability,
    ] {
        let minhash = minhash_of(kind, values_of(kind)).banding(4, 2);
        let simhash = SimHash::bits128().max_distance(1);
        let schema = Schema::builder().minhash(minhash).simhash(simhash);
        check(schema.empty_documents(EmptyDocuments::Alike));
    }
    for minhash in [
        MinHash::weighted(40).value_bits(4),
        MinHash::external(40).value_bits(8),
    ] {
        let schema = Schema::builder().minhash(minhash.banding(3, 3));
        check(schema.empty_documents(EmptyDocuments::Alike));
    }
}
