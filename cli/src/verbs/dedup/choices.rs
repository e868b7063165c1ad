//! What decides which documents are dropped.

use std::path::PathBuf;
use std::sync::Arc;

use resemblance::{Bounds, Schema, Snapshot};
use resemblance_corpus::verification::FeatureSets;

use crate::failure::{Failure, Result};
use crate::options::{
    BoundOptions, ByOptions, CorpusOptions, JoinLimits, PolicyName, SchemaOptions, SurvivorOptions,
    VerifyOptions,
};
use crate::session::{Context, NamedStore, open_to_read, with_tf_idf};

/// All options that the decision depends on, of whichever verb they are.
#[derive(Clone, Copy)]
pub(in crate::verbs) struct DedupChoices<'a> {
    pub(in crate::verbs) inputs: &'a [PathBuf],
    pub(in crate::verbs) survivors: &'a SurvivorOptions,
    pub(in crate::verbs) bounds: &'a BoundOptions,
    pub(in crate::verbs) by: ByOptions,
    pub(in crate::verbs) limits: JoinLimits,
    pub(in crate::verbs) verify: VerifyOptions,
    pub(in crate::verbs) schema: &'a SchemaOptions,
    pub(in crate::verbs) options: &'a CorpusOptions,
}

/// How documents are compared.
#[derive(Clone)]
pub(in crate::verbs) struct DedupBasis {
    pub(in crate::verbs) schema: Schema,
    /// The documents of the other store, whose schema it is.
    pub(in crate::verbs) against: Option<Snapshot>,
    /// Whether similarities are exact where texts are at hand.
    pub(in crate::verbs) is_exact: bool,
}

impl DedupChoices<'_> {
    /// An error if a limit was given for another policy.
    pub(in crate::verbs) fn check_limits(&self) -> Result<()> {
        let policy = self.survivors.policy;
        if self.limits.max_bucket.is_some() && policy == PolicyName::First {
            return Err(Failure::usage(
                "--max-bucket is for --policy cluster and representative; the policy first compares with \
                 what is kept",
            ));
        }
        if self.survivors.budget.is_some() && policy != PolicyName::First {
            return Err(Failure::usage(
                "--budget is for --policy first; --max-bucket is for the other policies",
            ));
        }
        Ok(())
    }

    pub(in crate::verbs) fn basis(&self, context: &Context) -> Result<DedupBasis> {
        let (schema, against) = match &self.survivors.against {
            Some(path) => {
                let store = open_to_read(context, path)?;
                self.schema.must_agree(store.schema())?;
                self.bounds.must_lie_within(store.schema())?;
                (store.schema().clone(), Some(store.snapshot()?))
            }
            None => {
                let schema = self.schema.build(self.bounds)?;
                let weighed = self
                    .schema
                    .weighs_by_rarity()
                    .then(|| with_tf_idf(context, schema.clone(), self.inputs, self.options));
                (weighed.transpose()?.unwrap_or(schema), None)
            }
        };
        let has_budget = self.survivors.budget.is_some();
        let is_exact = self.verify.is_exact(&schema, has_budget)?;
        Ok(DedupBasis {
            schema,
            against,
            is_exact,
        })
    }

    /// Bounds beyond the schema's own, which exist only with `--against`, and the family that decides.
    pub(in crate::verbs) fn join_bounds(&self) -> Bounds {
        let bounds = match self.survivors.against {
            Some(_) => self.bounds.bounds(),
            None => Bounds::new(),
        };
        self.by.apply(bounds)
    }

    /// The features of the documents of the other store, if similarities are to be exact.
    pub(super) fn known_features(
        &self,
        context: &Context,
        basis: &DedupBasis,
    ) -> Result<Option<Arc<FeatureSets>>> {
        let against = self.survivors.against.as_ref().zip(basis.against.as_ref());
        let Some(((path, snapshot), mut features)) = against.zip(context.features(basis.is_exact))
        else {
            return Ok(None);
        };
        let name = path.display();
        let store = NamedStore { name, snapshot };
        let texts = &self.survivors.texts;
        let known = store.read_texts(context, texts, self.options, &mut features)?;
        // A search that nobody verifies compares one of equal documents.
        Ok((known > 0).then(|| Arc::new(features)))
    }
}
