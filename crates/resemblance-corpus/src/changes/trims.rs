//! Texts without the paragraphs or lines that have already appeared.

use std::borrow::Cow;
use std::collections::HashMap;
use std::convert::Infallible;

use crate::dedup::{TextPart, Trimmed};

use crate::bad_document::BadDocument;
use crate::columns;
use crate::content::Content;
use crate::fields::{self, FieldPath};
use crate::record::CorpusRecord;

/// The parts of texts to leave out when a corpus is read or written.
#[derive(Clone, Debug)]
pub struct TextTrims {
    part: TextPart,
    /// The parts to leave out of each record, by source and line.
    records: HashMap<(usize, u64), RecordTrim>,
}

/// The parts to leave out of one text.
#[derive(Clone, Debug)]
struct RecordTrim {
    /// The indices of the parts.
    dropped: Box<[usize]>,
    is_emptied: bool,
}

impl TextTrims {
    /// Creates a value that leaves nothing out.
    pub fn new(part: TextPart) -> Self {
        Self {
            part,
            records: HashMap::new(),
        }
    }

    /// Records which parts to leave out of the text of a record.
    pub fn note(&mut self, source: usize, line: u64, trimmed: Trimmed<'_>) {
        let trim = RecordTrim {
            dropped: trimmed.dropped.into(),
            is_emptied: trimmed.is_emptied,
        };
        if !trim.dropped.is_empty() {
            self.records.insert((source, line), trim);
        }
    }

    /// Returns true if nothing that contains a word remains of the text of a record.
    pub(crate) fn is_emptied(&self, record: &CorpusRecord) -> bool {
        let trim = self.records.get(&(record.source, record.line));
        trim.is_some_and(|trim| trim.is_emptied)
    }

    /// Returns the rest of the text of a record, or `None` if nothing is left out of it.
    pub(crate) fn trim(&self, record: &CorpusRecord, text: &str) -> Option<String> {
        let trim = self.records.get(&(record.source, record.line))?;
        Some(self.part.without(text, &trim.dropped))
    }

    /// Returns the content without the parts to leave out.
    pub(crate) fn trim_content<'a>(
        &self,
        record: &CorpusRecord,
        content: Content<'a>,
    ) -> Content<'a> {
        let Ok(trimmed) = content.map_text(|text| {
            let rest = self.trim(record, &text).map(Cow::Owned);
            Ok::<_, Infallible>(rest.unwrap_or(text))
        });
        trimmed
    }
}

/// Returns the line with the rest of its text, or `None` if the text does not change.
pub(crate) fn trimmed_line(
    line: &[u8],
    field: &FieldPath,
    trim: impl FnOnce(&str) -> Option<String>,
) -> Result<Option<Vec<u8>>, BadDocument> {
    let wrong = || BadDocument::new(format!("field {:?} is no longer a string", field.name()));
    let json = columns::utf8(line)?;
    let found = fields::find(json, &[field.name()]).map_err(|_| wrong())?;
    let value = found.first().copied().flatten().ok_or_else(wrong)?;
    let text = fields::string(value).map_err(|_| wrong())?;
    let Some(trimmed) = trim(&text) else {
        return Ok(None);
    };
    // The value is a slice of the line.
    let start = value.get().as_ptr().addr() - json.as_ptr().addr();
    let (before, rest) = json.split_at_checked(start).ok_or_else(wrong)?;
    let after = rest.strip_prefix(value.get()).ok_or_else(wrong)?;
    let trimmed = serde_json::Value::from(trimmed).to_string();
    Ok(Some([before, &trimmed, after].concat().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trimmed_line_changes_its_text_only() {
        let line = "{ \"id\":1.50, \"m\": {\"text\" : \"a\\u00e9\\n\\\"b\\\"\"} ,\"z\":[] }\r\n";
        let field: FieldPath = "m.text".parse().unwrap();
        let trim = |expected: &'static str, other: Option<&'static str>| {
            let trim = |text: &str| {
                assert_eq!(text, expected);
                other.map(str::to_owned)
            };
            trimmed_line(line.as_bytes(), &field, trim).unwrap()
        };
        assert_eq!(trim("a\u{e9}\n\"b\"", None), None);
        let trimmed = trim("a\u{e9}\n\"b\"", Some("\"b\"\n")).unwrap();
        let expected = "{ \"id\":1.50, \"m\": {\"text\" : \"\\\"b\\\"\\n\"} ,\"z\":[] }\r\n";
        assert_eq!(String::from_utf8(trimmed).unwrap(), expected);
        for wrong in [
            "{}",
            "{\"m\":{\"text\":1}}",
            "[",
            "{\"m\":{\"text\":\"\\ud800\"}}",
        ] {
            assert!(
                trimmed_line(wrong.as_bytes(), &field, |_| None).is_err(),
                "{wrong}"
            );
        }
    }
}
