//! Estimates of every kind of signature against the kind's own theory, over random pairs.

use std::time::{Duration, Instant};

use resemblance::schema::{MinHashKind, MinHashSchema, Permutations};
use resemblance::{MinHash, Schema, Signature, Sketcher};

use crate::Result;
use crate::options::Options;

const SIMILARITIES: [f64; 6] = [0.1, 0.3, 0.5, 0.7, 0.9, 0.95];

/// The number of features in a set, and the relative number of pairs. The largest sets are few:
/// their errors depend on the size only through collisions, which the mean over these pairs shows.
const SIZES: [(u64, f64); 6] = [
    (10, 1.0),
    (100, 1.0),
    (1_000, 1.0),
    (10_000, 1.0),
    (100_000, 1.0),
    (10_000_000, 0.002),
];

/// The probability that right kinds exceed any bound of all.
const FAMILY_WISE_ERROR: f64 = 0.001;

/// The other families are slow, and do not differ from the default in more features than these.
const MOST_FEATURES_OF_FAMILIES: u64 = 10_000;

/// The theoretical variance of an estimate.
#[derive(Clone, Copy)]
enum Variance {
    Equal,
    AtMost,
}

/// A kind of signature, and what is known of its theory.
struct Kind {
    name: &'static str,
    minhash: MinHash,
    variance: Variance,
    /// The most features that a set of its has here.
    most_features: u64,
}

impl Kind {
    fn new(name: &'static str, minhash: MinHash) -> Self {
        Self {
            name,
            minhash,
            variance: Variance::Equal,
            most_features: u64::MAX,
        }
    }
}

fn kinds() -> Vec<Kind> {
    let family = |name, permutations| Kind {
        most_features: MOST_FEATURES_OF_FAMILIES,
        ..Kind::new(
            name,
            MinHash::new(128).value_bits(32).permutations(permutations),
        )
    };
    let one_pass = |name, values| Kind {
        variance: Variance::AtMost,
        ..Kind::new(name, MinHash::one_pass(values).value_bits(32))
    };
    let whole = |name, values| Kind::new(name, MinHash::new(values).value_bits(32));
    let cut = |name, bits| Kind::new(name, MinHash::new(128).value_bits(bits));
    vec![
        whole("MinHash 64", 64),
        whole("MinHash 128", 128),
        whole("MinHash 256", 256),
        whole("MinHash 400", 400),
        whole("MinHash 512", 512),
        whole("MinHash 1024", 1_024),
        family("multiply-shift", Permutations::MultiplyShift),
        family("modular", Permutations::Modular),
        family("tabulation", Permutations::Tabulation),
        family("Jenkins", Permutations::Jenkins),
        one_pass("one-pass 128", 128),
        one_pass("one-pass 1024", 1_024),
        Kind::new("bottom-k 128", MinHash::bottom_k(128)),
        Kind::new("weighted 128", MinHash::weighted(128).value_bits(32)),
        cut("1 bit 128", 1),
        cut("2 bits 128", 2),
        cut("4 bits 128", 4),
        cut("8 bits 128", 8),
        cut("16 bits 128", 16),
    ]
}

/// A kind with its hash functions.
struct Estimator {
    minhash: MinHashSchema,
    sketcher: Sketcher,
}

impl Estimator {
    fn new(kind: &Kind) -> Result<Self> {
        let schema = Schema::builder().minhash(kind.minhash).build()?;
        Ok(Self {
            minhash: schema.minhash().ok_or("a schema without MinHash")?,
            sketcher: schema.sketcher(),
        })
    }

    /// That of an estimate of J from the union's N features, or the most that it can be. Independent
    /// values: J (1 - J) / k (Broder 1997; of weighted features Ioffe 2010); of b bits
    /// (1 - J) (J + 1 / (2^b - 1)) / k (Li and König 2010); one pass: at most J (1 - J) / k
    /// (Dahlgaard, Knudsen and Thorup 2017); bottom-k: J (1 - J) / k × (N - k) / (N - 1), and 0 up
    /// to N = k (Broder 1997).
    fn variance(&self, j: f64, union: f64) -> f64 {
        let variance = self.minhash.variance(j);
        let left = union - f64::from(self.minhash.values());
        match self.minhash.kind() {
            MinHashKind::BottomK if left <= 0.0 => 0.0,
            MinHashKind::BottomK => variance * left / (union - 1.0),
            _ => variance,
        }
    }

    fn is_weighted(&self) -> bool {
        self.minhash.kind().is_weighted()
    }

    fn signature(&self, shape: Shape, pair: u64, which: u64) -> Result<Signature> {
        if self.is_weighted() {
            let set = shape.weighted(pair, which);
            return Ok(self.sketcher.weighted_hashes(set)?);
        }
        Ok(self.sketcher.hashes(shape.set(pair, which))?)
    }

    fn similarity(&self, shape: Shape, pair: u64) -> f64 {
        if self.is_weighted() {
            shape.weighted_similarity(pair)
        } else {
            shape.similarity()
        }
    }
}

/// Sums over the pairs of a cell, of errors divided by their standard deviation in theory.
struct Cell {
    pairs: f64,
    /// The mean similarity, and the mean variance in theory.
    similarity: f64,
    variance: f64,
    mean: f64,
    square: f64,
    /// The amount by which the fourth moment may exceed that of a normal error.
    excess: f64,
    seconds: f64,
}

pub fn run(options: &Options) -> Result<()> {
    let kinds = kinds();
    let tests = (kinds.len() * SIMILARITIES.len() * SIZES.len() * 2) as f64;
    println!(
        "{} pairs a cell, fewer of 10,000,000 features; {tests} tests, family-wise error \
         {FAMILY_WISE_ERROR}",
        options.pairs
    );
    println!(
        "{:<14} {:>10} {:>6} {:>7} {:>11} {:>11} {:>9} {:>11} {:>9}",
        "kind", "features", "J", "pairs", "mean error", "variance", "/ theory", "M feat./s", ""
    );
    let mut rejected = 0;
    for kind in &kinds {
        let estimator = Estimator::new(kind)?;
        for (size, (features, share)) in (0..).zip(SIZES) {
            if features > kind.most_features.min(options.most_features) {
                continue;
            }
            for (place, similarity) in (0..).zip(SIMILARITIES) {
                let common = 2.0 * features as f64 * similarity / (1.0 + similarity);
                let shape = Shape {
                    number: size << 8 | place,
                    common: common.round() as u64,
                    each: features - common.round() as u64,
                };
                if shape.each == 0 {
                    continue;
                }
                let pairs = (options.pairs as f64 * share).ceil() as u64;
                let cell = measure(&estimator, shape, pairs)?;
                rejected += usize::from(!report(kind, shape, &cell, tests));
            }
        }
    }
    match rejected {
        0 => Ok(()),
        _ => Err(format!("{rejected} cells do not agree with their theory").into()),
    }
}

/// Two sets of `common + each` features that share `common`.
#[derive(Clone, Copy)]
struct Shape {
    /// The number of the cell. No two cells share features.
    number: u64,
    common: u64,
    each: u64,
}

impl Shape {
    fn union(self) -> f64 {
        (self.common + 2 * self.each) as f64
    }

    fn similarity(self) -> f64 {
        self.common as f64 / self.union()
    }

    /// Random features that no other pair has.
    fn set(self, pair: u64, which: u64) -> impl Iterator<Item = u64> {
        let begin = self.number << 48 | pair << 32;
        let own = begin + self.common + which * self.each;
        (begin..begin + self.common)
            .chain(own..own + self.each)
            .map(random)
    }

    /// The same with weights; of those that are in both sets, one in eight weighs less in the first.
    fn weighted(self, pair: u64, which: u64) -> impl Iterator<Item = (u64, f64)> {
        let features = self.set(pair, which);
        features.map(move |feature| (feature, weight(feature, which)))
    }

    /// Σ min / Σ max of the weights: exact, for all are small multiples of a quarter.
    fn weighted_similarity(self, pair: u64) -> f64 {
        let sum = |which, from: usize, to: usize| -> f64 {
            let features = self.weighted(pair, which).skip(from).take(to - from);
            features.map(|(_, weight)| weight).sum()
        };
        let (common, all) = (self.common as usize, (self.common + self.each) as usize);
        let greater = sum(1, 0, all) + sum(0, common, all);
        sum(0, 0, common) / greater
    }
}

/// 1/2, 1, 2 or 4.
fn weight(feature: u64, which: u64) -> f64 {
    let number = random(feature ^ 0x77);
    let weight = [0.5, 1.0, 2.0, 4.0][(number & 3) as usize];
    if which == 0 && number >> 61 == 0 {
        weight / 2.0
    } else {
        weight
    }
}

/// The finalizer of splitmix64 with other constants than the library's (Stafford's "Mix01").
fn random(number: u64) -> u64 {
    let number = (number ^ (number >> 31)).wrapping_mul(0x7fb5_d329_728e_a185);
    let number = (number ^ (number >> 27)).wrapping_mul(0x81da_def4_bc2d_d44d);
    number ^ (number >> 33)
}

fn measure(estimator: &Estimator, shape: Shape, pairs: u64) -> Result<Cell> {
    let (mut sum, mut squares, mut excess) = (0.0, 0.0, 0.0_f64);
    let (mut similarities, mut variances) = (0.0, 0.0);
    let values = f64::from(estimator.minhash.values());
    let mut time = Duration::ZERO;
    for pair in 0..pairs {
        let similarity = estimator.similarity(shape, pair);
        let variance = estimator.variance(similarity, shape.union());
        let start = Instant::now();
        let a = estimator.signature(shape, pair, 0)?;
        let b = estimator.signature(shape, pair, 1)?;
        time += start.elapsed();
        let error = a.jaccard_unclamped(&b)? - similarity;
        let score = match variance > 0.0 {
            true => error / variance.sqrt(),
            // Known exactly: any error is beyond all bounds.
            false if error.abs() > 1e-12 => f64::INFINITY,
            false => 0.0,
        };
        sum += score;
        squares += score * score;
        similarities += similarity;
        variances += variance;
        if variance > 0.0 {
            // A value that is cut counts for 1 / (1 - C) of one.
            let chance = match estimator.minhash.value_bits() {
                bits @ 1..32 => 0.5_f64.powi(bits.into()),
                _ => 0.0,
            };
            let step = 1.0 / (values * (1.0 - chance));
            excess = excess.max(step * step / variance);
        }
    }
    let count = pairs as f64;
    Ok(Cell {
        pairs: count,
        similarity: similarities / count,
        variance: variances / count,
        mean: sum / count,
        square: squares / count,
        excess,
        seconds: time.as_secs_f64(),
    })
}

/// Prints a cell, and returns whether it agrees with theory. The nearly normal mean of S errors of
/// variance 1 exceeds √(2 x / S) with probability at most e^-x (Chernoff). With the same
/// probability, the mean of their squares exceeds 1 + 2 √(x / S) + 2 x / S or is below 1 - 2 √(x /
/// S) (Laurent and Massart 2000). The bounds are widened by the amount by which the fourth moment
/// exceeds that of a normal error.
fn report(kind: &Kind, shape: Shape, cell: &Cell, tests: f64) -> bool {
    let x = (2.0 * tests / FAMILY_WISE_ERROR).ln();
    let spread = 2.0 * (x / cell.pairs * (2.0 + cell.excess) / 2.0).sqrt();
    let deviation = cell.variance.sqrt();
    let least = match kind.variance {
        Variance::Equal if deviation > 0.0 => 1.0 - spread,
        _ => 0.0,
    };
    let most = 1.0 + spread + 2.0 * x / cell.pairs;
    let agrees =
        cell.mean.abs() <= (2.0 * x / cell.pairs).sqrt() && (least..=most).contains(&cell.square);
    let features = shape.common + shape.each;
    println!(
        "{:<14} {:>10} {:>6.3} {:>7} {:>11.6} {:>11.8} {:>9.3} {:>11.1} {:>9}",
        kind.name,
        features,
        cell.similarity,
        cell.pairs,
        cell.mean * deviation,
        cell.square * deviation * deviation,
        cell.square,
        2.0 * cell.pairs * features as f64 / cell.seconds / 1e6,
        if agrees { "" } else { "REJECTED" },
    );
    agrees
}
