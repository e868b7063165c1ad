//! Prints `src/text/data/unicode_17.rs` from the standard library's Unicode data.
//!
//! ```text
//! cargo run --example generate_unicode_tables > src/text/data/unicode_17.rs
//! ```
//!
//! The tables are checked in because what is hashed must not change with the compiler. A compiler
//! with another Unicode version is refused: its tables would be another format.

use std::fmt::Write as _;

/// The only Unicode version whose tables the format knows.
const WANTED: (u8, u8, u8) = (17, 0, 0);

/// The most columns a line of the printed file has.
const COLUMNS: usize = 100;

fn main() -> Result<(), String> {
    if char::UNICODE_VERSION != WANTED {
        return Err(format!(
            "this compiler has Unicode {:?}, not {WANTED:?}",
            char::UNICODE_VERSION
        ));
    }
    print!("{}", render());
    Ok(())
}

/// The whole file.
pub(crate) fn render() -> String {
    let (mappings, long) = lower_case();
    let mut file = String::from(
        "//! Unicode 17.0 tables, printed by `examples/generate_unicode_tables.rs`. Frozen: never edit.\n",
    );
    let range = |&(first, last): &(u32, u32)| format!("({first:#x}, {last:#x})");
    table(
        &mut file,
        "Inclusive ranges of the alphanumeric scalar values (Alphabetic, or category Nd, Nl or No).",
        ("ALPHANUMERIC", "(u32, u32)"),
        &ranges(char::is_alphanumeric)
            .iter()
            .map(range)
            .collect::<Vec<_>>(),
    );
    table(
        &mut file,
        "Inclusive ranges of White_Space.",
        ("WHITE_SPACE", "(u32, u32)"),
        &ranges(char::is_whitespace)
            .iter()
            .map(range)
            .collect::<Vec<_>>(),
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
            .map(|&(from, to)| format!("({from:?}, {:?}, {:?})", to[0], to[1]))
            .collect::<Vec<_>>(),
    );
    file
}

fn table(file: &mut String, about: &str, (name, item): (&str, &str), items: &[String]) {
    let _ = write!(
        file,
        "\n/// {about}\n#[rustfmt::skip]\npub(super) static {name}: [{item}; {}] = [",
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

fn ranges(belongs: impl Fn(char) -> bool) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for c in ('\0'..=char::MAX).filter(|&c| belongs(c)) {
        let number = u32::from(c);
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}

struct Mapping {
    first: u32,
    last: u32,
    step: u32,
    added: i32,
}

/// Mappings to one scalar value as runs of equal differences, and those to two one by one.
fn lower_case() -> (Vec<Mapping>, Vec<(char, [char; 2])>) {
    let mut runs: Vec<Mapping> = Vec::new();
    let mut long = Vec::new();
    for c in '\0'..=char::MAX {
        let lower: Vec<char> = c.to_lowercase().collect();
        match *lower.as_slice() {
            [one] if one == c => {}
            [one] => extend(&mut runs, u32::from(c), u32::from(one)),
            [one, two] => long.push((c, [one, two])),
            _ => unreachable!("Unicode 17 has no longer lower-case mapping"),
        }
    }
    (runs, long)
}

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
