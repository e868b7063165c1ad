//! Charts of the results of an evaluation.

use super::chart::{Chart, ChartAxis, ChartMark};
use super::spread::Promise;
use super::tally::{MinHashTally, ReturnedPairs, SimHashTally, SimilarityStep};
use resemblance::schema::TYPICAL_FEATURES;

/// The name of a file, and the chart in it.
pub type NamedChart = (&'static str, Chart);

/// The file names of all charts that an evaluation may draw.
pub const CHART_NAMES: [&str; 10] = [
    "recall.svg",
    "precision.svg",
    "precision-recall.svg",
    "error.svg",
    "promise.svg",
    "simhash.svg",
    "family-differences.svg",
    "error-by-size.svg",
    "error-by-bytes.svg",
    "time-by-size.svg",
];

/// Returns points at the mean similarity of each step.
fn step_points(
    steps: &[SimilarityStep],
    value: impl Fn(&SimilarityStep) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let points = steps
        .iter()
        .map(|step| step.mean_similarity().zip(value(step)));
    points.flatten().collect()
}

/// Draws recall, precision and error by similarity.
#[must_use]
pub fn minhash_charts(tally: &MinHashTally) -> Vec<NamedChart> {
    let minhash = tally.minhash;
    let (values, bands, rows) = (minhash.values(), minhash.bands(), minhash.rows());
    let exact = ChartAxis::share("exact Jaccard similarity");
    let mut recall = Chart::new(
        format!("What is found: {values} values, {bands} bands of {rows} rows"),
        exact.clone(),
        ChartAxis::share("share of the pairs"),
    );
    recall.curve("candidates in theory", |s| minhash.probability(s));
    let candidates = step_points(&tally.steps, |step| step.share(step.candidates as f64));
    recall.add("candidates", candidates, ChartMark::Rings);
    let returned = step_points(&tally.steps, |step| step.share(step.returned as f64));
    recall.add("returned", returned, ChartMark::Points);
    recall.upright("threshold", minhash.threshold());

    let steps = tally.returned.iter().enumerate();
    let precisions = steps.filter_map(|(place, step)| {
        let middle = ((place as f64 + 0.5) / 10.0).min(1.0);
        Some((middle, ReturnedPairs::precision(step)?))
    });
    let mut precision = Chart::new(
        format!("Precision at threshold {}", minhash.threshold()),
        ChartAxis::share("estimated Jaccard similarity"),
        ChartAxis::share("share of what was returned that is right"),
    );
    precision.add("precision", precisions.collect(), ChartMark::Both);

    let theory = |s: f64| minhash.variance(s).sqrt();
    let deviations = step_points(&tally.steps, |step| step.errors.deviation());
    let most = deviations
        .iter()
        .map(|(_, deviation)| *deviation)
        .fold(theory(0.5).max(theory(0.0)), f64::max);
    let mut error = Chart::new(
        format!("Error of the estimate: {values} values"),
        exact,
        ChartAxis::linear("standard deviation", 0.0, most * 1.3),
    );
    error.curve("theory", theory);
    error.add("measured", deviations, ChartMark::Points);
    vec![
        ("recall.svg", recall),
        ("precision.svg", precision),
        ("precision-recall.svg", bound_chart(tally)),
        ("error.svg", error),
    ]
}

/// Draws precision and recall by the bound on the estimate.
fn bound_chart(tally: &MinHashTally) -> Chart {
    let minhash = tally.minhash;
    let threshold = minhash.threshold();
    let mut bounds = Chart::new(
        format!("Precision and recall by the bound, for pairs of {threshold}"),
        ChartAxis::linear("bound on the estimated similarity", 0.5, 1.0),
        ChartAxis::share("share"),
    );
    let points = |share: &dyn Fn(ReturnedPairs) -> Option<f64>| {
        let hundredths = (50..=100)
            .filter_map(|bound| Some((bound as f64 / 100.0, share(tally.returned_from(bound))?)));
        hundredths.collect()
    };
    let precisions = points(&|returned| returned.precision());
    bounds.add("precision", precisions, ChartMark::Line);
    let near = tally.near.pairs;
    let recalls = points(&|returned| (near > 0).then(|| returned.right as f64 / near as f64));
    bounds.add("recall", recalls, ChartMark::Line);
    bounds.upright("threshold", threshold);
    bounds
}

/// Draws the share of the pairs that was missed by the promised probability, with its interval of
/// 95 % over the seeds. A point on or below the diagonal keeps its promise. Returns `None` if
/// nothing was measured.
#[must_use]
pub fn promise_chart(promises: &[Promise]) -> Option<NamedChart> {
    let measured: Vec<_> = promises
        .iter()
        .filter_map(|promise| {
            let (least, most) = promise.interval()?;
            let promised = promise.promised?;
            let points = [least, promise.missed()?, most].map(|missed| (promised, missed));
            Some((promise.name, points))
        })
        .collect();
    let values = measured.iter().flat_map(|(_, points)| points);
    let end = values.fold(0.0_f64, |end, (x, y)| end.max(*x).max(*y)) * 1.15;
    if end <= 0.0 {
        return None;
    }
    let mut chart = Chart::new(
        "Missed pairs just above the threshold, with intervals of 95 % over the seeds",
        ChartAxis::linear("promised probability of missing a pair, at most", 0.0, end),
        ChartAxis::linear("share of the pairs that was missed", 0.0, end),
    );
    chart.add("as promised", vec![(0.0, 0.0), (end, end)], ChartMark::Line);
    for (name, points) in measured {
        chart.add(name, points.into(), ChartMark::Interval);
    }
    Some(("promise.svg", chart))
}

/// Draws the share of pairs within the distance, by similarity.
#[must_use]
pub fn simhash_chart(tally: &SimHashTally) -> NamedChart {
    let mut chart = Chart::new(
        format!("SimHash: {}", tally.design),
        ChartAxis::share("exact Jaccard similarity"),
        ChartAxis::share("share of the pairs within the distance"),
    );
    let name = format!("theory, {TYPICAL_FEATURES} features");
    chart.curve(name, |s| tally.design.probability(s, TYPICAL_FEATURES));
    let within = step_points(&tally.steps, |step| step.share(step.returned as f64));
    chart.add("measured", within, ChartMark::Points);
    ("simhash.svg", chart)
}
