//! How a [`Text`] is kept in a file. Frozen: variants and fields are numbered by their order.

use serde::{Deserialize, Serialize};

use crate::text::language::Language;
use crate::text::recipe::{Frozen, ShingleUnit, Text, step};
use crate::text::unicode::UNICODE_VERSION;

/// Texts without steps are the first three.
#[derive(Serialize, Deserialize)]
pub(crate) enum Recorded {
    Words(u16),
    Characters(u16),
    Code(u16),
    Steps {
        /// 1 words, 2 characters, 3 code tokens; with the bits of the steps.
        kind: u8,
        length: u16,
        normal_version: (u8, u8, u8),
        stop_words: RecordedFrozen,
        stem: RecordedFrozen,
    },
}

/// The two letters of a language and the checksum of its data; zeros where the step is not there.
type RecordedFrozen = ([u8; 2], u64);

fn recorded(frozen: Option<Frozen>) -> RecordedFrozen {
    frozen.map_or(([0, 0], 0), |frozen| {
        (frozen.language.code_bytes(), frozen.checksum)
    })
}

fn frozen(is_there: bool, (code, checksum): RecordedFrozen) -> Result<Option<Frozen>, String> {
    if !is_there {
        return match (code, checksum) {
            ([0, 0], 0) => Ok(None),
            _ => Err(format!("found the language {code:?} without its step")),
        };
    }
    let language = Language::ALL
        .into_iter()
        .find(|language| language.code_bytes() == code)
        .ok_or_else(|| format!("found the language {code:?}, which this release does not know"))?;
    Ok(Some(Frozen { language, checksum }))
}

impl From<Text> for Recorded {
    fn from(text: Text) -> Self {
        if !text.has_steps() {
            return match text.unit {
                ShingleUnit::Words => Self::Words(text.length),
                ShingleUnit::Characters => Self::Characters(text.length),
                ShingleUnit::CodeTokens => Self::Code(text.length),
            };
        }
        Self::Steps {
            kind: text.kind(),
            length: text.length,
            normal_version: text.normal_version,
            stop_words: recorded(text.stop_words),
            stem: recorded(text.stem),
        }
    }
}

impl TryFrom<Recorded> for Text {
    type Error = String;

    fn try_from(recorded: Recorded) -> Result<Self, String> {
        let (kind, length, normal_version, stop_words, stem) = match recorded {
            Recorded::Words(n) => return Ok(Self::words(n)),
            Recorded::Characters(n) => return Ok(Self::characters(n)),
            Recorded::Code(n) => return Ok(Self::code(n)),
            Recorded::Steps {
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
            other => return Err(format!("found unit {other}, expected 1 to 3")),
        };
        if kind & step::ALL == 0 {
            return Err("found a text of steps that has none".to_owned());
        }
        let text = Self {
            nfkc: kind & step::NFKC != 0,
            strip_accents: kind & step::STRIP_ACCENTS != 0,
            stop_words: frozen(kind & step::STOP_WORDS != 0, stop_words)?,
            stem: frozen(kind & step::STEM != 0, stem)?,
            normal_version,
            ..Self::of(unit, length)
        };
        let has_normal = text.nfkc || text.strip_accents;
        if !has_normal && normal_version != UNICODE_VERSION {
            return Err(format!("found Unicode {normal_version:?} without a use"));
        }
        Ok(text)
    }
}
