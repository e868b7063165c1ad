use super::best_tests::{Random, kinds, signature};
use crate::options::StoreOptions;
use crate::query::bounds::By;
use crate::schema::{MinHash, Schema, SimHash};
use crate::sketch::Signature;
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::types::{Document, DocumentId, Match, Matches, Scope};

/// Documents in runs and in memory, some of them deleted from either.
fn filled(schema: &Schema, random: &mut Random) -> (tempfile::TempDir, Store, Vec<u64>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let options = StoreOptions::new().flush_after(60);
    let store = options.create(path, schema.clone()).unwrap();
    let mut live = Vec::new();
    for _ in 0..5 {
        let mut transaction = store.begin_write().unwrap();
        for _ in 0..50 {
            let signature = signature(schema, random);
            let id = transaction.insert(Document::without_key(), &signature);
            live.push(id.unwrap().get());
        }
        for _ in 0..10 {
            let id = live.swap_remove(random.below(live.len() as u64) as usize);
            transaction.remove_id(DocumentId::new(id)).unwrap();
        }
        transaction.commit().unwrap();
    }
    (folder, store, live)
}

/// The nearest of all documents, compared one by one.
fn brute_force(snapshot: &Snapshot, asked: &Signature, by: By) -> Vec<Match> {
    let scan = snapshot.query(asked).by(by);
    let scan = match by {
        By::SimHash => scan.max_distance(128),
        _ => scan.min_similarity(0.0),
    };
    let mut all: Vec<Match> = scan.scan().run().unwrap().into_iter().collect();
    if by == By::SimHash {
        // The sort is stable: those at the same distance stay in the order of their similarity.
        all.sort_by_key(|found| found.distance());
    }
    all
}

fn families(schema: &Schema) -> Vec<By> {
    let minhash = schema.minhash().map(|_| By::MinHash);
    let simhash = schema.simhash().map(|_| By::SimHash);
    minhash.into_iter().chain(simhash).collect()
}

#[test]
fn the_nearest_are_those_of_brute_force() {
    let mut random = Random::new(17);
    let mut scopes = [0; 2];
    for schema in kinds() {
        let (_folder, store, live) = filled(&schema, &mut random);
        let snapshot = store.snapshot().unwrap();
        for _ in 0..12 {
            let asked = signature(&schema, &mut random);
            for by in families(&schema) {
                let all = brute_force(&snapshot, &asked, by);
                assert!(all.iter().all(|found| live.contains(&found.id().get())));
                for n in [0, 1, 10, all.len(), usize::MAX] {
                    let nearest = || snapshot.nearest(&asked, n).by(by);
                    let expected = &all[..all.len().min(n)];
                    let certain = nearest().min_recall(1.0).run().unwrap();
                    assert_eq!(*certain, *expected, "{schema} {by:?}");
                    assert_eq!(certain.recall(), Some(1.0));
                    let usual = nearest().run().unwrap();
                    assert_eq!(usual.len(), expected.len());
                    assert!(usual.recall() >= Some(0.9) && usual.iter().all(|f| all.contains(f)));
                    scopes[usize::from(usual.scope() == Scope::Scan)] += 1;
                }
                if let Some(own) = all.first() {
                    let others = snapshot.nearest(&asked, 3).by(by).excluding(own.id());
                    let others = others.min_recall(1.0).run().unwrap();
                    assert_eq!(*others, all[1..all.len().min(4)]);
                }
            }
        }
    }
    assert!(scopes.iter().all(|count| *count > 100), "{scopes:?}");
}

#[test]
fn a_transaction_sees_its_own_documents() {
    let mut random = Random::new(5);
    for schema in kinds() {
        let (_folder, store, _) = filled(&schema, &mut random);
        let mut transaction = store.begin_write().unwrap();
        let asked = schema.sketcher().features(["a", "b", "c"]);
        let Ok(asked) = asked else {
            continue;
        };
        let own = transaction.insert(Document::without_key(), &asked).unwrap();
        let nearest = transaction.nearest(&asked, 1).run().unwrap();
        assert_eq!(nearest[0].id(), own, "{schema}");
        transaction.remove_id(own).unwrap();
        let nearest = transaction.nearest(&asked, 1).run().unwrap();
        assert!(nearest.iter().all(|found| found.id() != own));
    }
}

/// A signature that shares each value with another one with this probability.
fn neighbour(of: &[u32], similarity: f64, random: &mut Random) -> Vec<u32> {
    let mut value = |value: u32| {
        let keeps = (random.next() as f64) < similarity * u64::MAX as f64;
        if keeps { value } else { random.next() as u32 }
    };
    of.iter().map(|of| value(*of)).collect()
}

/// What short buckets find is what the S-curve says: of 2,000 pairs no more than four deviations off.
#[test]
fn the_probability_that_is_told_is_that_of_finding() {
    let mut random = Random::new(23);
    for (bits, similarity) in [(16, 0.3), (16, 0.5), (32, 0.4), (8, 0.4)] {
        let minhash = MinHash::new(128).value_bits(bits);
        let schema = Schema::builder().minhash(minhash).build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path().join("s"), schema.clone()).unwrap();
        let mut transaction = store.begin_write().unwrap();
        let mut asked = Vec::new();
        for _ in 0..2_000 {
            let values: Vec<u32> = (0..128).map(|_| random.next() as u32).collect();
            let other = neighbour(&values, similarity, &mut random);
            let other = Signature::from_minhash(other);
            transaction.insert(Document::without_key(), &other).unwrap();
            asked.push(Signature::from_minhash(values));
        }
        transaction.commit().unwrap();
        let snapshot = store.snapshot().unwrap();
        let mut found = 0.0;
        for (id, asked) in (0..).zip(&asked) {
            let nearest = snapshot.nearest(asked, 1).without_scan().run().unwrap();
            found += f64::from(nearest.iter().any(|found| found.id().get() == id));
        }
        let layout = schema.minhash().unwrap().layout();
        let agreement = layout.agreement_probability(similarity);
        let bands = f64::from(schema.minhash().unwrap().bands());
        let told = 1.0 - (1.0 - agreement.powi(2)).powf(bands);
        let deviation = (told * (1.0 - told) * 2_000.0).sqrt();
        let off = found - told * 2_000.0;
        assert!(
            off.abs() < 4.0 * deviation,
            "{bits} {similarity}: {found} {told}"
        );
    }
}

#[test]
fn a_document_within_the_factor_is_found_where_one_is_within_the_radius() {
    let mut random = Random::new(3);
    let mut answers = [0; 2];
    for schema in kinds() {
        let (_folder, store, _) = filled(&schema, &mut random);
        let snapshot = store.snapshot().unwrap();
        for _ in 0..20 {
            let asked = signature(&schema, &mut random);
            for by in families(&schema) {
                let distance = |found: &Match| match by {
                    By::SimHash => f64::from(found.distance().unwrap()),
                    _ => 1.0 - found.similarity().unwrap(),
                };
                let all = brute_force(&snapshot, &asked, by);
                let nearest = all.first().map_or(f64::MAX, distance);
                let radii: &[f64] = match by {
                    By::SimHash => &[0.0, 2.0, 5.0, 20.0],
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
    assert!(answers.iter().all(|count| *count > 40), "{answers:?}");
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let schema = Schema::builder().minhash(MinHash::new(64)).build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path().join("s"), schema).unwrap();
    let snapshot = store.snapshot().unwrap();
    let asked = Signature::from_minhash(vec![1; 64]);
    let nearest = || snapshot.nearest(&asked, 3);
    let refused = |answer: crate::Result<Matches>, parameter: &str| {
        let error = answer.unwrap_err().to_string();
        assert!(error.contains(parameter), "{error}");
    };
    refused(nearest().by(By::SimHash).run(), "by");
    refused(nearest().by(By::Both).run(), "by");
    refused(nearest().min_recall(1.1).run(), "min_recall");
    refused(nearest().min_recall(f64::NAN).run(), "min_recall");
    refused(nearest().within(-0.1, 2.0), "radius");
    refused(nearest().within(1.1, 2.0), "radius");
    refused(nearest().within(0.5, 0.9), "factor");
    let other = Signature::from_simhash(5);
    assert!(snapshot.nearest(&other, 3).run().is_err());
    let empty = nearest().run().unwrap();
    assert!(empty.is_empty() && empty.recall() == Some(1.0));
}

/// Without a scan the answer says what it may miss.
#[test]
fn without_a_scan_less_is_found_and_told() {
    let schema = Schema::builder()
        .simhash(SimHash::bits64())
        .build()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path().join("s"), schema).unwrap();
    let far = Signature::from_simhash(u64::MAX);
    store.insert(Document::without_key(), &far).unwrap();
    let snapshot = store.snapshot().unwrap();
    let asked = Signature::from_simhash(0);
    let nothing = snapshot.nearest(&asked, 1).without_scan().run().unwrap();
    assert!(nothing.is_empty() && nothing.recall() == Some(0.0));
    let found = snapshot.nearest(&asked, 1).run().unwrap();
    assert_eq!(found[0].distance(), Some(64));
    assert_eq!((found.scope(), found.recall()), (Scope::Scan, Some(1.0)));
}
