//! The store.

use std::path::{Path, PathBuf};

use resemblance::{Bounds, Document, Matches, Schema, Signature, SimHash, Snapshot, Store};

use super::{DISTANCE, Index, Pairs};
use crate::Result;
use crate::options::Options;
use crate::ours::{describe, posting_bytes, store_options};

pub struct Ours {
    store: Store,
    snapshot: Option<Snapshot>,
}

fn path(folder: &Path) -> PathBuf {
    folder.join("store.rsm")
}

impl Ours {
    pub fn open(folder: &Path, options: &Options) -> Result<Self> {
        let path = path(folder);
        let store = if path.exists() {
            store_options().open(path)?
        } else {
            let simhash = SimHash::bits64().max_distance(u8::try_from(DISTANCE)?);
            let schema = Schema::builder()
                .simhash(simhash)
                .expected_documents(options.expected.unwrap_or(options.documents))
                .build()?;
            store_options().create(path, schema)?
        };
        Ok(Self {
            store,
            snapshot: None,
        })
    }

    fn snapshot(&self) -> Result<&Snapshot> {
        self.snapshot.as_ref().ok_or("no snapshot".into())
    }
}

pub fn compact(folder: &Path) -> Result<()> {
    store_options().compact(path(folder)).run()?;
    Ok(())
}

fn near(snapshot: &Snapshot, fingerprint: u64) -> resemblance::Result<Vec<u64>> {
    let signature = Signature::from_simhash(fingerprint);
    let matches = snapshot.query(&signature).max_distance(DISTANCE).run()?;
    // The best matches are first.
    let mut ids: Vec<u64> = matches.iter().map(|one| one.id().get()).collect();
    ids.sort_unstable();
    Ok(ids)
}

/// The documents near each of many fingerprints.
fn near_many(snapshot: &Snapshot, fingerprints: &[u64]) -> resemblance::Result<Vec<Vec<u64>>> {
    let fingerprints = fingerprints.iter().copied();
    let signatures: Vec<_> = fingerprints.map(Signature::from_simhash).collect();
    let all = snapshot.query(&signatures);
    let all = all.max_distance(DISTANCE).run()?;
    let ids = |matches: &Matches| {
        let mut ids: Vec<u64> = matches.iter().map(|one| one.id().get()).collect();
        ids.sort_unstable();
        ids
    };
    Ok(all.iter().map(ids).collect())
}

impl Index for Ours {
    fn settings(&self) -> Result<String> {
        Ok(self.store.schema().to_string().replace('\n', ";"))
    }

    fn insert(&mut self, first: u64, fingerprints: &[u64]) -> Result<()> {
        let mut transaction = self.store.begin_write()?;
        for (number, fingerprint) in (first..).zip(fingerprints) {
            let id = transaction.insert(
                Document::without_key(),
                &Signature::from_simhash(*fingerprint),
            )?;
            assert_eq!(id.get(), number, "ids follow each other from 0");
        }
        Ok(transaction.commit()?)
    }

    fn begin_reading(&mut self) -> Result<()> {
        self.snapshot = Some(self.store.snapshot()?);
        Ok(())
    }

    fn near(&self, fingerprint: u64) -> Result<Vec<u64>> {
        Ok(near(self.snapshot()?, fingerprint)?)
    }

    fn near_many(&self, fingerprints: &[u64]) -> Option<Result<Vec<Vec<u64>>>> {
        let snapshot = self.snapshot();
        Some(snapshot.and_then(|snapshot| Ok(near_many(snapshot, fingerprints)?)))
    }

    fn pairs(&self) -> Result<Pairs> {
        let bounds = Bounds::new().max_distance(DISTANCE);
        let mut pairs = Vec::new();
        for pair in self.snapshot()?.pairs().bounds(bounds).run()? {
            let pair = pair?;
            pairs.push((pair.a.get(), pair.b.get()));
        }
        Ok(pairs)
    }

    fn inspect(&self) -> Result<(Vec<String>, Option<f64>)> {
        let stats = self.snapshot()?.stats().run()?;
        Ok((describe(&stats), posting_bytes(&stats)))
    }
}
