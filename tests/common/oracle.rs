//! A store as anyone would write it down: a map, and comparisons with everything in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use resemblance::{
    Bounds, By, EmptyDocuments, MinHashKind, Near, Query, Schema, Signature, TableDesign,
};

/// A stored document.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) signature: Signature,
    pub(crate) stamp: u64,
    pub(crate) payload: Vec<u8>,
}

/// The documents by id. Cheap to clone: a transaction works on its own copy.
#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) schema: Schema,
    pub(crate) documents: BTreeMap<u64, Arc<Entry>>,
    pub(crate) next_id: u64,
    /// The bits of the leading blocks of each table.
    prefixes: Arc<[u128]>,
}

/// What a query asks for beside the signature.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Question {
    pub(crate) by: Option<By>,
    pub(crate) min_similarity: Option<f64>,
    pub(crate) max_distance: Option<u32>,
    pub(crate) accept_lower_recall: bool,
    pub(crate) scan: bool,
    pub(crate) limit: Option<usize>,
}

impl Question {
    pub(crate) fn bounds(&self) -> Bounds {
        let mut bounds = Bounds::new();
        if let Some(by) = self.by {
            bounds = bounds.by(by);
        }
        if let Some(similarity) = self.min_similarity {
            bounds = bounds.min_similarity(similarity);
        }
        if let Some(distance) = self.max_distance {
            bounds = bounds.max_distance(distance);
        }
        if self.accept_lower_recall {
            bounds = bounds.accept_lower_recall();
        }
        bounds
    }

    pub(crate) fn put<'q>(&self, mut query: Query<'q>) -> Query<'q> {
        if let Some(by) = self.by {
            query = query.by(by);
        }
        if let Some(similarity) = self.min_similarity {
            query = query.min_similarity(similarity);
        }
        if let Some(distance) = self.max_distance {
            query = query.max_distance(distance);
        }
        if self.accept_lower_recall {
            query = query.accept_lower_recall();
        }
        if self.scan {
            query = query.scan();
        }
        if let Some(limit) = self.limit {
            query = query.limit(limit);
        }
        query
    }
}

/// A found document: its id, the estimate before it is brought into [0, 1], and the distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) id: u64,
    pub(crate) estimate: f64,
    pub(crate) distance: u32,
}

impl Found {
    pub(crate) fn similarity(&self) -> f64 {
        self.estimate.clamp(0.0, 1.0)
    }
}

/// The bits that are stored of a value, as the specification has them.
pub(crate) fn cut(value: u32, bits: u8) -> u32 {
    if bits == 32 {
        return value;
    }
    let mut mixed = value;
    mixed = (mixed ^ mixed >> 16).wrapping_mul(0x85eb_ca6b);
    mixed = (mixed ^ mixed >> 13).wrapping_mul(0xc2b2_ae35);
    (mixed ^ mixed >> 16) & ((1 << bits) - 1)
}

/// What a store keeps of a value.
pub(crate) fn kept(schema: &Schema, signature: &Signature, value: u32) -> u32 {
    let minhash = schema.minhash().unwrap();
    if minhash.kind() != MinHashKind::External {
        return cut(value, minhash.value_bits());
    }
    assert!(signature.is_empty() || u64::from(value) >> minhash.value_bits() == 0);
    value
}

fn mix64(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// The values that bands are made of. Of bottom-k, as the specification has them: row j is a hash
/// of the least value in bin j.
fn rows(signature: &Signature, values: u16) -> Option<Vec<u32>> {
    let Some(hashes) = signature.bottom_k() else {
        return signature.minhash().map(<[u32]>::to_vec);
    };
    let count = u64::from(values / 8);
    let mixed = |hash: &u64| mix64(hash.wrapping_add(0x9e37_79b9_7f4a_7c15));
    let mut least: BTreeMap<u64, u64> = BTreeMap::new();
    for hash in hashes {
        let in_bin = least.entry(((mixed(hash) >> 32) * count) >> 32);
        let least = in_bin.or_insert(*hash);
        *least = (*least).min(*hash);
    }
    let row = |bin: u64| {
        let least = least.get(&bin);
        least.map_or(u32::MAX, |hash| (mixed(hash) as u32).min(u32::MAX - 1))
    };
    Some((0..count).map(row).collect())
}

/// The share of the union's smallest hashes that both have, in steps of 2^-30.
fn shared(a: &[u64], b: &[u64], most: usize) -> f64 {
    let union: BTreeSet<&u64> = a.iter().chain(b).collect();
    let smallest: Vec<&u64> = union.into_iter().take(most).collect();
    let both = smallest
        .iter()
        .filter(|hash| a.contains(hash) && b.contains(hash));
    let share = if smallest.is_empty() {
        1.0
    } else {
        both.count() as f64 / smallest.len() as f64
    };
    let steps = f64::from(1 << 30);
    (share * steps).round() / steps
}

pub(crate) struct Answer {
    pub(crate) found: Vec<Found>,
    /// How many documents are compared to find them.
    pub(crate) compared: usize,
}

/// The families that decide, and whether both must agree.
#[derive(Clone, Copy)]
struct Families {
    minhash: bool,
    simhash: bool,
    both: bool,
}

/// The bits that lead in each table, from the documented rule of [`TableDesign`]: block i of n
/// begins at bit ceil(bits * i / n), counted from the top; a group has a table for every choice.
fn prefixes(design: &TableDesign) -> Vec<u128> {
    let blocks: u32 = design.groups().iter().map(|group| u32::from(group.0)).sum();
    let width = u32::from(design.bits());
    let start = |block: u32| (block * width).div_ceil(blocks);
    let bits_of = |block: u32| {
        (start(block)..start(block + 1)).fold(0u128, |bits, bit| bits | 1 << (width - 1 - bit))
    };
    let mut prefixes = Vec::new();
    let mut first = 0;
    for &(size, chosen) in design.groups() {
        for choice in 0u32..1 << size {
            if choice.count_ones() == u32::from(chosen) {
                let blocks = (0..u32::from(size)).filter(|block| choice >> block & 1 == 1);
                prefixes.push(blocks.fold(0, |bits, block| bits | bits_of(first + block)));
            }
        }
        first += u32::from(size);
    }
    prefixes
}

impl Model {
    pub(crate) fn new(schema: Schema) -> Self {
        let prefixes = schema
            .simhash()
            .map_or_else(Vec::new, |s| prefixes(s.design()));
        Self {
            schema,
            documents: BTreeMap::new(),
            next_id: 0,
            prefixes: prefixes.into(),
        }
    }

    pub(crate) fn id_of(&self, key: &[u8]) -> Option<u64> {
        let mut documents = self.documents.iter();
        documents
            .find(|(_, document)| document.key.as_deref() == Some(key))
            .map(|(id, _)| *id)
    }

    pub(crate) fn insert(&mut self, document: Entry) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.documents.insert(id, Arc::new(document));
        id
    }

    pub(crate) fn remove_key(&mut self, key: &[u8]) -> Option<u64> {
        let id = self.id_of(key)?;
        self.documents.remove(&id);
        Some(id)
    }

    /// Documents without features are near to no document, unless the schema says they are alike.
    fn is_filed(&self, signature: &Signature) -> bool {
        !signature.is_empty() || self.schema.empty_documents() == EmptyDocuments::Alike
    }

    fn shares_band(&self, a: &Signature, b: &Signature) -> bool {
        let Some(schema) = self.schema.minhash() else {
            return false;
        };
        let values = schema.values();
        let (Some(a), Some(b)) = (rows(a, values), rows(b, values)) else {
            return false;
        };
        let (bands, rows) = (usize::from(schema.bands()), usize::from(schema.rows()));
        let a = a.chunks_exact(rows).take(bands);
        a.zip(b.chunks_exact(rows)).any(|(a, b)| a == b)
    }

    fn shares_prefix(&self, a: &Signature, b: &Signature) -> bool {
        let (Some(a), Some(b)) = (a.simhash(), b.simhash()) else {
            return false;
        };
        self.prefixes.iter().any(|prefix| (a ^ b) & prefix == 0)
    }

    pub(crate) fn compare(&self, id: u64, a: &Signature, b: &Signature) -> Found {
        let fingerprints = a.simhash().zip(b.simhash());
        Found {
            id,
            estimate: self.estimate(a, b),
            distance: fingerprints.map_or(0, |(a, b)| (a ^ b).count_ones()),
        }
    }

    fn estimate(&self, a: &Signature, b: &Signature) -> f64 {
        let Some(schema) = self.schema.minhash() else {
            return 0.0;
        };
        if let (Some(a), Some(b)) = (a.bottom_k(), b.bottom_k()) {
            return shared(a, b, schema.values().into());
        }
        let bits = schema.value_bits();
        let pairs = a.minhash().unwrap_or_default().iter();
        let pairs = pairs.zip(b.minhash().unwrap_or_default());
        let kept = |signature, value: &u32| kept(&self.schema, signature, *value);
        let equal = pairs.filter(|(x, y)| kept(a, x) == kept(b, y));
        let share = equal.count() as f64 / f64::from(schema.values());
        if bits == 32 {
            return share;
        }
        let chance = 1.0 / f64::from(1_u32 << bits);
        (share - chance) / (1.0 - chance)
    }

    /// The others that are filed, if this signature is.
    fn others<'m>(
        &'m self,
        signature: &'m Signature,
        exclude: Option<u64>,
    ) -> impl Iterator<Item = (u64, &'m Signature)> {
        let documents = self.documents.iter().map(|(id, d)| (*id, &d.signature));
        documents.filter(move |(id, other)| {
            self.is_filed(signature) && self.is_filed(other) && Some(*id) != exclude
        })
    }

    /// Those that share a band or the prefix of a table.
    pub(crate) fn candidates(&self, signature: &Signature) -> Vec<u64> {
        self.others(signature, None)
            .filter(|(_, other)| {
                self.shares_band(signature, other) || self.shares_prefix(signature, other)
            })
            .filter(|(_, other)| signature.is_empty() == other.is_empty())
            .map(|(id, _)| id)
            .collect()
    }

    pub(crate) fn nearest(&self, signature: &Signature, n: usize) -> Vec<Found> {
        let ids = self.candidates(signature).into_iter();
        let mut found: Vec<Found> = ids
            .map(|id| self.compare(id, signature, &self.documents[&id].signature))
            .collect();
        best_first(&mut found);
        found.truncate(n);
        found
    }

    fn families(&self, question: &Question) -> Option<Families> {
        let (minhash, simhash) = (
            self.schema.minhash().is_some(),
            self.schema.simhash().is_some(),
        );
        let by = match (question.by, minhash, simhash) {
            (Some(by), ..) => by,
            (None, true, false) => By::MinHash,
            (None, false, true) => By::SimHash,
            _ => match (question.min_similarity, question.max_distance) {
                (Some(_), None) => By::MinHash,
                (None, Some(_)) => By::SimHash,
                _ if self.schema.near() == Near::Both => By::Both,
                _ => By::Any,
            },
        };
        let families = Families {
            minhash: by != By::SimHash,
            simhash: by != By::MinHash,
            both: by == By::Both,
        };
        ((minhash || !families.minhash) && (simhash || !families.simhash)).then_some(families)
    }

    /// The two bounds with what the schema says where the question is silent; `None` if refused.
    fn bounds(&self, question: &Question, families: Families) -> Option<(f64, u32)> {
        let (mut similarity, mut distance) = (f64::NAN, 0);
        if families.minhash {
            let threshold = self.schema.minhash()?.threshold();
            similarity = question.min_similarity.unwrap_or(threshold);
            let lower = similarity < threshold;
            if !(0.0..=1.0).contains(&similarity)
                || lower && !question.scan && !question.accept_lower_recall
            {
                return None;
            }
        } else if question.min_similarity.is_some() {
            return None;
        }
        if families.simhash {
            let most = u32::from(self.schema.simhash()?.max_distance());
            distance = question.max_distance.unwrap_or(most);
            if distance > most && !question.scan {
                return None;
            }
        } else if question.max_distance.is_some() {
            return None;
        }
        Some((similarity, distance))
    }

    /// `None` if the question must be refused.
    pub(crate) fn query(
        &self,
        signature: &Signature,
        question: &Question,
        exclude: Option<u64>,
    ) -> Option<Answer> {
        let families = self.families(question)?;
        let (similarity, distance) = self.bounds(question, families)?;
        let mut found = Vec::new();
        let mut compared = 0;
        for (id, other) in self.others(signature, exclude) {
            let pair = self.compare(id, signature, other);
            let similar = families.minhash && pair.similarity() >= similarity;
            let close = families.simhash && pair.distance <= distance;
            let in_band = families.minhash && !families.both && self.shares_band(signature, other);
            if !(question.scan || in_band || close) {
                continue;
            }
            compared += 1;
            let near = if families.both {
                similar && close
            } else {
                similar || close
            };
            if near && signature.is_empty() == other.is_empty() {
                found.push(pair);
            }
        }
        if question.scan && self.is_filed(signature) {
            let ids = self.documents.keys();
            compared = ids.filter(|id| Some(**id) != exclude).count();
        }
        best_first(&mut found);
        found.truncate(question.limit.unwrap_or(usize::MAX));
        Some(Answer { found, compared })
    }
}

impl Model {
    /// The pairs of ids, the lesser first, that queries for all documents find; `None` if refused.
    pub(crate) fn pairs(&self, question: &Question) -> Option<BTreeMap<(u64, u64), Found>> {
        self.bounds(question, self.families(question)?)?;
        let mut pairs = BTreeMap::new();
        for (id, entry) in &self.documents {
            let answer = self.query(&entry.signature, question, Some(*id))?;
            let later = answer.found.into_iter().filter(|found| found.id > *id);
            pairs.extend(later.map(|found| ((*id, found.id), found)));
        }
        Some(pairs)
    }
}

/// The groups that pairs connect, each ascending, by their first.
pub(crate) fn components<'p>(pairs: impl IntoIterator<Item = &'p (u64, u64)>) -> Vec<Vec<u64>> {
    let mut groups: Vec<Vec<u64>> = Vec::new();
    for (a, b) in pairs {
        let holds = |group: &Vec<u64>| group.contains(a) || group.contains(b);
        let (touched, mut others): (Vec<_>, Vec<_>) = groups.into_iter().partition(holds);
        let mut group = touched.concat();
        group.extend([*a, *b]);
        group.sort_unstable();
        group.dedup();
        others.push(group);
        groups = others;
    }
    groups.sort_unstable();
    groups
}

/// Greater similarity, then lesser distance, then lesser id.
fn best_first(found: &mut [Found]) {
    found.sort_by(|a, b| {
        let by_similarity = b.similarity().total_cmp(&a.similarity());
        by_similarity
            .then(a.distance.cmp(&b.distance))
            .then(a.id.cmp(&b.id))
    });
}
