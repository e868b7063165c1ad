//! Keys as text for people.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns a key as text on one line: every key has exactly one such form.
///
/// Backslashes, control characters, those that change the direction of text and bytes that are not UTF-8
/// are escaped: `\\`, `\t`, `\n`, `\r`, and `\xHH` for each byte of the others. The command-line tool
/// prints keys so, and takes them back with `--escaped`.
///
/// ```
/// use resemblance::key_text;
/// assert_eq!(key_text(b"page/1"), "page/1");
/// assert_eq!(key_text(b"a\tb\xff"), r"a\tb\xFF");
/// ```
#[must_use]
pub fn key_text(key: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(key) {
        Ok(text) if !text.contains(|c| c == '\\' || is_control(c)) => Cow::Borrowed(text),
        _ => Cow::Owned(escaped(key)),
    }
}

fn escaped(key: &[u8]) -> String {
    let mut text = String::with_capacity(key.len() + 8);
    for chunk in key.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                '\t' => text.push_str("\\t"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                other if is_control(other) => {
                    push_bytes(&mut text, other.encode_utf8(&mut [0; 4]).as_bytes());
                }
                other => text.push(other),
            }
        }
        push_bytes(&mut text, chunk.invalid());
    }
    text
}

fn push_bytes(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "\\x{byte:02X}");
    }
}

/// Returns true for what can drive a terminal or turn the order of what it shows.
fn is_control(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
