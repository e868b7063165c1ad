use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::Error;
use crate::query::bounds::{Bounds, Family};
use crate::query::verify::Earlier;
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::types::{Document, Match, Matches, Novelty};
use resemblance_sketch::schema::{Combine, MinHash, Schema, SimHash};
use resemblance_sketch::sketch::Signature;

/// SplitMix64.
fn random(state: u64) -> u64 {
    let z = state.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const VALUES: u64 = 16;

/// A few families, near each other within one.
fn signature(number: u64, with_fingerprint: bool) -> Signature {
    let family = number % 6;
    let mut values: Vec<u32> = (0..VALUES).map(|i| (family * 100 + i) as u32).collect();
    let mut fingerprint = random(family);
    for change in 0..random(number) % 4 {
        let place = random(number * 7 + change) % VALUES;
        values[place as usize] = 5_000 + (random(number + change) % 3) as u32;
        fingerprint ^= 1 << (random(number * 3 + change) % 64);
    }
    Signature::from_parts(Some(values), with_fingerprint.then_some(fingerprint))
}

/// What the closure says of two: any similarity, sometimes none.
fn reported(a: u64, b: u64) -> Option<f64> {
    let number = random(a << 32 | b) % 9;
    number.checked_sub(1).map(|number| number as f64 / 7.0)
}

fn store(with_fingerprint: bool) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let minhash = MinHash::new(VALUES as u16).threshold(0.75).banding(8, 2);
    let mut builder = Schema::builder().minhash(minhash);
    if with_fingerprint {
        builder = builder
            .simhash(SimHash::bits64().max_distance(3))
            .near(Combine::Both);
    }
    let store = Store::create(folder.path().join("s"), builder.build().unwrap()).unwrap();
    (folder, store)
}

fn filled(with_fingerprint: bool) -> (tempfile::TempDir, Snapshot) {
    let (folder, store) = store(with_fingerprint);
    let mut transaction = store.begin_write().unwrap();
    for number in 0..300 {
        transaction
            .insert(
                Document::without_key(),
                &signature(number, with_fingerprint),
            )
            .unwrap();
    }
    transaction.commit().unwrap();
    let snapshot = store.snapshot().unwrap();
    (folder, snapshot)
}

type Measures = (Option<f64>, bool, Option<u32>);

fn measures(matches: &[Match]) -> BTreeMap<u64, Measures> {
    let measures = matches.iter().map(|found| {
        let measures = (found.similarity(), found.is_exact(), found.distance());
        (found.id().get(), measures)
    });
    measures.collect()
}

/// What is expected of the candidates of a probe.
fn settled(
    candidates: &BTreeMap<u64, Measures>,
    probe: u64,
    (least, most): (Option<f64>, Option<u32>),
    both: bool,
) -> BTreeMap<u64, Measures> {
    let settled = candidates.iter().map(|(id, (estimate, _, distance))| {
        let exact = reported(probe, *id);
        (*id, (exact.or(*estimate), exact.is_some(), *distance))
    });
    let is_within = |(_, (similarity, _, distance)): &(u64, Measures)| {
        let near = least.is_some_and(|least| similarity.unwrap() >= least);
        let close = most.is_some_and(|most| distance.unwrap() <= most);
        if both { near && close } else { near || close }
    };
    settled.filter(is_within).collect()
}

fn is_ranked(matches: &Matches) -> bool {
    matches.is_sorted_by(|a, b| {
        let greater = b.similarity().partial_cmp(&a.similarity()).unwrap();
        let order = greater.then(a.distance().cmp(&b.distance()));
        order.then(a.id().cmp(&b.id())).is_lt()
    })
}

#[test]
fn verify_is_called_for_every_candidate() {
    let rules = [
        (Family::MinHash, (Some(0.75), None)),
        (Family::SimHash, (None, Some(3))),
        (Family::Any, (Some(0.75), Some(3))),
        (Family::Both, (Some(0.75), Some(3))),
    ];
    for (with_fingerprint, rules) in [(false, &rules[..1]), (true, &rules[..])] {
        let (_folder, snapshot) = filled(with_fingerprint);
        let probes: Vec<Signature> = (500..540).map(|n| signature(n, with_fingerprint)).collect();
        for (by, least_most) in rules {
            let bounds = Bounds::new().by(*by);
            let calls = RefCell::new(BTreeSet::new());
            let many = snapshot.query(&probes).bounds(bounds);
            let many = many.verify(|index, id| {
                assert!(calls.borrow_mut().insert((index as u64, id.get())));
                Ok(reported(index as u64, id.get()))
            });
            let many = many.run().unwrap();
            let mut changed = 0;
            for (index, probe) in (0..).zip(&probes) {
                let found = snapshot.candidates(probe).unwrap();
                let all = snapshot.nearest(probe, usize::MAX).run().unwrap();
                let mut all = measures(&all);
                if !matches!(by, Family::MinHash | Family::Any) {
                    all.retain(|_, (_, _, distance)| *distance <= least_most.1);
                } else if *by == Family::MinHash {
                    all.retain(|id, _| shares_a_band(probe, &signature(*id, with_fingerprint)));
                } else if *by == Family::Any {
                    all.retain(|id, (_, _, distance)| {
                        let is_close = *distance <= least_most.1;
                        is_close || shares_a_band(probe, &signature(*id, true))
                    });
                }
                assert!(found.len() >= all.len());
                let expected = settled(&all, index, *least_most, *by == Family::Both);
                let one = snapshot.query(probe).bounds(bounds);
                let one = one
                    .verify(|id| Ok(reported(index, id.get())))
                    .run()
                    .unwrap();
                assert_eq!(measures(&one), expected, "{by:?}");
                assert!(is_ranked(&one));
                assert_eq!(one, many[index as usize]);
                for id in all.keys() {
                    assert!(calls.borrow_mut().remove(&(index, *id)), "not asked");
                }
                let plain = snapshot.query(probe).bounds(bounds).run().unwrap();
                changed += usize::from(measures(&plain).keys().ne(expected.keys()));
            }
            assert!(calls.borrow().is_empty(), "asked of no candidates");
            assert!(*by == Family::SimHash || changed > 10, "{by:?} {changed}");
        }
    }
}

fn shares_a_band(a: &Signature, b: &Signature) -> bool {
    let bands = |signature: &Signature| signature.minhash().unwrap().to_vec();
    bands(a)
        .chunks(2)
        .zip(bands(b).chunks(2))
        .any(|(a, b)| a == b)
}

#[test]
fn scan_verifies_every_document() {
    let (_folder, snapshot) = filled(false);
    let calls = RefCell::new(Vec::new());
    let probe = signature(1_000, false);
    let scan = snapshot.query(&probe).min_similarity(0.5).scan();
    let scan = scan.verify(|id| {
        calls.borrow_mut().push(id.get());
        Ok(Some(id.get() as f64 / 1_000.0))
    });
    assert!(scan.run().unwrap().is_empty());
    assert_eq!(*calls.borrow(), (0..300).collect::<Vec<u64>>());
    let scan = snapshot.query(&probe).min_similarity(0.25).scan();
    let scan = scan.verify(|id| Ok(Some(id.get() as f64 / 1_000.0)));
    let found: Vec<u64> = scan.run().unwrap().iter().map(|f| f.id().get()).collect();
    assert_eq!(found, (250..300).rev().collect::<Vec<u64>>());
}

/// A document of the second batch by its number, one of the first by its id.
fn number_of(earlier: Earlier) -> u64 {
    match earlier {
        Earlier::Stored(id) => id.get(),
        Earlier::OfBatch(index) => 1_000 + index as u64,
    }
}

/// As `told`, and most are unlike.
fn found_unlike(a: u64, b: u64) -> Option<f64> {
    match random(a << 32 | b) % 64 {
        0 => None,
        number => Some(number as f64 / 80.0),
    }
}

#[test]
fn verified_batch_agrees_with_single_queries() {
    for with_fingerprint in [false, true] {
        let ((_a, together), (_b, apart)) = (store(with_fingerprint), store(with_fingerprint));
        let stored: Vec<Signature> = (0..40).map(|n| signature(n, with_fingerprint)).collect();
        // More than one piece of a batch.
        let later: Vec<Signature> = (40..390).map(|n| signature(n, with_fingerprint)).collect();
        let keys: Vec<[u8; 2]> = (0..350u16).map(|n| (n % 300).to_be_bytes()).collect();
        for store in [&together, &apart] {
            let mut transaction = store.begin_write().unwrap();
            for signature in &stored {
                transaction
                    .insert(Document::without_key(), signature)
                    .unwrap();
            }
            transaction.commit().unwrap();
        }
        let documents = keys.iter().zip(&later);
        let documents: Vec<_> = documents.map(|(k, s)| (Document::new(k), s)).collect();
        let asked = RefCell::new(BTreeSet::new());
        let mut transaction = together.begin_write().unwrap();
        let found = transaction
            .insert_many(&documents)
            .if_new()
            .verify(|index, earlier| {
                let two = (1_000 + index as u64, number_of(earlier));
                // A piece that is halved asks again about identical signatures.
                let other = match earlier {
                    Earlier::Stored(id) => &stored[id.get() as usize],
                    Earlier::OfBatch(other) => &later[other],
                };
                let are_identical = || later[index] == *other;
                assert!(asked.borrow_mut().insert(two) || are_identical(), "{two:?}");
                Ok(found_unlike(two.0, two.1))
            });
        let found = found.run().unwrap();

        let mut transaction = apart.begin_write().unwrap();
        let (mut numbers, mut inserted, mut kept) = (BTreeMap::new(), 0, BTreeSet::new());
        for (index, (document, signature)) in documents.iter().enumerate() {
            let number = 1_000 + index as u64;
            if kept.contains(&keys[index]) {
                assert!(matches!(found[index], Novelty::KeyExists(_)));
                continue;
            }
            let all_asked = Cell::new(true);
            let query = transaction.query(signature).limit(1);
            let query = query.verify(|id| {
                let other = numbers.get(&id.get()).copied().unwrap_or(id.get());
                let was_asked = asked.borrow().contains(&(number, other));
                all_asked.set(all_asked.get() && was_asked);
                Ok(found_unlike(number, other))
            });
            let near = query.run().unwrap().into_iter().next();
            let is_equal = near
                .as_ref()
                .is_some_and(|near| near.similarity() == Some(1.0));
            assert!(is_equal || all_asked.get(), "not asked");
            match (near, &found[index]) {
                (Some(near), Novelty::NearDuplicate(found)) => assert_eq!(near, *found),
                (None, Novelty::New { id, .. }) => {
                    let own = transaction.insert(document, signature).unwrap();
                    assert_eq!(own, *id);
                    numbers.insert(own.get(), number);
                    kept.insert(keys[index]);
                    inserted += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(inserted > 20 && inserted < 250, "{inserted}");
    }
}

/// A caller who verifies is asked about identical documents first, and about no other once it has said
/// that one is equal, or that it cannot tell.
#[test]
fn an_equal_document_ends_the_search() {
    for with_fingerprint in [false, true] {
        let (_folder, store) = store(with_fingerprint);
        let page = signature(1, with_fingerprint);
        let mut transaction = store.begin_write().unwrap();
        for _ in 0..30 {
            let document = Document::without_key();
            transaction.insert(document, &page).unwrap();
        }
        // What is said of the first ids; of the others that they are equal.
        let cases = [
            (0, Some(1.0), 0, 1),
            (30, None, 0, 1),
            (3, Some(0.9), 3, 4),
            (20, Some(0.9), 20, 30),
        ];
        for (first, of_first, expected, asks) in cases {
            let reported = |id| if id < first { of_first } else { Some(1.0) };
            let batch = [(Document::without_key(), &page)];
            let asked = RefCell::new(Vec::new());
            let found = transaction
                .insert_many(&batch)
                .if_new()
                .verify(|_, earlier| {
                    asked.borrow_mut().push(number_of(earlier));
                    Ok(reported(number_of(earlier)))
                });
            let found = found.run().unwrap().remove(0);
            let Novelty::NearDuplicate(found) = found else {
                panic!("{found:?}");
            };
            assert_eq!((found.id().get(), asked.borrow().len()), (expected, asks));
        }
    }
}

#[test]
fn wrong_verification_does_not_damage_the_store() {
    let (_folder, store) = store(false);
    let page = signature(1, false);
    store.insert(Document::without_key(), &page).unwrap();
    let snapshot = store.snapshot().unwrap();
    for wrong in [f64::NAN, f64::INFINITY, -0.5, 1.5] {
        let query = snapshot.query(&page).verify(|_| Ok(Some(wrong)));
        assert!(matches!(query.run(), Err(Error::InvalidParameter { .. })));
    }
    let query = snapshot.query(&page).verify(|_| Err(Error::ReadOnly));
    assert!(matches!(query.run(), Err(Error::ReadOnly)));
    let query = || snapshot.query(&page).verify(|_| panic!("mine")).run();
    let panic = catch_unwind(AssertUnwindSafe(query)).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"mine"));

    let batch = [(Document::without_key(), &page)];
    let mut transaction = store.begin_write().unwrap();
    let refused = transaction
        .insert_many(&batch)
        .if_new()
        .verify(|_, _| Err(Error::ReadOnly))
        .run();
    assert!(matches!(refused, Err(Error::ReadOnly)));
    assert!(transaction.commit().is_err(), "it can only be rolled back");
    let mut transaction = store.begin_write().unwrap();
    let panicking = || {
        transaction
            .insert_many(&batch)
            .if_new()
            .verify(|_, _| panic!("mine"))
            .run()
    };
    let panic = catch_unwind(AssertUnwindSafe(panicking)).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"mine"));
    drop(transaction);
    // A zero of either sign is one.
    let zero = |_| Ok(Some(-0.0));
    let all = Bounds::new().min_similarity(0.0).accept_lower_recall();
    let found = snapshot.query(&page).bounds(all);
    let found = found.verify(zero).run().unwrap();
    assert_eq!(found[0].similarity().map(f64::to_bits), Some(0));
    assert_eq!(store.snapshot().unwrap().len(), 1);
}
