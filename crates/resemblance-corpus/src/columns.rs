//! The columns that a table must have.

use itertools::Itertools;

use super::bad_document::BadDocument;
use super::content::CONTENT_FIELDS;
use super::fields::{Few, FieldPath};
use super::settings::CorpusSettings;

/// Returns the bytes as UTF-8.
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, BadDocument> {
    std::str::from_utf8(bytes).map_err(|error| BadDocument::of_utf8(bytes, &error))
}

/// Returns the fields that the settings request.
pub(crate) fn paths(settings: &CorpusSettings) -> Few<&str> {
    let others = [
        settings.vectors().map(|(path, _)| path),
        settings.id.field(),
        settings.stamp_field.as_ref(),
        settings.payload_field.as_ref(),
        settings.position_field.as_ref(),
        settings.score_field.as_ref(),
    ];
    let wanted = settings.taken_texts().iter();
    let named = wanted
        .chain(others.into_iter().flatten())
        .map(FieldPath::name);
    named.chain(CONTENT_FIELDS).collect()
}

/// The maximum number of columns that a message names.
const MAX_NAMED: usize = 40;

/// Checks that a table with these columns has a text or a column that replaces it, a vector if the
/// schema has vectors, and every column that the options require. A nested column is named with dots: `meta.text`.
pub(crate) fn must_be_there(
    names: &[String],
    settings: &CorpusSettings,
) -> Result<(), BadDocument> {
    let is_there = |name: &str| names.iter().any(|known| known == name);
    let texts = settings.taken_texts();
    let has_text = texts.iter().any(|path| is_there(path.name()));
    let vector = settings.vectors().map(|(path, _)| path);
    let may_lack_texts = vector.is_some() && texts.is_empty();
    let mut others = settings.content.fields().iter();
    if !has_text && !may_lack_texts && !others.any(|name| is_there(name)) {
        return Err(match texts.first() {
            Some(first) => missing(first.name(), names, "--text-field"),
            None => BadDocument::new(format!(
                "found the columns {}, expected {}: the schema has no rule for texts",
                listed(names),
                settings.content.expected()
            ))
            .with_advice(match settings.content.takes_features {
                true => "features of a table are in a column of lists",
                false => "a column \"signature\" holds fingerprints as integers or hexadecimal digits, or lists of values",
            }),
        });
    }
    let id = settings.id.field().filter(|_| settings.id.is_required());
    let stamp = settings
        .stamp_field
        .as_ref()
        .filter(|_| settings.needs_stamp);
    let position = settings.position_field.as_ref();
    let required = [
        (vector, "--vector-field"),
        (id, "--id"),
        (stamp, "--stamp-field"),
        (position, "--position"),
    ];
    for (path, option) in required {
        if let Some(path) = path.filter(|path| !is_there(path.name())) {
            return Err(missing(path.name(), names, option));
        }
    }
    Ok(())
}

/// Checks that no column that is read has the name of another one.
pub(crate) fn must_be_unique<'a>(
    names: impl Iterator<Item = &'a str>,
    settings: &CorpusSettings,
) -> Result<(), BadDocument> {
    let wanted = paths(settings);
    let mut found: Few<&str> = Few::new();
    for name in names.filter(|name| wanted.contains(name)) {
        if found.contains(&name) {
            let bad = BadDocument::new(format!("two columns have the name {name:?}"));
            return Err(bad.with_advice("rename one of them"));
        }
        found.push(name);
    }
    Ok(())
}

/// Describes how the column names of two tables differ.
pub(crate) fn difference<'a>(
    names: impl Iterator<Item = &'a str>,
    others: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let (names, others): (Vec<&str>, Vec<&str>) = (names.collect(), others.collect());
    if names == others {
        return None;
    }
    let only = |names: &[&str], others: &[&str]| -> Vec<String> {
        let missing = names.iter().filter(|name| !others.contains(name));
        missing.map(|name| (*name).to_owned()).collect()
    };
    let (first, second) = (only(&names, &others), only(&others, &names));
    Some(match (first.is_empty(), second.is_empty()) {
        (true, true) => "different columns (the same in another order)".into(),
        (false, true) => format!("different columns (only the first has {})", listed(&first)),
        (true, false) => format!(
            "different columns (only the second has {})",
            listed(&second)
        ),
        (false, false) => {
            let (first, second) = (listed(&first), listed(&second));
            format!("different columns ({first} in the first, {second} in the second)")
        }
    })
}

fn missing(name: &str, names: &[String], option: &str) -> BadDocument {
    let bad = BadDocument::new(format!("there is no column {name:?}"));
    let names = listed(names);
    bad.with_advice(format!("its columns are {names}: name one with {option}"))
}

fn listed(names: &[String]) -> String {
    let shown = format!("{:?}", names.iter().take(MAX_NAMED).format(", "));
    match names.len().checked_sub(MAX_NAMED) {
        Some(more @ 1..) => format!("{shown}, and {more} more"),
        _ => shown,
    }
}
