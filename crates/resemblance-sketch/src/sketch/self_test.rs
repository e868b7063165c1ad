//! The test vector that detects a build whose hashes differ.

use super::hash::{feature_hash, mix64};
use super::signature::Signature;
use super::sketcher::Sketcher;
use crate::error::Result;

/// Edge cases of lower-casing, words and white space, in several planes. Frozen, as is their order.
const TEXTS: [&str; 6] = [
    "",
    " \t\n\u{a0}\u{3000}",
    "Hello",
    "ÀÉÎ Straße ΣΟΦΟΣ İstanbul ẞ ǅ Ⅷ Ж 𐐀 𞤀 Ꭰ Ａ",
    "don't stop-me_now: 3.14 = ½ + ² \u{2028} e\u{301}\u{200b}x 日本語のテキスト 𠀀 😀",
    "one two three four five six seven eight nine ten\r\nTHE CAT SAT ON THE CAT SAT ON THE CAT",
];

/// The number of words in a text that is longer than the longest shingle.
const LONG_TEXT_WORDS: u32 = 600;

impl Sketcher {
    /// Returns a digest of the signatures of fixed documents, frozen for each recipe. If the caller
    /// provides the signatures, it is the digest of none.
    pub fn self_test(&self) -> Result<u64> {
        if let Some(kind) = self.recipe().vector() {
            return self.self_test_of_vectors(kind.dimensions);
        }
        let mut bytes = Vec::new();
        if !self.makes_signatures() {
            return Ok(feature_hash(&bytes));
        }
        // Values are not cut: the digest belongs to the recipe, which does not contain the number
        // of bits.
        let whole = self.whole();
        let mut add = |signature: Signature| append(&mut bytes, &signature);
        if whole.recipe().text.is_some() {
            for text in TEXTS {
                add(whole.text(text)?);
            }
            let words = (0..LONG_TEXT_WORDS).map(|word| format!("W{word} "));
            add(whole.text(&words.collect::<String>())?);
        }
        add(whole.features(["", "a", "feature", "\0\u{ff}"])?);
        add(whole.hashes([])?);
        for count in [1, 2, 8, 1_000] {
            add(whole.hashes(0..count)?);
        }
        add(whole.hashes((0..300).map(|number: u64| number << 48))?);
        let weights = (0..300_u32).map(|n| (format!("w{}", n % 200), f64::from(n) / 7.0));
        add(whole.weighted_features(weights)?);
        let edges = [0.0, 0.5, 1.0, 1.5, 2.5, 65_536.0 * 65_536.0];
        add(whole.weighted_hashes((0..).zip(edges.map(|steps| steps / 65_536.0)))?);
        Ok(feature_hash(&bytes))
    }
}

impl Sketcher {
    /// Returns a digest of the signatures of fixed vectors, and of fixed texts beside them. Frozen.
    fn self_test_of_vectors(&self, dimensions: u16) -> Result<u64> {
        let mut bytes = Vec::new();
        for number in 0..4_u32 {
            let component = |place: u32| {
                let mixed = mix64(u64::from(number) << 32 | u64::from(place));
                (mixed >> 40) as f32 / 8_388_608.0 - 1.0
            };
            let components: Vec<f32> = (0..dimensions.into()).map(component).collect();
            append(&mut bytes, &self.of_vector(&components)?);
        }
        let beside = self.beside_vector().map(|beside| beside.self_test());
        bytes.extend(beside.transpose()?.unwrap_or(0).to_le_bytes());
        Ok(feature_hash(&bytes))
    }
}

fn append(bytes: &mut Vec<u8>, signature: &Signature) {
    bytes.push(u8::from(signature.is_empty()));
    signature.append_values(bytes);
    for hash in signature.kept_hashes().into_iter().flatten() {
        bytes.extend_from_slice(&hash.to_le_bytes());
    }
    if let Some(set) = signature.exact_set() {
        for number in set.hashes().iter().chain(set.weights()) {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }
    for component in signature.vector().into_iter().flatten() {
        bytes.extend_from_slice(&component.to_le_bytes());
    }
    // Without a fingerprint, the digest contains that of an empty document. Frozen.
    match signature.fingerprint() {
        Some(fingerprint) => fingerprint.append_le_bytes(bytes),
        None => bytes.extend([0; 8]),
    }
}
