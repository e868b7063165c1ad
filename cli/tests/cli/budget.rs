//! --budget: what is compared, and what was left out.

use crate::support::{Folder, edited, line, text};

/// A store of twelve equal texts, and a corpus of one that is like them.
fn hot() -> Folder {
    let folder = Folder::new();
    let equal = (0..12).map(|number| line(&format!("k{number}"), &text(1)));
    folder.write("c.jsonl", equal.collect::<String>());
    folder.run("build a.rsm c.jsonl").expect(0);
    folder.write("more.jsonl", line("near", &edited(1, 1)));
    folder
}

#[test]
fn query_reports_what_its_budget_left_out() {
    let folder = hot();
    let some = ["query", "a.rsm", "--budget", "5", &text(1)];
    let ran = folder.run(&some).expect(0);
    let keys = (0..5).map(|number| format!("k{number}\t1.000000"));
    assert!(ran.lines().into_iter().eq(keys), "{}", ran.stdout);
    ran.says(&["left out 7 documents"]);
    let enough = ["query", "a.rsm", "--budget", "12", &text(1)];
    let ran = folder.run(&enough).expect(0);
    assert_eq!((ran.lines().len(), ran.stderr.as_str()), (12, ""));
    let many = "query a.rsm --corpus more.jsonl --budget 5";
    let ran = folder.run(many).expect(0);
    assert_eq!(ran.lines().len(), 5);
    ran.says(&["with matches 1", "beyond the budget 1"]);
}

#[test]
fn add_reports_what_its_budget_left_out() {
    let folder = hot();
    let add = "add a.rsm more.jsonl --if-new --budget 5";
    let ran = folder.run(add).expect(0);
    ran.says(&["dropped 1", "beyond the budget 1"]);
    // An identical one is found first.
    folder.write("copy.jsonl", line("copy", &text(1)));
    let copy = "add a.rsm copy.jsonl --if-new --budget 5";
    let ran = folder.run(copy).expect(0);
    assert!(!ran.stderr.contains("budget"), "{}", ran.stderr);
    ran.says(&["dropped 1"]);
    let against = "dedup more.jsonl --against a.rsm -o o.jsonl";
    let ran = folder.run(&format!("{against} --budget 5"));
    ran.expect(0).says(&["dropped 1", "beyond the budget 1"]);
}

#[test]
fn budget_is_refused_by_verbs_that_have_none() {
    let folder = hot();
    folder.run("add a.rsm more.jsonl --budget 5").expect(2);
    folder.run("query a.rsm x --scan --budget 5").expect(2);
    folder.run("query a.rsm x --budget 0").expect(2);
    let cluster = "dedup c.jsonl -o o.jsonl --policy cluster";
    folder
        .run(&format!("{cluster} --budget 5"))
        .expect(2)
        .says(&["--max-bucket"]);
}
