//! contain and decontaminate.

use crate::support::{Folder, line, text};

/// So many words that nothing else has, from a number on.
fn words(from: u32, count: u32) -> String {
    let words = (from..from + count).map(|word| format!("word{word}"));
    words.collect::<Vec<_>>().join(" ")
}

/// A store of three pages, of which each has the 20 words at its number times 1,000, and a fourth that
/// shares all of them with the third.
fn pages() -> Folder {
    let folder = Folder::new();
    let page = |number: u32| {
        let quoted = words(number.min(3) * 1_000, 20);
        let (before, after) = (words(number * 100, 15), words(number * 100 + 50, 15));
        line(
            &format!("page {number}"),
            &format!("{before} {quoted} {after}"),
        )
    };
    folder.write("pages.jsonl", (1..=4).map(page).collect::<String>());
    let build = "build pages.rsm pages.jsonl --containment 5 --window 4";
    folder.run(build).expect(0);
    folder
}

#[test]
fn contain_finds_paragraphs_in_pages() {
    let folder = pages();
    let paragraphs = [
        line("in one", &words(1_000, 20)),
        line("in two", &words(3_000, 20)),
        line("in none", &words(9_000, 20)),
    ];
    folder.write("paragraphs.jsonl", paragraphs.concat());
    let contain = "contain --in pages.rsm --query paragraphs.jsonl";
    let ran = folder.run(contain).expect(0);
    let found: Vec<Vec<&str>> = ran
        .lines()
        .iter()
        .map(|line| line.split('\t').collect())
        .collect();
    let keys: Vec<[&str; 3]> = found.iter().map(|row| [row[0], row[1], row[2]]).collect();
    let expected = [
        ["in one", "page 1", "1.000000"],
        ["in two", "page 3", "1.000000"],
        ["in two", "page 4", "1.000000"],
    ];
    assert_eq!(keys, expected, "{}", ran.stdout);
    assert!(found.iter().all(|row| row[5].parse::<u32>().unwrap() > 8));
    ran.says(&["read 3, with documents 2"]);

    // With the texts of the pages the longest passage has its place in both.
    let placed = format!("{contain} --texts pages.jsonl --format jsonl");
    let ran = folder.run(&placed).expect(0);
    let pages = folder.read_text("pages.jsonl");
    assert_eq!(ran.lines().len(), 3);
    for (found, quoted) in ran.lines().iter().zip([1_000, 3_000, 3_000]) {
        let found: serde_json::Value = serde_json::from_str(found).unwrap();
        let is_page = |line: &&str| line.contains(&format!("{}", found["key"]));
        let page: serde_json::Value =
            serde_json::from_str(pages.lines().find(is_page).unwrap()).unwrap();
        let at = |name: &str| found[name].as_u64().unwrap() as usize;
        let passage = &page["text"].as_str().unwrap()[at("start")..at("end")];
        assert_eq!(passage, words(quoted, 20));
        assert_eq!((at("query_start"), at("query_end")), (0, passage.len()));
        assert_eq!(at("longest_run"), 16);
    }

    let capped = format!("{contain} --max-frequency 1 --format jsonl");
    let ran = folder.run(&capped).expect(0);
    let rows: Vec<serde_json::Value> = ran
        .lines()
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (&rows[0]["id"], &rows[0]["key"]),
        (&0.into(), &"page 1".into())
    );
    assert!(
        ran.stderr.contains("ignored hashes of 1 texts"),
        "{}",
        ran.stderr
    );

    // The other way round: each page contains a paragraph.
    let build = "build tests.rsm paragraphs.jsonl --containment 5 --window 4";
    folder.run(build).expect(0);
    let contained = [
        "contain",
        "--in",
        "tests.rsm",
        "--query",
        "pages.jsonl",
        "--which",
    ];
    let ran = folder
        .run(&[&contained[..], &["contained"]].concat())
        .expect(0);
    let first = |line: &&str| line.split('\t').take(2).collect::<Vec<_>>().join(": ");
    let found: Vec<String> = ran.lines().iter().map(first).collect();
    let expected = ["page 1: in one", "page 3: in two", "page 4: in two"];
    assert_eq!(found, expected, "{}", ran.stdout);
    let overlapping = [&contained[..], &["overlapping", "--min-shared", "1000"]].concat();
    folder.run(&overlapping).expect(1);
}

/// A store with positions tells where passages stand without the texts: in the query to the byte, in the document
/// to the word.
#[test]
fn stored_positions_locate_passages() {
    let folder = pages();
    let options = "--containment 5 --window 4 --positions";
    folder
        .run(&format!("build placed.rsm pages.jsonl {options}"))
        .expect(0);
    let quoted = format!("So: {}, as they say", words(1_000, 20));
    folder.write("quote.jsonl", line("quote", &quoted));
    let which = ["--which", "overlapping", "--query", "quote.jsonl"];
    let reported = |store: &str, more: &[&str]| {
        let contain = [
            &["contain", "--in", store, "--format", "jsonl"][..],
            &which,
            more,
        ]
        .concat();
        let ran = folder.run(&contain).expect(0);
        let first = ran.lines()[0];
        serde_json::from_str::<serde_json::Value>(first).unwrap()
    };
    let placed = reported("placed.rsm", &[]);
    let exact = reported("pages.rsm", &["--texts", "pages.jsonl"]);
    assert!(reported("pages.rsm", &[])["longest_run"].is_null());
    let number = |of: &serde_json::Value, name: &str| of[name].as_u64().unwrap() as usize;
    let (start, end) = (number(&placed, "query_start"), number(&placed, "query_end"));
    assert!(number(&exact, "query_start") <= start && end <= number(&exact, "query_end"));
    let said: Vec<&str> = quoted[start..end].split([' ', ',']).collect();
    let page = format!("{} {}", words(100, 15), words(1_000, 20));
    let page: Vec<&str> = page.split(' ').collect();
    let units = number(&placed, "start_unit")..number(&placed, "end_unit");
    assert_eq!(page[units], said);
    assert_eq!(number(&placed, "longest_run"), said.len() - 4);
    // Up to a window less one is missing at both ends.
    assert!(said.len() >= 20 - 2 * 3, "{said:?}");
}

#[test]
fn decontaminate_removes_documents_that_share_passages_with_tests() {
    let folder = Folder::new();
    let tests = [
        line("t1", &words(5_000, 40)),
        line("t2", &format!("{} {}", words(6_000, 13), words(6_900, 20))),
    ];
    folder.write("tests.jsonl", tests.concat());
    let around = |from: u32, passage: &str| {
        format!("{} {passage} {}", words(from, 30), words(from + 500, 30))
    };
    let corpus = [
        line("clean", &words(1, 80)),
        line("all of t1", &around(10_000, &words(5_000, 40))),
        line("13 words of t2", &around(20_000, &words(6_000, 13))),
        line("7 words of t1", &around(30_000, &words(5_000, 7))),
    ];
    folder.write("corpus.jsonl", corpus.concat());
    let out = [
        "decontaminate",
        "corpus.jsonl",
        "-o",
        "clean.jsonl",
        "--report",
        "r.tsv",
    ];
    let against = [&out[..], &["--against", "tests.jsonl"]].concat();
    folder
        .run(&against)
        .expect(0)
        .says(&["read 4, kept 2, dropped 2"]);
    assert_eq!(
        folder.read_text("clean.jsonl"),
        [&*corpus[0], &corpus[3]].concat()
    );
    let report = folder.read_text("r.tsv");
    let rows: Vec<Vec<&str>> = report
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    assert_eq!(rows[0][..2], ["dropped", "test"]);
    assert_eq!(rows[1][..3], ["all of t1", "t1", "1.000000"]);
    assert_eq!(rows[2][..2], ["13 words of t2", "t2"]);
    assert_eq!(rows.len(), 3);

    let spans = [&against[..], &["--force", "--spans"]].concat();
    folder.run(&spans).expect(0);
    let spans = folder.read_text("r.tsv");
    let rows: Vec<Vec<&str>> = spans
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    let header = ["longest_run", "start", "end", "test_start", "test_end"];
    assert_eq!(rows[0][5..], header);
    let before = words(20_000, 30).len() + 1;
    let passage = words(6_000, 13).len();
    let place = [before, before + passage, 0, passage].map(|at| at.to_string());
    assert_eq!(
        (rows[2][5], &rows[2][6..]),
        ("6", &place.each_ref().map(String::as_str)[..])
    );

    // As a share of the tests, and against a store of them.
    let share = [&against[..], &["--force", "--min-share", "0.9"]].concat();
    folder.run(&share).expect(0).says(&["kept 3, dropped 1"]);
    let build = "build tests.rsm tests.jsonl --containment 8 --window 6";
    folder.run(build).expect(0);
    let store = [&out[..], &["--force", "--against", "tests.rsm"]].concat();
    folder.run(&store).expect(0).says(&["kept 2, dropped 2"]);
    assert_eq!(folder.read_text("r.tsv"), report);
    let no_texts = [&store[..], &["--spans"]].concat();
    folder
        .run(&no_texts)
        .expect(2)
        .says(&["--spans", "corpora"]);
    let own = [&store[..], &["--window", "3"]].concat();
    folder
        .run(&own)
        .expect(2)
        .says(&["--window", "the schema of a store is fixed"]);
}

#[test]
fn frequent_passages_are_listed_once() {
    let folder = Folder::new();
    let menu = words(1, 15);
    let pages = (2..=9).map(|page| {
        let own = words(1_000 * page, 20);
        let menu = if page < 9 { &*menu } else { "" };
        line(
            &format!("page {page}"),
            &format!("{own}. {menu} {}", words(1_000 * page + 500, 9)),
        )
    });
    folder.write("pages.jsonl", pages.collect::<String>());
    let build = "build pages.rsm pages.jsonl --containment 4 --window 1";
    folder.run(build).expect(0);
    let contain = "contain --in pages.rsm --query pages.jsonl";
    let list = |more: &str| folder.run(&format!("{contain} --boilerplate '{more}'"));
    let ran = list("6").expect(0);
    let start = words(2_000, 20).len() + 2;
    let expected = format!("page 2\t{start}\t{}\t7\t12\t{menu}", start + menu.len());
    assert_eq!(ran.lines(), [&*expected]);
    assert!(
        ran.stderr.contains("1 different passages"),
        "{}",
        ran.stderr
    );
    list("7").expect(1);
    list("0").expect(2);
}

#[test]
fn test_documents_too_short_to_be_found_are_counted() {
    let folder = Folder::new();
    folder.write("c.jsonl", line("c", &text(1)));
    folder.write(
        "t.jsonl",
        line("short", "which river flows through rome") + &line("long", &text(2)),
    );
    let ran = folder
        .run("decontaminate c.jsonl --against t.jsonl -o o.jsonl")
        .expect(0);
    let reported = "1 of 2 texts have fewer than 6 shingles";
    assert!(ran.stderr.contains(reported), "{}", ran.stderr);
    let ran = folder
        .run(
            "decontaminate c.jsonl --against t.jsonl -o o.jsonl --force --containment 3 --window 2",
        )
        .expect(0);
    assert!(!ran.stderr.contains("fewer than"), "{}", ran.stderr);
}
