//! The rules by which a text becomes shingles: normalisation, then n-grams of words, scalar values
//! or code tokens. Frozen.

use std::fmt;
use std::ops::RangeInclusive;

use super::language::Language;
#[cfg(feature = "languages")]
use super::language_data;
use super::unicode::{UNICODE_VERSION, UnicodeVersion};
use crate::error::{Result, SketchError};

/// The lengths of shingles that a schema accepts, in units.
const LENGTHS: RangeInclusive<u16> = 1..=256;

/// The length of shingles of [`Text::auto`].
const AUTO_UNITS: u16 = 5;

/// The edition of the steps. Edition 1 did not normalise texts. Frozen.
const EDITION: u8 = 2;

/// Bits of the optional steps in [`Text::kind`]. Frozen.
pub(super) mod step {
    pub(in crate::text) const KEEP_CASE: u8 = 0x04;
    /// For characters: spaces are removed. For words and code tokens: the order of units is
    /// ignored.
    pub(in crate::text) const OTHER_FORM: u8 = 0x08;
    pub(in crate::text) const NFKC: u8 = 0x10;
    pub(in crate::text) const STRIP_ACCENTS: u8 = 0x20;
    pub(in crate::text) const STOP_WORDS: u8 = 0x40;
    pub(in crate::text) const STEM: u8 = 0x80;
    pub(in crate::text) const ALL: u8 =
        KEEP_CASE | OTHER_FORM | NFKC | STRIP_ACCENTS | STOP_WORDS | STEM;
}

/// The unit of which shingles are made.
///
/// ```
/// use resemblance_sketch::{ShingleUnit, Text};
/// assert_eq!(Text::code(5).unit(), ShingleUnit::CodeTokens);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ShingleUnit {
    /// Maximal runs of alphanumeric scalar values.
    Words,
    /// Unicode scalar values.
    Characters,
    /// Tokens of source code.
    CodeTokens,
    /// Single letters of scripts that are written without spaces between words, and words of other
    /// scripts.
    Auto,
}

/// The rules by which a text becomes a set of shingles.
///
/// A shingle is `n` consecutive units of the text. A text of 1 to `n` units has exactly one
/// shingle, which contains all its units; a text without units has no shingle. There are four
/// kinds of units:
///
/// - [`auto()`](Self::auto): each letter, mark or digit of a script that is written without spaces
///   between words, such as Chinese, Japanese, Thai, Lao, Khmer or Burmese, is a unit. The rest of
///   the text is cut into words. A shingle has one space between two units.
/// - [`words(n)`](Self::words): words are the maximal runs of alphanumeric scalar values (as
///   [`char::is_alphanumeric`]), in lower case. Everything else separates words, including `_`. A
///   shingle has one space between two words. Languages without spaces between words give few, long
///   words; use `auto` for them.
/// - [`characters(n)`](Self::characters): each maximal run of Unicode White_Space becomes one space
///   and is removed at both ends; punctuation is kept. The units are the scalar values, in lower case.
/// - [`code(n)`](Self::code): tokens of source code in any language, with their case. A token is a
///   maximal run of alphanumeric scalar values and `_` (a name, a keyword, a number), or a single
///   other scalar value (`+=` is two tokens). White_Space separates tokens. Comments and strings
///   are cut into tokens too, so that the rule is the same for all languages. A shingle has one
///   space between two tokens.
///
/// `n` is 1 to 256; a schema refuses other lengths. With short shingles, distinct texts share some
/// by chance; with long shingles, one changed word changes many shingles. To find duplicate pages,
/// 5 words or 9 characters are usual (Broder, *On the resemblance and containment of documents*,
/// 1997).
///
/// A text passes through the following steps, in this order; the order of the calls does not
/// matter. Normalization and cutting into units always apply, lower case unless stated otherwise,
/// and the other steps are optional. Stop words and stems require the feature `languages`.
///
/// 1. Unicode Normalization Form C, which composes letters and their marks: `e` and U+0301 become
///    `é`. [`nfkc`](Self::nfkc) selects Form KC instead.
/// 2. Lower case, except for code or if you [keep the case](Self::keep_case). Every scalar value is
///    replaced by its full lower-case mapping, without context (a capital sigma is always `σ`).
/// 3. [`strip_accents`](Self::strip_accents): accents are removed.
/// 4. The text is cut into units. For characters, spaces may be [removed](Self::remove_spaces).
/// 5. [`stop_words`](Self::stop_words): the words of a list are left out.
/// 6. [`stem`](Self::stem): each word is replaced by its stem.
/// 7. [`unordered`](Self::unordered): the units of a shingle are sorted.
///
/// The Unicode data always have version [`UNICODE_VERSION`], independently of the compiler, so that
/// a store still finds its documents after an upgrade. The schema contains all steps. Signatures
/// can be compared only if their steps are the same.
///
/// ```
/// use resemblance_sketch::Text;
///
/// let mut shingles = Vec::new();
/// Text::words(2).for_each_shingle("The cat -- the CAT!", |s| shingles.push(s.to_owned()));
/// assert_eq!(shingles, ["the cat", "cat the", "the cat"]);
/// assert_eq!(Text::characters(9).to_string(), "characters 9");
/// ```
///
/// All settings can be read back:
///
/// ```
/// use resemblance_sketch::{Language, ShingleUnit, Text};
/// let text = Text::words(5).nfkc().strip_accents().stop_words(Language::French);
/// assert_eq!((text.unit(), text.length()), (ShingleUnit::Words, 5));
/// assert!(text.is_nfkc() && text.is_accent_stripped());
/// assert_eq!((text.stop_words_language(), text.stem_language()), (Some(Language::French), None));
/// assert!(!text.is_case_kept() && !text.is_without_spaces() && !text.is_unordered());
/// ```
#[doc(alias("shingle", "n-gram"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct Text {
    pub(super) unit: ShingleUnit,
    pub(super) length: u16,
    pub(super) nfkc: bool,
    pub(super) keeps_case: bool,
    pub(super) strip_accents: bool,
    pub(super) removes_spaces: bool,
    pub(super) is_unordered: bool,
    pub(super) stop_words: Option<FrozenLanguage>,
    pub(super) stem: Option<FrozenLanguage>,
    /// The Unicode version of the data that `nfkc` and `strip_accents` use.
    pub(super) normal_version: UnicodeVersion,
}

/// A language, with the checksum of its data when the schema was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FrozenLanguage {
    pub(super) language: Language,
    pub(super) checksum: u64,
}

impl Text {
    /// Returns the same rules with shingles of another length.
    pub const fn with_length(mut self, length: u16) -> Self {
        self.length = length;
        self
    }

    /// Creates shingles of 5 consecutive units: single letters of scripts that are written without
    /// spaces between words, and words of other scripts. For texts without such letters, shingles
    /// are those of [`words(5)`](Self::words). [`with_length`](Self::with_length) sets another
    /// number of units.
    ///
    /// These scripts are Han, Hiragana, Katakana, Bopomofo, Yi, Tangut, Khitan, Nushu, Thai, Lao,
    /// Khmer, Myanmar, Tai Le, New Tai Lue, Tai Tham and Tai Viet. Korean has spaces.
    ///
    /// ```
    /// use resemblance_sketch::Text;
    ///
    /// let mut shingles = Vec::new();
    /// let text = Text::auto().with_length(3);
    /// text.for_each_shingle("The iPhone 手机，ok", |s| shingles.push(s.to_owned()));
    /// assert_eq!(shingles, ["the iphone 手", "iphone 手 机", "手 机 ok"]);
    /// ```
    pub const fn auto() -> Self {
        Self::new(ShingleUnit::Auto, AUTO_UNITS)
    }

    /// Creates shingles of `n` consecutive words, 1 to 256.
    pub const fn words(n: u16) -> Self {
        Self::new(ShingleUnit::Words, n)
    }

    /// Creates shingles of `n` consecutive Unicode scalar values, 1 to 256.
    pub const fn characters(n: u16) -> Self {
        Self::new(ShingleUnit::Characters, n)
    }

    /// Creates shingles of `n` consecutive tokens of source code, 1 to 256.
    ///
    /// ```
    /// use resemblance_sketch::Text;
    ///
    /// let mut shingles = Vec::new();
    /// Text::code(3).for_each_shingle("n_1+=0x2F;", |s| shingles.push(s.to_owned()));
    /// assert_eq!(shingles, ["n_1 + =", "+ = 0x2F", "= 0x2F ;"]);
    /// ```
    pub const fn code(n: u16) -> Self {
        Self::new(ShingleUnit::CodeTokens, n)
    }

    /// Creates shingles of `length` units, without optional steps.
    pub(super) const fn new(unit: ShingleUnit, length: u16) -> Self {
        Self {
            unit,
            length,
            nfkc: false,
            keeps_case: false,
            strip_accents: false,
            removes_spaces: false,
            is_unordered: false,
            stop_words: None,
            stem: None,
            normal_version: UNICODE_VERSION,
        }
    }

    /// Normalises the text to Form KC (Unicode Standard Annex 15) instead of Form C. Full-width
    /// letters, half-width letters and ligatures then equal the usual letters.
    ///
    /// Scalar values that are not assigned in [`UNICODE_VERSION`] do not change. To bound memory,
    /// 1,024 scalar values without the beginning of a new sequence are normalised as if the text
    /// ended there. Real texts have no such runs.
    ///
    /// ```
    /// # use resemblance_sketch::Text;
    /// # #[cfg(feature = "languages")] {
    /// let mut words = Vec::new();
    /// Text::words(1).nfkc().for_each_shingle("ﬁne ｗｉｄｅ", |word| words.push(word.to_owned()));
    /// assert_eq!(words, ["fine", "wide"]);
    /// # }
    /// ```
    pub const fn nfkc(mut self) -> Self {
        self.nfkc = true;
        self
    }

    /// Keeps capital letters: `The` and `the` are different words. Code always keeps its case, and
    /// a schema refuses this setting for it.
    ///
    /// ```
    /// use resemblance_sketch::Text;
    ///
    /// let mut shingles = Vec::new();
    /// Text::words(2).keep_case().for_each_shingle("The cat, the CAT", |s| shingles.push(s.to_owned()));
    /// assert_eq!(shingles, ["The cat", "cat the", "the CAT"]);
    /// ```
    pub const fn keep_case(mut self) -> Self {
        self.keeps_case = true;
        self
    }

    /// Removes all White_Space, so that shingles continue from word to word. Line breaks and
    /// spacing then make no difference. For characters only.
    ///
    /// ```
    /// use resemblance_sketch::Text;
    ///
    /// let mut shingles = Vec::new();
    /// Text::characters(4).remove_spaces().for_each_shingle("A b c\nde", |s| shingles.push(s.to_owned()));
    /// assert_eq!(shingles, ["abcd", "bcde"]);
    /// ```
    pub const fn remove_spaces(mut self) -> Self {
        self.removes_spaces = true;
        self
    }

    /// Ignores the order of the units of a shingle by sorting them by their bytes. A shingle then
    /// states which words occur in a window of `n` words, and how often. If words change places
    /// nearby, two texts share more such shingles than ordered ones. For words and code only.
    ///
    /// ```
    /// use resemblance_sketch::Text;
    ///
    /// let mut shingles = Vec::new();
    /// Text::words(3).unordered().for_each_shingle("the cat the dog", |s| shingles.push(s.to_owned()));
    /// assert_eq!(shingles, ["cat the the", "cat dog the"]);
    /// ```
    pub const fn unordered(mut self) -> Self {
        self.is_unordered = true;
        self
    }

    /// Strips accents after lower-casing: `é` and `e` become equal.
    ///
    /// A scalar value whose canonical decomposition contains combining diacritical marks is
    /// replaced by the rest of the decomposition, and such a mark by itself is dropped. These marks
    /// are the blocks U+0300 to U+036F, U+1AB0 to U+1AFF, U+1DC0 to U+1DFF, U+20D0 to U+20FF and
    /// U+FE20 to U+FE2F. Other marks, such as those of Indic scripts, Arabic or kana, are kept,
    /// because they make different letters.
    ///
    /// ```
    /// # use resemblance_sketch::Text;
    /// # #[cfg(feature = "languages")] {
    /// let mut words = Vec::new();
    /// let text = Text::words(1).strip_accents();
    /// text.for_each_shingle("Café crème", |word| words.push(word.to_owned()));
    /// assert_eq!(words, ["cafe", "creme"]);
    /// # }
    /// ```
    pub const fn strip_accents(mut self) -> Self {
        self.strip_accents = true;
        self
    }

    /// Leaves out the stop words of a language. They are the words of its stopwords-iso list, after
    /// the same steps as the text. For words only.
    ///
    /// ```
    /// # use resemblance_sketch::{Language, Text};
    /// # #[cfg(feature = "languages")] {
    /// let mut words = Vec::new();
    /// let text = Text::words(1).stop_words(Language::English);
    /// text.for_each_shingle("the cat and the dog", |word| words.push(word.to_owned()));
    /// assert_eq!(words, ["cat", "dog"]);
    /// # }
    /// ```
    pub const fn stop_words(mut self, language: Language) -> Self {
        self.stop_words = Some(FrozenLanguage {
            language,
            checksum: language.stop_words_checksum(),
        });
        self
    }

    /// Replaces each word by its stem, by the Snowball algorithm of a language (Porter, *Snowball:
    /// a language for stemming algorithms*, 2001). For words only. Words longer than 256 bytes do
    /// not change.
    ///
    /// ```
    /// # use resemblance_sketch::{Language, Text};
    /// # #[cfg(feature = "languages")] {
    /// let mut words = Vec::new();
    /// let text = Text::words(1).stem(Language::English);
    /// text.for_each_shingle("connected connections", |word| words.push(word.to_owned()));
    /// assert_eq!(words, ["connect", "connect"]);
    /// # }
    /// ```
    pub const fn stem(mut self, language: Language) -> Self {
        self.stem = Some(FrozenLanguage {
            language,
            checksum: language.stem_checksum(),
        });
        self
    }

    /// The unit of shingles.
    #[must_use]
    pub const fn unit(&self) -> ShingleUnit {
        self.unit
    }

    /// The number of units in a shingle.
    #[must_use]
    pub const fn length(&self) -> u16 {
        self.length
    }

    /// Returns true if capital letters are kept.
    #[must_use]
    pub const fn is_case_kept(&self) -> bool {
        self.keeps_case
    }

    /// Returns true if White_Space is removed.
    #[must_use]
    pub const fn is_without_spaces(&self) -> bool {
        self.removes_spaces
    }

    /// Returns true if the order of the units in a shingle is ignored.
    #[must_use]
    pub const fn is_unordered(&self) -> bool {
        self.is_unordered
    }

    /// Returns true if texts are normalised to Form KC rather than Form C.
    #[must_use]
    pub const fn is_nfkc(&self) -> bool {
        self.nfkc
    }

    /// Returns true if accents are stripped.
    #[must_use]
    pub const fn is_accent_stripped(&self) -> bool {
        self.strip_accents
    }

    /// The language whose stop words are left out.
    #[must_use]
    pub fn stop_words_language(&self) -> Option<Language> {
        self.stop_words.map(|frozen| frozen.language)
    }

    /// The language whose stemmer is applied.
    #[must_use]
    pub fn stem_language(&self) -> Option<Language> {
        self.stem.map(|frozen| frozen.language)
    }

    /// Checks the length and the steps.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] if the length is not 1 to 256, or if a step does not apply
    /// to the unit. [`SketchError::MissingFeature`] if a step requires the feature `languages`,
    /// which is not part of this build. [`SketchError::SelfTest`] if a language's data differ from
    /// the data with which the schema was made.
    ///
    /// ```
    /// use resemblance_sketch::Text;
    /// assert!(Text::words(256).validate().is_ok());
    /// assert!(Text::words(0).validate().is_err());
    /// ```
    pub fn validate(&self) -> Result<()> {
        let expected = "a length of 1 to 256";
        SketchError::require(LENGTHS.contains(&self.length), "text", self, expected)?;
        let has_word_steps = self.stop_words.is_some() || self.stem.is_some();
        let is_of = |unit| self.unit == unit;
        let has_words = is_of(ShingleUnit::Words) || is_of(ShingleUnit::Auto);
        let refused = if has_word_steps && !has_words {
            Some("words, where there are stop words or stems")
        } else if self.keeps_case && is_of(ShingleUnit::CodeTokens) {
            Some("words or characters, where the case is kept: code keeps it anyway")
        } else if self.removes_spaces && !is_of(ShingleUnit::Characters) {
            Some("characters, where spaces are removed")
        } else if self.is_unordered && is_of(ShingleUnit::Characters) {
            Some("words or code tokens, where their order is ignored")
        } else {
            None
        };
        if let Some(expected) = refused {
            return Err(SketchError::invalid("text", self, expected));
        }
        if (self.nfkc || self.strip_accents) && self.normal_version != UNICODE_VERSION {
            let (major, minor, patch) = self.normal_version;
            let detail = format!(
                "texts are normalised by Unicode {major}.{minor}.{patch}, this release has \
                 {UNICODE_VERSION:?}"
            );
            return Err(SketchError::SelfTest { detail });
        }
        self.validate_languages()
    }

    #[cfg(feature = "languages")]
    fn validate_languages(&self) -> Result<()> {
        if let Some(frozen) = self.stop_words {
            let found = language_data::stop_words_checksum(frozen.language);
            frozen.must_equal(found, "stop words", "resemblance-sketch")?;
        }
        if let Some(frozen) = self.stem {
            let found = language_data::stem_checksum(frozen.language);
            frozen.must_equal(found, "stems", "frostem")?;
        }
        Ok(())
    }

    #[cfg(not(feature = "languages"))]
    fn validate_languages(&self) -> Result<()> {
        if self.stop_words.is_none() && self.stem.is_none() {
            return Ok(());
        }
        Err(SketchError::MissingFeature {
            needed_by: self.to_string(),
            feature: "languages",
        })
    }

    /// Returns true if the text has optional steps.
    pub(super) fn has_steps(&self) -> bool {
        self.kind() & step::ALL != 0
    }

    /// Returns the unit and the steps as one byte. Frozen.
    pub(super) fn kind(&self) -> u8 {
        let unit: u8 = match self.unit {
            ShingleUnit::Auto => 0,
            ShingleUnit::Words => 1,
            ShingleUnit::Characters => 2,
            ShingleUnit::CodeTokens => 3,
        };
        let steps = [
            (self.keeps_case, step::KEEP_CASE),
            (self.removes_spaces || self.is_unordered, step::OTHER_FORM),
            (self.nfkc, step::NFKC),
            (self.strip_accents, step::STRIP_ACCENTS),
            (self.stop_words.is_some(), step::STOP_WORDS),
            (self.stem.is_some(), step::STEM),
        ];
        let bits = steps.into_iter().filter(|&(has_step, _)| has_step);
        bits.fold(unit, |kind, (_, bit)| kind | bit)
    }

    /// Appends the bytes that represent the text in the fingerprint of a recipe. Frozen. They are
    /// the unit and the steps as one byte, the length, the Unicode version, and the edition of the
    /// steps; then, if the text has stop words or stems, the two letters of each language and the
    /// checksum of its data. No encoding is a prefix of another.
    pub(crate) fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.kind());
        bytes.extend_from_slice(&self.length.to_le_bytes());
        let (major, minor, patch) = UNICODE_VERSION;
        bytes.extend_from_slice(&[major, minor, patch, EDITION]);
        for frozen in [self.stop_words, self.stem].into_iter().flatten() {
            bytes.extend_from_slice(frozen.language.code().as_bytes());
            bytes.extend_from_slice(&frozen.checksum.to_le_bytes());
        }
    }
}

#[cfg(feature = "languages")]
impl FrozenLanguage {
    fn must_equal(self, found: u64, what: &str, package: &str) -> Result<()> {
        if found == self.checksum {
            return Ok(());
        }
        let detail = format!(
            "{what} of {}: found checksum {found:016x}, expected {:016x}; build with the release and \
             features of the package {package} that made the schema",
            self.language, self.checksum
        );
        Err(SketchError::SelfTest { detail })
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            ShingleUnit::Words => "words",
            ShingleUnit::Characters => "characters",
            ShingleUnit::CodeTokens => "code tokens",
            ShingleUnit::Auto => "auto",
        };
        write!(f, "{unit} {}", self.length)?;
        let steps = [
            (self.nfkc, ", NFKC"),
            (self.keeps_case, ", with their case"),
            (self.strip_accents, ", without accents"),
            (self.removes_spaces, ", without spaces"),
        ];
        for (_, step) in steps.into_iter().filter(|(has_step, _)| *has_step) {
            f.write_str(step)?;
        }
        if let Some(frozen) = self.stop_words {
            write!(f, ", without stop words of {}", frozen.language)?;
        }
        if let Some(frozen) = self.stem {
            write!(f, ", stems of {}", frozen.language)?;
        }
        if self.is_unordered {
            write!(f, ", in any order")?;
        }
        Ok(())
    }
}
