//! Generated documents, the same in every run.

use std::fmt;
use std::ops::Range;

use resemblance::{MinHash, Schema, Signature};
use xxhash_rust::xxh3::xxh3_64;

use crate::Result;

/// Bands of a document, in both forms.
pub const BANDS: u16 = 20;

/// Bits of a band's code.
pub const CODE_BITS: u8 = 40;

/// The parts of a document.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Postings only: one value for each band, and no key.
    Postings,
    /// A typical document: 128 values and a key.
    Records,
}

/// As the command line names it.
impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Postings => "postings",
            Self::Records => "records",
        })
    }
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
            .code_bits(CODE_BITS)
            // A band of one value of 16 bits would have 65,536 buckets, and not those of the other engines.
            .value_bits(32);
        Ok(Schema::builder().minhash(minhash).build()?)
    }

    pub fn key(self, number: u64) -> Option<String> {
        (self == Self::Records).then(|| format!("doc-{number}"))
    }

    /// The signature of document `number`.
    pub fn signature(self, number: u64) -> Signature {
        let places = 0..self.values();
        Signature::from_minhash(places.map(|place| self.value(number, place)).collect())
    }

    /// One document in ten shares ten of its bands, every other one, with an earlier document.
    fn value(self, number: u64, place: u16) -> u32 {
        let shared = number % 10 == 9 && (place / self.rows()).is_multiple_of(2);
        let from = if shared { mix(number) % number } else { number };
        (mix(from * u64::from(self.values()) + u64::from(place)) >> 32) as u32
    }

    /// The code of one band of document `number`.
    pub fn code(self, number: u64, band: u16) -> u64 {
        let places = band * self.rows()..(band + 1) * self.rows();
        code(places.map(|place| self.value(number, place)))
    }

    /// A code for each band of a signature, as long as those of the store.
    pub fn codes(self, signature: &Signature) -> Vec<u64> {
        let values = signature.minhash().unwrap_or_default();
        let bands = values.chunks_exact(self.rows().into()).take(BANDS.into());
        bands.map(|band| code(band.iter().copied())).collect()
    }
}

fn code(values: impl Iterator<Item = u32>) -> u64 {
    let bytes: Vec<u8> = values.flat_map(u32::to_le_bytes).collect();
    xxh3_64(&bytes) >> (64 - CODE_BITS)
}

/// The number at a place of a splitmix64 stream (Steele, Lea and Flood 2014).
pub fn mix(place: u64) -> u64 {
    let number = place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The numbers in ranges of `size`, the last may be shorter.
pub fn batches(numbers: Range<u64>, size: u64) -> impl Iterator<Item = Range<u64>> {
    let size = size.max(1);
    let starts = numbers
        .clone()
        .step_by(usize::try_from(size).unwrap_or(usize::MAX));
    starts.map(move |start| start..start.saturating_add(size).min(numbers.end))
}

/// A query, in the forms that engines accept.
pub struct Probe {
    pub signature: Signature,
    pub codes: Vec<u64>,
}

impl Probe {
    pub fn new(form: Form, number: u64) -> Self {
        let signature = form.signature(number);
        let codes = form.codes(&signature);
        Self { signature, codes }
    }

    /// Documents that are among the first `documents`, which all engines hold.
    pub fn hits(form: Form, documents: u64, count: u64) -> Vec<Self> {
        let numbers = (0..count).map(|probe| mix(probe) % documents);
        numbers.map(|number| Self::new(form, number)).collect()
    }

    /// Documents that are far from all others: no engine holds any from number `end` on.
    pub fn misses(form: Form, end: u64, count: u64) -> Vec<Self> {
        let numbers = (0..count).map(|probe| stranger(end, probe));
        numbers.map(|number| Self::new(form, number)).collect()
    }

    /// Documents that are there, documents like some that are there, and others. All engines hold the
    /// documents below `held`, none those from `end` on.
    pub fn mixed(form: Form, (held, end): (u64, u64), count: u64) -> Vec<Self> {
        let numbers = (0..count).map(|probe| match probe % 4 {
            0 | 1 => mix(probe) % held,
            // Every tenth is like an earlier one.
            2 => (held / 10 + mix(probe) % held / 10) * 10 + 9,
            _ => stranger(end, probe),
        });
        numbers.map(|number| Self::new(form, number)).collect()
    }
}

/// The number of a document from `end` on that is like no earlier one.
fn stranger(end: u64, probe: u64) -> u64 {
    (4 * end + probe) * 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_a_band_are_those_of_the_signature() {
        for form in [Form::Postings, Form::Records] {
            let mut shared = 0;
            for number in 0..200 {
                let codes = form.codes(&form.signature(number));
                let alone: Vec<u64> = (0..BANDS).map(|band| form.code(number, band)).collect();
                assert_eq!(codes, alone);
                let earlier = form.codes(&form.signature(mix(number) % number.max(1)));
                let equal = codes.iter().zip(&earlier).filter(|(a, b)| a == b).count();
                shared += usize::from(number % 10 == 9 && equal > 0);
            }
            assert!(shared > 10, "one document in ten is like an earlier one");
        }
    }

    #[test]
    fn batches_cover_all_numbers_once() {
        let numbers: Vec<u64> = batches(3..25, 10).flatten().collect();
        assert_eq!(numbers, (3..25).collect::<Vec<_>>());
        assert_eq!(batches(3..25, 10).count(), 3);
    }
}
