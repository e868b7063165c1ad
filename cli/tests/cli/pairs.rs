//! pairs and clusters, of stores and of corpora.

use crate::support::{Folder, distinct, edited, line, mixed, text};

fn pairs_of(stdout: &str) -> Vec<(String, String)> {
    let pair = |line: &str| {
        let mut fields = line.split('\t');
        (fields.next().unwrap().into(), fields.next().unwrap().into())
    };
    stdout.lines().map(pair).collect()
}

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

#[test]
fn pairs_of_a_store_and_of_its_corpus_are_the_same() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.run("build a.rsm c.jsonl").expect(0);
    let of_store = folder.run("pairs a.rsm").expect(0);
    let expected = [
        ("a", "a-again"),
        ("a", "a-near"),
        ("a-again", "a-near"),
        ("b", "b-near"),
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|(a, b)| (a.to_string(), b.to_string()))
        .collect();
    assert_eq!(pairs_of(&of_store.stdout), expected);
    assert!(of_store.stdout.starts_with("a\ta-again\t1.000000\n"));
    of_store.says(&["4 pairs"]);
    let of_corpus = folder.run("pairs c.jsonl").expect(0);
    assert_eq!(pairs_of(&of_corpus.stdout), expected);
    let piped = folder
        .run_with_input("pairs -", mixed().as_bytes())
        .expect(0);
    assert_eq!(piped.stdout, of_corpus.stdout);
    assert_eq!(folder.names(), ["a.rsm", "c.jsonl"]);
}

#[test]
fn a_store_is_recognized_by_content() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder
        .run("build looks-like-a-corpus.jsonl c.jsonl")
        .expect(0);
    folder
        .run("pairs looks-like-a-corpus.jsonl")
        .expect(0)
        .says(&["4 pairs"]);
    folder
        .run("pairs c.jsonl looks-like-a-corpus.jsonl")
        .expect(2)
        .says(&["looks-like-a-corpus.jsonl is a store"]);
}

#[test]
fn pair_keys_are_in_byte_order() {
    let folder = Folder::new();
    folder.write(
        "c.jsonl",
        line("z", &text(1)) + &line("\u{e9}", &text(1)) + &line("B", &text(1)),
    );
    let ran = folder.run("pairs c.jsonl").expect(0);
    assert_eq!(
        ran.stdout,
        "B\tz\t1.000000\nB\t\u{e9}\t1.000000\nz\t\u{e9}\t1.000000\n"
    );
    let clusters = folder.run("clusters c.jsonl").expect(0);
    assert_eq!(clusters.stdout, "z\tB\nz\tz\nz\t\u{e9}\n");
}

#[test]
fn bounds_select_the_reported_pairs() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.run("build a.rsm c.jsonl").expect(0);
    let exact = folder.run("pairs a.rsm --threshold 1").expect(0);
    assert_eq!(exact.stdout, "a\ta-again\t1.000000\n");
    let exact = folder.run("pairs c.jsonl --threshold 1").expect(0);
    assert_eq!(exact.stdout, "a\ta-again\t1.000000\n");
    folder.run("pairs a.rsm --threshold 0.5").expect(2);
    folder
        .run("pairs a.rsm --words 3")
        .expect(2)
        .says(&["--words", "own schema"]);
    folder.run("pairs a.rsm --words 5").expect(0);
    folder
        .run("pairs c.jsonl --distance 3")
        .expect(2)
        .says(&["--simhash"]);
    let clusters = folder.run("clusters a.rsm --threshold 1").expect(0);
    assert_eq!(clusters.stdout, "a\ta\na\ta-again\n");
}

#[test]
fn pairs_without_result_exit_with_1() {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..5));
    for verb in ["pairs", "clusters"] {
        let ran = folder.run(&[verb, "c.jsonl"]).expect(1);
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn clusters_are_connected_components() {
    let folder = Folder::new();
    // 0 changes - 2 - 4: neighbours are alike (0.9), the ends are less so (0.81)
    let chain = [
        line("second", &edited(4, 2)),
        line("x", &text(5)),
        line("first", &text(4)),
        line("third", &edited(4, 4)),
    ];
    folder.write("c.jsonl", chain.concat());
    let ran = folder.run("clusters c.jsonl --threshold 0.87").expect(0);
    assert_eq!(ran.stdout, "second\tfirst\nsecond\tsecond\nsecond\tthird\n");
    ran.says(&["1 clusters, 3 documents in them"]);
}

#[test]
fn pairs_sorted_on_disk_equal_those_sorted_in_memory() {
    let folder = Folder::new();
    let corpus: String = (0..60)
        .map(|n| line(&format!("{:02}", n * 37 % 60), &text(n % 2)))
        .collect();
    folder.write("c.jsonl", corpus);
    let all = folder.run("pairs c.jsonl").expect(0);
    // 2 groups of 30 equal documents
    assert_eq!(all.lines().len(), 2 * (30 * 29 / 2));
    assert!(all.lines().is_sorted());
    let spilled = folder
        .run("pairs c.jsonl --memory 2K --temp-dir .")
        .expect(0);
    assert_eq!(spilled.stdout, all.stdout);
    assert_eq!(folder.names(), ["c.jsonl"]);
}

#[test]
fn pairs_of_a_corpus_refuse_a_repeated_key() {
    let folder = Folder::new();
    folder.write("c.jsonl", line("k", &text(1)));
    folder.write("d.jsonl", line("k", &text(1)).repeat(2));
    folder
        .run("pairs c.jsonl d.jsonl")
        .expect(3)
        .says(&["d.jsonl:2", "came before"]);
}

#[test]
fn simhash_pairs_carry_the_distance() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    let ran = folder.run("pairs c.jsonl --simhash 64").expect(0);
    assert!(ran.stdout.starts_with("a\ta-again\t0\n"), "{}", ran.stdout);
    let both = folder
        .run("pairs c.jsonl --simhash 64 --minhash 128")
        .expect(0);
    assert!(
        both.stdout.starts_with("a\ta-again\t1.000000\t0\n"),
        "{}",
        both.stdout
    );
    assert_eq!(both.lines().len(), 4);
}

#[test]
fn large_buckets_are_cut_only_by_max_bucket() {
    let folder = Folder::new();
    let changes: String = (0..5)
        .map(|n| line(&n.to_string(), &edited(1, n)))
        .collect();
    folder.write("c.jsonl", changes + &line("again", &edited(1, 4)));
    let all = folder.run("pairs c.jsonl --words 2").expect(0);
    assert_eq!(all.lines().len(), 6 * 5 / 2);
    assert!(!all.stderr.contains("warning"), "{}", all.stderr);
    let arguments = "pairs c.jsonl --words 2 --max-bucket";
    let wide = folder.run(&format!("{arguments} 5")).expect(0);
    assert_eq!(wide.stdout, all.stdout);
    assert!(!wide.stderr.contains("warning"), "{}", wide.stderr);

    let cut = folder.run(&format!("{arguments} 1")).expect(0);
    assert!(
        cut.stderr
            .contains("warning: --max-bucket left out comparisons in")
    );
    // some that are left out in one bucket meet in a smaller one
    let (cut_pairs, all_pairs) = (pairs_of(&cut.stdout), pairs_of(&all.stdout));
    assert!(cut_pairs.iter().all(|pair| all_pairs.contains(pair)));
    // with the first, and what is equal
    for (a, b) in [("0", "1"), ("0", "4"), ("0", "again"), ("4", "again")] {
        assert!(cut_pairs.contains(&(a.into(), b.into())), "{a} {b}");
    }
    let quiet = folder.run(&format!("{arguments} 1 -q"));
    assert_eq!((quiet.stderr.as_str(), quiet.stdout), ("", cut.stdout));

    for verb in [
        &["clusters"][..],
        &["dedup", "-o", "-", "--policy", "cluster"],
    ] {
        let options = ["c.jsonl", "--words", "2", "--max-bucket", "1"];
        let ran = folder.run(&[verb, &options[..]].concat()).expect(0);
        assert!(ran.stderr.contains("warning: --max-bucket"), "{verb:?}");
    }
    let none = folder.run(&format!("{arguments} 0")).expect(2);
    assert!(none.stderr.contains("--max-bucket"), "{}", none.stderr);
    folder
        .run("dedup c.jsonl -o - --max-bucket 9")
        .expect(2)
        .says(&["--max-bucket", "--policy cluster"]);
}

#[test]
fn giant_cluster_causes_a_note() {
    let folder = Folder::new();
    let equal: String = (0..1_000)
        .map(|n| line(&format!("k{n}"), "one two three four five six"))
        .collect();
    folder.write("c.jsonl", line("other", &text(1)) + &equal);
    let warning = "warning: the cluster of k0 holds 1000 documents, 100 % of all";
    for verb in ["clusters", "dedup -o - --policy cluster"] {
        let ran = folder.run(&format!("{verb} c.jsonl")).expect(0);
        assert!(ran.stderr.contains(warning), "{}", ran.stderr);
        let quiet = folder.run(&format!("{verb} c.jsonl -q")).expect(0);
        assert_eq!((quiet.stderr.as_str(), quiet.stdout), ("", ran.stdout));
    }
}

#[test]
fn short_joins_are_not_announced() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    for verb in ["pairs", "clusters", "dedup -o - --policy cluster"] {
        let ran = folder.run(&format!("{verb} c.jsonl")).expect(0);
        assert!(!ran.stderr.contains("expecting"), "{}", ran.stderr);
        assert!(ran.stderr.lines().count() <= 3, "{}", ran.stderr);
    }
}

#[test]
fn pairs_and_clusters_do_not_depend_on_threads() {
    let folder = Folder::new();
    let corpus: String = (0..600)
        .map(|n| line(&n.to_string(), &edited(n % 150, n / 150)))
        .collect();
    folder.write("c.jsonl", corpus);
    for verb in ["pairs", "clusters"] {
        let outs = ["1", "2", "7"].map(|threads| {
            let options = format!("{verb} c.jsonl --simhash 64 --minhash 128");
            let ran = folder.run(&format!("{options} --threads {threads}"));
            ran.expect(0).stdout
        });
        assert!(outs[0].lines().count() >= 450);
        assert!(outs.iter().all(|out| out == &outs[0]));
    }
}

/// With both families, each decides alone, together with the other, or either does: of the rows of either
/// their own columns tell which.
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
        // What is in a cluster is in a pair, and the other way round.
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
    refused.says(&["by", "the signatures have MinHash alone"]);
}
