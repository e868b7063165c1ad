//! A store with several runs, removed documents and a memtable, read by the independent reader.

use std::collections::{BTreeMap, BTreeSet};

use resemblance::{Document, MinHash, Schema, SimHash, Store, StoreOptions, Text};

use crate::blocks;
use crate::reader;
use crate::recipe::mix64;

const SEAL_AFTER: u64 = 90;

/// What the store must hold, by id.
type Model = BTreeMap<u64, reader::Document>;

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

/// Adds documents of all kinds, and takes some away.
fn fill(store: &Store, own: &reader::Schema) -> Model {
    let mut builder = Builder {
        model: Model::new(),
        random: 0,
    };
    for round in 0..40u64 {
        let mut transaction = store.begin_write().unwrap();
        for number in 0..50 {
            let text = builder.text();
            let key = match number % 5 {
                0 => None,
                // Of the last documents of a round some take the place of older ones.
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
                    let upserted = transaction.upsert_document(document, &signature).unwrap();
                    if let Some(replaced) = upserted.replaced {
                        builder.model.remove(&replaced.get()).unwrap();
                    }
                    upserted.id
                }
                None => transaction.insert_document(document, &signature).unwrap(),
            };
            let expected = reader::Document {
                key: key.map(String::into_bytes),
                stamp: round * number,
                payload,
                signature: own.recipe.text(&text),
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
    builder.model
}

fn large_store() -> (reader::Store, Model) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.rsm");
    let options = StoreOptions::new().seal_after(SEAL_AFTER);
    let store = Store::create_with(&path, schema(), &options).unwrap();
    drop(store);
    let own = reader::Store::read(&path).schema;
    let store = Store::open_with(&path, &options).unwrap();
    let model = fill(&store, &own);
    drop(store);
    (reader::Store::read(&path), model)
}

#[test]
fn every_document_has_exactly_its_postings() {
    let (store, model) = large_store();
    assert!(store.runs.len() >= 3, "{:?}", store.runs);
    assert!(
        store
            .documents
            .keys()
            .any(|id| *id >= store.state.sealed_below)
    );
    assert!(!store.dead.is_empty());
    assert_eq!(store.state.next_id, 2_000);
    assert_eq!(store.state.commit, 40);
    assert_eq!(store.state.documents, model.len() as u64);
    let unsealed = store.documents.range(store.state.sealed_below..).count();
    assert_eq!(store.state.unsealed_documents, unsealed as u64);
    assert_eq!(store.documents, model);

    let dead: BTreeSet<u64> = store.dead.iter().copied().collect();
    let mut found = Vec::new();
    let mut dead_postings = 0;
    for (lane, (code, id)) in store.postings() {
        if dead.contains(&id) {
            dead_postings += 1;
        } else {
            found.push((id, lane, code));
        }
    }
    assert!(dead_postings > 0);
    found.sort_unstable();
    let mut expected = Vec::new();
    for (id, document) in &model {
        let codes = store
            .schema
            .codes(document.key.as_deref(), &document.signature);
        for (lane, code) in (0..).zip(codes) {
            expected.extend(code.map(|code| (*id, lane, code)));
        }
    }
    assert!(model.values().any(|document| document.signature.empty));
    assert_eq!(found, expected);
}

/// Invariants 3, 4 and 7.
#[test]
fn runs_and_blocks_are_as_described() {
    let (store, model) = large_store();
    let mut ranges: Vec<_> = store.runs.values().map(|run| run.ids.clone()).collect();
    ranges.sort_by_key(|ids| *ids.start());
    assert!(ranges.is_sorted_by(|a, b| a.end() < b.start()));
    assert!(
        ranges
            .iter()
            .all(|ids| *ids.end() < store.state.sealed_below)
    );
    assert!(store.runs.keys().all(|run| *run < store.state.next_run));
    assert!(store.runs.values().any(|run| run.level > 0));
    for id in &store.dead {
        assert!(!model.contains_key(id));
        assert!(ranges.iter().any(|ids| ids.contains(id)));
    }

    let mut several_blocks = false;
    for (number, run) in &store.runs {
        assert!(
            run.lanes
                .keys()
                .eq(&(0..store.lanes.len() as u16).collect::<Vec<_>>())
        );
        for (lane, expected) in &run.lanes {
            let table = store.lanes[usize::from(*lane)];
            let blocks = store.blocks[table].iter();
            let of_lane =
                |block: &&(blocks::Block, Vec<u8>)| (block.0.run, block.0.lane) == (*number, *lane);
            let blocks: Vec<_> = blocks.filter(of_lane).collect();
            let mut previous = None;
            let (mut postings, mut bytes) = (0, 0);
            for (index, (block, value)) in blocks.iter().enumerate() {
                assert_eq!(block.previous, previous);
                assert!(previous.is_none_or(|previous| previous < block.postings[0]));
                assert!(block.postings.is_sorted_by(|a, b| a < b));
                assert!(block.postings.iter().all(|(_, id)| run.ids.contains(id)));
                assert!(value.len() <= 4_066);
                assert_eq!(
                    &blocks::encode(table, block),
                    value,
                    "the encoding is canonical"
                );
                assert_eq!(blocks::size(&block.postings), value.len());
                if let Some((next, _)) = blocks.get(index + 1) {
                    let more = [&block.postings[..], &next.postings[..1]].concat();
                    assert!(blocks::size(&more) > 4_066, "blocks are full");
                    several_blocks = true;
                }
                previous = block.postings.last().copied();
                postings += block.postings.len() as u64;
                bytes += value.len() as u64;
            }
            let counts = (expected.postings, expected.blocks, expected.bytes);
            assert_eq!(counts, (postings, blocks.len() as u64, bytes));
            assert_eq!(expected.last, previous);
        }
    }
    assert!(several_blocks);
    let described: u64 = store
        .runs
        .values()
        .flat_map(|run| run.lanes.values())
        .map(|lane| lane.blocks)
        .sum();
    assert_eq!(store.blocks.values().flatten().count() as u64, described);
}
