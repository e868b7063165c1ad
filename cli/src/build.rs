//! The verb `build`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use resemblance::{DesignReport, Document, DocumentId, Schema};

use super::Context;
use super::arguments::{BoundOptions, CorpusOptions};
use super::building::Building;
use super::failure::{Failure, Outcome, Result};
use super::features::Features;
use super::forecast::Forecaster;
use super::output::Bits;
use super::pipeline::Pipeline;
use super::places::Places;
use super::schema::SchemaOptions;
use super::scratch;
use super::subject::{must_take_text, warn_if_nothing_included};
use super::tally::Tally;
use super::verify::Sketched;
use crate::corpus::{Corpus, Totals};

/// Make a store from a corpus
///
/// All or nothing: after a failure there is no store. A key that comes twice is bad input, which is
/// seen when all has been read. Postings are sorted within --memory, and beyond it in a temporary
/// file beside the store, or in --temp-dir. What a long build is expected to need is said after its
/// first second.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance build seen.rsm corpus.jsonl.gz
  resemblance build texts.rsm folder/ --include '*.txt' --chars 9
  zcat part-*.gz | resemblance build seen.rsm - --skip-bad")]
pub(crate) struct Arguments {
    /// The file to make; it must not exist
    store: PathBuf,
    /// JSON Lines files, folders of text files, or - (see resemblance --help)
    #[arg(required = true)]
    corpus: Vec<PathBuf>,
    #[command(flatten)]
    schema: SchemaOptions,
    #[command(flatten)]
    bounds: BoundOptions,
    #[command(flatten)]
    options: CorpusOptions,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Result<Outcome> {
    let target = &arguments.store;
    let schema = arguments.schema.build_for_texts(&arguments.bounds)?;
    scratch::must_not_exist(target, "add takes documents into an existing store")?;
    let corpus = Corpus::resolve(&arguments.corpus, arguments.options.settings()?)?;
    warn_if_nothing_included(context, &corpus);
    let skip_bad = arguments.options.skip_bad;
    let folder = scratch::parent(target);
    let building = Building::begin(context, target, &folder, &schema, skip_bad)?;
    let filled = fill(context, &Arc::new(corpus), building, &schema, None)?;
    context.messages.detail(&schema);
    context
        .messages
        .note(filled.tally.summary("added", filled.totals));
    let design = DesignReport::new(&schema, filled.tally.kept);
    context.messages.advise(&design);
    Ok(Outcome::Done)
}

/// What went into a store.
pub(crate) struct Filled {
    pub(crate) tally: Tally,
    pub(crate) totals: Totals,
}

/// Puts a corpus into a store of this schema, in corpus order, and completes it. What
/// keeps the first of equal keys skips bad documents too. `features` gets those of the documents.
pub(crate) fn fill(
    context: &Context,
    corpus: &Arc<Corpus>,
    mut building: Building<'_>,
    schema: &Schema,
    mut features: Option<&mut Features>,
) -> Result<Filled> {
    must_take_text(schema)?;
    let skip_bad = building.keeps_first();
    let sketcher = schema.sketcher();
    let with_features = features.is_some();
    let mut items = Pipeline::start(context, "reading", corpus, 0, move |document| {
        Sketched::of(&sketcher, with_features, &document.text)
    });
    let mut forecaster = Forecaster::new(context, || corpus.size_bytes());
    let mut places = Places::new(context.temp_dir.clone());
    let mut empty = Bits::default();
    let mut tally = Tally::default();
    while let Some(item) = items.next()? {
        let (source, line) = (item.source, item.line);
        let Some(document) = tally.take(context, corpus, item, skip_bad)? else {
            continue;
        };
        let what = (schema, building.options());
        forecaster.document(context, what, document.key.len(), items.read_bytes())?;
        let place = || corpus.place(source, line);
        let signature = &document.value.signature;
        match building.insert(Document::new(&document.key), signature, place) {
            Ok(id) => {
                tally.kept += 1;
                tally.empty += u64::from(signature.is_empty());
                empty.push(signature.is_empty());
                places.push(source, line)?;
                if let Some(features) = &mut features {
                    features.put(id, &document.value.features)?;
                }
            }
            Err(failure) => tally.skip(context, failure, skip_bad)?,
        }
    }
    let totals = items.totals();
    let mut repeated = |id: DocumentId, key: &[u8]| {
        let (source, line) = places.get(id.get())?;
        let key = String::from_utf8_lossy(key);
        let place = corpus.place(source, line);
        let failure = Failure::bad_input(format!("{place}: key {key:?} came before"));
        tally.skip(context, failure, skip_bad)?;
        tally.kept -= 1;
        tally.empty -= u64::from(empty.get(id.get()));
        Ok(())
    };
    building.finish(&mut repeated)?;
    Ok(Filled { tally, totals })
}
