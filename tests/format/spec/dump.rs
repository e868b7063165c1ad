//! The store of two documents, and the example of a block.

use resemblance::{Document, MinHash, Schema, SimHash, StoreOptions, Text};

use crate::spec::blocks::{self, Block};
use crate::spec::reader::{self, Tables};
use crate::spec::{code_block, hex, unhex};

/// Section 12 describes in words what this function does.
pub(crate) fn make(path: &std::path::Path) {
    let minhash = MinHash::new(16).value_bits(32);
    let schema = Schema::builder()
        .text(Text::words(2))
        .minhash(minhash.threshold(0.8).banding(2, 2).code_bits(40))
        .simhash(SimHash::bits64().max_distance(1))
        .seed(42)
        .expected_documents(1_000)
        .build()
        .unwrap();
    let options = StoreOptions::new().flush_after(2);
    let store = options.create(path, schema).unwrap();
    let first = store.sketch_text("The cat sat on the mat.").unwrap();
    let second = store.sketch_text("the cat sat on THE hat").unwrap();
    let mut transaction = store.begin_write().unwrap();
    let document = Document::new("a").stamp(7).payload(b"mat");
    transaction.insert(document, &first).unwrap();
    transaction
        .insert(Document::without_key(), &second)
        .unwrap();
    transaction.commit().unwrap();
}

/// Key and value as the dump writes them.
type Row = (String, String);

fn key_text(table: &str, key: &[u8]) -> String {
    match table {
        "meta" => String::from_utf8(key.to_vec()).unwrap(),
        "keys" | "bands" | "permuted" | "filters" => hex(key),
        _ => key
            .iter()
            .fold(0u64, |number, byte| number << 8 | u64::from(*byte))
            .to_string(),
    }
}

fn rows(tables: &Tables) -> Vec<(String, Vec<Row>)> {
    let row = |table: &str, (key, value): (&Vec<u8>, &Vec<u8>)| (key_text(table, key), hex(value));
    tables
        .iter()
        .map(|(table, rows)| {
            (
                table.to_string(),
                rows.iter().map(|r| row(table, r)).collect(),
            )
        })
        .collect()
}

/// `table` begins a table, `key` a row; other lines are hexadecimal bytes, up to a `#`.
fn specified() -> Vec<(String, Vec<Row>)> {
    let mut tables: Vec<(String, Vec<Row>)> = Vec::new();
    for line in code_block("dump") {
        let line = line.split('#').next().unwrap().trim();
        if let Some(name) = line.strip_prefix("table ") {
            tables.push((name.to_owned(), Vec::new()));
        } else if let Some(key) = line.strip_prefix("key ") {
            let rows = &mut tables.last_mut().unwrap().1;
            rows.push((key.replace(' ', ""), String::new()));
        } else if !line.is_empty() {
            let row = tables.last_mut().unwrap().1.last_mut().unwrap();
            row.1.push_str(&hex(&unhex(line)));
        }
    }
    tables.sort();
    for (_, rows) in &mut tables {
        rows.sort();
    }
    tables
}

/// The dump with the bytes that were found, laid out as it is: comments may have to be changed.
fn corrected(found: &[(String, Vec<Row>)]) -> String {
    let mut text = String::new();
    let mut rows = [].iter();
    let mut rest = "";
    for line in code_block("dump") {
        let (fields, comment) = line.split_at(line.find('#').unwrap_or(line.len()));
        if let Some(name) = fields.strip_prefix("table ") {
            let table = found.iter().find(|(table, _)| table == name.trim());
            rows = table.map_or([].iter(), |(_, rows)| rows.iter());
            text += line;
        } else if fields.starts_with("key ") {
            text += rest;
            let Some((key, value)) = rows.next() else {
                return text + "(a row less)";
            };
            text += format!("key {key}  {comment}").trim_end();
            rest = value;
        } else if !fields.trim().is_empty() {
            let digits = fields
                .matches(|digit: char| digit.is_ascii_hexdigit())
                .count();
            let (bytes, after) = rest.split_at(digits.min(rest.len()));
            rest = after;
            text += &format!("  {bytes:<18}  {comment}");
        } else {
            text += line;
        }
        text.push('\n');
    }
    text
}

#[test]
fn store_of_two_documents_matches_the_dump() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two.rsm");
    make(&path);
    let mut found = rows(&reader::read_tables(&path));
    for (_, rows) in &mut found {
        rows.sort();
    }
    assert_eq!(
        found,
        specified(),
        "the dump should be\n{}",
        corrected(&found)
    );
}

#[test]
fn independent_reader_reads_the_dumped_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two.rsm");
    make(&path);
    let store = reader::Store::read(&path);
    let first = store.schema.recipe.text("The cat sat on the mat.");
    let second = store.schema.recipe.text("the cat sat on THE hat");
    assert_eq!(store.documents.len(), 2);
    let document = &store.documents[&0];
    assert_eq!(document.key.as_deref(), Some(&b"a"[..]));
    assert_eq!(
        (document.stamp, document.payload.as_slice()),
        (7, &b"mat"[..])
    );
    assert_eq!(document.signature, first);
    assert_eq!(store.documents[&1].key, None);
    assert_eq!(store.documents[&1].signature, second);
}

#[test]
fn block_example_of_the_specification_is_correct() {
    let block = Block {
        run: 1,
        lane: 2,
        previous: Some((0xf0, 8)),
        postings: vec![(0x100, 5), (0x100, 9), (0x109, 4), (0x11f, 7)],
    };
    let key = blocks::key(1, 2, (0x11f, 7));
    let value = blocks::encode("bands", &block);
    let lines = code_block("block");
    let bytes = |line: &&str| unhex(line.split('#').next().unwrap());
    let specified: Vec<Vec<u8>> = lines.iter().map(bytes).collect();
    let (specified_key, specified_value) = specified.split_first().unwrap();
    assert_eq!(hex(specified_key), hex(&key));
    assert_eq!(hex(&specified_value.concat()), hex(&value));
    assert_eq!(blocks::decode("bands", &key, &value), block);
}
