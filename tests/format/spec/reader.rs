//! A reader of stores, written from `format-spec.md` alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use redb::{ReadOnlyDatabase, ReadableDatabase, ReadableTable, TableDefinition, TableHandle};

use crate::spec::blocks::{self, Block, Posting};
use crate::spec::bytes::Bytes;
use crate::spec::clusters::read_clusters;
use crate::spec::filters::{self, Shape};
use crate::spec::recipe::Signature;
use crate::spec::schema::{Schema, decode_exact};

pub(crate) type Rows<K> = TableDefinition<'static, K, &'static [u8]>;

/// All rows of all tables: the key as the checksum takes it, and the value.
pub(crate) type Tables = BTreeMap<&'static str, BTreeMap<Vec<u8>, Vec<u8>>>;

/// Reads every table of the specification, and expects no other.
pub(crate) fn read_tables(path: &Path) -> Tables {
    check_head(&std::fs::read(path).unwrap());
    let database = ReadOnlyDatabase::open(path).unwrap();
    let read = database.begin_read().unwrap();
    let mut tables = Tables::new();
    macro_rules! read_table {
        ($name:literal, $key:ty, $bytes:expr) => {{
            let table = read.open_table(Rows::<$key>::new($name)).unwrap();
            let rows = table.iter().unwrap().map(|row| {
                let (key, value) = row.unwrap();
                let bytes: fn($key) -> Vec<u8> = $bytes;
                (bytes(key.value()), value.value().to_vec())
            });
            tables.insert($name, rows.collect());
        }};
    }
    read_table!("meta", &str, |key| key.as_bytes().to_vec());
    read_table!("documents", u64, |key| key.to_be_bytes().to_vec());
    read_table!("payloads", u64, |key| key.to_be_bytes().to_vec());
    read_table!("lanes", u16, |key| key.to_be_bytes().to_vec());
    read_table!("runs", u32, |key| key.to_be_bytes().to_vec());
    read_table!("dead", u64, |key| key.to_be_bytes().to_vec());
    read_table!("equal", u64, |key| key.to_be_bytes().to_vec());
    read_table!("keys", &[u8; 22], |key| key.to_vec());
    read_table!("bands", &[u8; 22], |key| key.to_vec());
    read_table!("permuted", &[u8; 22], |key| key.to_vec());
    read_table!("filters", &[u8; 10], |key| key.to_vec());
    let names = read.list_tables().unwrap();
    let names: Vec<String> = names.map(|table| table.name().to_owned()).collect();
    if names.iter().any(|name| name == "sets") {
        read_table!("sets", u64, |key| key.to_be_bytes().to_vec());
    }
    if names.iter().any(|name| name == "forest") {
        read_table!("forest", &[u8; 16], |key| key.to_vec());
        read_table!("members", u64, |key| key.to_be_bytes().to_vec());
        read_table!("clusters", u64, |key| key.to_be_bytes().to_vec());
        read_table!("feed", u64, |key| key.to_be_bytes().to_vec());
    }
    assert_eq!(read.list_tables().unwrap().count(), tables.len());
    tables
}

/// Checks the bytes after the engine's head.
fn check_head(file: &[u8]) {
    assert_eq!(&file[..9], b"redb\x1a\x0a\xa9\x0d\x0a");
    assert_eq!(&file[320..328], b"RESEMBL\x1a");
    let checksum = u64::from_le_bytes(file[328..336].try_into().unwrap());
    assert_eq!(checksum, xxhash_rust::xxh3::xxh3_64(&file[..320]));
}

#[derive(Debug, PartialEq)]
pub(crate) struct State {
    pub(crate) commit: u64,
    pub(crate) next_id: u64,
    pub(crate) documents: u64,
    pub(crate) flushed_below: u64,
    pub(crate) next_run: u32,
    pub(crate) unflushed_documents: u64,
    pub(crate) postings_moved: u64,
    pub(crate) deleted_documents: u64,
}

#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) postings: u64,
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
    pub(crate) filter: Option<Shape>,
    pub(crate) after: Option<Posting>,
    pub(crate) last: Option<Posting>,
}

#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) level: u8,
    pub(crate) ids: std::ops::RangeInclusive<u64>,
    pub(crate) documents: u64,
    pub(crate) inputs: Vec<u32>,
    pub(crate) kept_up_to: u64,
    pub(crate) rows_from: Option<u64>,
    pub(crate) lanes: BTreeMap<u16, Lane>,
}

impl Run {
    /// Whether a lane is being written.
    pub(crate) fn is_writing(&self, lane: u16) -> bool {
        !self.inputs.is_empty() && self.lanes.keys().next_back() == Some(&lane)
    }
}

/// The deleted documents: those that a merge of their run drops, and those that were deleted since
/// it began.
#[derive(Debug, Default)]
pub(crate) struct Dead {
    pub(crate) before: BTreeSet<u64>,
    pub(crate) since: BTreeSet<u64>,
}

impl Dead {
    pub(crate) fn contains(&self, id: u64) -> bool {
        self.before.contains(&id) || self.since.contains(&id)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Document {
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) stamp: u64,
    pub(crate) payload: Vec<u8>,
    pub(crate) signature: Signature,
}

#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) schema: Schema,
    pub(crate) self_test: (u64, u64),
    /// The documents of the corpus, and how many of them have each feature.
    pub(crate) weights: Option<(u64, BTreeMap<u64, u64>)>,
    pub(crate) state: State,
    /// The block table of each lane.
    pub(crate) lanes: Vec<&'static str>,
    pub(crate) runs: BTreeMap<u32, Run>,
    pub(crate) dead: Dead,
    /// The digests of documents that are noted to be equal, with those of their signatures, if their rows
    /// are there.
    pub(crate) equal: BTreeMap<u64, (u128, Option<u128>)>,
    /// The members of each cluster that is kept.
    pub(crate) clusters: BTreeMap<u64, BTreeSet<u64>>,
    pub(crate) documents: BTreeMap<u64, Document>,
    /// The rows of deleted documents.
    pub(crate) buried: BTreeMap<u64, Document>,
    /// By table, in the order of the keys.
    pub(crate) blocks: BTreeMap<&'static str, Vec<(Block, Vec<u8>)>>,
    /// The blocks of each piece, by run, lane and number.
    pub(crate) filters: BTreeMap<(u32, u16, u32), Vec<u8>>,
}

fn number<const N: usize>(key: &[u8]) -> u64 {
    assert_eq!(key.len(), N);
    key.iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl Store {
    pub(crate) fn read(path: &Path) -> Self {
        let tables = read_tables(path);
        let meta =
            |name: &str| Bytes::open("meta", name.as_bytes(), &tables["meta"][name.as_bytes()]);
        let refuse = read_header(meta("header"));
        let has_weights = refuse & 1 << 8 != 0;
        assert_eq!(tables.contains_key("sets"), refuse & 1 << 9 != 0);
        assert_eq!(tables.contains_key("clusters"), refuse & 1 << 10 != 0);
        let weights = has_weights.then(|| read_frequencies(meta("weights")));
        assert_eq!(
            has_weights,
            tables["meta"].contains_key(b"weights".as_slice())
        );
        let meta = |name: &str| {
            let mut bytes = meta(name);
            assert_eq!(bytes.u8(), 1, "kind");
            bytes
        };
        let mut bytes = meta("schema");
        let schema = Schema::decode(&mut bytes);
        assert!(bytes.rest().is_empty());
        let mut bytes = meta("self_test");
        let self_test = (bytes.u64(), bytes.u64());
        assert!(bytes.rest().is_empty());
        let mut bytes = meta("state");
        let state = State {
            commit: bytes.u64(),
            next_id: bytes.u64(),
            documents: bytes.u64(),
            flushed_below: bytes.u64(),
            next_run: bytes.u32(),
            unflushed_documents: bytes.u64(),
            postings_moved: bytes.u64(),
            deleted_documents: bytes.u64(),
        };
        assert!(bytes.rest().is_empty());
        let dead = read_dead(&tables);
        let documents = read_documents(&tables, &schema).into_iter();
        let (buried, documents) = documents.partition(|(id, _)| dead.contains(*id));
        Self {
            self_test,
            weights,
            state,
            lanes: read_lanes(&tables, &schema),
            runs: read_runs(&tables),
            dead,
            equal: read_equal(&tables),
            clusters: read_clusters(&tables, schema.linkage),
            documents,
            buried,
            blocks: read_blocks(&tables),
            filters: read_filters(&tables),
            schema,
        }
    }

    /// The postings that a query meets: of runs, and of the memtable that is made from rows.
    pub(crate) fn postings(&self) -> Vec<(u16, Posting)> {
        let mut postings = Vec::new();
        for (block, _) in self.blocks.values().flatten() {
            let after = self.runs[&block.run].lanes[&block.lane].after;
            let left = block.postings.iter().filter(|p| Some(**p) > after);
            postings.extend(left.map(|posting| (block.lane, *posting)));
        }
        for (id, document) in self.documents.range(self.state.flushed_below..) {
            let codes = self
                .schema
                .codes(document.key.as_deref(), &document.signature);
            for (lane, codes) in (0..).zip(codes) {
                postings.extend(codes.into_iter().map(|code| (lane, (code, *id))));
            }
        }
        postings.sort_unstable();
        postings
    }
}

/// Returns the features that a reader must know.
fn read_header(mut bytes: Bytes<'_>) -> u64 {
    assert_eq!(bytes.take(8), b"RESEMBL\x1a");
    let (_version, oldest_reader) = (bytes.u16(), bytes.u16());
    assert!(oldest_reader <= 1);
    let (_ignorable, _read_only, refuse) = (bytes.u64(), bytes.u64(), bytes.u64());
    assert_eq!(refuse & !(0b111 << 8), 0, "{refuse:b}");
    refuse
}

fn read_frequencies(mut bytes: Bytes<'_>) -> (u64, BTreeMap<u64, u64>) {
    assert_eq!(bytes.u8(), 1, "kind");
    let (documents, features) = (bytes.u64(), bytes.u64());
    let counts: Vec<(u64, u64)> = (0..features).map(|_| (bytes.u64(), bytes.u64())).collect();
    assert!(bytes.rest().is_empty());
    assert!(counts.is_sorted_by(|(a, _), (b, _)| a < b));
    assert!(counts.iter().all(|(_, count)| *count <= documents));
    (documents, counts.into_iter().collect())
}

fn read_lanes(tables: &Tables, schema: &Schema) -> Vec<&'static str> {
    let mut lanes = Vec::new();
    let mut counts = [0u16; 4];
    let tables_of = ["keys", "bands", "permuted", "bands"];
    let mut kinds = Vec::new();
    for (expected, (key, value)) in (0..).zip(&tables["lanes"]) {
        assert_eq!(number::<2>(key), expected);
        let mut bytes = Bytes::open("lanes", key, value);
        assert_eq!(bytes.u8(), 1, "kind of row");
        let kind = usize::from(bytes.u8());
        assert_eq!(bytes.u16(), counts[kind], "ordinal");
        assert_eq!(bytes.u32(), 0, "generation");
        assert!(bytes.rest().is_empty());
        counts[kind] += 1;
        kinds.push(kind);
        lanes.push(tables_of[kind]);
    }
    assert!(kinds.is_sorted());
    let bands = schema.minhash.map_or(0, |minhash| minhash.bands);
    let kept = u16::from(schema.recipe.containment.is_some());
    assert_eq!(counts, [1, bands, schema.tables().len() as u16, kept]);
    lanes
}

fn read_runs(tables: &Tables) -> BTreeMap<u32, Run> {
    let mut runs = BTreeMap::new();
    for (key, value) in &tables["runs"] {
        let mut bytes = Bytes::open("runs", key, value);
        assert_eq!(bytes.u8(), 1, "kind");
        let number = bytes.u32();
        assert_eq!(key.as_slice(), number.to_be_bytes());
        let level = bytes.u8();
        let ids = bytes.u64()..=bytes.u64();
        let documents = bytes.u64();
        assert!(documents <= ids.end() - ids.start() + 1);
        let inputs = bytes.u64();
        let inputs = (0..inputs).map(|_| bytes.u32()).collect();
        let kept_up_to = bytes.u64();
        let rows_from = bytes.option(Bytes::u64);
        let count = bytes.u64();
        let lanes = (0..count).map(|_| {
            let lane = bytes.u16();
            let (postings, blocks, size) = (bytes.u64(), bytes.u64(), bytes.u64());
            let filter = bytes.option(|bytes| (bytes.u32(), bytes.u16(), bytes.u8()));
            let after = bytes.option(|bytes| (bytes.u64(), bytes.u64()));
            let last = bytes.option(|bytes| (bytes.u64(), bytes.u64()));
            let lane_of_run = Lane {
                postings,
                blocks,
                bytes: size,
                filter,
                after,
                last,
            };
            (lane, lane_of_run)
        });
        let lanes = lanes.collect();
        assert!(bytes.rest().is_empty());
        let run = Run {
            level,
            ids,
            documents,
            inputs,
            kept_up_to,
            rows_from,
            lanes,
        };
        runs.insert(number, run);
    }
    runs
}

fn read_dead(tables: &Tables) -> Dead {
    let mut dead = Dead::default();
    for (key, value) in &tables["dead"] {
        let first = number::<8>(key) * 16_000;
        let mut bytes = Bytes::open("dead", key, value);
        let kind = bytes.u8();
        assert!([1, 2].contains(&kind), "kind");
        let mut ids = || {
            let bits = bytes.take(2_000);
            let set = (0..16_000).filter(|i| bits[i / 8] >> (i % 8) & 1 == 1);
            set.map(|i| first + i as u64).collect::<Vec<_>>()
        };
        dead.before.extend(ids());
        if kind == 2 {
            dead.since.extend(ids());
        }
        assert!(bytes.rest().is_empty());
    }
    assert!(dead.before.is_disjoint(&dead.since));
    dead
}

fn read_equal(tables: &Tables) -> BTreeMap<u64, (u128, Option<u128>)> {
    let mut equal = BTreeMap::new();
    for (key, value) in &tables["equal"] {
        let first = number::<8>(key) * 16_000;
        let mut bytes = Bytes::open("equal", key, value);
        assert_eq!(bytes.u8(), 1, "kind");
        let classes = usize::from(bytes.u16());
        let digest = |bytes: &[u8]| u128::from_le_bytes(bytes.try_into().unwrap());
        let digests: Vec<u128> = (0..classes).map(|_| digest(bytes.take(16))).collect();
        assert!(classes > 0 && digests.is_sorted_by(|a, b| a < b));
        let noted = bytes.take(2_000).to_vec();
        let noted = (0..16_000).filter(|i| noted[i / 8] >> (i % 8) & 1 == 1);
        let noted: Vec<usize> = noted.collect();
        let width = (usize::BITS - (classes - 1).leading_zeros()) as usize;
        let packed = bytes.rest().to_vec();
        assert_eq!(packed.len(), (noted.len() * width).div_ceil(8));
        let bit = |position: usize| usize::from(packed[position / 8] >> (position % 8) & 1);
        let mut met = BTreeSet::new();
        for (index, offset) in noted.into_iter().enumerate() {
            let class: usize = (0..width).map(|i| bit(index * width + i) << i).sum();
            met.insert(class);
            let id = first + offset as u64;
            let row = tables["documents"].get(id.to_be_bytes().as_slice());
            equal.insert(id, (digests[class], row.map(|row| signature_digest(row))));
        }
        assert_eq!(met.len(), classes, "each class has a document");
    }
    equal
}

/// The digest of a signature, from its row.
fn signature_digest(row: &[u8]) -> u128 {
    let mut body = Bytes::new(&row[..row.len() - 4]);
    let head = read_head(&mut body);
    xxhash_rust::xxh3::xxh3_128_with_seed(body.rest(), u64::from(head.is_empty))
}

fn read_filters(tables: &Tables) -> BTreeMap<(u32, u16, u32), Vec<u8>> {
    let rows = tables["filters"].iter();
    rows.map(|(key, value)| (filters::split_key(key), filters::decode(key, value)))
        .collect()
}

/// The sets of chunks with their checksums, by the ids of documents. Section 2.10.
fn read_sets(tables: &Tables) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut sets = BTreeMap::new();
    for (key, value) in tables.get("sets").into_iter().flatten() {
        let mut bytes = Bytes::new(value);
        for is_first in std::iter::once(true).chain(std::iter::repeat(false)) {
            let difference = u64::from(bytes.u32());
            assert_eq!(difference == 0, is_first);
            let id = (number::<8>(key) + difference).to_be_bytes().to_vec();
            let length = bytes.u32() as usize;
            let ascends = sets.last_key_value().is_none_or(|(last, _)| *last < id);
            assert!(ascends, "sets of chunk {key:?}");
            sets.insert(id, bytes.take(length).to_vec());
            if bytes.rest().is_empty() {
                break;
            }
        }
    }
    sets
}

fn read_documents(tables: &Tables, schema: &Schema) -> BTreeMap<u64, Document> {
    let mut payloads = tables["payloads"].clone();
    let mut sets = read_sets(tables);
    let documents: BTreeMap<u64, Document> = tables["documents"]
        .iter()
        .map(|(row_key, value)| {
            let mut bytes = Bytes::open("documents", row_key, value);
            let (head, mut signature) = read_row(&mut bytes, schema);
            if schema.recipe.has_set() {
                let row = sets.remove(row_key).expect("the row of a set");
                let mut bytes = Bytes::open("sets", row_key, &row);
                decode_exact(&mut bytes, &schema.recipe, &mut signature);
                assert!(bytes.rest().is_empty());
            }
            let payload = head.has_payload.then(|| {
                let row = payloads.remove(row_key).expect("the row of a payload");
                let payload = Bytes::open("payloads", row_key, &row).rest().to_vec();
                assert!(!payload.is_empty());
                payload
            });
            let document = Document {
                key: head.key,
                stamp: head.stamp,
                payload: payload.unwrap_or_default(),
                signature,
            };
            (number::<8>(row_key), document)
        })
        .collect();
    assert!(payloads.is_empty(), "payloads of no document: {payloads:?}");
    assert!(sets.is_empty(), "sets of no document: {sets:?}");
    documents
}

/// The bytes before a signature.
pub(crate) struct Head {
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) stamp: u64,
    pub(crate) has_payload: bool,
    is_empty: bool,
}

fn read_head(bytes: &mut Bytes<'_>) -> Head {
    let first = bytes.u8();
    assert_eq!(first & 15, 1, "kind");
    let stamp = (first >> 6 & 1 == 1).then(|| bytes.u64());
    assert_ne!(stamp, Some(0));
    let key = (first >> 5 & 1 == 1).then(|| {
        let length = bytes.u16();
        bytes.take(length.into()).to_vec()
    });
    Head {
        key,
        stamp: stamp.unwrap_or(0),
        has_payload: first >> 7 & 1 == 1,
        is_empty: first >> 4 & 1 == 1,
    }
}

/// The body of a row, then the exact set, as in streams.
pub(crate) fn read_document(bytes: &mut Bytes<'_>, schema: &Schema) -> (Head, Signature) {
    let head = read_head(bytes);
    let mut signature = schema.decode_signature(bytes, head.is_empty);
    if schema.recipe.has_set() {
        decode_exact(bytes, &schema.recipe, &mut signature);
    }
    assert!(bytes.rest().is_empty());
    (head, signature)
}

/// The body of a row: the fields before the signature, and the signature.
fn read_row(bytes: &mut Bytes<'_>, schema: &Schema) -> (Head, Signature) {
    let head = read_head(bytes);
    let signature = schema.decode_signature(bytes, head.is_empty);
    assert!(bytes.rest().is_empty());
    (head, signature)
}

fn read_blocks(tables: &Tables) -> BTreeMap<&'static str, Vec<(Block, Vec<u8>)>> {
    let read = |table: &'static str| {
        let rows = tables[table].iter();
        let read = rows.map(|(key, value)| (blocks::decode(table, key, value), value.clone()));
        (table, read.collect())
    };
    ["keys", "bands", "permuted"].map(read).into()
}
