//! Documents as snapshots iterate over them, and as matches show them.

use resemblance::{Document, DocumentId, Filter, Match, Novelty, Revision, Store};

use crate::common::small::{schema, signature};

#[test]
fn records_start_at_an_id_and_keep_to_a_prefix() {
    let store = Store::options()
        .flush_after(4)
        .create_in_memory(schema())
        .unwrap();
    let keys = ["a/1", "b/1", "a/2", "", "a", "b/2", "a/3", "a/4"];
    for (number, key) in (0..).zip(keys) {
        store.insert(key, &signature(number)).unwrap();
    }
    let unnamed = store
        .insert(Document::without_key(), &signature(100))
        .unwrap();
    store.remove("a/2").unwrap();
    let left = |first: u64, prefix: &str| -> Vec<u64> {
        let all = (0..)
            .zip(keys)
            .filter(|(id, key)| *id >= first && key.starts_with(prefix) && *key != "a/2");
        let mut ids: Vec<u64> = all.map(|(id, _)| id).collect();
        // A document without a key has no prefix, not even the empty one that asks for all.
        ids.extend(Some(unnamed.get()).filter(|id| prefix.is_empty() && *id >= first));
        ids
    };
    let snapshot = store.snapshot().unwrap();
    for first in 0..11 {
        for prefix in ["", "a", "a/", "a/3", "a/33", "b/", "c"] {
            let records = snapshot.iter().from_id(DocumentId::new(first));
            let records = records.passing(Filter::all().key_prefix(prefix));
            let found = records.map(|r| r.unwrap().id().get());
            assert_eq!(
                found.collect::<Vec<_>>(),
                left(first, prefix),
                "{first} {prefix}"
            );
        }
    }
    let mut begun = snapshot.iter();
    begun.next().unwrap().unwrap();
    assert_eq!(begun.from_id(DocumentId::new(0)).count(), left(0, "").len());
}

#[test]
fn match_has_its_stamp_and_on_request_its_payload() {
    let store = Store::in_memory(schema()).unwrap();
    let same = signature(1);
    let stored: Vec<_> = [("a", 7, "one"), ("b", 0, ""), ("c", u64::MAX, "three")]
        .map(|(key, stamp, payload)| Document::new(key).stamp(stamp).payload(payload.as_bytes()))
        .into();
    for document in &stored {
        store.insert(document, &same).unwrap();
    }
    let shown = |found: &[Match], with_payloads: bool| {
        let found = found.iter().map(|found| {
            assert_eq!(found.payload().is_some(), with_payloads);
            let payload = found.payload().unwrap_or_default();
            let document = Document::new(found.key().unwrap()).stamp(found.stamp());
            document.payload(payload)
        });
        let expected = stored.iter().map(|document| match with_payloads {
            true => document.clone(),
            false => document.clone().payload(b""),
        });
        assert!(found.eq(expected));
    };
    let snapshot = store.snapshot().unwrap();
    let asked = [same.clone(), same.clone()];
    for payloads in [false, true] {
        let (mut one, mut many) = (snapshot.query(&same), snapshot.query(&asked));
        let mut scan = snapshot.query(&same).scan();
        if payloads {
            (one, many) = (one.with_payloads(), many.with_payloads());
            scan = scan.with_payloads();
        }
        shown(&one.run().unwrap(), payloads);
        shown(&scan.run().unwrap(), payloads);
        many.run()
            .unwrap()
            .iter()
            .for_each(|found| shown(found, payloads));
    }
    let Novelty::NearDuplicate(found) = store.insert_if_new("d", &same).unwrap() else {
        panic!("it is the same");
    };
    assert_eq!((found.stamp(), found.payload()), (7, None));
    let upserted = store.upsert(&stored[2], &same).unwrap();
    assert!(matches!(upserted.revision, Revision::Unchanged(last) if last.stamp() == u64::MAX));
}
