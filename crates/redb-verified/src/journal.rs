//! The encoding of the journal. While a writer has the file open, the journal follows the engine's
//! pages. It holds the pages of small commits side by side until they are written to their places.
//!
//! A disk writes whole sectors, and a crash may leave any subset of the sectors that were not
//! synced. Every sector therefore contains the number of its record and a checksum. After a crash,
//! a missing part of a record is a sector of another record, and a sector that belongs to no record
//! is damage.

use std::collections::BTreeMap;
use std::io::Result;

use xxhash_rust::xxh3::xxh3_64;

use crate::page_layout::{PAGE_BYTES, array, copy, u32_at, u64_at};

/// The length of the note, which follows the sealed head in the same sector.
pub(crate) const NOTE_BYTES: usize = 32;

/// The location of the journal and the number of its first record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note {
    /// The offset at which the engine's pages end and the journal begins, or 0 without a journal.
    pub(super) offset: u64,
    /// The length of the journal.
    pub(super) bytes: u64,
    /// Record numbers ascend by one, beginning with this number. No two attempts to write a record
    /// have the same number.
    pub(super) number: u64,
}

impl Note {
    pub(crate) fn encode(self) -> [u8; NOTE_BYTES] {
        let numbers = [self.offset, self.bytes, self.number].map(u64::to_le_bytes);
        let checksum = xxh3_64(numbers.as_flattened()).to_le_bytes();
        let mut bytes = [0; NOTE_BYTES];
        copy(&mut bytes, &[numbers.as_flattened(), &checksum].concat());
        bytes
    }

    /// Parses a note. Zeros are the note of a file that never had a journal. Returns `None` if the
    /// bytes are not a note.
    pub(crate) fn parse(bytes: &[u8; NOTE_BYTES]) -> Option<Self> {
        let note = Self {
            offset: u64_at(bytes, 0)?,
            bytes: u64_at(bytes, 8)?,
            number: u64_at(bytes, 16)?,
        };
        let is_never = bytes.iter().all(|byte| *byte == 0);
        let is_of_a_page = note.offset.is_multiple_of(PAGE_BYTES as u64);
        (is_never || is_of_a_page && note.encode() == *bytes).then_some(note)
    }
}

/// A page without its trailing zeros.
pub(super) type JournaledPage = Box<[u8]>;

const SECTOR_BYTES: usize = 512;

/// The number of payload bytes in a sector. The record's number, the sector's position, the number
/// of sectors and the checksum follow them.
const PAYLOAD_BYTES: usize = SECTOR_BYTES - 24;
const CHECKED_BYTES: usize = SECTOR_BYTES - 8;

/// The length of a page's number and length.
const PAGE_HEAD_BYTES: usize = 10;

/// Encodes pages as a record. The record is a whole number of pages long; sectors after its end are
/// zeros.
pub(crate) fn encode_record(number: u64, pages: &BTreeMap<u64, JournaledPage>) -> Vec<u8> {
    let lengths = pages.values().map(|page| PAGE_HEAD_BYTES + page.len());
    let mut stream = Vec::with_capacity(4 + lengths.sum::<usize>());
    // A record has fewer pages than bytes, and the length of a page fits 16 bits.
    stream.extend((pages.len() as u32).to_le_bytes());
    for (place, page) in pages {
        stream.extend(place.to_le_bytes());
        stream.extend((page.len() as u16).to_le_bytes());
        stream.extend(page);
    }
    let count = stream.len().div_ceil(PAYLOAD_BYTES);
    let bytes = (count * SECTOR_BYTES).next_multiple_of(PAGE_BYTES);
    let mut record = Vec::with_capacity(bytes);
    for (place, payload) in stream.chunks(PAYLOAD_BYTES).enumerate() {
        push_sector(&mut record, payload, number, [place, count]);
    }
    record.resize(bytes, 0);
    record
}

fn push_sector(out: &mut Vec<u8>, payload: &[u8], number: u64, place_and_count: [usize; 2]) {
    let first = out.len();
    out.extend(payload);
    out.resize(first + PAYLOAD_BYTES, 0);
    out.extend(number.to_le_bytes());
    for value in place_and_count {
        out.extend((value as u32).to_le_bytes());
    }
    let checksum = xxh3_64(out.get(first..).unwrap_or(&[]));
    out.extend(checksum.to_le_bytes());
}

/// Encodes the mark that publishes a record. The page behind a synced record begins with it until
/// the next record replaces it, so publishing dirties no page that the next sync does not write
/// anyway.
pub(crate) fn encode_mark(number: u64) -> Vec<u8> {
    let mut page = Vec::with_capacity(PAGE_BYTES);
    push_sector(&mut page, &[], number, [0, 0]);
    page.resize(PAGE_BYTES, 0);
    page
}

/// A parsed sector.
enum Sector<'a> {
    /// Zeros: nothing was written here.
    Empty,
    Damaged,
    Of {
        number: u64,
        place: usize,
        count: usize,
        payload: &'a [u8],
    },
}

impl<'a> Sector<'a> {
    fn parse(bytes: &'a [u8]) -> Self {
        if bytes.iter().all(|byte| *byte == 0) {
            return Self::Empty;
        }
        Self::of(bytes).unwrap_or(Self::Damaged)
    }

    fn of(bytes: &'a [u8]) -> Option<Self> {
        let sector = Self::Of {
            number: u64_at(bytes, PAYLOAD_BYTES)?,
            place: usize::try_from(u32_at(bytes, PAYLOAD_BYTES + 8)?).ok()?,
            count: usize::try_from(u32_at(bytes, PAYLOAD_BYTES + 12)?).ok()?,
            payload: bytes.get(..PAYLOAD_BYTES)?,
        };
        (xxh3_64(bytes.get(..CHECKED_BYTES)?) == u64_at(bytes, CHECKED_BYTES)?).then_some(sector)
    }
}

/// The result of looking for a record at one position of a journal.
enum FoundRecord {
    /// The payload of the whole record with the expected number, and its length in the journal.
    Record(Vec<u8>, u64),
    /// The record was never written, or a crash has left a part of it.
    Nothing,
    /// Damage at this byte of the journal.
    Damage(u64),
}

/// Records of a journal that were read one after the other.
#[derive(Debug, Default)]
pub(super) struct ReadRecords {
    /// The newest version of each page.
    pub(super) pages: BTreeMap<u64, JournaledPage>,
    /// The byte of the journal after the last record.
    pub(super) end: u64,
    /// The number of the record after the last one.
    pub(super) next_number: u64,
}

impl ReadRecords {
    /// Returns no records. The first one begins at the byte `at` and has the number `number`.
    pub(super) fn before(at: u64, number: u64) -> Self {
        Self {
            pages: BTreeMap::new(),
            end: at,
            next_number: number,
        }
    }

    fn add(&mut self, pages: Vec<(u64, JournaledPage)>, length: u64) {
        self.pages.extend(pages);
        self.end += length;
        self.next_number += 1;
    }
}

/// The contents of a journal.
#[derive(Debug, Default)]
pub(crate) struct JournalRecords {
    pub(super) read: ReadRecords,
    /// The byte at which the journal is damaged. Nothing after it can be read.
    pub(super) damage: Option<u64>,
}

/// Reads the records of a journal of some bytes. `first` is the number of its first record.
pub(crate) fn read_records(
    bytes: u64,
    first: u64,
    read: &dyn Fn(u64, &mut [u8]) -> Result<()>,
) -> Result<JournalRecords> {
    let mut records = ReadRecords::before(0, first);
    let damage = loop {
        match read_record(records.end, bytes, records.next_number, read)? {
            FoundRecord::Nothing => {
                // A record is begun only after those before it are synced. If other records follow
                // it, it was complete.
                let number = records.next_number;
                let is_behind = has_record_behind(records.end, bytes, number, read)?;
                break is_behind.then_some(records.end);
            }
            FoundRecord::Damage(place) => break Some(place),
            FoundRecord::Record(stream, length) => match pages_of(&stream) {
                Some(pages) => records.add(pages, length),
                None => break Some(records.end),
            },
        }
    };
    Ok(JournalRecords {
        read: records,
        damage,
    })
}

/// Reads the published records of a journal of `bytes`, those that are followed by their mark or by
/// a later record. The first one has the number `first` and begins at the byte `at`. Returns `None`
/// if one of them is incomplete: it is damaged, or the writer has emptied the journal meanwhile.
///
/// A reader that does not know the journal yet, `is_new`, also looks for records behind those that
/// it has found.
pub(crate) fn read_published_records(
    at: u64,
    bytes: u64,
    first: u64,
    is_new: bool,
    read: &dyn Fn(u64, &mut [u8]) -> Result<()>,
) -> Result<Option<ReadRecords>> {
    let mut records = ReadRecords::before(at, first);
    let mut searched_behind = None;
    loop {
        let (end, number) = (records.end, records.next_number);
        match is_published(end, bytes, number, read)? {
            Some(true) => {
                let FoundRecord::Record(stream, length) = read_record(end, bytes, number, read)?
                else {
                    return Ok(None);
                };
                let Some(pages) = pages_of(&stream) else {
                    return Ok(None);
                };
                records.add(pages, length);
            }
            Some(false) if !is_new || !has_record_behind(end, bytes, number, read)? => {
                return Ok(Some(records));
            }
            // Records that were written since this one was looked for, unless it is still missing.
            Some(false) if searched_behind != Some(end) => searched_behind = Some(end),
            _ => return Ok(None),
        }
    }
}

/// Returns true if the record with this number begins at a byte of the journal and is published, or
/// `None` if a sector that decides it is damaged or being written.
fn is_published(
    at: u64,
    bytes: u64,
    number: u64,
    read: &dyn Fn(u64, &mut [u8]) -> Result<()>,
) -> Result<Option<bool>> {
    let label_at = |at: u64| -> Result<Option<(u64, u64)>> {
        if at + SECTOR_BYTES as u64 > bytes {
            return Ok(Some((0, 0)));
        }
        let mut sector = [0; SECTOR_BYTES];
        read(at, &mut sector)?;
        Ok(match Sector::parse(&sector) {
            Sector::Empty => Some((0, 0)),
            Sector::Damaged => None,
            Sector::Of { number, count, .. } => Some((number, count as u64)),
        })
    };
    let Some((found, count)) = label_at(at)? else {
        return Ok(None);
    };
    if found != number {
        return Ok(Some(false));
    }
    let length = (count * SECTOR_BYTES as u64).next_multiple_of(PAGE_BYTES as u64);
    let behind = label_at(at + length)?;
    Ok(behind.map(|(behind, _)| behind >= number))
}

/// The records after the published ones of a journal.
pub(super) struct UnpublishedRecords {
    pub(super) read: ReadRecords,
    /// True if the writer ended while it wrote another record.
    pub(super) has_part: bool,
}

/// Reads the complete records that begin at a byte, of which the first has the number `first`. A
/// writer ended before it could publish them.
pub(crate) fn read_unpublished_records(
    at: u64,
    bytes: u64,
    first: u64,
    read: &dyn Fn(u64, &mut [u8]) -> Result<()>,
) -> Result<UnpublishedRecords> {
    let mut records = UnpublishedRecords {
        read: ReadRecords::before(at, first),
        has_part: false,
    };
    while records.read.end + SECTOR_BYTES as u64 <= bytes {
        let ReadRecords {
            end, next_number, ..
        } = records.read;
        let mut sector = [0; SECTOR_BYTES];
        read(end, &mut sector)?;
        records.has_part = match Sector::parse(&sector) {
            Sector::Of { number, .. } => number >= next_number,
            Sector::Damaged => true,
            Sector::Empty => false,
        };
        if !records.has_part {
            break;
        }
        let FoundRecord::Record(stream, length) = read_record(end, bytes, next_number, read)?
        else {
            break;
        };
        let Some(pages) = pages_of(&stream) else {
            break;
        };
        records.read.add(pages, length);
        records.has_part = false;
    }
    Ok(records)
}

/// Returns true if a sector at or after some byte of a journal belongs to a later record than
/// `number`, or is the mark of this one.
fn has_record_behind(
    at: u64,
    bytes: u64,
    number: u64,
    read: &dyn Fn(u64, &mut [u8]) -> Result<()>,
) -> Result<bool> {
    let mut page = [0; PAGE_BYTES];
    for offset in (at..bytes).step_by(PAGE_BYTES) {
        let length =
            usize::try_from(bytes - offset).map_or(PAGE_BYTES, |left| left.min(PAGE_BYTES));
        let (part, _) = page.split_at_mut(length);
        read(offset, part)?;
        let is_later = |sector: &[u8]| match Sector::parse(sector) {
            Sector::Of {
                number: found,
                count,
                ..
            } => found > number || found == number && count == 0,
            _ => false,
        };
        if part.chunks_exact(SECTOR_BYTES).any(is_later) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn read_record(
    at: u64,
    bytes: u64,
    number: u64,
    read: &dyn Fn(u64, &mut [u8]) -> Result<()>,
) -> Result<FoundRecord> {
    let left = bytes.saturating_sub(at);
    if left < SECTOR_BYTES as u64 {
        return Ok(FoundRecord::Nothing);
    }
    let mut sector = [0; SECTOR_BYTES];
    read(at, &mut sector)?;
    let count = match Sector::parse(&sector) {
        Sector::Damaged => return Ok(FoundRecord::Damage(at)),
        Sector::Of {
            number: found,
            place,
            count,
            ..
        } if found == number => {
            let is_possible = (count as u64) <= left / SECTOR_BYTES as u64;
            if place != 0 || count == 0 || !is_possible {
                return Ok(FoundRecord::Damage(at));
            }
            count
        }
        _ => return Ok(FoundRecord::Nothing),
    };
    let mut record = vec![0; count * SECTOR_BYTES];
    read(at, &mut record)?;
    let mut stream = Vec::with_capacity(count * PAYLOAD_BYTES);
    let mut is_whole = true;
    for (index, sector) in record.chunks_exact(SECTOR_BYTES).enumerate() {
        let damage = FoundRecord::Damage(at + (index * SECTOR_BYTES) as u64);
        match Sector::parse(sector) {
            Sector::Damaged => return Ok(damage),
            Sector::Of {
                number: found,
                place,
                count: stated,
                payload,
            } if found == number => {
                if (place, stated) != (index, count) {
                    return Ok(damage);
                }
                stream.extend(payload);
            }
            _ => is_whole = false,
        }
    }
    let length = (record.len() as u64).next_multiple_of(PAGE_BYTES as u64);
    Ok(match is_whole {
        true => FoundRecord::Record(stream, length),
        false => FoundRecord::Nothing,
    })
}

/// Returns the pages of a record, or `None` if its bytes are not valid.
fn pages_of(stream: &[u8]) -> Option<Vec<(u64, JournaledPage)>> {
    let count = u32_at(stream, 0)?;
    let mut pages = Vec::new();
    let mut at = 4;
    for _ in 0..count {
        let page = u64_at(stream, at)?;
        let length = usize::from(u16::from_le_bytes(array(stream, at + 8)?));
        at += PAGE_HEAD_BYTES;
        let end = at + length;
        pages.push((page, stream.get(at..end)?.into()));
        at = end;
        if length > PAGE_BYTES {
            return None;
        }
    }
    Some(pages)
}

/// Cuts the trailing zeros off a page, in whole parts.
pub(crate) fn trimmed(page: &[u8]) -> JournaledPage {
    // Not `all`: the processor compares many bytes at once if the code examines every byte.
    let is_zeros = |part: &&[u8]| part.iter().fold(0, |bits, byte| bits | byte) == 0;
    let zeros = page.rchunks(64).take_while(is_zeros);
    let zeros: usize = zeros.map(<[u8]>::len).sum();
    let (kept, _) = page.split_at(page.len() - zeros);
    kept.into()
}
