//! Checks that the pages of a file have the layout that [`page_layout`](super::page_layout) reads.
//!
//! The seal distinguishes damage from a newer layout. It is written together with the head, so an
//! engine wrote every head with an intact seal, and anything unknown in such a head is a newer
//! layout. A release that changes the layout of pages, through a newer engine or otherwise, must
//! also change [`LAYOUT`]. Older releases then refuse its files with an explanation, and never
//! report them as damaged.

use std::fmt;
use std::ops::Range;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::page_layout::{
    ENGINE_MAGIC, ENGINE_VERSION, HEAD_BYTES, Head, HeadSeal, PAGE_BYTES, SEAL_MAGIC,
    SEALED_HEAD_BYTES, SLOT_BYTES, SLOT_OFFSETS, check_head, u32_at,
};

/// The last byte of the seal's magic, which identifies the layout of the pages.
const LAYOUT: u8 = {
    let [.., last] = *SEAL_MAGIC;
    last
};

/// The flags that the engine may set in byte 9: which commit is valid, that the file was not
/// closed, that the commit was made in two phases, and that one of several writers had not
/// finished.
const KNOWN_FLAGS: u8 = 0b1111;

/// Bytes of the head, and of each of its commits, that the known engines leave zero.
const UNUSED_IN_HEAD: [Range<usize>; 2] = [10..12, 32..64];
const UNUSED_IN_SLOT: [Range<usize>; 2] = [3..8, 72..104];

const UNUSED: &str = "bytes of unknown use";

/// Returns what [`EngineError::UnknownLayout`](crate::EngineError::UnknownLayout) reports.
fn unknown(what: &str, found: impl fmt::Display, expected: impl fmt::Display) -> String {
    format!("found {what} {found}, expected {expected}")
}

/// Reads a head whose seal is intact.
///
/// # Errors
/// A description of what was found and what was expected, if a field of the head has an unknown
/// meaning.
pub(crate) fn recognize(head: &[u8; HEAD_BYTES]) -> Result<Head, String> {
    if !head.starts_with(ENGINE_MAGIC) {
        return Err(unknown("first bytes", "of no engine", "redb's"));
    }
    for slot in slots(head) {
        check_slot(slot)?;
    }
    if let Some(flags) = head.get(9).filter(|flags| *flags & !KNOWN_FLAGS != 0) {
        let expected = format!("none beyond {KNOWN_FLAGS:#x}");
        return Err(unknown("flags", format!("{flags:#x}"), expected));
    }
    if let Some(bytes) = u32_at(head, 12).filter(|bytes| *bytes as usize != PAGE_BYTES) {
        return Err(unknown("pages of", bytes, PAGE_BYTES));
    }
    if !are_zero(head, &UNUSED_IN_HEAD) {
        return Err(unknown(UNUSED, "in the head", "zeros"));
    }
    let regions = || unknown("regions", "of another size", "up to 2^20 pages");
    Head::parse(head).ok_or_else(regions)
}

/// The bytes of one of the two commits that a head refers to.
type SlotBytes = [u8; SLOT_BYTES];

fn slots(head: &[u8; HEAD_BYTES]) -> impl Iterator<Item = &SlotBytes> {
    let slot = |offset: usize| head.get(offset..)?.first_chunk();
    SLOT_OFFSETS.into_iter().filter_map(slot)
}

fn check_slot(slot: &SlotBytes) -> Result<(), String> {
    let [version, ..] = slot;
    if *version != ENGINE_VERSION {
        let what = "redb's file format";
        return Err(unknown(what, version, ENGINE_VERSION));
    }
    // The engine leaves a torn commit in its slot, with arbitrary bytes. Only a right checksum
    // shows that the engine wrote these bytes.
    if is_intact(slot) && !are_zero(slot, &UNUSED_IN_SLOT) {
        return Err(unknown(UNUSED, "in a commit", "zeros"));
    }
    Ok(())
}

fn is_intact(slot: &SlotBytes) -> bool {
    let checksum = slot.split_last_chunk::<16>();
    checksum.is_some_and(|(body, checksum)| xxh3_128(body).to_le_bytes() == *checksum)
}

fn are_zero(bytes: &[u8], ranges: &[Range<usize>]) -> bool {
    let mut parts = ranges.iter().filter_map(|range| bytes.get(range.clone()));
    parts.all(|part| part.iter().all(|byte| *byte == 0))
}

/// Returns a description of what is unknown in the first bytes of a file. Returns `None` if they
/// are known, damaged, or foreign.
pub(crate) fn unknown_layout(sealed: &[u8; SEALED_HEAD_BYTES]) -> Option<String> {
    let head = sealed.first_chunk()?;
    match check_head(sealed) {
        HeadSeal::Intact => recognize(head).err(),
        HeadSeal::Foreign => None,
        // The seal of another release. A commit with a right checksum proves its version as well.
        HeadSeal::Damaged => other_seal(sealed).or_else(|| {
            let is_other = |slot: &&SlotBytes| slot.first() != Some(&ENGINE_VERSION);
            let slot = slots(head).filter(is_other).find(|slot| is_intact(slot))?;
            check_slot(slot).err()
        }),
    }
}

/// The seal of another layout has the same place and length. Its checksum covers head and magic, so
/// that a flipped bit in the magic of this layout does not make it the seal of another.
fn other_seal(sealed: &[u8; SEALED_HEAD_BYTES]) -> Option<String> {
    let (covered, checksum) = sealed.split_last_chunk::<8>()?;
    let (layout, family) = covered.get(HEAD_BYTES..)?.split_last()?;
    let is_other = SEAL_MAGIC.starts_with(family) && *layout != LAYOUT;
    (is_other && xxh3_64(covered).to_le_bytes() == *checksum)
        .then(|| unknown("page layout", layout, LAYOUT))
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
