//! The steps of a sequence, as plain data, so that it can be shortened and printed.

use resemblance::StoreOptions;
use resemblance::schema::Rebanding;

use crate::common::model::drawn::Drawn;
use crate::common::model::evictions::Eviction;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    pub(crate) stamp: u64,
    pub(crate) payload_bytes: u16,
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

/// The documents that an offline build adds to the existing ones.
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
    /// More documents than a flush takes, some of which are removed at once.
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

pub(crate) const KEYS: u8 = 16;

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
