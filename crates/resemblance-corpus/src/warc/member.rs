//! The members of a WARC file: gzip members or Zstandard frames, usually one for each record.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use flate2::bufread::GzDecoder;
use memchr::memmem;
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::head;
use super::rewindable::Rewindable;
use crate::archived_record::MemberForm;
use crate::input::{Compression, read_bounded};

/// The bytes of a file as they are stored.
pub(super) type RawFile = Rewindable<Box<dyn Read + Send>>;

/// The beginning of a gzip member.
const GZIP_MAGIC: &[u8] = b"\x1f\x8b\x08";
/// The beginning of a Zstandard frame.
const ZSTD_MAGIC: &[u8] = b"\x28\xb5\x2f\xfd";
/// The beginning of the frame with the dictionary of all later frames.
const DICTIONARY_MAGIC: [u8; 4] = *b"\x5d\x2a\x4d\x18";
/// The beginning of a skippable frame, after its first byte.
const SKIPPABLE_MAGIC: &[u8] = b"\x2a\x4d\x18";
/// The length of its beginning and of the number that declares its length.
const SKIPPABLE_HEAD_BYTES: usize = 8;

/// A member that is being decompressed.
pub(super) enum Member {
    /// No member, before the first.
    Before(RawFile),
    /// An uncompressed file.
    Plain(RawFile),
    Gzip(Box<GzDecoder<RawFile>>),
    Zstd(ZstdFrame),
}

impl Member {
    fn raw(&self) -> &RawFile {
        match self {
            Self::Before(raw) | Self::Plain(raw) => raw,
            Self::Gzip(decoder) => decoder.get_ref(),
            Self::Zstd(frame) => &frame.raw,
        }
    }

    fn raw_mut(&mut self) -> &mut RawFile {
        match self {
            Self::Before(raw) | Self::Plain(raw) => raw,
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Zstd(frame) => &mut frame.raw,
        }
    }
}

impl Read for Member {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Before(_) => Ok(0),
            Self::Plain(raw) => raw.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Zstd(frame) => frame.read(buffer),
        }
    }
}

/// A frame of Zstandard. Its decoder is used again for the next one, because it has to digest the
/// dictionary.
pub(super) struct ZstdFrame {
    raw: RawFile,
    decoder: Decoder<'static>,
    is_ended: bool,
}

impl Read for ZstdFrame {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut output = OutBuffer::around(buffer);
        while !self.is_ended && output.pos() == 0 {
            let mut input = InBuffer::around(self.raw.fill_buf()?);
            if input.src.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let hint = self.decoder.run(&mut input, &mut output)?;
            let read = input.pos();
            self.raw.consume(read);
            self.is_ended = hint == 0;
        }
        Ok(output.pos())
    }
}

/// The members of a file, one after the other.
pub(super) struct Members {
    /// The text of the current member.
    pub(super) text: Rewindable<Member>,
    pub(super) form: Arc<MemberForm>,
    /// The offset of the current member in the file.
    pub(super) offset: u64,
    /// The number of bytes that are kept to search for the next record.
    max_kept: usize,
    window_log: u32,
    decoder: Option<Decoder<'static>>,
}

impl Members {
    /// Detects the compression of a file.
    pub(super) fn new(
        input: Box<dyn Read + Send>,
        max_kept: usize,
        window_log: u32,
    ) -> io::Result<Self> {
        let mut raw = Rewindable::new(input, max_kept);
        let start = raw.peek(ZSTD_MAGIC.len() + 2)?;
        let compression = match Compression::from_content(start) {
            Compression::None if is_skippable(start) => Compression::Zstd,
            known => known,
        };
        Ok(Self {
            text: Rewindable::new(Member::Before(raw), 0),
            form: Arc::new(MemberForm {
                compression,
                dictionary: None,
            }),
            offset: 0,
            max_kept,
            window_log,
            decoder: None,
        })
    }

    pub(super) fn compression(&self) -> Compression {
        self.form.compression
    }

    /// Returns the place of the current member for a message.
    pub(super) fn place(&self) -> String {
        let form = self.form.compression.name();
        format!("{form} member at byte {}", self.offset)
    }

    /// Returns the stored bytes of the member up to where it has been decompressed, unless they are
    /// too many.
    pub(super) fn stored(&self) -> Option<&[u8]> {
        self.text.inner.raw().since(self.offset)
    }

    /// Returns the number of stored bytes from the beginning of the member to where it has been
    /// decompressed.
    pub(super) fn stored_bytes(&self) -> u64 {
        self.text.inner.raw().position() - self.offset
    }

    /// Returns the error of the system that ended the reading, if there was one.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.text.inner.raw_mut().take_failure()
    }

    /// Goes to the next member.
    ///
    /// # Errors
    ///
    /// An error if the system fails to read, or if a dictionary is damaged.
    pub(super) fn advance(&mut self) -> io::Result<Advanced> {
        let mut raw = self.take_raw();
        let found = self.find_member(&mut raw);
        let found = found.map_err(|error| raw.take_failure().unwrap_or(error))?;
        self.text = match found {
            Advanced::Member => self.open(raw)?,
            Advanced::Garbage | Advanced::End => Rewindable::new(Member::Before(raw), 0),
        };
        Ok(found)
    }

    /// Skips everything up to the next member.
    fn find_member(&mut self, raw: &mut RawFile) -> io::Result<Advanced> {
        loop {
            // Zeros fill up a tape or a block.
            while raw.peek(1)?.starts_with(&[0]) {
                raw.consume(1);
            }
            raw.mark();
            self.offset = raw.position();
            let start = raw.peek(SKIPPABLE_HEAD_BYTES)?;
            if start.is_empty() {
                return Ok(Advanced::End);
            }
            if self.compression() == Compression::None || start.starts_with(self.magic()) {
                return Ok(Advanced::Member);
            }
            if self.compression() != Compression::Zstd || !is_skippable(start) {
                return Ok(Advanced::Garbage);
            }
            self.read_skippable(raw)?;
        }
    }

    /// Searches for the next member with records after the beginning of this one. Goes to the end
    /// if there is none.
    pub(super) fn search(&mut self) -> io::Result<()> {
        let (mut raw, magic) = (self.take_raw(), self.magic());
        loop {
            raw.seek(self.offset + 1);
            let found = raw.search(magic.len() - 1, |bytes| memmem::find(bytes, magic));
            if !found.map_err(|error| raw.take_failure().unwrap_or(error))? {
                self.text = Rewindable::new(Member::Before(raw), 0);
                return Ok(());
            }
            self.offset = raw.position();
            self.text = self.open(raw)?;
            let start = self.text.peek(head::VERSION.len());
            if start.is_ok_and(|start| start.starts_with(head::VERSION)) {
                return Ok(());
            }
            raw = self.take_raw();
            if let Some(failure) = raw.take_failure() {
                return Err(failure);
            }
        }
    }

    fn magic(&self) -> &'static [u8] {
        match self.compression() {
            Compression::Zstd => ZSTD_MAGIC,
            _ => GZIP_MAGIC,
        }
    }

    fn take_raw(&mut self) -> RawFile {
        let nothing: Box<dyn Read + Send> = Box::new(io::empty());
        let before = Rewindable::new(Member::Before(Rewindable::new(nothing, 0)), 0);
        match std::mem::replace(&mut self.text, before).inner {
            Member::Before(raw) | Member::Plain(raw) => raw,
            Member::Gzip(decoder) => decoder.into_inner(),
            Member::Zstd(frame) => {
                self.decoder = Some(frame.decoder);
                frame.raw
            }
        }
    }

    fn open(&mut self, raw: RawFile) -> io::Result<Rewindable<Member>> {
        let member = match self.compression() {
            Compression::Gzip => Member::Gzip(Box::new(GzDecoder::new(raw))),
            Compression::Zstd => {
                let mut decoder = self.decoder.take().map_or_else(Decoder::new, Ok)?;
                decoder.reinit()?;
                decoder.set_parameter(DParameter::WindowLogMax(self.window_log))?;
                Member::Zstd(ZstdFrame {
                    raw,
                    decoder,
                    is_ended: false,
                })
            }
            _ => Member::Plain(raw),
        };
        Ok(Rewindable::new(member, self.max_kept))
    }

    /// Reads a skippable frame. The first one of a file may be a dictionary.
    fn read_skippable(&mut self, raw: &mut RawFile) -> io::Result<()> {
        let start = raw.peek(SKIPPABLE_HEAD_BYTES)?.first_chunk();
        let head: [u8; SKIPPABLE_HEAD_BYTES] = *start.ok_or(io::ErrorKind::UnexpectedEof)?;
        let [magic @ .., a, b, c, d] = head;
        let length = u64::from(u32::from_le_bytes([a, b, c, d]));
        raw.consume(SKIPPABLE_HEAD_BYTES);
        if self.offset > 0 || magic != DICTIONARY_MAGIC {
            return raw.skip(length);
        }
        let max_bytes = self.max_kept as u64;
        let too_long = || io::Error::other("its dictionary is longer than --max-line");
        if length > max_bytes {
            return Err(too_long());
        }
        let mut dictionary = Vec::new();
        raw.take(length).read_to_end(&mut dictionary)?;
        if dictionary.len() as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let frame = [&head[..], &dictionary].concat();
        if dictionary.starts_with(ZSTD_MAGIC) {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(dictionary.as_slice())?;
            decoder.window_log_max(self.window_log)?;
            dictionary = read_bounded(decoder, max_bytes)?.ok_or_else(too_long)?;
        }
        self.decoder = Some(Decoder::with_dictionary(&dictionary)?);
        self.form = Arc::new(MemberForm {
            compression: self.form.compression,
            dictionary: Some((frame.into(), dictionary.into())),
        });
        Ok(())
    }
}

/// The next part of a file.
pub(super) enum Advanced {
    Member,
    /// Bytes that are no member.
    Garbage,
    /// The end of the file.
    End,
}

fn is_skippable(start: &[u8]) -> bool {
    matches!(start, [first, rest @ ..] if first >> 4 == 5 && rest.starts_with(SKIPPABLE_MAGIC))
}
