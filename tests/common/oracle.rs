//! A store as anyone would write it down: a map, and comparisons with everything in it.

mod kept_clusters;
mod life;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::PI;
use std::sync::Arc;

use resemblance::exact::{WeightedSet, probability_jaccard};
use resemblance::schema::{EmptyDocuments, MinHashKind, MinHashSchema, TableDesign};
use resemblance::{Combine, Document, Family, Record, Schema, Signature, Snapshot};

use self::kept_clusters::KeptClusters;
use super::question::{Passing, Question, reported};

/// A stored document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) signature: Signature,
    pub(crate) stamp: u64,
    pub(crate) payload: Vec<u8>,
}

impl Entry {
    /// Creates an entry with only a key and a signature.
    pub(crate) fn new(key: Option<Vec<u8>>, signature: Signature) -> Self {
        Self {
            key,
            signature,
            stamp: 0,
            payload: Vec::new(),
        }
    }

    pub(crate) fn of(record: &Record) -> Self {
        Self {
            key: record.key().map(<[u8]>::to_vec),
            signature: record.signature().clone(),
            stamp: record.stamp(),
            payload: record.payload().to_vec(),
        }
    }

    pub(crate) fn document(&self) -> Document<'_> {
        let document = match &self.key {
            Some(key) => Document::new(key),
            None => Document::without_key(),
        };
        document.stamp(self.stamp).payload(&self.payload)
    }
}

/// Returns the stored entries by id, as a snapshot reads them.
pub(crate) fn contents(snapshot: &Snapshot) -> BTreeMap<u64, Entry> {
    let records = snapshot.iter().map(Result::unwrap);
    let content = |record: Record| (record.id().get(), Entry::of(&record));
    records.map(content).collect()
}

/// The documents by id. Cheap to clone: a transaction works on its own copy.
#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) schema: Schema,
    pub(crate) documents: BTreeMap<u64, Arc<Entry>>,
    pub(crate) next_id: u64,
    kept: KeptClusters,
    /// The bits of the leading blocks of each table.
    prefixes: Arc<[u128]>,
}

/// A found document: its id, the estimate before it is brought into 0 to 1, and the distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) id: u64,
    pub(crate) estimate: f64,
    /// The similarity before rounding, which decides.
    unrounded: f64,
    /// True if the caller reported the similarity, rather than the signatures.
    pub(crate) is_exact: bool,
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

/// Returns what a store keeps of a value of a signature that may already be cut.
pub(crate) fn kept(schema: &MinHashSchema, signature: &Signature, value: u32) -> u32 {
    let bits = schema.value_bits();
    let is_whole = signature.value_bits() == Some(32);
    match schema.kind() {
        MinHashKind::External => value & (u32::MAX >> (32 - bits)),
        _ if is_whole => cut(value, bits),
        _ => {
            assert_eq!(signature.value_bits(), Some(bits));
            value
        }
    }
}

fn mix64(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// The values that bands are made of, as the specification has them: those that are stored. Of
/// bottom-k row j is a hash of the least value in bin j.
fn rows(signature: &Signature, schema: &MinHashSchema) -> Option<Vec<u32>> {
    let Some(hashes) = signature.bottom_k() else {
        let values = signature.minhash()?.iter();
        return Some(
            values
                .map(|value| kept(schema, signature, *value))
                .collect(),
        );
    };
    let count = u64::from(schema.values() / 8);
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

/// Estimates from the smallest hashes are reported in steps of 2^-30.
const ROUNDED_TO: f64 = (1 << 30) as f64;

/// The share of the union's smallest hashes that both have.
fn shared(a: &[u64], b: &[u64], most: usize) -> f64 {
    let union: BTreeSet<&u64> = a.iter().chain(b).collect();
    let smallest: Vec<&u64> = union.into_iter().take(most).collect();
    let both = smallest
        .iter()
        .filter(|hash| a.contains(hash) && b.contains(hash));
    if smallest.is_empty() {
        1.0
    } else {
        both.count() as f64 / smallest.len() as f64
    }
}

pub(crate) struct Answer {
    pub(crate) found: Vec<Found>,
    /// How many documents are compared to find them.
    pub(crate) compared: usize,
    /// How many a budget leaves out.
    pub(crate) left_out: u64,
}

/// The families that decide, and whether both must agree.
#[derive(Clone, Copy)]
struct Families {
    minhash: bool,
    simhash: bool,
    both: bool,
}

/// The bits that lead in each table, from the documented rule of [`TableDesign`]: block i of n
/// begins at bit ceil(bits * i / n), counted from the top; a group has a table for every choice, in
/// lexicographic order of the chosen blocks.
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
        let mut choices: Vec<Vec<u32>> = (0u32..1 << size)
            .filter(|choice| choice.count_ones() == u32::from(chosen))
            .map(|choice| {
                (0..u32::from(size))
                    .filter(|b| choice >> b & 1 == 1)
                    .collect()
            })
            .collect();
        choices.sort_unstable();
        let prefix =
            |blocks: Vec<u32>| blocks.iter().fold(0, |b, block| b | bits_of(first + block));
        prefixes.extend(choices.into_iter().map(prefix));
        first += u32::from(size);
    }
    prefixes
}

impl Model {
    pub(crate) fn new(schema: Schema) -> Self {
        let prefixes = schema.simhash().map_or_else(Vec::new, prefixes);
        Self {
            schema,
            documents: BTreeMap::new(),
            next_id: 0,
            kept: KeptClusters::default(),
            prefixes: prefixes.into(),
        }
    }

    /// Files the same documents by another schema.
    pub(crate) fn refile(&mut self, schema: Schema) {
        *self = Self {
            documents: std::mem::take(&mut self.documents),
            next_id: self.next_id,
            kept: std::mem::take(&mut self.kept),
            ..Self::new(schema)
        };
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
        self.link(id);
        id
    }

    pub(crate) fn remove_key(&mut self, key: &[u8]) -> Option<u64> {
        let id = self.id_of(key)?;
        self.remove(id);
        Some(id)
    }

    /// The documents that a filter lets pass; all of them without one.
    pub(crate) fn passing(&self, filter: Option<Passing>) -> Self {
        let mut passing = self.clone();
        let passes = |id, entry: &Entry| filter.is_none_or(|filter| filter.passes(id, entry));
        passing.documents.retain(|id, entry| passes(*id, entry));
        passing
    }

    /// Documents without features are near no document, unless the schema says that they are alike.
    fn is_filed(&self, signature: &Signature) -> bool {
        !signature.is_empty() || self.schema.empty_documents() == EmptyDocuments::Alike
    }

    fn shares_band(&self, a: &Signature, b: &Signature) -> bool {
        let Some(schema) = self.schema.minhash() else {
            return false;
        };
        let (Some(a), Some(b)) = (rows(a, &schema), rows(b, &schema)) else {
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

    /// Compares as the store does: by sets if it is exact, otherwise by signatures.
    pub(crate) fn compare(&self, id: u64, a: &Signature, b: &Signature) -> Found {
        let estimated = self.compare_signatures(id, a, b);
        if !self.schema.is_exact() {
            return estimated;
        }
        let similarity = self.similarity_of_sets(a, b);
        Found {
            estimate: similarity,
            unrounded: similarity,
            is_exact: true,
            ..estimated
        }
    }

    fn similarity_of_sets(&self, a: &Signature, b: &Signature) -> f64 {
        let kind = self.schema.minhash().unwrap().kind();
        if let MinHashKind::Vector(_) = kind {
            let other = b.exact_set().unwrap();
            return a
                .exact_set()
                .unwrap()
                .similarity_from(0.0, other, kind)
                .unwrap();
        }
        let weights = |signature: &Signature| -> BTreeMap<u64, u64> {
            let Some(set) = signature.exact_set() else {
                let kept = signature.kept_hashes().unwrap();
                return kept.iter().map(|hash| (*hash, 1)).collect();
            };
            let weights = set.weights().iter().copied().chain(std::iter::repeat(1));
            set.hashes().iter().copied().zip(weights).collect()
        };
        let (a, b) = (weights(a), weights(b));
        if kind == MinHashKind::Probability {
            let set = |weights: BTreeMap<u64, u64>| {
                WeightedSet::new(
                    weights
                        .into_iter()
                        .map(|(hash, weight)| (hash, weight as f64)),
                )
            };
            return probability_jaccard(&set(a).unwrap(), &set(b).unwrap());
        }
        let all: BTreeSet<u64> = a.keys().chain(b.keys()).copied().collect();
        let of = |set: &BTreeMap<u64, u64>, hash: &u64| set.get(hash).copied().unwrap_or(0);
        let least: u64 = all.iter().map(|hash| of(&a, hash).min(of(&b, hash))).sum();
        let most: u64 = all.iter().map(|hash| of(&a, hash).max(of(&b, hash))).sum();
        if most == 0 {
            1.0
        } else {
            least as f64 / most as f64
        }
    }

    fn compare_signatures(&self, id: u64, a: &Signature, b: &Signature) -> Found {
        let fingerprints = a.simhash().zip(b.simhash());
        let similarity = self.similarity(a, b);
        Found {
            id,
            estimate: match a.bottom_k() {
                Some(_) => (similarity * ROUNDED_TO).round() / ROUNDED_TO,
                None => similarity,
            },
            unrounded: similarity.clamp(0.0, 1.0),
            is_exact: false,
            distance: fingerprints.map_or(0, |(a, b)| (a ^ b).count_ones()),
        }
    }

    fn similarity(&self, a: &Signature, b: &Signature) -> f64 {
        let Some(schema) = self.schema.minhash() else {
            return 0.0;
        };
        if let (Some(a), Some(b)) = (a.bottom_k(), b.bottom_k()) {
            return shared(a, b, schema.values().into());
        }
        let bits = schema.value_bits();
        let pairs = a.minhash().unwrap_or_default().iter();
        let pairs = pairs.zip(b.minhash().unwrap_or_default());
        let kept = |signature, value: &u32| kept(&schema, signature, *value);
        let equal = pairs.filter(|(x, y)| kept(a, x) == kept(b, y));
        let (equal, values) = (equal.count() as f64, f64::from(schema.values()));
        if let MinHashKind::Vector(_) = schema.kind() {
            // Charikar 2002; estimates of distances are not compared.
            return (PI * ((values - equal) / values)).cos();
        }
        if bits == 32 {
            return equal / values;
        }
        let widths = f64::from(1_u32 << bits);
        (equal * widths - values) / (values * (widths - 1.0))
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

    /// Returns the documents that share a band or the prefix of a table.
    pub(crate) fn candidates(&self, signature: &Signature) -> Vec<u64> {
        self.others(signature, None)
            .filter(|(_, other)| {
                self.shares_band(signature, other) || self.shares_prefix(signature, other)
            })
            .filter(|(_, other)| signature.is_empty() == other.is_empty())
            .map(|(id, _)| id)
            .collect()
    }

    /// The nearest by one family: of all documents, or of those in the signature's buckets.
    pub(crate) fn nearest(
        &self,
        signature: &Signature,
        n: usize,
        by: Family,
        in_buckets: bool,
    ) -> Vec<Found> {
        let mut found: Vec<Found> = self
            .others(signature, None)
            .filter(|(_, other)| match by {
                _ if !in_buckets => true,
                Family::SimHash => self.shares_prefix(signature, other),
                _ => self.shares_band(signature, other),
            })
            .filter(|(_, other)| signature.is_empty() == other.is_empty())
            .map(|(id, other)| match by {
                // Distances are exact anyway.
                Family::SimHash => self.compare_signatures(id, signature, other),
                _ => self.compare(id, signature, other),
            })
            .collect();
        best_first(&mut found);
        if by == Family::SimHash {
            found.sort_by_key(|found| found.distance);
        }
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
            (None, true, false) => Family::MinHash,
            (None, false, true) => Family::SimHash,
            _ => match (question.min_similarity, question.max_distance) {
                (Some(_), None) => Family::MinHash,
                (None, Some(_)) => Family::SimHash,
                _ if self.schema.near() == Combine::Both => Family::Both,
                _ => Family::Any,
            },
        };
        let families = Families {
            minhash: by != Family::SimHash,
            simhash: by != Family::MinHash,
            both: by == Family::Both,
        };
        ((minhash || !families.minhash) && (simhash || !families.simhash)).then_some(families)
    }

    /// Returns both bounds, from the schema where the question has none. Returns `None` if the
    /// question is refused.
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
        } else if question.max_distance.is_some() {
            return None;
        }
        Some((similarity, distance))
    }

    /// True if whole buckets alone do not answer a question: which buckets or whether all documents are looked at
    /// is then a matter of cost.
    pub(crate) fn is_beyond_buckets(&self, question: &Question) -> bool {
        let families = self.families(question);
        let asked = families.filter(|families| families.simhash);
        let bounds = asked.and_then(|families| self.bounds(question, families));
        let design = self.schema.simhash();
        bounds.zip(design).is_some_and(|((_, distance), design)| {
            distance > TableDesign::complete_distance(design.groups()).into()
        })
    }

    /// `None` if the question must be refused.
    pub(crate) fn query(
        &self,
        signature: &Signature,
        question: &Question,
        exclude: Option<u64>,
    ) -> Option<Answer> {
        if question.filter.is_some() {
            let without = Question {
                filter: None,
                ..*question
            };
            return self
                .passing(question.filter)
                .query(signature, &without, exclude);
        }
        let families = self.families(question)?;
        let (similarity, distance) = self.bounds(question, families)?;
        if question.budget == Some(0) || question.budget.is_some() && question.scan {
            return None;
        }
        let mut met = self.met(signature, families, distance, exclude);
        let budget = question.budget.map_or(usize::MAX, |budget| budget as usize);
        let left_out = met.split_off(met.len().min(budget));
        let is_left_out = |id: u64| left_out.iter().any(|(_, other)| *other == id);
        let mut found = Vec::new();
        let mut compared = 0;
        for (id, other) in self.others(signature, exclude) {
            let mut pair = self.compare(id, signature, other);
            if let Some(similarity) = question.verify.and_then(|asker| reported(asker, id)) {
                (pair.estimate, pair.unrounded) = (similarity, similarity);
                pair.is_exact = true;
            }
            let similar = families.minhash && pair.unrounded >= similarity;
            let close = families.simhash && pair.distance <= distance;
            let in_band = families.minhash && !families.both && self.shares_band(signature, other);
            if !question.scan && (!(in_band || close) || is_left_out(id)) {
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
        Some(Answer {
            found,
            compared,
            left_out: left_out.len() as u64,
        })
    }

    /// The candidates, those first that share the most bands and tables, then by id.
    fn met(
        &self,
        signature: &Signature,
        families: Families,
        most: u32,
        exclude: Option<u64>,
    ) -> Vec<(Reverse<usize>, u64)> {
        let own = self.codes(signature);
        let bands = self.schema.minhash().map_or(0, |m| usize::from(m.bands()));
        let of_document = |(id, other): (u64, &Signature)| {
            let distance = signature.simhash().zip(other.simhash());
            let is_close = distance.is_none_or(|(a, b)| (a ^ b).count_ones() <= most);
            let codes = self.codes(other);
            let lanes = own.iter().zip(&codes).enumerate();
            let shared = lanes.filter(|(lane, (own, other))| {
                own == other
                    && if *lane < bands {
                        families.minhash && !families.both
                    } else {
                        families.simhash && is_close
                    }
            });
            (Reverse(shared.count()), id)
        };
        let mut met: Vec<_> = self.others(signature, exclude).map(of_document).collect();
        met.retain(|(Reverse(shared), _)| *shared > 0);
        met.sort_unstable();
        met
    }
}

/// A bucket: its lane, how many documents are in it, the first five of them.
pub(crate) type Bucket = (u16, u64, Vec<u64>);

impl Model {
    /// All buckets of more than one document, the largest first, then by lane and first document.
    pub(crate) fn buckets(&self) -> Vec<Bucket> {
        let mut buckets: BTreeMap<(u16, Vec<u128>), Vec<u64>> = BTreeMap::new();
        for (id, document) in &self.documents {
            if !self.is_filed(&document.signature) {
                continue;
            }
            for (code, lane) in self.codes(&document.signature).into_iter().zip(1..) {
                buckets.entry((lane, code)).or_default().push(*id);
            }
        }
        let buckets = buckets.into_iter().filter(|(_, ids)| ids.len() > 1);
        let mut buckets: Vec<Bucket> = buckets
            .map(|((lane, _), ids)| (lane, ids.len() as u64, ids.into_iter().take(5).collect()))
            .collect();
        buckets.sort_by_key(|(lane, count, first)| (Reverse(*count), *lane, first[0]));
        buckets
    }

    /// Returns the codes of a signature in the index: the rows of each band, and the prefix of each
    /// table.
    fn codes(&self, signature: &Signature) -> Vec<Vec<u128>> {
        let minhash = self.schema.minhash();
        let rows = minhash.and_then(|minhash| rows(signature, &minhash));
        let (bands, length) = minhash.map_or((0, 1), |minhash| (minhash.bands(), minhash.rows()));
        let rows: Vec<u128> = rows
            .unwrap_or_default()
            .into_iter()
            .map(Into::into)
            .collect();
        let bands = rows.chunks_exact(length.into()).take(bands.into());
        let fingerprint = signature.simhash().unwrap_or_default();
        let prefixes = self.prefixes.iter();
        let prefixes = prefixes.map(|prefix| vec![fingerprint & prefix]);
        bands.map(<[u128]>::to_vec).chain(prefixes).collect()
    }

    /// The pairs of ids, the lesser first, that queries for all documents find; `None` if refused.
    pub(crate) fn pairs(&self, question: &Question) -> Option<BTreeMap<(u64, u64), Found>> {
        let families = self.families(question)?;
        let (_, distance) = self.bounds(question, families)?;
        // Joins use separate tables for fewer blocks than that.
        let bits = self.schema.simhash().map_or(0, |simhash| simhash.bits());
        if families.simhash && distance >= u32::from(bits.min(64)) {
            return None;
        }
        let mut pairs = BTreeMap::new();
        let passing = self.passing(question.filter);
        for (id, entry) in &passing.documents {
            let question = Question {
                verify: question.verify.map(|_| *id),
                budget: None,
                filter: None,
                ..*question
            };
            let answer = passing.query(&entry.signature, &question, Some(*id))?;
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
