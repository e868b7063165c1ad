//! Documents that are touched and that come again.

use std::path::Path;

use crate::common::memory::MemoryFiles;
use crate::common::oracle::cut;
use crate::common::small::{schema, signature};
use crate::common::{Place, check_clean, sealing_after};
use resemblance::schema::EmptyDocuments;
use resemblance::{
    Combine, Document, Error, MinHash, Revision, Schema, Signature, SimHash, Store, Upserted,
};

/// A touch of a large payload, which is in no page with others, and of a key that is empty.
#[test]
fn touch_handles_the_largest_and_smallest_documents() {
    let place = Place::new();
    let store = sealing_after(2).create(place.store(), schema()).unwrap();
    let payload = vec![7; 5 << 20];
    let mut transaction = store.begin_write().unwrap();
    let large = Document::new("").stamp(1).payload(&payload);
    let id = transaction.insert(large, &signature(1)).unwrap();
    let bare = transaction
        .insert(Document::without_key(), &signature(2))
        .unwrap();
    assert_eq!(transaction.touch("", 2).unwrap(), Some(id));
    assert!(transaction.touch_id(bare, u64::MAX).unwrap());
    transaction.commit().unwrap();
    assert_eq!(store.touch("", 3).unwrap(), Some(id));
    assert_eq!(store.touch("nobody", 3).unwrap(), None);
    let snapshot = store.snapshot().unwrap();
    let record = snapshot.get("").unwrap().unwrap();
    assert_eq!((record.stamp(), record.payload()), (3, &payload[..]));
    let bare = snapshot.get_id(bare).unwrap().unwrap();
    assert_eq!((bare.key(), bare.stamp()), (None, u64::MAX));
    drop((snapshot, store));
    check_clean(&place.store());
}

/// The bytes of the file after a call, if it changed any.
fn written(files: &MemoryFiles, path: &Path, call: impl FnOnce()) -> bool {
    let before = files.read(path);
    call();
    files.read(path) != before
}

#[test]
fn upsert_does_not_write_unchanged_documents() {
    let files = MemoryFiles::default();
    let path = Path::new("store.rsm");
    let options = files.options(&sealing_after(3));
    let store = options.create(path, schema()).unwrap();
    let document = |stamp| Document::new("page").stamp(stamp).payload(b"payload");
    let upsert = |stamp| -> Upserted {
        let mut transaction = store.begin_write().unwrap();
        let upserted = transaction.upsert(document(stamp), &signature(1));
        transaction.commit().unwrap();
        upserted.unwrap()
    };
    let first = upsert(1);
    assert_eq!(first.revision, Revision::First);
    for number in 2..9 {
        let is_unchanged = |upserted: &Upserted| {
            assert_eq!((upserted.id, upserted.replaced), (first.id, None));
            let last = upserted.revision.last().unwrap();
            assert_eq!(last.id(), first.id);
            assert_eq!((last.similarity(), last.distance()), (Some(1.0), Some(0)));
            matches!(upserted.revision, Revision::Unchanged(_))
        };
        assert!(!written(&files, path, || assert!(is_unchanged(&upsert(1)))));
        let stamp = || {
            store
                .snapshot()
                .unwrap()
                .get("page")
                .unwrap()
                .unwrap()
                .stamp()
        };
        assert!(!written(&files, path, || drop(store.touch("page", 1))));
        assert!(!written(&files, path, || drop(store.touch("absent", 9))));
        assert!(written(&files, path, || drop(store.touch("page", 2))));
        assert_eq!(stamp(), 2);
        assert!(written(&files, path, || assert!(is_unchanged(&upsert(1)))));
        assert_eq!(stamp(), 1);
        // Further on in the memtable, then in a run.
        store.insert([number], &signature(number.into())).unwrap();
    }
    assert_eq!(store.snapshot().unwrap().stats().run().unwrap().next_id, 8);
    // The short form gives stamp 0 and no payload.
    let bare = store.upsert("page", &signature(1)).unwrap();
    assert_eq!((bare.id, bare.replaced), (first.id, None));
    let record = store.snapshot().unwrap().get("page").unwrap().unwrap();
    assert_eq!((record.stamp(), record.payload()), (0, &[][..]));
    // Of no key there is no earlier version.
    let mut transaction = store.begin_write().unwrap();
    let other = transaction.upsert(Document::without_key(), &signature(1));
    assert_eq!(other.unwrap().revision, Revision::First);
    transaction.commit().unwrap();
    assert!(store.snapshot().unwrap().check().run().unwrap().is_clean());
}

fn revision(store: &Store, signature: &Signature) -> Revision {
    store.upsert("page", signature).unwrap().revision
}

/// Near is what the schema's own bounds say, at the bound and one step beyond.
#[test]
fn upsert_revisions_follow_the_bounds_of_the_schema() {
    let whole = MinHash::new(16).value_bits(32);
    let minhash = || whole.banding(4, 3).threshold(0.75);
    let simhash = || SimHash::bits64().max_distance(3);
    let both = |near| {
        let builder = Schema::builder().minhash(minhash()).simhash(simhash());
        builder.near(near).build().unwrap()
    };
    let of = |changed: u32, bits: u32, schema: &Schema| {
        let values = (0..16).map(|place| if place < changed { 900 + place } else { place });
        let values = schema.minhash().map(|_| values.collect());
        let fingerprint = schema.simhash().map(|_| (1u64 << bits) - 1);
        Signature::from_parts(values, fingerprint)
    };
    // (changed values, bits) that are near, and such that are not
    type Pairs = &'static [(u32, u32)];
    let cases: [(Schema, Pairs, Pairs); 4] = [
        (
            Schema::builder().minhash(minhash()).build().unwrap(),
            &[(4, 0), (1, 0)],
            &[(5, 0), (16, 0)],
        ),
        (
            Schema::builder().simhash(simhash()).build().unwrap(),
            &[(0, 3), (0, 1)],
            &[(0, 4), (0, 60)],
        ),
        (
            both(Combine::Any),
            &[(4, 60), (16, 3), (0, 1)],
            &[(5, 4), (16, 60)],
        ),
        (both(Combine::Both), &[(4, 3), (1, 0)], &[(4, 4), (5, 3)]),
    ];
    for (schema, near, different) in cases {
        let place = Place::new();
        let store = Store::create(place.store(), schema.clone()).unwrap();
        let origin = of(0, 0, &schema);
        revision(&store, &origin);
        let back = |is_near: bool, changed: u32, bits: u32| {
            for signature in [of(changed, bits, &schema), origin.clone()] {
                let revision = revision(&store, &signature);
                let found = revision.last().unwrap();
                let similarity = schema.minhash().map(|_| 1.0 - f64::from(changed) / 16.0);
                assert_eq!(found.similarity(), similarity);
                assert_eq!(found.distance(), schema.simhash().map(|_| bits));
                assert_eq!(matches!(revision, Revision::Near(_)), is_near);
                assert_eq!(matches!(revision, Revision::Different(_)), !is_near);
            }
        };
        near.iter().for_each(|pair| back(true, pair.0, pair.1));
        different
            .iter()
            .for_each(|pair| back(false, pair.0, pair.1));
    }
}

/// Cut to a bit, other values are equal as often as not: only what is stored says whether they are the
/// same.
#[test]
fn values_equal_after_cutting_count_as_unchanged() {
    let minhash = MinHash::new(16).value_bits(1).banding(4, 3).threshold(0.5);
    let schema = Schema::builder().minhash(minhash).build().unwrap();
    let place = Place::new();
    let store = Store::create(place.store(), schema).unwrap();
    let values: Vec<u32> = (0..16).collect();
    let other_at = |place: usize, is_same: bool| {
        let mut other = values.clone();
        let fits = |value: &u32| (cut(*value, 1) == cut(values[place], 1)) == is_same;
        other[place] = (1_000..).find(fits).unwrap();
        Signature::from_minhash(other)
    };
    let origin = Signature::from_minhash(values.clone());
    revision(&store, &origin);
    let near = revision(&store, &other_at(11, false));
    assert!(matches!(&near, Revision::Near(found) if found.similarity() < Some(1.0)));
    revision(&store, &origin);
    // In a band and out of it.
    for place in [11, 12] {
        let unchanged = revision(&store, &other_at(place, true));
        assert!(matches!(unchanged, Revision::Unchanged(_)));
    }
    // What is read from a store is the same as what was written.
    let read = store.snapshot().unwrap().get("page").unwrap().unwrap();
    let again = revision(&store, read.signature());
    assert!(matches!(again, Revision::Unchanged(_)));
}

#[test]
fn upsert_of_an_empty_document_is_unchanged() {
    for rule in [EmptyDocuments::Distinct, EmptyDocuments::Alike] {
        let builder = Schema::builder().simhash(SimHash::bits64());
        let schema = builder.empty_documents(rule).build().unwrap();
        let place = Place::new();
        let store = Store::create(place.store(), schema).unwrap();
        let empty = store.sketcher().features([""; 0]).unwrap();
        revision(&store, &empty);
        assert!(matches!(revision(&store, &empty), Revision::Unchanged(_)));
        // The same fingerprint, but of a document with features.
        for signature in [&Signature::from_simhash(0), &empty] {
            let revision = revision(&store, signature);
            assert!(
                matches!(&revision, Revision::Different(found) if found.distance() == Some(0)),
                "{revision:?}"
            );
        }
    }
}

#[test]
fn upsert_refuses_wrong_input_and_changes_nothing() {
    let place = Place::new();
    let store = Store::create(place.store(), schema()).unwrap();
    store.insert("page", &signature(1)).unwrap();
    let held = store.begin_write().unwrap();
    assert!(matches!(store.touch("page", 1), Err(Error::Busy)));
    drop(held);
    drop(store);
    let store = Store::open_read_only(place.store()).unwrap();
    assert!(matches!(store.touch("page", 1), Err(Error::ReadOnly)));
}
