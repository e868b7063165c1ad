mod b_bit;
mod bottom_k;
mod exact;
mod minhash;
mod minhash_theory;
mod one_pass;
mod simhash;
mod theory;
mod weighted;

use super::*;
use crate::error::Result;
use crate::error::SketchError;
use crate::text::Text;

fn recipe(seed: u64, minhash_values: Option<u16>, simhash_bits: Option<u16>) -> Recipe {
    let empty = EmptyDocuments::Distinct;
    Recipe {
        text: None,
        seed,
        empty,
        minhash: minhash_values.and_then(functions),
        simhash_bits,
        simhash_counts: false,
        containment: None,
        exact_bits: None,
    }
}

fn functions(values: u16) -> Option<MinHashRecipe> {
    let kind = MinHashKind::Functions(Permutations::default());
    Some(MinHashRecipe { kind, values })
}

fn sketcher(seed: u64, minhash: Option<u16>, simhash: Option<u16>) -> Sketcher {
    Sketcher::new(recipe(seed, minhash, simhash)).unwrap()
}

fn with_text(text: Text) -> Sketcher {
    let recipe = Recipe {
        text: Some(text),
        ..recipe(1, Some(64), Some(64))
    };
    Sketcher::new(recipe).unwrap()
}

/// Asserts that a call is refused because of this parameter.
fn refused<T: std::fmt::Debug>(result: Result<T>, name: &str) {
    match result {
        Err(SketchError::InvalidParameter { parameter, .. }) => assert_eq!(parameter, name),
        other => panic!("{other:?}, expected an error about {name}"),
    }
}

/// How many values are equal, place by place.
fn estimate_equal(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a == b).count()
}

/// Numbers 0, 1, 2, ... as structured features that are spread over the bits in different ways.
const STRUCTURES: [fn(u64) -> u64; 4] = [
    |i| i,
    |i| i << 32,
    |i| i << 52,
    |i| feature_hash(&i.to_le_bytes()),
];

/// The standard score that a test allows: chance exceeds it once in 1.7 million.
const SCORE: f64 = 5.0;

/// Two sets of `common + each` features that share `common`, starting at a number.
fn pair(begin: u64, common: u64, each: u64) -> [impl Iterator<Item = u64>; 2] {
    let own = |which| {
        let first = begin + common + which * each;
        (begin..begin + common).chain(first..first + each)
    };
    [own(0), own(1)]
}

#[test]
fn a_text_is_the_set_of_its_shingles() {
    let document = "The cat sat on the cat, THE CAT SAT on straße ΣΟΦΟΣ 12 ½! ".repeat(20);
    for text in [Text::words(3), Text::characters(9)] {
        let sketcher = with_text(text);
        let mut shingles = Vec::new();
        text.for_each_shingle(&document, |shingle| shingles.push(shingle.to_owned()));
        let signature = sketcher.text(&document).unwrap();
        assert_eq!(signature, sketcher.features(&shingles).unwrap());
        let hashes = shingles
            .iter()
            .map(|shingle| feature_hash(shingle.as_bytes()));
        assert_eq!(signature, sketcher.hashes(hashes.rev()).unwrap());
        shingles.sort();
        shingles.dedup();
        assert!(shingles.len() > 10);
        let weighted = shingles.iter().map(|shingle| (shingle, 1.0));
        assert_eq!(signature, sketcher.weighted_features(weighted).unwrap());
        assert_ne!(signature, sketcher.features(&shingles[1..]).unwrap());
    }
}

#[test]
fn a_document_without_features_is_empty() {
    let sketcher = with_text(Text::words(5));
    let empty = sketcher.text(" .,\n").unwrap();
    assert!(empty.is_empty());
    assert_eq!(empty.minhash(), Some(&[u32::MAX; 64][..]));
    assert_eq!(empty.simhash(), Some(0));
    assert_eq!(empty, sketcher.hashes([]).unwrap());
    assert_eq!(
        empty,
        sketcher
            .weighted_hashes([(7, 0.0), (8, 0.5 / 65_536.0)])
            .unwrap()
    );
    let one = sketcher.text("one").unwrap();
    assert!(!one.is_empty());
    assert_eq!(empty.jaccard(&empty).unwrap(), 1.0);
    assert_eq!(empty.jaccard(&one).unwrap(), 0.0);
    assert_eq!(one.jaccard(&empty).unwrap(), 0.0);
    assert_eq!(
        one.hamming(&empty).unwrap(),
        one.simhash().unwrap().count_ones()
    );
}

#[test]
fn signature_has_the_parts_of_its_recipe() {
    let only_minhash = sketcher(3, Some(16), None).hashes([1, 2]).unwrap();
    let only_simhash = sketcher(3, None, Some(64)).hashes([1, 2]).unwrap();
    let both = sketcher(3, Some(16), Some(64)).hashes([1, 2]).unwrap();
    assert_eq!(
        (only_minhash.minhash(), only_minhash.simhash()),
        (both.minhash(), None)
    );
    assert_eq!(
        (only_simhash.minhash(), only_simhash.simhash()),
        (None, both.simhash())
    );
    assert!(both.minhash().is_some() && both.simhash().is_some());
}

#[test]
fn recipes_out_of_range_are_refused() {
    let refused_recipe = |recipe: Recipe, name: &str| refused(Sketcher::new(recipe), name);
    for values in [0, 15, 1025] {
        refused_recipe(recipe(0, Some(values), None), "minhash values");
    }
    refused_recipe(recipe(0, None, Some(96)), "simhash bits");
    let bottom_k = MinHashRecipe {
        kind: MinHashKind::BottomK,
        values: 63,
    };
    refused_recipe(
        Recipe {
            minhash: Some(bottom_k),
            ..recipe(0, None, None)
        },
        "minhash values",
    );
    // Of fingerprints that are made elsewhere.
    refused(
        Sketcher::new(recipe(0, None, None)).unwrap().hashes([1]),
        "document",
    );
    refused_recipe(
        Recipe {
            text: Some(Text::words(0)),
            ..recipe(0, Some(16), None)
        },
        "text",
    );
    for values in [16, 1024] {
        let signature = sketcher(0, Some(values), None).hashes([1]).unwrap();
        assert_eq!(signature.minhash().unwrap().len(), usize::from(values));
    }
    refused(sketcher(0, Some(16), None).text("a"), "text");
}

#[test]
fn weights_out_of_range_are_refused() {
    let sketcher = sketcher(0, Some(16), Some(64));
    for weight in [-1.0, -f64::MIN_POSITIVE, 65_536.01, f64::NAN, f64::INFINITY] {
        refused(sketcher.weighted_hashes([(1, 1.0), (2, weight)]), "weight");
    }
    for weight in [0.0, -0.0, f64::MIN_POSITIVE, 65_536.0] {
        sketcher.weighted_hashes([(2, weight)]).unwrap();
    }
}

#[test]
fn signatures_that_do_not_fit_are_not_compared() {
    let a = sketcher(0, Some(16), Some(64)).hashes([1]).unwrap();
    let other_seed = sketcher(1, Some(16), Some(64)).hashes([1]).unwrap();
    let wider = sketcher(0, Some(17), None).hashes([1]).unwrap();
    let raw = Signature::from_parts(
        a.minhash().map(<[u32]>::to_vec),
        a.simhash().map(|value| value as u64),
    );
    let mismatch =
        |result: Result<f64>| matches!(result, Err(SketchError::SignatureMismatch { .. }));
    assert!(mismatch(a.jaccard(&other_seed)) && mismatch(a.hamming(&other_seed).map(f64::from)));
    assert!(mismatch(a.jaccard(&wider)));
    assert!(mismatch(raw.jaccard(&Signature::from_minhash(vec![1; 17]))));
    assert!(mismatch(raw.jaccard(&Signature::from_simhash(1))));
    assert!(mismatch(
        raw.hamming(&Signature::from_minhash(vec![1; 16]))
            .map(f64::from)
    ));
    let none = Signature::from_minhash(Vec::new());
    assert!(mismatch(none.jaccard(&none)));
    // A ready-made signature is taken at its word.
    assert_eq!(a.jaccard(&raw).unwrap(), 1.0);
    assert_eq!(raw.hamming(&a).unwrap(), 0);
    assert_eq!(raw.recipe_mark(), None);
    let again = sketcher(0, Some(16), Some(64));
    assert_eq!(a.recipe_mark(), Some(again.recipe_mark()));
    assert_eq!(
        again.recipe_mark().fingerprint,
        again.recipe().fingerprint()
    );
}

#[test]
fn sketchers_are_shared_between_threads() {
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<Sketcher>();
    shared::<Signature>();
}
