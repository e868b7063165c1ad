//! The optional steps.

use std::sync::{Arc, Mutex};

use unicode_normalization::char::is_public_assigned;
use xxhash_rust::xxh3::Xxh3Default;

use super::*;
use crate::error::SketchError;
use crate::sample::{one_in, trials};

/// The definition of all steps, on whole vectors.
fn naive_steps(text: Text, document: &str) -> Vec<String> {
    let mut chars = lower(text, &normal_form(text, document));
    if text.strip_accents {
        chars = chars.into_iter().flat_map(without_accents).collect();
    }
    shingles_of_units(text, filtered(text, units(text, &chars)))
}

/// The words without stop words, and their stems.
pub(super) fn filtered(text: Text, mut units: Vec<String>) -> Vec<String> {
    if let Some(language) = text.stop_words_language() {
        let alone = Text {
            nfkc: text.nfkc,
            strip_accents: text.strip_accents,
            keeps_case: text.keeps_case,
            ..Text::words(1)
        };
        let list = stop_word_list(language, alone);
        units.retain(|word| !list.contains(word));
    }
    if let Some(language) = text.stem_language() {
        let algorithm = frostem::Algorithm::from_name(language.code()).unwrap();
        let stemmer = frostem::Stemmer::new(algorithm);
        for word in units.iter_mut().filter(|word| word.len() <= 256) {
            *word = stemmer.stem(word).into_owned();
        }
        units.retain(|word| !word.is_empty());
    }
    units
}

/// The words of a list, by the steps of a text. Each is made once: that takes longer than most texts do.
fn stop_word_list(language: Language, alone: Text) -> Arc<BTreeSet<String>> {
    type Lists = Vec<((Language, Text), Arc<BTreeSet<String>>)>;
    static LISTS: Mutex<Lists> = Mutex::new(Vec::new());
    let mut lists = LISTS.lock().unwrap();
    if let Some((_, list)) = lists.iter().find(|(of, _)| *of == (language, alone)) {
        return Arc::clone(list);
    }
    let entries = stop_words::lookup(language.code()).unwrap();
    let words = entries.iter().flat_map(|entry| naive_steps(alone, entry));
    let list = Arc::new(words.collect());
    lists.push(((language, alone), Arc::clone(&list)));
    list
}

#[test]
fn stop_words_are_those_of_the_package() {
    for language in Language::ALL {
        let mut expected = stop_words::lookup(language.code()).unwrap().to_vec();
        expected.sort_unstable();
        expected.dedup();
        let found = crate::text::language_data::stop_words(language);
        assert_eq!(found, expected, "{language}");
    }
}

pub(super) fn without_accents(c: char) -> Vec<char> {
    let blocks = [
        (0x300, 0x36f),
        (0x1ab0, 0x1aff),
        (0x1dc0, 0x1dff),
        (0x20d0, 0x20ff),
        (0xfe20, 0xfe2f),
    ];
    let is_accent = |c: &char| {
        blocks
            .iter()
            .any(|&(first, last)| (first..=last).contains(&u32::from(*c)))
    };
    let parts: Vec<char> = c.to_string().nfd().collect();
    if !is_assigned(c) || !parts.iter().any(is_accent) {
        return vec![c];
    }
    parts.into_iter().filter(|c| !is_accent(c)).collect()
}

/// Sequences that normalisation joins, splits and reorders, words of lists, and what `random_text` has.
fn random_document(random: &mut Random, length: usize) -> String {
    const PIECES: &str = concat!(
        "e\u{301}|\u{301}|\u{316}\u{301}|q\u{307}\u{323}|ﬁ|ﬃ|Å|ｶﾞ|ﾊﾟ|か\u{3099}|각|",
        "\u{1100}\u{1161}\u{11a8}|가\u{11a8}|Ⅷ|①|ﷺ|\u{1e9b}\u{323}|é|日本|\u{378}| the |",
        " Running | connections | don't | l'été | wären |\u{fb1d}|\u{e000}"
    );
    let mut document = String::new();
    while document.len() < length {
        match random.index(3) {
            0 => document.push_str(&random_text(random, 4)),
            _ => document.push_str(random.word(PIECES)),
        }
    }
    document
}

fn texts(n: u16) -> Vec<Text> {
    let words = Text::words(n);
    vec![
        words.nfkc(),
        words.strip_accents(),
        words.nfkc().strip_accents(),
        words.stop_words(Language::English),
        words.stem(Language::English),
        words
            .nfkc()
            .strip_accents()
            .stop_words(Language::French)
            .stem(Language::French),
        words.stop_words(Language::German).stem(Language::English),
        words.stop_words(Language::English).keep_case().unordered(),
        Text::characters(n).nfkc(),
        Text::characters(n).strip_accents().nfkc(),
        Text::characters(n)
            .strip_accents()
            .keep_case()
            .remove_spaces(),
        Text::code(n).nfkc().strip_accents(),
    ]
}

#[test]
fn random_texts_in_any_pieces_follow_the_defined_steps() {
    let mut random = Random(4);
    for round in 0..200 {
        let length = random.index(if round % 50 == 0 { 5_000 } else { 80 });
        let document = random_document(&mut random, length);
        for text in texts([1, 2, 5, 9][random.index(4)]) {
            let expected = naive_steps(text, &document);
            assert_eq!(shingles(text, &document), expected, "{text} {document:?}");
            let found = in_pieces(&mut random, text, &document);
            assert_eq!(found, expected, "{text} {document:?}");
        }
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct StepGolden {
    text: String,
    unit: String,
    n: u16,
    #[serde(default)]
    nfkc: bool,
    #[serde(default)]
    keep_case: bool,
    #[serde(default)]
    remove_spaces: bool,
    #[serde(default)]
    unordered: bool,
    #[serde(default)]
    strip_accents: bool,
    stop_words: Option<String>,
    stem: Option<String>,
    shingles: Vec<String>,
}

#[test]
fn golden_steps() {
    let lines = include_str!("../../../tests/data/golden_steps.jsonl").lines();
    let mut documents = 0;
    for line in lines {
        let golden: StepGolden = serde_json::from_str(line).unwrap();
        let mut text = match golden.unit.as_str() {
            "words" => Text::words(golden.n),
            "characters" => Text::characters(golden.n),
            "code" => Text::code(golden.n),
            "auto" => Text::auto().with_length(golden.n),
            other => panic!("{other}"),
        };
        text.nfkc = golden.nfkc;
        text.keeps_case = golden.keep_case;
        text.removes_spaces = golden.remove_spaces;
        text.is_unordered = golden.unordered;
        text.strip_accents = golden.strip_accents;
        if let Some(code) = golden.stop_words {
            text = text.stop_words(code.parse().unwrap());
        }
        if let Some(code) = golden.stem {
            text = text.stem(code.parse().unwrap());
        }
        assert_eq!(shingles(text, &golden.text), golden.shingles, "{line}");
        documents += 1;
    }
    assert_eq!(documents, GOLDEN_STEPS);
}

const GOLDEN_STEPS: usize = 34;

/// One in seven scalar values, all with `RESEMBLANCE_TESTS=all`, alone, and each after a letter and between marks: the data
/// of a later Unicode version must give the same.
#[test]
fn normalisation_of_every_scalar_value_is_frozen() {
    let mut hash = Xxh3Default::new();
    let mut normal = String::new();
    let mut nfkc = normal::Normaliser::new(normal::NormalForm::Compatible);
    for c in ('\0'..=char::MAX).step_by(one_in(7)) {
        normal.clear();
        for piece in [
            c.encode_utf8(&mut [0; 4]),
            "\u{323}\u{301}",
            "\n",
            "a",
            c.encode_utf8(&mut [0; 4]),
        ] {
            nfkc.push(piece, |piece| normal.push_str(piece));
        }
        nfkc.flush(&mut |piece| normal.push_str(piece));
        normal::strip_accents(c, |c| normal.push(c));
        hash.update(normal.as_bytes());
        hash.update(b"\n");
    }
    assert_eq!(hash.digest(), trials(NORMAL_OF_ONE_IN_SEVEN, NORMAL));
}

const NORMAL: u64 = 15_522_592_856_307_256_485;

const NORMAL_OF_ONE_IN_SEVEN: u64 = 13_005_848_734_466_518_395;

#[test]
fn normalisation_table_matches_unicode_17() {
    if unicode_normalization::UNICODE_VERSION == (17, 0, 0) {
        assert!(('\0'..=char::MAX).all(|c| is_assigned(c) == is_public_assigned(c)));
    } else {
        assert!(('\0'..=char::MAX).all(|c| !is_assigned(c) || is_public_assigned(c)));
    }
    for (c, expected) in [
        ('\u{377}', true),
        ('\u{378}', false),
        ('\u{e000}', false),
        ('\u{10ffff}', false),
    ] {
        assert_eq!(is_assigned(c), expected, "{c:?}");
    }
}

#[test]
fn long_combining_sequences_are_cut_independently_of_pieces() {
    let marks = format!("a{}b", "\u{301}\u{323}".repeat(3_000));
    let mut expected = String::new();
    let all: Vec<char> = marks.chars().collect();
    for sequence in all[..all.len() - 1].chunks(normal::MAX_SEQUENCE_CHARS) {
        expected.extend(String::from_iter(sequence).nfkc());
    }
    expected.push('b');
    let mut random = Random(5);
    for text in [Text::characters(256).nfkc(), Text::characters(256)] {
        let chars: Vec<char> = expected.chars().collect();
        let units = units(text, &chars);
        assert_eq!(shingles(text, &marks), shingles_of_units(text, units));
        assert_eq!(in_pieces(&mut random, text, &marks), shingles(text, &marks));
    }
}

#[test]
fn language_data_is_frozen() {
    let table: Vec<String> = Language::ALL
        .into_iter()
        .map(|language| {
            let stop_words = language_data::stop_words_checksum(language);
            let stem = language_data::stem_checksum(language);
            format!("{language:?} \"{language}\" {stop_words:#018x} {stem:#018x}")
        })
        .collect();
    let frozen: Vec<String> = Language::ALL
        .into_iter()
        .map(|language| {
            let stop_words = language.stop_words_checksum();
            let stem = language.stem_checksum();
            format!("{language:?} \"{language}\" {stop_words:#018x} {stem:#018x}")
        })
        .collect();
    assert_eq!(table, frozen, "{}", table.join("\n"));
    for language in Language::ALL {
        let text = Text::words(5).stop_words(language).stem(language);
        assert!(text.validate().is_ok());
        assert_eq!(language.code().parse::<Language>().unwrap(), language);
        assert!(frostem::Algorithm::from_name(language.code()).is_ok());
    }
}

#[test]
fn language_data_other_than_recorded_is_refused() {
    for text in [
        Text::words(5).stop_words(Language::English),
        Text::words(5).stem(Language::English),
    ] {
        let mut recorded = encoded(text);
        let checksum = if text.stem.is_some() { 22 } else { 12 };
        recorded[checksum] ^= 1;
        let refused = decode::<Text>(&recorded).unwrap().validate();
        assert!(
            matches!(&refused, Err(SketchError::SelfTest { detail }) if detail.contains("of en: found checksum")),
            "{refused:?}"
        );
    }
}

#[test]
fn long_words_are_not_stemmed() {
    let text = Text::words(1).stem(Language::English);
    for (length, expected) in [(253, 253), (254, 257)] {
        let word = format!("{}ing", "b".repeat(length - 1) + "a");
        let found = shingles(text, &word);
        assert_eq!(found[0].len(), expected, "{length}");
    }
}
