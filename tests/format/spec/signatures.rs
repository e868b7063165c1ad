//! The vectors of section 5 that are signatures: the independent code and the library make the same.

use resemblance::schema::{DocumentFrequencies, KeptVector, Permutations};
use resemblance::{MinHash, Schema, SimHash, Sketcher, Vector};
use xxhash_rust::xxh3::xxh3_64;

use crate::spec::dense::Dense;
use crate::spec::minhash::{self, Kind};
use crate::spec::recipe::{Recipe, Signature};
use crate::spec::vectors::{check, number, numbers};

/// The library's name for a kind, with whole values.
pub(crate) fn minhash_of(kind: Kind, values: u16) -> MinHash {
    let family = |permutations| MinHash::new(values).permutations(permutations);
    let minhash = match kind {
        Kind::PairMultiply => family(Permutations::PairMultiply),
        Kind::MultiplyShift => family(Permutations::MultiplyShift),
        Kind::Modular => family(Permutations::Modular),
        Kind::Tabulation => family(Permutations::Tabulation),
        Kind::Jenkins => family(Permutations::Jenkins),
        Kind::OnePass => MinHash::one_pass(values),
        Kind::BottomK => MinHash::bottom_k(values),
        Kind::Weighted => MinHash::weighted(values),
        Kind::External => MinHash::external(values),
        Kind::Probability => MinHash::probability(values),
        Kind::Vector(_) => panic!("see `vector_of`"),
    };
    minhash.value_bits(32)
}

/// The library's name for vectors that are kept with this number of bits, or not with 0.
pub(crate) fn vector_of(dense: Dense, values: u16, bits: u8) -> Vector {
    let vector = match dense.width {
        None => Vector::cosine(dense.dimensions),
        Some(width) => Vector::euclidean(dense.dimensions, width / 4.0),
    };
    let kept = KeptVector::of_bits(bits);
    kept.map_or_else(|| vector.estimated(), |kept| vector.kept(kept))
        .values(values)
}

pub(crate) fn simhash_of(bits: u16) -> SimHash {
    match bits {
        32 => SimHash::bits32(),
        64 => SimHash::bits64(),
        128 => SimHash::bits128(),
        other => panic!("{other}"),
    }
}

fn recipe(seed: u64, kind: Kind, values: u16, simhash_bits: u16) -> Recipe {
    Recipe {
        text: None,
        seed,
        alike: false,
        minhash: Some((kind, values)),
        simhash_bits,
        counts: false,
        containment: None,
        set_bits: 0,
    }
}

fn sketcher(recipe: &Recipe) -> Sketcher {
    let (kind, values) = recipe.minhash.unwrap();
    let schema = Schema::builder().seed(recipe.seed);
    let schema = schema
        .minhash(minhash_of(kind, values).banding(1, 1))
        .simhash(simhash_of(recipe.simhash_bits));
    schema.build().unwrap().sketcher()
}

fn assert_same(own: &Signature, found: &resemblance::Signature, input: &str) {
    assert_eq!(found.minhash().unwrap_or_default(), own.values, "{input}");
    assert_eq!(found.bottom_k().unwrap_or_default(), own.hashes, "{input}");
    assert_eq!(found.simhash(), own.fingerprint, "{input}");
    assert_eq!(found.is_empty(), own.empty, "{input}");
}

/// A seed, and hashes one by one or as a range.
fn seed_and_hashes(input: &str) -> (u64, Vec<u64>) {
    let (seed, hashes) = input.split_once(':').unwrap();
    let hashes = match hashes.split_once(" to ") {
        Some((first, last)) => (number(first.trim())..=number(last)).collect(),
        None => numbers(hashes),
    };
    (number(seed), hashes)
}

/// The signature of hashes without weights, which both agree on.
fn of_hashes(seed: u64, kind: Kind, shape: (u16, u16), hashes: &[u64]) -> Signature {
    let recipe = recipe(seed, kind, shape.0, shape.1);
    let own = recipe.hashes(hashes.iter().copied());
    let found = sketcher(&recipe).hashes(hashes.iter().copied()).unwrap();
    assert_same(&own, &found, &format!("{seed} {kind:?} {shape:?}"));
    own
}

/// The same of weighted features, in steps.
fn of_steps(seed: u64, kind: Kind, features: &[(u64, f64)]) -> Signature {
    let recipe = recipe(seed, kind, 16, 64);
    let own = recipe.weighted(features.iter().copied());
    let found = sketcher(&recipe).weighted_hashes(features.iter().copied());
    assert_same(&own, &found.unwrap(), &format!("{seed} {features:?}"));
    own
}

fn words<'a>(values: impl IntoIterator<Item = &'a u32>) -> String {
    let values = values.into_iter().map(|value| format!("{value:08x}"));
    values.collect::<Vec<_>>().join(" ")
}

fn values_and_fingerprint(own: &Signature) -> String {
    let values = words(&own.values[..4]);
    format!("{values}; {:016x}", own.fingerprint.unwrap())
}

#[test]
fn hash_functions_follow_the_specification() {
    check("families", |input| {
        let (kind, rest) = input.split_once(' ').unwrap();
        let (seed, hashes) = seed_and_hashes(rest);
        let own = of_hashes(seed, Kind::named(kind), (1_024, 64), &hashes);
        words([0, 1, 2, 3, 15, 16, 17, 1_023].map(|i| &own.values[i]))
    });
}

#[test]
fn minhash_and_simhash_follow_the_specification() {
    check("signatures", |input| {
        let (seed, hashes) = seed_and_hashes(input);
        let own = of_hashes(seed, Kind::PairMultiply, (16, 64), &hashes);
        values_and_fingerprint(&own)
    });
    check("fingerprints-128", |input| {
        let (seed, hashes) = seed_and_hashes(input);
        let [narrow, wide] = [64, 128].map(|bits| {
            let own = of_hashes(seed, Kind::PairMultiply, (16, bits), &hashes);
            own.fingerprint.unwrap()
        });
        assert_eq!(narrow, wide % (1 << 64));
        format!("{wide:032x}")
    });
}

#[test]
fn one_pass_follows_the_specification() {
    check("one-pass", |input| {
        let (seed, hashes) = seed_and_hashes(input);
        let own = of_hashes(seed, Kind::OnePass, (16, 64), &hashes);
        words(&own.values[..6])
    });
}

/// That the library makes such rows is shown by the codes of stores.
#[test]
fn bottom_k_follows_the_specification() {
    check("bottom-k", |input| {
        let (seed, hashes) = seed_and_hashes(input);
        let own = of_hashes(seed, Kind::BottomK, (64, 64), &hashes);
        let first = own.hashes.iter().take(3);
        let first: String = first.map(|hash| format!("{hash:016x} ")).collect();
        let rows = minhash::rows_of_smallest(&own.hashes, 64);
        format!("{}; {}", first.trim_end(), words(&rows))
    });
}

#[test]
fn weighted_minhash_follows_the_specification() {
    check("weighted", |input| {
        let (seed, features) = input.split_once(": ").unwrap();
        let pairs = features
            .split(' ')
            .map(|pair| pair.split_once('=').unwrap());
        let features: Vec<(u64, f64)> = pairs
            .map(|(feature, weight)| (xxh3_64(feature.as_bytes()), weight.parse().unwrap()))
            .collect();
        values_and_fingerprint(&of_steps(number(seed), Kind::PairMultiply, &features))
    });
    check("signed", |input| {
        let (seed, features) = input.split_once(": ").unwrap();
        let pairs = features
            .split(' ')
            .map(|pair| pair.split_once('=').unwrap());
        let features: Vec<(u64, f64)> = pairs
            .map(|(feature, weight)| (xxh3_64(feature.as_bytes()), weight.parse().unwrap()))
            .collect();
        let recipe = Recipe {
            minhash: None,
            ..recipe(number(seed), Kind::PairMultiply, 16, 64)
        };
        let own = recipe.signed(features.iter().copied());
        let schema = Schema::builder()
            .seed(recipe.seed)
            .simhash(SimHash::bits64());
        let sketcher = schema.build().unwrap().sketcher();
        let found = sketcher.weighted_hashes(features).unwrap();
        assert_eq!(found.simhash(), Some(own), "{input}");
        format!("{own:016x}")
    });
    check("weighted-minhash", |input| {
        let (seed, features) = input.split_once(": ").unwrap();
        let pair = |pair: &str| {
            let (hash, steps) = pair.split_once('=').unwrap();
            (number(hash), number(steps) as f64 / 65_536.0)
        };
        let features: Vec<(u64, f64)> = features.split(' ').map(pair).collect();
        words(&of_steps(number(seed), Kind::Weighted, &features).values[..6])
    });
    check("probability-minhash", |input| {
        let (seed, features) = input.split_once(": ").unwrap();
        let pair = |pair: &str| {
            let (hash, steps) = pair.split_once('=').unwrap();
            (number(hash), number(steps) as f64 / 65_536.0)
        };
        let features: Vec<(u64, f64)> = features.split(' ').map(pair).collect();
        words(&of_steps(number(seed), Kind::Probability, &features).values[..6])
    });
}

#[test]
fn repeated_features_weigh_more_in_weighted_minhash_alone() {
    let repeated = of_hashes(42, Kind::Weighted, (16, 64), &[5, 6, 5, 5]);
    let steps = of_steps(42, Kind::Weighted, &[(5, 3.0), (6, 1.0)]);
    assert_eq!(repeated.values, steps.values);
    let set = of_hashes(42, Kind::Weighted, (16, 64), &[5, 6]);
    assert_ne!(repeated.values, set.values);
    assert_eq!(repeated.fingerprint, set.fingerprint);
}

#[test]
fn weighted_logarithms_follow_the_specification() {
    check("negative-ln", |input| {
        let x = f64::from_bits(u64::from_str_radix(input, 16).unwrap());
        let found = minhash::negative_ln(x);
        assert!((found + x.ln()).abs() <= 1e-15 * found);
        format!("{:016x}", found.to_bits())
    });
    check("gaps", |input| {
        let found = minhash::gap(number(input) as u32);
        format!("{:016x}", found.to_bits())
    });
    check("tf-idf", |input| match numbers(input)[..] {
        [all, with] => {
            let own = minhash::rarity(all, with);
            let found = DocumentFrequencies::from_counts(all, [(7, with)]).unwrap();
            assert_eq!(found.weight(7).to_bits(), own.to_bits());
            format!("{:016x}", own.to_bits())
        }
        _ => panic!("{input}"),
    });
}
