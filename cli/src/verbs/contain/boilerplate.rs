//! The passages of texts that many documents have.

use std::collections::HashSet;
use std::sync::Arc;

use resemblance::exact::span_of_shingles;
use resemblance::schema::feature_hash;
use resemblance::search::FrequentPassage;
use resemblance::{ContainmentQuery, Overlaps, Store, Text};

use super::ContainArguments;
use crate::failure::{Failure, Outcome, Result};
use crate::output::{Column, Counted, Results, Value};
use crate::session::{Context, CorpusDocuments, DocumentTally, sketch_documents};
use resemblance::invariant::bug;
use resemblance_corpus::{Corpus, CorpusDocument};

/// A passage of a text.
struct BoilerplatePassage {
    start: usize,
    end: usize,
    frequent: FrequentPassage,
    /// The text of the passage.
    passage: String,
    /// A hash of its shingles, which are the same wherever it occurs.
    hash: u64,
}

/// Lists each passage of the texts once that more than `max_frequency` documents have.
pub(super) fn list_boilerplate(
    context: &Context,
    arguments: &ContainArguments,
    store: &Store,
    corpus: &Arc<Corpus>,
    max_frequency: u64,
) -> Result<Outcome> {
    let text = store.schema().containment_text().ok_or_else(|| {
        Failure::usage(
            "--boilerplate needs texts, and the schema of the store has no rule for texts",
        )
    })?;
    let filter = arguments.filter.filter(false)?;
    let (snapshot, sketcher) = (store.snapshot()?, store.sketcher().clone());
    let mut items =
        CorpusDocuments::start_together(context, "counting", corpus, move |documents| {
            let signatures = sketch_documents(&sketcher, documents)?;
            let mut query = snapshot.overlaps(&signatures).threads(1);
            if let Some(filter) = &filter {
                query = query.filter(filter.clone());
            }
            passages_of(
                query.max_document_frequency(max_frequency),
                &text,
                documents,
            )
        });
    let columns = Column::list("query start end documents shingles passage");
    let mut results = Results::new(arguments.format.layout(), columns)?;
    let (mut tally, mut reported) = (DocumentTally::default(), HashSet::new());
    while let Some(document) = items.next_good(context, &mut tally, arguments.options.skip_bad)? {
        let passages: Vec<BoilerplatePassage> = document.value;
        tally.kept += u64::from(!passages.is_empty());
        for found in passages {
            if !reported.insert(found.hash) {
                continue;
            }
            let FrequentPassage {
                first_shingle,
                last_shingle,
                documents,
                ..
            } = found.frequent;
            results.row(&[
                Value::Key(&document.key),
                Value::Position(Some(found.start)),
                Value::Position(Some(found.end)),
                Value::Count(documents),
                Value::Count(last_shingle - first_shingle + 1),
                Value::Text(&found.passage),
            ])?;
        }
    }
    results.finish()?;
    let totals = items.end(context, &tally)?;
    context.note(format!(
        "{} in more than {}",
        Counted(reported.len() as u64, "different passage"),
        Counted(max_frequency, "document")
    ));
    context.counts(tally.summary("with such passages", totals));
    Ok(Outcome::found(!reported.is_empty()))
}

fn passages_of(
    query: ContainmentQuery<'_, Vec<Overlaps>>,
    text: &Text,
    documents: &[CorpusDocument<'_>],
) -> Result<Vec<Vec<BoilerplatePassage>>> {
    let found = query.frequent_passages()?;
    let placed = documents.iter().zip(found).map(|(document, passages)| {
        let Some(document) = document.content.text() else {
            return Ok(Vec::new());
        };
        passages
            .into_iter()
            .map(|passage| place(text, document, passage))
            .collect()
    });
    placed.collect()
}

fn place(text: &Text, document: &str, frequent: FrequentPassage) -> Result<BoilerplatePassage> {
    let shingles = usize::try_from(frequent.first_shingle)
        .ok()
        .zip(usize::try_from(frequent.last_shingle).ok())
        .ok_or_else(|| bug("more shingles than memory has bytes"))?;
    let span = span_of_shingles(text, document, shingles.0..shingles.1 + 1)?
        .ok_or_else(|| bug("a shingle that is not there"))?;
    let passage = document
        .get(span.clone())
        .ok_or_else(|| bug("a span within a character"))?;
    let mut hashes = Vec::new();
    text.for_each_shingle(passage, |shingle| {
        hashes.extend_from_slice(&feature_hash(shingle.as_bytes()).to_le_bytes());
    });
    Ok(BoilerplatePassage {
        start: span.start,
        end: span.end,
        frequent,
        passage: passage.to_owned(),
        hash: feature_hash(&hashes),
    })
}
