//! Places of shingles.

use std::ops::Range;

use super::*;

/// Sequences that are normalised by themselves, whatever stands before and after them.
const SEQUENCES: &str = concat!(
    "a|B|z|7| |\t|\n|,|_|-|\u{a0}|\u{3000}|é|e\u{301}|E\u{316}\u{301}|q\u{307}\u{323}|ﬁ|",
    "ﬃ|İ|ß|Σ|日|本|か\u{3099}|\u{1100}\u{1161}\u{11a8}|각|Ⅷ|½|ﷺ|😀|👩|\u{200d}|𐐀|\u{378}|",
    "ж\u{301}"
);

/// Words of lists, and what has no word.
const PHRASES: &str = " the | and | Running | connections | des | ... ";

fn all_recipes(n: u16) -> Vec<Text> {
    let mut texts = vec![
        Text::words(n),
        Text::words(n).keep_case(),
        Text::words(n).unordered(),
        Text::code(n),
        Text::characters(n),
        Text::characters(n).remove_spaces(),
    ];
    if cfg!(feature = "languages") {
        let words = Text::words(n).nfkc().strip_accents();
        texts.extend([
            Text::characters(n).nfkc(),
            Text::characters(n).strip_accents(),
            words,
            words.stop_words(Language::English),
            words.stem(Language::English),
            Text::words(n)
                .stop_words(Language::French)
                .stem(Language::French),
        ]);
    }
    texts
}

fn located(text: Text, document: &str) -> (Vec<String>, Vec<Range<usize>>) {
    let (mut shingles, mut places) = (Vec::new(), Vec::new());
    let outcome = text.for_each_located_shingle(document, |shingle| {
        shingles.push(String::from_utf8(shingle.utf8.to_vec()).unwrap());
        places.push(shingle.place);
    });
    outcome.unwrap();
    (shingles, places)
}

#[test]
fn located_shingles_are_the_shingles_of_the_text() {
    let mut random = Random(5);
    for round in 0..120 {
        let length = random.index(if round % 50 == 0 { 9_000 } else { 60 });
        let document = random_text(&mut random, length);
        for text in [1, 3, 9, 256].into_iter().flat_map(all_recipes) {
            let (found, places) = located(text, &document);
            assert_eq!(found, shingles(text, &document), "{text} {document:?}");
            let is_boundary = |at| document.is_char_boundary(at);
            let whole = |place: &Range<usize>| {
                is_boundary(place.start) && is_boundary(place.end) && place.start < place.end
            };
            assert!(places.iter().all(whole), "{text} {document:?} {places:?}");
            let is_ascending = places.is_sorted_by(|a, b| a.start <= b.start && a.end <= b.end);
            assert!(is_ascending, "{text} {document:?} {places:?}");
        }
    }
}

/// The places by the definition: each character that becomes of a sequence has its place.
fn naive_places(text: Text, sequences: &[&str]) -> Vec<Range<usize>> {
    let (mut chars, mut start) = (Vec::new(), 0);
    for sequence in sequences {
        let end = start + sequence.len();
        let mut normal = lower(text, &normal_form(text, sequence));
        #[cfg(feature = "languages")]
        if text.is_accent_stripped() {
            normal = normal
                .into_iter()
                .flat_map(super::steps::without_accents)
                .collect();
        }
        chars.extend(normal.drain(..).map(|c| (c, start..end)));
        start = end;
    }
    let units = naive_units(text, &chars);
    let size = usize::from(text.length).min(units.len()).max(1);
    let windows = units.windows(size);
    windows
        .map(|units| units[0].start..units[size - 1].end)
        .collect()
}

fn naive_units(text: Text, chars: &[(char, Range<usize>)]) -> Vec<Range<usize>> {
    let place = |run: &[(char, Range<usize>)]| run[0].1.start..run[run.len() - 1].1.end;
    let is_space = |c: char| unicode::is_white_space(c);
    if text.unit == ShingleUnit::Characters {
        let runs = chars.chunk_by(|a, b| is_space(a.0) && is_space(b.0));
        // Of a run of spaces the first one counts.
        let mut firsts: Vec<_> = runs.map(|run| &run[0]).collect();
        let outer =
            |first: Option<&&(char, Range<usize>)>| first.is_some_and(|(c, _)| is_space(*c));
        if outer(firsts.first()) {
            firsts.remove(0);
        }
        if outer(firsts.last()) {
            firsts.pop();
        }
        firsts.retain(|(c, _)| !(text.removes_spaces && is_space(*c)));
        return firsts.into_iter().map(|(_, place)| place.clone()).collect();
    }
    let is_code = text.unit == ShingleUnit::CodeTokens;
    let is_name = |c: char| unicode::is_alphanumeric(c) || is_code && c == '_';
    let is_alone = |c| text.unit == ShingleUnit::Auto && unicode::is_without_spaces(c);
    let runs =
        chars.chunk_by(|a, b| is_name(a.0) && is_name(b.0) && !is_alone(a.0) && !is_alone(b.0));
    let units = runs.filter(|run| is_name(run[0].0) || is_code && !is_space(run[0].0));
    let kept = units.filter(|run| is_kept(text, run.iter().map(|(c, _)| c).collect()));
    kept.map(place).collect()
}

#[cfg(feature = "languages")]
fn is_kept(text: Text, unit: String) -> bool {
    !super::steps::filtered(text, vec![unit]).is_empty()
}

#[cfg(not(feature = "languages"))]
fn is_kept(_: Text, _: String) -> bool {
    true
}

#[test]
fn located_shingles_have_the_places_of_their_units() {
    let mut random = Random(6);
    for _ in 0..200 {
        let count = random.index(40);
        let mut sequences: Vec<&str> = Vec::new();
        for _ in 0..count {
            match random.index(6) {
                0 => {
                    let phrase = random.word(PHRASES);
                    sequences.extend(phrase.split("").filter(|c| !c.is_empty()));
                }
                _ => sequences.push(random.word(SEQUENCES)),
            }
        }
        let document = sequences.concat();
        for text in [1, 2, 5].into_iter().flat_map(all_recipes) {
            let (_, found) = located(text, &document);
            assert_eq!(found, naive_places(text, &sequences), "{text} {document:?}");
        }
    }
}
