//! dedup: where the output goes, and that nothing else is touched.

use crate::dedup::survivors;
use crate::support::{Folder, gunzip, gzip, mixed, text, unzstd, zstd};

#[test]
fn compression_follows_the_names() {
    let folder = Folder::new();
    folder.write("c.jsonl.gz", gzip(mixed().as_bytes()));
    folder.write("c.jsonl.zst", zstd(mixed().as_bytes()));
    for input in ["c.jsonl.gz", "c.jsonl.zst"] {
        folder
            .run(&["dedup", input, "-o", "o.jsonl", "--force"])
            .expect(0);
        assert_eq!(folder.read_text("o.jsonl"), survivors());
        folder
            .run(&["dedup", input, "-o", "o.jsonl.gz", "--force"])
            .expect(0);
        assert_eq!(gunzip(&folder.read("o.jsonl.gz")), survivors());
        folder
            .run(&["dedup", input, "-o", "o.jsonl.zst", "--force"])
            .expect(0);
        assert_eq!(unzstd(&folder.read("o.jsonl.zst")), survivors());
        let piped = folder
            .run_with_input(&["dedup", "-", "-o", "-"], &folder.read(input))
            .expect(0);
        assert_eq!(piped.stdout, survivors());
    }
}

#[test]
fn a_folder_gets_the_names_and_compression_of_the_input() {
    let folder = Folder::new();
    let lines: Vec<String> = mixed().lines().map(|l| l.to_owned() + "\n").collect();
    folder.write("in/b.jsonl.gz", gzip(lines[..2].concat().as_bytes()));
    folder.write("in/a.jsonl", lines[2..4].concat());
    folder.write("in/sub/c.jsonl.zst", zstd(lines[4..].concat().as_bytes()));
    folder.write("in/sub/empty.jsonl", "");
    folder.write("in/sub/only-copies.jsonl.gz", gzip(lines[1].as_bytes()));
    let ran = folder
        .run(&["dedup", "in/b.jsonl.gz", "in/a.jsonl", "-o", "flat/"])
        .expect(0);
    assert_eq!(gunzip(&folder.read("flat/b.jsonl.gz")), lines[0]);
    assert_eq!(folder.read_text("flat/a.jsonl"), lines[2]);
    ran.says(&["read 4, kept 2, dropped 2"]);
    // a folder as input: a.jsonl comes first there
    folder.run(&["dedup", "in", "-o", "out/"]).expect(0);
    assert_eq!(folder.read_text("out/a.jsonl"), lines[2..4].concat());
    assert_eq!(gunzip(&folder.read("out/b.jsonl.gz")), "");
    assert_eq!(
        unzstd(&folder.read("out/sub/c.jsonl.zst")),
        lines[4].clone() + &lines[6]
    );
    assert_eq!(folder.read("out/sub/empty.jsonl"), b"");
    assert_eq!(gunzip(&folder.read("out/sub/only-copies.jsonl.gz")), "");
    let hidden: Vec<_> = folder
        .names()
        .into_iter()
        .filter(|n| n.contains("/.") || n.starts_with('.'))
        .collect();
    assert_eq!(hidden, Vec::<String>::new());
}

#[test]
fn text_files_go_to_a_folder() {
    let folder = Folder::new();
    let crlf = text(1).replace(' ', "\r\n");
    folder.write("in/a.txt", &crlf);
    folder.write("in/b/copy.txt", text(1));
    folder.write("in/b/other.txt", format!("\u{feff}{}", text(2)));
    folder.write("in/empty.txt", "");
    folder
        .run(&["dedup", "in", "-o", "out", "--report", "r.tsv"])
        .expect(0)
        .says(&["empty 1"]);
    let kept: Vec<_> = folder
        .names()
        .into_iter()
        .filter(|n| n.starts_with("out"))
        .collect();
    assert_eq!(kept, ["out/a.txt", "out/b/other.txt", "out/empty.txt"]);
    assert_eq!(folder.read_text("out/a.txt"), crlf);
    assert_eq!(
        folder.read("out/b/other.txt"),
        folder.read("in/b/other.txt")
    );
    assert_eq!(
        folder.report("r.tsv"),
        "in/b/copy.txt\tin/a.txt\t1.000000\texact\n"
    );
    folder
        .run(&["dedup", "in", "-o", "out.jsonl"])
        .expect(2)
        .says(&["only be written to a folder"]);
    folder
        .run(&["dedup", "in", "-o", "-"])
        .expect(2)
        .says(&["only be written to a folder"]);
    folder
        .run(&["dedup", "in", "-o", "r.tsv", "--force"])
        .expect(2)
        .says(&["only be written to a folder"]);
    folder
        .run(&["dedup", "in", "-o", "in/out"])
        .expect(2)
        .says(&["lies in the input folder"]);
    folder
        .run(&["dedup", "in", "-o", "in", "--force"])
        .expect(2)
        .says(&["lies in the input folder"]);
}

#[test]
fn existing_output_is_kept_without_force() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.write("out.jsonl", "old");
    folder.write("dir/c.jsonl", "old");
    folder.write("r.tsv", "old");
    for arguments in [
        &["-o", "out.jsonl"][..],
        &["-o", "dir"],
        &["-o", "new.jsonl", "--report", "r.tsv"],
    ] {
        let mut all = vec!["dedup", "c.jsonl"];
        all.extend(arguments);
        folder
            .run(&all)
            .expect(4)
            .says(&["exists already", "--force"]);
    }
    let names = ["c.jsonl", "dir/c.jsonl", "out.jsonl", "r.tsv"];
    assert_eq!(folder.names(), names);
    assert_eq!(folder.read_text("dir/c.jsonl"), "old");
    folder
        .run(&[
            "dedup", "c.jsonl", "-o", "dir", "--force", "--report", "r.tsv",
        ])
        .expect(0);
    assert_eq!(folder.read_text("dir/c.jsonl"), survivors());
    assert_eq!(folder.report("r.tsv").lines().count(), 3);
    // in place
    folder
        .run(&["dedup", "c.jsonl", "-o", "c.jsonl", "--force"])
        .expect(0);
    assert_eq!(folder.read_text("c.jsonl"), survivors());
    assert_eq!(folder.names(), names);
}

#[test]
fn a_failure_leaves_nothing_behind() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed() + "{\"id\":\"x\",\"text\":7}\n");
    let arguments = [
        "dedup",
        "c.jsonl",
        "-o",
        "out.jsonl",
        "--report",
        "r.tsv",
        "--temp-dir",
        ".",
    ];
    folder
        .run(&arguments)
        .expect(3)
        .says(&["c.jsonl:8", "field \"text\" is a number, expected a string"]);
    assert_eq!(folder.names(), ["c.jsonl"]);
    let ran = folder.run(&["dedup", "c.jsonl", "-o", "-"]).expect(3);
    assert_eq!(ran.stdout, "");
    folder
        .run(&["dedup", "c.jsonl", "-o", "new/", "--temp-dir", "."])
        .expect(3);
    assert_eq!(folder.names(), ["c.jsonl"]);
    let ran = folder
        .run(&["dedup", "c.jsonl", "-o", "-", "--skip-bad", "-v"])
        .expect(0);
    assert_eq!(ran.stdout, survivors());
    assert!(ran.stderr.contains("skipped c.jsonl:8: "), "{}", ran.stderr);
    ran.says(&["read 8, kept 4, dropped 3, skipped 1"]);
}
