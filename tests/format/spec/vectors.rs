//! The test vectors of the specification: first by its own rules, then by the library, where that
//! can be asked.

use resemblance::Text;
use xxhash_rust::xxh3::xxh3_64;

use crate::spec::filters::{self, Kind};
use crate::spec::minhash::{cut, mix32, pack, unpack};
use crate::spec::recipe::{self, Shingles, Unit};
use crate::spec::{bytes, code_block, codes, hex, unhex};

/// Checks the lines `input -> output` of a code block, and prints what all outputs should be.
pub(crate) fn check(name: &str, output: impl Fn(&str) -> String) {
    let lines = code_block(name);
    assert!(!lines.is_empty());
    let expected: Vec<String> = lines
        .iter()
        .map(|line| {
            let input = line.split_once(" -> ").unwrap().0;
            format!("{input} -> {}", output(input))
        })
        .collect();
    assert_eq!(lines, expected, "{name}:\n{}", expected.join("\n"));
}

/// A string as JSON writes it.
pub(crate) fn string(text: &str) -> String {
    serde_json::from_str(text).unwrap()
}

pub(crate) fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

pub(crate) fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace().map(number).collect()
}

#[test]
fn hash_vectors_match_published_values() {
    check("crc-32", |input| {
        format!("{:08x}", crc32fast::hash(string(input).as_bytes()))
    });
    check("xxh3-64", |input| {
        format!("{:016x}", xxh3_64(string(input).as_bytes()))
    });
    check("mix64", |input| {
        format!("{:016x}", recipe::mix64(number(input)))
    });
    check("derive", |input| match numbers(input)[..] {
        [seed, index] => format!("{:016x}", recipe::derive(seed, index)),
        _ => panic!("{input}"),
    });
}

#[test]
fn head_vectors_match() {
    check("head", |input| {
        let (start, zeros) = input.split_once(" + ").unwrap();
        let zeros = zeros.strip_suffix(" zero bytes").unwrap();
        let head = [unhex(start), vec![0; zeros.parse().unwrap()]].concat();
        assert_eq!(head.len(), 320);
        let checksum = xxh3_64(&head).to_le_bytes();
        format!("{} {}", hex(b"RESEMBL\x1a"), hex(&checksum))
    });
}

#[test]
fn checksum_vectors_match() {
    check("checksum", |input| {
        match input.split(' ').collect::<Vec<_>>()[..] {
            [table, key, body] => {
                format!("{:08x}", bytes::checksum(table, &unhex(key), &unhex(body)))
            }
            _ => panic!("{input}"),
        }
    });
    check("dead", |input| {
        let ids = numbers(input);
        let chunk = ids[0] / 16_000;
        let mut body = vec![0; 2_001];
        body[0] = 1;
        for id in ids {
            let offset = (id - chunk * 16_000) as usize;
            body[1 + offset / 8] |= 1 << (offset % 8);
        }
        let key = chunk.to_be_bytes();
        let at = body.iter().skip(1).position(|byte| *byte != 0).unwrap();
        let crc = bytes::checksum("dead", &key, &body);
        format!(
            "chunk {chunk}, bitmap byte {at} = {:02x}, checksum {crc:08x}",
            body[1 + at]
        )
    });
}

#[test]
fn equal_note_vectors_match() {
    check("equal", |input| {
        let members = input
            .split(' ')
            .map(|member| member.split_once(':').unwrap());
        let members =
            members.map(|(id, digest)| (id.parse::<u64>().unwrap(), digest.parse().unwrap()));
        let members: Vec<(u64, u128)> = members.collect();
        let digests: std::collections::BTreeSet<u128> = members.iter().map(|(_, d)| *d).collect();
        let mut body = vec![1, digests.len() as u8, 0];
        body.extend(digests.iter().flat_map(|digest| digest.to_le_bytes()));
        let bitmap = body.len();
        body.resize(bitmap + 2_000, 0);
        let mut classes = 0u8;
        for (index, (id, digest)) in members.iter().enumerate() {
            let offset = (id % 16_000) as usize;
            body[bitmap + offset / 8] |= 1 << (offset % 8);
            // A bit distinguishes the two classes.
            let class = digests.iter().position(|other| other == digest).unwrap();
            classes |= (class as u8) << index;
        }
        body.push(classes);
        let crc = bytes::checksum("equal", &(members[0].0 / 16_000).to_be_bytes(), &body);
        format!(
            "{:02x} {}, {classes:02x}, checksum {crc:08x}",
            body[0],
            hex(&body[1..3])
        )
    });
}

/// The library's name for shingles without steps.
pub(crate) fn text_of(shingles: Shingles) -> Text {
    match shingles.unit {
        Unit::Auto => Text::auto().with_length(shingles.n),
        Unit::Words => Text::words(shingles.n),
        Unit::Characters => Text::characters(shingles.n),
        Unit::Code => Text::code(shingles.n),
    }
}

#[test]
fn shingle_vectors_match() {
    check("shingles", |input| {
        let (kind, rest) = input.split_once(' ').unwrap();
        let (length, document) = rest.split_once(' ').unwrap();
        let (document, n) = (string(document), length.parse().unwrap());
        let own = Shingles::new(Unit::named(kind), n);
        let text = text_of(own);
        let mut found = Vec::new();
        text.for_each_shingle(&document, |shingle| found.push(shingle.to_owned()));
        if char::UNICODE_VERSION == (17, 0, 0) {
            assert_eq!(own.of(&document), found, "{input}");
        }
        ascii_json(&found)
    });
}

/// The steps: what an independent program made of texts.
#[cfg(feature = "languages")]
#[test]
fn text_step_vectors_match() {
    check("steps", |input| {
        let (settings, document) = input.split_once(": ").unwrap();
        let mut settings = settings.split(", ");
        let (unit, n) = settings.next().unwrap().split_once(' ').unwrap();
        let mut text = text_of(Shingles::new(Unit::named(unit), n.parse().unwrap()));
        for step in settings {
            text = match step.rsplit_once(" of ") {
                Some(("without stop words", code)) => text.stop_words(code.parse().unwrap()),
                Some(("stems", code)) => text.stem(code.parse().unwrap()),
                None if step == "NFKC" => text.nfkc(),
                None if step == "without accents" => text.strip_accents(),
                None if step == "with their case" => text.keep_case(),
                None if step == "without spaces" => text.remove_spaces(),
                None if step == "in any order" => text.unordered(),
                _ => panic!("{step}"),
            };
        }
        let mut found = Vec::new();
        text.for_each_shingle(&string(document), |shingle| found.push(shingle.to_owned()));
        ascii_json(&found)
    });
}

/// Strings as JSON writes them, with escapes beyond ASCII.
fn ascii_json(strings: &[String]) -> String {
    let json = serde_json::to_string(strings).unwrap();
    let mut text = String::new();
    for c in json.chars() {
        if c.is_ascii() {
            text.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                text += &format!("\\u{unit:04x}");
            }
        }
    }
    text
}

/// That the library cuts and packs so is shown by the rows of stores.
#[test]
fn cut_value_vectors_match() {
    check("mix32", |input| {
        format!("{:08x}", mix32(number(input) as u32))
    });
    check("packed", |input| {
        let (bits, values) = input.split_once(": ").unwrap();
        let values = numbers(values);
        let bits = number(bits) as u8;
        let cut: Vec<u32> = values.iter().map(|v| cut(*v as u32, bits)).collect();
        let packed = pack(&cut, bits);
        assert_eq!(unpack(&packed, values.len() as u16, bits), cut);
        hex(&packed)
    });
}

/// That the library codes so is shown by the blocks of the stores.
#[test]
fn code_vectors_match() {
    check("key", |input| {
        format!("{:016x}", codes::key_code(string(input).as_bytes()))
    });
    check("band", |input| {
        let (bits, rows) = input.split_once(": ").unwrap();
        let rows: Vec<u32> = numbers(rows).into_iter().map(|row| row as u32).collect();
        format!("{:x}", codes::band_code(&rows, number(bits) as u8, 32))
    });
    check("permuted", |input| {
        let (groups, fingerprint) = input.split_once(": ").unwrap();
        let pair = |group: &str| -> (u8, u8) {
            let (s, r) = group.trim_matches(['(', ')']).split_once(',').unwrap();
            (s.parse().unwrap(), r.parse().unwrap())
        };
        let groups: Vec<(u8, u8)> = groups.split(' ').map(pair).collect();
        let bits = if fingerprint.len() > 18 { 128 } else { 64 };
        let fingerprint = u128::from_str_radix(&fingerprint[2..], 16).unwrap();
        let tables = codes::tables(bits, &groups);
        let codes = tables.iter().map(|(order, prefix_bits)| {
            let code = codes::permute(order, [fingerprint, 0]);
            format!("{}/{prefix_bits}", hex(&code.to_be_bytes()))
        });
        codes.collect::<Vec<_>>().join(" ")
    });
}

/// That the library makes such filters is shown by the pieces of the stores.
#[test]
fn filter_vectors_match() {
    check("filter", |input| {
        let (lane, rest) = input.split_once(": ").unwrap();
        let (shape, code) = rest.split_once(": ").unwrap();
        let bits = || number(lane.split(' ').rev().nth(1).unwrap());
        let kind = match lane.split(' ').next() {
            Some("key") => Kind::Key,
            Some("band") => Kind::Band(bits() as u8),
            _ => Kind::Table(bits() as u32),
        };
        let shape = numbers(shape);
        let shape = (shape[0] as u32, shape[1] as u16, shape[2] as u8);
        let bucket = kind.bucket(number(code));
        let piece = filters::piece(shape, bucket);
        let (block, bits) = filters::bits(shape, bucket);
        let bits: Vec<String> = bits.iter().map(ToString::to_string).collect();
        let bits = bits.join(" ");
        format!("{bucket:016x}, {piece}, {block}, {bits}")
    });
}
