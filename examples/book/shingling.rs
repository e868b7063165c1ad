//! Chapters on sets: shingles, resemblance and containment, and how long shingles should be.

use std::error::Error;
use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use resemblance::exact::{jaccard_of_sorted, shared_spans};
use resemblance::{MinHash, Schema, Text};
use resemblance_eval::{Chart, ChartAxis, ChartMark};

use crate::parts::{Chapter, PageParts, escaped, quote};
use crate::reading::{BookTexts, NEAR, SHINGLES, TextPair, item};

/// The numbers of characters in a shingle.
const SIZES: [u16; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 20];
/// The most pairs of a kind whose similarities are averaged.
const PAIRS: usize = 100;
/// Lengths that the prose names.
const SHOWN_SIZES: [(&str, u16); 2] = [("size-short", 4), ("size-long", 9)];
const VALUES: u16 = 128;
/// The runs of which the fastest is the time.
const RUNS: u32 = 5;

pub(crate) fn write(texts: &BookTexts, parts: &mut PageParts) -> Chapter {
    let words: usize = texts.words.iter().map(Vec::len).sum();
    let near = texts.pairs.iter().filter(|pair| pair.similarity >= NEAR);
    parts.html("corpus", format!("<cite>{}</cite>", escaped(&texts.name)));
    parts.count("documents", texts.keys.len() as u64);
    parts.count("words", words as u64);
    parts.count("pairs", texts.pairs.len() as u64);
    parts.number("near", NEAR, 1);
    parts.count("near-pairs", near.count() as u64);
    worked_pair(texts, parts)?;
    sizes(texts, parts)
}

fn worked_pair(texts: &BookTexts, parts: &mut PageParts) -> Chapter {
    let [a, b] = texts.worked_pair();
    let (text_a, text_b) = (item(&texts.texts, a)?, item(&texts.texts, b)?);
    let spans = shared_spans(&SHINGLES, text_a, text_b)?;
    parts.html("text-a", marked(text_a, &spans.spans_a)?);
    parts.html("text-b", marked(text_b, &spans.spans_b)?);
    let mut first = Vec::new();
    SHINGLES.for_each_shingle(text_a, |shingle| first.push(shingle.to_owned()));
    let shown: Vec<String> = first.iter().take(3).map(|it| quote(it)).collect();
    parts.html("first-shingles", shown.join(", "));
    parts.count("shingle-words", SHINGLES.length().into());
    parts.count("shingles-a", spans.shingles_a as u64);
    parts.count("shingles-b", spans.shingles_b as u64);
    parts.count("shared", spans.shared as u64);
    let union = spans.shingles_a + spans.shingles_b - spans.shared;
    parts.count("union", union as u64);
    parts.number("jaccard", spans.jaccard, 3);
    parts.number("distance", 1.0 - spans.jaccard, 3);
    parts.number("containment-a", spans.share_of_a, 3);
    parts.number("containment-b", spans.share_of_b, 3);
    Ok(())
}

/// Returns the beginning of a text, with what the other text does not have marked.
fn marked(text: &str, shared: &[Range<usize>]) -> Result<String, Box<dyn Error>> {
    const SHOWN: usize = 600;
    let cut = text.char_indices().map(|(at, _)| at).nth(SHOWN);
    let end = cut.unwrap_or(text.len());
    let piece = |range: Range<usize>| text.get(range.start.min(end)..range.end.min(end));
    let (mut html, mut done) = (String::new(), 0);
    for span in shared.iter().cloned().chain(Some(text.len()..text.len())) {
        let (own, both) = (piece(done..span.start), piece(span.clone()));
        let own = own.ok_or("a span cuts a character")?;
        let is_gap = own.chars().any(char::is_alphanumeric);
        html += &match is_gap {
            true => format!("<mark>{}</mark>", escaped(own)),
            false => escaped(own),
        };
        html += &escaped(both.ok_or("a span cuts a character")?);
        done = span.end;
    }
    Ok(html + if cut.is_some() { "…" } else { "" })
}

/// The measurements of one size of shingles.
struct Cut {
    /// The exact similarity of each pair.
    exact: Vec<f64>,
    estimated: Vec<f64>,
    microseconds: f64,
}

/// Cuts all texts by a rule, and compares some pairs.
fn cut(texts: &BookTexts, pairs: &[TextPair], rule: Text) -> Result<Cut, Box<dyn Error>> {
    let schema = Schema::builder().text(rule).minhash(MinHash::new(VALUES));
    let sketcher = schema.build()?.sketcher();
    // The fastest run, because others were delayed by something else.
    let mut seconds = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        for text in &texts.texts {
            black_box(sketcher.text(text)?);
        }
        seconds = seconds.min(start.elapsed().as_secs_f64());
    }
    let (mut exact, mut estimated) = (Vec::new(), Vec::new());
    for pair in pairs {
        let (a, b) = (item(&texts.texts, pair.a)?, item(&texts.texts, pair.b)?);
        let (own, features) = sketcher.text_and_feature_hashes(a)?;
        let (other, others) = sketcher.text_and_feature_hashes(b)?;
        exact.push(jaccard_of_sorted(&features, &others));
        estimated.push(own.jaccard(&other)?);
    }
    Ok(Cut {
        exact,
        estimated,
        microseconds: seconds * 1e6 / texts.texts.len() as f64,
    })
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

/// The curves of some pairs by the size of shingles.
#[derive(Default)]
struct SizeSeries {
    exact: Vec<(f64, f64)>,
    estimated: Vec<(f64, f64)>,
    without_spaces: Vec<(f64, f64)>,
    errors: Vec<(f64, f64)>,
    times: Vec<(f64, f64)>,
}

impl SizeSeries {
    fn measure(texts: &BookTexts, range: Range<f64>) -> Result<Self, Box<dyn Error>> {
        let all = texts.pairs.iter();
        let chosen = || all.clone().filter(|it| range.contains(&it.similarity));
        let step = chosen().count().div_ceil(PAIRS).max(1);
        let pairs: Vec<TextPair> = chosen().step_by(step).copied().collect();
        let mut series = Self::default();
        for size in SIZES {
            let (rule, place) = (Text::characters(size), f64::from(size));
            let kept = cut(texts, &pairs, rule)?;
            let removed = cut(texts, &pairs, rule.remove_spaces())?;
            let errors = kept.exact.iter().zip(&kept.estimated);
            let square = mean(errors.map(|(exact, estimate)| (exact - estimate).powi(2)));
            let averaged = |values: &[f64]| (place, mean(values.iter().copied()));
            series.exact.push(averaged(&kept.exact));
            series.estimated.push(averaged(&kept.estimated));
            series.without_spaces.push(averaged(&removed.exact));
            series.errors.push((place, square.sqrt()));
            series.times.push((place, kept.microseconds));
        }
        Ok(series)
    }
}

/// Draws similarity, estimate, error and time by the size of shingles.
fn sizes(texts: &BookTexts, parts: &mut PageParts) -> Chapter {
    let near = SizeSeries::measure(texts, NEAR..1.0)?;
    let far = SizeSeries::measure(texts, 0.0..NEAR)?;
    for (name, size) in SHOWN_SIZES {
        parts.count(name, size.into());
        for (of, series) in [("near", &near), ("far", &far)] {
            let place = f64::from(size);
            let found = series.exact.iter().find(|(x, _)| *x == place);
            let (_, value) = found.ok_or("this size is not measured")?;
            parts.number(&format!("{name}-{of}"), *value, 2);
        }
    }
    parts.count("size-values", VALUES.into());
    let axis = || ChartAxis::linear("characters in a shingle", 0.0, 21.0);
    let most = |points: &[(f64, f64)]| points.iter().map(|(_, y)| *y).fold(1e-9, f64::max) * 1.2;
    let error = ChartAxis::linear("root of the mean square error", 0.0, most(&near.errors));
    let mut errors = Chart::new("Error by the length of shingles", axis(), error);
    errors.add("near pairs", near.errors, ChartMark::Both);
    let time = ChartAxis::linear("microseconds a document", 0.0, most(&near.times));
    let mut times = Chart::new("Time to sketch by the length of shingles", axis(), time);
    times.add("one thread", near.times, ChartMark::Both);
    let similarity = ChartAxis::share("mean Jaccard similarity");
    let mut sizes = Chart::new("Similarity by the length of shingles", axis(), similarity);
    sizes.add("near pairs, exact", near.exact, ChartMark::Line);
    sizes.add("far pairs, exact", far.exact, ChartMark::Line);
    sizes.add("near pairs, estimated", near.estimated, ChartMark::Points);
    sizes.add("far pairs, estimated", far.estimated, ChartMark::Points);
    sizes.add(
        "near pairs, without spaces",
        near.without_spaces,
        ChartMark::Line,
    );
    parts.chart("shingle-sizes", &sizes)?;
    parts.chart("shingle-errors", &errors)?;
    parts.chart("shingle-times", &times)
}
