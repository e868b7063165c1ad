//! Columns that record the outcome for each document.

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
    /// Every column with its name.
    const ALL: [(Self, &str); 8] = [
        (Self::Kept, "kept"),
        (Self::Cluster, "cluster"),
        (Self::Size, "size"),
        (Self::Rank, "rank"),
        (Self::Survivor, "survivor"),
        (Self::Similarity, "similarity"),
        (Self::Distance, "distance"),
        (Self::Evidence, "similarity_is"),
    ];

    /// Returns the columns that documents with signatures of this schema have, with their names,
    /// which begin with the prefix.
    fn of(schema: &Schema, prefix: &str) -> impl Iterator<Item = (Self, String)> {
        let is_had = |(column, _): &(Self, &str)| match column {
            Self::Similarity => schema.minhash().is_some(),
            Self::Distance => schema.simhash().is_some(),
            _ => true,
        };
        let had = Self::ALL.into_iter().filter(is_had);
        had.map(move |(column, name)| (column, format!("{prefix}{name}")))
    }

    fn values(self, corpus: Arc<AnnotatedCorpus>) -> ColumnValues {
        match self {
            Self::Kept => ColumnValues::Truth(Box::new(move |number| {
                let place = corpus.place(number);
                Some(place.is_some_and(|place| place.rank == 1))
            })),
            Self::Cluster => {
                ColumnValues::Text(corpus.values(|it| Some(cluster_name(it.survivor))))
            }
            Self::Size => ColumnValues::Integer(corpus.values(|it| Some(it.size))),
            Self::Rank => ColumnValues::Integer(corpus.values(|it| Some(it.rank))),
            Self::Survivor => {
                ColumnValues::Text(corpus.values(|it| Some(it.dropped?.cluster.label.clone())))
            }
            Self::Similarity => {
                ColumnValues::Number(corpus.values(|it| it.dropped?.row.similarity))
            }
            Self::Distance => {
                ColumnValues::Integer(corpus.values(|it| it.dropped?.row.distance.map(u64::from)))
            }
            Self::Evidence => {
                ColumnValues::Text(corpus.values(|it| Some(it.dropped?.row.evidence.name().into())))
            }
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

/// The outcomes for the documents so far.
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
                label: survivor.field(),
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

/// The outcomes for all documents, by number.
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

/// The place of a document of which something is left.
struct AnnotatedPlace<'a> {
    survivor: SurvivorPlace,
    /// Number of documents of its cluster.
    size: u64,
    rank: u64,
    /// The document itself, unless it is a survivor.
    dropped: Option<&'a AnnotatedDocument>,
}

impl AnnotatedCorpus {
    /// `None` if nothing is left of the document.
    fn place(&self, number: u64) -> Option<AnnotatedPlace<'_>> {
        let by_number = |document: &AnnotatedDocument| document.row.number;
        let found = self.dropped.binary_search_by_key(&number, by_number);
        let dropped = found.ok().and_then(|index| self.dropped.get(index));
        let own = SurvivorPlace::Corpus(number);
        let (cluster, rank) = match dropped {
            Some(document) => (Some(&document.cluster), document.rank),
            None => (self.survivors.get(&own), 1),
        };
        if cluster.is_none() && self.emptied.binary_search(&number).is_ok() {
            return None;
        }
        // A document that is kept, and for which no other was removed, is its own cluster.
        Some(AnnotatedPlace {
            survivor: cluster.map_or(own, |cluster| cluster.place),
            size: cluster.map_or(1, |cluster| cluster.size),
            rank,
            dropped,
        })
    }

    /// Returns the values of a column for documents of which something is left.
    fn values<T: 'static>(
        self: Arc<Self>,
        value: impl Fn(AnnotatedPlace<'_>) -> Option<T> + Send + Sync + 'static,
    ) -> Box<dyn Fn(u64) -> Option<T> + Send + Sync> {
        Box::new(move |number| value(self.place(number)?))
    }
}
