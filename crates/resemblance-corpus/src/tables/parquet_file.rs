//! Parquet: reads batches of some columns, and copies rows with all columns.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Schema};
use itertools::Itertools;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::{
    ARROW_SCHEMA_META_KEY, ArrowSchemaConverter, ProjectionMask, encode_arrow_schema,
    parquet_to_arrow_schema,
};
use parquet::basic::Encoding;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, KeyValue, ParquetMetaData, RowGroupMetaData,
};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{
    SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter,
};
use parquet::schema::types::{Type, TypePtr};

use super::arrow_ipc::schema_with;
use super::pages::{self, has_own_count};
use super::projection::{self, rows_together};
use super::table_error::TableError;
use super::table_file::TableFile;
use super::table_input::ParquetInput;
use crate::changes::{AddedColumn, ColumnValues};
use crate::error::CorpusError;

/// The memory for rows that are decoded together if one value may repeat in all of them.
const REPEATED_BYTES: u64 = 16 << 20;

/// The number of values of an added column that are computed together.
const ADDED_TOGETHER: usize = 1024;

/// Loads the metadata, with the Arrow schema that follows from the file's own types.
pub(super) fn load(file: &ParquetInput) -> Result<(ArrowReaderMetadata, Arc<Schema>)> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::load(file, options)?;
    check_counts(metadata.metadata())?;
    let schema = Arc::clone(metadata.schema());
    Ok((metadata, schema))
}

/// Returns the number of rows.
pub(super) fn rows(metadata: &ParquetMetaData) -> u64 {
    let groups = metadata.row_groups().iter();
    groups.fold(0, |rows, group| {
        count(group.num_rows()).saturating_add(rows)
    })
}

/// Opens a file whose columns can be copied.
pub(super) fn open(
    file: &TableFile,
) -> std::result::Result<SerializedFileReader<ParquetInput>, CorpusError> {
    let pages = file.pages()?;
    file.decode(|| {
        let more = pages.another()?;
        let input = SerializedFileReader::new(pages)?;
        check_counts(input.metadata())?;
        expect_counts(&more, input.metadata());
        Ok::<_, ParquetError>(input)
    })
}

/// Returns an error if a number of rows or bytes is negative.
fn check_counts(metadata: &ParquetMetaData) -> Result<()> {
    let groups = metadata.row_groups().iter();
    let is_damaged = |group: &RowGroupMetaData| {
        let mut chunks = group.columns().iter();
        group.num_rows() < 0 || chunks.any(|chunk| chunk.uncompressed_size() < 0)
    };
    if groups.clone().any(is_damaged) {
        return Err(ParquetError::General("a count below zero".into()));
    }
    Ok(())
}

/// Converts a count that [`check_counts`] has found to be nonnegative.
fn count(number: i64) -> u64 {
    number.unsigned_abs()
}

/// The batches of some columns, one row group after another.
pub(super) struct GroupBatches {
    file: Arc<ParquetInput>,
    metadata: ArrowReaderMetadata,
    /// The columns to read.
    columns: Vec<usize>,
    next_group: usize,
    current: Option<ParquetRecordBatchReader>,
}

/// Returns the batches of the columns with these paths.
pub(super) fn batches(
    file: ParquetInput,
    metadata: ArrowReaderMetadata,
    paths: &[&str],
) -> GroupBatches {
    expect_counts(&file, metadata.metadata());
    let schema = metadata.parquet_schema();
    let columns = schema.columns().iter().enumerate().filter(|(_, column)| {
        let parts = column.path().parts();
        paths.iter().any(|path| projection::is_of_path(parts, path))
    });
    GroupBatches {
        columns: columns.map(|(index, _)| index).collect(),
        file: Arc::new(file),
        metadata,
        next_group: 0,
        current: None,
    }
}

/// Accepts delta pages in columns that list their encodings.
fn expect_counts(file: &ParquetInput, metadata: &ParquetMetaData) {
    let chunks = metadata
        .row_groups()
        .iter()
        .flat_map(|group| group.columns());
    let counted = chunks.filter(|chunk| chunk.encodings().any(has_own_count));
    let ranges = counted.map(|chunk| {
        let (start, length) = chunk.byte_range();
        start..start.saturating_add(length)
    });
    file.expect_counts(ranges.collect());
}

impl GroupBatches {
    /// Opens a row group. Its rows are decoded few at a time if they are large or may become large.
    fn open(&self, number: usize) -> Result<ParquetRecordBatchReader> {
        let group = self.metadata.metadata().row_group(number);
        let rows = count(group.num_rows());
        let mut together = usize::MAX;
        let mut bytes = 0_u64;
        for index in &self.columns {
            let chunk = group.column(*index);
            bytes = bytes.saturating_add(count(chunk.uncompressed_size()));
            together = together.min(rows_repeated(&self.file, chunk, rows)?);
        }
        let mask =
            ProjectionMask::leaves(self.metadata.parquet_schema(), self.columns.iter().copied());
        ParquetRecordBatchReaderBuilder::new_with_metadata(
            self.file.another()?,
            self.metadata.clone(),
        )
        .with_row_groups(vec![number])
        .with_projection(mask)
        .with_batch_size(together.min(rows_together(bytes, rows)))
        .build()
    }
}

impl Iterator for GroupBatches {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.current.as_mut().and_then(Iterator::next) {
                return Some(batch);
            }
            if self.next_group == self.metadata.metadata().num_row_groups() {
                return None;
            }
            match self.open(self.next_group) {
                Ok(group) => self.current = Some(group),
                Err(error) => return Some(Err(error.into())),
            }
            self.next_group += 1;
        }
    }
}

/// Returns the number of rows of a column chunk to decode together, if few bytes may represent many
/// values.
fn rows_repeated(
    file: &Arc<ParquetInput>,
    chunk: &ColumnChunkMetaData,
    rows: u64,
) -> Result<usize> {
    let most = REPEATED_BYTES / pages::largest_repeated(file, chunk, rows)?.max(1);
    // At least one row.
    Ok(usize::try_from(most.max(1)).unwrap_or(usize::MAX))
}

/// Creates a file for rows of files like `input`, with its schema, its metadata, and the
/// compression and encodings of its columns. Adds columns if there are any.
pub(super) fn writer<W: Write + Send>(
    input: &ParquetMetaData,
    output: W,
    added: &[AddedColumn],
) -> Result<SerializedFileWriter<W>> {
    let file = input.file_metadata();
    let (schema, key_values) = if added.is_empty() {
        let schema = file.schema_descr().root_schema_ptr();
        (schema, file.key_value_metadata().cloned())
    } else {
        with_more(file, added)?
    };
    let mut properties = WriterProperties::builder()
        .set_max_row_group_row_count(None)
        .set_key_value_metadata(key_values);
    if let Some(group) = input.row_groups().first() {
        properties = properties.set_sorting_columns(group.sorting_columns().cloned());
        let has_index = |chunk: &ColumnChunkMetaData| chunk.offset_index_offset().is_some();
        let has_index = group.columns().iter().any(has_index);
        properties = properties.set_offset_index_disabled(!has_index);
        if let Some(chunk) = group.columns().first() {
            properties = properties.set_compression(chunk.compression());
        }
        for chunk in group.columns() {
            properties = like(properties, chunk);
        }
    }
    SerializedFileWriter::new(output, schema, Arc::new(properties.build()))
}

/// Returns the schema and the key-value metadata of a file with additional columns. Readers compare
/// the Arrow schema in the metadata with that of the file, so it gets the columns too.
fn with_more(
    file: &FileMetaData,
    added: &[AddedColumn],
) -> Result<(TypePtr, Option<Vec<KeyValue>>)> {
    let own = file.schema_descr();
    let mut fields = own.root_schema().get_fields().to_vec();
    let more = ArrowSchemaConverter::new().convert(&schema_with(&Schema::empty(), added))?;
    fields.extend_from_slice(more.root_schema().get_fields());
    let root = Type::group_type_builder(own.name()).with_fields(fields);
    let mut key_values = file.key_value_metadata().cloned();
    let of_arrow = key_values.iter_mut().flatten();
    for entry in of_arrow.filter(|entry| entry.key == ARROW_SCHEMA_META_KEY) {
        let schema = parquet_to_arrow_schema(own, file.key_value_metadata())?;
        entry.value = Some(encode_arrow_schema(&schema_with(&schema, added)));
    }
    Ok((Arc::new(root.build()?), key_values))
}

/// Returns the properties with those of a column in the first row group.
fn like(
    properties: WriterPropertiesBuilder,
    chunk: &ColumnChunkMetaData,
) -> WriterPropertiesBuilder {
    let path = chunk.column_path();
    let has_dictionary = chunk.dictionary_page_offset().is_some();
    let statistics = match (chunk.statistics(), chunk.column_index_offset()) {
        (None, _) => EnabledStatistics::None,
        (Some(_), None) => EnabledStatistics::Chunk,
        (Some(_), Some(_)) => EnabledStatistics::Page,
    };
    let properties = properties
        .set_column_compression(path.clone(), chunk.compression())
        .set_column_dictionary_enabled(path.clone(), has_dictionary)
        .set_column_statistics_enabled(path.clone(), statistics)
        .set_column_bloom_filter_enabled(path.clone(), chunk.bloom_filter_offset().is_some());
    let is_of_values = |encoding: &Encoding| {
        matches!(
            encoding,
            Encoding::DELTA_BINARY_PACKED
                | Encoding::DELTA_LENGTH_BYTE_ARRAY
                | Encoding::DELTA_BYTE_ARRAY
                | Encoding::BYTE_STREAM_SPLIT
        )
    };
    match chunk.encodings().find(is_of_values) {
        Some(encoding) => properties.set_column_encoding(path.clone(), encoding),
        None => properties,
    }
}

/// Copies the selected rows, given by their numbers from 0. A row group remains one group, and is
/// dropped if none of its rows is selected. Added values are looked up by the numbers of the rows
/// in the corpus. Rows after these numbers are not read.
pub(super) fn copy<W: Write + Send, E>(
    file: &TableFile,
    output: &mut SerializedFileWriter<W>,
    added: &[AddedColumn],
    numbers: Range<u64>,
    mut is_kept: impl FnMut(u64) -> std::result::Result<bool, E>,
) -> std::result::Result<(), TableError<E>> {
    let input = open(file)?;
    let pages = Arc::new(file.pages()?);
    expect_counts(&pages, input.metadata());
    let (mut first, readable_rows) = (0, numbers.end - numbers.start);
    for number in 0..input.num_row_groups() {
        let group = input.get_row_group(number).map_err(|e| file.damaged(&e))?;
        let rows = count(group.metadata().num_rows());
        let mut kept = Vec::new();
        for row in first..readable_rows.min(first + rows) {
            kept.push(is_kept(row).map_err(TableError::Choice)?);
        }
        if kept.contains(&true) {
            let mut copied = output.next_row_group()?;
            for index in 0..group.num_columns() {
                let chunk = group.metadata().column(index);
                let repeated = file.decode(|| rows_repeated(&pages, chunk, rows))?;
                let reader = group
                    .get_column_reader(index)
                    .map_err(|e| file.damaged(&e))?;
                let mut writer = next_column(&mut copied)?;
                let bytes = count(chunk.uncompressed_size());
                let copy = ColumnCopy {
                    file,
                    kept: &kept,
                    is_cut: (kept.len() as u64) < rows,
                    together: repeated.min(rows_together(bytes, rows)),
                };
                copy.column(reader, &mut writer)?;
                writer.close()?;
            }
            for column in added {
                let numbers = (numbers.start + first..)
                    .zip(&kept)
                    .filter_map(|(number, is_kept)| is_kept.then_some(number));
                add_column(&mut copied, column, numbers)?;
            }
            copied.close()?;
        }
        first += rows;
    }
    Ok(())
}

fn next_column<'g, W: Write + Send>(
    group: &'g mut SerializedRowGroupWriter<'_, W>,
) -> Result<SerializedColumnWriter<'g>> {
    let missing = || ParquetError::General("a column is missing".into());
    group.next_column()?.ok_or_else(missing)
}

/// Writes a column that is not in the input. `numbers` are the numbers of the rows in the corpus.
fn add_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &AddedColumn,
    numbers: impl Iterator<Item = u64>,
) -> Result<()> {
    let mut writer = next_column(group)?;
    match &column.values {
        ColumnValues::Truth(value) => {
            add_values(writer.typed::<BoolType>(), numbers.map(value))?;
        }
        ColumnValues::Integer(value) => {
            let values = numbers.map(|number| value(number).map(u64::cast_signed));
            add_values(writer.typed::<Int64Type>(), values)?;
        }
        ColumnValues::Number(value) => {
            add_values(writer.typed::<DoubleType>(), numbers.map(value))?;
        }
        ColumnValues::Text(value) => {
            let values = numbers.map(|number| value(number).map(|text| text.into_bytes().into()));
            add_values(writer.typed::<ByteArrayType>(), values)?;
        }
    }
    writer.close()
}

fn add_values<T: DataType>(
    writer: &mut ColumnWriterImpl<'_, T>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<()> {
    for values in &values.chunks(ADDED_TOGETHER) {
        let (mut present, mut levels) = (Vec::new(), Vec::new());
        for value in values {
            levels.push(i16::from(value.is_some()));
            present.extend(value);
        }
        writer.write_batch(&present, Some(&levels), None)?;
    }
    Ok(())
}

/// The rows to copy in one column of a row group.
struct ColumnCopy<'a> {
    file: &'a TableFile,
    /// One flag for each row that is read: true if the row is kept.
    kept: &'a [bool],
    /// True if the group has further rows, which are not read.
    is_cut: bool,
    /// The number of rows that are read together.
    together: usize,
}

impl ColumnCopy<'_> {
    fn column<E>(
        &self,
        reader: ColumnReader,
        writer: &mut SerializedColumnWriter<'_>,
    ) -> std::result::Result<(), TableError<E>> {
        match reader {
            ColumnReader::BoolColumnReader(reader) => self.values(reader, writer.typed()),
            ColumnReader::Int32ColumnReader(reader) => self.values(reader, writer.typed()),
            ColumnReader::Int64ColumnReader(reader) => self.values(reader, writer.typed()),
            ColumnReader::Int96ColumnReader(reader) => self.values(reader, writer.typed()),
            ColumnReader::FloatColumnReader(reader) => self.values(reader, writer.typed()),
            ColumnReader::DoubleColumnReader(reader) => self.values(reader, writer.typed()),
            ColumnReader::ByteArrayColumnReader(reader) => self.values(reader, writer.typed()),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                self.values(reader, writer.typed())
            }
        }
    }

    /// Copies the values of kept rows. A row has one level, or several if it holds a list. Only the
    /// highest level has a value.
    fn values<T: DataType, E>(
        &self,
        mut reader: ColumnReaderImpl<T>,
        writer: &mut ColumnWriterImpl<'_, T>,
    ) -> std::result::Result<(), TableError<E>> {
        let column = writer.get_descriptor();
        let (max_definition, max_repetition) = (column.max_def_level(), column.max_rep_level());
        let (mut values, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
        let mut rows = self.kept;
        let too_many = || {
            let message = "a column has more rows than its row group";
            self.file.damaged(&ParquetError::General(message.into()))
        };
        loop {
            values.clear();
            definitions.clear();
            repetitions.clear();
            if self.is_cut && rows.is_empty() {
                break;
            }
            let together = match self.is_cut {
                true => self.together.min(rows.len()),
                false => self.together,
            };
            let found = reader.read_records(
                together,
                Some(&mut definitions),
                Some(&mut repetitions),
                &mut values,
            );
            let (records, _, levels) = found.map_err(|e| self.file.damaged(&e))?;
            if records == 0 {
                break;
            }
            let (now, later) = rows.split_at_checked(records).ok_or_else(too_many)?;
            rows = later;
            let mut of_rows = now.iter();
            let (mut of_values, mut is_row_kept) = (Vec::with_capacity(values.len()), false);
            let mut of_levels = Vec::with_capacity(levels);
            for level in 0..levels {
                if max_repetition == 0 || repetitions.get(level) == Some(&0) {
                    is_row_kept = *of_rows.next().ok_or_else(too_many)?;
                }
                of_levels.push(is_row_kept);
                if max_definition == 0 || definitions.get(level) == Some(&max_definition) {
                    of_values.push(is_row_kept);
                }
            }
            retain(&mut values, &of_values);
            retain(&mut definitions, &of_levels);
            retain(&mut repetitions, &of_levels);
            let definitions = (max_definition > 0).then_some(&*definitions);
            let repetitions = (max_repetition > 0).then_some(&*repetitions);
            writer.write_batch(&values, definitions, repetitions)?;
        }
        if !rows.is_empty() {
            let message = "a column has fewer rows than its row group";
            return Err(self.file.damaged(&ParquetError::EOF(message.into())).into());
        }
        Ok(())
    }
}

/// Keeps the elements whose flag is set.
fn retain<T>(elements: &mut Vec<T>, kept: &[bool]) {
    let mut flags = kept.iter();
    elements.retain(|_| flags.next() == Some(&true));
}
