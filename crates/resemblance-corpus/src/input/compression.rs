//! Reads and writes gzip, Zstandard, bzip2 and xz.

use std::ffi::OsStr;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;

use bzip2::bufread::MultiBzDecoder;
use bzip2::write::BzEncoder;
use flate2::GzHeader;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};
use liblzma::write::XzEncoder;

/// Windows of `zstd`, from 1 KiB to 2 GiB, which is that of `--long=31`.
const ZSTD_WINDOW_LOGS: std::ops::RangeInclusive<u32> = 10..=31;
const ZSTD_LEVEL: i32 = 3;
const XZ_LEVEL: u32 = 6;

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// No compression.
    None,
    /// One or more gzip members.
    Gzip,
    /// One or more Zstandard frames.
    Zstd,
    /// One or more bzip2 streams.
    Bzip2,
    /// One or more xz streams.
    Xz,
}

impl Compression {
    /// Returns the compression that a file's name implies, in upper or lower case. Decides how files
    /// are written.
    pub fn from_name(path: &Path) -> Self {
        let end = path.extension().map(OsStr::to_ascii_lowercase);
        match end.as_deref().and_then(OsStr::to_str) {
            Some("gz") => Self::Gzip,
            Some("zst") => Self::Zstd,
            Some("bz2") => Self::Bzip2,
            Some("xz") => Self::Xz,
            _ => Self::None,
        }
    }

    /// Returns the compression that the first six bytes of a file identify.
    pub fn from_content(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31 | 0x17, ..] => Self::Bzip2,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            _ => Self::None,
        }
    }

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "plain",
            Self::Gzip => "gzip",
            Self::Zstd => "Zstandard",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
        }
    }

    /// Returns a reader of all members of a file. A window larger than `window_bytes` is an error.
    pub fn decoder(
        self,
        inner: Box<dyn BufRead + Send>,
        window_bytes: u64,
    ) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::None => Box::new(inner),
            Self::Gzip => Box::new(GzipMembers::new(inner)),
            Self::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(inner)?;
                decoder.window_log_max(Self::zstd_window_log(window_bytes))?;
                Box::new(decoder)
            }
            Self::Bzip2 => Box::new(MultiBzDecoder::new(inner)),
            Self::Xz => {
                let stream = Stream::new_stream_decoder(window_bytes, CONCATENATED)?;
                Box::new(XzDecoder::new_stream(inner, stream))
            }
        })
    }

    /// Returns the logarithm of the largest window of `zstd` that fits into this number of bytes.
    pub(crate) fn zstd_window_log(window_bytes: u64) -> u32 {
        let (smallest, largest) = ZSTD_WINDOW_LOGS.into_inner();
        window_bytes.max(1).ilog2().clamp(smallest, largest)
    }

    /// Returns true if this error of a decoder means that the window is too large.
    pub(crate) fn is_window_error(error: &io::Error) -> bool {
        let message = error.to_string();
        message.contains("too much memory") || message.contains("memory limit")
    }

    /// Returns true if this error of a decoder means that a frame needs a dictionary.
    pub(crate) fn is_dictionary_error(error: &io::Error) -> bool {
        error.to_string() == "Dictionary mismatch"
    }
}

/// Reads the members of a gzip file. Skips zeros after a member, which fill up a tape or a block.
struct GzipMembers<R> {
    /// `None` at the end.
    member: Option<GzDecoder<R>>,
    /// True if the member was a block of BGZF. The last block is empty, which reveals a file that
    /// was cut between two blocks.
    is_block: bool,
    is_empty: bool,
}

impl<R: BufRead> GzipMembers<R> {
    fn new(inner: R) -> Self {
        Self {
            member: Some(GzDecoder::new(inner)),
            is_block: false,
            is_empty: true,
        }
    }

    /// Advances to the next member, if there is one.
    fn next_member(&mut self) -> io::Result<()> {
        let Some(member) = &mut self.member else {
            return Ok(());
        };
        let extra = member.header().and_then(GzHeader::extra);
        self.is_block = extra.is_some_and(|extra| extra.starts_with(b"BC\x02\0"));
        let inner = member.get_mut();
        let is_more = loop {
            let next = inner.fill_buf()?;
            let zeros = next.iter().take_while(|byte| **byte == 0).count();
            if zeros == 0 {
                break !next.is_empty();
            }
            inner.consume(zeros);
        };
        if !is_more && self.is_block && !self.is_empty {
            let message = "the empty block at its end is missing";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        let inner = self.member.take().map(GzDecoder::into_inner);
        self.member = inner.filter(|_| is_more).map(GzDecoder::new);
        self.is_empty = true;
        Ok(())
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                self.is_empty &= read == 0;
                return Ok(read);
            }
            self.next_member()?;
        }
        Ok(0)
    }
}

/// A writer that compresses. Call [`Encoder::finish`] at the end.
#[non_exhaustive]
pub enum Encoder<W: Write> {
    /// Writes bytes unchanged.
    None(W),
    /// Writes one gzip member.
    Gzip(GzEncoder<W>),
    /// Writes one Zstandard frame.
    Zstd(zstd::stream::write::Encoder<'static, W>),
    /// Writes one bzip2 stream.
    Bzip2(BzEncoder<W>),
    /// Writes one xz stream.
    Xz(XzEncoder<W>),
}

impl<W: Write> Encoder<W> {
    /// Begins a compressed stream that is written to `inner`.
    pub fn new(compression: Compression, inner: W) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::None(inner),
            Compression::Gzip => Self::Gzip(GzEncoder::new(inner, flate2::Compression::default())),
            Compression::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(inner, ZSTD_LEVEL)?;
                // On a thread of its own, while the caller reads: compressing takes longest. Blocks
                // that one job compresses lie side by side in memory, which takes less time too.
                encoder.multithread(1)?;
                Self::Zstd(encoder)
            }
            Compression::Bzip2 => Self::Bzip2(BzEncoder::new(inner, bzip2::Compression::default())),
            Compression::Xz => Self::Xz(XzEncoder::new(inner, XZ_LEVEL)),
        })
    }

    /// Writes buffered data and returns the inner writer.
    pub fn finish(self) -> io::Result<W> {
        match self {
            Self::None(inner) => Ok(inner),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
            Self::Bzip2(encoder) => encoder.finish(),
            Self::Xz(encoder) => encoder.finish(),
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::None(inner) => inner,
            Self::Gzip(encoder) => encoder,
            Self::Zstd(encoder) => encoder,
            Self::Bzip2(encoder) => encoder,
            Self::Xz(encoder) => encoder,
        }
    }
}

impl<W: Write> Write for Encoder<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}
