//! Steps that write a whole store: offline builds, and other bands for what is there.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use resemblance::schema::Rebanding;
use resemblance::{BulkOptions, DuplicateKeys, Error, Store};

use crate::common::model::episode::Episode;
use crate::common::model::steps::{Opened, Rebuild};
use crate::common::oracle::Model;

fn bulk_options(opened: &Opened) -> BulkOptions {
    BulkOptions::new()
        .memory_bytes(1 << 20)
        .store(opened.options())
}

impl Episode {
    /// Builds a new store from the existing documents and some more, and continues with it. Builds
    /// none if a key occurs twice.
    pub(crate) fn rebuild(&mut self, rebuild: &Rebuild) {
        self.close();
        let schema = self.model.schema.clone();
        let path = self.place.file(&format!("store-{}.rsm", self.built + 1));
        let rule = match rebuild.keep_first {
            true => DuplicateKeys::KeepFirst,
            false => DuplicateKeys::Refuse,
        };
        let options = bulk_options(&rebuild.opened)
            .threads(NonZeroUsize::new(rebuild.threads).unwrap())
            .duplicate_keys(rule);
        let mut build = Store::bulk_build(&path, schema.clone(), &options).unwrap();
        let mut model = Model::new(schema);
        let mut holders = BTreeMap::new();
        let mut twice = Vec::new();
        for entry in self.all_entries(&rebuild.more) {
            let id = build.insert(entry.document(), &entry.signature).unwrap();
            let key = entry.key.clone();
            assert_eq!(id.get(), model.insert(entry));
            if let Some(key) = key {
                let holder = *holders.entry(key.clone()).or_insert(id);
                if holder != id {
                    twice.push((key, holder, id));
                    model.documents.remove(&id.get());
                }
            }
        }
        assert_eq!(build.len(), model.next_id);
        match (build.finish(), twice.first()) {
            (Err(Error::KeyTwice { key, first, second }), Some(expected)) => {
                assert!(!rebuild.keep_first);
                assert_eq!(&(key, first, second), expected);
                assert!(!path.exists());
            }
            (Ok(report), expected) => {
                assert!(rebuild.keep_first || expected.is_none());
                assert_eq!(report.documents, model.documents.len() as u64);
                assert_eq!(report.duplicates, twice.len() as u64);
                std::fs::remove_file(self.path()).unwrap();
                self.built += 1;
                self.model = model;
                self.model.link_at_once();
            }
            (result, expected) => panic!("{result:?}, expected {expected:?}"),
        }
        self.reopen(&rebuild.opened);
    }

    /// Indexes the documents in another way. They stay as they were if the schema is impossible or
    /// the operation is interrupted.
    pub(crate) fn reband(&mut self, rebanding: &Rebanding, interrupted: bool) {
        let options = bulk_options(&Opened::sealing_after(3));
        self.close();
        let mut was_asked = false;
        let reband = Store::reband(self.path(), rebanding).bulk(options);
        let estimate = reband.estimate();
        let done = reband.on_progress(|_| {
            was_asked = true;
            match interrupted {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        match (done.run(), self.model.schema.rebanded(rebanding)) {
            (Ok(report), Ok(schema)) => {
                assert!(!(interrupted && was_asked));
                assert_eq!(report.schema, schema);
                assert_eq!(report.documents, self.model.documents.len() as u64);
                let estimate = estimate.unwrap();
                assert_eq!(estimate.documents, report.documents);
                assert!(estimate.disk_bytes > 0 || !report.is_rewritten);
                let is_linked = self.model.schema.clusters().is_some();
                assert!(estimate.disk_bytes == 0 || report.is_rewritten || is_linked);
                self.model.refile(schema);
                self.model.relink();
            }
            // Pages are verified before the schema is known, which may refuse the change.
            (Err(Error::Stopped { .. }), _) => assert!(interrupted && was_asked),
            (Err(error), Err(expected)) => {
                assert_eq!(error.to_string(), expected.to_string());
                assert_eq!(estimate.unwrap_err().to_string(), expected.to_string());
            }
            (done, schema) => panic!("{done:?}, expected {schema:?}"),
        }
        self.reopen(&Opened::sealing_after(16));
    }
}
