//! The language of documents and of doc comments.

use super::repository::{self, Text};

/// Folders whose doc lines have to be sentences or noun phrases.
const SOURCES: [&str; 9] = [
    "src",
    "cli",
    "python",
    "crates",
    "benches",
    "examples",
    "fuzz",
    "tests",
    // Left out of `tests`, where the folder of this name holds stores.
    "tests/format/golden",
];

/// How a doc line begins that has no subject or no verb.
const BEGINNINGS: [&str; 7] = [
    "Of ", "Those ", "What ", "Who ", "All of ", "So many ", "As many ",
];

/// Phrases that documents avoid, each with what to write.
const PHRASES: [(&str, &str); 16] = [
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
    ("once more", "again"),
    ("hold that", "check that"),
    ("settles", "finishes"),
    ("kin", "related"),
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

#[test]
fn doc_lines_are_sentences() {
    let mut wrong = Vec::new();
    for folder in SOURCES {
        let sources: Vec<Text> = repository::texts(folder, "rs");
        assert!(!sources.is_empty(), "{folder}: the files were not read");
        for source in sources {
            let lines = source.text.lines().zip(1..);
            let headless = lines.filter(|(line, _)| is_headless(line));
            wrong.extend(
                headless.map(|(line, at)| format!("{}:{at}: {}", source.path, line.trim())),
            );
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
