//! A store with several runs, merges under way, removed documents and a memtable, read by the
//! independent reader.

use resemblance::{Document, MinHash, Schema, SimHash, Store, StoreOptions, Text};

use crate::common::sample::one_in;
use crate::spec::reader;
use crate::spec::recipe::mix64;
use crate::spec::schema::Schema as OwnSchema;
use crate::spec::stored::{self, Model, Seen};

const SEAL_AFTER: u64 = 200;

struct Builder {
    model: Model,
    random: u64,
}

impl Builder {
    fn below(&mut self, end: u64) -> u64 {
        self.random += 1;
        mix64(self.random.wrapping_mul(0x9e37_79b9_7f4a_7c15)) % end
    }

    /// Texts with many words in common, a few without any.
    fn text(&mut self) -> String {
        let words = if self.below(50) == 0 {
            0
        } else {
            1 + self.below(30)
        };
        let word = |this: &mut Self| format!("Word{}, ", this.below(40));
        (0..words).map(|_| word(self)).collect()
    }
}

fn schema() -> Schema {
    Schema::builder()
        .text(Text::words(2))
        .minhash(MinHash::new(64).threshold(0.6).code_bits(36))
        .simhash(SimHash::bits64().max_distance(3))
        .seed(0xfeed)
        .build()
        .unwrap()
}

/// Adds documents of all kinds, and takes some away, in one transaction.
fn fill(store: &Store, own: &OwnSchema, builder: &mut Builder, round: u64) {
    let mut transaction = store.begin_write().unwrap();
    for number in 0..50 {
        let text = builder.text();
        let key = match number % 5 {
            0 => None,
            // Some of the last documents of a round replace older ones.
            1 => Some(format!("again/{}", builder.below(200))),
            _ => Some(format!("{round}/{number}")),
        };
        let payload = text.as_bytes()[..text.len().min(9)].to_vec();
        let document = match &key {
            Some(key) => Document::new(key),
            None => Document::without_key(),
        };
        let document = document.stamp(round * number).payload(&payload);
        let signature = store.sketch_text(&text).unwrap();
        let id = match &key {
            Some(_) => {
                let upserted = transaction.upsert(document, &signature).unwrap();
                if let Some(replaced) = upserted.replaced {
                    builder.model.remove(&replaced.get()).unwrap();
                }
                upserted.id
            }
            None => transaction.insert(document, &signature).unwrap(),
        };
        let expected = reader::Document {
            key: key.map(String::into_bytes),
            stamp: round * number,
            payload,
            signature: own.stored(own.recipe.text(&text)),
        };
        builder.model.insert(id.get(), expected);
    }
    for _ in 0..4 {
        let ids: Vec<u64> = builder.model.keys().copied().collect();
        let id = ids[builder.below(ids.len() as u64) as usize];
        builder.model.remove(&id);
        assert!(
            transaction
                .remove_id(resemblance::DocumentId::new(id))
                .unwrap()
        );
    }
    transaction.commit().unwrap();
}

/// After one transaction in three, after each with `RESEMBLANCE_TESTS=all`.
#[test]
fn every_document_has_exactly_its_postings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.rsm");
    let options = StoreOptions::new().flush_after(SEAL_AFTER).merge_slice(1);
    drop(options.create(&path, schema()).unwrap());
    let own = reader::Store::read(&path).schema;
    let mut builder = Builder {
        model: Model::new(),
        random: 0,
    };
    let (distance, mut seen) = (one_in(3), Seen::default());
    let mut store = options.open(&path).unwrap();
    for round in 1..=60 {
        fill(&store, &own, &mut builder, round);
        if round > 30 && round % distance as u64 == 0 {
            drop(store);
            let read = reader::Store::read(&path);
            seen.add(&stored::check(&read, &builder.model));
            check_counters(&read, &builder.model, round);
            store = options.open(&path).unwrap();
        }
    }
    assert!(
        builder
            .model
            .values()
            .any(|document| document.signature.empty)
    );
    let least = 8 / distance;
    assert!(seen.outputs >= least && seen.begun >= least, "{seen:?}");
    assert!(seen.unflushed > 0 && seen.since > 0, "{seen:?}");
    assert!(
        seen.dead_postings > 0 && seen.followed_blocks > 0,
        "{seen:?}"
    );
    assert!(seen.of_bands > 0 && seen.of_tables > 0, "{seen:?}");
    assert!(seen.pieces > seen.of_bands + seen.of_tables, "{seen:?}");
}

fn check_counters(store: &reader::Store, model: &Model, round: u64) {
    assert!(store.runs.values().any(|run| run.level > 0));
    assert_eq!(store.state.next_id, round * 50);
    assert_eq!(store.state.commit, round);
    // Inserted documents that are missing have been removed.
    let moved = 2 * round * 50 - model.len() as u64;
    assert_eq!(store.state.postings_moved, moved * store.lanes.len() as u64);
}
