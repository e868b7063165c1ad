//! What a sequence consists of: plain data, so that it can be made shorter and printed.

use proptest::collection::vec;
use proptest::prelude::*;
use resemblance::StoreOptions;
use resemblance::schema::Rebanding;

use crate::model::drawn::{Drawn, drawn};
use crate::model::evictions::{Eviction, eviction};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    pub(crate) stamp: u64,
    payload_bytes: u16,
}

/// A document of a batch: its key, if it has one.
pub(crate) type Member = (Option<u8>, Drawn);

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Insert(u8, Drawn),
    Upsert(u8, Drawn),
    InsertIfNew(u8, Drawn),
    Append(Drawn),
    InsertDocument(Option<u8>, Drawn, Stored),
    UpsertDocument(Option<u8>, Drawn, Stored),
    InsertDocumentIfNew(Option<u8>, Drawn, Stored),
    InsertMany(Vec<Member>),
    InsertManyIfNew {
        documents: Vec<Member>,
        verified: bool,
    },
    /// The document under a key as it is, or with another stamp and payload.
    UpsertAgain(u8, Option<Stored>),
    Touch(u8, u64),
    TouchId(u8, u64),
    Remove(u8),
    RemoveId(u8),
    /// Bad input, which changes nothing.
    Refused(u8),
    /// Reads in the middle of a transaction.
    Read,
}

/// How a store is opened. None of it changes an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened {
    pub(crate) flush_after: u64,
    pub(crate) merge_slice: u64,
    pub(crate) in_parallel: bool,
    pub(crate) quick_repair: bool,
}

impl Opened {
    pub(crate) const fn sealing_after(flush_after: u64) -> Self {
        Self {
            flush_after,
            merge_slice: 50,
            in_parallel: false,
            quick_repair: false,
        }
    }

    pub(crate) fn options(&self) -> StoreOptions {
        StoreOptions::new()
            .cache_bytes(4 << 20)
            .flush_after(self.flush_after)
            .merge_slice(self.merge_slice)
            .merge_in_parallel(self.in_parallel)
            .quick_repair(self.quick_repair)
    }
}

/// What an offline build puts beside the documents that are there.
#[derive(Clone, Debug)]
pub(crate) struct Rebuild {
    pub(crate) more: Vec<Member>,
    pub(crate) keep_first: bool,
    pub(crate) threads: usize,
    pub(crate) opened: Opened,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Transaction {
        changes: Vec<Change>,
        commit: bool,
        /// Threads that read meanwhile.
        readers: u8,
    },
    One(Change),
    /// More documents than a seal takes, some of them removed again at once.
    Bulk {
        documents: u8,
        remove_every: u8,
        together: bool,
        readers: u8,
    },
    RemoveEvery(u8),
    Evict(Eviction),
    Hold,
    Release(u8),
    Reopen(Opened),
    ReadOnly,
    Check,
    Compact(Opened),
    /// The documents of the store, and some more, go on in one that is built offline.
    Rebuild(Rebuild),
    /// Other bands and tables; or a refusal, if the schema cannot have them.
    Reband {
        rebanding: Rebanding,
        interrupted: bool,
    },
}

pub(crate) fn stored() -> impl Strategy<Value = Stored> {
    let payload = prop_oneof![3 => 0..40u16, 1 => 3_000..9_000u16];
    (any::<u64>(), payload).prop_map(|(stamp, payload_bytes)| Stored {
        stamp,
        payload_bytes,
    })
}

/// Few, so that a document often has the same already.
fn stamp() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..20u64, 1 => any::<u64>()]
}

pub(crate) const KEYS: u8 = 16;

fn optional_key() -> impl Strategy<Value = Option<u8>> {
    proptest::option::weighted(0.7, 0..KEYS)
}

fn member() -> impl Strategy<Value = Member> {
    (optional_key(), drawn())
}

pub(crate) fn change() -> impl Strategy<Value = Change> {
    let key = || 0..KEYS;
    prop_oneof![
        2 => (key(), drawn()).prop_map(|(key, drawn)| Change::Insert(key, drawn)),
        3 => (key(), drawn()).prop_map(|(key, drawn)| Change::Upsert(key, drawn)),
        3 => (key(), drawn()).prop_map(|(key, drawn)| Change::InsertIfNew(key, drawn)),
        3 => drawn().prop_map(Change::Append),
        1 => (optional_key(), drawn(), stored())
            .prop_map(|(k, d, s)| Change::InsertDocument(k, d, s)),
        2 => (optional_key(), drawn(), stored())
            .prop_map(|(k, d, s)| Change::UpsertDocument(k, d, s)),
        2 => (optional_key(), drawn(), stored())
            .prop_map(|(k, d, s)| Change::InsertDocumentIfNew(k, d, s)),
        1 => vec(member(), 0..6).prop_map(Change::InsertMany),
        1 => (vec(member(), 0..12), any::<bool>())
            .prop_map(|(documents, verified)| Change::InsertManyIfNew { documents, verified }),
        2 => (key(), proptest::option::of(stored())).prop_map(|(k, s)| Change::UpsertAgain(k, s)),
        2 => (key(), stamp()).prop_map(|(key, stamp)| Change::Touch(key, stamp)),
        2 => (any::<u8>(), stamp()).prop_map(|(id, stamp)| Change::TouchId(id, stamp)),
        3 => key().prop_map(Change::Remove),
        2 => any::<u8>().prop_map(Change::RemoveId),
        1 => (0..4u8).prop_map(Change::Refused),
        1 => Just(Change::Read),
    ]
}

pub(crate) fn opened() -> impl Strategy<Value = Opened> {
    let flush_after = proptest::sample::select(&[1_000, 50, 16, 3, 1][..]);
    let merge_slice = proptest::sample::select(&[50, 1, 44_800][..]);
    let options = (flush_after, merge_slice, any::<bool>(), any::<bool>());
    options.prop_map(
        |(flush_after, merge_slice, in_parallel, quick_repair)| Opened {
            flush_after,
            merge_slice,
            in_parallel,
            quick_repair,
        },
    )
}

fn rebuild() -> impl Strategy<Value = Rebuild> {
    let parts = (vec(member(), 0..12), any::<bool>(), 1..3usize, opened());
    parts.prop_map(|(more, keep_first, threads, opened)| Rebuild {
        more,
        keep_first,
        threads,
        opened,
    })
}

/// A change of bands that has one or two parts, some of them out of range.
fn rebanding() -> impl Strategy<Value = Rebanding> {
    let part = prop_oneof![
        3 => proptest::sample::select(&[0.4, 0.5, 0.8, 1.0, 1.5][..]).prop_map(Part::Threshold),
        2 => proptest::sample::select(&[0.5, 0.9, 1.0][..]).prop_map(Part::Recall),
        3 => (0..6u16, 1..9u16).prop_map(|(bands, rows)| Part::Banding(bands, rows)),
        1 => proptest::sample::select(&[32, 40, 64, 65][..]).prop_map(Part::CodeBits),
        3 => (0..10u8).prop_map(Part::Distance),
        2 => proptest::sample::select(&[1, 20, 1_000, 100_000][..]).prop_map(Part::Documents),
    ];
    vec(part, 0..3).prop_map(|parts| {
        parts
            .into_iter()
            .fold(Rebanding::new(), |all, part| match part {
                Part::Threshold(threshold) => all.threshold(threshold),
                Part::Recall(recall) => all.recall(recall),
                Part::Banding(bands, rows) => all.banding(bands, rows),
                Part::CodeBits(bits) => all.code_bits(bits),
                Part::Distance(distance) => all.max_distance(distance),
                Part::Documents(documents) => all.expected_documents(documents),
            })
    })
}

#[derive(Clone, Copy, Debug)]
enum Part {
    Threshold(f64),
    Recall(f64),
    Banding(u16, u16),
    CodeBits(u8),
    Distance(u8),
    Documents(u64),
}

fn readers() -> impl Strategy<Value = u8> {
    prop_oneof![5 => Just(0), 1 => Just(1), 2 => Just(2)]
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (vec(change(), 0..20), proptest::bool::weighted(0.8), readers())
            .prop_map(|(changes, commit, readers)| Step::Transaction { changes, commit, readers }),
        6 => change().prop_map(Step::One),
        2 => (20..120u8, 1..8u8, any::<bool>(), readers())
            .prop_map(|(documents, remove_every, together, readers)| Step::Bulk {
                documents, remove_every, together, readers
            }),
        2 => (1..4u8).prop_map(Step::RemoveEvery),
        2 => eviction().prop_map(Step::Evict),
        2 => Just(Step::Hold),
        2 => any::<u8>().prop_map(Step::Release),
        3 => opened().prop_map(Step::Reopen),
        1 => Just(Step::ReadOnly),
        2 => Just(Step::Check),
        2 => opened().prop_map(Step::Compact),
        1 => rebuild().prop_map(Step::Rebuild),
        2 => (rebanding(), proptest::bool::weighted(0.2))
            .prop_map(|(rebanding, interrupted)| Step::Reband { rebanding, interrupted }),
    ]
}

pub(crate) fn key_bytes(key: u8) -> Vec<u8> {
    match key {
        0 => Vec::new(),
        1 => vec![b'k'; 4_096],
        2 => vec![0xff, 0xfe, 0, 0xc3, 0x28],
        3 => vec![0],
        _ => format!("https://example.org/{key}").into_bytes(),
    }
}

pub(crate) fn all_keys() -> Vec<Vec<u8>> {
    (0..KEYS + 1).map(key_bytes).collect()
}

pub(crate) fn payload(stored: Stored) -> Vec<u8> {
    let bytes = (0..stored.payload_bytes).map(|i| (i ^ stored.stamp as u16) as u8);
    bytes.collect()
}
