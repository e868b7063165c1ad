//! The results of an evaluation, as sections of rows.

use resemblance::Family;
use resemblance::eval::{
    DocumentSample, EstimateErrors, FamilyTally, MinHashTally, RecallSpread, SimHashTally,
    step_name,
};

use crate::bug::at;
use crate::failure::Result;
use crate::output::{Column, Layout, Results, Value};

/// A table with a title; each row is an item with a value for every measure.
pub(super) struct EvalSection<'a> {
    name: &'static str,
    title: String,
    measures: Vec<&'static str>,
    rows: Vec<(String, Vec<Value<'a>>)>,
}

/// Writes sections: tables with titles, or one measure a line.
pub(super) fn write(layout: Layout, sections: &[EvalSection<'_>]) -> Result<()> {
    if layout.is_table() {
        return sections.iter().try_for_each(write_table);
    }
    let columns = ["section", "item", "measure", "value"].map(Column::new);
    let mut results = Results::new(layout, columns.to_vec())?;
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

fn write_table(section: &EvalSection<'_>) -> Result<()> {
    let layout = Layout::table();
    layout.paragraph(&format!("\n{}", section.title))?;
    let names = std::iter::once(section.name).chain(section.measures.iter().copied());
    let mut results = Results::new(layout, names.map(Column::new).collect())?;
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
pub(super) fn minhash_sections<'a>(
    tally: &MinHashTally,
    sample: &'a DocumentSample,
    floor: f64,
) -> Result<Vec<EvalSection<'a>>> {
    Ok(vec![
        minhash_summary(tally),
        minhash_steps(tally, floor),
        estimate_steps(tally),
        missed(tally, sample)?,
    ])
}

fn minhash_summary(tally: &MinHashTally) -> EvalSection<'static> {
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
    EvalSection {
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

fn error_values(errors: &EstimateErrors) -> [Value<'static>; 3] {
    [errors.mean(), errors.deviation(), errors.theory()].map(share)
}

fn minhash_steps(tally: &MinHashTally, floor: f64) -> EvalSection<'static> {
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
    EvalSection {
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

fn estimate_steps(tally: &MinHashTally) -> EvalSection<'static> {
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
    EvalSection {
        name: "estimate",
        title: "By estimated similarity: what was returned, and how much of it reaches the \
                threshold exactly"
            .into(),
        measures: vec!["returned", "right", "precision"],
        rows: rows.collect(),
    }
}

fn missed<'a>(tally: &MinHashTally, sample: &'a DocumentSample) -> Result<EvalSection<'a>> {
    let mut rows = Vec::new();
    for missed in tally.missed() {
        let reason = if missed.is_candidate {
            "estimate"
        } else {
            "no shared band"
        };
        let values = vec![
            Value::Key(at(&sample.keys, missed.a)?),
            Value::Key(at(&sample.keys, missed.b)?),
            Value::Similarity(Some(missed.similarity)),
            Value::Similarity(Some(missed.estimate)),
            Value::Text(reason),
        ];
        let number = rows.len() + 1;
        rows.push((number.to_string(), values));
    }
    let count = tally.near.pairs - tally.near.returned;
    let others = count - rows.len() as u64;
    Ok(EvalSection {
        name: "missed",
        title: format!(
            "Pairs at the threshold or above that were not returned: {count}, the most similar first; \
             {others} more are not listed (--list N)"
        ),
        measures: vec!["key_a", "key_b", "similarity", "estimate", "reason"],
        rows,
    })
}

/// The recall of the candidates with several seeds.
pub(super) fn seed_section(spreads: &[RecallSpread]) -> EvalSection<'static> {
    let row = |spread: &RecallSpread| {
        let item = match spread.below {
            Some(below) => format!("{}-{below:.2}", spread.min_similarity),
            None => format!("{}-1", spread.min_similarity),
        };
        let values = vec![
            Value::Count(spread.pairs),
            Value::Count(spread.families()),
            share(spread.own_recall()),
            share(spread.expected()),
            share(spread.mean()),
            share(spread.deviation()),
            share(spread.min()),
            share(spread.max()),
            share(spread.deviation_if_independent()),
            share(spread.deviation_if_together()),
        ];
        (item, values)
    };
    let seeds = spreads.first().map_or(0, |spread| spread.found.len());
    EvalSection {
        name: "seeds",
        title: format!(
            "Candidate recall with the seeds 1 to {seeds}, by exact similarity: own is that of the store's \
             seed, expected what theory says of the mean. deviation lies between independent, as if \
             each pair were found or missed by itself, and together, as if each family of connected \
             pairs were"
        ),
        measures: vec![
            "pairs",
            "families",
            "own",
            "expected",
            "mean",
            "deviation",
            "min",
            "max",
            "independent",
            "together",
        ],
        rows: spreads.iter().map(row).collect(),
    }
}

/// The families beside each other.
pub(super) fn family_section(families: &[FamilyTally]) -> EvalSection<'static> {
    let row = |tally: &FamilyTally| {
        let name = match tally.by {
            Family::MinHash => "minhash",
            Family::SimHash => "simhash",
            Family::Both => "both",
            _ => "any",
        };
        let precision = tally.returned.precision();
        let harmonic = |(p, r): (f64, f64)| (p + r > 0.0).then(|| 2.0 * p * r / (p + r));
        let values = vec![
            Value::Count(tally.pairs),
            Value::Count(tally.returned.pairs),
            Value::Count(tally.returned.right),
            share(precision),
            share((tally.pairs > 0).then(|| tally.expected / tally.pairs as f64)),
            share(tally.recall()),
            share(precision.zip(tally.recall()).and_then(harmonic)),
        ];
        (name.to_owned(), values)
    };
    let threshold = families.first().map_or(1.0, |tally| tally.threshold);
    EvalSection {
        name: "families",
        title: format!(
            "What each family returns, by its own bound: right are the returned pairs whose exact \
             similarity is {threshold} or more, pairs all of that similarity, expected the share of them \
             that theory expects to be candidates, f1 the harmonic mean of precision and recall"
        ),
        measures: vec![
            "pairs",
            "returned",
            "right",
            "precision",
            "expected",
            "recall",
            "f1",
        ],
        rows: families.iter().map(row).collect(),
    }
}

/// The sections of SimHash.
pub(super) fn simhash_sections(tally: &SimHashTally) -> Vec<EvalSection<'static>> {
    let distances = tally.distances.iter().enumerate();
    let distance_rows = distances.map(|(distance, &(pairs, returned))| {
        let values = vec![
            Value::Count(pairs),
            Value::Count(returned),
            share((pairs > 0).then(|| returned as f64 / pairs as f64)),
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
        EvalSection {
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
        EvalSection {
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
