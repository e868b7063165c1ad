//! The test vector by which a store detects a build that hashes differently.

use super::hash::feature_hash;
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

/// Words of a text that is longer than the longest shingle.
const LONG_TEXT_WORDS: u32 = 600;

impl Sketcher {
    /// A digest of the signatures of fixed documents, frozen for each recipe. That of no signature where
    /// signatures are made elsewhere.
    pub fn self_test(&self) -> Result<u64> {
        let mut bytes = Vec::new();
        if !self.makes_signatures() {
            return Ok(feature_hash(&bytes));
        }
        // Of whole values: the digest is that of the recipe, which does not have their bits.
        let whole = self.whole();
        if whole.recipe().text.is_some() {
            for text in TEXTS {
                append(&mut bytes, &whole.text(text)?);
            }
            let long: String = (0..LONG_TEXT_WORDS)
                .map(|word| format!("W{word} "))
                .collect();
            append(&mut bytes, &whole.text(&long)?);
        }
        append(
            &mut bytes,
            &whole.features(["", "a", "feature", "\0\u{ff}"])?,
        );
        append(&mut bytes, &whole.hashes([])?);
        for count in [1, 2, 8, 1_000] {
            append(&mut bytes, &whole.hashes(0..count)?);
        }
        append(
            &mut bytes,
            &whole.hashes((0..300).map(|number: u64| number << 48))?,
        );
        let weights = (0..300_u32).map(|number| (format!("w{}", number % 200), number));
        append(
            &mut bytes,
            &whole.weighted_features(weights.map(|(name, n)| (name, f64::from(n) / 7.0)))?,
        );
        let edges = [0.0, 0.5, 1.0, 1.5, 2.5, 65_536.0 * 65_536.0];
        let edges = (0..).zip(edges.map(|steps| steps / 65_536.0));
        append(&mut bytes, &whole.weighted_hashes(edges)?);
        Ok(feature_hash(&bytes))
    }
}

fn append(bytes: &mut Vec<u8>, signature: &Signature) {
    bytes.push(u8::from(signature.is_empty()));
    for value in signature.minhash().into_iter().flatten() {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    for hash in signature.bottom_k().into_iter().flatten() {
        bytes.extend_from_slice(&hash.to_le_bytes());
    }
    for hash in signature.kept_hashes().into_iter().flatten() {
        bytes.extend_from_slice(&hash.to_le_bytes());
    }
    // Without a fingerprint the digest has the one of an empty document. Frozen.
    match signature.fingerprint() {
        Some(fingerprint) => fingerprint.append_le_bytes(bytes),
        None => bytes.extend([0; 8]),
    }
}
