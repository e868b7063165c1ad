//! Writes the documents of a snapshot as a stream, which another store can import.

use std::borrow::Cow;
use std::io::Write;

use crate::engine::{EngineResult, OwnedRange, PanicSafe};
use crate::error::{Error, Result};
use crate::format::{DocumentRow, StreamHeader, StreamWriter, checksum};
use crate::invariant::OrBug;
use crate::read::ReadView;
use crate::read::SnapshotView;
use crate::types::{Operation, Phase, ReportSettings, Watch};

/// Bytes that are gathered before they are written.
const PIECE_BYTES: usize = 1 << 20;

/// The result of an export.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// # store.insert("a", &page)?;
/// let mut stream = Vec::new();
/// let report = store.snapshot()?.export(&mut stream).run()?;
/// assert_eq!((report.documents, report.bytes), (1, stream.len() as u64));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportReport {
    /// The number of documents in the stream.
    pub documents: u64,
    /// The length of the stream in bytes.
    pub bytes: u64,
}

impl ReportSettings for ExportReport {
    type Settings = ();
}

/// Writes the live documents of a snapshot, ascending by id, to a stream.
pub(crate) fn export<'a>(
    snapshot: &'a SnapshotView,
    mut writer: impl Write + 'a,
) -> Operation<'a, ExportReport> {
    Operation::new("the export", (), move |(), watch| {
        write_stream(snapshot, &mut writer, watch)
    })
}

fn write_stream(
    snapshot: &SnapshotView,
    writer: &mut impl Write,
    watch: &mut Watch<'_>,
) -> Result<ExportReport> {
    let context = snapshot.context();
    let total = snapshot.len();
    let header = StreamHeader {
        documents: total,
        self_test: (context.recipe.fingerprint, context.sketcher.self_test()?),
        schema: context.schema.clone(),
    };
    let mut piece = Vec::new();
    let mut stream = StreamWriter::begin(&header, &mut piece)?;
    let mut rows = context.run_checked(|| {
        let documents = &snapshot.inner.tables()?.documents;
        Ok(PanicSafe::new(documents.range_owned::<u64>(..).engine()?))
    })?;
    let (mut documents, mut bytes) = (0, 0);
    loop {
        watch.report(Phase::WritingDocuments, documents, total)?;
        // The writer is the caller's: its failure is not a failure of the store.
        let found = context.run_checked(|| append(snapshot, &mut rows, &mut stream, &mut piece))?;
        documents += found;
        if found == 0 {
            break;
        }
        bytes += write(writer, &mut piece)?;
    }
    if documents != total {
        let detail = format!("found {documents} live documents, expected {total} (invariant 1)");
        return Err(Error::corrupt("table documents", detail));
    }
    stream.end(&mut piece)?;
    bytes += write(writer, &mut piece)?;
    writer.flush().map_err(unwritable)?;
    Ok(ExportReport { documents, bytes })
}

/// Writes a piece and empties it. Returns its length in bytes.
fn write(writer: &mut impl Write, piece: &mut Vec<u8>) -> Result<u64> {
    writer.write_all(piece).map_err(unwritable)?;
    let bytes = piece.len() as u64;
    piece.clear();
    piece.shrink_to(2 * PIECE_BYTES);
    Ok(bytes)
}

fn unwritable(source: std::io::Error) -> Error {
    Error::Io {
        action: "writing the stream".into(),
        source,
    }
}

type TableRows = PanicSafe<OwnedRange<u64, &'static [u8]>>;

/// Appends documents that are not removed, ascending by id, until the piece is full. Returns how many; 0 at the end.
fn append(
    snapshot: &SnapshotView,
    rows: &mut TableRows,
    stream: &mut StreamWriter,
    piece: &mut Vec<u8>,
) -> Result<u64> {
    let mut appended = 0;
    while piece.len() < PIECE_BYTES {
        let Some(entry) = rows.next() else {
            break;
        };
        let (id, row) = entry.engine()?;
        let (id, row) = (id.value(), row.value());
        if snapshot.inner.is_deleted(id) {
            continue;
        }
        let document = DocumentRow::decode(id, row, snapshot.context().shape())?;
        let document = snapshot.view().to_document(id, &document.head, true)?;
        let (body, _) = row
            .split_last_chunk::<{ checksum::CHECKSUM_BYTES }>()
            .or_bug("the checksum of a row that was decoded")?;
        let mut body = Cow::Borrowed(body);
        if snapshot.context().schema.has_sets() {
            let view = snapshot.view();
            view.with_set_body(id, &mut |set| body.to_mut().extend_from_slice(set))?;
        }
        stream.document(id, &body, &document.payload, piece)?;
        appended += 1;
    }
    Ok(appended)
}
