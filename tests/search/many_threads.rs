//! Many signatures are answered on several threads, and the answers are those of one.

use crate::common::{Random, insert_all, refused};
use resemblance::{Matches, MinHash, Schema, Signature, StoreOptions};

/// Near-duplicates by threes, some of them in runs, some in memory, some deleted.
#[test]
fn answers_are_the_same_for_any_number_of_threads() {
    const DOCUMENTS: u64 = 4_000;
    let signature = |number: u64| {
        let mut random = Random(number / 3);
        let mut values: Vec<u32> = (0..16).map(|_| random.next() as u32).collect();
        values[(number % 3) as usize] = number as u32;
        Signature::from_minhash(values)
    };
    let minhash = MinHash::new(16).banding(8, 2).value_bits(32).threshold(0.5);
    let schema = Schema::builder().minhash(minhash).build().unwrap();
    let options = StoreOptions::new().flush_after(1_500);
    let store = options.create_in_memory(schema).unwrap();
    insert_all(
        &store,
        (0..DOCUMENTS).map(|number| (number.to_le_bytes(), signature(number))),
    );
    for number in (0..DOCUMENTS).step_by(97) {
        store.remove(number.to_le_bytes()).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let asked: Vec<Signature> = (0..DOCUMENTS + 500).map(signature).collect();
    let query = || snapshot.query(&asked).min_similarity(0.6).limit(2);
    let expected = query().threads(1).run().unwrap();
    assert!(expected.iter().filter(|matches| matches.len() == 2).count() > 3_000);
    for threads in [2, 3, 8, 1_024] {
        assert_eq!(query().threads(threads).run().unwrap(), expected);
    }
    assert_eq!(query().run().unwrap(), expected);
    for threads in [0, 1_025] {
        refused(query().threads(threads).run(), "threads");
    }
    let candidates = snapshot.query(&asked).candidates().unwrap();
    for (signature, candidates) in asked.iter().zip(&candidates).step_by(31) {
        assert_eq!(snapshot.query(signature).candidates().unwrap(), *candidates);
    }
    // A closure of the caller stays on the thread of the caller.
    let own = std::thread::current().id();
    let verified = query().threads(4).verify(|_, _| {
        assert_eq!(std::thread::current().id(), own);
        Ok(None)
    });
    for (verified, expected) in verified.run().unwrap().iter().zip(&expected) {
        let ids = |matches: &Matches| matches.iter().map(|found| found.id()).collect::<Vec<_>>();
        assert_eq!(ids(verified), ids(expected));
    }
}
