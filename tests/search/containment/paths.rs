//! Every way in which documents enter a store, and every state that they have there.

use resemblance::schema::Rebanding;
use resemblance::{
    BulkOptions, Closed, Containment, Document, MinHash, Schema, SimHash, Store, Text,
};

use super::brute_force::{self, Documents};
use super::{schema, store_of};
use crate::common::{Place, check_clean, sealing_after};

fn schemas() -> Vec<Schema> {
    let beside = Schema::builder().text(Text::words(3));
    let beside = beside
        .minhash(MinHash::new(32).banding(8, 2))
        .simhash(SimHash::bits64());
    let characters = Schema::builder().text(Text::characters(9));
    vec![
        schema(Containment::new(3).window(4)),
        schema(Containment::new(2).scaled(3)),
        beside
            .containment(Containment::new(3).window(5))
            .build()
            .unwrap(),
        characters
            .containment(Containment::new(9).window(16))
            .build()
            .unwrap(),
    ]
}

#[test]
fn containment_agrees_with_brute_force_in_every_state() {
    for schema in schemas() {
        let place = Place::new();
        let (store, mut held) = store_of(&place, &schema, 200);
        held.assert_found(&store.snapshot().unwrap());

        // Uncommitted, with removals on disk and in memory.
        let mut transaction = store.begin_write().unwrap();
        for number in (0..200).step_by(3).chain([199]) {
            transaction.remove(u64::to_be_bytes(number)).unwrap();
            held.remove(number);
        }
        for number in 300..330 {
            let text = brute_force::text(number);
            let signature = store.sketch_text(&text).unwrap();
            transaction
                .insert(number.to_be_bytes(), &signature)
                .unwrap();
            held.insert(number, &text);
        }
        let query = store.sketch_text(&brute_force::text(7)).unwrap();
        held.assert_answers(
            &query,
            |query| transaction.overlaps(query),
            |query| transaction.contained_in(query),
            |query| transaction.contents_of(query),
        );
        transaction.commit().unwrap();
        held.assert_found(&store.snapshot().unwrap());
        drop(store);
        check_clean(&place.store());

        let store = sealing_after(8).open(place.store()).unwrap();
        held.assert_found(&store.snapshot().unwrap());
        drop(store);
        Store::compact(place.store()).run().unwrap();
        check_clean(&place.store());
        held.assert_found(&Store::open(place.store()).unwrap().snapshot().unwrap());
    }
}

#[test]
fn copies_of_a_store_keep_containment() {
    for schema in schemas() {
        let place = Place::new();
        let (store, mut held) = store_of(&place, &schema, 150);
        for number in (0..150).step_by(7) {
            store.remove(u64::to_be_bytes(number)).unwrap();
            held.remove(number);
        }
        let snapshot = store.snapshot().unwrap();
        let mut bytes = Vec::new();
        snapshot.export(&mut bytes).run().unwrap();
        snapshot.backup(place.file("backup")).run().unwrap();
        drop(snapshot);
        assert_eq!(store.close().unwrap(), Closed::File);
        let imported = Store::create(place.file("imported"), schema).unwrap();
        imported.import(&bytes[..]).run().unwrap();
        drop(imported);
        Store::repair(place.store(), place.file("repaired"))
            .run()
            .unwrap();
        for name in ["backup", "imported", "repaired"] {
            check_clean(&place.file(name));
            held.assert_found(&Store::open(place.file(name)).unwrap().snapshot().unwrap());
        }
    }
}

/// The postings of some documents go to the temporary file.
#[test]
fn containment_builds_offline_in_little_memory() {
    let place = Place::new();
    let schema = schema(Containment::new(2).window(1));
    let mut held = Documents::new(&schema);
    let options = BulkOptions::new().memory_bytes(1 << 20);
    let mut build = Store::bulk_build(place.store(), schema.clone(), &options).unwrap();
    let sketcher = schema.sketcher();
    for number in 0..3_000_u64 {
        let text = brute_force::text(number);
        let key = number.to_be_bytes();
        build
            .insert(Document::new(&key), &sketcher.text(&text).unwrap())
            .unwrap();
        held.insert(number, &text);
    }
    let report = build.finish().unwrap();
    assert!(report.spills > 1, "{report:?}");
    check_clean(&place.store());
    held.assert_found(&Store::open(place.store()).unwrap().snapshot().unwrap());
}

#[test]
fn reband_keeps_kept_hashes() {
    let place = Place::new();
    let schema = schemas().swap_remove(2);
    let (store, held) = store_of(&place, &schema, 100);
    assert_eq!(store.close().unwrap(), Closed::File);
    let rebanding = Rebanding::new().banding(6, 3);
    let report = Store::reband(place.store(), &rebanding).run().unwrap();
    assert!(report.is_rewritten);
    check_clean(&place.store());
    held.assert_found(&Store::open(place.store()).unwrap().snapshot().unwrap());
}
