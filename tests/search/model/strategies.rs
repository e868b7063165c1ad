//! How sequences are drawn: the strategies of their steps.

use proptest::collection::vec;
use proptest::prelude::*;
use resemblance::schema::Rebanding;

use crate::common::model::drawn::Drawn;
use crate::common::model::evictions::{Eviction, Which};
use crate::common::model::steps::{Change, KEYS, Member, Opened, Rebuild, Step, Stored};

fn drawn() -> impl Strategy<Value = Drawn> {
    prop_oneof![
        8 => (0..3u8, 0..7u8, 0..6u8, 0..4u8).prop_map(|(family, values, bits, at)| Drawn::Near {
            family, values, bits, at
        }),
        3 => (0..50u16).prop_map(Drawn::Hot),
        2 => (0..8u8).prop_map(Drawn::Text),
        1 => (0..4u8).prop_map(Drawn::Weighted),
        2 => Just(Drawn::Empty),
        1 => Just(Drawn::LikeEmpty),
    ]
}

fn eviction() -> impl Strategy<Value = Eviction> {
    let which = prop_oneof![
        (0..160u8).prop_map(Which::OlderThan),
        (90..=255u8).prop_map(Which::KeepNewest),
        proptest::option::of(any::<u8>()).prop_map(Which::Keys),
    ];
    let slice = proptest::sample::select(&[1, 4, 1_000][..]);
    let calls = proptest::sample::select(&[2, 5, 1_000][..]);
    (which, slice, calls).prop_map(|(which, slice, calls)| Eviction {
        which,
        slice,
        calls,
    })
}

fn stored() -> impl Strategy<Value = Stored> {
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

fn optional_key() -> impl Strategy<Value = Option<u8>> {
    proptest::option::weighted(0.7, 0..KEYS)
}

fn member() -> impl Strategy<Value = Member> {
    (optional_key(), drawn())
}

fn change() -> impl Strategy<Value = Change> {
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
