//! Jaccard similarity against the size of shingles, with spaces and without.

use std::collections::BTreeMap;
use std::sync::Arc;

use resemblance::exact::jaccard_of_sorted;
use resemblance::{Schema, SimHash, Text};
use resemblance_eval::DocumentSample;

use super::EvalArguments;
use super::compared::ComparedPairs;
use crate::bug::{at, at_mut};
use crate::failure::Result;
use crate::output::{Chart, ChartAxis, ChartMark, ChartSeries};
use crate::session::{Context, CorpusDocuments, DocumentTally, resolve_corpus};
use resemblance_corpus::ContentRule;

/// Pairs of each kind whose mean is drawn, at most.
const PAIRS: usize = 100;

/// Characters of a shingle.
const SIZES: [u16; 14] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20];

/// Some pairs of documents that are about equally similar.
struct PairGroup {
    name: String,
    pairs: Vec<(usize, usize)>,
}

/// Near-duplicates, others that have something in common, and any two documents.
fn groups(
    sample: &DocumentSample,
    found: &ComparedPairs,
    threshold: f64,
    floor: f64,
) -> Vec<PairGroup> {
    let chosen = |is_chosen: &dyn Fn(f64) -> bool| {
        let pairs = found
            .iter()
            .filter(|(_, _, similarity)| is_chosen(*similarity));
        pairs.take(PAIRS).map(|(a, b, _)| (a, b)).collect()
    };
    // Those that stand far apart in the corpus, each in one pair.
    let half = sample.len() / 2;
    let step = half.div_ceil(PAIRS).max(1);
    let others = (0..half).step_by(step).map(|a| (a, a + half)).collect();
    let groups = [
        (format!("J ≥ {threshold}"), chosen(&|j| j >= threshold)),
        (
            format!("J of {floor} to {threshold}"),
            chosen(&|j| j < threshold),
        ),
        ("any two".to_owned(), others),
    ]
    .into_iter()
    .map(|(name, pairs)| PairGroup { name, pairs });
    groups.filter(|group| !group.pairs.is_empty()).collect()
}

/// The texts of these documents of the sample, which is read again. `None` where that cannot be.
fn read_texts(
    context: &Context,
    arguments: &EvalArguments,
    schema: &Schema,
    sample: &DocumentSample,
    groups: &[PairGroup],
) -> Result<Option<BTreeMap<usize, String>>> {
    let content = ContentRule::texts_of(schema);
    let corpus = resolve_corpus(context, &arguments.inputs, &arguments.options, content)?;
    if !corpus.sources.iter().all(|source| source.is_rereadable()) {
        context.note(
            "no chart of the sizes of shingles: standard input can be read once; give a file",
        );
        return Ok(None);
    }
    let mut wanted: BTreeMap<&[u8], usize> = BTreeMap::new();
    for (a, b) in groups.iter().flat_map(|group| &group.pairs) {
        for document in [*a, *b] {
            wanted.insert(at(&sample.keys, document)?, document);
        }
    }
    let corpus = Arc::new(corpus);
    let text = |document: &resemblance_corpus::CorpusDocument<'_>| {
        Ok(document.content.text().map(str::to_owned))
    };
    let mut documents = CorpusDocuments::start(context, "reading again", &corpus, 0, text);
    let (mut texts, mut tally) = (BTreeMap::new(), DocumentTally::default());
    while let Some(document) =
        documents.next_good(context, &mut tally, arguments.options.skip_bad)?
    {
        if let Some((document, text)) = wanted.remove(&*document.key).zip(document.value) {
            texts.insert(document, text);
        }
    }
    Ok(Some(texts))
}

/// The chart, unless the corpus has no texts or cannot be read again.
pub(super) fn shingle_chart(
    context: &Context,
    arguments: &EvalArguments,
    schema: &Schema,
    sample: &DocumentSample,
) -> Result<Option<(&'static str, Chart)>> {
    if schema.text().is_none() {
        return Ok(None);
    }
    let check = |_| context.interrupt.check();
    let found = ComparedPairs::find(sample, arguments.min, check)?;
    let threshold = schema.minhash().map_or(0.8, |minhash| minhash.threshold());
    let groups = groups(sample, &found, threshold, arguments.min);
    let Some(texts) = read_texts(context, arguments, schema, sample, &groups)? else {
        return Ok(None);
    };
    let mut means = vec![[Vec::new(), Vec::new()]; groups.len()];
    let mut progress = context.progress("cutting");
    for size in SIZES {
        let kept = Text::characters(size);
        for (place, text) in [kept, kept.remove_spaces()].into_iter().enumerate() {
            // A schema needs signatures, although this one makes none.
            let cutter = Schema::builder()
                .text(text)
                .simhash(SimHash::bits64())
                .build()?
                .sketcher();
            let mut features = BTreeMap::new();
            for (document, text) in &texts {
                context.tick(&mut progress)?;
                features.insert(*document, cutter.feature_hashes(text)?);
            }
            for (group, means) in groups.iter().zip(&mut means) {
                let of = |document: &usize| features.get(document);
                let pairs = group.pairs.iter().filter_map(|(a, b)| of(a).zip(of(b)));
                let similarities: Vec<f64> = pairs.map(|(a, b)| jaccard_of_sorted(a, b)).collect();
                let mean = similarities.iter().sum::<f64>() / similarities.len() as f64;
                at_mut(means, place)?.push((f64::from(size), mean));
            }
        }
    }
    progress.clear();
    Ok(Some(("shingle-sizes.svg", draw(&groups, means))))
}

fn draw(groups: &[PairGroup], means: Vec<[Vec<(f64, f64)>; 2]>) -> Chart {
    let mut series = Vec::new();
    for (group, [kept, removed]) in groups.iter().zip(means) {
        let (name, count) = (&group.name, group.pairs.len());
        let lines = [
            (
                match count {
                    1 => format!("{name}, 1 pair, spaces kept"),
                    _ => format!("{name}, {count} pairs, spaces kept"),
                },
                kept,
                ChartMark::Both,
            ),
            (format!("{name}, spaces removed"), removed, ChartMark::Line),
        ];
        let lines =
            lines
                .into_iter()
                .map(|(name, points, mark)| ChartSeries { name, points, mark });
        series.extend(lines);
    }
    // With room for what the lines are called.
    let last = SIZES
        .iter()
        .max()
        .map_or(1.0, |size| 1.5 * f64::from(*size));
    Chart {
        title: "Similarity by the size of shingles".into(),
        x: ChartAxis::linear("characters in a shingle", 0.0, last),
        y: ChartAxis::share("mean exact Jaccard similarity"),
        series,
    }
}
