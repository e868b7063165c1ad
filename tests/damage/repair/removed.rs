//! Removed or replaced documents whose tombstones are damaged.

use crate::common::engine::database;
use crate::common::{Place, insert_all, sealing_after};
use crate::repair::{contents, ids, schema, signature};
use redb::{ReadableTable, TableDefinition};
use resemblance::{Store, StoreOptions};

const DEAD: TableDefinition<'static, u64, &'static [u8]> = TableDefinition::new("dead");

/// If it is unknown which documents were removed, they are kept, and the report says so. Among
/// documents with one key, only the newest is kept.
#[test]
fn repair_may_restore_removed_documents_but_no_key_twice() {
    let place = Place::new();
    let path = place.store();
    let options = StoreOptions::clone(&sealing_after(64));
    let store = options.create(&path, schema()).unwrap();
    insert_all(
        &store,
        (0..64u64).map(|number| (format!("key {number}"), signature(number))),
    );
    let mut transaction = store.begin_write().unwrap();
    transaction.remove("key 3").unwrap();
    for round in 0..3 {
        transaction
            .upsert("key 9", &signature(900 + round))
            .unwrap();
    }
    transaction.commit().unwrap();
    let before = contents(&store.snapshot().unwrap());
    drop(store);
    let repaired = |name: &str| {
        let report = Store::repair(&path, place.file(name)).run().unwrap();
        let store = Store::open(place.file(name)).unwrap();
        let contents = contents(&store.snapshot().unwrap());
        (report, contents)
    };
    let (report, kept) = repaired("sound");
    assert!(report.is_complete());
    assert_eq!(kept, before);

    let database = database(&path);
    let write = database.begin_write().unwrap();
    {
        let mut dead = write.open_table(DEAD).unwrap();
        let mut row = dead.get(0).unwrap().unwrap().value().to_vec();
        row[1] ^= 1;
        dead.insert(0, row.as_slice()).unwrap();
    }
    write.commit().unwrap();
    drop(database);
    let (report, kept) = repaired("damaged");
    let mut expected = ids(&before);
    expected.insert(3);
    assert_eq!(ids(&kept), expected);
    assert_eq!(
        report.documents_replaced, 1,
        "the first of four; the others were not sealed"
    );
    assert_eq!(report.may_be_back.len(), 1);
    let range = &report.may_be_back[0];
    assert_eq!((range.first.get(), range.last.get()), (0, 66));
    assert!(!report.is_complete() && report.lost.is_empty());
    crate::common::check_clean(&place.file("damaged"));
}
