use crate::observe::Metrics;
use crate::options::StoreOptions;
use crate::query::probe::FIRST_POSTINGS;
use crate::sample::{is_all, one_in, trials};
use crate::search::Earlier;
use crate::store::Store;
use crate::testing::{
    Random, append, change, kinds, records, signature, signatures, store, store_of,
};
use crate::types::{Document, Novelty};
use crate::write::WriteTransaction;
use resemblance_sketch::schema::Schema;
use resemblance_sketch::sketch::Signature;

fn with_budget(schema: &Schema, flush_after: u64, budget: Option<u64>) -> Store {
    let options = StoreOptions::new().flush_after(flush_after);
    let options = match budget {
        Some(budget) => options.probe_budget(budget),
        None => options,
    };
    options.create_in_memory(schema.clone()).unwrap()
}

/// An insertion finds what a query before it finds. With a budget it finds what a query with it finds, or an identical
/// document, and reports whether anything was left out. The documents are in memory, in runs and removed: each kind of schema
/// has one in three of the budgets in turn, and all of them with `RESEMBLANCE_TESTS=all`.
#[test]
fn best_match_agrees_with_a_query_within_its_budget() {
    const CASES: [(Option<u64>, u64); 7] = [
        (None, 9),
        (None, 70),
        (None, 10_000),
        (Some(1), 9),
        (Some(4), 70),
        (Some(10), 10_000),
        (Some(1_000), 30),
    ];
    let distance = one_in(3);
    let (mut beyond, mut first, mut near, mut identical) = (0, 0, 0, 0);
    for (schema, seed) in kinds().iter().zip(1..) {
        let cases = CASES.into_iter().skip(seed as usize % distance);
        for (budget, flush_after) in cases.step_by(distance) {
            let store = with_budget(schema, flush_after, budget);
            let mut random = Random(seed << 25 | flush_after);
            for _ in 0..4 {
                let mut transaction = store.begin_write().unwrap();
                let changes = random.below(60);
                change(&mut transaction, &mut random, schema, changes);
                for _ in 0..25 {
                    let signature = signature(schema, &mut random);
                    let query = || transaction.query(&signature).limit(1);
                    let all = query().run().unwrap();
                    let within = budget.map_or_else(
                        || all.clone(),
                        |budget| query().probe_budget(budget).run().unwrap(),
                    );
                    assert!(budget.is_none_or(|budget| within.candidates() as u64 <= budget));
                    let is_cut = within.budget_exceeded().is_some();
                    assert!(is_cut || within == all);
                    let document = Document::without_key();
                    let found = transaction.insert_if_new(document, &signature).unwrap();
                    let is_whole = found.budget_exceeded().is_none();
                    let expected = if is_whole { &all } else { &within };
                    assert_eq!(found.is_new(), expected.is_empty(), "{schema}");
                    if let Novelty::NearDuplicate(found) = &found {
                        assert_eq!(*found, expected[0], "{schema}");
                        let is_far = found.distance().is_some_and(|distance| distance > 0)
                            || found
                                .similarity()
                                .is_some_and(|similarity| similarity < 1.0);
                        identical += u64::from(!is_far);
                        near += 1;
                    }
                    assert!(is_whole || found.budget_exceeded() == within.budget_exceeded());
                    first += u64::from(is_whole && is_cut);
                    beyond += u64::from(!is_whole);
                }
                transaction.commit().unwrap();
            }
        }
    }
    let least = (kinds().len() / distance) as u64;
    assert!(
        near > identical && identical > 50 * least,
        "{near}, {identical}"
    );
    assert!(beyond > 10 * least && first > least, "{beyond}, {first}");
}

/// Some keys are frequent, and some documents have none.
fn key(random: &mut Random) -> Option<Vec<u8>> {
    match random.below(4) {
        0 => None,
        1 => Some(random.below(40).to_string().into()),
        _ => Some(random.next().to_le_bytes().to_vec()),
    }
}

/// A batch is answered like single inserts, with and without a budget. Tests each kind of schema
/// with one way of flushing and one budget in turn, or with all four and twice the number of
/// commits with `RESEMBLANCE_TESTS=all`.
#[test]
fn if_new_batch_agrees_with_single_inserts() {
    let distance = one_in(4);
    let mut counts = [0; 4];
    for (schema, seed) in kinds().iter().zip(1..) {
        let cases = [(None, 9), (None, 500), (Some(3), 9), (Some(8), 500)].into_iter();
        for (budget, flush_after) in cases.skip(seed as usize % distance).step_by(distance) {
            let [many, apart] = [(); 2].map(|()| with_budget(schema, flush_after, budget));
            for round in 0..trials(2, 4) {
                let [mut at_once, mut one_by_one] =
                    [&many, &apart].map(|store| store.begin_write().unwrap());
                for transaction in [&mut at_once, &mut one_by_one] {
                    change(transaction, &mut Random(seed << 20 | round), schema, 30);
                }
                let mut random = Random(seed << 30 | round);
                for count in [0, 1, 30, 120] {
                    let keys: Vec<_> = (0..count).map(|_| key(&mut random)).collect();
                    let signatures = signatures(schema, &mut random, count);
                    let documents: Vec<_> = keys
                        .iter()
                        .map(|key| key.as_ref().map_or(Document::without_key(), Document::new))
                        .zip(&signatures)
                        .collect();
                    let found = at_once.insert_many(&documents).if_new().run().unwrap();
                    let alone = documents
                        .iter()
                        .map(|(document, s)| one_by_one.insert_if_new(document, s).unwrap());
                    assert_eq!(found, alone.collect::<Vec<Novelty>>(), "{schema}");
                    for novelty in &found {
                        let is_cut = novelty.budget_exceeded().is_some();
                        assert!(budget.is_some() || !is_cut);
                        counts[3] += usize::from(is_cut);
                        counts[match novelty {
                            Novelty::New { .. } => 0,
                            Novelty::NearDuplicate(_) => 1,
                            Novelty::KeyExists(_) => 2,
                        }] += 1;
                    }
                }
                at_once.commit().unwrap();
                one_by_one.commit().unwrap();
            }
            assert_eq!(records(&many), records(&apart));
            let report = many.snapshot().unwrap().check().run().unwrap();
            assert!(report.is_clean(), "{:#?}", report.problems);
        }
    }
    let least = 5 * kinds().len() / distance;
    assert!(counts.iter().all(|count| *count > least), "{counts:?}");
    assert!(!is_all() || counts[3] > 130, "{counts:?}");
}

/// Returns the lanes, signatures and documents that were read between two moments.
fn difference(before: &Metrics, after: &Metrics) -> (u64, u64, u64) {
    (
        after.lanes_probed - before.lanes_probed,
        after.signatures_read - before.signatures_read,
        after.documents_read - before.documents_read,
    )
}

/// The queries of insertions, one by one and in a batch.
fn reads_of(store: &Store, key: &str, signature: &Signature) -> [(u64, u64, u64); 2] {
    let before = store.metrics();
    let mut transaction = store.begin_write().unwrap();
    transaction.insert_if_new(key, signature).unwrap();
    drop(transaction);
    let middle = store.metrics();
    let mut transaction = store.begin_write().unwrap();
    let documents = [(Document::new(key), signature)];
    transaction.insert_many(&documents).if_new().run().unwrap();
    drop(transaction);
    [
        difference(&before, &middle),
        difference(&middle, &store.metrics()),
    ]
}

/// A page that is there already costs the lane of its key, one more, and one record.
#[test]
fn an_identical_document_costs_one_record() {
    for (schema, rows) in [(0, 1), (4, 1), (5, 0), (7, 1), (8, 1)] {
        let schema = &kinds()[schema];
        let sketcher = schema.sketcher();
        let page = |number: u64| {
            let features = (0..30).map(|i| format!("{} {i}", number));
            sketcher.features(features.collect::<Vec<_>>()).unwrap()
        };
        for flush_after in [20, 10_000] {
            let store = store_of(schema, flush_after, (0..30).map(page));
            for number in [0, 15, 29] {
                let reads = reads_of(&store, "another key", &page(number));
                assert_eq!(reads, [(2, rows, 1), (2, rows, 1)], "{schema}");
            }
            let lanes = u64::from(store.store().context.lanes.count());
            for (asked, ..) in reads_of(&store, "another key", &page(30)) {
                assert_eq!(asked, lanes, "{schema}");
            }
        }
    }
}

/// The signatures that the search for an identical document has read are not read again, however
/// full the bucket.
#[test]
fn best_match_reads_no_candidate_twice() {
    for flush_after in [100, 10_000] {
        let store = store(&kinds()[0], flush_after);
        let reads_of_new = |transaction: &mut WriteTransaction, signature: &Signature| {
            let before = store.metrics();
            let document = Document::without_key();
            transaction.insert_if_new(document, signature).unwrap();
            difference(&before, &store.metrics())
        };
        // All pages share the first band, and no two are near each other.
        let page = |number: u32| {
            let values = (0..32).map(|i| if i < 2 { 5 } else { number * 100 + i });
            Signature::from_minhash(values.collect())
        };
        for number in 0..6 * FIRST_POSTINGS as u32 {
            let mut transaction = store.begin_write().unwrap();
            let count = u64::from(number);
            let lanes = u64::from(store.store().context.lanes.count());
            let reads = reads_of_new(&mut transaction, &page(number));
            let again = u64::from(number as usize > FIRST_POSTINGS);
            assert_eq!(reads, (lanes - 1 + again, count, 0));
            transaction.commit().unwrap();
        }
        // If only one is examined, it is found at once; another is found among all.
        for (number, rows) in [(0, 1), (2, 3), (14, 15), (15, 240)] {
            let mut transaction = store.begin_write().unwrap();
            let reads = reads_of_new(&mut transaction, &page(number));
            let lanes = if rows < 100 { 1 } else { 9 };
            assert_eq!(reads, (lanes, rows, 1), "{number}");
        }
    }
}

/// With a sufficient budget, a verified batch gives the same result as without one. With a smaller
/// budget, the result reports it.
#[test]
fn verified_batch_reports_an_exceeded_budget() {
    let schema = &kinds()[0];
    let of = |budget: Option<u64>| {
        let store = with_budget(schema, 50, budget);
        let mut transaction = store.begin_write().unwrap();
        let mut random = Random(77);
        for signature in signatures(schema, &mut random, 50) {
            append(&mut transaction, &signature);
        }
        let signatures = signatures(schema, &mut random, 100);
        let documents = signatures.iter().map(|s| (Document::without_key(), s));
        let similarity = |_, earlier| {
            let number = match earlier {
                Earlier::Stored(id) => id.get(),
                Earlier::OfBatch(other) => other as u64,
            };
            Ok(Some((number % 10) as f64 / 10.0))
        };
        let documents: Vec<_> = documents.collect();
        let insertion = transaction.insert_many(&documents).if_new();
        insertion.verify(similarity).run().unwrap()
    };
    let without = of(None);
    assert!(without.iter().any(Novelty::is_new) && !without.iter().all(Novelty::is_new));
    assert_eq!(of(Some(1_000)), without);
    let within = of(Some(2));
    assert!(within.iter().any(|found| found.budget_exceeded().is_some()));
}
