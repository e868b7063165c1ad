//! Lanes that stay, stores without postings, rows of deleted documents, free space, outgrown
//! designs.

use std::path::Path;

use redb::ReadableDatabase;
use resemblance::schema::Rebanding;
use resemblance::{Document, DocumentId, MinHash, Schema, SimHash, Store};

use crate::common::{Place, check_clean, stats};
use crate::reband::{
    answers, answers_of, create, go_on, open, schemas, signature, small, stats_of,
};

#[test]
fn reband_does_not_write_unchanged_lanes() {
    let schema = Schema::builder().minhash(MinHash::new(32).threshold(0.7));
    let schema = schema.expected_documents(100).build().unwrap();
    let place = Place::new();
    let store = create(&place.store(), &schema);
    go_on(&store, 0..400);
    let rows = schema.minhash().unwrap();
    let rebanding = Rebanding::new()
        .threshold(0.9)
        .banding(rows.bands(), rows.rows())
        .expected_documents(1_000);
    let old = stats(&store);
    drop(store);
    let reband = Store::reband(place.store(), &rebanding).bulk(small());
    let estimate = reband.estimate().unwrap();
    assert_eq!(estimate.disk_bytes, 0);
    let report = reband.run().unwrap();
    assert_eq!((report.is_rewritten, report.postings), (false, 0));
    let new = stats_of(&place.store());
    assert_eq!(
        (&new.runs, &new.merges, &new.lanes),
        (&old.runs, &old.merges, &old.lanes)
    );
    assert_eq!(new.memtable_documents, old.memtable_documents);
    check_clean(&place.store());
    let made = create(&place.file("made.rsm"), &report.schema);
    go_on(&made, 0..400);
    let found = answers_of(&place.store(), 400);
    assert_eq!(found, answers(&made.snapshot().unwrap(), 400));
    assert_eq!(found.schema.expected_documents(), 1_000);
}

#[test]
fn reband_accepts_stores_without_documents_or_postings() {
    let rebanding = Rebanding::new().threshold(0.3);
    let schema = &schemas()[0];
    for kind in ["none", "unfiled", "removed"] {
        let place = Place::new();
        let store = create(&place.store(), schema);
        let mut transaction = store.begin_write().unwrap();
        for _ in 0..100 {
            let empty = schema.sketcher().hashes([]).unwrap();
            match kind {
                "none" => {}
                "unfiled" => {
                    transaction.insert(Document::without_key(), &empty).unwrap();
                }
                _ => {
                    let id = transaction
                        .insert(Document::without_key(), &signature(schema, 0))
                        .unwrap();
                    transaction.remove_id(id).unwrap();
                }
            }
        }
        transaction.commit().unwrap();
        drop(store);
        let report = Store::reband(place.store(), &rebanding)
            .bulk(small())
            .run()
            .unwrap();
        assert_eq!((report.postings, report.is_rewritten), (0, true), "{kind}");
        check_clean(&place.store());
        let store = open(&place.store());
        assert_eq!(store.schema(), &schema.rebanded(&rebanding).unwrap());
        go_on(&store, 200..400);
        drop(store);
        check_clean(&place.store());
    }
}

/// A writer may leave the rows of a removed document until its postings go.
#[test]
fn reband_drops_rows_and_postings_of_deleted_documents() {
    const ROWS: [redb::TableDefinition<'_, u64, &[u8]>; 2] = [
        redb::TableDefinition::new("documents"),
        redb::TableDefinition::new("payloads"),
    ];
    let rows = |path: &Path| {
        let database = crate::common::engine::database(path);
        let read = database.begin_read().unwrap();
        ROWS.map(|rows| {
            let table = read.open_table(rows).unwrap();
            let row = |id| table.get(id).unwrap().map(|row| row.value().to_vec());
            (0..64).map(row).collect::<Vec<_>>()
        })
    };
    let schema = &schemas()[3];
    let place = Place::new();
    let store = create(&place.store(), schema);
    let mut transaction = store.begin_write().unwrap();
    for number in 0..70 {
        let document = Document::without_key().payload(b"p");
        transaction
            .insert(document, &signature(schema, number))
            .unwrap();
    }
    transaction.commit().unwrap();
    drop(store);
    let before = rows(&place.store());
    let store = open(&place.store());
    // Too few for a merge, which would forget them.
    let removed = [3, 10, 63];
    for id in removed {
        let mut transaction = store.begin_write().unwrap();
        assert!(transaction.remove_id(DocumentId::new(id)).unwrap());
        transaction.commit().unwrap();
    }
    let after = answers(&store.snapshot().unwrap(), 70);
    drop(store);
    let database = crate::common::engine::database(place.store());
    let write = database.begin_write().unwrap();
    for (rows, before) in ROWS.into_iter().zip(&before) {
        let mut table = write.open_table(rows).unwrap();
        for id in removed {
            let row = before[id as usize].as_deref().unwrap();
            table.insert(id, row).unwrap();
        }
    }
    write.commit().unwrap();
    drop(database);

    let rebanding = Rebanding::new().threshold(0.5);
    let report = Store::reband(place.store(), &rebanding)
        .bulk(small())
        .run()
        .unwrap();
    assert_eq!(report.documents, after.records.len() as u64);
    check_clean(&place.store());
    assert_eq!(answers_of(&place.store(), 70).records, after.records);
    let left = rows(&place.store());
    let is_left = |id: u64| left.iter().any(|rows| rows[id as usize].is_some());
    assert!(!removed.into_iter().any(is_left));
}

#[test]
fn compact_after_reband_frees_the_old_postings() {
    let schema = &schemas()[3];
    let place = Place::new();
    let store = create(&place.store(), schema);
    go_on(&store, 0..5_000);
    drop(store);
    Store::compact(place.store()).run().unwrap();
    let rebanding = Rebanding::new().banding(3, 5).max_distance(2);
    let report = Store::reband(place.store(), &rebanding)
        .bulk(small())
        .run()
        .unwrap();
    assert!(
        report.size_after_bytes > report.size_before_bytes,
        "{report:?}"
    );
    let compacted = Store::compact(place.store()).run().unwrap();
    // There are fewer lanes now.
    assert!(
        compacted.size_after_bytes < report.size_before_bytes,
        "{compacted:?}"
    );
    check_clean(&place.store());
}

#[test]
fn outgrown_design_is_reported_until_reband() {
    let schema = Schema::builder().simhash(SimHash::bits64());
    let schema = schema.expected_documents(100).build().unwrap();
    let place = Place::new();
    let store = create(&place.store(), &schema);
    let mut transaction = store.begin_write().unwrap();
    for number in 0..101 {
        transaction
            .insert(Document::without_key(), &signature(&schema, number))
            .unwrap();
    }
    assert!(!store.snapshot().unwrap().design().is_outgrown);
    transaction.commit().unwrap();
    let design = store.snapshot().unwrap().design();
    assert_eq!((design.documents, design.expected_documents), (101, 100));
    assert!(design.is_outgrown && design.advice.as_ref().unwrap().contains("reband"));
    assert_eq!(stats(&store).design, design);
    drop(store);
    let rebanding = Rebanding::new().expected_documents(1 << 33);
    let report = Store::reband(place.store(), &rebanding)
        .bulk(small())
        .run()
        .unwrap();
    assert!(report.is_rewritten, "more documents ask for more tables");
    let design = open(&place.store()).snapshot().unwrap().design();
    assert_eq!((design.is_outgrown, design.advice), (false, None));
}
