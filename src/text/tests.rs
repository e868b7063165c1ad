use std::collections::BTreeSet;

use super::*;

fn shingles(text: Text, document: &str) -> Vec<String> {
    let mut shingles = Vec::new();
    text.for_each_shingle(document, |shingle| shingles.push(shingle.to_owned()));
    shingles
}

#[derive(serde::Deserialize)]
struct Golden {
    id: String,
    text: String,
    word5: BTreeSet<String>,
    char9: BTreeSet<String>,
}

#[test]
fn golden_shingles() {
    let lines = include_str!("../../tests/data/golden_shingles.jsonl").lines();
    let mut documents = 0;
    for line in lines {
        let golden: Golden = serde_json::from_str(line).unwrap();
        let set = |text| {
            shingles(text, &golden.text)
                .into_iter()
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(set(Text::words(5)), golden.word5, "{}", golden.id);
        assert_eq!(set(Text::characters(9)), golden.char9, "{}", golden.id);
        documents += 1;
    }
    assert_eq!(documents, 21);
}

/// The definition, on whole vectors.
fn naive(text: Text, document: &str) -> Vec<String> {
    let lower: Vec<char> = document
        .chars()
        .flat_map(|c| {
            let (first, second) = unicode::lower_case(c);
            [Some(first), second].into_iter().flatten()
        })
        .collect();
    let (units, size, joint): (Vec<String>, _, _) = match text {
        Text::Words(n) => {
            let words = lower.split(|&c| !unicode::is_alphanumeric(c));
            let words = words.filter(|word| !word.is_empty());
            (
                words.map(|word| word.iter().collect()).collect(),
                usize::from(n),
                " ",
            )
        }
        Text::Characters(n) => {
            let pieces = lower.split(|&c| unicode::is_white_space(c));
            let pieces = pieces.filter(|piece| !piece.is_empty());
            let pieces: Vec<String> = pieces.map(|piece| piece.iter().collect()).collect();
            (
                pieces.join(" ").chars().map(String::from).collect(),
                usize::from(n),
                "",
            )
        }
    };
    match units.len() {
        0 => Vec::new(),
        length if length <= size => vec![units.join(joint)],
        _ => units
            .windows(size)
            .map(|window| window.join(joint))
            .collect(),
    }
}

/// A splitmix64 of the tests' own.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % below as u64) as usize
    }
}

/// Mostly letters and separators of several scripts, now and then any scalar value.
fn random_text(random: &mut Random, length: usize) -> String {
    let usual: Vec<char> =
        "aAbBzZ09  \t\n.,_-'éÉİıßẞΣσςЖжǅ日本語ｶﾞ\u{301}\u{307}\u{a0}\u{3000}\u{85}\u{2028}\u{200b}𐐀𐐨𝔄😀½²Ⅷ"
            .chars()
            .collect();
    (0..length)
        .filter_map(|_| match random.next(20) {
            0 => char::from_u32(random.next(0x11_0000) as u32),
            1..8 => Some(['a', 'Q', '7', ' '][random.next(4)]),
            _ => Some(usual[random.next(usual.len())]),
        })
        .collect()
}

#[test]
fn random_texts_have_the_shingles_of_the_definition() {
    let mut random = Random(1);
    for round in 0..3_000 {
        let length = random.next(if round % 50 == 0 { 6_000 } else { 60 });
        let document = random_text(&mut random, length);
        for n in [1, 2, 3, 5, 9, 256] {
            for text in [Text::words(n), Text::characters(n)] {
                assert_eq!(
                    shingles(text, &document),
                    naive(text, &document),
                    "{text} {document:?}"
                );
            }
        }
    }
}

#[test]
fn one_huge_word_and_the_largest_length() {
    let word = "Ab".repeat(100_000);
    assert_eq!(shingles(Text::words(5), &word), [word.to_lowercase()]);
    let many = format!("{word} x ").repeat(3);
    assert_eq!(shingles(Text::words(2), &many).len(), 5);
    assert_eq!(shingles(Text::characters(256), &word).len(), 200_000 - 255);
    assert_eq!(shingles(Text::words(256), &"a ".repeat(300)).len(), 45);
}

#[test]
fn lengths_are_checked_and_shown() {
    for n in [1, 256] {
        assert!(Text::words(n).validate().is_ok() && Text::characters(n).validate().is_ok());
    }
    for n in [0, 257, u16::MAX] {
        let refused = Text::characters(n).validate();
        assert!(matches!(
            refused,
            Err(Error::InvalidParameter {
                parameter: "text",
                ..
            })
        ));
    }
    assert!(shingles(Text::words(0), "a b").is_empty());
    assert_eq!(Text::words(5).to_string(), "words 5");
    assert_eq!(Text::characters(9).to_string(), "characters 9");
}
