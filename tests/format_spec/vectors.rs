//! The test vectors of the specification: first by its own rules, then by the library, where that
//! can be asked.

use resemblance::{EmptyDocuments, MinHash, Schema, SimHash, Sketcher, Store, Text};
use xxhash_rust::xxh3::xxh3_64;

use crate::filters::{self, Kind};
use crate::reader;
use crate::recipe::{self, Recipe, Shingles};
use crate::{bytes, code_block, hex, unhex};

/// Checks the lines `input -> output` of a code block; says what all outputs should be.
fn check(name: &str, output: impl Fn(&str) -> String) {
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
fn string(text: &str) -> String {
    serde_json::from_str(text).unwrap()
}

fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace().map(number).collect()
}

fn sketcher(seed: u64) -> Sketcher {
    let minhash = MinHash::new(16).banding(1, 1);
    let simhash = SimHash::bits64();
    let schema = Schema::builder()
        .seed(seed)
        .minhash(minhash)
        .simhash(simhash);
    schema.build().unwrap().sketcher()
}

fn recipe_of(seed: u64) -> Recipe {
    Recipe {
        text: None,
        seed,
        alike: false,
        minhash_values: 16,
        simhash_bits: 64,
    }
}

#[test]
fn published_hashes() {
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
fn checksums() {
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
fn shingles() {
    check("shingles", |input| {
        let (kind, rest) = input.split_once(' ').unwrap();
        let (length, document) = rest.split_once(' ').unwrap();
        let (document, n) = (string(document), length.parse().unwrap());
        let (text, own) = match kind {
            "words" => (Text::words(n), Shingles::Words(n)),
            _ => (Text::characters(n), Shingles::Characters(n)),
        };
        let mut found = Vec::new();
        text.for_each_shingle(&document, |shingle| found.push(shingle.to_owned()));
        if char::UNICODE_VERSION == (17, 0, 0) {
            assert_eq!(own.of(&document), found, "{input}");
        }
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

fn first_values(values: &[u32]) -> String {
    let values = values.iter().take(4).map(|value| format!("{value:08x}"));
    values.collect::<Vec<_>>().join(" ")
}

#[test]
fn signatures() {
    check("signatures", |input| {
        let (seed, hashes) = input.split_once(": ").unwrap();
        let (seed, hashes) = (number(seed), numbers(hashes));
        let own = recipe_of(seed).hashes(hashes.iter().copied());
        let found = sketcher(seed).hashes(hashes).unwrap();
        assert_eq!(found.minhash(), Some(&own.values[..]), "{input}");
        assert_eq!(found.simhash(), own.fingerprint, "{input}");
        let values = first_values(&own.values);
        format!("{values}; {:016x}", own.fingerprint.unwrap())
    });
    check("weighted", |input| {
        let (seed, features) = input.split_once(": ").unwrap();
        let pairs = features
            .split(' ')
            .map(|pair| pair.split_once('=').unwrap());
        let features: Vec<(&str, f64)> = pairs.map(|(f, w)| (f, w.parse().unwrap())).collect();
        let hashed = features
            .iter()
            .map(|&(f, weight)| (xxh3_64(f.as_bytes()), weight));
        let own = recipe_of(number(seed)).weighted(hashed);
        let found = sketcher(number(seed)).weighted_features(features).unwrap();
        assert_eq!(found.minhash(), Some(&own.values[..]), "{input}");
        assert_eq!(found.simhash(), own.fingerprint, "{input}");
        let values = first_values(&own.values);
        format!("{values}; {:016x}", own.fingerprint.unwrap())
    });
}

/// What is after `name=`.
fn field<'a>(input: &'a str, name: &str) -> &'a str {
    let mut fields = input.split(' ').filter_map(|field| field.split_once('='));
    fields.find(|(found, _)| *found == name).unwrap().1
}

fn parse_recipe(input: &str) -> Recipe {
    let text = match field(input, "text").split_once(':') {
        Some(("words", n)) => Some(Shingles::Words(n.parse().unwrap())),
        Some((_, n)) => Some(Shingles::Characters(n.parse().unwrap())),
        None => None,
    };
    Recipe {
        text,
        seed: number(field(input, "seed")),
        alike: field(input, "empty") == "alike",
        minhash_values: field(input, "minhash").parse().unwrap(),
        simhash_bits: field(input, "simhash").parse().unwrap(),
    }
}

fn schema_of(recipe: &Recipe) -> Schema {
    let mut schema = Schema::builder().seed(recipe.seed);
    match recipe.text {
        Some(Shingles::Words(n)) => schema = schema.text(Text::words(n)),
        Some(Shingles::Characters(n)) => schema = schema.text(Text::characters(n)),
        None => {}
    }
    if recipe.alike {
        schema = schema.empty_documents(EmptyDocuments::Alike);
    }
    if recipe.minhash_values > 0 {
        schema = schema.minhash(MinHash::new(recipe.minhash_values).banding(1, 1));
    }
    if recipe.simhash_bits > 0 {
        schema = schema.simhash(SimHash::bits64());
    }
    schema.build().unwrap()
}

#[test]
fn recipes() {
    let texts: Vec<String> = code_block("self-test").into_iter().map(string).collect();
    check("recipes", |input| {
        let recipe = parse_recipe(input);
        let own = (recipe.fingerprint(), recipe.self_test(&texts));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recipe.rsm");
        drop(Store::create(&path, schema_of(&recipe)).unwrap());
        let store = reader::Store::read(&path);
        assert_eq!(store.schema.recipe, recipe);
        if char::UNICODE_VERSION == (17, 0, 0) {
            assert_eq!(store.self_test, own, "{input}");
        }
        format!("{:016x} {:016x}", store.self_test.0, store.self_test.1)
    });
}

/// That the library codes so is shown by the blocks of the stores.
#[test]
fn codes() {
    check("key", |input| {
        format!("{:016x}", recipe::key_code(string(input).as_bytes()))
    });
    check("band", |input| {
        let (bits, rows) = input.split_once(": ").unwrap();
        let rows: Vec<u32> = numbers(rows).into_iter().map(|row| row as u32).collect();
        format!("{:x}", recipe::band_code(&rows, number(bits) as u8))
    });
    check("permuted", |input| {
        let (groups, fingerprint) = input.split_once(": ").unwrap();
        let pair = |group: &str| -> (u8, u8) {
            let (s, r) = group.trim_matches(['(', ')']).split_once(',').unwrap();
            (s.parse().unwrap(), r.parse().unwrap())
        };
        let groups: Vec<(u8, u8)> = groups.split(' ').map(pair).collect();
        let codes = recipe::tables(&groups);
        let codes = codes.iter().map(|(order, prefix_bits)| {
            let code = recipe::permute(order, number(fingerprint));
            format!("{}/{prefix_bits}", hex(&code.to_be_bytes()))
        });
        codes.collect::<Vec<_>>().join(" ")
    });
}

/// That the library makes such filters is shown by the pieces of the stores.
#[test]
fn filters_of_buckets() {
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
        let shape = (shape[0] as u32, shape[1] as u16);
        let bucket = kind.bucket(number(code));
        let piece = filters::piece(shape, bucket);
        let (block, bits) = filters::bits(shape, bucket);
        let bits = bits.map(|bit| bit.to_string()).join(" ");
        format!("{bucket:016x}, {piece}, {block}, {bits}")
    });
}
