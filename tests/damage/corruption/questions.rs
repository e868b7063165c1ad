//! Everything that is read from a store, and whether it is what it was.

use resemblance::stats::Stats;
use resemblance::{ClusterId, DocumentId, Error, Matches, Pair, Record, Signature, Snapshot};

/// The queries, the same for each state of a store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Questions {
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) signatures: Vec<Signature>,
    /// The upper bound of the ids to query.
    pub(crate) ids: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Record(Option<Record>),
    Is(bool),
    Matches(Matches),
    Many(Vec<Matches>),
    Ids(Vec<DocumentId>),
    ManyIds(Vec<Vec<DocumentId>>),
    Clusters(Vec<Vec<DocumentId>>),
    Cluster(Option<ClusterId>),
    Text(String),
    Stats(Box<Stats>),
    /// The items before the first error, and whether there was none.
    Records(Vec<Record>, bool),
    Pairs(Vec<Pair>, bool),
}

/// More than any of the stores can give.
const MOST_ITEMS: usize = 20_000;

/// Answers in a fixed order; those of a damaged store have gaps.
#[derive(Clone, Debug)]
pub(crate) struct Content(Vec<Option<Answer>>);

fn whole<T>(
    items: impl Iterator<Item = Result<T, Error>>,
    errors: &mut Vec<Error>,
) -> (Vec<T>, bool) {
    let before = errors.len();
    let mut whole = Vec::new();
    // What follows an error must be right, too.
    for item in items.take(MOST_ITEMS) {
        match item {
            Ok(item) => whole.push(item),
            Err(error) => errors.push(error),
        }
    }
    let is_whole = errors.len() == before;
    (whole, is_whole)
}

/// Which depend on the cache and on the length of the file.
fn without_sizes(mut stats: Stats) -> Stats {
    stats.filter_cache_bytes = 0;
    stats.block_cache_bytes = 0;
    stats.file_bytes = 0;
    stats.allocated_bytes = 0;
    stats.compact_gain_bytes = 0;
    stats.compact_length_gain_bytes = 0;
    stats
}

impl Content {
    /// Asks all questions; the errors are put with the others.
    pub(crate) fn read(
        snapshot: &Snapshot,
        questions: &Questions,
        errors: &mut Vec<Error>,
    ) -> Self {
        let mut answers = Vec::new();
        let mut put = |answer: Result<Answer, Error>| {
            answers.push(answer.map_err(|error| errors.push(error)).ok());
        };
        for key in &questions.keys {
            put(snapshot.get(key).map(Answer::Record));
            put(snapshot.contains(key).map(Answer::Is));
        }
        for id in 0..questions.ids {
            put(snapshot.get_id(DocumentId::new(id)).map(Answer::Record));
        }
        let signatures = &questions.signatures;
        for signature in signatures {
            put(snapshot.query(signature).run().map(Answer::Matches));
            put(snapshot.nearest(signature, 3).run().map(Answer::Matches));
            put(snapshot.query(signature).candidates().map(Answer::Ids));
        }
        if let Some(signature) = signatures.first() {
            put(snapshot.query(signature).scan().run().map(Answer::Matches));
        }
        put(snapshot.query(signatures).run().map(Answer::Many));
        let candidates = snapshot.query(signatures).candidates();
        put(candidates.map(Answer::ManyIds));
        let clusters = snapshot.clusters().run();
        put(clusters.map(|clusters| Answer::Clusters(clusters.collect())));
        if snapshot.schema().clusters().is_some() {
            kept_clusters(snapshot, questions.ids, &mut put);
        }
        let stats = snapshot.stats().run().map(without_sizes);
        put(stats.map(|stats| Answer::Stats(stats.into())));
        let records = Ok(whole(snapshot.iter(), errors));
        let pairs = snapshot.pairs().run();
        let pairs = pairs.map(|pairs| whole(pairs, errors));
        for list in [
            records.map(|(records, whole)| Answer::Records(records, whole)),
            pairs.map(|(pairs, whole)| Answer::Pairs(pairs, whole)),
        ] {
            answers.push(list.map_err(|error| errors.push(error)).ok());
        }
        Self(answers)
    }

    /// Returns how the answers differ from those of an intact store. Missing answers do not count.
    pub(crate) fn difference(&self, intact: &Self) -> Option<String> {
        let mut pairs = self.0.iter().zip(&intact.0);
        let differs = pairs.find_map(|(found, expected)| {
            let (found, expected) = (found.as_ref()?, expected.as_ref()?);
            let is_right = match (found, expected) {
                (Answer::Records(found, false), Answer::Records(expected, _)) => {
                    is_part(found, expected)
                }
                (Answer::Pairs(found, false), Answer::Pairs(expected, _)) => {
                    is_part(found, expected)
                }
                (found, expected) => found == expected,
            };
            (!is_right).then(|| {
                let (found, expected) = (format!("{found:?}"), format!("{expected:?}"));
                let shown = |text: &str| text.chars().take(600).collect::<String>();
                format!("found {}, expected {}", shown(&found), shown(&expected))
            })
        });
        let (found, expected) = (self.0.len(), intact.0.len());
        differs.or_else(|| (found != expected).then(|| format!("{found} answers of {expected}")))
    }
}

/// Asks which clusters the store keeps, how they are connected, and how they came about.
fn kept_clusters(snapshot: &Snapshot, ids: u64, put: &mut impl FnMut(Result<Answer, Error>)) {
    for id in 0..ids {
        let cluster = snapshot.cluster_of_id(DocumentId::new(id));
        put(cluster.map(Answer::Cluster));
        let cluster = ClusterId::new(id);
        put(snapshot.members(cluster).map(Answer::Ids));
        let edges = snapshot.cluster_edges(cluster);
        put(edges.map(|edges| Answer::Text(format!("{edges:?}"))));
    }
    let changes = snapshot.cluster_changes(0);
    let changes: Result<Vec<_>, Error> = changes.and_then(Iterator::collect);
    put(match changes {
        // Rebanding finds all clusters again, without the changes before.
        Err(Error::InvalidParameter { expected, .. }) => Ok(Answer::Text(expected)),
        changes => changes.map(|changes| Answer::Text(format!("{changes:?}"))),
    });
}

/// Whether these are some of those, in their order.
fn is_part<T: PartialEq>(some: &[T], all: &[T]) -> bool {
    let mut all = all.iter();
    some.iter().all(|item| all.any(|other| other == item))
}
