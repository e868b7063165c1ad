//! Compares what the linked engine writes, in many shapes, with this crate's page code.

use std::io;

use redb::{Durability, TableHandle};
use xxhash_rust::xxh3::Xxh3;

use super::*;
use crate::layout::recognize;
use crate::page_layout::{Child, Geometry, HEAD_BYTES, Leaf, Page, TablePages, Widths, seal_head};
use crate::sample::{Random, one_in};

const BYTES: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("bytes");
const TEXTS: TableDefinition<'static, &str, &str> = TableDefinition::new("texts");
const BLOCKS: TableDefinition<'static, &[u8; 22], &[u8]> = TableDefinition::new("blocks");
const SETS: TableDefinition<'static, &[u8], u64> = TableDefinition::new("sets");
const PAIRS: TableDefinition<'static, (u32, &str), Option<u64>> = TableDefinition::new("pairs");
const FLAGS: TableDefinition<'static, u32, ()> = TableDefinition::new("flags");
const ONE: TableDefinition<'static, (), u128> = TableDefinition::new("one");
const EMPTY: TableDefinition<'static, u16, u16> = TableDefinition::new("empty");

/// How transactions commit, and the size of the cache, which spills pages before a commit if it is
/// small.
#[derive(Clone, Copy, Debug)]
struct Mode {
    two_phase: bool,
    quick_repair: bool,
    /// One in this number of commits is durable.
    durable_each: u64,
    cache_bytes: usize,
    /// The number of rows of a transaction.
    rows: u64,
}

fn modes() -> Vec<Mode> {
    let mut modes = Vec::new();
    for (two_phase, quick_repair) in [(false, false), (true, false), (true, true)] {
        for (durable_each, cache_bytes, rows) in [(1, 0, 150), (4, 0, 150), (4, 1 << 26, 500)] {
            modes.push(Mode {
                two_phase,
                quick_repair,
                durable_each,
                cache_bytes,
                rows,
            });
        }
    }
    modes
}

/// Returns the engine's file, closed or not, without our seal.
fn image(memory: &MemoryFile) -> Vec<u8> {
    let mut bytes = vec![0; memory.len().unwrap() as usize];
    memory.read(0, &mut bytes).unwrap();
    bytes
}

fn memory_of(bytes: &[u8]) -> MemoryFile {
    let memory = MemoryFile::default();
    memory.set_len(bytes.len() as u64).unwrap();
    memory.write(0, bytes).unwrap();
    memory
}

/// Returns the file with our seal, as a store has it.
fn sealed(bytes: &[u8]) -> MemoryFile {
    let memory = memory_of(bytes);
    let head: &[u8; HEAD_BYTES] = bytes.first_chunk().unwrap();
    memory.write(0, &seal_head(head)).unwrap();
    memory
}

fn insert_rows(write: &redb::WriteTransaction, mode: &Mode, step: u64, random: &mut Random) {
    let mut bytes = write.open_table(BYTES).unwrap();
    let mut texts = write.open_table(TEXTS).unwrap();
    let mut blocks = write.open_table(BLOCKS).unwrap();
    let mut sets = write.open_table(SETS).unwrap();
    let mut pairs = write.open_table(PAIRS).unwrap();
    let mut flags = write.open_table(FLAGS).unwrap();
    for row in 0..mode.rows {
        let number = random.next();
        let length = match number % 200 {
            0 => 4_060 + number / 200 % 40,
            1 => number / 200 % 70_000,
            _ => number / 200 % 150,
        };
        let value = vec![number as u8; length as usize];
        // Keys in ascending order, and keys in another order.
        let key = if number.is_multiple_of(2) {
            number
        } else {
            step * mode.rows + row
        };
        bytes.insert(key, value.as_slice()).unwrap();
        let name = format!(
            "{}{number}",
            "a common beginning ".repeat((number % 4) as usize)
        );
        texts
            .insert(name.as_str(), name.get(..name.len() / 2).unwrap())
            .unwrap();
        let mut block = [0; 22];
        block[..8].copy_from_slice(&number.to_be_bytes());
        blocks
            .insert(&block, &value[..value.len().min(4_066)])
            .unwrap();
        sets.insert(&name.as_bytes()[..name.len() / 3], number)
            .unwrap();
        let some = Some(number).filter(|number| number % 3 > 0);
        pairs
            .insert(((number % 7) as u32, name.as_str()), some)
            .unwrap();
        flags.insert((number >> 40) as u32, ()).unwrap();
    }
    write
        .open_table(ONE)
        .unwrap()
        .insert((), u128::from(random.0))
        .unwrap();
    write.open_table(EMPTY).unwrap();
}

fn change_rows(write: &redb::WriteTransaction, step: u64, random: &mut Random) {
    let mut bytes = write.open_table(BYTES).unwrap();
    let mut blocks = write.open_table(BLOCKS).unwrap();
    match step % 4 {
        0 => bytes.retain(|key, _| key % 5 > 1).unwrap(),
        1 => {
            for _ in 0..100 {
                bytes.pop_first().unwrap();
                bytes.pop_last().unwrap();
            }
        }
        2 => {
            let from = random.next().to_be_bytes()[0];
            let (first, last) = ([from / 2; 22], [from; 22]);
            blocks
                .retain_in::<&[u8; 22], _>(&first..&last, |_, _| false)
                .unwrap();
        }
        _ => {
            let mut large = bytes.insert_reserve(step, 1 << 20).unwrap();
            large.as_mut().fill(step as u8);
        }
    }
    drop(bytes);
    if step == 5 {
        write.delete_table(FLAGS).unwrap();
        write
            .rename_table(SETS, TableDefinition::<&[u8], u64>::new("other sets"))
            .unwrap();
    }
}

/// Returns files that the engine writes without this crate: between commits, not closed, and
/// closed.
fn written(mode: &Mode) -> Vec<Vec<u8>> {
    let memory = MemoryFile::default();
    let mut builder = Database::builder();
    builder.set_cache_size(mode.cache_bytes);
    let mut database = builder.create_with_backend(memory.clone()).unwrap();
    let (mut images, mut random) = (vec![image(&memory)], Random(mode.rows));
    for step in 0..8 {
        let mut write = database.begin_write().unwrap();
        write.set_two_phase_commit(mode.two_phase);
        write.set_quick_repair(mode.quick_repair);
        let is_durable = (step + 1) % mode.durable_each == 0;
        if !is_durable {
            write.set_durability(Durability::None).unwrap();
        }
        insert_rows(&write, mode, step, &mut random);
        change_rows(&write, step, &mut random);
        // With a small cache, the file also contains uncommitted pages.
        images.push(image(&memory));
        write.commit().unwrap();
        images.push(image(&memory));
    }
    if mode.quick_repair {
        while database.compact().unwrap() {}
        images.push(image(&memory));
    }
    database.close().unwrap();
    images.push(image(&memory));
    images
}

/// Checks that everything below a page is as the page above it states.
fn walk(
    bytes: &[u8],
    geometry: &Geometry,
    child: Child,
    widths: Widths,
    take: &mut dyn FnMut(&Leaf<'_>),
) -> u64 {
    let (offset, length) = geometry.place(&child).unwrap();
    let page = bytes
        .get(offset as usize..offset as usize + length)
        .unwrap();
    let page = Page::parse(page, widths).unwrap();
    assert_eq!(page.checksum(), child.checksum, "page at byte {offset}");
    match page {
        Page::Leaf(leaf) => {
            take(&leaf);
            1
        }
        Page::Branch(branch) => {
            let below = branch.children();
            1 + below
                .map(|child| walk(bytes, geometry, child, widths, take))
                .sum::<u64>()
        }
    }
}

/// Walks over the pages of the valid commit, and returns their number.
fn walk_all(bytes: &[u8]) -> u64 {
    let head = recognize(bytes.first_chunk().unwrap()).unwrap();
    assert!(head.slots.iter().all(|slot| slot.is_intact));
    let mut pages = 0;
    let roots = [head.slots[0].tables, head.slots[0].system_tables];
    for root in roots.into_iter().flatten() {
        let mut tables = Vec::new();
        pages += walk(
            bytes,
            &head.geometry,
            root,
            Widths::default(),
            &mut |leaf| {
                let table = |row| {
                    TablePages::parse(leaf.value(row).unwrap()).expect("a known kind of table")
                };
                tables.extend((0..leaf.rows()).map(table));
            },
        );
        for table in tables {
            let mut rows = 0;
            if let Some(root) = table.root {
                pages += walk(bytes, &head.geometry, root, table.widths, &mut |leaf| {
                    rows += leaf.rows() as u64
                });
            }
            assert_eq!(rows, table.rows);
        }
    }
    pages
}

fn take<K: Key + 'static, V: Value + 'static>(
    _: &TableDefinition<'static, K, V>,
    key: &K::SelfType<'_>,
    value: &V::SelfType<'_>,
    hash: &mut Xxh3,
) {
    let (key, value) = (K::as_bytes(key), V::as_bytes(value));
    for bytes in [key.as_ref(), value.as_ref()] {
        hash.update(&bytes.len().to_le_bytes());
        hash.update(bytes);
    }
}

/// Returns the hash of all rows of all existing tables, and their number.
fn rows(database: &Database) -> (u64, u64) {
    let (mut hash, mut count) = (Xxh3::new(), 0);
    let read = database.begin_read().unwrap();
    let names: Vec<String> = read
        .list_tables()
        .unwrap()
        .map(|table| table.name().into())
        .collect();
    macro_rules! read_table {
        ($($table:expr),*) => {$(
            if names.iter().any(|name| name == $table.name()) {
                for row in read.open_table($table).unwrap().iter().unwrap() {
                    let (key, value) = row.unwrap();
                    take(&$table, &key.value(), &value.value(), &mut hash);
                    count += 1;
                }
            }
        )*};
    }
    let others = TableDefinition::<&[u8], u64>::new("other sets");
    read_table!(BYTES, TEXTS, BLOCKS, SETS, others, PAIRS, FLAGS, ONE, EMPTY);
    (hash.digest(), count)
}

/// Opens a file with verified pages and without a cache.
fn open_verified(memory: &MemoryFile) -> Database {
    let (file, verification) = verified(memory);
    let mut builder = Database::builder();
    let database = builder.set_cache_size(0).create_with_backend(file).unwrap();
    verification.opened();
    database
}

/// Tests one mode in four, with every kind of commit and every cache, and in each one file in three
/// and the closed one. With `RESEMBLANCE_TESTS=all`, tests all files in all modes.
#[test]
fn files_of_the_engine_pass_the_layout_check() {
    let (mut files, mut pages, mut all_rows) = (0, 0, 0);
    for mode in modes().into_iter().step_by(one_in(4)) {
        // Begins with the closed file. Before that, every other file is between two commits.
        let images = written(&mode).into_iter().enumerate().rev();
        for (number, bytes) in images.step_by(one_in(3)) {
            files += 1;
            pages += walk_all(&bytes);
            let plain = Database::builder()
                .create_with_backend(memory_of(&bytes))
                .unwrap();
            let expected = rows(&plain);
            drop(plain);
            let memory = sealed(&bytes);
            let mut database = open_verified(&memory);
            assert_eq!(rows(&database), expected, "{mode:?}, image {number}");
            assert!(
                database.check_integrity().unwrap(),
                "{mode:?}, image {number}"
            );
            // The file can be written further, and the result is read again.
            let write = database.begin_write().unwrap();
            write
                .open_table(BYTES)
                .unwrap()
                .insert(u64::MAX, b"one more".as_slice())
                .unwrap();
            write.commit().unwrap();
            let expected = rows(&database);
            database.close().unwrap();
            pages += walk_all(&image(&memory));
            let database = open_verified(&memory);
            assert_eq!(
                rows(&database),
                expected,
                "{mode:?}, image {number}, written on"
            );
            all_rows += expected.1;
        }
    }
    println!("{files} files, {pages} pages, {all_rows} rows");
    let share = one_in(4) * one_in(3);
    assert!(files > 150 / share && pages > 20_000 / share as u64);
}

/// The check meets branches, pages of several lengths, and tables of all widths.
#[test]
fn linked_engine_passes_the_layout_check() {
    let memory = MemoryFile::default();
    try_engine(|| verified(&memory)).unwrap();
    let pages = walk_all(&image(&memory));
    assert!(pages > 12, "{pages} pages");
    check_engine().unwrap();
}

/// An engine that writes the file in a different way, and reads back what it wrote.
#[derive(Clone, Copy, Debug)]
enum Other {
    /// Different types of pages.
    Types,
    /// Different checksums of pages.
    Checksums,
    /// An additional flag in the head.
    Flag,
    /// A longer head.
    LongHead,
    /// Half pages.
    Halves,
    /// A new version of the file format.
    Version,
}

#[derive(Debug)]
struct OtherEngine {
    file: VerifiedFile,
    other: Other,
}

impl OtherEngine {
    /// Applies the change. A second call undoes it.
    fn change(&self, offset: u64, data: &mut [u8]) {
        let is_head = offset == 0 && data.len() == HEAD_BYTES;
        let mut flip = |at: usize, bits: u8| {
            if let Some(byte) = data.get_mut(at) {
                *byte ^= bits;
            }
        };
        match self.other {
            Other::Types if offset > 0 => flip(0, 0x40),
            // A byte that the checksum covers and that no parser reads.
            Other::Checksums if offset > 0 => flip(1, 0x40),
            Other::Flag if is_head => flip(9, 0x10),
            Other::Version if is_head => [64, 192].into_iter().for_each(|slot| flip(slot, 3 ^ 4)),
            _ => {}
        }
    }
}

impl StorageBackend for OtherEngine {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)?;
        self.change(offset, out);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut data = data.to_vec();
        self.change(offset, &mut data);
        match self.other {
            Other::LongHead if offset == 0 => {
                data.resize(512, 0);
                self.file.write(0, &data)
            }
            Other::Halves if offset > 0 => {
                let (first, second) = data.split_at(data.len() / 2);
                self.file.write(offset, first)?;
                self.file.write(offset + first.len() as u64, second)
            }
            _ => self.file.write(offset, &data),
        }
    }
}

#[test]
fn engine_with_a_different_layout_is_refused() {
    for (other, expected) in [
        (Other::Types, "unknown form"),
        (Other::Checksums, "checksum"),
        (Other::Flag, "flags 0x1"),
        (Other::LongHead, "parts of pages"),
        (Other::Halves, "parts of pages"),
        (Other::Version, "file format 4"),
    ] {
        let memory = MemoryFile::default();
        let refused = try_engine(|| {
            let (file, verification) = verified(&memory);
            (OtherEngine { file, other }, verification)
        });
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(expected), "{other:?}: {error}");
    }
}
