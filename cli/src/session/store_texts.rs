//! The texts of documents that a store has, from the corpus that it was made of.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use resemblance::Snapshot;
use resemblance_corpus::verification::FeatureSets;

use super::context::Context;
use super::reading::{CorpusDocuments, resolve_corpus};
use super::tally::DocumentTally;
use crate::failure::Result;
use crate::options::CorpusOptions;
use resemblance_corpus::ContentRule;

/// A store, and how messages call it.
pub(crate) struct NamedStore<'a, N> {
    pub(crate) name: N,
    pub(crate) snapshot: &'a Snapshot,
}

impl<N: fmt::Display> NamedStore<'_, N> {
    /// Puts the features of the documents into `features` whose texts are in these corpora, says of how
    /// many there are none, and returns how many there are. A text is that of the document with its key if it has the same signature.
    pub(crate) fn read_texts(
        &self,
        context: &Context,
        texts: &[PathBuf],
        options: &CorpusOptions,
        features: &mut FeatureSets,
    ) -> Result<u64> {
        let known = if texts.is_empty() || self.snapshot.is_empty() {
            0
        } else {
            self.put_features(context, texts, options, features)?
        };
        let unknown = self.snapshot.len().saturating_sub(known);
        if unknown > 0 {
            let (name, documents) = (&self.name, self.snapshot.len());
            context.note(format!(
                "the texts of {unknown} of the {documents} documents in {name} are not at hand: \
                 similarities to them are estimates"
            ));
        }
        Ok(known)
    }

    /// Returns how many documents have their texts here.
    fn put_features(
        &self,
        context: &Context,
        texts: &[PathBuf],
        options: &CorpusOptions,
        features: &mut FeatureSets,
    ) -> Result<u64> {
        let content = ContentRule::new(self.snapshot.schema(), true);
        let corpus = Arc::new(resolve_corpus(context, texts, options, content)?);
        let sketcher = self.snapshot.schema().sketcher();
        let mut documents =
            CorpusDocuments::start(context, "reading texts", &corpus, 0, move |document| {
                Ok(document.content.sketch(&sketcher, true)?)
            });
        let mut tally = DocumentTally::default();
        let mut known = 0;
        while let Some(document) = documents.next_good(context, &mut tally, options.skip_bad)? {
            let Some(record) = self.snapshot.get(&document.key)? else {
                continue;
            };
            if *record.signature() == document.value.signature && !features.has(record.id()) {
                features.put(record.id(), document.value.features)?;
                known += 1;
            }
        }
        documents.end(context, &tally)?;
        features.flush()?;
        Ok(known)
    }
}
