//! Maintenance of closed files, and its reports.

use std::path::PathBuf;

use pyo3::prelude::*;
use resemblance::StoreOptions;
use resemblance::report::{CheckReport, Problem};
use resemblance::schema::Rebanding;
use resemblance::stats::Stats;

use crate::errors::invalid;
use crate::progress::Callback;
use crate::python::{Report, class, given, object};
use crate::schema::Schema;
use crate::snapshot::Snapshot;
use crate::waiting::{await_stopped, in_background};

/// Checks a closed store: its pages, rows and postings.
#[pyfunction]
#[pyo3(signature = (path, *, progress=None))]
pub(crate) fn check(py: Python<'_>, path: PathBuf, progress: Callback) -> Report<'_> {
    await_stopped(py)?;
    let report = in_background(py, progress, move |link| {
        let check = StoreOptions::new().check(path);
        check.on_progress(link.callback()).run()
    })?;
    check_report(py, &report)
}

/// Merges all runs of a closed store, and returns free pages to the disk.
#[pyfunction]
#[pyo3(signature = (path, *, progress=None))]
pub(crate) fn compact(py: Python<'_>, path: PathBuf, progress: Callback) -> Report<'_> {
    await_stopped(py)?;
    let report = in_background(py, progress, move |link| {
        let compact = StoreOptions::new().compact(path);
        compact.on_progress(link.callback()).run()
    })?;
    object! {
        py, reports.CompactReport,
        report { size_before_bytes, size_after_bytes, length_before_bytes, length_after_bytes }
    }
}

/// Reindexes the documents of a closed store with different bands or tables, from the stored
/// signatures. With `exact` or `exact_bits`, an estimating store becomes exact: `sets_from` is a snapshot of an
/// exact store that has its documents under the same keys. Only a store that keeps the hashes of
/// all shingles needs none.
#[pyfunction]
#[pyo3(signature = (path, *, threshold=None, recall=None, bands=None, rows=None, max_distance=None,
    expected_documents=None, exact=false, exact_bits=None, sets_from=None, progress=None))]
pub(crate) fn reband<'py>(
    py: Python<'py>,
    path: PathBuf,
    threshold: Option<f64>,
    recall: Option<f64>,
    bands: Option<u16>,
    rows: Option<u16>,
    max_distance: Option<u8>,
    expected_documents: Option<u64>,
    exact: bool,
    exact_bits: Option<u8>,
    sets_from: Option<PyRef<'_, Snapshot>>,
    progress: Callback,
) -> Report<'py> {
    let rebanding = given!(
        Rebanding::new(),
        threshold,
        recall,
        max_distance,
        expected_documents;
        exact if exact
    );
    let rebanding = given!(rebanding, exact_bits);
    let sets = sets_from.map(|snapshot| snapshot.held(py)).transpose()?;
    let rebanding = match (bands, rows) {
        (None, None) => rebanding,
        (Some(bands), Some(rows)) => rebanding.banding(bands, rows),
        _ => {
            return Err(invalid(
                py,
                "bands",
                "bands or rows alone",
                "both or neither",
            ));
        }
    };
    await_stopped(py)?;
    let report = in_background(py, progress, move |link| {
        let reband = resemblance::Store::reband(path, &rebanding);
        let reband = given!(reband, sets_from: sets.as_ref());
        reband.on_progress(link.callback()).run()
    })?;
    object!(py, reports.RebandReport,
        report { documents, is_rewritten, size_before_bytes, size_after_bytes },
        schema: Schema::new(py, report.schema)?,
    )
}

/// Builds a new store from what can be read of a damaged one.
#[pyfunction]
#[pyo3(signature = (path, target, *, progress=None))]
pub(crate) fn repair(
    py: Python<'_>,
    path: PathBuf,
    target: PathBuf,
    progress: Callback,
) -> Report<'_> {
    await_stopped(py)?;
    let report = in_background(py, progress, move |link| {
        let repair = resemblance::Store::repair(path, target);
        repair.on_progress(link.callback()).run()
    })?;
    object!(py, reports.RepairReport,
        report { documents, documents_before, documents_lost },
        is_complete: report.is_complete(),
        damage: problems(py, &report.damage)?,
    )
}

fn problems<'py>(py: Python<'py>, problems: &[Problem]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let class = class(py, "reports", "Problem")?;
    let made = |it: &Problem| class.call1((it.invariant, it.place.as_str(), it.detail.as_str()));
    problems.iter().map(made).collect()
}

pub(crate) fn check_report<'py>(py: Python<'py>, report: &CheckReport) -> Report<'py> {
    object!(py, reports.CheckReport,
        report { documents, postings, truncated, while_written },
        problems: problems(py, &report.problems)?,
    )
}

pub(crate) fn stats_object<'py>(py: Python<'py>, stats: &Stats) -> Report<'py> {
    object!(py, reports.Stats,
        stats { documents, next_id, memtable_documents, dead_rows, dead_bytes, file_bytes,
            allocated_bytes, compact_gain_bytes,
            compact_length_gain_bytes, bytes_per_document },
        runs: stats.runs.len(),
    )
}
