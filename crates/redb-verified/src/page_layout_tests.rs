//! Tests the parsers with files that the engine wrote.

use std::collections::BTreeMap;

use redb::{Database, Key, StorageBackend, TableDefinition, Value};

use super::*;
use crate::files::MemoryFile;
use crate::sample::Random;

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

const SHORT: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("names");
const NUMBERED: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("numbered");
const FIXED: TableDefinition<'static, &[u8; 22], u32> = TableDefinition::new("fixed");
const SETS: TableDefinition<'static, &[u8], u64> = TableDefinition::new("sets");
const EMPTY: TableDefinition<'static, u64, u64> = TableDefinition::new("empty");

/// Writes rows with every combination of fixed and variable widths, on several levels, some longer
/// than a page.
fn written() -> (Vec<u8>, BTreeMap<&'static str, Rows>) {
    let memory = MemoryFile::default();
    let database = Database::builder()
        .create_with_backend(memory.clone())
        .unwrap();
    let mut tables = BTreeMap::new();
    let write = database.begin_write().unwrap();
    let mut random = Random(1);
    let numbers: Vec<u64> = (0..20_000).map(|_| random.next()).collect();
    fill(&write, SHORT, &mut tables, &numbers[..40], |number, put| {
        let name = number.to_string();
        put(&name.as_str(), &vec![7; (number % 300) as usize].as_slice());
    });
    fill(
        &write,
        NUMBERED,
        &mut tables,
        &numbers[..600],
        |number, put| {
            let length = if number % 50 == 0 {
                20_000
            } else {
                number % 90
            };
            put(&number, &vec![number as u8; length as usize].as_slice());
        },
    );
    fill(&write, FIXED, &mut tables, &numbers, |number, put| {
        let mut key = [0; 22];
        key[..8].copy_from_slice(&number.to_le_bytes());
        put(&&key, &(number as u32));
    });
    fill(
        &write,
        SETS,
        &mut tables,
        &numbers[..3_000],
        |number, put| {
            put(&&number.to_le_bytes()[..1 + (number % 8) as usize], &number);
        },
    );
    write.open_table(EMPTY).unwrap();
    tables.insert("empty", Rows::new());
    write.commit().unwrap();
    drop(database);
    let mut bytes = vec![0; memory.len().unwrap() as usize];
    memory.read(0, &mut bytes).unwrap();
    (bytes, tables)
}

type Put<'p, K, V> =
    &'p mut dyn for<'k, 'v> FnMut(&<K as Value>::SelfType<'k>, &<V as Value>::SelfType<'v>);

/// Writes rows, and reads them back through the engine.
fn fill<K: Key + 'static, V: Value + 'static>(
    write: &redb::WriteTransaction,
    table: TableDefinition<'static, K, V>,
    tables: &mut BTreeMap<&'static str, Rows>,
    numbers: &[u64],
    row: impl Fn(u64, Put<'_, K, V>),
) {
    use redb::{ReadableTable, TableHandle};
    let name = TableHandle::name(&table).to_owned();
    let mut table = write.open_table(table).unwrap();
    for number in numbers {
        row(*number, &mut |key, value| {
            table.insert(key, value).unwrap();
        });
    }
    let rows = table.iter().unwrap().map(|row| {
        let (key, value) = row.unwrap();
        let key = K::as_bytes(&key.value()).as_ref().to_vec();
        (key, V::as_bytes(&value.value()).as_ref().to_vec())
    });
    let names = ["names", "numbered", "fixed", "sets"];
    let name = names.into_iter().find(|known| *known == name).unwrap();
    tables.insert(name, rows.collect());
}

/// Returns a page and the pages below it, top down, with their widths. Checks that each has the
/// checksum that its parent states.
fn pages<'b>(
    bytes: &'b [u8],
    geometry: &Geometry,
    child: Child,
    widths: Widths,
    pages_found: &mut Vec<(Page<'b>, &'b [u8], Widths)>,
) {
    let (offset, length) = geometry.place(&child).unwrap();
    let page_bytes = &bytes[offset as usize..offset as usize + length];
    let page = Page::parse(page_bytes, widths).unwrap();
    assert_eq!(page.checksum(), child.checksum, "page at {offset}");
    pages_found.push((page, page_bytes, widths));
    if let Page::Branch(branch) = page {
        for child in branch.children() {
            pages(bytes, geometry, child, widths, pages_found);
        }
    }
}

fn head(bytes: &[u8]) -> Head {
    Head::parse(bytes.first_chunk().unwrap()).unwrap()
}

fn tree<'b>(
    bytes: &'b [u8],
    root: Option<Child>,
    widths: Widths,
) -> Vec<(Page<'b>, &'b [u8], Widths)> {
    let mut found = Vec::new();
    if let Some(root) = root {
        pages(bytes, &head(bytes).geometry, root, widths, &mut found);
    }
    found
}

fn rows_of(pages: &[(Page<'_>, &[u8], Widths)]) -> Rows {
    let mut rows = Rows::new();
    for (page, ..) in pages {
        if let Page::Leaf(leaf) = page {
            let row = |row| {
                (
                    leaf.key(row).unwrap().into(),
                    leaf.value(row).unwrap().into(),
                )
            };
            rows.extend((0..leaf.rows()).map(row));
            assert_eq!(
                (leaf.key(leaf.rows()), leaf.value(leaf.rows())),
                (None, None)
            );
        }
    }
    rows
}

#[test]
fn every_page_is_read_as_the_engine_wrote_it() {
    let (bytes, expected) = written();
    let head = head(&bytes);
    assert!(head.slots[0].is_intact && !head.may_be_torn);
    let tables = rows_of(&tree(&bytes, head.slots[0].tables, Widths::default()));
    assert_eq!(tables.len(), expected.len());
    let mut branches = 0;
    for (name, row) in tables {
        let name = String::from_utf8(name).unwrap();
        let table = TablePages::parse(&row).unwrap();
        let pages = tree(&bytes, table.root, table.widths);
        let rows = rows_of(&pages);
        assert_eq!(table.rows, rows.len() as u64, "{name}");
        assert!(rows == expected[name.as_str()], "{name}");
        for (page, ..) in &pages {
            let Page::Branch(branch) = page else {
                continue;
            };
            branches += 1;
            let children = branch.children().count();
            assert!(
                (0..children - 1).all(|key| branch.key(key).is_some()),
                "{name}"
            );
            assert_eq!(branch.key(children - 1), None);
        }
    }
    assert!(
        branches >= 6,
        "{branches} branches, expected some below others"
    );
    // The engine's own tables, if they are of the plain kind.
    let own = rows_of(&tree(
        &bytes,
        head.slots[0].system_tables,
        Widths::default(),
    ));
    assert!(
        own.iter()
            .any(|(_, row)| TablePages::parse(row).is_some_and(|t| t.rows > 0))
    );
}

/// Reads everything that a page states to contain.
fn exercise(bytes: &[u8], widths: Widths) {
    match Page::parse(bytes, widths) {
        Some(Page::Leaf(leaf)) => {
            for row in [
                0,
                1,
                leaf.rows() / 2,
                leaf.rows() - 1,
                leaf.rows(),
                usize::MAX - 1,
            ] {
                let (key, value) = (leaf.key(row), leaf.value(row));
                assert!(key.is_none_or(|key| key.len() <= bytes.len()));
                assert!(value.is_none_or(|value| value.len() <= bytes.len()));
            }
            Page::Leaf(leaf).checksum();
        }
        Some(Page::Branch(branch)) => {
            let children = branch.children().count();
            assert!(children <= 1 << 16);
            for key in [0, 1, children / 2, children, usize::MAX - 1] {
                assert!(branch.key(key).is_none_or(|key| key.len() <= bytes.len()));
            }
            Page::Branch(branch).checksum();
        }
        None => {}
    }
}

fn all_widths() -> impl Iterator<Item = Widths> {
    let some = [None, Some(0), Some(8), Some(22), Some(u32::MAX as usize)];
    let pairs = some
        .into_iter()
        .flat_map(move |key| some.map(|value| (key, value)));
    pairs.map(|(key, value)| Widths { key, value })
}

#[test]
fn page_parsers_survive_truncation_and_noise() {
    let (bytes, _) = written();
    let mut all = tree(&bytes, head(&bytes).slots[0].tables, Widths::default());
    for (_, row) in rows_of(&all.clone()) {
        for length in 0..row.len() {
            // The result without the names of types, which come last, does not matter.
            let _ = TablePages::parse(&row[..length]);
        }
        let table = TablePages::parse(&row).unwrap();
        all.extend(tree(&bytes, table.root, table.widths));
    }
    let mut random = Random(5);
    for (page, bytes, widths) in all.iter().step_by(7) {
        let whole = page.checksum();
        for length in (0..bytes.len()).step_by(if bytes.len() > 5_000 { 97 } else { 5 }) {
            exercise(&bytes[..length], *widths);
            let cut = Page::parse(&bytes[..length], *widths);
            assert!(cut.is_none_or(|cut| cut.checksum() == whole));
        }
        let mut noisy = bytes.to_vec();
        for _ in 0..50 {
            let at = random.next() as usize % 64.min(noisy.len());
            noisy[at] = random.next() as u8;
            all_widths().for_each(|widths| exercise(&noisy, widths));
        }
    }
    for number in 0..2_000u16 {
        let length = random.next() as usize % 5_000;
        let mut noise: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        if let Some(kind) = noise.first_mut() {
            *kind = 1 + (number % 2) as u8;
        }
        all_widths().for_each(|widths| exercise(&noise, widths));
        let _ = TablePages::parse(&noise);
    }
}

#[test]
fn head_never_points_beyond_the_addressable_range() {
    let (bytes, _) = written();
    let intact: [u8; HEAD_BYTES] = *bytes.first_chunk().unwrap();
    let mut random = Random(9);
    let mut parsed = 0;
    for _ in 0..20_000 {
        let mut forged = intact;
        for _ in 0..1 + random.next() % 8 {
            forged[9 + random.next() as usize % 311] = random.next() as u8;
        }
        let Some(head) = Head::parse(&forged) else {
            continue;
        };
        parsed += 1;
        for slot in head.slots {
            for root in [slot.tables, slot.system_tables].into_iter().flatten() {
                // 2^20 regions of 2^20 pages, and the same number of region heads.
                let most = (1u64 << 41) * PAGE_BYTES as u64 + PAGE_BYTES as u64;
                let place = head.geometry.place(&root);
                assert!(place.is_none_or(|(offset, _)| offset <= most));
            }
        }
    }
    assert!(parsed > 1_000);
}

#[test]
fn head_seal_covers_every_bit() {
    let (bytes, _) = written();
    let head: [u8; HEAD_BYTES] = *bytes.first_chunk().unwrap();
    let sealed = seal_head(&head);
    assert_eq!(check_head(&sealed), HeadSeal::Intact);
    for bit in 0..SEALED_HEAD_BYTES * 8 {
        let mut damaged = sealed;
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(check_head(&damaged), HeadSeal::Damaged, "bit {bit}");
    }
    let mut foreign = sealed;
    foreign[HEAD_BYTES..].fill(0);
    assert_eq!(check_head(&foreign), HeadSeal::Foreign);
}
