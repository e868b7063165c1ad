//! Writes a table of rows from other tables, with all their columns.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::BooleanArray;
use arrow_schema::{Field, Schema};
use arrow_select::filter::filter_record_batch;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::file::reader::FileReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::TypePtr;

use super::arrow_ipc::{self, IpcOutline, IpcWriter};
use super::parquet_file;
use super::table_error::{TableError, of_arrow, of_parquet};
use super::table_file::TableFile;
use crate::changes::AddedColumn;
use crate::columns;
use crate::error::CorpusError;
use crate::settings::SourceKind;
use crate::source::CorpusSource;

/// A table that receives rows of tables with the same columns.
pub struct TableWriter<W: Write + Send> {
    columns: TableColumns,
    /// The columns that are added to the rows.
    added: Arc<Vec<AddedColumn>>,
    memory_bytes: u64,
    inner: Inner<W>,
}

enum Inner<W: Write + Send> {
    Parquet(SerializedFileWriter<W>),
    Arrow(IpcWriter<W>),
}

/// The columns and the metadata that tables must share if their rows go into one table, which has
/// them only once.
pub(crate) struct TableColumns {
    /// The Arrow columns, with their metadata and that of the table.
    schema: Arc<Schema>,
    /// The Parquet columns. They may be equal where the Arrow types differ.
    parquet: Vec<TypePtr>,
}

impl TableColumns {
    pub(crate) fn of(file: &TableFile) -> Result<Self, CorpusError> {
        if file.kind != SourceKind::Parquet {
            let (schema, parquet) = (IpcOutline::read(file)?.schema, Vec::new());
            return Ok(Self { schema, parquet });
        }
        let input = parquet_file::open(file)?;
        let metadata = input.metadata().file_metadata();
        let own = metadata.schema_descr();
        let schema = file.decode(|| parquet_to_arrow_schema(own, metadata.key_value_metadata()))?;
        Ok(Self {
            schema: Arc::new(schema),
            parquet: own.root_schema().get_fields().to_vec(),
        })
    }

    /// True if there is a column of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
    }

    /// Describes how another table differs, if it does.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        let of_names = columns::difference(self.names(), other.names());
        let mut types = self.parquet.iter().zip(&other.parquet);
        let mut fields = self.schema.fields().iter().zip(other.schema.fields());
        let is_unlike = |(a, b): &(&Arc<Field>, &Arc<Field>)| match self.parquet.is_empty() {
            true => a.data_type() != b.data_type() || a.is_nullable() != b.is_nullable(),
            false => types.next().is_some_and(|(a, b)| a != b),
        };
        let of_types = || {
            let (a, b) = fields.clone().find(is_unlike)?;
            let typed = |field: &Field| match field.is_nullable() {
                true => format!("{} with nulls", field.data_type()),
                false => format!("{} without nulls", field.data_type()),
            };
            let (name, a, b) = (a.name(), typed(a), typed(b));
            Some(format!(
                "different columns ({name:?} is {a} in the first, {b} in the second)"
            ))
        };
        let (a, b) = (self.schema.metadata(), other.schema.metadata());
        let of_fields = |(a, b): (&Arc<Field>, &Arc<Field>)| {
            unlike_metadata(
                &format!(" of column {:?}", a.name()),
                a.metadata(),
                b.metadata(),
            )
        };
        of_names
            .or_else(of_types)
            .or_else(|| fields.find_map(of_fields))
            .or_else(|| unlike_metadata("", a, b))
    }
}

/// Describes how the metadata of two tables or columns differ. Two differences are ignored: the
/// metadata of pandas contain the number of rows, which joining changes, and the so-called
/// fingerprint is different in each file.
fn unlike_metadata(
    whose: &str,
    a: &HashMap<String, String>,
    b: &HashMap<String, String>,
) -> Option<String> {
    let meaning = |text: &String| {
        let mut json: serde_json::Value = serde_json::from_str(text).ok()?;
        json.as_object_mut()?.remove("fingerprint");
        Some(json)
    };
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let is_unlike = |key: &&String| {
        let (a, b) = (a.get(*key), b.get(*key));
        let a_meaning = a.and_then(meaning);
        a != b && (a_meaning.is_none() || a_meaning != b.and_then(meaning))
    };
    let key = keys
        .into_iter()
        .filter(|key| *key != "pandas")
        .find(is_unlike)?;
    let (a, b) = (a.get(key), b.get(key));
    let chars = |text: Option<&String>| text.map_or_else(Vec::new, |text| text.chars().collect());
    let (a_chars, b_chars): (Vec<char>, Vec<char>) = (chars(a), chars(b));
    let same = a_chars
        .iter()
        .zip(&b_chars)
        .take_while(|(a, b)| a == b)
        .count();
    let part = |text: Option<&String>, chars: &[char]| match text {
        Some(_) => {
            let part = chars
                .iter()
                .skip(same.saturating_sub(METADATA_BEFORE))
                .take(METADATA_SHOWN);
            part.collect::<String>()
        }
        None => "nothing".into(),
    };
    let (a, b) = (part(a, &a_chars), part(b, &b_chars));
    Some(format!(
        "different metadata {key:?}{whose} ({a} in the first, {b} in the second)"
    ))
}

/// The number of characters of metadata that a message shows, and the number of those before the
/// first difference.
const METADATA_SHOWN: usize = 60;
const METADATA_BEFORE: usize = 20;

impl<W: Write + Send> TableWriter<W> {
    /// Creates a table like this source, without its rows, and with additional columns if there are
    /// any. A page or batch of a source may take `memory_bytes`.
    ///
    /// # Errors
    ///
    /// An error if the source cannot be read or the output cannot be written.
    pub fn create<E>(
        source: &CorpusSource,
        memory_bytes: u64,
        output: W,
        added: Option<Arc<Vec<AddedColumn>>>,
    ) -> Result<Self, TableError<E>> {
        let file = TableFile::open(source, memory_bytes)?;
        // Without additional columns, the table has the columns of its source.
        let more = added.unwrap_or_default();
        let inner = match file.kind {
            SourceKind::Parquet => {
                let input = parquet_file::open(&file)?;
                Inner::Parquet(parquet_file::writer(input.metadata(), output, &more)?)
            }
            _ => Inner::Arrow(IpcWriter::create(&file, output, &more)?),
        };
        Ok(Self {
            columns: TableColumns::of(&file)?,
            added: more,
            memory_bytes,
            inner,
        })
    }

    /// Adds those rows of a source for which `is_kept` returns true, given their numbers from 0.
    /// `numbers` are the numbers of the rows in the corpus, by which added columns find their
    /// values. Rows after these are not read.
    ///
    /// # Errors
    ///
    /// An error if the source cannot be read or has other columns, if the output cannot be written,
    /// or if `is_kept` fails.
    pub fn copy<E>(
        &mut self,
        source: &CorpusSource,
        numbers: Range<u64>,
        mut is_kept: impl FnMut(u64) -> Result<bool, E>,
    ) -> Result<(), TableError<E>> {
        let file = TableFile::open(source, self.memory_bytes)?;
        if let Some(difference) = self.columns.difference(&TableColumns::of(&file)?) {
            let name = file.name.display();
            let message = format!("{name} and the tables before it have {difference}");
            return Err(CorpusError::bad(message).into());
        }
        let output = match &mut self.inner {
            Inner::Parquet(output) => {
                return parquet_file::copy(&file, output, &self.added, numbers, is_kept);
            }
            Inner::Arrow(output) => output,
        };
        let (mut row, rows) = (0, numbers.end - numbers.start);
        let outline = IpcOutline::read(&file)?;
        let mut batches = arrow_ipc::batches(&file, &outline, None)?;
        while row < rows || rows == outline.rows {
            let Some(decoded) = file.decode(|| batches.next().transpose())? else {
                break;
            };
            let mut kept = Vec::new();
            let more = match self.added.as_slice() {
                [] => decoded,
                added => {
                    file.decode(|| arrow_ipc::with_more(&decoded, added, numbers.start + row))?
                }
            };
            for _ in 0..more.num_rows() {
                kept.push(row < rows && is_kept(row).map_err(TableError::Choice)?);
                row += 1;
            }
            if kept.contains(&true) {
                let mask = BooleanArray::from(kept);
                let written = output.write(&file.decode(|| filter_record_batch(&more, &mask))?);
                if matches!(&written, Err(error) if error.to_string().contains("Dictionary replacement"))
                {
                    let name = file.name.display();
                    return Err(CorpusError::bad(format!(
                        "{name} has a different dictionary of a column than the files before it, and \
                         cannot be written to one file with them"
                    )).with_advice("-o FOLDER writes a file for each")
                    .into());
                }
                written?;
            }
        }
        Ok(())
    }

    /// Completes the table and returns the inner writer.
    ///
    /// # Errors
    ///
    /// The errors of the inner writer.
    pub fn finish(self) -> io::Result<W> {
        match self.inner {
            Inner::Parquet(writer) => writer.into_inner().map_err(of_parquet),
            Inner::Arrow(writer) => writer.finish().map_err(of_arrow),
        }
    }
}
