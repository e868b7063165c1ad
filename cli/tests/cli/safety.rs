//! Input must not control a terminal, and must not take more memory than allowed.

#[cfg(target_os = "linux")]
use crate::sample::one_in;
use crate::support::zstd;
use crate::support::{Folder, distinct, line, text};

/// Controls of C0 and C1, delete, and a bidirectional override.
const HOSTILE: &str = "a\u{1b}[2J\u{9b}1m\u{7f}\u{202e}b";

#[test]
fn control_characters_of_keys_are_escaped_in_every_format() {
    let folder = Folder::new();
    folder.write("c.jsonl", line(HOSTILE, &text(1)) + &line("z", &text(1)));
    folder.run("build a.rsm c.jsonl").expect(0);
    let escaped = "a\\x1B[2J\\xC2\\x9B1m\\x7F\\xE2\\x80\\xAEb";
    for verb in [
        &["pairs", "c.jsonl"][..],
        &["clusters", "c.jsonl"],
        &["query", "a.rsm", &text(1)],
        &["get", "a.rsm", "--escaped", escaped],
        &["stats", "a.rsm"],
        &["dedup", "c.jsonl", "-o", "/dev/null", "--report", "-"],
    ] {
        for format in ["table", "tsv", "jsonl"] {
            let format = ["--format", format];
            let is_dedup = verb[0] == "dedup";
            let format = if is_dedup { &[][..] } else { &format };
            let ran = folder.run(&[verb, format].concat()).expect(0);
            let printed = ran.stdout + &ran.stderr;
            let is_clean = |c: char| {
                c == '\n' || c == '\t' || !HOSTILE[1..].contains(c) || c.is_ascii_graphic()
            };
            assert!(printed.chars().all(is_clean), "{verb:?}: {printed:?}");
        }
    }
    let json = folder.run("pairs c.jsonl --format jsonl").expect(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["key_a"], HOSTILE);
    // Messages, which have file names and keys in them.
    let named = format!("{HOSTILE}\nresemblance: all is well");
    let ran = folder.run(&["pairs", &named]).expect(4);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("\\x1B[2J\\xC2\\x9B1m\\x7F\\xE2\\x80\\xAEb\\x0A"),
        "{}",
        ran.stderr
    );
}

/// Returns a compressed file of zeros that exceeds the remaining memory.
#[cfg(target_os = "linux")]
fn bomb(start: &str, megabytes: usize) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.write_all(start.as_bytes()).unwrap();
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..megabytes {
        encoder.write_all(&piece).unwrap();
    }
    encoder.write_all(b"\"}\n").unwrap();
    encoder.finish().unwrap()
}

#[cfg(target_os = "linux")]
fn run_with_memory(folder: &Folder, kibibytes: u64, arguments: &str) -> crate::support::Ran {
    let tool = env!("CARGO_BIN_EXE_resemblance");
    let script = format!("ulimit -v {kibibytes}; exec '{tool}' {arguments}");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).current_dir(folder.path("."));
    crate::support::ran(command.output().unwrap())
}

/// For one verb in three, for each with `RESEMBLANCE_TESTS=all`.
#[cfg(target_os = "linux")]
#[test]
fn decompression_bombs_stay_within_memory() {
    let folder = Folder::new();
    folder.write("bomb.jsonl.zst", bomb("{\"id\": 1, \"text\": \"", 700));
    let good = distinct(0..20);
    folder.write("good.jsonl.zst", zstd(good.as_bytes()));
    let limits = "--memory 32M --max-line 16M --cache 4M";
    let verbs = ["build a.rsm", "dedup -o out.jsonl", "pairs"];
    for verb in verbs.into_iter().step_by(one_in(3)) {
        let arguments = format!("{verb} good.jsonl.zst bomb.jsonl.zst {limits}");
        run_with_memory(&folder, 500_000, &arguments)
            .expect(3)
            .says(&["the line is longer than 16777216 bytes\n  at bomb.jsonl.zst:1"]);
    }
    let arguments = format!("build a.rsm good.jsonl.zst bomb.jsonl.zst --skip-bad {limits}");
    run_with_memory(&folder, 500_000, &arguments)
        .expect(0)
        .says(&["added 20", "skipped 1"]);
    // Many large documents, each of which is allowed.
    let large = "word ".repeat(3 << 20);
    let lines: String = (0..8).map(|n| line(&n.to_string(), &large)).collect();
    folder.write("large.jsonl", lines);
    let arguments = format!("build b.rsm large.jsonl {limits} --threads 8");
    run_with_memory(&folder, 900_000, &arguments)
        .expect(0)
        .says(&["added 8"]);
}

#[test]
fn decompression_windows_are_bounded() {
    let folder = Folder::new();
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.long_distance_matching(true).unwrap();
    encoder.window_log(27).unwrap();
    std::io::Write::write_all(&mut encoder, distinct(0..10).as_bytes()).unwrap();
    folder.write("c.jsonl.zst", encoder.finish().unwrap());
    folder
        .run("build a.rsm c.jsonl.zst --memory 64M")
        .expect(3)
        .says(&["c.jsonl.zst was compressed with a window", "--memory"]);
    folder.run("build a.rsm c.jsonl.zst").expect(0);
}
