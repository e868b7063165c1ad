//! Every kind of mistake: a clear sentence, the documented exit code, nothing lost.

#[cfg(unix)]
use std::fs::File;

use crate::sample::one_in;
use crate::support::{Folder, distinct, mixed, ran};

#[test]
fn check_finds_damage() {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..400));
    folder.run("build a.rsm c.jsonl").expect(0);
    let sound = folder.read("a.rsm");
    // cut in half
    folder.write("cut.rsm", &sound[..sound.len() / 2]);
    let cut = folder.run("check cut.rsm");
    assert!(
        matches!(cut.code, Some(1 | 6)),
        "{:?} {}",
        cut.code,
        cut.stderr
    );
    // one byte of every 4 KiB page behind those that lead to the others
    let mut damaged = sound.clone();
    for position in (sound.len() / 16..sound.len() - 1_000).step_by(4096) {
        damaged[position + 1_000] ^= 0xff;
    }
    folder.write("bad.rsm", damaged);
    let check = folder.run("check bad.rsm").expect(1);
    assert!(!check.stdout.is_empty());
}

/// With one damaged page in three, with each of 48 with `RESEMBLANCE_TESTS=all`.
#[test]
fn damage_is_reported_in_one_sentence_that_names_the_store() {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..400));
    folder.run("build a.rsm c.jsonl").expect(0);
    let sound = folder.read("a.rsm");
    let mut seen = 0;
    // the first page is the header, without which the file is no store
    let pages = (4096..sound.len()).step_by(4096).take(48);
    for start in pages.step_by(one_in(3)) {
        let mut damaged = sound.clone();
        damaged[start..start + 4096].fill(0);
        folder.write("bad.rsm", damaged);
        for arguments in [
            "stats bad.rsm",
            "pairs bad.rsm -q",
            "dedup c.jsonl --against bad.rsm -o - -q",
        ] {
            let ran = folder.run(arguments);
            if ran.code == Some(6) {
                ran.says(&["bad.rsm: ", "damage"]);
                seen += 1;
            } else {
                assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
                assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
            }
        }
        let check = folder.run("check bad.rsm");
        assert!(!check.stderr.contains("panicked"), "{}", check.stderr);
    }
    assert!(seen > 3 / one_in(3), "{seen}");
}

#[cfg(unix)]
#[test]
fn unreadable_files_are_io_errors() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    let mode = |mode| {
        std::fs::set_permissions(folder.path("c.jsonl"), PermissionsExt::from_mode(mode)).unwrap()
    };
    mode(0o000);
    // the superuser reads everything
    if File::open(folder.path("c.jsonl")).is_err() {
        folder
            .run("build a.rsm c.jsonl --skip-bad")
            .expect(4)
            .says(&["cannot read c.jsonl"]);
        assert_eq!(folder.names(), ["c.jsonl"]);
    }
    mode(0o600);
}

#[test]
fn closed_pipe_ends_the_tool_quietly() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    for arguments in [
        &["pairs", "c.jsonl", "-q"][..],
        &["clusters", "c.jsonl", "--format", "table", "-q"],
        &["dedup", "c.jsonl", "-o", "-", "-q"],
        &["completions", "bash"],
        &["--help"],
    ] {
        let mut child = folder.command(arguments).spawn().unwrap();
        drop(child.stdout.take());
        let ran = ran(child.wait_with_output().unwrap()).expect(0);
        assert_eq!(ran.stderr, "", "{arguments:?}");
    }
}
