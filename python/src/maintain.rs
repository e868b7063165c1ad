//! Upkeep of files that are closed, and reports of it.

use std::path::PathBuf;

use pyo3::prelude::*;
use resemblance::{CheckReport, Problem, Rebanding, Stats, StoreOptions};

use crate::python::{class, fields, object};
use crate::schema::Schema;
use crate::waiting::{in_background, settle};

/// Checks a closed store: its pages, rows and postings.
#[pyfunction]
#[pyo3(signature = (path, *, progress=None))]
pub(crate) fn check(
    py: Python<'_>,
    path: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyAny>> {
    settle(py)?;
    let report = in_background(py, progress, move |told| {
        StoreOptions::new()
            .check(path)
            .on_progress(told.callback())
            .run()
    })?;
    check_report(py, &report)
}

/// Merges all runs of a closed store, and gives free pages back to the disk.
#[pyfunction]
#[pyo3(signature = (path, *, progress=None))]
pub(crate) fn compact(
    py: Python<'_>,
    path: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyAny>> {
    settle(py)?;
    let report = in_background(py, progress, move |told| {
        StoreOptions::new()
            .compact(path)
            .on_progress(told.callback())
            .run()
    })?;
    let fields = fields!(py,
        size_before_bytes: report.size_before_bytes,
        size_after_bytes: report.size_after_bytes,
    );
    object(py, "reports", "CompactReport", &fields)
}

/// Files the documents of a closed store under other bands or tables, made of the stored signatures.
#[pyfunction]
#[pyo3(signature = (path, *, threshold=None, recall=None, bands=None, rows=None, max_distance=None,
    expected_documents=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn reband(
    py: Python<'_>,
    path: PathBuf,
    threshold: Option<f64>,
    recall: Option<f64>,
    bands: Option<u16>,
    rows: Option<u16>,
    max_distance: Option<u8>,
    expected_documents: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyAny>> {
    let mut rebanding = Rebanding::new();
    if let Some(threshold) = threshold {
        rebanding = rebanding.threshold(threshold);
    }
    if let Some(recall) = recall {
        rebanding = rebanding.recall(recall);
    }
    rebanding = match (bands, rows) {
        (None, None) => rebanding,
        (Some(bands), Some(rows)) => rebanding.banding(bands, rows),
        _ => {
            let found = "bands or rows alone";
            return Err(crate::errors::invalid(
                py,
                "bands",
                found,
                "both or neither",
            ));
        }
    };
    if let Some(distance) = max_distance {
        rebanding = rebanding.max_distance(distance);
    }
    if let Some(documents) = expected_documents {
        rebanding = rebanding.expected_documents(documents);
    }
    settle(py)?;
    let report = in_background(py, progress, move |told| {
        resemblance::Store::reband(path, &rebanding)
            .on_progress(told.callback())
            .run()
    })?;
    let fields = fields!(py,
        schema: Schema::new(py, report.schema)?,
        documents: report.documents,
        is_rewritten: report.is_rewritten,
        size_before_bytes: report.size_before_bytes,
        size_after_bytes: report.size_after_bytes,
    );
    object(py, "reports", "RebandReport", &fields)
}

/// Makes a new store of what can be read of a damaged one.
#[pyfunction]
#[pyo3(signature = (path, target, *, progress=None))]
pub(crate) fn repair(
    py: Python<'_>,
    path: PathBuf,
    target: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyAny>> {
    settle(py)?;
    let report = in_background(py, progress, move |told| {
        resemblance::Store::repair(path, target)
            .on_progress(told.callback())
            .run()
    })?;
    let fields = fields!(py,
        documents: report.documents,
        documents_before: report.documents_before,
        documents_lost: report.documents_lost,
        is_complete: report.is_complete(),
        damage: problems(py, &report.damage)?,
    );
    object(py, "reports", "RepairReport", &fields)
}

fn problems<'py>(py: Python<'py>, problems: &[Problem]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let class = class(py, "reports", "Problem")?;
    let made = problems.iter().map(|problem| {
        class.call1((
            problem.invariant,
            problem.place.as_str(),
            problem.detail.as_str(),
        ))
    });
    made.collect()
}

pub(crate) fn check_report<'py>(
    py: Python<'py>,
    report: &CheckReport,
) -> PyResult<Bound<'py, PyAny>> {
    let fields = fields!(py,
        documents: report.documents,
        postings: report.postings,
        problems: problems(py, &report.problems)?,
        truncated: report.truncated,
    );
    object(py, "reports", "CheckReport", &fields)
}

pub(crate) fn stats_object<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyAny>> {
    let fields = fields!(py,
        documents: stats.documents,
        next_id: stats.next_id,
        memtable_documents: stats.memtable_documents,
        dead_rows: stats.dead_rows,
        dead_bytes: stats.dead_bytes,
        runs: stats.runs.len(),
        file_bytes: stats.file_bytes,
        allocated_bytes: stats.allocated_bytes,
        compact_gain_bytes: stats.compact_gain_bytes,
        bytes_per_document: stats.bytes_per_document,
    );
    object(py, "reports", "Stats", &fields)
}
