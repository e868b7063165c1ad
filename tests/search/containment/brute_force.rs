//! Answers by comparing the kept hashes of a query with those of each document.

use std::collections::{BTreeMap, BTreeSet};

use resemblance::{ContainmentQuery, Filter, Overlap, Overlaps, Schema, Signature, Snapshot};

use crate::common::Random;
use crate::common::sample::one_in;

/// A text of common words, which shares passages with some others; every eleventh has none.
pub(super) fn text(number: u64) -> String {
    let mut random = Random(number);
    let length = if number % 11 == 10 {
        0
    } else {
        5 + random.below(60)
    };
    let mut words: Vec<String> = Vec::new();
    while (words.len() as u64) < length {
        match random.below(4) {
            // A passage that several texts have.
            0 => {
                let mut passage = Random(random.below(12));
                let passage =
                    (0..10 + passage.below(20)).map(|_| format!("p{}", passage.below(50)));
                words.extend(passage.collect::<Vec<_>>());
            }
            _ => words.extend((0..5).map(|_| format!("w{}", random.below(30)))),
        }
    }
    words.join(" ")
}

/// The kept hashes of documents by their keys.
#[derive(Clone)]
pub(super) struct Documents {
    schema: Schema,
    kept: BTreeMap<u64, BTreeSet<u64>>,
}

/// The compared parts of an answer: key, shared hashes, and hashes of the document.
type Compared = (u64, u32, u32);

fn compared(overlap: &Overlap) -> Compared {
    let key = u64::from_be_bytes(overlap.key().unwrap().try_into().unwrap());
    (key, overlap.shared_hashes(), overlap.document_hashes())
}

fn hashes(signature: &Signature) -> BTreeSet<u64> {
    signature
        .kept_hashes()
        .into_iter()
        .flatten()
        .copied()
        .collect()
}

impl Documents {
    pub(super) fn new(schema: &Schema) -> Self {
        Self {
            schema: schema.clone(),
            kept: BTreeMap::new(),
        }
    }

    pub(super) fn insert(&mut self, key: u64, text: &str) {
        let signature = self.schema.sketcher().text(text).unwrap();
        self.kept.insert(key, hashes(&signature));
    }

    pub(super) fn remove(&mut self, key: u64) {
        self.kept.remove(&key).unwrap();
    }

    /// All documents that share a hash with a query.
    fn overlaps(&self, query: &Signature) -> Vec<Compared> {
        let query = hashes(query);
        let shared = self.kept.iter().map(|(key, kept)| {
            (
                *key,
                kept.intersection(&query).count() as u32,
                kept.len() as u32,
            )
        });
        shared.filter(|(_, shared, _)| *shared > 0).collect()
    }

    /// Compares the answers to some queries together, and to one in three of them one by one, to each with
    /// `RESEMBLANCE_TESTS=all`.
    pub(super) fn assert_found(&self, snapshot: &Snapshot) {
        let queries: Vec<Signature> = (0..40)
            .map(|number| self.schema.sketcher().text(&text(number * 7)).unwrap())
            .collect();
        let together = snapshot.overlaps(&queries).run().unwrap();
        for (query, together) in queries.iter().zip(together).step_by(one_in(3)) {
            self.assert_answers(
                query,
                |signature| snapshot.overlaps(signature),
                |query| snapshot.contained_in(query),
                |query| snapshot.contents_of(query),
            );
            assert_eq!(snapshot.overlaps(query).run().unwrap(), together);
        }
        self.assert_filtered(snapshot, &queries);
    }

    /// Compares the answers about the documents that filters let pass, one by one and together, and
    /// the numbers of capped hashes.
    fn assert_filtered(&self, snapshot: &Snapshot, queries: &[Signature]) {
        for divisor in [1, 2, 5] {
            let passes = move |key: u64| !key.is_multiple_of(divisor) && key < 200;
            let filter = Filter::all().key_prefix([0; 7]).when(move |document| {
                let key = document.key().map(|key| key.try_into().unwrap());
                key.is_some_and(|key| passes(u64::from_be_bytes(key)))
            });
            let mut passing = self.clone();
            passing.kept.retain(|key, _| passes(*key));
            let overlaps = snapshot.overlaps(queries).filter(filter.clone());
            let together = overlaps.max_document_frequency(2).threads(4).run().unwrap();
            for (query, together) in queries.iter().zip(together).step_by(one_in(7)) {
                passing.assert_answers(
                    query,
                    |query| snapshot.overlaps(query).filter(filter.clone()),
                    |query| snapshot.contained_in(query).filter(filter.clone()),
                    |query| snapshot.contents_of(query).filter(filter.clone()),
                );
                let have = |hash: &u64| {
                    passing
                        .kept
                        .values()
                        .filter(|kept| kept.contains(hash))
                        .count()
                };
                let capped = hashes(query).iter().filter(|hash| have(hash) > 2).count();
                assert_eq!(together.capped_hashes(), capped);
            }
        }
    }

    pub(super) fn assert_answers<'a>(
        &self,
        query: &'a Signature,
        overlaps: impl Fn(&'a Signature) -> ContainmentQuery<'a>,
        contained_in: impl Fn(&'a Signature) -> ContainmentQuery<'a>,
        contents_of: impl Fn(&'a Signature) -> ContainmentQuery<'a>,
    ) {
        let expected = self.overlaps(query);
        let sorted = |answer: &Overlaps| {
            let mut found: Vec<Compared> = answer.iter().map(compared).collect();
            found.sort_unstable();
            found
        };
        let all = overlaps(query).run().unwrap();
        assert_eq!(sorted(&all), expected);
        assert!(all.is_sorted_by_key(|overlap| u32::MAX - overlap.shared_hashes()));
        let first = overlaps(query).limit(3).run().unwrap();
        assert_eq!(&first[..], &all[..all.len().min(3)]);

        let own = hashes(query).len();
        let of_query = |(_, shared, _): &&Compared| f64::from(*shared) / own as f64 >= 0.6;
        let expected_in: Vec<Compared> = expected.iter().filter(of_query).copied().collect();
        assert_eq!(
            sorted(&contained_in(query).min_share(0.6).run().unwrap()),
            expected_in
        );
        let of_document =
            |(_, shared, kept): &&Compared| f64::from(*shared) / f64::from(*kept) >= 0.8;
        let contents: Vec<Compared> = expected.iter().filter(of_document).copied().collect();
        assert_eq!(sorted(&contents_of(query).run().unwrap()), contents);
    }
}
