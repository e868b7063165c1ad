//! Texts and features to signatures.

use std::borrow::Cow;
use std::io::{self, Read};

use resemblance_sketch::SketchError;

use crate::format::{decode_body, encode_signature};
use crate::fuzzing::Input;
use crate::state::shape_of;
use resemblance_sketch::schema::{MinHash, Schema, SimHash};
use resemblance_sketch::sketch::{
    Permutations, Signature, Sketcher, feature_hash, values_by_every_kernel,
};
use resemblance_sketch::text::{Language, ShingleUnit, Text};

const FAMILIES: [Permutations; 5] = [
    Permutations::PairMultiply,
    Permutations::MultiplyShift,
    Permutations::Modular,
    Permutations::Tabulation,
    Permutations::Jenkins,
];

const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Reads bytes as a schema and a text. The signature must be the same however the text is cut,
/// whichever instructions compute it, and after it was stored and read.
pub fn recipe(data: &[u8]) {
    let mut input = Input::new(data);
    let text = text_recipe(&mut input);
    let seed = u64::from(input.byte()).wrapping_mul(SEED_STEP);
    let mut builder = Schema::builder().text(text).seed(seed);
    let values = input.pick(&[16, 17, 31, 64, 128, 200]);
    let family = input.pick(&FAMILIES);
    let kind = input.byte() % 6;
    let minhash = match kind {
        0 => None,
        1 => Some(MinHash::new(values).permutations(family)),
        2 => Some(MinHash::one_pass(values)),
        3 => Some(MinHash::bottom_k(values.max(64))),
        4 => Some(MinHash::weighted(values)),
        _ => Some(MinHash::probability(values)),
    };
    let bits = input.pick(&[32, 32, 16, 8, 4, 2, 1]);
    if let Some(minhash) = minhash {
        let bits = if kind == 3 { 32 } else { bits };
        builder = builder.minhash(minhash.value_bits(bits));
    }
    let simhash = input.byte() % 3;
    if simhash > 0 || minhash.is_none() {
        let wide = simhash == 2;
        let simhash = match wide {
            true => SimHash::bits128(),
            false => SimHash::bits64(),
        };
        builder = builder.simhash(simhash);
    }
    let schema = match builder.build() {
        Ok(schema) => schema,
        Err(SketchError::InvalidParameter { .. } | SketchError::MissingFeature { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    let sketcher = schema.sketcher();
    let sizes = [input.byte(), input.byte(), input.byte()].map(|size| usize::from(size) + 1);
    let text = whole_text(&sketcher, input.rest, sizes);
    let shingles = shingles(&schema, &text);
    let signature = sketcher.text(&text).unwrap();
    pieces(&sketcher, &text, sizes, &signature);
    assert_eq!(sketcher.features(&shingles).unwrap(), signature);
    assert_eq!(signature.is_empty(), shingles.is_empty());
    let hashes: Vec<u64> = shingles
        .iter()
        .map(|s| feature_hash(s.as_bytes()))
        .collect();
    if kind == 1 {
        let found = values_by_every_kernel(seed, values, family, &hashes);
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{family}");
        let whole = Signature::from_minhash(found[0].clone());
        let made = match signature.value_bits() {
            Some(bits @ ..32) => whole.cut(bits).unwrap(),
            _ => whole,
        };
        assert_eq!(made.minhash(), signature.minhash());
    }
    stored(&schema, &sketcher, &signature);
    combined(&sketcher, &hashes, &signature);
    weighted(&schema, &sketcher, input.rest);
}

fn text_recipe(input: &mut Input<'_>) -> Text {
    let length = match input.byte() {
        255 => 256,
        n => u16::from(n) % 13,
    };
    let mut text = match input.byte() % 4 {
        0 => Text::words(length),
        3 => Text::auto().with_length(length),
        1 => Text::characters(length),
        _ => Text::code(length),
    };
    let steps = input.byte();
    let language = input.pick(&Language::ALL);
    if steps & 1 != 0 {
        text = text.nfkc();
    }
    if steps & 2 != 0 {
        text = text.strip_accents();
    }
    if steps & 4 != 0 {
        text = text.stop_words(language);
    }
    if steps & 8 != 0 {
        text = text.stem(language);
    }
    if steps & 16 != 0 {
        text = text.keep_case();
    }
    if steps & 32 != 0 {
        text = text.remove_spaces();
    }
    if steps & 64 != 0 {
        text = text.unordered();
    }
    text
}

/// Returns the bytes as a text. If they are not valid, the sketcher must report the place of the
/// first invalid byte, which is then replaced.
fn whole_text<'t>(sketcher: &Sketcher, bytes: &'t [u8], sizes: [usize; 3]) -> Cow<'t, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(wrong) => {
            let found = sketcher.text_reader(Pieces { bytes, sizes });
            let Err(SketchError::NotUtf8 { offset_bytes }) = found else {
                panic!("{found:?}, expected {wrong}");
            };
            assert_eq!(offset_bytes, wrong.valid_up_to() as u64);
            String::from_utf8_lossy(bytes)
        }
    }
}

/// Hands out a few bytes at a time.
struct Pieces<'b> {
    bytes: &'b [u8],
    sizes: [usize; 3],
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.sizes.rotate_left(1);
        let count = self.sizes[0].min(buffer.len()).min(self.bytes.len());
        let (taken, rest) = self.bytes.split_at(count);
        buffer[..count].copy_from_slice(taken);
        self.bytes = rest;
        Ok(count)
    }
}

fn shingles(schema: &Schema, text: &str) -> Vec<String> {
    let recipe = schema.text().unwrap();
    let mut shingles = Vec::new();
    recipe.for_each_shingle(text, |shingle| shingles.push(shingle.to_owned()));
    let has_steps = recipe.is_nfkc()
        || recipe.is_accent_stripped()
        || recipe.stop_words_language().is_some()
        || recipe.stem_language().is_some();
    if text.is_ascii() && !has_steps {
        let expected = ascii_shingles(recipe, text);
        assert!(shingles == expected, "{shingles:?}, expected {expected:?}");
    }
    shingles
}

/// The definition of shingles, where letters are plain.
fn ascii_shingles(recipe: Text, text: &str) -> Vec<String> {
    let folded = |part: &str| match recipe.is_case_kept() {
        true => part.to_owned(),
        false => part.to_ascii_lowercase(),
    };
    let (units, between): (Vec<String>, &str) = match recipe.unit() {
        ShingleUnit::Words | ShingleUnit::Auto => {
            let words = text.split(|c: char| !c.is_ascii_alphanumeric());
            let words = words.filter(|word| !word.is_empty());
            (words.map(folded).collect(), " ")
        }
        ShingleUnit::Characters => {
            let parts = text.split(char::is_whitespace);
            let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
            let space = if recipe.is_without_spaces() { "" } else { " " };
            let characters = folded(&parts.join(space));
            (characters.chars().map(String::from).collect(), "")
        }
        ShingleUnit::CodeTokens => (code_tokens(text), " "),
        other => panic!("{other:?} has no definition here"),
    };
    let length = usize::from(recipe.length());
    let joined = |shingle: &[String]| {
        let mut sorted = shingle.to_vec();
        if recipe.is_unordered() {
            sorted.sort_unstable();
        }
        sorted.join(between)
    };
    match units.len() {
        0 => Vec::new(),
        n if n <= length => vec![joined(&units)],
        _ => units.windows(length).map(joined).collect(),
    }
}

fn code_tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut in_name = false;
    for letter in text.chars() {
        let is_name = letter.is_ascii_alphanumeric() || letter == '_';
        match tokens.last_mut() {
            Some(token) if is_name && in_name => token.push(letter),
            _ if letter.is_whitespace() => {}
            _ => tokens.push(letter.into()),
        }
        in_name = is_name;
    }
    tokens
}

/// Cut anywhere between letters, and read by any number of bytes.
fn pieces(sketcher: &Sketcher, text: &str, mut sizes: [usize; 3], expected: &Signature) {
    let read = sketcher.text_reader(Pieces {
        bytes: text.as_bytes(),
        sizes,
    });
    assert_eq!(read.unwrap(), *expected);
    let mut streamed = sketcher.streamed_text().unwrap();
    let mut rest = text;
    while !rest.is_empty() {
        sizes.rotate_left(1);
        let cut = rest.ceil_char_boundary(sizes[0]);
        let (piece, after) = rest.split_at(cut);
        streamed.push(piece);
        streamed.push("");
        rest = after;
    }
    assert_eq!(streamed.finish(), *expected);
}

/// Written as a row and read again it is as it was, and has the same codes.
fn stored(schema: &Schema, sketcher: &Sketcher, signature: &Signature) {
    let shape = shape_of(schema);
    let row = encode_signature(signature, &shape).unwrap();
    let (_, read) = decode_body(&row, &shape, sketcher.recipe_mark()).unwrap();
    assert_eq!(read, *signature);
    assert_eq!(read.rows(shape.values), signature.rows(shape.values));
}

/// Features in another order and more than once are the same set; the union of two parts has the
/// signature of the whole.
fn combined(sketcher: &Sketcher, hashes: &[u64], signature: &Signature) {
    let backwards = sketcher.hashes(hashes.iter().rev().copied()).unwrap();
    assert_eq!(backwards, *signature);
    if let Ok(merged) = signature.merge(signature) {
        assert_eq!(merged, *signature);
        let twice = hashes.iter().chain(hashes).copied();
        assert_eq!(sketcher.hashes(twice).unwrap(), *signature);
        let (a, b) = hashes.split_at(hashes.len() / 3);
        let [a, b] = [a, b].map(|part| sketcher.hashes(part.iter().copied()).unwrap());
        assert_eq!(a.merge(&b).unwrap(), *signature);
    }
    if signature.value_bits().is_some() {
        assert_eq!(signature.jaccard(signature).unwrap(), 1.0);
    }
}

/// Weights of any bits are refused or taken, in any order.
fn weighted(schema: &Schema, sketcher: &Sketcher, bytes: &[u8]) {
    let chunks = bytes.as_chunks::<8>().0.iter().take(16);
    let features: Vec<(u64, f64)> = chunks
        .enumerate()
        .map(|(place, bytes)| {
            let weight = f64::from_le_bytes(*bytes);
            // Few random weights are in range: some are brought there.
            let weight = if place % 4 == 0 {
                weight
            } else {
                weight.abs() % 70_000.0
            };
            (place as u64 / 2, weight)
        })
        .collect();
    let made = sketcher.weighted_hashes(features.iter().copied());
    let backwards = sketcher.weighted_hashes(features.iter().rev().copied());
    // Fingerprints alone have weights of any sign.
    let least = match schema.minhash() {
        Some(_) => 0.0,
        None => -65_536.0,
    };
    let is_valid = |weight: f64| (least..=65_536.0).contains(&weight);
    match (made, backwards) {
        (Ok(made), Ok(backwards)) => {
            assert!(features.iter().all(|(_, weight)| is_valid(*weight)));
            assert_eq!(made, backwards);
        }
        (Err(SketchError::InvalidParameter { .. }), Err(SketchError::InvalidParameter { .. })) => {
            assert!(!features.iter().all(|(_, weight)| is_valid(*weight)));
        }
        other => panic!("{other:?}"),
    }
}
