//! The findings in a corpus, and the report page.

use std::collections::{BTreeMap, BTreeSet};

use resemblance::invariant::OrBug;
use resemblance::search::LeftOut;
use resemblance::{Collected, DocumentId, Result, Schema, key_text};
use resemblance_corpus::verification::FeatureSets;

use super::bands::PairBands;
use super::dropped::DroppedDocuments;
use super::explained::ExplainedPair;
use super::groups::{ClusterFigures, Likeness};
use super::page::{ClusterSample, ReportPage, SamplePair};

/// The findings in a corpus.
#[derive(Debug)]
pub struct Findings {
    /// The documents.
    pub collected: Collected,
    /// True if similarities are exact.
    pub is_exact: bool,
    /// The pairs.
    pub bands: PairBands,
    /// The clusters.
    pub clusters: ClusterFigures,
    /// The documents that a deduplication removes.
    pub dropped: DroppedDocuments,
    /// The comparisons that were left out.
    pub left_out: LeftOut,
}

/// The rule by which a deduplication selects survivors, in words.
#[derive(Clone, Debug)]
pub struct SurvivorRule {
    /// The options that set the rule.
    pub options: String,
    /// Why a document is removed.
    pub reason: &'static str,
    /// True if one document of each cluster is kept.
    pub is_one_of_each_cluster: bool,
}

impl Findings {
    pub(super) fn schema(&self) -> &Schema {
        self.collected.schema()
    }

    fn key(&self, id: DocumentId) -> Result<Vec<u8>> {
        let key = self.collected.key(id)?;
        key.or_bug("a document of a corpus has a key")
    }

    /// Returns the keys of the documents whose texts the page shows.
    ///
    /// # Errors
    ///
    /// The errors of reading the documents.
    pub fn shown_keys(&self) -> Result<BTreeSet<Vec<u8>>> {
        let bands = self.bands.bands.iter().flat_map(|band| &band.samples);
        let samples = bands.map(|sample| [sample.a, sample.b]);
        let clusters = self.clusters.shown().map(|cluster| cluster.least_alike);
        let shown = samples.chain(clusters.map(|pair| [pair.a, pair.b]));
        let drops = self.dropped.list().into_iter();
        let dropped = drops.flat_map(|drop| [Some(drop.document), drop.survivor]);
        let dropped = dropped.flatten().map(Ok);
        shown
            .flatten()
            .map(|id| self.key(id))
            .chain(dropped)
            .collect()
    }

    /// Returns the page as HTML, or, as the inner error, why it cannot be drawn. `inputs` are the
    /// names of the corpus's files. `texts` are the texts of documents by key, as far as they are
    /// known.
    ///
    /// # Errors
    ///
    /// The errors of reading the documents and of sketching the texts.
    pub fn page(
        &self,
        inputs: &[String],
        texts: &BTreeMap<Vec<u8>, String>,
        rule: &SurvivorRule,
    ) -> Result<Result<String, String>> {
        let mut samples = Vec::new();
        for band in &self.bands.bands {
            let pairs = band.samples.iter();
            let pairs = pairs.map(|it| self.pair(texts, it.a, it.b, it.likeness));
            samples.push((band, pairs.collect::<Result<Vec<_>>>()?));
        }
        let mut clusters = Vec::new();
        for cluster in self.clusters.shown() {
            let pair = cluster.least_alike;
            let label = |id: &DocumentId| Ok(key_text(&self.key(*id)?).into_owned());
            clusters.push(ClusterSample {
                cluster,
                members: cluster.compared.iter().map(label).collect::<Result<_>>()?,
                least_alike: self.pair(texts, pair.a, pair.b, pair.likeness)?,
            });
        }
        let mut drops = Vec::new();
        for drop in self.dropped.list() {
            let labels = [
                format!("removed: {}", key_text(&drop.document)),
                format!("stays: {}", drop.survivor_label),
            ];
            let survivor = drop.survivor.as_ref().and_then(|key| texts.get(key));
            let known = texts.get(&drop.document).zip(survivor);
            drops.push((self.explained(labels, known)?, drop));
        }
        let page = ReportPage {
            inputs,
            found: self,
            rule,
            samples,
            clusters,
            drops,
        };
        Ok(page.html())
    }

    /// Returns two documents, with an explanation if their texts are known.
    fn pair(
        &self,
        texts: &BTreeMap<Vec<u8>, String>,
        a: DocumentId,
        b: DocumentId,
        likeness: Likeness,
    ) -> Result<SamplePair> {
        let (a, b) = (self.key(a)?, self.key(b)?);
        let labels = [&a, &b].map(|key| key_text(key).into_owned());
        let known = texts.get(&a).zip(texts.get(&b));
        Ok(SamplePair {
            explained: self.explained(labels.clone(), known)?,
            labels,
            likeness,
        })
    }

    /// Compares two texts, or returns `None` if they are unknown.
    fn explained(
        &self,
        labels: [String; 2],
        known: Option<(&String, &String)>,
    ) -> Result<Option<ExplainedPair>> {
        let Some((a, b)) = known.filter(|_| self.schema().text().is_some()) else {
            return Ok(None);
        };
        let pair = ExplainedPair::new(self.schema(), labels, [a.clone(), b.clone()]);
        pair.map(Some)
    }
}

/// Returns how similar two documents are: exactly if their features are known or the schema is
/// exact, and otherwise by their signatures.
///
/// # Errors
///
/// The errors of reading the documents.
pub fn likeness(
    collected: &Collected,
    features: Option<&FeatureSets>,
    a: DocumentId,
    b: DocumentId,
) -> Result<Likeness> {
    if let Some(features) = features
        && let Some(similarity) = features.similarity(a, b)?
    {
        return Ok(Likeness::Similarity(similarity));
    }
    let record = |id| {
        let record = collected.get_id(id)?;
        record.or_bug("a document of a cluster was collected")
    };
    let (a, b) = (record(a)?, record(b)?);
    let (a, b) = (a.signature(), b.signature());
    let Some(minhash) = collected.schema().minhash() else {
        return Ok(Likeness::Distance(a.hamming(b)?));
    };
    Ok(Likeness::Similarity(match (a.exact_set(), b.exact_set()) {
        (Some(a), Some(b)) => a.similarity_from(0.0, b, minhash.kind())?,
        _ => a.jaccard(b)?,
    }))
}
