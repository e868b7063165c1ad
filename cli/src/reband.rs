//! The verb `reband`.

use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use resemblance::{BulkOptions, RebandEstimate, RebandEvent, RebandReport, Rebanding, Store};

use super::Context;
use super::arguments::FormatOptions;
use super::building::bulk_options;
use super::failure::{Failure, Outcome, Result};
use super::forecast::Size;
use super::progress::Progress;
use super::results::{Column, Results, Value};

/// File the documents of a store in another way
///
/// Changes threshold, recall, bands, or SimHash tables of a store, from the signatures that it holds;
/// the texts are not needed, and what makes signatures stays as it is. What is not given stays too,
/// but for the recall of bands that are chosen again: 0.95. Afterwards the store answers as one that
/// was made with the new schema, which is shown.
///
/// All or nothing: interrupted, the store is as it was. Nothing else can use it meanwhile. It grows
/// by the new postings, as the old ones stay to the end; what that will take is said beforehand, and
/// compact gives it back.
///
/// Columns: documents, postings (written), size_before_bytes, size_after_bytes (space taken on disk).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance reband seen.rsm --threshold 0.6
  resemblance reband seen.rsm --bands 20 --rows 5 --code-bits 48
  resemblance reband pages.rsm --max-distance 4 --expected-documents 100000000")]
pub(crate) struct Arguments {
    /// The store
    pub(crate) store: PathBuf,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    format: FormatOptions,
}

/// What is to be different.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Changes")]
#[group(id = "changes", required = true, multiple = true)]
struct Changes {
    /// Least similarity of a near-duplicate, above 0, at most 1 (MinHash)
    #[arg(long, value_name = "T")]
    threshold: Option<f64>,
    /// Share of the pairs right at the threshold that must be found
    #[arg(long, value_name = "R", conflicts_with_all = ["bands", "rows"])]
    recall: Option<f64>,
    /// Explicit number of bands
    #[arg(long, value_name = "B", requires = "rows")]
    bands: Option<u16>,
    /// Explicit number of rows a band
    #[arg(long, value_name = "R", requires = "bands")]
    rows: Option<u16>,
    /// Bits stored of a band's hash, 32 to 64
    #[arg(long, value_name = "N")]
    code_bits: Option<u8>,
    /// Greatest Hamming distance of a near-duplicate, 1 to 8, of 128 bits 1 to 16 (SimHash)
    #[arg(long, value_name = "K", alias = "distance")]
    max_distance: Option<u8>,
    /// Number of documents to lay the store out for
    #[arg(long, value_name = "N", alias = "expected")]
    expected_documents: Option<u64>,
}

impl Changes {
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
        if let Some(documents) = self.expected_documents {
            rebanding = rebanding.expected_documents(documents);
        }
        rebanding
    }
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Result<Outcome> {
    let rebanding = arguments.changes.rebanding();
    let options = bulk_options(context);
    let store = Store::open_with(&arguments.store, &context.store_options)?;
    let estimate = store.estimate_reband(&rebanding, &options)?;
    drop(store);
    context.messages.note(expectation(&estimate));
    let report = reband(context, arguments, &rebanding, &options)?;
    let name = arguments.store.display();
    context
        .messages
        .note(format!("{name} is now\n{}", report.schema));
    if report.is_rewritten {
        let compact = format!("resemblance compact {name} gives the space of the old ones back");
        context.messages.note(compact);
    }
    let columns = [
        "documents",
        "postings",
        "size_before_bytes",
        "size_after_bytes",
    ];
    let columns = columns.map(Column::new).to_vec();
    let mut results = Results::new(&arguments.format, columns)?;
    results.row(&[
        Value::Count(report.documents),
        Value::Count(report.postings),
        Value::Count(report.size_before_bytes),
        Value::Count(report.size_after_bytes),
    ])?;
    results.finish()?;
    Ok(Outcome::Done)
}

fn expectation(estimate: &RebandEstimate) -> String {
    let documents = estimate.documents;
    if !estimate.is_rewritten {
        return format!("all lanes of {documents} documents stay as they are");
    }
    let growth = Size(estimate.growth_bytes);
    let memory = Size(estimate.memory_bytes);
    let temporary = match estimate.temporary_bytes {
        0 => String::new(),
        bytes => format!(" and {} for temporary files", Size(bytes)),
    };
    format!(
        "new postings for {documents} documents: expecting about {memory} of memory, {growth} of \
         disk beside the old ones{temporary}"
    )
}

/// Does it, and stops at a signal.
fn reband(
    context: &Context,
    arguments: &Arguments,
    rebanding: &Rebanding,
    options: &BulkOptions,
) -> Result<RebandReport> {
    let mut progress = Progress::new("rebanding", context.messages.quiet);
    let mut stopped = None;
    let finished = Store::reband_with(&arguments.store, rebanding, options, |event| {
        match event {
            RebandEvent::Read { documents, .. } => progress.update(documents, 0),
            _ => progress.tick(),
        }
        match context.interrupt.check() {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                stopped = Some(failure.with_note("the store is as it was"));
                ControlFlow::Break(())
            }
        }
    });
    progress.clear();
    finished.map_err(|error| {
        let name = arguments.store.display();
        stopped.unwrap_or_else(|| Failure::unfinished(name, error))
    })
}
