//! The encoding of our tables' keys and rows within pages.

use crate::engine::{HeadDamage, KeyRange, PageDamage};
use crate::error::Result;
use crate::format::{
    CHUNK_DOCUMENTS, ChunkSets, SETS, checksum, split_block_key, split_filter_key,
};
use crate::types::Problem;

/// Returns whether the keys of a table are numbers, which the engine stores lowest byte first.
fn has_numbers(table: &str) -> bool {
    matches!(
        table,
        "documents"
            | "payloads"
            | "sets"
            | "members"
            | "clusters"
            | "feed"
            | "dead"
            | "equal"
            | "lanes"
            | "runs"
    )
}

/// A key as checksums and messages have it.
pub(crate) fn row_key(table: &str, stored: &[u8]) -> Vec<u8> {
    let mut key = stored.to_vec();
    if has_numbers(table) {
        key.reverse();
    }
    key
}

/// An error if a checksum in a row is not that of its key and table.
pub(crate) fn row_check(table: &str, stored_key: &[u8], value: &[u8]) -> Result<()> {
    if let (SETS, Some(first_id)) = (table, number(table, stored_key)) {
        return ChunkSets::new(first_id, value).check();
    }
    checksum::open(table, &row_key(table, stored_key), value).map(|_| ())
}

/// Returns the key as a number, if the keys of the table are numbers.
pub(crate) fn number(table: &str, stored: &[u8]) -> Option<u64> {
    let bytes: [u8; 8] = stored.try_into().ok()?;
    has_numbers(table).then_some(u64::from_le_bytes(bytes))
}

/// The documents whose rows can have keys in a range: the first and the last id, if the keys of the
/// table are such.
pub(crate) fn ids_of(table: &str, keys: &KeyRange) -> Option<(u64, u64)> {
    let bound = |key: &Option<Box<[u8]>>| key.as_ref().and_then(|key| number(table, key));
    let first = bound(&keys.above).map_or(0, |above| above.saturating_add(1));
    // Nothing bounds the last page of a table.
    let last = bound(&keys.up_to).unwrap_or(u64::MAX);
    match table {
        "documents" | "payloads" | "sets" | "members" => Some((first, last)),
        "dead" | "equal" => Some(ids_of_chunks(first, last)),
        _ => None,
    }
}

/// The documents of some chunks of the tables `dead` and `equal`.
pub(crate) fn ids_of_chunks(first: u64, last: u64) -> (u64, u64) {
    let end = last.saturating_mul(CHUNK_DOCUMENTS);
    (
        first.saturating_mul(CHUNK_DOCUMENTS),
        end.saturating_add(CHUNK_DOCUMENTS - 1),
    )
}

/// Describes a damaged page for a report.
pub(crate) fn problem_of(page: &PageDamage, table: &str) -> Problem {
    let place = match page.offset {
        Some(offset) => format!("page at byte {offset}"),
        None => "page outside of the file".into(),
    };
    let keys = keys_in_words(table, &page.keys);
    Problem {
        invariant: 8,
        place: format!("{place}, table {table}, level {}, {keys}", page.depth),
        detail: page.detail.to_string(),
    }
}

/// Describes damage of the head of a file for a report.
pub(crate) fn problem_of_head(damage: &HeadDamage) -> Problem {
    Problem {
        invariant: 8,
        place: damage.place.clone(),
        detail: damage.detail.into(),
    }
}

/// The keys of a range, in words.
fn keys_in_words(table: &str, keys: &KeyRange) -> String {
    if let Some((first, last)) = ids_of(table, keys) {
        return match last {
            u64::MAX => format!("ids from {first} on"),
            last => format!("ids {first} to {last}"),
        };
    }
    let bound = |key: &Option<Box<[u8]>>| key.as_ref().map(|key| key_in_words(table, key));
    match (bound(&keys.above), bound(&keys.up_to)) {
        (None, None) => "all rows".into(),
        (None, Some(last)) => format!("rows up to {last}"),
        (Some(above), None) => format!("rows after {above}"),
        (Some(above), Some(last)) => format!("rows after {above}, up to {last}"),
    }
}

fn key_in_words(table: &str, stored: &[u8]) -> String {
    if let (true, Ok(key)) = (table == "filters", stored.try_into()) {
        let (run, lane, piece) = split_filter_key(key);
        return format!("run {run}, lane {lane}, piece {piece}");
    }
    if let (true, Ok(key)) = (stored.len() == 22, stored.try_into()) {
        let (run, lane, last) = split_block_key(key);
        return format!("run {run}, lane {lane}, code {:x}", last.code);
    }
    let mut words = String::from("key ");
    for byte in row_key(table, stored) {
        use std::fmt::Write;
        // Writing to a string cannot fail.
        let _ = write!(words, "{byte:02x}");
    }
    words
}
