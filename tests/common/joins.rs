//! Pairs, clusters and figures of a snapshot against the oracle.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use resemblance::{DocumentId, Error, Join, Pair, Result, Snapshot};

use super::oracle::{Found, Model, components};
use super::question::{Question, reported};
use super::verify::{COMPARED, similarity};

/// The fields that a join reports about a pair: similarity, whether it is exact, distance.
type Said = (Option<f64>, bool, Option<u32>);

type CallerLink = Result<Option<f64>>;

fn reported_of_pair(a: DocumentId, b: DocumentId) -> CallerLink {
    Ok(reported(a.get(), b.get()))
}

/// The pairs and clusters within some bounds, by one thread and by two; cut short as well.
pub(crate) fn joins(snapshot: &Snapshot, model: &Model, question: &Question) {
    let question = Question {
        scan: false,
        limit: None,
        ..*question
    };
    let (bounds, expected) = (question.bounds(), model.pairs(&question));
    let Some(expected) = expected else {
        let refused = |result| matches!(result, Err(Error::InvalidParameter { .. }));
        assert!(
            refused(snapshot.pairs().bounds(bounds).run().map(drop)),
            "{question:?}"
        );
        assert!(
            refused(snapshot.clusters().bounds(bounds).run().map(drop)),
            "{question:?}"
        );
        assert!(refused(
            snapshot.pairs().bounds(bounds).estimate().map(drop)
        ));
        return;
    };
    COMPARED.fetch_add(2, Relaxed);
    let estimate = asked(snapshot.pairs(), &question).estimate().unwrap();
    let passing = model.passing(question.filter).documents.len() as u64;
    assert_eq!(estimate.documents, passing);
    let found = pairs(snapshot, &question, 1);
    let by_two = pairs(snapshot, &question, 2);
    assert_eq!(found, by_two, "{question:?}, by two threads");
    assert_eq!(by_ids(&found), said(model, &expected), "{question:?}");
    let clusters: Vec<Vec<u64>> = clusters(snapshot, &question)
        .into_iter()
        .map(|cluster| cluster.into_iter().map(DocumentId::get).collect())
        .collect();
    assert_eq!(clusters, components(expected.keys()), "{question:?}");
    if question.verify.is_none() {
        cut_short(snapshot, &question, &said(model, &expected));
    }
}

/// The search that a question is about.
fn asked<'j, A>(join: Join<'j, A>, question: &Question) -> Join<'j, A> {
    let mut join = join.bounds(question.bounds());
    if let Some(passing) = question.filter {
        join = join.filter(passing.filter());
    }
    match question.verify {
        Some(_) => join.verify(reported_of_pair),
        None => join,
    }
}

fn pairs(snapshot: &Snapshot, question: &Question, threads: usize) -> Vec<Pair> {
    let pairs = asked(snapshot.pairs(), question).threads(threads).run();
    pairs.unwrap().map(Result::unwrap).collect()
}

fn clusters(snapshot: &Snapshot, question: &Question) -> Vec<Vec<DocumentId>> {
    let clusters = asked(snapshot.clusters(), question).run();
    clusters.unwrap().collect()
}

fn by_ids(pairs: &[Pair]) -> BTreeMap<(u64, u64), Said> {
    let mut by_ids = BTreeMap::new();
    for pair in pairs {
        let ids = (pair.a.get(), pair.b.get());
        let twice = by_ids.insert(ids, (pair.similarity, pair.is_exact, pair.distance));
        assert_eq!(twice, None, "{ids:?} came twice");
    }
    by_ids
}

fn said(model: &Model, expected: &BTreeMap<(u64, u64), Found>) -> BTreeMap<(u64, u64), Said> {
    let said = expected.iter().map(|(ids, found)| {
        let distance = model.schema.simhash().map(|_| found.distance);
        (*ids, (similarity(model, found), found.is_exact, distance))
    });
    said.collect()
}

/// The join reports what large buckets leave out. No more pairs are missing than it reports.
fn cut_short(snapshot: &Snapshot, question: &Question, expected: &BTreeMap<(u64, u64), Said>) {
    let join = asked(snapshot.pairs(), question).max_bucket(2);
    let mut pairs = join.run().unwrap();
    let found: Vec<Pair> = pairs.by_ref().map(Result::unwrap).collect();
    let (found, left_out) = (by_ids(&found), pairs.left_out());
    assert!(
        found
            .iter()
            .all(|(ids, said)| expected.get(ids) == Some(said))
    );
    let missing = (expected.len() - found.len()) as u64;
    assert!(missing <= left_out.pairs, "{missing}, {left_out:?}");
}

/// The counts of a store, and its largest buckets.
pub(crate) fn stats_like(snapshot: &Snapshot, model: &Model) {
    COMPARED.fetch_add(1, Relaxed);
    let stats = snapshot.stats().run().unwrap();
    let documents = model.documents.len() as u64;
    assert_eq!((stats.documents, stats.next_id), (documents, model.next_id));
    assert_eq!(
        stats.design.is_outgrown,
        documents > model.schema.expected_documents()
    );
    let rows = |name: &str| stats.tables.iter().find(|t| t.name == name).unwrap().rows;
    assert_eq!(rows("documents"), documents + stats.dead_rows);
    let with_payload = model.documents.values().filter(|it| !it.payload.is_empty());
    let payloads = with_payload.count() as u64;
    assert!((payloads..=payloads + stats.dead_rows).contains(&rows("payloads")));
    let expected = model.buckets().into_iter().take(10);
    for (bucket, (lane, count, first)) in stats.buckets.iter().zip(expected) {
        assert_eq!((bucket.lane, bucket.documents), (lane, count));
        let samples = bucket.samples.iter();
        let ids: Vec<u64> = samples.map(|sample| sample.id.get()).collect();
        assert_eq!(ids, first);
        for sample in &bucket.samples {
            assert_eq!(sample.key, model.documents[&sample.id.get()].key);
        }
    }
    assert_eq!(stats.buckets.len(), model.buckets().len().min(10));
}
