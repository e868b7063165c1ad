//! Reads arrays of NumPy, in files of the extension `.npy`. Each row is a vector.

use std::io::{self, BufRead, Read};
use std::path::PathBuf;

use super::bad_document::BadDocument;
use super::columns;
use super::error::CorpusError;
use super::form::NPY_MAGIC;
use super::input::{self, Compression, Decoded};
use super::json_line::{push, push_name};
use super::line_source::CountedReader;
use super::reading::{Opening, Source, SourceReading};
use super::record::CorpusRecord;
use super::settings::{CorpusSettings, SourceKind};
use resemblance_sketch::sketch::half_to_single;

/// The maximum length of a header. That of an array of numbers takes 128 bytes.
const MAX_HEADER_BYTES: u32 = 1 << 16;

/// The field of a row's index.
const INDEX_FIELD: &str = "id";

/// The types of numbers that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArrayNumber {
    Float16,
    Float32,
    Float64,
    Integer8,
}

impl ArrayNumber {
    /// Returns the type with this name in a header, or the reason why it is not read.
    fn named(name: &str) -> Result<Self, BadDocument> {
        match name {
            "<f2" => Ok(Self::Float16),
            "<f4" => Ok(Self::Float32),
            "<f8" => Ok(Self::Float64),
            "|i1" | "<i1" => Ok(Self::Integer8),
            other => {
                let shown: String = other.chars().take(40).collect();
                let reason = format!(
                    "an array of the type {shown:?}, expected \"<f2\", \"<f4\", \"<f8\" or \"|i1\""
                );
                Err(BadDocument::new(reason).with_advice("array.astype(\"<f4\") converts it"))
            }
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::Integer8 => 1,
            Self::Float16 => 2,
            Self::Float32 => 4,
            Self::Float64 => 8,
        }
    }

    /// Returns the numbers of a row.
    fn decode(self, row: &[u8]) -> Vec<f32> {
        match self {
            Self::Integer8 => row
                .iter()
                .map(|byte| f32::from(byte.cast_signed()))
                .collect(),
            Self::Float16 => {
                let halves = row.as_chunks().0.iter();
                halves
                    .map(|bytes| half_to_single(u16::from_le_bytes(*bytes)))
                    .collect()
            }
            Self::Float32 => {
                let floats = row.as_chunks().0.iter();
                floats.map(|bytes| f32::from_le_bytes(*bytes)).collect()
            }
            Self::Float64 => {
                let doubles = row.as_chunks().0.iter();
                doubles
                    .map(|bytes| f64::from_le_bytes(*bytes) as f32)
                    .collect()
            }
        }
    }
}

/// The declarations of a header.
#[derive(Debug, PartialEq, Eq)]
struct NpyHeader {
    number: ArrayNumber,
    rows: u64,
    columns: u64,
}

impl NpyHeader {
    /// Reads the header. Returns `None` if there is none, or if it is damaged.
    fn read(input: &mut impl Read) -> io::Result<Option<Result<Self, BadDocument>>> {
        let mut start = [0; 8];
        input.read_exact(&mut start)?;
        let [magic @ .., major, _] = &start;
        let length = match (magic == NPY_MAGIC, major) {
            (true, 1) => {
                let mut bytes = [0; 2];
                input.read_exact(&mut bytes)?;
                u32::from(u16::from_le_bytes(bytes))
            }
            (true, 2 | 3) => {
                let mut bytes = [0; 4];
                input.read_exact(&mut bytes)?;
                u32::from_le_bytes(bytes)
            }
            (true, version) => {
                let reason = format!("NumPy's format of version {version}, expected 1, 2 or 3");
                return Ok(Some(Err(BadDocument::new(reason))));
            }
            (false, _) => return Ok(None),
        };
        if length > MAX_HEADER_BYTES {
            return Ok(None);
        }
        let mut header = Vec::new();
        input.take(length.into()).read_to_end(&mut header)?;
        let is_whole = header.len() as u64 == u64::from(length);
        let header = str::from_utf8(&header).ok().filter(|_| is_whole);
        Ok(header.and_then(|header| Self::parse(PythonLiteral(header))))
    }

    /// Parses the header: a dictionary with the type of the numbers, their order, and the shape.
    /// Returns `None` if it is anything else.
    fn parse(mut header: PythonLiteral<'_>) -> Option<Result<Self, BadDocument>> {
        let (mut number, mut is_by_column, mut shape) = (None, None, None);
        header.skip("{").then_some(())?;
        while !header.skip("}") {
            let key = header.string()?;
            header.skip(":").then_some(())?;
            match key {
                "descr" if header.skip("[") => {
                    let reason = "an array of structures, expected an array of numbers";
                    return Some(Err(BadDocument::new(reason)));
                }
                "descr" => number = Some(ArrayNumber::named(header.string()?)),
                "fortran_order" => {
                    is_by_column = Some(header.skip("True"));
                    (is_by_column == Some(true) || header.skip("False")).then_some(())?;
                }
                "shape" => shape = Some(header.tuple()?),
                _ => return None,
            }
            header.skip(",");
        }
        let (number, is_by_column, shape) = (number?, is_by_column?, shape?);
        let [rows, columns] = shape[..] else {
            let dimensions = shape.len();
            let reason =
                format!("an array of {dimensions} dimensions, expected 2: one row for each vector");
            let advice = "array.reshape(len(array), -1) makes one row of each element";
            return Some(Err(BadDocument::new(reason).with_advice(advice)));
        };
        if is_by_column {
            let reason = "an array in Fortran order, expected C order, row by row";
            let advice = "numpy.ascontiguousarray(array) converts it";
            return Some(Err(BadDocument::new(reason).with_advice(advice)));
        }
        Some(number.map(|number| Self {
            number,
            rows,
            columns,
        }))
    }

    /// Returns the number of bytes of a row, if rows are vectors of the schema.
    fn row_bytes(&self, settings: &CorpusSettings) -> Result<usize, BadDocument> {
        let Some((path, schema)) = settings.vectors() else {
            let reason = "an array of NumPy, expected texts or features: the schema has no vectors";
            return Err(BadDocument::new(reason));
        };
        columns::must_be_there(&[INDEX_FIELD.into(), path.name().into()], settings)?;
        let (found, expected) = (self.columns, schema.dimensions());
        if found != u64::from(expected) {
            return Err(BadDocument::new(format!(
                "an array with {found} columns, expected {expected} as in the schema"
            )));
        }
        Ok(usize::from(expected) * self.number.bytes())
    }
}

/// The rest of a literal of Python.
struct PythonLiteral<'h>(&'h str);

impl<'h> PythonLiteral<'h> {
    /// Skips white space, and this token if it follows.
    fn skip(&mut self, token: &str) -> bool {
        let rest = self.0.trim_ascii_start();
        let after = rest.strip_prefix(token);
        self.0 = after.unwrap_or(rest);
        after.is_some()
    }

    fn string(&mut self) -> Option<&'h str> {
        let quote = ["'", "\""].into_iter().find(|quote| self.skip(quote))?;
        let (inner, rest) = self.0.split_once(quote)?;
        self.0 = rest;
        Some(inner)
    }

    /// Parses a tuple of integers.
    fn tuple(&mut self) -> Option<Vec<u64>> {
        self.skip("(").then_some(())?;
        let (inner, rest) = self.0.split_once(')')?;
        self.0 = rest;
        let elements = inner.split(',').map(str::trim_ascii);
        // Python 2 wrote long integers with a letter.
        let numbers = elements.filter(|element| !element.is_empty());
        numbers
            .map(|number| number.strip_suffix('L').unwrap_or(number).parse().ok())
            .collect()
    }
}

/// The rows of an array, in order.
struct NpyRows {
    input: Decoded,
    is_compressed: bool,
    /// The name of the file in messages.
    name: PathBuf,
    source: usize,
    header: NpyHeader,
    /// The field of the vector.
    field: String,
    /// The number of rows that have been read.
    row: u64,
    /// The bytes of a row.
    bytes: Vec<u8>,
}

/// Opens an array.
pub(crate) fn open(
    opening: &Opening<'_>,
    reading: &mut SourceReading,
) -> Result<Box<dyn Source>, CorpusError> {
    let &Opening {
        source, settings, ..
    } = opening;
    let name = source.name().into_owned();
    let raw = CountedReader::new(source.open()?, opening.bytes_read);
    let (compression, mut input) = input::decode(Box::new(raw), &name, settings)?;
    let is_compressed = compression != Compression::None;
    let damaged = || {
        let shown = name.display();
        CorpusError::bad(format!(
            "{shown} is damaged, truncated, or not NumPy: it has no header of an array"
        ))
    };
    let header = match NpyHeader::read(&mut input) {
        Ok(header) => header.ok_or_else(damaged)?,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(damaged()),
        Err(error) => return Err(CorpusError::read(&name, is_compressed, &error)),
    };
    reading.count_file(source.kind);
    let checked = header.and_then(|header| Ok((header.row_bytes(settings)?, header)));
    let (row_bytes, header) = match checked {
        Ok(checked) => checked,
        Err(bad) => return Ok(opening.problem(bad)),
    };
    Ok(Box::new(NpyRows {
        input,
        is_compressed,
        name,
        source: opening.number,
        header,
        field: settings.vector_field.name().into(),
        row: 0,
        bytes: vec![0; row_bytes],
    }))
}

impl Source for NpyRows {
    fn next(&mut self, reading: &mut SourceReading) -> Result<Option<CorpusRecord>, CorpusError> {
        if self.row == self.header.rows {
            return self.end().map(|()| None);
        }
        self.input.read_exact(&mut self.bytes).map_err(|error| {
            let (row, rows) = (self.row, self.header.rows);
            match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    self.damaged(&format!("it ends before row {row} of {rows}"))
                }
                _ => self.failed(&error),
            }
        })?;
        let mut json = vec![b'{'];
        push_name(&mut json, INDEX_FIELD);
        push(&mut json, &self.row);
        push_name(&mut json, &self.field);
        push(&mut json, &self.header.number.decode(&self.bytes));
        json.extend_from_slice(b"}\n");
        self.row += 1;
        let record = CorpusRecord::new(self.source, self.row, json);
        reading.count_document(SourceKind::Npy, &record);
        Ok(Some(record))
    }
}

impl NpyRows {
    /// Checks that the file ends after the last row.
    fn end(&mut self) -> Result<(), CorpusError> {
        match self.input.fill_buf() {
            Ok([]) => Ok(()),
            Ok(_) => {
                let rows = self.header.rows;
                Err(self.damaged(&format!("it continues after its {rows} rows")))
            }
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn failed(&self, error: &io::Error) -> CorpusError {
        CorpusError::read(&self.name, self.is_compressed, error)
    }

    fn damaged(&self, reason: &str) -> CorpusError {
        let name = self.name.display();
        CorpusError::bad(format!("{name} is damaged or truncated: {reason}"))
    }
}
