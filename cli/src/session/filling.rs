//! Putting a corpus into a new store.

use std::sync::Arc;

use resemblance::{DocumentId, Schema};
use resemblance_corpus::verification::FeatureSets;

use super::bit_list::BitList;
use super::building::{Building, DocumentSink};
use super::context::Context;
use super::positions::DocumentPositions;
use super::reading::CorpusDocuments;
use super::tally::DocumentTally;
use crate::failure::{Failure, Result};
use resemblance_corpus::{Corpus, ReadTotals};

/// A store or a collection with its documents, and counts of them.
pub(crate) struct Filled<M> {
    pub(crate) made: M,
    pub(crate) tally: DocumentTally,
    pub(crate) totals: ReadTotals,
}

/// Puts a corpus into what is built, by this schema, in corpus order, and completes it. If it keeps the
/// first of equal keys, bad documents are skipped too. `features` gets those of the documents.
pub(crate) fn fill<S: DocumentSink>(
    context: &Context,
    corpus: &Arc<Corpus>,
    mut building: Building<'_, S>,
    schema: &Schema,
    mut features: Option<&mut FeatureSets>,
) -> Result<Filled<S::Made>> {
    let skip_bad = building.keeps_first();
    let sketcher = schema.sketcher();
    let with_features = features.is_some();
    let mut documents =
        CorpusDocuments::start_job(context, corpus, building.job(), move |document| {
            Ok(document.content.sketch(&sketcher, with_features)?)
        });
    let mut positions = DocumentPositions::new(context.temp_dir.clone());
    let mut empty = BitList::default();
    let mut tally = DocumentTally::default();
    while let Some(read) = documents.next()? {
        let (source, line) = (read.source, read.line);
        let Some(document) = read.take(context, corpus, &mut tally, skip_bad)? else {
            continue;
        };
        let signature = &document.value.signature;
        let position = || corpus.position(source, line);
        match building.insert(document.to_store(), signature, position) {
            Ok(id) => {
                tally.kept += 1;
                tally.empty += u64::from(signature.is_empty());
                empty.push(signature.is_empty());
                positions.push(source, line)?;
                if let Some(features) = &mut features {
                    features.put(id, document.value.features)?;
                }
            }
            Err(failure) => tally.skip(context, failure, skip_bad)?,
        }
    }
    let totals = documents.end(context, &tally)?;
    let mut on_repeated = |id: DocumentId, key: &[u8]| {
        let (source, line) = positions.get(id.get())?;
        let failure = Failure::repeated_key(key, corpus.position(source, line));
        tally.skip(context, failure, skip_bad)?;
        tally.kept -= 1;
        tally.empty -= u64::from(empty.get(id.get())?);
        Ok(())
    };
    let made = building.finish(&mut on_repeated)?;
    Ok(Filled {
        made,
        tally,
        totals,
    })
}
