//! Keys as text: every key has exactly one printed form, on one line, without tabs.

use std::borrow::Cow;

pub(crate) use resemblance::key_text as key;
pub(crate) use resemblance_eval::printable::{byte_size, for_terminal, grouped, json, one_line};

/// Returns a substitute for the key of a document without one.
pub(crate) fn without_key(id: u64) -> String {
    format!("\\#{id}")
}

/// A key given in its printed form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PrintedKey {
    Key(Vec<u8>),
    /// `\#ID`: a document without a key.
    Id(u64),
}

/// The inverse of [`key`] and [`without_key`].
pub(crate) fn parse(printed: &[u8]) -> Result<PrintedKey, String> {
    if let Some(digits) = printed.strip_prefix(b"\\#") {
        return std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok())
            .map(PrintedKey::Id)
            .ok_or_else(|| "\\# must be followed by the number of a document".into());
    }
    let mut out = Vec::with_capacity(printed.len());
    let mut rest = printed;
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'\\' {
            out.push(*first);
            continue;
        }
        rest = match rest {
            [b'\\', tail @ ..] => push(&mut out, b'\\', tail),
            [b't', tail @ ..] => push(&mut out, b'\t', tail),
            [b'n', tail @ ..] => push(&mut out, b'\n', tail),
            [b'r', tail @ ..] => push(&mut out, b'\r', tail),
            [b'x', high, low, tail @ ..] => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                let value = digit(high)
                    .zip(digit(low))
                    .map(|(high, low)| high * 16 + low);
                match value.and_then(|value| u8::try_from(value).ok()) {
                    Some(byte) => push(&mut out, byte, tail),
                    None => return Err("\\x must be followed by two hexadecimal digits".into()),
                }
            }
            _ => return Err("a backslash must be followed by \\, t, n, r or xHH".into()),
        };
    }
    Ok(PrintedKey::Key(out))
}

/// Returns a key as a string. A key in UTF-8 is unchanged. Escapes other keys, and keys that
/// [`parse_string`] would read as an escape.
pub(crate) fn string(key: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(key) {
        Ok(text) if read_escapes(key).is_none() => Cow::Borrowed(text),
        _ => self::key(key),
    }
}

/// The inverse of [`string`] and [`without_key`].
pub(crate) fn parse_string(text: &str) -> PrintedKey {
    let read = read_escapes(text.as_bytes());
    read.unwrap_or_else(|| PrintedKey::Key(text.as_bytes().to_vec()))
}

/// Returns what a string in UTF-8 escapes, or `None` if the string itself is the key.
fn read_escapes(text: &[u8]) -> Option<PrintedKey> {
    memchr::memchr(b'\\', text)?;
    let read = parse(text).ok()?;
    match &read {
        // An escape of an escape; each step makes it shorter.
        PrintedKey::Key(key) if std::str::from_utf8(key).is_ok() => read_escapes(key).map(|_| read),
        PrintedKey::Key(_) | PrintedKey::Id(_) => Some(read),
    }
}

fn push<'a>(out: &mut Vec<u8>, byte: u8, rest: &'a [u8]) -> &'a [u8] {
    out.push(byte);
    rest
}

/// A key in a message.
pub(crate) fn printed(key: &PrintedKey) -> String {
    match key {
        PrintedKey::Key(bytes) => self::key(bytes).into_owned(),
        PrintedKey::Id(id) => without_key(*id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_round_trips_known_texts() {
        let cases: [(&[u8], &str); 11] = [
            (b"plain", "plain"),
            (b"a\\b", "a\\\\b"),
            (b"a\tb\nc\rd", "a\\tb\\nc\\rd"),
            (b"\xff\xfe", "\\xFF\\xFE"),
            (b"ok \xc3\xa9 \xc3", "ok \u{e9} \\xC3"),
            (b"\\#7", "\\\\#7"),
            (b"", ""),
            (b"\xc2\x9b", "\\xC2\\x9B"),
            (b"\xe2\x80\xaeb", "\\xE2\\x80\\xAEb"),
            (b"a\xe2\x80\xa8b", "a\\xE2\\x80\\xA8b"),
            (b"\x01\x7f", "\\x01\\x7F"),
        ];
        for (raw, printed) in cases {
            assert_eq!(key(raw), printed);
            assert_eq!(parse(printed.as_bytes()), Ok(PrintedKey::Key(raw.to_vec())));
        }
    }

    #[test]
    fn escape_round_trips_every_byte_pair() {
        for a in 0..=255_u8 {
            for b in 0..=255_u8 {
                let raw = [a, b, b'x'];
                let printed = key(&raw).into_owned();
                assert!(!printed.contains(['\t', '\n', '\r']));
                assert_eq!(parse(printed.as_bytes()), Ok(PrintedKey::Key(raw.to_vec())));
            }
        }
    }

    #[test]
    fn strings_of_forms_are_keys_in_utf8_unless_they_look_escaped() {
        let cases: [(&[u8], &str); 11] = [
            (b"C:\\new\\table", "C:\\new\\table"),
            (b"a\\\\b", "a\\\\b"),
            (b"a\tb", "a\tb"),
            (b"\\q\\xFF", "\\q\\xFF"),
            (b"\xff", "\\xFF"),
            (b"\\xFF", "\\\\xFF"),
            (b"\\\\xFF", "\\\\\\\\xFF"),
            (b"\xff\\", "\\xFF\\\\"),
            (b"\\#7", "\\\\#7"),
            (b"\\\\#7", "\\\\\\\\#7"),
            (b"\\#x", "\\#x"),
        ];
        for (raw, text) in cases {
            assert_eq!(string(raw), text);
            assert_eq!(parse_string(text), PrintedKey::Key(raw.to_vec()));
        }
    }

    /// Every key of four bytes that mean something in escapes, or are outside UTF-8.
    #[test]
    fn strings_of_forms_round_trip() {
        let bytes = *b"\\xFnA#1\xff\xc3\xa9";
        let base = bytes.len();
        for number in 0..base.pow(5) {
            let digits = (0..5).map(|place| bytes[number / base.pow(place) % base]);
            let key: Vec<u8> = digits.collect();
            let text = string(&key).into_owned();
            assert_eq!(parse_string(&text), PrintedKey::Key(key));
        }
    }

    #[test]
    fn escape_marks_a_document_without_a_key() {
        assert_eq!(without_key(12), "\\#12");
        assert_eq!(parse(b"\\#12"), Ok(PrintedKey::Id(12)));
        assert_eq!(parse_string("\\#12"), PrintedKey::Id(12));
    }

    #[test]
    fn unescape_refuses_wrong_escapes() {
        for wrong in ["\\", "\\q", "\\x1", "\\xZZ", "\\#", "\\#x", "\\#-1"] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
