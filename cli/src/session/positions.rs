//! Per-document data of a corpus by document number: a bit, or the document's origin.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::PathBuf;

use bincode::config::{Configuration, Fixint, LittleEndian};
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Result};
use resemblance::invariant::{at, at_mut, bug};

/// Numbers of a fixed width.
const CODING: Configuration<LittleEndian, Fixint> = bincode::config::legacy();
const RECORD_BYTES: u64 = 5 * size_of::<u64>() as u64;

/// Documents that follow each other: lines of a file, or files of a folder. Each is a fixed number
/// of sources and lines after the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PositionRun {
    first: u64,
    source: u64,
    line: u64,
    steps: [u64; 2],
}

impl PositionRun {
    /// Source and line of a document of this run.
    fn position(&self, number: u64) -> (u64, u64) {
        let nth = number - self.first;
        let [sources, lines] = self.steps;
        (self.source + nth * sources, self.line + nth * lines)
    }
}

/// The positions of all documents. A run ends where a line is blank or bad or a file ends: the
/// list of them is in a temporary file, for every second line may be blank.
pub(crate) struct DocumentPositions {
    temp_dir: PathBuf,
    count: u64,
    /// The newest, which is not in the file yet.
    current: Option<PositionRun>,
    file: Option<BufWriter<File>>,
    runs: u64,
}

impl DocumentPositions {
    pub(crate) fn new(temp_dir: PathBuf) -> Self {
        Self {
            temp_dir,
            count: 0,
            current: None,
            file: None,
            runs: 0,
        }
    }

    /// Notes the place of the next document.
    pub(crate) fn push(&mut self, source: usize, line: u64) -> Result<()> {
        let (number, source) = (self.count, source as u64);
        self.count += 1;
        if let Some(run) = &mut self.current {
            if number == run.first + 1 {
                let steps = [source.checked_sub(run.source), line.checked_sub(run.line)];
                if let [Some(sources), Some(lines)] = steps
                    && sources + lines == 1
                {
                    run.steps = [sources, lines];
                    return Ok(());
                }
            } else if run.position(number) == (source, line) {
                return Ok(());
            }
        }
        let next = PositionRun {
            first: number,
            source,
            line,
            steps: [0, 0],
        };
        match self.current.replace(next) {
            Some(full) => self.write(full).map_err(|e| self.failure(&e)),
            None => Ok(()),
        }
    }

    fn write(&mut self, run: PositionRun) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file = tempfile::tempfile_in(&self.temp_dir)?;
                self.file.insert(BufWriter::new(file))
            }
        };
        bincode::serde::encode_into_std_write(run, file, CODING).map_err(io::Error::other)?;
        self.runs += 1;
        Ok(())
    }

    /// Source and line of a document.
    pub(crate) fn get(&mut self, number: u64) -> Result<(usize, u64)> {
        let found = self.find(number).map_err(|e| self.failure(&e))?;
        let run = found.ok_or_else(|| bug("a document was taken from nowhere"))?;
        let (source, line) = run.position(number);
        let source = usize::try_from(source).map_err(|_| bug("more sources than memory holds"))?;
        Ok((source, line))
    }

    fn find(&mut self, number: u64) -> io::Result<Option<PositionRun>> {
        if let Some(current) = self.current
            && current.first <= number
        {
            return Ok(Some(current));
        }
        let Some(file) = &mut self.file else {
            return Ok(None);
        };
        file.flush()?;
        let runs = file.get_mut();
        let mut found = None;
        let (mut low, mut high) = (0, self.runs);
        while low < high {
            let middle = low.midpoint(high);
            runs.seek(SeekFrom::Start(middle * RECORD_BYTES))?;
            let run: PositionRun =
                bincode::serde::decode_from_std_read(runs, CODING).map_err(io::Error::other)?;
            if run.first <= number {
                (low, found) = (middle + 1, Some(run));
            } else {
                high = middle;
            }
        }
        runs.seek(SeekFrom::End(0))?;
        Ok(found)
    }

    fn failure(&self, error: &io::Error) -> Failure {
        Failure::io(
            format!("temporary file in {}", self.temp_dir.display()),
            error,
        )
    }
}

const WORD_BITS: u64 = u64::BITS as u64;

/// One bit for each document, in 64-bit words.
#[derive(Clone, Debug, Default)]
pub(crate) struct BitList {
    words: Vec<u64>,
    length: u64,
}

impl BitList {
    /// Adds a bit at the end.
    pub(crate) fn push(&mut self, bit: bool) {
        let mask = u64::from(bit) << (self.length % WORD_BITS);
        match self.words.last_mut() {
            Some(word) if !self.length.is_multiple_of(WORD_BITS) => *word |= mask,
            _ => self.words.push(mask),
        }
        self.length += 1;
    }

    /// Clears a bit that was pushed.
    pub(crate) fn clear(&mut self, index: u64) -> Result<()> {
        *at_mut(&mut self.words, word_of(index))? &= !(1 << (index % WORD_BITS));
        Ok(())
    }

    /// Sets a bit that was pushed.
    pub(crate) fn set(&mut self, index: u64) -> Result<()> {
        *at_mut(&mut self.words, word_of(index))? |= 1 << (index % WORD_BITS);
        Ok(())
    }

    /// The bits that are set in either of two lists of the same length.
    pub(crate) fn or(&self, other: &Self) -> Self {
        let words = self.words.iter().zip(&other.words);
        Self {
            words: words.map(|(a, b)| a | b).collect(),
            length: self.length,
        }
    }

    /// A bit that was pushed.
    pub(crate) fn get(&self, index: u64) -> Result<bool> {
        let word = at(&self.words, word_of(index))?;
        Ok(word >> (index % WORD_BITS) & 1 == 1)
    }

    /// The number of bits.
    pub(crate) fn len(&self) -> u64 {
        self.length
    }
}

/// Returns the word of a bit, which is beyond all words where memory cannot hold it.
fn word_of(index: u64) -> usize {
    usize::try_from(index / WORD_BITS).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_round_trip_across_any_gap() {
        // Lines one after the other, gaps, new files, folders of texts, and a line after none.
        let mut expected = Vec::new();
        for line in 1..50 {
            expected.push((0, line));
        }
        expected.extend((60..300).step_by(2).map(|line| (0, line)));
        expected.extend((1..40).map(|source| (source, 0)));
        expected.extend([
            (41, 0),
            (43, 0),
            (44, 7),
            (44, 8),
            (44, 9),
            (45, 9),
            (46, 1),
        ]);
        let mut positions = DocumentPositions::new(std::env::temp_dir());
        for (index, (source, line)) in (0..).zip(&expected) {
            positions.push(*source, *line).unwrap();
            if index % 50 == 3 {
                assert_eq!(
                    positions.get(index / 2).unwrap(),
                    expected[index as usize / 2]
                );
            }
        }
        for (number, position) in (0..).zip(&expected) {
            assert_eq!(
                positions.get(number).unwrap(),
                *position,
                "document {number}"
            );
        }
        assert!(positions.runs > 100);
    }

    #[test]
    fn positions_of_a_corpus_without_gaps_need_no_file() {
        let mut positions = DocumentPositions::new(PathBuf::from("/nowhere/at/all"));
        for line in 1..1_000 {
            positions.push(0, line).unwrap();
        }
        assert!(positions.file.is_none());
        assert_eq!(positions.push(0, 2_000).unwrap_err().exit_code(), 4);
    }

    #[test]
    fn positions_keep_bits_in_order() {
        let mut bits = BitList::default();
        for number in 0..200_u64 {
            bits.push(number % 3 == 0);
        }
        bits.clear(66).unwrap();
        bits.clear(69).unwrap();
        bits.set(69).unwrap();
        assert_eq!(bits.len(), 200);
        for number in 0..200 {
            let expected = number % 3 == 0 && number != 66;
            assert_eq!(bits.get(number).unwrap(), expected, "{number}");
        }
        assert!(bits.get(1_000_000).is_err());
        assert!(bits.clear(u64::MAX).is_err());
    }
}
