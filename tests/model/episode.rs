//! A store that goes through a sequence of steps beside its model.

use std::path::PathBuf;

use resemblance::{DocumentId, Error, Schema, Signature, Snapshot, Store};

use crate::changes::{entry, in_transaction, one_call};
use crate::common::oracle::Model;
use crate::common::verify::{all_reads, some_queries, whole_snapshot};
use crate::common::{Place, Random, check_clean, sealing_after};
use crate::steps::{Change, Drawn, Step, all_keys, signature};

/// A store, what should be in it, and what older snapshots should still show.
pub(crate) struct Episode {
    place: Place,
    store: Option<Store>,
    model: Model,
    held: Vec<(Snapshot, Model)>,
    keys: Vec<Vec<u8>>,
    strangers: Vec<Signature>,
    random: Random,
}

/// Which commits seal: from each one to almost none.
pub(crate) const SEALS: [u64; 5] = [1, 3, 16, 50, 1_000];

impl Episode {
    pub(crate) fn new(schema: &Schema, seal_after: u64) -> Self {
        let place = Place::new();
        let options = sealing_after(seal_after);
        let store = Store::create_with(place.store(), schema.clone(), &options).unwrap();
        let strangers = [
            Drawn::Empty,
            Drawn::LikeEmpty,
            Drawn::Hot(999),
            Drawn::Near {
                family: 0,
                values: 1,
                bits: 1,
                at: 9,
            },
            Drawn::Near {
                family: 77,
                values: 0,
                bits: 0,
                at: 0,
            },
        ];
        Self {
            place,
            store: Some(store),
            model: Model::new(schema.clone()),
            held: Vec::new(),
            keys: all_keys(),
            strangers: strangers.map(|drawn| signature(schema, drawn)).into(),
            random: Random(1),
        }
    }

    fn path(&self) -> PathBuf {
        self.place.store()
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    pub(crate) fn run(mut self, steps: &[Step]) {
        for step in steps {
            self.step(step);
            let snapshot = self.store().snapshot().unwrap();
            assert_eq!(
                snapshot.len(),
                self.model.documents.len() as u64,
                "{step:?}"
            );
            some_queries(&snapshot, &self.model, &self.strangers, &mut self.random, 2);
        }
        self.whole(&self.store().snapshot().unwrap(), &self.model);
        self.reopen(50);
        self.whole(&self.store().snapshot().unwrap(), &self.model);
        self.store = None;
        check_clean(&self.path());
    }

    fn whole(&self, snapshot: &Snapshot, model: &Model) {
        let mut random = Random(self.model.next_id);
        whole_snapshot(snapshot, model, &self.keys, &self.strangers, &mut random);
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Transaction { changes, commit } => self.transaction(changes, *commit),
            Step::One(change) => {
                let store = self.store().clone();
                one_call(&store, &mut self.model, change);
            }
            Step::Bulk {
                documents,
                remove_every,
            } => self.bulk(*documents, *remove_every),
            Step::RemoveEvery(every) => {
                let ids = self.model.documents.keys().copied();
                let ids: Vec<u64> = ids.filter(|id| id % u64::from(*every) == 0).collect();
                let mut transaction = self.store().begin_write().unwrap();
                for id in ids {
                    assert!(transaction.remove_id(DocumentId::new(id)).unwrap());
                    self.model.documents.remove(&id);
                }
                transaction.commit().unwrap();
            }
            Step::Hold => {
                let snapshot = self.store().snapshot().unwrap();
                self.held.push((snapshot, self.model.clone()));
            }
            Step::Release(which) => {
                if !self.held.is_empty() {
                    let index = usize::from(*which) % self.held.len();
                    let (snapshot, model) = self.held.swap_remove(index);
                    self.whole(&snapshot, &model);
                }
            }
            Step::Reopen(which) => {
                let seal_after = SEALS[usize::from(*which) % SEALS.len()];
                self.reopen(seal_after);
            }
            Step::Check => {
                let report = self.store().snapshot().unwrap().check().unwrap();
                assert!(report.is_clean(), "{:#?}", report.problems);
                assert_eq!(report.documents, self.model.documents.len() as u64);
                self.close();
                check_clean(&self.path());
                self.reopen(16);
            }
            Step::Compact => {
                self.close();
                let report = Store::compact(self.path()).unwrap();
                assert!(
                    report.size_after_bytes <= report.size_before_bytes,
                    "{report:?}"
                );
                self.reopen(3);
                let stats = self.store().snapshot().unwrap().stats().unwrap();
                assert!(stats.runs.len() <= 1, "{:?}", stats.runs);
                assert!(
                    stats.runs.iter().all(|run| run.dead == 0),
                    "{:?}",
                    stats.runs
                );
                assert_eq!(stats.documents, self.model.documents.len() as u64);
                assert_eq!(stats.next_id, self.model.next_id);
            }
            Step::ReadOnly => {
                self.close();
                let store = Store::open_read_only(self.path()).unwrap();
                self.whole(&store.snapshot().unwrap(), &self.model);
                assert!(matches!(store.begin_write(), Err(Error::ReadOnly)));
                drop(store);
                self.reopen(16);
            }
        }
    }

    /// Drops all handles, after a last look through each held snapshot.
    fn close(&mut self) {
        self.store = None;
        for (snapshot, model) in std::mem::take(&mut self.held) {
            self.whole(&snapshot, &model);
        }
    }

    fn reopen(&mut self, seal_after: u64) {
        self.close();
        let options = sealing_after(seal_after);
        let store = Store::open_with(self.path(), &options).unwrap();
        assert_eq!(store.schema(), &self.model.schema);
        self.store = Some(store);
    }

    fn transaction(&mut self, changes: &[Change], commit: bool) {
        let mut model = self.model.clone();
        let mut transaction = self.store().begin_write().unwrap();
        for change in changes {
            if matches!(change, Change::Read) {
                all_reads(&transaction, &model, &self.keys);
                some_queries(&transaction, &model, &self.strangers, &mut self.random, 5);
            } else {
                in_transaction(&mut transaction, &mut model, change);
            }
            assert_eq!(transaction.len(), model.documents.len() as u64);
        }
        if commit {
            transaction.commit().unwrap();
            self.model = model;
        }
    }

    fn bulk(&mut self, documents: u8, remove_every: u8) {
        let mut transaction = self.store().begin_write().unwrap();
        for number in 0..u64::from(documents) {
            let drawn = if number % 3 == 0 {
                Drawn::Hot(self.random.below(50) as u16)
            } else {
                Drawn::Near {
                    family: self.random.below(6) as u8,
                    values: self.random.below(4) as u8,
                    bits: self.random.below(4) as u8,
                    at: self.random.below(4) as u8,
                }
            };
            let signature = signature(&self.model.schema, drawn);
            let id = transaction.append(&signature).unwrap();
            let expected = self.model.insert(entry(None, signature, None));
            assert_eq!(id.get(), expected);
            if number % u64::from(remove_every) == 0 {
                let id = self.random.below(self.model.next_id);
                let removed = transaction.remove_id(DocumentId::new(id)).unwrap();
                assert_eq!(removed, self.model.documents.remove(&id).is_some());
            }
        }
        some_queries(
            &transaction,
            &self.model,
            &self.strangers,
            &mut self.random,
            5,
        );
        transaction.commit().unwrap();
    }
}
