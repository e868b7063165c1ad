//! backup: what it prints, and its exit codes.

use crate::support::{Folder, distinct};

#[test]
fn backup_equals_the_store_and_stays_valid() {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..60));
    folder.run("build a.rsm c.jsonl").expect(0);
    folder.run("remove a.rsm 3 4").expect(0);
    let ran = folder.run("backup a.rsm -o b.rsm").expect(0);
    assert!(ran.stdout.starts_with("58\t"), "{}", ran.stdout);
    folder.run("check b.rsm").expect(0);
    let query = |store| {
        let question = crate::support::edited(17, 1);
        folder.run_with_input(&["query", store], question.as_bytes())
    };
    let (found, expected) = (query("b.rsm").expect(0), query("a.rsm").expect(0));
    assert_eq!(found.stdout, expected.stdout);
    let bytes = folder.read("b.rsm");
    let again = folder.run("backup a.rsm -o b.rsm").expect(4);
    again.says(&["b.rsm already exists"]);
    assert!(folder.read("b.rsm") == bytes);
    folder.run("backup a.rsm -o none/b.rsm").expect(4);
    folder.run("backup none.rsm -o n.rsm").expect(4);
    folder
        .run("backup c.jsonl -o n.rsm")
        .expect(6)
        .says(&["c.jsonl is not a resemblance store"]);
    assert_eq!(folder.names(), ["a.rsm", "b.rsm", "c.jsonl"]);
}

#[test]
fn backup_refuses_a_damaged_store() {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..400));
    folder.run("build a.rsm c.jsonl").expect(0);
    let bytes = folder.read("a.rsm");
    let mut refused = 0;
    for page in (4_096..bytes.len()).step_by(8 * 4_096) {
        let mut damaged = bytes.clone();
        damaged[page + 100] ^= 1;
        folder.write("bad.rsm", damaged);
        let ran = folder.run("backup bad.rsm -o copy.rsm");
        match ran.code {
            // a page that is not used
            Some(0) => {
                folder.run("check copy.rsm").expect(0);
                std::fs::remove_file(folder.path("copy.rsm")).unwrap();
            }
            _ => {
                ran.expect(6).says(&["bad.rsm: ", "damaged"]);
                assert_eq!(folder.names(), ["a.rsm", "bad.rsm", "c.jsonl"]);
                refused += 1;
            }
        }
    }
    assert!(refused > 5, "{refused}");
}
