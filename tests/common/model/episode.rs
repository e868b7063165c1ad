//! Runs a sequence of steps on a store and on its model.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use resemblance::schema::Rebanding;
use resemblance::{
    BulkOptions, DocumentId, Error, Pairs, Records, Schema, Signature, Snapshot, Store,
};

use crate::common::model::changes::{entries, in_transaction, one_call};
use crate::common::model::drawn::{Drawn, strangers};
use crate::common::model::evictions::evict;
use crate::common::model::readers::{Asked, while_read};
use crate::common::model::steps::{Change, Member, Opened, Step, all_keys};
use crate::common::oracle::{Entry, Model};
use crate::common::question::Question;
use crate::common::verify::{all_reads, same_record, some_queries, whole_snapshot};
use crate::common::{Place, Random, check_clean, impatient};

/// Steps that were taken, and changes that were made, by all tests of the process.
pub(crate) static STEPS: AtomicU64 = AtomicU64::new(0);
pub(crate) static CHANGES: AtomicU64 = AtomicU64::new(0);

/// A store, what should be in it, and what older snapshots should still show.
pub(crate) struct Episode {
    pub(crate) place: Place,
    /// How many stores there were before this one.
    pub(crate) built: u32,
    store: Option<Store>,
    pub(crate) model: Model,
    held: Vec<(Snapshot, Model)>,
    started: Vec<Started>,
    keys: Vec<Vec<u8>>,
    strangers: Vec<Signature>,
    random: Random,
}

/// Iterators that have been read in part.
struct Started {
    model: Model,
    records: Records,
    read: usize,
    pairs: Pairs,
    found: usize,
}

impl Episode {
    pub(crate) fn new(schema: &Schema, opened: &Opened) -> Self {
        let place = Place::new();
        let path = place.store();
        let store = opened.options().create(path, schema.clone()).unwrap();
        Self {
            place,
            built: 0,
            store: Some(store),
            model: Model::new(schema.clone()),
            held: Vec::new(),
            started: Vec::new(),
            keys: all_keys(),
            strangers: strangers(schema),
            random: Random(1),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        match self.built {
            0 => self.place.store(),
            built => self.place.file(&format!("store-{built}.rsm")),
        }
    }

    pub(crate) fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    pub(crate) fn run(mut self, steps: &[Step]) {
        for step in steps {
            STEPS.fetch_add(1, Relaxed);
            self.step(step);
            let snapshot = self.store().snapshot().unwrap();
            assert_eq!(
                snapshot.len(),
                self.model.documents.len() as u64,
                "{step:?}"
            );
            self.model.same_clusters(&snapshot);
            some_queries(&snapshot, &self.model, &self.strangers, &mut self.random, 2);
        }
        self.whole(&self.store().snapshot().unwrap(), &self.model);
        self.reopen(&Opened::sealing_after(50));
        self.whole(&self.store().snapshot().unwrap(), &self.model);
        self.copy();
        self.store = None;
        check_clean(&self.path());
    }

    /// A copy, made in one of three ways, has the same answers. Ids are those of the store, or start
    /// again in a stream.
    fn copy(&mut self) {
        let (path, options) = (
            self.place.file("copy.rsm"),
            Opened::sealing_after(20).options(),
        );
        let mut model = self.model.clone();
        match self.model.next_id % 3 {
            0 => {
                let snapshot = self.store().snapshot().unwrap();
                let report = snapshot.backup(&path).run().unwrap();
                assert_eq!(report.documents, snapshot.len());
            }
            1 => {
                let mut stream = Vec::new();
                let snapshot = self.store().snapshot().unwrap();
                snapshot.export(&mut stream).run().unwrap();
                model = Model::new(model.schema);
                self.all_entries(&[]).into_iter().for_each(|entry| {
                    model.insert(entry);
                });
                let copy = options.create(&path, model.schema.clone()).unwrap();
                let import = copy.import(&stream[..]).transaction_documents(33);
                assert_eq!(import.run().unwrap().inserted, model.next_id);
            }
            _ => {
                self.close();
                let report = Store::repair(self.path(), &path).run().unwrap();
                assert!(report.is_complete(), "{report:?}");
                // A star depends on the order of changes, and is found again in that of the ids.
                model.relink();
            }
        }
        let copy = options.open(&path).unwrap();
        self.whole(&copy.snapshot().unwrap(), &model);
        drop(copy);
        check_clean(&path);
    }

    fn whole(&self, snapshot: &Snapshot, model: &Model) {
        let mut random = Random(self.model.next_id);
        whole_snapshot(snapshot, model, &self.keys, &self.strangers, &mut random);
        model.same_clusters(snapshot);
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Transaction {
                changes,
                commit,
                readers,
            } => self.transaction(changes, *commit, *readers),
            Step::One(change) => {
                CHANGES.fetch_add(1, Relaxed);
                let store = self.store().clone();
                one_call(&store, &mut self.model, change);
            }
            Step::Bulk {
                documents,
                remove_every,
                together,
                readers,
            } => self.bulk(*documents, *remove_every, *together, *readers),
            Step::RemoveEvery(every) => self.remove_every(*every),
            Step::Evict(eviction) => {
                let store = self.store().clone();
                evict(&store, &mut self.model, eviction);
            }
            Step::Hold => self.hold(),
            Step::Release(which) => {
                if !self.held.is_empty() {
                    let index = usize::from(*which) % self.held.len();
                    let (snapshot, model) = self.held.swap_remove(index);
                    self.whole(&snapshot, &model);
                    self.started.swap_remove(index).finish();
                }
            }
            Step::Reopen(opened) => self.reopen(opened),
            Step::Check => self.check(),
            Step::Compact(opened) => self.compact(opened),
            Step::ReadOnly => self.read_only(),
            Step::Rebuild(rebuild) => self.rebuild(rebuild),
            Step::Reband {
                rebanding,
                interrupted,
            } => self.reband(rebanding, *interrupted),
        }
    }

    fn hold(&mut self) {
        let snapshot = self.store().snapshot().unwrap();
        let started = Started::new(&snapshot, &self.model);
        self.started.push(started);
        self.held.push((snapshot, self.model.clone()));
    }

    fn remove_every(&mut self, every: u8) {
        let ids = self.model.documents.keys().copied();
        let ids: Vec<u64> = ids.filter(|id| id % u64::from(every) == 0).collect();
        CHANGES.fetch_add(ids.len() as u64, Relaxed);
        let mut transaction = self.store().begin_write().unwrap();
        for id in ids {
            assert!(transaction.remove_id(DocumentId::new(id)).unwrap());
            self.model.remove(id);
        }
        transaction.commit().unwrap();
    }

    fn check(&mut self) {
        self.is_locked();
        let report = self.store().snapshot().unwrap().check().run().unwrap();
        assert!(report.is_clean(), "{:#?}", report.problems);
        assert_eq!(report.documents, self.model.documents.len() as u64);
        self.close();
        check_clean(&self.path());
        self.reopen(&Opened::sealing_after(16));
    }

    /// Opening the file separately must fail because another handle has it open.
    fn is_locked(&self) {
        let (path, options) = (self.path(), BulkOptions::new());
        let rebanding = Rebanding::new().expected_documents(2);
        for refused in [
            impatient().open(&path).err(),
            impatient().compact(&path).run().err(),
            Store::reband(&path, &rebanding)
                .bulk(options.clone().store(impatient()))
                .run()
                .err(),
        ] {
            assert!(matches!(refused, Some(Error::Locked { .. })), "{refused:?}");
        }
        let again = Store::create(&path, self.model.schema.clone());
        assert!(matches!(again, Err(Error::AlreadyExists { .. })));
    }

    fn compact(&mut self, opened: &Opened) {
        self.close();
        let report = opened.options().compact(self.path()).run().unwrap();
        let (before, after) = (report.size_before_bytes, report.size_after_bytes);
        assert!(after <= before, "{report:?}");
        self.reopen(opened);
        let stats = self.store().snapshot().unwrap().stats().run().unwrap();
        assert!(stats.runs.len() <= 1, "{:?}", stats.runs);
        let dead: u64 = stats.runs.iter().map(|run| run.dead).sum();
        assert_eq!((dead, stats.dead_rows), (0, 0), "{:?}", stats.runs);
        assert_eq!(stats.documents, self.model.documents.len() as u64);
        assert_eq!(stats.next_id, self.model.next_id);
    }

    fn read_only(&mut self) {
        self.close();
        let store = Store::open_read_only(self.path()).unwrap();
        let beside = Store::open_read_only(self.path()).unwrap();
        self.whole(&store.snapshot().unwrap(), &self.model);
        self.whole(&beside.snapshot().unwrap(), &self.model);
        assert!(matches!(store.begin_write(), Err(Error::ReadOnly)));
        drop((store, beside));
        self.reopen(&Opened::sealing_after(16));
    }

    /// Drops all handles, after a last look through each held snapshot.
    pub(crate) fn close(&mut self) {
        self.store = None;
        for (snapshot, model) in std::mem::take(&mut self.held) {
            self.whole(&snapshot, &model);
        }
        for started in self.started.drain(..) {
            started.finish();
        }
    }

    pub(crate) fn reopen(&mut self, opened: &Opened) {
        self.close();
        let store = opened.options().open(self.path()).unwrap();
        assert_eq!(store.schema(), &self.model.schema);
        self.store = Some(store);
    }

    fn transaction(&mut self, changes: &[Change], commit: bool, readers: u8) {
        CHANGES.fetch_add(changes.len() as u64, Relaxed);
        let store = self.store().clone();
        let asked = Asked {
            keys: &self.keys,
            strangers: &self.strangers,
        };
        let random = &mut self.random;
        let before = &self.model;
        let after = while_read(&store, before, &self.held, &asked, readers, |news| {
            let mut model = before.clone();
            let mut transaction = store.begin_write().unwrap();
            assert!(matches!(store.begin_write(), Err(Error::Busy)));
            assert!(matches!(store.try_begin_write(), Err(Error::Busy)));
            for change in changes {
                if matches!(change, Change::Read) {
                    all_reads(&transaction, &model, asked.keys);
                    some_queries(&transaction, &model, asked.strangers, random, 5);
                } else {
                    in_transaction(&mut transaction, &mut model, change);
                }
                let documents = model.documents.len() as u64;
                assert_eq!(transaction.len(), documents);
            }
            if !commit {
                return None;
            }
            news.commits(&model);
            transaction.commit().unwrap();
            news.committed();
            Some(model)
        });
        self.model = after.unwrap_or_else(|| self.model.clone());
    }

    fn bulk(&mut self, documents: u8, remove_every: u8, together: bool, readers: u8) {
        let random = &mut self.random;
        let drawn = |number: u8| match number % 3 {
            0 => Drawn::Hot(random.below(50) as u16),
            _ => Drawn::Near {
                family: random.below(6) as u8,
                values: random.below(4) as u8,
                bits: random.below(4) as u8,
                at: random.below(4) as u8,
            },
        };
        let members: Vec<Member> = (0..documents).map(drawn).map(|d| (None, d)).collect();
        let removals: Vec<Change> = (0..documents / remove_every)
            .map(|_| Change::RemoveId(random.next() as u8))
            .collect();
        let mut changes = vec![Change::InsertMany(members.clone())];
        if !together {
            changes = members.iter().map(|(_, d)| Change::Append(*d)).collect();
        }
        changes.extend(removals);
        changes.push(Change::Read);
        self.transaction(&changes, true, readers);
    }

    /// Returns the current documents in order, and the same number of new ones.
    pub(crate) fn all_entries(&self, more: &[Member]) -> Vec<Entry> {
        let there = self.model.documents.values();
        let there = there.map(|document| Entry::clone(document));
        there.chain(entries(&self.model, more)).collect()
    }
}

impl Started {
    fn new(snapshot: &Snapshot, model: &Model) -> Self {
        let (read, found) = (model.documents.len() / 2, 1);
        let bounds = Question::default().bounds();
        let mut started = Self {
            model: model.clone(),
            records: snapshot.iter(),
            read,
            pairs: snapshot.pairs().bounds(bounds).run().unwrap(),
            found,
        };
        started.same_records(0, read);
        started.found = started.pairs.by_ref().take(found).count();
        started
    }

    fn same_records(&mut self, from: usize, to: usize) {
        let expected = self.model.documents.iter();
        for (id, entry) in expected.skip(from).take(to - from) {
            let record = self.records.next().unwrap().unwrap();
            same_record(&self.model.schema, &record, *id, entry);
        }
    }

    /// The rest is what it was when the iterators were made.
    fn finish(mut self) {
        self.same_records(self.read, self.model.documents.len());
        assert!(self.records.next().is_none());
        let expected = self.model.pairs(&Question::default()).unwrap();
        let rest = self.pairs.map(Result::unwrap).count();
        assert_eq!(self.found + rest, expected.len());
    }
}
