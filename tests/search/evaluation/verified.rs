//! Candidates verified from the features of their texts: precision 1 and the recall of candidates.

use std::collections::{BTreeMap, BTreeSet};

use resemblance::DocumentId;

use crate::evaluation::corpus::{Corpus, Places, say};
use crate::evaluation::default_schema;
use crate::evaluation::stored::Stored;

const THRESHOLD: f64 = 0.8;

/// The truth has six decimals.
const ROUNDING: f64 = 0.51e-6;

fn jaccard(a: &[u64], b: &[u64]) -> f64 {
    let both = a
        .iter()
        .filter(|hash| b.binary_search(hash).is_ok())
        .count();
    both as f64 / (a.len() + b.len() - both) as f64
}

fn place(id: DocumentId) -> usize {
    usize::try_from(id.get()).unwrap()
}

fn verified(corpus: &Corpus, stored: &Stored) -> BTreeMap<Places, f64> {
    let sketcher = stored.store.sketcher();
    let features = |text: &String| sketcher.feature_hashes(text).unwrap();
    let features: Vec<Vec<u64>> = corpus.texts.iter().map(features).collect();
    let exact = move |a, b| Ok(Some(jaccard(&features[place(a)], &features[place(b)])));
    let snapshot = stored.store.snapshot().unwrap();
    let pairs = snapshot.pairs().threads(2).verify(exact).run();
    let mut found = BTreeMap::new();
    for pair in pairs.unwrap() {
        let pair = pair.unwrap();
        assert!(pair.is_exact);
        let places = (place(pair.a), place(pair.b));
        let before = found.insert(places, pair.similarity.unwrap());
        assert_eq!(before, None, "{places:?} came twice");
    }
    found
}

#[test]
fn verified_pairs_are_all_near_and_few_are_missed() {
    for name in ["articles2500", "versions", "debian-docs"] {
        let Some(corpus) = Corpus::read(name) else {
            return;
        };
        let stored = Stored::new(&corpus, default_schema().build().unwrap(), 65_536);
        let found = verified(&corpus, &stored);
        for (places, similarity) in &found {
            // Pairs that are not in the truth have a similarity below 0.5.
            let truth = corpus.truth.get(places).copied().unwrap_or(0.0);
            assert!(
                (truth - similarity).abs() <= ROUNDING,
                "{places:?}: {truth}"
            );
            assert!(*similarity >= THRESHOLD, "{places:?}: {similarity}");
        }
        let near = corpus
            .truth
            .iter()
            .filter(|(_, truth)| **truth >= THRESHOLD);
        let near: BTreeSet<Places> = near.map(|(places, _)| *places).collect();
        let recalled = near
            .iter()
            .filter(|places| found.contains_key(places))
            .count();
        let recall = recalled as f64 / near.len() as f64;
        say(&format!(
            "{name}: of {} pairs with J of at least {THRESHOLD}, {recalled} are verified, a recall \
             of {recall:.4}; of {} verified all are near",
            near.len(),
            found.len()
        ));
        assert!(recall >= 0.95, "{name}: {recall}");
        if name == "articles2500" {
            let labels = corpus.pairs("labels_plagiarism.tsv");
            let labels: BTreeSet<Places> = labels.into_iter().map(|(pair, _)| pair).collect();
            assert_eq!(found.into_keys().collect::<BTreeSet<_>>(), labels);
        }
    }
}
