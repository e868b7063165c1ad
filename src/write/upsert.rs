//! Upserts, and changes of documents that keep their postings: touches, and upserts of the same
//! signature.

use crate::engine::{DOCUMENTS, EngineResult};
use crate::error::{Error, Result};
use crate::format::{DocumentRow, SIGNATURES, SignatureRow};
use crate::invariant::{OrBug, invariant};
use crate::lanes::hash_key;
use crate::query::{Bounds, Subject};
use crate::read::ReadView;
use crate::sketch::Signature;
use crate::types::{Document, DocumentId, Revision, Upserted};
use crate::write::writer::Writer;

impl Writer {
    /// Gives a document another stamp, and returns true if there is one with this id.
    pub(super) fn touch(&mut self, id: u64, stamp: u64) -> Result<bool> {
        let (mut is_there, mut touched) = (false, None);
        self.document_row(id, &mut |bytes| {
            let Some(bytes) = bytes else {
                return Ok(());
            };
            is_there = true;
            let row = DocumentRow::decode(id, bytes)?;
            if row.stamp != stamp {
                touched = Some(DocumentRow { stamp, ..row }.encode(id)?);
            }
            Ok(())
        })?;
        if let Some(row) = touched {
            self.replace_document_row(id, &row)?;
            self.counters.touched.add(1);
        }
        Ok(is_there)
    }

    /// Stores a document in place of the one that has its key, if any.
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
            self.renew(id, &DocumentRow::from(document))?;
            self.counters.unchanged.add(1);
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
            self.counters.replaced.add(1);
        }
        Ok(Upserted {
            id: self.store_document(document, signature)?,
            replaced: replaced.map(DocumentId::new),
            revision,
        })
    }

    /// Writes the row of a document unless the stored one is the same.
    fn renew(&mut self, id: u64, row: &DocumentRow<'_>) -> Result<()> {
        let row = row.encode(id)?;
        let mut is_same = false;
        self.document_row(id, &mut |bytes| {
            is_same = bytes == Some(&row);
            Ok(())
        })?;
        if is_same {
            return Ok(());
        }
        self.replace_document_row(id, &row)
    }

    fn replace_document_row(&mut self, id: u64, row: &[u8]) -> Result<()> {
        if !self.pending.replace_document(id, row)? {
            self.write()?
                .open_table(DOCUMENTS)
                .engine()?
                .insert(id, row)
                .engine()?;
            self.note_removed_rows(1);
        }
        self.mark_changed();
        if self.pending.is_full() {
            self.flush_pending()?;
        }
        Ok(())
    }
}

/// Compares a signature with that of the document `id`, which has this key.
fn revision(source: &dyn ReadView, id: u64, key: &[u8], signature: &Signature) -> Result<Revision> {
    let context = source.context();
    let as_stored = context.signature_row(id, Some(hash_key(key)), signature)?;
    // By containment alone nothing is near.
    let has_bounds = context.schema.has_families();
    let bounds = has_bounds.then(|| Bounds::new().resolve(&context.schema, false));
    let bounds = bounds.transpose()?;
    let subject = Subject::new(signature);
    let mut revision = None;
    source.signature_rows(&[id], &mut |id, bytes| {
        let Some(bytes) = bytes else {
            let place = format!("table {SIGNATURES}, document {id}");
            let detail = "found no row, expected one (invariant 1)";
            return Err(Error::corrupt(place, detail));
        };
        let row = SignatureRow::decode(id, bytes, context.shape())?;
        let compared = subject.compare_row(context, id, &row);
        let document = source.document_of(id, false)?;
        let document = document.or_bug("a document that was found by its key")?;
        let last = subject.matched(context, &compared, document);
        // The bytes are compared and not the estimate: values cut to few bits can agree in all
        // positions where the whole values differ.
        revision = Some(if bytes == as_stored {
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
    use crate::write::transaction::Transaction;

    #[test]
    fn rows_that_grow_are_written_as_soon_as_new_ones() {
        let folder = tempfile::tempdir().unwrap();
        let (store, signature) = testing::store(&folder, &StoreOptions::new());
        let mut transaction = Transaction::begin(&store).unwrap();
        for mebibytes in [0, 1, 8] {
            let payload = vec![7; mebibytes << 20];
            let document = Document::new("a").payload(&payload);
            transaction.upsert(document, &signature).unwrap();
            assert!(!transaction.writer.pending.is_full());
        }
        assert!(!transaction.writer.pending.covers(0));
        transaction.commit().unwrap();
    }
}
