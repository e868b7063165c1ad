//! The verb `build`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use resemblance::Error;

use super::Context;
use super::arguments::{BoundOptions, CorpusOptions};
use super::failure::{Failure, Outcome, Result};
use super::pipeline::Pipeline;
use super::schema::SchemaOptions;
use super::scratch::{self, ScratchStore};
use super::subject::{must_take_text, warn_if_nothing_included};
use super::tally::Tally;
use crate::corpus::{Corpus, Totals};

/// Make a store from a corpus
///
/// All or nothing: after a failure there is no store. A key that comes twice is bad input.
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
    let schema = arguments.schema.build(&arguments.bounds)?;
    scratch::must_not_exist(target, "add takes documents into an existing store")?;
    let corpus = Corpus::resolve(&arguments.corpus, arguments.options.settings()?)?;
    warn_if_nothing_included(context, &corpus);
    let store = ScratchStore::create(&scratch::parent(target), &schema, &context.store_options)?;
    let skip_bad = arguments.options.skip_bad;
    let filled = fill(context, &Arc::new(corpus), &store, skip_bad)?;
    store.persist(target)?;
    context.messages.detail(&schema);
    context
        .messages
        .note(filled.tally.summary("added", filled.totals));
    Ok(Outcome::Done)
}

/// What went into a store.
pub(crate) struct Filled {
    pub(crate) tally: Tally,
    pub(crate) totals: Totals,
}

/// Puts a corpus into an empty store, in one transaction and in corpus order.
pub(crate) fn fill(
    context: &Context,
    corpus: &Arc<Corpus>,
    scratch: &ScratchStore,
    skip_bad: bool,
) -> Result<Filled> {
    let store = scratch.store();
    must_take_text(store.schema())?;
    let sketcher = store.sketcher();
    let mut items = Pipeline::start(context, "reading", corpus, 0, move |document| {
        Ok(sketcher.text(&document.text)?)
    });
    let mut tally = Tally::default();
    let mut transaction = store.begin_write().map_err(|e| scratch.failure(e))?;
    while let Some(item) = items.next()? {
        let (source, line) = (item.source, item.line);
        let Some(document) = tally.take(context, corpus, item, skip_bad)? else {
            continue;
        };
        match transaction.insert(&document.key, &document.value) {
            Ok(_) => {
                tally.kept += 1;
                tally.empty += u64::from(document.value.is_empty());
            }
            Err(error) => {
                let place = corpus.place(source, line);
                let failure = match error {
                    Error::KeyExists { key, .. } => Failure::bad_input(format!(
                        "{place}: key {:?} came before",
                        String::from_utf8_lossy(&key)
                    )),
                    other => scratch.document_failure(place, other),
                };
                tally.skip(context, failure, skip_bad)?;
            }
        }
    }
    let totals = items.totals();
    context.interrupt.check()?;
    transaction.commit().map_err(|e| scratch.failure(e))?;
    context.interrupt.check()?;
    Ok(Filled { tally, totals })
}
