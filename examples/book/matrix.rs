//! Chapter on the characteristic matrix: four short documents, permutations of their words, and the minima.

use resemblance::exact::{FeatureSet, jaccard, modular_minhash};
use resemblance::{MinHash, Signature};

use crate::parts::{Chapter, PageParts, count, number, quote};
use crate::reading::{BookTexts, SHINGLES, item, sketcher};

/// The words of a document that are compared.
const WORDS: usize = 6;
/// The factors and summands of the functions.
const FUNCTIONS: [(u64, u64); 6] = [(1, 1), (3, 1), (5, 2), (7, 4), (9, 6), (11, 3)];
const FUNCTION_NAMES: [&str; 6] = ["h₁", "h₂", "h₃", "h₄", "h₅", "h₆"];
pub(crate) const NAMES: [&str; 4] = ["A", "B", "C", "D"];
/// The values of the larger signature.
const VALUES: u16 = 1_024;

pub(crate) fn write(texts: &BookTexts, parts: &mut PageParts) -> Chapter {
    let documents = windows(texts)?;
    let mut rows: Vec<&String> = Vec::new();
    for word in documents.iter().flatten() {
        if !rows.contains(&word) {
            rows.push(word);
        }
    }
    let modulus = prime_from(rows.len().max(13) as u64);
    parts.count("window-words", WORDS as u64);
    parts.count("matrix-rows", rows.len() as u64);
    parts.count("functions", FUNCTIONS.len() as u64);
    let formulas = FUNCTIONS.iter().zip(FUNCTION_NAMES);
    let formulas = formulas.map(|((a, b), name)| {
        let (a, b) = (count("factor", *a), count("summand", *b));
        format!("{name}(x) = ({a}x + {b}) mod {}", count("modulus", modulus))
    });
    parts.html("formulas", formulas.collect::<Vec<_>>().join("; "));
    characteristic(parts, &documents, &rows, modulus)?;
    let numbers = |words: &[String]| {
        let places = words
            .iter()
            .filter_map(|word| rows.iter().position(|row| *row == word));
        places.map(|place| place as u64).collect::<Vec<u64>>()
    };
    let minima: Vec<Vec<u64>> = documents
        .iter()
        .map(|words| modular_minhash(numbers(words), &FUNCTIONS, modulus))
        .collect::<Result<_, _>>()?;
    signature_matrix(parts, &minima);
    comparison(parts, &documents, &minima)
}

/// Returns where two texts have the same shingles.
fn shared<'a>(a: &'a [String], b: &'a [String]) -> impl Iterator<Item = [usize; 2]> {
    let words: usize = SHINGLES.length().into();
    let places = move |own: &'a [String]| {
        let others = b.windows(words).enumerate();
        others.filter(move |(_, other)| own == *other)
    };
    let runs = a.windows(words).enumerate();
    runs.flat_map(move |(place, own)| places(own).map(move |(other, _)| [place, other]))
}

/// Returns a few words of each document: where the first two share a shingle and then go on differently, and where
/// the others share one with them.
pub(crate) fn windows(texts: &BookTexts) -> Result<Vec<Vec<String>>, String> {
    let window = |document: usize, start: usize| -> Result<Vec<String>, String> {
        let words = item(&texts.words, document)?;
        let start = start.min(words.len().saturating_sub(WORDS));
        Ok(words.iter().skip(start).take(WORDS).cloned().collect())
    };
    let [a, b, c, d] = texts.worked;
    let (words_a, words_b) = (item(&texts.words, a)?, item(&texts.words, b)?);
    let next =
        |words: &[String], place: usize| words.get(place + usize::from(SHINGLES.length())).cloned();
    let parts = |[own, other]: &[usize; 2]| next(words_a, *own) != next(words_b, *other);
    let fork = shared(words_a, words_b).find(parts);
    let [own, other] = fork
        .or_else(|| shared(words_a, words_b).next())
        .unwrap_or_default();
    let mut windows = vec![window(a, own)?, window(b, other)?];
    for document in [c, d] {
        let place = shared(item(&windows, 0)?, item(&texts.words, document)?).next();
        windows.push(window(document, place.map_or(0, |[_, place]| place))?);
    }
    Ok(windows)
}

fn prime_from(least: u64) -> u64 {
    let is_prime = |n: &u64| {
        (2..*n)
            .take_while(|d| d * d <= *n)
            .all(|d| !n.is_multiple_of(d))
    };
    (least..).find(is_prime).unwrap_or(least)
}

/// Writes the characteristic matrix, and where the functions put each row.
fn characteristic(
    parts: &mut PageParts,
    documents: &[Vec<String>],
    rows: &[&String],
    modulus: u64,
) -> Chapter {
    let mut table = Vec::new();
    for (row, word) in rows.iter().enumerate() {
        let mut cells = vec![quote(word), count("row", row as u64)];
        for (document, name) in documents.iter().zip(NAMES) {
            let has_it = document.contains(word);
            cells.push(count(&format!("has-{name}"), has_it.into()));
        }
        let images = modular_minhash([row as u64], &FUNCTIONS, modulus)?;
        let images = images.iter().zip(FUNCTION_NAMES);
        cells.extend(images.map(|(image, name)| count(&format!("image-{name}"), *image)));
        table.push(cells);
    }
    let mut columns = vec!["word", "x"];
    columns.extend(NAMES.iter().chain(&FUNCTION_NAMES));
    parts.table("matrix", &columns, table);
    Ok(())
}

fn signature_matrix(parts: &mut PageParts, minima: &[Vec<u64>]) {
    let rows = FUNCTION_NAMES.iter().enumerate().map(|(place, function)| {
        let values = minima.iter().filter_map(|values| values.get(place));
        let cells = values
            .zip(NAMES)
            .map(|(value, name)| count(&format!("minimum-{name}"), *value));
        [(*function).to_owned()].into_iter().chain(cells).collect()
    });
    let mut columns = vec!["function"];
    columns.extend(NAMES);
    parts.table("signatures", &columns, rows.collect());
}

/// Compares exact similarities with the share of equal minima.
fn comparison(parts: &mut PageParts, documents: &[Vec<String>], minima: &[Vec<u64>]) -> Chapter {
    let large = sketcher(MinHash::new(VALUES), 0)?;
    let sketches: Vec<Signature> = documents
        .iter()
        .map(|words| large.features(words))
        .collect::<Result<_, _>>()?;
    let sets = documents
        .iter()
        .map(|words| words.iter().cloned().collect());
    let sets: Vec<FeatureSet<String>> = sets.collect();
    let mut table = Vec::new();
    for (a, b) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
        let (name_a, name_b) = (item(&NAMES, a)?, item(&NAMES, b)?);
        let pair = format!("{name_a}{name_b}");
        let (own, other) = (item(minima, a)?, item(minima, b)?);
        let equal = own.iter().zip(other).filter(|(a, b)| a == b).count();
        let estimate = equal as f64 / FUNCTIONS.len() as f64;
        let exact = jaccard(item(&sets, a)?, item(&sets, b)?);
        let sketched = item(&sketches, a)?.jaccard(item(&sketches, b)?)?;
        table.push(vec![
            format!("{name_a}, {name_b}"),
            number(&format!("exact-{pair}"), exact, 3),
            number(&format!("estimate-{pair}"), estimate, 3),
            number(&format!("sketch-{pair}"), sketched, 3),
        ]);
    }
    parts.count("sketch-values", VALUES.into());
    let columns = ["pair", "J", "of the table", "of the library"];
    parts.table("comparison", &columns, table);
    Ok(())
}
