//! Finds the n-th document by age, among any number of documents, in bounded memory.
//!
//! It counts histograms of ages over ever smaller ranges, because it cannot keep its input (Munro
//! and Paterson, "Selection and sorting with limited storage", 1980): each pass narrows the range
//! that has the wanted rank, until all of it fits in memory.

use crate::error::{Error, Result};
use crate::invariant::at_mut;

/// The stamp and id of a document. The smaller of two ages is the older one.
pub(super) type Age = (u64, u64);

/// Passes all ages to a closure, ascending by id.
pub(super) type EachAge<'e> = dyn FnMut(&mut dyn FnMut(Age)) -> Result<()> + 'e;

/// The bounds of memory during one pass over all ages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    /// Two to the power of this many ranges of ages are counted, 48 bytes each; 1 to 31.
    bucket_bits: u32,
    /// Ages that are held, 16 bytes each; at least one.
    ages: u64,
}

impl Default for Memory {
    /// 1.5 MiB of counters, or 1 MiB of ages.
    fn default() -> Self {
        Self {
            bucket_bits: 15,
            ages: 1 << 16,
        }
    }
}

/// Ages as numbers, the stamp in the high half: all from the lowest to the highest.
#[derive(Clone, Copy, Debug)]
struct AgeRange {
    low: u128,
    high: u128,
    documents: u64,
}

impl AgeRange {
    const NONE: Self = Self {
        low: u128::MAX,
        high: 0,
        documents: 0,
    };

    fn add(&mut self, age: u128) {
        self.low = self.low.min(age);
        self.high = self.high.max(age);
        self.documents += 1;
    }
}

/// Returns the age such that exactly `rank` of all `documents` are older.
///
/// # Errors
/// [`Error::Corrupt`] if there are fewer documents, and those of `each`.
pub(super) fn age_of_rank(
    mut rank: u64,
    documents: u64,
    memory: Memory,
    each: &mut EachAge<'_>,
) -> Result<Age> {
    let mut range = AgeRange {
        low: 0,
        high: u128::MAX,
        documents,
    };
    let mut each_within = |range: AgeRange, visit: &mut dyn FnMut(u128)| {
        each(&mut |(stamp, id)| {
            let age = u128::from(stamp) << 64 | u128::from(id);
            if (range.low..=range.high).contains(&age) {
                visit(age);
            }
        })
    };
    while range.documents > memory.ages {
        let range_bits = u128::BITS - (range.high - range.low).leading_zeros();
        let shift = range_bits.saturating_sub(memory.bucket_bits);
        let mut buckets = vec![AgeRange::NONE; 1 << memory.bucket_bits];
        let mut counted = Ok(());
        each_within(range, &mut |age| match at_mut(
            &mut buckets,
            ((age - range.low) >> shift) as usize,
        ) {
            Ok(bucket) => bucket.add(age),
            Err(error) => counted = Err(error),
        })?;
        counted?;
        let found = buckets.into_iter().find(|bucket| {
            let is_found = rank < bucket.documents;
            if !is_found {
                rank -= bucket.documents;
            }
            is_found
        });
        range = found.ok_or_else(too_few)?;
    }
    let mut ages = Vec::new();
    each_within(range, &mut |age| ages.push(age))?;
    ages.sort_unstable();
    let place = usize::try_from(rank).map_err(|_| too_few())?;
    let age = ages.get(place).ok_or_else(too_few)?;
    Ok(((age >> 64) as u64, *age as u64))
}

fn too_few() -> Error {
    let detail = "more documents than the table documents has rows of";
    Error::corrupt("table meta, row state", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the ages at several ranks against sorting, and returns the number of passes.
    fn passes(stamps: &[u64], memory: Memory) -> u32 {
        let ages: Vec<Age> = stamps.iter().copied().zip(0..).collect();
        let mut sorted = ages.clone();
        sorted.sort_unstable();
        let count = ages.len();
        let mut most = 0;
        for rank in [0, 1, count / 3, count / 2, count - 2, count - 1] {
            let mut passes = 0;
            let found = age_of_rank(rank as u64, count as u64, memory, &mut |visit| {
                passes += 1;
                ages.iter().for_each(|age| visit(*age));
                Ok(())
            });
            assert_eq!(found.unwrap(), sorted[rank], "{rank} of {count}");
            most = most.max(passes);
        }
        most
    }

    fn mixed(number: u64) -> u64 {
        let z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^ (z >> 27)
    }

    #[test]
    fn newest_finds_the_same_rank_as_sorting() {
        let of = |stamp: fn(u64) -> u64| (0..1_000).map(stamp).collect::<Vec<u64>>();
        let distributions = [
            of(|_| 0),
            of(|_| u64::MAX),
            of(|number| number % 2 * u64::MAX),
            of(|number| number),
            of(|number| u64::MAX - number),
            of(mixed),
            of(|number| 1 << (number % 64)),
            of(|number| 1_700_000_000 + mixed(number) % 1_000),
            // All but a few are the same, in the midst of the widest range.
            of(|number| match number {
                7 => 0,
                8 => u64::MAX,
                _ => (1 << 40) + number / 999,
            }),
        ];
        for stamps in &distributions {
            for (bucket_bits, ages) in [(1, 1), (1, 3), (4, 1), (3, 50), (16, 10), (2, 1_000)] {
                let most = passes(stamps, Memory { bucket_bits, ages });
                // One pass for the smallest and greatest, one for each division of the range, and a
                // last one.
                let divisions = 128_u32.div_ceil(bucket_bits);
                assert!(
                    most <= divisions + 2,
                    "{most} with {bucket_bits} and {ages}"
                );
            }
        }
        assert_eq!(passes(&of(mixed), Memory::default()), 1);
    }

    #[test]
    fn newest_reports_missing_documents_as_damage() {
        for (bucket_bits, ages) in [(1, 1), (1, 100)] {
            let found = age_of_rank(5, 10, Memory { bucket_bits, ages }, &mut |visit| {
                (0..4).for_each(|id| visit((9, id)));
                Ok(())
            });
            assert!(matches!(found, Err(Error::Corrupt { .. })));
        }
    }
}
