//! The options for how texts become shingles.

use clap::Args;
use resemblance::schema::{Language, ShingleUnit};
use resemblance::{Schema, Text};

/// The steps that a text passes through: NFC or NFKC, lower case, accents, words, stop words,
/// stems; then shingles.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TextOptions {
    /// Shingles of N units: characters of scripts without spaces, such as Chinese or Thai; words of others [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256), conflicts_with_all = ["words", "chars", "code"])]
    auto: Option<u16>,
    /// Shingles of N words instead, in all scripts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256), conflicts_with_all = ["chars", "code"])]
    words: Option<u16>,
    /// Shingles of N characters instead
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256), conflicts_with = "code")]
    chars: Option<u16>,
    /// Shingles of N tokens of source code instead
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    code: Option<u16>,
    /// Normalise texts to Unicode form NFKC instead of NFC
    #[arg(long)]
    nfkc: bool,
    /// Keep upper case instead of converting to lower case; --code always keeps it
    #[arg(long, conflicts_with = "code")]
    keep_case: bool,
    /// With --chars: remove white space instead of reducing it to single spaces
    #[arg(long, requires = "chars", conflicts_with_all = ["auto", "words", "code", "unordered", "stop_words", "stem"])]
    remove_spaces: bool,
    /// Ignore the order of words within a shingle
    #[arg(long, conflicts_with = "chars")]
    unordered: bool,
    /// Strip accents
    #[arg(long)]
    strip_accents: bool,
    /// Omit the stop words of a language: en, fr, ...
    #[arg(long, value_name = "LANGUAGE", conflicts_with_all = ["chars", "code"])]
    stop_words: Option<Language>,
    /// Replace words by their stems in a language: en, fr, ...
    #[arg(long, value_name = "LANGUAGE", conflicts_with_all = ["chars", "code"])]
    stem: Option<Language>,
}

/// Returns the rules by which texts become shingles where no other step is requested.
pub(crate) fn default_text(words: Option<u16>, chars: Option<u16>) -> Text {
    let characters = chars.map(Text::characters);
    characters
        .or(words.map(Text::words))
        .unwrap_or(Text::auto())
}

impl TextOptions {
    pub(crate) fn text(&self) -> Text {
        let mut text = match self.code {
            Some(length) => Text::code(length),
            None => default_text(self.words, self.chars),
        };
        if let Some(length) = self.auto {
            text = text.with_length(length);
        }
        if self.nfkc {
            text = text.nfkc();
        }
        if self.keep_case {
            text = text.keep_case();
        }
        if self.remove_spaces {
            text = text.remove_spaces();
        }
        if self.unordered {
            text = text.unordered();
        }
        if self.strip_accents {
            text = text.strip_accents();
        }
        if let Some(language) = self.stop_words {
            text = text.stop_words(language);
        }
        if let Some(language) = self.stem {
            text = text.stem(language);
        }
        text
    }

    /// The options with whether they agree with `schema`; `None` if not given.
    pub(crate) fn agreements(&self, schema: Option<&Schema>) -> [Agreement; 11] {
        let text = schema.and_then(Schema::text);
        let has = |is: fn(&Text) -> bool| text.as_ref().is_some_and(is);
        let length_of = |unit| {
            text.filter(|text| text.unit() == unit)
                .map(|text| text.length())
        };
        let stop_words = text.and_then(|text| text.stop_words_language());
        let stem = text.and_then(|text| text.stem_language());
        [
            agreement("--auto", self.auto, length_of(ShingleUnit::Auto)),
            agreement("--words", self.words, length_of(ShingleUnit::Words)),
            agreement("--chars", self.chars, length_of(ShingleUnit::Characters)),
            agreement("--code", self.code, length_of(ShingleUnit::CodeTokens)),
            ("--nfkc", self.nfkc.then(|| has(Text::is_nfkc))),
            (
                "--keep-case",
                self.keep_case.then(|| has(Text::is_case_kept)),
            ),
            (
                "--remove-spaces",
                self.remove_spaces.then(|| has(Text::is_without_spaces)),
            ),
            (
                "--unordered",
                self.unordered.then(|| has(Text::is_unordered)),
            ),
            (
                "--strip-accents",
                self.strip_accents.then(|| has(Text::is_accent_stripped)),
            ),
            agreement("--stop-words", self.stop_words, stop_words),
            agreement("--stem", self.stem, stem),
        ]
    }
}

/// An option with whether it agrees with a schema; `None` if it was not given.
pub(super) type Agreement = (&'static str, Option<bool>);

/// Returns an option whose value, if it was given, must be that of the schema.
pub(super) fn agreement<T: PartialEq>(
    name: &'static str,
    given: Option<T>,
    own: Option<T>,
) -> Agreement {
    (name, given.map(|given| Some(given) == own))
}
