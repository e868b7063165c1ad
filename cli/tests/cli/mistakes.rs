//! Every kind of mistake: a clear sentence, the documented exit code, nothing lost.

#[cfg(unix)]
use std::fs::File;
#[cfg(target_os = "linux")]
use std::process::Stdio;

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

#[cfg(target_os = "linux")]
#[test]
fn links_modes_and_streams_are_respected() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.write("private", "old");
    std::fs::set_permissions(folder.path("private"), PermissionsExt::from_mode(0o600)).unwrap();
    symlink("private", folder.path("link.jsonl")).unwrap();
    folder
        .run("dedup c.jsonl -o link.jsonl --force")
        .expect(4)
        .says(&[
            "link.jsonl is a link",
            "give the name of its target, private",
        ]);
    assert_eq!(folder.read_text("private"), "old");
    folder.run("dedup c.jsonl -o private --force").expect(0);
    assert_eq!(folder.read_text("private").lines().count(), 4);
    assert!(std::fs::read_link(folder.path("link.jsonl")).is_ok());
    let mode = |name: &str| {
        let metadata = folder.path(name).metadata().unwrap();
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode("private"), 0o600);
    folder.run("build a.rsm c.jsonl").expect(0);
    std::fs::set_permissions(folder.path("a.rsm"), PermissionsExt::from_mode(0o640)).unwrap();
    folder.run("export a.rsm -o a.rss").expect(0);
    assert_eq!(mode("a.rss"), 0o640);
    folder.run("export a.rsm -o private --force").expect(0);
    assert_eq!(mode("private"), 0o640);
    folder.run("dedup c.jsonl -o new.jsonl").expect(0);
    assert_eq!(mode("new.jsonl"), mode("c.jsonl"));

    let stdout = File::create(folder.path("stdout")).unwrap();
    let mut command = folder.command("dedup c.jsonl -o /dev/stdout");
    ran(command.stdout(stdout).output().unwrap()).expect(0);
    assert_eq!(folder.read("stdout"), folder.read("new.jsonl"));
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

#[cfg(target_os = "linux")]
#[test]
fn full_disk_exits_with_io() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder
        .run("dedup c.jsonl -o /dev/full")
        .expect(4)
        .says(&["/dev/full", "no space left"]);
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    for arguments in [
        "pairs c.jsonl",
        "clusters c.jsonl --format jsonl",
        "pairs c.jsonl --format table",
        "dedup c.jsonl -o -",
        "completions bash",
    ] {
        let output = folder.command(arguments).stdout(full()).output().unwrap();
        ran(output).expect(4).says(&["no space left"]);
    }
    folder.run("dedup c.jsonl -o /dev/null").expect(0);
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

/// Runs the tool with a limit on the size of files, in blocks of 512 bytes.
#[cfg(target_os = "linux")]
fn run_limited(folder: &Folder, blocks: u32, arguments: &str) -> crate::support::Ran {
    let tool = env!("CARGO_BIN_EXE_resemblance");
    let script = format!("ulimit -f {blocks}; exec '{tool}' {arguments}");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).current_dir(folder.path("."));
    ran(command.output().unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn disk_that_fills_up_loses_no_committed_document() {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..6_000));
    for (arguments, what) in [
        ("build a.rsm c.jsonl", "temporary store in ."),
        (
            "dedup c.jsonl -o out.jsonl --report r.tsv",
            "cannot write out.jsonl",
        ),
        (
            "pairs c.jsonl --temp-dir . --memory 2M --verify estimate",
            "temporary store in .",
        ),
        (
            "pairs c.jsonl --temp-dir . --memory 2M",
            "temporary file in .",
        ),
    ] {
        let ran = run_limited(&folder, 4_000, arguments).expect(4);
        ran.says(&[what, "file too large"]);
        assert_eq!(folder.names(), ["c.jsonl"], "{arguments}");
    }
    folder.run("create a.rsm").expect(0);
    run_limited(&folder, 4_000, "add a.rsm c.jsonl --commit-every 500")
        .expect(4)
        .says(&["a.rsm: ", "file too large", "committed ", "give --skip "]);
    let count = folder.count("a.rsm");
    assert!(
        count > 0 && count < 6_000 && count.is_multiple_of(500),
        "{count}"
    );
    let skip = count.to_string();
    folder
        .run(&format!("add a.rsm c.jsonl --skip '{skip}'"))
        .expect(0);
    assert_eq!(folder.count("a.rsm"), 6_000);
    folder.run("check a.rsm").expect(0);
}
