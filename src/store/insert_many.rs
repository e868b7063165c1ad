//! Insertion of many documents at once.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::id::DocumentId;
use crate::sketch::Signature;
use crate::store::batch::{self, Codes, Families, Pieces};
use crate::store::bounds::{Bounds, Resolved};
use crate::store::core::Core;
use crate::store::query::{Scope, Scored, Subject};
use crate::store::record::{Document, Novelty};
use crate::store::transaction::WriteTransaction;
use crate::store::writer::Writer;

/// A document with its signature.
type Pair<'d> = (Document<'d>, &'d Signature);

impl WriteTransaction {
    /// [`insert_document`](Self::insert_document) for many, all or none: the keys are looked up
    /// together before anything is inserted. Their ids, in the order of the documents.
    ///
    /// # Errors
    ///
    /// As [`insert_document`](Self::insert_document), and nothing of the batch is inserted: bad
    /// input says its index in the batch. [`Error::KeyExists`] for the first key that is there or
    /// that an earlier document of the batch has; the id is then the one that this would have got.
    ///
    /// ```
    /// # use resemblance::{Document, Error, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// let page = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// let batch = [(Document::new("a"), &page), (Document::new("b"), &page)];
    /// assert_eq!(transaction.insert_many(&batch)?.len(), 2);
    ///
    /// let batch = [(Document::new("c"), &page), (Document::new("b"), &page)];
    /// assert!(matches!(transaction.insert_many(&batch), Err(Error::KeyExists { .. })));
    /// assert!(!transaction.contains("c")?);
    /// transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn insert_many(
        &mut self,
        documents: &[(Document<'_>, &Signature)],
    ) -> Result<Vec<DocumentId>> {
        self.check_many(documents)?;
        self.change(|writer| {
            let keys: Vec<Option<&[u8]>> = documents.iter().map(|(d, _)| d.row.key).collect();
            if let Some((key, id)) = first_taken(writer, &keys)? {
                let (key, id) = (key.to_vec(), DocumentId::new(id));
                return Err(Error::KeyExists { key, id });
            }
            let stored = documents.iter().map(|(d, s)| writer.store_document(d, s));
            stored.collect()
        })
    }

    /// [`insert_document_if_new`](Self::insert_document_if_new) for many, one after the other: what
    /// was there before is looked up together, and every document of the batch is also compared with
    /// those before it. What was found, in the order of the documents.
    ///
    /// # Errors
    ///
    /// As [`insert_document_if_new`](Self::insert_document_if_new); for bad input, which says its
    /// index in the batch, nothing of the batch is inserted.
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Novelty, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// let page = store.sketch_text("some text or other")?;
    /// let other = store.sketch_text("something quite different")?;
    /// let mut transaction = store.begin_write()?;
    /// let found = transaction.insert_many_if_new(&[
    ///     (Document::new("a"), &page),
    ///     (Document::new("b"), &page),
    ///     (Document::new("c"), &other),
    ///     (Document::new("c"), &page),
    /// ])?;
    /// assert!(matches!(
    ///     found[..],
    ///     [Novelty::New(_), Novelty::NearDuplicate(_), Novelty::New(_), Novelty::SameKey(_)]
    /// ));
    /// transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn insert_many_if_new(
        &mut self,
        documents: &[(Document<'_>, &Signature)],
    ) -> Result<Vec<Novelty>> {
        self.check_many(documents)?;
        self.change(|writer| {
            let bounds = Bounds::new().resolve(&writer.store.core.schema, false)?;
            let mut novelties = Vec::with_capacity(documents.len());
            let mut pieces = Pieces::of(documents.len());
            while let Some(range) = pieces.next() {
                let piece = documents.get(range.clone()).unwrap_or_default();
                match Lookup::of(writer, piece, &bounds)? {
                    Some(lookup) => lookup.insert_new(writer, &bounds, &mut novelties)?,
                    None => pieces.halve(range),
                }
            }
            Ok(novelties)
        })
    }

    fn check_many(&self, documents: &[Pair<'_>]) -> Result<()> {
        let mut checks = documents.iter().enumerate();
        checks.try_for_each(|(index, (document, signature))| {
            let checked = self.check(document, signature);
            checked.map_err(|error| batch::in_batch(error, index))
        })
    }
}

/// The first key that the store or an earlier document of the batch has, and whose it is.
fn first_taken<'k>(writer: &Writer, keys: &[Option<&'k [u8]>]) -> Result<Option<(&'k [u8], u64)>> {
    let known = batch::find_keys(writer.source(), keys)?;
    let mut earlier = HashMap::new();
    for ((key, known), id) in keys.iter().zip(known).zip(writer.state.next_id..) {
        let Some(key) = *key else {
            continue;
        };
        if let Some(holder) = known.or_else(|| earlier.insert(key, id)) {
            return Ok(Some((key, holder)));
        }
    }
    Ok(None)
}

/// What was there before the documents of a piece.
struct Lookup<'d> {
    documents: &'d [Pair<'d>],
    codes: Codes,
    /// The document with the same key.
    same_key: Vec<Option<u64>>,
    /// The nearest one within the bounds.
    nearest: Vec<Option<Scored>>,
}

impl<'d> Lookup<'d> {
    /// `None` if the piece must be halved.
    fn of(writer: &Writer, documents: &'d [Pair<'d>], bounds: &Resolved) -> Result<Option<Self>> {
        let source = writer.source();
        let keys: Vec<Option<&[u8]>> = documents.iter().map(|(d, _)| d.row.key).collect();
        let same_key = batch::find_keys(source, &keys)?;
        let signatures = documents.iter().map(|(_, signature)| *signature);
        let mut codes = Codes::of(source.core(), Families::of(bounds), signatures)?;
        for (asker, known) in same_key.iter().enumerate() {
            if known.is_some() {
                codes.leave_out(asker);
            }
        }
        let Some(candidates) = batch::candidates(source, &codes)? else {
            return Ok(None);
        };
        let mut nearest = vec![None; documents.len()];
        batch::compare(source, &candidates, &mut |candidate, row| {
            let asker = candidate.asker as usize;
            if let (Some(nearest), Some((_, signature))) =
                (nearest.get_mut(asker), documents.get(asker))
            {
                let score = Subject::new(signature).score(source, candidate.id, row);
                keep_nearer(nearest, score, bounds);
            }
        })?;
        Ok(Some(Self {
            documents,
            codes,
            same_key,
            nearest,
        }))
    }

    /// Inserts those that are new.
    fn insert_new(
        self,
        writer: &mut Writer,
        bounds: &Resolved,
        novelties: &mut Vec<Novelty>,
    ) -> Result<()> {
        let mut inserted = Inserted::new(self.documents, &self.codes);
        let known = self.same_key.into_iter().zip(self.nearest);
        for (asker, ((document, signature), (same_key, mut nearest))) in
            self.documents.iter().zip(known).enumerate()
        {
            let subject = Subject::new(signature);
            let of_batch = || document.row.key.and_then(|key| inserted.with_key(key));
            if let Some(id) = same_key.or_else(of_batch) {
                novelties.push(Novelty::SameKey(subject.compare(writer.source(), id)?));
                continue;
            }
            let core = &writer.store.core;
            for (id, other) in inserted.candidates(core, asker) {
                let score = subject.score_signature(core, id, other);
                keep_nearer(&mut nearest, score, bounds);
            }
            if let Some(nearest) = nearest {
                let (near, scope) = (vec![nearest], Scope::Candidates);
                let matches = subject.finish(writer.source(), near, 1, scope, 1)?;
                novelties.extend(matches.into_iter().map(Novelty::NearDuplicate));
                continue;
            }
            let id = writer.store_document(document, signature)?;
            inserted.push(&writer.store.core, asker, id.get());
            novelties.push(Novelty::New(id));
        }
        Ok(())
    }
}

/// Keeps the better one of those that are within the bounds.
fn keep_nearer(nearest: &mut Option<Scored>, score: Option<Scored>, bounds: &Resolved) {
    let score = score.filter(|score| bounds.accepts(score.equal, score.distance));
    if let Some(score) = score
        && nearest.is_none_or(|nearest| score.rank() < nearest.rank())
    {
        *nearest = Some(score);
    }
}

/// The documents of a piece that have been inserted, filed in memory: those that come after them
/// are compared with them, whatever the store has done with them since.
struct Inserted<'d> {
    documents: &'d [Pair<'d>],
    codes: &'d Codes,
    keys: HashMap<&'d [u8], u64>,
    /// The last document of each bucket, as an index of `entries`.
    buckets: HashMap<(u16, u64), usize>,
    entries: Vec<Entry>,
}

/// A document filed in a bucket.
struct Entry {
    id: u64,
    code: u64,
    document: usize,
    /// The one before in the same bucket.
    earlier: Option<usize>,
}

impl<'d> Inserted<'d> {
    fn new(documents: &'d [Pair<'d>], codes: &'d Codes) -> Self {
        Self {
            documents,
            codes,
            keys: HashMap::new(),
            buckets: HashMap::new(),
            entries: Vec::new(),
        }
    }

    fn with_key(&self, key: &[u8]) -> Option<u64> {
        self.keys.get(key).copied()
    }

    /// Those that share a bucket with a document of the piece, each once.
    fn candidates(&self, core: &Core, document: usize) -> Vec<(u64, &'d Signature)> {
        let mut found = Vec::new();
        for (swept, code) in self.codes.row(document) {
            let mut next = self.buckets.get(&swept.bucket(core, code)).copied();
            while let Some(entry) = next.and_then(|index| self.entries.get(index)) {
                if self.codes.accepts(swept, code, entry.code) {
                    found.push((entry.id, entry.document));
                }
                next = entry.earlier;
            }
        }
        found.sort_unstable();
        found.dedup();
        let signature = |(id, document): (u64, usize)| Some((id, self.documents.get(document)?.1));
        found.into_iter().filter_map(signature).collect()
    }

    fn push(&mut self, core: &Core, document: usize, id: u64) {
        let key = self.documents.get(document).and_then(|(d, _)| d.row.key);
        self.keys.extend(key.map(|key| (key, id)));
        for (swept, code) in self.codes.row(document) {
            let index = self.entries.len();
            let earlier = self.buckets.insert(swept.bucket(core, code), index);
            self.entries.push(Entry {
                id,
                code,
                document,
                earlier,
            });
        }
    }
}
