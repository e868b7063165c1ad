//! Decides which documents are kept.

use std::sync::Arc;

use resemblance::collection::Collected;
use resemblance::dedup::{DedupPolicy, Deduplicator, Duplicate};
use resemblance::verification::{FeatureSets, SketchedText};
use resemblance::{Document, Schema, Snapshot};

use super::choices::{DedupBasis, DedupChoices};
use super::kept::{KeptDocuments, SketchedDocument, StoredPayload};
use crate::bug::bug;
use crate::failure::Result;
use crate::options::{KeepRule, PolicyName};
use crate::output::{Evidence, Survivor, SurvivorPlace};
use crate::session::{
    BitList, Building, Context, CorpusDocuments, DOCUMENTS_TOGETHER, DocumentTally, Job,
    JoinProduct, MAX_HELD_BYTES, ReadDocument, announce_join, deduplicator, limited, tell_left_out,
    tell_suspicious,
};
use resemblance_corpus::{Corpus, CorpusDocument, ReadTotals};

/// A document that is dropped.
pub(in crate::verbs) struct DroppedDocument<'d> {
    /// Its number in the corpus, from 0.
    pub(in crate::verbs) number: u64,
    pub(in crate::verbs) key: &'d [u8],
    /// `None` if nothing is left of its text without the parts that stood before.
    pub(in crate::verbs) survivor: Option<&'d Survivor>,
}

/// Called with each document that is dropped.
type OnDrop<'a> = &'a mut dyn FnMut(DroppedDocument<'_>) -> Result<()>;

/// Decides which documents are kept.
pub(in crate::verbs) struct DedupPlan<'a> {
    context: &'a Context,
    choices: DedupChoices<'a>,
    corpus: Arc<Corpus>,
    /// Keeps what is read, without another store and parts that stood before alone.
    job: Option<Arc<Job>>,
    /// Of a temporary store of the kept documents (of all documents, unless they are decided as they come). The stamp of
    /// a document is its number in the corpus, and its payload a [`StoredPayload`].
    schema: Schema,
    against: Option<Snapshot>,
    /// Those of its documents, as far as their texts are at hand.
    known_features: Option<Arc<FeatureSets>>,
    on_drop: OnDrop<'a>,
    /// Those of the documents in the temporary store, if similarities are to be exact.
    features: Option<FeatureSets>,
    /// Whether similarities are exact where texts are at hand.
    is_exact: bool,
    kept: BitList,
    dropped: BitList,
    tally: DocumentTally,
}

/// Which documents of a corpus are kept.
pub(in crate::verbs) struct DecidedDocuments {
    /// A bit for each record.
    pub(in crate::verbs) kept: BitList,
    /// Documents that are near-duplicates of others, which stay or are in the other store.
    pub(in crate::verbs) dropped: BitList,
    pub(in crate::verbs) tally: DocumentTally,
    pub(in crate::verbs) totals: ReadTotals,
}

impl<'a> DedupPlan<'a> {
    /// For a corpus whose records can be read, with the scores that the rule asks for.
    pub(in crate::verbs) fn new(
        context: &'a Context,
        choices: DedupChoices<'a>,
        basis: &DedupBasis,
        (corpus, job): (Arc<Corpus>, Option<Arc<Job>>),
        on_drop: OnDrop<'a>,
    ) -> Result<Self> {
        Ok(Self {
            context,
            choices,
            corpus,
            job,
            schema: basis.schema.clone(),
            against: basis.against.clone(),
            known_features: choices.known_features(context, basis)?,
            on_drop,
            features: context.features(basis.is_exact),
            is_exact: basis.is_exact,
            kept: BitList::default(),
            dropped: BitList::default(),
            tally: DocumentTally::default(),
        })
    }

    /// Decides on all documents; `tally` is what was counted before.
    pub(in crate::verbs) fn run(mut self, tally: DocumentTally) -> Result<DecidedDocuments> {
        self.tally = tally;
        let survivors = self.choices.survivors;
        let totals = match (survivors.policy, &survivors.keep) {
            (PolicyName::First, KeepRule::First) => self.as_they_come()?,
            _ => self.all_together()?,
        };
        Ok(DecidedDocuments {
            kept: self.kept,
            dropped: self.dropped,
            tally: self.tally,
            totals,
        })
    }

    fn start(&self) -> CorpusDocuments<SketchedDocument> {
        let sketcher = self.schema.sketcher();
        let with_features = self.features.is_some();
        let (bounds, budget) = (self.choices.join_bounds(), self.choices.survivors.budget);
        let known_features = self.known_features.clone();
        let keep = self.choices.survivors.keep.clone();
        let Some(snapshot) = self.against.clone() else {
            let work = move |document: &CorpusDocument<'_>| {
                Ok(SketchedDocument {
                    sketched: document.content.sketch(&sketcher, with_features)?,
                    digest: document.content.digest(),
                    known: None,
                    score: keep.score(document),
                    is_beyond_budget: false,
                    is_emptied: document.is_emptied,
                })
            };
            return CorpusDocuments::start_job(self.context, &self.corpus, self.job.clone(), work);
        };
        CorpusDocuments::start_together(self.context, "reading", &self.corpus, move |documents| {
            let texts = documents.iter();
            let texts = texts.map(|d| d.content.sketch(&sketcher, with_features));
            let (signatures, features): (Vec<_>, Vec<_>) = texts
                .map(|text| text.map(|text| (text.signature, text.features)))
                .collect::<resemblance::Result<Vec<_>>>()?
                .into_iter()
                .unzip();
            let mut query = snapshot.query(&signatures).bounds(bounds).limit(1);
            if let Some(budget) = budget {
                query = query.probe_budget(budget.get());
            }
            if let Some(known_features) = &known_features {
                query = query.verify(|index: usize, id| match features.get(index) {
                    Some(features) => known_features.similarity_to(features, id),
                    None => Ok(None),
                });
            }
            let answers = query.run()?;
            let others = documents.iter();
            let others = others.map(|document| {
                let digest = document.content.digest();
                (keep.score(document), document.is_emptied, digest)
            });
            let sketched = signatures
                .into_iter()
                .zip(features)
                .zip(answers)
                .zip(others);
            let sketched = sketched.map(
                |(((signature, features), answer), (score, is_emptied, digest))| SketchedDocument {
                    score,
                    is_emptied,
                    digest,
                    is_beyond_budget: answer.budget_exceeded().is_some(),
                    known: answer.into_iter().next(),
                    sketched: SketchedText {
                        signature,
                        features,
                    },
                },
            );
            Ok(sketched.collect())
        })
    }

    /// Counts a document, and drops it if the other store has one like it; the others are returned,
    /// to be decided.
    fn take(
        &mut self,
        read: ReadDocument<SketchedDocument>,
    ) -> Result<Option<(Vec<u8>, SketchedDocument)>> {
        let skip_bad = self.choices.options.skip_bad;
        let number = read.number;
        // Those between are not in the sample.
        while self.kept.len() < number {
            self.kept.push(false);
            self.dropped.push(false);
        }
        let corpus = Arc::clone(&self.corpus);
        let Some(document) = read.take(self.context, &corpus, &mut self.tally, skip_bad)? else {
            self.kept.push(false);
            self.dropped.push(false);
            return Ok(None);
        };
        if document.value.is_emptied {
            self.tally.emptied += 1;
            self.kept.push(false);
            self.dropped.push(true);
            (self.on_drop)(DroppedDocument {
                number,
                key: &document.key,
                survivor: None,
            })?;
            return Ok(None);
        }
        let sketched = document.value;
        if let Some(known) = &sketched.known {
            self.tally.budget_exceeded += u64::from(sketched.is_beyond_budget);
            self.kept.push(false);
            self.dropped.push(true);
            // A store has no contents to compare with.
            let place = SurvivorPlace::Store(known.id().get());
            let survivor =
                Survivor::from_match(known, place, known.key().map(<[u8]>::to_vec), false);
            self.drop(number, &document.key, &survivor)?;
            return Ok(None);
        }
        self.tally.empty += u64::from(sketched.sketched.signature.is_empty());
        Ok(Some((document.key, sketched)))
    }

    fn drop(&mut self, number: u64, key: &[u8], survivor: &Survivor) -> Result<()> {
        self.tally.dropped += 1;
        self.tally.equal += u64::from(survivor.evidence == Evidence::Equal);
        let is_estimated = self.is_exact && survivor.evidence == Evidence::Estimate;
        self.tally.estimated += u64::from(is_estimated);
        (self.on_drop)(DroppedDocument {
            number,
            key,
            survivor: Some(survivor),
        })
    }

    /// Every document is compared with the earlier ones that were kept.
    fn as_they_come(&mut self) -> Result<ReadTotals> {
        let mut documents = self.start();
        let (deduplicator, name) = self.deduplicator()?;
        let deduplicator = deduplicator.verify_exact(self.features.take());
        let mut kept = KeptDocuments::new(deduplicator, name);
        let (mut gathered, mut held_bytes) = (Vec::new(), 0);
        loop {
            match documents.next() {
                Ok(Some(read)) => {
                    if let Ok(document) = &read.document {
                        held_bytes += document.value.sketched.feature_bytes();
                    }
                    gathered.push(read);
                }
                Ok(None) => break,
                // A document that came before may have been wrong: its failure comes first.
                Err(failure) if !failure.is_signal() => {
                    self.decide(&mut kept, gathered)?;
                    return Err(failure);
                }
                Err(failure) => return Err(failure),
            }
            if gathered.len() == DOCUMENTS_TOGETHER || held_bytes >= MAX_HELD_BYTES {
                self.decide(&mut kept, std::mem::take(&mut gathered))?;
                held_bytes = 0;
            }
        }
        self.decide(&mut kept, gathered)?;
        documents.end(self.context, &self.tally)
    }

    fn deduplicator(&self) -> Result<(Deduplicator, String)> {
        deduplicator(self.context, &self.schema, self.choices.survivors.budget)
    }

    /// Decides some documents in their order: together, or one by one where that cannot be.
    fn decide(
        &mut self,
        kept: &mut KeptDocuments,
        gathered: Vec<ReadDocument<SketchedDocument>>,
    ) -> Result<()> {
        // Bounds that differ from the schema's come with another store only, or with another family.
        let has_own_bounds =
            self.against.is_some() && self.choices.bounds.is_given() || self.choices.by.is_given();
        let together = if has_own_bounds {
            None
        } else {
            kept.decide_together(&gathered)?
        };
        let mut together = together.map(Vec::into_iter);
        for read in gathered {
            let (number, source, line) = (read.number, read.source, read.line);
            let Some((key, document)) = self.take(read)? else {
                continue;
            };
            let decision = match &mut together {
                Some(decisions) => decisions
                    .next()
                    .ok_or_else(|| bug("a document was not decided"))?,
                None => {
                    self.context.interrupt.check()?;
                    let payload = document.payload(&key);
                    let stored = Document::without_key().payload(&payload).stamp(number);
                    let place = || self.corpus.position(source, line);
                    kept.decide(
                        stored,
                        &document.sketched,
                        self.choices.join_bounds(),
                        place,
                    )?
                }
            };
            let is_beyond_budget =
                decision.budget_exceeded().is_some() || document.is_beyond_budget;
            self.tally.budget_exceeded += u64::from(is_beyond_budget);
            self.kept.push(decision.is_new());
            self.dropped.push(!decision.is_new());
            match decision.found() {
                None => self.tally.kept += 1,
                Some(found) => {
                    let survivor = kept.survivor(found, document.digest)?;
                    self.drop(number, &key, &survivor)?;
                }
            }
        }
        Ok(())
    }

    /// All documents are read before any is decided.
    fn all_together(&mut self) -> Result<ReadTotals> {
        let context = self.context;
        let (collected, scores, totals) = self.collect()?;
        let preference = self.choices.survivors.keep.preference(scores);
        let policy = self.policy()?;
        let features = self.features.take().map(Arc::new);
        let join = collected.clusters().bounds(self.choices.join_bounds());
        let join = limited(context, join, self.choices.limits);
        let joining = announce_join(context, &join, JoinProduct::Clusters)?;
        let join = joining.follow(join);
        let mut progress = joining.display("finding duplicates", context.messages.quiet);
        let interrupt = context.interrupt.clone();
        let duplicates = interrupt.while_working(&mut progress, move || {
            Ok(join.duplicates(policy, &preference, features)?)
        })?;
        tell_left_out(context, duplicates.left_out());
        for cluster in duplicates.suspicious() {
            let first = collected.get_id(cluster.first)?;
            let first = first.ok_or_else(|| bug("a cluster of no documents"))?;
            let stored = StoredPayload::decode(first.payload())?;
            tell_suspicious(context, cluster, Some(stored.key));
        }
        self.tally.budget_exceeded += duplicates.budget_exceeded();
        for duplicate in duplicates {
            interrupt.check()?;
            let duplicate = duplicate?;
            let dropped = &duplicate.document;
            self.kept.clear(dropped.stamp())?;
            self.dropped.set(dropped.stamp())?;
            self.tally.kept -= 1;
            let stored = StoredPayload::decode(dropped.payload())?;
            let survivor = survivor_of(&duplicate, stored.digest)?;
            self.drop(dropped.stamp(), stored.key, &survivor)?;
        }
        Ok(totals)
    }

    fn policy(&self) -> Result<DedupPolicy> {
        let decider = || -> Result<Box<Deduplicator>> {
            let (deduplicator, _) = self.deduplicator()?;
            let features = self.context.features(self.features.is_some());
            Ok(Box::new(deduplicator.verify_exact(features)))
        };
        Ok(match self.choices.survivors.policy {
            PolicyName::First => DedupPolicy::First(decider()?),
            PolicyName::Cluster => DedupPolicy::Cluster,
            PolicyName::Representative => DedupPolicy::Representative(decider()?),
        })
    }

    /// Collects all documents that are to be decided, and their scores, if they have any.
    fn collect(&mut self) -> Result<(Collected, Vec<f64>, ReadTotals)> {
        let schema = self.schema.clone();
        let context = self.context;
        let mut building = Building::collect(context, &schema, false)?;
        let mut documents = self.start();
        let has_scores = self.choices.survivors.keep.has_scores();
        let (mut scores, mut unscored) = (Vec::new(), 0_u64);
        while let Some(read) = documents.next()? {
            let (number, source, line) = (read.number, read.source, read.line);
            let Some((key, document)) = self.take(read)? else {
                continue;
            };
            let payload = document.payload(&key);
            let sketched = document.sketched;
            let stored = Document::without_key().payload(&payload).stamp(number);
            let place = || self.corpus.position(source, line);
            let id = building.insert(stored, &sketched.signature, place)?;
            if let Some(features) = &mut self.features {
                features.put(id, sketched.features)?;
            }
            if has_scores {
                unscored += u64::from(document.score.is_none());
                scores.push(document.score.unwrap_or(f64::NAN));
            }
            self.kept.push(true);
            self.dropped.push(false);
            self.tally.kept += 1;
        }
        if unscored > 0 {
            context.messages.note(format!(
                "documents without the number that --keep asks for: {unscored}; they come last"
            ));
        }
        let totals = documents.end(context, &self.tally)?;
        let collected = building.finish(&mut |_, _| Ok(()))?;
        if let Some(features) = &mut self.features {
            features.flush()?;
        }
        Ok((collected, scores, totals))
    }
}

/// The survivor of a document whose content has this hash.
fn survivor_of(duplicate: &Duplicate, digest: u64) -> Result<Survivor> {
    let stored = StoredPayload::decode(duplicate.survivor.payload())?;
    Ok(Survivor {
        place: SurvivorPlace::Corpus(duplicate.survivor.stamp()),
        key: Some(stored.key.to_vec()),
        similarity: duplicate.similarity,
        evidence: match (stored.digest == digest, duplicate.is_exact) {
            (true, _) => Evidence::Equal,
            (false, true) => Evidence::Exact,
            (false, false) => Evidence::Estimate,
        },
        distance: duplicate.distance,
    })
}
