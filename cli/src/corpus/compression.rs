//! gzip and Zstandard, in both directions.

use std::ffi::OsStr;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

/// Files written with `zstd --long=31` need the largest window.
const ZSTD_WINDOW_LOG_MAX: u32 = 31;
const ZSTD_LEVEL: i32 = 3;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// One or more gzip members.
    Gzip,
    /// One or more Zstandard frames.
    Zstd,
}

impl Compression {
    /// By the file's name: the rule for files to be written.
    pub fn from_name(path: &Path) -> Self {
        match path.extension().and_then(OsStr::to_str) {
            Some("gz") => Self::Gzip,
            Some("zst") => Self::Zstd,
            _ => Self::None,
        }
    }

    /// By the file's first bytes.
    pub fn from_content(start: &[u8]) -> Self {
        if start.starts_with(&[0x1f, 0x8b]) {
            Self::Gzip
        } else if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Self::Zstd
        } else {
            Self::None
        }
    }

    /// Reads every member of a gzip file and every frame of a Zstandard file.
    pub fn decoder(self, inner: Box<dyn BufRead + Send>) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::None => Box::new(inner),
            Self::Gzip => Box::new(MultiGzDecoder::new(inner)),
            Self::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(inner)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                Box::new(decoder)
            }
        })
    }
}

/// A writer that compresses; [`Encoder::finish`] must be called.
pub enum Encoder<W: Write> {
    /// Passes bytes on as they are.
    None(W),
    /// Writes one gzip member.
    Gzip(GzEncoder<W>),
    /// Writes one Zstandard frame.
    Zstd(zstd::stream::write::Encoder<'static, W>),
}

impl<W: Write> Encoder<W> {
    /// Begins a compressed stream that goes to `inner`.
    pub fn new(compression: Compression, inner: W) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::None(inner),
            Compression::Gzip => Self::Gzip(GzEncoder::new(inner, flate2::Compression::default())),
            Compression::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(inner, ZSTD_LEVEL)?),
        })
    }

    /// Writes what is still held back and gives the inner writer back.
    pub fn finish(self) -> io::Result<W> {
        match self {
            Self::None(inner) => Ok(inner),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

impl<W: Write> Write for Encoder<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::None(inner) => inner.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::None(inner) => inner.flush(),
            Self::Gzip(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
        }
    }
}
