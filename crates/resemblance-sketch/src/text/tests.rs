mod located;
#[cfg(feature = "languages")]
mod steps;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use flate2::read::GzDecoder;
use unicode_normalization::UnicodeNormalization;

use super::*;
use crate::error::{Result, SketchError};
use crate::sample::{Random, one_in, trials};

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

/// The definition without the steps of languages, on whole vectors.
fn naive(text: Text, document: &str) -> Vec<String> {
    let lower = lower(text, &normal_form(text, document));
    shingles_of_units(text, units(text, &lower))
}

/// Returns true if Unicode 17 assigns the character. The libraries of this test may follow a later
/// version, which assigns more.
fn is_assigned(c: char) -> bool {
    unicode::is_in(&crate::text::data::ASSIGNED, c)
}

fn normal_form(text: Text, document: &str) -> String {
    let chars: Vec<char> = document.chars().collect();
    let runs = chars.chunk_by(|&a, &b| is_assigned(a) && is_assigned(b));
    let runs = runs.map(|run| run.iter().collect::<String>());
    let normal = runs.map(|run| match run.chars().all(is_assigned) {
        true if text.nfkc => run.nfkc().collect(),
        true => run.nfc().collect(),
        false => run,
    });
    normal.collect()
}

fn lower(text: Text, document: &str) -> Vec<char> {
    if text.unit == ShingleUnit::CodeTokens || text.keeps_case {
        return document.chars().collect();
    }
    let lower = document.chars().flat_map(|c| {
        let (first, second) = unicode::lower_case(c);
        [Some(first), second].into_iter().flatten()
    });
    lower.collect()
}

fn units(text: Text, lower: &[char]) -> Vec<String> {
    let pieces = |is_between: fn(char) -> bool| -> Vec<String> {
        let pieces = lower.split(|&c| is_between(c));
        let pieces = pieces.filter(|piece| !piece.is_empty());
        pieces.map(|piece| piece.iter().collect()).collect()
    };
    match text.unit {
        ShingleUnit::Words => pieces(|c| !unicode::is_alphanumeric(c)),
        ShingleUnit::Auto => {
            let is_alone = unicode::is_without_spaces;
            let words = pieces(|c| !unicode::is_alphanumeric(c));
            let cut = words.iter().flat_map(|word| {
                let letters: Vec<char> = word.chars().collect();
                let parts = letters.chunk_by(|&a, &b| !is_alone(a) && !is_alone(b));
                parts.map(String::from_iter).collect::<Vec<_>>()
            });
            cut.collect()
        }
        ShingleUnit::Characters => {
            let joint = if text.removes_spaces { "" } else { " " };
            let text = pieces(unicode::is_white_space).join(joint);
            text.chars().map(String::from).collect()
        }
        ShingleUnit::CodeTokens => {
            let is_name = |c: char| c == '_' || unicode::is_alphanumeric(c);
            let tokens = lower.chunk_by(|&a, &b| is_name(a) && is_name(b));
            let tokens = tokens.map(|token| token.iter().collect::<String>());
            tokens
                .filter(|token| !token.chars().all(unicode::is_white_space))
                .collect()
        }
    }
}

fn shingles_of_units(text: Text, units: Vec<String>) -> Vec<String> {
    let size = usize::from(text.length);
    let joint = if text.unit == ShingleUnit::Characters {
        ""
    } else {
        " "
    };
    let windows = units.windows(size.min(units.len()).max(1));
    let shingle = |window: &[String]| {
        let mut window = window.to_vec();
        if text.is_unordered {
            window.sort_unstable();
        }
        window.join(joint)
    };
    windows.map(shingle).collect()
}

/// Returns the shingles of a document that is passed in random pieces.
fn in_pieces(random: &mut Random, text: Text, document: &str) -> Vec<String> {
    let mut shingles = Vec::new();
    let mut shingler = text.shingler().unwrap();
    let most = [1, 3, 40, 9_000][random.index(4)];
    let mut rest = document;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(random.index(most + 1)));
        shingler.push(piece, |shingle: &str| shingles.push(shingle.to_owned()));
        rest = after;
    }
    shingler.finish(|shingle: &str| shingles.push(shingle.to_owned()));
    shingles
}

/// Mostly letters and separators of several scripts, now and then any scalar value.
fn random_text(random: &mut Random, length: usize) -> String {
    let usual: Vec<char> =
        "aAbBzZ09  \t\n.,_-'éÉİıßẞΣσςЖжǅ日本語กำ่ｶﾞ\u{301}\u{307}\u{a0}\u{3000}\u{85}\u{2028}\u{200b}𐐀𐐨𝔄😀½²Ⅷ"
            .chars()
            .collect();
    (0..length)
        .filter_map(|_| match random.index(20) {
            0 => char::from_u32(random.index(0x11_0000) as u32),
            1..8 => Some(['a', 'Q', '7', ' '][random.index(4)]),
            _ => Some(usual[random.index(usual.len())]),
        })
        .collect()
}

/// Tests 30 texts, or 500 with `RESEMBLANCE_TESTS=all`.
#[test]
fn random_texts_in_any_pieces_have_the_defined_shingles() {
    let mut random = Random(1);
    for round in 0..trials(30, 500) {
        let length = random.index(if round % 50 == 0 { 12_000 } else { 60 });
        let document = random_text(&mut random, length);
        for n in [1, 2, 3, 5, 9, 256] {
            for text in [
                Text::auto().with_length(n),
                Text::auto().with_length(n).keep_case().unordered(),
                Text::words(n),
                Text::characters(n),
                Text::code(n),
                Text::words(n).keep_case(),
                Text::words(n).unordered(),
                Text::code(n).unordered(),
                Text::characters(n).keep_case(),
                Text::characters(n).remove_spaces(),
                Text::characters(n).remove_spaces().keep_case(),
            ] {
                let expected = naive(text, &document);
                assert_eq!(shingles(text, &document), expected, "{text} {document:?}");
                let found = in_pieces(&mut random, text, &document);
                assert_eq!(found, expected, "{text} {document:?}");
            }
        }
    }
}

#[test]
fn texts_of_scripts_with_spaces_are_cut_as_words() {
    let mut random = Random(8);
    for _ in 0..100 {
        let mut document = random_text(&mut random, 200);
        document.retain(|c| !unicode::is_without_spaces(c));
        for n in [1, 5] {
            let auto = shingles(Text::auto().with_length(n), &document);
            assert_eq!(auto, shingles(Text::words(n), &document), "{document:?}");
        }
    }
}

/// Runs of ASCII of every length around those of blocks, with words and gaps of every length.
#[test]
fn runs_of_ascii_have_the_shingles_of_the_definition() {
    let mut random = Random(2);
    for length in (0..600).chain([4_095, 4_096, 4_097, 20_000]) {
        let gap = 1 + random.index(9);
        let mut document: String = (0..length)
            .map(|_| match random.index(gap + 1) {
                0 => [' ', ',', '\n', '_', '\u{b}', '\u{1c}', '\0'][random.index(7)],
                _ => ['a', 'B', 'z', 'Z', '0', '9', '@', '['][random.index(8)],
            })
            .collect();
        if random.index(3) == 0 {
            document.push('é');
            document.push_str(&"xY ".repeat(random.index(9)));
        }
        for text in [
            Text::auto(),
            Text::words(1),
            Text::words(5),
            Text::characters(9),
            Text::code(2),
        ] {
            let expected = naive(text, &document);
            assert_eq!(shingles(text, &document), expected, "{text} {document:?}");
        }
    }
}

/// Words and gaps from one byte to several blocks, in ASCII and beside other characters.
#[test]
fn words_and_gaps_longer_than_blocks_have_the_defined_shingles() {
    let mut random = Random(4);
    for _ in 0..300 {
        let mut document = String::new();
        for _ in 0..random.index(30) {
            let unit = ["a", "Z", "7", " ", ",", "\n", "é", "\u{3000}"][random.index(8)];
            let most = [1, 2, 17, 66, 300][random.index(5)];
            document.push_str(&unit.repeat(1 + random.index(most)));
        }
        for text in [
            Text::auto(),
            Text::words(1),
            Text::words(3),
            Text::characters(5),
        ] {
            let expected = naive(text, &document);
            assert_eq!(shingles(text, &document), expected, "{text} {document:?}");
            let found = in_pieces(&mut random, text, &document);
            assert_eq!(found, expected, "{text} {document:?}");
        }
    }
}

/// Buffers are used again, but never while another text is in them.
#[test]
fn shingle_visitor_may_read_another_text() {
    let mut found = Vec::new();
    Text::words(2).for_each_shingle("a b c", |outer| {
        Text::words(1).for_each_shingle("x y", |inner| found.push(format!("{outer} {inner}")));
    });
    assert_eq!(found, ["a b x", "a b y", "b c x", "b c y"]);
    assert_eq!(shingles(Text::words(2), "d"), ["d"]);
}

#[test]
fn real_texts_have_the_shingles_of_the_definition() {
    let Some(root) = std::env::var_os("RESEMBLANCE_DATA") else {
        eprintln!("skipped: RESEMBLANCE_DATA is not set");
        return;
    };
    let mut random = Random(5);
    for name in ["versions", "debian-docs", "articles2500"] {
        let path = std::path::Path::new(&root).join(name).join("docs.jsonl.gz");
        let lines = BufReader::new(GzDecoder::new(File::open(path).unwrap())).lines();
        for line in lines.step_by(40) {
            let document: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            let document = document["text"].as_str().unwrap();
            for text in [Text::words(5), Text::characters(9)] {
                let expected = naive(text, document);
                assert!(shingles(text, document) == expected, "{text} {document:?}");
                let found = in_pieces(&mut random, text, document);
                assert!(found == expected, "{text} {document:?}");
            }
        }
    }
}

fn shingles_of(text: Text, reader: impl Read, mut visit: impl FnMut(&str)) -> Result<()> {
    let mut shingler = text.shingler()?;
    for_each_piece(reader, |piece| shingler.push(piece, &mut visit))?;
    shingler.finish(visit);
    Ok(())
}

#[test]
fn shingles_of_a_reader_equal_those_of_its_text() {
    let mut random = Random(3);
    let document = random_text(&mut random, 200_000);
    for text in [Text::words(5), Text::characters(9)] {
        let mut found = Vec::new();
        shingles_of(text, document.as_bytes(), |shingle| {
            found.push(shingle.to_owned())
        })
        .unwrap();
        assert_eq!(found, shingles(text, &document));
    }
    let refused = shingles_of(Text::words(5), &b"a \xff"[..], |_| {});
    assert!(matches!(
        refused,
        Err(SketchError::NotUtf8 { offset_bytes: 2 })
    ));
    let refused = shingles_of(Text::words(0), &b"a"[..], |_| {});
    assert!(matches!(refused, Err(SketchError::InvalidParameter { .. })));
}

#[test]
fn huge_word_and_largest_shingle_length_are_handled() {
    let word = "Ab".repeat(100_000);
    assert_eq!(shingles(Text::words(5), &word), [word.to_lowercase()]);
    let many = format!("{word} x ").repeat(3);
    assert_eq!(shingles(Text::words(2), &many).len(), 5);
    assert_eq!(shingles(Text::characters(256), &word).len(), 200_000 - 255);
    assert_eq!(shingles(Text::words(256), &"a ".repeat(300)).len(), 45);
}

#[test]
fn shingle_lengths_are_checked_and_printed() {
    for n in [1, 256] {
        assert!(Text::words(n).validate().is_ok() && Text::characters(n).validate().is_ok());
    }
    for n in [0, 257, u16::MAX] {
        let refused = Text::characters(n).validate();
        assert!(matches!(
            refused,
            Err(SketchError::InvalidParameter {
                parameter: "text",
                ..
            })
        ));
    }
    assert!(shingles(Text::words(0), "a b").is_empty());
    assert_eq!(Text::words(5).to_string(), "words 5");
    assert_eq!(Text::characters(9).to_string(), "characters 9");
}

#[test]
fn texts_without_steps_keep_their_encoding() {
    for (text, recorded, appended) in [
        (Text::words(5), "00000000 0500", "01 0500 110000 02"),
        (Text::characters(9), "01000000 0900", "02 0900 110000 02"),
        (Text::code(300), "02000000 2c01", "03 2c01 110000 02"),
        (Text::auto(), "04000000 0500", "00 0500 110000 02"),
    ] {
        assert_eq!(encoded(text), bytes(recorded));
        let found: Text = decode(&bytes(recorded)).unwrap();
        assert_eq!(found, text);
        let mut found = Vec::new();
        text.append_to(&mut found);
        assert_eq!(found, bytes(appended));
    }
}

#[test]
fn texts_with_steps_round_trip() {
    let all = every_step();
    let recorded = encoded(all);
    assert_eq!(recorded.len(), 4 + 1 + 2 + 3 + 2 * (2 + 8));
    let found: Text = decode(&recorded).unwrap();
    assert_eq!(found, all);
    let mut appended = Vec::new();
    all.append_to(&mut appended);
    assert_eq!(appended[0], 0xfd);
    assert_eq!(appended.len(), 1 + 2 + 3 + 1 + 2 * (2 + 8));
    for position in [4, 10, 11, 20] {
        // The kind, a language, its second letter, the other language.
        let mut damaged = recorded.clone();
        damaged[position] = 0x0f;
        assert!(decode::<Text>(&damaged).is_err(), "{position}");
    }
    assert_eq!(
        all.to_string(),
        "words 3, NFKC, with their case, without accents, without stop words of fr, stems of de, in any \
         order"
    );
    assert_eq!(all.stop_words_language(), Some(Language::French));
    assert_eq!(all.stem_language(), Some(Language::German));
    assert!(all.is_nfkc() && all.is_accent_stripped());
    assert!(all.is_case_kept() && all.is_unordered() && !all.is_without_spaces());
    let spaces = Text::characters(4).remove_spaces();
    assert_eq!(decode::<Text>(&encoded(spaces)).unwrap(), spaces);
    assert_eq!(spaces.to_string(), "characters 4, without spaces");
}

fn every_step() -> Text {
    let text = Text::words(3).stem(Language::German);
    let text = text.strip_accents().stop_words(Language::French).nfkc();
    text.keep_case().unordered()
}

#[cfg(not(feature = "languages"))]
#[test]
fn text_steps_require_their_cargo_feature() {
    for text in [
        Text::words(9).stem(Language::English),
        Text::words(5).stop_words(Language::German),
        every_step(),
    ] {
        let refused = text.validate();
        assert!(
            matches!(
                &refused,
                Err(SketchError::MissingFeature {
                    feature: "languages",
                    ..
                })
            ),
            "{refused:?}"
        );
        assert!(shingles(text, "a b c").is_empty());
    }
}

#[test]
fn text_steps_are_refused_for_unsuitable_units() {
    for text in [
        Text::code(5).keep_case(),
        Text::code(5).remove_spaces(),
        Text::words(5).remove_spaces(),
        Text::characters(5).unordered(),
    ] {
        let refused = text.validate();
        assert!(
            matches!(refused, Err(SketchError::InvalidParameter { .. })),
            "{text}"
        );
    }
}

/// Letters and their marks in one scalar value or in two, syllables and their jamo, marks in any order.
#[test]
fn composed_and_decomposed_texts_have_the_same_shingles() {
    let sentences = [
        "L\u{2019}été dernier, Noël à l\u{2019}hôtel : çà et là, où les élèves révisaient",
        "Tôi đã đọc quyển sách ấy, nhưng tôi không hiểu hết những điều tác giả viết",
        "나는 어제 그 책을 읽었지만 작가가 쓴 모든 것을 이해하지는 못했다",
        "ἐν ἀρχῇ ἦν ὁ λόγος",
        "वह क़िताब ज़रूर पढ़ना",
        "ที่นี่มีหนังสือดี",
        "q\u{323}\u{307} a\u{315}\u{300}\u{5ae}\u{62}",
        "Å \u{212b} ; \u{37e}",
    ];
    let mut random = Random(8);
    for sentence in sentences {
        let long = format!("{sentence} ").repeat(200);
        for document in [sentence, &long] {
            let decomposed: String = document.nfd().collect();
            for text in [Text::words(2), Text::characters(5), Text::code(3)] {
                let expected = shingles(text, document);
                assert_eq!(shingles(text, &decomposed), expected, "{text} {sentence}");
                let found = in_pieces(&mut random, text, &decomposed);
                assert_eq!(found, expected, "{text} {sentence}");
            }
        }
    }
}

/// One in eleven scalar values, each with `RESEMBLANCE_TESTS=all`, after a letter and before one, and after another of
/// its kind.
#[test]
fn every_scalar_value_is_composed_as_the_standard_says() {
    let text = Text::characters(256).keep_case();
    for c in ('\u{21}'..=char::MAX).step_by(one_in(11)) {
        let document = format!("x{c}y\u{327}{c}\u{e9}{c}");
        let normal = normal_form(text, &document);
        let expected = shingles_of_units(text, units(text, &lower(text, &normal)));
        assert_eq!(shingles(text, &document), expected, "{c:?}");
    }
}

#[test]
fn stop_words_and_stems_apply_to_words_only() {
    for text in [Text::characters(9), Text::code(5)] {
        for refused in [
            text.stop_words(Language::English),
            text.stem(Language::English),
        ] {
            assert!(matches!(
                refused.validate(),
                Err(SketchError::InvalidParameter { .. })
            ));
        }
    }
}

#[test]
fn data_of_another_unicode_version_are_refused() {
    let mut recorded = encoded(Text::characters(9).nfkc());
    recorded[7] = 18;
    let refused = decode::<Text>(&recorded).unwrap().validate();
    assert!(
        matches!(&refused, Err(SketchError::SelfTest { .. })),
        "{refused:?}"
    );
}

fn encoded(text: Text) -> Vec<u8> {
    bincode::serde::encode_to_vec(text, bincode::config::legacy()).unwrap()
}

fn decode<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let decoded = bincode::serde::decode_from_slice(bytes, bincode::config::legacy());
    decoded
        .map(|(text, _)| text)
        .map_err(|error| error.to_string())
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits: String = hexadecimal.split(' ').collect();
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
