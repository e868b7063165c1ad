//! What a store should hold: a map, and comparisons with everything in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use resemblance::{
    Bounds, By, DocumentId, EmptyDocuments, Match, MinHashKind, Near, Novelty, Record, Revision,
    Schema, Signature, Snapshot, Upserted,
};

use super::draw::{KEYS, key, signature};

/// Of more documents not all pairs are compared.
const MOST_PAIRED: usize = 60;

#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) signature: Signature,
    /// What a store keeps of it.
    pub(crate) kept: Signature,
    pub(crate) stamp: u64,
    pub(crate) payload: Vec<u8>,
}

#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) schema: Schema,
    pub(crate) documents: BTreeMap<u64, Arc<Entry>>,
    pub(crate) next_id: u64,
}

/// A signature as it was given, and what a store keeps of it.
type Sketch<'s> = (&'s Signature, &'s Signature);

impl Entry {
    fn sketch(&self) -> Sketch<'_> {
        (&self.signature, &self.kept)
    }
}

/// How near two documents are, by each family that the schema has.
#[derive(Clone, Copy)]
struct Nearness {
    similarity: f64,
    is_similar: bool,
    is_close: bool,
    shares_band: bool,
}

impl Nearness {
    /// Whether they are near, and whether the store must notice it.
    fn by(self, by: By) -> (bool, bool) {
        let by_band = self.is_similar && self.shares_band;
        match by {
            By::MinHash => (self.is_similar, by_band),
            By::SimHash => (self.is_close, self.is_close),
            By::Both => {
                let both = self.is_similar && self.is_close;
                (both, both)
            }
            _ => (self.is_similar || self.is_close, by_band || self.is_close),
        }
    }
}

impl Model {
    pub(crate) fn new(schema: Schema) -> Self {
        Self {
            schema,
            documents: BTreeMap::new(),
            next_id: 0,
        }
    }

    pub(crate) fn insert(&mut self, entry: impl Into<Arc<Entry>>) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.documents.insert(id, entry.into());
        id
    }

    pub(crate) fn id_of(&self, key: &[u8]) -> Option<u64> {
        let mut documents = self.documents.iter();
        let found = documents.find(|(_, entry)| entry.key.as_deref() == Some(key));
        found.map(|(id, _)| *id)
    }

    pub(crate) fn remove_key(&mut self, key: &[u8]) -> Option<u64> {
        let id = self.id_of(key)?;
        self.documents.remove(&id);
        Some(id)
    }

    /// What a store keeps of a signature.
    pub(crate) fn kept(&self, signature: &Signature) -> Signature {
        match self.schema.minhash() {
            Some(minhash)
                if minhash.value_bits() < 32 && minhash.kind() != MinHashKind::External =>
            {
                let bits = minhash.value_bits();
                signature.cut(bits).unwrap_or_else(|_| signature.clone())
            }
            _ => signature.clone(),
        }
    }

    /// Empty documents are near to none, or to each other.
    fn are_comparable(&self, a: &Signature, b: &Signature) -> bool {
        let is_filed = !a.is_empty() || self.schema.empty_documents() == EmptyDocuments::Alike;
        is_filed && a.is_empty() == b.is_empty()
    }

    fn nearness(&self, (a, kept_a): Sketch<'_>, (b, kept_b): Sketch<'_>) -> Option<Nearness> {
        if !self.are_comparable(a, b) {
            return None;
        }
        let minhash = self.schema.minhash();
        let similarity = minhash.map(|minhash| {
            let share = kept_a.jaccard(kept_b).unwrap();
            if minhash.kind() != MinHashKind::External || a.is_empty() {
                return share;
            }
            // Nobody but the schema knows how narrow they are, and how often equal by chance.
            let chance = 0.5_f64.powi(minhash.value_bits().into());
            ((share - chance) / (1.0 - chance)).clamp(0.0, 1.0)
        });
        let threshold = minhash.map_or(2.0, |minhash| minhash.threshold());
        let distance = self.schema.simhash().map(|_| a.hamming(b).unwrap());
        let most = self
            .schema
            .simhash()
            .map_or(0, |s| u32::from(s.max_distance()));
        let (bands, rows) = minhash.map_or((0, 1), |m| (m.bands().into(), m.rows().into()));
        let [values_a, values_b] = [a, b].map(|s| s.minhash().unwrap_or_default());
        let both = values_a.chunks_exact(rows).zip(values_b.chunks_exact(rows));
        Some(Nearness {
            similarity: similarity.unwrap_or(0.0),
            is_similar: similarity.is_some_and(|similarity| similarity >= threshold),
            is_close: distance.is_some_and(|distance| distance <= most),
            shares_band: both.take(bands).any(|(a, b)| a == b),
        })
    }

    fn default_by(&self) -> By {
        match (self.schema.minhash(), self.schema.simhash()) {
            (Some(_), None) => By::MinHash,
            (None, _) => By::SimHash,
            _ if self.schema.near() == Near::Both => By::Both,
            _ => By::Any,
        }
    }

    /// Takes the answer of an `insert_if_new` over, if it may be.
    pub(crate) fn judge(&mut self, entry: impl Into<Arc<Entry>>, novelty: &Novelty) {
        let entry = entry.into();
        let same_key = entry.key.as_deref().and_then(|key| self.id_of(key));
        let by = self.default_by();
        let near = |stored: &Entry| {
            let near = self.nearness(entry.sketch(), stored.sketch());
            near.map_or((false, false), |near| near.by(by))
        };
        match (novelty, same_key) {
            (Novelty::SameKey(found), Some(id)) => assert_eq!(found.id().get(), id),
            (Novelty::NearDuplicate(found), None) => {
                assert!(near(&self.documents[&found.id().get()]).0, "{found:?}");
                self.same_match(found, entry.sketch());
            }
            (Novelty::New(id), None) => {
                let missed = self.documents.iter().find(|(_, stored)| near(stored).1);
                let missed = missed.map(|(id, _)| *id);
                assert_eq!(missed, None, "this document was missed");
                assert_eq!(id.get(), self.insert(entry));
            }
            other => panic!("{other:?}"),
        }
    }

    /// Takes the answer of an `upsert` over, if it may be.
    pub(crate) fn judge_upsert(&mut self, entry: Entry, upserted: &Upserted) {
        let last = entry.key.as_deref().and_then(|key| self.id_of(key));
        let found = upserted.revision.last();
        assert_eq!(found.map(|found| found.id().get()), last);
        let Some(last) = last else {
            assert_eq!(upserted.replaced, None);
            assert_eq!(upserted.id.get(), self.insert(entry));
            return;
        };
        let stored = Arc::clone(&self.documents[&last]);
        let is_unchanged = matches!(upserted.revision, Revision::Unchanged(_));
        // Where values are cut, others may be stored as the same ones.
        assert!(is_unchanged || stored.signature != entry.signature);
        assert!(!is_unchanged || stored.kept == entry.kept);
        if is_unchanged {
            assert_eq!((upserted.id.get(), upserted.replaced), (last, None));
            let entry = Entry {
                signature: stored.signature.clone(),
                kept: stored.kept.clone(),
                ..entry
            };
            self.documents.insert(last, entry.into());
            return;
        }
        let near = self.nearness(entry.sketch(), stored.sketch());
        let is_near = near.is_some_and(|near| near.by(self.default_by()).0);
        assert_eq!(matches!(upserted.revision, Revision::Near(_)), is_near);
        assert_eq!(upserted.replaced.map(DocumentId::get), Some(last));
        self.documents.remove(&last);
        assert_eq!(upserted.id.get(), self.insert(entry));
    }

    /// Gives a document another stamp; whether there is one.
    pub(crate) fn touch(&mut self, id: u64, stamp: u64) -> bool {
        let Some(document) = self.documents.get_mut(&id) else {
            return false;
        };
        Arc::make_mut(document).stamp = stamp;
        true
    }

    fn same_match(&self, found: &Match, asked: Sketch<'_>) {
        let stored = &self.documents[&found.id().get()];
        assert_eq!(found.key(), stored.key.as_deref());
        let near = self.nearness(asked, stored.sketch()).unwrap();
        let similarity = self.schema.minhash().map(|_| near.similarity);
        match (found.similarity(), similarity) {
            // Estimates of bottom-k are kept in steps of 2^-30.
            (Some(found), Some(expected)) => assert!((found - expected).abs() < 1e-9),
            (found, expected) => assert_eq!(found, expected),
        }
        if let Some(distance) = found.distance() {
            assert_eq!(distance, asked.0.hamming(&stored.signature).unwrap());
        }
    }

    fn same_record(&self, record: &Record, id: u64) {
        let entry = &self.documents[&id];
        assert_eq!(record.id().get(), id);
        assert_eq!(record.key(), entry.key.as_deref());
        assert_eq!(record.stamp(), entry.stamp);
        assert_eq!(record.payload(), entry.payload);
        let (found, kept) = (record.signature(), &entry.kept);
        assert_eq!(found.minhash(), kept.minhash());
        assert_eq!(found.bottom_k(), kept.bottom_k());
        assert_eq!(found.simhash(), kept.simhash());
        assert_eq!(found.is_empty(), kept.is_empty());
    }

    /// Everything in a snapshot.
    pub(crate) fn verify(&self, snapshot: &Snapshot) {
        self.verify_records(snapshot);
        for number in 0..3 {
            self.ask(snapshot, &signature(&self.schema, number, 16 * number));
        }
        self.ask(snapshot, &signature(&self.schema, 0, 255));
        self.pairs(snapshot);
    }

    /// What is stored, and under which keys.
    pub(crate) fn verify_records(&self, snapshot: &Snapshot) {
        assert_eq!(snapshot.len(), self.documents.len() as u64);
        let mut records = snapshot.iter();
        for id in self.documents.keys() {
            self.same_record(&records.next().unwrap().unwrap(), *id);
        }
        assert!(records.next().is_none());
        for number in 0..KEYS {
            let key = key(number);
            let record = snapshot.get(&key).unwrap();
            let id = record.as_ref().map(|record| record.id().get());
            assert_eq!(id, self.id_of(&key));
        }
        let beyond = DocumentId::new(self.next_id);
        assert!(snapshot.get_id(beyond).unwrap().is_none());
    }

    fn families(&self) -> Vec<By> {
        let minhash = self.schema.minhash().map(|_| By::MinHash);
        let simhash = self.schema.simhash().map(|_| By::SimHash);
        let mut families: Vec<By> = minhash.into_iter().chain(simhash).collect();
        if families.len() == 2 {
            families.extend([By::Any, By::Both]);
        }
        families
    }

    /// What is found is near, and what must be found is; a scan finds all.
    fn ask(&self, snapshot: &Snapshot, asked: &Signature) {
        let kept = self.kept(asked);
        let sketch = (asked, &kept);
        let documents = self.documents.iter();
        let nearness: Vec<(u64, Option<Nearness>)> = documents
            .map(|(id, entry)| (*id, self.nearness(sketch, entry.sketch())))
            .collect();
        for by in self.families() {
            for scan in [false, true] {
                let query = snapshot.query(asked).by(by);
                let query = if scan { query.scan() } else { query };
                let found = query.run().unwrap();
                found
                    .iter()
                    .for_each(|found| self.same_match(found, sketch));
                let mut ids: Vec<u64> = found.iter().map(|found| found.id().get()).collect();
                ids.sort_unstable();
                assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
                for (id, near) in &nearness {
                    let (is_near, is_certain) = near.map_or((false, false), |near| near.by(by));
                    let is_found = ids.binary_search(id).is_ok();
                    let must = if scan { is_near } else { is_certain };
                    assert!(is_found || !must, "{by:?}, scan {scan}: {id} is missed");
                    assert!(
                        is_near || !is_found,
                        "{by:?}, scan {scan}: {id} is not near"
                    );
                }
            }
        }
    }

    fn pairs(&self, snapshot: &Snapshot) {
        if self.documents.len() > MOST_PAIRED {
            return;
        }
        let found: Vec<(By, Vec<(u64, u64)>)> = self
            .families()
            .into_iter()
            .map(|by| (by, found_pairs(snapshot, by)))
            .collect();
        for (a, first) in &self.documents {
            for (b, second) in self.documents.range(a + 1..) {
                let near = self.nearness(first.sketch(), second.sketch());
                for (by, pairs) in &found {
                    let (is_near, must) = near.map_or((false, false), |near| near.by(*by));
                    let is_found = pairs.binary_search(&(*a, *b)).is_ok();
                    assert!(is_found || !must, "{by:?}: pair {a}, {b} is missed");
                    assert!(is_near || !is_found, "{by:?}: pair {a}, {b} is not near");
                }
            }
        }
    }
}

/// The lesser id first, each pair once.
fn found_pairs(snapshot: &Snapshot, by: By) -> Vec<(u64, u64)> {
    let pairs = snapshot.pairs(Bounds::new().by(by)).unwrap();
    let ids = pairs.map(|pair| {
        let pair = pair.unwrap();
        let (a, b) = (pair.a.get(), pair.b.get());
        (a.min(b), a.max(b))
    });
    let mut found: Vec<(u64, u64)> = ids.collect();
    found.sort_unstable();
    assert!(
        found.is_sorted_by(|a, b| a < b),
        "{by:?}: a pair came twice"
    );
    found
}
