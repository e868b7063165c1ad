//! Makes text safe for terminals, and formats numbers for readers.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns true for characters that can control a terminal, begin a line or change the order of
/// text: the control characters of C0 and C1 and delete, the line and paragraph separators, and the
/// bidirectional embeddings, overrides and isolates.
fn is_control(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Escapes control characters other than newline and tab, so that a text cannot control a terminal.
pub fn for_terminal(text: &str) -> Cow<'_, str> {
    without(text, |c| is_control(c) && c != '\n' && c != '\t')
}

/// Makes a text printable on one line.
pub fn one_line(text: &str) -> String {
    without(text, |c| is_control(c) && c != '\t').into_owned()
}

/// Escapes control characters in the strings of a JSON text, so that it cannot control a terminal.
pub fn json(json: &str) -> Cow<'_, str> {
    if !json.contains(is_control) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 8);
    for character in json.chars() {
        if is_control(character) {
            // All of these characters are in the basic plane.
            let _ = write!(out, "\\u{:04x}", u32::from(character));
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// Formats a count with commas between thousands.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a number of bytes in a suitable decimal unit, such as `1.2 MB`.
pub fn byte_size(bytes: u64) -> String {
    let scaled = |unit: f64| bytes as f64 / unit;
    match bytes {
        ..1_000 => format!("{bytes} bytes"),
        1_000..100_000 => format!("{:.1} kB", scaled(1e3)),
        100_000..100_000_000 => format!("{:.1} MB", scaled(1e6)),
        _ => format!("{:.1} GB", scaled(1e9)),
    }
}

fn without(text: &str, is_unwanted: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_unwanted) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_unwanted(character) {
            push_bytes(&mut out, character.encode_utf8(&mut [0; 4]).as_bytes());
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

fn push_bytes(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(out, "\\x{byte:02X}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_keys_have_no_control_characters() {
        assert_eq!(for_terminal("a\x1b[2Jb"), "a\\x1B[2Jb");
        assert_eq!(for_terminal("a\u{9b}b\n"), "a\\xC2\\x9Bb\n");
        assert_eq!(for_terminal("a\u{202e}b\t"), "a\\xE2\\x80\\xAEb\t");
        assert_eq!(one_line("a\nb"), "a\\x0Ab");
        assert_eq!(
            one_line("a\u{2028}b\u{2029}"),
            "a\\xE2\\x80\\xA8b\\xE2\\x80\\xA9"
        );
    }

    #[test]
    fn printable_numbers_have_separators() {
        let counts = [0, 999, 1_000, 1_234_567].map(grouped);
        assert_eq!(counts, ["0", "999", "1,000", "1,234,567"]);
        let sizes = [999, 1_234, 912_345, 12_345_678_901].map(byte_size);
        assert_eq!(sizes, ["999 bytes", "1.2 kB", "0.9 MB", "12.3 GB"]);
    }
}
