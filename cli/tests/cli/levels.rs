//! Repeated paragraphs and lines of a corpus.

use std::collections::HashSet;

use crate::support::{Folder, edited, text};

/// Texts that share lines and paragraphs, some with other letters. Some texts consist of shared
/// lines only.
fn pages() -> Vec<(String, String)> {
    let header = "Home | About\nContact\n";
    let page = |number: u64| {
        let (own, shared) = (text(number / 3), text(1_000 + number % 5));
        let body = match number % 4 {
            0 => format!("{header}\n{own}\n\n{shared}\n"),
            1 => format!("HOME, about!\r\n\r\n{}\n{shared}", edited(number / 3, 1)),
            2 => format!("{shared}\n\n \n{header}"),
            _ => format!("- - -\n{own}\n{own}\n"),
        };
        (format!("page{number}"), body)
    };
    (0..60).map(page).collect()
}

fn words(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The parts of a text: lines, or lines up to the next that is not blank behind a blank one.
fn parts(text: &str, are_lines: bool) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut is_after_blank = true;
    for line in text.split_inclusive('\n') {
        let is_blank = line.trim().is_empty();
        match parts.last_mut() {
            Some(last) if !are_lines && (is_blank || !is_after_blank) => last.push_str(line),
            _ => parts.push(line.into()),
        }
        is_after_blank = is_blank;
    }
    parts
}

/// Returns the rest of each page (`None` where nothing is left), and the number of removed parts.
pub fn expected(pages: &[(String, String)], are_lines: bool) -> (Vec<Option<String>>, usize) {
    let (mut seen, mut dropped) = (HashSet::new(), 0);
    let mut trim = |(_, page): &(String, String)| {
        let parts = parts(page, are_lines);
        let all = parts.len();
        let is_new = |part: &String| words(part).is_empty() || seen.insert(words(part));
        let left: Vec<String> = parts.into_iter().filter(is_new).collect();
        dropped += all - left.len();
        let left = left.concat();
        (!words(&left).is_empty() || words(page).is_empty()).then_some(left)
    };
    let left = pages.iter().map(&mut trim).collect();
    (left, dropped)
}

#[test]
fn levels_remove_repeated_parts_and_keep_the_rest_unchanged() {
    let (folder, pages) = (Folder::new(), pages());
    let json = |(id, text): &(String, String)| {
        let text = serde_json::Value::from(text.as_str());
        format!("{{\"n\": 1.0, \"id\": \"{id}\",  \"body\": {{ \"text\" : {text} }}}}\n")
    };
    folder.write("c.jsonl", pages.iter().map(json).collect::<String>());
    for (id, text) in &pages {
        folder.write(&format!("texts/{id}.txt"), text);
    }
    for level in ["paragraph", "line"] {
        let (left, dropped) = expected(&pages, level == "line");
        let emptied = left.iter().filter(|left| left.is_none()).count();
        assert!(dropped > 30 && emptied > 5, "{dropped} {emptied}");
        let counts = [
            format!("read 60, kept {}", 60 - emptied),
            format!("emptied {emptied}"),
            format!("repeated parts {dropped}"),
        ];
        let counts: Vec<&str> = counts.iter().map(String::as_str).collect();
        let options = ["--level", level, "--force", "--threads", "2"];
        let of_lines = [
            "dedup",
            "c.jsonl",
            "-o",
            "out.jsonl",
            "--dropped",
            "gone.jsonl",
        ];
        let text_field = ["--text-field", "body.text"];
        let arguments = [&of_lines[..], &text_field, &options].concat();
        folder.run(&arguments).expect(0).says(&counts);
        let kept = pages.iter().zip(&left);
        let kept = kept.filter_map(|((id, _), left)| Some(json(&(id.clone(), left.clone()?))));
        assert_eq!(folder.read_text("out.jsonl"), kept.collect::<String>());
        let gone = pages.iter().zip(&left).filter(|(_, left)| left.is_none());
        let gone: String = gone.map(|(page, _)| json(page)).collect();
        assert_eq!(folder.read_text("gone.jsonl"), gone);
        // A file is one text. Files are read in the order of their names.
        let mut files = pages.clone();
        files.sort();
        let (left, _) = expected(&files, level == "line");
        let output = format!("of-{level}");
        let arguments = [&["dedup", "texts", "-o", &output][..], &options].concat();
        folder.run(&arguments).expect(0);
        for ((id, _), left) in files.iter().zip(left) {
            let path = format!("{output}/{id}.txt");
            match left {
                Some(left) => assert_eq!(folder.read_text(&path), left),
                None => assert!(!folder.path(&path).exists()),
            }
        }
    }
}
