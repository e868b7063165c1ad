//! The bytes of a table, in a file or remote.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::iter::Peekable;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

#[cfg(feature = "remote")]
use crate::remote::RangeReader;

/// The input of a table.
pub(super) enum TableInput {
    File(File),
    #[cfg(feature = "remote")]
    Remote(RangeReader),
}

impl TableInput {
    /// Returns another handle, at the beginning. Cloned files would share their position.
    pub(super) fn rewound(&self) -> io::Result<Self> {
        self.at(0)
    }

    fn at(&self, position: u64) -> io::Result<Self> {
        Ok(match self {
            Self::File(file) => {
                let mut clone = file.try_clone()?;
                clone.seek(SeekFrom::Start(position))?;
                Self::File(clone)
            }
            #[cfg(feature = "remote")]
            Self::Remote(reader) => Self::Remote(reader.at(position)),
        })
    }

    /// Returns why its bytes did not arrive, if that should replace the decoder's message.
    pub(super) fn failure(&self) -> Option<String> {
        match self {
            Self::File(_) => None,
            #[cfg(feature = "remote")]
            Self::Remote(reader) => reader.failure(),
        }
    }
}

impl Read for TableInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            #[cfg(feature = "remote")]
            Self::Remote(reader) => reader.read(buffer),
        }
    }
}

impl Seek for TableInput {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::File(file) => file.seek(to),
            #[cfg(feature = "remote")]
            Self::Remote(reader) => reader.seek(to),
        }
    }
}

impl Length for TableInput {
    fn len(&self) -> u64 {
        match self {
            Self::File(file) => Length::len(file),
            #[cfg(feature = "remote")]
            Self::Remote(reader) => reader.object().bytes(),
        }
    }
}

/// The bytes of a Parquet file. Checks the headers of pages before a decoder allocates what they
/// declare.
pub(super) struct ParquetInput {
    input: TableInput,
    /// The maximum number of bytes of a page.
    pub(super) memory_bytes: u64,
    /// The column chunks whose pages may declare counts themselves. They are checked before a
    /// decoder sees them.
    counted: Arc<OnceLock<Vec<Range<u64>>>>,
}

impl ParquetInput {
    pub(super) fn new(input: TableInput, memory_bytes: u64) -> Self {
        Self {
            input,
            memory_bytes,
            counted: Arc::default(),
        }
    }

    /// Returns another handle of the same input.
    pub(super) fn another(&self) -> io::Result<Self> {
        Ok(Self {
            input: self.input.rewound()?,
            memory_bytes: self.memory_bytes,
            counted: Arc::clone(&self.counted),
        })
    }

    /// Accepts pages that declare counts themselves in these column chunks, which the caller
    /// checks. Elsewhere they are an error.
    pub(super) fn expect_counts(&self, chunks: Vec<Range<u64>>) {
        // The chunks of a file remain the same.
        let _ = self.counted.set(chunks);
    }
}

impl Length for ParquetInput {
    fn len(&self) -> u64 {
        Length::len(&self.input)
    }
}

/// The bytes from a page on, or why its head was refused. The decoder also opens, and does not read,
/// the bytes behind a head that it has read before, where no page begins.
pub(super) enum PageReader {
    Accepted(BufReader<TableInput>),
    Refused(String),
}

impl Read for PageReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Accepted(input) => input.read(buffer),
            Self::Refused(reason) => Err(io::Error::other(reason.clone())),
        }
    }
}

impl ParquetInput {
    /// Returns why the page that begins here should not be read. The end of a file is read in the same way.
    fn refusal(&self, start: u64) -> Result<Option<String>> {
        if Length::len(self).saturating_sub(start) <= FOOTER_END_BYTES {
            return Ok(None);
        }
        let mut head = Vec::new();
        let start_of_head = self.input.at(start)?;
        start_of_head.take(PAGE_HEAD_BYTES).read_to_end(&mut head)?;
        let Some(page) = PageHead::parse(&mut head.into_iter().peekable()) else {
            let other = "something other than the head of a page was found where one begins";
            return Ok(Some(other.into()));
        };
        let mut chunks = self.counted.get().into_iter().flatten();
        if page.has_own_count && !chunks.any(|chunk| chunk.contains(&start)) {
            let message = "a page has an encoding that its column does not list";
            return Ok(Some(message.into()));
        }
        Ok(page.refusal(self.memory_bytes))
    }
}

impl ChunkReader for ParquetInput {
    type T = PageReader;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(match self.refusal(start)? {
            Some(reason) => PageReader::Refused(reason),
            None => PageReader::Accepted(BufReader::new(self.input.at(start)?)),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let rest = Length::len(self).saturating_sub(start);
        // A damaged file asks for more bytes than exist or fit into memory.
        let mut bytes = Vec::with_capacity(rest.min(length as u64) as usize);
        let read = self
            .input
            .at(start)?
            .take(length as u64)
            .read_to_end(&mut bytes)?;
        if read != length {
            let message = format!("{read} bytes from {start} on, expected {length}");
            return Err(ParquetError::EOF(message));
        }
        let is_footer = rest.checked_sub(length as u64) == Some(FOOTER_END_BYTES);
        if is_footer && skip_value(&mut bytes.as_slice(), THRIFT_STRUCT, 0).is_none() {
            let message = "its footer ends too early, or declares more than it can hold";
            return Err(ParquetError::EOF(message.into()));
        }
        Ok(bytes.into())
    }
}

/// The size of the fields of [`PageHead`]: eight numbers of up to five bytes, and the bytes between
/// them.
const PAGE_HEAD_BYTES: u64 = 64;

/// The counts and sizes that the header of a page declares.
struct PageHead {
    /// The decompressed length.
    bytes: u64,
    /// The number of values in a dictionary.
    dictionary_values: Option<u64>,
    /// True if the page itself declares its number of values, because its texts are deltas.
    has_own_count: bool,
}

impl PageHead {
    /// Parses the first fields, in the compact encoding of Thrift. Returns `None` if other fields
    /// are there.
    fn parse(head: &mut Peekable<impl Iterator<Item = u8>>) -> Option<Self> {
        const DATA_PAGE: i64 = 0;
        const DICTIONARY_PAGE: i64 = 2;
        const DATA_PAGE_V2: i64 = 3;
        const DELTAS_OF_TEXTS: [i64; 2] = [6, 7];
        let kind = thrift_integer(head)?;
        let bytes = u64::try_from(thrift_integer(head)?).ok()?;
        thrift_integer(head)?;
        if head.peek() == Some(&THRIFT_INTEGER) {
            // The checksum.
            thrift_integer(head)?;
        }
        let is_struct = head.next()? & 0xf == THRIFT_STRUCT;
        let values = is_struct.then(|| thrift_integer(head)).flatten();
        let values = values.and_then(|values| u64::try_from(values).ok());
        let encoding = match kind {
            DATA_PAGE => Some(thrift_integer(head)?),
            DATA_PAGE_V2 => {
                thrift_integer(head)?;
                thrift_integer(head)?;
                Some(thrift_integer(head)?)
            }
            _ => None,
        };
        Some(Self {
            bytes,
            dictionary_values: values.filter(|_| kind == DICTIONARY_PAGE),
            has_own_count: encoding.is_some_and(|encoding| DELTAS_OF_TEXTS.contains(&encoding)),
        })
    }

    fn refusal(&self, memory_bytes: u64) -> Option<String> {
        let bytes = self.bytes;
        if bytes > memory_bytes {
            return Some(format!(
                "a page declares {bytes} bytes, expected up to {memory_bytes}, half of --memory (raise \
                 that if the file is intact)"
            ));
        }
        let values = self.dictionary_values.filter(|values| *values > bytes)?;
        Some(format!(
            "a dictionary of {bytes} bytes declares {values} values, more than they can hold"
        ))
    }
}

/// The length of what follows the footer: its length and the mark.
const FOOTER_END_BYTES: u64 = 8;

/// The maximum nesting of structures. A footer has fewer levels.
const MAX_DEPTH: u32 = 32;

/// Skips a value in the compact encoding of Thrift. Returns `None` if the value is truncated, or if
/// a list in it declares more elements than there are bytes.
fn skip_value(rest: &mut &[u8], kind: u8, depth: u32) -> Option<()> {
    let length = match kind {
        1..=3 => 1,
        4..=6 => return next_number(rest).map(drop),
        7 => 8,
        8 => next_number(rest)?,
        9 | 10 => {
            let (head, after) = rest.split_first()?;
            *rest = after;
            let elements = match head >> 4 {
                15 => next_number(rest)?,
                few => few.into(),
            };
            let may_be = elements <= rest.len() as u64 && depth < MAX_DEPTH;
            may_be.then_some(())?;
            return (0..elements).try_for_each(|_| skip_value(rest, head & 0xf, depth + 1));
        }
        THRIFT_STRUCT if depth < MAX_DEPTH => loop {
            let (head, after) = rest.split_first()?;
            *rest = after;
            match (*head, head & 0xf) {
                (0, _) => return Some(()),
                // The type of a boolean is its value.
                (1.., kind) => {
                    if head >> 4 == 0 {
                        next_number(rest)?;
                    }
                    if !matches!(kind, 1 | 2) {
                        skip_value(rest, kind, depth + 1)?;
                    }
                }
            }
        },
        16 => 16,
        _ => return None,
    };
    *rest = rest.get(usize::try_from(length).ok()?..)?;
    Some(())
}

const THRIFT_STRUCT: u8 = 12;
/// An integer whose field number is the next one.
const THRIFT_INTEGER: u8 = 0x15;

/// Returns the next field, if it is an integer.
fn thrift_integer(head: &mut impl Iterator<Item = u8>) -> Option<i64> {
    head.next().filter(|kind| *kind == THRIFT_INTEGER)?;
    let number = thrift_number(head)?;
    Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
}

pub(super) fn next_number(rest: &mut &[u8]) -> Option<u64> {
    thrift_number(rest.by_ref().bytes().map_while(io::Result::ok))
}

fn thrift_number(mut bytes: impl Iterator<Item = u8>) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes.next()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}
