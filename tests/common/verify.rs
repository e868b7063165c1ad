//! Compares a reader's answers with those of the oracle.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use resemblance::search::Scope;
use resemblance::{
    DocumentId, Error, Family, Filter, Match, Matches, Query, Record, Result, Schema, Signature,
    Snapshot, Store, WriteTransaction,
};

use super::Random;
use super::joins::{joins, stats_like};
use super::oracle::{Answer, Entry, Found, Model, kept};
use super::question::{Passing, Question, any_filter, any_question};

/// The common interface of snapshots and transactions.
pub(crate) trait Reader {
    fn len(&self) -> u64;
    fn is_empty(&self) -> bool;
    fn get(&self, key: &[u8]) -> Result<Option<Record>>;
    fn get_id(&self, id: DocumentId) -> Result<Option<Record>>;
    fn contains(&self, key: &[u8]) -> Result<bool>;
    fn query<'a>(&'a self, signature: &'a Signature) -> Query<'a>;
}

macro_rules! reader {
    ($kind:ty) => {
        impl Reader for $kind {
            fn len(&self) -> u64 {
                <$kind>::len(self)
            }
            fn is_empty(&self) -> bool {
                <$kind>::is_empty(self)
            }
            fn get(&self, key: &[u8]) -> Result<Option<Record>> {
                <$kind>::get(self, key)
            }
            fn get_id(&self, id: DocumentId) -> Result<Option<Record>> {
                <$kind>::get_id(self, id)
            }
            fn contains(&self, key: &[u8]) -> Result<bool> {
                <$kind>::contains(self, key)
            }
            fn query<'a>(&'a self, signature: &'a Signature) -> Query<'a> {
                <$kind>::query(self, signature)
            }
        }
    };
}

reader!(Snapshot);
reader!(WriteTransaction);

/// How many records and answers were compared with the oracle's, by all tests of a process.
pub(crate) static COMPARED: AtomicU64 = AtomicU64::new(0);

/// Whether a record is what a store keeps of a document.
pub(crate) fn is_same_record(schema: &Schema, record: &Record, id: u64, entry: &Entry) -> bool {
    COMPARED.fetch_add(1, Relaxed);
    let (found, expected) = (record.signature(), &entry.signature);
    let values = expected.minhash().zip(schema.minhash());
    let values = values.map(|(values, schema)| {
        let kept = values.iter().map(|value| kept(&schema, expected, *value));
        kept.collect::<Vec<_>>()
    });
    (
        record.id().get(),
        record.key(),
        record.stamp(),
        record.payload(),
    ) == (id, entry.key.as_deref(), entry.stamp, &entry.payload[..])
        && found.minhash() == values.as_deref()
        && found.bottom_k() == expected.bottom_k()
        && found.simhash() == expected.simhash()
        && found.is_empty() == expected.is_empty()
}

pub(crate) fn same_record(schema: &Schema, record: &Record, id: u64, entry: &Entry) {
    let is_same = is_same_record(schema, record, id, entry);
    assert!(is_same, "document {id}: {record:?}, expected {entry:?}");
}

/// Whether a store holds exactly what is in a model.
pub(crate) fn holds(store: &Store, model: &Model) -> Result<bool> {
    if store.schema() != &model.schema {
        return Ok(false);
    }
    let snapshot = store.snapshot()?;
    if snapshot.len() != model.documents.len() as u64 {
        return Ok(false);
    }
    let mut expected = model.documents.iter();
    for record in snapshot.iter() {
        let record = record?;
        let is_same =
            |(id, entry): (&u64, &Arc<Entry>)| is_same_record(&model.schema, &record, *id, entry);
        if !expected.next().is_some_and(is_same) {
            return Ok(false);
        }
    }
    for (id, entry) in model.documents.iter().filter(|(id, _)| *id % 7 == 0) {
        if let Some(key) = &entry.key {
            let found = snapshot.get(key)?.map(|record| record.id().get());
            assert_eq!(found, Some(*id));
        }
    }
    Ok(expected.next().is_none() && snapshot.stats().run()?.next_id == model.next_id)
}

/// Returns the reported similarity. Without MinHash, it is the one that the caller reports.
pub(crate) fn similarity(model: &Model, found: &Found) -> Option<f64> {
    let is_known = found.is_exact || model.schema.minhash().is_some();
    is_known.then(|| found.similarity())
}

pub(crate) fn same_match(model: &Model, found: &Match, expected: Found) {
    assert_eq!(found.id().get(), expected.id);
    assert_eq!(
        found.key(),
        model.documents[&expected.id].key.as_deref(),
        "{expected:?}"
    );
    assert_eq!(found.is_exact(), expected.is_exact, "{expected:?}");
    assert_eq!(
        found.similarity(),
        similarity(model, &expected),
        "{expected:?}"
    );
    let distance = model.schema.simhash().map(|_| expected.distance);
    assert_eq!(found.distance(), distance, "{expected:?}");
}

pub(crate) fn same_matches(model: &Model, found: &Matches, expected: &[Found]) {
    let ids = |found: &[Match]| found.iter().map(|m| m.id().get()).collect::<Vec<_>>();
    let expected_ids: Vec<u64> = expected.iter().map(|found| found.id).collect();
    assert_eq!(ids(found), expected_ids, "found, expected {expected:?}");
    for (found, expected) in found.iter().zip(expected) {
        same_match(model, found, *expected);
    }
}

pub(crate) fn query_like(
    model: &Model,
    query: Query<'_>,
    signature: &Signature,
    question: &Question,
    exclude: Option<u64>,
) {
    let answer = question.put(query).run();
    let Some(expected) = model.query(signature, question, exclude) else {
        let refused = matches!(answer, Err(Error::InvalidParameter { .. }));
        assert!(refused, "{question:?}: {answer:?}");
        return;
    };
    let answer = answer.unwrap_or_else(|error| panic!("{question:?}: {error}"));
    if is_own_scan(model, &answer, signature, question, exclude) {
        return;
    }
    if !is_part_of(model, &answer, signature, question, exclude) {
        same_answer(model, &answer, &expected, question);
    }
}

/// Where whole buckets do not answer, a query that nothing bounds may compare with all documents
/// instead.
fn is_own_scan(
    model: &Model,
    answer: &Matches,
    signature: &Signature,
    question: &Question,
    exclude: Option<u64>,
) -> bool {
    if answer.scope() != Scope::Scan || question.scan {
        return false;
    }
    assert!(model.is_beyond_buckets(question) && question.verify.is_none());
    assert!(question.budget.is_none(), "{question:?}");
    let scan = Question {
        scan: true,
        ..*question
    };
    // It keeps what the buckets hold: bands miss some documents of the similarity.
    let expected = Answer {
        found: model.query(signature, question, exclude).unwrap().found,
        ..model.query(signature, &scan, exclude).unwrap()
    };
    same_answer(model, answer, &expected, &scan);
    true
}

/// With 128 bits, one half decides which documents a budget leaves out, and the oracle does not
/// know which. The documents found must be right, and the store must report what it left out.
fn is_part_of(
    model: &Model,
    answer: &Matches,
    signature: &Signature,
    question: &Question,
    exclude: Option<u64>,
) -> bool {
    let is_wide = model.schema.simhash().is_some_and(|s| s.bits() > 64);
    let is_open = is_wide || model.is_beyond_buckets(question);
    let (Some(budget), true) = (question.budget, is_open) else {
        return false;
    };
    let without = Question {
        budget: None,
        ..*question
    };
    if answer.budget_exceeded().is_none() {
        let whole = model.query(signature, &without, exclude).unwrap();
        same_answer(model, answer, &whole, &without);
        return true;
    }
    let all = Question {
        limit: None,
        ..without
    };
    let all = model.query(signature, &all, exclude).unwrap();
    for found in answer {
        let expected = all.found.iter().find(|e| e.id == found.id().get());
        same_match(model, found, *expected.unwrap());
    }
    assert!(answer.candidates() as u64 <= budget);
    true
}

fn same_answer(model: &Model, answer: &Matches, expected: &Answer, question: &Question) {
    COMPARED.fetch_add(1, Relaxed);
    same_matches(model, answer, &expected.found);
    if model.schema.simhash().is_some_and(|s| s.bits() > 64) {
        // Half of the bits decide who is compared.
        assert!(answer.candidates() >= expected.compared, "{question:?}");
    } else {
        assert_eq!(answer.candidates(), expected.compared, "{question:?}");
    }
    assert_eq!(answer.scope() == Scope::Scan, question.scan);
    let beyond = answer
        .budget_exceeded()
        .map_or(0, |beyond| beyond.documents);
    assert_eq!(beyond, expected.left_out, "{question:?}");
    assert!(
        answer
            .budget_exceeded()
            .is_none_or(|b| beyond > 0 && !b.is_least)
    );
}

/// One question about many signatures, and their candidates.
pub(crate) fn query_many_like(
    snapshot: &Snapshot,
    model: &Model,
    signatures: &[Signature],
    question: &Question,
) {
    let question = Question {
        scan: false,
        ..*question
    };
    let answers = question.put_many(snapshot.query(signatures)).run();
    let asked_by = |asker: usize| Question {
        verify: question.verify.map(|_| asker as u64),
        ..question
    };
    let expected: Option<Vec<Answer>> = signatures
        .iter()
        .enumerate()
        .map(|(asker, signature)| model.query(signature, &asked_by(asker), None))
        .collect();
    match (answers, expected) {
        (Ok(answers), Some(expected)) => {
            assert_eq!(answers.len(), expected.len());
            for (asker, (answer, expected)) in answers.iter().zip(&expected).enumerate() {
                let question = asked_by(asker);
                if is_own_scan(model, answer, &signatures[asker], &question, None) {
                    continue;
                }
                if !is_part_of(model, answer, &signatures[asker], &question, None) {
                    same_answer(model, answer, expected, &question);
                }
            }
        }
        (Err(Error::InvalidParameter { .. }), None) => {}
        // Without signatures the oracle has nothing to refuse.
        (Err(Error::InvalidParameter { .. }), Some(expected)) if expected.is_empty() => {}
        (answers, _) => panic!("{question:?}: {answers:?}"),
    }
    let passing = model.passing(question.filter);
    let filter = question.filter.map_or_else(Filter::all, Passing::filter);
    let candidates = snapshot.query(signatures).filter(filter).candidates();
    for (found, signature) in candidates.unwrap().iter().zip(signatures) {
        let ids: Vec<u64> = found.iter().map(|id| id.get()).collect();
        assert_eq!(ids, passing.candidates(signature));
    }
}

/// Some questions, each about the signature of a stored document or of one that is not.
pub(crate) fn some_queries(
    reader: &impl Reader,
    model: &Model,
    strangers: &[Signature],
    random: &mut Random,
    count: usize,
) {
    for _ in 0..count {
        let stored: Vec<&Signature> = model.documents.values().map(|d| &d.signature).collect();
        let signature = if stored.is_empty() || random.below(4) == 0 {
            &strangers[random.below(strangers.len() as u64) as usize]
        } else {
            stored[random.below(stored.len() as u64) as usize]
        };
        let question = any_question(random);
        query_like(model, reader.query(signature), signature, &question, None);
        let plain = Question::default();
        query_like(model, reader.query(signature), signature, &plain, None);
    }
}

/// Point reads of everything that is there and of some that is not.
pub(crate) fn all_reads(reader: &impl Reader, model: &Model, keys: &[Vec<u8>]) {
    assert_eq!(reader.len(), model.documents.len() as u64);
    assert_eq!(reader.is_empty(), model.documents.is_empty());
    for id in 0..model.next_id + 2 {
        let record = reader.get_id(DocumentId::new(id)).unwrap();
        match (record, model.documents.get(&id)) {
            (Some(record), Some(entry)) => same_record(&model.schema, &record, id, entry),
            (found, expected) => assert_eq!(found.is_some(), expected.is_some(), "document {id}"),
        }
    }
    for key in keys {
        let id = model.id_of(key);
        assert_eq!(reader.contains(key).unwrap(), id.is_some(), "{key:?}");
        match (reader.get(key).unwrap(), id) {
            (Some(record), Some(id)) => {
                same_record(&model.schema, &record, id, &model.documents[&id])
            }
            (found, expected) => assert_eq!(found.is_some(), expected.is_some(), "{key:?}"),
        }
    }
}

/// Everything that a snapshot can be asked.
pub(crate) fn whole_snapshot(
    snapshot: &Snapshot,
    model: &Model,
    keys: &[Vec<u8>],
    strangers: &[Signature],
    random: &mut Random,
) {
    all_reads(snapshot, model, keys);
    let records: Vec<Record> = snapshot.iter().map(Result::unwrap).collect();
    assert_eq!(records.len(), model.documents.len());
    for (record, (id, entry)) in records.iter().zip(&model.documents) {
        same_record(&model.schema, record, *id, entry);
    }
    if let Some(filter) = any_filter(random) {
        let records = snapshot.iter().passing(filter.filter());
        let ids = records.map(|record| record.unwrap().id().get());
        assert!(ids.eq(model.passing(Some(filter)).documents.into_keys()));
    }
    for id in 0..model.next_id + 1 {
        let key = model.documents.get(&id).and_then(|d| d.key.clone());
        assert_eq!(snapshot.key(DocumentId::new(id)).unwrap(), key);
    }
    some_queries(snapshot, model, strangers, random, 4);
    joins(snapshot, model, &Question::default());
    joins(snapshot, model, &any_question(random));
    stats_like(snapshot, model);
    let stored = model
        .documents
        .values()
        .map(|entry| entry.signature.clone());
    let many: Vec<Signature> = stored.take(40).chain(strangers.iter().cloned()).collect();
    query_many_like(snapshot, model, &many, &any_question(random));
    for key in keys {
        let query = snapshot.query_by_key(key).unwrap();
        let Some(id) = model.id_of(key) else {
            assert!(query.is_none());
            continue;
        };
        let signature = &model.documents[&id].signature;
        let question = any_question(random);
        query_like(model, query.unwrap(), signature, &question, Some(id));
    }
    let stored = model.documents.values().map(|entry| &entry.signature);
    for signature in stored.chain(strangers) {
        COMPARED.fetch_add(2, Relaxed);
        let passing = any_filter(random);
        let filter = passing.map_or_else(Filter::all, Passing::filter);
        let candidates = snapshot.query(signature).filter(filter).candidates();
        let ids = candidates.unwrap().into_iter().map(DocumentId::get);
        assert!(ids.eq(model.passing(passing).candidates(signature)));
        let n = random.pick(&[0, 1, 3, 5, 10, usize::MAX]);
        nearest_like(snapshot, model, signature, n, any_filter(random));
    }
}

/// Asks for the nearest in buckets alone, with certainty, and as a caller does who sets nothing.
fn nearest_like(
    snapshot: &Snapshot,
    model: &Model,
    signature: &Signature,
    n: usize,
    passing: Option<Passing>,
) {
    let model = &model.passing(passing);
    let filter = passing.map_or_else(Filter::all, Passing::filter);
    let schema = snapshot.schema();
    let families = [
        schema.minhash().map(|_| Family::MinHash),
        schema.simhash().map(|_| Family::SimHash),
    ];
    for by in families.into_iter().flatten() {
        let nearest = |recall| {
            let nearest = snapshot.nearest(signature, n).by(by).min_recall(recall);
            nearest.filter(filter.clone()).run().unwrap()
        };
        let in_buckets = snapshot.nearest(signature, n).by(by).min_recall(0.0);
        let in_buckets = in_buckets.filter(filter.clone());
        let in_buckets = in_buckets.without_scan().run().unwrap();
        let all = model.nearest(signature, n, by, false);
        // The similarity of the exact sets of these documents differs from their estimates.
        // Estimates exclude candidates that are hardly nearer.
        let is_whole = !schema.is_exact() || by == Family::SimHash;
        let found = nearest(0.0);
        if found.scope() == Scope::Candidates && is_whole {
            same_matches(model, &found, &model.nearest(signature, n, by, true));
            assert_eq!(in_buckets, found);
        }
        same_matches(model, &nearest(1.0), &all);
        let usual = nearest(0.9);
        assert_eq!(usual.len(), all.len());
        assert!(usual.recall() >= Some(0.9), "{usual:?}");
        if usual.scope() == Scope::Scan && is_whole {
            same_matches(model, &usual, &all);
        }
        let radius = if by == Family::SimHash { 3.0 } else { 0.4 };
        let nearest = snapshot.nearest(signature, n).by(by).min_recall(1.0);
        let near = nearest.filter(filter.clone()).within(radius, 1.5).unwrap();
        one_within(model, &near, signature, by, radius);
    }
}

/// The answer is within 1.5 times the radius, and there is one if a document is within the radius.
fn one_within(model: &Model, near: &Matches, signature: &Signature, by: Family, radius: f64) {
    let all = model.nearest(signature, usize::MAX, by, false);
    let distance = |found: &Found| match by {
        Family::SimHash => f64::from(found.distance),
        _ => 1.0 - found.estimate,
    };
    let Some(found) = near.first() else {
        assert!(all.iter().all(|found| distance(found) > radius), "{near:?}");
        return;
    };
    let expected = all.iter().find(|other| other.id == found.id().get());
    let expected = expected.unwrap();
    assert!(distance(expected) <= radius * 1.5 + 1e-9);
    same_match(model, found, *expected);
}
