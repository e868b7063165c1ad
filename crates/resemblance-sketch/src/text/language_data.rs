//! The stop words and the stemmer of each language, and checksums that show whether they have
//! changed.

use std::sync::OnceLock;

use xxhash_rust::xxh3::xxh3_64;

use super::language::Language;

pub(super) const LANGUAGES: usize = Language::ALL.len();

/// The stop words of a language as the package lists them, ascending and without repeats. Empty if the
/// package has no list: no checksum that a store records is that of an empty list.
pub(super) fn stop_words(language: Language) -> Vec<&'static str> {
    let mut list = stop_words::lookup(language.code()).map_or_else(Vec::new, <[_]>::to_vec);
    list.sort_unstable();
    list.dedup();
    list
}

/// XXH3-64 of the stop words in the order of their bytes, each followed by a line feed. Computed once
/// a process.
pub(super) fn stop_words_checksum(language: Language) -> u64 {
    static CHECKSUMS: LanguageCells<u64> = LanguageCells::new();
    *CHECKSUMS.get_or_init(language, || checksum(stop_words(language)))
}

/// Returns the checksum of the stems of the stop words and, because those are short, of each with
/// the next one appended.
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

/// One value for each language, computed when it is first asked for.
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
