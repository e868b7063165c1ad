//! The bytes of a table, in a file or elsewhere.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

#[cfg(feature = "remote")]
use crate::remote::RangeReader;

/// Where a table is read from.
pub(super) enum TableInput {
    File(File),
    #[cfg(feature = "remote")]
    Remote(RangeReader),
}

impl TableInput {
    /// Another one, at the beginning. Files that were cloned share their position.
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

    /// Why its bytes did not come, where that is to be told in the place of what a decoder says.
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

impl ChunkReader for TableInput {
    type T = BufReader<Self>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(self.at(start)?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let rest = Length::len(self).saturating_sub(start);
        // A damaged file asks for more than there is, or than there can be in memory.
        let mut bytes = Vec::with_capacity(rest.min(length as u64) as usize);
        let read = self
            .at(start)?
            .take(length as u64)
            .read_to_end(&mut bytes)?;
        if read != length {
            let message = format!("{read} bytes from {start} on, expected {length}");
            return Err(ParquetError::EOF(message));
        }
        Ok(bytes.into())
    }
}
