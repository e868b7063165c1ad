//! The results of an evaluation, as sections of rows.

use resemblance::Family;
use resemblance::invariant::at;
use resemblance_eval::{
    ComparedKind, DocumentSample, FamilyTally, MinHashTally, Promise, RecallSpread, SimHashTally,
    step_name,
};

use crate::failure::Result;
use crate::output::{Column, Layout, Results, Section, SectionItem, SectionRow, Value};

/// Writes sections: tables with titles, or one measure a line.
pub(super) fn write(layout: Layout, sections: &[Section<'_>]) -> Result<()> {
    if layout.is_table() {
        return sections.iter().try_for_each(Section::print_table);
    }
    let mut lines = Results::of_measures(layout)?;
    for section in sections {
        section.write_measures(&mut lines)?;
    }
    lines.finish()
}

/// Writes a line for each kind and size.
pub(super) fn write_compared(layout: Layout, compared: &[ComparedKind]) -> Result<()> {
    let columns = Column::list(
        "kind values signature_bytes seeds pairs mean_error deviation theory half_pairs \
         half_deviation half_theory worst_theory feature_nanoseconds",
    );
    let mut results = Results::new(layout, columns)?;
    for row in compared {
        results.row(&[
            Value::Text(row.kind.name),
            Value::Count(row.values().into()),
            Value::Count(row.signature_bytes()),
            Value::Count(row.seeds),
            Value::Count(row.all.count / row.seeds),
            share(row.all.mean()),
            share(row.all.deviation()),
            share(row.all.theory()),
            Value::Count(row.half.count / row.seeds),
            share(row.half.deviation()),
            share(row.half.theory()),
            Value::Significant(row.worst_theory()),
            share(row.feature_nanoseconds()),
        ])?;
    }
    results.finish()
}

fn share(value: Option<f64>) -> Value<'static> {
    value.map_or(Value::Similarity(None), Value::Significant)
}

fn row(item: String, values: Vec<Value<'_>>) -> SectionRow<'_> {
    let item = SectionItem::Name(item);
    SectionRow { item, values }
}

/// The sections of MinHash.
pub(super) fn minhash_sections<'a>(
    tally: &MinHashTally,
    sample: &'a DocumentSample,
    floor: f64,
) -> Result<Vec<Section<'a>>> {
    Ok(vec![
        minhash_summary(tally),
        minhash_steps(tally, floor),
        estimate_steps(tally),
        missed(tally, sample)?,
    ])
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
            "MinHash: {} values, {} bands of {} rows, {:.4} expected to be found at threshold {}. Of the \
             pairs whose exact similarity reaches it, candidate_recall is the share that are candidates, \
             expected is its value in theory, and recall is the share returned. precision is the share of \
             the returned pairs whose exact similarity reaches the threshold",
            minhash.values(),
            minhash.bands(),
            minhash.rows(),
            minhash.recall_at_threshold(),
            minhash.threshold()
        ),
        measures: "pairs candidate_recall expected recall returned precision candidates",
        rows: vec![row(minhash.threshold().to_string(), values)],
    }
}

fn minhash_steps(tally: &MinHashTally, floor: f64) -> Section<'static> {
    let steps = tally.steps.iter().enumerate();
    let rows = steps
        .filter(|(_, step)| step.pairs > 0)
        .map(|(place, step)| {
            let values = vec![
                Value::Count(step.pairs),
                Value::Count(step.candidates),
                share(step.share(step.candidates as f64)),
                share(step.share(step.expected)),
                Value::Count(step.returned),
                share(step.share(step.returned as f64)),
                share(step.errors.mean()),
                share(step.errors.deviation()),
                share(step.errors.theory()),
            ];
            row(step_name(place), values)
        });
    Section {
        name: "exact",
        title: format!(
            "By exact similarity, from {floor} ({} candidates are below): candidates, their share expected \
             by theory, and the pairs returned; the error of the estimates: its mean, its deviation, and \
             the deviation expected by theory",
            tally.candidates_below
        ),
        measures: "pairs candidates candidate_recall expected returned recall mean_error deviation theory",
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
            row(step_name(place), values)
        });
    Section {
        name: "estimate",
        title:
            "By estimated similarity: the pairs returned, and how many of them reach the threshold \
                exactly"
                .into(),
        measures: "returned right precision",
        rows: rows.collect(),
    }
}

fn missed<'a>(tally: &MinHashTally, sample: &'a DocumentSample) -> Result<Section<'a>> {
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
        rows.push(row((rows.len() + 1).to_string(), values));
    }
    let count = tally.near.pairs - tally.near.returned;
    let others = count - rows.len() as u64;
    Ok(Section {
        name: "missed",
        title: format!(
            "Pairs at the threshold or above that were not returned: {count}, the most similar first; \
             {others} more are not listed (--list N)"
        ),
        measures: "key_a key_b similarity estimate reason",
        rows,
    })
}

/// The recall of the candidates with several seeds.
pub(super) fn seed_section(spreads: &[RecallSpread]) -> Section<'static> {
    let spread_row = |spread: &RecallSpread| {
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
        row(item, values)
    };
    let seeds = spreads.first().map_or(0, |spread| spread.found.len());
    Section {
        name: "seeds",
        title: format!(
            "Candidate recall with the seeds 1 to {seeds}, by exact similarity: own is for the store's \
             seed, expected is the mean in theory. deviation lies between independent (each pair is found \
             or missed by itself) and together (each family of connected pairs is found or missed as a \
             whole)"
        ),
        measures: "pairs families own expected mean deviation min max independent together",
        rows: spreads.iter().map(spread_row).collect(),
    }
}

/// Returns the probabilities that are promised, beside the shares that were missed over the seeds.
pub(super) fn promise_section(promises: &[Promise], threshold: f64) -> Section<'static> {
    let promise_row = |promise: &Promise| {
        let (promised, missed) = (share(promise.promised), share(promise.missed()));
        let values = vec![Value::Count(promise.pairs()), promised, missed];
        row(promise.name.to_owned(), values)
    };
    Section {
        name: "promise",
        title: format!(
            "Missed pairs just above the threshold over all seeds, at most as promised: truth (an exact \
             store, or verified), estimate (of those whose estimate reaches {threshold}), and \
             truth_by_estimate (where estimates decide)"
        ),
        measures: "pairs promised missed",
        rows: promises.iter().map(promise_row).collect(),
    }
}

/// Returns a section that compares the families.
pub(super) fn family_section(families: &[FamilyTally]) -> Section<'static> {
    let family_row = |tally: &FamilyTally| {
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
        row(name.to_owned(), values)
    };
    let threshold = families.first().map_or(1.0, |tally| tally.threshold);
    Section {
        name: "families",
        title: format!(
            "The pairs that each family returns within its own bound: right are the returned pairs whose \
             exact similarity is {threshold} or more, pairs all of that similarity, expected is the share \
             of them that theory expects to be candidates, and f1 is the harmonic mean of precision and \
             recall"
        ),
        measures: "pairs returned right precision expected recall f1",
        rows: families.iter().map(family_row).collect(),
    }
}

/// The sections of SimHash.
pub(super) fn simhash_sections(tally: &SimHashTally) -> Vec<Section<'static>> {
    let distances = tally.distances.iter().enumerate();
    let distance_rows = distances.map(|(distance, &(pairs, returned))| {
        let values = vec![
            Value::Count(pairs),
            Value::Count(returned),
            share((pairs > 0).then(|| returned as f64 / pairs as f64)),
        ];
        row(distance.to_string(), values)
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
            row(step_name(place), values)
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
            measures: "pairs returned recall",
            rows: distance_rows.collect(),
        },
        Section {
            name: "within",
            title: format!(
                "By exact similarity: the pairs that come within distance {}, and what theory \
                 expects of unweighted sets of equal size",
                tally.design.max_distance()
            ),
            measures: "pairs within share expected",
            rows: step_rows.collect(),
        },
    ]
}
