//! Latencies: a histogram in which all threads record, and the values that its readers get.

use std::fmt;
use std::time::Duration;

use redb_verified::{Counter, Histogram};

/// Durations of one kind of operation, counted by their length.
///
/// ```
/// use std::time::Duration;
/// # use resemblance::{Document, MinHash, Schema, Store};
/// # let store = Store::in_memory(Schema::builder().minhash(MinHash::new(64)).build()?)?;
/// # store.insert(Document::without_key(), &store.sketcher().hashes([1])?)?;
/// let commits = store.metrics().commit_latencies;
/// assert_eq!(commits.count, 1);
/// assert!(commits.quantile(0.99) <= commits.longest);
/// assert_eq!(commits.mean(), Some(commits.total));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Latencies {
    /// The number of latencies, which is the sum of the buckets.
    pub count: u64,
    /// The sum of all latencies.
    pub total: Duration,
    /// The longest latency.
    pub longest: Duration,
    /// The number of latencies by length. Bucket 0 counts those below one microsecond, bucket i
    /// those from 2^(i - 1) to less than 2^i microseconds. Bucket 31 also counts all longer ones,
    /// from 18 minutes.
    pub buckets: [u64; 32],
}

impl Latencies {
    /// Returns the recorded values of a histogram.
    pub(super) fn of(histogram: &Histogram) -> Self {
        let buckets = histogram.buckets.each_ref().map(Counter::get);
        Self {
            count: buckets.iter().sum(),
            total: Duration::from_nanos(histogram.total_nanos.get()),
            longest: Duration::from_nanos(histogram.longest_nanos.get()),
            buckets,
        }
    }

    /// Returns the duration that every latency in a bucket is less than; `None` for the last bucket,
    /// which has no end, and for an index above it.
    pub(super) fn bucket_end(bucket: usize) -> Option<Duration> {
        let exponent = u32::try_from(bucket).ok().filter(|i| *i < 31)?;
        Some(Duration::from_micros(1 << exponent))
    }

    /// Returns the mean latency, or `None` without latencies.
    #[must_use]
    pub fn mean(&self) -> Option<Duration> {
        let nanos = self.total.as_nanos().checked_div(self.count.into())?;
        u64::try_from(nanos).ok().map(Duration::from_nanos)
    }

    /// Returns an upper bound of a quantile, for `share` from 0 to 1. It is the end of the bucket
    /// that contains the quantile, or the longest latency if that is shorter. From a microsecond to
    /// 18 minutes, the bound is at most twice the quantile. It is zero without latencies.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = (share * self.count as f64).ceil().max(1.0);
        let mut up_to = 0_u64;
        let bucket = self.buckets.iter().position(|count| {
            up_to = up_to.saturating_add(*count);
            up_to as f64 >= rank
        });
        let end = bucket.and_then(Self::bucket_end);
        end.map_or(self.longest, |end| end.min(self.longest))
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.count)?;
        let Some(mean) = self.mean() else {
            return Ok(());
        };
        let (within, longest) = (self.quantile(0.99), self.longest);
        write!(
            f,
            ", mean {mean:.1?}, 99 % within {within:.1?}, longest {longest:.1?}"
        )
    }
}
