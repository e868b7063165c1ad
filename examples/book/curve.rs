//! Chapters on bands: the S-curve with its areas, the nearest documents, and ρ.

use std::error::Error;

use resemblance::exact::{jaccard_of_sorted, sensitivity};
use resemblance::schema::Banding;
use resemblance::{Document, MinHash, Schema, Store};
use resemblance_eval::{Background, Chart, ChartAxis, ChartMark, near_neighbour_plan};

use crate::parts::{Chapter, PageParts, count, escaped, number};
use crate::reading::{BookTexts, NEAR, SHINGLES, item, sketcher};

const VALUES: u16 = 128;
/// The similarities in the table of the curve.
const STEPS: [f64; 7] = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8];
/// The number of documents for which searches are planned.
const PLANNED: u64 = 1_000_000;
/// The least similarity of far documents that is planned for.
const LEAST_FAR: f64 = 0.001;
const NEIGHBOURS: usize = 4;

pub(crate) fn write(texts: &BookTexts, parts: &mut PageParts) -> Chapter {
    let minhash = MinHash::new(VALUES).value_bits(32);
    let schema = Schema::builder()
        .text(SHINGLES)
        .minhash(minhash.threshold(NEAR))
        .build()?;
    let design = schema.minhash().ok_or("the schema has MinHash")?;
    let banding = design.banding();
    parts.count("band-values", VALUES.into());
    parts.count("bands", banding.bands().into());
    parts.count("band-rows", banding.rows().into());
    parts.number("threshold", NEAR, 1);
    parts.number("recall-at-threshold", design.recall_at_threshold(), 3);
    parts.number("steepest", banding.approximate_threshold(), 3);
    let (positives, negatives) = banding.areas(NEAR);
    parts.number("false-positives", positives, 4);
    parts.number("false-negatives", negatives, 4);
    let rows = STEPS.map(|s| {
        let band = s.powi(banding.rows().into());
        vec![
            number("curve-s", s, 1),
            number("curve-band", band, 4),
            number("curve-found", banding.probability(s), 4),
        ]
    });
    let columns = ["s", "a band agrees, sʳ", "found, <var>1 − (1 − sʳ)ᵇ</var>"];
    parts.table("curve-table", &columns, rows.into());
    draw_curve(texts, parts, banding)?;
    nearest(texts, parts)?;
    rho(texts, parts)
}

/// Returns how many of some seeds make each pair share a band, and the number of seeds.
fn candidates(texts: &BookTexts, banding: Banding) -> Result<(Vec<u32>, u64), Box<dyn Error>> {
    let seeds = (2_000_000 / texts.pairs.len() as u64).clamp(16, 400);
    let mut found = vec![0; texts.pairs.len()];
    for seed in 1..=seeds {
        let of_seed = sketcher(MinHash::new(VALUES), seed)?;
        let mut signatures = Vec::new();
        for hashes in &texts.features {
            signatures.push(of_seed.hashes(hashes.iter().copied())?);
        }
        for (pair, found) in texts.pairs.iter().zip(&mut found) {
            let values = |document| item(&signatures, document).map(|it| it.minhash());
            let (a, b) = values(pair.a)?
                .zip(values(pair.b)?)
                .ok_or("they have values")?;
            let rows = banding.rows().into();
            let bands = a.chunks_exact(rows).zip(b.chunks_exact(rows));
            let shares = bands.take(banding.bands().into()).any(|(a, b)| a == b);
            *found += u32::from(shares);
        }
    }
    Ok((found, seeds))
}

/// Draws the curve, the areas of both kinds of errors, and what the pairs of the corpus do.
fn draw_curve(texts: &BookTexts, parts: &mut PageParts, banding: Banding) -> Chapter {
    let (found, seeds) = candidates(texts, banding)?;
    let share = |found: &u32| f64::from(*found) / seeds as f64;
    parts.count("curve-seeds", seeds);
    for (name, is_near) in [("near", true), ("far", false)] {
        let chosen = texts.pairs.iter().zip(&found);
        let chosen = chosen.filter(|(pair, _)| (pair.similarity >= NEAR) == is_near);
        let (mut pairs, mut measured, mut theory) = (0.0, 0.0, 0.0);
        for (pair, found) in chosen {
            pairs += 1.0;
            measured += share(found);
            theory += banding.probability(pair.similarity);
        }
        parts.number(&format!("found-{name}"), measured / pairs, 4);
        parts.number(&format!("found-{name}-theory"), theory / pairs, 4);
    }
    let mut chart = Chart::new(
        "The S-curve, its errors, and the corpus",
        ChartAxis::share("Jaccard similarity s"),
        ChartAxis::share("probability of being found"),
    );
    let curve = |from: f64, to: f64| {
        let at = move |step: u32| from + (to - from) * f64::from(step) / 100.0;
        (0..=100).map(move |step| (at(step), banding.probability(at(step))))
    };
    let below = curve(0.0, NEAR).chain([(NEAR, 0.0)]);
    let above = curve(NEAR, 1.0).chain([(NEAR, 1.0)]);
    chart.curve("theory", |s| banding.probability(s));
    chart.add("false positives", below.collect(), ChartMark::Area);
    chart.add("false negatives", above.collect(), ChartMark::Area);
    let pairs = texts.pairs.iter().map(|pair| pair.similarity);
    let measured = BookTexts::means(pairs.zip(found.iter().map(share)));
    chart.add("pairs of the corpus", measured, ChartMark::Points);
    chart.upright("threshold", NEAR);
    parts.chart("s-curve", &chart)
}

/// Lists the documents nearest to the first of the worked examples.
fn nearest(texts: &BookTexts, parts: &mut PageParts) -> Chapter {
    let schema = Schema::builder()
        .text(SHINGLES)
        .minhash(MinHash::new(VALUES));
    let store = Store::in_memory(schema.build()?)?;
    for text in &texts.texts {
        store.insert(Document::without_key(), &store.sketch_text(text)?)?;
    }
    let [asked, _] = texts.worked_pair();
    let (text, features) = (item(&texts.texts, asked)?, item(&texts.features, asked)?);
    let found = store
        .snapshot()?
        .nearest(&store.sketch_text(text)?, NEIGHBOURS)
        .run()?;
    let mut rows = Vec::new();
    for found in found.iter() {
        let document = found.id().get() as usize;
        let exact = jaccard_of_sorted(features, item(&texts.features, document)?);
        let estimate = found.similarity().ok_or("it is found by MinHash")?;
        let key = escaped(item(&texts.keys, document)?);
        rows.push(vec![
            format!("<q>{key}</q>"),
            number("nearest-estimate", estimate, 3),
            number("nearest-exact", exact, 3),
        ]);
    }
    parts.html(
        "asked",
        format!("<q>{}</q>", escaped(item(&texts.keys, asked)?)),
    );
    parts.table("nearest", &["document", "estimate", "J"], rows);
    Ok(())
}

fn rho(texts: &BookTexts, parts: &mut PageParts) -> Chapter {
    let background = Background::measured(&texts.features, || Ok::<_, resemblance::Error>(()))?;
    let far = background.mean().max(LEAST_FAR);
    parts.number("far", far, 4);
    parts.count("planned", PLANNED);
    let mut rows = Vec::new();
    for near in [0.8, 0.5, 0.3] {
        if near <= far {
            continue;
        }
        let plan = near_neighbour_plan(near, far, PLANNED)?;
        rows.push(vec![
            number("plan-near", near, 1),
            number("plan-rho", plan.rho, 3),
            count("plan-rows", plan.rows.into()),
            count("plan-bands", plan.bands.into()),
            number("plan-found", plan.probability, 3),
            number("plan-candidates", plan.candidates, 1),
        ]);
    }
    let columns = [
        "near, p₁",
        "ρ",
        "rows k",
        "bands l",
        "found",
        "far candidates",
    ];
    parts.table("plans", &columns, rows);
    let mut chart = Chart::new(
        "The exponent ρ",
        ChartAxis::share("similarity of near documents, p₁"),
        ChartAxis::share("ρ = ln p₁ / ln p₂"),
    );
    for far in [0.2, 0.05, 0.01] {
        let steps = (1..100).map(|step| f64::from(step) / 100.0);
        let above = steps.filter(|near| *near >= far);
        let points = above.map(|near| Ok((near, sensitivity(near, far)?)));
        let points = points.collect::<resemblance::Result<Vec<_>>>()?;
        chart.add(
            format!("far documents: p₂ = {far}"),
            points,
            ChartMark::Line,
        );
    }
    parts.chart("rho", &chart)
}
