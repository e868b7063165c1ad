//! Finds the documents of a pass that have no candidates, before the pass reaches them.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;

use crate::build::{Sorter, code_bits, merge_lanes};
use crate::error::{Error, Result};
use crate::format::Posting;
use crate::index::ChunkIter;
use crate::invariant::{OrBug, at_mut};
use crate::options::StoreOptions;
use crate::state::{SharedContext, document_codes};
use crate::types::Watch;
use resemblance_sketch::lanes::LaneCode;
use resemblance_sketch::schema::Schema;
use resemblance_sketch::sketch::Signature;

/// Sorts the band codes of documents, to find those that share no band with any other. Such a
/// document is never compared, so a pass need not keep it: see
/// [`KeptDocuments::look_ahead`](crate::KeptDocuments::look_ahead).
///
/// Codes beyond the memory given are in a temporary file without a name: 8 bytes for each band of
/// each document, 16 if codes are wider than 40 bits.
///
/// ```
/// # use resemblance::{KeptDocuments, MinHash, Schema, StoreOptions, Text};
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// # let kept = KeptDocuments::create(&std::env::temp_dir(), schema, &StoreOptions::new())?;
/// # let sketcher = kept.schema().sketcher();
/// let mut ahead = kept.look_ahead(1 << 20)?.expect("bands alone decide");
/// for (number, text) in ["to be or not to be", "to have and have not"].iter().enumerate() {
///     ahead.insert(number as u64, &sketcher.text(text)?)?;
/// }
/// assert!(ahead.finish()?.contains(1));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "documents are known once it is finished"]
pub struct LookAhead {
    context: SharedContext,
    sorter: Sorter,
    codes: Vec<LaneCode>,
    lone: LoneDocuments,
}

/// The documents that share no band with any other, by their numbers; one bit for each number.
///
/// ```
/// use resemblance::LoneDocuments;
/// // Nothing is known of documents that nobody looked at.
/// assert!(!LoneDocuments::default().contains(7));
/// ```
#[derive(Clone, Debug, Default)]
pub struct LoneDocuments {
    words: Vec<u64>,
    /// One above the greatest number.
    end: u64,
}

impl fmt::Debug for LookAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LookAhead")
            .field("end", &self.lone.end)
            .finish_non_exhaustive()
    }
}

impl LookAhead {
    /// Begins without documents. `folder` is for the temporary file.
    pub(super) fn new(
        folder: &Path,
        schema: &Schema,
        memory_bytes: u64,
        threads: NonZeroUsize,
    ) -> Result<Self> {
        let bits = code_bits(schema)?;
        Ok(Self {
            context: SharedContext::new(folder.into(), schema.clone(), StoreOptions::new())?,
            sorter: Sorter::new(&bits, false, memory_bytes, threads.get(), folder),
            codes: Vec::new(),
            lone: LoneDocuments::default(),
        })
    }

    /// Adds a document.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] with the parameter `number` unless it is greater than all before;
    /// [`Error::SignatureMismatch`] for a signature that does not fit the schema; [`Error::Io`] if
    /// the temporary file cannot grow.
    pub fn insert(&mut self, number: u64, signature: &Signature) -> Result<()> {
        if number < self.lone.end {
            let expected = format!("at least {}", self.lone.end);
            return Err(Error::invalid("number", number, expected));
        }
        self.context.check_signature(signature)?;
        document_codes(&self.context, None, signature, &mut self.codes)?;
        // A document without codes is never found, but callers may count such documents.
        self.lone.push(number, !self.codes.is_empty())?;
        self.sorter.push(number, &self.codes)
    }

    /// Returns the documents that share no band with any other.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the temporary file cannot be read or grow.
    pub fn finish(mut self) -> Result<LoneDocuments> {
        self.sorter.finish(&mut Watch::new("looking ahead"))?;
        let (lanes, threads) = (self.sorter.lanes()?, self.sorter.threads());
        let lone = &mut self.lone;
        merge_lanes(&self.sorter.sorted(), lanes, threads, |merged| {
            for lane in 0..lanes {
                let mut before: Option<Posting> = None;
                for posting in ChunkIter::new(merged.lane(lane)?) {
                    let posting = posting?;
                    if let Some(before) = before.filter(|before| before.code == posting.code) {
                        lone.clear(before.id)?;
                        lone.clear(posting.id)?;
                    }
                    before = Some(posting);
                }
            }
            Ok(())
        })?;
        Ok(self.lone)
    }
}

impl LoneDocuments {
    /// Returns true if the document was looked at, and shares no band with any other.
    #[must_use]
    pub fn contains(&self, number: u64) -> bool {
        let word = word_of(number).ok().and_then(|index| self.words.get(index));
        word.is_some_and(|word| word >> (number % u64::from(u64::BITS)) & 1 == 1)
    }

    fn push(&mut self, number: u64, is_lone: bool) -> Result<()> {
        self.end = number.checked_add(1).or_bug("a number below 2^64 - 1")?;
        if is_lone {
            let index = word_of(number)?;
            self.words.resize(index + 1, 0);
            *at_mut(&mut self.words, index)? |= 1 << (number % u64::from(u64::BITS));
        }
        Ok(())
    }

    fn clear(&mut self, number: u64) -> Result<()> {
        let word = at_mut(&mut self.words, word_of(number)?)?;
        *word &= !(1 << (number % u64::from(u64::BITS)));
        Ok(())
    }
}

fn word_of(number: u64) -> Result<usize> {
    let index = usize::try_from(number / u64::from(u64::BITS)).ok();
    index.or_bug("as many documents as memory has bits")
}
