//! The frozen data of Unicode 17.0.0. `ucd_17/` has the Unicode Consortium's files, cut to the
//! properties that texts are read with; `examples/generate_unicode_tables.rs` generates the tables
//! here from them. Never edit these. Only `text` imports this, and it imports nothing.

/// Inclusive ranges of the alphanumeric scalar values (Alphabetic, or category Nd, Nl or No).
pub(crate) static ALPHANUMERIC: [[u32; 2]; 844] = rows(include_str!("alphanumeric_17.txt"));

/// Inclusive ranges of the assigned scalar values, those of private use left out.
pub(crate) static ASSIGNED: [[u32; 2]; 733] = rows(include_str!("assigned_17.txt"));

/// Inclusive ranges of the assigned scalar values that have a combining class other than 0 or an
/// NFC_Quick_Check other than Yes.
pub(crate) static UNSETTLED: [[u32; 2]; 295] = rows(include_str!("unsettled_17.txt"));

/// Inclusive ranges of White_Space.
pub(crate) static WHITE_SPACE: [[u32; 2]; 10] = rows(include_str!("white_space_17.txt"));

/// Lower-case mappings: first, last, step, the mapping of the first, and the second scalar value of
/// a mapping to two, else 0.
pub(crate) static LOWER_CASE: [[u32; 5]; 186] = rows(include_str!("lower_case_17.txt"));

/// Reads a table of hexadecimal numbers, a row in each line. Evaluated by the compiler, which refuses a
/// table of another size.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn rows<const COLUMNS: usize, const ROWS: usize>(table: &str) -> [[u32; COLUMNS]; ROWS] {
    let mut rows = [[0; COLUMNS]; ROWS];
    let (mut at, mut place) = (0, 0);
    while at < table.len() {
        match table.as_bytes()[at] {
            b' ' | b'\n' => place += 1,
            digit => {
                let number = &mut rows[place / COLUMNS][place % COLUMNS];
                let ten = if digit > b'9' { b'a' - 10 } else { b'0' };
                *number = *number << 4 | (digit - ten) as u32;
            }
        }
        at += 1;
    }
    assert!(place == COLUMNS * ROWS);
    rows
}
