//! Searches beyond the distance that whole buckets guarantee: chooses how many neighbouring
//! prefixes a search reads.
//!
//! A bucket of a table holds the codes with one prefix. A search of radius ρ reads the buckets of
//! all prefixes in which at most ρ bits differ from its own. To keep a fingerprint out of all of
//! them, at least ρ + 1 bits must differ within the `r` least differing blocks of a group `(s, r)`,
//! hence ⌈(ρ + 1) / r⌉ bits in one of those, and at least as many in each of the other `s − r`
//! blocks. So the tables find every fingerprint within `d` if the sum of ρ + 1 + (s − r) ⌈(ρ + 1) /
//! r⌉ over the groups exceeds `d`. With ρ = 0 everywhere this is the grouped pigeonhole; with
//! groups (1, 1) alone it is that of Qin et al., *GPH: Similarity Search in Hamming Space* (ICDE
//! 2018), which generalises multi-index hashing (Norouzi, Punjani and Fleet 2012).

use super::tables::{TableDesign, binomial};
use crate::error::{Result, SketchError};

/// The maximum number of buckets that one search reads. More would take too much memory to list.
const MAX_BUCKETS: u64 = 1 << 20;

/// The maximum number of buckets for a search within a schema's own distance.
const MAX_OWN_BUCKETS: u64 = 1 << 16;

// Times of one core in nanoseconds. A page that the store does not hold is read from the system's
// page cache and verified; everything else is in memory.
const BUCKET_NANOSECONDS: f64 = 250.0;
const POSTING_NANOSECONDS: f64 = 4.0;
const PAGE_NANOSECONDS: f64 = 2_200.0;
const ROW_NANOSECONDS: f64 = 500.0;
const SCANNED_NANOSECONDS: f64 = 25.0;
const COMPARED_NANOSECONDS: f64 = 2.0;

/// Bytes of postings that a cache of default size holds.
pub const HELD_POSTING_BYTES: f64 = 48.0 * 1024.0 * 1024.0;
/// Bytes of document rows that a cache of default size holds.
pub const HELD_ROW_BYTES: f64 = 16.0 * 1024.0 * 1024.0;

/// Bytes that a table takes for each document, including its share of the filters.
pub const POSTING_BYTES: f64 = 8.4;

/// Postings in a block.
const BLOCK_POSTINGS: f64 = 484.0;

/// For each table, how many bits of the prefix may differ in the buckets that a search reads.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeRadii {
    by_table: Vec<u8>,
    /// The number of buckets in all tables.
    pub(crate) buckets: u64,
    /// The expected time of a search among uniform fingerprints, on one core.
    nanoseconds: f64,
}

impl ProbeRadii {
    /// Returns radii of zero: a search reads only the buckets of the fingerprint itself.
    #[inline]
    pub fn zero(tables: usize) -> Self {
        Self {
            by_table: vec![0; tables],
            buckets: tables as u64,
            nanoseconds: tables as f64 * BUCKET_NANOSECONDS,
        }
    }

    /// The radii, one for each table.
    #[inline]
    pub fn by_table(&self) -> &[u8] {
        &self.by_table
    }

    /// Returns true if comparing this number of fingerprints with every document would be faster.
    #[inline]
    pub fn cost_more_than_scan(&self, fingerprints: usize, documents: u64) -> bool {
        let of_row = SCANNED_NANOSECONDS / fingerprints.max(1) as f64 + COMPARED_NANOSECONDS;
        self.nanoseconds > documents as f64 * of_row
    }
}

/// A radius by which a group of tables can be searched.
struct GroupRadius {
    tables: usize,
    radius: u8,
    /// The minimum number of differing bits that can hide a fingerprint from all tables of the
    /// group.
    hiding: u32,
    buckets: u64,
    nanoseconds: f64,
}

impl TableDesign {
    /// The greatest distance within which whole buckets alone find every fingerprint.
    #[inline]
    pub fn bucket_distance(&self) -> u8 {
        Self::complete_distance(self.groups())
    }

    /// Chooses the radii with the least expected time for this many documents, such that the tables
    /// find every fingerprint within a distance. Returns `None` if a search would read more than a
    /// million buckets.
    #[inline]
    pub(crate) fn probe_radii(&self, distance: u32, documents: u64) -> Option<ProbeRadii> {
        if distance <= self.bucket_distance().into() {
            return Some(ProbeRadii::zero(self.table_count()));
        }
        let fits = |radii: &ProbeRadii| radii.buckets <= MAX_BUCKETS;
        let cheapest = self.cheapest_radii(distance, documents).filter(fits);
        // The fewest buckets are cheapest where there are no postings.
        cheapest.or_else(|| self.cheapest_radii(distance, 0).filter(fits))
    }

    /// Returns the expected time of a search within the greatest distance, in nanoseconds, among
    /// this many uniform fingerprints. Assumes one core, with everything in memory that the default
    /// cache holds.
    #[inline]
    pub(super) fn search_nanoseconds(&self, documents: u64) -> f64 {
        let radii = self.cheapest_radii(self.max_distance().into(), documents);
        radii.map_or(f64::INFINITY, |radii| radii.nanoseconds)
    }

    /// Checks that a search within the greatest distance does not amount to a scan of the tables.
    ///
    /// # Errors
    /// [`SketchError::InvalidParameter`] if it would read more than 65,536 buckets.
    #[inline]
    pub(super) fn check_buckets(&self) -> Result<()> {
        let radii = self.probe_radii(self.max_distance().into(), 0);
        let is_enough = radii.is_some_and(|radii| radii.buckets <= MAX_OWN_BUCKETS);
        let expected = format_args!(
            "tables that find all within max_distance {} with at most {MAX_OWN_BUCKETS} buckets: whole \
             buckets of these find all within distance {}; use more tables, or more leading blocks",
            self.max_distance(),
            self.bucket_distance()
        );
        let found = format_args!("{:?}", self.groups());
        SketchError::require(is_enough, "groups", found, expected)
    }

    fn cheapest_radii(&self, distance: u32, documents: u64) -> Option<ProbeRadii> {
        // All bits and one more can never differ.
        let needed = distance.min(self.bits().into()) as usize + 1;
        // The cheapest radii of the groups so far, by the number of bits that they hide.
        let mut chosen = vec![None; needed + 1];
        if let Some(start) = chosen.first_mut() {
            *start = Some(ProbeRadii::zero(0));
        }
        for options in self.group_radii(distance, documents) {
            let mut next: Vec<Option<ProbeRadii>> = vec![None; needed + 1];
            for (hidden, so_far) in chosen.iter().enumerate() {
                let Some(so_far) = so_far else { continue };
                for option in &options {
                    let nanoseconds = so_far.nanoseconds + option.nanoseconds;
                    let hidden = needed.min(hidden.saturating_add(option.hiding as usize));
                    let Some(best) = next.get_mut(hidden) else {
                        continue;
                    };
                    let is_better = |best: &ProbeRadii| nanoseconds < best.nanoseconds;
                    if best.as_ref().is_none_or(is_better) {
                        let tables = so_far.by_table.len() + option.tables;
                        let mut by_table = so_far.by_table.clone();
                        by_table.resize(tables, option.radius);
                        *best = Some(ProbeRadii {
                            by_table,
                            buckets: so_far.buckets.saturating_add(option.buckets),
                            nanoseconds,
                        });
                    }
                }
            }
            chosen = next;
        }
        chosen.pop().flatten()
    }

    /// Returns the radii that are worth trying for each group, beginning with 0.
    fn group_radii(&self, distance: u32, documents: u64) -> Vec<Vec<GroupRadius>> {
        let mut prefixes = self.table_prefix_bits();
        let mut groups = Vec::with_capacity(self.groups().len());
        for &(s, r) in self.groups() {
            let tables = binomial(s, r) as usize;
            let prefixes: Vec<u8> = prefixes.by_ref().take(tables).collect();
            let mut options: Vec<GroupRadius> = Vec::new();
            let option = |radius| self.group_radius(s, r, radius, &prefixes, distance, documents);
            for option in (0..=u8::MAX).map(option) {
                let is_last = option.hiding > distance;
                if option.buckets > MAX_BUCKETS {
                    break;
                }
                options.push(option);
                if is_last {
                    break;
                }
            }
            groups.push(options);
        }
        groups
    }

    fn group_radius(
        &self,
        s: u8,
        r: u8,
        radius: u8,
        prefixes: &[u8],
        distance: u32,
        documents: u64,
    ) -> GroupRadius {
        let in_prefix = u32::from(radius) + 1;
        let reads_all = prefixes.iter().any(|bits| *bits <= radius);
        let code_bits = self.bits().min(64);
        let (mut buckets, mut nanoseconds) = (0_u64, 0.0);
        let bytes = documents as f64 * self.table_count() as f64 * POSTING_BYTES;
        let of_block = share_beyond(HELD_POSTING_BYTES, bytes) * PAGE_NANOSECONDS;
        let bytes = documents as f64 * row_bytes(self.bits());
        let of_row = ROW_NANOSECONDS + share_beyond(HELD_ROW_BYTES, bytes) * PAGE_NANOSECONDS;
        for &prefix_bits in prefixes {
            let of_table = near_prefixes(prefix_bits, radius);
            let postings = documents as f64 * 2_f64.powi(-i32::from(prefix_bits));
            let others = code_bits.saturating_sub(prefix_bits.into());
            let row = share_within(others, distance) * of_row;
            let of_bucket = BUCKET_NANOSECONDS
                + (1.0 + postings / BLOCK_POSTINGS) * of_block
                + postings * (POSTING_NANOSECONDS + row);
            buckets = buckets.saturating_add(of_table);
            nanoseconds += of_table as f64 * of_bucket;
        }
        GroupRadius {
            tables: prefixes.len(),
            radius,
            hiding: match reads_all {
                true => u32::MAX,
                false => in_prefix + u32::from(s - r) * in_prefix.div_ceil(r.into()),
            },
            buckets,
            nanoseconds,
        }
    }
}

/// Returns the share of `bytes` that the cache does not hold.
fn share_beyond(held_bytes: f64, bytes: f64) -> f64 {
    (1.0 - held_bytes / bytes).max(0.0)
}

/// Returns the bytes of a document's row, without postings, key and payload.
#[inline]
pub(super) fn row_bytes(bits: u16) -> f64 {
    17.0 + f64::from(bits) / 8.0
}

/// Returns the number of prefixes that differ from a given one in at most `radius` bits.
#[inline]
pub(super) fn near_prefixes(prefix_bits: u8, radius: u8) -> u64 {
    (0..=radius.min(prefix_bits)).fold(0, |sum: u64, flipped| match flipped {
        0 => sum + 1,
        _ => sum.saturating_add(binomial(prefix_bits, flipped)),
    })
}

/// Returns the share of all `bits`-bit numbers in which at most `distance` bits are set.
fn share_within(bits: u16, distance: u32) -> f64 {
    if distance >= bits.into() {
        return 1.0;
    }
    let (mut sum, mut ways) = (0.0, 1.0);
    for set in 0..=distance {
        sum += ways;
        ways *= f64::from(u32::from(bits) - set) / f64::from(set + 1);
    }
    sum * 2_f64.powi(-i32::from(bits))
}

/// Returns masks that change 1 to `radius` of the first `prefix_bits` bits of a code, fewest
/// changes first. Combine a code with each mask by exclusive or.
#[inline]
pub(crate) fn prefix_flips(prefix_bits: u8, radius: u8) -> impl Iterator<Item = u64> + Clone {
    let bits = u32::from(prefix_bits);
    (1..=radius.min(prefix_bits)).flat_map(move |count| {
        let first = (1_u128 << count) - 1;
        // The next greater number with the same number of set bits (Gosper).
        let next = |mask: &u128| {
            let lowest = mask & mask.wrapping_neg();
            let ripple = mask + lowest;
            Some(((ripple ^ mask) >> (lowest.trailing_zeros() + 2)) | ripple)
        };
        std::iter::successors(Some(first), next)
            .take_while(move |mask| mask >> bits == 0)
            .map(move |mask| ((mask << (128 - bits)) >> 64) as u64)
    })
}
