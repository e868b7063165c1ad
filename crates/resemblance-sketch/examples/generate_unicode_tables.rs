//! Writes the Unicode tables in `src/text/data` from the files of the Unicode Character Database in
//! `src/text/data/ucd_17`.
//!
//! ```text
//! cargo run -p resemblance-sketch --example generate_unicode_tables
//! ```
//!
//! What composes with what comes before it, it asks the crate `unicode-normalization` about the scalar
//! values that the files say are assigned.
//!
//! The tables are checked in because hashes of texts must not change with the compiler or with a
//! dependency. A test compares them with what this program generates.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, is_nfc_quick};

const ALPHABETIC: &str = include_str!("../src/text/data/ucd_17/Alphabetic.txt");
const GENERAL_CATEGORY: &str = include_str!("../src/text/data/ucd_17/General_Category.txt");
const WHITE_SPACE: &str = include_str!("../src/text/data/ucd_17/White_Space.txt");
const SIMPLE_LOWERCASE: &str = include_str!("../src/text/data/ucd_17/Simple_Lowercase_Mapping.txt");
const SPECIAL_CASING: &str = include_str!("../src/text/data/ucd_17/SpecialCasing.txt");

/// The most columns that a line of a table has.
const COLUMNS: usize = 100;

/// The first and the last code point.
type Range = (u32, u32);

fn main() -> Result<(), String> {
    let files = [
        ("unicode_17.rs", properties()?),
        ("assigned_17.rs", assigned()?),
        ("unsettled_17.rs", unsettled()?),
    ];
    for (name, contents) in files {
        let path = format!("{}/src/text/data/{name}", env!("CARGO_MANIFEST_DIR"));
        fs::write(path, contents).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

/// The whole file `unicode_17.rs`.
pub(crate) fn properties() -> Result<String, String> {
    let mut alphanumeric = ranges(ALPHABETIC, &["Alphabetic"])?;
    alphanumeric.extend(ranges(GENERAL_CATEGORY, &["Nd", "Nl", "No"])?);
    let (mappings, long) = lower_case()?;
    let mut file = file_header();
    table(
        &mut file,
        "Inclusive ranges of the alphanumeric scalar values (Alphabetic, or category Nd, Nl or No).",
        ("ALPHANUMERIC", "(u32, u32)"),
        &range_items(&joined(alphanumeric)),
    );
    table(
        &mut file,
        "Inclusive ranges of White_Space.",
        ("WHITE_SPACE", "(u32, u32)"),
        &range_items(&joined(ranges(WHITE_SPACE, &["White_Space"])?)),
    );
    table(
        &mut file,
        "Lower-case mappings to one scalar value: first, last, step, what is added.",
        ("LOWER_CASE", "(u32, u32, u32, i32)"),
        &mappings
            .iter()
            .map(|m| format!("({:#x}, {:#x}, {}, {})", m.first, m.last, m.step, m.added))
            .collect::<Vec<_>>(),
    );
    table(
        &mut file,
        "Lower-case mappings to two scalar values.",
        ("LOWER_CASE_LONG", "(char, char, char)"),
        &long
            .iter()
            .map(|[from, first, second]| format!("({from:?}, {first:?}, {second:?})"))
            .collect::<Vec<_>>(),
    );
    Ok(file)
}

/// The whole file `assigned_17.rs`.
pub(crate) fn assigned() -> Result<String, String> {
    let others = joined(ranges(GENERAL_CATEGORY, &["Cn", "Co", "Cs"])?);
    let mut file = file_header();
    table(
        &mut file,
        "Inclusive ranges of the assigned scalar values, those of private use left out.",
        ("ASSIGNED", "(u32, u32)"),
        &range_items(&gaps(&others)),
    );
    Ok(file)
}

/// The whole file `unsettled_17.rs`.
pub(crate) fn unsettled() -> Result<String, String> {
    let others = joined(ranges(GENERAL_CATEGORY, &["Cn", "Co", "Cs"])?);
    let assigned = gaps(&others).into_iter();
    let is_unsettled = |number: &u32| {
        let c = char::from_u32(*number);
        c.is_some_and(|c| {
            let is_composed = is_nfc_quick(std::iter::once(c)) == IsNormalized::Yes;
            canonical_combining_class(c) != 0 || !is_composed
        })
    };
    let numbers = assigned.flat_map(|(first, last)| (first..=last).filter(is_unsettled));
    let mut file = file_header();
    table(
        &mut file,
        "Inclusive ranges of the assigned scalar values that have a combining class other than 0 or \
         an NFC_Quick_Check other than Yes.",
        ("UNSETTLED", "(u32, u32)"),
        &range_items(&joined(numbers.map(|number| (number, number)).collect())),
    );
    Ok(file)
}

fn file_header() -> String {
    "//! Generated from `ucd_17` by `examples/generate_unicode_tables.rs`. Frozen: never edit.\n"
        .to_owned()
}

fn range_items(ranges: &[Range]) -> Vec<String> {
    let items = ranges.iter();
    items
        .map(|(first, last)| format!("({first:#x}, {last:#x})"))
        .collect()
}

fn table(file: &mut String, about: &str, (name, item): (&str, &str), items: &[String]) {
    let _ = write!(
        file,
        "\n/// {about}\n#[rustfmt::skip]\npub(crate) static {name}: [{item}; {}] = [",
        items.len()
    );
    let mut column = COLUMNS;
    for item in items {
        if column + item.len() + 2 > COLUMNS {
            file.push_str("\n   ");
            column = 3;
        }
        let _ = write!(file, " {item},");
        column += item.len() + 2;
    }
    file.push_str("\n];\n");
}

/// The fields of each line that has any: what stands between semicolons, up to a `#`.
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
            ranges.push((code_point(first)?, code_point(last)?));
        }
    }
    Ok(ranges)
}

fn code_point(digits: &str) -> Result<u32, String> {
    u32::from_str_radix(digits, 16).map_err(|error| format!("{digits:?}: {error}"))
}

fn scalar_value(number: u32) -> Result<char, String> {
    char::from_u32(number).ok_or_else(|| format!("{number:#x} is not a scalar value"))
}

/// The same code points in ascending ranges that do not touch. No two of `ranges` overlap but for
/// those of category Nl, which are Alphabetic too.
fn joined(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable();
    let mut joined: Vec<Range> = Vec::new();
    for (first, last) in ranges {
        match joined.last_mut() {
            Some((_, end)) if first <= *end + 1 => *end = last.max(*end),
            _ => joined.push((first, last)),
        }
    }
    joined
}

/// The ranges of the code points that are in none of these ascending ones.
fn gaps(ranges: &[Range]) -> Vec<Range> {
    let mut gaps = Vec::new();
    let mut next = 0;
    for &(first, last) in ranges {
        if next < first {
            gaps.push((next, first - 1));
        }
        next = last + 1;
    }
    if next <= u32::from(char::MAX) {
        gaps.push((next, u32::from(char::MAX)));
    }
    gaps
}

struct Mapping {
    first: u32,
    last: u32,
    step: u32,
    added: i32,
}

/// Mappings to one scalar value as runs of equal differences, and those to two one by one.
fn lower_case() -> Result<(Vec<Mapping>, Vec<[char; 3]>), String> {
    let mut runs: Vec<Mapping> = Vec::new();
    let mut long = Vec::new();
    for (from, to) in full_mappings()? {
        match to[..] {
            [one] if one == from => {}
            [one] => extend(&mut runs, from, one),
            [first, second] => long.push([
                scalar_value(from)?,
                scalar_value(first)?,
                scalar_value(second)?,
            ]),
            _ => return Err(format!("{from:#x} becomes {} scalar values", to.len())),
        }
    }
    Ok((runs, long))
}

/// Unconditional full mappings: those of `SpecialCasing.txt` take the place of the simple ones.
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

/// Continues the last run if `number` is one or two behind it, as the run's step is, and the
/// difference is the same. Capital letters of many scripts alternate with their small ones.
fn extend(runs: &mut Vec<Mapping>, number: u32, lower: u32) {
    let added = lower.cast_signed() - number.cast_signed();
    if let Some(run) = runs.last_mut() {
        let gap = number - run.last;
        let fits = if run.first == run.last {
            gap <= 2
        } else {
            gap == run.step
        };
        if run.added == added && fits {
            run.last = number;
            run.step = gap;
            return;
        }
    }
    runs.push(Mapping {
        first: number,
        last: number,
        step: 1,
        added,
    });
}
