//! The operations on the stores of a disk, and the contents of the stores after each call.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use resemblance::schema::{ClusterBounds, Rebanding};
use resemblance::{
    BulkOptions, DocumentId, EvictPolicy, Files, MinHash, Schema, Signature, SimHash, Store,
    StoreOptions, WriteTransaction,
};

use crate::common::oracle::{Entry, Model};
use crate::common::{Random, stats};
use crate::crash::disk::{self, Disk, Image};

/// The stores that there are.
pub(crate) type World = BTreeMap<PathBuf, Arc<Model>>;

/// A call that changed what is in the stores: it was under way from one position of the log to another.
pub(crate) struct Call {
    pub(crate) what: &'static str,
    pub(crate) begin: usize,
    pub(crate) end: usize,
    pub(crate) after: World,
}

/// All that was done.
pub(crate) struct Course {
    pub(crate) changes: Vec<disk::Change>,
    pub(crate) calls: Vec<Call>,
    pub(crate) seen: Seen,
}

/// How often something was under way, without which the workload would show little.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Merges after a transaction.
    pub(crate) merges: u64,
    /// The number of operations with rows of removed documents to drop.
    pub(crate) dropping: u64,
    /// Transactions that wrote before their commit.
    pub(crate) overflows: u64,
    /// Transactions that were given up.
    pub(crate) aborts: u64,
}

impl Course {
    /// Returns the contents of the stores after a number of changes: those after the last completed
    /// call, and those that the current call would leave.
    pub(crate) fn expected(&self, position: usize) -> (World, World, &'static str) {
        let done = self.calls.partition_point(|call| call.end <= position);
        let before = done
            .checked_sub(1)
            .map(|last| self.calls[last].after.clone());
        let before = before.unwrap_or_default();
        match self.calls.get(done).filter(|call| call.begin < position) {
            Some(call) => (before, call.after.clone(), call.what),
            None => (before.clone(), before, "nothing"),
        }
    }
}

pub(crate) const FIRST: &str = "first.rsm";
pub(crate) const BUILT: &str = "built.rsm";
const COPY: &str = "copy.rsm";

fn minhash() -> MinHash {
    MinHash::new(16).banding(4, 4).threshold(0.8)
}

/// The schemas of the workloads.
pub(crate) fn schemas() -> Vec<(&'static str, Schema)> {
    let simhash = || SimHash::bits64().max_distance(3);
    let builders = [
        ("minhash", Schema::builder().minhash(minhash())),
        ("simhash", Schema::builder().simhash(simhash())),
        (
            "both",
            Schema::builder().minhash(minhash()).simhash(simhash()),
        ),
        (
            "few bits",
            Schema::builder().minhash(minhash().value_bits(4)),
        ),
        (
            "clusters",
            Schema::builder()
                .minhash(minhash())
                .clusters(ClusterBounds::default()),
        ),
    ];
    let build = |(name, builder): (_, resemblance::SchemaBuilder)| {
        (name, builder.expected_documents(1_000).build().unwrap())
    };
    builders.map(build).into()
}

/// Returns a signature of a family whose members are equal or nearly so.
pub(crate) fn signature(schema: &Schema, random: &mut Random) -> Signature {
    let mut family = Random(random.below(60));
    let mut fingerprint = family.next();
    let mut values: Vec<u32> = (0..16).map(|_| family.next() as u32).collect();
    for _ in 0..random.below(3) {
        values[random.below(16) as usize] ^= 1 << random.below(32);
        fingerprint ^= 1 << random.below(64);
    }
    let values = schema.minhash().map(|_| values);
    Signature::from_parts(values, schema.simhash().map(|_| fingerprint))
}

pub(crate) fn key(number: u64) -> Vec<u8> {
    format!("document {number}").into_bytes()
}

pub(crate) fn options(files: Arc<dyn Files>, random: &mut Random) -> StoreOptions {
    // A separate generator, so that the workloads do not change.
    let mut journal = Random(random.0);
    StoreOptions::new()
        .files(files)
        .flush_after(random.pick(&[4, 8, 8, 30]))
        .merge_slice(random.pick(&[20, 50]))
        .merge_in_parallel(random.below(2) == 0)
        .quick_repair(random.below(3) == 0)
        // Few commits fill the journal, or some are too large for it.
        .journal(
            journal.pick(&[64, 96, 128, 128]) << 10,
            journal.pick(&[0, 1, 4]),
        )
        .shared_writers(journal.below(3) == 0)
        // the least: large transactions overflow the buffer of writes
        .cache_bytes(1 << 20)
}

/// Other bands or tables for a schema.
pub(crate) fn rebanding(schema: &Schema, random: &mut Random) -> Rebanding {
    let (bands, rows) = random.pick(&[(8, 2), (4, 4), (2, 8), (5, 3)]);
    let mut rebanding = Rebanding::new();
    if schema.minhash().is_some() {
        rebanding = rebanding.banding(bands, rows);
    }
    if schema.simhash().is_some() {
        rebanding = rebanding.max_distance(random.pick(&[2, 3, 4]));
    }
    rebanding
}

/// The same documents by another schema.
pub(crate) fn rebanded(model: &Model, rebanding: &Rebanding) -> Model {
    let mut other = model.clone();
    other.refile(model.schema.rebanded(rebanding).unwrap());
    other.relink();
    other
}

fn entry(key: Option<Vec<u8>>, payload_bytes: u64, schema: &Schema, random: &mut Random) -> Entry {
    Entry {
        key,
        signature: signature(schema, random),
        stamp: random.below(1_000),
        payload: (0..payload_bytes).map(|_| random.next() as u8).collect(),
    }
}

/// A change that fits what is in a model.
pub(crate) enum Change {
    Remove(Vec<u8>),
    RemoveId(u64),
    Touch(Vec<u8>, u64),
    Insert(Entry),
    InsertMany(Entry),
    Upsert(Entry),
}

impl Change {
    pub(crate) fn draw(model: &Model, payload_bytes: u64, random: &mut Random) -> Self {
        let key = key(random.below(150));
        let is_there = model.id_of(&key).is_some();
        match random.below(10) {
            0..2 if model.next_id > 0 => Self::RemoveId(random.below(model.next_id)),
            2 if is_there => Self::Remove(key),
            3 if is_there => Self::Touch(key, random.below(1_000)),
            kind => {
                let key = (kind > 3).then_some(key);
                let entry = entry(key, payload_bytes, &model.schema, random);
                match kind {
                    _ if is_there => Self::Upsert(entry),
                    4 => Self::InsertMany(entry),
                    _ => Self::Insert(entry),
                }
            }
        }
    }

    /// Makes the change in the model, and in a transaction that must answer as the model does.
    pub(crate) fn make(
        self,
        transaction: Option<&mut WriteTransaction>,
        model: &mut Model,
    ) -> resemblance::Result<()> {
        match self {
            Self::Remove(key) => {
                let removed = transaction.map(|it| it.remove(&key)).transpose()?;
                let expected = model.remove_key(&key);
                assert!(removed.is_none_or(|it| it.map(DocumentId::get) == expected));
            }
            Self::RemoveId(id) => {
                let removed = transaction.map(|it| it.remove_id(DocumentId::new(id)));
                let removed = removed.transpose()?;
                let expected = model.remove(id);
                assert!(removed.is_none_or(|it| it == expected));
            }
            Self::Touch(key, stamp) => {
                let touched = transaction.map(|it| it.touch(&key, stamp)).transpose()?;
                let id = model.id_of(&key);
                assert!(touched.is_none_or(|it| it.map(DocumentId::get) == id));
                id.map(|id| model.touch(id, stamp));
            }
            Self::Upsert(entry) => {
                let upserted = transaction.map(|it| it.upsert(entry.document(), &entry.signature));
                let upserted = upserted.transpose()?;
                let expected = model.upsert(entry);
                upserted.inspect(|upserted| expected.same(upserted));
            }
            Self::InsertMany(entry) => {
                let batch = [(entry.document(), &entry.signature)];
                let ids = transaction
                    .map(|it| it.insert_many(&batch).run())
                    .transpose()?;
                let expected = model.insert(entry.clone());
                assert!(ids.is_none_or(|ids| ids == [DocumentId::new(expected)]));
            }
            Self::Insert(entry) => {
                let id = transaction.map(|it| it.insert(entry.document(), &entry.signature));
                let id = id.transpose()?;
                let expected = model.insert(entry);
                assert!(id.is_none_or(|id| id.get() == expected));
            }
        }
        Ok(())
    }
}

/// Stores on a disk, and what is in them.
struct Runner {
    disk: Disk,
    random: Random,
    world: World,
    calls: Vec<Call>,
    seen: Seen,
}

impl Runner {
    /// Makes a call that leaves a store with what is in the model.
    fn call<T>(
        &mut self,
        what: &'static str,
        path: &Path,
        after: Model,
        run: impl FnOnce() -> resemblance::Result<T>,
    ) -> T {
        let begin = self.disk.position();
        let result = run().unwrap();
        self.world.insert(path.into(), Arc::new(after));
        self.calls.push(Call {
            what,
            begin,
            end: self.disk.position(),
            after: self.world.clone(),
        });
        result
    }

    fn options(&mut self) -> StoreOptions {
        options(Arc::new(self.disk.clone()), &mut self.random)
    }

    fn model(&self, path: &Path) -> Model {
        Model::clone(&self.world[path])
    }

    fn transaction(&mut self, store: &Store, path: &Path, changes: u64, payload_bytes: u64) {
        let mut model = self.model(path);
        let mut transaction = store.begin_write().unwrap();
        let begin = self.disk.position();
        for _ in 0..changes {
            let change = Change::draw(&model, payload_bytes, &mut self.random);
            change.make(Some(&mut transaction), &mut model).unwrap();
        }
        self.seen.overflows += u64::from(self.disk.position() > begin);
        if self.random.below(6) > 0 {
            self.call("a commit", path, model, || transaction.commit());
        } else {
            self.seen.aborts += 1;
        }
        self.look(store);
    }

    /// Counts the merges that are under way.
    fn look(&mut self, store: &Store) {
        let stats = stats(store);
        self.seen.merges += stats.merges.len() as u64;
        let dropping = stats.merges.iter().filter(|merge| merge.rows_left > 0);
        self.seen.dropping += dropping.count() as u64;
    }

    /// Removes many documents at once, whose rows merges then drop.
    fn remove_some(&mut self, store: &Store, path: &Path) {
        let mut model = self.model(path);
        let mut transaction = store.begin_write().unwrap();
        let ids: Vec<u64> = model.documents.keys().copied().collect();
        for id in ids.into_iter().filter(|_| self.random.below(3) == 0) {
            assert!(transaction.remove_id(DocumentId::new(id)).unwrap());
            model.remove(id);
        }
        self.call("removals", path, model, || transaction.commit());
        self.look(store);
    }

    /// All but the newest, in one slice and so in one commit.
    fn evict_some(&mut self, store: &Store, path: &Path) {
        let mut model = self.model(path);
        let mut ages: Vec<(u64, u64)> = model
            .documents
            .iter()
            .map(|(id, entry)| (entry.stamp, *id))
            .collect();
        ages.sort_unstable();
        let kept = ages.len() - ages.len() / 3;
        // They go in the order of their ids, which decides what ids clusters get.
        let gone: BTreeSet<u64> = ages[..ages.len() / 3].iter().map(|age| age.1).collect();
        for id in gone {
            model.remove(id);
        }
        self.call("an eviction", path, model, || {
            store.evict(EvictPolicy::KeepNewest(kept as u64)).run()
        });
        self.look(store);
    }

    fn one_call(&mut self, store: &Store, path: &Path) {
        let mut model = self.model(path);
        let key = key(self.random.below(150));
        if self.random.below(3) == 0 {
            let removed = model.remove_key(&key);
            let found = self.call("remove", path, model, || store.remove(&key));
            assert_eq!(found.map(DocumentId::get), removed);
            return;
        }
        let new = Entry {
            stamp: 0,
            ..entry(Some(key.clone()), 0, &model.schema, &mut self.random)
        };
        let signature = new.signature.clone();
        let expected = model.upsert(new);
        let upserted = self.call("upsert", path, model, || store.upsert(&key, &signature));
        expected.same(&upserted);
    }

    /// Some transactions through a handle, and its end.
    fn session(&mut self, store: Store, path: &Path) {
        for _ in 0..4 + self.random.below(4) {
            match self.random.below(10) {
                0 => self.transaction(&store, path, 40, 8_000),
                1..=2 => self.one_call(&store, path),
                3 if self.random.below(3) == 0 => self.evict_some(&store, path),
                3 => self.remove_some(&store, path),
                _ => {
                    let changes = 1 + self.random.below(12);
                    self.transaction(&store, path, changes, 30);
                }
            }
        }
    }

    fn create(&mut self, schema: &Schema) {
        let path = Path::new(FIRST);
        let options = self.options();
        let create = || options.create(path, schema.clone());
        let store = self.call("create", path, Model::new(schema.clone()), create);
        self.session(store, path);
    }

    fn open(&mut self, path: &Path) {
        let store = self.options().open(path).unwrap();
        self.session(store, path);
    }

    fn compact(&mut self, path: &Path) {
        let (options, model) = (self.options(), self.model(path));
        self.call("compact", path, model, || options.compact(path).run());
    }

    fn check(&mut self, path: &Path) {
        let report = self.options().check(path).run().unwrap();
        assert!(report.is_clean(), "{report:?}");
    }

    fn reband(&mut self, path: &Path) {
        let model = self.model(path);
        let rebanding = rebanding(&model.schema, &mut self.random);
        let after = rebanded(&model, &rebanding);
        let options = bulk_options(self.options());
        let run = || Store::reband(path, &rebanding).bulk(options.clone()).run();
        self.call("reband", path, after, run);
    }

    fn back_up(&mut self) {
        let model = self.model(Path::new(FIRST));
        let options = self.options();
        let store = options.open(Path::new(FIRST)).unwrap();
        let snapshot = store.snapshot().unwrap();
        let path = Path::new(COPY);
        self.call("backup", path, model, || {
            snapshot.backup(path).store(options.clone()).run()
        });
    }

    fn build(&mut self, schema: &Schema) {
        let path = Path::new(BUILT);
        let mut model = Model::new(schema.clone());
        for number in 0..60 {
            let key = (number % 5 > 0).then(|| key(number));
            model.insert(entry(key, 300, schema, &mut self.random));
        }
        model.link_at_once();
        let options = bulk_options(self.options());
        let documents = model.documents.clone();
        self.call("bulk build", path, model, || {
            let mut build = Store::bulk_build(path, schema.clone(), &options)?;
            for entry in documents.values() {
                build.insert(entry.document(), &entry.signature)?;
            }
            build.finish()
        });
    }
}

pub(crate) fn bulk_options(options: StoreOptions) -> BulkOptions {
    BulkOptions::new()
        .store(options)
        .temp_dir(std::env::temp_dir())
}

/// Everything that writes, in an order that the seed decides.
pub(crate) fn run(schema: &Schema, seed: u64, sessions: u64) -> Course {
    let mut runner = Runner {
        disk: Disk::with(&Image::new()),
        random: Random(seed),
        world: World::new(),
        calls: Vec::new(),
        seen: Seen::default(),
    };
    runner.create(schema);
    let turn = runner.random.below(5);
    for session in 0..sessions {
        let built = runner.world.contains_key(Path::new(BUILT));
        let path = match built && runner.random.below(3) == 0 {
            true => Path::new(BUILT),
            false => Path::new(FIRST),
        };
        match (session + turn) % 5 {
            0 => runner.compact(path),
            1 if !built => runner.build(schema),
            2 => runner.reband(path),
            3 => runner.check(path),
            _ => {}
        }
        runner.open(path);
    }
    runner.back_up();
    Course {
        changes: runner.disk.changes(),
        calls: runner.calls,
        seen: runner.seen,
    }
}
