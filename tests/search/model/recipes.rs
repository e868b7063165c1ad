//! Schemas of all kinds, as plain data that can be made shorter and printed.

use proptest::prelude::*;
use resemblance::schema::{ClusterBounds, EmptyDocuments, Linkage, Permutations};
use resemblance::{Combine, MinHash, Schema, SimHash, Text};

#[derive(Clone, Copy, Debug)]
enum Kind {
    Functions(u8),
    OnePass,
    BottomK,
    Weighted,
    Probability,
    External,
}

#[derive(Clone, Copy, Debug)]
struct Values {
    kind: Kind,
    /// At least 64 for bottom-k.
    values: u16,
    /// Always 32 for bottom-k.
    bits: u8,
    threshold: f64,
    /// Rows and bands as far as there are values for them; chosen by recall, if not given.
    banding: Option<(u16, u16)>,
    code_bits: u8,
}

/// A schema. At least one family is there: without MinHash it is SimHash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe {
    minhash: Option<Values>,
    /// Whether fingerprints have 128 bits, and the greatest distance.
    simhash: Option<(bool, u8)>,
    near_by_both: bool,
    empty_alike: bool,
    expected_documents: u64,
    seed: u64,
    /// True if the store is exact, provided that the schema allows it.
    is_exact: bool,
}

impl Values {
    fn minhash(&self) -> MinHash {
        let minhash = match self.kind {
            Kind::Functions(which) => {
                let families = [
                    Permutations::PairMultiply,
                    Permutations::MultiplyShift,
                    Permutations::Modular,
                    Permutations::Tabulation,
                ];
                MinHash::new(self.values).permutations(families[usize::from(which) % 4])
            }
            Kind::OnePass => MinHash::one_pass(self.values),
            Kind::BottomK => MinHash::bottom_k(self.values.max(64)),
            Kind::Weighted => MinHash::weighted(self.values),
            Kind::Probability => MinHash::probability(self.values),
            Kind::External => MinHash::external(self.values),
        };
        let (bits, rows_there) = match self.kind {
            Kind::BottomK => (32, self.values.max(64) / 8),
            _ => (self.bits, self.values),
        };
        let minhash = minhash
            .value_bits(bits)
            .threshold(self.threshold)
            .code_bits(self.code_bits);
        match self.banding {
            Some((rows, bands)) => {
                let rows = rows.min(rows_there);
                minhash.banding(bands.min(rows_there / rows), rows)
            }
            None => minhash,
        }
    }
}

impl Recipe {
    pub(crate) fn schema(&self) -> Schema {
        let mut builder = Schema::builder()
            .expected_documents(self.expected_documents)
            .seed(self.seed);
        if self.near_by_both {
            builder = builder.near(Combine::Both);
        }
        if self.empty_alike {
            builder = builder.empty_documents(EmptyDocuments::Alike);
        }
        let is_external = |minhash: &Values| matches!(minhash.kind, Kind::External);
        if !self.minhash.as_ref().is_some_and(is_external) {
            builder = builder.text(Text::words(2));
        }
        if let Some(minhash) = &self.minhash {
            builder = builder.minhash(minhash.minhash());
            if self.is_exact && !is_external(minhash) {
                builder = builder.exact();
            }
        }
        match (self.simhash, self.minhash) {
            (Some((true, distance)), _) => {
                builder = builder.simhash(SimHash::bits128().max_distance(distance));
            }
            (Some((false, distance)), _) => {
                builder = builder.simhash(SimHash::bits64().max_distance(distance.min(8)));
            }
            (None, None) => builder = builder.simhash(SimHash::bits64()),
            (None, Some(_)) => {}
        }
        if let Some(bounds) = self.clusters() {
            builder = builder.clusters(bounds);
        }
        builder.build().unwrap()
    }

    /// The clusters of each third schema. Other parts decide, so that old seeds give the same.
    fn clusters(&self) -> Option<ClusterBounds> {
        let bounds = ClusterBounds::default();
        let part = self.minhash.map_or(0, |minhash| minhash.code_bits) % 3;
        let kept = match (part, self.minhash, self.simhash) {
            (1, Some(minhash), _) => bounds.min_similarity(minhash.threshold.max(0.9)),
            (2, _, Some(_)) => bounds.max_distance(1),
            _ => bounds,
        };
        let linkages = [Linkage::Single, Linkage::Star, Linkage::Complete];
        let number = self.minhash.map_or(1, |minhash| minhash.values) % 3;
        let kept = kept.linkage(linkages[usize::from(number)]);
        (self.seed == 2).then_some(kept)
    }
}

fn values() -> impl Strategy<Value = Values> {
    let kind = prop_oneof![
        (0..4u8).prop_map(Kind::Functions),
        Just(Kind::OnePass),
        Just(Kind::BottomK),
        Just(Kind::Weighted),
        Just(Kind::Probability),
        Just(Kind::External),
    ];
    let values = proptest::sample::select(&[16, 17, 40, 64, 130][..]);
    let bits = proptest::sample::select(&[32, 32, 16, 8, 4, 2, 1][..]);
    let threshold = proptest::sample::select(&[0.5, 0.8, 1.0][..]);
    let banding = proptest::option::weighted(0.7, (1..8u16, 1..9u16));
    let parts = (kind, values, bits, threshold, banding, 32..65u8);
    parts.prop_map(
        |(kind, values, bits, threshold, banding, code_bits)| Values {
            kind,
            values,
            bits,
            threshold,
            banding,
            code_bits,
        },
    )
}

pub(crate) fn recipe() -> impl Strategy<Value = Recipe> {
    let simhash = (any::<bool>(), 1..11u8);
    let parts = (
        proptest::option::weighted(0.8, values()),
        proptest::option::weighted(0.5, simhash),
        any::<bool>(),
        any::<bool>(),
        proptest::sample::select(&[1_000, 1, 100_000][..]),
        0..3u64,
        any::<bool>(),
    );
    parts.prop_map(
        |(minhash, simhash, both, alike, expected_documents, seed, is_exact)| Recipe {
            minhash,
            simhash,
            near_by_both: both,
            empty_alike: alike,
            expected_documents,
            seed,
            is_exact,
        },
    )
}
