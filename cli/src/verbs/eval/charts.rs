//! The results of an evaluation, as charts.

use std::path::Path;

use resemblance_eval::{MinHashTally, ReturnedPairs, SimHashTally, SimilarityStep};

use crate::failure::{Failure, Result};
use crate::output::{Chart, ChartAxis, ChartMark, ChartSeries};
use crate::session::Context;

/// A folder that charts are drawn into.
pub(super) struct ChartFolder<'a> {
    pub(super) context: &'a Context,
    pub(super) path: &'a Path,
    /// The name of the corpus, which each title tells.
    pub(super) corpus: String,
    pub(super) force: bool,
}

impl ChartFolder<'_> {
    pub(super) fn write(&self, mut charts: Vec<(&'static str, Chart)>) -> Result<()> {
        let folder = self.path;
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::io(format!("cannot make {}", folder.display()), &e))?;
        for (name, chart) in &mut charts {
            chart.title = format!("{} ({})", chart.title, self.corpus);
            chart.write(&folder.join(name), self.force)?;
        }
        let names: Vec<&str> = charts.iter().map(|(name, _)| *name).collect();
        let (names, folder) = (names.join(", "), folder.display());
        self.context.note(format!("drew {names} in {folder}"));
        Ok(())
    }
}

/// Points at the mean similarity of each step.
fn step_points(
    steps: &[SimilarityStep],
    value: impl Fn(&SimilarityStep) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let points = steps
        .iter()
        .map(|step| step.mean_similarity().zip(value(step)));
    points.flatten().collect()
}

fn series(name: &str, points: Vec<(f64, f64)>, mark: ChartMark) -> ChartSeries {
    ChartSeries {
        name: name.into(),
        points,
        mark,
    }
}

/// Recall, precision and error against similarity.
pub(super) fn minhash_charts(tally: &MinHashTally) -> Vec<(&'static str, Chart)> {
    let minhash = tally.minhash;
    let mut recall = Chart {
        title: format!(
            "What is found: {} values, {} bands of {} rows",
            minhash.values(),
            minhash.bands(),
            minhash.rows()
        ),
        x: ChartAxis::share("exact Jaccard similarity"),
        y: ChartAxis::share("share of the pairs"),
        series: Vec::new(),
    };
    recall.curve("candidates in theory", |s| minhash.probability(s));
    let candidates = step_points(&tally.steps, |step| step.share(step.candidates as f64));
    recall
        .series
        .push(series("candidates", candidates, ChartMark::Rings));
    let returned = step_points(&tally.steps, |step| step.share(step.returned as f64));
    recall
        .series
        .push(series("returned", returned, ChartMark::Points));
    recall.upright("threshold", minhash.threshold());

    let steps = tally.returned.iter().enumerate();
    let precisions = steps.filter_map(|(place, step)| {
        let middle = ((place as f64 + 0.5) / 10.0).min(1.0);
        Some((middle, ReturnedPairs::precision(step)?))
    });
    let precision = Chart {
        title: format!("Precision at threshold {}", minhash.threshold()),
        x: ChartAxis::share("estimated Jaccard similarity"),
        y: ChartAxis::share("share of what was returned that is right"),
        series: vec![series("precision", precisions.collect(), ChartMark::Both)],
    };

    let theory = |s: f64| minhash.variance(s).sqrt();
    let deviations = step_points(&tally.steps, |step| step.errors.deviation());
    let most = deviations
        .iter()
        .map(|(_, deviation)| *deviation)
        .fold(theory(0.5).max(theory(0.0)), f64::max);
    let mut error = Chart {
        title: format!("Error of the estimate: {} values", minhash.values()),
        x: ChartAxis::share("exact Jaccard similarity"),
        y: ChartAxis::linear("standard deviation", 0.0, most * 1.3),
        series: Vec::new(),
    };
    error.curve("theory", theory);
    error
        .series
        .push(series("measured", deviations, ChartMark::Points));
    vec![
        ("recall.svg", recall),
        ("precision.svg", precision),
        ("precision-recall.svg", bound_chart(tally)),
        ("error.svg", error),
    ]
}

/// Precision and recall against the bound on the estimate.
fn bound_chart(tally: &MinHashTally) -> Chart {
    let minhash = tally.minhash;
    let mut bounds = Chart {
        title: format!(
            "Precision and recall by the bound, for pairs of {}",
            minhash.threshold()
        ),
        x: ChartAxis::linear("bound on the estimated similarity", 0.5, 1.0),
        y: ChartAxis::share("share"),
        series: Vec::new(),
    };
    let points = |share: &dyn Fn(ReturnedPairs) -> Option<f64>| {
        let hundredths = (50..=100)
            .filter_map(|bound| Some((bound as f64 / 100.0, share(tally.returned_from(bound))?)));
        hundredths.collect()
    };
    let precisions = points(&|returned| returned.precision());
    bounds
        .series
        .push(series("precision", precisions, ChartMark::Line));
    let near = tally.near.pairs;
    let recalls = points(&|returned| (near > 0).then(|| returned.right as f64 / near as f64));
    bounds
        .series
        .push(series("recall", recalls, ChartMark::Line));
    bounds.upright("threshold", minhash.threshold());
    bounds
}

/// What comes within the distance, against similarity.
pub(super) fn simhash_chart(tally: &SimHashTally) -> (&'static str, Chart) {
    let mut chart = Chart {
        title: format!("SimHash: {}", tally.design),
        x: ChartAxis::share("exact Jaccard similarity"),
        y: ChartAxis::share("share of the pairs within the distance"),
        series: Vec::new(),
    };
    chart.curve("theory", |s| tally.design.probability(s));
    let within = step_points(&tally.steps, |step| step.share(step.returned as f64));
    chart
        .series
        .push(series("measured", within, ChartMark::Points));
    ("simhash.svg", chart)
}
