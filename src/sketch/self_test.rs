//! The vector by which a store notices a build that hashes differently.

use crate::error::Result;
use crate::sketch::hash::feature_hash;
use crate::sketch::signature::Signature;
use crate::sketch::sketcher::Sketcher;

/// Edges of lower-casing, of what a word is and of what white space is, in several planes.
const TEXTS: [&str; 6] = [
    "",
    " \t\n\u{a0}\u{3000}",
    "Hello",
    "ÀÉÎ Straße ΣΟΦΟΣ İstanbul ẞ ǅ Ⅷ Ж 𐐀 𞤀 Ꭰ Ａ",
    "don't stop-me_now: 3.14 = ½ + ² \u{2028} e\u{301}\u{200b}x 日本語のテキスト 𠀀 😀",
    "one two three four five six seven eight nine ten\r\nTHE CAT SAT ON THE CAT SAT ON THE CAT",
];

/// More than the longest shingle.
const LONG_TEXT_WORDS: u32 = 600;

impl Sketcher {
    /// A digest of the signatures of fixed documents, frozen for each recipe.
    ///
    /// Where MinHash values are made elsewhere, nothing is hashed here but texts.
    pub(crate) fn self_test(&self) -> Result<u64> {
        let mut bytes = Vec::new();
        if self.check_makes().is_err() {
            return Ok(feature_hash(&bytes));
        }
        if self.recipe().text.is_some() {
            for text in TEXTS {
                append(&mut bytes, &self.text(text)?);
            }
            let long: String = (0..LONG_TEXT_WORDS)
                .map(|word| format!("W{word} "))
                .collect();
            append(&mut bytes, &self.text(&long)?);
        }
        append(
            &mut bytes,
            &self.features(["", "a", "feature", "\0\u{ff}"])?,
        );
        append(&mut bytes, &self.hashes([])?);
        for count in [1, 2, 8, 1_000] {
            append(&mut bytes, &self.hashes(0..count)?);
        }
        append(
            &mut bytes,
            &self.hashes((0..300).map(|number: u64| number << 48))?,
        );
        let weights = (0..300_u32).map(|number| (format!("w{}", number % 200), number));
        append(
            &mut bytes,
            &self.weighted_features(weights.map(|(name, n)| (name, f64::from(n) / 7.0)))?,
        );
        let edges = [0.0, 0.5, 1.0, 1.5, 2.5, 65_536.0 * 65_536.0];
        let edges = (0..).zip(edges.map(|steps| steps / 65_536.0));
        append(&mut bytes, &self.weighted_hashes(edges)?);
        Ok(feature_hash(&bytes))
    }
}

fn append(bytes: &mut Vec<u8>, signature: &Signature) {
    bytes.push(u8::from(signature.is_empty()));
    for value in signature.minhash().unwrap_or_default() {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    for hash in signature.bottom_k().unwrap_or_default() {
        bytes.extend_from_slice(&hash.to_le_bytes());
    }
    let fingerprint = signature.simhash().unwrap_or_default().to_le_bytes();
    let length = usize::from(signature.simhash_bits().unwrap_or(64) / 8);
    bytes.extend_from_slice(fingerprint.get(..length).unwrap_or_default());
}
