//! dedup: what is kept, byte for byte.

use crate::support::{Folder, edited, line, text};

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

/// A sample shows what share of all documents would be removed, although it contains few of the
/// pairs.
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
        let reported = ran.stderr.split("; about ").nth(1).unwrap();
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
