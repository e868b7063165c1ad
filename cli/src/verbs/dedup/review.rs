//! Pairs near the bound, for a person to judge.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use resemblance::Schema;
use resemblance_corpus::dedup::{DropRule, ReviewSample, ReviewSide};
use resemblance_corpus::{Corpus, ReadTotals};
use resemblance_eval::report::{ExplainedPair, MAX_TEXT_BYTES};

use super::arguments::{DedupPaths, ReviewOptions};
use super::decide::{DecidedRecord, DroppedRecord};
use crate::failure::Result;
use crate::output::{
    Column, ColumnKind, Evidence, Layout, Results, Survivor, SurvivorPlace, Value,
};
use crate::session::{Context, read_numbered_texts};

/// The maximum number of bytes of a text in a row.
const SHOWN_BYTES: usize = 2_000;

/// A document and the one that it was compared with.
struct ReviewedPair {
    /// The number of the document in the corpus.
    number: u64,
    key: Vec<u8>,
    candidate: Survivor,
}

impl ReviewedPair {
    /// Returns the number of the candidate, if it is in the corpus.
    fn candidate_number(&self) -> Option<u64> {
        match self.candidate.place {
            SurvivorPlace::Corpus(number) => Some(number),
            SurvivorPlace::Store(_) => None,
        }
    }
}

/// The pairs near the bound.
pub(super) struct ReviewReport {
    results: Results,
    sample: ReviewSample<ReviewedPair>,
    /// True if the share that would be lost is bounded.
    is_by_loss: bool,
    /// The pairs that are chosen from, in words.
    window: String,
}

impl ReviewReport {
    /// Creates a report, if one is wanted. `lost` is the bound of the share that may be lost, if this decides, and
    /// `threshold` that of similarities.
    pub(super) fn create(
        options: &ReviewOptions,
        paths: &DedupPaths<'_>,
        lost: Option<f64>,
        threshold: f64,
    ) -> Result<Option<Self>> {
        let Some(path) = &options.review else {
            return Ok(None);
        };
        let (value, bound) = match lost {
            Some(lost) => ("the lost share", lost),
            None => ("the similarity", threshold),
        };
        let within = options.review_within;
        let number = |name| Column::of(name, ColumnKind::Number);
        let mut columns = Column::list("document candidate decision judgement");
        columns.extend([number("similarity"), Column::new("similarity_is")]);
        columns.extend(["held", "covered"].map(number));
        columns.push(Column::of("population", ColumnKind::Count));
        columns.extend(Column::list("document_text candidate_text"));
        let layout = Layout::of_name(path, paths.has_header)?;
        let (pairs, seed) = (options.review_pairs, options.review_seed);
        Ok(Some(Self {
            results: Results::create(path, paths.force, layout, columns)?,
            sample: ReviewSample::new(bound, within, pairs, seed),
            is_by_loss: lost.is_some(),
            window: format!("{value} is less than {within} away from {bound}"),
        }))
    }

    /// Considers a decision.
    pub(super) fn take(&mut self, decided: &DecidedRecord<'_>) {
        let (is_dropped, number, key, candidate) = match *decided {
            DecidedRecord::Dropped(DroppedRecord {
                number,
                key,
                survivor: Some(survivor),
            }) => (true, number, key, survivor),
            DecidedRecord::Dropped(_) => return,
            DecidedRecord::Rejected {
                number,
                document,
                candidate,
            } => (false, number, document, candidate),
        };
        // Copies, and pairs that others link, are not near because of the bound.
        if candidate.evidence == Evidence::Equal || candidate.rule == DropRule::Cluster {
            return;
        }
        let value = match self.is_by_loss {
            true => candidate.shares.map(|shares| 1.0 - shares.held),
            false => candidate.similarity,
        };
        let other = match candidate.place {
            SurvivorPlace::Corpus(other) => other,
            // Documents of the store are numbered from the other end.
            SurvivorPlace::Store(id) => !id,
        };
        if let Some(value) = value {
            let describe = || ReviewedPair {
                number,
                key: key.to_vec(),
                candidate: candidate.clone(),
            };
            self.sample
                .add(is_dropped, value, [number, other], describe);
        }
    }

    /// Reads the texts of the chosen pairs, writes the pairs, and prints of how many they were chosen.
    pub(super) fn write(
        self,
        context: &Context,
        corpus: &Arc<Corpus>,
        totals: ReadTotals,
        schema: &Schema,
    ) -> Result<Results> {
        let (mut results, sides) = (self.results, self.sample.finish());
        let chosen = sides.iter().flat_map(ReviewSide::chosen);
        let numbers = chosen.flat_map(|pair| [Some(pair.number), pair.candidate_number()]);
        let numbers: BTreeSet<u64> = numbers.flatten().collect();
        let texts = read_numbered_texts(context, corpus, totals, numbers, MAX_TEXT_BYTES)?;
        let mut counts = Vec::new();
        for (side, decision) in sides.iter().zip(["dropped", "kept apart"]) {
            for pair in side.chosen() {
                context.interrupt.check()?;
                write_pair(&mut results, pair, decision, side.pairs, schema, &texts)?;
            }
            let chosen = side.chosen().count();
            counts.push(format!("{chosen} of {} {decision}", side.pairs));
        }
        context.note(format!(
            "pairs to review: {}; {}",
            counts.join(", "),
            self.window
        ));
        Ok(results)
    }
}

fn write_pair(
    results: &mut Results,
    pair: &ReviewedPair,
    decision: &str,
    population: u64,
    schema: &Schema,
    texts: &BTreeMap<u64, String>,
) -> Result<()> {
    let candidate = &pair.candidate;
    let both = [Some(pair.number), pair.candidate_number()].map(|number| texts.get(&number?));
    let marked = match both {
        [Some(a), Some(b)] if schema.text().is_some() => {
            let (labels, texts) = (Default::default(), [a.clone(), b.clone()]);
            let explained = ExplainedPair::new(schema, labels, texts)?;
            explained.marked(SHOWN_BYTES).map(Some)
        }
        _ => [None, None],
    };
    let [document, other] = marked
        .each_ref()
        .map(|text| Value::OptionalText(text.as_deref()));
    let (held, covered) = candidate.shares.map(|it| (it.held, it.covered)).unzip();
    results.row(&[
        Value::Key(&pair.key),
        candidate.value(),
        Value::Text(decision),
        Value::OptionalText(None),
        Value::Similarity(candidate.similarity),
        Value::Text(candidate.evidence.name()),
        Value::Similarity(held),
        Value::Similarity(covered),
        Value::Count(population),
        document,
        other,
    ])
}
