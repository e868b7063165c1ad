//! Insertion of many documents at once.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::id::DocumentId;
use crate::sketch::Signature;
use crate::store::batch::{self, Codes, Families, Pieces};
use crate::store::bounds::{Bounds, Resolved};
use crate::store::core::Core;
use crate::store::matches::Scope;
use crate::store::query::Subject;
use crate::store::record::{Document, Novelty};
use crate::store::scored::Scored;
use crate::store::transaction::WriteTransaction;
use crate::store::verify::{Earlier, Outside, Told};
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
        self.insert_new(documents, None)
    }

    /// [`insert_many_if_new`](Self::insert_many_if_new) with every candidate verified, those too
    /// whose estimate is not within the bounds: as [`Query::verify`](crate::Query::verify). The
    /// closure is given the index of a document and what it may resemble, each two at most once,
    /// and does not see this transaction. The [`Match`](crate::Match) of a key that is there
    /// already remains an estimate.
    ///
    /// # Errors
    ///
    /// As [`insert_many_if_new`](Self::insert_many_if_new). After an error of the closure, or a
    /// value that is not 0 to 1, the transaction can only be rolled back.
    ///
    /// ```
    /// # use resemblance::{Document, Earlier, MinHash, Novelty, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// let texts = ["some text or other", "some text or other"];
    /// let page = store.sketch_text(texts[0])?;
    /// let batch = [(Document::new("a"), &page), (Document::new("b"), &page)];
    /// let mut transaction = store.begin_write()?;
    /// let found = transaction.insert_many_if_new_verified(&batch, |index, earlier| {
    ///     Ok(match earlier {
    ///         Earlier::OfBatch(other) => Some(f64::from(texts[index] == texts[other])),
    ///         Earlier::Stored(_) => None, // its text is not at hand
    ///     })
    /// })?;
    /// assert!(matches!(&found[1], Novelty::NearDuplicate(found) if found.is_exact()));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn insert_many_if_new_verified(
        &mut self,
        documents: &[(Document<'_>, &Signature)],
        similarity: impl Fn(usize, Earlier) -> Result<Option<f64>>,
    ) -> Result<Vec<Novelty>> {
        let outside = Outside::default();
        let ask = |index, earlier| outside.ask(|| similarity(index, earlier));
        let novelties = self.insert_new(documents, Some(&ask));
        outside.leave();
        novelties
    }

    fn insert_new(
        &mut self,
        documents: &[Pair<'_>],
        ask: Option<&AskOfBatch<'_>>,
    ) -> Result<Vec<Novelty>> {
        self.check_many(documents)?;
        self.change(|writer| {
            let mut insertion = Insertion {
                bounds: Bounds::new().resolve(&writer.store.core.schema, false)?,
                first_id: writer.state.next_id,
                ask,
                novelties: Vec::with_capacity(documents.len()),
                inserted: Vec::new(),
            };
            let mut pieces = Pieces::of(documents.len());
            while let Some(range) = pieces.next() {
                let piece = documents.get(range.clone()).unwrap_or_default();
                match Lookup::of(writer, piece, &insertion)? {
                    Some(lookup) => lookup.insert_new(writer, &mut insertion)?,
                    None => pieces.halve(range),
                }
            }
            Ok(insertion.novelties)
        })
        .inspect(|all| {
            all.iter()
                .for_each(|novelty| self.writer.tally.answered(novelty))
        })
    }

    pub(super) fn check_many(&self, documents: &[Pair<'_>]) -> Result<()> {
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

/// Asks the caller about a document of the batch and an earlier one.
type AskOfBatch<'v> = dyn Fn(usize, Earlier) -> Told + 'v;

/// A batch on its way into the store.
struct Insertion<'v> {
    bounds: Resolved,
    /// Documents from here on are of the batch.
    first_id: u64,
    ask: Option<&'v AskOfBatch<'v>>,
    /// Of the documents that were dealt with.
    novelties: Vec<Novelty>,
    /// Which documents of the batch were inserted, in the order of their ids, which have no gaps.
    inserted: Vec<usize>,
}

impl Insertion<'_> {
    /// Keeps the better one of those that are within the bounds.
    fn keep_nearer(&self, nearest: &mut Option<Scored>, scored: Scored) {
        if scored.is_within(&self.bounds)
            && nearest.is_none_or(|nearest| scored.rank() < nearest.rank())
        {
            *nearest = Some(scored);
        }
    }

    /// Verifies a candidate of the document at an index, if that is wanted.
    fn settle(&self, index: usize, scored: &mut Scored) -> Result<()> {
        let Some(ask) = self.ask else {
            return Ok(());
        };
        let place = scored.id.checked_sub(self.first_id);
        let of_batch = place.and_then(|place| self.inserted.get(usize::try_from(place).ok()?));
        let earlier = match of_batch {
            Some(other) => Earlier::OfBatch(*other),
            None => Earlier::Stored(DocumentId::new(scored.id)),
        };
        scored.settle(ask(index, earlier)?);
        Ok(())
    }
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
    fn of(
        writer: &Writer,
        documents: &'d [Pair<'d>],
        insertion: &Insertion<'_>,
    ) -> Result<Option<Self>> {
        let source = writer.source();
        let keys: Vec<Option<&[u8]>> = documents.iter().map(|(d, _)| d.row.key).collect();
        let same_key = batch::find_keys(source, &keys)?;
        let signatures = documents.iter().map(|(_, signature)| *signature);
        let families = Families::of(&insertion.bounds);
        let mut codes = Codes::of(source.core(), families, signatures)?;
        for (asker, known) in same_key.iter().enumerate() {
            if known.is_some() {
                codes.leave_out(asker);
            }
        }
        let Some(candidates) = batch::candidates(source, &codes)? else {
            return Ok(None);
        };
        let mut nearest = vec![None; documents.len()];
        let mut to_verify = Vec::new();
        batch::compare(source, &candidates, &mut |candidate, row| {
            let asker = candidate.asker as usize;
            let scored = documents.get(asker).and_then(|(_, signature)| {
                let bounds = Some(&insertion.bounds);
                Subject::new(signature).score(source.core(), candidate.id, row, bounds)
            });
            if insertion.ask.is_some() {
                to_verify.extend(scored.map(|scored| (asker, scored)));
            } else if let (Some(scored), Some(nearest)) = (scored, nearest.get_mut(asker)) {
                insertion.keep_nearer(nearest, scored);
            }
        })?;
        // Document by document, each against the others in their order.
        to_verify.sort_by_key(|(asker, _)| *asker);
        for (asker, mut scored) in to_verify {
            insertion.settle(insertion.novelties.len() + asker, &mut scored)?;
            if let Some(nearest) = nearest.get_mut(asker) {
                insertion.keep_nearer(nearest, scored);
            }
        }
        Ok(Some(Self {
            documents,
            codes,
            same_key,
            nearest,
        }))
    }

    /// Inserts those that are new.
    fn insert_new(self, writer: &mut Writer, insertion: &mut Insertion<'_>) -> Result<()> {
        let mut inserted = Inserted::new(self.documents, &self.codes);
        let known = self.same_key.into_iter().zip(self.nearest);
        for (asker, ((document, signature), (same_key, mut nearest))) in
            self.documents.iter().zip(known).enumerate()
        {
            let index = insertion.novelties.len();
            let subject = Subject::new(signature);
            let of_batch = || document.row.key.and_then(|key| inserted.with_key(key));
            if let Some(id) = same_key.or_else(of_batch) {
                let known = subject.compare(writer.source(), id)?;
                insertion.novelties.push(Novelty::SameKey(known));
                continue;
            }
            let core = &writer.store.core;
            for (id, other) in inserted.candidates(core, asker) {
                if let Some(mut scored) =
                    subject.score_signature(core, id, other, &insertion.bounds)
                {
                    insertion.settle(index, &mut scored)?;
                    insertion.keep_nearer(&mut nearest, scored);
                }
            }
            if let Some(nearest) = nearest {
                let (near, scope) = (vec![nearest], Scope::Candidates);
                let matches = subject.finish(writer.source(), near, 1, scope, 1)?;
                let found = matches.into_iter().map(Novelty::NearDuplicate);
                insertion.novelties.extend(found);
                continue;
            }
            let id = writer.store_document(document, signature)?;
            inserted.push(&writer.store.core, asker, id.get());
            insertion.inserted.push(index);
            insertion.novelties.push(Novelty::New(id));
        }
        Ok(())
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
