use crate::observe::Metrics;
use crate::options::StoreOptions;
use crate::query::probe::FIRST_POSTINGS;
use crate::sample::{is_all, one_in, trials};
use crate::store::Store;
use crate::types::{Document, DocumentId, Novelty};
use crate::write::WriteTransaction;
use resemblance_sketch::schema::{Combine, MinHash, Schema, SimHash};
use resemblance_sketch::sketch::{EmptyDocuments, Signature};

/// SplitMix64: numbers that are the same everywhere.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

fn minhash() -> MinHash {
    MinHash::new(32).banding(8, 2).threshold(0.7)
}

pub(super) fn kinds() -> Vec<Schema> {
    let simhash = || SimHash::bits64().max_distance(3);
    let wide = || SimHash::bits128().max_distance(4);
    let builder = Schema::builder;
    let both = |minhash, simhash| builder().minhash(minhash).simhash(simhash);
    let alike = EmptyDocuments::Alike;
    let external = MinHash::external(32).value_bits(8).banding(8, 2);
    let bottom_k = MinHash::bottom_k(64).banding(4, 2).threshold(0.6);
    let builders = [
        builder().minhash(minhash()),
        builder().minhash(minhash()).empty_documents(alike),
        builder().minhash(minhash().value_bits(1)),
        builder().minhash(external.threshold(0.7)),
        builder().minhash(bottom_k).empty_documents(alike),
        builder().simhash(simhash()),
        builder().simhash(simhash()).empty_documents(alike),
        builder().simhash(wide()),
        both(minhash(), simhash()),
        both(minhash(), simhash())
            .near(Combine::Both)
            .empty_documents(alike),
        both(minhash().value_bits(1), wide()),
        both(minhash().value_bits(4), simhash()).near(Combine::Both),
        builder().simhash(SimHash::bits32().tables(&[(4, 2)])),
    ];
    builders
        .map(|builder| builder.expected_documents(1).build().unwrap())
        .into()
}

/// One of few signatures, so that equal and near ones are frequent: some share the first band and the
/// top of the fingerprint alone, some have equal low bits or equal fingerprints alone, some no features.
pub(super) fn signature(schema: &Schema, random: &mut Random) -> Signature {
    let (family, member) = (random.below(4), random.below(12));
    if random.below(12) == 0 {
        let none = schema.sketcher().features([""; 0]);
        let fingerprint = match schema.simhash().map(|simhash| simhash.bits()) {
            Some(128) => Signature::from_fingerprint(u128::from(member / 6)),
            Some(32) => Signature::from_fingerprint(member as u32 / 6),
            _ => Signature::from_simhash(member / 6),
        };
        let none = none.unwrap_or_else(|_| Signature::from_minhash(vec![u32::MAX; 32]));
        return match schema.simhash() {
            Some(_) => none.with_simhash_of(&fingerprint),
            None => none,
        };
    }
    let bits = schema.minhash().map(|m| u32::from(m.value_bits()));
    let whole = schema
        .minhash()
        .is_none_or(|m| m.kind() != resemblance_sketch::MinHashKind::External);
    let most = if whole {
        u32::MAX
    } else {
        (1 << bits.unwrap_or(32)) - 1
    };
    let value = |place: u64| {
        let number = match (family, place) {
            (_, 0..2) => 7,
            (0, _) => Random(place).next(),
            // Of one bit a value these are equal.
            (1, _) => Random(place ^ (member / 4) << 20).next() << 1,
            _ if place % 8 == member => Random(family).next(),
            _ => place + 100 * family,
        };
        (number as u32).min(u32::MAX - 1) & most
    };
    let fingerprint = match family {
        0 => member / 6,
        1 => member << 3,
        _ => family ^ 1 << member,
    };
    let values: Vec<u32> = (0..32).map(value).collect();
    let is_bottom_k = schema
        .minhash()
        .is_some_and(|m| m.kind() == resemblance_sketch::MinHashKind::BottomK);
    let signature = match schema.minhash() {
        None => Signature::from_parts(None, None),
        Some(_) if is_bottom_k => {
            let hashes = (0..40 + member / 4).map(|i| Random(i + family * 9).next());
            Signature::from_bottom_k(64, hashes.collect())
        }
        Some(_) => Signature::from_minhash(values),
    };
    match schema.simhash().map(|simhash| simhash.bits()) {
        None => signature,
        Some(128) => {
            let wide = u128::from(fingerprint) << (family * 20);
            signature.with_simhash_of(&Signature::from_fingerprint(wide))
        }
        Some(32) => signature.with_simhash_of(&Signature::from_fingerprint(fingerprint as u32)),
        Some(_) => signature.with_simhash_of(&Signature::from_simhash(fingerprint)),
    }
}

pub(super) fn create(
    folder: &tempfile::TempDir,
    name: &str,
    schema: &Schema,
    options: &StoreOptions,
) -> Store {
    options
        .create(folder.path().join(name), schema.clone())
        .unwrap()
}

/// Documents, equal ones among them, some of which go again.
fn change(transaction: &mut WriteTransaction, schema: &Schema, random: &mut Random) {
    for _ in 0..random.below(60) {
        let signature = signature(schema, random);
        transaction
            .insert(Document::without_key(), &signature)
            .unwrap();
        if random.below(4) == 0 {
            let id = random.below(transaction.len() * 2 + 1);
            transaction.remove_id(DocumentId::new(id)).unwrap();
        }
    }
}

/// What the query of before finds, for every kind of signature, in memory, in runs and removed: each kind with one of the
/// ways of flushing in turn, with all of them with `RESEMBLANCE_TESTS=all`.
#[test]
fn best_match_agrees_with_a_query() {
    let distance = one_in(3);
    for (schema, seed) in kinds().iter().zip(1..) {
        let (mut near, mut identical) = (0, 0);
        let ways = [9, 70, 10_000].into_iter();
        for flush_after in ways.skip(seed as usize % distance).step_by(distance) {
            let folder = tempfile::tempdir().unwrap();
            let options = StoreOptions::new().flush_after(flush_after);
            let store = create(&folder, "s", schema, &options);
            let mut random = Random(seed << 20 | flush_after);
            for _ in 0..4 {
                let mut transaction = store.begin_write().unwrap();
                change(&mut transaction, schema, &mut random);
                for _ in 0..25 {
                    let signature = signature(schema, &mut random);
                    let expected = transaction.query(&signature).limit(1).run().unwrap();
                    let document = Document::without_key();
                    let found = transaction.insert_if_new(document, &signature);
                    match (found.unwrap(), expected.first()) {
                        (Novelty::New { .. }, None) => {}
                        (Novelty::NearDuplicate(found), Some(expected)) => {
                            assert_eq!(found, *expected);
                            let is_far = found.distance().is_some_and(|d| d > 0)
                                || found.similarity().is_some_and(|s| s < 1.0);
                            identical += u64::from(!is_far);
                            near += 1;
                        }
                        (found, expected) => panic!("{schema}: {found:?}, {expected:?}"),
                    }
                }
                transaction.commit().unwrap();
            }
        }
        assert!(
            near > identical && identical > 50 / distance as u64,
            "{schema}: {near}, {identical}"
        );
    }
}

/// With a budget an insertion finds what a query with it finds, or an identical document, and says
/// whether anything was left out: each kind of schema with one of the budgets in turn, with all of them with
/// `RESEMBLANCE_TESTS=all`.
#[test]
fn best_match_budget_bounds_comparisons_and_is_reported() {
    let distance = one_in(4);
    let (mut all_beyond, mut all_first) = (0, 0);
    for (schema, seed) in kinds().iter().zip(1..) {
        let (mut beyond, mut first) = (0, 0);
        let cases = [(1, 9), (4, 70), (10, 10_000), (1_000, 30)].into_iter();
        for (budget, flush_after) in cases.skip(seed as usize % distance).step_by(distance) {
            let folder = tempfile::tempdir().unwrap();
            let options = StoreOptions::new()
                .flush_after(flush_after)
                .probe_budget(budget);
            let store = create(&folder, "s", schema, &options);
            let mut random = Random(seed << 25 | flush_after);
            for _ in 0..4 {
                let mut transaction = store.begin_write().unwrap();
                change(&mut transaction, schema, &mut random);
                for _ in 0..25 {
                    let signature = signature(schema, &mut random);
                    let query = || transaction.query(&signature).limit(1);
                    let all = query().run().unwrap();
                    let within = query().probe_budget(budget).run().unwrap();
                    assert!(within.candidates() as u64 <= budget);
                    if within.budget_exceeded().is_none() {
                        assert_eq!(within, all);
                    }
                    let document = Document::without_key();
                    let found = transaction.insert_if_new(document, &signature);
                    let found = found.unwrap();
                    let is_whole = found.budget_exceeded().is_none();
                    let expected = if is_whole { &all } else { &within };
                    assert_eq!(found.is_new(), expected.is_empty(), "{schema}");
                    if let Novelty::NearDuplicate(found) = &found {
                        assert_eq!(*found, expected[0], "{schema}");
                    }
                    assert!(is_whole || found.budget_exceeded() == within.budget_exceeded());
                    first += u64::from(is_whole && within.budget_exceeded().is_some());
                    beyond += u64::from(!is_whole);
                }
                transaction.commit().unwrap();
            }
        }
        // One budget alone may leave out nothing.
        assert!(
            beyond > 10 && first > 0 || !is_all(),
            "{schema}: {beyond}, {first}"
        );
        all_beyond += beyond;
        all_first += first;
    }
    let kinds = kinds().len() as u64;
    assert!(
        all_beyond > 10 * kinds / distance as u64 && all_first > kinds / distance as u64,
        "{all_beyond}, {all_first}"
    );
}

/// Many at once answer as one after the other, with a budget and without: each kind of schema with one way of
/// flushing and budget in turn, with all four and twice as many commits with `RESEMBLANCE_TESTS=all`.
#[test]
fn best_match_batch_agrees_with_single_calls() {
    let distance = one_in(4);
    let mut all_beyond = 0;
    for (schema, seed) in kinds().iter().zip(1..) {
        let mut beyond = 0;
        let cases = [(None, 9), (None, 500), (Some(3), 9), (Some(8), 500)].into_iter();
        for (budget, flush_after) in cases.skip(seed as usize % distance).step_by(distance) {
            let folder = tempfile::tempdir().unwrap();
            let mut options = StoreOptions::new().flush_after(flush_after);
            if let Some(budget) = budget {
                options = options.probe_budget(budget);
            }
            let [many, apart] =
                ["many", "apart"].map(|name| create(&folder, name, schema, &options));
            for round in 0..trials(2, 4) {
                let [mut at_once, mut one_by_one] =
                    [&many, &apart].map(|store| store.begin_write().unwrap());
                for transaction in [&mut at_once, &mut one_by_one] {
                    change(transaction, schema, &mut Random(seed << 20 | round));
                }
                let mut random = Random(seed << 30 | round);
                let drawn = (0..120).map(|_| signature(schema, &mut random));
                let signatures: Vec<Signature> = drawn.collect();
                let documents: Vec<_> = signatures
                    .iter()
                    .map(|s| (Document::without_key(), s))
                    .collect();
                let found = at_once.insert_many(&documents).if_new().run().unwrap();
                let alone = documents
                    .iter()
                    .map(|(document, s)| one_by_one.insert_if_new(document, s).unwrap());
                let alone: Vec<Novelty> = alone.collect();
                assert_eq!(found, alone, "{schema}");
                let is_beyond = |novelty: &&Novelty| novelty.budget_exceeded().is_some();
                let count = found.iter().filter(is_beyond).count();
                assert!(budget.is_some() || count == 0);
                beyond += count;
                at_once.commit().unwrap();
                one_by_one.commit().unwrap();
            }
        }
        assert!(beyond > 10 || !is_all(), "{schema}: {beyond}");
        all_beyond += beyond;
    }
    let expected = 10 * kinds().len() / (2 * distance);
    assert!(all_beyond > expected, "{all_beyond}");
}

fn difference(before: &Metrics, after: &Metrics) -> (u64, u64, u64) {
    (
        after.lanes_probed - before.lanes_probed,
        after.signatures_read - before.signatures_read,
        after.documents_read - before.documents_read,
    )
}

/// Lanes, signatures and documents that an insertion asks for, one by one and in a batch.
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
        for flush_after in [20, 10_000] {
            let folder = tempfile::tempdir().unwrap();
            let options = StoreOptions::new().flush_after(flush_after);
            let store = create(&folder, "s", schema, &options);
            let sketcher = schema.sketcher();
            let page = |number: u64| {
                let features = (0..30).map(|i| format!("{} {i}", number));
                sketcher.features(features.collect::<Vec<_>>()).unwrap()
            };
            let mut transaction = store.begin_write().unwrap();
            for number in 0..30 {
                transaction
                    .insert(number.to_string(), &page(number))
                    .unwrap();
            }
            transaction.commit().unwrap();
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

/// What the search for an identical document has read is not read again, however full the bucket.
#[test]
fn best_match_reads_no_candidate_twice() {
    let schema = &kinds()[0];
    for flush_after in [100, 10_000] {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions::new().flush_after(flush_after);
        let store = create(&folder, "s", schema, &options);
        // All share the first band, and no two are alike.
        let page = |number: u32| {
            let values = (0..32).map(|i| if i < 2 { 5 } else { number * 100 + i });
            Signature::from_minhash(values.collect())
        };
        for number in 0..6 * FIRST_POSTINGS as u32 {
            let mut transaction = store.begin_write().unwrap();
            let count = u64::from(number);
            let lanes = u64::from(store.store().context.lanes.count());
            let reads = reads_of_new(&mut transaction, &store, &page(number));
            let again = u64::from(number as usize > FIRST_POSTINGS);
            assert_eq!(reads, (lanes - 1 + again, count, 0));
            transaction.commit().unwrap();
        }
        // One that is looked at is found at once, another one among all.
        for (number, rows) in [(0, 1), (2, 3), (14, 15), (15, 240)] {
            let mut transaction = store.begin_write().unwrap();
            let reads = reads_of_new(&mut transaction, &store, &page(number));
            let lanes = if rows < 100 { 1 } else { 9 };
            assert_eq!(reads, (lanes, rows, 1), "{number}");
        }
    }
}

fn reads_of_new(
    transaction: &mut WriteTransaction,
    store: &Store,
    signature: &Signature,
) -> (u64, u64, u64) {
    let before = store.metrics();
    let document = Document::without_key();
    transaction.insert_if_new(document, signature).unwrap();
    difference(&before, &store.metrics())
}

/// Verified with as much budget as there is, a batch is what it is without one; with less it says so.
#[test]
fn verified_batches_have_budgets_too() {
    let schema = &kinds()[0];
    let folder = tempfile::tempdir().unwrap();
    let of = |budget: Option<u64>, name: &str| {
        let options = StoreOptions::new().flush_after(50);
        let options = match budget {
            Some(budget) => options.probe_budget(budget),
            None => options,
        };
        let store = create(&folder, name, schema, &options);
        let mut transaction = store.begin_write().unwrap();
        change(&mut transaction, schema, &mut Random(77));
        let mut random = Random(78);
        let signatures: Vec<Signature> = (0..100).map(|_| signature(schema, &mut random)).collect();
        let documents: Vec<_> = signatures
            .iter()
            .map(|s| (Document::without_key(), s))
            .collect();
        let similarity = |_, earlier| {
            let number = match earlier {
                crate::search::Earlier::Stored(id) => id.get(),
                crate::search::Earlier::OfBatch(other) => other as u64,
            };
            Ok(Some((number % 10) as f64 / 10.0))
        };
        transaction
            .insert_many(&documents)
            .if_new()
            .verify(similarity)
            .run()
            .unwrap()
    };
    let without = of(None, "without");
    assert!(without.iter().any(Novelty::is_new) && !without.iter().all(Novelty::is_new));
    assert_eq!(of(Some(1_000), "generous"), without);
    let within = of(Some(2), "within");
    assert!(within.iter().any(|found| found.budget_exceeded().is_some()));
}
