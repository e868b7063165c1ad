//! Frozen Unicode data. The answers of `std` change with the compiler; these do not.

use super::data::{ALPHANUMERIC, LOWER_CASE, UNSETTLED, WHITE_SPACE};

/// The version of the Unicode data for texts. It is part of a store's recipe.
///
/// ```
/// let (major, minor, update) = resemblance_sketch::UNICODE_VERSION;
/// println!("texts are read by Unicode {major}.{minor}.{update}");
/// # assert!(major > 16);
/// ```
pub const UNICODE_VERSION: UnicodeVersion = (17, 0, 0);

/// A version of Unicode: major, minor, update.
pub type UnicodeVersion = (u8, u8, u8);

/// One bit for each scalar value of the basic plane, which contains nearly all characters of texts.
/// Others are searched for in the ranges.
pub(super) type BasicPlane = [u64; 1024];

static PLANE_ALPHANUMERIC: BasicPlane = plane(&ALPHANUMERIC);
static PLANE_WHITE_SPACE: BasicPlane = plane(&WHITE_SPACE);
static PLANE_CASED: BasicPlane = plane(&LOWER_CASE);

static PLANE_UNSETTLED: BasicPlane = plane(&UNSETTLED);
static PLANE_PLAIN: BasicPlane = plain();

/// The letters and digits that no step except stripping accents changes.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn plain() -> BasicPlane {
    let (mut plain, unsettled) = (plane(&ALPHANUMERIC), plane(&UNSETTLED));
    let mut at = 0;
    while at < plain.len() {
        plain[at] &= !unsettled[at];
        at += 1;
    }
    let mut mapping = 0;
    while mapping < LOWER_CASE.len() {
        let [mut number, last, step, ..] = LOWER_CASE[mapping];
        while number <= last && number < 0x1_0000 {
            plain[(number >> 6) as usize] &= !(1 << (number & 63));
            number += step;
        }
        mapping += 1;
    }
    plain
}

/// Returns the plane of ranges, which are the first two columns of a table. A mapping of every
/// second scalar value sets its whole range: the plane only excludes characters, and a search
/// decides.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn plane<const COLUMNS: usize>(table: &[[u32; COLUMNS]]) -> BasicPlane {
    let mut plane = [0; 1024];
    let mut at = 0;
    while at < table.len() {
        let (mut number, last) = (table[at][0], table[at][1]);
        while number <= last && number < 0x1_0000 {
            plane[(number >> 6) as usize] |= 1 << (number & 63);
            number += 1;
        }
        at += 1;
    }
    plane
}

/// Returns whether the bit of `c` is set, or `None` beyond the basic plane.
#[inline]
pub(super) fn in_plane(plane: &BasicPlane, c: char) -> Option<bool> {
    let number = u32::from(c);
    let word = plane.get((number >> 6) as usize)?;
    Some(word >> (number & 63) & 1 == 1)
}

/// The same as `char::is_alphanumeric` of Unicode 17.0.
#[inline]
pub(super) fn is_alphanumeric(c: char) -> bool {
    in_plane(&PLANE_ALPHANUMERIC, c).unwrap_or_else(|| is_in(&ALPHANUMERIC, c))
}

/// Returns true only if `c` is alphanumeric, is its own lower case, and is [settled](is_settled).
#[inline]
pub(super) fn is_plain(c: char) -> bool {
    in_plane(&PLANE_PLAIN, c) == Some(true)
}

/// Returns true if no character before `c` composes with it or changes places with it: its
/// combining class is 0 and its NFC_Quick_Check is Yes, or it is not assigned.
#[inline]
pub(super) fn is_settled(c: char) -> bool {
    !in_plane(&PLANE_UNSETTLED, c).unwrap_or_else(|| is_in(&UNSETTLED, c))
}

/// The blocks of the scripts that are written without spaces between words, with their digits and
/// marks. Frozen.
#[rustfmt::skip]
const WITHOUT_SPACES: [[u32; 2]; 18] = [
    // Thai and Lao, Myanmar, Khmer, Tai Le and New Tai Lue, Tai Tham.
    [0x0e00, 0x0eff], [0x1000, 0x109f], [0x1780, 0x17ff], [0x1950, 0x19df], [0x1a20, 0x1aaf],
    // Radicals of Han to Bopomofo, its extension, extended Katakana.
    [0x2e80, 0x312f], [0x31a0, 0x31bf], [0x31f0, 0x31ff],
    // Han, and Yi after it; more of Myanmar, and Tai Viet after it.
    [0x3400, 0x4dbf], [0x4e00, 0xa4cf], [0xa9e0, 0xa9ff], [0xaa60, 0xaadf],
    // Compatible Han, half-width Katakana, more of Myanmar.
    [0xf900, 0xfaff], [0xff66, 0xff9f], [0x1_16d0, 0x1_16ff],
    // Tangut and Khitan, Kana and Nushu, and the planes of Han.
    [0x1_6fe0, 0x1_8dff], [0x1_aff0, 0x1_b2ff], [0x2_0000, 0x3_ffff],
];

/// Returns true if `c`, which must be alphanumeric, is of a script that is written without spaces
/// between words.
#[inline]
pub(super) fn is_without_spaces(c: char) -> bool {
    c >= '\u{e00}' && is_in(&WITHOUT_SPACES, c)
}

/// Returns whether one of the ranges, inclusive and ascending, contains `c`.
pub(super) fn is_in(ranges: &[[u32; 2]], c: char) -> bool {
    let number = u32::from(c);
    let at = ranges.partition_point(|&[_, last]| last < number);
    ranges.get(at).is_some_and(|&[first, _]| first <= number)
}

/// The same as `char::is_whitespace` of Unicode 17.0. All white space is in the basic plane.
#[inline]
pub(super) fn is_white_space(c: char) -> bool {
    in_plane(&PLANE_WHITE_SPACE, c).unwrap_or(false)
}

/// The same as `char::to_lowercase` of Unicode 17.0: one scalar value, or two.
#[inline]
pub(super) fn lower_case(c: char) -> (char, Option<char>) {
    if c.is_ascii() {
        return (c.to_ascii_lowercase(), None);
    }
    if in_plane(&PLANE_CASED, c) == Some(false) {
        return (c, None);
    }
    search_lower_case(c)
}

fn search_lower_case(c: char) -> (char, Option<char>) {
    let number = u32::from(c);
    let at = LOWER_CASE.partition_point(|&[_, last, ..]| last < number);
    let lower = LOWER_CASE
        .get(at)
        .and_then(|&[first, _, step, lower, second]| {
            let steps = number.checked_sub(first)?;
            let lower = char::from_u32(lower + steps).filter(|_| steps % step == 0)?;
            Some((lower, char::from_u32(second).filter(|_| second > 0)))
        });
    lower.unwrap_or((c, None))
}

#[cfg(test)]
#[expect(dead_code, reason = "its main writes what a test compares")]
#[path = "../../examples/generate_unicode_tables.rs"]
mod generator;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalar_values_are_classified_as_in_the_standard_library() {
        if char::UNICODE_VERSION != UNICODE_VERSION {
            return;
        }
        for c in '\0'..=char::MAX {
            assert_eq!(is_alphanumeric(c), c.is_alphanumeric(), "{c:?}");
            assert_eq!(is_white_space(c), c.is_whitespace(), "{c:?}");
            let (first, second) = lower_case(c);
            let lower = [Some(first), second].into_iter().flatten();
            assert!(lower.eq(c.to_lowercase()), "{c:?}");
            let is_same = c.to_lowercase().eq([c]) && c.is_alphanumeric() && is_settled(c);
            assert!(!is_plain(c) || is_same, "{c:?}");
        }
    }

    /// The names of letters begin with their script.
    #[test]
    fn scripts_without_spaces_are_those_with_their_names() {
        const NAMES: [&str; 20] = [
            "CJK ",
            "HIRAGANA ",
            "KATAKANA",
            "HALFWIDTH KATAKANA",
            "HENTAIGANA ",
            "BOPOMOFO ",
            "YI ",
            "TANGUT ",
            "KHITAN ",
            "NUSHU ",
            "THAI ",
            "LAO ",
            "KHMER ",
            "MYANMAR ",
            "TAI LE ",
            "NEW TAI LUE ",
            "TAI THAM ",
            "TAI VIET ",
            "IDEOGRAPHIC ",
            "HANGZHOU ",
        ];
        let mut letters = 0;
        let lines = include_str!("data/ucd_17/Alphabetic.txt").lines();
        for line in lines.filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let (range, rest) = line.split_once(';').unwrap();
            let name = rest.rsplit(']').next().unwrap();
            let name = name.split("       ").last().unwrap().trim();
            let (first, last) = range
                .trim()
                .split_once("..")
                .unwrap_or((range.trim(), range.trim()));
            for number in [first, last] {
                let c = char::from_u32(u32::from_str_radix(number, 16).unwrap()).unwrap();
                let is_named = NAMES.iter().any(|script| name.starts_with(script));
                // Marks and letters that several of these scripts share.
                let is_shared = [
                    "VERTICAL KANA",
                    "VERTICAL IDEOGRAPHIC",
                    "OLD CHINESE",
                    "MASU MARK",
                    "VIETNAMESE ALTERNATE",
                    "CHINESE SMALL",
                    "YANGQIN ",
                ]
                .iter()
                .any(|script| name.starts_with(script));
                assert_eq!(is_without_spaces(c), is_named || is_shared, "{line}");
                letters += u32::from(is_named);
            }
        }
        assert!(letters > 100);
    }

    #[test]
    fn unicode_tables_match_their_generator() {
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/src/text/data");
        for (name, contents) in generator::tables().unwrap() {
            let stored = std::fs::read_to_string(format!("{data}/{name}")).unwrap();
            assert!(stored == contents, "{name}");
        }
    }

    /// Must hold for every compiler. The digest of all answers was computed when they equalled
    /// those of `std`.
    #[test]
    fn unicode_classification_is_frozen() {
        let mut answers = Vec::new();
        for c in '\0'..=char::MAX {
            let (first, second) = lower_case(c);
            answers.extend_from_slice(&u32::from(first).to_le_bytes());
            answers.extend_from_slice(&second.map_or(0, u32::from).to_le_bytes());
            answers.push(u8::from(is_alphanumeric(c)) | u8::from(is_white_space(c)) << 1);
        }
        assert_eq!(
            xxhash_rust::xxh3::xxh3_64(&answers),
            4_431_147_325_844_390_014
        );
    }
}
