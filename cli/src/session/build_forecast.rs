//! What a long build will take, told while there is time to think again.

use std::fmt;
use std::time::{Duration, Instant};

use resemblance::{BuildEstimate, BulkOptions, Schema, Signature};

use super::context::Context;
use crate::failure::Result;
use crate::output::BinarySize;

/// How long documents are read before anything is said of the rest.
const SAMPLE: Duration = Duration::from_secs(1);
/// What takes less is not worth a word.
const SHORT: Duration = Duration::from_secs(10);
/// Writing one posting after all is read, about.
const NANOSECONDS_PER_POSTING: u64 = 60;
/// Sync of the store, about.
const BYTES_PER_SECOND: u64 = 400 << 20;

/// Watches the first documents of a corpus whose size is known.
pub(crate) struct BuildForecaster {
    started: Instant,
    total_bytes: Option<u64>,
    stored_bytes: u64,
    kept_hashes: u64,
    documents: u64,
}

impl BuildForecaster {
    /// `total_bytes`: of the corpus as it lies on disk; `None` if that is unknown.
    pub(crate) fn new(context: &Context, total_bytes: impl FnOnce() -> Option<u64>) -> Self {
        Self {
            started: Instant::now(),
            total_bytes: if context.messages.quiet {
                None
            } else {
                total_bytes()
            },
            stored_bytes: 0,
            kept_hashes: 0,
            documents: 0,
        }
    }

    /// Takes note of a document that is stored with so many bytes of key and payload and this signature, until enough
    /// is known: then says once what to expect, if it is much. `read_bytes`: of the corpus.
    pub(crate) fn document(
        &mut self,
        context: &Context,
        (schema, options): (&Schema, &BulkOptions),
        (stored_bytes, signature): (usize, &Signature),
        read_bytes: u64,
    ) -> Result<()> {
        let Some(total_bytes) = self.total_bytes else {
            return Ok(());
        };
        self.documents += 1;
        self.stored_bytes += stored_bytes as u64;
        self.kept_hashes += signature
            .kept_hashes()
            .map_or(0, |hashes| hashes.len() as u64);
        if !self.documents.is_multiple_of(64) || self.started.elapsed() < SAMPLE {
            return Ok(());
        }
        self.total_bytes = None;
        let sample = BuildSample {
            documents: self.documents,
            stored_bytes: self.stored_bytes,
            kept_hashes: self.kept_hashes,
            read_bytes,
            total_bytes,
            time: self.started.elapsed(),
        };
        let forecast = sample.forecast(schema, options)?;
        if forecast.time >= SHORT {
            context.messages.note(forecast);
        }
        Ok(())
    }
}

/// The first documents of a corpus.
struct BuildSample {
    documents: u64,
    stored_bytes: u64,
    kept_hashes: u64,
    read_bytes: u64,
    total_bytes: u64,
    time: Duration,
}

impl BuildSample {
    fn forecast(&self, schema: &Schema, options: &BulkOptions) -> Result<BuildForecast> {
        let share =
            self.total_bytes as f64 / self.read_bytes.clamp(1, self.total_bytes.max(1)) as f64;
        let documents = (self.documents as f64 * share) as u64;
        let stored_bytes = self.stored_bytes / self.documents.max(1);
        let kept = self.kept_hashes.div_ceil(self.documents.max(1));
        let options = options.clone().kept_hashes(kept);
        let needs = options.estimate(schema, documents, stored_bytes, 0)?;
        let tables = schema.simhash().map_or(0, |simhash| simhash.table_count());
        let bands = schema
            .minhash()
            .map_or(0, |minhash| usize::from(minhash.bands()));
        let postings = documents.saturating_mul((1 + bands + tables) as u64 + kept);
        let writing = Duration::from_nanos(postings.saturating_mul(NANOSECONDS_PER_POSTING))
            + Duration::from_secs(needs.disk_bytes / BYTES_PER_SECOND);
        Ok(BuildForecast {
            sample: self.documents,
            documents,
            time: self.time.mul_f64(share) + writing,
            needs,
        })
    }
}

/// What to expect.
struct BuildForecast {
    sample: u64,
    documents: u64,
    time: Duration,
    needs: BuildEstimate,
}

impl fmt::Display for BuildForecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let needs = &self.needs;
        write!(
            f,
            "expecting about {} documents: {}, {} of memory, {} of disk for the store",
            self.documents,
            TimeSpan(self.time),
            BinarySize(needs.memory_bytes),
            BinarySize(needs.disk_bytes)
        )?;
        if needs.temporary_bytes > 0 {
            let size = BinarySize(needs.temporary_bytes);
            write!(f, " and {size} for temporary files")?;
        }
        write!(f, " (an estimate from the first {} documents)", self.sample)
    }
}

/// Seconds, minutes or hours.
struct TimeSpan(Duration);

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_secs() {
            seconds @ ..120 => write!(f, "{seconds} s"),
            seconds @ 120..7_200 => write!(f, "{} min", seconds / 60),
            seconds => write!(f, "{:.1} h", seconds as f64 / 3600.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use resemblance::MinHash;

    #[test]
    fn a_sample_is_drawn_out() {
        let schema = Schema::builder()
            .minhash(MinHash::new(128))
            .build()
            .unwrap();
        let options = BulkOptions::new();
        let sample = BuildSample {
            documents: 1_000,
            stored_bytes: 20_000,
            kept_hashes: 0,
            read_bytes: 4 << 20,
            total_bytes: 40 << 30,
            time: Duration::from_secs(1),
        };
        let forecast = sample.forecast(&schema, &options).unwrap();
        assert_eq!(forecast.documents, 10_240_000);
        // Reading takes 10,240 seconds, the rest is short.
        assert!((10_240..10_400).contains(&forecast.time.as_secs()));
        let expected = options.estimate(&schema, 10_240_000, 20, 0).unwrap();
        assert_eq!(forecast.needs, expected);
        let text = forecast.to_string();
        for part in [
            "about 10240000 documents: 2.8 h, 352 MiB of memory, ",
            " MiB of disk for the store and ",
            " MiB for temporary files (an estimate from the first 1000 documents)",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let all = BuildSample {
            read_bytes: 1 << 40,
            total_bytes: 1,
            ..sample
        };
        let forecast = all.forecast(&schema, &options).unwrap();
        assert_eq!(
            (forecast.documents, forecast.needs.temporary_bytes),
            (1_000, 0)
        );
        assert!(!forecast.to_string().contains("temporary"));
    }

    #[test]
    fn spans_are_short() {
        let span = |seconds| TimeSpan(Duration::from_secs(seconds)).to_string();
        assert_eq!(
            [span(119), span(120), span(7_199), span(9_000)],
            ["119 s", "2 min", "119 min", "2.5 h"]
        );
    }
}
