//! Chapters on fingerprints: the worked bits of SimHash, angles, permuted tables, and dense vectors.

use std::collections::BTreeMap;
use std::error::Error;
use std::f64::consts::{FRAC_PI_2, PI};

use resemblance::exact::{
    FeatureSet, angle, cosine, fingerprints_within, hamming, permuted_table, same_bit_probability,
    simhash,
};
use resemblance::schema::{TableDesign, feature_hash};
use resemblance::{Fingerprint, Schema, Signature, SimHash, Vector};
use resemblance_eval::{Chart, ChartAxis, ChartMark, TABLE_POSTING_BYTES};

use crate::matrix::{NAMES, windows};
use crate::parts::{Chapter, PageParts, count, number, quote};
use crate::reading::{BookTexts, item};

/// The bits of the fingerprints that are worked by hand.
const SMALL: u32 = 8;
/// The bits of a block of such a fingerprint.
const BLOCK: usize = 2;
/// The bits and the greatest distance of the tables that are designed, and the number of pages: those of the paper.
const BITS: u16 = 64;
const DISTANCE: u8 = 3;
const PAGES: u64 = 8_000_000_000;
/// The designs: the number of blocks, and of them in a prefix.
const DESIGNS: [(u8, u8); 4] = [(4, 1), (5, 2), (6, 3), (7, 4)];
const SEEDS: u64 = 16;
/// The components and the hash values of vectors.
const DIMENSIONS: usize = 64;
const SIGNS: u16 = 512;

pub(crate) fn write(texts: &BookTexts, parts: &mut PageParts) -> Chapter {
    let small = worked_bits(texts, parts)?;
    angles(texts, parts)?;
    tables(parts, &small)?;
    vectors(texts, parts)
}

/// Works the fingerprint of the first document's words, and returns those of all four.
fn worked_bits(texts: &BookTexts, parts: &mut PageParts) -> Result<Vec<u128>, Box<dyn Error>> {
    let documents = windows(texts)?;
    let hash = |word: &String| u128::from(feature_hash(word.as_bytes())) & ((1 << SMALL) - 1);
    let of = |words: &Vec<String>| simhash(words.iter().map(|word| (hash(word), 1.0)), SMALL);
    let fingerprints = documents.iter().map(of).collect::<Result<Vec<u128>, _>>()?;
    let (words, fingerprint) = (item(&documents, 0)?, *item(&fingerprints, 0)?);
    let mut sums = [0_i64; SMALL as usize];
    let mut rows = Vec::new();
    for word in words {
        let mut cells = vec![quote(word)];
        for (bit, sum) in (0..SMALL).rev().zip(&mut sums) {
            let sign = if hash(word) >> bit & 1 == 1 { 1 } else { -1 };
            *sum += sign;
            cells.push(number("sign", sign as f64, 0));
        }
        rows.push(cells);
    }
    let mut cells = vec!["sum".to_owned()];
    cells.extend(sums.iter().map(|sum| number("sign-sum", *sum as f64, 0)));
    rows.push(cells);
    let mut cells = vec!["bit".to_owned()];
    let bits = (0..SMALL).rev().map(|bit| (fingerprint >> bit & 1) as u64);
    cells.extend(bits.map(|bit| count("sign-bit", bit)));
    rows.push(cells);
    let columns = ["word", "b₇", "b₆", "b₅", "b₄", "b₃", "b₂", "b₁", "b₀"];
    parts.table("signs", &columns, rows);
    parts.count("small-bits", SMALL.into());
    let other = *item(&fingerprints, 1)?;
    parts.html("small-a", binary("small-a", fingerprint));
    parts.html("small-b", binary("small-b", other));
    parts.count("small-distance", hamming(fingerprint, other).into());
    Ok(fingerprints)
}

/// Returns the bits of a small fingerprint in HTML.
fn binary(name: &str, fingerprint: u128) -> String {
    format!("<data class=\"{name}\" value=\"{fingerprint}\">{fingerprint:08b}</data>")
}

/// Returns a chart of the share of bits that differ by angle, with the line of the theory.
fn angle_chart(title: &str, points: Vec<(f64, f64)>) -> Chart {
    let degrees = ChartAxis::linear("angle θ in degrees", 0.0, 90.0);
    let differ = ChartAxis::linear("share of bits that differ", 0.0, 0.6);
    let mut chart = Chart::new(title, degrees, differ);
    chart.curve("theory, θ / π", |angle| angle / 180.0);
    chart.add("pairs of the corpus", points, ChartMark::Points);
    chart
}

/// Returns points of such a chart from angles in radians and shares of bits.
fn angle_points(pairs: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let means = BookTexts::means(pairs.map(|(angle, share)| (angle / FRAC_PI_2, share)));
    means
        .into_iter()
        .map(|(angle, share)| (angle * 90.0, share))
        .collect()
}

/// Compares the distances of fingerprints with the angles between sets.
fn angles(texts: &BookTexts, parts: &mut PageParts) -> Chapter {
    let sets = texts.features.iter().map(|hashes| hashes.iter().copied());
    let sets: Vec<FeatureSet<u64>> = sets.map(FeatureSet::from_iter).collect();
    let mut differing = vec![0; texts.pairs.len()];
    for seed in 1..=SEEDS {
        let schema = Schema::builder().simhash(SimHash::bits64()).seed(seed);
        let sketcher = schema.build()?.sketcher();
        let mut signatures = Vec::new();
        for hashes in &texts.features {
            signatures.push(sketcher.hashes(hashes.iter().copied())?);
        }
        for (pair, differing) in texts.pairs.iter().zip(&mut differing) {
            let (a, b) = (item(&signatures, pair.a)?, item(&signatures, pair.b)?);
            let distance = a.hamming(b)?;
            *differing += distance;
            if seed == 1 && [pair.a, pair.b] == texts.worked_pair() {
                let exact = cosine(item(&sets, pair.a)?, item(&sets, pair.b)?);
                worked_angle(parts, exact, distance)?;
            }
        }
    }
    let mut points = Vec::new();
    for (pair, differing) in texts.pairs.iter().zip(&differing) {
        let exact = cosine(item(&sets, pair.a)?, item(&sets, pair.b)?);
        let share = f64::from(*differing) / (f64::from(BITS) * SEEDS as f64);
        points.push((exact.acos(), share));
    }
    parts.count("angle-seeds", SEEDS);
    let points = angle_points(points.into_iter());
    parts.chart("angles", &angle_chart("Bits of SimHash and angles", points))
}

/// Writes the exact cosine of the worked pair, and what a distance of fingerprints estimates.
fn worked_angle(parts: &mut PageParts, exact: f64, distance: u32) -> Chapter {
    let bits = u32::from(BITS);
    parts.count("simhash-bits", bits.into());
    parts.count("simhash-distance", distance.into());
    parts.number("simhash-same", same_bit_probability(distance, bits)?, 3);
    parts.number("simhash-angle", angle(distance, bits)?.to_degrees(), 1);
    parts.number("simhash-cosine", angle(distance, bits)?.cos(), 3);
    parts.number("set-angle", exact.acos().to_degrees(), 1);
    parts.number("set-cosine", exact, 3);
    Ok(())
}

/// Shows permuted tables of the small fingerprints, and the cost of designs.
fn tables(parts: &mut PageParts, small: &[u128]) -> Chapter {
    let blocks = SMALL as usize / BLOCK;
    let mut rows = Vec::new();
    for block in 0..blocks {
        // The block moves to the front, and the blocks before it move back.
        let places: Vec<u8> = (0..SMALL as usize)
            .map(|bit| match bit / BLOCK {
                own if own == block => bit - block * BLOCK,
                own if own < block => bit + BLOCK,
                _ => bit,
            } as u8)
            .collect();
        let sorted = permuted_table(small, &places)?;
        let mut cells = vec![count("table-block", block as u64 + 1)];
        cells.extend(sorted.iter().map(|code| binary("table-code", *code)));
        rows.push(cells);
    }
    let columns = ["block in front", "first", "second", "third", "fourth"];
    parts.table("tables", &columns, rows);
    parts.count("blocks", blocks as u64);
    parts.count("block-bits", BLOCK as u64);
    parts.html("documents-of-tables", NAMES.join(", "));
    let mut rows = Vec::new();
    for (blocks, leading) in DESIGNS {
        // One block alone is a group.
        let groups = match leading {
            1 => vec![(1, 1); blocks.into()],
            _ => vec![(blocks, leading)],
        };
        let design = TableDesign::new(BITS, DISTANCE, &groups)?;
        let prefix = design.prefix_bits();
        rows.push(vec![
            count("design-blocks", blocks.into()),
            count("design-leading", leading.into()),
            count("design-tables", design.table_count() as u64),
            count("design-prefix", (*prefix.start()).into()),
            number("design-candidates", design.candidates(PAGES), 1),
            number(
                "design-bytes",
                design.table_count() as f64 * TABLE_POSTING_BYTES,
                0,
            ),
        ]);
    }
    let columns = [
        "blocks",
        "in front",
        "tables",
        "prefix, bits",
        "candidates",
        "bytes a page",
    ];
    parts.table("designs", &columns, rows);
    let probes = fingerprints_within(DISTANCE.into(), BITS.into());
    parts.count("probes", probes.ok_or("the probes are few")? as u64);
    parts.count("table-bits", BITS.into());
    parts.count("table-distance", DISTANCE.into());
    parts.count("pages", PAGES);
    two_apart(parts)
}

/// Shows that a table finds two fingerprints that differ in as many bits as its design permits.
fn two_apart(parts: &mut PageParts) -> Chapter {
    let design = TableDesign::new(BITS, DISTANCE, &[(1, 1); DISTANCE as usize + 1])?;
    let (a, b) = (0_u64, 0b1011_u64);
    let found = design.first_shared_table(&Fingerprint::from(a), &Fingerprint::from(b));
    parts.count("apart", hamming(a.into(), b.into()).into());
    parts.count(
        "apart-table",
        found.ok_or("the design finds the distance")? as u64 + 1,
    );
    Ok(())
}

/// Returns a vector of each document that has one: how often each of the most frequent words occurs.
fn word_vectors(texts: &BookTexts) -> BTreeMap<usize, Vec<f32>> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for word in texts.words.iter().flatten() {
        *counts.entry(word).or_default() += 1;
    }
    let mut often: Vec<(&str, u64)> = counts.into_iter().collect();
    often.sort_by(|x, y| y.1.cmp(&x.1).then(x.0.cmp(y.0)));
    let vectors = texts.words.iter().enumerate().map(|(document, words)| {
        let times = |frequent: &str| words.iter().filter(|word| **word == frequent).count() as f32;
        let mut vector: Vec<f32> = often
            .iter()
            .take(DIMENSIONS)
            .map(|it| times(it.0))
            .collect();
        vector.resize(DIMENSIONS, 0.0);
        (document, vector)
    });
    let has_some = |vector: &Vec<f32>| vector.iter().any(|component| *component > 0.0);
    vectors.filter(|(_, vector)| has_some(vector)).collect()
}

fn vectors(texts: &BookTexts, parts: &mut PageParts) -> Chapter {
    let vector = Vector::cosine(DIMENSIONS as u16).values(SIGNS);
    let schema = Schema::builder().vector(vector).build()?;
    let minhash = schema.minhash().ok_or("vectors have values")?;
    let sketcher = schema.sketcher();
    let mut signatures: BTreeMap<usize, Signature> = BTreeMap::new();
    for (document, vector) in word_vectors(texts) {
        signatures.insert(document, sketcher.vector(&vector)?);
    }
    let mut points = Vec::new();
    for pair in &texts.pairs {
        let Some((a, b)) = signatures.get(&pair.a).zip(signatures.get(&pair.b)) else {
            continue;
        };
        let exact = a.exact_set().zip(b.exact_set());
        let (own, other) = exact.ok_or("the schema keeps vectors")?;
        let exact = own.similarity_from(0.0, other, minhash.kind())?;
        let differ = 1.0 - a.agreement(minhash.layout(), b) as f64 / f64::from(SIGNS);
        points.push((exact.acos(), differ));
        if [pair.a, pair.b] == texts.worked_pair() {
            parts.number("vector-cosine", exact, 3);
            parts.number("vector-angle", exact.acos().to_degrees(), 1);
            parts.number("vector-differ", differ, 3);
            parts.number("vector-theory", exact.acos() / PI, 3);
            parts.number("vector-estimate", (differ * PI).cos(), 3);
        }
    }
    parts.count("dimensions", DIMENSIONS as u64);
    parts.count("vector-signs", SIGNS.into());
    let points = angle_points(points.into_iter());
    parts.chart(
        "vectors",
        &angle_chart("Random hyperplanes and angles", points),
    )
}
