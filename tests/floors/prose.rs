//! The language of documents and of doc comments.

use super::repository::{self, Text};

/// Crates, and the doc lines without a subject or a verb that each may still have. A number only falls.
const HEADLESS: [(&str, usize); 7] = [
    ("src", 57),
    ("cli", 94),
    ("python", 19),
    ("crates/redb-verified", 28),
    ("crates/resemblance-corpus", 5),
    ("crates/resemblance-eval", 29),
    ("crates/resemblance-sketch", 0),
];

/// How a doc line begins that has no subject or no verb.
const BEGINNINGS: [&str; 7] = [
    "Of ", "Those ", "What ", "Who ", "All of ", "So many ", "As many ",
];

/// Phrases that documents avoid, each with what to write.
const PHRASES: [(&str, &str); 12] = [
    ("so many", "N, that number of"),
    ("of its own", "its own, or nothing"),
    ("at hand", "available"),
    ("in vain", "without effect"),
    ("made again", "rebuilt"),
    ("anew", "again"),
    ("what is no ", "anything other than"),
    ("that are no ", "non-, or data other than"),
    ("others than", "different from"),
    ("tells", "reports, returns, shows"),
    ("told", "reported, returned, shown"),
    ("take it for", "treat it as"),
];

fn is_headless(line: &str) -> bool {
    let text = line.trim_start();
    let text = text
        .strip_prefix("/// ")
        .or_else(|| text.strip_prefix("//! "));
    text.is_some_and(|text| {
        BEGINNINGS
            .iter()
            .any(|beginning| text.starts_with(beginning))
    })
}

/// Whether a file of sources is for tests alone.
fn is_for_tests(path: &str) -> bool {
    path.split('/').any(|part| {
        let name = part.trim_end_matches(".rs");
        ["test", "tests", "models", "testing", "fuzzing"].contains(&name)
            || name.ends_with("_tests")
            || name.ends_with("_models")
    })
}

#[test]
fn doc_lines_are_sentences() {
    let mut wrong = Vec::new();
    for (name, allowed) in HEADLESS {
        let folder = if name == "src" {
            name.to_owned()
        } else {
            format!("{name}/src")
        };
        let sources: Vec<Text> = repository::texts(&folder, "rs");
        assert!(sources.len() > 5, "{folder}: the files were not read");
        let mut found = Vec::new();
        for source in sources.iter().filter(|source| !is_for_tests(&source.path)) {
            // The rest is a module of tests.
            let code = source.text.split("#[cfg(test)]\nmod ").next().unwrap();
            let lines = code.lines().enumerate();
            let headless = lines.filter(|(_, line)| is_headless(line));
            found.extend(
                headless.map(|(at, line)| format!("{}:{}: {}", source.path, at + 1, line.trim())),
            );
        }
        if found.len() > allowed {
            wrong.push(format!(
                "{name} has {}, may have {allowed}:\n{}",
                found.len(),
                found.join("\n")
            ));
        }
    }
    super::assert_none("doc lines without a subject or a verb", &wrong);
}

/// Whether a phrase is in a text between two other words.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(phrase).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + phrase.len()..]);
        !is_word(before.chars().next_back())
            && (phrase.ends_with(' ') || !is_word(after.chars().next()))
    })
}

#[test]
fn documents_avoid_phrases_of_translations() {
    let mut wrong = Vec::new();
    for document in repository::documents() {
        // The shown output of a program is not the text of the document.
        for (at, line) in document.prose() {
            let line = line.to_lowercase();
            for (phrase, better) in PHRASES
                .iter()
                .filter(|(phrase, _)| has_phrase(&line, phrase))
            {
                wrong.push(format!(
                    "{}:{at}: \"{phrase}\": write {better}",
                    document.path
                ));
            }
        }
    }
    super::assert_none("phrases of translations", &wrong);
}

#[test]
fn headless_lines_and_phrases_are_found() {
    assert!(is_headless("    /// Those of reading."));
    assert!(is_headless("//! What is stored."));
    assert!(!is_headless("/// Returns those of reading."));
    assert!(!is_headless("// Those of reading."));
    assert!(has_phrase("it is at hand.", "at hand") && !has_phrase("at handles", "at hand"));
}
