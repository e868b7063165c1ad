//! Stop words and stems.

use std::collections::HashSet;

use frostem::Stemmer;

use super::language::Language;
use super::language_data::{LanguageCells, stop_words};
use super::recipe::Text;
use super::unit_buffer::UnitBuffer;
use super::unit_reader::UnitReader;

/// The length of the longest word that is stemmed, in bytes. Longer runs are not words. Frozen.
const MAX_STEMMED_BYTES: usize = 256;

/// The words of a list, after the steps of a text that precede stop words.
type WordSet = HashSet<Box<str>>;

/// Leaves out stop words, and replaces the other words by their stems.
pub(super) struct WordFilter {
    stop_words: Option<&'static WordSet>,
    stemmer: Option<Stemmer>,
    /// The words that are kept.
    pub(super) units: UnitBuffer,
}

impl WordFilter {
    /// Creates the filter, or returns `None` if the text has neither stop words nor stems.
    pub(super) fn new(text: &Text) -> Option<Self> {
        let stop_words = text.stop_words_language();
        let stem = text.stem_language();
        (stop_words.is_some() || stem.is_some()).then(|| Self {
            stop_words: stop_words.map(|language| normalised_stop_words(language, text)),
            stemmer: stem.map(Language::stemmer),
            units: UnitBuffer::new(),
        })
    }

    /// Removes the complete words from `words`, and calls `decided` for each with whether it is
    /// kept.
    pub(super) fn take(&mut self, words: &mut UnitBuffer, mut decided: impl FnMut(bool)) {
        words.visit_units(1, |word: &str| decided(self.take_word(word)));
    }

    fn take_word(&mut self, word: &str) -> bool {
        if self.stop_words.is_some_and(|list| list.contains(word)) {
            return false;
        }
        match self.stemmer {
            Some(stemmer) if word.len() <= MAX_STEMMED_BYTES => {
                let stem = stemmer.stem(word);
                if !stem.is_empty() {
                    self.units.push_unit(&stem);
                }
                !stem.is_empty()
            }
            _ => {
                self.units.push_unit(word);
                true
            }
        }
    }
}

/// The number of sets of stop words of a language, one for each combination of three steps.
const STEP_CHOICES: usize = 8;

/// Returns the stop words of a language after the same steps as the text. They are computed once in
/// each process.
fn normalised_stop_words(language: Language, text: &Text) -> &'static WordSet {
    static SETS: [LanguageCells<WordSet>; STEP_CHOICES] =
        [const { LanguageCells::new() }; STEP_CHOICES];
    let Text {
        nfkc,
        strip_accents,
        keeps_case,
        ..
    } = *text;
    let choice = usize::from(nfkc) | usize::from(strip_accents) << 1 | usize::from(keeps_case) << 2;
    #[expect(
        clippy::indexing_slicing,
        reason = "three bits choose among eight sets"
    )]
    let cells = &SETS[choice];
    cells.get_or_init(language, || {
        let text = Text {
            nfkc,
            strip_accents,
            keeps_case,
            ..Text::words(1)
        };
        let mut words = WordSet::new();
        for entry in stop_words(language) {
            // An entry may become several words, for example at an apostrophe. Each is a stop word.
            let mut reader = UnitReader::new(&text);
            reader.read(entry);
            reader.finish();
            reader.units_mut().visit_units(1, |word: &str| {
                words.insert(word.into());
            });
        }
        words
    })
}
