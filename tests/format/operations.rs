//! Bytes as a sequence of steps of the model in `tests/common`.

use resemblance::schema::{EmptyDocuments, Rebanding};
use resemblance::{Combine, MinHash, Schema, SimHash, Vector};

use crate::common::model::drawn::Drawn;
use crate::common::model::episode::Episode;
use crate::common::model::evictions::{Eviction, Which};
use crate::common::model::steps::{Change, KEYS, Member, Opened, Rebuild, Step, Stored};

/// The maximum number of steps and documents: slow inputs find little more.
const MOST_STEPS: usize = 24;
const MOST_DOCUMENTS: u64 = 120;

/// Runs the operations that the bytes encode. Creates stores in the folder for temporary files.
pub(crate) fn operations(data: &[u8]) {
    let mut input = Input {
        rest: data,
        documents: 0,
    };
    let (schema, opened) = (input.schema(), input.opened());
    let mut steps = Vec::new();
    while !input.rest.is_empty() && steps.len() < MOST_STEPS && input.documents < MOST_DOCUMENTS {
        steps.push(input.step());
    }
    Episode::new(&schema, &opened).run(&steps);
}

/// Reads numbers from the front of an input, and zeros after its end. Also limits the number of
/// documents.
struct Input<'d> {
    rest: &'d [u8],
    documents: u64,
}

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let (byte, rest) = self.rest.split_first().unwrap_or((&0, &[]));
        self.rest = rest;
        *byte
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()]
    }

    /// One of every kind, small.
    fn schema(&mut self) -> Schema {
        let small = || MinHash::new(16).banding(4, 3).threshold(0.5);
        let builder = Schema::builder().expected_documents(1_000);
        let builder = match self.byte() % 10 {
            0 => builder.minhash(small()),
            1 => builder.simhash(SimHash::bits64()),
            2 => builder
                .minhash(small())
                .simhash(SimHash::bits64().max_distance(2)),
            3 => {
                let both = builder.minhash(small()).simhash(SimHash::bits64());
                both.near(Combine::Both)
            }
            4 => builder
                .minhash(small().value_bits(4))
                .simhash(SimHash::bits128().max_distance(5)),
            5 => builder.minhash(MinHash::bottom_k(64).banding(2, 3).threshold(0.7)),
            6 => builder.minhash(MinHash::weighted(16).banding(4, 3).threshold(0.5)),
            7 => builder.minhash(small().value_bits(1).code_bits(64)),
            8 => builder.vector(Vector::cosine(6).values(64).banding(8, 6).threshold(0.9)),
            _ => {
                let external = MinHash::external(16).value_bits(8);
                builder.minhash(external.banding(8, 2).threshold(0.5))
            }
        };
        let empty = self.pick(&[EmptyDocuments::Distinct, EmptyDocuments::Alike]);
        builder.empty_documents(empty).build().unwrap()
    }

    /// From a flush with every commit to none.
    fn opened(&mut self) -> Opened {
        Opened {
            quick_repair: self.byte().is_multiple_of(2),
            ..Opened::sealing_after(self.pick(&[1, 3, 16, 60, 1_000]))
        }
    }

    fn key(&mut self) -> u8 {
        self.byte() % KEYS
    }

    fn optional_key(&mut self) -> Option<u8> {
        let key = self.byte();
        (key < 180).then_some(key % KEYS)
    }

    fn drawn(&mut self) -> Drawn {
        match self.byte() % 12 {
            0 => Drawn::Empty,
            1 => Drawn::LikeEmpty,
            2 => Drawn::Text(self.byte() % 8),
            3 => Drawn::Weighted(self.byte() % 4),
            4 | 5 => Drawn::Hot(u16::from(self.byte() % 50)),
            _ => Drawn::Near {
                family: self.byte() % 3,
                values: self.byte() % 7,
                bits: self.byte() % 6,
                at: self.byte() % 4,
            },
        }
    }

    fn stored(&mut self) -> Stored {
        Stored {
            stamp: u64::from(self.byte()) << 50,
            payload_bytes: self.pick(&[0, 1, 30, 1_000, 5_000]),
        }
    }

    fn members(&mut self, end: u8) -> Vec<Member> {
        let count = self.byte() % end;
        self.documents += u64::from(count);
        let member = |_| (self.optional_key(), self.drawn());
        (0..count).map(member).collect()
    }

    fn change(&mut self) -> Change {
        self.documents += 1;
        match self.byte() % 16 {
            0 => Change::Insert(self.key(), self.drawn()),
            1 => Change::Upsert(self.key(), self.drawn()),
            2 => Change::InsertIfNew(self.key(), self.drawn()),
            3 => Change::Append(self.drawn()),
            4 => Change::InsertDocument(self.optional_key(), self.drawn(), self.stored()),
            5 | 6 => Change::UpsertDocument(self.optional_key(), self.drawn(), self.stored()),
            7 => Change::InsertDocumentIfNew(self.optional_key(), self.drawn(), self.stored()),
            8 => Change::InsertMany(self.members(5)),
            9 => Change::InsertManyIfNew {
                documents: self.members(9),
                verified: self.byte().is_multiple_of(2),
            },
            10 => Change::UpsertAgain(self.key(), Some(self.stored())),
            11 => Change::UpsertAgain(self.key(), None),
            12 => Change::Touch(self.key(), u64::from(self.byte()) << 40),
            13 => Change::TouchId(self.byte(), u64::from(self.byte()) << 40),
            14 => Change::Remove(self.key()),
            _ => Change::RemoveId(self.byte()),
        }
    }

    fn rebanding(&mut self) -> Rebanding {
        let new = Rebanding::new();
        match self.byte() % 4 {
            0 => new.threshold(self.pick(&[0.5, 0.8, 1.0])),
            1 => new.banding(self.pick(&[0, 2, 4]), self.pick(&[1, 2, 4])),
            2 => new.max_distance(self.byte() % 10),
            _ => new.expected_documents(self.pick(&[1, 1_000, 100_000])),
        }
    }

    fn step(&mut self) -> Step {
        match self.byte() % 16 {
            0..=4 => {
                let count = self.byte() % 24;
                Step::Transaction {
                    changes: (0..count).map(|_| self.change()).collect(),
                    commit: !self.byte().is_multiple_of(5),
                    readers: 0,
                }
            }
            5 => {
                let documents = self.byte() % 64;
                self.documents += u64::from(documents);
                Step::Bulk {
                    documents,
                    remove_every: 1 + self.byte() % 16,
                    together: self.byte().is_multiple_of(2),
                    readers: 0,
                }
            }
            6 => Step::Reopen(self.opened()),
            7 => Step::Compact(self.opened()),
            8 => Step::Check,
            9 => Step::Hold,
            10 => Step::Release(self.byte()),
            11 => Step::ReadOnly,
            12 => {
                let which = match self.byte() % 3 {
                    0 => Which::OlderThan(self.byte()),
                    1 => Which::KeepNewest(self.byte()),
                    _ => Which::Keys(self.optional_key()),
                };
                let (slice, calls) = (self.pick(&[1, 4, 1_000]), self.pick(&[2, 5, 1_000]));
                Step::Evict(Eviction {
                    which,
                    slice,
                    calls,
                })
            }
            13 => Step::Rebuild(Rebuild {
                more: self.members(9),
                keep_first: self.byte().is_multiple_of(2),
                threads: 1,
                opened: self.opened(),
            }),
            14 => Step::Reband {
                rebanding: self.rebanding(),
                interrupted: self.byte().is_multiple_of(5),
            },
            _ => Step::One(self.change()),
        }
    }
}
