//! Every kind of signature, filed by other bands and tables.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use resemblance::schema::{EmptyDocuments, Permutations};
use resemblance::{DocumentId, MinHash, Schema, SchemaBuilder, Signature, SimHash, Store, Text};

use crate::common::{Ending, Place, Random};
use crate::transfer::{Entry, create, entries, entry, export, fill, import, signature};

fn build(builder: SchemaBuilder) -> Schema {
    builder.build().unwrap()
}

/// A name, a schema, and one with the same recipe that files documents in another way.
fn kinds() -> Vec<(&'static str, Schema, Schema)> {
    let minhash = |minhash: fn() -> MinHash| {
        let builder = |minhash| build(Schema::builder().minhash(minhash));
        let bands = minhash().banding(6, 2).threshold(0.5);
        (
            builder(minhash().banding(4, 3).threshold(0.7)),
            builder(bands.code_bits(64)),
        )
    };
    let simhash = |simhash: fn() -> SimHash| {
        let builder = |simhash| build(Schema::builder().simhash(simhash));
        (
            builder(simhash().max_distance(3)),
            builder(simhash().max_distance(5)),
        )
    };
    let both = |distance, threshold| {
        let builder = Schema::builder().text(Text::words(2)).seed(7);
        let builder = builder.empty_documents(EmptyDocuments::Alike);
        let builder = builder.minhash(MinHash::new(64).threshold(threshold));
        build(builder.simhash(SimHash::bits64().max_distance(distance)))
    };
    let cut = |bits: u8, bands: u16| {
        let minhash = MinHash::new(64).value_bits(bits).banding(bands, 3);
        build(Schema::builder().minhash(minhash))
    };
    let kinds = [
        ("functions", minhash(|| MinHash::new(32))),
        (
            "tabulation",
            minhash(|| MinHash::new(32).permutations(Permutations::Tabulation)),
        ),
        ("one-pass", minhash(|| MinHash::one_pass(64))),
        ("weighted", minhash(|| MinHash::weighted(32))),
        ("bottom-k", minhash(|| MinHash::bottom_k(128))),
        ("external", minhash(|| MinHash::external(32))),
        (
            "external bytes",
            minhash(|| MinHash::external(32).value_bits(8)),
        ),
        ("simhash 64", simhash(SimHash::bits64)),
        ("simhash 128", simhash(SimHash::bits128)),
        ("both", (both(3, 0.8), both(4, 0.5))),
        ("few bits", (cut(4, 9), cut(4, 11))),
        ("one bit", (cut(1, 9), cut(1, 8))),
        ("whole values to few bits", (cut(32, 9), cut(4, 11))),
        ("many bits to few", (cut(16, 9), cut(2, 11))),
    ];
    let named = kinds.into_iter();
    named.map(|(name, (from, to))| (name, from, to)).collect()
}

/// As a sketcher of the schema makes it; where none is made, values of the width that it has.
fn signature_of(schema: &Schema, random: &mut Random) -> Signature {
    let minhash = schema.minhash();
    let external = minhash.filter(|m| m.kind() == resemblance::schema::MinHashKind::External);
    let Some(external) = external else {
        return signature(&schema.sketcher(), random);
    };
    let own = MinHash::one_pass(external.values()).value_bits(32);
    let own = build(Schema::builder().minhash(own));
    let made = signature(&own.sketcher(), random);
    let values = made.minhash().unwrap().iter();
    let is_empty = made.is_empty();
    let kept = |value: &u32| match is_empty {
        true => u32::MAX,
        false => value >> (32 - u32::from(external.value_bits())),
    };
    Signature::from_minhash(values.map(kept).collect())
}

/// Documents, some of which are removed or replaced; those that are left, in their order.
fn filled(store: &Store, count: u64, random: &mut Random) -> Vec<Entry> {
    let schema = store.schema().clone();
    let all: Vec<Entry> = (0..count)
        .map(|number| entry(signature_of(&schema, random), number, random))
        .collect();
    fill(store, &all);
    let mut left: Vec<Option<Entry>> = all.into_iter().map(Some).collect();
    let mut transaction = store.begin_write().unwrap();
    for id in 0..count as usize {
        let key = left[id].as_ref().and_then(|entry| entry.key.clone());
        match random.below(6) {
            0 => {
                assert!(transaction.remove_id(DocumentId::new(id as u64)).unwrap());
                left[id] = None;
            }
            1 if key.is_some() => {
                let mut new = entry(signature_of(&schema, random), id as u64, random);
                new.key = key;
                let upserted = transaction.upsert(new.document(), &new.signature);
                let upserted = upserted.unwrap();
                if upserted.replaced.is_none() {
                    // Both are empty: the document is in its place.
                    left[id] = Some(new);
                } else {
                    assert_eq!(upserted.id.get(), left.len() as u64);
                    left[id] = None;
                    left.push(Some(new));
                }
            }
            _ => {}
        }
    }
    transaction.commit().unwrap();
    left.into_iter().flatten().collect()
}

#[test]
fn streams_round_trip_byte_by_byte() {
    for (name, from, to) in kinds() {
        let place = Place::new();
        let mut random = Random(5);
        let old = create(&place, "old.rsm", from.clone());
        let all: Vec<Entry> = (0..90)
            .map(|number| entry(signature_of(&from, &mut random), number, &mut random))
            .collect();
        fill(&old, &all);
        let stream = export(&old.snapshot().unwrap());
        let new = create(&place, "new.rsm", from);
        import(new.import(&stream[..]));
        assert!(export(&new.snapshot().unwrap()) == stream, "{name}");
        // Values that are cut to fewer bits are those of signatures that are inserted.
        let imported = create(&place, "imported.rsm", to.clone());
        import(imported.import(&stream[..]));
        let direct = create(&place, "direct.rsm", to);
        fill(&direct, &all);
        let [imported, direct] = [imported, direct].map(|store| store.snapshot().unwrap());
        assert!(entries(&imported) == entries(&direct), "{name}");
    }
}

#[test]
fn empty_store_can_be_exported() {
    let place = Place::new();
    let (_, from, to) = kinds().remove(0);
    let stream = export(&create(&place, "old.rsm", from).snapshot().unwrap());
    let new = create(&place, "new.rsm", to);
    assert_eq!(import(new.import(&stream[..])).read, 0);
}

#[test]
fn export_of_a_busy_store_equals_its_snapshot() {
    let place = Place::new();
    let (_, from, to) = kinds().remove(9);
    let old = create(&place, "old.rsm", from);
    let left = filled(&old, 300, &mut Random(3));
    let snapshot = old.snapshot().unwrap();
    let before = entries(&snapshot);
    assert_eq!(before.len(), left.len());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random(4);
            while !done.load(Ordering::Acquire) {
                let signature = signature_of(old.schema(), &mut random);
                let key = random.below(300).to_le_bytes();
                old.upsert(key, &signature).unwrap();
            }
        });
        let _ending = Ending(&done);
        for number in 0..5 {
            let new = create(&place, &format!("new-{number}.rsm"), to.clone());
            let stream = export(&snapshot);
            import(new.import(&stream[..]));
            assert!(entries(&new.snapshot().unwrap()) == before);
        }
    });
}
