//! Signatures of every kind as programs use them: made, joined, cut, stored, read and stored again.

use std::collections::BTreeSet;

use crate::common::{Place, Random, check_clean, refused, sealing_after};
use resemblance::schema::{DocumentFrequencies, EmptyDocuments, Permutations};
use resemblance::{
    Error, MinHash, Result, Schema, SchemaBuilder, Signature, SimHash, Store, Text, Vector,
};

const FAMILIES: [Permutations; 5] = [
    Permutations::PairMultiply,
    Permutations::MultiplyShift,
    Permutations::Modular,
    Permutations::Tabulation,
    Permutations::Jenkins,
];

/// The kinds whose values can be ordered.
fn mergeable() -> Vec<MinHash> {
    let families = FAMILIES.map(|family| MinHash::new(64).permutations(family));
    let others = [MinHash::one_pass(64), MinHash::bottom_k(64)];
    let all = families.into_iter().chain(others);
    all.map(|minhash| minhash.value_bits(32)).collect()
}

/// All that are made here.
fn kinds() -> Vec<MinHash> {
    let mut kinds = mergeable();
    kinds.push(MinHash::weighted(64));
    kinds
}

fn of(minhash: MinHash) -> Schema {
    let builder = Schema::builder().text(Text::words(2)).minhash(minhash);
    builder.build().unwrap()
}

fn hashes(numbers: std::ops::Range<u64>) -> Vec<u64> {
    numbers.map(|number| Random(number).next()).collect()
}

#[track_caller]
fn mismatch<T: std::fmt::Debug>(result: Result<T, impl Into<Error>>, part: &str) {
    match result.map_err(Into::into) {
        Err(error @ Error::SignatureMismatch { .. }) => {
            assert!(error.to_string().contains(part), "{error}");
        }
        other => panic!("{other:?}, expected a mismatch of {part:?}"),
    }
}

/// An error names the part of the recipe in which a signature differs.
#[test]
fn signature_error_names_the_differing_part_of_the_recipe() {
    let base = || {
        let builder = Schema::builder().text(Text::words(2));
        builder.minhash(MinHash::new(64)).simhash(SimHash::bits64())
    };
    let build = |builder: SchemaBuilder| builder.build().unwrap();
    let store = Store::in_memory(build(base())).unwrap();
    let of_text = |schema: Schema| schema.sketcher().text("some words of a text").unwrap();
    store.insert("own", &of_text(build(base()))).unwrap();
    let weights = DocumentFrequencies::new();
    for (schema, part) in [
        (build(base().text(Text::words(3))), "text"),
        (build(base().seed(7)), "seed"),
        (build(base().minhash(MinHash::one_pass(64))), "MinHash"),
        (build(base().minhash(MinHash::new(128))), "MinHash values"),
        (
            build(base().simhash(SimHash::bits128())),
            "SimHash fingerprint",
        ),
        (
            build(base().empty_documents(EmptyDocuments::Alike)),
            "empty documents",
        ),
        (build(base()).with_weights(weights).unwrap(), "weights"),
    ] {
        let signature = of_text(schema);
        let prefix = format!("signature, {part}: ");
        mismatch(store.insert("other", &signature), &prefix);
        mismatch(store.snapshot().unwrap().query(&signature).run(), &prefix);
    }
    let other_words = of_text(build(base().text(Text::words(3))));
    mismatch(
        store.insert("other", &other_words),
        &Text::words(2).to_string(),
    );
    let own = of_text(build(base()));
    mismatch(own.jaccard(&other_words), "signature, text: ");
}

#[test]
fn union_refuses_incompatible_signatures() {
    let make = |builder: resemblance::SchemaBuilder| {
        let sketcher = builder.build().unwrap().sketcher();
        sketcher.hashes(hashes(0..30)).unwrap()
    };
    let only = |minhash| make(Schema::builder().minhash(minhash));
    let plain = only(MinHash::new(64).value_bits(32));
    for (a, part) in [
        (only(MinHash::weighted(64)), "cannot be merged"),
        (only(MinHash::new(64)), "cannot be merged"),
        (plain.cut(8).unwrap(), "cannot be merged"),
        (
            make(Schema::builder().simhash(SimHash::bits64())),
            "SimHash",
        ),
        (
            make(
                Schema::builder()
                    .minhash(MinHash::new(64))
                    .simhash(SimHash::bits128()),
            ),
            "SimHash",
        ),
        (Signature::from_minhash64(&[1, 2, 3]), "cannot be merged"),
        (Signature::from_parts(None, None), "found none"),
    ] {
        mismatch(a.merge(&a), part);
    }
    let raw = |count| Signature::from_minhash(vec![1; count]);
    mismatch(raw(3).merge(&raw(4)), "cannot be merged");
    mismatch(
        raw(3).merge(&Signature::from_bottom_k(3, vec![1])),
        "cannot be merged",
    );
    let (few, many) = (
        Signature::from_bottom_k(3, vec![1]),
        Signature::from_bottom_k(4, vec![1]),
    );
    mismatch(few.merge(&many), "cannot be merged");
    let kinds = kinds().into_iter().map(only).collect::<Vec<_>>();
    let seeded = make(Schema::builder().minhash(MinHash::new(64)).seed(2));
    for (place, a) in kinds.iter().enumerate() {
        mismatch(a.merge(&seeded), "seed: found two");
        for b in &kinds[place + 1..] {
            mismatch(a.merge(b), "MinHash: found two");
            mismatch(a.jaccard(b), "MinHash: found two");
        }
    }
}

#[test]
fn cut_and_whole_values_are_compared_on_common_bits() {
    for minhash in [
        MinHash::new(1_024),
        MinHash::one_pass(1_024),
        MinHash::weighted(1_024),
    ] {
        let sketcher = of(minhash.value_bits(32)).sketcher();
        let [a, b] = [0..300, 100..400].map(|range| sketcher.hashes(hashes(range)).unwrap());
        for bits in [1, 2, 4, 8, 16] {
            let (x, y) = (a.cut(bits).unwrap(), b.cut(bits).unwrap());
            assert_eq!(x.value_bits(), Some(bits));
            assert!(x.minhash().unwrap().iter().all(|value| value >> bits == 0));
            let estimate = x.jaccard_unclamped(&y).unwrap();
            assert_eq!(x.jaccard_unclamped(&b).unwrap(), estimate);
            assert_eq!(a.jaccard_unclamped(&y).unwrap(), estimate);
            // J = 200 / 400, and five standard deviations of Li and König's theory at most.
            let chance = 0.5_f64.powi(bits.into());
            let variance = 0.5 * (0.5 + chance / (1.0 - chance)) / 1_024.0;
            assert!(
                (estimate - 0.5).abs() < 5.0 * variance.sqrt(),
                "{bits} bits: {estimate}"
            );
            assert_eq!(x.jaccard(&a).unwrap(), 1.0);
            mismatch(x.cut(bits), "more than");
            for fewer in [1, 2, 4, 8].into_iter().filter(|fewer| *fewer < bits) {
                assert_eq!(x.cut(fewer).unwrap(), a.cut(fewer).unwrap());
                let cut = y.cut(fewer).unwrap();
                let estimate = x.cut(fewer).unwrap().jaccard(&cut).unwrap();
                assert_eq!(x.jaccard(&cut).unwrap(), estimate);
            }
        }
        for bits in [0, 3, 32, 64] {
            refused(a.cut(bits), "bits");
        }
    }
    let smallest = Signature::from_bottom_k(64, vec![1, 2]);
    for whole in [smallest, Signature::from_simhash(5)] {
        mismatch(whole.cut(8), "more than");
    }
    let both = Schema::builder()
        .minhash(MinHash::new(64))
        .simhash(SimHash::bits128());
    let both = both.build().unwrap().sketcher().hashes([1, 2]).unwrap();
    assert_eq!(both.cut(4).unwrap().simhash(), both.simhash());
    let dissimilar = of(MinHash::new(64)).sketcher();
    let [a, b] = [0..300, 300..600].map(|range| dissimilar.hashes(hashes(range)).unwrap());
    let raw = a.cut(1).unwrap().jaccard_unclamped(&b).unwrap();
    assert_eq!(a.cut(1).unwrap().jaccard(&b).unwrap(), raw.max(0.0));
}

#[test]
fn values_of_64_bits_are_compared_whole() {
    let values = |seed: u64| (0..256_u64).map(move |i| Random(i + seed * (i % 4)).next());
    let [a, b] = [0, 1_000].map(values).map(Iterator::collect::<Vec<_>>);
    let equal = a.iter().zip(&b).filter(|(a, b)| a == b).count();
    assert_eq!(equal, 64);
    let [a, b] = [a, b].map(|values| Signature::from_minhash64(&values));
    assert_eq!(a.jaccard(&b).unwrap(), 0.25);
    // Values that differ in their high or low half only stay different.
    let near = |value| Signature::from_minhash64(&[value; 16]);
    for other in [6, 5 | 1 << 63, 5 << 32] {
        assert_eq!(near(5).jaccard(&near(other)).unwrap(), 0.0, "{other}");
    }
}

/// Bits above the declared width are cut off, as those of stored values were.
#[test]
fn external_values_are_stored_at_the_declared_width() {
    for bits in [1, 8, 16, 32] {
        let minhash = MinHash::external(32).value_bits(bits).banding(4, 2);
        let schema = Schema::builder().minhash(minhash.threshold(0.5)).build();
        let store = Store::in_memory(schema.unwrap()).unwrap();
        let most = u32::MAX >> (32 - u32::from(bits));
        let make = |most| {
            let value = |i| Random(i).next() as u32 & most;
            Signature::from_minhash((0..32).map(value).collect())
        };
        let (narrow, wide) = (make(most), make(u32::MAX));
        store.insert("narrow", &narrow).unwrap();
        let snapshot = store.snapshot().unwrap();
        let record = snapshot.get("narrow").unwrap().unwrap();
        assert_eq!(record.signature().minhash(), narrow.minhash());
        assert_eq!(record.signature().value_bits(), Some(bits));
        for signature in [&narrow, &wide, record.signature()] {
            let found = snapshot.query(signature).run().unwrap();
            assert_eq!((found.len(), found[0].similarity()), (1, Some(1.0)));
        }
        let few = Signature::from_minhash(vec![0; 31]);
        mismatch(store.insert("few", &few), "31");
    }
}

#[test]
fn store_of_external_values_refuses_documents() {
    let schema = Schema::builder()
        .minhash(MinHash::external(32))
        .build()
        .unwrap();
    let sketcher = schema.sketcher();
    refused(sketcher.hashes([1]), "document");
    refused(sketcher.features(["a"]), "document");
    refused(sketcher.weighted_features([("a", 1.0)]), "document");
    refused(sketcher.text("a text"), "document");
    let with_text = Schema::builder()
        .text(Text::words(5))
        .minhash(MinHash::external(32));
    refused(with_text.build(), "text");
    let store = Store::in_memory(schema).unwrap();
    refused(store.sketch_text("a text"), "document");
}

/// Values of a vector have no more bits than the schema says, so that others are not cut to them.
#[test]
fn store_of_vectors_refuses_signatures_of_features() {
    let schema = Schema::builder().vector(Vector::cosine(3).values(64).estimated());
    let store = Store::in_memory(schema.build().unwrap()).unwrap();
    let own = store.sketcher().vector(&[1.0, 2.0, 3.0]).unwrap();
    store.insert("own", &own).unwrap();
    let features = MinHash::new(64).value_bits(32);
    let features = of(features)
        .sketcher()
        .text("some words of a text")
        .unwrap();
    mismatch(
        store.insert("other", &features),
        "values of a vector: found 64 of 32 bits",
    );
    let bare = Signature::from_minhash(vec![1; 64]);
    mismatch(
        store.insert("bare", &bare),
        "values of a vector: found 64 of 32 bits",
    );
    let values = own.minhash().unwrap().to_vec();
    let again = store.schema().signature_of_values(values).unwrap();
    assert_eq!(own.jaccard(&again).unwrap(), 1.0);
    let few = store.schema().signature_of_values(vec![1; 63]);
    mismatch(few, "values of a vector: found 63, expected 64");
    let expected = "values of a vector: found 64 MinHash values of 32 bits";
    mismatch(own.jaccard(&bare), expected);
    let wide = store.schema().signature_of_values(vec![2; 64]);
    mismatch(wide, "values of a vector: found 2, expected at most 1 bits");
}

/// Fills a store of cut values with whole ones, and returns the records' signatures with the
/// original ones.
fn cut_store(place: &Place, minhash: MinHash) -> (Store, Vec<(Signature, Signature)>) {
    let schema = of(minhash);
    let sketcher = of(minhash.value_bits(32)).sketcher();
    let store = sealing_after(8).create(place.store(), schema).unwrap();
    let whole: Vec<_> = (0..30)
        .map(|number| {
            sketcher
                .hashes(hashes(number * 3..number * 3 + 60))
                .unwrap()
        })
        .collect();
    for (number, signature) in whole.iter().enumerate() {
        store.insert(format!("{number}"), signature).unwrap();
    }
    let records = store
        .snapshot()
        .unwrap()
        .iter()
        .map(Result::unwrap)
        .collect::<Vec<_>>();
    let read = records.iter().map(|record| record.signature().clone());
    (store.clone(), read.zip(whole).collect())
}

#[test]
fn records_of_cut_values_move_to_stores_of_at_most_their_width() {
    let minhash = || MinHash::new(64).value_bits(2).threshold(0.7).banding(12, 4);
    let place = Place::new();
    let (store, signatures) = cut_store(&place, minhash());
    let copy_place = Place::new();
    let copy = Store::create(copy_place.store(), of(minhash())).unwrap();
    for (number, (read, whole)) in signatures.iter().enumerate() {
        assert_eq!(read, &whole.cut(2).unwrap());
        copy.insert(format!("{number}"), read).unwrap();
    }
    let pairs = |store: &Store| -> BTreeSet<_> {
        let snapshot = store.snapshot().unwrap();
        let pairs = snapshot.pairs().run().unwrap().map(Result::unwrap);
        pairs
            .map(|pair| (pair.a, pair.b, pair.similarity.map(f64::to_bits)))
            .collect()
    };
    assert!(pairs(&store).len() > 10);
    assert_eq!(pairs(&store), pairs(&copy));
    for (read, whole) in &signatures {
        let answers = [read, whole].map(|s| copy.snapshot().unwrap().query(s).run().unwrap());
        let ids = answers.map(|found| {
            found
                .iter()
                .map(|m| (m.id(), m.similarity()))
                .collect::<Vec<_>>()
        });
        assert_eq!(ids[0], ids[1]);
    }
    drop(copy);
    check_clean(&copy_place.store());

    let (read, whole) = &signatures[0];
    for other in [minhash().banding(13, 4), minhash().value_bits(1)] {
        let bits = of(other).minhash().unwrap().value_bits();
        let other = Store::in_memory(of(other)).unwrap();
        other.insert("k", read).unwrap();
        let stored = other.snapshot().unwrap().get("k").unwrap().unwrap();
        assert_eq!(stored.signature().value_bits(), Some(bits));
        let expected = whole.cut(bits).unwrap();
        assert_eq!(stored.signature(), &expected);
        for signature in [read, whole, &expected] {
            let found = other.snapshot().unwrap().query(signature).run().unwrap();
            assert_eq!(found[0].similarity(), Some(1.0));
        }
    }
    let others = [
        (minhash().value_bits(4), "2 bits"),
        (minhash().value_bits(32), "2 bits"),
        (
            MinHash::one_pass(64).value_bits(2).banding(12, 4),
            "MinHash: ",
        ),
    ];
    for (other, part) in others {
        let other = Store::in_memory(of(other)).unwrap();
        mismatch(other.insert("k", read), part);
        mismatch(other.snapshot().unwrap().query(read).run(), part);
    }
}

#[test]
fn shingles_of_a_text_are_weighted_by_frequency() {
    let sketcher = of(MinHash::weighted(64)).sketcher();
    let text = "a rose is a rose is a rose";
    let counted = [("a rose", 3.0), ("rose is", 2.0), ("is a", 2.0)];
    let weighted = sketcher.weighted_features(counted).unwrap();
    assert_eq!(sketcher.text(text).unwrap(), weighted);
    let repeated = [
        "a rose", "rose is", "is a", "a rose", "is a", "rose is", "a rose",
    ];
    assert_eq!(sketcher.features(repeated).unwrap(), weighted);
    assert_ne!(
        sketcher.features(["a rose", "rose is", "is a"]).unwrap(),
        weighted
    );
    // For sets, the frequency does not matter.
    for minhash in mergeable() {
        let sketcher = of(minhash).sketcher();
        let set = sketcher.features(["a rose", "rose is", "is a"]).unwrap();
        assert_eq!(sketcher.text(text).unwrap(), set);
        assert_eq!(sketcher.weighted_features(counted).unwrap(), set);
    }
}

#[test]
fn rare_shingles_weigh_more_with_weights() {
    let text = "a rose is a rose is a rose";
    let shingles = [("a rose", 3.0), ("rose is", 2.0), ("is a", 2.0)];
    let mut frequencies = DocumentFrequencies::new();
    let reader = of(MinHash::new(64)).sketcher();
    for other in ["a rose", "a rose here", "rose is", "not at all"] {
        frequencies.add_text(&reader, other).unwrap();
    }
    assert!(frequencies.weight_of(b"a rose") < frequencies.weight_of(b"rose is"));
    assert!(frequencies.weight_of(b"rose is") < frequencies.weight_of(b"is a"));
    let weigh = |(shingle, count): (&'static str, f64)| {
        (shingle, count * frequencies.weight_of(shingle.as_bytes()))
    };
    for minhash in kinds() {
        for simhash in [SimHash::bits64(), SimHash::bits128()] {
            let builder = Schema::builder().text(Text::words(2)).minhash(minhash);
            let schema = builder.simhash(simhash).build().unwrap();
            let sketcher = schema.sketcher();
            let found = sketcher.weighted_text(text, &frequencies).unwrap();
            assert_eq!(
                found,
                sketcher.weighted_features(shingles.map(weigh)).unwrap()
            );
            let plain = sketcher.text(text).unwrap();
            let is_weighted = schema.minhash().unwrap().kind().is_weighted();
            // Weighted MinHash sees them; the others see the set.
            let is_same =
                (found.minhash(), found.bottom_k()) == (plain.minhash(), plain.bottom_k());
            assert_eq!(is_same, !is_weighted);
        }
    }
}
