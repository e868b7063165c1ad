//! Finds the options that made two schemas different.

use std::fmt::Debug;

use resemblance::schema::{MinHashSchema, VectorSchema};
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
    let vector = schema.vector();
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
        (
            "--vector, --vector-kept or --euclidean",
            written(vector.map(|v| (v.dimensions(), v.metric(), v.kept()))),
        ),
        (
            vector.map_or("--minhash", |_| "--vector-values"),
            written(minhash.map(|m| m.values())),
        ),
        (
            "--minhash-kind or --permutations",
            written(minhash.filter(|_| vector.is_none()).map(|m| m.kind())),
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
        ("--exact", written(schema.is_exact())),
        ("--exact-bits", written(schema.exact_bits())),
        ("--expected", written(schema.expected_documents())),
        // With HTML it is not a separate option.
        ("--seed", written(html.is_none().then(|| schema.seed()))),
        ("--near", written(schema.near())),
        ("--clusters", written(schema.clusters())),
        ("--empty", written(schema.empty_documents())),
    ]
}

/// Describes the part of a schema that an option decides.
pub(super) fn schema_part(schema: &Schema, option: &str) -> String {
    let vector = schema.vector();
    let minhash = schema.minhash().filter(|_| vector.is_none());
    let simhash = schema.simhash();
    let or_none = |part: Option<String>, name: &str| part.unwrap_or_else(|| format!("no {name}"));
    let of_minhash = |part: fn(MinHashSchema) -> String| or_none(minhash.map(part), "MinHash");
    match option {
        "--vector" => or_none(vector.map(described), "vectors"),
        "--vector-values" | "--vector-kept" if vector.is_none() => "no vectors".into(),
        "--vector-values" => {
            let values = schema.minhash().map(|m| format!("{} values", m.values()));
            or_none(values, "values")
        }
        "--vector-kept" => match vector.and_then(|vector| vector.kept()) {
            Some(form) => format!("vectors kept as {form}"),
            None => "no kept vectors".into(),
        },
        "--minhash" => of_minhash(|m| format!("{} MinHash values", m.values())),
        "--minhash-kind" | "--permutations" => of_minhash(|m| m.kind().to_string()),
        "--value-bits" => of_minhash(|m| format!("values of {} bits", m.value_bits())),
        "--recall" | "--bands" | "--rows" => {
            of_minhash(|m| format!("{} bands of {} rows", m.bands(), m.rows()))
        }
        "--simhash" | "--fingerprints" => {
            let bits = simhash.map(|s| format!("fingerprints of {} bits", s.bits()));
            or_none(bits, "SimHash")
        }
        "--tables" => or_none(simhash.map(|s| s.to_string()), "SimHash"),
        "--containment" => or_none(schema.containment().map(|c| c.to_string()), "containment"),
        "--exact" => "no exact sets".into(),
        "--exact-bits" => or_none(
            schema
                .exact_bits()
                .map(|bits| format!("exact sets of {bits} bits")),
            "exact sets",
        ),
        "--expected" => format!("{} expected documents", schema.expected_documents()),
        "--seed" => format!("seed {}", schema.seed()),
        "--tf-idf" => "no document frequencies".into(),
        "--near" => format!("the rule {:?}", schema.near()).to_lowercase(),
        "--empty" => format!("empty documents {:?}", schema.empty_documents()).to_lowercase(),
        _ => match schema.text() {
            None if vector.is_some() => "vectors without texts".into(),
            Some(text) => format!("texts of {text}"),
            None => "documents that are not texts".into(),
        },
    }
}

fn described(vector: VectorSchema) -> String {
    format!("vectors of {} dimensions", vector.dimensions())
}

fn written(part: impl Debug) -> String {
    format!("{part:?}")
}
