//! Builds lines of JSON from the values of rows.

use serde::Serialize;

/// Appends a string or a number. A number that JSON does not have, such as infinity, becomes null.
pub(crate) fn push(json: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let written = serde_json::to_writer(json, value);
    debug_assert!(written.is_ok(), "memory takes any string and number");
}

/// Appends the name of a field, with the separators before it and after it.
pub(crate) fn push_name(json: &mut Vec<u8>, name: &str) {
    if json.last() != Some(&b'{') {
        json.push(b',');
    }
    push(json, name);
    json.push(b':');
}

/// Appends a string of hexadecimal digits, two for each byte.
#[cfg(any(feature = "sqlite", feature = "tables"))]
pub(crate) fn push_digits(json: &mut Vec<u8>, bytes: &[u8]) {
    use std::io::Write as _;

    json.push(b'"');
    for byte in bytes {
        let written = write!(json, "{byte:02x}");
        debug_assert!(written.is_ok(), "memory takes any bytes");
    }
    json.push(b'"');
}
