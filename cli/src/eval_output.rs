//! What an evaluation found, as sections of rows and as charts.

use std::path::Path;

use super::Context;
use super::arguments::{Format, FormatOptions};
use super::chart::{Axis, Chart, Mark, Series};
use super::eval_tally::{Errors, MinHashTally, Returned, SimHashTally, Step, step_name};
use super::failure::{Failure, Result};
use super::results::{Column, Results, Value};
use super::sample::Sample;

/// A table with a title; each row is an item with a value for every measure.
pub(crate) struct Section<'a> {
    name: &'static str,
    title: String,
    measures: Vec<&'static str>,
    rows: Vec<(String, Vec<Value<'a>>)>,
}

/// Writes sections: tables with titles, or one measure a line.
pub(crate) fn write(options: &FormatOptions, sections: &[Section<'_>]) -> Result<()> {
    let columns = ["section", "item", "measure", "value"].map(Column::new);
    let mut results = Results::new(options, columns.to_vec())?;
    if results.format() == Format::Table {
        return sections.iter().try_for_each(write_table);
    }
    for section in sections {
        for (item, values) in &section.rows {
            for (measure, value) in section.measures.iter().zip(values) {
                results.row(&[
                    Value::Text(section.name),
                    Value::Text(item),
                    Value::Text(measure),
                    *value,
                ])?;
            }
        }
    }
    results.finish()
}

fn write_table(section: &Section<'_>) -> Result<()> {
    let options = FormatOptions {
        format: Some(Format::Table),
        header: false,
    };
    Results::new(&options, Vec::new())?.paragraph(&format!("\n{}", section.title))?;
    let names = std::iter::once(section.name).chain(section.measures.iter().copied());
    let mut results = Results::new(&options, names.map(Column::new).collect())?;
    for (item, values) in &section.rows {
        let mut row = vec![Value::Text(item)];
        row.extend(values);
        results.row(&row)?;
    }
    results.finish()
}

fn share(value: Option<f64>) -> Value<'static> {
    value.map_or(Value::Similarity(None), Value::Significant)
}

/// The sections of MinHash.
pub(crate) fn minhash_sections<'a>(
    tally: &MinHashTally,
    sample: &'a Sample,
    floor: f64,
) -> Vec<Section<'a>> {
    vec![
        minhash_summary(tally),
        minhash_steps(tally, floor),
        estimate_steps(tally),
        missed(tally, sample),
    ]
}

fn minhash_summary(tally: &MinHashTally) -> Section<'static> {
    let (near, minhash) = (&tally.near, tally.minhash);
    let returned = tally.all_returned();
    let values = vec![
        Value::Count(near.pairs),
        share(near.share(near.candidates as f64)),
        share(near.share(near.expected)),
        share(near.share(near.returned as f64)),
        Value::Count(returned.pairs),
        share(returned.precision()),
        Value::Count(tally.candidates),
    ];
    Section {
        name: "minhash",
        title: format!(
            "MinHash: {} values, {} bands of {} rows, {:.4} expected to be found at threshold {}. \
             Of the pairs whose exact similarity reaches it: candidate_recall are candidates, \
             expected is what theory says of them, recall are returned. precision: the share of \
             returned pairs whose exact similarity reaches the threshold",
            minhash.values(),
            minhash.bands(),
            minhash.rows(),
            minhash.recall_at_threshold(),
            minhash.threshold()
        ),
        measures: vec![
            "pairs",
            "candidate_recall",
            "expected",
            "recall",
            "returned",
            "precision",
            "candidates",
        ],
        rows: vec![(format!("{}", minhash.threshold()), values)],
    }
}

fn error_values(errors: &Errors) -> [Value<'static>; 3] {
    [errors.mean(), errors.deviation(), errors.theory()].map(share)
}

fn minhash_steps(tally: &MinHashTally, floor: f64) -> Section<'static> {
    let steps = tally.steps.iter().enumerate();
    let rows = steps
        .filter(|(_, step)| step.pairs > 0)
        .map(|(place, step)| {
            let mut values = vec![
                Value::Count(step.pairs),
                Value::Count(step.candidates),
                share(step.share(step.candidates as f64)),
                share(step.share(step.expected)),
                Value::Count(step.returned),
                share(step.share(step.returned as f64)),
            ];
            values.extend(error_values(&step.errors));
            (step_name(place), values)
        });
    Section {
        name: "exact",
        title: format!(
            "By exact similarity from {floor} on ({} candidates lie below): candidates, what theory \
             expects, what was returned; error of the estimates: its mean, its deviation, and what \
             theory expects of that",
            tally.candidates_below
        ),
        measures: vec![
            "pairs",
            "candidates",
            "candidate_recall",
            "expected",
            "returned",
            "recall",
            "mean_error",
            "deviation",
            "theory",
        ],
        rows: rows.collect(),
    }
}

fn estimate_steps(tally: &MinHashTally) -> Section<'static> {
    let steps = tally.returned.iter().enumerate();
    let rows = steps
        .filter(|(_, step)| step.pairs > 0)
        .map(|(place, step)| {
            let values = vec![
                Value::Count(step.pairs),
                Value::Count(step.right),
                share(step.precision()),
            ];
            (step_name(place), values)
        });
    Section {
        name: "estimate",
        title: "By estimated similarity: what was returned, and how much of it reaches the \
                threshold exactly"
            .into(),
        measures: vec!["returned", "right", "precision"],
        rows: rows.collect(),
    }
}

fn missed<'a>(tally: &MinHashTally, sample: &'a Sample) -> Section<'a> {
    let key = |place: usize| Value::Key(sample.keys.get(place).map_or(&[][..], Vec::as_slice));
    let rows: Vec<_> = (1..)
        .zip(tally.missed.iter())
        .map(|(number, missed): (u64, _)| {
            let reason = if missed.is_candidate {
                "estimate"
            } else {
                "no shared band"
            };
            let values = vec![
                key(missed.a),
                key(missed.b),
                Value::Similarity(Some(missed.similarity)),
                Value::Similarity(missed.estimate),
                Value::Text(reason),
            ];
            (number.to_string(), values)
        })
        .collect();
    let others = tally.missed.count - rows.len() as u64;
    Section {
        name: "missed",
        title: format!(
            "Pairs at the threshold or above that were not returned: {}, the most similar first; \
             {others} more are not listed (--list N)",
            tally.missed.count
        ),
        measures: vec!["key_a", "key_b", "similarity", "estimate", "reason"],
        rows,
    }
}

/// The sections of SimHash.
pub(crate) fn simhash_sections(tally: &SimHashTally) -> Vec<Section<'static>> {
    let distances = tally.distances.iter().enumerate();
    let distance_rows = distances.map(|(distance, &(pairs, returned))| {
        let step = Step {
            pairs,
            ..Step::default()
        };
        let values = vec![
            Value::Count(pairs),
            Value::Count(returned),
            share(step.share(returned as f64)),
        ];
        (distance.to_string(), values)
    });
    let steps = tally.steps.iter().enumerate();
    let step_rows = steps
        .filter(|(_, step)| step.pairs > 0)
        .map(|(place, step)| {
            let values = vec![
                Value::Count(step.pairs),
                Value::Count(step.returned),
                share(step.share(step.returned as f64)),
                share(step.share(step.expected)),
            ];
            (step_name(place), values)
        });
    vec![
        Section {
            name: "distance",
            title: format!(
                "SimHash: {}. By distance: the pairs by comparing all with all, and what was \
                 returned; {} were returned that are not among them. The queries of all documents \
                 looked at {} candidates",
                tally.design, tally.wrong, tally.candidates
            ),
            measures: vec!["pairs", "returned", "recall"],
            rows: distance_rows.collect(),
        },
        Section {
            name: "within",
            title: format!(
                "By exact similarity: the pairs that come within distance {}, and what theory \
                 expects of unweighted sets of equal size",
                tally.design.max_distance()
            ),
            measures: vec!["pairs", "within", "share", "expected"],
            rows: step_rows.collect(),
        },
    ]
}

/// Charts in a folder.
pub(crate) struct Charts<'a> {
    pub(crate) context: &'a Context,
    pub(crate) folder: &'a Path,
    pub(crate) force: bool,
}

impl Charts<'_> {
    pub(crate) fn write(&self, charts: &[(&str, Chart)]) -> Result<()> {
        let folder = self.folder;
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::io(format!("cannot make {}", folder.display()), &e))?;
        for (name, chart) in charts {
            chart.write(&folder.join(name), self.force)?;
        }
        let names: Vec<&str> = charts.iter().map(|(name, _)| *name).collect();
        let (names, folder) = (names.join(", "), folder.display());
        self.context
            .messages
            .note(format!("drew {names} in {folder}"));
        Ok(())
    }
}

/// Points at the mean similarity of each step.
fn points(steps: &[Step], value: impl Fn(&Step) -> Option<f64>) -> Vec<(f64, f64)> {
    let points = steps
        .iter()
        .map(|step| step.mean_similarity().zip(value(step)));
    points.flatten().collect()
}

fn series(name: &str, points: Vec<(f64, f64)>, mark: Mark) -> Series {
    Series {
        name: name.into(),
        points,
        mark,
    }
}

/// Recall, precision and error against similarity.
pub(crate) fn minhash_charts(tally: &MinHashTally) -> Vec<(&'static str, Chart)> {
    let minhash = tally.minhash;
    let mut recall = Chart {
        title: format!(
            "What is found: {} values, {} bands of {} rows",
            minhash.values(),
            minhash.bands(),
            minhash.rows()
        ),
        x: Axis::share("exact Jaccard similarity"),
        y: Axis::share("share of the pairs"),
        series: Vec::new(),
    };
    recall.curve("candidates in theory", |s| minhash.probability(s));
    let candidates = points(&tally.steps, |step| step.share(step.candidates as f64));
    recall
        .series
        .push(series("candidates", candidates, Mark::Points));
    let returned = points(&tally.steps, |step| step.share(step.returned as f64));
    recall.series.push(series("returned", returned, Mark::Both));
    recall.upright("threshold", minhash.threshold());

    let steps = tally.returned.iter().enumerate();
    let precisions = steps.filter_map(|(place, step)| {
        let middle = ((place as f64 + 0.5) / 10.0).min(1.0);
        Some((middle, Returned::precision(step)?))
    });
    let precision = Chart {
        title: format!("Precision at threshold {}", minhash.threshold()),
        x: Axis::share("estimated Jaccard similarity"),
        y: Axis::share("share of what was returned that is right"),
        series: vec![series("precision", precisions.collect(), Mark::Both)],
    };

    let theory = |s: f64| minhash.variance(s).sqrt();
    let deviations = points(&tally.steps, |step| step.errors.deviation());
    let most = deviations.iter().map(|(_, deviation)| *deviation);
    let most = most.fold(theory(0.5).max(theory(0.0)), f64::max);
    let mut error = Chart {
        title: format!("Error of the estimate: {} values", minhash.values()),
        x: Axis::share("exact Jaccard similarity"),
        y: Axis::linear("standard deviation", 0.0, most * 1.3),
        series: Vec::new(),
    };
    error.curve("theory", theory);
    error
        .series
        .push(series("measured", deviations, Mark::Points));
    vec![
        ("recall.svg", recall),
        ("precision.svg", precision),
        ("error.svg", error),
    ]
}

/// What comes within the distance, against similarity.
pub(crate) fn simhash_chart(tally: &SimHashTally) -> (&'static str, Chart) {
    let mut chart = Chart {
        title: format!("SimHash: {}", tally.design),
        x: Axis::share("exact Jaccard similarity"),
        y: Axis::share("share of the pairs within the distance"),
        series: Vec::new(),
    };
    chart.curve("theory", |s| tally.design.probability(s));
    let within = points(&tally.steps, |step| step.share(step.returned as f64));
    chart.series.push(series("measured", within, Mark::Points));
    ("simhash.svg", chart)
}
