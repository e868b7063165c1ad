//! The first bytes of the file, and files that were not closed.

use crate::common::memory::MemoryFiles;
use crate::common::sample::one_in;
use crate::common::sealing_after;
use crate::repair::{STORE, contents, filled, repair, schema, signature, try_repair};

/// All files have the same geometry of pages, and each of the two commits has a separate checksum.
/// Damages one byte in eleven, or each with `RESEMBLANCE_TESTS=all`.
#[test]
fn repair_of_a_damaged_head_loses_nothing() {
    let (files, before) = filled(100);
    let whole = files.read(STORE);
    for at in (0..336).step_by(one_in(11)) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        let (report, kept) = repair(&bytes);
        assert_eq!(kept, before, "byte {at}");
        // The commit whose checksum is wrong may have been the last.
        let is_in_a_commit = (64..320).contains(&at);
        assert_eq!(report.is_earlier_commit, is_in_a_commit, "byte {at}");
        assert_eq!(report.is_complete(), !is_in_a_commit, "byte {at}");
        let problem = &report.damage[0];
        assert!(problem.place.contains("head of the file"), "{problem:?}");
        let files = MemoryFiles::with(STORE, bytes);
        let checked = files.options(&sealing_after(64)).check(STORE).run();
        assert!(checked.unwrap().problems.contains(problem));
    }
}

#[test]
fn repair_without_a_head_scans_for_documents() {
    let (files, before) = filled(100);
    let mut bytes = files.read(STORE);
    bytes[..4_096].fill(0);
    let refused = try_repair(&bytes, |repair| repair).unwrap_err();
    assert!(matches!(refused, resemblance::Error::NotAStore { .. }));
    let (report, kept) = try_repair(&bytes, |repair| repair.scan(true)).unwrap();
    assert!(
        before
            .iter()
            .all(|(id, content)| kept.get(id) == Some(content))
    );
    assert!(report.has_own_schema && !report.may_be_back.is_empty());
    assert!(!report.is_complete());
}

/// A file that was not closed holds its last commit; if that is damaged, the one before.
#[test]
fn repair_reads_an_unclosed_file() {
    let files = MemoryFiles::default();
    // At their places: what of commits in a journal is damaged does not look like a crash.
    let options = files.options(&sealing_after(64).journal(0, 0));
    let store = options.create(STORE, schema()).unwrap();
    let mut states = Vec::new();
    for number in 0..40 {
        store
            .insert(format!("key {number}"), &signature(number))
            .unwrap();
        states.push(contents(&store.snapshot().unwrap()));
    }
    let bytes = files.read(STORE);
    let (last, before) = (&states[39], &states[38]);
    let (report, kept) = repair(&bytes);
    assert_eq!(&kept, last);
    assert!(
        report.is_complete() && !report.is_earlier_commit,
        "{report:#?}"
    );
    // The root of the last commit, as the engine's head has it.
    let slot = 64 + 128 * usize::from(bytes[9] & 1);
    let index = u64::from_le_bytes(bytes[slot + 8..slot + 16].try_into().unwrap()) & 0xf_ffff;
    let mut damaged = bytes.clone();
    damaged[4_096 * (index as usize + 1) + 10] ^= 1;
    let (report, kept) = repair(&damaged);
    assert_eq!(&kept, before);
    assert!(report.is_earlier_commit && !report.is_complete());
    drop(store);
}
