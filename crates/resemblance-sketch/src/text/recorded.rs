//! The encoding of a [`Text`] in a file. Frozen: variants and fields are numbered by their order.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::language::Language;
use super::recipe::{FrozenLanguage, ShingleUnit, Text, step};
use super::unicode::{UNICODE_VERSION, UnicodeVersion};

/// An encoded text. Texts without optional steps use the variants of their units.
#[derive(Serialize, Deserialize)]
enum RecordedText {
    Words(u16),
    Characters(u16),
    Code(u16),
    Steps {
        /// 0 auto, 1 words, 2 characters, 3 code tokens; plus the bits of the steps.
        kind: u8,
        length: u16,
        normal_version: UnicodeVersion,
        stop_words: RecordedLanguage,
        stem: RecordedLanguage,
    },
    Auto(u16),
}

/// The two letters of a language and the checksum of its data; zeros if the step is not used.
type RecordedLanguage = ([u8; 2], u64);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RecordedText::from(*self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let recorded = RecordedText::deserialize(deserializer)?;
        Self::try_from(recorded).map_err(D::Error::custom)
    }
}

fn to_recorded(frozen: Option<FrozenLanguage>) -> RecordedLanguage {
    frozen.map_or(([0, 0], 0), |frozen| {
        (frozen.language.code_bytes(), frozen.checksum)
    })
}

fn from_recorded(
    has_step: bool,
    (code, checksum): RecordedLanguage,
) -> Result<Option<FrozenLanguage>, String> {
    if !has_step {
        return match (code, checksum) {
            ([0, 0], 0) => Ok(None),
            _ => Err(format!("found the language {code:?} without its step")),
        };
    }
    let language = Language::ALL
        .into_iter()
        .find(|language| language.code_bytes() == code)
        .ok_or_else(|| format!("found the language {code:?}, which this release does not know"))?;
    Ok(Some(FrozenLanguage { language, checksum }))
}

impl From<Text> for RecordedText {
    fn from(text: Text) -> Self {
        if !text.has_steps() {
            return match text.unit {
                ShingleUnit::Words => Self::Words(text.length),
                ShingleUnit::Characters => Self::Characters(text.length),
                ShingleUnit::CodeTokens => Self::Code(text.length),
                ShingleUnit::Auto => Self::Auto(text.length),
            };
        }
        Self::Steps {
            kind: text.kind(),
            length: text.length,
            normal_version: text.normal_version,
            stop_words: to_recorded(text.stop_words),
            stem: to_recorded(text.stem),
        }
    }
}

impl TryFrom<RecordedText> for Text {
    type Error = String;

    fn try_from(recorded: RecordedText) -> Result<Self, String> {
        let (kind, length, normal_version, stop_words, stem) = match recorded {
            RecordedText::Words(n) => return Ok(Self::words(n)),
            RecordedText::Characters(n) => return Ok(Self::characters(n)),
            RecordedText::Code(n) => return Ok(Self::code(n)),
            RecordedText::Auto(n) => return Ok(Self::auto().with_length(n)),
            RecordedText::Steps {
                kind,
                length,
                normal_version,
                stop_words,
                stem,
            } => (kind, length, normal_version, stop_words, stem),
        };
        let unit = match kind & !step::ALL {
            1 => ShingleUnit::Words,
            2 => ShingleUnit::Characters,
            3 => ShingleUnit::CodeTokens,
            // The steps leave two bits.
            _ => ShingleUnit::Auto,
        };
        // A text has only one encoded form: a text without steps must use the variant of
        // its unit.
        if kind & step::ALL == 0 {
            return Err("found a text of steps that has none".to_owned());
        }
        let has_other_form = kind & step::OTHER_FORM != 0;
        let text = Self {
            nfkc: kind & step::NFKC != 0,
            keeps_case: kind & step::KEEP_CASE != 0,
            removes_spaces: has_other_form && unit == ShingleUnit::Characters,
            is_unordered: has_other_form && unit != ShingleUnit::Characters,
            strip_accents: kind & step::STRIP_ACCENTS != 0,
            stop_words: from_recorded(kind & step::STOP_WORDS != 0, stop_words)?,
            stem: from_recorded(kind & step::STEM != 0, stem)?,
            normal_version,
            ..Self::new(unit, length)
        };
        let has_normal = text.nfkc || text.strip_accents;
        if !has_normal && normal_version != UNICODE_VERSION {
            return Err(format!("found Unicode {normal_version:?} without a use"));
        }
        Ok(text)
    }
}
