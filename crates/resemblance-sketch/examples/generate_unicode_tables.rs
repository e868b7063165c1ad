//! Writes the Unicode tables in `src/text/data` from the files of the Unicode Character Database in
//! `src/text/data/ucd_17`.
//!
//! ```text
//! cargo run -p resemblance-sketch --example generate_unicode_tables
//! ```
//!
//! The database does not say which scalar values compose with what comes before them. For every
//! scalar value that the files assign, the program asks the crate `unicode-normalization` instead.
//!
//! The tables are checked in because hashes of texts must not change with the compiler or with a
//! dependency. A test compares them with what this program generates.

use std::collections::BTreeMap;
use std::fs;

use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, is_nfc_quick};

const ALPHABETIC: &str = include_str!("../src/text/data/ucd_17/Alphabetic.txt");
const GENERAL_CATEGORY: &str = include_str!("../src/text/data/ucd_17/General_Category.txt");
const WHITE_SPACE: &str = include_str!("../src/text/data/ucd_17/White_Space.txt");
const SIMPLE_LOWERCASE: &str = include_str!("../src/text/data/ucd_17/Simple_Lowercase_Mapping.txt");
const SPECIAL_CASING: &str = include_str!("../src/text/data/ucd_17/SpecialCasing.txt");

/// The first and the last code point.
type Range = [u32; 2];

fn main() -> Result<(), String> {
    for (name, contents) in tables()? {
        let path = format!("{}/src/text/data/{name}", env!("CARGO_MANIFEST_DIR"));
        fs::write(path, contents).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

/// The names and the contents of all tables.
pub(crate) fn tables() -> Result<[(&'static str, String); 5], String> {
    let mut alphanumeric = ranges(ALPHABETIC, &["Alphabetic"])?;
    alphanumeric.extend(ranges(GENERAL_CATEGORY, &["Nd", "Nl", "No"])?);
    let white_space = ranges(WHITE_SPACE, &["White_Space"])?;
    let others = joined(ranges(GENERAL_CATEGORY, &["Cn", "Co", "Cs"])?);
    let assigned = gaps(&others);
    let unsettled = unsettled(&assigned);
    Ok([
        ("alphanumeric_17.txt", table(joined(alphanumeric))),
        ("white_space_17.txt", table(joined(white_space))),
        ("lower_case_17.txt", table(lower_case()?)),
        ("assigned_17.txt", table(assigned)),
        ("unsettled_17.txt", table(joined(unsettled))),
    ])
}

/// Returns the assigned scalar values that may change with what comes before or after them.
fn unsettled(assigned: &[Range]) -> Vec<Range> {
    let is_unsettled = |number: &u32| {
        let c = char::from_u32(*number);
        c.is_some_and(|c| {
            let is_composed = is_nfc_quick(std::iter::once(c)) == IsNormalized::Yes;
            canonical_combining_class(c) != 0 || !is_composed
        })
    };
    let numbers = assigned.iter().flat_map(|&[first, last]| first..=last);
    let numbers = numbers.filter(is_unsettled);
    numbers.map(|number| [number, number]).collect()
}

/// Formats one line for each row.
fn table<const COLUMNS: usize>(rows: Vec<[u32; COLUMNS]>) -> String {
    let line = |row: [u32; COLUMNS]| row.map(|number| format!("{number:x}")).join(" ") + "\n";
    rows.into_iter().map(line).collect()
}

/// Returns the fields of each line that has any: the text between semicolons, up to a `#`.
fn lines(file: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = file.lines();
    let lines = lines.map(|line| line.split('#').next().unwrap_or_default());
    let lines = lines.filter(|line| !line.trim().is_empty());
    lines.map(|line| line.split(';').map(str::trim).collect())
}

/// The ranges whose property has one of these values, in the order of the file.
fn ranges(file: &'static str, values: &[&str]) -> Result<Vec<Range>, String> {
    let mut ranges = Vec::new();
    for fields in lines(file) {
        let [range, value] = fields[..] else {
            return Err(format!("{fields:?} are not a range and a value"));
        };
        if values.contains(&value) {
            let (first, last) = range.split_once("..").unwrap_or((range, range));
            ranges.push([code_point(first)?, code_point(last)?]);
        }
    }
    Ok(ranges)
}

fn code_point(digits: &str) -> Result<u32, String> {
    u32::from_str_radix(digits, 16).map_err(|error| format!("{digits:?}: {error}"))
}

/// The same code points in ascending ranges that do not touch. Ranges overlap only where a code
/// point of category Nl is Alphabetic as well.
fn joined(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable();
    let mut joined: Vec<Range> = Vec::new();
    for [first, last] in ranges {
        match joined.last_mut() {
            Some([_, end]) if first <= *end + 1 => *end = last.max(*end),
            _ => joined.push([first, last]),
        }
    }
    joined
}

/// The ranges of the code points that are in none of these ascending ones.
fn gaps(ranges: &[Range]) -> Vec<Range> {
    let mut gaps = Vec::new();
    let mut next = 0;
    for &[first, last] in ranges {
        if next < first {
            gaps.push([next, first - 1]);
        }
        next = last + 1;
    }
    if next <= u32::from(char::MAX) {
        gaps.push([next, u32::from(char::MAX)]);
    }
    gaps
}

/// Lower-case mappings: first and last code point, step, the mapping of the first, and the second
/// scalar value where the mapping has two (else 0).
type Mapping = [u32; 5];

/// Returns mappings to one scalar value as runs of equal differences, and each mapping to two
/// scalar values by itself.
fn lower_case() -> Result<Vec<Mapping>, String> {
    let mut runs = Vec::new();
    for (from, to) in full_mappings()? {
        match to[..] {
            [one] if one == from => {}
            [one] => extend(&mut runs, from, one),
            [first, second] => runs.push([from, from, 1, first, second]),
            _ => return Err(format!("{from:#x} becomes {} scalar values", to.len())),
        }
    }
    Ok(runs)
}

/// Returns the unconditional full mappings. An entry of `SpecialCasing.txt` replaces the simple
/// mapping.
fn full_mappings() -> Result<BTreeMap<u32, Vec<u32>>, String> {
    let mut mappings = BTreeMap::new();
    for fields in lines(SIMPLE_LOWERCASE) {
        let [from, .., lower, _title] = fields[..] else {
            return Err(format!("{fields:?} are no line of UnicodeData.txt"));
        };
        mappings.insert(code_point(from)?, vec![code_point(lower)?]);
    }
    for fields in lines(SPECIAL_CASING) {
        // A line with a condition has one field more.
        if let [from, lower, _title, _upper, ""] = fields[..] {
            let lower = lower.split(' ').map(code_point);
            mappings.insert(code_point(from)?, lower.collect::<Result<_, _>>()?);
        }
    }
    Ok(mappings)
}

/// Extends the last run if `number` follows it at the run's step, one or two, with the same
/// difference. Otherwise begins a new run. Capital letters of many scripts alternate with their
/// small ones.
fn extend(runs: &mut Vec<Mapping>, number: u32, lower: u32) {
    if let Some([first, last, step, first_lower, 0]) = runs.last_mut() {
        let gap = number - *last;
        let fits = if first == last {
            gap <= 2
        } else {
            gap == *step
        };
        if fits && lower.wrapping_sub(number) == first_lower.wrapping_sub(*first) {
            (*last, *step) = (number, gap);
            return;
        }
    }
    runs.push([number, number, 1, lower, 0]);
}
