//! --html, where the tool or the store has no such extractor. What the tool prints for pages is in the transcript `kinds`.

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
#[test]
fn a_store_of_another_extractor_is_refused_with_both_names() {
    let folder = Folder::new();
    folder.write("c.jsonl", line("a", &text(1)));
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
