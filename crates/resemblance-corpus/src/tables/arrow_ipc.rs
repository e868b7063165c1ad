//! Arrow IPC: files, and streams, which the library `datasets` writes.

use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchReader, StringArray, UInt64Array,
};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_ipc::{CompressionType, MessageHeader, MetadataVersion};
use arrow_schema::{ArrowError, DataType, Field, Schema};

use super::table_error::TableError;
use super::table_file::TableFile;
use super::table_input::TableInput;
use crate::changes::{AddedColumn, ColumnValues};
use crate::error::CorpusError;

/// The bytes at the beginning of a file; a stream has none of its own.
const FILE_MAGIC: &[u8] = b"ARROW1";

/// With the padding that every file has.
const PADDED_MAGIC_BYTES: u64 = 8;

/// The facts that the heads of a file's messages contain.
#[derive(Default)]
pub(super) struct IpcOutline {
    pub(super) rows: u64,
    pub(super) compression: Option<CompressionType>,
}

impl IpcOutline {
    /// Reads the head of each message, and no columns.
    pub(super) fn read(file: &TableFile) -> Result<Self, CorpusError> {
        let is_file = file.begins_with(FILE_MAGIC)?;
        let input = BufReader::new(file.rewound()?);
        file.decode(|| Self::read_heads(input, is_file))
    }

    fn read_heads(mut input: BufReader<TableInput>, is_file: bool) -> Result<Self, ArrowError> {
        let mut outline = Self::default();
        if is_file {
            skip_start(&mut input)?;
        }
        while let Some(length) = next_head(&mut input)? {
            let mut head = Vec::new();
            input.by_ref().take(length).read_to_end(&mut head)?;
            let message = arrow_ipc::root_as_message(&head)
                .map_err(|e| ArrowError::ParseError(e.to_string()))?;
            if message.header_type() == MessageHeader::RecordBatch
                && let Some(batch) = message.header_as_record_batch()
            {
                let rows = u64::try_from(batch.length())
                    .map_err(|_| ArrowError::ParseError("a batch of no size".into()))?;
                outline.rows = outline.rows.saturating_add(rows);
                outline.compression = batch.compression().map(|compression| compression.codec());
            }
            input.seek_relative(message.bodyLength())?;
        }
        Ok(outline)
    }
}

/// Goes behind the magic bytes of a file and zeros, of which writers put more or fewer.
fn skip_start(input: &mut BufReader<TableInput>) -> Result<(), ArrowError> {
    input.seek(SeekFrom::Start(PADDED_MAGIC_BYTES))?;
    let mut word = [0; 4];
    while word == [0; 4] {
        input.read_exact(&mut word)?;
    }
    Ok(input.seek_relative(-4)?)
}

/// The length of the next message's head, unless there is none.
fn next_head(input: &mut impl Read) -> Result<Option<u64>, ArrowError> {
    const CONTINUATION: [u8; 4] = [0xff; 4];
    let mut length = [0; 4];
    match input.read_exact(&mut length) {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    if length == CONTINUATION {
        input.read_exact(&mut length)?;
    }
    // Older streams have no such mark; the end of a stream, and of what is streamed of a file, is 0.
    Ok(u64::try_from(i32::from_le_bytes(length))
        .ok()
        .filter(|length| *length > 0))
}

/// Opens the batches of a file or stream, of all columns or those with these numbers.
pub(super) fn batches(
    file: &TableFile,
    columns: Option<Vec<usize>>,
) -> Result<Box<dyn RecordBatchReader + Send>, CorpusError> {
    let is_file = file.begins_with(FILE_MAGIC)?;
    file.decode(|| {
        let input = BufReader::new(file.file.rewound()?);
        Ok::<Box<dyn RecordBatchReader + Send>, ArrowError>(if is_file {
            Box::new(FileReader::try_new(input, columns)?)
        } else {
            Box::new(StreamReader::try_new(input, columns)?)
        })
    })
}

/// A file or stream that is written.
pub(super) enum IpcWriter<W: Write> {
    File(Box<FileWriter<W>>),
    Stream(Box<StreamWriter<W>>),
}

impl<W: Write> IpcWriter<W> {
    /// Begins one like the input: a file or a stream, with its schema, more columns if there are any, metadata and
    /// compression.
    pub(super) fn create<E>(
        input: &TableFile,
        output: W,
        added: &[AddedColumn],
    ) -> Result<Self, TableError<E>> {
        let compression = IpcOutline::read(input)?.compression;
        let schema = schema_with(&batches(input, None)?.schema(), added);
        let options = IpcWriteOptions::try_new(64, false, MetadataVersion::V5)?
            .try_with_compression(compression)?;
        if !input.begins_with(FILE_MAGIC)? {
            let writer = StreamWriter::try_new_with_options(output, &schema, options)?;
            return Ok(Self::Stream(Box::new(writer)));
        }
        let mut writer = FileWriter::try_new_with_options(output, &schema, options)?;
        let rewound = input.rewound()?;
        let reader = input.decode(|| FileReader::try_new(BufReader::new(rewound), None))?;
        for (key, value) in reader.custom_metadata() {
            writer.write_metadata(key, value);
        }
        Ok(Self::File(Box::new(writer)))
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        match self {
            Self::File(writer) => writer.write(batch),
            Self::Stream(writer) => writer.write(batch),
        }
    }

    pub(super) fn finish(self) -> Result<W, ArrowError> {
        match self {
            Self::File(writer) => writer.into_inner(),
            Self::Stream(writer) => writer.into_inner(),
        }
    }
}

/// A schema with more columns.
pub(super) fn schema_with(schema: &Schema, added: &[AddedColumn]) -> Schema {
    let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
    fields.extend(added.iter().map(|column| {
        let data_type = match column.values {
            ColumnValues::Truth(_) => DataType::Boolean,
            ColumnValues::Integer(_) => DataType::UInt64,
            ColumnValues::Number(_) => DataType::Float64,
            ColumnValues::Text(_) => DataType::Utf8,
        };
        Arc::new(Field::new(&column.name, data_type, true))
    }));
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

/// Rows with more columns; the number of the first in the corpus is `first`.
pub(super) fn with_more(
    rows: &RecordBatch,
    added: &[AddedColumn],
    first: u64,
) -> Result<RecordBatch, ArrowError> {
    let mut columns = rows.columns().to_vec();
    let numbers = first..first + rows.num_rows() as u64;
    columns.extend(added.iter().map(|column| -> ArrayRef {
        let all = numbers.clone();
        match &column.values {
            ColumnValues::Truth(value) => Arc::new(all.map(value).collect::<BooleanArray>()),
            ColumnValues::Integer(value) => Arc::new(all.map(value).collect::<UInt64Array>()),
            ColumnValues::Number(value) => Arc::new(all.map(value).collect::<Float64Array>()),
            ColumnValues::Text(value) => Arc::new(all.map(value).collect::<StringArray>()),
        }
    }));
    RecordBatch::try_new(Arc::new(schema_with(&rows.schema(), added)), columns)
}
