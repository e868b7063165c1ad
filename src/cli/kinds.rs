//! The kinds of signature that `eval --compare` compares: one list.

use resemblance::{MinHash, Schema};

/// One kind of signature.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// The sizes to compare, ascending, as [`schema`](Self::schema) takes them.
    pub(crate) sizes: &'static [u16],
    /// The schema of this kind with so many values and this seed. It needs no rule for texts.
    pub(crate) schema: fn(u16, u64) -> resemblance::Result<Schema>,
    /// What a signature of so many values takes, in bytes.
    pub(crate) signature_bytes: fn(u16) -> u64,
    /// The variance of the estimate at a Jaccard similarity, with so many values, in theory.
    pub(crate) variance: fn(f64, u16) -> f64,
}

const SIZES: &[u16] = &[64, 128, 256, 400, 512, 1024];

/// All of them, in the order in which they are shown.
pub(crate) const KINDS: &[Kind] = &[Kind {
    name: "minhash",
    sizes: SIZES,
    schema: |values, seed| {
        let minhash = MinHash::new(values);
        Schema::builder().minhash(minhash).seed(seed).build()
    },
    signature_bytes: |values| 4 * u64::from(values),
    variance: binomial_variance,
}];

/// That of the share of k independent values that agree, J (1 − J) / k (Broder 1997).
fn binomial_variance(similarity: f64, values: u16) -> f64 {
    similarity * (1.0 - similarity) / f64::from(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::compare::MOST_SIGNATURE_BYTES;

    #[test]
    fn every_kind_can_be_made_in_every_size() {
        for kind in KINDS {
            assert!(kind.sizes.is_sorted(), "{}", kind.name);
            for &size in kind.sizes {
                assert!((kind.schema)(size, 7).is_ok(), "{} {size}", kind.name);
                assert!((kind.signature_bytes)(size) <= MOST_SIGNATURE_BYTES);
                for similarity in [0.0, 1.0] {
                    assert!((kind.variance)(similarity, size) >= 0.0);
                }
            }
        }
    }
}
