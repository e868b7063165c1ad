//! MinHash kernels and families, on hashes that are there already.

use std::hint::black_box;
use std::time::Instant;

use hash::mix64;
use minhash::{Kernel, MinHasher, Permutations};

// The crate does not let its kernels be chosen, so its own files are measured here.
#[allow(
    dead_code,
    unreachable_pub,
    reason = "not all of the crate's file is measured"
)]
#[path = "../../../crates/resemblance-sketch/src/sketch/hash.rs"]
mod hash;
#[allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "not all of the crate's file is measured"
)]
#[path = "../../../crates/resemblance-sketch/src/sketch/minhash/mod.rs"]
mod minhash;

use crate::Result;

/// Features of a document: their hashes stay in the nearest cache.
const FEATURES: usize = 2_048;
const SEED: u64 = 1;
/// Every case is measured this often, in turns with the others, and the best is printed.
const ROUNDS: usize = 9;
/// Values that are computed for one measurement, about.
const VALUES_MEASURED: usize = 40_000_000;

const FAMILIES: [Permutations; 5] = [
    Permutations::PairMultiply,
    Permutations::MultiplyShift,
    Permutations::Modular,
    Permutations::Tabulation,
    Permutations::Jenkins,
];

type Measured = Box<dyn FnMut(&[u64])>;

/// A kernel to measure: its name, and the nanoseconds for each feature so far.
struct Case {
    name: String,
    run: Measured,
    nanoseconds: f64,
}

impl Case {
    fn new(name: impl Into<String>, run: impl FnMut(&[u64]) + 'static) -> Self {
        Self {
            name: name.into(),
            run: Box::new(run),
            nanoseconds: f64::INFINITY,
        }
    }

    fn measure(&mut self, hashes: &[u64], times: usize) {
        let start = Instant::now();
        for _ in 0..times {
            (self.run)(black_box(hashes));
        }
        let features = (times * hashes.len()) as f64;
        let nanoseconds = start.elapsed().as_secs_f64() * 1e9 / features;
        self.nanoseconds = self.nanoseconds.min(nanoseconds);
    }
}

pub fn run() -> Result<()> {
    let hashes: Vec<u64> = (1..=FEATURES as u64).map(mix64).collect();
    for values in [64, 128, 256, 1024] {
        let mut cases = loops(values);
        cases.extend(kernels(values));
        for _ in 0..ROUNDS {
            for case in &mut cases {
                let times = VALUES_MEASURED / (FEATURES * usize::from(values));
                // The slow ones need no more time than the others.
                let times = if case.nanoseconds > f64::from(values) * 0.2
                    && case.nanoseconds < f64::INFINITY
                {
                    times / 8 + 1
                } else {
                    times
                };
                case.measure(&hashes, times);
            }
        }
        print(values, &cases);
    }
    Ok(())
}

fn print(values: u16, cases: &[Case]) {
    println!("\nk = {values}: {:<38} ns a feature   million a second", "");
    for case in cases {
        let Case {
            name, nanoseconds, ..
        } = case;
        println!("{name:<48} {nanoseconds:>10.3} {:>18.1}", 1e3 / nanoseconds);
    }
}

fn kernels(values: u16) -> Vec<Case> {
    let mut cases = Vec::new();
    for family in FAMILIES {
        for (name, kernel) in Kernel::available() {
            let hasher = MinHasher::with_kernel(SEED, values, family, kernel);
            let mut minima = hasher.minima();
            cases.push(Case::new(format!("{family}, {name}"), move |hashes| {
                hasher.update(&mut minima, hashes);
                black_box(&mut minima);
            }));
        }
    }
    cases
}

/// Plain loops, and what no kernel can pass: reading the hashes, mixing them, one operation of 32
/// bits and a minimum for each function.
fn loops(values: u16) -> Vec<Case> {
    let functions = usize::from(values);
    let words: Vec<u64> = (1..=2 * u64::from(values)).map(|i| mix64(!i)).collect();
    let (multipliers, addends) = words.split_at(functions);
    let (multipliers, addends) = (multipliers.to_vec(), addends.to_vec());
    let mut minima = vec![u32::MAX; functions];
    let scalar = move |hashes: &[u64]| {
        for &hash in hashes {
            let mixed = mix64(hash ^ SEED);
            let functions = multipliers.iter().zip(&addends);
            for (minimum, (&a, &b)) in minima.iter_mut().zip(functions) {
                let value = black_box(a.wrapping_mul(mixed).wrapping_add(b)) >> 32;
                *minimum = (*minimum).min(value as u32);
            }
        }
    };
    let plain = vec![
        Case::new("bound: hashes are read and added", |hashes| {
            black_box(
                hashes
                    .iter()
                    .fold(0, |sum: u64, &hash| sum.wrapping_add(hash)),
            );
        }),
        Case::new("bound: hashes are mixed", |hashes| {
            let mixed = hashes.iter().map(|&hash| mix64(hash ^ SEED));
            black_box(mixed.fold(0, |sum, mixed| sum ^ mixed));
        }),
        Case::new("scalar loop, multiply-shift", scalar),
    ];
    #[cfg(target_arch = "x86_64")]
    return plain.into_iter().chain(bounds::cases(functions)).collect();
    #[cfg(not(target_arch = "x86_64"))]
    plain
}

#[cfg(target_arch = "x86_64")]
mod bounds {
    use std::arch::x86_64::*;
    use std::hint::black_box;

    use super::Case;

    const BATCH: usize = 32;

    /// Loops over hashes of 32 bits that are mixed already, with 4 registers of minima.
    pub(super) fn cases(functions: usize) -> Vec<Case> {
        let mut cases = Vec::new();
        let mut add = |name: &str, found: bool, run: unsafe fn(&[u64], &[u32], &mut [u32])| {
            if !found {
                return;
            }
            let words: Vec<u32> = (1..=functions as u32)
                .map(|i| i.wrapping_mul(0x9e37_79b9) | 1)
                .collect();
            let mut minima = vec![u32::MAX; functions];
            cases.push(Case::new(name, move |hashes| {
                for hashes in hashes.chunks(BATCH) {
                    // SAFETY: the processor has the instructions.
                    unsafe { run(hashes, &words, &mut minima) }
                }
                black_box(&mut minima);
            }));
        };
        let found = is_x86_feature_detected!("avx2");
        add("loop: x ^ a, AVX2", found, xor_avx2);
        add("loop: a x + b, AVX2", found, multiply_avx2);
        let found = is_x86_feature_detected!("avx512f");
        add("loop: x ^ a, AVX-512", found, xor_avx512);
        add("loop: a x + b, AVX-512", found, multiply_avx512);
        cases
    }

    macro_rules! bound {
        ($name:ident, $feature:literal, $lanes:literal, $register:ident, $load:ident, $store:ident, $set:ident, $min:ident, |$x:ident, $a:ident| $value:expr) => {
            #[target_feature(enable = $feature)]
            fn $name(hashes: &[u64], words: &[u32], minima: &mut [u32]) {
                let words = words.chunks_exact(4 * $lanes);
                for (words, minima) in words.zip(minima.chunks_exact_mut(4 * $lanes)) {
                    let register = |place: usize, from: &[u32]| {
                        // SAFETY: a piece has the words of 4 registers.
                        unsafe { $load(from.as_ptr().add(place * $lanes).cast()) }
                    };
                    let words: [$register; 4] = std::array::from_fn(|place| register(place, words));
                    let mut least: [$register; 4] =
                        std::array::from_fn(|place| register(place, minima));
                    for &hash in hashes {
                        let $x = $set(hash as i32);
                        for (least, &$a) in least.iter_mut().zip(&words) {
                            *least = $min(*least, $value);
                        }
                    }
                    for (piece, least) in minima.chunks_exact_mut($lanes).zip(least) {
                        // SAFETY: a piece is as long as a register.
                        unsafe { $store(piece.as_mut_ptr().cast(), least) }
                    }
                }
            }
        };
    }

    bound!(
        xor_avx2,
        "avx2",
        8,
        __m256i,
        _mm256_loadu_si256,
        _mm256_storeu_si256,
        _mm256_set1_epi32,
        _mm256_min_epu32,
        |x, a| _mm256_xor_si256(x, a)
    );
    bound!(
        multiply_avx2,
        "avx2",
        8,
        __m256i,
        _mm256_loadu_si256,
        _mm256_storeu_si256,
        _mm256_set1_epi32,
        _mm256_min_epu32,
        |x, a| _mm256_add_epi32(_mm256_mullo_epi32(x, a), a)
    );
    bound!(
        xor_avx512,
        "avx512f",
        16,
        __m512i,
        _mm512_loadu_si512,
        _mm512_storeu_si512,
        _mm512_set1_epi32,
        _mm512_min_epu32,
        |x, a| _mm512_xor_si512(x, a)
    );
    bound!(
        multiply_avx512,
        "avx512f",
        16,
        __m512i,
        _mm512_loadu_si512,
        _mm512_storeu_si512,
        _mm512_set1_epi32,
        _mm512_min_epu32,
        |x, a| _mm512_add_epi32(_mm512_mullo_epi32(x, a), a)
    );
}
