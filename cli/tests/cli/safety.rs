//! Input must not control a terminal, and must not take more memory than allowed.

#[cfg(target_os = "linux")]
use crate::sample::one_in;
use crate::support::zstd;
use crate::support::{Folder, distinct, line};

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
