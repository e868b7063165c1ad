//! Prints `src/text/data/assigned_17.rs` from the data of the crate `unicode-normalization`.
//!
//! ```text
//! cargo run --features languages --example generate_assigned_table > src/text/data/assigned_17.rs
//! ```
//!
//! What is assigned in a version of Unicode is normalised in the same way by all later ones; the
//! table says where that promise holds. A crate with another Unicode version is refused, as for
//! `generate_unicode_tables.rs`: ask for its release 0.1.25.

use std::fmt::Write as _;

use unicode_normalization::UNICODE_VERSION;
use unicode_normalization::char::is_public_assigned;

/// The only Unicode version whose tables the format knows.
const WANTED: (u8, u8, u8) = (17, 0, 0);

/// The most columns a line of the printed file has.
const COLUMNS: usize = 100;

fn main() -> Result<(), String> {
    if UNICODE_VERSION != WANTED {
        return Err(format!("found Unicode {UNICODE_VERSION:?}, not {WANTED:?}"));
    }
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for c in ('\0'..=char::MAX).filter(|&c| is_public_assigned(c)) {
        let number = u32::from(c);
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    print!("{}", render(&ranges));
    Ok(())
}

/// The whole file.
fn render(ranges: &[(u32, u32)]) -> String {
    let mut file = format!(
        "//! Unicode 17.0 table, printed by `examples/generate_assigned_table.rs`. Frozen: never edit.\n\n\
         /// Inclusive ranges of the assigned scalar values, those of private use left out.\n\
         #[rustfmt::skip]\npub(super) static ASSIGNED: [(u32, u32); {}] = [",
        ranges.len()
    );
    let mut column = COLUMNS;
    for &(first, last) in ranges {
        let item = format!("({first:#x}, {last:#x})");
        if column + item.len() + 2 > COLUMNS {
            file.push_str("\n   ");
            column = 3;
        }
        let _ = write!(file, " {item},");
        column += item.len() + 2;
    }
    file.push_str("\n];\n");
    file
}
