//! The verb `reband`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use resemblance::Store;
use resemblance::report::BuildEstimate;
use resemblance::schema::Rebanding;

use crate::failure::{Failure, Outcome, Result};
use crate::options::{CorpusOptions, FormatOptions, TableGroups};
use crate::output::{BinarySize, Counted, Results, Value};
use crate::session::{
    Context, ScratchStore, StoreBuilding, bulk_options, fill, must_take_text, open_to_read,
    resolve_corpus_to_store,
};
use resemblance_corpus::ContentRule;

/// Index the documents of a store with other bands or tables
///
/// Changes the threshold, recall, bands or SimHash tables of a store. The texts are not needed: the signatures in the
/// store suffice and are kept as they are. Options that are not given keep their values, except that newly chosen bands
/// get a recall of 0.95. Afterwards the store answers like one created with the new schema, which is printed.
///
/// With --exact, an estimating store becomes exact. The corpus must have the text of each document of the store under the
/// same key, with the same options for keys and texts as when it was added; it may have more. If a document is missing
/// there, or its text gives another signature, it is named and the store is unchanged: add the text to the corpus, or
/// remove the document first. The texts are read into a store in --temp-dir.
///
/// If the command is interrupted, the store is unchanged. No other process can use the store meanwhile. The file grows
/// by the new postings, because the old ones are kept until the end; the command prints beforehand by how much. compact
/// frees the space again.
///
/// Columns: documents, postings (written), size_before_bytes, size_after_bytes (space taken on disk).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance reband seen.rsm --threshold 0.6
  resemblance reband seen.rsm --bands 20 --rows 5 --code-bits 48
  resemblance reband seen.rsm --exact corpus.jsonl
  resemblance reband pages.rsm --max-distance 4 --expected-documents 100000000")]
pub(crate) struct RebandArguments {
    /// The store
    pub(crate) store: PathBuf,
    #[command(flatten)]
    changes: RebandChanges,
    #[command(flatten)]
    options: CorpusOptions,
    #[command(flatten)]
    format: FormatOptions,
}

/// The options that change the schema.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Changes")]
#[group(id = "changes", required = true, multiple = true)]
struct RebandChanges {
    /// Minimum similarity of near-duplicates, above 0, at most 1 (MinHash)
    #[arg(long, value_name = "T")]
    threshold: Option<f64>,
    /// Share of the pairs at the threshold that must be found
    #[arg(long, value_name = "R", conflicts_with_all = ["bands", "rows"])]
    recall: Option<f64>,
    /// Explicit number of bands
    #[arg(long, value_name = "B", requires = "rows")]
    bands: Option<u16>,
    /// Explicit number of rows per band
    #[arg(long, value_name = "R", requires = "bands")]
    rows: Option<u16>,
    /// Bits stored of the hash of a band, 32 to 64
    #[arg(long, value_name = "N")]
    code_bits: Option<u8>,
    /// Maximum Hamming distance of near-duplicates, 1 to 10, with 32 bits 1 to 5, with 128 bits 1 to 20, with
    /// 256 bits 1 to 40 (SimHash)
    #[arg(long, value_name = "K", alias = "distance")]
    max_distance: Option<u8>,
    /// Explicit permuted tables (see create) (SimHash)
    #[arg(long, value_name = "S,R+...")]
    tables: Option<TableGroups>,
    /// Expected number of documents, for which the tables are chosen
    #[arg(long, value_name = "N", alias = "expected")]
    expected_documents: Option<u64>,
    /// Make the store exact (see create): read the sets of all its documents from this corpus. Without CORPUS, the
    /// store must keep the hashes of all shingles for contain
    #[arg(long, value_name = "CORPUS", num_args = 0..)]
    exact: Option<Vec<PathBuf>>,
    /// Bits of the hashes in these sets, 32 to 64 [default: 44]
    #[arg(long, value_name = "N", requires = "exact")]
    exact_bits: Option<u8>,
}

impl RebandChanges {
    fn rebanding(&self) -> Rebanding {
        let mut rebanding = Rebanding::new();
        if let Some(threshold) = self.threshold {
            rebanding = rebanding.threshold(threshold);
        }
        if let Some(recall) = self.recall {
            rebanding = rebanding.recall(recall);
        }
        if let Some((bands, rows)) = self.bands.zip(self.rows) {
            rebanding = rebanding.banding(bands, rows);
        }
        if let Some(bits) = self.code_bits {
            rebanding = rebanding.code_bits(bits);
        }
        if let Some(distance) = self.max_distance {
            rebanding = rebanding.max_distance(distance);
        }
        if let Some(TableGroups(groups)) = &self.tables {
            rebanding = rebanding.tables(groups);
        }
        if let Some(documents) = self.expected_documents {
            rebanding = rebanding.expected_documents(documents);
        }
        match (&self.exact, self.exact_bits) {
            (None, _) => rebanding,
            (Some(_), None) => rebanding.exact(),
            (Some(_), Some(bits)) => rebanding.exact_bits(bits),
        }
    }
}

pub(crate) fn reband(context: &Context, arguments: &RebandArguments) -> Result<Outcome> {
    let rebanding = arguments.changes.rebanding();
    let sets = read_sets(context, arguments, &rebanding)?;
    let snapshot = sets
        .as_ref()
        .map(|sets| sets.store().snapshot())
        .transpose()?;
    let reband = Store::reband(&arguments.store, &rebanding).bulk(bulk_options(context));
    let reband = match &snapshot {
        Some(snapshot) => reband.sets_from(snapshot),
        None => reband,
    };
    context.note(expectation(&reband.estimate()?));
    let name = arguments.store.display();
    let (done, stopped) = context.carry_out(reband);
    let report = done.map_err(|error| match stopped {
        Some(signal) => signal.with_note("the store is unchanged"),
        None => Failure::unfinished(&name, error),
    })?;
    context.note(format!("{name} is now\n{}", report.schema));
    if report.is_rewritten {
        let compact = format!("resemblance compact {name} frees the space of the old ones");
        context.note(compact);
    }
    let fields = [
        ("documents", Value::Count(report.documents)),
        ("postings", Value::Count(report.postings)),
        ("size_before_bytes", Value::Count(report.size_before_bytes)),
        ("size_after_bytes", Value::Count(report.size_after_bytes)),
    ];
    Results::print_one(arguments.format.layout(), &fields)?;
    Ok(Outcome::Done)
}

/// Reads the texts of an estimating store that becomes exact into a store that is removed after this
/// run. `None` if no sets are needed.
fn read_sets(
    context: &Context,
    arguments: &RebandArguments,
    rebanding: &Rebanding,
) -> Result<Option<ScratchStore>> {
    let Some(corpora) = &arguments.changes.exact else {
        return Ok(None);
    };
    let store = open_to_read(context, &arguments.store)?;
    let schema = store.schema().rebanded(rebanding)?;
    drop(store);
    match (schema.has_sets(), corpora.is_empty()) {
        (true, false) => must_take_text(&schema)?,
        (false, true) => return Ok(None),
        (true, true) => return Err(Failure::usage("--exact requires the corpus of the store")),
        (false, false) => {
            let message = "--exact takes no corpus here: the store has the hashes of all shingles";
            return Err(Failure::usage(message));
        }
    }
    let content = ContentRule::new(&schema, false);
    let options = &arguments.options;
    let corpus = Arc::new(resolve_corpus_to_store(
        context, corpora, options, content, None,
    )?);
    let (scratch, filled) = ScratchStore::build_unnamed(context, |path| {
        let folder = &context.temp_dir;
        let building = StoreBuilding::begin(context, path, folder, &schema, options.skip_bad)?;
        fill(context, &corpus, building, &schema, None)
    })?;
    context.counts(filled.tally.summary("texts", filled.totals));
    Ok(Some(scratch))
}

fn expectation(estimate: &BuildEstimate) -> String {
    let documents = Counted(estimate.documents, "document");
    if estimate.disk_bytes == 0 {
        return format!("the lanes of {documents} do not change");
    }
    let growth = BinarySize(estimate.disk_bytes);
    let memory = BinarySize(estimate.memory_bytes);
    let temporary = match estimate.temporary_bytes {
        0 => String::new(),
        bytes => format!(" and {} for temporary files", BinarySize(bytes)),
    };
    format!(
        "new postings for {documents}: about {memory} of memory, {growth} of disk besides the \
         old ones{temporary}"
    )
}
