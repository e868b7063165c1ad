//! A store whose merges stop in the middle of lanes, read by the independent reader between slices.

use std::path::Path;

use resemblance::{
    Document, DocumentId, MinHash, Schema, SimHash, Store, StoreOptions, WriteTransaction,
};

use crate::common::sample::{is_all, one_in, trials};
use crate::spec::reader;
use crate::spec::recipe::mix64;
use crate::spec::schema::Schema as OwnSchema;
use crate::spec::stored::{self, Model, Seen};

/// A slice holds 64 blocks of the inputs: a lane of four runs has to have more.
const SEAL_AFTER: u64 = 15_000;

fn schema() -> Schema {
    Schema::builder()
        .minhash(MinHash::new(16).banding(1, 2).code_bits(64))
        .simhash(SimHash::bits64().max_distance(1))
        .expected_documents(1_000)
        .build()
        .unwrap()
}

struct Builder {
    options: StoreOptions,
    store: Store,
    own: OwnSchema,
    model: Model,
}

impl Builder {
    fn create(path: &Path, schema: Schema, options: StoreOptions) -> Self {
        drop(options.create(path, schema).unwrap());
        Self {
            own: reader::Store::read(path).schema,
            store: options.open(path).unwrap(),
            options,
            model: Model::new(),
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut Self, &mut WriteTransaction)) {
        let mut transaction = self.store.begin_write().unwrap();
        change(self, &mut transaction);
        transaction.commit().unwrap();
    }

    /// Documents in pairs that share all codes but the key's; every seventh has no key.
    fn insert_until(&mut self, transaction: &mut WriteTransaction, end: u64) {
        let sketcher = self.store.sketcher();
        let start = self.model.keys().next_back().map_or(0, |last| last + 1);
        let mut pair = None;
        for number in start..end {
            let hash = mix64(number / 2);
            let (signature, stored) = match &pair {
                Some((of, signature)) if *of == hash => signature,
                _ => {
                    let stored = self.own.stored(self.own.recipe.hashes([hash]));
                    let signature = (sketcher.hashes([hash]).unwrap(), stored);
                    &pair.insert((hash, signature)).1
                }
            };
            let key = (number % 7 > 0).then(|| format!("{number}").into_bytes());
            let document = match &key {
                Some(key) => Document::new(key),
                None => Document::without_key(),
            };
            let id = transaction.insert(document, signature).unwrap();
            let expected = reader::Document {
                key,
                stamp: 0,
                payload: Vec::new(),
                signature: stored.clone(),
            };
            self.model.insert(id.get(), expected);
        }
    }

    fn remove(&mut self, transaction: &mut WriteTransaction, ids: impl Iterator<Item = u64>) {
        for id in ids {
            assert!(transaction.remove_id(DocumentId::new(id)).unwrap());
            self.model.remove(&id).unwrap();
        }
    }

    /// Returns true while a merge drops rows of removed documents.
    fn is_dropping(&self) -> bool {
        let stats = self.store.snapshot().unwrap().stats().run().unwrap();
        stats.merges.iter().any(|merge| merge.rows_left > 0)
    }

    /// Closes the handle, reads and checks the file, and opens it again.
    fn check(self, path: &Path) -> (Self, reader::Store, Seen) {
        drop(self.store);
        let read = reader::Store::read(path);
        let seen = stored::check(&read, &self.model);
        let store = self.options.open(path).unwrap();
        (Self { store, ..self }, read, seen)
    }
}

/// Documents that are removed for each slice of a merge.
const PER_SLICE: u64 = 5;

/// After one slice in eleven of those that drop rows, and after the first of those that write lanes. With
/// `RESEMBLANCE_TESTS=all` after each that drops rows, and after more of the others.
#[test]
fn paused_merge_is_readable_after_every_slice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.rsm");
    let options = StoreOptions::new().flush_after(SEAL_AFTER).merge_slice(1);
    let mut builder = Builder::create(&path, schema(), options);
    let end = 4 * SEAL_AFTER;
    builder.change(|this, transaction| this.insert_until(transaction, end - 50));
    let before = (5..3 * SEAL_AFTER).step_by(11);
    builder.change(|this, transaction| this.remove(transaction, before.clone()));
    // The fourth seal begins the merge.
    builder.change(|this, transaction| this.insert_until(transaction, end));

    let died = |slice: u64| {
        let all = (6..end - 100).step_by(11);
        all.skip((slice * PER_SLICE) as usize)
            .take(PER_SLICE as usize)
    };
    let distance = one_in(11) as u64;
    let (mut dropping, mut cut, mut complete) = (0, 0, 0);
    let mut slice = 0;
    while cut == 0 || complete == 0 || is_all() && cut + complete < 4 {
        if builder.is_dropping() && slice % distance != distance / 2 {
            builder.change(|this, transaction| this.remove(transaction, died(slice)));
            slice += 1;
            continue;
        }
        let (again, store, seen) = builder.check(&path);
        builder = again;
        assert_eq!(seen.outputs, 1, "slice {slice}: {seen:?}");
        assert_eq!(store.dead.before.len(), before.clone().count());
        assert_eq!(store.dead.since.len() as u64, slice * PER_SLICE);
        if seen.dropping > 0 {
            dropping += 1;
            assert!(
                seen.without_rows > 0 && seen.buried > seen.since,
                "{seen:?}"
            );
            assert!(seen.cut_lanes == 0 && seen.begun == 0, "{seen:?}");
        }
        if seen.cut_lanes > 0 {
            assert!(seen.cut_lanes == 4 && seen.passed_over > 0, "{seen:?}");
            assert_eq!(seen.without_rows, store.dead.before.len());
            if cut == 0 {
                // The key lane is in its middle, and the pieces of its inputs' filters are going.
                assert!(seen.gone_pieces >= 4, "{seen:?}");
            }
            cut += 1;
        }
        complete += seen.begun;
        builder.change(|this, transaction| this.remove(transaction, died(slice)));
        slice += 1;
    }
    assert!(
        dropping >= trials(1, 4),
        "{dropping} slices in the middle of dropping rows"
    );
    assert!(cut >= 1 && complete >= 1, "{cut} {complete}");

    builder.change(|this, transaction| this.insert_until(transaction, end + SEAL_AFTER));
    let (_, store, seen) = builder.check(&path);
    assert_eq!(seen.outputs, 0, "{seen:?}");
    assert!(store.runs.values().any(|run| run.level == 1));
    let died: Vec<u64> = (6..end)
        .step_by(11)
        .take((slice * PER_SLICE) as usize)
        .collect();
    assert!(
        store.dead.before.iter().eq(&died),
        "what merges dropped is no longer dead"
    );
    assert!(seen.dead_postings >= 60);
}

/// 448 KiB for filters are 7 bits for each posting of 9,000 documents in 40 bands.
#[test]
fn filters_have_four_bits_per_bucket_with_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("coarse.rsm");
    let minhash = MinHash::new(40).banding(40, 1);
    let schema = Schema::builder().minhash(minhash).build().unwrap();
    let options = StoreOptions::new().cache_bytes(1 << 20).flush_after(6_000);
    let mut builder = Builder::create(&path, schema, options);
    builder.change(|this, transaction| this.insert_until(transaction, 6_000));
    let (_, _, seen) = builder.check(&path);
    assert_eq!(seen.of_four_bits, seen.of_bands, "{seen:?}");
    assert!(seen.of_bands > 0, "{seen:?}");
}
