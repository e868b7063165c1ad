//! repair: what it prints, and its exit codes.

use crate::sample::one_in;
use crate::support::{Folder, distinct};

/// With one damaged page in two, with each with `RESEMBLANCE_TESTS=all`.
#[test]
fn repair_restores_a_damaged_store() {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..400));
    folder.run("build a.rsm c.jsonl").expect(0);
    let sound = folder.run("repair a.rsm -o same.rsm").expect(0);
    assert_eq!(sound.stdout, "kept\t\t\t400 documents\n");
    sound.says(&["kept 400 of 400 documents"]);

    let bytes = folder.read("a.rsm");
    let (mut losing, mut unreachable) = (0, 0);
    for page in (4_096..bytes.len()).step_by(4_096 * one_in(2)) {
        let mut damaged = bytes.clone();
        damaged[page..page + 4_096].fill(0);
        folder.write("bad.rsm", damaged);
        let check = folder.run("check bad.rsm -q");
        if check.code == Some(0) {
            continue;
        }
        let name = format!("new-{page}.rsm");
        let repair = folder.run(&format!("repair bad.rsm -o {name}"));
        match repair.code {
            Some(0) => {}
            Some(1) => {
                assert!(repair.stdout.contains("\nlost\t"), "{}", repair.stdout);
                losing += 1;
            }
            code => {
                assert_eq!(code, Some(6), "{}", repair.stderr);
                let way_out = ["bad.rsm: ", "damaged"];
                repair.says(&way_out);
                let help = format!("repair bad.rsm -o {name} --schema-of a.rsm --scan");
                let ran = folder.run(&help).expect(1);
                assert!(ran.stdout.contains("may be back\t"), "{}", ran.stdout);
                ran.says(&["kept 400"]);
                unreachable += 1;
            }
        }
        folder.run(&["check", &name]).expect(0);
    }
    // The definitions of the tables are in one page, the schema in another.
    assert!(losing > 2 / one_in(2), "{losing}");
    assert!((2 / one_in(2)..=2).contains(&unreachable), "{unreachable}");
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
