//! Reads the records of a file, and finds the next one after a damaged one.

use std::io::{self, BufRead};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use super::head::{self, MessageHead, ParsedHead};
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
/// The number of bytes that are searched at once.
const SEARCHED_BYTES: usize = 64 << 10;

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
            let is_compressed = self.members.compression() != Compression::None;
            let found = self.next_record();
            let found = found.map_err(|e| CorpusError::read(&self.name, is_compressed, &e))?;
            let Some(found) = found else {
                return Ok(None);
            };
            self.number += 1;
            let record = match found {
                Ok(FoundRecord {
                    bytes,
                    archived,
                    passed_over,
                }) => {
                    let record = CorpusRecord {
                        archived: Some(Arc::new(archived)),
                        ..CorpusRecord::new(self.source, self.number, bytes)
                    };
                    match passed_over {
                        None => record,
                        Some(kind) => {
                            reading.pass_over(kind);
                            if self.is_copied {
                                return Ok(Some(record));
                            }
                            continue;
                        }
                    }
                }
                Err(problem) => CorpusRecord::problem(self.source, self.number, problem),
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
    /// The member cannot be decompressed, or the system fails to read it.
    Damaged(io::Error),
}

impl From<io::Error> for RecordFault {
    fn from(error: io::Error) -> Self {
        Self::Damaged(error)
    }
}

/// A record that has been cut out of its file.
struct FoundRecord {
    /// Its head, and for a page the head of HTTP and the decoded body.
    bytes: Vec<u8>,
    archived: ArchivedRecord,
    /// The type of a record that is not a page.
    passed_over: Option<String>,
}

/// A record, or a description of its fault.
type RecordResult = Result<FoundRecord, BadDocument>;

impl WarcRecords {
    /// Returns the next record, or nothing after the last.
    ///
    /// # Errors
    ///
    /// An error if the system fails to read the file.
    fn next_record(&mut self) -> io::Result<Option<RecordResult>> {
        loop {
            let reason = match self.read_record() {
                Ok(Some(record)) => return Ok(Some(record)),
                Ok(None) => match self.members.advance()? {
                    Advanced::Member => continue,
                    Advanced::End => return Ok(None),
                    Advanced::Garbage => {
                        let offset = self.members.offset;
                        self.members.search()?;
                        let form = self.members.compression().name();
                        format!("bytes other than a {form} member at byte {offset}")
                    }
                },
                Err(RecordFault::Wrong { reason, from }) => {
                    let bad = self.place().named(BadDocument::new(reason));
                    self.members.text.seek(from);
                    let is_found = find_record(&mut self.members.text);
                    if let Some(failure) = self.members.take_failure() {
                        return Err(failure);
                    }
                    // Wrong bytes may also show where the member ends.
                    if !is_found.unwrap_or(false) && self.members.compression() != Compression::None
                    {
                        self.members.search()?;
                    }
                    return Ok(Some(Err(bad)));
                }
                Err(RecordFault::Damaged(error)) => {
                    if let Some(failure) = self.members.take_failure() {
                        return Err(failure);
                    }
                    let (form, offset) = (self.members.compression().name(), self.members.offset);
                    self.members.search()?;
                    format!("the {form} member at byte {offset} is damaged or cut off: {error}")
                }
            };
            return Ok(Some(Err(BadDocument::new(reason))));
        }
    }

    /// Reads a record, or returns nothing at the end of the member.
    fn read_record(&mut self) -> Result<Option<RecordResult>, RecordFault> {
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
        let wrong = |reason: &str, from: u64| RecordFault::Wrong {
            reason: reason.to_owned(),
            from,
        };
        if !head::is_first_line(start) {
            return Err(wrong(
                "it does not begin like a WARC record",
                self.start + 1,
            ));
        }
        let parsed = read_head(text)?;
        let parsed = parsed.ok_or_else(|| wrong("its head has no end", self.start + 1))?;
        let head = text.rest().get(1..parsed.length).unwrap_or(&[]);
        if head::find_start(head).is_some() {
            return Err(wrong("another record begins in its head", self.start + 1));
        }
        let head_bytes = text.rest().get(..parsed.length).unwrap_or(&[]).to_vec();
        text.consume(parsed.length);
        let length = parsed.head.value("content-length");
        let length: Option<u64> = length.and_then(|length| length.parse().ok());
        let length = length.ok_or_else(|| {
            wrong(
                "its Content-Length is missing or is not a number",
                self.start + 1,
            )
        })?;
        let block_bytes = self.block_bytes(length)?;
        let end = self.find_end(block_bytes)?;
        let place = RecordPlace {
            length: end.stored_bytes,
            ..self.place()
        };
        let found = self.found(&parsed.head, head_bytes, block_bytes, &end, place)?;
        self.members.text.consume(block_bytes + end.blank_bytes);
        Ok(Some(found.map_err(|bad| place.named(bad))))
    }

    /// Returns the record whose block is next.
    fn found(
        &self,
        head: &MessageHead,
        mut bytes: Vec<u8>,
        block_bytes: usize,
        end: &RecordEnd,
        place: RecordPlace,
    ) -> io::Result<RecordResult> {
        let rest = self.members.text.rest();
        let block = rest.get(..block_bytes).unwrap_or(&[]);
        let part = match page::part(head, block) {
            Ok(part) => part,
            Err(bad) => return Ok(Err(bad)),
        };
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
                let decoded = match page::decoded_body(head, block, http_bytes, self.max_bytes) {
                    Ok(decoded) => decoded,
                    Err(bad) => return Ok(Err(bad)),
                };
                bytes.reserve_exact(http_bytes + decoded.len());
                bytes.extend_from_slice(block.get(..http_bytes).unwrap_or(&[]));
                bytes.extend_from_slice(&decoded);
                (http_bytes, None)
            }
        };
        Ok(Ok(FoundRecord {
            bytes,
            archived: ArchivedRecord {
                place,
                head_bytes,
                http_bytes,
                is_page: passed_over.is_none(),
                stored,
            },
            passed_over,
        }))
    }

    /// Returns the bytes that store a record and nothing else: its member, or a new one if others
    /// are in it.
    fn stored(&self, plain: [&[u8]; 2], end: &RecordEnd) -> io::Result<StoredRecord> {
        let form = &self.members.form;
        let is_alone = end.stored_bytes.is_some() && form.compression != Compression::None;
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
        let is_plain = self.members.compression() == Compression::None;
        let plain_bytes = (from - self.start) + (block_bytes + blank_bytes) as u64;
        let stored_bytes = match is_plain {
            true => Some(plain_bytes),
            false => (is_end && self.start == 0).then(|| self.members.stored_bytes()),
        };
        Ok(RecordEnd {
            blank_bytes,
            stored_bytes,
        })
    }

    fn place(&self) -> RecordPlace {
        let (offset, within) = match self.members.compression() {
            Compression::None => (self.start, 0),
            _ => (self.members.offset, self.start),
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
fn read_head(text: &mut Rewindable<Member>) -> io::Result<Option<ParsedHead>> {
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

/// Goes to the next record of a member. Returns false if there is none.
fn find_record(text: &mut Rewindable<Member>) -> io::Result<bool> {
    loop {
        let available = text.peek(SEARCHED_BYTES)?;
        let is_end = available.len() < SEARCHED_BYTES;
        if let Some(index) = head::find_start(available) {
            text.consume(index);
            return Ok(true);
        }
        // The last bytes may be the beginning of one.
        let kept = if is_end { 0 } else { head::START_BYTES };
        let length = available.len() - kept;
        text.consume(length);
        text.mark();
        if is_end {
            return Ok(false);
        }
    }
}
