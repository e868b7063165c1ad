//! Upserts, and changes of documents that keep their postings: touches, and upserts of the same
//! signature.

use crate::engine::{DOCUMENTS, EngineResult, PAYLOADS, RowTable};
use crate::error::Result;
use crate::format::{DocumentRow, RowHead, encode_payload};
use crate::invariant::{OrBug, invariant};
use crate::query::{Bounds, Scorer};
use crate::read::ReadView;
use crate::types::{Document, DocumentId, Revision, Upserted};
use crate::write::pending_rows::DocumentRows;
use crate::write::writer::Writer;
use resemblance_sketch::sketch::Signature;

impl Writer {
    /// Gives a document another stamp, and returns true if there is one with this id.
    pub(super) fn touch(&mut self, id: u64, stamp: u64) -> Result<bool> {
        let touched = self.view().with_document(id, |row| {
            let head = RowHead { stamp, ..row.head };
            let is_other = row.head != head;
            is_other.then(|| row.with_head(id, &head)).transpose()
        })?;
        let is_there = touched.is_some();
        if let Some(row) = touched.flatten() {
            self.replace_document_row(id, row)?;
            self.counters.count.touched.add(1);
        }
        Ok(is_there)
    }

    /// Stores a document, and replaces the one with its key, if there is one.
    pub(super) fn upsert(
        &mut self,
        document: &Document<'_>,
        signature: &Signature,
    ) -> Result<Upserted> {
        let last = match document.key() {
            Some(key) => self.view().find_key(key)?.map(|id| (key, id)),
            None => None,
        };
        let revision = match last {
            Some((key, last)) => revision(self, last, key, signature)?,
            None => Revision::First,
        };
        let replaced = last.map(|(_, id)| id);
        if let (Revision::Unchanged(_), Some(id)) = (&revision, replaced) {
            self.renew(id, document, signature)?;
            self.counters.count.unchanged.add(1);
            return Ok(Upserted {
                id: DocumentId::new(id),
                replaced: None,
                revision,
            });
        }
        if let Some(id) = replaced {
            let is_removed = self.remove_document(id)?;
            invariant!(
                is_removed,
                "document {id} was found by its key and is not there"
            );
            self.counters.count.replaced.add(1);
        }
        Ok(Upserted {
            id: self.store_document(document, signature)?,
            replaced: replaced.map(DocumentId::new),
            revision,
        })
    }

    /// Gives a document with this signature another stamp and payload, where they differ.
    fn renew(&mut self, id: u64, document: &Document<'_>, signature: &Signature) -> Result<()> {
        let head = RowHead::new(document, signature.is_empty());
        let stored = self.view().with_document(id, |row| {
            let is_other = row.head != head;
            let renewed = is_other.then(|| row.with_head(id, &head)).transpose()?;
            Ok((row.head.has_payload, renewed))
        })?;
        let (had_payload, renewed) = stored.or_bug("a document that was found by its key")?;
        if had_payload || head.has_payload {
            self.renew_payload_row(id, encode_payload(id, &document.payload))?;
        }
        match renewed {
            Some(row) => self.replace_document_row(id, row),
            None => Ok(()),
        }
    }

    fn replace_document_row(&mut self, id: u64, row: Vec<u8>) -> Result<()> {
        if self.pending.covers(id) {
            let change = |rows: &mut DocumentRows| rows.document = row;
            return self.renew_pending(id, change);
        }
        self.replace_row(DOCUMENTS, id, Some(row))
    }

    /// Replaces the row of a payload, unless it is the same; `None` is that of a document without one.
    fn renew_payload_row(&mut self, id: u64, row: Option<Vec<u8>>) -> Result<()> {
        let mut is_same = false;
        self.payload_row(id, &mut |stored| {
            is_same = stored == row.as_deref();
            Ok(())
        })?;
        if is_same {
            return Ok(());
        }
        if self.pending.covers(id) {
            let change = |rows: &mut DocumentRows| rows.payload = row;
            return self.renew_pending(id, change);
        }
        self.replace_row(PAYLOADS, id, row)
    }

    fn renew_pending(&mut self, id: u64, change: impl FnOnce(&mut DocumentRows)) -> Result<()> {
        let is_there = self.pending.change(id, change)?;
        invariant!(is_there, "document {id} has lost the row that was read");
        self.note_renewed()
    }

    fn replace_row(&mut self, table: RowTable, id: u64, row: Option<Vec<u8>>) -> Result<()> {
        let mut rows = self.write()?.open_table(table).engine()?;
        match &row {
            Some(row) => rows.insert(id, row.as_slice()).engine()?,
            None => rows.remove(id).engine()?,
        };
        drop(rows);
        self.note_removed_rows(1);
        self.note_renewed()
    }

    fn note_renewed(&mut self) -> Result<()> {
        self.mark_changed();
        match self.pending.is_full() {
            true => self.flush_pending(),
            false => Ok(()),
        }
    }
}

/// Compares a signature with that of the document `id`, which has this key.
fn revision(source: &dyn ReadView, id: u64, key: &[u8], signature: &Signature) -> Result<Revision> {
    let context = source.context();
    let as_stored = context.document_row(id, &Document::new(key), signature)?;
    let as_stored = DocumentRow::read(id, &as_stored, context.shape())?;
    // By containment alone nothing is near.
    let bounds = match context.schema.has_families() {
        true => Some(Bounds::new().resolve(&context.schema, false)?),
        false => None,
    };
    let scorer = Scorer::new(signature);
    // Before the visit, which keeps the table of rows open: the set may be in the row.
    let exact = source.set_similarity(signature, id, 0.0)?;
    let has_same_set = source.has_set_of(signature, id)?;
    let mut revision = None;
    source.live_documents(&[id], &mut |id, row| {
        let compared = scorer.compare_row(context, id, &row);
        let compared = compared.with_similarity(exact);
        let document = source.to_document(id, &row.head, false)?;
        let last = scorer.matched(context, &compared, document);
        // The bytes are compared and not the estimate: values cut to few bits can agree in all
        // positions where the whole values differ.
        revision = Some(if row.has_signature_of(&as_stored) && has_same_set {
            Revision::Unchanged(last)
        } else if row.is_empty() == signature.is_empty()
            && context.is_filed(signature)
            && bounds
                .as_ref()
                .is_some_and(|bounds| compared.is_within(bounds))
        {
            Revision::Near(last)
        } else {
            Revision::Different(last)
        });
        Ok(())
    })?;
    revision.or_bug_with(|| format!("a visit of the signature of document {id}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::StoreOptions;
    use crate::write::testing;
    use crate::write::transaction::WriteTransaction;

    #[test]
    fn upsert_flushes_growing_rows_as_early_as_new_ones() {
        let folder = tempfile::tempdir().unwrap();
        let (store, signature) = testing::store(&folder, &StoreOptions::new());
        let mut transaction = WriteTransaction::begin(&store).unwrap();
        for mebibytes in [0, 1, 8] {
            let payload = vec![7; mebibytes << 20];
            let document = Document::new("a").payload(&payload);
            transaction.upsert(&document, &signature).unwrap();
            assert!(!transaction.writer.pending.is_full());
        }
        assert!(!transaction.writer.pending.covers(0));
        transaction.commit().unwrap();
    }
}
