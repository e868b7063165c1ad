//! Reads a corpus to measure its texts: a sample of them, or the number of them that have each
//! feature.

use std::path::PathBuf;
use std::sync::Arc;

use resemblance::schema::DocumentFrequencies;
use resemblance::{Error, Schema, Sketcher};
use resemblance_corpus::{Content, ContentRule};
use resemblance_eval::{DocumentSample, Sampler};

use super::context::Context;
use super::documents::{CorpusDocuments, resolve_corpus};
use super::tally::DocumentTally;
use crate::failure::{Failure, Result};
use crate::options::{CorpusOptions, SchemaOptions};
use crate::output::Counted;
use resemblance::invariant::bug;

/// The input of a sample, and how it is read.
pub(crate) struct SampleSource<'a> {
    pub(crate) inputs: &'a [PathBuf],
    pub(crate) corpus: &'a CorpusOptions,
    /// The content that documents may have.
    pub(crate) content: ContentRule,
    /// Cuts texts into features.
    pub(crate) sketcher: Sketcher,
    /// True if it computes signatures as well.
    pub(crate) has_signatures: bool,
    /// Memory that a document is going to take for its signatures, in bytes.
    pub(crate) signature_bytes: u64,
    /// The most documents.
    pub(crate) max_documents: Option<usize>,
}

/// Reads a corpus. Of too many documents those are kept whose keys hash lowest.
pub(crate) fn read_sample(context: &Context, source: SampleSource<'_>) -> Result<DocumentSample> {
    let mut sampler = Sampler::new()
        .signature_bytes(source.signature_bytes)
        .memory_bytes(context.memory_bytes);
    if let Some(documents) = source.max_documents {
        sampler = sampler.max_documents(documents);
    }
    let corpus = Arc::new(resolve_corpus(
        context,
        source.inputs,
        source.corpus,
        source.content,
    )?);
    let may_be_kept = sampler.key_filter();
    let (sketcher, has_signatures) = (source.sketcher, source.has_signatures);
    let mut documents = CorpusDocuments::start(context, "reading", &corpus, 0, move |document| {
        if !may_be_kept(&document.key) {
            return Ok(None);
        }
        Ok(Some(match &document.content {
            Content::Text(text) => {
                let signature = has_signatures.then(|| sketcher.text(text));
                (sketcher.feature_hashes(text)?, signature.transpose()?)
            }
            Content::Signature(_) => {
                return Err(bug("a signature in a sample that is compared exactly").into());
            }
            features => {
                let sketched = features.sketch(&sketcher, true)?;
                let signature = has_signatures.then_some(sketched.signature);
                (sketched.features.to_vec(), signature)
            }
        }))
    });
    let skip_bad = source.corpus.skip_bad;
    let mut tally = DocumentTally::default();
    while let Some(read) = documents.next()? {
        let (number, source, line) = (read.number, read.source, read.line);
        let Some(document) = read.take(context, &corpus, &mut tally, skip_bad)? else {
            continue;
        };
        tally.kept += 1;
        let Some((features, signature)) = document.value else {
            continue;
        };
        match sampler.add(number, document.key, features, signature) {
            Ok(()) => {}
            Err(Error::KeyTwice { key, .. }) => {
                let failure = Failure::repeated_key(&key, corpus.position(source, line));
                tally.skip(context, failure, skip_bad)?;
                tally.kept -= 1;
            }
            Err(Error::InvalidParameter {
                parameter: "memory_bytes",
                ..
            }) => {
                let (documents, mebibytes) = (sampler.len(), context.memory_bytes >> 20);
                return Err(Failure::usage(format!(
                    "comparing {} exactly takes more than the {mebibytes} MiB of --memory",
                    Counted(documents as u64, "document")
                ))
                .with_note("raise --memory, or compare fewer documents with --sample N"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let totals = documents.end(context, &tally)?;
    context.counts(tally.summary("good", totals));
    Ok(sampler.finish(tally.kept))
}

/// Returns the schema with weights by the rarity of features in these corpora if the options
/// request them. In that case it reads the corpora, which takes long. Check everything that can be
/// refused before.
pub(crate) fn weighed(
    context: &Context,
    schema: Schema,
    options: &SchemaOptions,
    inputs: &[PathBuf],
    corpus: &CorpusOptions,
) -> Result<Schema> {
    match options.weighs_by_rarity() {
        true => with_tf_idf(context, schema, inputs, corpus),
        false => Ok(schema),
    }
}

/// The schema with weights by the rarity of features in these corpora, which are read for it.
pub(crate) fn with_tf_idf(
    context: &Context,
    schema: Schema,
    inputs: &[PathBuf],
    options: &CorpusOptions,
) -> Result<Schema> {
    // An error now, and not once the corpus has been read.
    let unweighed = schema.with_weights(DocumentFrequencies::new())?;
    let content = ContentRule::new(&unweighed, true);
    let corpus = Arc::new(resolve_corpus(context, inputs, options, content)?);
    if let Some(source) = corpus.sources.iter().find(|source| !source.is_rereadable()) {
        return Err(Failure::usage(format!(
            "--tf-idf reads the corpus twice, and {} can be read only once",
            source.name().display()
        ))
        .with_note("give a file"));
    }
    let sketcher = unweighed.sketcher();
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
    if counted == 0 {
        return Err(Failure::refused(
            "the corpus has no documents, so the rarity of features is not known",
        ));
    }
    context.note(format!(
        "tf-idf by {} of {}",
        Counted(features as u64, "feature"),
        Counted(counted, "document")
    ));
    Ok(unweighed.with_weights(frequencies)?)
}
