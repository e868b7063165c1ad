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
fn check_of_a_damaged_store_advises_repair() {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..20));
    folder.run("build a.rsm c.jsonl").expect(0);
    let mut bytes = folder.read("a.rsm");
    bytes[12] ^= 1;
    folder.write("bad.rsm", bytes);
    let check = folder.run("check bad.rsm").expect(1);
    check.says(&["resemblance repair bad.rsm -o NEW"]);
    folder.run("repair bad.rsm -o a.rsm").expect(4);
    folder.run("repair none.rsm -o b.rsm").expect(4);
    folder.run("repair c.jsonl -o b.rsm").expect(6);
    folder.run("repair bad.rsm -o b.rsm").expect(0);
}
