//! Chapters on estimates: error and time by the number of functions, families of functions, b-bit values, weights.

use std::error::Error;

use resemblance::exact::{FeatureSet, WeightedSet, jaccard, weighted_jaccard};
use resemblance::{MinHash, Schema};
use resemblance_eval::{
    Chart, ChartAxis, ChartMark, ChartSeries, ComparedKind, ComparedPairs, Sampler, compare_kinds,
};

use crate::parts::{Chapter, PageParts, count, number, quote};
use crate::reading::{BookTexts, item};

/// The least similarity of the pairs whose estimates are compared.
const FLOOR: f64 = 0.1;
/// Features that are sketched with all seeds together.
const WORK: usize = 20_000;
/// The numbers of bits of a value that are compared.
const BITS: [u8; 6] = [1, 2, 4, 8, 16, 32];
/// The number of functions of the tables and the worked examples.
const VALUES: u16 = 512;

pub(crate) fn write(texts: &BookTexts, parts: &mut PageParts) -> Chapter {
    let mut sampler = Sampler::new();
    for (number, features) in texts.features.iter().enumerate() {
        let key = number.to_string().into_bytes();
        sampler.add(number as u64, key, features.clone(), None)?;
    }
    let sample = sampler.finish(texts.keys.len() as u64);
    let pairs = ComparedPairs::find(&sample, FLOOR, |_| Ok::<_, resemblance::Error>(()))?;
    let features: usize = texts.features.iter().map(Vec::len).sum();
    let seeds = (WORK / features).clamp(2, 32) as u64;
    let compared = compare_kinds(&sample, &pairs, seeds, || Ok::<_, resemblance::Error>(()))?;
    parts.number("floor", FLOOR, 1);
    parts.count("compared-pairs", pairs.len() as u64);
    parts.count("seeds", seeds);
    errors(parts, &compared)?;
    families(parts, &compared)?;
    b_bit(texts, parts, &compared)?;
    weights(texts, parts)
}

/// Returns the sizes of a kind with a value of each.
fn points(
    compared: &[ComparedKind],
    kind: &str,
    value: impl Fn(&ComparedKind) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let rows = compared.iter().filter(|row| row.kind.name == kind);
    // An error of zero has no place on an axis of doublings.
    let valued = rows.filter_map(|row| {
        let y = value(row).filter(|y| *y > 0.0)?;
        Some((f64::from(row.values()), y))
    });
    valued.collect()
}

/// Returns a chart of these series with axes of doublings.
fn doublings(title: &str, names: [&str; 2], series: Vec<ChartSeries>) -> Chart {
    let points = || series.iter().flat_map(|series| &series.points);
    let [x, y] = names;
    Chart {
        title: title.into(),
        x: ChartAxis::doublings(x, points().map(|(x, _)| *x)),
        y: ChartAxis::doublings(y, points().map(|(_, y)| *y)),
        series,
    }
}

fn series(name: &str, points: Vec<(f64, f64)>, mark: ChartMark) -> ChartSeries {
    ChartSeries {
        name: name.into(),
        points,
        mark,
    }
}

fn errors(parts: &mut PageParts, compared: &[ComparedKind]) -> Chapter {
    let mut rows = Vec::new();
    for row in compared.iter().filter(|row| row.kind.name == "minhash") {
        let (theory, measured) = (row.all.theory(), row.all.deviation());
        rows.push(vec![
            count("error-k", row.values().into()),
            number("error-measured", measured.unwrap_or(0.0), 4),
            number("error-theory", theory.unwrap_or(0.0), 4),
            number("error-worst", row.worst_theory(), 4),
        ]);
    }
    parts.table("errors", &["k", "measured", "theory", "worst J"], rows);
    let deviation = |row: &ComparedKind| row.all.deviation();
    let theory = points(compared, "minhash", |row| row.all.theory());
    let measured = vec![
        series("theory", theory, ChartMark::Line),
        series(
            "k minima",
            points(compared, "minhash", deviation),
            ChartMark::Points,
        ),
        series(
            "one pass",
            points(compared, "one-pass", deviation),
            ChartMark::Rings,
        ),
        series(
            "k least hashes",
            points(compared, "bottom-k", deviation),
            ChartMark::Both,
        ),
    ];
    let names = ["values in a signature, k", "standard deviation"];
    parts.chart(
        "errors-chart",
        &doublings("Error of the estimates", names, measured),
    )?;
    // Tabulation is left out: the time of short documents is that of building its tables.
    let kinds = [
        ("minhash", "pair-multiply"),
        ("multiply-shift", "multiply-shift"),
        ("modular", "modular"),
        ("jenkins", "Jenkins"),
        ("one-pass", "one pass"),
    ];
    let times = kinds.map(|(kind, name)| {
        let times = points(compared, kind, ComparedKind::feature_nanoseconds);
        series(name, times, ChartMark::Both)
    });
    let names = ["values in a signature, k", "nanoseconds a shingle"];
    let chart = doublings("Time to sketch, one thread", names, times.into());
    parts.chart("times-chart", &chart)
}

/// Compares the errors of modular functions and those of Jenkins.
fn families(parts: &mut PageParts, compared: &[ComparedKind]) -> Chapter {
    let deviation = |row: &ComparedKind| row.all.deviation();
    let [modular, jenkins] = ["modular", "jenkins"].map(|kind| points(compared, kind, deviation));
    let theory = points(compared, "minhash", |row| row.all.theory());
    let (mut rows, mut difference, mut most) = (Vec::new(), Vec::new(), 0.0_f64);
    for (((k, modular), (_, jenkins)), (_, theory)) in modular.iter().zip(&jenkins).zip(&theory) {
        difference.push((*k, jenkins - modular));
        most = most.max(modular.max(*jenkins));
        rows.push(vec![
            count("family-k", *k as u64),
            number("family-modular", *modular, 5),
            number("family-jenkins", *jenkins, 5),
            number("family-difference", jenkins - modular, 5),
            number("family-theory", *theory, 5),
        ]);
    }
    let columns = ["k", "modular", "Jenkins", "difference", "theory"];
    parts.table("families", &columns, rows);
    let mut chart = Chart {
        title: "Two families of functions, and their difference".into(),
        x: ChartAxis::doublings("hash functions, k", modular.iter().map(|(k, _)| *k)),
        y: ChartAxis::linear("standard deviation", -0.25 * most, 1.2 * most),
        series: Vec::new(),
    };
    let zero = vec![(chart.x.from, 0.0), (chart.x.to, 0.0)];
    chart.add("modular", modular, ChartMark::Both);
    chart.add("Jenkins", jenkins, ChartMark::Both);
    chart.add("Jenkins less modular", difference, ChartMark::Both);
    chart.add("no difference", zero, ChartMark::Line);
    parts.chart("families-chart", &chart)
}

/// Compares values that are cut to a few bits.
fn b_bit(texts: &BookTexts, parts: &mut PageParts, compared: &[ComparedKind]) -> Chapter {
    let [a, b] = texts.worked_pair();
    let pair = texts.pairs.iter().find(|pair| pair.a == a && pair.b == b);
    let similarity = pair.ok_or("the worked pair is a pair")?.similarity;
    let mut rows = Vec::new();
    for bits in BITS {
        let schema = Schema::builder()
            .minhash(MinHash::new(VALUES).value_bits(bits))
            .build()?;
        let minhash = schema.minhash().ok_or("the schema has MinHash")?;
        let layout = minhash.layout();
        rows.push(vec![
            count("bit-bits", bits.into()),
            number("bit-agree", layout.agreement_probability(similarity), 4),
            number("bit-deviation", minhash.variance(similarity).sqrt(), 4),
            count("bit-bytes", layout.size_bytes() as u64),
        ]);
    }
    parts.count("bit-values", VALUES.into());
    let columns = ["b", "two values agree", "deviation", "bytes"];
    parts.table("bits", &columns, rows);
    let kinds = [
        ("minhash", "32 bits"),
        ("16-bit", "16 bits"),
        ("8-bit", "8 bits"),
        ("4-bit", "4 bits"),
        ("2-bit", "2 bits"),
        ("1-bit", "1 bit"),
    ];
    let drawn = kinds.map(|(kind, name)| {
        let rows = compared.iter().filter(|row| row.kind.name == kind);
        let points =
            rows.filter_map(|row| Some((row.signature_bytes() as f64, row.all.deviation()?)));
        series(name, points.collect(), ChartMark::Both)
    });
    let names = ["bytes of a signature", "standard deviation"];
    parts.chart(
        "bits-chart",
        &doublings("Error by storage", names, drawn.into()),
    )
}

/// Returns the words of a document with the number of times that each occurs.
fn counted(words: &[String]) -> Result<WeightedSet<&str>, Box<dyn Error>> {
    let ones = words.iter().map(|word| (&**word, 1.0));
    Ok(WeightedSet::new(ones)?)
}

fn weights(texts: &BookTexts, parts: &mut PageParts) -> Chapter {
    let [a, b] = texts.worked_pair();
    let (words_a, words_b) = (item(&texts.words, a)?, item(&texts.words, b)?);
    let (own, other) = (counted(words_a)?, counted(words_b)?);
    let mut often = own.as_slice().to_vec();
    often.sort_by(|x, y| y.1.total_cmp(&x.1).then(x.0.cmp(y.0)));
    let rows = often.iter().take(4).map(|(word, times)| {
        let in_b = other.as_slice().iter().find(|(of_b, _)| of_b == word);
        let in_b = in_b.map_or(0.0, |(_, times)| *times);
        vec![
            quote(word),
            count("times-a", *times as u64),
            count("times-b", in_b as u64),
            count("times-least", times.min(in_b) as u64),
            count("times-most", times.max(in_b) as u64),
        ]
    });
    parts.table(
        "times",
        &["word", "in A", "in B", "least", "most"],
        rows.collect(),
    );
    let sketcher = Schema::builder()
        .minhash(MinHash::weighted(VALUES))
        .build()?
        .sketcher();
    let sketch = |set: &WeightedSet<&str>| sketcher.weighted_features(set.as_slice().to_vec());
    let set = |words: &[String]| words.iter().cloned().collect::<FeatureSet<String>>();
    let doubled = WeightedSet::new(
        own.as_slice()
            .iter()
            .map(|(word, times)| (*word, 2.0 * times)),
    )?;
    parts.number("words-jaccard", jaccard(&set(words_a), &set(words_b)), 3);
    parts.number("words-weighted", weighted_jaccard(&own, &other), 3);
    parts.number(
        "words-estimate",
        sketch(&own)?.jaccard(&sketch(&other)?)?,
        3,
    );
    parts.number("twice-weighted", weighted_jaccard(&own, &doubled), 3);
    parts.number(
        "twice-estimate",
        sketch(&own)?.jaccard(&sketch(&doubled)?)?,
        3,
    );
    parts.count("weighted-values", VALUES.into());
    Ok(())
}
