//! Compares the recall of a corpus over seeds with signatures that are computed here.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

use resemblance::exact::jaccard_of_sorted;
use resemblance::{Document, Error, MinHash, Schema, SchemaBuilder, Store, Text};
use resemblance_eval::{DocumentSample, Evaluation, Sampler};

const SEEDS: u64 = 40;
const OWN_SEED: u64 = 3;
const FAMILIES: u64 = 6;

fn schema(seed: u64) -> Schema {
    let minhash = MinHash::new(64).threshold(0.7).banding(5, 8);
    let builder: SchemaBuilder = Schema::builder().text(Text::words(1)).seed(seed);
    builder.minhash(minhash).build().unwrap()
}

/// Returns families of ten texts. The texts of a family differ in a few words each, so a family has
/// 45 pairs. Families have texts of 60, 70 and more words.
fn sample() -> DocumentSample {
    let sketcher = schema(OWN_SEED).sketcher();
    let mut sampler = Sampler::new();
    for number in 0..10 * FAMILIES {
        let (family, member) = (number / 10, number % 10);
        let changed = |word: u64| word / 7 == member && member > 0;
        let words = (0..60 + 10 * family).map(|word| match changed(word) {
            true => format!("w{family}x{word}m{member}"),
            false => format!("w{family}x{word}"),
        });
        let text = words.collect::<Vec<_>>().join(" ");
        let key = number.to_string().into_bytes();
        let features = sketcher.feature_hashes(&text).unwrap();
        let signature = sketcher.text(&text).unwrap();
        sampler.add(number, key, features, signature).unwrap();
    }
    sampler.finish(10 * FAMILIES)
}

/// Returns all pairs with a similarity of at least `min` and below `max`.
fn pairs(sample: &DocumentSample, min: f64, max: f64) -> Vec<(usize, usize, f64)> {
    let all = (0..sample.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
    let features = &sample.features;
    let all = all.map(|(a, b)| (a, b, jaccard_of_sorted(&features[a], &features[b])));
    all.filter(|(.., similarity)| (min..max).contains(similarity))
        .collect()
}

/// Returns the share of the pairs that share a band with this seed.
fn recall(sample: &DocumentSample, pairs: &[(usize, usize, f64)], seed: u64) -> f64 {
    let sketcher = schema(seed).sketcher();
    let signature = |hashes: &Vec<u64>| sketcher.hashes(hashes.iter().copied()).unwrap();
    let values = sample.features.iter().map(|hashes| {
        let signature = signature(hashes);
        signature.minhash().unwrap()[..40].to_vec()
    });
    let values: Vec<Vec<u32>> = values.collect();
    let share = |a: usize, b: usize| {
        let mut bands = values[a].chunks(8).zip(values[b].chunks(8));
        bands.any(|(a, b)| a == b)
    };
    let found = pairs.iter().filter(|(a, b, _)| share(*a, *b)).count();
    found as f64 / pairs.len() as f64
}

#[test]
fn recall_over_seeds_agrees_with_reseeded_signatures() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path().join("s.rsm"), schema(OWN_SEED)).unwrap();
    let sample = sample();
    for signature in &sample.signatures {
        store.insert(Document::without_key(), signature).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let mut evaluation = Evaluation::new(&snapshot, sample, 0).unwrap();
    evaluation.over_seeds(SEEDS, || Ok::<_, Error>(())).unwrap();
    evaluation.run(0.5, |_| Ok::<_, Error>(())).unwrap();
    let sample = &evaluation.sample;
    let probability = |similarity: f64| schema(1).minhash().unwrap().probability(similarity);
    for (spread, max) in evaluation.seeds().iter().zip([0.75, 1.1]) {
        let pairs = pairs(sample, 0.7, max);
        assert_eq!(spread.pairs, pairs.len() as u64);
        let of_family = |family: usize| pairs.iter().filter(move |(_, b, _)| b / 10 == family);
        let families = (0..FAMILIES as usize).filter(|family| of_family(*family).count() > 0);
        assert_eq!(spread.families(), families.clone().count() as u64);
        assert!(spread.families() > 1);

        let recalls: Vec<f64> = (1..=SEEDS).map(|s| recall(sample, &pairs, s)).collect();
        let n = SEEDS as f64;
        let mean = recalls.iter().sum::<f64>() / n;
        let squares = recalls.iter().map(|r| (r - mean).powi(2)).sum::<f64>();
        let deviation = (squares / (n - 1.0)).sqrt();
        let near = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-9;
        if max < 1.0 {
            assert_promised(&evaluation, mean, deviation);
        }
        assert!(near(spread.mean(), mean), "{spread:?}");
        assert!(near(spread.deviation(), deviation), "{spread:?}");
        let (min, max) = recalls.iter().fold((1.0_f64, 0.0_f64), |(min, max), r| {
            (min.min(*r), max.max(*r))
        });
        assert!(near(spread.min(), min) && near(spread.max(), max) && min < max);
        // The store's seed is one of those that were tried.
        let own = recalls[OWN_SEED as usize - 1];
        assert!(near(spread.own_recall(), own), "{spread:?}, {own}");

        let chance = |(.., similarity): &(usize, usize, f64)| probability(*similarity);
        let variance = |pair: &(usize, usize, f64)| chance(pair) * (1.0 - chance(pair));
        let count = pairs.len() as f64;
        let expected = pairs.iter().map(chance).sum::<f64>() / count;
        assert!(near(spread.expected(), expected));
        let independent = pairs.iter().map(variance).sum::<f64>().sqrt() / count;
        assert!(near(spread.deviation_if_independent(), independent));
        let together = families.map(|family| {
            let deviations = of_family(family).map(|pair| variance(pair).sqrt());
            deviations.sum::<f64>().powi(2)
        });
        let together = together.sum::<f64>().sqrt() / count;
        assert!(near(spread.deviation_if_together(), together));
        // The pairs of a family share documents. 40 seeds give the deviation to within 1 /
        // sqrt(78), a ninth, so a value four times that beyond either bound is not due to chance.
        assert!(deviation > independent, "{deviation}, {independent}");
        assert!(deviation < 1.45 * together, "{deviation}, {together}");
        let chance = 5.0 * together / n.sqrt();
        assert!((mean - expected).abs() < chance, "{mean}, {expected}");
    }
}

/// Checks the promise about true similarities against the recall of each seed.
fn assert_promised(evaluation: &Evaluation, mean: f64, deviation: f64) {
    let promises = evaluation.promises();
    let names = promises.iter().map(|promise| promise.name);
    assert!(names.eq(["truth", "estimate", "truth_by_estimate"]));
    let truth = &promises[0];
    assert_eq!(truth.pairs(), evaluation.seeds()[0].pairs * SEEDS);
    let recall = schema(1).minhash().unwrap().recall_at_threshold();
    let (least, most) = truth.interval().unwrap();
    let half = 1.96 * deviation / (SEEDS as f64).sqrt();
    for (found, expected) in [
        (truth.promised.unwrap(), 1.0 - recall),
        (truth.missed().unwrap(), 1.0 - mean),
        (least, (1.0 - mean - half).max(0.0)),
        (most, 1.0 - mean + half),
    ] {
        assert!((found - expected).abs() < 1e-9, "{found}, {expected}");
    }
    // Estimates of a true similarity miss more, and those that reach the threshold are candidates
    // more often.
    let (estimate, by_estimate) = (&promises[1], &promises[2]);
    assert!(estimate.pairs() < truth.pairs() && estimate.missed() < truth.missed());
    assert!(by_estimate.pairs() == truth.pairs() && by_estimate.missed() > truth.missed());
}

#[test]
#[cfg(feature = "charts")]
fn promises_are_drawn_beside_what_was_measured() {
    let store = Store::in_memory(schema(OWN_SEED)).unwrap();
    let sample = sample();
    for signature in &sample.signatures {
        store.insert(Document::without_key(), signature).unwrap();
    }
    let mut evaluation = Evaluation::new(&store.snapshot().unwrap(), sample, 0).unwrap();
    assert!(resemblance_eval::promise_chart(&evaluation.promises()).is_none());
    evaluation.over_seeds(SEEDS, || Ok::<_, Error>(())).unwrap();
    evaluation.run(0.5, |_| Ok::<_, Error>(())).unwrap();
    let promises = evaluation.promises();
    let (name, chart) = resemblance_eval::promise_chart(&promises).unwrap();
    assert_eq!((name, chart.series.len()), ("promise.svg", 4));
    for (promise, series) in promises.iter().zip(&chart.series[1..]) {
        let (least, most) = promise.interval().unwrap();
        let measured = [least, promise.missed().unwrap(), most];
        let points = measured.map(|missed| (promise.promised.unwrap(), missed));
        assert_eq!(
            (&*series.name, &series.points[..]),
            (promise.name, &points[..])
        );
        let is_within = |(x, y): &(f64, f64)| *x <= chart.x.to && *y <= chart.y.to;
        assert!(points.iter().all(is_within));
    }
    // A mark for each promise in the chart and in the legend, and one without a size for the
    // diagonal.
    let svg = chart.svg().unwrap();
    assert_eq!(svg.matches("<circle").count(), 3 + 4);
}

#[test]
fn recall_over_seeds_requires_minhash_of_sets() {
    let folder = tempfile::tempdir().unwrap();
    let minhash = MinHash::weighted(64);
    let schema = Schema::builder().text(Text::words(1)).minhash(minhash);
    let store = Store::create(folder.path().join("s.rsm"), schema.build().unwrap()).unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut evaluation = Evaluation::new(&snapshot, Sampler::new().finish(0), 0).unwrap();
    let error = evaluation.over_seeds(2, || Ok::<_, Error>(()));
    assert!(matches!(
        error,
        Err(Error::InvalidParameter {
            parameter: "schema",
            ..
        })
    ));
}
