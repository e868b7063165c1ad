//! The choice of a table design for a number of documents.
//!
//! Two kinds of designs are compared. Few tables, of which a search reads the buckets near a fingerprint's own
//! as well, take the least space: `t` groups (1, 1) cut the fingerprint into `t` prefixes. Tables of which
//! whole buckets find everything take more space, and a search reads fewer of their buckets. The cost is
//! time times space: the expected time of a search ([`TableDesign::search_nanoseconds`]) by the bytes that a document
//! takes with its postings. A table that makes a document a tenth larger must save about a tenth of the time.
//!
//! Among designs of whole buckets the cost for `n` documents is counted in reads of one candidate:
//!
//! - `LEAF_READ` for each table: a probe finds and reads one leaf of the run that holds most documents
//!   (the smaller runs stay cached). A leaf of 4,072 bytes holds some 490 postings of 8.3 bytes,
//!   so a candidate costs 1/490 of a leaf to read, and about as much again to decode and compare:
//!   a leaf is worth 256 candidates.
//! - `n * 2^-p` for each table with a prefix of `p` bits: the candidates among uniform fingerprints.
//! - `LEAF_STORED` for each table, for the bytes of its posting.
//!
//! The cost of the design with `t` tables is therefore `t * (LEAF_READ + LEAF_STORED)` plus the
//! candidates, and of the designs with equally many tables the one with the fewest candidates is
//! best for every `n`: a short list to choose from.

use super::radii::{POSTING_BYTES, ProbeRadii, near_prefixes, row_bytes};
use super::tables::{TableDesign, binomial, choices, cut};
use crate::error::{Result, SketchError};
use crate::invariant::bug;

const LEAF_READ: u128 = 256;
const LEAF_STORED: u128 = 64;

/// The greatest number of tables that is chosen: 33 would store more than 270 bytes a document.
const MAX_TABLES: u64 = 32;
/// The greatest number of blocks that is tried for designs of whole buckets. Finer cuts change no choice (the tests
/// try 22 blocks, up to 2^40 documents), and there are many more of them.
const MAX_BLOCKS: u8 = 20;
/// The greatest distance for which such designs are tried: for 20 none exist, and near it they are
/// many.
const MAX_WHOLE_DISTANCE: u8 = 16;

/// The greatest distance that tables are chosen for: 10 of 64 bits, and as great a share of others.
const fn max_distance_of(bits: u16) -> Option<u8> {
    match bits {
        32 => Some(5),
        64 => Some(10),
        128 => Some(20),
        256 => Some(40),
        _ => None,
    }
}

/// The cheapest design for this many documents, by the cost above.
///
/// # Errors
///
/// [`SketchError::InvalidParameter`] if `bits` is not 32, 64, 128 or 256, or `max_distance` not in 1..=10 or, for 32
/// bits, 1..=5, for 128 bits, 1..=20, for 256 bits, 1..=40.
pub fn choose_design(bits: u16, max_distance: u8, expected_documents: u64) -> Result<TableDesign> {
    let Some(limit) = max_distance_of(bits) else {
        return Err(SketchError::invalid("bits", bits, "32, 64, 128 or 256"));
    };
    let expected = format_args!("1 to {limit}");
    let is_valid = (1..=limit).contains(&max_distance);
    SketchError::require(is_valid, "max_distance", max_distance, expected)?;
    // Fewer have longer prefixes than a code, or take too many buckets.
    let few = (1..=MAX_TABLES as usize)
        .filter_map(|tables| TableDesign::new(bits, max_distance, &vec![(1, 1); tables]).ok());
    let whole = whole_bucket_design(bits, max_distance, expected_documents).transpose()?;
    let cost = |design: &TableDesign| {
        let postings = design.table_count() as f64 * POSTING_BYTES;
        design.search_nanoseconds(expected_documents) * (row_bytes(bits) + postings)
    };
    let cheapest = few.chain(whole).min_by(|a, b| cost(a).total_cmp(&cost(b)));
    cheapest.ok_or_else(|| bug("there is a design for every distance up to the limit"))
}

/// The cheapest design of which whole buckets find everything; of equally cheap ones the one with the fewest
/// tables. `None` if that would take too many tables.
fn whole_bucket_design(bits: u16, max_distance: u8, documents: u64) -> Option<Result<TableDesign>> {
    if max_distance > MAX_WHOLE_DISTANCE {
        return None;
    }
    let listed = best_by_tables(bits, max_distance);
    let cheapest = listed.iter().min_by_key(|option| option.cost(documents))?;
    Some(TableDesign::new(bits, max_distance, &cheapest.groups))
}

/// The greatest number of blocks of a design, and so the greatest number of tables that share none.
const MAX_SINGLE_TABLES: u32 = 64;

impl TableDesign {
    /// A design of which whole buckets find every fingerprint within a distance, at the least work among so
    /// many documents.
    ///
    /// # Errors
    /// [`SketchError::InvalidParameter`] for a distance of more than 63 bits, or of all bits.
    pub fn by_whole_buckets(bits: u16, distance: u32, documents: u64) -> Result<Self> {
        let tables = (distance + 1).max(u32::from(bits).div_ceil(64));
        if tables > MAX_SINGLE_TABLES.min(bits.into()) {
            let expected = format!("at most {}", MAX_SINGLE_TABLES.min(bits.into()) - 1);
            return Err(SketchError::invalid("max_distance", distance, expected));
        }
        let distance = distance as u8;
        let chosen = whole_bucket_design(bits, distance, documents);
        // Otherwise short prefixes are all that is left.
        chosen.unwrap_or_else(|| Self::new(bits, distance, &vec![(1, 1); tables as usize]))
    }

    /// The expected number of candidates of a probe within the greatest distance among this many uniform
    /// fingerprints, summed over the [buckets](Self::buckets): `documents * 2^-p` for a prefix of `p` bits.
    /// Real fingerprints are less uniform, so there will be more.
    ///
    /// ```
    /// use resemblance_sketch::TableDesign;
    /// let design = TableDesign::new(64, 3, &[(4, 3), (4, 3)])?;
    /// assert_eq!(design.candidates(1 << 24), 8.0); // one in each table
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn candidates(&self, documents: u64) -> f64 {
        let found = self.probe_radii(self.max_distance().into(), documents);
        // A design is refused where this takes too many buckets.
        let radii = found.unwrap_or_else(|| ProbeRadii::zero(self.table_count()));
        let tables = self.table_prefix_bits().zip(radii.by_table());
        let share = tables.map(|(bits, radius)| {
            near_prefixes(bits, *radius) as f64 * 2_f64.powi(-i32::from(bits))
        });
        documents as f64 * share.sum::<f64>()
    }

    /// The number of buckets that a probe within the greatest distance reads among this many documents: those of
    /// a fingerprint, one a table, and those of prefixes near its own if these alone do not prove the
    /// distance.
    ///
    /// ```
    /// use resemblance_sketch::TableDesign;
    /// let whole = TableDesign::new(64, 3, &[(1, 1); 4])?;
    /// let near = TableDesign::new(64, 4, &[(1, 1); 4])?;
    /// assert_eq!((whole.buckets(1_000), near.buckets(1_000)), (4, 4 + 16));
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn buckets(&self, documents: u64) -> u64 {
        let radii = self.probe_radii(self.max_distance().into(), documents);
        radii.map_or(u64::MAX, |radii| radii.buckets)
    }

    /// The length of each table's prefix in bits, in the order of the tables.
    ///
    /// ```
    /// use resemblance_sketch::TableDesign;
    /// let design = TableDesign::new(64, 1, &[(3, 2)])?;
    /// assert_eq!(design.table_prefix_bits().collect::<Vec<_>>(), [43, 43, 42]);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn table_prefix_bits(&self) -> impl Iterator<Item = u8> {
        self.tables().iter().map(|table| table.prefix_bits())
    }

    /// The probability, in [0, 1], that the fingerprints of two unweighted sets of equal size and
    /// this Jaccard similarity are within the greatest distance, and so found. A similarity
    /// outside [0, 1] counts as the nearer end.
    ///
    /// The cosine of such sets is 2J / (1 + J); a bit differs with probability acos(cosine) / π
    /// (Charikar, *Similarity estimation techniques from rounding algorithms*, STOC 2002), the
    /// bits independently.
    ///
    /// ```
    /// use resemblance_sketch::TableDesign;
    /// let design = TableDesign::new(64, 3, &[(1, 1); 4])?;
    /// // Distance 3 means nearly identical.
    /// assert!(design.probability(0.8) < 0.01 && design.probability(0.99) > 0.8);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn probability(&self, jaccard: f64) -> f64 {
        simhash_probability(self.bits(), self.max_distance(), jaccard)
    }
}

/// A design that may be chosen. The order of the fields is the order of preference among designs with
/// equally many tables: few candidates, then few blocks, then the groups, for a definite choice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DesignOption {
    tables: u64,
    /// The sum of 2^(64 - p) over the tables: the candidates among 2^64 documents.
    candidates: u128,
    blocks: u8,
    /// Descending.
    groups: Vec<(u8, u8)>,
}

impl DesignOption {
    /// `None` if a prefix is longer than a code of 64 bits.
    fn new(bits: u16, groups: &[(u8, u8)]) -> Option<Self> {
        let mut descending = groups.to_vec();
        descending.sort_unstable_by(|a, b| b.cmp(a));
        let blocks = descending.iter().map(|&(s, _)| s).sum();
        let sizes: Vec<u32> = cut(bits, u32::from(blocks))
            .map(|block| block.bits)
            .collect();
        let prefix_bits = |chosen: u64| -> u32 {
            let numbered = sizes.iter().enumerate();
            numbered
                .filter(|&(i, _)| chosen >> i & 1 == 1)
                .map(|(_, bits)| bits)
                .sum()
        };
        let (mut tables, mut candidates, mut first) = (0, 0_u128, 0);
        for &(s, r) in &descending {
            for chosen in choices(first, s, r) {
                tables += 1;
                candidates += 1 << 64_u32.checked_sub(prefix_bits(chosen))?;
            }
            first += u32::from(s);
        }
        Some(Self {
            tables,
            candidates,
            blocks,
            groups: descending,
        })
    }

    /// The cost for this many documents, times 2^64.
    fn cost(&self, documents: u64) -> u128 {
        let tables = u128::from(self.tables) * (LEAF_READ + LEAF_STORED);
        self.candidates
            .saturating_mul(documents.into())
            .saturating_add(tables << 64)
    }
}

/// The best design for every number of tables, fewest tables first.
fn best_by_tables(bits: u16, max_distance: u8) -> Vec<DesignOption> {
    let mut best: Vec<DesignOption> = Vec::new();
    for_each_design(max_distance, MAX_BLOCKS, &mut |groups| {
        let Some(candidate) = DesignOption::new(bits, groups) else {
            return;
        };
        match best.binary_search_by_key(&candidate.tables, |other| other.tables) {
            Ok(index) => {
                if let Some(other) = best.get_mut(index).filter(|other| candidate < **other) {
                    *other = candidate;
                }
            }
            Err(index) => best.insert(index, candidate),
        }
    });
    best
}

/// Visits the designs worth considering: those that find everything within the distance, and do not
/// guarantee any more, which would be wasted.
fn for_each_design(max_distance: u8, max_blocks: u8, visit: &mut impl FnMut(&[(u8, u8)])) {
    let mut kinds = Vec::new();
    for s in 1..=max_blocks {
        for r in 1..=s {
            // The same number of groups (1, 1) is equivalent.
            let is_redundant = r == 1 && s > 1;
            if !is_redundant && s - r <= max_distance && binomial(s, r) <= MAX_TABLES {
                kinds.push((s, r));
            }
        }
    }
    let remaining = RemainingLimits {
        spoiling: max_distance + 1,
        tables: MAX_TABLES,
        blocks: max_blocks,
    };
    extend(&kinds, remaining, &mut Vec::new(), visit);
}

/// The limits that remain for further groups.
#[derive(Clone, Copy)]
struct RemainingLimits {
    /// The number of differing blocks that must be added to those that spoil all tables so far.
    spoiling: u8,
    tables: u64,
    blocks: u8,
}

impl RemainingLimits {
    /// The limits after one more group; `None` if it exceeds them.
    fn after(self, s: u8, r: u8) -> Option<Self> {
        Some(Self {
            spoiling: self.spoiling.checked_sub(s - r + 1)?,
            tables: self.tables.checked_sub(binomial(s, r))?,
            blocks: self.blocks.checked_sub(s)?,
        })
    }
}

fn extend(
    kinds: &[(u8, u8)],
    remaining: RemainingLimits,
    groups: &mut Vec<(u8, u8)>,
    visit: &mut impl FnMut(&[(u8, u8)]),
) {
    if remaining.spoiling == 0 {
        visit(groups);
        return;
    }
    let mut kinds = kinds;
    while let Some((&(s, r), others)) = kinds.split_first() {
        if let Some(remaining) = remaining.after(s, r) {
            groups.push((s, r));
            extend(kinds, remaining, groups, visit);
            groups.pop();
        }
        kinds = others;
    }
}

/// The probability that the SimHash fingerprints of two unweighted sets of equal size and this
/// Jaccard similarity, in [0, 1], are within the distance.
///
/// The cosine of the sets is 2J / (1 + J); a bit differs with probability acos(cosine) / pi
/// (Charikar, STOC 2002), the bits independently.
pub fn simhash_probability(bits: u16, max_distance: u8, jaccard: f64) -> f64 {
    let similarity = jaccard.clamp(0.0, 1.0);
    let cosine = 2.0 * similarity / (1.0 + similarity);
    let differs = cosine.clamp(0.0, 1.0).acos() / std::f64::consts::PI;
    let agrees = 1.0 - differs;
    let (mut sum, mut ways) = (0.0, 1.0);
    for distance in 0..=u16::from(max_distance).min(bits) {
        let same = i32::from(bits) - i32::from(distance);
        sum += ways * differs.powi(distance.into()) * agrees.powi(same);
        ways *= f64::from(bits - distance) / (f64::from(distance) + 1.0);
    }
    f64::min(sum, 1.0)
}

#[cfg(test)]
mod tests;
