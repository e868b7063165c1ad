//! Tests that heads of other layouts and damaged heads are distinguished.

use super::*;
use crate::page_layout::seal_head;

/// Returns a head as the engine writes it.
fn known() -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..9].copy_from_slice(ENGINE_MAGIC);
    head[9] = 5;
    head[12..16].copy_from_slice(&4_096u32.to_le_bytes());
    head[20..24].copy_from_slice(&(1u32 << 20).to_le_bytes());
    head[28] = 250;
    for slot in SLOT_OFFSETS {
        head[slot..slot + 3].copy_from_slice(&[ENGINE_VERSION, 1, 1]);
        head[slot + 8] = 7;
    }
    with_checksums(head)
}

fn with_checksums(mut head: [u8; HEAD_BYTES]) -> [u8; HEAD_BYTES] {
    for slot in SLOT_OFFSETS {
        let checksum = xxh3_128(&head[slot..slot + 112]).to_le_bytes();
        head[slot + 112..slot + 128].copy_from_slice(&checksum);
    }
    head
}

#[test]
fn layout_of_the_engine_is_recognized() {
    assert_eq!(unknown_layout(&seal_head(&known())), None);
    for flags in 0..=KNOWN_FLAGS {
        let mut head = known();
        head[9] = flags;
        assert_eq!(recognize(&head).unwrap().may_be_torn, flags & 4 == 0);
    }
}

/// A writer that knows how to seal may set any byte of the head to another value. Each such head is
/// known, or is refused by name; none counts as damage.
#[test]
fn unknown_fields_of_a_sealed_head_are_named() {
    let unknown = |at: usize, value: u8| {
        let mut head = known();
        head[at] = value;
        let found = unknown_layout(&seal_head(&with_checksums(head)));
        found.map(|layout| layout.to_string())
    };
    let expect = |at: usize, value: u8, expected: &str| {
        let found = unknown(at, value).unwrap_or_else(|| panic!("byte {at} went unnoticed"));
        assert!(found.contains(expected), "byte {at}: {found}");
    };
    (0..9).for_each(|at| expect(at, 1, "first bytes"));
    (4..8).for_each(|bit| expect(9, 1 << bit, "flags"));
    (10..12)
        .chain(32..64)
        .for_each(|at| expect(at, 1, "in the head"));
    (12..16).for_each(|at| expect(at, 1, "pages of"));
    for slot in SLOT_OFFSETS {
        for version in (0..=u8::MAX).filter(|version| *version != ENGINE_VERSION) {
            expect(slot, version, &format!("file format {version}, expected 3"));
        }
        (3..8)
            .chain(72..104)
            .for_each(|at| expect(slot + at, 1, "in a commit"));
        for at in (1..3).chain(8..72).chain(104..112) {
            assert_eq!(
                unknown(slot + at, 9),
                None,
                "roots, rows and numbers of commits"
            );
        }
    }
}

/// A torn commit stays unchanged, and the head is written with it.
#[test]
fn noise_in_a_torn_commit_is_not_an_unknown_layout() {
    let mut head = known();
    head[64 + 80] = 1;
    assert_eq!(unknown_layout(&seal_head(&head)), None);
    head[64] = 4;
    assert!(unknown_layout(&seal_head(&head)).is_some());
}

#[test]
fn flipped_bit_never_looks_like_another_layout() {
    let sealed = seal_head(&known());
    for bit in 0..SEALED_HEAD_BYTES * 8 {
        let mut damaged = sealed;
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(unknown_layout(&damaged), None, "bit {bit}");
    }
    let mut foreign = sealed;
    foreign[HEAD_BYTES..].fill(0);
    assert_eq!(unknown_layout(&foreign), None);
}

#[test]
fn seals_of_other_releases_are_distinguished() {
    let seal = |layout: u8| {
        let mut sealed = seal_head(&known());
        // The rest of the head may be entirely different.
        sealed[40..60].fill(0xee);
        sealed[327] = layout;
        let checksum = xxh3_64(&sealed[..328]).to_le_bytes();
        sealed[328..].copy_from_slice(&checksum);
        unknown_layout(&sealed)
    };
    for layout in (0..=u8::MAX).filter(|layout| *layout != LAYOUT) {
        let found = seal(layout).unwrap().to_string();
        assert_eq!(found, format!("found page layout {layout}, expected 26"));
    }
    assert_eq!(seal(LAYOUT), None);
}

/// If the seal does not help, a commit with a right checksum proves its version.
#[test]
fn damaged_seal_does_not_hide_a_newer_version() {
    let mut head = known();
    head[192] = 4;
    let mut sealed = seal_head(&with_checksums(head));
    sealed[330] ^= 1;
    let found = unknown_layout(&sealed).unwrap().to_string();
    assert_eq!(found, "found redb's file format 4, expected 3");
    sealed[193] ^= 1;
    assert_eq!(unknown_layout(&sealed), None);
}
