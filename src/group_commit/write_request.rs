//! Write requests: one change each, and the transaction that commits several together.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::group_commit::commit_queue::CommitQueue;
use crate::invariant::{OrBug, bug, invariant};
use crate::sketch::Signature;
use crate::state::OpenStore;
use crate::types::{Document, DocumentId, Novelty, Upserted};
use crate::write::Transaction;

/// Number of documents in a row from which looking them up together costs less than one by one.
const MIN_TOGETHER: usize = 32;

/// The kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteKind {
    Insert,
    Upsert,
    InsertIfNew,
    Remove,
    Touch,
    /// No change: its reply says that the requests before it are durable.
    Flush,
}

/// A change to be made. It borrows its document from a caller who waits, or owns it.
#[derive(Clone, Debug)]
pub(super) struct WriteRequest<'a> {
    pub(super) kind: WriteKind,
    key: Option<Cow<'a, [u8]>>,
    stamp: u64,
    payload: Cow<'a, [u8]>,
    signature: Option<Cow<'a, Signature>>,
    /// For a document that is to be inserted if it is new: the id below which neither its key nor a
    /// near-duplicate was found.
    searched_below: Option<u64>,
    queued: Instant,
}

/// The result of a write request.
#[derive(Clone, Debug)]
pub(super) enum WriteReply {
    Inserted(DocumentId),
    Upserted(Upserted),
    Novelty(Novelty),
    /// The document that was removed or touched, if there was one.
    Found(Option<DocumentId>),
    Flushed,
}

impl WriteReply {
    fn kind(&self) -> &'static str {
        match self {
            Self::Inserted(_) => "inserted",
            Self::Upserted(_) => "upserted",
            Self::Novelty(_) => "novelty",
            Self::Found(_) => "found",
            Self::Flushed => "flushed",
        }
    }
}

/// The result type of a kind of request.
pub(super) trait FromReply: Sized {
    /// Returns `None` for the reply to another kind of request.
    fn from_reply(reply: WriteReply) -> Option<Self>;
}

macro_rules! from_reply {
    ($type:ty, $pattern:pat => $value:expr) => {
        impl FromReply for $type {
            fn from_reply(reply: WriteReply) -> Option<Self> {
                match reply {
                    $pattern => Some($value),
                    _ => None,
                }
            }
        }
    };
}

from_reply!(DocumentId, WriteReply::Inserted(id) => id);
from_reply!(Upserted, WriteReply::Upserted(upserted) => upserted);
from_reply!(Novelty, WriteReply::Novelty(novelty) => novelty);
from_reply!(Option<DocumentId>, WriteReply::Found(found) => found);
from_reply!((), WriteReply::Flushed => ());

/// Converts a reply into the result type of its request.
pub(super) fn take_reply<T: FromReply>(result: Result<WriteReply>) -> Result<T> {
    let reply = result?;
    let kind = reply.kind();
    T::from_reply(reply).or_bug_with(|| format!("the reply to another kind of request: {kind}"))
}

impl<'a> WriteRequest<'a> {
    fn bare(kind: WriteKind) -> Self {
        Self {
            kind,
            key: None,
            stamp: 0,
            payload: Cow::Borrowed(&[]),
            signature: None,
            searched_below: None,
            queued: Instant::now(),
        }
    }

    /// Stores a document: [`WriteKind::Insert`], [`WriteKind::Upsert`] or [`WriteKind::InsertIfNew`].
    pub(super) fn store(kind: WriteKind, document: Document<'a>, signature: &'a Signature) -> Self {
        Self {
            key: document.key,
            stamp: document.stamp,
            payload: document.payload,
            signature: Some(Cow::Borrowed(signature)),
            ..Self::bare(kind)
        }
    }

    pub(super) fn remove(key: &'a [u8]) -> Self {
        Self {
            key: Some(Cow::Borrowed(key)),
            ..Self::bare(WriteKind::Remove)
        }
    }

    pub(super) fn touch(key: &'a [u8], stamp: u64) -> Self {
        Self {
            kind: WriteKind::Touch,
            stamp,
            ..Self::remove(key)
        }
    }

    pub(super) fn flush() -> Self {
        Self::bare(WriteKind::Flush)
    }

    /// Notes that the documents below an id were searched, without result.
    pub(super) fn searched_below(mut self, id: u64) -> Self {
        self.searched_below = Some(id);
        self
    }

    /// Copies what is borrowed.
    pub(super) fn into_owned(self) -> WriteRequest<'static> {
        WriteRequest {
            kind: self.kind,
            key: self.key.map(|key| Cow::Owned(key.into_owned())),
            stamp: self.stamp,
            payload: Cow::Owned(self.payload.into_owned()),
            signature: self.signature.map(|it| Cow::Owned(it.into_owned())),
            searched_below: self.searched_below,
            queued: self.queued,
        }
    }

    /// Returns the time since the request was made.
    pub(super) fn age(&self) -> Duration {
        self.queued.elapsed()
    }

    /// Returns about the number of bytes of memory that the request takes while it waits.
    pub(super) fn size_bytes(&self) -> usize {
        let values = self.signature.as_deref().map_or(0, Signature::value_count);
        let signature = values * size_of::<u64>();
        let key = self.key.as_deref().map_or(0, <[u8]>::len);
        size_of::<Self>() + key + self.payload.len() + signature
    }

    fn document(&self) -> Document<'_> {
        Document {
            key: self.key.as_deref().map(Cow::Borrowed),
            stamp: self.stamp,
            payload: Cow::Borrowed(&self.payload),
        }
    }

    /// Returns the document that the request stores, with its signature, if it stores one.
    pub(super) fn stored(&self) -> Option<(Document<'_>, &Signature)> {
        Some((self.document(), self.signature.as_deref()?))
    }

    /// Makes the change in a transaction.
    fn make(&self, transaction: &mut Transaction) -> Result<WriteReply> {
        match self.kind {
            WriteKind::Insert => {
                let (document, signature) = self.stored_or_bug()?;
                let inserted = transaction.insert(document, signature);
                inserted.map(WriteReply::Inserted)
            }
            WriteKind::Upsert => {
                let (document, signature) = self.stored_or_bug()?;
                let upserted = transaction.upsert(document, signature);
                upserted.map(WriteReply::Upserted)
            }
            WriteKind::InsertIfNew => {
                let (document, signature) = self.stored_or_bug()?;
                let below = self.searched_below;
                let novelty = transaction.insert_if_new_since(document, signature, below);
                novelty.map(WriteReply::Novelty)
            }
            WriteKind::Remove => transaction.remove(self.key()?).map(WriteReply::Found),
            WriteKind::Touch => {
                let touched = transaction.touch(self.key()?, self.stamp);
                touched.map(WriteReply::Found)
            }
            WriteKind::Flush => Ok(WriteReply::Flushed),
        }
    }

    /// Returns the document that a request to store one has.
    pub(super) fn stored_or_bug(&self) -> Result<(Document<'_>, &Signature)> {
        let stored = self.stored();
        stored.or_bug_with(|| format!("a document for a request to {:?}", self.kind))
    }

    fn key(&self) -> Result<&[u8]> {
        let key = self.key.as_deref();
        key.or_bug_with(|| format!("a key for a request to {:?}", self.kind))
    }

    /// Returns true if the document may be looked up together with its neighbours in the queue.
    fn is_sweepable(&self) -> bool {
        self.kind == WriteKind::InsertIfNew && self.searched_below.is_none()
    }
}

/// Why requests that were to be committed together have no replies.
enum CommitFailure {
    /// Nothing was changed.
    Before(Error),
    /// It is not known whether the changes were made.
    Commit(Error),
}

/// Commits requests in one transaction, in their order, and returns one reply for each.
///
/// An error of one request is its own. If the transaction fails, each request is tried by itself, so
/// that it gets the reply that it would have got alone. If the commit fails they are not tried again,
/// since its outcome is unknown.
pub(super) fn commit_together(
    store: &Arc<OpenStore>,
    queue: &CommitQueue<WriteRequest<'static>, Result<WriteReply>>,
    requests: &[&WriteRequest<'_>],
) -> Vec<Result<WriteReply>> {
    match try_commit_together(store, queue, requests) {
        Ok(replies) => replies,
        Err(_) if requests.is_empty() => Vec::new(),
        Err(CommitFailure::Before(_)) if requests.len() > 1 => {
            let alone = |request| commit_together(store, queue, &[request]).pop();
            let no_reply = || Err(bug("a request without a reply"));
            requests
                .iter()
                .map(|request| alone(*request).unwrap_or_else(no_reply))
                .collect()
        }
        Err(CommitFailure::Before(error) | CommitFailure::Commit(error)) => {
            let others = requests.iter().skip(1).map(|_| Err(error.repeated()));
            let mut replies: Vec<_> = others.collect();
            replies.push(Err(error));
            replies
        }
    }
}

fn try_commit_together(
    store: &Arc<OpenStore>,
    queue: &CommitQueue<WriteRequest<'static>, Result<WriteReply>>,
    requests: &[&WriteRequest<'_>],
) -> std::result::Result<Vec<Result<WriteReply>>, CommitFailure> {
    let mut transaction = Transaction::begin(store).map_err(CommitFailure::Before)?;
    let mut replies = Vec::with_capacity(requests.len());
    let mut rest = requests;
    while let [first, others @ ..] = rest {
        let together = rest
            .iter()
            .take_while(|request| request.is_sweepable())
            .count();
        if together < MIN_TOGETHER {
            replies.push(first.make(&mut transaction));
            rest = others;
        } else {
            let (sweepable, others) = rest.split_at(together);
            let novelties = insert_together(&mut transaction, sweepable);
            let novelties = novelties.map_err(CommitFailure::Before)?;
            replies.extend(novelties.into_iter().map(|it| Ok(WriteReply::Novelty(it))));
            rest = others;
        }
        if let Err(failed) = transaction.check_usable() {
            // The request says what failed, the transaction only that something did.
            let cause = replies.pop().and_then(Result::err);
            return Err(CommitFailure::Before(cause.unwrap_or(failed)));
        }
    }
    check_replies(&replies, requests).map_err(CommitFailure::Before)?;
    let start = Instant::now();
    transaction.commit().map_err(CommitFailure::Commit)?;
    queue.note_commit(start.elapsed());
    store
        .context
        .counters
        .group_committed(requests.len() as u64);
    Ok(replies)
}

/// Inserts the documents of requests that were not searched for yet, if they are new.
fn insert_together(
    transaction: &mut Transaction,
    requests: &[&WriteRequest<'_>],
) -> Result<Vec<Novelty>> {
    let documents: Result<Vec<_>> = requests.iter().map(|it| it.stored_or_bug()).collect();
    transaction.insert_many_if_new(&documents?)
}

/// Checks, before the commit, that each request has a reply: with one too few, others would get the
/// replies of their neighbours.
fn check_replies(replies: &[Result<WriteReply>], requests: &[&WriteRequest<'_>]) -> Result<()> {
    let (found, expected) = (replies.len(), requests.len());
    invariant!(found == expected, "{found} replies to {expected} requests");
    Ok(())
}

#[cfg(all(not(loom), test))]
mod tests {
    use super::*;
    use crate::options::StoreOptions;
    use crate::write::testing;

    /// Equal documents are stored if that was asked for, and looked up where it was not.
    #[test]
    fn many_requests_in_a_row_get_what_each_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let (store, signature) = testing::store(&folder, &StoreOptions::new());
        let queue = CommitQueue::default();
        let replies = |kind| {
            let request = || WriteRequest::store(kind, Document::without_key(), &signature);
            let requests: Vec<_> = (0..2 * MIN_TOGETHER).map(|_| request()).collect();
            let requests: Vec<&WriteRequest<'_>> = requests.iter().collect();
            commit_together(&store, &queue, &requests)
        };
        for kind in [WriteKind::Insert, WriteKind::Upsert, WriteKind::InsertIfNew] {
            let is_its_own = |reply: &Result<WriteReply>| match reply.as_ref().unwrap() {
                WriteReply::Inserted(_) => kind == WriteKind::Insert,
                WriteReply::Upserted(_) => kind == WriteKind::Upsert,
                WriteReply::Novelty(Novelty::NearDuplicate(_)) => kind == WriteKind::InsertIfNew,
                _ => false,
            };
            assert!(replies(kind).iter().all(is_its_own), "{kind:?}");
        }
    }
}
