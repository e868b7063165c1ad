//! Tests the results with the default seed. They are a single draw, so they are compared with what
//! a user may rely on.

use crate::evaluation::corpus::{Corpus, say};
use crate::evaluation::default_schema;
use crate::evaluation::stored::Stored;

/// Prints and returns the share of pairs for which `holds` is true.
fn share<T>(what: &str, pairs: &[T], holds: impl Fn(&T) -> bool) -> f64 {
    let held = pairs.iter().filter(|pair| holds(pair)).count();
    let share = held as f64 / pairs.len() as f64;
    say(&format!(
        "versions, default seed: {what}: {held} of {} = {share:.4}",
        pairs.len()
    ));
    share
}

#[test]
fn default_seed_meets_its_recall_on_versions() {
    let Some(corpus) = Corpus::read("versions") else {
        return;
    };
    // Small runs, so that the answers come from runs of several levels and from memory.
    let stored = Stored::new(&corpus, default_schema().build().unwrap(), 400);
    let returned = stored.pairs();
    assert_eq!(returned, stored.queried());
    for (&(a, b), &(estimate, _)) in &returned {
        let estimate = estimate.unwrap();
        assert!(estimate >= 0.8);
        let (a, b) = (&stored.signatures[a], &stored.signatures[b]);
        assert_eq!(a.jaccard(b).unwrap(), estimate);
    }
    let near: Vec<_> = corpus.truth.iter().filter(|(_, j)| **j >= 0.85).collect();
    let found = share("found of J >= 0.85", &near, |(pair, _)| {
        returned.contains_key(*pair)
    });
    assert!(found >= 0.98);
    let unequal: Vec<_> = near.iter().filter(|(_, j)| **j < 1.0).collect();
    let found = share("found of 0.85 <= J < 1", &unequal, |(pair, _)| {
        returned.contains_key(*pair)
    });
    assert!(found >= 0.97);
    let returned: Vec<_> = returned.keys().collect();
    let right = share("with J >= 0.75 of those returned", &returned, |pair| {
        corpus.truth.get(*pair).is_some_and(|j| *j >= 0.75)
    });
    assert!(right >= 0.98);
}
