//! A store as anyone would write it down: a map, and comparisons with everything in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use resemblance::{Bounds, By, EmptyDocuments, Near, Query, Schema, Signature, TableDesign};

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
    prefixes: Arc<[u64]>,
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

/// A found document: its id, how many MinHash values are equal, and the distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) id: u64,
    pub(crate) equal: usize,
    pub(crate) distance: u32,
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
/// begins at bit ceil(64 i / n), counted from the top; a group has a table for every choice.
fn prefixes(design: &TableDesign) -> Vec<u64> {
    let blocks: u32 = design.groups().iter().map(|group| u32::from(group.0)).sum();
    let start = |block: u32| (block * 64).div_ceil(blocks);
    let bits_of = |block: u32| {
        (start(block)..start(block + 1)).fold(0u64, |bits, bit| bits | 1 << (63 - bit))
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
        let (Some(schema), Some(a), Some(b)) = (self.schema.minhash(), a.minhash(), b.minhash())
        else {
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

    pub(crate) fn compare(id: u64, a: &Signature, b: &Signature) -> Found {
        let pairs = a.minhash().unwrap_or_default().iter();
        let pairs = pairs.zip(b.minhash().unwrap_or_default());
        let fingerprints = a.simhash().zip(b.simhash());
        Found {
            id,
            equal: pairs.filter(|(a, b)| a == b).count(),
            distance: fingerprints.map_or(0, |(a, b)| (a ^ b).count_ones()),
        }
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
            .map(|id| Self::compare(id, signature, &self.documents[&id].signature))
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
        let values = self.schema.minhash().map_or(1, |m| m.values());
        let mut found = Vec::new();
        let mut compared = 0;
        for (id, other) in self.others(signature, exclude) {
            let pair = Self::compare(id, signature, other);
            let similar = families.minhash && pair.equal as f64 / f64::from(values) >= similarity;
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
        let by_similarity = b.equal.cmp(&a.equal);
        by_similarity
            .then(a.distance.cmp(&b.distance))
            .then(a.id.cmp(&b.id))
    });
}
