//! explain, report, and the pairs that dedup lists for a review.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use crate::support::{Folder, edited, line};

#[test]
fn explain_page_is_well_formed() {
    let folder = Folder::new();
    folder.write("a.txt", "It was the <b>best & worst</b> of times");
    folder.write("b.txt", "It was the <b>best & worst</b> of days");
    let explain = "explain a.txt b.txt --words 2 --format html -o page.html";
    folder.run(explain).expect(0);
    must_be_well_formed(&folder.read_text("page.html"));
}

/// Groups of near-duplicates, a chain in which each text is near the next alone, and texts with markup.
fn corpus(folder: &Folder) {
    let mut lines = String::new();
    let words = |from: usize, count: usize| -> Vec<String> {
        (from..from + count)
            .map(|word| format!("word{word}"))
            .collect()
    };
    for group in 0..12 {
        for copy in 0..=group % 4 {
            let mut text = words(1_000 * group, 100);
            text[copy * 7] = format!("<script>alert({copy})</script>");
            lines += &line(&format!("<i>{group}</i> {copy}"), &text.join(" "));
        }
    }
    for link in 0..30 {
        lines += &line(
            &format!("link {link}"),
            &words(90_000 + 3 * link, 120).join(" "),
        );
    }
    folder.write("corpus.jsonl", lines);
}

const REPORT: [&str; 4] = ["report", "corpus.jsonl", "--words", "2"];

#[test]
fn a_report_agrees_with_the_other_verbs() {
    let folder = Folder::new();
    corpus(&folder);
    folder
        .run(&[&REPORT[..], &["-o", "report.html"]].concat())
        .expect(0);
    let page = folder.read_text("report.html");
    must_be_well_formed(&page);
    assert_eq!(page.matches("<script").count(), 1);
    assert!(page.contains("&lt;script&gt;"));
    for from_elsewhere in ["http://", "https://", "src=", "@import", "url("] {
        let page = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!page.contains(from_elsewhere), "{from_elsewhere}");
    }

    let same = ["corpus.jsonl", "--words", "2"];
    let count = |verb: &[&str]| folder.run(&[verb, &same].concat()).expect(0);
    let pairs = count(&["pairs"]).lines().len();
    let clusters = count(&["clusters"]);
    let firsts: std::collections::BTreeSet<&str> = clusters
        .lines()
        .iter()
        .map(|line| line.split('\t').next().unwrap())
        .collect();
    count(&[
        "dedup",
        "--dry-run",
        "--report",
        "dropped.tsv",
        "--no-header",
    ]);
    let dropped = folder.read_text("dropped.tsv").lines().count();
    let figures = [
        ("near-duplicate pairs", pairs),
        ("clusters", firsts.len()),
        ("documents in clusters", clusters.lines().len()),
        ("removed by dedup", dropped),
    ];
    for (name, number) in figures {
        let tile = format!("<dt>{name}</dt><dd>{number}</dd>");
        assert!(page.contains(&tile), "{tile}: {page}");
    }
    let (_, chains) = page
        .split_once("Clusters whose members differ most")
        .unwrap();
    assert!(chains.contains("<b>30 documents</b>"), "the chain");
    assert_eq!(page.matches("<b>30 documents</b>").count(), 1);
    let headline = format!("{:.1} % of 60 documents, ", 100.0 * dropped as f64 / 60.0);
    assert!(page.contains(&format!("<h1>{headline}")), "{headline}");

    // The same whatever the threads; an existing file stays.
    let again = [&REPORT[..], &["-o", "again.html", "--threads", "1"]].concat();
    folder.run(&again).expect(0);
    assert_eq!(folder.read_text("again.html"), page);
    folder.run(&again).expect(4);
    let simhash = [&REPORT[..], &["-o", "distances.html", "--simhash", "64"]].concat();
    folder.run(&simhash).expect(0);
    must_be_well_formed(&folder.read_text("distances.html"));
    let piped = "report - -o x.html";
    let ran = folder.run_with_input(piped, b"");
    ran.expect(2).says(&["read only once"]);
}

/// The removed documents that a page shows: the share that is lost, the two keys, and the similarity.
fn removed(page: &str) -> Vec<[String; 4]> {
    let (_, section) = page.split_once("<section id=\"removed\">").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    let between = |text: &str, before: &str, after: &str| {
        let (_, rest) = text.split_once(before).unwrap();
        rest.split_once(after).unwrap().0.to_owned()
    };
    let drops = section.split("<details").skip(1);
    let drops = drops.map(|drop| {
        let mut keys = drop.split("<span class=\"key\">").skip(1);
        let mut key = || keys.next().unwrap().split_once('<').unwrap().0.to_owned();
        [
            between(drop, "<b>lost: ", "</b>"),
            key(),
            key(),
            between(drop, "are in the removed document; ", "; decided by: ")
                .replace("estimated similarity ", "")
                .replace("similarity ", ""),
        ]
    });
    drops.collect()
}

/// The share of the runs of two words of a text that another lacks.
fn lost_share(text: &str, survivor: &str) -> f64 {
    let (own, others) = (runs(text), runs(survivor));
    own.difference(&others).count() as f64 / own.len() as f64
}

/// The report shows what dedup with the same options does: it removes the same number of documents,
/// and the listed documents have the same survivors.
#[test]
fn a_report_drops_what_dedup_drops() {
    let folder = Folder::new();
    let (mut lines, mut known) = (String::new(), String::new());
    let mut texts = BTreeMap::new();
    for number in 0..90_u64 {
        let text = edited(number % 30, 2 * (number / 30)) + &"tail ".repeat(number as usize % 4);
        let quality = number * 37 % 11;
        lines += &format!("{{\"id\":\"{number}\",\"text\":\"{text}\",\"quality\":{quality}}}\n");
        if number % 9 == 0 {
            known += &line(&format!("known {number}"), &text);
        }
        texts.insert(number.to_string(), text);
    }
    folder.write("c.jsonl", lines);
    folder.write("known.jsonl", known);
    let schema = ["--words", "2", "--threshold", "0.7"];
    folder
        .run(&[&["build", "known.rsm", "known.jsonl"][..], &schema].concat())
        .expect(0);
    for (number, options) in [
        &["--policy", "first"][..],
        &["--policy", "representative", "--keep", "quality:max"],
        &[
            "--policy",
            "cluster",
            "--keep",
            "longest",
            "--max-bucket",
            "3",
        ],
        &["--policy", "first", "--keep", "last", "--threshold", "0.8"],
        &["--against", "known.rsm"],
        &[
            "--against",
            "known.rsm",
            "--texts",
            "known.jsonl",
            "--threshold",
            "0.8",
        ],
        &["--against", "known.rsm", "--policy", "cluster"],
        &["--budget", "2"],
        &["--verify", "estimate"],
        &["--lost", "0.05"],
        &["--lost", "0.03", "--policy", "representative"],
    ]
    .into_iter()
    .enumerate()
    {
        let schema = if options.contains(&"--against") {
            &[][..]
        } else {
            &schema[..2]
        };
        let dedup = [
            "dedup",
            "c.jsonl",
            "--dry-run",
            "--report",
            "dropped.tsv",
            "--no-header",
            "--force",
        ];
        folder
            .run(&[&dedup[..], options, schema].concat())
            .expect(0);
        let page = format!("{number}.html");
        folder
            .run(&[&["report", "c.jsonl", "-o", &page][..], options, schema].concat())
            .expect(0);
        let page = folder.read_text(&page);
        must_be_well_formed(&page);
        let dropped = folder.read_text("dropped.tsv");
        let mut dropped: Vec<Vec<&str>> = dropped
            .lines()
            .map(|line| line.split('\t').collect())
            .collect();
        let tile = format!("<dt>removed by dedup</dt><dd>{}</dd>", dropped.len());
        assert!(
            dropped.len() > 3 && page.contains(&tile),
            "{options:?}: {tile}"
        );
        let has_store = options.contains(&"--against");
        let held = |row: &Vec<&str>| row[4].parse::<f64>().unwrap_or(2.0);
        dropped.sort_by(|a, b| {
            let by_loss = held(a).total_cmp(&held(b));
            by_loss.then_with(|| (a[2], a[0], a[1]).cmp(&(b[2], b[0], b[1])))
        });
        dropped.truncate(20);
        let expected: Vec<[String; 4]> = dropped
            .into_iter()
            .map(|of| {
                let estimate = match of[3] {
                    // If nothing is exact, the name of the column says so.
                    "estimate" if has_store => " (estimate)",
                    _ => "",
                };
                let lost = match (texts.get(of[1]), of[4]) {
                    (Some(survivor), held) => {
                        let lost = lost_share(&texts[of[0]], survivor);
                        let known = held.parse().unwrap_or(1.0 - lost);
                        assert!((1.0 - lost - known).abs() < 1e-5, "{options:?}: {of:?}");
                        format!("{:.2} %", 100.0 * lost)
                    }
                    (None, "") => "unknown".to_owned(),
                    (None, held) => {
                        format!("{:.2} %", 100.0 - 100.0 * held.parse::<f64>().unwrap())
                    }
                };
                let [document, survivor] = [of[0], of[1]].map(str::to_owned);
                [lost, document, survivor, of[2].to_owned() + estimate]
            })
            .collect();
        assert_eq!(removed(&page), expected, "{options:?}");
        if !options.contains(&"--verify") {
            decisions_are_read(&folder, number, &dedup, &[options, schema].concat(), &page);
        }
    }
    let header = "dropped\tsurvivor\tsimilarity\tsimilarity_is\theld\tcovered\trule\n";
    let row = "other\t1\t0.9\texact\t0.95\t0.95\tsimilarity\n";
    folder.write("other.tsv", header.to_owned() + row);
    folder.write("bare.tsv", row);
    folder.write(
        "twice.tsv",
        header.to_owned() + &row.replace("other", "2").repeat(2),
    );
    for (list, said) in [
        ("other.tsv", "drops other, which the corpus does not have"),
        ("bare.tsv", "columns of dedup --report"),
        ("twice.tsv", "2 is dropped twice"),
    ] {
        let mixed = format!("report c.jsonl -o no.html --decisions {list}");
        folder.run(&mixed).expect(3).says(&[said]);
    }
    let mixed = "report c.jsonl -o no.html --decisions dropped.tsv --lost 0";
    folder.run(mixed).expect(2).says(&["--lost"]);
    let mixed = "report c.jsonl -o no.html --policy cluster --budget 3";
    folder.run(mixed).expect(2).says(&["--budget"]);
}

/// A report page of the decisions that a run has listed shows those removed documents, whatever the form
/// of the list.
fn decisions_are_read(
    folder: &Folder,
    number: usize,
    dedup: &[&str],
    options: &[&str],
    page: &str,
) {
    let list = ["r.tsv", "r.csv", "r.jsonl", "r.json"][number % 4];
    let dedup = dedup.iter().copied().filter(|it| *it != "--no-header");
    let dedup = dedup.map(|it| if it == "dropped.tsv" { list } else { it });
    let dedup: Vec<&str> = dedup.chain(options.iter().copied()).collect();
    folder.run(&dedup[..]).expect(0);
    let report = format!("report c.jsonl -o read.html --decisions {list} --words 2 --force");
    folder.run(&report).expect(0);
    let read = folder.read_text("read.html");
    must_be_well_formed(&read);
    assert_eq!(removed(&read), removed(page), "{options:?}");
    let tile = |page: &str| {
        let (_, rest) = page.split_once("<dt>removed by dedup</dt>").unwrap();
        rest.split_once("</dl>").unwrap().0.to_owned()
    };
    assert_eq!(tile(&read), tile(page), "{options:?}");
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|character: char| !character.is_alphanumeric());
    words.filter(|word| !word.is_empty())
}

/// The runs of two words of a text.
fn runs(text: &str) -> BTreeSet<String> {
    let words: Vec<&str> = words_of(text).collect();
    words.windows(2).map(|run| run.join(" ")).collect()
}

/// The value of a bound that a review is about, the bound, and the distance from it.
struct Reviewed {
    by_loss: bool,
    bound: f64,
    within: f64,
}

impl Reviewed {
    fn is_near(&self, value: f64) -> bool {
        (value - self.bound).abs() < self.within
    }

    /// The rows of a report whose pairs are near the bound, and not equal.
    fn near<'r>(&self, report: &'r str) -> BTreeSet<[&'r str; 2]> {
        let rows = report.lines().skip(1);
        let rows = rows.map(|row| row.split('\t').collect::<Vec<_>>());
        let rows = rows.filter(|row| {
            let value = match self.by_loss {
                true => 1.0 - row[4].parse::<f64>().unwrap(),
                false => row[2].parse::<f64>().unwrap(),
            };
            row[3] == "exact" && self.is_near(value)
        });
        rows.map(|row| [row[0], row[1]]).collect()
    }

    /// Checks a row against the two texts.
    fn check(&self, row: &serde_json::Value, texts: &BTreeMap<String, String>) {
        let key = |name: &str| row[name].as_str().unwrap();
        let (a, b) = (&texts[key("document")], &texts[key("candidate")]);
        let (of_a, of_b) = (runs(a), runs(b));
        let shared = of_a.intersection(&of_b).count() as f64;
        let similarity = shared / of_a.union(&of_b).count() as f64;
        let held = shared / of_a.len() as f64;
        let covered = shared / of_b.len() as f64;
        for (name, expected) in [
            ("similarity", similarity),
            ("held", held),
            ("covered", covered),
        ] {
            let found = row[name].as_f64().unwrap();
            assert!((found - expected).abs() < 1e-12, "{name}: {row}");
        }
        let (value, meets) = match self.by_loss {
            true => (1.0 - held, 1.0 - held <= self.bound + 1e-9),
            false => (similarity, similarity >= self.bound),
        };
        assert!(self.is_near(value), "{row}");
        let decision = if meets { "dropped" } else { "kept apart" };
        assert_eq!(row["decision"], decision, "{row}");
        assert!(row["judgement"].is_null());
        for (name, text, marks) in [
            ("document_text", a, ["[-", "-]"]),
            ("candidate_text", b, ["{+", "+}"]),
        ] {
            let marked = row[name].as_str().unwrap();
            assert_eq!(
                &marks
                    .iter()
                    .fold(marked.to_owned(), |it, mark| it.replace(mark, "")),
                text
            );
            // Runs that both texts have cover what is outside the marks.
            let [before, after] = marks;
            let outside = marked
                .split(before)
                .map(|it| it.split(after).last().unwrap());
            let shared: Vec<&String> = of_a.intersection(&of_b).collect();
            for word in outside.flat_map(words_of) {
                let covers = |run: &&String| run.split(' ').any(|other| other == word);
                assert!(shared.iter().copied().any(|run| covers(&run)), "{word}");
            }
        }
    }
}

#[test]
fn a_review_is_of_the_pairs_around_the_bound() {
    let folder = Folder::new();
    let (mut lines, mut texts) = (String::new(), BTreeMap::new());
    for number in 0..150_usize {
        let mut words: Vec<String> = (0..60)
            .map(|word| format!("w{}-{word}", number % 15))
            .collect();
        for edit in 0..number / 15 {
            words[edit * 6 % 59] = format!("\"<b>{number}</b>,{edit}");
        }
        words.truncate(60 - number % 4);
        let text = words.join(if number % 2 == 0 { " " } else { "\t\n" });
        let key = format!("{number},\"<&");
        lines += &format!("{}\n", serde_json::json!({"id": key, "text": text}));
        texts.insert(key, text);
    }
    folder.write("c.jsonl", lines);
    let common = "dedup c.jsonl --dry-run --words 2 --force";
    for (options, reviewed) in [
        (
            "--threshold 0.7 --recall 0.999",
            Reviewed {
                by_loss: false,
                bound: 0.7,
                within: 0.1,
            },
        ),
        (
            "--threshold 0.7 --recall 0.999 --keep last",
            Reviewed {
                by_loss: false,
                bound: 0.7,
                within: 0.08,
            },
        ),
        (
            "--lost 0.12",
            Reviewed {
                by_loss: true,
                bound: 0.12,
                within: 0.11,
            },
        ),
    ] {
        let run = |review: &str| {
            let within = reviewed.within;
            let lists = "--report r.tsv --rejected x.tsv";
            let arguments = format!("{common} {options} {lists} --review-within {within} {review}");
            folder.run(&arguments).expect(0)
        };
        let whole = run("--review v.jsonl --review-pairs 5000");
        let (report, rejected) = (folder.read_text("r.tsv"), folder.read_text("x.tsv"));
        let near = [reviewed.near(&report), reviewed.near(&rejected)];
        assert!(
            near.iter().all(|side| side.len() > 8),
            "{options}: {near:?}"
        );
        let note = format!(
            "{0} of {0} dropped, {1} of {1} kept apart",
            near[0].len(),
            near[1].len()
        );
        assert!(whole.stderr.contains(&note), "{note}: {}", whole.stderr);
        let rows = |name: &str| -> Vec<serde_json::Value> {
            let rows = folder.read_text(name);
            rows.lines()
                .map(|row| serde_json::from_str(row).unwrap())
                .collect()
        };
        let mut found = [BTreeSet::new(), BTreeSet::new()];
        for row in rows("v.jsonl") {
            reviewed.check(&row, &texts);
            let side = usize::from(row["decision"] != "dropped");
            assert_eq!(row["population"], near[side].len());
            let keys = ["document", "candidate"].map(|name| row[name].as_str().unwrap().to_owned());
            assert!(found[side].insert(keys), "{row} is there twice");
        }
        for (found, near) in found.iter().zip(&near) {
            let found: BTreeSet<[&str; 2]> = found
                .iter()
                .map(|keys| keys.each_ref().map(String::as_str))
                .collect();
            assert_eq!(&found, near, "{options}");
        }

        // Few of them: the same ones whatever the threads and the memory, and others with another seed.
        run("--review few.jsonl --review-pairs 7 --threads 1");
        let few = folder.read_text("few.jsonl");
        let of = |decision: &str| few.matches(&format!("\"decision\":\"{decision}\"")).count();
        assert_eq!((of("dropped"), of("kept apart")), (4, 3));
        let whole = folder.read_text("v.jsonl");
        assert!(
            few.lines()
                .all(|row| whole.lines().any(|other| other == row))
        );
        run("--review same.jsonl --review-pairs 7 --threads 3 --memory 32M");
        assert_eq!(folder.read_text("same.jsonl"), few);
        run("--review other.jsonl --review-pairs 7 --review-seed 1");
        assert_ne!(folder.read_text("other.jsonl"), few);

        // A row is a line with the same columns, and explain reads all forms.
        for name in ["v.tsv", "v.csv", "v.json"] {
            run(&format!("--review {name} --review-pairs 6"));
            let explain =
                format!("explain --pairs {name} --corpus c.jsonl --words 2 --format json");
            let pairs: serde_json::Value =
                serde_json::from_str(&folder.run(&explain).expect(0).stdout).unwrap();
            assert_eq!(pairs.as_array().unwrap().len(), 6, "{name}");
        }
        let table = folder.read_text("v.tsv");
        assert_eq!(table.lines().count(), 7);
        assert!(
            table.lines().all(|line| line.matches('\t').count() == 10),
            "{table}"
        );
    }
    for (options, words) in [
        (
            "--policy cluster --review x.tsv",
            "--review do not go with --policy cluster",
        ),
        (
            "--verify estimate --review x.tsv",
            "need exact similarities",
        ),
        ("--report x.tsv --review x.tsv", "name the same file"),
        ("--review-pairs 4", "--review"),
    ] {
        folder
            .run(&format!("{common} {options}"))
            .expect(2)
            .says(&[words]);
    }
}

/// A browser shows the page: what it makes of it has all parts, and its picture is not blank.
#[test]
fn report_renders_in_a_browser() {
    let is_there = |name: &&str| {
        let mut asked = Command::new(name);
        asked
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        asked.status().is_ok_and(|status| status.success())
    };
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(is_there)
    else {
        println!("skipped: there is no Chromium (apt-get install chromium)");
        return;
    };
    let folder = Folder::new();
    corpus(&folder);
    folder
        .run(&[&REPORT[..], &["-o", "report.html"]].concat())
        .expect(0);
    let page = format!("file://{}", folder.path("report.html").display());
    let picture = folder.path("report.png");
    let show = |what: &str| {
        Command::new(browser)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
            ])
            .args(["--window-size=1200,3000", "--force-device-scale-factor=1"])
            .arg(format!(
                "--user-data-dir={}",
                folder.path("profile").display()
            ))
            .args([what, &page])
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let dom = String::from_utf8(show("--dump-dom").stdout).unwrap();
    assert!(dom.contains("<svg") && dom.contains("</html>"), "{dom}");
    for part in [
        "How pairs are found",
        "How similar the pairs are",
        " shown</output>",
        "Clusters to look at",
        "link 0",
    ] {
        assert!(dom.contains(part), "{part}");
    }
    let scripts = dom.matches("<script").count();
    assert!(
        scripts == 1 && !dom.contains("<i>"),
        "texts became elements"
    );
    show(&format!("--screenshot={}", picture.display()));
    // A blank page of this size takes a tenth.
    let bytes = std::fs::read(&picture).unwrap();
    assert!(bytes.len() > 100_000, "{} bytes", bytes.len());
}

/// Every element is closed, in order, and characters with a meaning are escaped.
#[track_caller]
fn must_be_well_formed(page: &str) {
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    let body = page.strip_prefix("<!DOCTYPE html>").unwrap();
    let mut open: Vec<&str> = Vec::new();
    let mut pieces = body.split('<');
    assert_eq!(pieces.next().unwrap().trim(), "");
    for piece in pieces {
        let (tag, text) = piece.split_once('>').unwrap();
        let is_entity = |rest: &str| {
            let name = rest.split(';').next().unwrap();
            ["amp", "lt", "gt", "quot", "apos"].contains(&name) || name.starts_with('#')
        };
        assert!(!text.contains('>'), "{text}");
        if open.last() != Some(&"style") {
            assert!(text.split('&').skip(1).all(is_entity), "{text}");
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag
            .split([' ', '\n', '/'])
            .find(|name| !name.is_empty())
            .unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}
