//! The shared corpora: passages of pages, found by brute force over the texts and by a store.

use std::collections::{BTreeMap, BTreeSet};

use resemblance::{BulkOptions, Containment, Document, Schema, Store, Text};

use crate::common::{Place, check_clean};
use crate::evaluation::corpus::Corpus;

/// Every document that shares a run of w + k − 1 words with another, found in the texts themselves.
#[test]
fn containment_finds_every_shared_passage_of_real_corpora() {
    let Some(corpus) = Corpus::read("articles2500") else {
        return;
    };
    let containment = Containment::new(5).window(8);
    let units = containment.min_shared_units().unwrap() as u16;
    let schema = Schema::builder()
        .text(Text::words(5))
        .containment(containment);
    let schema = schema.build().unwrap();
    let place = Place::new();
    let options = BulkOptions::new();
    let mut build = Store::bulk_build(place.store(), schema.clone(), &options).unwrap();
    let sketcher = schema.sketcher();
    let mut signatures = Vec::new();
    let mut passages: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
    for (index, text) in corpus.texts.iter().enumerate() {
        let signature = sketcher.text(text).unwrap();
        build.insert(Document::without_key(), &signature).unwrap();
        signatures.push(signature);
        let mut own = BTreeSet::new();
        Text::words(units).for_each_shingle(text, |passage| {
            own.insert(passage.as_bytes().to_vec());
        });
        for passage in own {
            passages.entry(passage).or_default().push(index);
        }
    }
    build.finish().unwrap();
    check_clean(&place.store());
    let mut sharing: BTreeSet<(usize, usize)> = BTreeSet::new();
    for documents in passages.values().filter(|documents| documents.len() > 1) {
        for a in documents {
            sharing.extend(documents.iter().filter(|b| *b != a).map(|b| (*a, *b)));
        }
    }
    let snapshot = Store::open(place.store()).unwrap().snapshot().unwrap();
    let answers = snapshot.overlaps(&signatures).run().unwrap();
    let mut found = BTreeSet::new();
    for (index, answer) in answers.iter().enumerate() {
        let ids = answer
            .iter()
            .map(|overlap| (index, overlap.id().get() as usize));
        found.extend(ids);
    }
    let missing: Vec<_> = sharing.difference(&found).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(!sharing.is_empty());
}
