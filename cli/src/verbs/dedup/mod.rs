//! The verb `dedup`.

mod arguments;
mod kept;
mod plan;

use std::path::PathBuf;
use std::sync::Arc;

use resemblance::verification::FeatureSets;
use resemblance::{Schema, Snapshot};

pub(crate) use self::arguments::DedupArguments;
use self::arguments::PolicyName;
use self::plan::DedupPlan;
use crate::corpus::{ContentRule, Corpus};
use crate::failure::{Failure, Outcome, Result};
use crate::options::similarity_name;
use crate::output::{DropReport, OutputTarget, Sink};
use crate::session::{
    BitList, Context, DocumentTally, NamedStore, copy_records, open_to_read, resolve_corpus,
    spool_sources, with_tf_idf,
};

pub(crate) fn dedup(context: &Context, arguments: &DedupArguments) -> Result<Outcome> {
    check_limits(arguments)?;
    let (schema, snapshot) = match &arguments.against {
        Some(path) => {
            let store = open_to_read(context, path)?;
            arguments.schema.must_agree(store.schema())?;
            arguments.bounds.must_lie_within(store.schema())?;
            (store.schema().clone(), Some(store.snapshot()?))
        }
        None => {
            let schema = arguments.schema.build(&arguments.bounds)?;
            let weighed = arguments.schema.weighs_by_rarity().then(|| {
                let (inputs, options) = (&arguments.corpus, &arguments.options);
                with_tf_idf(context, schema.clone(), inputs, options)
            });
            (weighed.transpose()?.unwrap_or(schema), None)
        }
    };
    let is_exact = arguments
        .verify
        .is_exact(&schema, arguments.budget.is_some())?;
    let content = ContentRule::new(&schema, is_exact);
    let mut corpus = resolve_corpus(context, &arguments.corpus, &arguments.options, content)?;
    arguments.keep.apply(&mut corpus);
    let outputs = Outputs::choose(arguments, &corpus)?;
    let report = outputs.report(arguments, &schema, is_exact, &corpus)?;
    let (kept_sink, dropped_sink) = outputs.create(arguments.force)?;
    spool_sources(context, &mut corpus)?;
    let known_features = known_features(context, arguments, snapshot.as_ref(), is_exact)?;

    let mut plan = DedupPlan {
        context,
        arguments,
        corpus: Arc::new(corpus),
        schema,
        against: snapshot,
        known_features,
        report,
        features: context.features(is_exact),
        is_exact,
        kept: BitList::default(),
        dropped: BitList::default(),
        tally: DocumentTally::default(),
    };
    let totals = plan.run()?;
    let DedupPlan {
        corpus,
        report,
        kept,
        dropped,
        tally,
        ..
    } = plan;
    let sinks = [(kept, kept_sink), (dropped, dropped_sink)];
    let sinks = sinks.into_iter();
    let sinks = sinks.filter_map(|(records, sink)| Some((records, sink?)));
    copy_records(context, &corpus, totals, sinks.collect())?;
    if let Some(report) = report {
        report.finish()?;
    }
    context.messages.note(tally.summary("kept", totals));
    Ok(Outcome::Done)
}

/// Where documents go.
struct Outputs {
    kept: Option<OutputTarget>,
    dropped: Option<OutputTarget>,
}

impl Outputs {
    fn choose(arguments: &DedupArguments, corpus: &Corpus) -> Result<Self> {
        let choose =
            |path: &PathBuf| OutputTarget::choose(path, &arguments.corpus, corpus, arguments.force);
        let outputs = Self {
            kept: arguments.output.as_ref().map(choose).transpose()?,
            dropped: arguments.dropped.as_ref().map(choose).transpose()?,
        };
        if let (Some(kept), Some(dropped)) = (&outputs.kept, &arguments.dropped) {
            kept.must_not_meet("the dropped documents", dropped, corpus)?;
        }
        Ok(outputs)
    }

    /// The list of dropped documents, if one is wanted.
    fn report(
        &self,
        arguments: &DedupArguments,
        schema: &Schema,
        is_exact: bool,
        corpus: &Corpus,
    ) -> Result<Option<DropReport>> {
        let Some(path) = &arguments.report else {
            return Ok(None);
        };
        for target in [&self.kept, &self.dropped].into_iter().flatten() {
            target.must_not_meet("the report", path, corpus)?;
        }
        let mut report = DropReport::create(path, arguments.force, schema, is_exact)?;
        if !arguments.no_header {
            report.header(similarity_name(is_exact))?;
        }
        Ok(Some(report))
    }

    fn create(&self, force: bool) -> Result<(Option<Sink>, Option<Sink>)> {
        let create = |target: &Option<OutputTarget>| {
            let sink = target.as_ref().map(|target| Sink::create(target, force));
            sink.transpose()
        };
        Ok((create(&self.kept)?, create(&self.dropped)?))
    }
}

/// The features of the documents of the other store, if similarities are to be exact.
fn known_features(
    context: &Context,
    arguments: &DedupArguments,
    snapshot: Option<&Snapshot>,
    is_exact: bool,
) -> Result<Option<Arc<FeatureSets>>> {
    let against = arguments.against.as_ref().zip(snapshot);
    let Some(((path, snapshot), mut features)) = against.zip(context.features(is_exact)) else {
        return Ok(None);
    };
    let name = path.display();
    let store = NamedStore { name, snapshot };
    let known = store.read_texts(context, &arguments.texts, &arguments.options, &mut features)?;
    // A search that nobody verifies compares one of equal documents.
    Ok((known > 0).then(|| Arc::new(features)))
}

/// An error if a limit was given for the other policy.
fn check_limits(arguments: &DedupArguments) -> Result<()> {
    if arguments.limits.max_bucket.is_some() && arguments.policy == PolicyName::First {
        return Err(Failure::usage(
            "--max-bucket is for --policy cluster and representative; the policy first compares with \
             what is kept",
        ));
    }
    if arguments.budget.is_some() && arguments.policy != PolicyName::First {
        return Err(Failure::usage(
            "--budget is for --policy first; --max-bucket is for the other policies",
        ));
    }
    Ok(())
}
