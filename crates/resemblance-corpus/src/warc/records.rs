//! Reads the records of a file, and finds the next one after a damaged one.

use std::io::{self, BufRead};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use super::head::{self, MessageHead};
use super::member::{Advanced, Member, Members};
use super::page::{self, RecordPart};
use super::rewindable::Rewindable;
use crate::archived_record::{ArchivedRecord, RecordPlace, StoredRecord};
use crate::bad_document::BadDocument;
use crate::error::CorpusError;
use crate::input::Compression;
use crate::line_source::CountedReader;
use crate::reading::{Opening, Source, SourceReading};
use crate::record::CorpusRecord;
use crate::settings::SourceKind;

/// The maximum length of the head of a record.
const MAX_HEAD_BYTES: usize = 1 << 20;
/// The number of bytes that are expected to contain the head of a record.
const HEAD_BYTES: usize = 4096;
/// The number of bytes after a record that show whether it ends there: two line ends and a version.
const AFTER_BYTES: usize = 16;

/// The records of a file.
struct WarcRecords {
    members: Members,
    /// The maximum length of a block, and of a page.
    max_bytes: u64,
    /// True if records are read to be copied, those without a page too.
    is_copied: bool,
    name: PathBuf,
    source: usize,
    /// The number of the last record that was read, whether or not it is passed over.
    number: u64,
    /// The offset of that record in the text of its member.
    start: u64,
    /// The length of an uncompressed file, if it is known.
    plain_bytes: Option<u64>,
}

/// Opens a WARC file.
pub(crate) fn open(
    opening: &Opening<'_>,
    reading: &mut SourceReading,
) -> Result<Box<dyn Source>, CorpusError> {
    let &Opening {
        source, settings, ..
    } = opening;
    let name = source.name().into_owned();
    let failed = |error: io::Error| CorpusError::read(&name, false, &error);
    let input = Box::new(CountedReader::new(source.open()?, opening.bytes_read));
    let max_bytes = settings.max_line_bytes;
    // On 32-bit machines, memory is smaller than this.
    let max_kept = usize::try_from(max_bytes.saturating_add(2 * MAX_HEAD_BYTES as u64));
    let max_kept = max_kept.unwrap_or(usize::MAX);
    let window_log = Compression::zstd_window_log(settings.window_bytes);
    let members = Members::new(input, max_kept, window_log).map_err(failed)?;
    match members.compression() {
        Compression::None | Compression::Gzip | Compression::Zstd => {}
        other => {
            let problem = BadDocument::new(format!(
                "WARC in {}, expected gzip, Zstandard or none",
                other.name()
            ));
            return Ok(opening.problem(problem.with_advice("compress each record with gzip")));
        }
    }
    reading.count_file(source.kind);
    let is_plain = members.compression() == Compression::None;
    Ok(Box::new(WarcRecords {
        members,
        max_bytes,
        is_copied: opening.is_whole,
        source: opening.number,
        number: 0,
        start: 0,
        plain_bytes: source.size_bytes().filter(|_| is_plain),
        name,
    }))
}

impl Source for WarcRecords {
    fn next(&mut self, reading: &mut SourceReading) -> Result<Option<CorpusRecord>, CorpusError> {
        loop {
            self.number += 1;
            let found = self.next_record();
            let failed = |error| CorpusError::read(&self.name, !self.is_plain(), &error);
            let record = match found.map_err(failed)? {
                None => return Ok(None),
                Some(Ok((record, None))) => record,
                Some(Ok((record, Some(kind)))) => {
                    reading.pass_over(kind);
                    if self.is_copied {
                        return Ok(Some(record));
                    }
                    continue;
                }
                Some(Err(problem)) => CorpusRecord::problem(self.source, self.number, problem),
            };
            reading.count_document(SourceKind::Warc, &record);
            return Ok(Some(record));
        }
    }
}

/// Why a record cannot be read.
enum RecordFault {
    /// The record is wrong. The next one may begin at or after this offset in the text of the member.
    Wrong { reason: String, from: u64 },
    /// The record ends as it declares, but it is not a document.
    Bad(BadDocument),
    /// The member cannot be decompressed, or the system fails to read it.
    Damaged(io::Error),
}

impl From<io::Error> for RecordFault {
    fn from(error: io::Error) -> Self {
        Self::Damaged(error)
    }
}

/// A record that has been cut out of its file, with its type if it is not a page.
type FoundRecord = (CorpusRecord, Option<String>);

impl WarcRecords {
    /// Returns the next record, or nothing after the last.
    ///
    /// # Errors
    ///
    /// An error if the system fails to read the file.
    fn next_record(&mut self) -> io::Result<Option<Result<FoundRecord, BadDocument>>> {
        loop {
            let mut is_found = false;
            let bad = match self.read_record() {
                Ok(Some(found)) => return Ok(Some(Ok(found))),
                Ok(None) => match self.members.advance()? {
                    Advanced::Member => continue,
                    Advanced::End => return Ok(None),
                    Advanced::Garbage => {
                        BadDocument::new(format!("bytes other than a {}", self.members.place()))
                    }
                },
                Err(RecordFault::Bad(bad)) => return Ok(Some(Err(bad))),
                Err(RecordFault::Wrong { reason, from }) => {
                    let text = &mut self.members.text;
                    text.seek(from);
                    let found = text.search(head::START_BYTES, head::find_start);
                    // Wrong bytes may also show where the member ends.
                    is_found = found.unwrap_or(false) || self.is_plain();
                    self.place().named(BadDocument::new(reason))
                }
                Err(RecordFault::Damaged(error)) => {
                    let member = self.members.place();
                    BadDocument::new(format!("the {member} is damaged or cut off: {error}"))
                }
            };
            if let Some(failure) = self.members.take_failure() {
                return Err(failure);
            }
            if !is_found {
                self.members.search()?;
            }
            return Ok(Some(Err(bad)));
        }
    }

    /// Reads a record, or returns nothing at the end of the member.
    fn read_record(&mut self) -> Result<Option<FoundRecord>, RecordFault> {
        let text = &mut self.members.text;
        while let [b'\r' | b'\n', ..] = text.peek(1)? {
            text.consume(1);
        }
        text.mark();
        self.start = text.position();
        let start = text.peek(head::START_BYTES)?;
        if start.is_empty() {
            return Ok(None);
        }
        let from = self.start + 1;
        let wrong = |reason: &str| RecordFault::Wrong {
            reason: reason.to_owned(),
            from,
        };
        if !head::is_first_line(start) {
            return Err(wrong("it does not begin like a WARC record"));
        }
        let head = read_head(text)?.ok_or_else(|| wrong("its head has no end"))?;
        let bytes = text.rest().get(..head.length).unwrap_or(&[]).to_vec();
        if head::find_start(bytes.get(1..).unwrap_or(&[])).is_some() {
            return Err(wrong("another record begins in its head"));
        }
        text.consume(head.length);
        let length = head.value("content-length").and_then(|it| it.parse().ok());
        let unknown = || wrong("its Content-Length is missing or is not a number");
        let block_bytes = self.block_bytes(length.ok_or_else(unknown)?)?;
        let end = self.find_end(block_bytes)?;
        let found = self.found(&head, bytes, block_bytes, &end);
        self.members.text.consume(block_bytes + end.blank_bytes);
        found.map(Some)
    }

    /// Returns the record with this head, whose block is next.
    fn found(
        &self,
        head: &MessageHead,
        mut bytes: Vec<u8>,
        block_bytes: usize,
        end: &RecordEnd,
    ) -> Result<FoundRecord, RecordFault> {
        let place = RecordPlace {
            length: end.stored_bytes,
            ..self.place()
        };
        let named = |bad| RecordFault::Bad(place.named(bad));
        let rest = self.members.text.rest();
        let block = rest.get(..block_bytes).unwrap_or(&[]);
        let part = page::part(head, block).map_err(named)?;
        let stored = match self.is_copied {
            true => {
                let whole = rest.get(..block_bytes + end.blank_bytes).unwrap_or(block);
                Some(self.stored([&bytes, whole], end)?)
            }
            false => None,
        };
        let head_bytes = bytes.len();
        let (http_bytes, passed_over) = match part {
            RecordPart::PassedOver(kind) => (0, Some(kind)),
            RecordPart::Page(http_bytes) => {
                let decoded = page::decoded_body(head, block, http_bytes, self.max_bytes);
                let body = decoded.map_err(named)?;
                bytes.reserve_exact(http_bytes + body.len());
                bytes.extend_from_slice(block.get(..http_bytes).unwrap_or(&[]));
                bytes.extend_from_slice(&body);
                (http_bytes, None)
            }
        };
        let archived = ArchivedRecord {
            place,
            head_bytes,
            http_bytes,
            is_page: passed_over.is_none(),
            stored,
        };
        let record = CorpusRecord {
            archived: Some(Arc::new(archived)),
            ..CorpusRecord::new(self.source, self.number, bytes)
        };
        Ok((record, passed_over))
    }

    /// Returns the bytes that store a record and nothing else: its member, or a new one if others
    /// are in it.
    fn stored(&self, plain: [&[u8]; 2], end: &RecordEnd) -> io::Result<StoredRecord> {
        let form = &self.members.form;
        let is_alone = end.stored_bytes.is_some() && !self.is_plain();
        let bytes = match self.members.stored().filter(|_| is_alone) {
            Some(member) => Bytes::copy_from_slice(member),
            None => form.pack(plain.concat())?.into(),
        };
        Ok(StoredRecord {
            bytes,
            form: Arc::clone(form),
        })
    }

    /// Returns the declared length of a block. Skips one that is too long to be read.
    fn block_bytes(&mut self, length: u64) -> Result<usize, RecordFault> {
        let max_bytes = self.max_bytes;
        let text = &mut self.members.text;
        if length <= max_bytes
            && let Ok(length) = usize::try_from(length)
        {
            return Ok(length);
        }
        // A page may contain records, which are not to be read in place of it.
        let end = text.position().saturating_add(length);
        if self.plain_bytes.is_none_or(|bytes| end <= bytes) {
            text.skip(length)?;
        }
        Err(RecordFault::Wrong {
            reason: format!(
                "it declares {length} bytes, which exceeds {max_bytes}, the limit of --max-line"
            ),
            from: text.position(),
        })
    }

    /// Checks that the record ends after its block, which is then in memory.
    fn find_end(&mut self, block_bytes: usize) -> Result<RecordEnd, RecordFault> {
        let text = &mut self.members.text;
        let from = text.position();
        let wanted = block_bytes + AFTER_BYTES;
        let rest = text.peek(wanted)?;
        let is_cut = rest.len() < wanted;
        let found = rest.len();
        let Some(after) = rest.get(block_bytes..) else {
            let reason = format!("it ends after {found} bytes, and declares {block_bytes}");
            return Err(RecordFault::Wrong { reason, from });
        };
        let blank = |byte: &&u8| matches!(byte, b'\r' | b'\n');
        let blank_bytes = after.iter().take(4).take_while(blank).count();
        let next = after.get(blank_bytes..).unwrap_or(&[]);
        let is_end = is_cut && next.is_empty();
        // Other bytes may follow a record that is whole.
        let block = rest.get(..block_bytes).unwrap_or(&[]);
        let is_whole = || after.starts_with(b"\r\n\r\n") && head::find_start(block).is_none();
        if !is_end && !head::is_first_line(next) && !is_whole() {
            let reason = format!("it declares {block_bytes} bytes, and does not end there");
            return Err(RecordFault::Wrong { reason, from });
        }
        let plain_bytes = (from - self.start) + (block_bytes + blank_bytes) as u64;
        let stored_bytes = match self.is_plain() {
            true => Some(plain_bytes),
            false => (is_end && self.start == 0).then(|| self.members.stored_bytes()),
        };
        Ok(RecordEnd {
            blank_bytes,
            stored_bytes,
        })
    }

    fn is_plain(&self) -> bool {
        self.members.compression() == Compression::None
    }

    fn place(&self) -> RecordPlace {
        let (offset, within) = match self.is_plain() {
            true => (self.start, 0),
            false => (self.members.offset, self.start),
        };
        RecordPlace {
            offset,
            length: None,
            within,
        }
    }
}

/// How a record ends.
struct RecordEnd {
    /// The number of bytes of line ends after its block.
    blank_bytes: usize,
    /// The number of bytes that store the record and nothing else.
    stored_bytes: Option<u64>,
}

/// Returns the head of a record, or nothing if it has no end.
fn read_head(text: &mut Rewindable<Member>) -> io::Result<Option<MessageHead>> {
    let mut wanted = HEAD_BYTES;
    loop {
        let start = text.peek(wanted)?;
        let found = start.len();
        let start = start.get(..MAX_HEAD_BYTES).unwrap_or(start);
        let parsed = MessageHead::parse(start);
        if parsed.is_some() || found < wanted || wanted >= MAX_HEAD_BYTES {
            return Ok(parsed);
        }
        wanted *= 2;
    }
}
