//! A list of bits.

use resemblance::Result;

use crate::bug::{at, at_mut};

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

/// The word of a bit; beyond what memory can hold there is none.
fn word_of(index: u64) -> usize {
    usize::try_from(index / WORD_BITS).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_kept_in_order() {
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
