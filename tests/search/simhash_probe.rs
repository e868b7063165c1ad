//! SimHash through the whole store: every pair within the distance is found, and none beyond.

use crate::common::sample::one_in;
use crate::common::{Place, Random, sealing_after};
use resemblance::{Document, Query, Schema, Signature, SimHash, Store};

fn schema(max_distance: u8, expected_documents: u64) -> Schema {
    let simhash = SimHash::bits64().max_distance(max_distance);
    let builder = Schema::builder().simhash(simhash);
    builder
        .expected_documents(expected_documents)
        .build()
        .unwrap()
}

fn store(place: &Place, schema: Schema, flush_after: u64) -> Store {
    sealing_after(flush_after)
        .create(place.store(), schema)
        .unwrap()
}

/// The answer of a query as (id, distance), best first.
fn answer(query: Query<'_>) -> Vec<(u64, u32)> {
    let matches = query.run().unwrap();
    let pairs = matches
        .iter()
        .map(|m| (m.id().get(), m.distance().unwrap()));
    pairs.collect()
}

/// Every way of flipping up to `most` bits of 64, or up to two if `most` is above 3, and then random
/// ways of flipping more.
fn flips(most: u32) -> Vec<u64> {
    let mut flips = vec![0];
    let mut start = 0;
    let exhausted = if most > 3 { 2 } else { most };
    for _ in 0..exhausted {
        let end = flips.len();
        for i in start..end {
            let word: u64 = flips[i];
            // Above the highest one, so that each set of bits comes once.
            let first = 64 - word.leading_zeros();
            flips.extend((first..64).map(|bit| word | 1 << bit));
        }
        start = end;
    }
    let mut random = Random(most.into());
    for ones in exhausted + 1..=most {
        flips.extend((0..2_000).map(|_| random.bits(ones)));
    }
    flips
}

/// One fingerprint is stored among strangers; each of its neighbours must find it. That is the same
/// as storing the neighbours, for a probe compares prefixes, and costs one document.
fn neighbours_find<'s>(
    flips: &[u64],
    fingerprint: u64,
    id: u64,
    query: impl Fn(&Signature) -> Vec<(u64, u32)> + 's,
) {
    for flips in flips {
        let signature = Signature::from_simhash(fingerprint ^ flips);
        let found = query(&signature);
        assert_eq!(found, [(id, flips.count_ones())], "flips {flips:#018x}");
    }
}

/// One neighbour in five, each with `RESEMBLANCE_TESTS=all`.
#[test]
fn every_neighbour_finds_the_fingerprint_wherever_it_is_filed() {
    // The designs differ with the distance and with the number of documents expected.
    let sizes = [1_000u64, 1_000_000, 1_000_000_000];
    let mut designs = std::collections::BTreeSet::new();
    for max_distance in 1..=8u8 {
        for expected in sizes {
            let schema = schema(max_distance, expected);
            if !designs.insert(schema.simhash().unwrap().to_string()) {
                continue;
            }
            let all = flips(max_distance.into());
            // A part for each place in which the fingerprint can be filed.
            let part = |n: usize| -> Vec<u64> {
                let part = all.iter().copied().skip(n).step_by(6 * one_in(5));
                part.collect()
            };
            let place = Place::new();
            let mut random = Random(expected + u64::from(max_distance));
            let fingerprint = random.next();
            let signature = Signature::from_simhash(fingerprint);
            let strangers = |random: &mut Random, store: &Store, count: usize| {
                let mut transaction = store.begin_write().unwrap();
                for _ in 0..count {
                    let far = fingerprint ^ random.bits(20 + random.0 as u32 % 20);
                    transaction
                        .insert(Document::without_key(), &Signature::from_simhash(far))
                        .unwrap();
                }
                transaction.commit().unwrap();
            };
            let in_snapshot = |store: &Store, flips: &[u64], id: u64| {
                let snapshot = store.snapshot().unwrap();
                neighbours_find(flips, fingerprint, id, |s| answer(snapshot.query(s)));
            };

            let store = store(&place, schema, 20);
            strangers(&mut random, &store, 5);
            let mut transaction = store.begin_write().unwrap();
            let id = transaction
                .insert(Document::without_key(), &signature)
                .unwrap()
                .get();
            neighbours_find(&part(0), fingerprint, id, |s| answer(transaction.query(s)));
            transaction.commit().unwrap();
            in_snapshot(&store, &part(1), id); // in the memtable
            strangers(&mut random, &store, 30);
            in_snapshot(&store, &part(2), id); // in a run of its own level
            let transaction = store.begin_write().unwrap();
            neighbours_find(&part(3), fingerprint, id, |s| answer(transaction.query(s)));
            drop(transaction);
            for _ in 0..8 {
                strangers(&mut random, &store, 20);
            }
            in_snapshot(&store, &part(4), id); // in a merged run
            drop(store);
            let store = Store::open(place.store()).unwrap();
            in_snapshot(&store, &part(5), id);
        }
    }
    assert!(designs.len() >= 5, "{designs:?}");
}

#[test]
fn a_query_may_ask_beyond_the_distance_of_the_schema() {
    let place = Place::new();
    let store = store(&place, schema(3, 1_000), 10);
    let signature = Signature::from_simhash(0x0123_4567_89ab_cdef);
    let far = Signature::from_simhash(0x0123_4567_89ab_cdef ^ 0xf);
    store.insert(Document::without_key(), &signature).unwrap();
    let snapshot = store.snapshot().unwrap();
    for most in [4, 5, 64, u32::MAX] {
        let found = answer(snapshot.query(&far).max_distance(most));
        assert_eq!(found, [(0, 4)]);
        let found = answer(snapshot.query(&far).max_distance(most).scan());
        assert_eq!(found, [(0, 4)]);
    }
    assert_eq!(answer(snapshot.query(&far).max_distance(3)), []);
    assert_eq!(snapshot.query(&far).run().unwrap().recall(), None);
}
