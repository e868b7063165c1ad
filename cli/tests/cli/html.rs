//! --html: documents are HTML, and what readers see of them is compared.

use crate::support::{Folder, line, text};

#[cfg(not(feature = "html"))]
#[test]
fn build_without_html_names_the_feature() {
    let folder = Folder::new();
    folder.write("c.jsonl", line("a", &text(1)));
    let refused = folder.run("pairs c.jsonl --html").expect(3);
    refused.says(&["html5ever 0.40.1", "--features html"]);
}

#[cfg(feature = "html")]
mod with_it {
    use super::*;
    use crate::support::edited;

    /// A page as sites write it: with scripts, styles, entities, and tags that do not fit.
    fn page(text: &str, style: usize) -> String {
        let words: Vec<&str> = text.split_whitespace().collect();
        let paragraphs = words.chunks(40).map(|words| words.join(" "));
        match style {
            0 => {
                let body: String = paragraphs
                    .map(|p| format!("<p class=\"a\">{p}</p>\n"))
                    .collect();
                format!(
                    "<!doctype html>\n<html><head><title>A &amp; B</title><style>p {{ color: red }} </style>\
                     <script>var page = \"<p>no text</p>\";</script></head><body>{body}</body></html>"
                )
            }
            1 => {
                let body: String = paragraphs
                    .map(|p| format!("<DIV><b><i>{}</b></i></span>", p.replacen(' ', "&#32;", 9)))
                    .collect();
                format!(
                    "<title>A & B</title><table><tr><td>{body}<script src=x></script><!-- {text} -->"
                )
            }
            _ => {
                let body: String = paragraphs
                    .map(|p| {
                        format!(
                            "<section><p>{}</section>",
                            p.replacen(" w", " <em>w</em>", 20)
                        )
                    })
                    .collect();
                let scripts = "<script>if (a < b) { document.write('x y z'); }</script>".repeat(30);
                format!(
                    "<body>{scripts}<h1>A &amp B</h1>{body}{scripts}<noscript>turn it on</noscript>"
                )
            }
        }
    }

    fn corpus() -> String {
        let styles = (0..3).map(|style| line(&format!("a{style}"), &page(&text(1), style)));
        let near = line("near", &page(&edited(1, 1), 1));
        let others = (2..6).map(|number| line(&format!("b{number}"), &page(&text(number), 2)));
        styles.chain([near]).chain(others).collect()
    }

    #[test]
    fn the_same_text_with_other_markup_is_a_duplicate() {
        let folder = Folder::new();
        folder.write("c.jsonl", corpus());
        let dedup = "dedup c.jsonl --html -o o.jsonl --report r.tsv";
        folder
            .run(dedup)
            .expect(0)
            .says(&["read 8, kept 5, dropped 3"]);
        // What is kept is the HTML as it came.
        let kept = folder.read_text("o.jsonl");
        let lines: Vec<_> = kept.lines().collect();
        assert_eq!(lines[0], corpus().lines().next().unwrap());
        assert_eq!(lines.len(), 5);
        let report = folder.report("r.tsv");
        assert_eq!(report.lines().count(), 3, "{report}");
        // Files of a folder, and all other verbs that read.
        for (style, name) in ["x.html", "y.htm", "z"].iter().enumerate() {
            folder.write(&format!("site/{name}"), page(&text(7), style));
        }
        let clusters = folder.run("clusters site --html").expect(0);
        assert_eq!(clusters.lines().len(), 3, "{}", clusters.stdout);
        let eval = folder.run("eval c.jsonl --html --min 0.5").expect(0);
        assert!(eval.stdout.contains("pairs"), "{}", eval.stdout);
        let pair = "explain a0 a2 --corpus c.jsonl --html";
        let explained = folder.run(pair).expect(0);
        assert!(!explained.stdout.contains("script"), "{}", explained.stdout);
        let files = "explain site/x.html site/y.htm --html --format json";
        let explained = folder.run(files).expect(0);
        let explained: serde_json::Value = serde_json::from_str(&explained.stdout).unwrap();
        assert!(
            explained[0]["similarity"].as_f64().unwrap() > 0.95,
            "{explained}"
        );
        let tune = "tune --corpus c.jsonl --html --threshold 0.8";
        folder.run(tune).expect(0);
        let report = ["report", "c.jsonl", "--html", "-o", "r.html"];
        folder.run(&report).expect(0);
        assert!(!folder.read_text("r.html").contains("document.write"));
    }

    #[test]
    fn store_records_that_its_texts_are_html() {
        let folder = Folder::new();
        folder.write("c.jsonl", corpus());
        folder.run("build s.rsm c.jsonl --html").expect(0);
        folder.run("create e.rsm --html").expect(0);
        // No option is needed from then on.
        let added = folder.run("add e.rsm c.jsonl --if-new").expect(0);
        added.says(&["added 5, dropped 3"]);
        for store in ["s.rsm", "e.rsm"] {
            folder.write("page.html", page(&text(3), 0));
            let found = folder
                .run(&format!("query {store} --file page.html --limit 1"))
                .expect(0);
            assert!(found.stdout.starts_with("b3\t"), "{}", found.stdout);
            let all = folder
                .run(&format!("query {store} --corpus c.jsonl --limit 1"))
                .expect(0);
            assert_eq!(all.lines().len(), 8, "{}", all.stdout);
        }
        folder.write("more.jsonl", line("new", &page(&text(9), 1)) + &corpus());
        let dedup = "dedup more.jsonl --against s.rsm -o n.jsonl";
        folder.run(dedup).expect(0).says(&["kept 1"]);
        folder.run("build p.rsm c.jsonl").expect(0);
        let against = "dedup c.jsonl --against p.rsm -o x --html";
        folder
            .run(against)
            .expect(2)
            .says(&["--html", "own schema"]);
        // Passages of tests that are HTML.
        folder.write("t.jsonl", line("t", &page(&text(2), 0)));
        let build = "build t.rsm t.jsonl --html --containment 5";
        folder.run(build).expect(0);
        let clean = "decontaminate c.jsonl --against t.rsm -o clean.jsonl";
        folder.run(clean).expect(0).says(&["dropped 1"]);
        // A job of plain texts is none of HTML.
        let job = "pairs c.jsonl --job job";
        folder.run(job).expect(0);
        folder
            .run(&format!("{job} --html"))
            .expect(2)
            .says(&["different values of --html"]);
    }

    #[test]
    fn a_store_of_another_extractor_is_refused_with_both_names() {
        let folder = Folder::new();
        folder.write("c.jsonl", corpus());
        // The seed of html5ever 0.39.7, as a release that has it makes it; this one refuses to.
        let seed = 0x4854_4d4c_0027_0701_u64;
        let refused = folder.run(&["build", "s.rsm", "c.jsonl", "--seed", &seed.to_string()]);
        refused.expect(2).says(&["--seed", "use --html"]);
        let schema = resemblance::Schema::builder()
            .text(resemblance::Text::words(5))
            .minhash(resemblance::MinHash::new(128))
            .seed(seed)
            .build()
            .unwrap();
        drop(
            resemblance::Store::options()
                .create(folder.path("s.rsm"), schema)
                .unwrap(),
        );
        for verb in [
            "add s.rsm c.jsonl",
            "query s.rsm --corpus c.jsonl",
            "query s.rsm 'a text'",
            "dedup c.jsonl --against s.rsm -o o.jsonl",
        ] {
            let refused = folder.run(verb).expect(3);
            refused.says(&["html5ever 0.39.7 (rules 1)", "html5ever 0.40.1 (rules 1)"]);
        }
        folder.run("stats s.rsm").expect(0);
    }

    #[test]
    fn malformed_or_deep_html_is_read_or_reported() {
        let folder = Folder::new();
        let depth = 300_000;
        let deep = "<div><b>".repeat(depth) + &text(1) + &"</div>".repeat(depth);
        folder.write("c.jsonl", line("deep", &deep) + &line("flat", &text(1)));
        let pairs = folder.run("pairs c.jsonl --html").expect(0);
        assert_eq!(pairs.stdout, "deep\tflat\t1.000000\n");
        let mut latin = page(&text(1), 0).into_bytes();
        latin.extend(b"caf\xe9");
        folder.write("site/latin.html", &latin);
        folder.write("site/fine.html", page(&text(1), 0));
        let refused = folder.run("pairs site --html").expect(3);
        refused.says(&["site/latin.html", "UTF-8"]);
        let wide: Vec<u8> = page(&text(1), 0)
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        folder.write("site/latin.html", &wide);
        folder
            .run("pairs site --html")
            .expect(3)
            .says(&["UTF-16", "iconv"]);
        for (more, part) in [
            (&["--level", "paragraph"][..], "--level"),
            (&["--seed", "7"], "--seed"),
            (&["--features"], "--features"),
        ] {
            let dedup = [&["dedup", "c.jsonl", "-o", "x.jsonl", "--html"][..], more].concat();
            let refused = folder.run(&dedup).expect(2).stderr;
            assert!(
                refused.contains(part) && refused.contains("--html"),
                "{refused}"
            );
        }
    }
}
