//! Reading a sample of a corpus.

use std::path::PathBuf;
use std::sync::Arc;

use resemblance::eval::{DocumentSample, SampleAddition, SampleLimits, Sampler};
use resemblance::{Sketcher, Text};

use super::context::Context;
use super::documents::{CorpusDocuments, resolve_corpus};
use super::tally::DocumentTally;
use crate::failure::{Failure, Result};
use crate::options::CorpusOptions;

/// What is read, and how.
pub(crate) struct SampleSource<'a> {
    pub(crate) inputs: &'a [PathBuf],
    pub(crate) corpus: &'a CorpusOptions,
    pub(crate) text: Text,
    /// Makes the signatures, if there are to be any.
    pub(crate) sketcher: Option<Sketcher>,
    /// Memory that a document is going to take for its signatures, in bytes.
    pub(crate) signature_bytes: u64,
    /// The most documents.
    pub(crate) max_documents: Option<usize>,
}

/// Reads a corpus. Of too many documents those are kept whose keys hash lowest.
pub(crate) fn read_sample(context: &Context, source: SampleSource<'_>) -> Result<DocumentSample> {
    let limits = SampleLimits {
        documents: source.max_documents,
        signature_bytes: source.signature_bytes,
        memory_bytes: context.memory_bytes,
    };
    let mut sampler = Sampler::new(source.text, source.sketcher, limits)?;
    let corpus = Arc::new(resolve_corpus(context, source.inputs, source.corpus)?);
    let sketcher = sampler.sketcher();
    let mut documents = CorpusDocuments::start(context, "reading", &corpus, 0, move |document| {
        Ok(sketcher.sketch(&document.key, &document.text)?)
    });
    let skip_bad = source.corpus.skip_bad;
    let mut tally = DocumentTally::default();
    while let Some(read) = documents.next()? {
        let (number, source, line) = (read.number, read.source, read.line);
        let Some(document) = tally.take(context, &corpus, read, skip_bad)? else {
            continue;
        };
        tally.kept += 1;
        let Some(sketch) = document.value else {
            continue;
        };
        match sampler.add(number, document.key, sketch)? {
            SampleAddition::Taken => {}
            SampleAddition::RepeatedKey(key) => {
                let key = String::from_utf8_lossy(&key);
                let place = corpus.position(source, line);
                let message = format!("{place}: key {key:?} came before");
                tally.skip(context, Failure::bad_input(message), skip_bad)?;
                tally.kept -= 1;
            }
            SampleAddition::MemoryFull => {
                let (documents, mebibytes) = (sampler.len(), context.memory_bytes >> 20);
                return Err(Failure::usage(format!(
                    "comparing {documents} documents exactly takes more than the {mebibytes} MiB of \
                     --memory: raise it, or take fewer with --sample N"
                )));
            }
        }
    }
    let totals = documents.totals();
    context.messages.note(tally.summary("good", totals));
    Ok(sampler.finish(tally.kept))
}
