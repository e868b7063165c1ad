//! Exact stores on real texts: precision 1 and the recall of the bands, on every path to a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use resemblance::schema::ClusterBounds;
use resemblance::{Document, DocumentId, MinHash, Schema, Signature, Snapshot, Store, Text};

use crate::common::oracle::components;
use crate::common::{Place, Random, check_clean, sealing_after};
use crate::evaluation::corpus::{Corpus, Places, say};
use crate::evaluation::default_schema;

const THRESHOLD: f64 = 0.8;
const RECALL: f64 = 0.95;

/// The truth has six decimals.
const ROUNDING: f64 = 0.51e-6;

/// The near pairs of documents and their similarities.
type Near = BTreeMap<Places, f64>;

fn place(id: DocumentId) -> usize {
    usize::try_from(id.get()).unwrap()
}

/// Returns the pairs of a store whose keys are the places of documents in the corpus.
fn pairs(snapshot: &Snapshot) -> Near {
    let of = |id| -> usize {
        let key = snapshot
            .get_id(id)
            .unwrap()
            .unwrap()
            .key()
            .unwrap()
            .to_vec();
        String::from_utf8(key).unwrap().parse().unwrap()
    };
    let found = snapshot.pairs().threads(2).run().unwrap();
    let found = found.map(|pair| {
        let pair = pair.unwrap();
        assert!(pair.is_exact);
        let (a, b) = (of(pair.a), of(pair.b));
        ((a.min(b), a.max(b)), pair.similarity.unwrap())
    });
    found.collect()
}

/// Checks that all pairs are near, and that the bands have found as many as they promise.
fn check_against_truth(corpus: &Corpus, name: &str, found: &Near) {
    for (places, similarity) in found {
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
    let recall = found.len() as f64 / near.len() as f64;
    say(&format!(
        "{name}: an exact store has {} of {} pairs with J of at least {THRESHOLD}, a recall of \
         {recall:.4}, and no other",
        found.len(),
        near.len()
    ));
    assert!(recall >= RECALL, "{name}: {recall}");
}

/// Checks what queries in a transaction that has not been committed find, for every ninth document.
fn insert(store: &Store, signatures: &[Signature]) -> Near {
    let mut transaction = store.begin_write().unwrap();
    for (number, signature) in signatures.iter().enumerate() {
        let key = number.to_string();
        transaction.insert(key.as_str(), signature).unwrap();
    }
    let mut found = Near::new();
    for (number, signature) in signatures.iter().enumerate().step_by(9) {
        for near in transaction.query(signature).run().unwrap().iter() {
            let other = place(near.id());
            if other != number {
                let places = (number.min(other), number.max(other));
                found.insert(places, near.similarity().unwrap());
            }
        }
    }
    transaction.commit().unwrap();
    found
}

/// The clusters that a store keeps while the documents of a corpus come and go in random order are those
/// that a join finds, and those of the truth.
#[test]
fn kept_clusters_of_texts_are_those_of_a_join_and_of_the_truth() {
    for (name, seed) in [("articles2500", 1), ("versions", 2), ("debian-docs", 3)] {
        let Some(corpus) = Corpus::read(name) else {
            return;
        };
        // The bands miss a pair with a probability of less than 1e-7.
        let minhash = MinHash::new(128).threshold(THRESHOLD).banding(32, 4);
        let builder = Schema::builder().text(Text::words(5)).minhash(minhash);
        let builder = builder.exact().clusters(ClusterBounds::default());
        let schema = builder.build().unwrap();
        let sketch = |text: &String| schema.sketcher().text(text).unwrap();
        let signatures: Vec<Signature> = corpus.texts.iter().map(sketch).collect();
        let place = Place::new();
        let store = sealing_after(700).create(place.store(), schema).unwrap();
        let mut numbers = BTreeMap::new();
        let (mut random, mut waiting) = (Random(seed), (0..signatures.len()).collect::<Vec<_>>());
        while !waiting.is_empty() {
            let mut transaction = store.begin_write().unwrap();
            for _ in 0..400.min(waiting.len()) {
                let number = waiting.swap_remove(random.below(waiting.len() as u64) as usize);
                let document = Document::without_key();
                let id = transaction.insert(document, &signatures[number]).unwrap();
                numbers.insert(id.get(), number as u64);
                if random.below(3) == 0 {
                    let gone = random.below(id.get() + 1);
                    let is_gone = transaction.remove_id(DocumentId::new(gone)).unwrap();
                    assert_eq!(is_gone, numbers.remove(&gone).is_some());
                }
            }
            transaction.commit().unwrap();
        }
        let snapshot = store.snapshot().unwrap();
        let joined: Vec<_> = snapshot.clusters().threads(2).run().unwrap().collect();
        let mut members = Vec::new();
        for (id, documents) in snapshot.largest_clusters(usize::MAX).unwrap() {
            members.extend((documents > 1).then(|| snapshot.members(id).unwrap()));
        }
        members.sort_unstable();
        assert_eq!(members, joined, "{name}");
        let left: BTreeSet<u64> = numbers.values().copied().collect();
        let mut near = Vec::new();
        for ((a, b), truth) in &corpus.truth {
            let (a, b) = (*a as u64, *b as u64);
            if *truth >= THRESHOLD && left.contains(&a) && left.contains(&b) {
                near.push((a, b));
            }
        }
        let of = |members: &Vec<DocumentId>| -> BTreeSet<u64> {
            members.iter().map(|id| numbers[&id.get()]).collect()
        };
        let kept: BTreeSet<BTreeSet<u64>> = members.iter().map(of).collect();
        let components = components(&near).into_iter().map(BTreeSet::from_iter);
        let expected: BTreeSet<BTreeSet<u64>> = components.collect();
        assert_eq!(kept, expected, "{name}");
        let (clusters, left) = (kept.len(), left.len());
        say(&format!(
            "{name}: {clusters} clusters of the {left} documents that are left"
        ));
        drop((snapshot, store));
        check_clean(&place.store());
    }
}

#[test]
fn exact_stores_have_the_near_pairs_of_texts_on_every_path() {
    for name in ["articles2500", "versions", "debian-docs"] {
        let Some(corpus) = Corpus::read(name) else {
            return;
        };
        let schema = default_schema().exact().build().unwrap();
        let sketch = |text: &String| schema.sketcher().text(text).unwrap();
        let signatures: Vec<Signature> = corpus.texts.iter().map(sketch).collect();
        let place = Place::new();

        // All documents are in memory.
        let unflushed = sealing_after(1 << 20);
        let store = unflushed.create(place.store(), schema.clone()).unwrap();
        let in_transaction = insert(&store, &signatures);
        let found = pairs(&store.snapshot().unwrap());
        check_against_truth(&corpus, name, &found);
        let ninth = |(places, _): &(&Places, &f64)| places.0 % 9 == 0 || places.1 % 9 == 0;
        assert!(found.iter().filter(ninth).eq(&in_transaction));
        drop(store);

        // In runs, some of them merged; and reopened.
        let runs = place.file("runs");
        let store = sealing_after(700).create(&runs, schema.clone()).unwrap();
        for (piece, number) in signatures.chunks(500).zip(0..) {
            let mut transaction = store.begin_write().unwrap();
            for (signature, place) in piece.iter().zip(500 * number..) {
                let key = format!("{place}");
                transaction.insert(key.as_str(), signature).unwrap();
            }
            transaction.commit().unwrap();
        }
        assert_eq!(pairs(&store.snapshot().unwrap()), found);
        let _ = store.close().unwrap();
        let is_same = |path: &Path, expected: &Near| {
            let store = Store::open(path).unwrap();
            assert_eq!(&pairs(&store.snapshot().unwrap()), expected);
            let _ = store.close().unwrap();
            check_clean(path);
        };
        is_same(&runs, &found);

        // Without every seventh document; then merged to one run, repaired, and imported.
        let store = sealing_after(700).open(&runs).unwrap();
        let mut transaction = store.begin_write().unwrap();
        for number in (0..signatures.len()).step_by(7) {
            transaction.remove(number.to_string().as_str()).unwrap();
        }
        transaction.commit().unwrap();
        let is_left = |places: &Places| !places.0.is_multiple_of(7) && !places.1.is_multiple_of(7);
        let left: Near = found
            .into_iter()
            .filter(|(places, _)| is_left(places))
            .collect();
        assert_eq!(pairs(&store.snapshot().unwrap()), left);
        let mut stream = Vec::new();
        store.snapshot().unwrap().export(&mut stream).run().unwrap();
        let _ = store.close().unwrap();
        Store::compact(&runs).run().unwrap();
        is_same(&runs, &left);
        let repaired = place.file("repaired");
        Store::repair(&runs, &repaired).run().unwrap();
        is_same(&repaired, &left);
        let imported = place.file("imported");
        let store = Store::create(&imported, schema.clone()).unwrap();
        store.import(&stream[..]).run().unwrap();
        let _ = store.close().unwrap();
        is_same(&imported, &left);
        // Each text is a near-duplicate of itself.
        let store = Store::open(&imported).unwrap();
        let again = store
            .insert_if_new(Document::without_key(), &signatures[1])
            .unwrap();
        assert!(!again.is_new());
    }
}
