//! Documents that are touched or inserted again.

use std::path::Path;

use crate::common::memory::MemoryFiles;
use crate::common::small::{schema, signature};
use crate::common::{Place, check_clean, sealing_after, stats};
use resemblance::{Document, Error, Revision, Store, Upserted};

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
    assert_eq!(stats(&store).next_id, 8);
    // The short form gives stamp 0 and no payload.
    let bare = store.upsert("page", &signature(1)).unwrap();
    assert_eq!((bare.id, bare.replaced), (first.id, None));
    let record = store.snapshot().unwrap().get("page").unwrap().unwrap();
    assert_eq!((record.stamp(), record.payload()), (0, &[][..]));
    // Without a key there is no earlier version.
    let mut transaction = store.begin_write().unwrap();
    let other = transaction.upsert(Document::without_key(), &signature(1));
    assert_eq!(other.unwrap().revision, Revision::First);
    transaction.commit().unwrap();
    assert!(store.snapshot().unwrap().check().run().unwrap().is_clean());
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
