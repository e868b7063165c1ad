//! Counting how many documents of a corpus have each feature, for weights by tf-idf.

use std::path::PathBuf;
use std::sync::Arc;

use resemblance::{DocumentFrequencies, Schema};

use super::context::Context;
use super::reading::{CorpusDocuments, resolve_corpus};
use super::tally::DocumentTally;
use crate::failure::{Failure, Result};
use crate::options::CorpusOptions;
use resemblance_corpus::ContentRule;

/// The schema with weights by the rarity of features in these corpora, which are read for it.
pub(crate) fn with_tf_idf(
    context: &Context,
    schema: Schema,
    inputs: &[PathBuf],
    options: &CorpusOptions,
) -> Result<Schema> {
    // An error now, and not once the corpus has been read.
    let schema = schema.with_weights(DocumentFrequencies::new())?;
    let content = ContentRule::new(&schema, true);
    let corpus = Arc::new(resolve_corpus(context, inputs, options, content)?);
    if let Some(source) = corpus.sources.iter().find(|source| !source.is_rereadable()) {
        return Err(Failure::usage(format!(
            "--tf-idf reads the corpus twice, and {} can be read once: give a file",
            source.name().display()
        )));
    }
    let sketcher = schema.sketcher();
    let mut documents = CorpusDocuments::start(context, "counting", &corpus, 0, move |document| {
        Ok(document.content.features(&sketcher)?)
    });
    let mut frequencies = DocumentFrequencies::new();
    let mut tally = DocumentTally::default();
    while let Some(document) = documents.next_good(context, &mut tally, options.skip_bad)? {
        frequencies.add(document.value);
    }
    documents.end(context, &tally)?;
    let (counted, features) = (frequencies.documents(), frequencies.iter().len());
    context.note(format!(
        "tf-idf by {features} features of {counted} documents"
    ));
    Ok(schema.with_weights(frequencies)?)
}
