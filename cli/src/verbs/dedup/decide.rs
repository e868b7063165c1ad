//! Decides which documents are kept.

use std::num::{NonZeroU64, NonZeroUsize};
use std::sync::{Arc, OnceLock};

use resemblance::Collected;
use resemblance::search::Certainty;
use resemblance::{
    Bounds, Document, DocumentId, Error, LoneDocuments, Match, MissedPairs, Novelty, Record,
    Schema, Signature, Snapshot,
};
use resemblance_corpus::dedup::{
    ComparedCandidate, DedupPolicy, Deduplicator, DropRule, Duplicate, StoredSets, duplicates,
};
use resemblance_corpus::verification::{FeatureSets, SketchedText};

use super::arguments::{DedupBasis, DedupChoices};
use crate::failure::{Failure, Result};
use crate::options::{KeepRule, PolicyName};
use crate::output::{Evidence, Survivor, SurvivorPlace};
use crate::session::{
    BitList, Building, Context, CorpusDocuments, DOCUMENTS_TOGETHER, DocumentTally, Job,
    JobContent, JobValue, JoinProduct, JoinProgress, MAX_HELD_BYTES, ReadDocument, deduplicator,
    missed_pairs, must_be_same, prepare_join, print_certainty, print_left_out, print_suspicious,
    temporary_name,
};
use resemblance::invariant::{at_mut, bug};
use resemblance_corpus::{Corpus, CorpusDocument, IdRule, ReadTotals};

/// A document that is dropped.
pub(in crate::verbs) struct DroppedRecord<'d> {
    /// Its number in the corpus, from 0.
    pub(in crate::verbs) number: u64,
    pub(in crate::verbs) key: &'d [u8],
    /// `None` if nothing remains of its text without the parts that have already appeared.
    pub(in crate::verbs) survivor: Option<&'d Survivor>,
}

/// A decision of which there is a report.
pub(in crate::verbs) enum DecidedRecord<'d> {
    Dropped(DroppedRecord<'d>),
    /// A document was compared with one that is kept or in the other store, and not dropped for it.
    Rejected {
        /// The number of the document in the corpus, from 0.
        number: u64,
        /// The key of the document.
        document: &'d [u8],
        candidate: &'d Survivor,
    },
}

/// Called with each document that is dropped and, if they are listed, each candidate that is rejected.
type OnDrop<'a> = &'a mut dyn FnMut(DecidedRecord<'_>) -> Result<()>;

/// The documents of a corpus with the decision which of them are kept.
pub(in crate::verbs) struct DecidedDocuments {
    /// A bit for each record.
    pub(in crate::verbs) kept: BitList,
    /// Documents that are near-duplicates of others, which are kept or are in the other store.
    pub(in crate::verbs) dropped: BitList,
    pub(in crate::verbs) tally: DocumentTally,
    pub(in crate::verbs) totals: ReadTotals,
}

/// Decides on all documents of a corpus whose records can be read, with the scores that the rule
/// asks for. A job keeps the documents that are read, only without another store and without
/// repeated parts. `tally` has the counts so far.
pub(in crate::verbs) fn decide(
    context: &Context,
    choices: DedupChoices<'_>,
    basis: &DedupBasis,
    corpus: &Arc<Corpus>,
    job: Option<Arc<Job>>,
    tally: DocumentTally,
    on_drop: OnDrop<'_>,
) -> Result<DecidedDocuments> {
    let mut decision = Decision {
        context,
        choices,
        basis,
        corpus,
        on_drop,
        features: context.features(basis.is_exact),
        kept: BitList::default(),
        dropped: BitList::default(),
        tally,
        missed: missed_pairs(&basis.schema, choices.join_bounds(), basis.is_exact),
        is_left_out: false,
        lone: Arc::default(),
        looked_at: None,
        sets: None,
    };
    let documents = decision.read(job)?;
    let totals = match (choices.survivors.policy, &choices.survivors.keep) {
        (PolicyName::First, KeepRule::First) if choices.lost.is_none() => {
            decision.as_they_come(documents)?
        }
        _ => decision.all_together(documents)?,
    };
    decision.print_certainty()?;
    Ok(DecidedDocuments {
        kept: decision.kept,
        dropped: decision.dropped,
        tally: decision.tally,
        totals,
    })
}

/// The data that the temporary store keeps of a document besides its signature: a hash of its
/// content, and its key, because keys need not be unique.
struct StoredPayload<'a> {
    digest: u64,
    key: &'a [u8],
}

impl<'a> StoredPayload<'a> {
    fn decode(bytes: &'a [u8]) -> Result<Self> {
        match bytes.split_first_chunk() {
            Some((digest, key)) => Ok(Self {
                digest: u64::from_le_bytes(*digest),
                key,
            }),
            None => Err(bug("a document without its digest").into()),
        }
    }
}

/// A document, and the document of the other store for which it is dropped.
struct SketchedDocument {
    sketched: SketchedText,
    /// A hash of its content.
    digest: u64,
    known: Option<Survivor>,
    /// The documents of the other store that it was compared with and is not dropped for.
    rejected: Vec<Survivor>,
    /// The score: documents with higher ones are preferred; `None` without a score.
    score: Option<[f64; 2]>,
    /// True if nothing remains of its text without the parts that have already appeared. Such a
    /// document is not decided.
    is_emptied: bool,
    /// True if it was compared with a part of its candidates in the other store only.
    is_beyond_budget: bool,
}

impl JobValue for SketchedDocument {
    fn save(&self) -> JobContent {
        JobContent {
            sketched: self.sketched.clone(),
            digest: self.digest,
            score: self.score,
        }
    }

    fn restore(content: JobContent) -> Self {
        Self {
            sketched: content.sketched,
            digest: content.digest,
            known: None,
            rejected: Vec::new(),
            score: content.score,
            is_emptied: false,
            is_beyond_budget: false,
        }
    }
}

impl SketchedDocument {
    /// Returns the payload to store with this key, see [`StoredPayload`].
    fn payload(&self, key: &[u8]) -> Vec<u8> {
        [&self.digest.to_le_bytes(), key].concat()
    }
}

/// The decision on the documents of a corpus, under way.
struct Decision<'a> {
    context: &'a Context,
    choices: DedupChoices<'a>,
    /// Its schema is that of a temporary store of the kept documents (of all documents, unless they
    /// are decided one by one). The stamp of a document there is its number in the corpus, and its
    /// payload a [`StoredPayload`].
    basis: &'a DedupBasis,
    corpus: &'a Arc<Corpus>,
    on_drop: OnDrop<'a>,
    /// Feature sets of the documents in the temporary store, if similarities are to be exact.
    features: Option<FeatureSets>,
    kept: BitList,
    dropped: BitList,
    tally: DocumentTally,
    /// The expected number of near-duplicates that are missed, from those that are dropped.
    missed: Option<MissedPairs>,
    /// True if a limited bucket left documents out.
    is_left_out: bool,
    /// The documents that share no band with any other, once they are known. They are kept without
    /// a comparison.
    lone: Arc<OnceLock<LoneDocuments>>,
    /// The totals of the reading that found them.
    looked_at: Option<ReadTotals>,
    /// The sets of the other store, if new documents are compared with them.
    sets: Option<StoredSets>,
}

impl Decision<'_> {
    fn print_certainty(&self) -> Result<()> {
        // Without signatures nothing is missed by chance, except in the other store.
        if let Some(max_lost) = self.choices.lost {
            if let Some(sets) = &self.sets {
                self.context
                    .note(stored_recall(sets, &self.basis.schema, max_lost));
            }
            return Ok(());
        }
        let (tally, basis) = (&self.tally, self.basis);
        let is_open = self.is_left_out || tally.budget_exceeded + tally.estimated > 0;
        let certainty = match is_open {
            true => Certainty::Uncertified,
            false => self
                .choices
                .join_bounds()
                .certainty(&basis.schema, basis.is_exact)?,
        };
        print_certainty(
            self.context,
            "a near-duplicate",
            certainty,
            self.missed.as_ref(),
        );
        Ok(())
    }

    /// Returns how each document is sketched. Lone ones are not, unless they `are_needed`.
    fn sketch_each(
        &self,
        are_needed: bool,
    ) -> Result<impl Fn(&CorpusDocument<'_>) -> Result<SketchedDocument> + Send + Sync + 'static>
    {
        let sketcher = self.basis.schema.sketcher();
        let with_features = self.features.is_some();
        let keep = self.choices.survivors.keep.clone();
        let lone = Arc::clone(&self.lone);
        // Where documents are signatures, none is made here.
        let unread = sketcher.hashes([]).ok();
        Ok(move |document: &CorpusDocument<'_>| {
            let is_lone = lone.get().is_some_and(|l| l.contains(document.number));
            Ok(SketchedDocument {
                sketched: match unread.as_ref().filter(|_| is_lone && !are_needed) {
                    Some(signature) => SketchedText {
                        signature: signature.clone(),
                        features: Arc::default(),
                    },
                    None => document.content.sketch(&sketcher, with_features)?,
                },
                digest: document.content.digest(),
                known: None,
                rejected: Vec::new(),
                score: keep.score(document),
                is_emptied: document.is_emptied,
                is_beyond_budget: false,
            })
        })
    }

    /// Begins to read the documents, and to look them up in the other store if there is one.
    fn read(&mut self, job: Option<Arc<Job>>) -> Result<CorpusDocuments<SketchedDocument>> {
        let (context, choices) = (self.context, self.choices);
        // A job keeps what is read for a later run, and a store is asked about each document.
        let is_needed = job.is_some() || self.basis.against.is_some();
        let sketch = self.sketch_each(is_needed)?;
        let Some(snapshot) = self.basis.against.clone() else {
            return Ok(CorpusDocuments::start_job(
                context,
                self.corpus,
                job,
                sketch,
            ));
        };
        let features = choices.known_features(context, self.basis)?;
        let verifies = features.is_some() || choices.with_rejected;
        let schema = &self.basis.schema;
        // Vectors are compared exactly, but have no features.
        let has_sets = features.is_some() || schema.is_exact() && schema.vector().is_none();
        let sets = has_sets.then(|| StoredSets::new(&snapshot, features));
        self.sets = sets.transpose()?;
        let known = KnownDocuments {
            snapshot,
            sets: self.sets.clone(),
            verifies,
            lost: choices.lost,
            lists_rejected: choices.with_rejected,
            bounds: choices.join_bounds(),
            budget: choices.survivors.budget,
        };
        let look_up = move |documents: &[CorpusDocument<'_>]| {
            let mut sketched = documents.iter().map(&sketch).collect::<Result<Vec<_>>>()?;
            match known.lost {
                Some(max_lost) => known.find_holders(&mut sketched, max_lost)?,
                None => known.find_near(&mut sketched)?,
            }
            Ok(sketched)
        };
        Ok(CorpusDocuments::start_together(
            context,
            "reading",
            self.corpus,
            look_up,
        ))
    }

    fn note(&mut self, is_kept: bool, is_dropped: bool) {
        self.kept.push(is_kept);
        self.dropped.push(is_dropped);
    }

    /// Counts a document, and drops it if the other store has one like it; the others are returned,
    /// to be decided.
    fn take(
        &mut self,
        read: ReadDocument<SketchedDocument>,
    ) -> Result<Option<(Vec<u8>, SketchedDocument)>> {
        let skip_bad = self.choices.join.corpus.skip_bad;
        let number = read.number;
        // The documents in between are not in the sample.
        while self.kept.len() < number {
            self.note(false, false);
        }
        let Some(document) = read.take(self.context, self.corpus, &mut self.tally, skip_bad)?
        else {
            self.note(false, false);
            return Ok(None);
        };
        let (key, sketched) = (document.key, document.value);
        if sketched.is_emptied {
            self.tally.emptied += 1;
            self.note(false, true);
            (self.on_drop)(DecidedRecord::Dropped(DroppedRecord {
                number,
                key: &key,
                survivor: None,
            }))?;
            return Ok(None);
        }
        for candidate in &sketched.rejected {
            self.reject(number, &key, candidate)?;
        }
        if let Some(known) = &sketched.known {
            self.tally.budget_exceeded += u64::from(sketched.is_beyond_budget);
            self.note(false, true);
            self.drop(number, &key, known)?;
            return Ok(None);
        }
        // A lone document has features, though they may not have been read again.
        let is_empty = sketched.sketched.signature.is_empty() && !self.is_lone(number);
        self.tally.empty += u64::from(is_empty);
        Ok(Some((key, sketched)))
    }

    fn drop(&mut self, number: u64, key: &[u8], survivor: &Survivor) -> Result<()> {
        self.tally.dropped += 1;
        self.tally.equal += u64::from(survivor.evidence == Evidence::Equal);
        let is_estimated = self.basis.is_exact && survivor.evidence == Evidence::Estimate;
        self.tally.estimated += u64::from(is_estimated);
        if let Some((missed, similarity)) = self.missed.as_mut().zip(survivor.similarity) {
            let other = match survivor.place {
                SurvivorPlace::Corpus(other) => other,
                // Documents of the store are numbered from the other end.
                SurvivorPlace::Store(id) => !id,
            };
            missed.add(number, other, similarity);
        }
        (self.on_drop)(DecidedRecord::Dropped(DroppedRecord {
            number,
            key,
            survivor: Some(survivor),
        }))
    }

    /// Compares every document with the earlier ones that were kept.
    fn as_they_come(
        &mut self,
        mut documents: CorpusDocuments<SketchedDocument>,
    ) -> Result<ReadTotals> {
        let mut kept = self.deduplicator()?.verify_exact(self.features.take());
        if self.choices.with_rejected {
            kept = kept.collect_rejected()?;
        }
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
                // An earlier document may have been wrong: its failure precedes this one.
                Err(failure) if !failure.is_signal() => {
                    self.decide(&mut kept, gathered)?;
                    return Err(failure);
                }
                Err(failure) => return Err(failure),
            }
            if gathered.len() == DOCUMENTS_TOGETHER || held_bytes >= MAX_HELD_BYTES {
                self.decide(&mut kept, std::mem::take(&mut gathered))?;
                held_bytes = 0;
                self.look_ahead(&mut kept)?;
            }
        }
        self.decide(&mut kept, gathered)?;
        let totals = documents.end(self.context, &self.tally)?;
        if let Some(before) = self.looked_at {
            must_be_same(before, totals)?;
        }
        Ok(totals)
    }

    /// When memory is nearly full, reads the rest of the corpus to find the documents that are like
    /// no other: only the others need memory from then on.
    fn look_ahead(&mut self, kept: &mut Deduplicator) -> Result<()> {
        let has_other_bounds = self.basis.against.is_some() || self.choices.join.by.is_given();
        if self.lone.get().is_some() || has_other_bounds {
            return Ok(());
        }
        let context = self.context.repeated();
        let Some(mut ahead) = kept.look_ahead(context.memory_bytes / 8)? else {
            return Ok(());
        };
        let sketcher = self.basis.schema.sketcher();
        let sketch =
            move |document: &CorpusDocument<'_>| Ok(document.content.sketch(&sketcher, false)?);
        let mut corpus = Corpus::clone(self.corpus);
        if corpus.settings.sample.is_none() {
            // Nobody asks for the keys, which a reading of several files remembers.
            corpus.settings.id = IdRule::Path;
        }
        let (next, corpus) = (self.kept.len(), Arc::new(corpus));
        let mut documents =
            CorpusDocuments::start(&context, "looking ahead", &corpus, next, sketch);
        self.context
            .detail("memory is nearly full: looking ahead for documents like no other");
        while let Some(read) = documents.next()? {
            // A bad document, or one that does not fit the schema, is reported when it is reached.
            let Ok(document) = read.document else {
                continue;
            };
            match ahead.insert(read.number, &document.value.signature) {
                Ok(()) | Err(Error::SignatureMismatch { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.looked_at = Some(documents.totals());
        let mut progress = context.progress("looking ahead");
        let finish = move || Ok(ahead.finish()?);
        let lone = context.interrupt.while_working(&mut progress, finish)?;
        kept.forget(&lone)?;
        self.lone.get_or_init(|| lone);
        Ok(())
    }

    fn is_lone(&self, number: u64) -> bool {
        self.lone.get().is_some_and(|lone| lone.contains(number))
    }

    fn deduplicator(&self) -> Result<Deduplicator> {
        deduplicator(
            self.context,
            &self.basis.schema,
            self.choices.survivors.budget,
        )
    }

    /// Decides some documents in their order: together, or one by one where that cannot be.
    fn decide(
        &mut self,
        kept: &mut Deduplicator,
        gathered: Vec<ReadDocument<SketchedDocument>>,
    ) -> Result<()> {
        // Bounds differ from the schema's only with another store, or with another family.
        let has_store = self.basis.against.is_some();
        let has_own_bounds =
            has_store && self.choices.join.bounds.is_given() || self.choices.join.by.is_given();
        let together = match has_own_bounds {
            true => None,
            false => self.decide_together(kept, &gathered)?,
        };
        let mut decided_together = together.map(Vec::into_iter);
        let mut place = 0;
        let mut rejected = kept.take_rejected().into_iter().peekable();
        for read in gathered {
            let (number, source, line) = (read.number, read.source, read.line);
            let Some((key, document)) = self.take(read)? else {
                continue;
            };
            if self.is_lone(number) {
                self.note(true, false);
                self.tally.kept += 1;
                continue;
            }
            let decision = match &mut decided_together {
                Some(decisions) => decisions
                    .next()
                    .ok_or_else(|| bug("a document was not decided"))?,
                None => {
                    self.context.interrupt.check()?;
                    let payload = document.payload(&key);
                    let stored = Document::without_key().payload(&payload).stamp(number);
                    let bounds = self.choices.join_bounds();
                    let decided = kept.decide(stored, &document.sketched, bounds);
                    let decided = decided.map_err(|error| {
                        let place = self.corpus.position(source, line);
                        Failure::document(self.store_name(), place, error)
                    })?;
                    rejected = kept.take_rejected().into_iter().peekable();
                    place = 0;
                    decided
                }
            };
            while let Some(next) = rejected.next_if(|next| next.document == place) {
                let candidate = kept.get_id(next.candidate)?;
                let candidate =
                    candidate.ok_or_else(|| bug("a document was compared that was not kept"))?;
                self.reject(number, &key, &compared_record(&next, &candidate)?)?;
            }
            place += 1;
            let is_beyond_budget =
                decision.budget_exceeded().is_some() || document.is_beyond_budget;
            self.tally.budget_exceeded += u64::from(is_beyond_budget);
            self.note(decision.is_new(), !decision.is_new());
            match decision.found() {
                None => self.tally.kept += 1,
                Some(found) => {
                    let rule = near_rule(self.choices.join_bounds(), &self.basis.schema, found)?;
                    let survivor = kept_survivor(kept, found, rule, &document)?;
                    self.drop(number, &key, &survivor)?;
                }
            }
        }
        Ok(())
    }

    /// Reports a document that another one was compared with and not dropped for.
    fn reject(&mut self, number: u64, document: &[u8], candidate: &Survivor) -> Result<()> {
        (self.on_drop)(DecidedRecord::Rejected {
            number,
            document,
            candidate,
        })
    }

    /// Decides those documents that are good and that the other store does not have. `None` if one of
    /// them is wrong: then none was decided.
    fn decide_together(
        &self,
        kept: &mut Deduplicator,
        gathered: &[ReadDocument<SketchedDocument>],
    ) -> Result<Option<Vec<Novelty>>> {
        let good = gathered
            .iter()
            .filter_map(|read| Some((read.number, read.document.as_ref().ok()?)));
        let open = good.filter(|(number, _)| !self.is_lone(*number));
        let open = open
            .filter(|(_, document)| document.value.known.is_none() && !document.value.is_emptied);
        let payloads: Vec<_> = open
            .map(|(number, document)| {
                let payload = document.value.payload(&document.key);
                (number, payload, &document.value.sketched)
            })
            .collect();
        let stored: Vec<_> = payloads
            .iter()
            .map(|(number, payload, sketched)| {
                let document = Document::without_key().payload(payload).stamp(*number);
                (document, *sketched)
            })
            .collect();
        match kept.decide_many(&stored) {
            Ok(decisions) => Ok(Some(decisions)),
            Err(Error::InvalidParameter { .. } | Error::SignatureMismatch { .. }) => Ok(None),
            Err(error) => Err(Failure::store(self.store_name(), error)),
        }
    }

    /// Returns the name of the temporary store in error messages.
    fn store_name(&self) -> String {
        temporary_name(&self.context.temp_dir)
    }

    /// Reads all documents before any is decided.
    fn all_together(&mut self, documents: CorpusDocuments<SketchedDocument>) -> Result<ReadTotals> {
        let context = self.context;
        let (collected, scores, totals) = self.collect(documents)?;
        let preference = self.choices.survivors.keep.preference(&scores);
        let policy = self.policy()?;
        let features = self.features.take().map(Arc::new);
        let (bounds, limits) = (self.choices.join_bounds(), self.choices.limits);
        let clusters = collected.clusters();
        let (join, joining) = match self.choices.lost {
            None => prepare_join(context, clusters, bounds, limits, JoinProduct::Clusters)?,
            // Features decide, and nothing is joined.
            Some(_) => (clusters, JoinProgress::default()),
        };
        let followed = joining.follow(join);
        let mut progress = joining.display("finding duplicates", context.messages.quiet);
        let mut duplicates = context.interrupt.while_working(&mut progress, move || {
            Ok(duplicates(followed, policy, &preference, features)?)
        })?;
        print_left_out(context, duplicates.left_out());
        self.is_left_out = !duplicates.left_out().is_empty();
        for cluster in duplicates.suspicious() {
            let Some(first) = collected.get_id(cluster.first)? else {
                return Err(bug("a cluster of no documents").into());
            };
            let stored = StoredPayload::decode(first.payload())?;
            print_suspicious(context, cluster, Some(stored.key));
        }
        self.tally.budget_exceeded += duplicates.budget_exceeded();
        for rejected in duplicates.take_rejected() {
            context.interrupt.check()?;
            let read = |id| {
                let record = collected.get_id(id)?;
                record
                    .ok_or_else(|| Failure::from(bug("a document was compared that is not there")))
            };
            let document = read(DocumentId::new(rejected.document))?;
            let candidate = compared_record(&rejected, &read(rejected.candidate)?)?;
            let key = StoredPayload::decode(document.payload())?.key;
            self.reject(document.stamp(), key, &candidate)?;
        }
        for duplicate in duplicates {
            context.interrupt.check()?;
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
            let features = self.context.features(self.features.is_some());
            let made = self.deduplicator()?.verify_exact(features);
            Ok(Box::new(match self.choices.with_rejected {
                true => made.collect_rejected()?,
                false => made,
            }))
        };
        if let Some(max_lost) = self.choices.lost {
            let threads = NonZeroUsize::new(self.context.threads);
            return Ok(DedupPolicy::Contained {
                max_lost,
                most_first: self.choices.survivors.policy == PolicyName::Representative,
                threads: threads.ok_or_else(|| bug("no thread"))?,
                memory_bytes: self.context.corpus_bytes(),
                with_rejected: self.choices.with_rejected,
            });
        }
        Ok(match self.choices.survivors.policy {
            PolicyName::First => DedupPolicy::First(decider()?),
            PolicyName::Cluster => DedupPolicy::Cluster,
            PolicyName::Representative => DedupPolicy::Representative(decider()?),
        })
    }

    /// Collects all documents that are to be decided, and their scores, if they have any.
    fn collect(
        &mut self,
        mut documents: CorpusDocuments<SketchedDocument>,
    ) -> Result<(Collected, Vec<[f64; 2]>, ReadTotals)> {
        let context = self.context;
        let mut building = Building::collect(context, &self.basis.schema, false)?;
        let has_scores = self.choices.survivors.keep.has_scores();
        let (mut scores, mut unscored) = (Vec::new(), 0_u64);
        while let Some(read) = documents.next()? {
            let (number, source, line) = (read.number, read.source, read.line);
            let Some((key, document)) = self.take(read)? else {
                continue;
            };
            let payload = document.payload(&key);
            let stored = Document::without_key().payload(&payload).stamp(number);
            let place = || self.corpus.position(source, line);
            let id = building.insert(stored, &document.sketched.signature, place)?;
            if let Some(features) = &mut self.features {
                features.put(id, document.sketched.features)?;
            }
            if has_scores {
                unscored += u64::from(document.score.is_none());
                scores.push(document.score.unwrap_or([f64::NAN, 0.0]));
            }
            self.note(true, false);
            self.tally.kept += 1;
        }
        if unscored > 0 {
            context.note(format!(
                "documents without the number that --keep compares: {unscored}; they come last"
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

/// The documents of the other store, with which new ones are compared first.
struct KnownDocuments {
    snapshot: Snapshot,
    /// The sets of those whose features are known, if there are any.
    sets: Option<StoredSets>,
    /// Whether similarities are computed from these sets here. An exact store does so anyway.
    verifies: bool,
    lost: Option<f64>,
    lists_rejected: bool,
    bounds: Bounds,
    budget: Option<NonZeroU64>,
}

impl KnownDocuments {
    /// Finds the documents that are near one of the store.
    fn find_near(&self, documents: &mut [SketchedDocument]) -> Result<()> {
        let (schema, bounds) = (self.snapshot.schema(), self.bounds);
        let signature = |document: &SketchedDocument| document.sketched.signature.clone();
        let signatures: Vec<Signature> = documents.iter().map(signature).collect();
        let mut query = self.snapshot.query(&signatures).bounds(bounds).limit(1);
        if let Some(budget) = self.budget {
            query = query.probe_budget(budget.get());
        }
        let (answers, rejected) = match self.sets.as_ref().filter(|_| self.verifies) {
            Some(sets) => {
                let batch: Vec<_> = documents.iter().map(|it| &it.sketched).collect();
                sets.verify(query, &batch, bounds.similarity_floor(schema)?)?
            }
            None => (query.run()?, Vec::new()),
        };
        for (document, answer) in documents.iter_mut().zip(answers) {
            document.is_beyond_budget = answer.budget_exceeded().is_some();
            if let Some(found) = answer.into_iter().next() {
                let compared = match &self.sets {
                    Some(sets) => sets.compare(0, &document.sketched, found.id())?,
                    None => None,
                };
                let place = SurvivorPlace::Store(found.id().get());
                let key = found.key().map(<[u8]>::to_vec);
                let rule = near_rule(bounds, schema, &found)?;
                document.known = Some(Survivor {
                    shares: compared.map(|compared| compared.shares),
                    // A store has no contents to compare with.
                    ..Survivor::from_match(&found, place, key, rule)
                });
            }
        }
        self.note_rejected(documents, rejected)
    }

    /// Finds the documents whose features one of the store has, all but the share that may be lost.
    fn find_holders(&self, documents: &mut [SketchedDocument], max_lost: f64) -> Result<()> {
        let known_sets = self.sets.as_ref();
        let sets = known_sets.ok_or_else(|| bug("no sets to compare with"))?;
        let batch: Vec<_> = documents.iter().map(|it| &it.sketched).collect();
        let answer = sets.holders(&batch, max_lost)?;
        for (document, found) in documents.iter_mut().zip(answer.found) {
            let known = found.map(|found| self.compared(&found));
            document.known = known.transpose()?;
        }
        self.note_rejected(documents, answer.rejected)
    }

    /// Notes the documents of the store that documents were compared with and are not dropped for.
    fn note_rejected(
        &self,
        documents: &mut [SketchedDocument],
        rejected: Vec<ComparedCandidate>,
    ) -> Result<()> {
        for candidate in rejected.iter().filter(|_| self.lists_rejected) {
            let document = at_mut(documents, candidate.document as usize)?;
            document.rejected.push(self.compared(candidate)?);
        }
        Ok(())
    }

    fn compared(&self, found: &ComparedCandidate) -> Result<Survivor> {
        let place = SurvivorPlace::Store(found.candidate.get());
        let key = self.snapshot.key(found.candidate)?;
        Ok(Survivor::compared(found, place, key))
    }
}

/// Returns the rule by which a document is near the one that was found for it.
fn near_rule(bounds: Bounds, schema: &Schema, found: &Match) -> Result<DropRule> {
    let (similarity, is_exact) = (found.similarity(), found.is_exact());
    let rule = DropRule::of(bounds, schema, similarity, is_exact, found.distance());
    Ok(rule?)
}

/// States how probably a document of the other store is found that has the features of a new one.
fn stored_recall(sets: &StoredSets, schema: &Schema, max_lost: f64) -> String {
    let [same, more, twice, four] = [1.0, 1.25, 2.0, 4.0].map(|times| {
        let chance = sets.recall(max_lost, times);
        chance.map_or_else(|| "unknown".to_owned(), |chance| format!("{chance:.3}"))
    });
    let kept = schema.containment().map(|it| it.min_shared_units());
    let other = match kept {
        Some(Some(units)) => {
            format!("always if both share a passage of {units} words, characters or code tokens")
        }
        Some(None) => "always if both have a shingle that is kept".to_owned(),
        None => "a store with --containment finds larger ones, too".to_owned(),
    };
    format!(
        "a document of the store that has the features of a new one is found by bands with probability {same} if it \
         has as many features, {more} if 1.25 times the number, {twice} if twice and {four} if four times; {other}"
    )
}

/// A kept document that another one was compared with.
fn compared_record(compared: &ComparedCandidate, candidate: &Record) -> Result<Survivor> {
    let key = StoredPayload::decode(candidate.payload())?.key.to_vec();
    let place = SurvivorPlace::Corpus(candidate.stamp());
    Ok(Survivor::compared(compared, place, Some(key)))
}

/// A kept document that was found for another one.
fn kept_survivor(
    kept: &Deduplicator,
    found: &Match,
    rule: DropRule,
    document: &SketchedDocument,
) -> Result<Survivor> {
    let Some(record) = kept.get_id(found.id())? else {
        return Err(bug("a document was found that was not kept").into());
    };
    let stored = StoredPayload::decode(record.payload())?;
    let place = SurvivorPlace::Corpus(record.stamp());
    let is_equal = stored.digest == document.digest;
    Ok(Survivor {
        evidence: Evidence::of(is_equal, found.is_exact()),
        shares: kept.shares(&document.sketched, found)?,
        ..Survivor::from_match(found, place, Some(stored.key.to_vec()), rule)
    })
}

/// The survivor of a document whose content has this hash.
fn survivor_of(duplicate: &Duplicate, digest: u64) -> Result<Survivor> {
    let stored = StoredPayload::decode(duplicate.survivor.payload())?;
    Ok(Survivor {
        place: SurvivorPlace::Corpus(duplicate.survivor.stamp()),
        key: Some(stored.key.to_vec()),
        similarity: duplicate.similarity,
        evidence: Evidence::of(stored.digest == digest, duplicate.is_exact),
        distance: duplicate.distance,
        shares: duplicate.shares,
        rule: duplicate.rule,
    })
}
