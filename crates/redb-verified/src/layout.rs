//! Decides whether a file's pages are laid out in the way that [`page_layout`](super::page_layout)
//! reads.
//!
//! The seal distinguishes damage from novelty: it is written together with the head, so a head with
//! an intact seal is one that an engine wrote, and anything unknown in it is a newer layout. A
//! release that changes how pages are laid out, by a newer engine or in another way, must also
//! change [`LAYOUT`]: older releases then refuse its files with an explanation, and never call them
//! damaged.

use std::fmt;
use std::ops::Range;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::page_layout::{
    ENGINE_MAGIC, ENGINE_VERSION, HEAD_BYTES, Head, HeadSeal, PAGE_BYTES, SEAL_MAGIC,
    SEALED_HEAD_BYTES, SLOT_BYTES, SLOT_OFFSETS, check_head, u32_at,
};

/// The last byte of the seal's magic: the layout of the pages that follow.
const LAYOUT: u8 = {
    let [.., last] = *SEAL_MAGIC;
    last
};

/// The flags that the engine may set in byte 9: which commit counts, that the file was not closed,
/// that the commit was made in two phases, and that a writer of several processes was not done.
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
/// Returns what was found and what was expected, if any field of the head has an unknown meaning.
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

/// One of the two commits that a head refers to.
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
    // The engine leaves a torn commit in its slot, noise included. Only a right checksum makes a byte there
    // a statement of the engine.
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

/// Returns the unknown part of the first bytes of a file; `None` if they are known, damaged, or foreign.
pub(crate) fn unknown_layout(sealed: &[u8; SEALED_HEAD_BYTES]) -> Option<String> {
    let head = sealed.first_chunk()?;
    match check_head(sealed) {
        HeadSeal::Intact => recognize(head).err(),
        HeadSeal::Foreign => None,
        // Another release's seal. A commit with a right checksum vouches for its version, too.
        HeadSeal::Damaged => other_seal(sealed).or_else(|| {
            let is_other = |slot: &&SlotBytes| slot.first() != Some(&ENGINE_VERSION);
            let slot = slots(head).filter(is_other).find(|slot| is_intact(slot))?;
            check_slot(slot).err()
        }),
    }
}

/// The seal of another layout has the same place and length. Its checksum is that of head and magic,
/// so that no bit that flips in the magic of this layout makes it one.
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
