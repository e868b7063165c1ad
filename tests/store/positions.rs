//! Named positions, which are set in the same commit as documents.

use resemblance::schema::Rebanding;
use resemblance::{MinHash, Schema, Signature, Store, Text};

use crate::common::{Place, check_clean, refused};

fn schema() -> Schema {
    let builder = Schema::builder().text(Text::words(1));
    let builder = builder.minhash(MinHash::new(16).banding(4, 4).threshold(0.8));
    builder.build().unwrap()
}

fn message(offset: u64) -> Signature {
    let sketcher = schema().sketcher();
    sketcher.text(&format!("message {offset}")).unwrap()
}

fn offset(store: &Store) -> Option<u64> {
    let position = store.snapshot().unwrap().position("queue/0").unwrap();
    position.map(|bytes| u64::from_be_bytes(bytes.try_into().unwrap()))
}

/// Takes messages from a queue until an offset, a few in each commit, beginning where the store
/// says. Ends without the last commit if `is_killed`.
fn consume(store: &Store, until: u64, is_killed: bool) {
    let mut next = offset(store).map_or(0, |last| last + 1);
    while next < until {
        let mut transaction = store.begin_write().unwrap();
        let end = until.min(next + 4);
        for at in next..end {
            transaction.insert(at.to_string(), &message(at)).unwrap();
            let position = at.to_be_bytes();
            transaction
                .set_position("queue/0", Some(&position))
                .unwrap();
            let found = transaction.position("queue/0").unwrap();
            assert_eq!(found.as_deref(), Some(&position[..]));
        }
        next = end;
        if next < until || !is_killed {
            transaction.commit().unwrap();
        }
    }
}

#[test]
fn positions_agree_with_documents_after_every_kind_of_end() {
    let place = Place::new();
    let path = &place.store();
    let store = Store::create(path, schema()).unwrap();
    assert_eq!(offset(&store), None);
    consume(&store, 10, true);
    drop(store);
    let store = Store::open(path).unwrap();
    assert_eq!(offset(&store), Some(7));
    assert_eq!(store.snapshot().unwrap().len(), 8);
    // Every key is inserted once: a repeated message would be an error.
    consume(&store, 31, false);
    assert_eq!(offset(&store), Some(30));
    assert_eq!(store.snapshot().unwrap().len(), 31);
    let before = store.snapshot().unwrap();
    let mut transaction = store.begin_write().unwrap();
    transaction.set_position("queue/0", None).unwrap();
    transaction.set_position("other", Some(b"")).unwrap();
    assert_eq!(transaction.position("queue/0").unwrap(), None);
    transaction.commit().unwrap();
    assert_eq!(offset(&store), None);
    let held = before.position("queue/0").unwrap();
    assert_eq!(held, Some(30_u64.to_be_bytes().to_vec()));
    let other = store.snapshot().unwrap().position("other").unwrap();
    assert_eq!(other, Some(Vec::new()));
    drop((before, store));
    check_clean(path);
}

#[test]
fn positions_stay_in_copies_and_are_left_out_of_new_stores() {
    let place = Place::new();
    let path = &place.store();
    let store = Store::create(path, schema()).unwrap();
    consume(&store, 20, false);
    let copy = place.file("copy.rsm");
    store.snapshot().unwrap().backup(&copy).run().unwrap();
    assert_eq!(offset(&Store::open(&copy).unwrap()), Some(19));
    drop(store);
    Store::compact(path).run().unwrap();
    let rebanding = Rebanding::new().banding(8, 2);
    Store::reband(path, &rebanding).run().unwrap();
    let store = Store::open(path).unwrap();
    assert_eq!(offset(&store), Some(19));
    drop(store);
    check_clean(path);
    let repaired = place.file("repaired.rsm");
    Store::repair(path, &repaired).run().unwrap();
    let store = Store::open(&repaired).unwrap();
    assert_eq!(
        (store.snapshot().unwrap().len(), offset(&store)),
        (20, None)
    );
}

#[test]
fn a_queued_position_is_never_ahead_of_the_documents_before_it() {
    const MESSAGES: u64 = 400;
    let place = Place::new();
    let store = Store::create(place.store(), schema()).unwrap();
    let queue = store.queue();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for at in 0..MESSAGES {
                drop(queue.insert(at.to_string(), &message(at)).unwrap());
                let position = at.to_be_bytes();
                drop(queue.set_position("queue/0", Some(&position)).unwrap());
            }
        });
        loop {
            let snapshot = store.snapshot().unwrap();
            let position = snapshot.position("queue/0").unwrap();
            let last = position.map(|bytes| u64::from_be_bytes(bytes.try_into().unwrap()));
            assert!(last.is_none_or(|last| last < snapshot.len()));
            if last == Some(MESSAGES - 1) {
                break;
            }
        }
    });
    store.set_position("queue/0", None).unwrap();
    assert_eq!(offset(&store), None);
}

#[test]
fn names_and_positions_have_lengths() {
    let store = Store::in_memory(schema()).unwrap();
    refused(store.set_position("", Some(b"1")), "name");
    let name = "n".repeat(256);
    refused(store.queue().set_position(&name, Some(b"1")), "name");
    let mut transaction = store.begin_write().unwrap();
    refused(transaction.set_position("", Some(b"1")), "name");
    refused(transaction.set_position(&name, Some(b"1")), "name");
    let long = vec![7; (1 << 16) + 1];
    refused(transaction.set_position("n", Some(&long)), "position");
    transaction
        .set_position(&name[1..], Some(&long[1..]))
        .unwrap();
    transaction.commit().unwrap();
    let found = store.snapshot().unwrap().position(&name[1..]).unwrap();
    assert!(found.is_some_and(|found| found == long[1..]));
}
