//! Reads the documents of a damaged file one by one, and records the losses.

use std::iter;
use std::path::Path;

use crate::clusters::DisjointSets;
use crate::engine::{
    CLUSTERS, Commit, MEMBERS, PageFile, RowTable, TableHandle, Tree, open_commit,
};
use crate::error::{Error, Result};
use crate::format::{
    ClusterRow, DOCUMENTS, DocumentRow, FEED, MAX_POSITIONS, PAYLOADS, SETS, Shape, checksum,
    decode_member, decode_payload, decode_set,
};
use crate::maintain::repair::damaged_rows::{ReadRow, each_row};
use crate::maintain::repair::loss_report::LossReport;
use crate::maintain::repair::meta::MetaRows;
use crate::maintain::repair::page_scan::scan;
use crate::maintain::repair::row_source::{RowSource, RowVersions};
use crate::maintain::repair::tombstones::RemainingTombstones;
use crate::maintain::stored_keys::{number, problem_of, problem_of_head};
use crate::options::StoreOptions;
use crate::state::shape_of;
use crate::types::{Document, Watch};
use resemblance_sketch::schema::Schema;
use resemblance_sketch::sketch::{RecipeMark, Signature};

/// Reasons of a document that has not all of its rows.
const NO_DOCUMENT_ROW: &str = "its row in documents is gone";
const NO_PAYLOAD_ROW: &str = "its row in payloads is gone";
const NO_SET_ROW: &str = "its row in sets is gone";
const SEVERAL_SETS: &str = "found several sets of features, expected one";

/// Rows by their keys.
type KeyedRows<'r> = &'r mut dyn Iterator<Item = (u64, Vec<u8>)>;

/// A damaged file, whose documents are read one by one.
pub(super) struct DamagedStore {
    commit: Commit,
    documents: RowVersions,
    payloads: RowVersions,
    /// Has rows only in an exact store.
    sets: RowVersions,
    /// The rows of the tables of clusters, in a store that keeps clusters. A scan finds none.
    members: RowSource,
    clusters: RowSource,
    deleted: RemainingTombstones,
    schema: Schema,
    shape: Shape,
    recipe: RecipeMark,
    next_id: Option<u64>,
    /// The greatest position of the feed of clusters that can be read.
    pub(super) feed_position: u64,
    pub(super) losses: LossReport,
    /// Number of documents that there were, if that can be read.
    pub(super) expected: Option<u64>,
    /// True if the schema is that of the file.
    pub(super) has_own_schema: bool,
}

impl DamagedStore {
    /// Opens a file; no process may write it meanwhile. With `scans`, all of its pages are
    /// examined, including those to which no tree leads.
    pub(crate) fn open(
        path: &Path,
        given: Option<&Schema>,
        scans: bool,
        options: &StoreOptions,
        watch: &mut Watch<'_>,
    ) -> Result<Self> {
        let commit = open_commit(path, &options.file_options(), scans)?;
        let mut losses = LossReport::default();
        let of_head = commit.head.iter().map(problem_of_head);
        losses.damage.extend(of_head);
        let mut table_pages = Vec::new();
        let tables = commit.our_tables(&mut table_pages);
        for (page, name) in &table_pages {
            losses.problem(problem_of(page, name));
        }
        let table = |name: &str| tables.iter().find(|table| &*table.name == name);
        if !scans && table(DOCUMENTS).is_none() {
            return Err(Error::corrupt(
                "the definitions of the tables",
                "they cannot be read, so no document can be reached; scan all pages for rows",
            ));
        }
        let found = scans.then(|| scan(&commit.pages, watch)).transpose()?;
        let mut meta = MetaRows::read(&commit, table("meta"), &mut losses);
        if let Some(found) = &found {
            meta.complete(&found.meta);
        }
        let schema = meta.usable_schema(given)?;
        let mut deleted =
            RemainingTombstones::read(&commit, table("dead"), meta.state.as_ref(), &mut losses);
        if scans {
            deleted.may_be_back = vec![(0, u64::MAX)];
        }
        let has_sets = schema.has_sets();
        let mut of_clusters = |name| match !scans && schema.clusters().is_some() {
            true => RowSource::from_tree(name, table(name), &mut losses),
            false => RowSource::None,
        };
        let (members, clusters) = (of_clusters("members"), of_clusters("clusters"));
        let (documents, payloads, sets) = match found {
            Some(found) => (
                RowSource::Scan(found.documents),
                RowSource::Scan(found.payloads),
                RowSource::Scan(found.sets),
            ),
            None => (
                RowSource::from_tree(DOCUMENTS, table(DOCUMENTS), &mut losses),
                RowSource::from_tree(PAYLOADS, table(PAYLOADS), &mut losses),
                RowSource::from_tree(SETS, table(SETS), &mut losses),
            ),
        };
        Ok(Self {
            documents: RowVersions::new(documents, false),
            payloads: RowVersions::new(payloads, false),
            sets: RowVersions::new(if has_sets { sets } else { RowSource::None }, true),
            members,
            clusters,
            deleted,
            shape: shape_of(&schema),
            recipe: schema.sketcher().recipe_mark(),
            schema,
            next_id: meta.state.map(|state| state.next_id),
            feed_position: last_position(&commit, table(FEED), &mut losses),
            losses,
            expected: meta.state.map(|state| state.documents),
            has_own_schema: meta.schema.is_some(),
            commit,
        })
    }

    /// Returns the schema by which the documents can be stored.
    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Returns true if the state before the last commit is read.
    pub(super) fn is_earlier_commit(&self) -> bool {
        self.commit.is_earlier
    }

    /// Returns the id that the next document would have got, `None` if that is unknown.
    pub(crate) fn next_id(&self) -> Option<u64> {
        self.next_id
    }

    /// Hands the next document that can be read in whole to `take`, ascending by id; `false` after the
    /// last.
    pub(crate) fn next_document(
        &mut self,
        take: &mut dyn FnMut(u64, Document<'_>, &Signature) -> Result<()>,
    ) -> Result<bool> {
        loop {
            let pages = &self.commit.pages;
            let next = self.documents.next_id(pages, &mut self.losses);
            let next_payload = self.payloads.next_id(pages, &mut self.losses);
            let next_set = self.sets.next_id(pages, &mut self.losses);
            let Some(id) = next.into_iter().chain(next_payload).chain(next_set).min() else {
                return Ok(false);
            };
            let documents = self.documents.take(id, pages, &mut self.losses);
            let payloads = self.payloads.take(id, pages, &mut self.losses);
            let sets = self.sets.take(id, pages, &mut self.losses);
            if self.deleted.contains(id) || self.next_id.is_some_and(|next| id >= next) {
                continue;
            }
            match self.decode_any(&documents, &payloads, &sets) {
                Ok((document, signature)) => {
                    return take(id, document, &signature).map(|()| true);
                }
                Err(reason) => self.losses.lost(id, reason),
            }
        }
    }

    /// Decodes the first version of a document that is whole, or returns the reason why it is lost.
    fn decode_any<'r>(
        &self,
        documents: &'r [ReadRow],
        payloads: &'r [ReadRow],
        sets: &[ReadRow],
    ) -> std::result::Result<(Document<'r>, Signature), String> {
        let decode = |row| self.decode(row, payloads, sets);
        let mut decoded = documents.iter().map(decode);
        let first = decoded.next().unwrap_or(Err(NO_DOCUMENT_ROW.into()));
        first.or_else(|reason| decoded.find_map(|decoded| decoded.ok()).ok_or(reason))
    }

    fn decode<'r>(
        &self,
        document: &'r ReadRow,
        payloads: &'r [ReadRow],
        sets: &[ReadRow],
    ) -> std::result::Result<(Document<'r>, Signature), String> {
        let row = DocumentRow::decode(document.id, &document.value, &self.shape)
            .map_err(|error| reason(DOCUMENTS, &error))?;
        let payload = match row.head.has_payload {
            true => {
                let payload = payloads.first().ok_or(NO_PAYLOAD_ROW)?;
                decode_payload(payload.id, &payload.value)
                    .map_err(|error| reason(PAYLOADS, &error))?
            }
            // Whatever is there belongs to another version of the document.
            false => &[],
        };
        // The set of a document never changes. But a transaction that was rolled back may have used its id.
        let set = match self.schema.has_sets() {
            true => {
                let set = sets.first().ok_or(NO_SET_ROW)?;
                if sets.iter().any(|other| other.value != set.value) {
                    return Err(SEVERAL_SETS.into());
                }
                let decoded = decode_set(set.id, &set.value, &self.shape);
                Some(decoded.map_err(|error| reason(SETS, &error))?)
            }
            false => None,
        };
        let (head, signature) = (row.head, row.to_signature(self.recipe).with_set(set));
        let document = head.to_document(payload);
        document.validate().map_err(|error| error.to_string())?;
        Ok((document, signature))
    }

    /// Hands rows for the tables of clusters to `take`, table by table: those that can be read, without those that cannot
    /// be right. Each id of a cluster up to the greatest one that is named gets a row.
    pub(super) fn cluster_rows(
        &mut self,
        take: &mut dyn FnMut(RowTable, KeyedRows<'_>) -> Result<()>,
    ) -> Result<()> {
        let (pages, losses) = (&self.commit.pages, &mut self.losses);
        let mut ids = ClusterIds {
            end: 0,
            limit: pages.length_bytes() / MIN_CLUSTER_ROW_BYTES,
            forwards: DisjointSets::default(),
        };
        let mut members = iter::from_fn(|| {
            let check = |row: &ReadRow| ids.check_member(row);
            let row = next_right(&mut self.members, pages, losses, check)?;
            Some((row.id, row.value))
        });
        take(MEMBERS, &mut members)?;
        let (mut next, mut ahead) = (0, None);
        let mut clusters = iter::from_fn(|| {
            if ahead.is_none() {
                let check = |row: &ReadRow| ids.check_cluster(row);
                ahead = next_right(&mut self.clusters, pages, losses, check);
            }
            let id = next;
            next += 1;
            match ahead.take_if(|row| row.id == id) {
                Some(row) => Some((id, row.value)),
                // Damage has taken its row.
                None => (id < ids.end).then(|| (id, ClusterRow::Ended.encode(id))),
            }
        });
        take(CLUSTERS, &mut clusters)
    }

    /// Returns the losses, after the last document.
    pub(crate) fn finish(self) -> LossReport {
        let mut losses = self.losses;
        losses.finish(self.next_id, self.deleted.may_be_back);
        losses
    }
}

/// The minimum length of a row of `clusters`: the key, a byte and the checksum.
const MIN_CLUSTER_ROW_BYTES: u64 = 8 + 1 + 4;

/// The ids of clusters that rows name.
struct ClusterIds {
    /// One above the greatest.
    end: u64,
    /// The number of rows of clusters that fit the file. Each id that was given has one, so greater ids are wrong.
    limit: u64,
    /// Ids of which one leads to the other.
    forwards: DisjointSets,
}

impl ClusterIds {
    fn check_member(&mut self, row: &ReadRow) -> Result<()> {
        let cluster = decode_member(row.id, &row.value)?;
        self.name(MEMBERS, row, cluster)
    }

    fn check_cluster(&mut self, row: &ReadRow) -> Result<()> {
        let found = ClusterRow::decode(row.id, &row.value)?;
        self.name(CLUSTERS, row, row.id)?;
        let ClusterRow::Forward(to) = found else {
            return Ok(());
        };
        self.name(CLUSTERS, row, to)?;
        match self.forwards.join(row.id, to) {
            true => Ok(()),
            false => Err(wrong(
                CLUSTERS,
                row,
                "it closes a circle of ids that forward",
            )),
        }
    }

    fn name(&mut self, table: RowTable, row: &ReadRow, cluster: u64) -> Result<()> {
        if cluster >= self.limit {
            let detail = format!(
                "found cluster {cluster}, but the file has room for {} rows",
                self.limit
            );
            return Err(wrong(table, row, detail));
        }
        self.end = self.end.max(cluster + 1);
        Ok(())
    }
}

/// The error of a row of a table of clusters that cannot be right.
fn wrong(table: RowTable, row: &ReadRow, detail: impl Into<String>) -> Error {
    let place = checksum::place(table.name(), &row.id.to_be_bytes());
    Error::corrupt(place, detail)
}

/// Returns the next row of a source that passes a check, and reports those that do not.
fn next_right(
    source: &mut RowSource,
    pages: &PageFile,
    losses: &mut LossReport,
    mut check: impl FnMut(&ReadRow) -> Result<()>,
) -> Option<ReadRow> {
    loop {
        let row = source.next(pages, losses)?;
        match check(&row) {
            Ok(()) => return Some(row),
            Err(error) => losses.error(error),
        }
    }
}

/// Returns the greatest position of a feed that can be read, 0 if there is none.
fn last_position(commit: &Commit, feed: Option<&Tree>, losses: &mut LossReport) -> u64 {
    let (mut last, mut too_great) = (0, None);
    let take = |key: &[u8], row: Result<&[u8]>| match number(FEED, key).filter(|_| row.is_ok()) {
        // A feed that begins beyond it has room.
        Some(first) if first < MAX_POSITIONS / 2 => last = last.max(first),
        found => too_great = too_great.or(found),
    };
    if let Some(feed) = feed {
        each_row(commit, feed, losses, take, |_| {});
    }
    if let Some(first) = too_great {
        let place = checksum::place(FEED, &u64::to_be_bytes(first));
        let detail = format!("found position {first}, after which a feed has too little room");
        losses.error(Error::corrupt(place, detail));
    }
    last
}

/// Returns the reason why a row cannot be used.
fn reason(table: &str, error: &Error) -> String {
    match error {
        // The place would make every reason another one.
        Error::Corrupt { detail, .. } if !detail.contains("checksum") => {
            format!("its row in {table}: {detail}")
        }
        _ => format!("its row in {table} is damaged"),
    }
}
