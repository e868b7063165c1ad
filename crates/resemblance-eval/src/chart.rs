//! Charts of curves and points, as SVG.

use std::ops::Range;

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

/// The size of a drawing and of its letters, in pixels.
struct ChartFrame {
    size: (u32, u32),
    letters: u32,
    /// True with a title and names in the drawing.
    is_alone: bool,
}

/// The frame of a file.
const ALONE: ChartFrame = ChartFrame {
    size: (860, 540),
    letters: 13,
    is_alone: true,
};
/// The frame of a figure, whose letters can be read on a phone.
const ON_PAGE: ChartFrame = ChartFrame {
    size: (560, 380),
    letters: 17,
    is_alone: false,
};
const FONT: &str = "sans-serif";
/// Colours that colour-blind readers can also distinguish (Okabe and Ito, *Color Universal Design*,
/// 2008).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

/// The division of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChartScale {
    /// Equal steps are equal differences.
    Linear,
    /// Equal steps are doublings.
    Doubling,
}

/// One axis, in the units of the points.
#[derive(Clone, Debug)]
pub struct ChartAxis {
    /// Its label.
    pub name: String,
    /// The lowest value.
    pub from: f64,
    /// The highest value.
    pub to: f64,
    /// The division of the axis.
    pub scale: ChartScale,
}

impl ChartAxis {
    /// Returns an axis from 0 to 1.
    #[must_use]
    pub fn share(name: &str) -> Self {
        Self::linear(name, 0.0, 1.0)
    }

    /// Returns an axis of equal steps.
    #[must_use]
    pub fn linear(name: &str, from: f64, to: f64) -> Self {
        Self {
            name: name.into(),
            from,
            to,
            scale: ChartScale::Linear,
        }
    }

    /// Returns an axis that spans these positive numbers, divided by doublings.
    pub fn doublings(name: &str, values: impl Iterator<Item = f64>) -> Self {
        let (mut from, mut to) = (f64::INFINITY, 0.0_f64);
        for value in values.filter(|value| value.is_finite() && *value > 0.0) {
            from = from.min(value);
            to = to.max(value);
        }
        if to <= 0.0 {
            (from, to) = (0.5, 2.0);
        }
        Self {
            name: name.into(),
            from: from / 1.2,
            to: to * 1.2,
            scale: ChartScale::Doubling,
        }
    }

    /// Returns the position of a value along the axis.
    fn place(&self, value: f64) -> f64 {
        match self.scale {
            ChartScale::Linear => value,
            ChartScale::Doubling => value.max(f64::MIN_POSITIVE).log2(),
        }
    }

    fn label(&self, place: f64) -> String {
        let is_long = self.scale == ChartScale::Doubling && self.to > 8.0 * self.from;
        if is_long && place.fract() != 0.0 {
            return String::new();
        }
        let value = match self.scale {
            ChartScale::Linear => place,
            ChartScale::Doubling => place.exp2(),
        };
        match value.abs() {
            1.0.. if value.fract() == 0.0 && self.to > 1.0 => format!("{value}"),
            10.0.. => format!("{value:.0}"),
            0.1.. => format!("{value:.2}"),
            0.001.. => format!("{value:.4}"),
            0.0 => "0".into(),
            _ => format!("{value:.1e}"),
        }
    }
}

/// How the points of a series are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChartMark {
    /// A line.
    Line,
    /// Points only.
    Points,
    /// Points as rings, within which other points can be seen.
    Rings,
    /// A line with its points marked.
    Both,
    /// Three points: a line from the first to the last, and a mark at the middle one.
    Interval,
    /// The area within a line from each point to the next, shaded.
    Area,
}

/// A series of points, ascending in x.
#[derive(Clone, Debug)]
pub struct ChartSeries {
    /// Its name in the legend.
    pub name: String,
    /// The points.
    pub points: Vec<(f64, f64)>,
    /// How the points are drawn.
    pub mark: ChartMark,
}

/// The contents of the chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Its title.
    pub title: String,
    /// The axis from left to right.
    pub x: ChartAxis,
    /// The axis from bottom to top.
    pub y: ChartAxis,
    /// The series, in the order in which they are drawn.
    pub series: Vec<ChartSeries>,
}

impl Chart {
    /// Creates a chart without series.
    #[must_use]
    pub fn new(title: impl Into<String>, x: ChartAxis, y: ChartAxis) -> Self {
        Self {
            title: title.into(),
            x,
            y,
            series: Vec::new(),
        }
    }

    /// Adds a series.
    pub fn add(&mut self, name: impl Into<String>, points: Vec<(f64, f64)>, mark: ChartMark) {
        self.series.push(ChartSeries {
            name: name.into(),
            points,
            mark,
        });
    }

    /// Adds a curve over the whole x axis, which must be linear.
    pub fn curve(&mut self, name: impl Into<String>, value: impl Fn(f64) -> f64) {
        let steps = 200_u32;
        let width = self.x.to - self.x.from;
        let at = |step: u32| self.x.from + width * f64::from(step) / f64::from(steps);
        let points = (0..=steps)
            .map(|step| (at(step), value(at(step))))
            .collect();
        self.add(name, points, ChartMark::Line);
    }

    /// Adds a vertical line.
    pub fn upright(&mut self, name: impl Into<String>, x: f64) {
        self.add(
            name,
            vec![(x, self.y.from), (x, self.y.to)],
            ChartMark::Line,
        );
    }

    /// Returns the chart as an SVG document.
    ///
    /// # Errors
    ///
    /// A description of why the chart cannot be drawn.
    pub fn svg(&self) -> Result<String, String> {
        self.framed(&ALONE)
    }

    /// Returns the chart as an element of HTML for a small space. Screen readers read the title; the page has
    /// to show it, and the [`legend`](Self::legend).
    ///
    /// # Errors
    ///
    /// A description of why the chart cannot be drawn.
    ///
    /// ```
    /// use resemblance_eval::{Chart, ChartAxis};
    /// let mut chart = Chart::new("One band", ChartAxis::share("s"), ChartAxis::share("p"));
    /// chart.curve("five rows", |s| s.powi(5));
    /// assert!(chart.figure()?.starts_with("<svg role=\"img\" aria-label=\"One band\""));
    /// assert_eq!(chart.legend().collect::<Vec<_>>(), [("five rows", "#0072B2".to_owned())]);
    /// # Ok::<(), String>(())
    /// ```
    pub fn figure(&self) -> Result<String, String> {
        let mut title = self.title.replace('&', "&amp;");
        title = title.replace('<', "&lt;").replace('"', "&quot;");
        let labelled = format!("<svg role=\"img\" aria-label=\"{title}\" ");
        let svg = self.framed(&ON_PAGE)?;
        Ok(svg.replacen("<svg ", &labelled, 1))
    }

    /// Returns the names of the series with their colours, as CSS writes them.
    pub fn legend(&self) -> impl Iterator<Item = (&str, String)> {
        let coloured = self.series.iter().zip(COLOURS.iter().cycle());
        coloured.map(|(series, RGBColor(red, green, blue))| {
            (&*series.name, format!("#{red:02X}{green:02X}{blue:02X}"))
        })
    }

    fn framed(&self, frame: &ChartFrame) -> Result<String, String> {
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, frame.size).into_drawing_area();
        self.draw(&area, frame).map_err(|e| e.to_string())?;
        area.present().map_err(|e| e.to_string())?;
        drop(area);
        Ok(svg)
    }

    /// Returns the position at the left or right edge with the fewest points.
    fn emptiest_place(&self) -> SeriesLabelPosition {
        // From 0 to 1 along an axis.
        let share = |axis: &ChartAxis, value: f64| {
            let (from, to) = (axis.place(axis.from), axis.place(axis.to));
            (axis.place(value) - from) / (to - from)
        };
        let points: Vec<_> = self
            .series
            .iter()
            .flat_map(|series| &series.points)
            .map(|(x, y)| (share(&self.x, *x), share(&self.y, *y)))
            .collect();
        let (left, right) = (0.0..0.4, 0.6..1.01);
        let (low, middle, high) = (0.0..0.4, 0.25..0.75, 0.6..1.01);
        let places = [
            (SeriesLabelPosition::UpperLeft, &left, &high),
            (SeriesLabelPosition::UpperRight, &right, &high),
            (SeriesLabelPosition::LowerRight, &right, &low),
            (SeriesLabelPosition::LowerLeft, &left, &low),
            (SeriesLabelPosition::MiddleRight, &right, &middle),
            (SeriesLabelPosition::MiddleLeft, &left, &middle),
        ];
        let crowd = |(_, across, up): &(_, &Range<f64>, &Range<f64>)| {
            points
                .iter()
                .filter(|(x, y)| across.contains(x) && up.contains(y))
                .count()
        };
        let emptiest = places.into_iter().min_by_key(crowd);
        emptiest.map_or(SeriesLabelPosition::UpperLeft, |(place, ..)| place)
    }

    fn draw<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, plotters::coord::Shift>,
        frame: &ChartFrame,
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        area.fill(&WHITE)?;
        let letters = frame.letters;
        let range = |axis: &ChartAxis| axis.place(axis.from)..axis.place(axis.to);
        let mut builder = ChartBuilder::on(area);
        builder
            .margin(14)
            .x_label_area_size(letters * 3 + 5)
            .y_label_area_size(letters * 4 + 12);
        if frame.is_alone {
            builder.caption(&self.title, (FONT, 18));
        }
        let mut chart = builder.build_cartesian_2d(range(&self.x), range(&self.y))?;
        let x_label = |place: &f64| self.x.label(*place);
        let y_label = |place: &f64| self.y.label(*place);
        let mut mesh = chart.configure_mesh();
        mesh.max_light_lines(1)
            .light_line_style(WHITE)
            .x_desc(&self.x.name)
            .y_desc(&self.y.name)
            .x_label_formatter(&x_label)
            .y_label_formatter(&y_label);
        if !frame.is_alone {
            mesh.label_style((FONT, letters))
                .axis_desc_style((FONT, letters))
                .x_labels(6)
                .y_labels(6);
        }
        mesh.draw()?;
        drop(mesh);
        for place in 0..self.series.len() {
            self.draw_series(&mut chart, place)?;
        }
        if !frame.is_alone {
            return Ok(());
        }
        chart
            .configure_series_labels()
            .position(self.emptiest_place())
            .label_font((FONT, letters))
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.4))
            .draw()
    }

    fn draw_series<'a, B: DrawingBackend + 'a>(
        &self,
        chart: &mut ChartContext<'a, B, Cartesian2d<RangedCoordf64, RangedCoordf64>>,
        place: usize,
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        let mut coloured = self.series.iter().zip(COLOURS.iter().cycle());
        let Some((series, &colour)) = coloured.nth(place) else {
            return Ok(());
        };
        // When colours repeat, lines are thin and points are hollow.
        let is_again = place >= COLOURS.len();
        let width = if is_again { 1 } else { 2 };
        let (radius, style) = match series.mark {
            ChartMark::Line | ChartMark::Area => (0, colour.filled()),
            ChartMark::Rings => (7, colour.stroke_width(2)),
            _ if is_again => (4, colour.stroke_width(width)),
            _ => (4, colour.filled()),
        };
        let places: Vec<_> = series
            .points
            .iter()
            .filter(|(x, y)| x.is_finite() && y.is_finite())
            .map(|(x, y)| (self.x.place(*x), self.y.place(*y)))
            .collect();
        if series.mark == ChartMark::Area {
            let shade = colour.mix(0.35).filled();
            chart.draw_series([Polygon::new(places.clone(), shade)])?;
        }
        let is_line = !matches!(series.mark, ChartMark::Points | ChartMark::Rings);
        let has_line = is_line && series.mark != ChartMark::Area;
        let line = if has_line { places.clone() } else { Vec::new() };
        chart
            .draw_series(LineSeries::new(line, colour.stroke_width(width)))?
            .label(&series.name)
            .legend(move |(x, y)| {
                let ends = if is_line {
                    vec![(0, 0), (18, 0)]
                } else {
                    vec![]
                };
                EmptyElement::at((x, y))
                    + PathElement::new(ends, colour.stroke_width(2 * width - 1))
                    + Circle::new((9, 0), radius.min(4), style)
            });
        if radius > 0 {
            let (skipped, step) = match series.mark {
                ChartMark::Interval => (1, 2),
                _ => (0, 1),
            };
            let circles = places.into_iter().skip(skipped).step_by(step);
            chart.draw_series(circles.map(|place| Circle::new(place, radius, style)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let axes = (
            ChartAxis::share("similarity"),
            ChartAxis::share("probability"),
        );
        let mut chart = Chart::new("a < b & c", axes.0, axes.1);
        chart.curve("s squared", |s| s * s);
        chart.upright("threshold", 0.8);
        let points = vec![(0.5, 0.25), (0.7, f64::NAN), (0.9, 0.8)];
        chart.add("measured", points, ChartMark::Both);
        chart
    }

    #[test]
    fn charts_are_well_formed_and_deterministic() {
        let svg = chart().svg().unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("a &lt; b &amp; c"), "{svg}");
        for name in [
            "similarity",
            "probability",
            "s squared",
            "threshold",
            "measured",
        ] {
            assert!(svg.contains(name), "{name}");
        }
        // The point without a value is left out, and nothing is drawn at a position that is not a
        // number. The names have three more circles.
        assert_eq!(svg.matches("<circle").count(), 2 + 3);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert_eq!(svg, chart().svg().unwrap());
    }

    #[test]
    fn figures_leave_title_and_names_to_the_page() {
        let mut chart = chart();
        let triangle = vec![(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)];
        chart.add("under the diagonal", triangle, ChartMark::Area);
        let svg = chart.figure().unwrap();
        assert!(svg.contains("aria-label=\"a &lt; b &amp; c\""), "{svg}");
        assert!(!svg.contains("s squared") && svg.contains("similarity"));
        assert_eq!(svg.matches("<polygon").count(), 1);
        let names: Vec<_> = chart.legend().map(|(name, _)| name).collect();
        let expected = ["s squared", "threshold", "measured", "under the diagonal"];
        assert_eq!(names, expected);
        assert_eq!(chart.svg().unwrap().matches("<polygon").count(), 1);
    }

    #[test]
    fn logarithmic_axis_spaces_doublings_equally() {
        let axis = ChartAxis::doublings("k", [64.0, 1024.0, f64::NAN, 0.0].into_iter());
        assert!(axis.from < 64.0 && axis.to > 1024.0);
        assert_eq!(axis.place(128.0) - axis.place(64.0), 1.0);
        assert_eq!(axis.label(axis.place(128.0)), "128");
        assert_eq!(axis.label(7.5), "", "a long axis has whole doublings only");
        let short = ChartAxis::doublings("k", [1.0, 4.0].into_iter());
        assert_eq!(short.label(0.5), "1.41");
        let none = ChartAxis::doublings("k", std::iter::empty());
        assert!(none.from > 0.0 && none.from < none.to);
        let mut chart = chart();
        (chart.x, chart.series) = (axis, Vec::new());
        assert!(chart.svg().is_ok());
    }
}
