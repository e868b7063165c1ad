//! export and import: what they write, take in and refuse.

use crate::support::{Folder, distinct, line, text};

fn two_stores() -> Folder {
    let folder = Folder::new();
    folder.write("a.jsonl", distinct(0..40));
    folder.write("b.jsonl", distinct(30..70));
    folder.run("build a.rsm a.jsonl").expect(0);
    folder.run("build b.rsm b.jsonl").expect(0);
    folder
}

#[test]
fn exported_stores_merge_under_new_bands() {
    let folder = two_stores();
    for name in ["plain", "a.stream.gz", "a.stream.zst"] {
        let ran = folder.run(&format!("export a.rsm -o {name}")).expect(0);
        ran.says(&["exported 40 documents"]);
    }
    let stream = folder.read("plain");
    assert!(stream.starts_with(b"RESEMBX\x1a"));
    assert!(gunzip_bytes(&folder.read("a.stream.gz")) == stream);
    assert!(zstd::stream::decode_all(&folder.read("a.stream.zst")[..]).unwrap() == stream);
    folder.run("export a.rsm -o plain").expect(4);
    folder.run("export a.rsm -o plain --force").expect(0);

    let create = |name: &str| {
        let ran = folder.run(&format!("create {name} --threshold 0.5"));
        ran.expect(0);
    };
    for (number, stream) in ["plain", "a.stream.gz", "a.stream.zst"].iter().enumerate() {
        let name = format!("all-{number}.rsm");
        create(&name);
        folder
            .run(&format!("import {name} {stream}"))
            .expect(0)
            .says(&["read 40 documents, added 40"]);
    }
    let command = "import all-0.rsm - --keys skip";
    folder.run("export b.rsm -o b.stream").expect(0);
    let second = folder.read("b.stream");
    let ran = folder.run_with_input(command, &second).expect(0);
    ran.says(&["read 40 documents, added 30, 10 skipped because of their keys"]);
    assert_eq!(folder.count("all-0.rsm"), 70);
    folder.run("check all-0.rsm").expect(0);

    // What is there under another key is like a near-duplicate.
    folder.write("c.jsonl", line("other", &text(3)));
    folder.run("build c.rsm c.jsonl").expect(0);
    folder.run("export c.rsm -o c.stream").expect(0);
    folder
        .run("import all-0.rsm c.stream --if-new")
        .expect(0)
        .says(&["added 0, 1 skipped as near-duplicates"]);
    let ran = folder.run("import all-0.rsm plain --keys replace");
    ran.expect(0).says(&["added 0, 40 replaced"]);
    folder
        .run("import all-0.rsm plain --keys newer")
        .expect(0)
        .says(&["40 left out"]);
    assert_eq!(folder.count("all-0.rsm"), 70);
}

fn gunzip_bytes(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut decoder = flate2::read::MultiGzDecoder::new(bytes);
    std::io::Read::read_to_end(&mut decoder, &mut plain).unwrap();
    plain
}

#[test]
fn import_reports_unusable_streams() {
    let folder = two_stores();
    folder.run("export a.rsm -o a.stream").expect(0);
    let stream = folder.read("a.stream");
    let ran = folder.run("import b.rsm a.stream").expect(3);
    ran.says(&[
        "already in the store",
        "no document of the stream was added",
    ]);
    folder.run("create other.rsm --words 2").expect(0);
    let ran = folder.run("import other.rsm a.stream").expect(3);
    ran.says(&["at a.stream", "another recipe: text: found"]);
    folder.run("create new.rsm").expect(0);
    folder.write("short.stream", &stream[..stream.len() - 20]);
    let ran = folder.run("import new.rsm short.stream").expect(3);
    ran.says(&["at short.stream", "after 40 documents: it is truncated"]);
    let ran = folder.run("import new.rsm a.jsonl").expect(3);
    ran.says(&["at a.jsonl", "something else"]);
    folder.run("export a.rsm -o a.gz").expect(0);
    let packed = folder.read("a.gz");
    folder.write("cut.gz", &packed[..packed.len() / 2]);
    let ran = folder.run("import new.rsm cut.gz").expect(3);
    ran.says(&["cut.gz is damaged or truncated"]);
    assert_eq!(folder.count("new.rsm"), 0);
    folder.run("import new.rsm none").expect(4);
    folder.run("import none.rsm a.stream").expect(4);
    folder
        .run("import new.rsm a.stream --if-new --keys newer")
        .expect(2);
    folder.run("import new.rsm a.stream").expect(0);
    assert_eq!(folder.count("new.rsm"), 40);
}
