//! Generated documents, the same in every run.

use resemblance::{MinHash, Schema, Signature};
use xxhash_rust::xxh3::xxh3_64;

use crate::Result;

/// Bands of a document, in both forms.
pub const BANDS: u16 = 20;

/// Bits of a band's code.
pub const CODE_BITS: u8 = 40;

/// What a document consists of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As little as there can be beside the postings: one value a band, no key.
    Postings,
    /// What a user stores: 128 values and a key.
    Records,
}

impl Form {
    pub fn values(self) -> u16 {
        match self {
            Self::Postings => BANDS,
            Self::Records => 128,
        }
    }

    pub fn rows(self) -> u16 {
        self.values() / BANDS
    }

    pub fn schema(self) -> Result<Schema> {
        let minhash = MinHash::new(self.values())
            .banding(BANDS, self.rows())
            .code_bits(CODE_BITS);
        Ok(Schema::builder().minhash(minhash).build()?)
    }

    pub fn key(self, number: u64) -> Option<String> {
        (self == Self::Records).then(|| format!("doc-{number}"))
    }

    /// The signature of document `number`. One in ten shares ten of its bands, every other one,
    /// with an earlier document.
    pub fn signature(self, number: u64) -> Signature {
        let mut values = self.random_values(number);
        if number % 10 == 9 {
            let earlier = self.random_values(mix(number) % number);
            let rows = usize::from(self.rows());
            let bands = values.chunks_mut(rows).zip(earlier.chunks(rows));
            for (band, earlier) in bands.step_by(2) {
                band.copy_from_slice(earlier);
            }
        }
        Signature::from_minhash(values)
    }

    fn random_values(self, number: u64) -> Vec<u32> {
        let values = u64::from(self.values());
        let places = (0..values).map(|value| number * values + value);
        places.map(|place| (mix(place) >> 32) as u32).collect()
    }

    /// The codes of a signature's bands: what the store files it under.
    pub fn codes(self, signature: &Signature) -> Vec<u64> {
        let values = signature.minhash().unwrap_or_default();
        let bands = values.chunks_exact(self.rows().into()).take(BANDS.into());
        let code = |band: &[u32]| {
            let bytes: Vec<u8> = band.iter().flat_map(|value| value.to_le_bytes()).collect();
            xxh3_64(&bytes) >> (64 - CODE_BITS)
        };
        bands.map(code).collect()
    }
}

/// The number at a place of a splitmix64 stream (Steele, Lea and Flood 2014).
pub fn mix(place: u64) -> u64 {
    let number = place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
