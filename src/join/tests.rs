//! Joins against the plainest form of them, over many schemas and histories of a store.

mod large;
mod verified;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use super::*;
use crate::error::Result;
use crate::query::{Bounds, Family, ResolvedBounds, SearchOptions};
use crate::sample::{is_all, one_in};
use crate::snapshot::Snapshot;
use crate::testing::{Random, store, store_of};
use crate::types::{DocumentId, Watch};
use resemblance_sketch::schema::{Combine, MinHash, Schema, SimHash};
use resemblance_sketch::sketch::{EmptyDocuments, Signature};

const VALUES: u32 = 16;

/// Few families, so that buckets are large; in each some documents are equal, some near, some only
/// in the same bucket, and a few without features.
fn signature(schema: &Schema, random: &mut Random) -> Signature {
    let family = random.below(5);
    let mut values: Vec<u32> = (0..VALUES).map(|i| family as u32 * 100 + i).collect();
    // That of family 0 is near that of a document without features.
    let mut fingerprint = if family == 0 {
        0
    } else {
        Random(family).next()
    };
    for _ in 0..random.below(4) {
        let place = random.below(VALUES.into()) as usize;
        values[place] = 5_000 + random.below(3) as u32;
        fingerprint ^= 1 << (random.below(7) * 9);
    }
    let is_empty = random.below(12) == 0;
    if is_empty {
        values = vec![u32::MAX; VALUES as usize];
        fingerprint = random.below(2);
    }
    let minhash = schema.minhash().map(|_| values);
    let simhash = schema.simhash().map(|_| fingerprint);
    Signature::with_all(minhash, simhash, is_empty, None)
}

/// Removed documents in runs and in memory, several runs, and documents in no run.
fn filled(schema: Schema, seed: u64) -> Snapshot {
    // In larger runs more equal documents are noted.
    let store = store(&schema, if seed.is_multiple_of(2) { 40 } else { 90 });
    let mut random = Random(seed);
    for round in 0..7u32 {
        let mut transaction = store.begin_write().unwrap();
        for number in 0..30u32 {
            let signature = signature(store.schema(), &mut random);
            let key = (round * 30 + number).to_be_bytes();
            transaction.insert(key, &signature).unwrap();
        }
        for _ in 0..4 {
            let key = random.below(u64::from(round + 1) * 30) as u32;
            transaction.remove(key.to_be_bytes()).unwrap();
        }
        // Some documents of the last round are in no run.
        for number in 0..3u32 {
            let key = (round * 30 + number * 7).to_be_bytes();
            transaction.remove(key).unwrap();
        }
        transaction.commit().unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let stats = snapshot.stats().run().unwrap();
    let unflushed = stats.memtable_documents;
    assert!(
        stats.runs.len() > 1 && unflushed > 0,
        "{:?}, {unflushed}",
        stats.runs
    );
    snapshot
}

fn schemas() -> Vec<Schema> {
    let whole = MinHash::new(16).value_bits(32);
    let minhash = || whole.threshold(0.75).banding(8, 2);
    // Whole buckets guarantee the distance 3. A join beyond that uses separate tables.
    let simhash = |groups: &[(u8, u8)]| SimHash::bits64().tables(groups);
    let few: &[(u8, u8)] = &[(3, 2), (2, 2), (2, 2)];
    let many: &[(u8, u8)] = &[(4, 3), (4, 3)];
    let builders = [
        Schema::builder().minhash(minhash()),
        Schema::builder().simhash(simhash(few)),
        Schema::builder().simhash(simhash(many)),
        Schema::builder().minhash(minhash()).simhash(simhash(few)),
        Schema::builder()
            .minhash(minhash())
            .simhash(simhash(many))
            .near(Combine::Both),
    ];
    let policies = [EmptyDocuments::Distinct, EmptyDocuments::Alike];
    let with_policies = builders.into_iter().flat_map(|builder| {
        policies.map(|policy| builder.clone().empty_documents(policy).build().unwrap())
    });
    with_policies.collect()
}

type Measures = (Option<f64>, Option<u32>);
type PairMap = BTreeMap<(u64, u64), Measures>;

/// Every bucket of every lane, every two documents in it: the pairs that are looked at, and what is left out.
fn candidates(snapshot: &Snapshot, bounds: Bounds, most: usize) -> (PairMap, LeftOut) {
    let context = snapshot.view().context();
    let bounds = bounds.resolve(snapshot.schema(), false).unwrap();
    let mut buckets: BTreeMap<(u16, u64), Vec<(u64, Signature)>> = BTreeMap::new();
    for record in snapshot.iter() {
        let record = record.unwrap();
        let signature = record.signature();
        let mut codes = Vec::new();
        if !context.is_filed(signature) {
            continue;
        }
        if let Some(values) = signature.minhash() {
            context.lanes.band_codes(values, &mut codes).unwrap();
        }
        if let Some(fingerprint) = signature.fingerprint() {
            context.lanes.table_codes(&fingerprint, &mut codes);
        }
        for (lane, code) in (1u16..).zip(codes) {
            if bounds.lanes(&context.lanes).contains(&lane) {
                let low = context.lanes.bucket_range(lane, code).0;
                let bucket = buckets.entry((lane, low)).or_default();
                bucket.push((record.id().get(), signature.clone()));
            }
        }
    }
    let (mut pairs, mut left_out) = (PairMap::new(), LeftOut::default());
    for ((lane, _), bucket) in &buckets {
        let mut different: Vec<&Signature> = Vec::new();
        for (_, signature) in bucket {
            if !different.contains(&signature) {
                different.push(signature);
            }
        }
        let first = &different[..most.min(different.len())];
        let is_late = |signature: &Signature| !first.contains(&signature);
        let late = bucket.iter().filter(|(_, signature)| is_late(signature));
        left_out.documents += late.count() as u64;
        left_out.buckets += u64::from(different.len() > most);
        for (place, (b, second)) in bucket.iter().enumerate() {
            for (a, first) in &bucket[..place] {
                if first != second && is_late(first) && is_late(second) {
                    left_out.pairs += 1;
                    continue;
                }
                let values = first.minhash().zip(second.minhash());
                let equal = values.map(|(a, b)| a.iter().zip(b).filter(|(a, b)| a == b).count());
                let distance = first.simhash().zip(second.simhash());
                let distance = distance.map(|(a, b)| (a ^ b).count_ones());
                let is_close =
                    distance <= bounds.max_distance || *lane <= context.lanes.band_count();
                if first.is_empty() == second.is_empty() && is_close {
                    let similarity = equal.map(|equal| equal as f64 / f64::from(VALUES));
                    pairs.insert((*a, *b), (similarity, distance));
                }
            }
        }
    }
    (pairs, left_out)
}

fn components(pairs: &PairMap) -> BTreeSet<Vec<u64>> {
    let mut sets: Vec<BTreeSet<u64>> = Vec::new();
    for (a, b) in pairs.keys() {
        let holds = |set: &BTreeSet<u64>| set.contains(a) || set.contains(b);
        let (joined, mut apart): (Vec<_>, Vec<_>) = sets.into_iter().partition(holds);
        apart.push(joined.into_iter().flatten().chain([*a, *b]).collect());
        sets = apart;
    }
    let sorted = sets.into_iter().map(|set| set.into_iter().collect());
    sorted.collect()
}

fn in_threads(threads: usize) -> SearchOptions {
    SearchOptions {
        threads: Some(threads),
        ..SearchOptions::default()
    }
}

/// A join whose batches hold so few documents that buckets are large.
fn join(
    snapshot: &Snapshot,
    bounds: Bounds,
    options: SearchOptions,
    links_only: bool,
    batch_documents: Option<usize>,
) -> Pairs {
    let options = SearchOptions { bounds, ..options };
    let source = Arc::new(snapshot.view().clone());
    let mut pairs = Pairs::new(source, options, links_only).unwrap();
    if let Some(documents) = batch_documents {
        pairs.settings_mut().batch_documents = documents;
        pairs.settings_mut().options.memory_bytes = Some(0);
    }
    pairs
}

/// Returns the similarity that the closure of a verified join reports. It does not depend on texts,
/// and is sometimes `None`.
fn reported(a: u64, b: u64) -> Option<f64> {
    let number = Random(a << 32 | b).below(9);
    number.checked_sub(1).map(|number| number as f64 / 7.0)
}

/// How often the closure was asked about a pair.
type Calls = Arc<Mutex<BTreeMap<(u64, u64), u32>>>;

fn counting(calls: &Calls) -> Arc<impl Fn(DocumentId, DocumentId) -> Result<Option<f64>> + use<>> {
    let calls = Arc::clone(calls);
    Arc::new(move |a: DocumentId, b: DocumentId| {
        let ids = (a.get(), b.get());
        *calls.lock().unwrap().entry(ids).or_default() += 1;
        Ok(reported(ids.0, ids.1))
    })
}

/// Returns the pairs within bounds, according to their signatures or to the closure.
fn within(candidates: &PairMap, bounds: &ResolvedBounds, is_verified: bool) -> PairMap {
    let pairs = candidates.iter().filter_map(|(ids, (estimate, distance))| {
        let exact = is_verified.then(|| reported(ids.0, ids.1)).flatten();
        let similarity = exact.or(*estimate);
        let (found, bits) = (similarity.unwrap_or(0.0), distance.unwrap_or(0));
        let equal = (found * f64::from(VALUES)).round() as usize;
        let is_within = match is_verified {
            true => bounds.accepts_similarity(found, exact.is_some(), bits),
            false => bounds.accepts(equal, bits),
        };
        is_within.then_some((*ids, (similarity, *distance)))
    });
    pairs.collect()
}

/// The pairs in their order, each once.
fn in_order(pairs: &mut Pairs, is_verified: bool) -> (Vec<(u64, u64)>, PairMap) {
    let (mut order, mut measures) = (Vec::new(), PairMap::new());
    for pair in pairs {
        let pair = pair.unwrap();
        let ids = (pair.a.get(), pair.b.get());
        assert!(ids.0 < ids.1, "{pair:?}");
        let is_exact = is_verified && reported(ids.0, ids.1).is_some();
        assert_eq!(pair.is_exact, is_exact, "{pair:?}");
        let twice = measures.insert(ids, (pair.similarity, pair.distance));
        assert_eq!(twice, None, "{pair:?} came twice");
        order.push(ids);
    }
    (order, measures)
}

/// Compares pairs and clusters with the plain form, by several threads and in several batches. Returns the number of pairs.
fn compare_with_plain_form(
    snapshot: &Snapshot,
    by: Family,
    most: Option<usize>,
    is_verified: bool,
) -> usize {
    let bounds = Bounds::new().by(by);
    let (candidates, left_out) = candidates(snapshot, bounds, most.unwrap_or(usize::MAX));
    let resolved = bounds.resolve(snapshot.schema(), false).unwrap();
    let expected = within(&candidates, &resolved, is_verified);
    let clusters = components(&expected);
    assert!(most != Some(3) || left_out.pairs > 0 && left_out.buckets > 1);
    let mut orders = BTreeSet::new();
    for (threads, batch_documents) in [(1, None), (5, None), (1, Some(7)), (3, Some(7))] {
        let options = SearchOptions {
            max_bucket: most,
            ..in_threads(threads)
        };
        let calls = Calls::default();
        let mut pairs = join(snapshot, bounds, options, false, batch_documents);
        if is_verified {
            pairs = pairs.verified(counting(&calls), true);
        }
        let (order, found) = in_order(&mut pairs, is_verified);
        assert_eq!(found, expected, "{bounds:?} {most:?} {batch_documents:?}");
        assert_eq!(pairs.left_out(), left_out, "{bounds:?} {most:?}");
        let called = std::mem::take(&mut *calls.lock().unwrap());
        let once = candidates
            .keys()
            .filter(|_| is_verified)
            .map(|ids| (*ids, 1));
        assert_eq!(called, once.collect(), "every candidate exactly once");
        orders.insert((batch_documents, order));
        if threads == 1 && !is_all() {
            continue;
        }
        let links = join(snapshot, bounds, options, !is_verified, batch_documents);
        let (len, watch) = (snapshot.len(), &mut Watch::new(""));
        let found = match is_verified {
            true => Clusters::from_verified(links.unverified(true), counting(&calls), len, watch),
            false => Clusters::from_pairs(links, len, watch),
        };
        let found = found.unwrap();
        assert_eq!(found.left_out(), left_out, "{bounds:?} {most:?}");
        let found = found.map(|cluster| cluster.into_iter().map(|id| id.get()).collect());
        let found: Vec<Vec<u64>> = found.collect();
        assert!(found.is_sorted());
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), clusters);
        let called = std::mem::take(&mut *calls.lock().unwrap());
        let is_candidate = |(ids, times): (&_, &u32)| *times == 1 && candidates.contains_key(ids);
        assert!(called.iter().all(is_candidate), "{called:?}");
    }
    assert_eq!(orders.len(), 2, "the order depends on threads");
    expected.len()
}

/// Every family that joins use, with every limit of buckets. Of each schema the cases are a share
/// that begins at another place, so that limits take turns; they are all with
/// `RESEMBLANCE_TESTS=all`.
fn cases_of(schema: &Schema, seed: u64, limits: &[Option<usize>]) -> Vec<(Family, Option<usize>)> {
    let bys: &[Family] = match (schema.minhash(), schema.simhash()) {
        (Some(_), Some(_)) => &[Family::MinHash, Family::SimHash, Family::Any, Family::Both],
        (Some(_), None) => &[Family::MinHash],
        _ => &[Family::SimHash],
    };
    let with_limits = bys
        .iter()
        .flat_map(|by| limits.iter().map(move |limit| (*by, *limit)));
    let first = seed as usize % one_in(limits.len());
    with_limits.skip(first).step_by(one_in(7)).collect()
}

/// Tests one in seven limits of buckets, or each with `RESEMBLANCE_TESTS=all`, each with different
/// bounds. Then also makes clusters with one thread.
#[test]
fn joins_agree_with_the_plain_algorithm() {
    let mut found = 0;
    for (seed, schema) in (1..).zip(schemas()) {
        let cases = cases_of(&schema, seed, &[None, Some(1), Some(3), Some(12)]);
        let snapshot = filled(schema, seed);
        for (by, most) in cases {
            let pairs = compare_with_plain_form(&snapshot, by, most, false);
            found += if most == Some(3) { pairs } else { 0 };
        }
    }
    assert!(found > 4_000 / one_in(7), "{found}");
}

/// The same of joins whose candidates a closure verifies.
#[test]
fn verified_joins_agree_with_the_plain_algorithm() {
    for (seed, schema) in (1..).zip(schemas()) {
        let cases = cases_of(&schema, seed, &[None, Some(3)]);
        let snapshot = filled(schema, seed);
        for (by, most) in cases {
            compare_with_plain_form(&snapshot, by, most, true);
        }
    }
}

/// Many documents that are alike and few that are not. Collapsing equal documents keeps this
/// linear. The clusters must be those of all pairs.
#[test]
fn collapsing_equal_documents_keeps_clusters() {
    let schema = Schema::builder().minhash(MinHash::new(32).threshold(0.7));
    let schema = schema.simhash(SimHash::bits64()).build().unwrap();
    let signature = |number: u32| {
        let (family, member) = (number % 7, (number / 7) % 3);
        let value = |i| family * 1_000 + i + if i < member * 4 { 500 } else { 0 };
        let fingerprint = u64::from(family).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Signature::from_parts(
            Some((0..32).map(value).collect()),
            Some(fingerprint ^ 1 << member),
        )
    };
    let snapshot = store_of(&schema, 100, (0..600).map(signature))
        .snapshot()
        .unwrap();
    let pairs = in_order(&mut snapshot.pairs().run().unwrap(), false).1;
    let clusters = snapshot.clusters().run().unwrap();
    let clusters = clusters.map(|cluster| cluster.into_iter().map(|id| id.get()).collect());
    let clusters: BTreeSet<Vec<u64>> = clusters.collect();
    assert_eq!(clusters.len(), 7);
    assert_eq!(clusters, components(&pairs));
}
