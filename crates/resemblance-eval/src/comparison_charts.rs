//! Charts of the errors and times of kinds of signatures.

use super::chart::{Chart, ChartAxis, ChartMark, ChartSeries};
use super::compared::ComparedKind;
use super::evaluation_charts::NamedChart;
use super::kinds::{SIGNATURE_KINDS, SignatureKind};

/// Draws error and time by the number of values, and error by bytes.
#[must_use]
pub fn comparison_charts(compared: &[ComparedKind]) -> Vec<NamedChart> {
    let error = |row: &ComparedKind| row.all.deviation();
    let time = |row: &ComparedKind| row.feature_nanoseconds();
    let size = |row: &ComparedKind| f64::from(row.values());
    let bytes = |row: &ComparedKind| row.signature_bytes() as f64;
    let whole = |kind: &SignatureKind| !kind.is_cut();
    // The families of hash functions show no visible difference here.
    let kept = |kind: &SignatureKind| kind.is_cut() || ["minhash", "bottom-k"].contains(&kind.name);
    let deviation = "standard deviation";
    let values = "values in a signature";
    let mut by_size = chart(
        compared,
        ["Error of the estimates", values, deviation],
        &whole,
        &size,
        &error,
    );
    for kind in SIGNATURE_KINDS.iter().filter(|kind| whole(kind)) {
        let theory = points(compared, kind, &size, &|row| row.all.theory());
        let is_known =
            |series: &ChartSeries| series.mark == ChartMark::Line && series.points == theory;
        if !by_size.series.iter().any(is_known) {
            by_size.add(format!("{} in theory", kind.name), theory, ChartMark::Line);
        }
    }
    let names = ["Error of the estimates", "bytes of a signature", deviation];
    let by_bytes = chart(compared, names, &kept, &bytes, &error);
    let names = [
        "Time to sketch",
        values,
        "nanoseconds a feature, one thread",
    ];
    let times = chart(compared, names, &whole, &size, &time);
    vec![
        ("family-differences.svg", differences(compared)),
        ("error-by-size.svg", by_size),
        ("error-by-bytes.svg", by_bytes),
        ("time-by-size.svg", times),
    ]
}

/// The families whose errors are compared with those of the first one.
const FAMILIES: [&str; 4] = ["multiply-shift", "modular", "tabulation", "jenkins"];

/// Draws how much greater the errors of each family of hash functions are than those of
/// pair-multiply, by the number of functions.
fn differences(compared: &[ComparedKind]) -> Chart {
    let size = |row: &ComparedKind| f64::from(row.values());
    let rows = |name: &'static str| compared.iter().filter(move |row| row.kind.name == name);
    let own: Vec<_> = rows("minhash")
        .map(|row| (row.values(), row.all.deviation()))
        .collect();
    let difference = |row: &ComparedKind| {
        let same_size = own.iter().find(|(values, _)| *values == row.values())?;
        Some((
            size(row),
            100.0 * (row.all.deviation()? / same_size.1? - 1.0),
        ))
    };
    let series = FAMILIES.map(|name| ChartSeries {
        name: format!("{name} less pair-multiply"),
        points: rows(name).filter_map(difference).collect(),
        mark: ChartMark::Both,
    });
    let points = || series.iter().flat_map(|series| &series.points);
    let most = points().map(|(_, y)| y.abs()).fold(1.0, f64::max) * 1.5;
    Chart {
        title: "Difference of the families of hash functions".into(),
        x: ChartAxis::doublings("hash functions", points().map(|(x, _)| *x)),
        y: ChartAxis::linear(
            "difference of the standard deviations, percent",
            -most,
            most,
        ),
        series: series.to_vec(),
    }
}

fn points(
    compared: &[ComparedKind],
    kind: &SignatureKind,
    x: &dyn Fn(&ComparedKind) -> f64,
    y: &dyn Fn(&ComparedKind) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let rows = compared.iter().filter(|row| row.kind.name == kind.name);
    // An error of zero cannot be drawn on an axis of doublings.
    let points = rows.filter_map(|row| Some((x(row), y(row).filter(|y| *y > 0.0)?)));
    points.collect()
}

/// Draws one series for each of some kinds.
fn chart(
    compared: &[ComparedKind],
    [title, x_name, y_name]: [&str; 3],
    is_shown: &dyn Fn(&SignatureKind) -> bool,
    x: &dyn Fn(&ComparedKind) -> f64,
    y: &dyn Fn(&ComparedKind) -> Option<f64>,
) -> Chart {
    let rows = || compared.iter().filter(|row| is_shown(row.kind));
    let kinds = SIGNATURE_KINDS.iter().filter(|kind| is_shown(kind));
    let series = kinds.map(|kind| ChartSeries {
        name: kind.name.into(),
        points: points(compared, kind, x, y),
        mark: ChartMark::Both,
    });
    Chart {
        title: title.into(),
        x: ChartAxis::doublings(x_name, rows().map(x)),
        y: ChartAxis::doublings(y_name, rows().filter_map(y)),
        series: series.collect(),
    }
}
