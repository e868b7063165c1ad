//! Chooses a table design for a number of documents.
//!
//! There are two kinds of designs. Designs with few tables take the least space: `t` groups (1, 1)
//! cut the fingerprint into `t` prefixes, and a search also reads buckets near its own. Designs in
//! which whole buckets find everything take more space, but a search reads fewer buckets. The cost
//! of a design is time times space: the expected time of a search
//! ([`TableDesign::search_nanoseconds`]) multiplied by the bytes of a document with its postings. A
//! table that makes a document 10 % larger must therefore save about 10 % of the time.
//!
//! Among designs of whole buckets, the cost for `n` documents is counted in units of reading one
//! candidate:
//!
//! - `LEAF_READ` for each table: a probe finds and reads one leaf of the run that holds most
//!   documents (the smaller runs stay cached). A leaf of 4,072 bytes holds some 490 postings of 8.3
//!   bytes, so reading a candidate costs 1/490 of a leaf, and decoding and comparing it costs about
//!   the same again. A leaf therefore counts as 256 candidates.
//! - `n * 2^-p` for each table with a prefix of `p` bits: the candidates among uniform fingerprints.
//! - `LEAF_STORED` for each table, for the bytes of its posting.
//!
//! A design with `t` tables therefore costs `t * (LEAF_READ + LEAF_STORED)` plus its candidates.
//! Among designs with the same number of tables, the one with the fewest candidates is best for
//! every `n`, which leaves a short list to choose from.

use super::radii::{POSTING_BYTES, ProbeRadii, near_prefixes, row_bytes};
use super::tables::{TableDesign, binomial, choices, cut};
use crate::error::{Result, SketchError};
use crate::fingerprint::check_width;
use crate::invariant::bug;

const LEAF_READ: u128 = 256;
const LEAF_STORED: u128 = 64;

/// The maximum number of tables to choose: 33 tables would store more than 270 bytes for each
/// document.
const MAX_TABLES: u64 = 32;
/// The maximum number of blocks to try for designs of whole buckets. Finer cuts are far more
/// numerous and change no choice (the tests try 22 blocks, with up to 2^40 documents).
const MAX_BLOCKS: u8 = 20;
/// The maximum distance for which such designs are tried. None exist for 20, and there are very
/// many near it.
const MAX_WHOLE_DISTANCE: u8 = 16;

/// Returns the maximum distance for which tables are chosen: 10 for 64 bits, and the same share for
/// other widths.
const fn max_distance_of(bits: u16) -> u8 {
    match bits {
        32 => 5,
        64 => 10,
        128 => 20,
        _ => 40,
    }
}

/// Returns the cheapest design for this many documents, by the cost that the module documentation
/// defines.
///
/// # Errors
///
/// [`SketchError::InvalidParameter`] if `bits` is not 32, 64, 128 or 256, or if `max_distance` is
/// out of range: 1..=5 for 32 bits, 1..=10 for 64, 1..=20 for 128, 1..=40 for 256.
pub fn choose_design(bits: u16, max_distance: u8, expected_documents: u64) -> Result<TableDesign> {
    check_width(bits)?;
    let limit = max_distance_of(bits);
    let expected = format_args!("1 to {limit}");
    let is_valid = (1..=limit).contains(&max_distance);
    SketchError::require(is_valid, "max_distance", max_distance, expected)?;
    // Designs with very few tables have prefixes longer than a code, or read too many buckets.
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

/// Returns the cheapest design in which whole buckets find everything, and the one with the fewest
/// tables if several are equally cheap. Returns `None` if every such design has too many tables.
fn whole_bucket_design(bits: u16, max_distance: u8, documents: u64) -> Option<Result<TableDesign>> {
    if max_distance > MAX_WHOLE_DISTANCE {
        return None;
    }
    let listed = best_by_tables(bits, max_distance);
    let cheapest = listed.iter().min_by_key(|option| option.cost(documents))?;
    Some(TableDesign::new(bits, max_distance, &cheapest.groups))
}

/// The maximum number of blocks in a design, and so of tables that share no block.
const MAX_SINGLE_TABLES: u32 = 64;

impl TableDesign {
    /// Returns the design with the least work for this many documents among those in which whole
    /// buckets find every fingerprint within a distance.
    ///
    /// # Errors
    /// [`SketchError::InvalidParameter`] if the distance exceeds 63 bits, or is not less than the
    /// number of bits.
    pub fn by_whole_buckets(bits: u16, distance: u32, documents: u64) -> Result<Self> {
        let tables = distance.saturating_add(1).max(u32::from(bits).div_ceil(64));
        if tables > MAX_SINGLE_TABLES.min(bits.into()) {
            let expected = format!("at most {}", MAX_SINGLE_TABLES.min(bits.into()) - 1);
            return Err(SketchError::invalid("max_distance", distance, expected));
        }
        let distance = distance as u8;
        let chosen = whole_bucket_design(bits, distance, documents);
        // Otherwise only short prefixes remain.
        chosen.unwrap_or_else(|| Self::new(bits, distance, &vec![(1, 1); tables as usize]))
    }

    /// Returns the expected number of candidates of a probe within the greatest distance, summed
    /// over its [buckets](Self::buckets), if this many fingerprints are uniform: `documents * 2^-p`
    /// for a prefix of `p` bits. Real fingerprints are less uniform and give more candidates.
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
        // A design in which this reads too many buckets has been refused.
        let radii = found.unwrap_or_else(|| ProbeRadii::zero(self.table_count()));
        let tables = self.table_prefix_bits().zip(radii.by_table());
        let share = tables.map(|(bits, radius)| {
            near_prefixes(bits, *radius) as f64 * 2_f64.powi(-i32::from(bits))
        });
        documents as f64 * share.sum::<f64>()
    }

    /// Returns the number of buckets that a probe within the greatest distance reads among this
    /// many documents. It reads one bucket in each table, and buckets with nearby prefixes if the
    /// first ones alone do not guarantee the distance.
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

    /// Returns the probability, in [0, 1], that two unweighted sets have fingerprints within the
    /// greatest distance, and are therefore found. The sets have this number of features together,
    /// and share a whole number of them that is nearest to the Jaccard similarity. The rest is split
    /// evenly. Similarities outside [0, 1] are clamped; without features it is 1.
    ///
    /// A bit is the sign of a sum of fair coins, one for each feature (Charikar, *Similarity
    /// estimation techniques from rounding algorithms*, STOC 2002). For large sets that differ in
    /// many features, bits differ with probability acos(2J / (1 + J)) / π. Up to a million features
    /// the sums are counted exactly: sets that differ in few features are nearer.
    ///
    /// ```
    /// use resemblance_sketch::TableDesign;
    /// let design = TableDesign::new(64, 3, &[(1, 1); 4])?;
    /// // Distance 3 means nearly identical.
    /// assert!(design.probability(0.8, 400) < 0.01 && design.probability(0.99, 400) > 0.8);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn probability(&self, jaccard: f64, features: u64) -> f64 {
        simhash_probability(self.bits(), self.max_distance(), jaccard, features)
    }
}

/// A design that may be chosen. The order of its fields ranks designs with the same number of
/// tables: fewest candidates, then fewest blocks, then the groups, which makes the choice unique.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DesignOption {
    tables: u64,
    /// The sum of 2^(64 - p) over the tables, which is the number of candidates among 2^64
    /// documents.
    candidates: u128,
    blocks: u8,
    /// In descending order.
    groups: Vec<(u8, u8)>,
}

impl DesignOption {
    /// Returns `None` if a prefix is longer than a code of 64 bits.
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

    /// Returns the cost for this many documents, times 2^64.
    fn cost(&self, documents: u64) -> u128 {
        let tables = u128::from(self.tables) * (LEAF_READ + LEAF_STORED);
        self.candidates
            .saturating_mul(documents.into())
            .saturating_add(tables << 64)
    }
}

/// Returns the best design for every number of tables, fewest tables first.
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

/// Visits the designs worth considering: those that guarantee the distance and nothing beyond it,
/// which would be wasted.
fn for_each_design(max_distance: u8, max_blocks: u8, visit: &mut impl FnMut(&[(u8, u8)])) {
    let mut kinds = Vec::new();
    for s in 1..=max_blocks {
        for r in 1..=s {
            // A group with r = 1 and s > 1 is equivalent to s groups (1, 1).
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
    /// The number of differing blocks that further groups must still add to hide a fingerprint from
    /// all tables.
    spoiling: u8,
    tables: u64,
    blocks: u8,
}

impl RemainingLimits {
    /// Returns the limits after one more group, or `None` if the group exceeds them.
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

/// The number of features of two typical near-duplicates together: a text of 2 KB has some 400
/// shingles of words.
pub const TYPICAL_FEATURES: u64 = 400;

/// The maximum number of features whose coins are counted one by one.
const MAX_COUNTED_FEATURES: u64 = 1_000_000;

/// Returns the probability that [`TableDesign::probability`] defines.
pub fn simhash_probability(bits: u16, max_distance: u8, jaccard: f64, features: u64) -> f64 {
    let differs = bit_differs(jaccard.clamp(0.0, 1.0), features);
    let agrees = 1.0 - differs;
    let (mut sum, mut ways) = (0.0, 1.0);
    for distance in 0..=u16::from(max_distance).min(bits) {
        let same = i32::from(bits) - i32::from(distance);
        sum += ways * differs.powi(distance.into()) * agrees.powi(same);
        ways *= f64::from(bits - distance) / (f64::from(distance) + 1.0);
    }
    f64::min(sum, 1.0)
}

/// Returns the probability that a bit differs, for sets as [`TableDesign::probability`] describes them.
///
/// Given the sum of the coins of the shared features, the coins of the others decide independently.
/// A tie is decided by the coin of a random feature of the set, which is heads half of the time
/// because half of the coins are. If both sets tie, they agree if the least mixed hash of the union
/// is of a shared feature, and otherwise half of the time.
fn bit_differs(jaccard: f64, features: u64) -> f64 {
    if features > MAX_COUNTED_FEATURES {
        let cosine = 2.0 * jaccard / (1.0 + jaccard);
        return cosine.clamp(0.0, 1.0).acos() / std::f64::consts::PI;
    }
    let features = features as i64;
    let common = (jaccard * features as f64).round() as i64;
    let different = features - common;
    let counts = [common, different - different / 2, different / 2];
    let [shared, first, second] = counts.map(CoinSum::new);
    let apart = different as f64 / features.max(1) as f64;
    let mut sum = 0.0;
    for (heads, probability) in (0..).zip(&shared.by_heads) {
        let shared_sum = 2 * heads - shared.coins;
        let [(above, tied), (other_above, other_tied)] =
            [first.with(shared_sum), second.with(shared_sum)];
        let (below, other_below) = (1.0 - above - tied, 1.0 - other_above - other_tied);
        let opposite = above * other_below + below * other_above;
        let one_tied = tied * (1.0 - other_tied) + other_tied * (1.0 - tied);
        sum += probability * (opposite + 0.5 * (one_tied + tied * other_tied * apart));
    }
    sum.clamp(0.0, 1.0)
}

/// The distribution of the sum of fair coins that are worth 1 (heads) or −1.
struct CoinSum {
    coins: i64,
    /// The probability of each number of heads.
    by_heads: Vec<f64>,
    /// The probability of each number of heads or more.
    at_least: Vec<f64>,
}

impl CoinSum {
    fn new(coins: i64) -> Self {
        // From the middle outwards: towards the ends the probabilities may vanish.
        let half = (coins + 1) / 2;
        let mut next: f64 = (1..=half).map(|i| 1.0 - 0.5 / i as f64).product();
        let mut upper = Vec::new();
        for heads in half..=coins {
            upper.push(next);
            next *= (coins - heads) as f64 / (heads + 1) as f64;
        }
        // An even number of coins has one middle.
        let lower = upper.iter().skip(usize::from(coins % 2 == 0)).rev();
        let by_heads: Vec<f64> = lower.chain(&upper).copied().collect();
        let mut at_least: Vec<f64> = by_heads
            .iter()
            .rev()
            .scan(0.0, |sum, probability| {
                *sum += probability;
                Some(*sum)
            })
            .collect();
        at_least.reverse();
        Self {
            coins,
            by_heads,
            at_least,
        }
    }

    /// Returns the probabilities that the coins and `sum` add up to more than 0, and to 0.
    fn with(&self, sum: i64) -> (f64, f64) {
        // 2 heads − coins + sum > 0.
        let Ok(twice_heads) = usize::try_from(self.coins - sum) else {
            return (1.0, 0.0);
        };
        let heads = twice_heads / 2;
        // Beyond all coins the probability is 0.
        let at = |probabilities: &[f64], heads| probabilities.get(heads).copied().unwrap_or(0.0);
        let tied = if twice_heads % 2 == 0 {
            at(&self.by_heads, heads)
        } else {
            0.0
        };
        (at(&self.at_least, heads + 1), tied)
    }
}

#[cfg(test)]
mod tests;
