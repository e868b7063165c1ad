//! Samples as CSV and as curves.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::Result;

const SIZE_PIXELS: (u32, u32) = (1_000, 640);

const FONT: &str = "sans-serif";

const COLUMNS: &str = "visits,seconds,visits_per_second,file_mb,allocated_mb,resident_mb,anonymous_mb,\
     written_mb,longest_commit_ms,documents,dead_rows,evicted";

/// The state after a number of visits, and the results of the visits since the last sample.
#[derive(Clone, Copy)]
pub struct Sample {
    pub visits: u64,
    /// Since the first visit.
    pub seconds: f64,
    pub visits_per_second: f64,
    /// Length, and blocks on the disk.
    pub file_bytes: u64,
    pub allocated_bytes: u64,
    pub resident_bytes: u64,
    /// Without pages of files.
    pub anonymous_bytes: u64,
    pub written_bytes: u64,
    /// The waiting for the writer before included.
    pub longest_commit_ms: f64,
    pub documents: u64,
    /// Rows of documents that are not there any more; now and then.
    pub dead_rows: Option<u64>,
    /// In all.
    pub evicted: u64,
}

/// Where samples go. Both files are whole after each of them.
pub struct Curves {
    csv: File,
    svg: PathBuf,
    samples: Vec<Sample>,
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

impl Curves {
    pub fn new(output: &Path) -> Result<Self> {
        let mut csv = File::create(output.with_extension("csv"))?;
        writeln!(csv, "{COLUMNS}")?;
        Ok(Self {
            csv,
            svg: output.with_extension("svg"),
            samples: Vec::new(),
        })
    }

    pub fn add(&mut self, sample: Sample) -> Result<()> {
        let dead_rows = sample.dead_rows.map(|rows| rows.to_string());
        writeln!(
            self.csv,
            "{},{:.1},{:.0},{:.1},{:.1},{:.1},{:.1},{:.1},{:.1},{},{},{}",
            sample.visits,
            sample.seconds,
            sample.visits_per_second,
            megabytes(sample.file_bytes),
            megabytes(sample.allocated_bytes),
            megabytes(sample.resident_bytes),
            megabytes(sample.anonymous_bytes),
            megabytes(sample.written_bytes),
            sample.longest_commit_ms,
            sample.documents,
            dead_rows.unwrap_or_default(),
            sample.evicted,
        )?;
        self.samples.push(sample);
        Ok(std::fs::write(&self.svg, self.draw()?)?)
    }

    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    fn draw(&self) -> Result<String> {
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, SIZE_PIXELS).into_drawing_area();
        area.fill(&WHITE).map_err(|error| error.to_string())?;
        let panels = area.split_evenly((2, 2));
        let curve = |value: fn(&Sample) -> f64| -> Vec<(f64, f64)> {
            let samples = self.samples.iter();
            samples
                .map(|one| (one.visits as f64 / 1e6, value(one)))
                .collect()
        };
        let drawn = [
            (
                "visits a second",
                vec![("", curve(|one| one.visits_per_second))],
            ),
            (
                "file, MB",
                vec![
                    ("length", curve(|one| megabytes(one.file_bytes))),
                    (
                        "blocks on the disk",
                        curve(|one| megabytes(one.allocated_bytes)),
                    ),
                ],
            ),
            (
                "memory, MB",
                vec![
                    ("resident", curve(|one| megabytes(one.resident_bytes))),
                    (
                        "without pages of files",
                        curve(|one| megabytes(one.anonymous_bytes)),
                    ),
                ],
            ),
            (
                "longest commit in a million visits, ms",
                vec![("", curve(|one| one.longest_commit_ms))],
            ),
        ];
        for (panel, (title, curves)) in panels.iter().zip(drawn) {
            draw_panel(panel, title, &curves).map_err(|error| error.to_string())?;
        }
        area.present().map_err(|error| error.to_string())?;
        drop((panels, area));
        Ok(svg)
    }
}

fn draw_panel<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    title: &str,
    curves: &[(&str, Vec<(f64, f64)>)],
) -> std::result::Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    let points = || curves.iter().flat_map(|(_, points)| points);
    let right = points().map(|(x, _)| *x).fold(0.0, f64::max);
    let top = points().map(|(_, y)| *y).fold(0.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(title, (FONT, 16))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..right.max(1.0), 0.0..(top * 1.1).max(1.0))?;
    chart
        .configure_mesh()
        .max_light_lines(1)
        .light_line_style(WHITE)
        .x_desc("million visits")
        .y_label_formatter(&|y| format!("{y:.0}"))
        .draw()?;
    for ((name, points), colour) in curves.iter().zip([BLUE, RED]) {
        let line = LineSeries::new(points.iter().copied(), colour.stroke_width(2));
        let series = chart.draw_series(line)?;
        if !name.is_empty() {
            series.label(*name).legend(move |(x, y)| {
                PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2))
            });
        }
    }
    if curves.len() > 1 {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .label_font((FONT, 12))
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.4))
            .draw()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_files_are_whole_after_every_sample() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("curves");
        let mut curves = Curves::new(&output).unwrap();
        for number in 1..=3 {
            let dead_rows = (number == 2).then_some(7);
            let sample = Sample {
                visits: number * 1_000_000,
                seconds: 10.0 * number as f64,
                visits_per_second: 1e5,
                file_bytes: 5_000_000,
                allocated_bytes: 4_000_000,
                resident_bytes: 3_000_000,
                anonymous_bytes: 2_000_000,
                written_bytes: 1_000_000,
                longest_commit_ms: 12.5,
                documents: 99,
                dead_rows,
                evicted: number,
            };
            curves.add(sample).unwrap();
            let csv = std::fs::read_to_string(output.with_extension("csv")).unwrap();
            let fields = |line: &str| line.split(',').count();
            assert_eq!(csv.lines().count() as u64, 1 + number);
            assert!(csv.lines().all(|line| fields(line) == fields(COLUMNS)));
            let svg = std::fs::read_to_string(output.with_extension("svg")).unwrap();
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
            assert!(!svg.contains("NaN") && svg.contains("blocks on the disk"));
        }
        assert_eq!(curves.samples().len(), 3);
    }
}
