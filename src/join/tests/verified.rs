//! Joins whose candidates are verified by a closure.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use super::*;
use crate::error::{Error, Result};
use crate::snapshot::Snapshot;
use crate::types::DocumentId;

/// Documents of one signature.
fn alike(count: usize) -> Snapshot {
    let schema = Schema::builder().minhash(MinHash::new(16)).build().unwrap();
    let signature = Signature::from_minhash(vec![7; 16]);
    let store = store_of(&schema, 16_000, std::iter::repeat_n(signature, count));
    store.snapshot().unwrap()
}

#[test]
fn equal_signatures_are_still_verified() {
    // More pairs than are verified together.
    let snapshot = alike(300);
    let is_near = |a: DocumentId, b: DocumentId| a.get() % 3 == b.get() % 3;
    let mut found = Vec::new();
    for threads in [1, 4] {
        let exact = move |a, b| Ok(Some(if is_near(a, b) { 0.9 } else { 0.1 }));
        let pairs = snapshot.pairs().threads(threads).verify(exact).run();
        let pairs: Vec<Pair> = pairs.unwrap().map(Result::unwrap).collect();
        assert_eq!(pairs.len(), 3 * (100 * 99 / 2));
        assert!(
            pairs
                .iter()
                .all(|pair| is_near(pair.a, pair.b) && pair.is_exact)
        );
        found.push(pairs);
        let clusters = snapshot.clusters().threads(threads).verify(exact).run();
        let clusters: Vec<_> = clusters.unwrap().collect();
        assert_eq!(clusters.len(), 3);
        assert!(clusters.iter().all(|cluster| cluster.len() == 100));
    }
    assert_eq!(found[0], found[1]);
}

#[test]
fn verified_join_links_copies_by_one_call_each() {
    let snapshot = alike(5_000);
    let calls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&calls);
    let exact = move |_, _| {
        *counted.lock().unwrap() += 1;
        Ok(Some(1.0))
    };
    let clusters = snapshot.clusters().threads(3).verify(exact).run();
    assert_eq!(clusters.unwrap().count(), 1);
    assert_eq!(*calls.lock().unwrap(), 4_999);
}

#[test]
fn a_failed_verification_ends_the_join_after_earlier_pairs() {
    let snapshot = alike(200);
    // In the order of the later document: those before 150 are whole.
    for wrong in [f64::NAN, -0.1, 1.1] {
        let exact = move |_, b: DocumentId| Ok(Some(if b.get() < 150 { 1.0 } else { wrong }));
        let pairs = snapshot.pairs().threads(4).verify(exact);
        let mut pairs = pairs.run().unwrap();
        let before = pairs.by_ref().take_while(Result::is_ok).count();
        assert_eq!(before, 150 * 149 / 2);
        assert!(pairs.next().is_none());
        let clusters = snapshot.clusters().threads(4).verify(exact).run();
        let refused = matches!(clusters, Err(Error::InvalidParameter { .. }));
        assert!(refused);
    }
    let failing = |_, _| Err(Error::ReadOnly);
    let mut pairs = snapshot.pairs().verify(failing).run().unwrap();
    assert!(matches!(pairs.next(), Some(Err(Error::ReadOnly))));
}

#[test]
fn a_panic_of_the_closure_reaches_the_caller() {
    let snapshot = alike(200);
    for threads in [1, 4] {
        let panicking = |_, b: DocumentId| match b.get() {
            199 => panic!("mine"),
            _ => Ok(None),
        };
        let pairs = snapshot.pairs().threads(threads).verify(panicking).run();
        let panic = catch_unwind(AssertUnwindSafe(|| pairs.unwrap().count()));
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"mine"));
        let clusters = snapshot.clusters().run();
        assert_eq!(clusters.unwrap().count(), 1, "the store goes on");
    }
}
