//! Finds the n-th document by age, among any number of documents, in bounded memory.
//!
//! It counts histograms of stamps over ever smaller ranges, as a selection must that cannot keep
//! its input (Munro and Paterson, "Selection and sorting with limited storage", 1980): each pass
//! narrows the range that has the wanted rank, until all of it fits in memory or has one stamp.

use crate::error::{Error, Result};

/// The stamp and id of a document. The smaller of two ages is the older one.
pub(super) type Age = (u64, u64);

/// Passes all ages to a closure, ascending by id.
pub(super) type EachAge<'e> = dyn FnMut(&mut dyn FnMut(Age)) -> Result<()> + 'e;

/// The bounds of memory during one pass over all ages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    /// Ranges of stamps that are counted, 8 bytes each; at least two.
    buckets: usize,
    /// Ages that are held, 16 bytes each.
    ages: u64,
}

impl Default for Memory {
    /// 512 KiB of counters and 1 MiB of ages.
    fn default() -> Self {
        Self {
            buckets: 1 << 16,
            ages: 1 << 16,
        }
    }
}

/// The range of stamps that contains the age of the requested rank.
#[derive(Clone, Copy, Debug)]
struct Stamps {
    low: u64,
    high: u64,
    /// Number of documents with a stamp in the range.
    documents: u64,
    /// The requested rank among these, from 0.
    rank: u64,
}

impl Stamps {
    fn contains(&self, stamp: u64) -> bool {
        (self.low..=self.high).contains(&stamp)
    }
}

/// Returns the age that exactly `rank` of all `documents` are older than.
///
/// # Errors
/// [`Error::Corrupt`] if there are fewer documents, and those of `each`.
pub(super) fn age_of_rank(
    rank: u64,
    documents: u64,
    memory: Memory,
    each: &mut EachAge<'_>,
) -> Result<Age> {
    let mut stamps = Stamps {
        low: 0,
        high: u64::MAX,
        documents,
        rank,
    };
    if documents > memory.ages {
        let (mut low, mut high) = (u64::MAX, 0);
        each(&mut |(stamp, _)| {
            low = low.min(stamp);
            high = high.max(stamp);
        })?;
        (stamps.low, stamps.high) = (low, high);
    }
    while stamps.documents > memory.ages && stamps.low < stamps.high {
        stamps = narrow(stamps, memory, each)?;
    }
    if stamps.documents <= memory.ages {
        find_by_sorting(stamps, each)
    } else {
        find_by_counting(stamps, each)
    }
}

/// Counts documents by stamp, and keeps the part of the range that has the rank.
fn narrow(stamps: Stamps, memory: Memory, each: &mut EachAge<'_>) -> Result<Stamps> {
    let Stamps { low, high, .. } = stamps;
    let width = (high - low) / memory.buckets as u64 + 1;
    let mut counts = vec![0_u64; memory.buckets];
    each(&mut |(stamp, _)| {
        if stamps.contains(stamp) {
            let bucket = usize::try_from((stamp - low) / width).unwrap_or(usize::MAX);
            if let Some(count) = counts.get_mut(bucket) {
                *count += 1;
            }
        }
    })?;
    let (mut rank, mut low) = (stamps.rank, low);
    for documents in counts {
        if rank < documents {
            return Ok(Stamps {
                low,
                high: low.saturating_add(width - 1).min(high),
                documents,
                rank,
            });
        }
        rank -= documents;
        low = low.saturating_add(width);
    }
    Err(too_few())
}

/// Returns the age of the requested rank by sorting the ages of few documents.
fn find_by_sorting(stamps: Stamps, each: &mut EachAge<'_>) -> Result<Age> {
    let mut ages = Vec::new();
    each(&mut |age| {
        if stamps.contains(age.0) {
            ages.push(age);
        }
    })?;
    ages.sort_unstable();
    let rank = usize::try_from(stamps.rank).unwrap_or(usize::MAX);
    ages.get(rank).copied().ok_or_else(too_few)
}

/// Returns the age of the requested rank among many documents with one stamp, by counting: they
/// come in the order of their ids.
fn find_by_counting(stamps: Stamps, each: &mut EachAge<'_>) -> Result<Age> {
    let (mut before, mut found) = (0, None);
    each(&mut |age| {
        if stamps.contains(age.0) {
            if before == stamps.rank {
                found = Some(age);
            }
            before += 1;
        }
    })?;
    found.ok_or_else(too_few)
}

fn too_few() -> Error {
    let detail = "more documents than the table documents has rows of";
    Error::corrupt("table meta, row state", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranks that are asked for, and what they must be; the passes that were made.
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
    fn any_stamps_are_ranked_as_if_they_were_sorted() {
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
            for (buckets, ages) in [(2, 0), (2, 3), (16, 1), (7, 50), (1 << 16, 10), (4, 1_000)] {
                let most = passes(stamps, Memory { buckets, ages });
                // The least and greatest, a pass for each time that the range is divided, and the last.
                let divisions = 64_u32.div_ceil(buckets.ilog2());
                assert!(most <= divisions + 2, "{most} with {buckets} and {ages}");
            }
        }
        assert_eq!(passes(&of(mixed), Memory::default()), 1);
    }

    #[test]
    fn fewer_documents_than_there_should_be_are_damage() {
        for (buckets, ages) in [(2, 0), (2, 100)] {
            let found = age_of_rank(5, 10, Memory { buckets, ages }, &mut |visit| {
                (0..4).for_each(|id| visit((9, id)));
                Ok(())
            });
            assert!(matches!(found, Err(Error::Corrupt { .. })));
        }
    }
}
