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

/// The documents that share no band with any other, by their numbers. Takes one bit for each document, and 16 bytes for
/// each gap between their numbers.
///
/// ```
/// use resemblance::LoneDocuments;
/// // Nothing is known of documents that nobody looked at.
/// assert!(!LoneDocuments::default().contains(7));
/// ```
#[derive(Clone, Debug, Default)]
pub struct LoneDocuments {
    /// A bit for each document, by position.
    words: Vec<u64>,
    /// Ascending.
    spans: Vec<NumberSpan>,
    /// The number of documents.
    documents: u64,
    /// The greatest number.
    last: Option<u64>,
}

/// Documents with consecutive numbers, up to the next span.
#[derive(Clone, Copy, Debug)]
struct NumberSpan {
    first: u64,
    /// The number of documents before it.
    position: u64,
}

impl fmt::Debug for LookAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LookAhead")
            .field("documents", &self.lone.documents)
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
        if let Some(last) = self.lone.last.filter(|last| number <= *last) {
            let expected = format!("more than {last}");
            return Err(Error::invalid("number", number, expected));
        }
        self.context.check_signature(signature)?;
        document_codes(&self.context, None, signature, &mut self.codes)?;
        // A document without codes is never found, but callers may count such documents.
        let position = self.lone.push(number, !self.codes.is_empty())?;
        self.sorter.push(position, &self.codes)
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
        let Some(position) = self.position_of(number) else {
            return false;
        };
        let word = word_of(position)
            .ok()
            .and_then(|index| self.words.get(index));
        word.is_some_and(|word| word & bit_of(position) != 0)
    }

    fn position_of(&self, number: u64) -> Option<u64> {
        let next = self.spans.partition_point(|span| span.first <= number);
        let span = self.spans.get(next.checked_sub(1)?)?;
        let end = self
            .spans
            .get(next)
            .map_or(self.documents, |next| next.position);
        let position = span.position.checked_add(number - span.first)?;
        (position < end).then_some(position)
    }

    /// Adds a document with a greater number than all before, and returns its position.
    fn push(&mut self, number: u64, is_lone: bool) -> Result<u64> {
        let position = self.documents;
        if self.last.and_then(|last| last.checked_add(1)) != Some(number) {
            self.spans.push(NumberSpan {
                first: number,
                position,
            });
        }
        let index = word_of(position)?;
        self.words.resize(index + 1, 0);
        if is_lone {
            *at_mut(&mut self.words, index)? |= bit_of(position);
        }
        self.documents += 1;
        self.last = Some(number);
        Ok(position)
    }

    fn clear(&mut self, position: u64) -> Result<()> {
        *at_mut(&mut self.words, word_of(position)?)? &= !bit_of(position);
        Ok(())
    }
}

fn word_of(position: u64) -> Result<usize> {
    let index = usize::try_from(position / u64::from(u64::BITS)).ok();
    index.or_bug("as many documents as memory has bits")
}

fn bit_of(position: u64) -> u64 {
    1 << (position % u64::from(u64::BITS))
}

#[cfg(test)]
mod tests {
    use crate::{Bounds, Document, KeptDocuments, MinHash, Schema, StoreOptions, Text};

    /// Stamps in milliseconds took a bit for each number below them: 200 GB.
    #[test]
    fn looking_ahead_takes_memory_for_documents_alone() {
        const NOW: u64 = 1_700_000_000_000;
        let folder = tempfile::tempdir().unwrap();
        let schema = Schema::builder()
            .text(Text::words(2))
            .minhash(MinHash::new(64));
        let schema = schema.build().unwrap();
        let sketch = |text| schema.sketcher().text(text).unwrap();
        let options = StoreOptions::new();
        let mut kept = KeptDocuments::create(folder.path(), schema.clone(), &options).unwrap();
        for (stamp, text) in [(NOW, "a b c d e"), (NOW + 1, "f g h i j")] {
            let document = Document::without_key().stamp(stamp);
            kept.insert_if_new(document, &sketch(text), Bounds::new(), None)
                .unwrap();
        }
        let mut ahead = kept.look_ahead(1 << 20).unwrap().unwrap();
        let rest = [
            (NOW + 2, "k l m n o"),
            (NOW + 900, "a b c d e"),
            (u64::MAX, "p q r s t"),
        ];
        for (number, text) in rest {
            ahead.insert(number, &sketch(text)).unwrap();
            assert!(ahead.insert(number, &sketch(text)).is_err());
        }
        let lone = ahead.finish().unwrap();
        let all = [0, 1, 2, 3, 899, 900, 901].map(|after| NOW + after);
        let found: Vec<u64> = all.into_iter().filter(|it| lone.contains(*it)).collect();
        assert_eq!(found, [NOW + 1, NOW + 2]);
        assert!(lone.contains(u64::MAX) && !lone.contains(0) && !lone.contains(NOW - 1));
    }
}
