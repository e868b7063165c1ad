//! Keys with the same code, which are distinguished by their bytes.

use resemblance::{BulkOptions, Document, Novelty, Store};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::common::small::{schema, signature};
use crate::common::{Place, check_clean, sealing_after};

/// The seed of the key lane.
const SEED: u64 = 0x6b65_7920_6c61_6e65;

/// Words of the default secret of XXH3, at 24 and 32, and at 40 and 48.
const LOW: u64 = 0x1f67_b3b7_a4a4_4072 ^ 0x78e5_c0cc_4ee6_79cb;
const HIGH: u64 = 0x2172_ffcc_7dd0_5a82 ^ 0x8e24_43f7_7446_08b8;

/// XXH3 reads 16 bytes as two words, x and y, and mixes 16 + swap(x) + y + fold(x * y), where fold
/// adds the halves of the product without a carry. If x = m is a small number and y is below 2^64 /
/// m, this is 16 + swap(m) + (m + 1) y. For any given sum, y then follows for about one m in m + 1.
fn colliding_keys() -> Vec<[u8; 16]> {
    let sum = 0xfeed_face_cafe_beef_u64;
    let y = |m: u64| {
        let rest = sum.wrapping_sub(m.swap_bytes());
        let y = rest / (m + 1);
        (rest.is_multiple_of(m + 1) && y < u64::MAX / m.max(1)).then_some((m, y))
    };
    let key = |(x, y): (u64, u64)| {
        let low = x ^ LOW.wrapping_add(SEED);
        let high = y ^ HIGH.wrapping_sub(SEED);
        let words = [low.to_le_bytes(), high.to_le_bytes()].concat();
        words.try_into().unwrap()
    };
    (0..3_000_000).filter_map(y).map(key).collect()
}

#[test]
fn keys_with_colliding_hashes_stay_different() {
    let keys = colliding_keys();
    let codes: Vec<u64> = keys
        .iter()
        .map(|key| xxh3_64_with_seed(key, SEED))
        .collect();
    assert!(keys.len() >= 8, "{}", keys.len());
    assert!(codes.iter().all(|code| *code == codes[0]), "{codes:x?}");
    let (absent, keys) = keys.split_last().unwrap();
    for flush_after in [2, 1_000] {
        let place = Place::new();
        let store = sealing_after(flush_after).create(place.store(), schema());
        let store = store.unwrap();
        for (number, key) in (0..).zip(keys) {
            assert!(!store.snapshot().unwrap().contains(key).unwrap());
            let new = store.insert_if_new(key, &signature(number)).unwrap();
            assert!(matches!(new, Novelty::New { id, .. } if id.get() == u64::from(number)));
            assert!(store.insert(key, &signature(99)).is_err());
        }
        let holds = |store: &Store, expected: &[u64]| {
            let snapshot = store.snapshot().unwrap();
            assert_eq!(snapshot.len(), expected.len() as u64);
            for (key, id) in keys.iter().zip(expected) {
                let record = snapshot.get(key).unwrap().unwrap();
                assert_eq!((record.id().get(), record.key()), (*id, Some(&key[..])));
            }
            assert!(!snapshot.contains(absent).unwrap());
        };
        let mut ids: Vec<u64> = (0..keys.len() as u64).collect();
        holds(&store, &ids);
        // Replaced in the middle, and removed at the end.
        let again = store.upsert(keys[2], &signature(50)).unwrap();
        assert_eq!(again.replaced.map(|id| id.get()), Some(2));
        ids[2] = again.id.get();
        assert_eq!(
            store
                .remove(keys[keys.len() - 1])
                .unwrap()
                .map(|id| id.get()),
            ids.pop()
        );
        assert!(store.remove(absent).unwrap().is_none());
        holds(&store, &ids);
        drop(store);
        check_clean(&place.store());
        Store::compact(place.store()).run().unwrap();
        check_clean(&place.store());
        holds(&Store::open(place.store()).unwrap(), &ids);
    }
    let place = Place::new();
    let mut build = Store::bulk_build(place.store(), schema(), &BulkOptions::new()).unwrap();
    for (number, key) in (0..).zip(keys) {
        build
            .insert(Document::new(key), &signature(number))
            .unwrap();
    }
    assert_eq!(build.finish().unwrap().documents, keys.len() as u64);
    check_clean(&place.store());
}
