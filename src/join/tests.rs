//! Joins against the plainest form of them, over many schemas and histories of a store.

mod large;
mod verified;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::*;
use crate::options::StoreOptions;
use crate::query::Family;
use crate::query::{Bounds, SearchOptions};
use crate::sample::{is_all, one_in};
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::types::{Document, Watch};
use resemblance_sketch::schema::{Combine, MinHash, Schema, SimHash};
use resemblance_sketch::sketch::{EmptyDocuments, Signature};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

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
fn filled(schema: Schema, seed: u64) -> (tempfile::TempDir, Snapshot) {
    let folder = tempfile::tempdir().unwrap();
    // In larger runs more equal documents are noted.
    let options = StoreOptions::new().flush_after(if seed.is_multiple_of(2) { 40 } else { 90 });
    let store = options.create(folder.path().join("s"), schema).unwrap();
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
        // Of the last round some that are in no run.
        for number in 0..3u32 {
            let key = (round * 30 + number * 7).to_be_bytes();
            transaction.remove(key).unwrap();
        }
        transaction.commit().unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let stats = snapshot.stats().run().unwrap();
    let unsealed = stats.memtable_documents;
    assert!(
        stats.runs.len() > 1 && unsealed > 0,
        "{:?}, {unsealed}",
        stats.runs
    );
    (folder, snapshot)
}

fn schemas() -> Vec<Schema> {
    let whole = MinHash::new(16).value_bits(32);
    let minhash = || whole.threshold(0.75).banding(8, 2);
    // Whole buckets prove the distance 3: a join beyond that has tables of its own.
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

/// Every bucket of every lane, every two documents in it: the pairs, and what is left out.
fn plainly(snapshot: &Snapshot, bounds: Bounds, most: usize) -> (PairMap, LeftOut) {
    let (mut pairs, left_out) = candidates(snapshot, bounds, most);
    let bounds = bounds.resolve(snapshot.schema(), false).unwrap();
    pairs.retain(|_, (similarity, distance)| {
        let equal = (similarity.unwrap_or(0.0) * f64::from(VALUES)).round() as usize;
        bounds.accepts(equal, distance.unwrap_or(0))
    });
    (pairs, left_out)
}

/// The same with all that are looked at.
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

/// The pairs in their order, each once.
fn in_order(pairs: &mut Pairs) -> (Vec<(u64, u64)>, PairMap) {
    let (mut order, mut measures) = (Vec::new(), PairMap::new());
    for pair in pairs {
        let pair = pair.unwrap();
        let ids = (pair.a.get(), pair.b.get());
        assert!(ids.0 < ids.1, "{pair:?}");
        let twice = measures.insert(ids, (pair.similarity, pair.distance));
        assert_eq!(twice, None, "{pair:?} came twice");
        order.push(ids);
    }
    (order, measures)
}

fn compare_with_plain_form(snapshot: &Snapshot, bounds: Bounds, most: Option<usize>) {
    let (expected, left_out) = plainly(snapshot, bounds, most.unwrap_or(usize::MAX));
    let clusters = components(&expected);
    let mut orders = BTreeSet::new();
    for (threads, batch_documents) in [(1, None), (5, None), (1, Some(7)), (3, Some(7))] {
        let options = SearchOptions {
            max_bucket: most,
            ..in_threads(threads)
        };
        let mut pairs = join(snapshot, bounds, options, false, batch_documents);
        let (order, found) = in_order(&mut pairs);
        assert_eq!(found, expected, "{bounds:?} {most:?} {batch_documents:?}");
        assert_eq!(pairs.left_out(), left_out, "{bounds:?} {most:?}");
        orders.insert((batch_documents, order));
        if threads == 1 && !is_all() {
            continue;
        }
        let links = join(snapshot, bounds, options, true, batch_documents);
        let found = Clusters::from_pairs(links, snapshot.len(), &mut Watch::new("")).unwrap();
        assert_eq!(found.left_out(), left_out, "{bounds:?} {most:?}");
        let found = found.map(|cluster| cluster.into_iter().map(|id| id.get()).collect());
        let found: Vec<Vec<u64>> = found.collect();
        assert!(found.is_sorted());
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), clusters);
    }
    assert_eq!(orders.len(), 2, "the order depends on threads");
}

/// What joins go by, each with each limit of buckets. Of each schema the cases are a share that begins at another place, so
/// that limits take turns; they are all with `RESEMBLANCE_TESTS=all`.
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

/// One in seven limits of buckets, each with `RESEMBLANCE_TESTS=all`, so that each stands with other bounds. Clusters are
/// made by one thread too then.
#[test]
fn joins_agree_with_the_plain_algorithm() {
    let mut found = 0;
    for (seed, schema) in (1..).zip(schemas()) {
        let cases = cases_of(&schema, seed, &[None, Some(1), Some(3), Some(12)]);
        let (_folder, snapshot) = filled(schema, seed);
        for (by, most) in cases {
            let bounds = Bounds::new().by(by);
            compare_with_plain_form(&snapshot, bounds, most);
            if most == Some(3) {
                let (pairs, left_out) = plainly(&snapshot, bounds, 3);
                assert!(left_out.pairs > 0 && left_out.buckets > 1);
                found += pairs.len();
            }
        }
    }
    assert!(found > 4_000 / one_in(7), "{found}");
}

/// Many documents that are alike and few that are not: linear where they are collapsed. The
/// clusters must be those of all pairs.
#[test]
fn collapsing_equal_documents_keeps_clusters() {
    let folder = tempfile::tempdir().unwrap();
    let schema = Schema::builder().minhash(MinHash::new(32).threshold(0.7));
    let schema = schema.simhash(SimHash::bits64()).build().unwrap();
    let options = StoreOptions::new().flush_after(100);
    let store = options.create(folder.path().join("s"), schema).unwrap();
    let mut transaction = store.begin_write().unwrap();
    for number in 0..600u32 {
        let (family, member) = (number % 7, (number / 7) % 3);
        let mut values: Vec<u32> = (0..32).map(|i| family * 1_000 + i).collect();
        for value in values.iter_mut().take(member as usize * 4) {
            *value += 500;
        }
        let fingerprint = u64::from(family).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let signature = Signature::from_parts(Some(values), Some(fingerprint ^ 1 << member));
        transaction
            .insert(Document::without_key(), &signature)
            .unwrap();
    }
    transaction.commit().unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut forest: Vec<BTreeSet<_>> = Vec::new();
    for pair in snapshot.pairs().run().unwrap() {
        let pair = pair.unwrap();
        let (mut joined, apart): (Vec<_>, Vec<_>) = std::mem::take(&mut forest)
            .into_iter()
            .partition(|set: &BTreeSet<_>| set.contains(&pair.a) || set.contains(&pair.b));
        joined.push(BTreeSet::from([pair.a, pair.b]));
        forest = apart;
        forest.push(joined.into_iter().flatten().collect());
    }
    forest.sort();
    let clusters = snapshot.clusters().run().unwrap();
    let clusters: Vec<BTreeSet<_>> = clusters.map(BTreeSet::from_iter).collect();
    assert_eq!(clusters.len(), 7);
    assert_eq!(clusters, forest);
}
