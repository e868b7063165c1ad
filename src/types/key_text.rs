//! Keys as text for people.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns a key as text. Control characters, backslashes and bytes that are not UTF-8 are escaped, so that
/// unequal keys are unequal texts and none of them moves a terminal's cursor.
pub(super) fn key_text(key: &[u8]) -> Cow<'_, str> {
    let is_plain = |text: &str| !text.chars().any(is_escaped);
    if let Ok(text) = std::str::from_utf8(key)
        && is_plain(text)
    {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(key.len());
    for chunk in key.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_escaped(character) {
                text.extend(character.escape_default());
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    Cow::Owned(text)
}

/// Returns true for control characters, those that change the direction of text, and the backslash.
fn is_escaped(character: char) -> bool {
    let changes_direction = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || character == '\\' || changes_direction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_readable_and_harmless() {
        for (key, text) in [
            (&b"page/1"[..], "page/1"),
            ("Gr\u{fc}\u{df}e".as_bytes(), "Gr\u{fc}\u{df}e"),
            (b"a\x1b[2Jb", "a\\u{1b}[2Jb"),
            (b"\xff\x00z", "\\xff\\u{0}z"),
            (b"a\\xff", "a\\\\xff"),
            ("\u{202e}cod".as_bytes(), "\\u{202e}cod"),
        ] {
            assert_eq!(key_text(key), text);
        }
    }
}
