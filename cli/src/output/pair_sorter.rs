//! Sorting more pairs of documents than memory holds: sorted runs in temporary files, merged at the
//! end.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, Write};
use std::path::PathBuf;
use std::sync::Arc;

use itertools::Itertools;
use resemblance::{DocumentId, Error, Result};

use super::value::Value;
use resemblance::invariant::bug;

/// The number of runs of one level that are merged into one of the next, which bounds the number of
/// open files.
const RUNS_PER_LEVEL: usize = 16;
const BUFFER_BYTES: usize = 64 * 1024;

/// The approximate memory of a label besides its key: in the list, by its id, and while rows are
/// sorted.
const LABEL_BYTES: u64 = 144;

/// A document in a sorted result: by key in byte order, then documents without a key by number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DocumentLabel {
    is_without_key: bool,
    key: Arc<[u8]>,
    id: u64,
}

impl DocumentLabel {
    /// The label of a document with this id and, if it has one, this key.
    pub(crate) fn new(id: u64, key: Option<&[u8]>) -> Self {
        Self {
            is_without_key: key.is_none(),
            key: key.unwrap_or(&[]).into(),
            id,
        }
    }

    /// The document in a result.
    pub(crate) fn value(&self) -> Value<'_> {
        Value::Document {
            id: self.id,
            key: (!self.is_without_key).then_some(&*self.key),
        }
    }
}

/// Two documents, by what names them, and how near they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SortedPair<D> {
    pub(crate) a: D,
    pub(crate) b: D,
    pub(crate) similarity: Option<f64>,
    pub(crate) distance: Option<u32>,
}

impl<D> SortedPair<D> {
    /// Returns the same pair with other names of its documents.
    fn try_map<T, E>(self, mut name: impl FnMut(D) -> Result<T, E>) -> Result<SortedPair<T>, E> {
        Ok(SortedPair {
            a: name(self.a)?,
            b: name(self.b)?,
            similarity: self.similarity,
            distance: self.distance,
        })
    }
}

/// A pair of the output.
pub(crate) type LabelledPair = SortedPair<DocumentLabel>;

/// A pair of the input.
pub(crate) type UnsortedPair = SortedPair<DocumentId>;

/// A pair in memory, by the indexes of labels.
type HeldRow = SortedPair<u32>;

impl LabelledPair {
    /// The order of the documents.
    fn order(&self, other: &Self) -> Ordering {
        (&self.a, &self.b).cmp(&(&other.a, &other.b))
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let [a, b] = [&self.a, &self.b].map(|label| (label.is_without_key, &*label.key, label.id));
        let row = (a, b, self.similarity, self.distance);
        let written = bincode::encode_into_std_write(row, out, bincode::config::legacy());
        written.map(drop).map_err(io::Error::other)
    }

    /// `None` at the end of the file.
    fn read(input: &mut impl BufRead) -> io::Result<Option<Self>> {
        if input.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let read = bincode::decode_from_std_read(input, bincode::config::legacy());
        let (a, b, similarity, distance) = read.map_err(io::Error::other)?;
        let [a, b] = [a, b].map(|(is_without_key, key, id)| DocumentLabel {
            is_without_key,
            key,
            id,
        });
        Ok(Some(Self {
            a,
            b,
            similarity,
            distance,
        }))
    }
}

/// Returns the key of a document, if it has one.
type KeyOf = Box<dyn Fn(DocumentId) -> Result<Option<Vec<u8>>> + Send>;

/// Takes pairs in any order.
pub(crate) struct PairSorter {
    memory_bytes: u64,
    temp_dir: PathBuf,
    key_of: KeyOf,
    /// True if the lesser document of a pair is first; otherwise the given order is kept.
    orders_documents: bool,
    rows: HeldRows,
    held_bytes: u64,
    levels: Vec<Vec<File>>,
}

/// Rows in memory. In a list of pairs every document occurs several times: its label is here once.
#[derive(Default)]
struct HeldRows {
    rows: Vec<HeldRow>,
    labels: Vec<DocumentLabel>,
    /// The index of the label of each document.
    indexes: HashMap<u64, u32>,
}

impl HeldRows {
    /// Puts the labels in their order, and then the rows by these.
    fn sort(&mut self, orders_documents: bool) -> Result<()> {
        let mut order: Vec<u32> = (0..).take(self.labels.len()).collect();
        let label = |index: &u32| self.labels.get(*index as usize);
        order.sort_unstable_by(|a, b| label(a).cmp(&label(b)));
        let mut ranks = vec![0; order.len()];
        for (rank, index) in (0..).zip(&order) {
            if let Some(slot) = ranks.get_mut(*index as usize) {
                *slot = rank;
            }
        }
        let rank = |index: u32| {
            let rank = ranks.get(index as usize).copied();
            rank.ok_or_else(|| bug("a document of a pair has no label"))
        };
        for row in &mut self.rows {
            (row.a, row.b) = (rank(row.a)?, rank(row.b)?);
            if orders_documents && row.b < row.a {
                (row.a, row.b) = (row.b, row.a);
            }
        }
        self.rows.sort_unstable_by_key(|row| (row.a, row.b));
        self.labels.sort_unstable();
        self.indexes = HashMap::new();
        Ok(())
    }

    /// Returns the rows in order, once they are sorted.
    fn into_labelled(self) -> impl Iterator<Item = io::Result<LabelledPair>> {
        let Self { rows, labels, .. } = self;
        let label = move |index: u32| {
            let label = labels.get(index as usize).cloned();
            label.ok_or_else(|| io::Error::other("a document of a pair has no label"))
        };
        rows.into_iter().map(move |row| row.try_map(&label))
    }
}

impl PairSorter {
    /// Creates a sorter that writes to temporary files in `temp_dir` when it needs more than
    /// `memory_bytes`.
    pub(crate) fn new(
        memory_bytes: u64,
        temp_dir: PathBuf,
        key_of: impl Fn(DocumentId) -> Result<Option<Vec<u8>>> + Send + 'static,
    ) -> Self {
        Self {
            memory_bytes,
            temp_dir,
            key_of: Box::new(key_of),
            orders_documents: false,
            rows: HeldRows::default(),
            held_bytes: 0,
            levels: Vec::new(),
        }
    }

    /// Puts the lesser document of each pair first.
    pub(crate) fn ordering_documents(mut self) -> Self {
        self.orders_documents = true;
        self
    }

    /// Takes a pair.
    pub(crate) fn push(&mut self, pair: UnsortedPair) -> Result<()> {
        let row = pair.try_map(|id| self.label(id))?;
        self.held_bytes += size_of::<HeldRow>() as u64;
        self.rows.rows.push(row);
        if self.held_bytes >= self.memory_bytes {
            self.rows.sort(self.orders_documents)?;
            self.spill().map_err(|e| self.failure(e))?;
        }
        Ok(())
    }

    /// Returns the index of the label of a document.
    fn label(&mut self, id: DocumentId) -> Result<u32> {
        if let Some(index) = self.rows.indexes.get(&id.get()) {
            return Ok(*index);
        }
        let index = u32::try_from(self.rows.labels.len())
            .map_err(|_| bug("2^32 documents are sorted in memory"))?;
        let key = (self.key_of)(id)?;
        self.held_bytes += LABEL_BYTES + key.as_ref().map_or(0, |key| key.len() as u64);
        let label = DocumentLabel::new(id.get(), key.as_deref());
        self.rows.labels.push(label);
        self.rows.indexes.insert(id.get(), index);
        Ok(index)
    }

    /// The rows in order.
    pub(crate) fn finish(mut self) -> Result<SortedPairs> {
        self.rows.sort(self.orders_documents)?;
        let files = std::mem::take(&mut self.levels).into_iter().flatten();
        Ok(SortedPairs {
            rows: merged(files, self.rows),
            temp_dir: self.temp_dir,
        })
    }

    fn failure(&self, source: io::Error) -> Error {
        temporary(&self.temp_dir, source)
    }

    /// Writes the rows, which are sorted, to a file.
    fn spill(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        self.held_bytes = 0;
        let mut file = self.write(rows.into_labelled())?;
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
            // Merged immediately, so that a long sort never holds more files open than those of a
            // few levels.
            let full = std::mem::take(runs);
            file = self.write(merged(full.into_iter(), HeldRows::default()))?;
            level += 1;
        }
    }

    fn write(&self, rows: impl Iterator<Item = io::Result<LabelledPair>>) -> io::Result<File> {
        let file = tempfile::tempfile_in(&self.temp_dir)?;
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
        for row in rows {
            row?.write(&mut out)?;
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

/// Returns the rows of sorted files and sorted rows in memory, in order. An error precedes
/// everything that is left.
fn merged(files: impl Iterator<Item = File>, rows: HeldRows) -> Rows {
    let of_files = files.map(|file| {
        let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
        Box::new(std::iter::from_fn(move || {
            LabelledPair::read(&mut file).transpose()
        })) as Rows
    });
    let rows = Box::new(rows.into_labelled()) as Rows;
    let is_before = |a: &io::Result<LabelledPair>, b: &io::Result<LabelledPair>| match (a, b) {
        (Ok(a), Ok(b)) => a.order(b).is_lt(),
        (a, _) => a.is_err(),
    };
    Box::new(of_files.chain([rows]).kmerge_by(is_before))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(id: u64) -> Option<Vec<u8>> {
        // a fixed scramble of the number: keys of several lengths, every ninth without one
        let scrambled = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        (!id.is_multiple_of(9)).then(|| format!("{scrambled}").into_bytes())
    }

    /// Each document is in several pairs.
    fn pair(number: u64) -> UnsortedPair {
        UnsortedPair {
            a: DocumentId::new(number / 3),
            b: DocumentId::new(number % 3 * 1_000 + number / 3 + 1),
            similarity: number.is_multiple_of(2).then_some(number as f64 / 7.0),
            distance: number.is_multiple_of(3).then_some(number as u32),
        }
    }

    fn labelled(pair: UnsortedPair, orders_documents: bool) -> LabelledPair {
        let label = |id: DocumentId| DocumentLabel::new(id.get(), key_of(id.get()).as_deref());
        let (a, b) = (label(pair.a), label(pair.b));
        let (a, b) = if orders_documents && b < a {
            (b, a)
        } else {
            (a, b)
        };
        LabelledPair {
            a,
            b,
            similarity: pair.similarity,
            distance: pair.distance,
        }
    }

    type Key = Option<Vec<u8>>;

    fn fields(row: &LabelledPair) -> (Key, u64, Key, u64, Option<u64>, Option<u32>) {
        (
            (!row.a.is_without_key).then(|| row.a.key.to_vec()),
            row.a.id,
            (!row.b.is_without_key).then(|| row.b.key.to_vec()),
            row.b.id,
            row.similarity.map(f64::to_bits),
            row.distance,
        )
    }

    #[test]
    fn pair_sorter_returns_spilled_rows_sorted_and_whole() {
        // in memory; a few runs; more than 16 x 16 runs, which need a third level
        for memory_bytes in [u64::MAX, 100_000, 1_000] {
            rows_come_back_sorted_and_whole(memory_bytes, false);
            rows_come_back_sorted_and_whole(memory_bytes, true);
        }
    }

    fn rows_come_back_sorted_and_whole(memory_bytes: u64, orders_documents: bool) {
        let mut expected: Vec<LabelledPair> = (0..3000)
            .map(|number| labelled(pair(number), orders_documents))
            .collect();
        expected.sort_by(LabelledPair::order);
        let expected: Vec<_> = expected.iter().map(fields).collect();
        let key_of = |id: DocumentId| Ok(key_of(id.get()));
        let mut sorter = PairSorter::new(memory_bytes, std::env::temp_dir(), key_of);
        if orders_documents {
            sorter = sorter.ordering_documents();
        }
        for number in 0..3000 {
            sorter.push(pair(number)).unwrap();
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

    #[test]
    fn pair_sorter_orders_keys_by_bytes_and_missing_keys_last() {
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
    fn pair_sorter_reports_a_missing_folder() {
        let mut sorter = PairSorter::new(0, PathBuf::from("/nowhere/at/all"), |_| Ok(None));
        assert!(matches!(sorter.push(pair(1)), Err(Error::Io { .. })));
    }
}
