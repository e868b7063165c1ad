//! Paragraphs and lines that occur more than once in a corpus.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use resemblance::invariant::OrBug;
use resemblance::{Error, Result, Text};
use xxhash_rust::xxh3::Xxh3;

/// The default memory for hashes of parts.
const DEFAULT_MEMORY_BYTES: u64 = 1 << 30;

/// The maximum memory for each hash. A table of 2^n places of 9 bytes grows when 7 of 8 are taken;
/// the old and the new table then exist together and take 27 · 2^n bytes.
const HASH_BYTES: u64 = 31;

/// The parts of a text that are dropped if they have already appeared.
///
/// ```
/// use resemblance_corpus::dedup::TextPart;
///
/// let page = "Home\nAbout\n\nNews\n";
/// assert_eq!(TextPart::Paragraph.without(page, &[0]), "News\n");
/// assert_eq!(TextPart::Line.without(page, &[0, 2]), "About\nNews\n");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextPart {
    /// Lines up to the next blank line.
    Paragraph,
    /// Single lines.
    Line,
}

impl TextPart {
    /// Returns the byte ranges of the parts of a text, in order. They cover the whole text: a part
    /// extends to the beginning of the next one.
    fn places(self, text: &str) -> Vec<Range<usize>> {
        let mut places: Vec<Range<usize>> = Vec::new();
        let (mut end, mut is_after_blank) = (0, true);
        for line in text.split_inclusive('\n') {
            let place = end..end + line.len();
            end = place.end;
            let is_blank = line.trim().is_empty();
            match places.last_mut() {
                Some(last) if self == Self::Paragraph && (is_blank || !is_after_blank) => {
                    last.end = end;
                }
                _ => places.push(place),
            }
            is_after_blank = is_blank;
        }
        places
    }

    /// Returns a text without the parts with these indices, which must ascend.
    #[must_use]
    pub fn without(self, text: &str, dropped: &[usize]) -> String {
        let parts = self.places(text).into_iter().enumerate();
        let kept = parts.filter(|(index, _)| dropped.binary_search(index).is_err());
        kept.filter_map(|(_, place)| text.get(place)).collect()
    }
}

/// A text split into parts, with a hash of each part's content. Any thread can compute it.
///
/// ```
/// use resemblance::Text;
/// use resemblance_corpus::dedup::{TextPart, TextParts};
///
/// let page = "Home | About\n\nNews of the day\n";
/// let parts = TextParts::new(TextPart::Line, &Text::words(5), page)?;
/// assert_eq!((parts.text(), parts.len()), (page, 3));
/// assert!(!parts.is_empty());
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TextParts {
    text: String,
    /// The range and hash of each part. A part without units of the text's recipe has no hash.
    parts: Vec<(Range<usize>, Option<u64>)>,
}

impl TextParts {
    /// Splits a text into parts. Two parts count as equal if `recipe` turns them into the same
    /// words, characters or tokens, so it decides whether case, spaces and punctuation matter.
    ///
    /// # Errors
    ///
    /// The errors of [`Text::validate`].
    pub fn new(part: TextPart, recipe: &Text, text: impl Into<String>) -> Result<Self> {
        recipe.validate()?;
        let (units, text) = (recipe.with_length(1), text.into());
        let parts = part.places(&text).into_iter().map(|place| {
            let part = text.get(place.clone()).or_bug("a part of a text")?;
            let (mut hash, mut is_blank) = (Xxh3::new(), true);
            units.for_each_shingle(part, |unit| {
                hash.update(unit.as_bytes());
                // No unit contains this byte.
                hash.update(&[0xff]);
                is_blank = false;
            });
            Ok((place, (!is_blank).then(|| hash.digest())))
        });
        let parts = parts.collect::<Result<_>>()?;
        Ok(Self { text, parts })
    }

    /// Returns the whole text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the number of parts, including those without words.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Returns true if the text has no parts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}

/// Removes paragraphs or lines that have already appeared, in an earlier text or earlier in the
/// same text. Parts without words, such as blank lines, remain.
///
/// Parts count as equal if their 64-bit hashes are equal: among 150 million different parts, the
/// probability that any two are confused is 0.0006. Each part takes 10 to 21 bytes of memory, and
/// 31 for a moment while the table grows.
///
/// ```
/// use resemblance::Text;
/// use resemblance_corpus::dedup::{RepeatedParts, TextPart, TextParts};
///
/// let mut repeated = RepeatedParts::new();
/// assert!(repeated.is_empty());
/// let mut trim = |text: &str| -> resemblance::Result<_> {
///     let parts = TextParts::new(TextPart::Line, &Text::words(5), text)?;
///     let trimmed = repeated.trim(&parts)?;
///     Ok((trimmed.text.into_owned(), trimmed.dropped))
/// };
/// let page = "Home | About\nNews of the day\n";
/// assert_eq!(trim(page)?, (page.into(), vec![]));
/// assert_eq!(trim("HOME, ABOUT\nOther news\n")?, ("Other news\n".into(), vec![0]));
/// assert_eq!(repeated.len(), 3);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RepeatedParts {
    seen: HashSet<u64>,
    memory_bytes: u64,
}

/// A text without the parts that have already appeared.
///
/// ```
/// # use resemblance::Text;
/// # use resemblance_corpus::dedup::{RepeatedParts, TextPart, TextParts};
/// let parts = TextParts::new(TextPart::Paragraph, &Text::words(5), "News\n\nNews\n")?;
/// let mut repeated = RepeatedParts::new();
/// let trimmed = repeated.trim(&parts)?;
/// assert_eq!((&*trimmed.text, trimmed.is_emptied), ("News\n\n", false));
/// assert!(repeated.trim(&parts)?.is_emptied);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trimmed<'t> {
    /// The remaining text: the text itself if nothing was dropped.
    pub text: Cow<'t, str>,
    /// The indices of the dropped parts, ascending.
    pub dropped: Vec<usize>,
    /// True if the text had parts with words and none remains.
    pub is_emptied: bool,
}

impl Default for RepeatedParts {
    fn default() -> Self {
        Self::new()
    }
}

impl RepeatedParts {
    /// Creates a remover that has seen no parts. It may take 1 GiB of memory.
    #[must_use]
    pub fn new() -> Self {
        Self {
            seen: HashSet::new(),
            memory_bytes: DEFAULT_MEMORY_BYTES,
        }
    }

    /// Sets the memory that hashes of parts may take, in bytes: 31 for each.
    ///
    /// ```
    /// # use resemblance::Text;
    /// # use resemblance_corpus::dedup::{RepeatedParts, TextPart, TextParts};
    /// let mut repeated = RepeatedParts::new().memory_bytes(31);
    /// let parts = TextParts::new(TextPart::Line, &Text::words(1), "one\ntwo\n")?;
    /// assert!(repeated.is_empty() && repeated.trim(&parts).is_err());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Returns the number of different parts seen so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Returns true if no part has been seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Returns a text without the parts that have already appeared.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] with the parameter `memory_bytes` if it does not suffice for the
    /// different parts. It would then be unknown which parts are new.
    pub fn trim<'t>(&mut self, parts: &'t TextParts) -> Result<Trimmed<'t>> {
        let text = parts.text();
        let (mut kept, mut dropped, mut has_words) = (Vec::new(), Vec::new(), false);
        for (index, (place, hash)) in parts.parts.iter().enumerate() {
            let is_new = match hash {
                Some(hash) => self.note(*hash)?,
                None => true,
            };
            if is_new {
                has_words |= hash.is_some();
                let part = text.get(place.clone());
                kept.push(part.or_bug("a part of a text")?);
            } else {
                dropped.push(index);
            }
        }
        Ok(Trimmed {
            text: match dropped.as_slice() {
                [] => Cow::Borrowed(text),
                _ => Cow::Owned(kept.concat()),
            },
            is_emptied: !dropped.is_empty() && !has_words,
            dropped,
        })
    }

    /// Records a part, and returns true if it is new.
    fn note(&mut self, hash: u64) -> Result<bool> {
        if self.seen.contains(&hash) {
            return Ok(false);
        }
        if (self.seen.len() as u64 + 1) * HASH_BYTES > self.memory_bytes {
            let found = format!("{} for {} parts", self.memory_bytes, self.seen.len());
            let expected = format!("{HASH_BYTES} bytes for each different part of the texts");
            return Err(Error::invalid("memory_bytes", found, expected));
        }
        Ok(self.seen.insert(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(state: &mut u64, below: u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        resemblance_sketch::sketch::mix64(*state) % below
    }

    /// Returns a text of few different lines, with blank lines and both kinds of line ends.
    fn page(state: &mut u64) -> String {
        const LINES: [&str; 9] = [
            "News of the day\n",
            "news, of the DAY!\r\n",
            "Home | About\n",
            "\n",
            "  \r\n",
            "- - -\n",
            "\u{e9}t\u{e9}\n",
            "e\u{301}te\u{301}\n",
            "News of the night",
        ];
        let count = random(state, 12);
        let line = |_| LINES[random(state, 9) as usize];
        (0..count).map(line).collect()
    }

    /// Returns the words of a line, for the texts of these tests.
    fn words(line: &str) -> String {
        let composed = line.replace("e\u{301}", "\u{e9}").to_lowercase();
        let words = composed.split(|c: char| !c.is_alphanumeric());
        words
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn parts_of(part: TextPart, text: &str) -> Vec<String> {
        let mut parts: Vec<String> = Vec::new();
        for line in text.split_inclusive('\n') {
            let begins = |parts: &[String]| {
                let last = parts
                    .last()
                    .and_then(|last| last.split_inclusive('\n').next_back());
                let is_after_blank = last.is_none_or(|last| last.trim().is_empty());
                part == TextPart::Line
                    || parts.is_empty()
                    || is_after_blank && !line.trim().is_empty()
            };
            if begins(&parts) {
                parts.push(String::new());
            }
            parts.last_mut().unwrap().push_str(line);
        }
        parts
    }

    #[test]
    fn only_repeated_parts_are_dropped() {
        for part in [TextPart::Paragraph, TextPart::Line] {
            let (mut state, mut seen) = (7, HashSet::new());
            let (mut repeated, mut dropped) = (RepeatedParts::new(), 0);
            for _ in 0..400 {
                let text = page(&mut state);
                let expected: Vec<String> = parts_of(part, &text)
                    .into_iter()
                    .filter(|part| words(part).is_empty() || seen.insert(words(part)))
                    .collect();
                let parts = TextParts::new(part, &Text::words(3), text.as_str()).unwrap();
                let trimmed = repeated.trim(&parts).unwrap();
                assert_eq!(trimmed.text, expected.concat(), "{text:?}");
                assert_eq!(parts.len(), expected.len() + trimmed.dropped.len());
                assert_eq!(part.without(&text, &trimmed.dropped), trimmed.text);
                let has_words = |text: &str| !words(text).is_empty();
                let is_emptied = has_words(&text) && !has_words(&trimmed.text);
                assert_eq!(trimmed.is_emptied, is_emptied, "{text:?}");
                dropped += trimmed.dropped.len();
            }
            assert_eq!(repeated.len(), seen.len());
            assert!(dropped > 100);
        }
    }

    #[test]
    fn parts_beyond_memory_are_refused() {
        let mut repeated = RepeatedParts::new().memory_bytes(2 * HASH_BYTES);
        let mut trim = |text: &str| {
            let parts = TextParts::new(TextPart::Line, &Text::words(1), text).unwrap();
            repeated.trim(&parts).map(|trimmed| trimmed.dropped.len())
        };
        assert_eq!(trim("a\nb\na\n").unwrap(), 1);
        assert!(matches!(trim("c"), Err(Error::InvalidParameter { .. })));
        assert!(TextParts::new(TextPart::Line, &Text::words(0), "a").is_err());
    }
}
