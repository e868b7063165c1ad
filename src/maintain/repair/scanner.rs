//! Reads the documents of a damaged file one by one, and records the losses.

use std::path::Path;

use crate::engine::{CLUSTERS, Commit, MEMBERS, RowTable, TableHandle, Tree, open_commit};
use crate::error::{Error, Result};
use crate::format::{
    DOCUMENTS, DocumentRow, FEED, PAYLOADS, SETS, Shape, decode_payload, decode_set,
};
use crate::maintain::repair::damaged_rows::{ReadRow, each_row};
use crate::maintain::repair::loss_report::LossReport;
use crate::maintain::repair::meta::MetaRows;
use crate::maintain::repair::page_scan::scan;
use crate::maintain::repair::row_source::{RowSource, RowVersions};
use crate::maintain::repair::tombstones::RemainingTombstones;
use crate::maintain::stored_keys::{number, problem_of, problem_of_head, row_check};
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
    /// The rows of the tables `members` and `clusters`, in a store that keeps clusters. A scan finds none.
    clusters: [(RowTable, RowSource); 2],
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
        let damaged = table_pages
            .iter()
            .map(|(page, name)| problem_of(page, name));
        damaged.for_each(|problem| losses.problem(problem));
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
        let keeps_clusters = !scans && schema.clusters().is_some();
        let clusters = cluster_sources(&tables, keeps_clusters, &mut losses);
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

    /// Hands the rows of the tables of clusters that can be read to `take`, table by table.
    pub(super) fn cluster_rows(
        &mut self,
        take: &mut dyn FnMut(RowTable, KeyedRows<'_>) -> Result<()>,
    ) -> Result<()> {
        for (table, source) in &mut self.clusters {
            let rows = std::iter::from_fn(|| source.next(&self.commit.pages, &mut self.losses));
            let mut intact = rows.filter_map(|row| {
                let check = row_check(table.name(), &row.id.to_le_bytes(), &row.value);
                check.is_ok().then_some((row.id, row.value))
            });
            take(*table, &mut intact)?;
        }
        Ok(())
    }

    /// Returns the losses, after the last document.
    pub(crate) fn finish(self) -> LossReport {
        let mut losses = self.losses;
        losses.finish(self.next_id, self.deleted.may_be_back);
        losses
    }
}

/// Returns the sources of the rows of clusters, if there are any.
fn cluster_sources(
    tables: &[Tree],
    has_clusters: bool,
    losses: &mut LossReport,
) -> [(RowTable, RowSource); 2] {
    [(MEMBERS, "members"), (CLUSTERS, "clusters")].map(|(rows, name)| {
        let table = tables.iter().find(|table| &*table.name == name);
        let source = match has_clusters {
            true => RowSource::from_tree(name, table, losses),
            false => RowSource::None,
        };
        (rows, source)
    })
}

/// Returns the greatest position of a feed that can be read, 0 if there is none.
fn last_position(commit: &Commit, feed: Option<&Tree>, losses: &mut LossReport) -> u64 {
    let mut last = 0;
    let take = |key: &[u8], row: Result<&[u8]>| {
        let first = number(FEED, key).filter(|_| row.is_ok());
        last = last.max(first.unwrap_or(0));
    };
    if let Some(feed) = feed {
        each_row(commit, feed, losses, take, |_| {});
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
