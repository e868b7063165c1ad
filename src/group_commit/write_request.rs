//! One change, as it waits in line with others, and how several are made together.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::group_commit::commit_queue::CommitQueue;
use crate::sketch::Signature;
use crate::state::OpenStore;
use crate::types::{Document, DocumentId, Novelty, Upserted};
use crate::write::Transaction;

/// From so many documents in a row on, looking them up together costs less than one by one.
const LEAST_TOGETHER: usize = 32;

/// Which change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Insert,
    Upsert,
    InsertIfNew,
    Remove,
    Touch,
    /// None: its answer says that what came before it is durable.
    Flush,
}

/// A change that was asked for: its own, or borrowed from who waits for it.
#[derive(Clone, Debug)]
pub(crate) struct WriteRequest<'a> {
    pub(crate) kind: WriteKind,
    key: Option<Cow<'a, [u8]>>,
    stamp: u64,
    payload: Cow<'a, [u8]>,
    signature: Option<Cow<'a, Signature>>,
    /// Nothing that was there before this id is near it, and none has its key.
    since: Option<u64>,
    came: Instant,
}

/// What came of a call.
#[derive(Clone, Debug)]
pub(crate) enum WriteReply {
    Inserted(DocumentId),
    Upserted(Upserted),
    Novelty(Novelty),
    /// The document that was removed or touched, if there was one.
    Found(Option<DocumentId>),
    Flushed,
}

/// What the answer to a kind of call is taken out as.
pub(crate) trait FromReply: Sized {
    fn of(answer: WriteReply) -> Option<Self>;
}

macro_rules! answered {
    ($type:ty, $pattern:pat => $value:expr) => {
        impl FromReply for $type {
            fn of(answer: WriteReply) -> Option<Self> {
                match answer {
                    $pattern => Some($value),
                    _ => None,
                }
            }
        }
    };
}

answered!(DocumentId, WriteReply::Inserted(id) => id);
answered!(Upserted, WriteReply::Upserted(upserted) => upserted);
answered!(Novelty, WriteReply::Novelty(novelty) => novelty);
answered!(Option<DocumentId>, WriteReply::Found(found) => found);
answered!((), WriteReply::Flushed => ());

/// The answer as the caller wants it.
pub(crate) fn take_reply<T: FromReply>(answer: Result<WriteReply>) -> Result<T> {
    let other = || Error::corrupt("memory", "the answer to another kind of call");
    T::of(answer?).ok_or_else(other)
}

impl<'a> WriteRequest<'a> {
    fn bare(kind: WriteKind) -> Self {
        Self {
            kind,
            key: None,
            stamp: 0,
            payload: Cow::Borrowed(&[]),
            signature: None,
            since: None,
            came: Instant::now(),
        }
    }

    /// A document that is to be stored in one of the ways.
    pub(crate) fn store(kind: WriteKind, document: Document<'a>, signature: &'a Signature) -> Self {
        Self {
            key: document.key.map(Cow::Borrowed),
            stamp: document.stamp,
            payload: Cow::Borrowed(document.payload),
            signature: Some(Cow::Borrowed(signature)),
            ..Self::bare(kind)
        }
    }

    pub(crate) fn remove(key: &'a [u8]) -> Self {
        Self {
            key: Some(Cow::Borrowed(key)),
            ..Self::bare(WriteKind::Remove)
        }
    }

    pub(crate) fn touch(key: &'a [u8], stamp: u64) -> Self {
        Self {
            kind: WriteKind::Touch,
            stamp,
            ..Self::remove(key)
        }
    }

    pub(crate) fn flush() -> Self {
        Self::bare(WriteKind::Flush)
    }

    /// What was there before this id has been looked through, and nothing found.
    pub(crate) fn known_since(mut self, id: u64) -> Self {
        self.since = Some(id);
        self
    }

    /// The call, free of what it was made from.
    pub(crate) fn into_owned(self) -> WriteRequest<'static> {
        WriteRequest {
            kind: self.kind,
            key: self.key.map(|key| Cow::Owned(key.into_owned())),
            stamp: self.stamp,
            payload: Cow::Owned(self.payload.into_owned()),
            signature: self.signature.map(|it| Cow::Owned(it.into_owned())),
            since: self.since,
            came: self.came,
        }
    }

    /// How long ago it was made.
    pub(crate) fn age(&self) -> Duration {
        self.came.elapsed()
    }

    /// About the memory that it takes while it waits.
    pub(crate) fn size_bytes(&self) -> usize {
        let values = self.signature.as_deref().map_or(0, Signature::value_count);
        let signature = values * size_of::<u64>();
        let key = self.key.as_deref().map_or(0, <[u8]>::len);
        size_of::<Self>() + key + self.payload.len() + signature
    }

    pub(crate) fn document(&self) -> Document<'_> {
        Document {
            key: self.key.as_deref(),
            stamp: self.stamp,
            payload: &self.payload,
        }
    }

    /// Whether it stores a document; then with its signature.
    pub(crate) fn stored(&self) -> Option<(Document<'_>, &Signature)> {
        Some((self.document(), self.signature.as_deref()?))
    }

    fn make(&self, transaction: &mut Transaction) -> Result<WriteReply> {
        let Some((document, signature)) = self.stored() else {
            return match (self.kind, self.key.as_deref()) {
                (WriteKind::Remove, Some(key)) => transaction.remove(key).map(WriteReply::Found),
                (WriteKind::Touch, Some(key)) => {
                    transaction.touch(key, self.stamp).map(WriteReply::Found)
                }
                _ => Ok(WriteReply::Flushed),
            };
        };
        match self.kind {
            WriteKind::Insert => {
                let inserted = transaction.insert_document(document, signature);
                inserted.map(WriteReply::Inserted)
            }
            WriteKind::Upsert => {
                let upserted = transaction.upsert_document(document, signature);
                upserted.map(WriteReply::Upserted)
            }
            _ => {
                let novelty = transaction.insert_if_new_since(document, signature, self.since);
                novelty.map(WriteReply::Novelty)
            }
        }
    }

    /// Whether it may be looked up together with its neighbours in the line.
    fn is_sweepable(&self) -> bool {
        self.kind == WriteKind::InsertIfNew && self.since.is_none()
    }
}

/// Why calls that were made together have no answers.
enum CommitFailure {
    /// Nothing was changed.
    Before(Error),
    /// It is not known whether the changes were made.
    Commit(Error),
}

/// Makes calls in one transaction, in their order, and makes them durable. One answer each.
///
/// What one call does wrong is its own error. If the transaction fails, each call is tried by itself,
/// so that it gets the answer that it would have got alone; but not if the commit fails.
pub(crate) fn commit_together(
    store: &Arc<OpenStore>,
    group: &CommitQueue<WriteRequest<'static>, Result<WriteReply>>,
    calls: &[&WriteRequest<'_>],
) -> Vec<Result<WriteReply>> {
    match try_commit_together(store, group, calls) {
        Ok(answers) => answers,
        Err(_) if calls.is_empty() => Vec::new(),
        Err(CommitFailure::Before(_)) if calls.len() > 1 => {
            let alone = |call| commit_together(store, group, &[call]).pop();
            let gone = || Err(Error::corrupt("memory", "a call without an answer"));
            let answers = calls.iter().map(|call| alone(*call).unwrap_or_else(gone));
            answers.collect()
        }
        Err(CommitFailure::Before(error) | CommitFailure::Commit(error)) => {
            let others = calls.iter().skip(1).map(|_| Err(error.repeated()));
            let mut answers: Vec<_> = others.collect();
            answers.push(Err(error));
            answers
        }
    }
}

fn try_commit_together(
    store: &Arc<OpenStore>,
    group: &CommitQueue<WriteRequest<'static>, Result<WriteReply>>,
    calls: &[&WriteRequest<'_>],
) -> std::result::Result<Vec<Result<WriteReply>>, CommitFailure> {
    let mut transaction = Transaction::begin(store).map_err(CommitFailure::Before)?;
    let mut answers = Vec::with_capacity(calls.len());
    let mut rest = calls;
    while let [first, others @ ..] = rest {
        let together = rest.iter().take_while(|call| call.is_sweepable()).count();
        if together < LEAST_TOGETHER {
            answers.push(first.make(&mut transaction));
            rest = others;
        } else {
            let (sweepable, others) = rest.split_at(together);
            let documents: Vec<_> = sweepable.iter().filter_map(|call| call.stored()).collect();
            let novelties = transaction.insert_many_if_new(&documents);
            let novelties = novelties.map_err(CommitFailure::Before)?;
            answers.extend(novelties.into_iter().map(|it| Ok(WriteReply::Novelty(it))));
            rest = others;
        }
        if let Err(failed) = transaction.check_usable() {
            // The call says what failed, the transaction only that something did.
            let cause = answers.pop().and_then(Result::err);
            return Err(CommitFailure::Before(cause.unwrap_or(failed)));
        }
    }
    let start = Instant::now();
    transaction.commit().map_err(CommitFailure::Commit)?;
    group.note_commit(start.elapsed());
    store.context.counters.group_committed(calls.len() as u64);
    Ok(answers)
}
