//! Finding the paragraphs and lines of a corpus that stood before.

use std::sync::Arc;

use resemblance::Text;
use resemblance_corpus::dedup::{RepeatedParts, TextPart, TextParts};

use super::bit_list::BitList;
use super::context::Context;
use super::reading::CorpusDocuments;
use super::tally::DocumentTally;
use crate::failure::{Failure, Result};
use resemblance_corpus::{Corpus, CorpusDocument, ReadTotals, SourceKind, TextTrims};

/// A corpus that has been read once, and what is left of it without repeated parts.
pub(crate) struct TrimmedCorpus {
    /// Says as it is read and written what is left out.
    pub(crate) corpus: Corpus,
    /// A bit for each record: whether anything is left of it.
    pub(crate) kept: BitList,
    /// Whether nothing is left.
    pub(crate) emptied: BitList,
    pub(crate) tally: DocumentTally,
    pub(crate) totals: ReadTotals,
}

/// Reads a corpus, and finds the parts of its texts that stood in an earlier text, or earlier in the same.
pub(crate) fn trim_corpus(
    context: &Context,
    mut corpus: Corpus,
    part: TextPart,
    recipe: &Text,
    skip_bad: bool,
) -> Result<TrimmedCorpus> {
    must_be_writable(&corpus)?;
    let read_corpus = Arc::new(corpus.clone());
    let recipe = *recipe;
    let work = move |document: &CorpusDocument<'_>| match document.content.text() {
        Some(text) => Ok(Some(TextParts::new(part, &recipe, text)?)),
        None => Ok(None),
    };
    let mut documents = CorpusDocuments::start(context, "reading", &read_corpus, 0, work);
    let mut repeated = RepeatedParts::new().memory_bytes(context.memory_bytes);
    let mut trims = TextTrims::new(part);
    let (mut kept, mut emptied) = (BitList::default(), BitList::default());
    let mut tally = DocumentTally::default();
    while let Some(read) = documents.next()? {
        let (source, line) = (read.source, read.line);
        let document = read.take(context, &read_corpus, &mut tally, skip_bad)?;
        let is_good = document.is_some();
        let parts = document.and_then(|document| document.value);
        let mut is_emptied = false;
        if let Some(parts) = parts {
            let trimmed = repeated
                .trim(&parts)
                .map_err(|error| too_many(error, &repeated))?;
            tally.dropped_parts += trimmed.dropped.len() as u64;
            is_emptied = trimmed.is_emptied;
            trims.note(source, line, trimmed);
        }
        tally.emptied += u64::from(is_emptied);
        tally.kept += u64::from(is_good && !is_emptied);
        kept.push(is_good && !is_emptied);
        emptied.push(is_emptied);
    }
    tally.must_be_mostly_good()?;
    let totals = documents.totals();
    corpus.trims = Some(trims);
    Ok(TrimmedCorpus {
        corpus,
        kept,
        emptied,
        tally,
        totals,
    })
}

/// More different parts than memory holds.
fn too_many(error: resemblance::Error, repeated: &RepeatedParts) -> Failure {
    match error {
        resemblance::Error::InvalidParameter { .. } => Failure::usage(format!(
            "more than {} different paragraphs or lines, which --memory has no room for; give it 31 bytes for \
             each",
            repeated.len()
        )),
        error => error.into(),
    }
}

/// An error where a text cannot be written without a part of it.
fn must_be_writable(corpus: &Corpus) -> Result<()> {
    if corpus.settings.text_fields.len() > 1 {
        return Err(Failure::usage(
            "--level paragraph and line take one --text-field: a text of several cannot be written back",
        ));
    }
    let is_other = |kind| !matches!(kind, SourceKind::Lines | SourceKind::Text);
    match corpus.sources.iter().find(|source| is_other(source.kind)) {
        None => Ok(()),
        Some(source) => Err(Failure::usage(format!(
            "--level paragraph and line are for JSON Lines and files of one text; {} is another",
            source.name().display()
        ))),
    }
}
