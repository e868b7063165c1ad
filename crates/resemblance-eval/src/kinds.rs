//! The list of the kinds of signatures to compare.

use resemblance::schema::{MinHashKind, MinHashSchema, Permutations};
use resemblance::{MinHash, Result, Schema};

/// The memory that a document takes for its largest signature, in bytes.
pub const MAX_SIGNATURE_BYTES: u64 = 8 * 1024;

/// A kind of signature to compare.
#[derive(Debug)]
pub struct SignatureKind {
    /// The name of the kind.
    pub name: &'static str,
    /// The numbers of values to compare, ascending.
    pub sizes: &'static [u16],
    minhash: fn(u16) -> MinHash,
    /// The number of bits to which values are cut, if they are cut.
    bits: Option<u8>,
}

const SIZES: &[u16] = &[64, 128, 256, 400, 512, 1024];

/// All kinds, in the order of comparison.
pub(super) const SIGNATURE_KINDS: &[SignatureKind] = &[
    SignatureKind::whole("minhash", MinHash::new),
    SignatureKind::whole("multiply-shift", |values| {
        MinHash::new(values).permutations(Permutations::MultiplyShift)
    }),
    SignatureKind::whole("modular", |values| {
        MinHash::new(values).permutations(Permutations::Modular)
    }),
    SignatureKind::whole("tabulation", |values| {
        MinHash::new(values).permutations(Permutations::Tabulation)
    }),
    SignatureKind::whole("jenkins", |values| {
        MinHash::new(values).permutations(Permutations::Jenkins)
    }),
    SignatureKind::whole("one-pass", MinHash::one_pass),
    SignatureKind::whole("bottom-k", MinHash::bottom_k),
    // The features have no weights: each counts the same.
    SignatureKind::whole("weighted", MinHash::weighted),
    SignatureKind::whole("probability", MinHash::probability),
    SignatureKind::cut("1-bit", 1),
    SignatureKind::cut("2-bit", 2),
    SignatureKind::cut("4-bit", 4),
    SignatureKind::cut("8-bit", 8),
    SignatureKind::cut("16-bit", 16),
];

impl SignatureKind {
    const fn whole(name: &'static str, minhash: fn(u16) -> MinHash) -> Self {
        Self {
            name,
            sizes: SIZES,
            minhash,
            bits: None,
        }
    }

    const fn cut(name: &'static str, bits: u8) -> Self {
        Self {
            name,
            sizes: SIZES,
            minhash: MinHash::new,
            bits: Some(bits),
        }
    }

    /// Returns true if values are cut.
    pub fn is_cut(&self) -> bool {
        self.bits.is_some()
    }

    /// Returns the schema of this kind with the given number of values and seed. It has no rule for
    /// texts.
    pub fn schema(&self, values: u16, seed: u64) -> Result<Schema> {
        let minhash = (self.minhash)(values).value_bits(self.bits.unwrap_or(32));
        Ok(Schema::builder().minhash(minhash).seed(seed).build()?)
    }
}

/// Returns the number of bytes of a signature's values.
pub(super) fn signature_bytes(minhash: &MinHashSchema) -> u64 {
    (u64::from(minhash.values()) * u64::from(minhash.value_bits())).div_ceil(8)
}

/// Returns the theoretical variance of the estimate for a pair whose union has `union` features.
/// For one-pass values it is an upper bound.
pub(super) fn variance(minhash: &MinHashSchema, similarity: f64, union: f64) -> f64 {
    let variance = minhash.variance(similarity);
    if minhash.kind() != MinHashKind::BottomK {
        return variance;
    }
    // As in drawing without replacement (Broder 1997).
    let left = union - f64::from(minhash.values());
    if left > 0.0 {
        variance * left / (union - 1.0)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signature_kind_builds_in_every_size() {
        for kind in SIGNATURE_KINDS {
            assert!(kind.sizes.is_sorted(), "{}", kind.name);
            for &size in kind.sizes {
                let schema = kind.schema(size, 7).unwrap();
                let minhash = schema.minhash().unwrap();
                assert!(signature_bytes(&minhash) <= MAX_SIGNATURE_BYTES);
                for similarity in [0.0, 1.0] {
                    assert!(variance(&minhash, similarity, 1e9) >= 0.0);
                }
                let signature = schema.sketcher().hashes(0..2_000).unwrap();
                assert_eq!(
                    signature.value_bits(),
                    Some(minhash.value_bits()),
                    "{}",
                    kind.name
                );
            }
        }
    }

    #[test]
    fn bottom_k_of_a_small_set_has_all_hashes() {
        let schema = Schema::builder().minhash(MinHash::bottom_k(64));
        let minhash = schema.build().unwrap().minhash().unwrap();
        assert_eq!(variance(&minhash, 0.5, 64.0), 0.0);
        let half = variance(&minhash, 0.5, 127.0);
        assert!((half - 0.25 / 64.0 / 2.0).abs() < 1e-12, "{half}");
    }
}
