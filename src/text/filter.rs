//! Stop words and stems.

use std::collections::HashSet;
use std::sync::OnceLock;

use frostem::{Algorithm, Stemmer};
use xxhash_rust::xxh3::xxh3_64;

use crate::text::language::Language;
use crate::text::line::Line;
use crate::text::recipe::Text;

/// Longer words are no words: they are not stemmed. Frozen.
const LONGEST_STEMMED_BYTES: usize = 256;

const LANGUAGES: usize = Language::ALL.len();

/// Words of a list, as texts have them.
type Words = HashSet<Box<str>>;

/// Words without the stop words, and stemmed.
pub(crate) struct Filter {
    stop_words: Option<&'static Words>,
    stemmer: Option<Stemmer>,
    /// What is left.
    pub(crate) line: Line,
}

impl Filter {
    /// `None` if there is nothing to do.
    pub(crate) fn new(text: &Text) -> Option<Self> {
        let stop_words = text.stop_words_language();
        let stem = text.stem_language();
        (stop_words.is_some() || stem.is_some()).then(|| Self {
            stop_words: stop_words
                .and_then(|language| stop_words_of(language, text.nfkc, text.strip_accents)),
            stemmer: stem.map(stemmer),
            line: Line::new(),
        })
    }

    /// Takes the complete words of `line`.
    pub(crate) fn take(&mut self, line: &mut Line) {
        line.visit_units(1, |word| {
            let is_stop_word = self.stop_words.is_some_and(|words| words.contains(word));
            if is_stop_word {
                return;
            }
            match self.stemmer {
                Some(stemmer) if word.len() <= LONGEST_STEMMED_BYTES => {
                    let stem = stemmer.stem(word);
                    if !stem.is_empty() {
                        self.line.push_unit(&stem);
                    }
                }
                _ => self.line.push_unit(word),
            }
        });
    }
}

fn stemmer(language: Language) -> Stemmer {
    Stemmer::new(match language {
        Language::Arabic => Algorithm::Arabic,
        Language::Danish => Algorithm::Danish,
        Language::Dutch => Algorithm::Dutch,
        Language::English => Algorithm::English,
        Language::Finnish => Algorithm::Finnish,
        Language::French => Algorithm::French,
        Language::German => Algorithm::German,
        Language::Greek => Algorithm::Greek,
        Language::Hungarian => Algorithm::Hungarian,
        Language::Italian => Algorithm::Italian,
        Language::Norwegian => Algorithm::Norwegian,
        Language::Portuguese => Algorithm::Portuguese,
        Language::Romanian => Algorithm::Romanian,
        Language::Russian => Algorithm::Russian,
        Language::Spanish => Algorithm::Spanish,
        Language::Swedish => Algorithm::Swedish,
        Language::Turkish => Algorithm::Turkish,
    })
}

/// The list of a language as it comes.
fn list(language: Language) -> Vec<&'static str> {
    let mut list = stop_words::lookup(language.code()).map_or_else(Vec::new, <[_]>::to_vec);
    list.sort_unstable();
    list.dedup();
    list
}

/// The words of a language's list after the same steps as the text. Made once a process.
fn stop_words_of(language: Language, nfkc: bool, strip_accents: bool) -> Option<&'static Words> {
    static WORDS: [OnceLock<Words>; LANGUAGES * 4] = [const { OnceLock::new() }; LANGUAGES * 4];
    let place = language as usize * 4 + usize::from(nfkc) * 2 + usize::from(strip_accents);
    let make = || {
        let text = Text {
            nfkc,
            strip_accents,
            ..Text::words(1)
        };
        let mut words = Words::new();
        for entry in list(language) {
            text.for_each_shingle(entry, |word| {
                words.insert(word.into());
            });
        }
        words
    };
    WORDS.get(place).map(|words| words.get_or_init(make))
}

/// XXH3-64 of the entries of the list in the order of their bytes, each followed by a line feed.
pub(crate) fn stop_words_checksum(language: Language) -> u64 {
    static CHECKSUMS: [OnceLock<u64>; LANGUAGES] = [const { OnceLock::new() }; LANGUAGES];
    let make = || checksum(list(language));
    let found = CHECKSUMS.get(language as usize);
    found.map_or(0, |checksum| *checksum.get_or_init(make))
}

/// The same of the stems of the entries and, as they are short, of each with its next one appended.
pub(crate) fn stem_checksum(language: Language) -> u64 {
    static CHECKSUMS: [OnceLock<u64>; LANGUAGES] = [const { OnceLock::new() }; LANGUAGES];
    let make = || {
        let stemmer = stemmer(language);
        let list = list(language);
        let pairs = list.iter().zip(list.iter().skip(1));
        let long = pairs.map(|(word, next)| format!("{word}{next}"));
        let words = list.iter().map(|&word| word.to_owned()).chain(long);
        checksum(words.map(|word| stemmer.stem(&word).into_owned()))
    };
    let found = CHECKSUMS.get(language as usize);
    found.map_or(0, |checksum| *checksum.get_or_init(make))
}

fn checksum(words: impl IntoIterator<Item = impl AsRef<str>>) -> u64 {
    let mut lines = String::new();
    for word in words {
        lines.push_str(word.as_ref());
        lines.push('\n');
    }
    xxh3_64(lines.as_bytes())
}
