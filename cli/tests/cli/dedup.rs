//! dedup: what is kept, byte for byte.

use crate::support::{Folder, distinct, edited, gunzip, line, mixed, text};

/// The lines of `mixed` that survive.
pub fn survivors() -> String {
    let corpus = mixed();
    let lines: Vec<_> = corpus.lines().collect();
    [0, 2, 4, 6]
        .map(|index| lines[index].to_owned() + "\n")
        .concat()
}

#[test]
fn dedup_keeps_the_first_near_duplicate_byte_for_byte() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    let ran = folder
        .run("dedup c.jsonl -o out.jsonl --report r.tsv")
        .expect(0);
    assert_eq!(ran.stdout, "");
    ran.says(&["read 7, kept 4, dropped 3, skipped 0, empty 0, dropped as equal 1"]);
    assert_eq!(folder.read_text("out.jsonl"), survivors());
    let report = folder.report("r.tsv");
    let lines: Vec<_> = report.lines().collect();
    assert_eq!(lines[0], "a-again\ta\t1.000000\tequal");
    assert!(lines[1].starts_with("a-near\ta\t0.9"));
    assert!(lines[2].starts_with("b-near\tb\t0.9"));
    assert_eq!(lines.len(), 3);
    assert_eq!(folder.names(), ["c.jsonl", "out.jsonl", "r.tsv"]);
    let header = "dropped\tsurvivor\tsimilarity\tsimilarity_is\n";
    assert_eq!(folder.read_text("r.tsv"), header.to_owned() + &report);
    let without = "dedup c.jsonl -o - --report r.tsv --force --no-header";
    folder.run(without).expect(0);
    assert_eq!(folder.read_text("r.tsv"), report);
}

#[test]
fn the_name_of_a_report_determines_its_form() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed() + &line("x,\\", &text(1)));
    let report = |name: &str, more: &[&str]| {
        let arguments = ["dedup", "c.jsonl", "--dry-run", "--report", name];
        folder.run(&[&arguments, more].concat())
    };
    for name in ["r.tsv", "r.csv", "r.jsonl", "r.jsonl.gz", "r.json", "r.txt"] {
        report(name, &[]).expect(0);
    }
    let expected = folder.read_text("r.tsv");
    assert_eq!(expected, folder.read_text("r.txt"));
    assert_eq!(expected.lines().last(), Some("x,\\\\\ta\t1.000000\tequal"));
    // Only tab-separated rows escape keys.
    let csv = expected.replace("x,\\\\", "\"x,\\\"").replace('\t', ",");
    assert_eq!(folder.read_text("r.csv"), csv);
    let lines = folder.read_text("r.jsonl");
    assert_eq!(lines, gunzip(&folder.read("r.jsonl.gz")));
    let last = "{\"dropped\":\"x,\\\\\",\"survivor\":\"a\",\"similarity\":1.0,\"distance\":null,\
                \"similarity_is\":\"equal\"}";
    assert_eq!(lines.lines().last(), Some(last));
    let array = format!("[\n{}\n]\n", lines.trim_end().replace('\n', ",\n"));
    assert_eq!(folder.read_text("r.json"), array);
    report("r.arrow", &[])
        .expect(2)
        .says(&["r.arrow is named as Arrow IPC"]);
    report("bare.csv", &["--no-header"]).expect(0);
    assert_eq!(
        csv.split_once('\n').unwrap().1,
        folder.read_text("bare.csv")
    );

    let ran = report("-", &[]).expect(0);
    assert_eq!(ran.stdout, expected);
}

#[test]
fn dedup_is_the_same_with_any_number_of_threads() {
    let folder = Folder::new();
    let corpus: String = (0..900)
        .map(|n| line(&n.to_string(), &edited(n % 300, n / 300)))
        .collect();
    folder.write("c.jsonl", corpus);
    let outs = ["1", "2", "7"].map(|threads| {
        let ran = folder.run(&format!(
            "dedup c.jsonl -o - --threads {threads} --report r.tsv --force"
        ));
        (ran.expect(0).stdout, folder.report("r.tsv"))
    });
    assert_eq!(outs[0].0.lines().count(), 300);
    assert_eq!(outs[0].1.lines().count(), 600);
    assert!(outs.iter().all(|out| out == &outs[0]));
}

#[test]
fn dedup_passes_odd_but_valid_lines_unchanged() {
    let folder = Folder::new();
    let head = format!(
        "{{ \"text\":\"{}\" ,\"x\":[1, 2.50],\"id\" : 7 }}  \r\n",
        text(1)
    );
    let middle = format!("\t{{\"id\":\"\\u0041\",\"text\":\"{}\"}}\n", text(2));
    let tail = format!("{{\"id\":\"last\",\"text\":\"{}\"}}", text(3));
    let corpus = [
        b"\xef\xbb\xbf",
        head.as_bytes(),
        middle.as_bytes(),
        tail.as_bytes(),
    ]
    .concat();
    folder.write("c.jsonl", &corpus);
    folder.run("dedup c.jsonl -o out.jsonl").expect(0);
    assert_eq!(folder.read("out.jsonl"), corpus);
    // a line without an end gets one where another follows; the mark stays at the start only
    folder.write(
        "d.jsonl",
        [b"\xef\xbb\xbf", distinct(10..11).as_bytes()].concat(),
    );
    folder.run("dedup c.jsonl d.jsonl -o both.jsonl").expect(0);
    assert_eq!(
        folder.read("both.jsonl"),
        [&corpus, &b"\n"[..], distinct(10..11).as_bytes()].concat()
    );
    // the marked line itself is dropped
    folder.write("e.jsonl", distinct(10..11));
    folder.run("dedup e.jsonl d.jsonl -o out/").expect(0);
    assert_eq!(folder.read("out/d.jsonl"), b"");
}

#[test]
fn policy_cluster_keeps_one_of_each_component() {
    let folder = Folder::new();
    // the third is like both, the first two are not alike enough
    let chain = [
        line("first", &text(4)),
        line("third", &edited(4, 4)),
        line("second", &edited(4, 2)),
    ];
    folder.write("c.jsonl", chain.concat());
    let threshold = ["--threshold", "0.87"];
    let mut arguments = vec![
        "dedup", "c.jsonl", "-o", "-", "--report", "r.tsv", "--force",
    ];
    arguments.extend(threshold);
    let first = folder.run(&arguments).expect(0);
    assert_eq!(first.stdout, chain[0].clone() + &chain[1]);
    assert!(folder.report("r.tsv").starts_with("second\t"));
    arguments.extend(["--policy", "cluster"]);
    let cluster = folder.run(&arguments).expect(0);
    assert_eq!(cluster.stdout, chain[0]);
    let report = folder.report("r.tsv");
    let keys: Vec<_> = report
        .lines()
        .map(|l| l.split('\t').take(2).collect::<Vec<_>>())
        .collect();
    assert_eq!(keys, [["third", "first"], ["second", "first"]]);
    cluster.says(&["read 3, kept 1, dropped 2"]);
}

#[test]
fn dedup_accepts_repeated_ids() {
    let folder = Folder::new();
    folder.write(
        "c.jsonl",
        line("k", &text(1)) + &line("k", &text(2)) + &line("k", &text(1)),
    );
    let ran = folder.run("dedup c.jsonl -o - --report r.tsv").expect(0);
    assert_eq!(ran.lines().len(), 2);
    assert_eq!(folder.report("r.tsv"), "k\tk\t1.000000\tequal\n");
}

#[test]
fn report_names_the_most_similar_earlier_document() {
    let folder = Folder::new();
    let lines = [
        line("far", &edited(1, 4)),
        line("near", &text(1)),
        line("x", &edited(1, 1)),
    ];
    folder.write("c.jsonl", lines.concat());
    // far and near are 0.81 apart, x is 0.95 from near and 0.86 from far
    let report = |threshold| {
        folder
            .run(&format!(
                "dedup c.jsonl -o - --report r.tsv --force --threshold '{threshold}'"
            ))
            .expect(0);
        folder.report("r.tsv")
    };
    assert!(report("0.9").starts_with("x\tnear\t"), "{}", report("0.9"));
}

#[test]
fn dedup_against_a_store_drops_its_near_duplicates() {
    let folder = Folder::new();
    folder.write(
        "old.jsonl",
        line("old\t1", &text(1)) + &line("old2", &text(2)),
    );
    folder.run("build seen.rsm old.jsonl --words 4").expect(0);
    folder.write("c.jsonl", mixed());
    let before = folder.read("seen.rsm");
    for policy in ["first", "cluster"] {
        let against = format!(
            "dedup c.jsonl -o - --against seen.rsm --report r.tsv --force --policy {policy}"
        );
        let ran = folder.run(&against).expect(0);
        let keys: Vec<_> = ran.stdout.lines().map(|l| &l[..9]).collect();
        assert_eq!(keys, ["{\"id\":\"c\"", "{\"id\":\"d\""]);
        let report = folder.report("r.tsv");
        assert!(
            report.starts_with(
                "a\told\\t1\t1.000000\testimate\na-again\told\\t1\t1.000000\testimate\nb\told2\t1.000000\testimate\n"
            ),
            "{report}"
        );
        assert_eq!(report.lines().count(), 5);
    }
    assert_eq!(folder.read("seen.rsm"), before);
    let tight = "dedup c.jsonl -o - --against seen.rsm --threshold 1";
    folder.run(tight).expect(0).says(&["kept 4, dropped 3"]);
    folder.run(&format!("{tight} --words 4")).expect(0);
    folder
        .run(&format!("{tight} --words 5"))
        .expect(2)
        .says(&["--words", "own schema"]);
    folder.run(&format!("{tight} --seed 2")).expect(2);
    folder
        .run("dedup c.jsonl -o - --against seen.rsm --threshold 0.3")
        .expect(2);
    folder
        .run("dedup c.jsonl -o - --against missing.rsm")
        .expect(4);
    folder.run("dedup c.jsonl -o - --against c.jsonl").expect(6);
}

#[test]
fn output_folder_refuses_colliding_names() {
    let folder = Folder::new();
    folder.write("x/a.jsonl", mixed());
    folder.write("y/a.jsonl", mixed());
    folder
        .run("dedup x/a.jsonl y/a.jsonl -o out/")
        .expect(2)
        .says(&["x/a.jsonl and y/a.jsonl"]);
    folder
        .run_with_input("dedup - -o out/", b"")
        .expect(2)
        .says(&["standard input has no file name"]);
    folder
        .run("dedup x/a.jsonl -o - --report -")
        .expect(2)
        .says(&["standard output"]);
    folder.run("dedup x/a.jsonl").expect(2);
    assert_eq!(folder.names(), ["x/a.jsonl", "y/a.jsonl"]);
}

#[test]
fn dedup_handles_simhash_and_empty_documents() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed() + &line("e1", "") + &line("e2", "!?"));
    let ran = folder
        .run("dedup c.jsonl -o - --simhash 64 --report r.tsv")
        .expect(0);
    assert!(ran.stdout.ends_with(&(line("e1", "") + &line("e2", "!?"))));
    ran.says(&["empty 2"]);
    assert!(folder.report("r.tsv").starts_with("a-again\ta\t0\tequal\n"));
    let alike = folder.run("dedup c.jsonl -o - --empty alike").expect(0);
    assert!(alike.stdout.ends_with(&line("e1", "")));
}

#[test]
fn dedup_and_clusters_agree_with_pairs() {
    let folder = Folder::new();
    // chains of edits of 40 texts, in an order that mixes them
    let numbers = (0..240_u64).map(|number| number * 91 % 240);
    let corpus: String = numbers
        .map(|n| line(&n.to_string(), &edited(n % 40, n / 40)))
        .collect();
    folder.write("c.jsonl", &corpus);
    let order: Vec<String> = (0..240_u64)
        .map(|number| (number * 91 % 240).to_string())
        .collect();
    let position = |key: &str| order.iter().position(|other| other == key).unwrap();
    let pairs = folder.run("pairs c.jsonl --threshold 0.88").expect(0);
    let mut earlier = vec![Vec::new(); order.len()];
    for pair in pairs.lines() {
        let fields: Vec<_> = pair.split('\t').collect();
        let (a, b) = (position(fields[0]), position(fields[1]));
        earlier[a.max(b)].push(a.min(b));
    }
    assert!(pairs.lines().len() > 240);
    let mut kept = vec![false; order.len()];
    let mut first = Vec::new();
    for (index, near) in earlier.iter().enumerate() {
        kept[index] = !near.iter().any(|other| kept[*other]);
        first.push(index);
        // relabel: slow and plain
        for other in near {
            let (old, new) = (
                first[index].max(first[*other]),
                first[index].min(first[*other]),
            );
            first
                .iter_mut()
                .filter(|label| **label == old)
                .for_each(|label| *label = new);
        }
    }
    let lines = |keep: &dyn Fn(usize) -> bool| -> String {
        let lines = corpus.lines().enumerate().filter(|(index, _)| keep(*index));
        lines.map(|(_, line)| line.to_owned() + "\n").collect()
    };
    let dedup = |policy| {
        let arguments = format!("dedup c.jsonl -o - --threshold 0.88 --policy {policy}");
        folder.run(&arguments).expect(0).stdout
    };
    let by_first = dedup("first");
    let by_cluster = dedup("cluster");
    assert_eq!(by_first, lines(&|index| kept[index]));
    assert_eq!(by_cluster, lines(&|index| first[index] == index));
    assert_ne!(by_first, by_cluster);
    let clusters = folder.run("clusters c.jsonl --threshold 0.88").expect(0);
    let mut expected: Vec<(&str, &str)> = (0..order.len())
        .filter(|index| {
            first
                .iter()
                .filter(|label| **label == first[*index])
                .count()
                > 1
        })
        .map(|index| (order[first[index]].as_str(), order[index].as_str()))
        .collect();
    expected.sort_unstable();
    let found: Vec<_> = clusters
        .lines()
        .iter()
        .map(|line| line.split_once('\t').unwrap())
        .collect();
    assert_eq!(found, expected);
}

/// A share of the documents tells how many of all of them go, although it has few of the pairs.
#[test]
fn dry_run_of_a_sample_estimates_removals() {
    let folder = Folder::new();
    let short = |number: u64| text(number).split_off(1_100);
    // 1,500 documents alone, 1,000 pairs and one text 500 times: 1,000 + 499 of 4,000 go.
    let alone = (0..1_500).map(|n| (n, n));
    let pairs = (1_500..3_500).map(|n| (n, 10_000 + n / 2));
    let many = (3_500..4_000).map(|n| (n, 20_000));
    let documents = alone.chain(pairs).chain(many);
    let lines = documents.map(|(id, number)| line(&format!("d{id}"), &short(number)));
    folder.write("c.jsonl", lines.collect::<String>());
    for policy in ["first", "cluster"] {
        let dry = format!("dedup c.jsonl --dry-run --sample 0.3 --policy {policy}");
        let ran = folder.run(&dry).expect(0);
        assert_eq!(folder.run(&dry).expect(0).stderr, ran.stderr);
        let reported = ran.stderr.split("of all documents about ").nth(1).unwrap();
        let reported: f64 = reported.split(' ').next().unwrap().parse().unwrap();
        assert!((33.0..42.0).contains(&reported), "{}", ran.stderr);
        assert_eq!(folder.names(), ["c.jsonl"]);
    }
    let dry = "dedup c.jsonl --dry-run --sample 1";
    let whole = folder.run(&format!("{dry} --report r.tsv")).expect(0);
    assert!(whole.stderr.contains("dropped 1499"), "{}", whole.stderr);
    assert!(whole.stderr.contains("about 37.5 %"), "{}", whole.stderr);
    assert_eq!(folder.report("r.tsv").lines().count(), 1_499);
    for (more, parts) in [
        (&["-o", "o.jsonl"][..], ["these options", "--dry-run"]),
        (&["--annotate", "a.jsonl"], ["--sample", "--annotate"]),
        (&["--verdicts", "v"], ["--sample", "--verdicts"]),
        (
            &["--dry-run", "--dropped", "d.jsonl"],
            ["--sample", "--dropped"],
        ),
        (&["--dry-run", "--level", "line"], ["--sample", "--level"]),
        (&["--dry-run", "--job", "j"], ["--sample", "--job"]),
    ] {
        let dedup = [&["dedup", "c.jsonl", "--sample", "0.5"][..], more].concat();
        let ran = folder.run(&dedup).expect(2);
        let are_named = parts.iter().all(|part| ran.stderr.contains(part));
        assert!(are_named, "{}", ran.stderr);
    }
}
