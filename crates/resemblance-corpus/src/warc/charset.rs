//! Decodes the characters of a page.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use memchr::memmem;

/// The number of bytes in which a page declares its charset.
const DECLARED_WITHIN: usize = 4096;

/// Returns the characters of a body. As in browsers, a byte order mark comes before the charset
/// that HTTP declares, that one before the charset in the page, and if none is declared, the bytes
/// decide.
pub(super) fn decode<'a>(body: &'a [u8], declared: Option<&str>, is_html: bool) -> Cow<'a, str> {
    let labelled = |label: &str| Encoding::for_label(label.as_bytes());
    let encoding = declared
        .and_then(labelled)
        .or_else(|| is_html.then(|| of_meta(body)).flatten())
        .unwrap_or_else(|| guess(body));
    // It replaces the encoding if there is a byte order mark, and removes that.
    encoding.decode(body).0
}

/// Returns the charset that a `meta` element declares.
fn of_meta(body: &[u8]) -> Option<&'static Encoding> {
    let head = body.get(..DECLARED_WITHIN).unwrap_or(body);
    let lower = head.to_ascii_lowercase();
    let mut rest = lower.as_slice();
    loop {
        rest = rest.get(memchr::memchr(b'<', rest)?..)?;
        if rest.starts_with(b"<!--") {
            rest = rest.get(memmem::find(rest, b"-->")?..)?;
            continue;
        }
        let end = memchr::memchr(b'>', rest)?;
        let (tag, after) = rest.split_at_checked(end)?;
        rest = after;
        let Some(meta) = tag.strip_prefix(b"<meta") else {
            continue;
        };
        if let Some(encoding) = attribute(meta).and_then(Encoding::for_label) {
            // The page could not be read this far if it were UTF-16.
            return Some(match encoding {
                _ if encoding == UTF_16LE || encoding == UTF_16BE => UTF_8,
                _ if encoding == X_USER_DEFINED => WINDOWS_1252,
                _ => encoding,
            });
        }
    }
}

/// Returns the value after `charset=`, in an attribute or in a media type.
fn attribute(meta: &[u8]) -> Option<&[u8]> {
    let after = meta.get(memmem::find(meta, b"charset")? + b"charset".len()..)?;
    let value = after
        .trim_ascii_start()
        .strip_prefix(b"=")?
        .trim_ascii_start();
    let is_end = |byte: &u8| b"\"'; \t\r\n/".contains(byte);
    let mut values = value.split(is_end);
    values.find(|value| !value.is_empty())
}

fn guess(body: &[u8]) -> &'static Encoding {
    // ISO-2022-JP consists of ASCII characters and escapes.
    let has_escape = memchr::memchr(0x1b, body).is_some();
    if !has_escape && std::str::from_utf8(body).is_ok() {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(body, true);
    detector.guess(None, Utf8Detection::Allow)
}
