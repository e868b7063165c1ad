//! Every fingerprint compared with every other, many by one instruction.

use super::{DISTANCE, Index, Pairs};
use crate::Result;

/// Counted together before any of them is looked at alone.
const GROUP: usize = 256;

#[derive(Default)]
pub struct Scan {
    fingerprints: Vec<u64>,
}

/// How many of a group are near. Without branches, so that it is compiled to vector instructions.
#[inline(always)]
fn count_near(group: &[u64], fingerprint: u64) -> u64 {
    let near = group
        .iter()
        .map(|other| u64::from((other ^ fingerprint).count_ones() <= DISTANCE));
    near.sum()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512vpopcntdq")]
fn count_near_avx512(group: &[u64], fingerprint: u64) -> u64 {
    count_near(group, fingerprint)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn count_near_avx2(group: &[u64], fingerprint: u64) -> u64 {
    count_near(group, fingerprint)
}

type Counter = fn(&[u64], u64) -> u64;

/// The widest instructions that this processor has, and their name.
fn counter() -> (&'static str, Counter) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512vpopcntdq") && is_x86_feature_detected!("avx512vl") {
            // SAFETY: the processor has what the function is compiled for.
            return ("AVX-512", |group, one| unsafe {
                count_near_avx512(group, one)
            });
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
            // SAFETY: the processor has what the function is compiled for.
            return ("AVX2", |group, one| unsafe { count_near_avx2(group, one) });
        }
    }
    ("what every processor of its kind has", count_near)
}

/// The places of the fingerprints that are near, ascending.
fn near(fingerprints: &[u64], fingerprint: u64, mut found: impl FnMut(usize)) {
    let (_, count) = counter();
    for (number, group) in fingerprints.chunks(GROUP).enumerate() {
        if count(group, fingerprint) > 0 {
            for (place, other) in group.iter().enumerate() {
                if (other ^ fingerprint).count_ones() <= DISTANCE {
                    found(number * GROUP + place);
                }
            }
        }
    }
}

impl Index for Scan {
    fn settings(&self) -> Result<String> {
        let (instructions, _) = counter();
        Ok(format!(
            "a vector of fingerprints, all compared, with {instructions}, in one thread; in \
             memory, not durable"
        ))
    }

    fn insert(&mut self, _: u64, fingerprints: &[u64]) -> Result<()> {
        self.fingerprints.extend(fingerprints);
        Ok(())
    }

    fn near(&self, fingerprint: u64) -> Result<Vec<u64>> {
        let mut ids = Vec::new();
        near(&self.fingerprints, fingerprint, |place| {
            ids.push(place as u64)
        });
        Ok(ids)
    }

    fn pairs(&self) -> Result<Pairs> {
        let mut pairs = Vec::new();
        for (a, fingerprint) in self.fingerprints.iter().enumerate() {
            let later = self.fingerprints.get(a + 1..).unwrap_or_default();
            near(later, *fingerprint, |place| {
                pairs.push((a as u64, (a + 1 + place) as u64));
            });
        }
        Ok(pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simhash::fingerprints::fingerprint;

    #[test]
    fn vectors_count_as_single_comparisons_do() {
        let fingerprints: Vec<u64> = (0..2_000).map(fingerprint).collect();
        let (_, count) = counter();
        let mut near = 0;
        for one in &fingerprints {
            let alone = fingerprints
                .iter()
                .filter(|other| (*other ^ one).count_ones() <= 3);
            let alone = alone.count() as u64;
            assert_eq!(count(&fingerprints, *one), alone);
            near += alone - 1;
        }
        assert!(near > 100, "some are near each other");
    }
}
