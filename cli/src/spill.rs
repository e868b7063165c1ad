//! Sorting more rows than fit into memory: sorted runs in temporary files, merged at the end.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::PathBuf;
use std::vec;

use super::failure::{Failure, Result};

/// So many runs of one level become one of the next: bounds the open files.
const RUNS_A_LEVEL: usize = 16;
const BUFFER_BYTES: usize = 64 * 1024;

/// A document in a sorted result: by key in byte order, then documents without a key by number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Label {
    is_without_key: bool,
    key: Box<[u8]>,
    id: u64,
}

impl Label {
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

/// Two documents and what is known of them together; sorted by the documents.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) a: Label,
    pub(crate) b: Label,
    pub(crate) similarity: Option<f64>,
    pub(crate) distance: Option<u32>,
}

impl Row {
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

fn read_label(is_without_key: bool, input: &mut impl Read) -> io::Result<Label> {
    let id = u64::from_le_bytes(array(input)?);
    let length = u64::from_le_bytes(array(input)?);
    let mut key = Vec::new();
    if input.take(length).read_to_end(&mut key)? as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Label {
        is_without_key,
        key: key.into(),
        id,
    })
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Row {}

impl PartialOrd for Row {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Row {
    fn cmp(&self, other: &Self) -> Ordering {
        self.a.cmp(&other.a).then_with(|| self.b.cmp(&other.b))
    }
}

/// Collects rows in any order.
pub(crate) struct Sorter {
    memory_bytes: u64,
    temp_dir: PathBuf,
    rows: Vec<Row>,
    held_bytes: u64,
    levels: Vec<Vec<File>>,
}

impl Sorter {
    pub(crate) fn new(memory_bytes: u64, temp_dir: PathBuf) -> Self {
        Self {
            memory_bytes,
            temp_dir,
            rows: Vec::new(),
            held_bytes: 0,
            levels: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, row: Row) -> Result<()> {
        self.held_bytes += row.memory_bytes();
        self.rows.push(row);
        if self.held_bytes >= self.memory_bytes {
            self.spill().map_err(|e| self.failure(&e))?;
        }
        Ok(())
    }

    /// The rows in order.
    pub(crate) fn finish(mut self) -> Result<Sorted> {
        self.rows.sort_unstable();
        let files = std::mem::take(&mut self.levels).into_iter().flatten();
        let merge = Merge::new(files, std::mem::take(&mut self.rows).into_iter());
        Ok(Sorted {
            merge: merge.map_err(|e| self.failure(&e))?,
            temp_dir: self.temp_dir,
        })
    }

    fn failure(&self, error: &io::Error) -> Failure {
        temporary(&self.temp_dir, error)
    }

    fn spill(&mut self) -> io::Result<()> {
        self.rows.sort_unstable();
        let mut file = self.write(self.rows.iter().map(Ok))?;
        self.rows.clear();
        self.held_bytes = 0;
        let mut level = 0;
        loop {
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
            let Some(runs) = self.levels.get_mut(level) else {
                return Ok(());
            };
            runs.push(file);
            if runs.len() < RUNS_A_LEVEL {
                return Ok(());
            }
            let full = std::mem::take(runs);
            file = self.write(Merge::new(full.into_iter(), Vec::new().into_iter())?)?;
            level += 1;
        }
    }

    fn write<R: std::borrow::Borrow<Row>>(
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

fn temporary(dir: &std::path::Path, error: &io::Error) -> Failure {
    Failure::io(format!("temporary file in {}", dir.display()), error)
}

/// All rows in order.
pub(crate) struct Sorted {
    merge: Merge,
    temp_dir: PathBuf,
}

impl Iterator for Sorted {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.merge.next()?;
        Some(row.map_err(|e| temporary(&self.temp_dir, &e)))
    }
}

struct Merge {
    heads: BinaryHeap<Reverse<Head>>,
}

/// The next row of a run; ordered by the row.
struct Head {
    row: Row,
    rest: Run,
}

enum Run {
    File(BufReader<File>),
    Memory(vec::IntoIter<Row>),
}

impl Run {
    fn next(&mut self) -> io::Result<Option<Row>> {
        match self {
            Self::File(file) => Row::read(file),
            Self::Memory(rows) => Ok(rows.next()),
        }
    }
}

impl Merge {
    fn new(files: impl Iterator<Item = File>, rows: vec::IntoIter<Row>) -> io::Result<Self> {
        let files = files.map(|file| Run::File(BufReader::with_capacity(BUFFER_BYTES, file)));
        let mut heads = BinaryHeap::new();
        for mut rest in files.chain([Run::Memory(rows)]) {
            if let Some(row) = rest.next()? {
                heads.push(Reverse(Head { row, rest }));
            }
        }
        Ok(Self { heads })
    }
}

impl Iterator for Merge {
    type Item = io::Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut top = self.heads.peek_mut()?;
        match top.0.rest.next() {
            Ok(Some(row)) => Some(Ok(std::mem::replace(&mut top.0.row, row))),
            Ok(None) => Some(Ok(PeekMut::pop(top).0.row)),
            Err(error) => {
                PeekMut::pop(top);
                Some(Err(error))
            }
        }
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.row == other.row
    }
}

impl Eq for Head {}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        self.row.cmp(&other.row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u64) -> Row {
        // a fixed scramble of the number: keys of several lengths, every ninth without one
        let scrambled = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let key = format!("{scrambled}");
        let other = format!("k\u{0}{number}");
        Row {
            a: Label::new(
                number,
                (!number.is_multiple_of(9)).then_some(key.as_bytes()),
            ),
            b: Label::new(number + 1, Some(other.as_bytes())),
            similarity: number.is_multiple_of(2).then_some(number as f64 / 7.0),
            distance: number.is_multiple_of(3).then_some(number as u32),
        }
    }

    type Key = Option<Vec<u8>>;

    fn fields(row: &Row) -> (Key, u64, Key, Option<u64>, Option<u32>) {
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
        let mut expected: Vec<Row> = (0..3000).map(row).collect();
        expected.sort();
        let expected: Vec<_> = expected.iter().map(fields).collect();
        // in memory; a few runs; more than 16 x 16 runs, which need a third level
        for memory_bytes in [u64::MAX, 100_000, 1_000] {
            let mut sorter = Sorter::new(memory_bytes, std::env::temp_dir());
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
            let sorted: Vec<Row> = sorter.finish().unwrap().map(Result::unwrap).collect();
            assert_eq!(sorted.iter().map(fields).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn keys_sort_by_bytes_and_documents_without_a_key_last() {
        let label = |key: Option<&[u8]>, id| Label::new(id, key);
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
        let mut sorter = Sorter::new(0, PathBuf::from("/nowhere/at/all"));
        assert!(matches!(sorter.push(row(1)), Err(Failure::Io(_))));
    }
}
