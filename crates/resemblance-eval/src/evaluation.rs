//! Queries a store for every document of a sample, and compares its answers with exact
//! similarities.

use resemblance::invariant::{OrBug, at};
use resemblance::schema::{EmptyDocuments, MinHashSchema};
use resemblance::{Bounds, Error, Family, Matches, Query, Result, Signature, Snapshot};
use resemblance_corpus::verification::{Partner, exact_partners};

use crate::sample::DocumentSample;
use crate::spread::{Promise, RecallSpread, SeedRecall};
use crate::tally::{ComparedDocument, FamilyTally, FamilyTheory, MinHashTally, SimHashTally};

/// The number of documents that are looked up together.
const DOCUMENTS_TOGETHER: usize = 64;

/// A store that contains only a sample, and counts of what it returns: see
/// [`Snapshot::evaluate`](Evaluation::new).
///
/// ```
/// # use resemblance_eval::{Evaluation, Sampler};
/// # use resemblance::{Document, Error, MinHash, Schema, Store, Text};
/// # let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?;
/// # let store = Store::in_memory(schema)?;
/// # let (mut sampler, sketcher) = (Sampler::new(), store.sketcher());
/// # for (number, text) in ["a b c d e f g h i", "b c d e f g h i j", "x y z"].iter().enumerate() {
/// #     let (features, signature) = (sketcher.feature_hashes(text)?, sketcher.text(text)?);
/// #     sampler.add(number as u64, text.as_bytes().into(), features, signature)?;
/// # }
/// # let sample = sampler.finish(3);
/// # for signature in &sample.signatures {
/// #     store.insert(Document::without_key(), signature)?;
/// # }
/// let mut evaluation = Evaluation::new(&store.snapshot()?, sample, 10)?;
/// evaluation.run(0.1, |documents| {
///     eprintln!("{documents} documents are done");
///     Ok::<_, Error>(())
/// })?;
/// assert!(evaluation.seeds().is_empty()); // none were tried
/// let minhash = evaluation.minhash.expect("the schema has MinHash");
/// let (all, found) = (minhash.near.pairs, minhash.near.returned);
/// assert_eq!(minhash.missed().count() as u64, all - found); // at most ten were asked for
/// # Ok::<(), resemblance::Error>(())
/// ```
#[non_exhaustive]
pub struct Evaluation {
    /// The sample. Its signatures are as the store keeps them, because cut values change the
    /// estimates.
    pub sample: DocumentSample,
    snapshot: Snapshot,
    /// True if documents without features are near-duplicates of each other.
    empty_are_alike: bool,
    /// The counts of pairs returned by similarity, if the schema has MinHash.
    pub minhash: Option<MinHashTally>,
    /// The counts of pairs returned by distance, if the schema has SimHash.
    pub simhash: Option<SimHashTally>,
    /// The pairs returned by MinHash, by SimHash, by both and by either, if the schema has both.
    pub families: Vec<FamilyTally>,
    seeds: Option<SeedRecall>,
}

/// The documents that a store returns by similarity, ascending.
struct Similar {
    /// The documents that share a band.
    candidates: Vec<Partner>,
    /// The documents whose estimate reaches the threshold.
    returned: Vec<Partner>,
}

/// The documents that a store returns by distance, ascending, and how many candidates it compared.
struct Nearby {
    documents: Vec<(usize, u32)>,
    candidates: usize,
}

impl Evaluation {
    /// Prepares to measure how much of a sample a store finds. The store must contain exactly the
    /// sample, and the id of a document must be its index in the sample. The evaluation keeps the
    /// `max_missed` most similar pairs that the store does not return.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the number of documents differs, or the sample has no
    /// signatures.
    pub fn new(snapshot: &Snapshot, sample: DocumentSample, max_missed: usize) -> Result<Self> {
        let documents = sample.len();
        if snapshot.len() != documents as u64 || sample.signatures.len() != documents {
            return Err(Error::invalid(
                "sample",
                format!(
                    "{documents} documents, {} signatures",
                    sample.signatures.len()
                ),
                format!(
                    "the {} documents of the store, with signatures",
                    snapshot.len()
                ),
            ));
        }
        let schema = snapshot.schema();
        let minhash = schema.minhash();
        let simhash = schema.simhash();
        let families = match minhash.zip(simhash) {
            Some((minhash, _)) => FamilyTally::of_all(minhash.threshold()),
            None => Vec::new(),
        };
        Ok(Self {
            families,
            sample,
            empty_are_alike: schema.empty_documents() == EmptyDocuments::Alike,
            minhash: minhash.map(|minhash| MinHashTally::new(minhash, max_missed)),
            simhash: simhash.map(|simhash| SimHashTally::new(simhash.clone())),
            seeds: None,
            snapshot: snapshot.clone(),
        })
    }

    /// Makes [`run`](Self::run) also count the candidates with the seeds from 1 to `seeds`, from
    /// signatures with that seed and the schema's bands. Sketches each document `seeds` times, and
    /// calls `on_document` before each. It takes 8 bytes for each document, seed and band, and the
    /// bytes of a signature for each document and seed.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the schema has no MinHash, or has MinHash of weighted
    /// features or of external values; and the error of `on_document`.
    ///
    /// ```
    /// # use resemblance_eval::{Evaluation, Sampler};
    /// # use resemblance::{Document, Error, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?)?;
    /// # let (mut sampler, sketcher) = (Sampler::new(), store.sketcher());
    /// # for (number, text) in ["a b c d e f g h i", "b c d e f g h i j", "x y z"].iter().enumerate() {
    /// #     let (features, signature) = (sketcher.feature_hashes(text)?, sketcher.text(text)?);
    /// #     sampler.add(number as u64, text.as_bytes().into(), features, signature)?;
    /// # }
    /// # let sample = sampler.finish(3);
    /// # for signature in &sample.signatures {
    /// #     store.insert(Document::without_key(), signature)?;
    /// # }
    /// # let mut evaluation = Evaluation::new(&store.snapshot()?, sample, 10)?;
    /// evaluation.over_seeds(20, || Ok::<_, Error>(()))?;
    /// evaluation.run(0.1, |_| Ok::<_, Error>(()))?;
    /// let near = evaluation.seeds().last().expect("they were asked for");
    /// assert_eq!((near.min_similarity, near.found.len()), (0.8, 20));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn over_seeds<E: From<Error>>(
        &mut self,
        seeds: u64,
        on_document: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let features = &self.sample.features;
        let recall = SeedRecall::new(self.snapshot.schema(), features, seeds, on_document)?;
        self.seeds = Some(recall);
        Ok(())
    }

    /// Returns the recall with the seeds of [`over_seeds`](Self::over_seeds). There are two
    /// entries: the recall of the pairs less than 0.05 above the threshold, to which the promised
    /// recall refers, and that of all pairs at the threshold or above. For a threshold of 0.95 or
    /// more they are the same, and there is one entry. Without `over_seeds` the result is empty.
    #[must_use]
    pub fn seeds(&self) -> &[RecallSpread] {
        self.seeds.as_ref().map_or(&[], |seeds| &seeds.spreads)
    }

    /// Returns what the schema promises about the pairs at its threshold, beside what happened to
    /// those less than 0.05 above it. Without [`over_seeds`](Self::over_seeds) the result is empty.
    #[must_use]
    pub fn promises(&self) -> Vec<Promise> {
        let minhash = self.minhash.as_ref().map(|tally| tally.minhash);
        let known = minhash.zip(self.seeds().first());
        known.map_or_else(Vec::new, |(minhash, spread)| Promise::all(minhash, spread))
    }

    /// Compares all pairs whose exact similarity is at least `floor`. Calls `on_document` before
    /// each document with the number of documents before it, and stops if that returns an error.
    ///
    /// # Errors
    ///
    /// The errors of [`Query::run`](resemblance::Query::run), and the error of `on_document`.
    pub fn run<E: From<Error>>(
        &mut self,
        floor: f64,
        mut on_document: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut partners = exact_partners(&self.sample.features, floor)?;
        let families = self.minhash.as_ref().zip(self.simhash.as_ref());
        let both_theories = families.map(|(minhash, simhash)| FamilyTheory {
            minhash: minhash.minhash,
            design: simhash.design.clone(),
        });
        for first in (0..self.sample.len()).step_by(DOCUMENTS_TOGETHER) {
            let end = self.sample.len().min(first + DOCUMENTS_TOGETHER);
            let signatures = self
                .sample
                .signatures
                .get(first..end)
                .or_bug("a sample has fewer signatures than documents")?;
            let mut similar_answers = match self.minhash.as_ref().map(|tally| tally.minhash) {
                Some(minhash) => self.by_similarity(minhash, signatures)?.into_iter(),
                None => Vec::new().into_iter(),
            };
            let mut nearby_answers = match &self.simhash {
                Some(_) => self.by_distance(signatures)?.into_iter(),
                None => Vec::new().into_iter(),
            };
            let mut by_family = Vec::with_capacity(self.families.len());
            for tally in &self.families {
                by_family.push(self.returned_by(signatures, tally.by)?);
            }
            for document in first..end {
                on_document(document as u64)?;
                let mut exact = partners
                    .next()
                    .or_bug("fewer feature sets than signatures")??;
                self.add_empty(document, &mut exact)?;
                for (tally, returned) in self.families.iter_mut().zip(&by_family) {
                    let theory = both_theories.as_ref().or_bug("both families")?;
                    let returned = at(returned, document - first)?;
                    tally.add(document, &exact, returned, theory, &self.sample.features)?;
                }
                if self.minhash.is_some() {
                    let similar = similar_answers.next().or_bug("a query without an answer")?;
                    self.count_similar(document, &exact, &similar)?;
                }
                if self.simhash.is_some() {
                    let nearby = nearby_answers.next().or_bug("a query without an answer")?;
                    self.count_near(document, &exact, nearby)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the store's answers by similarity: candidates that share a band, with their
    /// estimates, and those within the threshold.
    fn by_similarity(
        &self,
        minhash: MinHashSchema,
        signatures: &[Signature],
    ) -> Result<Vec<Similar>> {
        let bounds = Bounds::new().by(Family::MinHash);
        // Every estimate is at least 0, so this returns all documents that share a band.
        let all = bounds.min_similarity(0.0).accept_lower_recall();
        let candidates = self.partners(signatures, all)?;
        let returned = self.partners(signatures, bounds.min_similarity(minhash.threshold()))?;
        let both = candidates.into_iter().zip(returned);
        let similar = both.map(|(candidates, returned)| Similar {
            candidates,
            returned,
        });
        Ok(similar.collect())
    }

    fn query<'a>(&'a self, signatures: &'a [Signature]) -> Query<'a, Vec<Matches>> {
        self.snapshot.query(signatures)
    }

    fn partners(&self, signatures: &[Signature], bounds: Bounds) -> Result<Vec<Vec<Partner>>> {
        let answers = self.query(signatures).bounds(bounds).run()?;
        let partners = |matches: Matches| -> Result<Vec<Partner>> {
            let mut partners = Vec::with_capacity(matches.len());
            for near in &matches {
                let similarity = near.similarity();
                partners.push(Partner {
                    document: index_of(near.id().get())?,
                    similarity: similarity.or_bug("a match without a similarity")?,
                });
            }
            partners.sort_unstable_by_key(|partner| partner.document);
            Ok(partners)
        };
        answers.into_iter().map(partners).collect()
    }

    /// Returns the store's answers by MinHash, by SimHash, by both or by either.
    fn returned_by(&self, signatures: &[Signature], by: Family) -> Result<Vec<Vec<usize>>> {
        let answers = self.query(signatures).bounds(Bounds::new().by(by)).run()?;
        let documents = |matches: Matches| {
            let ids = matches.iter().map(|near| index_of(near.id().get()));
            ids.collect::<Result<Vec<_>>>()
        };
        answers.into_iter().map(documents).collect()
    }

    /// Returns the store's answers by distance.
    fn by_distance(&self, signatures: &[Signature]) -> Result<Vec<Nearby>> {
        let bounds = Bounds::new().by(Family::SimHash);
        let answers = self.query(signatures).bounds(bounds).run()?;
        let nearby = |matches: Matches| -> Result<Nearby> {
            let mut documents = Vec::with_capacity(matches.len());
            for near in &matches {
                let distance = near.distance().or_bug("a match without a distance")?;
                documents.push((index_of(near.id().get())?, distance));
            }
            documents.sort_unstable();
            Ok(Nearby {
                documents,
                candidates: matches.candidates(),
            })
        };
        answers.into_iter().map(nearby).collect()
    }

    /// Adds the pairs of documents without features, if the schema treats them as near-duplicates.
    /// The exact join has no such pairs, because they share nothing.
    fn add_empty(&self, document: usize, exact: &mut Vec<Partner>) -> Result<()> {
        if !self.empty_are_alike || !at(&self.sample.features, document)?.is_empty() {
            return Ok(());
        }
        let earlier = self.sample.features.iter().take(document).enumerate();
        let empty = earlier.filter(|(_, features)| features.is_empty());
        exact.extend(empty.map(|(document, _)| Partner {
            document,
            similarity: 1.0,
        }));
        Ok(())
    }

    fn count_similar(
        &mut self,
        document: usize,
        exact: &[Partner],
        similar: &Similar,
    ) -> Result<()> {
        let tally = self
            .minhash
            .as_mut()
            .or_bug("a store without MinHash was asked by similarity")?;
        // Each pair is found from both sides, and counted from the later document.
        let is_earlier = |partner: &&Partner| partner.document < document;
        let candidates = similar.candidates.iter().filter(is_earlier);
        let candidates: Vec<Partner> = candidates.copied().collect();
        let returned = similar.returned.iter().filter(is_earlier);
        let returned: Vec<Partner> = returned.copied().collect();
        let signatures = &self.sample.signatures;
        let own = at(signatures, document)?;
        let compared = ComparedDocument {
            document,
            exact,
            candidates: &candidates,
            returned: &returned,
        };
        if let Some(seeds) = &mut self.seeds {
            seeds.add(&compared)?;
        }
        tally.add(&compared, |other| Ok(own.jaccard(at(signatures, other)?)?))
    }

    fn count_near(&mut self, document: usize, exact: &[Partner], nearby: Nearby) -> Result<()> {
        let tally = self
            .simhash
            .as_mut()
            .or_bug("a store without SimHash was asked by distance")?;
        let Nearby {
            documents: mut returned,
            candidates,
        } = nearby;
        returned.retain(|(other, _)| *other < document);
        // Pairs are counted from the later document, candidates from each document.
        tally.candidates += candidates as u64;
        let max_distance = u32::from(tally.design.max_distance());
        let own = at(&self.sample.signatures, document)?;
        let mut near = Vec::new();
        for (index, other) in self.sample.signatures.iter().take(document).enumerate() {
            let is_comparable =
                own.is_empty() == other.is_empty() && (self.empty_are_alike || !own.is_empty());
            if is_comparable {
                let distance = own.hamming(other)?;
                if distance <= max_distance {
                    near.push((index, distance));
                }
            }
        }
        tally.add(document, &self.sample.features, exact, &near, &returned)
    }
}

/// Returns the index of a document in the sample, which is its id in the store.
fn index_of(id: u64) -> Result<usize> {
    usize::try_from(id).ok().or_bug("an id beyond the sample")
}
