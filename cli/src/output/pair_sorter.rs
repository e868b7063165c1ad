//! Sorting more pairs of documents than memory holds: sorted runs in temporary files, merged at the
//! end.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::PathBuf;

use itertools::Itertools;
use resemblance::{Error, Result};

/// As many runs of one level become one of the next, which bounds the number of open files.
const RUNS_PER_LEVEL: usize = 16;
const BUFFER_BYTES: usize = 64 * 1024;

/// A document in a sorted result: by key in byte order, then documents without a key by number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DocumentLabel {
    is_without_key: bool,
    key: Box<[u8]>,
    id: u64,
}

impl DocumentLabel {
    /// The label of a document with this id and, if it has one, this key.
    pub(crate) fn new(id: u64, key: Option<&[u8]>) -> Self {
        Self {
            is_without_key: key.is_none(),
            key: key.unwrap_or_default().into(),
            id,
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn key(&self) -> Option<&[u8]> {
        (!self.is_without_key).then_some(&*self.key)
    }
}

/// Two documents and how near they are.
#[derive(Clone, Debug)]
pub(crate) struct LabelledPair {
    pub(crate) a: DocumentLabel,
    pub(crate) b: DocumentLabel,
    pub(crate) similarity: Option<f64>,
    pub(crate) distance: Option<u32>,
}

impl LabelledPair {
    /// The order of the documents.
    fn order(&self, other: &Self) -> Ordering {
        (&self.a, &self.b).cmp(&(&other.a, &other.b))
    }

    fn memory_bytes(&self) -> u64 {
        // the boxes' own overhead counted as 16 bytes each
        (size_of::<Self>() + self.a.key.len() + self.b.key.len() + 32) as u64
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        for label in [&self.a, &self.b] {
            out.write_all(&[u8::from(label.is_without_key)])?;
            out.write_all(&label.id.to_le_bytes())?;
            out.write_all(&(label.key.len() as u64).to_le_bytes())?;
            out.write_all(&label.key)?;
        }
        out.write_all(&[
            u8::from(self.similarity.is_some()),
            u8::from(self.distance.is_some()),
        ])?;
        out.write_all(&self.similarity.unwrap_or_default().to_le_bytes())?;
        out.write_all(&self.distance.unwrap_or_default().to_le_bytes())
    }

    /// `None` at the end of the file.
    fn read(input: &mut impl Read) -> io::Result<Option<Self>> {
        let mut first = [0];
        if input.read(&mut first)? == 0 {
            return Ok(None);
        }
        let a = read_label(first != [0], input)?;
        let is_without_key = array::<1>(input)? != [0];
        let b = read_label(is_without_key, input)?;
        let [has_similarity, has_distance] = array(input)?;
        let similarity = f64::from_le_bytes(array(input)?);
        let distance = u32::from_le_bytes(array(input)?);
        Ok(Some(Self {
            a,
            b,
            similarity: (has_similarity != 0).then_some(similarity),
            distance: (has_distance != 0).then_some(distance),
        }))
    }
}

fn array<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_label(is_without_key: bool, input: &mut impl Read) -> io::Result<DocumentLabel> {
    let id = u64::from_le_bytes(array(input)?);
    let length = u64::from_le_bytes(array(input)?);
    let mut key = Vec::new();
    if input.take(length).read_to_end(&mut key)? as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(DocumentLabel {
        is_without_key,
        key: key.into(),
        id,
    })
}

/// Takes pairs in any order.
pub(crate) struct PairSorter {
    memory_bytes: u64,
    temp_dir: PathBuf,
    rows: Vec<LabelledPair>,
    held_bytes: u64,
    levels: Vec<Vec<File>>,
}

impl PairSorter {
    /// What takes more than `memory_bytes` goes to temporary files in `temp_dir`.
    pub(crate) fn new(memory_bytes: u64, temp_dir: PathBuf) -> Self {
        Self {
            memory_bytes,
            temp_dir,
            rows: Vec::new(),
            held_bytes: 0,
            levels: Vec::new(),
        }
    }

    /// Takes a pair.
    pub(crate) fn push(&mut self, row: LabelledPair) -> Result<()> {
        self.held_bytes += row.memory_bytes();
        self.rows.push(row);
        if self.held_bytes >= self.memory_bytes {
            self.spill().map_err(|e| self.failure(e))?;
        }
        Ok(())
    }

    /// The rows in order.
    pub(crate) fn finish(mut self) -> Result<SortedPairs> {
        self.rows.sort_unstable_by(LabelledPair::order);
        let files = std::mem::take(&mut self.levels).into_iter().flatten();
        Ok(SortedPairs {
            rows: merged(files, self.rows),
            temp_dir: self.temp_dir,
        })
    }

    fn failure(&self, source: io::Error) -> Error {
        temporary(&self.temp_dir, source)
    }

    fn spill(&mut self) -> io::Result<()> {
        self.rows.sort_unstable_by(LabelledPair::order);
        let mut file = self.write(self.rows.iter().map(Ok))?;
        self.rows.clear();
        self.held_bytes = 0;
        let mut level = 0;
        loop {
            let Some(runs) = self.levels.get_mut(level) else {
                self.levels.push(Vec::new());
                continue;
            };
            runs.push(file);
            if runs.len() < RUNS_PER_LEVEL {
                return Ok(());
            }
            // Merged at once, so that a long sort never holds more files open than a few levels have.
            let full = std::mem::take(runs);
            file = self.write(merged(full.into_iter(), Vec::new()))?;
            level += 1;
        }
    }

    fn write<R: std::borrow::Borrow<LabelledPair>>(
        &self,
        rows: impl Iterator<Item = io::Result<R>>,
    ) -> io::Result<File> {
        let file = tempfile::tempfile_in(&self.temp_dir)?;
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
        for row in rows {
            row?.borrow().write(&mut out)?;
        }
        let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok(file)
    }
}

fn temporary(dir: &std::path::Path, source: io::Error) -> Error {
    Error::Io {
        action: format!("temporary file in {}", dir.display()),
        source,
    }
}

/// All rows in order.
pub(crate) struct SortedPairs {
    rows: Rows,
    temp_dir: PathBuf,
}

impl Iterator for SortedPairs {
    type Item = Result<LabelledPair>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.rows.next()?;
        Some(row.map_err(|e| temporary(&self.temp_dir, e)))
    }
}

type Rows = Box<dyn Iterator<Item = io::Result<LabelledPair>> + Send>;

/// The rows of sorted files and sorted rows in memory, in order. An error comes before all that is left.
fn merged(files: impl Iterator<Item = File>, rows: Vec<LabelledPair>) -> Rows {
    let files = files.map(|file| {
        let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
        Box::new(std::iter::from_fn(move || {
            LabelledPair::read(&mut file).transpose()
        })) as Rows
    });
    let rows = Box::new(rows.into_iter().map(Ok)) as Rows;
    let is_before = |a: &io::Result<LabelledPair>, b: &io::Result<LabelledPair>| match (a, b) {
        (Ok(a), Ok(b)) => a.order(b).is_lt(),
        (a, _) => a.is_err(),
    };
    Box::new(files.chain([rows]).kmerge_by(is_before))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u64) -> LabelledPair {
        // a fixed scramble of the number: keys of several lengths, every ninth without one
        let scrambled = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let key = format!("{scrambled}");
        let other = format!("k\u{0}{number}");
        LabelledPair {
            a: DocumentLabel::new(
                number,
                (!number.is_multiple_of(9)).then_some(key.as_bytes()),
            ),
            b: DocumentLabel::new(number + 1, Some(other.as_bytes())),
            similarity: number.is_multiple_of(2).then_some(number as f64 / 7.0),
            distance: number.is_multiple_of(3).then_some(number as u32),
        }
    }

    type Key = Option<Vec<u8>>;

    fn fields(row: &LabelledPair) -> (Key, u64, Key, Option<u64>, Option<u32>) {
        (
            row.a.key().map(<[u8]>::to_vec),
            row.a.id(),
            row.b.key().map(<[u8]>::to_vec),
            row.similarity.map(f64::to_bits),
            row.distance,
        )
    }

    #[test]
    fn spilled_rows_come_back_sorted_and_whole() {
        let mut expected: Vec<LabelledPair> = (0..3000).map(row).collect();
        expected.sort_by(LabelledPair::order);
        let expected: Vec<_> = expected.iter().map(fields).collect();
        // in memory; a few runs; more than 16 x 16 runs, which need a third level
        for memory_bytes in [u64::MAX, 100_000, 1_000] {
            let mut sorter = PairSorter::new(memory_bytes, std::env::temp_dir());
            for number in 0..3000 {
                sorter.push(row(number)).unwrap();
            }
            let spilled = sorter.levels.len();
            assert_eq!(
                spilled,
                match memory_bytes {
                    u64::MAX => 0,
                    100_000 => 1,
                    _ => 3,
                }
            );
            let sorted: Vec<LabelledPair> = sorter.finish().unwrap().map(Result::unwrap).collect();
            assert_eq!(sorted.iter().map(fields).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn keys_sort_by_bytes_and_documents_without_a_key_last() {
        let label = |key: Option<&[u8]>, id| DocumentLabel::new(id, key);
        let sorted = [
            label(Some(b""), 9),
            label(Some(b"A"), 8),
            label(Some(b"a"), 7),
            label(Some(b"a\x00"), 6),
            label(Some(b"\xff"), 5),
            label(None, 2),
            label(None, 10),
        ];
        assert!(sorted.is_sorted());
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        let mut sorter = PairSorter::new(0, PathBuf::from("/nowhere/at/all"));
        assert!(matches!(sorter.push(row(1)), Err(Error::Io { .. })));
    }
}
