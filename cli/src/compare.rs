//! `eval --compare`: error and time of several kinds and sizes of signatures.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use resemblance::{MinHashSchema, Signature, Sketcher};
use xxhash_rust::xxh3::xxh3_64;

use super::Context;
use super::arguments::FormatOptions;
use super::chart::{Axis, Chart, Mark, Series};
use super::eval_tally::Errors;
use super::exact_join::ExactJoin;
use super::failure::{Failure, Result};
use super::kinds::{KINDS, Kind, signature_bytes, variance};
use super::progress::Progress;
use super::results::{Column, Results, Value};
use super::sample::Sample;

/// What a document takes for the largest signature.
pub(crate) const MOST_SIGNATURE_BYTES: u64 = 8 * 1024;
/// More pairs than this are sampled.
const MOST_PAIRS: usize = 100_000;
/// The similarities at which an estimate errs most.
const HALF: std::ops::RangeInclusive<f64> = 0.4..=0.6;

/// More features than any two documents have together.
const LARGE_UNION: f64 = 1e18;

/// Two documents and their exact similarity, below 1: equal sets have equal signatures.
#[derive(Clone, Copy, Debug)]
struct Pair {
    a: usize,
    b: usize,
    similarity: f64,
    /// The features of both together.
    union: f64,
}

/// The pairs of a sample.
struct Pairs {
    pairs: Vec<Pair>,
    /// How many there are in all.
    count: u64,
}

impl Pairs {
    /// Those from the floor on; of too many those whose numbers hash lowest.
    fn find(context: &Context, sample: &Sample, floor: f64) -> Result<Self> {
        let mut join = ExactJoin::new(&sample.features, floor);
        let mut progress = Progress::new("comparing exactly", context.messages.quiet);
        let (mut document, mut count) = (0, 0);
        let mut kept: BTreeSet<(u64, usize, usize, u64)> = BTreeSet::new();
        while let Some(partners) = join.advance() {
            context.interrupt.check()?;
            for partner in partners.iter().filter(|partner| partner.similarity < 1.0) {
                count += 1;
                let places = [partner.document, document].map(|place| (place as u64).to_le_bytes());
                let hash = xxh3_64(&places.concat());
                kept.insert((
                    hash,
                    partner.document,
                    document,
                    partner.similarity.to_bits(),
                ));
                if kept.len() > MOST_PAIRS {
                    kept.pop_last();
                }
            }
            document += 1;
            progress.update(document as u64, 0);
        }
        progress.clear();
        let count_of = |place: usize| sample.features.get(place).map_or(0, Vec::len);
        let pairs = kept.into_iter().map(|(_, a, b, similarity)| {
            let similarity = f64::from_bits(similarity);
            let features = (count_of(a) + count_of(b)) as f64;
            Pair {
                a,
                b,
                similarity,
                union: (features / (1.0 + similarity)).round(),
            }
        });
        Ok(Self {
            pairs: pairs.collect(),
            count,
        })
    }
}

/// What came of one kind and size.
struct Row {
    kind: &'static Kind,
    minhash: MinHashSchema,
    seeds: u64,
    all: Errors,
    half: Errors,
    /// Of the documents in the pairs.
    features: u64,
    /// To sketch them, with the seed that took least: others had to wait for something else.
    time: Duration,
}

impl Row {
    fn size(&self) -> u16 {
        self.minhash.values()
    }

    /// The theory's greatest deviation, over all similarities.
    fn worst_theory(&self) -> f64 {
        let steps = (0..=1_000).map(|step| f64::from(step) / 1_000.0);
        let variances = steps.map(|similarity| variance(&self.minhash, similarity, LARGE_UNION));
        variances.fold(0.0, f64::max).sqrt()
    }

    fn nanoseconds(&self) -> Option<f64> {
        (self.features > 0).then(|| self.time.as_nanos() as f64 / self.features as f64)
    }
}

/// A line for each kind and size.
pub(crate) struct Table {
    rows: Vec<Row>,
}

/// Compares all kinds over the pairs of a sample from the floor on.
pub(crate) fn run(context: &Context, sample: &Sample, floor: f64, seeds: u64) -> Result<Table> {
    let pairs = Pairs::find(context, sample, floor)?;
    if pairs.pairs.is_empty() {
        return Err(Failure::bad_input(format!(
            "--compare: no two documents have a similarity of {floor} up to below 1, so there is \
             nothing to estimate"
        )));
    }
    let (kept, count) = (pairs.pairs.len(), pairs.count);
    context.messages.note(format!(
        "{kept} of {count} pairs of similarity {floor} up to below 1, {seeds} seeds"
    ));
    let documents: BTreeSet<usize> = pairs.pairs.iter().flat_map(|p| [p.a, p.b]).collect();
    let mut progress = Progress::new("sketching", context.messages.quiet);
    let mut rows = Vec::new();
    for kind in KINDS {
        for &size in kind.sizes {
            let Some(minhash) = kind.schema(size, 1)?.minhash() else {
                continue;
            };
            let mut row = Row {
                kind,
                minhash,
                seeds,
                all: Errors::default(),
                half: Errors::default(),
                features: 0,
                time: Duration::MAX,
            };
            for seed in 1..=seeds {
                let sketcher = kind.schema(size, seed)?.sketcher();
                let sketched = Sketched {
                    context,
                    sample,
                    sketcher,
                };
                let signatures = sketched.make(&documents, &mut row, &mut progress)?;
                row.add(&pairs.pairs, &signatures)?;
            }
            rows.push(row);
        }
    }
    progress.clear();
    Ok(Table { rows })
}

/// What signatures are made of and with.
struct Sketched<'a> {
    context: &'a Context,
    sample: &'a Sample,
    sketcher: Sketcher,
}

impl Sketched<'_> {
    /// The signatures of documents at their places, with the time that it took on this thread.
    fn make(
        &self,
        documents: &BTreeSet<usize>,
        row: &mut Row,
        progress: &mut Progress,
    ) -> Result<Vec<Option<Signature>>> {
        let mut signatures = vec![None; self.sample.len()];
        let (mut feature_count, mut time) = (0, Duration::ZERO);
        for &document in documents {
            self.context.interrupt.check()?;
            progress.tick();
            let features = self.sample.features.get(document);
            let Some((features, place)) = features.zip(signatures.get_mut(document)) else {
                continue;
            };
            let start = Instant::now();
            let signature = self.sketcher.hashes(features.iter().copied())?;
            time += start.elapsed();
            feature_count += features.len() as u64;
            *place = Some(row.kind.kept(signature)?);
        }
        row.features = feature_count;
        row.time = row.time.min(time);
        Ok(signatures)
    }
}

impl Row {
    fn add(&mut self, pairs: &[Pair], signatures: &[Option<Signature>]) -> Result<()> {
        let at = |place: usize| signatures.get(place).and_then(Option::as_ref);
        for pair in pairs {
            let Some((a, b)) = at(pair.a).zip(at(pair.b)) else {
                continue;
            };
            // Not brought into [0, 1], which would hide errors of few bits.
            let error = a.jaccard_unclamped(b)? - pair.similarity;
            let variance = variance(&self.minhash, pair.similarity, pair.union);
            self.all.add(error, variance);
            if HALF.contains(&pair.similarity) {
                self.half.add(error, variance);
            }
        }
        Ok(())
    }
}

impl Table {
    pub(crate) fn write(&self, options: &FormatOptions) -> Result<()> {
        let columns = [
            "kind",
            "values",
            "signature_bytes",
            "seeds",
            "pairs",
            "mean_error",
            "deviation",
            "theory",
            "half_pairs",
            "half_deviation",
            "half_theory",
            "worst_theory",
            "feature_nanoseconds",
        ];
        let mut results = Results::new(options, columns.map(Column::new).to_vec())?;
        let number = |value: Option<f64>| value.map_or(Value::Similarity(None), Value::Significant);
        for row in &self.rows {
            results.row(&[
                Value::Text(row.kind.name),
                Value::Count(row.size().into()),
                Value::Count(signature_bytes(&row.minhash)),
                Value::Count(row.seeds),
                Value::Count(row.all.count / row.seeds),
                number(row.all.mean()),
                number(row.all.deviation()),
                number(row.all.theory()),
                Value::Count(row.half.count / row.seeds),
                number(row.half.deviation()),
                number(row.half.theory()),
                Value::Significant(row.worst_theory()),
                number(row.nanoseconds()),
            ])?;
        }
        results.finish()
    }

    /// Error and time against the number of values, and error against bytes.
    pub(crate) fn charts(&self) -> Vec<(&'static str, Chart)> {
        let error = |row: &Row| row.all.deviation();
        let time = |row: &Row| row.nanoseconds();
        let size = |row: &Row| f64::from(row.size());
        let bytes = |row: &Row| signature_bytes(&row.minhash) as f64;
        let whole = |kind: &Kind| !kind.is_cut();
        // The families of hash functions differ in nothing that shows here.
        let kept = |kind: &Kind| kind.is_cut() || ["minhash", "bottom-k"].contains(&kind.name);
        let deviation = "standard deviation";
        let values = "values in a signature";
        let mut by_size = self.chart(
            ("Error of the estimates", values, deviation),
            &whole,
            &size,
            &error,
        );
        for kind in KINDS.iter().filter(|kind| whole(kind)) {
            let theory = self.points(kind, &size, &|row| row.all.theory());
            let is_known = |series: &Series| series.mark == Mark::Line && series.points == theory;
            if !by_size.series.iter().any(is_known) {
                by_size.series.push(Series {
                    name: format!("{} in theory", kind.name),
                    points: theory,
                    mark: Mark::Line,
                });
            }
        }
        let names = ("Error of the estimates", "bytes of a signature", deviation);
        let by_bytes = self.chart(names, &kept, &bytes, &error);
        let names = (
            "Time to sketch",
            values,
            "nanoseconds a feature, one thread",
        );
        let times = self.chart(names, &whole, &size, &time);
        vec![
            ("error-by-size.svg", by_size),
            ("error-by-bytes.svg", by_bytes),
            ("time-by-size.svg", times),
        ]
    }

    fn points(
        &self,
        kind: &Kind,
        x: &dyn Fn(&Row) -> f64,
        y: &dyn Fn(&Row) -> Option<f64>,
    ) -> Vec<(f64, f64)> {
        let rows = self.rows.iter().filter(|row| row.kind.name == kind.name);
        // Without any error there is no place on an axis of doublings.
        let points = rows.filter_map(|row| Some((x(row), y(row).filter(|y| *y > 0.0)?)));
        points.collect()
    }

    /// A series for each of some kinds.
    fn chart(
        &self,
        (title, x_name, y_name): (&str, &str, &str),
        is_shown: &dyn Fn(&Kind) -> bool,
        x: &dyn Fn(&Row) -> f64,
        y: &dyn Fn(&Row) -> Option<f64>,
    ) -> Chart {
        let rows = || self.rows.iter().filter(|row| is_shown(row.kind));
        let kinds = KINDS.iter().filter(|kind| is_shown(kind));
        let series = kinds.map(|kind| Series {
            name: kind.name.into(),
            points: self.points(kind, x, y),
            mark: Mark::Both,
        });
        Chart {
            title: title.into(),
            x: Axis::doublings(x_name, rows().map(x)),
            y: Axis::doublings(y_name, rows().filter_map(y)),
            series: series.collect(),
        }
    }
}
