//! Iteration over the documents of a snapshot.

use resemblance::{Document, DocumentId, Store};

use crate::common::Place;
use crate::common::small::{schema, signature};

#[test]
fn an_iteration_begins_at_an_id_and_keeps_to_a_prefix() {
    let place = Place::new();
    let store = Store::options()
        .flush_after(4)
        .create(place.store(), schema())
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
            let found = records.key_prefix(prefix).map(|r| r.unwrap().id().get());
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
