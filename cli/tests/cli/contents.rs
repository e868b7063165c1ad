//! The full contents of a store, for comparison.

use std::collections::BTreeMap;
use std::path::Path;

use resemblance::{Error, Record, Store};

use crate::support::Folder;

/// The schema and all documents with their ids, keys, payloads, stamps and signatures.
#[derive(PartialEq)]
pub struct Held {
    pub schema: String,
    pub records: Vec<Record>,
}

impl Held {
    /// Returns the contents of the file, after repairing it if necessary. Returns `None` without a
    /// file.
    pub fn of(path: &Path) -> Option<Self> {
        let store = match Store::open(path) {
            Err(Error::NotFound { .. }) => return None,
            opened => opened.unwrap(),
        };
        let snapshot = store.snapshot().unwrap();
        let records: Vec<Record> = snapshot.iter().map(Result::unwrap).collect();
        for record in &records {
            let found = snapshot.query(record.signature()).run().unwrap();
            let is_found = found.iter().any(|found| found.id() == record.id());
            assert!(is_found, "{:?} is not found as its own like", record.id());
        }
        let schema = snapshot.schema().to_string();
        Some(Self { schema, records })
    }

    /// The documents by key, whatever their ids.
    pub fn by_key(&self) -> BTreeMap<&[u8], (u64, &[u8], &resemblance::Signature)> {
        self.records
            .iter()
            .map(|record| {
                let key = record.key().unwrap_or_default();
                (key, (record.stamp(), record.payload(), record.signature()))
            })
            .collect()
    }
}

impl Folder {
    pub fn held(&self, store: &str) -> Option<Held> {
        Held::of(&self.path(store))
    }

    /// Another folder with the same files.
    pub fn copy(&self) -> Self {
        let copy = Self::new();
        for name in self.names() {
            let target = copy.path(&name);
            std::fs::create_dir_all(target.parent().unwrap()).unwrap();
            std::fs::copy(self.path(&name), target).unwrap();
        }
        copy
    }

    /// Checks that `check` finds nothing wrong.
    #[track_caller]
    pub fn is_sound(&self, store: &str) {
        self.run(&["check", store]).expect(0);
    }

    /// The files that were not there `before`.
    pub fn new_names(&self, before: &Self) -> Vec<String> {
        let known = before.names();
        let mut names = self.names();
        names.retain(|name| !known.contains(name));
        names
    }
}
