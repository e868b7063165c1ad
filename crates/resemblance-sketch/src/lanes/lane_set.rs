//! The lanes of a store, and the code of a signature in each.

use std::fmt;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::bands::{
    Banding, LEADING_ROWS, MAX_CODE_BITS, MIN_CODE_BITS, MIN_LEADING_BITS, band_code, leading_bits,
};
use super::radii::{ProbeRadii, prefix_flips};
use super::tables::{PermutedTable, TableDesign, first_bits_range};
use crate::error::{Result, SketchError};
use crate::fingerprint::Fingerprint;
use crate::invariant::invariant;

/// The part of a document that a lane indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LaneRole {
    /// The hash of the key.
    Key,
    /// A MinHash band, numbered from 0.
    Band(u16),
    /// A SimHash table, numbered from 0.
    Table(u16),
    /// The hashes of kept shingles; a document has any number of them.
    Kept,
}

impl fmt::Display for LaneRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key => f.write_str("key"),
            Self::Band(band) => write!(f, "band {band}"),
            Self::Table(table) => write!(f, "table {table}"),
            Self::Kept => f.write_str("kept hashes"),
        }
    }
}

/// The seed for hashes of keys: the bytes "key lane" as a big-endian number. It keeps them
/// different from everything that is hashed with seed 0 (bands, checksums of callers). Frozen by
/// the format.
const KEY_SEED: u64 = 0x6b65_7920_6c61_6e65;

/// Returns the code of a key: its XXH3-64 hash with the seed `KEY_SEED`. Frozen by the format.
#[inline]
pub fn hash_key(key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, KEY_SEED)
}

/// The bits that all codes of a bucket share: the first `length` bits after a left shift by
/// `shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketBits {
    /// The number of bits before them.
    pub shift: u32,
    /// Their number, 1 to 64.
    pub length: u8,
}

impl BucketBits {
    /// Returns the bucket of a code. Buckets are ordered as codes are, and spread over the full
    /// range of 64 bits.
    #[inline]
    pub fn bucket(self, code: u64) -> u64 {
        debug_assert!((1..=64).contains(&self.length));
        let mask = u64::MAX << (64 - u32::from(self.length));
        (code << self.shift) & mask
    }
}

/// A document's code in one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneCode {
    /// The number of the lane in its [`LaneSet`].
    pub lane: u16,
    /// The code.
    pub code: u64,
}

/// The lanes of a store: number 0 for the key, then one for each band, then one for each permuted table,
/// then one for kept hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneSet {
    /// The banding, and the bits of a band's code.
    banding: Option<(Banding, u8)>,
    /// True if the first rows of a band determine the first bits of its code.
    rows_lead: bool,
    design: Option<TableDesign>,
    /// The bits of a kept hash, if there is a lane for these.
    kept_bits: Option<u8>,
}

impl LaneSet {
    /// Creates the lanes of a schema: MinHash bands with the number of bits of their codes, and
    /// SimHash tables.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] if a code has fewer than 32 or more than 64 bits, or there
    /// are more than 64,535 bands.
    pub fn new(banding: Option<(Banding, u8)>, design: Option<TableDesign>) -> Result<Self> {
        if let Some((banding, code_bits)) = banding {
            let expected = format_args!("{MIN_CODE_BITS} to {MAX_CODE_BITS}");
            let is_valid = (MIN_CODE_BITS..=MAX_CODE_BITS).contains(&code_bits);
            SketchError::require(is_valid, "code_bits", code_bits, expected)?;
            // Lane numbers have 16 bits, and the key and up to 256 tables need numbers as well.
            let max_bands = u16::MAX - 1_000;
            let expected = format_args!("at most {max_bands}");
            let is_valid = banding.bands() <= max_bands;
            SketchError::require(is_valid, "bands", banding.bands(), expected)?;
        }
        Ok(Self {
            banding,
            rows_lead: true,
            design,
            kept_bits: None,
        })
    }

    /// Returns these lanes with different tables.
    #[inline]
    pub fn with_design(self, design: TableDesign) -> Self {
        Self {
            design: Some(design),
            ..self
        }
    }

    /// Returns these lanes for MinHash values with this number of bits.
    #[inline]
    pub fn of_value_bits(self, bits: u8) -> Self {
        Self {
            rows_lead: bits >= MIN_LEADING_BITS,
            ..self
        }
    }

    /// Returns these lanes with a lane for kept hashes of this number of bits, or without one.
    #[inline]
    pub(crate) fn with_kept_hashes(self, kept_bits: Option<u8>) -> Self {
        Self { kept_bits, ..self }
    }

    /// Returns the roles of the lanes in the order of their numbers.
    #[inline]
    pub fn roles(&self) -> impl Iterator<Item = LaneRole> + use<> {
        let bands = (0..self.band_count()).map(LaneRole::Band);
        let tables = (0..self.table_count()).map(LaneRole::Table);
        let kept = self.kept_bits.map(|_| LaneRole::Kept);
        let one_code = std::iter::once(LaneRole::Key).chain(bands).chain(tables);
        one_code.chain(kept)
    }

    /// The number of lanes, the key's included.
    #[inline]
    pub fn count(&self) -> u16 {
        self.single_count() + u16::from(self.kept_bits.is_some())
    }

    /// The number of lanes in which a document has at most one code: all lanes except that of kept
    /// hashes.
    #[inline]
    pub fn single_count(&self) -> u16 {
        1 + self.band_count() + self.table_count()
    }

    /// The lane of kept hashes, if there is one. It is the last lane.
    #[inline]
    pub fn kept_lane(&self) -> Option<u16> {
        self.kept_bits.map(|_| self.single_count())
    }

    /// The number of bands.
    #[inline]
    pub fn band_count(&self) -> u16 {
        self.banding.map_or(0, |(banding, _)| banding.bands())
    }

    /// The number of permuted tables.
    #[inline]
    pub fn table_count(&self) -> u16 {
        // A design has at most 256 tables.
        self.design
            .as_ref()
            .map_or(0, |design| design.table_count() as u16)
    }

    /// The design of the permuted tables.
    #[inline]
    pub fn design(&self) -> Option<&TableDesign> {
        self.design.as_ref()
    }

    /// Returns the smallest and the greatest code in the bucket of `code`. In a permuted table a
    /// bucket holds all codes with the same prefix; in other lanes it holds one code.
    #[inline]
    pub fn bucket_range(&self, lane: u16, code: u64) -> (u64, u64) {
        let table = self.table(lane);
        table.map_or((code, code), |table| table.prefix_range(code))
    }

    /// Returns the radii by which a search finds every fingerprint within a distance among this
    /// number of documents: see `TableDesign::probe_radii`. Returns `None` without tables.
    #[inline]
    pub fn probe_radii(&self, distance: u32, documents: u64) -> Option<ProbeRadii> {
        match &self.design {
            Some(design) => design.probe_radii(distance, documents),
            None => Some(ProbeRadii::zero(0)),
        }
    }

    /// Returns the masks that lead from a code to the nearby buckets: the code combined with each
    /// mask by exclusive or is in a bucket whose prefix differs in 1 to `radius` bits. Returns
    /// nothing for lanes other than tables.
    #[inline]
    pub fn flips(&self, lane: u16, radius: u8) -> impl Iterator<Item = u64> + Clone + use<> {
        let prefix_bits = self.table(lane).map_or(0, |table| table.prefix_bits());
        prefix_flips(prefix_bits, radius)
    }

    /// Returns the range of codes that share a shorter prefix with `code` than its bucket does: the
    /// first rows of a band, or a table's prefix without its last `dropped` blocks. Returns the
    /// bucket itself where there is no shorter prefix.
    #[inline]
    pub fn shorter_range(&self, lane: u16, code: u64, dropped: u8) -> (u64, u64) {
        match (self.table(lane), self.banding) {
            (Some(table), _) => table.shorter_prefix_range(code, dropped),
            (None, Some((_, code_bits))) if self.leading_banding().is_some() && dropped > 0 => {
                let unused = MAX_CODE_BITS - code_bits;
                let (low, high) = first_bits_range(code << unused, leading_bits(code_bits));
                (low >> unused, high >> unused)
            }
            _ => (code, code),
        }
    }

    /// Returns the banding that queries use when they look up bands by their first rows only, or
    /// `None` if bands have no other rows.
    #[inline]
    pub fn leading_banding(&self) -> Option<Banding> {
        let (banding, _) = self.banding.filter(|_| self.rows_lead)?;
        if banding.rows() <= LEADING_ROWS {
            return None;
        }
        Banding::try_from((banding.bands(), LEADING_ROWS)).ok()
    }

    /// Returns the table of a lane, or `None` for lanes of keys, bands and kept hashes.
    #[inline]
    pub fn table(&self, lane: u16) -> Option<&PermutedTable> {
        let number = lane.checked_sub(1 + self.band_count())?;
        self.design.as_ref()?.tables().get(usize::from(number))
    }

    /// Returns the bits of a lane's codes that distinguish its buckets.
    #[inline]
    pub fn bucket_bits(&self, lane: u16) -> BucketBits {
        let length = match (self.banding, self.kept_bits) {
            (Some((banding, bits)), _) if (1..=banding.bands()).contains(&lane) => bits,
            (_, Some(bits)) if lane == self.single_count() => bits,
            _ => {
                // Codes of keys have 64 bits, and each is a separate bucket.
                let length = self.table(lane).map_or(64, |table| table.prefix_bits());
                return BucketBits { shift: 0, length };
            }
        };
        let shift = 64 - u32::from(length);
        BucketBits { shift, length }
    }

    /// Appends the codes of a MinHash signature, one for each band. `minhash` holds its rows.
    /// Appends nothing without bands.
    ///
    /// # Errors
    ///
    /// [`SketchError::SignatureMismatch`] if the signature has fewer values than the bands take.
    pub fn band_codes(&self, minhash: &[u32], codes: &mut Vec<u64>) -> Result<()> {
        let Some((banding, code_bits)) = self.banding else {
            return Ok(());
        };
        let Some(values) = minhash.get(..banding.values() as usize) else {
            let expected = format!("at least {} for bands of {banding}", banding.values());
            return Err(SketchError::signature("values", minhash.len(), expected));
        };
        let before = codes.len();
        let bands = values.chunks_exact(usize::from(banding.rows()));
        codes.extend(bands.map(|rows| band_code(rows, code_bits, self.rows_lead)));
        let found = codes.len() - before;
        invariant!(
            found == usize::from(banding.bands()),
            "{found} codes for bands of {banding}"
        );
        Ok(())
    }

    /// Appends the codes of a SimHash fingerprint, one for each table. Appends nothing without
    /// tables.
    #[inline]
    pub fn table_codes(&self, fingerprint: &Fingerprint, codes: &mut Vec<u64>) {
        if let Some(design) = &self.design {
            let tables = design.tables().iter();
            codes.extend(tables.map(|table| table.permute(fingerprint)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_numbered_key_bands_tables() {
        let banding = Banding::explicit(3, 2, 8).unwrap();
        let design = TableDesign::new(64, 1, &[(1, 1), (1, 1)]).unwrap();
        let lanes = LaneSet::new(Some((banding, 40)), Some(design)).unwrap();
        let roles: Vec<String> = lanes.roles().map(|role| role.to_string()).collect();
        let expected = ["key", "band 0", "band 1", "band 2", "table 0", "table 1"];
        assert_eq!(roles, expected);
        assert_eq!(usize::from(lanes.count()), roles.len());

        let none = LaneSet::new(None, None).unwrap();
        assert_eq!(none.roles().collect::<Vec<_>>(), [LaneRole::Key]);
        assert_eq!(none.count(), 1);
        let mut codes = Vec::new();
        none.band_codes(&[1, 2], &mut codes).unwrap();
        none.table_codes(&1_u64.into(), &mut codes);
        assert!(codes.is_empty());
    }

    #[test]
    fn codes_are_those_of_bands_and_tables() {
        let banding = Banding::explicit(3, 2, 8).unwrap();
        let design = TableDesign::new(64, 1, &[(1, 1), (1, 1)]).unwrap();
        let lanes = LaneSet::new(Some((banding, 40)), Some(design)).unwrap();
        let values = [1, 2, 3, 4, 5, 6, 7, 8];
        let mut codes = vec![99];
        lanes.band_codes(&values, &mut codes).unwrap();
        lanes.table_codes(&0x0123_4567_89ab_cdef_u64.into(), &mut codes);
        let expected = [
            99,
            band_code(&[1, 2], 40, true),
            band_code(&[3, 4], 40, true),
            band_code(&[5, 6], 40, true),
            0x0123_4567_89ab_cdef,
            0x89ab_cdef_0123_4567,
        ];
        assert_eq!(codes, expected);
        let short = lanes.band_codes(&values[..5], &mut codes);
        assert!(matches!(short, Err(SketchError::SignatureMismatch { .. })));
    }

    #[test]
    fn lane_set_refuses_too_many_bands_and_wrong_code_widths() {
        let banding = Banding::explicit(3, 2, 8).unwrap();
        assert!(LaneSet::new(Some((banding, 31)), None).is_err());
        assert!(LaneSet::new(Some((banding, 65)), None).is_err());
        let many = Banding::explicit(u16::MAX, 1, u16::MAX).unwrap();
        assert!(LaneSet::new(Some((many, 40)), None).is_err());
    }
}
