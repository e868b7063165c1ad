//! Finds the options that made two schemas different.

use std::fmt::Debug;

use resemblance::{Schema, Text};

use resemblance_corpus::HtmlExtractor;

/// The options of which two schemas have other values, given or not.
pub(crate) fn differing_options(one: &Schema, other: &Schema) -> Vec<&'static str> {
    let pairs = parts(one).into_iter().zip(parts(other));
    let differing = pairs.filter(|((_, one), (_, other))| one != other);
    differing.map(|((name, _), _)| name).collect()
}

/// Describes what each option decides, in the order of the help.
fn parts(schema: &Schema) -> Vec<(&'static str, String)> {
    let text = schema.text();
    let step = |step: fn(&Text) -> bool| written(text.as_ref().is_some_and(step));
    let html = HtmlExtractor::of(schema);
    let minhash = schema.minhash();
    let simhash = schema.simhash();
    let language = |language: fn(&Text) -> Option<resemblance::schema::Language>| {
        written(text.as_ref().and_then(language))
    };
    vec![
        ("--features", written(text.is_some())),
        ("--html", written(html)),
        (
            "--words, --chars or --code",
            written(text.as_ref().map(|text| (text.unit(), text.length()))),
        ),
        ("--nfkc", step(Text::is_nfkc)),
        ("--keep-case", step(Text::is_case_kept)),
        ("--remove-spaces", step(Text::is_without_spaces)),
        ("--unordered", step(Text::is_unordered)),
        ("--strip-accents", step(Text::is_accent_stripped)),
        ("--stop-words", language(Text::stop_words_language)),
        ("--stem", language(Text::stem_language)),
        ("--minhash", written(minhash.map(|m| m.values()))),
        (
            "--minhash-kind or --permutations",
            written(minhash.map(|m| m.kind())),
        ),
        ("--value-bits", written(minhash.map(|m| m.value_bits()))),
        ("--threshold", written(minhash.map(|m| m.threshold()))),
        (
            "--recall or --bands and --rows",
            written(minhash.map(|m| (m.bands(), m.rows(), m.code_bits()))),
        ),
        (
            "--simhash or --fingerprints",
            written(simhash.map(|s| (s.bits(), schema.has_external_fingerprints()))),
        ),
        ("--distance", written(simhash.map(|s| s.max_distance()))),
        ("--tables", written(simhash)),
        ("--containment", written(schema.containment())),
        ("--expected", written(schema.expected_documents())),
        // With HTML it is not a separate option.
        ("--seed", written(html.is_none().then(|| schema.seed()))),
        ("--near", written(schema.near())),
        ("--empty", written(schema.empty_documents())),
    ]
}

fn written(part: impl Debug) -> String {
    format!("{part:?}")
}
