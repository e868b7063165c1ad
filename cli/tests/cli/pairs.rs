//! pairs and clusters, of stores and of corpora.

use crate::support::{Folder, edited, line};

#[test]
fn sample_is_repeatable_and_reports_the_pairs_within_it() {
    let folder = Folder::new();
    let documents = |prefix: &str| -> Vec<String> {
        let documents = (0..300_u64).map(|n| {
            let text = edited(n % 100, n / 100 % 2);
            line(&format!("{prefix}{n}"), &text)
        });
        documents.collect()
    };
    let all = documents("a");
    folder.write("a.jsonl", all.concat() + &"no JSON\n".repeat(40));
    let sample = |share: &str| {
        let arguments = format!("pairs a.jsonl --skip-bad --threshold 0.8 --sample '{share}'");
        folder.run(&arguments).expect(0)
    };
    let whole = sample("1");
    assert_eq!(whole.lines().len(), 300);
    assert!(whole.stderr.contains("--sample 1: 340 of 340 documents"));
    let half = sample("0.5");
    assert_eq!(half.stdout, sample("0.5").stdout);
    let keys: std::collections::BTreeSet<&str> = half
        .lines()
        .into_iter()
        .flat_map(|row| row.split('\t').take(2))
        .collect();
    // Pairs of documents that have any in the sample are there if both documents are.
    let within = |row: &&str| row.split('\t').take(2).all(|key| keys.contains(key));
    let expected: Vec<_> = whole.lines().into_iter().filter(within).collect();
    assert_eq!(half.lines(), expected);
    assert!((30..150).contains(&expected.len()), "{}", expected.len());
    let reported = half
        .stderr
        .lines()
        .find(|line| line.contains("--sample 0.5: "))
        .unwrap();
    let read: u64 = reported.split(' ').nth(3).unwrap().parse().unwrap();
    assert!((120..220).contains(&read), "{reported}");
    // A smaller sample is a part of a larger one, and the order of the documents does not matter.
    let few = sample("0.25");
    assert!(few.lines().iter().all(|row| half.lines().contains(row)));
    let mut turned = all.clone();
    turned.reverse();
    folder.write("a.jsonl", turned.concat());
    assert_eq!(sample("0.25").stdout, few.stdout);

    folder.run("build a.rsm a.jsonl").expect(0);
    let of_store = folder.run("pairs a.rsm --sample 0.5").expect(2);
    of_store.says(&["--job and --sample need a corpus, and a.rsm is a store"]);
    for wrong in ["0", "1.1", "-1", "half", "nan"] {
        folder
            .run(&["pairs", "a.jsonl", &format!("--sample={wrong}")])
            .expect(2);
    }
}

/// With both families, --by selects which one decides, or both or either. The columns of a row show
/// which did.
#[test]
fn by_option_selects_the_deciding_family() {
    let folder = Folder::new();
    let family = |number: u64| {
        let changed = |changes| line(&format!("{number}-{changes}"), &edited(number, changes));
        [0, 1, 2, 3, 4, 5].map(changed)
    };
    folder.write("c.jsonl", (1..30).flat_map(family).collect::<String>());
    let schema = ["--minhash", "64", "--simhash", "64", "--distance", "8"];
    let estimate = ["--verify", "estimate"];
    let pairs = |by: &str| {
        let asked = ["pairs", "c.jsonl", "--by", by];
        let ran = folder
            .run(&[&asked[..], &schema, &estimate].concat())
            .expect(0);
        let rows = ran.stdout.lines().map(|row| {
            let fields: Vec<&str> = row.split('\t').collect();
            let key = (fields[0].to_owned(), fields[1].to_owned());
            let near = fields[2].parse::<f64>().is_ok_and(|near| near >= 0.8);
            let is_close = |distance| (0..=8).contains(&distance);
            (key, (near, fields[3].parse::<u32>().is_ok_and(is_close)))
        });
        rows.collect::<std::collections::BTreeMap<_, _>>()
    };
    let any = pairs("any");
    let having =
        |is: fn(&(bool, bool)) -> bool| any.clone().into_iter().filter(|(_, b)| is(b)).count();
    let counts = [
        ("minhash", having(|b| b.0)),
        ("simhash", having(|b| b.1)),
        ("both", having(|b| b.0 && b.1)),
        ("any", any.len()),
    ];
    assert!(
        counts[2].1 > 20 && counts[2].1 < counts[0].1.min(counts[1].1),
        "{counts:?}"
    );
    let eval = [&["eval", "c.jsonl"][..], &schema].concat();
    let eval = folder.run(&eval).expect(0).stdout;
    for (by, count) in counts {
        assert!(pairs(by).len() == count, "{by}: {counts:?}");
        let returned = format!("families\t{by}\treturned\t{count}\n");
        assert!(eval.contains(&returned), "{returned}{eval}");
        // Documents are in a cluster exactly if they are in a pair.
        let clusters = [&["clusters", "c.jsonl", "--by", by][..], &schema, &estimate].concat();
        let clusters = folder.run(&clusters).expect(0).stdout;
        let members = pairs(by).into_keys().flat_map(|(a, b)| [a, b]);
        let members: std::collections::BTreeSet<String> = members.collect();
        assert_eq!(clusters.lines().count(), members.len(), "{by}");
        let first: std::collections::BTreeSet<&str> = clusters
            .lines()
            .map(|row| row.split('\t').next().unwrap())
            .collect();
        let dedup = [
            "dedup", "c.jsonl", "--policy", "cluster", "-o", "u.jsonl", "--force", "--by", by,
        ];
        folder
            .run(&[&dedup[..], &schema, &estimate].concat())
            .expect(0);
        let kept = folder.read_text("u.jsonl").lines().count();
        assert_eq!(kept, 29 * 6 - members.len() + first.len(), "{by}");
        // A document that is dropped is near one that is kept.
        let dedup = [
            "dedup", "c.jsonl", "-o", "f.jsonl", "--force", "--report", "r.tsv", "--by", by,
        ];
        folder
            .run(&[&dedup[..], &schema, &estimate].concat())
            .expect(0);
        let near = pairs(by);
        for row in folder.report("r.tsv").lines() {
            let fields: Vec<&str> = row.split('\t').collect();
            let [a, b] = [fields[0].to_owned(), fields[1].to_owned()];
            let pair = if a < b { (a, b) } else { (b, a) };
            assert!(near.contains_key(&pair), "{by}: {row}");
        }
    }
    let refused = folder.run("pairs c.jsonl --by simhash").expect(2);
    refused.says(&["by", "the schema has only MinHash"]);
}
