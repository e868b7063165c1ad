//! Helpers for the unit tests of searches: schemas of every kind, signatures that are often near,
//! and stores in memory.

use crate::options::StoreOptions;
use crate::store::Store;
use crate::types::{Document, DocumentId, Record};
use crate::write::WriteTransaction;
use resemblance_sketch::MinHashKind;
use resemblance_sketch::schema::{Combine, MinHash, Schema, SimHash};
use resemblance_sketch::sketch::{EmptyDocuments, Signature};

pub(crate) use crate::sample::Random;

/// Schemas of every family, with either rule for empty documents.
pub(crate) fn kinds() -> Vec<Schema> {
    let minhash = || MinHash::new(32).banding(8, 2).threshold(0.7);
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

/// Adds a fingerprint of the schema's width, if the schema has one.
fn with_fingerprint(schema: &Schema, signature: Signature, fingerprint: u128) -> Signature {
    let fingerprint = match schema.simhash().map(|simhash| simhash.bits()) {
        None => return signature,
        Some(128) => Signature::from_fingerprint(fingerprint),
        Some(32) => Signature::from_fingerprint(fingerprint as u32),
        Some(_) => Signature::from_simhash(fingerprint as u64),
    };
    signature.with_simhash_of(&fingerprint)
}

/// One of few signatures, so that equal and near ones are frequent: some share the first band and the
/// top of the fingerprint alone, some have equal low bits or equal fingerprints alone, some no features.
pub(crate) fn signature(schema: &Schema, random: &mut Random) -> Signature {
    let (family, member) = (random.below(4), random.below(12));
    if random.below(12) == 0 {
        let none = schema.sketcher().features([""; 0]);
        let none = none.unwrap_or_else(|_| Signature::from_minhash(vec![u32::MAX; 32]));
        return with_fingerprint(schema, none, u128::from(member / 6));
    }
    let minhash = schema.minhash();
    let external = minhash.filter(|minhash| minhash.kind() == MinHashKind::External);
    let most = external.map_or(u32::MAX, |minhash| (1 << minhash.value_bits()) - 1);
    let value = |place: u64| {
        let number = match (family, place) {
            (_, 0..2) => 7,
            (0, _) => Random(place).next(),
            // With one bit for each value, these are equal.
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
    let signature = match minhash.map(|minhash| minhash.kind()) {
        None => Signature::from_parts(None, None),
        Some(MinHashKind::BottomK) => {
            let hashes = (0..40 + member / 4).map(|i| Random(i + family * 9).next());
            Signature::from_bottom_k(64, hashes.collect())
        }
        Some(_) => Signature::from_minhash((0..32).map(value).collect()),
    };
    let is_wide = schema
        .simhash()
        .is_some_and(|simhash| simhash.bits() == 128);
    let shift = if is_wide { family * 20 } else { 0 };
    with_fingerprint(schema, signature, u128::from(fingerprint) << shift)
}

pub(crate) fn signatures(schema: &Schema, random: &mut Random, count: usize) -> Vec<Signature> {
    (0..count).map(|_| signature(schema, random)).collect()
}

pub(crate) fn store(schema: &Schema, flush_after: u64) -> Store {
    let options = StoreOptions::new().flush_after(flush_after);
    options.create_in_memory(schema.clone()).unwrap()
}

/// A store in memory of documents without keys, which are inserted in one transaction.
pub(crate) fn store_of(
    schema: &Schema,
    flush_after: u64,
    signatures: impl IntoIterator<Item = Signature>,
) -> Store {
    let store = store(schema, flush_after);
    let mut transaction = store.begin_write().unwrap();
    for signature in signatures {
        append(&mut transaction, &signature);
    }
    transaction.commit().unwrap();
    store
}

/// Inserts a document without a key.
pub(crate) fn append(transaction: &mut WriteTransaction, signature: &Signature) -> DocumentId {
    let document = Document::without_key();
    transaction.insert(document, signature).unwrap()
}

/// Inserts and replaces documents, equal ones among them, and removes some.
pub(crate) fn change(
    transaction: &mut WriteTransaction,
    random: &mut Random,
    schema: &Schema,
    count: u64,
) {
    for _ in 0..count {
        let signature = signature(schema, random);
        match random.below(6) {
            0 => {
                let id = random.below(transaction.len() * 2 + 1);
                transaction.remove_id(DocumentId::new(id)).unwrap();
            }
            1 | 2 => {
                let key = random.below(40).to_string();
                transaction.upsert(&*key, &signature).unwrap();
            }
            _ => drop(append(transaction, &signature)),
        }
    }
}

/// Everything in a store, in order.
pub(crate) fn records(store: &Store) -> Vec<Record> {
    let records = store.snapshot().unwrap().iter();
    records.map(Result::unwrap).collect()
}
