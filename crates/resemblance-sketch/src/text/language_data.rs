//! The stop words and the stemmer of each language, with checksums that detect changes.

use std::sync::OnceLock;

use xxhash_rust::xxh3::xxh3_64;

use super::language::Language;

pub(super) const LANGUAGES: usize = Language::ALL.len();

/// The stop words, in paragraphs that begin with the code of their language. A table of slices, as a
/// package would have it, takes ten times the room in a program.
const STOP_WORDS: &str = include_str!("stop_words.txt");

/// Returns the stop words of a language, ascending and without repeats.
pub(super) fn stop_words(language: Language) -> Vec<&'static str> {
    let mut lists = STOP_WORDS.split("\n\n").map(str::lines);
    let own = lists.find_map(|mut list| (list.next()? == language.code()).then_some(list));
    own.into_iter().flatten().collect()
}

/// Returns the XXH3-64 hash of the stop words in byte order, each followed by a line feed. It is
/// computed once in each process.
pub(super) fn stop_words_checksum(language: Language) -> u64 {
    static CHECKSUMS: LanguageCells<u64> = LanguageCells::new();
    *CHECKSUMS.get_or_init(language, || checksum(stop_words(language)))
}

/// Returns a checksum of stems: those of the stop words and, because stop words are short, those of
/// each stop word with the next one appended.
pub(super) fn stem_checksum(language: Language) -> u64 {
    static CHECKSUMS: LanguageCells<u64> = LanguageCells::new();
    *CHECKSUMS.get_or_init(language, || {
        let stemmer = language.stemmer();
        let list = stop_words(language);
        let pairs = list.iter().zip(list.iter().skip(1));
        let long = pairs.map(|(word, next)| format!("{word}{next}"));
        let words = list.iter().map(|&word| word.to_owned()).chain(long);
        checksum(words.map(|word| stemmer.stem(&word).into_owned()))
    })
}

fn checksum(words: impl IntoIterator<Item = impl AsRef<str>>) -> u64 {
    let mut lines = String::new();
    for word in words {
        lines.push_str(word.as_ref());
        lines.push('\n');
    }
    xxh3_64(lines.as_bytes())
}

/// One value for each language, computed on first use.
pub(super) struct LanguageCells<T>([OnceLock<T>; LANGUAGES]);

impl<T> LanguageCells<T> {
    pub(super) const fn new() -> Self {
        Self([const { OnceLock::new() }; LANGUAGES])
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "there is a cell for each language: languages are numbered by their order in `ALL`"
    )]
    pub(super) fn get_or_init(&self, language: Language, init: impl FnOnce() -> T) -> &T {
        self.0[language as usize].get_or_init(init)
    }
}
