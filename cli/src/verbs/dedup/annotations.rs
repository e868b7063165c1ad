//! What became of each document, as columns beside it.

use std::collections::HashMap;
use std::sync::Arc;

use resemblance::Schema;

use super::decide::DroppedRecord;
use crate::failure::Result;
use crate::output::{Evidence, SurvivorPlace};
use resemblance::invariant::{at, at_mut};
use resemblance_corpus::{AddedColumn, ColumnValues};

/// The columns that `--annotate` adds, and of which tables of verdicts are made.
#[derive(Clone, Copy)]
enum AnnotationColumn {
    Kept,
    Cluster,
    Size,
    Rank,
    Survivor,
    Similarity,
    Distance,
    Evidence,
}

impl AnnotationColumn {
    const ALL: [Self; 8] = [
        Self::Kept,
        Self::Cluster,
        Self::Size,
        Self::Rank,
        Self::Survivor,
        Self::Similarity,
        Self::Distance,
        Self::Evidence,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Cluster => "cluster",
            Self::Size => "size",
            Self::Rank => "rank",
            Self::Survivor => "survivor",
            Self::Similarity => "similarity",
            Self::Distance => "distance",
            Self::Evidence => "similarity_is",
        }
    }

    /// Those that documents with signatures of this schema have, with their names, which begin with the prefix.
    fn of(schema: &Schema, prefix: &str) -> impl Iterator<Item = (Self, String)> {
        let is_had = |column: &Self| match column {
            Self::Similarity => schema.minhash().is_some(),
            Self::Distance => schema.simhash().is_some(),
            _ => true,
        };
        let had = Self::ALL.into_iter().filter(is_had);
        had.map(move |column| (column, format!("{prefix}{}", column.name())))
    }

    fn values(self, corpus: Arc<AnnotatedCorpus>) -> ColumnValues {
        let rank = move |corpus: &AnnotatedCorpus, number| match corpus.standing(number) {
            Standing::Emptied => None,
            Standing::Dropped(document) => Some(document.rank),
            Standing::Survivor(_) | Standing::Alone => Some(1),
        };
        match self {
            Self::Kept => ColumnValues::Truth(Box::new(move |number| {
                Some(rank(&corpus, number) == Some(1))
            })),
            Self::Cluster => ColumnValues::Text(Box::new(move |number| {
                Some(match corpus.standing(number) {
                    Standing::Emptied => return None,
                    Standing::Dropped(document) => cluster_name(document.cluster.place),
                    Standing::Survivor(_) | Standing::Alone => {
                        cluster_name(SurvivorPlace::Corpus(number))
                    }
                })
            })),
            Self::Size => ColumnValues::Integer(Box::new(move |number| {
                Some(match corpus.standing(number) {
                    Standing::Emptied => return None,
                    Standing::Dropped(document) => document.cluster.size,
                    Standing::Survivor(cluster) => cluster.size,
                    Standing::Alone => 1,
                })
            })),
            Self::Rank => ColumnValues::Integer(Box::new(move |number| rank(&corpus, number))),
            Self::Survivor => ColumnValues::Text(Box::new(move |number| {
                let dropped = corpus.dropped(number)?;
                Some(dropped.cluster.label.clone())
            })),
            Self::Similarity => ColumnValues::Number(Box::new(move |number| {
                corpus.dropped(number)?.row.similarity
            })),
            Self::Distance => ColumnValues::Integer(Box::new(move |number| {
                corpus.dropped(number)?.row.distance.map(u64::from)
            })),
            Self::Evidence => ColumnValues::Text(Box::new(move |number| {
                Some(corpus.dropped(number)?.row.evidence.name().to_owned())
            })),
        }
    }
}

/// The number of the survivor in the corpus, from 1, or its id in the other store.
fn cluster_name(place: SurvivorPlace) -> String {
    match place {
        SurvivorPlace::Corpus(number) => (number + 1).to_string(),
        SurvivorPlace::Store(id) => format!("store:{id}"),
    }
}

/// The names of the columns that documents with signatures of this schema get, all of which begin with the prefix.
pub(super) fn column_names(schema: &Schema, prefix: &str) -> Vec<String> {
    let columns = AnnotationColumn::of(schema, prefix);
    columns.map(|(_, name)| name).collect()
}

/// What became of the documents so far.
#[derive(Default)]
pub(super) struct Annotations {
    clusters: Vec<AnnotatedCluster>,
    by_survivor: HashMap<SurvivorPlace, usize>,
    /// Each with the index of its cluster.
    dropped: Vec<(DroppedRow, usize)>,
    /// By their numbers, ascending.
    emptied: Vec<u64>,
}

/// A survivor with the documents that were dropped for it.
struct AnnotatedCluster {
    place: SurvivorPlace,
    label: String,
    /// Number of documents, the survivor included.
    size: u64,
}

struct DroppedRow {
    number: u64,
    similarity: Option<f64>,
    evidence: Evidence,
    distance: Option<u32>,
}

impl Annotations {
    /// Notes a document that was dropped.
    pub(super) fn take(&mut self, document: &DroppedRecord<'_>) {
        let number = document.number;
        let Some(survivor) = document.survivor else {
            self.emptied.push(number);
            return;
        };
        let place = survivor.place;
        let index = *self.by_survivor.entry(place).or_insert_with(|| {
            self.clusters.push(AnnotatedCluster {
                place,
                label: survivor.label(),
                size: 1,
            });
            self.clusters.len() - 1
        });
        let row = DroppedRow {
            number,
            similarity: survivor.similarity,
            evidence: survivor.evidence,
            distance: survivor.distance,
        };
        self.dropped.push((row, index));
    }

    /// The columns of all documents.
    pub(super) fn columns(mut self, schema: &Schema, prefix: &str) -> Result<Vec<AddedColumn>> {
        // Documents that the other store has are noted before the others.
        self.dropped.sort_unstable_by_key(|(row, _)| row.number);
        let mut ranks = Vec::with_capacity(self.dropped.len());
        for (_, index) in &self.dropped {
            let cluster = at_mut(&mut self.clusters, *index)?;
            cluster.size += 1;
            ranks.push(cluster.size);
        }
        let clusters: Vec<_> = self.clusters.into_iter().map(Arc::new).collect();
        let mut dropped = Vec::with_capacity(ranks.len());
        for ((row, index), rank) in self.dropped.into_iter().zip(ranks) {
            let cluster = Arc::clone(at(&clusters, index)?);
            dropped.push(AnnotatedDocument { row, cluster, rank });
        }
        let corpus = Arc::new(AnnotatedCorpus {
            dropped,
            survivors: clusters.iter().map(|c| (c.place, Arc::clone(c))).collect(),
            emptied: self.emptied,
        });
        let columns = AnnotationColumn::of(schema, prefix).map(|(column, name)| AddedColumn {
            name,
            values: column.values(Arc::clone(&corpus)),
        });
        Ok(columns.collect())
    }
}

/// What became of all documents, by their numbers.
struct AnnotatedCorpus {
    /// Ascending by number.
    dropped: Vec<AnnotatedDocument>,
    survivors: HashMap<SurvivorPlace, Arc<AnnotatedCluster>>,
    emptied: Vec<u64>,
}

struct AnnotatedDocument {
    row: DroppedRow,
    cluster: Arc<AnnotatedCluster>,
    /// Its place in the cluster in the order of the corpus, from 2: the survivor is the first.
    rank: u64,
}

/// What became of one document.
enum Standing<'a> {
    Dropped(&'a AnnotatedDocument),
    Survivor(&'a AnnotatedCluster),
    /// It stays, and no other was dropped for it.
    Alone,
    /// Nothing was left of it.
    Emptied,
}

impl AnnotatedCorpus {
    fn dropped(&self, number: u64) -> Option<&AnnotatedDocument> {
        let found = self
            .dropped
            .binary_search_by_key(&number, |document| document.row.number);
        self.dropped.get(found.ok()?)
    }

    fn standing(&self, number: u64) -> Standing<'_> {
        if let Some(document) = self.dropped(number) {
            return Standing::Dropped(document);
        }
        match self.survivors.get(&SurvivorPlace::Corpus(number)) {
            Some(cluster) => Standing::Survivor(cluster),
            None if self.emptied.binary_search(&number).is_ok() => Standing::Emptied,
            None => Standing::Alone,
        }
    }
}
