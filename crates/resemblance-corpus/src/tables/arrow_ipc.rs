//! Arrow IPC: files, and streams as the library `datasets` writes them.

use std::io::{BufReader, Read, Write};
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchReader, StringArray, UInt64Array,
};
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::{FileReader, StreamReader, read_footer_length};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_ipc::{CompressionType, MetadataVersion};
use arrow_schema::{ArrowError, DataType, Field, Schema};

use super::table_error::TableError;
use super::table_file::TableFile;
use super::table_input::TableInput;
use crate::changes::{AddedColumn, ColumnValues};
use crate::error::CorpusError;

/// The bytes at the beginning and the end of a file. A stream has none.
const FILE_MAGIC: &[u8] = b"ARROW1";

/// The length of what follows the footer: the footer's length and the magic bytes.
const FILE_END_BYTES: u64 = 10;

/// The maximum number of bytes that one compressed byte can represent: lz4 adds 255 to a length,
/// and zstd encodes a block of 128 KiB in four bytes.
const LZ4_RATIO: u64 = 255;
const ZSTD_RATIO: u64 = 32_768;

/// The contents of the headers of a file's messages. Every length in it has been checked to be
/// possible. Decoders, which allocate what a header announces, may therefore read the file.
pub(super) struct IpcOutline {
    is_file: bool,
    pub(super) schema: Arc<Schema>,
    pub(super) rows: u64,
    pub(super) compression: Option<CompressionType>,
}

impl IpcOutline {
    /// Reads the header of each message, and the lengths of compressed columns.
    pub(super) fn read(file: &TableFile) -> Result<Self, CorpusError> {
        let is_file = file.begins_with(FILE_MAGIC)?;
        let mut heads = IpcHeads {
            input: BufReader::new(file.rewound()?),
            position: 0,
            length: file.length,
            rows: 0,
            compression: None,
            largest_bytes: 0,
        };
        let schema = file.decode(|| match is_file {
            true => heads.read_file(),
            false => heads.read_stream(),
        })?;
        if heads.largest_bytes > file.memory_bytes {
            return Err(file.too_large("a batch", heads.largest_bytes));
        }
        Ok(Self {
            is_file,
            schema: Arc::new(schema),
            rows: heads.rows,
            compression: heads.compression,
        })
    }
}

/// Reads the headers of messages.
struct IpcHeads {
    input: BufReader<TableInput>,
    position: u64,
    length: u64,
    rows: u64,
    compression: Option<CompressionType>,
    /// The length of the largest message after decompression.
    largest_bytes: u64,
}

impl IpcHeads {
    /// Reads the messages that the footer of a file lists.
    fn read_file(&mut self) -> Result<Schema, ArrowError> {
        let footer_end = self.length.saturating_sub(FILE_END_BYTES);
        self.go_to(footer_end)?;
        let end: [u8; 10] = self.array()?;
        let footer_bytes = read_footer_length(end)? as u64;
        self.go_to(
            footer_end
                .checked_sub(footer_bytes)
                .ok_or_else(beyond_end)?,
        )?;
        let bytes = self.bytes(footer_bytes)?;
        let footer = arrow_ipc::root_as_footer(&bytes).map_err(flat)?;
        let missing = || ArrowError::ParseError("its footer has no schema".into());
        let schema = fb_to_schema(footer.schema().ok_or_else(missing)?);
        let lists = [footer.dictionaries(), footer.recordBatches()];
        for block in lists.iter().flatten().flat_map(|list| list.iter()) {
            let start = length(block.offset())?;
            self.go_to(start)?;
            let head = self.next_head()?.ok_or_else(beyond_end)?;
            let body = start.saturating_add(length(block.metaDataLength().into())?);
            self.check(&head, body, length(block.bodyLength())?)?;
        }
        Ok(schema)
    }

    /// Reads the messages of a stream, which must end with its mark. Without the mark, a whole
    /// stream cannot be distinguished from one that was cut between two batches.
    fn read_stream(&mut self) -> Result<Schema, ArrowError> {
        let mut schema = None;
        while let Some(head) = self.next_head()? {
            let message = arrow_ipc::root_as_message(&head).map_err(flat)?;
            if let Some(found) = message.header_as_schema() {
                schema = Some(fb_to_schema(found));
            }
            self.check(&head, self.position, length(message.bodyLength())?)?;
        }
        if self.position < self.length {
            let more = self.length - self.position;
            return Err(ArrowError::ParseError(format!(
                "{more} bytes after the end of the stream: give joined streams as separate files"
            )));
        }
        schema.ok_or_else(|| ArrowError::ParseError("it has no schema".into()))
    }

    /// Returns the header of the next message, or nothing at the end of a stream.
    fn next_head(&mut self) -> Result<Option<Vec<u8>>, ArrowError> {
        const CONTINUATION: [u8; 4] = [0xff; 4];
        if self.position == self.length {
            return Err(ArrowError::ParseError(
                "it has no end marker, so batches may be missing: if none are, write it again and close \
                 the writer"
                    .into(),
            ));
        }
        // Older streams lack this mark before the length. At the end of a stream the length is 0.
        let mut word: [u8; 4] = self.array()?;
        if word == CONTINUATION {
            word = self.array()?;
        }
        match length(i32::from_le_bytes(word).into())? {
            0 => Ok(None),
            bytes => self.bytes(bytes).map(Some),
        }
    }

    /// Counts a message and skips its body. Returns an error if the message is not within the file,
    /// or declares more than its bytes can hold.
    fn check(&mut self, head: &[u8], body: u64, body_bytes: u64) -> Result<(), ArrowError> {
        let end = body.checked_add(body_bytes);
        let end = end
            .filter(|end| *end <= self.length)
            .ok_or_else(beyond_end)?;
        let message = arrow_ipc::root_as_message(head).map_err(flat)?;
        let dictionary = message.header_as_dictionary_batch();
        let rows = message.header_as_record_batch();
        if let Some(batch) = rows {
            self.rows = self.rows.saturating_add(length(batch.length())?);
        }
        let mut bytes = body_bytes;
        let batch = rows.or_else(|| dictionary.and_then(|dictionary| dictionary.data()));
        if let Some((batch, compression)) =
            batch.and_then(|batch| Some((batch, batch.compression()?.codec())))
        {
            self.compression = Some(compression);
            bytes = 0;
            for buffer in batch.buffers().iter().flatten() {
                let start = body.saturating_add(length(buffer.offset())?);
                let buffer_bytes = length(buffer.length())?;
                let whole = self.uncompressed_bytes(compression, start, buffer_bytes)?;
                bytes = whole.saturating_add(bytes);
            }
        }
        self.largest_bytes = self.largest_bytes.max(bytes);
        self.go_to(end)
    }

    /// Returns the decompressed length of a compressed buffer, which precedes it.
    fn uncompressed_bytes(
        &mut self,
        compression: CompressionType,
        start: u64,
        buffer_bytes: u64,
    ) -> Result<u64, ArrowError> {
        let Some(compressed) = buffer_bytes.checked_sub(8).filter(|bytes| *bytes > 0) else {
            return Ok(0);
        };
        self.go_to(start)?;
        let declared = match i64::from_le_bytes(self.array()?) {
            -1 => return Ok(compressed),
            declared => length(declared)?,
        };
        let ratio = match compression {
            CompressionType::LZ4_FRAME => LZ4_RATIO,
            _ => ZSTD_RATIO,
        };
        if declared > compressed.saturating_mul(ratio) {
            return Err(ArrowError::ParseError(format!(
                "a buffer of {compressed} compressed bytes declares {declared} bytes, more than they can hold"
            )));
        }
        Ok(declared)
    }

    fn go_to(&mut self, position: u64) -> Result<(), ArrowError> {
        if position > self.length {
            return Err(beyond_end());
        }
        // Files are shorter than half the range of these numbers.
        let distance = position
            .cast_signed()
            .wrapping_sub(self.position.cast_signed());
        self.input.seek_relative(distance)?;
        self.position = position;
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ArrowError> {
        let mut array = [0; N];
        self.input.read_exact(&mut array)?;
        self.position += N as u64;
        Ok(array)
    }

    fn bytes(&mut self, length: u64) -> Result<Vec<u8>, ArrowError> {
        let mut bytes = Vec::new();
        let found = self.input.by_ref().take(length).read_to_end(&mut bytes)?;
        self.position += found as u64;
        let is_whole = found as u64 == length;
        is_whole.then_some(bytes).ok_or_else(beyond_end)
    }
}

fn beyond_end() -> ArrowError {
    ArrowError::ParseError("a length leads beyond its end".into())
}

fn flat(error: impl std::fmt::Display) -> ArrowError {
    ArrowError::ParseError(error.to_string())
}

fn length(number: i64) -> Result<u64, ArrowError> {
    u64::try_from(number).map_err(|_| ArrowError::ParseError("a length below zero".into()))
}

/// Opens the batches of a file or stream, with all columns or those with these numbers.
pub(super) fn batches(
    file: &TableFile,
    outline: &IpcOutline,
    columns: Option<Vec<usize>>,
) -> Result<Box<dyn RecordBatchReader + Send>, CorpusError> {
    file.decode(|| {
        let input = BufReader::new(file.file.rewound()?);
        Ok::<Box<dyn RecordBatchReader + Send>, ArrowError>(match outline.is_file {
            true => Box::new(FileReader::try_new(input, columns)?),
            false => Box::new(StreamReader::try_new(input, columns)?),
        })
    })
}

/// A file or stream that is being written.
pub(super) enum IpcWriter<W: Write> {
    File(Box<FileWriter<W>>),
    Stream(Box<StreamWriter<W>>),
}

impl<W: Write> IpcWriter<W> {
    /// Begins a file or stream like the input, with its schema, metadata and compression, and
    /// additional columns if there are any.
    pub(super) fn create<E>(
        input: &TableFile,
        output: W,
        added: &[AddedColumn],
    ) -> Result<Self, TableError<E>> {
        let outline = IpcOutline::read(input)?;
        let schema = schema_with(&outline.schema, added);
        let options = IpcWriteOptions::try_new(64, false, MetadataVersion::V5)?
            .try_with_compression(outline.compression)?;
        if !outline.is_file {
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

/// Returns a schema with additional columns.
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

/// Returns rows with additional columns. `first` is the number of the first row in the corpus.
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
