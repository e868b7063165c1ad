use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use crate::query::bounds::{Bounds, Family};
use crate::sample::one_in;
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::testing::{Random, append, kinds, signature, signatures, store, store_of};
use crate::types::{Document, DocumentId, Match, Matches, Scope};
use resemblance_sketch::schema::{MinHash, Schema, SimHash};
use resemblance_sketch::sketch::{EmptyDocuments, Signature};

/// Documents in runs and in memory, some of them deleted from either.
fn filled(schema: &Schema, random: &mut Random) -> Store {
    let store = store(schema, 60);
    let mut live = Vec::new();
    for _ in 0..5 {
        let mut transaction = store.begin_write().unwrap();
        for signature in signatures(schema, random, 50) {
            live.push(append(&mut transaction, &signature));
        }
        for _ in 0..10 {
            let id = live.swap_remove(random.index(live.len()));
            transaction.remove_id(id).unwrap();
        }
        transaction.commit().unwrap();
    }
    store
}

/// The nearest of all documents, compared one by one.
fn brute_force(snapshot: &Snapshot, asked: &Signature, by: Family) -> Vec<Match> {
    let scan = snapshot.query(asked).bounds(Bounds::new().by(by));
    let scan = match by {
        Family::SimHash => scan.max_distance(128),
        _ => scan.min_similarity(0.0),
    };
    let mut all: Vec<Match> = scan.scan().run().unwrap().into_iter().collect();
    if by == Family::SimHash {
        // The sort is stable: those at the same distance stay in the order of their similarity.
        all.sort_by_key(|found| found.distance());
    }
    all
}

fn families(schema: &Schema) -> Vec<Family> {
    let minhash = schema.minhash().map(|_| Family::MinHash);
    let simhash = schema.simhash().map(|_| Family::SimHash);
    minhash.into_iter().chain(simhash).collect()
}

#[test]
fn nearest_in_a_transaction_sees_its_documents() {
    let mut random = Random(5);
    for schema in kinds() {
        let store = filled(&schema, &mut random);
        let mut transaction = store.begin_write().unwrap();
        let asked = schema.sketcher().features(["a", "b", "c"]);
        let Ok(asked) = asked else {
            continue;
        };
        let own = append(&mut transaction, &asked);
        let nearest = transaction.nearest(&asked, 1).run().unwrap();
        assert_eq!(nearest[0].id(), own, "{schema}");
        transaction.remove_id(own).unwrap();
        let nearest = transaction.nearest(&asked, 1).run().unwrap();
        assert!(nearest.iter().all(|found| found.id() != own));
    }
}

/// Returns the similarity that the caller reports for a document: any value except 1, which only
/// equal documents have, or `None`.
fn reported(index: usize, id: u64) -> Option<f64> {
    let number = Random(index as u64 * 1_000 + id).below(9);
    number.checked_sub(1).map(|number| number as f64 / 8.0)
}

/// Returns all documents in the order of the similarities that the caller reports, or else of their
/// estimates.
fn verified(mut all: Vec<Match>, index: usize) -> Vec<(u64, f64, bool)> {
    let exact = |found: &Match| reported(index, found.id().get());
    let similarity = |found: &Match| exact(found).or(found.similarity()).unwrap();
    all.sort_by(|a, b| {
        let greater = similarity(b).partial_cmp(&similarity(a)).unwrap();
        let order = greater.then(a.distance().cmp(&b.distance()));
        order.then(a.id().cmp(&b.id()))
    });
    let found = all.iter();
    found
        .map(|found| (found.id().get(), similarity(found), exact(found).is_some()))
        .collect()
}

fn similarities(matches: &Matches) -> Vec<(u64, f64, bool)> {
    let found = matches.iter();
    let fields = found.map(|f| (f.id().get(), f.similarity().unwrap(), f.is_exact()));
    fields.collect()
}

/// Tests one query in five, or each with `RESEMBLANCE_TESTS=all`.
#[test]
fn nearest_ranks_by_the_callers_similarity() {
    let mut random = Random(8);
    for schema in kinds() {
        if schema.minhash().is_none() {
            continue;
        }
        let store = filled(&schema, &mut random);
        let snapshot = store.snapshot().unwrap();
        let asked = signatures(&schema, &mut random, 12);
        for n in [0, 1, 10, usize::MAX] {
            let calls = RefCell::new(BTreeSet::new());
            let many = snapshot.nearest(&asked, n).min_recall(1.0);
            let many = many.verify(|index, id| {
                assert!(calls.borrow_mut().insert((index, id)), "asked twice");
                Ok(reported(index, id.get()))
            });
            let answers = many.run().unwrap().into_iter().enumerate();
            for (index, found) in answers.step_by(one_in(5)) {
                let all = brute_force(&snapshot, &asked[index], Family::MinHash);
                let expected = verified(all, index);
                let expected = &expected[..expected.len().min(n)];
                assert_eq!(similarities(&found), expected, "{schema}");
                assert_eq!(found.recall(), Some(1.0));
                let one = snapshot.nearest(&asked[index], n).min_recall(1.0);
                let one = one.verify(|id| Ok(reported(index, id.get())));
                assert_eq!(one.run().unwrap(), found);
            }
        }
        let near = snapshot.nearest(&asked[0], 1).min_recall(1.0);
        let near = near.verify(|_| Ok(Some(0.25))).within(0.5, 1.4).unwrap();
        assert!(near.is_empty() && near.recall() == Some(1.0));
        let near = snapshot.nearest(&asked[0], 1).verify(|_| Ok(Some(1.5)));
        let error = near.run().unwrap_err().to_string();
        assert!(error.contains("verify"), "{error}");
    }
}

/// One neighbour of each signature is nearer than twenty others, by less than estimates can
/// distinguish.
#[test]
fn nearest_is_found_among_close_competitors() {
    let mut random = Random(29);
    let schema = Schema::builder().minhash(MinHash::new(128)).build();
    let schema = schema.unwrap();
    let (mut asked, mut others) = (Vec::new(), Vec::new());
    for _ in 0..300 {
        let values: Vec<u32> = (0..128).map(|_| random.next() as u32).collect();
        for neighbour_index in 0..21 {
            let similarity = if neighbour_index == 7 { 0.5 } else { 0.46 };
            others.push(neighbour(&values, similarity, &mut random));
        }
        asked.push(Signature::from_minhash(values));
    }
    let store = store_of(
        &schema,
        16_000,
        others.into_iter().map(Signature::from_minhash),
    );
    let snapshot = store.snapshot().unwrap();
    let calls = Cell::new(0);
    let exact = |index: usize, id: DocumentId| {
        calls.set(calls.get() + 1);
        let is_own = id.get() / 21 == index as u64;
        Ok(Some(match id.get() % 21 {
            7 if is_own => 0.5,
            _ if is_own => 0.46,
            _ => 0.0,
        }))
    };
    let answers = snapshot.nearest(&asked, 1).verify(exact).run().unwrap();
    let is_nearest =
        |(index, found): (usize, &Matches)| found[0].id().get() == index as u64 * 21 + 7;
    let found = answers
        .iter()
        .enumerate()
        .filter(|answer| is_nearest(*answer));
    assert!(found.count() > 280);
    assert!(
        answers
            .iter()
            .all(|found| found.recall() >= Some(0.9) && found[0].is_exact())
    );
    // Documents that share a short bucket only by chance have too small an estimate.
    assert!(calls.get() < 300 * 40, "{}", calls.get());
    let estimated = snapshot.nearest(&asked, 1).run().unwrap();
    let found = estimated
        .iter()
        .enumerate()
        .filter(|answer| is_nearest(*answer));
    assert!(found.count() < 150);
}

/// One in seven questions is asked one by one too, each with `RESEMBLANCE_TESTS=all`.
#[test]
fn nearest_batch_agrees_with_single_queries() {
    let mut random = Random(31);
    let mut scanned = 0;
    for schema in kinds() {
        let store = filled(&schema, &mut random);
        let snapshot = store.snapshot().unwrap();
        // More than one thread's share.
        let asked = signatures(&schema, &mut random, 70);
        for by in families(&schema) {
            let many = snapshot.nearest(&asked, 60).by(by).with_payloads();
            let many = many.run().unwrap();
            let hurried = snapshot.nearest(&asked, 60).by(by).without_scan();
            let hurried = hurried.run().unwrap();
            let near = snapshot.nearest(&asked, 1).by(by).within(0.5, 1.5).unwrap();
            scanned += many.iter().filter(|f| f.scope() == Scope::Scan).count();
            for (index, asked) in asked.iter().enumerate().step_by(one_in(7)) {
                let one = || snapshot.nearest(asked, 60).by(by);
                assert_eq!(one().with_payloads().run().unwrap(), many[index]);
                assert_eq!(one().without_scan().run().unwrap(), hurried[index]);
                assert_eq!(one().within(0.5, 1.5).unwrap(), near[index]);
            }
        }
        let none: &[Signature] = &[];
        assert!(snapshot.nearest(none, 5).run().unwrap().is_empty());
    }
    assert!(scanned > 100, "{scanned}");
}

/// A signature that shares each value with another one with this probability.
fn neighbour(of: &[u32], similarity: f64, random: &mut Random) -> Vec<u32> {
    let mut value = |value: u32| {
        let keeps = (random.next() as f64) < similarity * u64::MAX as f64;
        if keeps { value } else { random.next() as u32 }
    };
    of.iter().map(|of| value(*of)).collect()
}

/// Short buckets find what the S-curve predicts: among 2,000 pairs, at most four deviations off.
#[test]
fn nearest_reports_the_actual_recall() {
    let mut random = Random(23);
    for (bits, similarity) in [(16, 0.3), (16, 0.5), (32, 0.4), (8, 0.4)] {
        let minhash = MinHash::new(128).value_bits(bits);
        let schema = Schema::builder().minhash(minhash).build().unwrap();
        let (mut asked, mut others) = (Vec::new(), Vec::new());
        for _ in 0..2_000 {
            let values: Vec<u32> = (0..128).map(|_| random.next() as u32).collect();
            others.push(neighbour(&values, similarity, &mut random));
            asked.push(Signature::from_minhash(values));
        }
        let others = others.into_iter().map(Signature::from_minhash);
        let store = store_of(&schema, 16_000, others);
        let snapshot = store.snapshot().unwrap();
        let mut found = 0.0;
        for (id, asked) in (0..).zip(&asked) {
            let nearest = snapshot.nearest(asked, 1).without_scan().run().unwrap();
            found += f64::from(nearest.iter().any(|found| found.id().get() == id));
        }
        let layout = schema.minhash().unwrap().layout();
        let agreement = layout.agreement_probability(similarity);
        let bands = f64::from(schema.minhash().unwrap().bands());
        let reported = 1.0 - (1.0 - agreement.powi(2)).powf(bands);
        let deviation = (reported * (1.0 - reported) * 2_000.0).sqrt();
        let off = found - reported * 2_000.0;
        assert!(
            off.abs() < 4.0 * deviation,
            "{bits} {similarity}: {found} {reported}"
        );
    }
}

/// Tests a quarter of the queries, or all with `RESEMBLANCE_TESTS=all`.
#[test]
fn within_finds_a_document_within_factor_times_radius() {
    let mut random = Random(3);
    let mut answers = [0; 2];
    for schema in kinds() {
        let store = filled(&schema, &mut random);
        let snapshot = store.snapshot().unwrap();
        for _ in 0..20 / one_in(4) {
            let asked = signature(&schema, &mut random);
            for by in families(&schema) {
                let distance = |found: &Match| match by {
                    Family::SimHash => f64::from(found.distance().unwrap()),
                    _ => 1.0 - found.similarity().unwrap(),
                };
                let all = brute_force(&snapshot, &asked, by);
                let nearest = all.first().map_or(f64::MAX, distance);
                let radii: &[f64] = match by {
                    Family::SimHash => &[0.0, 2.0, 5.0, 20.0],
                    _ => &[0.0, 0.1, 0.4, 0.9],
                };
                for radius in radii {
                    let near = snapshot.nearest(&asked, 1).by(by).min_recall(1.0);
                    let near = near.within(*radius, 1.5).unwrap();
                    if let Some(found) = near.first() {
                        assert!(distance(found) <= radius * 1.5 + 1e-9);
                    } else {
                        assert!(nearest > *radius && near.recall() == Some(1.0));
                    }
                    answers[near.len()] += 1;
                }
            }
        }
    }
    assert!(
        answers.iter().all(|count| *count > 40 / one_in(4)),
        "{answers:?}"
    );
}

#[test]
fn within_finds_a_document_without_a_shared_bucket() {
    let schema = Schema::builder().minhash(MinHash::new(48).banding(3, 16));
    let store = Store::in_memory(schema.build().unwrap()).unwrap();
    // The number of differing values among five in a row.
    let changed = |many: u32| {
        let value = |place| {
            if place % 5 < many {
                1_000 + place
            } else {
                place
            }
        };
        Signature::from_minhash((0..48).map(value).collect())
    };
    store.insert(Document::without_key(), &changed(0)).unwrap();
    let snapshot = store.snapshot().unwrap();
    let asked = changed(2);
    let probed = || store.metrics().lanes_probed;
    assert!(snapshot.query(&asked).run().unwrap().is_empty());
    let of_a_query = probed();
    let found = snapshot.nearest(&asked, 1).within(0.5, 1.0).unwrap();
    assert_eq!(found.len(), 1);
    // Its first stage probes whole buckets as a query does, and its next ones shorter buckets.
    assert!(probed() > 2 * of_a_query);
    assert!(found.recall().is_some_and(|recall| recall <= 1.0));
}

#[test]
fn nearest_refuses_impossible_parameters() {
    let schema = Schema::builder().minhash(MinHash::new(64)).build().unwrap();
    let store = Store::in_memory(schema).unwrap();
    let snapshot = store.snapshot().unwrap();
    let asked = Signature::from_minhash(vec![1; 64]);
    let nearest = || snapshot.nearest(&asked, 3);
    let refused = |answer: crate::Result<Matches>, parameter: &str| {
        let error = answer.unwrap_err().to_string();
        assert!(error.contains(parameter), "{error}");
    };
    refused(nearest().by(Family::SimHash).run(), "by");
    refused(nearest().by(Family::Both).run(), "by");
    refused(nearest().min_recall(1.1).run(), "min_recall");
    refused(nearest().min_recall(f64::NAN).run(), "min_recall");
    refused(nearest().within(-0.1, 2.0), "radius");
    refused(nearest().within(1.1, 2.0), "radius");
    refused(nearest().within(0.5, 0.9), "factor");
    let many = [asked.clone(), Signature::from_minhash(vec![1; 63])];
    let error = snapshot.nearest(&many, 3).run().unwrap_err().to_string();
    assert!(error.contains("index 1"), "{error}");
    let other = Signature::from_simhash(5);
    assert!(snapshot.nearest(&other, 3).run().is_err());
    let empty = nearest().run().unwrap();
    assert!(empty.is_empty() && empty.recall() == Some(1.0));
}

/// Documents without features do not count among the nearest, and their own nearest are those like
/// them, if the schema makes them alike.
#[test]
fn documents_without_features_are_nearest_only_to_each_other() {
    for empty in [EmptyDocuments::Distinct, EmptyDocuments::Alike] {
        for (kind, is_exact) in [(0, false), (0, true), (1, false), (2, false)] {
            let builder = Schema::builder().empty_documents(empty);
            let (minhash, simhash) = (MinHash::new(64), SimHash::bits64());
            let builder = match kind {
                0 => builder.minhash(minhash),
                1 => builder.minhash(MinHash::bottom_k(64)),
                _ => builder.minhash(minhash).simhash(simhash),
            };
            let schema = match is_exact {
                true => builder.exact().build().unwrap(),
                false => builder.build().unwrap(),
            };
            let sketcher = schema.sketcher();
            let features = |features: &[&str]| sketcher.features(features).unwrap();
            let (none, one, other) = (features(&[]), features(&["a", "b"]), features(&["c"]));
            let pages = [&none, &one, &none, &other].map(Clone::clone);
            let store = store_of(&schema, 1, pages);
            let snapshot = store.snapshot().unwrap();
            for by in families(&schema) {
                let ids = |asked: &Signature| {
                    let nearest = snapshot.nearest(asked, 4).by(by).run().unwrap();
                    assert_eq!(nearest.recall(), Some(1.0));
                    let ids = nearest.iter().map(|found| found.id().get());
                    ids.collect::<Vec<_>>()
                };
                let alike: &[u64] = match empty {
                    EmptyDocuments::Alike => &[0, 2],
                    _ => &[],
                };
                assert_eq!((ids(&none), ids(&one)), (alike.to_vec(), vec![1, 3]));
            }
        }
    }
}

/// The answer of a search without a scan states what it may miss.
#[test]
fn nearest_without_a_scan_reports_missing_results() {
    let schema = Schema::builder()
        .simhash(SimHash::bits64())
        .build()
        .unwrap();
    let store = Store::in_memory(schema).unwrap();
    let far = Signature::from_simhash(u64::MAX);
    store.insert(Document::without_key(), &far).unwrap();
    let snapshot = store.snapshot().unwrap();
    let asked = Signature::from_simhash(0);
    let verified = snapshot.nearest(&asked, 1).verify(|_| Ok(None)).run();
    assert!(verified.unwrap_err().to_string().contains("verify"));
    let nothing = snapshot.nearest(&asked, 1).without_scan().run().unwrap();
    assert!(nothing.is_empty() && nothing.recall() == Some(0.0));
    let found = snapshot.nearest(&asked, 1).run().unwrap();
    assert_eq!(found[0].distance(), Some(64));
    assert_eq!((found.scope(), found.recall()), (Scope::Scan, Some(1.0)));
}
