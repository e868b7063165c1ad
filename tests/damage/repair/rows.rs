//! Rows that are damaged in pages that are whole.

use crate::common::engine::{database, sealed_row};
use crate::common::{Place, refused, sealing_after, stats};
use crate::repair::oracle::{PAGE_BYTES, paths};
use crate::repair::{schema, signature};
use redb::{ReadableTable, TableDefinition};
use resemblance::schema::DocumentFrequencies;
use resemblance::{Closed, Document, Error, MinHash, Schema, SimHash, Store, Text};

/// A store with a row in every table.
fn filled(place: &Place) {
    let store = sealing_after(64).create(place.store(), schema()).unwrap();
    let mut transaction = store.begin_write().unwrap();
    for number in 0..100u64 {
        let key = format!("key {number}");
        let document = Document::new(&key).payload(b"payload");
        transaction.insert(document, &signature(number)).unwrap();
    }
    transaction.commit().unwrap();
    let mut transaction = store.begin_write().unwrap();
    transaction.remove("key 3").unwrap();
    transaction.commit().unwrap();
}

/// Changes a bit of every row of a table; how many there are.
fn damage<K: redb::Key + 'static>(
    place: &Place,
    table: TableDefinition<'static, K, &'static [u8]>,
    key_of: impl Fn(&K::SelfType<'_>) -> bool,
) -> usize
where
    for<'k> K::SelfType<'k>: Clone,
{
    let database = database(place.store());
    let write = database.begin_write().unwrap();
    let mut changed = 0;
    {
        let mut table = write.open_table(table).unwrap();
        let rows: Vec<(Vec<u8>, Vec<u8>)> = table
            .iter()
            .unwrap()
            .map(|row| {
                let (key, value) = row.unwrap();
                let chosen = key_of(&key.value());
                let mut value = value.value().to_vec();
                let middle = value.len() / 2;
                value[middle] ^= u8::from(chosen);
                changed += usize::from(chosen);
                (K::as_bytes(&key.value()).as_ref().to_vec(), value)
            })
            .collect();
        for (key, value) in &rows {
            table.insert(K::from_bytes(key), value.as_slice()).unwrap();
        }
    }
    write.commit().unwrap();
    changed
}

fn places(place: &Place) -> Vec<String> {
    let report = Store::check(place.store()).run().unwrap();
    assert!(!report.is_clean());
    report
        .problems
        .into_iter()
        .map(|problem| problem.place)
        .collect()
}

macro_rules! named {
    ($($test:ident: $table:literal, $key:ty;)*) => {
        $(#[test]
        fn $test() {
            let place = Place::new();
            filled(&place);
            let before = std::fs::read(place.store()).unwrap();
            let changed = damage::<$key>(&place, TableDefinition::new($table), |_| true);
            assert!(changed > 0);
            let damaged = std::fs::read(place.store()).unwrap();
            assert!(before != damaged);
            let found = places(&place);
            let name = format!("table {}, key ", $table);
            let named = found.iter().filter(|place| place.starts_with(&name)).count();
            assert_eq!(named, changed.min(100), "{found:#?}");
            assert!(std::fs::read(place.store()).unwrap() == damaged, "a check changed the file");
        })*
    };
}

named! {
    rows_of_meta_are_named: "meta", &'static str;
    rows_of_documents_are_named: "documents", u64;
    rows_of_payloads_are_named: "payloads", u64;
    rows_of_lanes_are_named: "lanes", u16;
    rows_of_runs_are_named: "runs", u32;
    rows_of_dead_are_named: "dead", u64;
    rows_of_keys_are_named: "keys", &'static [u8; 22];
    rows_of_bands_are_named: "bands", &'static [u8; 22];
    rows_of_permuted_are_named: "permuted", &'static [u8; 22];
    rows_of_filters_are_named: "filters", &'static [u8; 10];
}

/// A forged list of changed bitmaps keeps writers from committing a removal.
#[test]
fn check_reads_the_list_of_changed_bitmaps() {
    let place = Place::new();
    filled(&place);
    let name = "tombstone_changes";
    let database = database(place.store());
    let write = database.begin_write().unwrap();
    let mut meta = write
        .open_table(TableDefinition::<&str, &[u8]>::new("meta"))
        .unwrap();
    let row = sealed_row("meta", name.as_bytes(), vec![1, 0]);
    let old = meta.insert(name, row.as_slice()).unwrap();
    assert!(old.is_some());
    drop(old);
    drop(meta);
    write.commit().unwrap();
    drop(database);
    assert_eq!(places(&place), [name]);
}

/// A row of `documents` that no writer makes, and no store would import.
#[test]
fn check_names_documents_that_no_writer_encodes() {
    let place = Place::new();
    let schema = Schema::builder().minhash(MinHash::bottom_k(64));
    let store = Store::create(place.store(), schema.build().unwrap()).unwrap();
    let signature = store.sketcher().hashes(1..9).unwrap();
    store.insert(Document::without_key(), &signature).unwrap();
    drop(store);
    let database = database(place.store());
    let write = database.begin_write().unwrap();
    let mut documents = write
        .open_table(TableDefinition::<u64, &[u8]>::new("documents"))
        .unwrap();
    // The kind, and the number of hashes, which descend.
    let mut body = vec![1, 8, 0];
    let hashes = signature.bottom_k().unwrap().iter().rev();
    body.extend(hashes.flat_map(|hash| hash.to_le_bytes()));
    let row = sealed_row("documents", &[0; 8], body);
    drop(documents.insert(0, row.as_slice()).unwrap());
    drop(documents);
    write.commit().unwrap();
    drop(database);
    assert_eq!(places(&place), ["table documents, document 0"]);
}

/// A bit beyond the greatest id, and a document in both bitmaps, are damage and no bug.
#[test]
fn forged_bitmaps_are_damage() {
    let dead = TableDefinition::<u64, &[u8]>::new("dead");
    for (chunk, is_twice) in [(u64::MAX, false), (0, true)] {
        let place = Place::new();
        filled(&place);
        let database = database(place.store());
        let write = database.begin_write().unwrap();
        let mut table = write.open_table(dead).unwrap();
        let old = table.remove(0).unwrap().unwrap().value().to_vec();
        let bitmap = &old[1..2_001];
        let body = match is_twice {
            true => [&[2], bitmap, bitmap].concat(),
            false => [&[1], bitmap].concat(),
        };
        let row = sealed_row("dead", &chunk.to_be_bytes(), body);
        table.insert(chunk, row.as_slice()).unwrap();
        drop(table);
        write.commit().unwrap();
        drop(database);
        let opened = Store::open(place.store());
        assert!(matches!(opened, Err(Error::Corrupt { .. })), "{opened:?}");
    }
}

/// A damaged page elsewhere keeps no damaged row from being named.
#[test]
fn repair_names_rows_beside_a_damaged_page() {
    let place = Place::new();
    filled(&place);
    damage::<u64>(&place, TableDefinition::new("payloads"), |id| *id == 40);
    let bytes = std::fs::read(place.store()).unwrap();
    let is_in_bands =
        |place: &String| place.starts_with("page at") && place.contains("table bands");
    // Pages of rows begin with 1.
    let found = (PAGE_BYTES..bytes.len())
        .step_by(PAGE_BYTES)
        .find_map(|page| {
            let mut damaged = bytes.clone();
            damaged[page + 64] ^= u8::from(bytes[page] == 1);
            std::fs::write(place.store(), damaged).unwrap();
            let found = places(&place);
            found.iter().any(is_in_bands).then_some(found)
        });
    let found = found.expect("a page of bands");
    let is_row = |place: &String| place.starts_with("table payloads, key ");
    assert!(found.iter().any(is_row), "{found:#?}");
}

/// A scan finds the row that a document had before, too, and takes the one that is whole.
#[test]
fn repair_ignores_an_older_row_without_payload() {
    let place = Place::new();
    let page_of_row = |bytes: &[u8]| *paths(bytes, &[0].into())[&0].documents.last().unwrap();
    let store = sealing_after(64).create(place.store(), schema()).unwrap();
    let document = Document::new("a").payload(b"payload");
    store.insert(document, &signature(1)).unwrap();
    assert_eq!(store.close().unwrap(), Closed::File);
    let before = std::fs::read(place.store()).unwrap();
    let store = sealing_after(64).open(place.store()).unwrap();
    store.upsert("a", &signature(1)).unwrap();
    assert_eq!(store.close().unwrap(), Closed::File);
    let after = std::fs::read(place.store()).unwrap();

    // The rows of the document alone, the older one in front.
    let (old_at, length) = page_of_row(&before);
    let (new_at, _) = page_of_row(&after);
    let mut bytes = vec![0; after.len()];
    bytes[..PAGE_BYTES].copy_from_slice(&after[..PAGE_BYTES]);
    bytes[new_at..][..length].copy_from_slice(&after[new_at..][..length]);
    assert!(
        new_at > PAGE_BYTES && length == PAGE_BYTES,
        "{new_at}, {length}"
    );
    bytes[PAGE_BYTES..][..length].copy_from_slice(&before[old_at..][..length]);
    std::fs::write(place.store(), bytes).unwrap();
    let report = Store::repair(place.store(), place.file("new"))
        .schema(schema())
        .scan(true)
        .run()
        .unwrap();
    assert_eq!((report.documents, report.documents_lost), (1, 0));
    let snapshot = Store::open(place.file("new")).unwrap().snapshot().unwrap();
    assert!(snapshot.get("a").unwrap().unwrap().payload().is_empty());
}

/// One document is lost with each damaged row. The report lists neighbours as ranges.
#[test]
fn repair_drops_documents_without_rows() {
    let place = Place::new();
    filled(&place);
    let chosen = |id: &u64| (20..25).contains(id);
    damage::<u64>(&place, TableDefinition::new("documents"), chosen);
    damage::<u64>(&place, TableDefinition::new("payloads"), |id| *id == 40);
    let report = Store::repair(place.store(), place.file("new"))
        .run()
        .unwrap();
    assert_eq!((report.documents, report.documents_lost), (93, 6));
    assert_eq!(report.documents_before, Some(99));
    let ranges: Vec<_> = report
        .lost
        .iter()
        .map(|range| (range.first.get(), range.last.get(), range.reason.as_str()))
        .collect();
    let expected = [
        (20, 24, "its row in documents is damaged"),
        (40, 40, "its row in payloads is damaged"),
    ];
    assert_eq!(ranges, expected);
    crate::common::check_clean(&place.file("new"));
    let snapshot = Store::open(place.file("new")).unwrap().snapshot().unwrap();
    assert!(snapshot.contains("key 19").unwrap() && !snapshot.contains("key 20").unwrap());
    assert!(!snapshot.contains("key 3").unwrap(), "it was removed");
}

#[test]
fn repair_without_the_schema_row_requires_a_schema() {
    let place = Place::new();
    filled(&place);
    damage::<&str>(&place, TableDefinition::new("meta"), |name| {
        *name == "schema"
    });
    let new = place.file("new");
    let repair = || Store::repair(place.store(), &new);
    let error = repair().run().unwrap_err();
    assert!(matches!(&error, Error::Corrupt { place, .. } if place == "table meta, row schema"));
    let other = Schema::builder().minhash(MinHash::new(32)).build().unwrap();
    refused(repair().schema(other).run(), "schema");
    assert!(!new.exists());
    let report = repair().schema(schema()).run().unwrap();
    assert!(report.is_complete() && !report.has_own_schema);
    assert_eq!(
        report.damage.len(),
        2,
        "the row, and that it is missing: {report:#?}"
    );
}

/// The weights of a schema are in a separate row. Without it, the signatures belong to another
/// recipe.
#[test]
fn repair_without_the_weights_row_requires_weights() {
    let place = Place::new();
    let plain = Schema::builder()
        .text(Text::words(1))
        .simhash(SimHash::bits64().max_distance(3));
    let plain = plain.build().unwrap();
    let texts = ["a b c", "a b d", "a e f g"];
    let mut frequencies = DocumentFrequencies::new();
    let sketcher = plain.sketcher();
    for text in texts {
        frequencies.add_text(&sketcher, text).unwrap();
    }
    let weighted = plain.clone().with_weights(frequencies).unwrap();
    let store = Store::create(place.store(), weighted.clone()).unwrap();
    for text in texts {
        store
            .insert(text, &store.sketch_text(text).unwrap())
            .unwrap();
    }
    assert_eq!(store.close().unwrap(), Closed::File);
    let changed = damage::<&str>(&place, TableDefinition::new("meta"), |name| {
        *name == "weights"
    });
    assert_eq!(changed, 1);
    let new = place.file("new");
    let repair = || Store::repair(place.store(), &new);
    assert!(repair().run().is_err());
    assert!(repair().schema(plain).run().is_err());
    assert!(!new.exists());
    let report = repair().schema(weighted.clone()).run().unwrap();
    assert_eq!((report.documents, report.documents_lost), (3, 0));
    let store = Store::open(&new).unwrap();
    assert_eq!(*store.schema(), weighted);
}

/// A merge under way claimed four billion pieces of a filter, with right checksums. A check called
/// the store sound, and the merge would have written all of them.
#[test]
fn filters_too_large_for_their_merge_are_reported() {
    const RUNS: TableDefinition<'static, u32, &[u8]> = TableDefinition::new("runs");
    let place = Place::new();
    let options = sealing_after(50).merge_slice(1);
    let store = options.create(place.store(), schema()).unwrap();
    let mut numbers = 0..;
    while stats(&store).merges.is_empty() {
        let number = numbers.next().unwrap();
        store
            .insert(number.to_string(), &signature(number))
            .unwrap();
    }
    drop(store);
    let engine = database(place.store());
    let write = engine.begin_write().unwrap();
    {
        let mut runs = write.open_table(RUNS).unwrap();
        let rows = runs.iter().unwrap().map(|row| {
            let (run, row) = row.unwrap();
            (run.value(), row.value().to_vec())
        });
        // Only an output has inputs.
        let is_output = |(_, row): &(u32, Vec<u8>)| row[30..38] != [0; 8];
        let (run, mut row) = rows.into_iter().find(is_output).unwrap();
        row.truncate(row.len() - 4);
        // The last filter, which has one piece.
        let mut filters = row.windows(5);
        let filter = filters.rposition(|it| it == [1, 1, 0, 0, 0]).unwrap();
        row[filter + 1..][..4].copy_from_slice(&u32::MAX.to_le_bytes());
        let row = sealed_row("runs", &run.to_be_bytes(), row);
        runs.insert(run, row.as_slice()).unwrap();
    }
    write.commit().unwrap();
    drop(engine);
    let checked = Store::check(place.store()).run().map(drop);
    let opened = Store::open(place.store()).map(drop);
    for result in [checked, opened] {
        let Err(Error::Corrupt { detail, .. }) = result else {
            panic!("{result:?}");
        };
        assert!(detail.contains("a merge's filter"), "{detail}");
    }
    let report = Store::repair(place.store(), place.file("new")).run();
    assert!(report.unwrap().is_complete());
}
