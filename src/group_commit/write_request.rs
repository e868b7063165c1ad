//! Write requests: one change each, and the transaction that commits several together.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::group_commit::commit_queue::CommitQueue;
use crate::invariant::{bug, invariant};
use crate::state::OpenStore;
use crate::types::{Document, DocumentId, Novelty, Upserted};
use crate::write::{Arbiter, WriteTransaction};
use resemblance_sketch::sketch::Signature;

/// Number of documents in a row from which looking them up together costs less than one by one.
const MIN_TOGETHER: usize = 32;

/// The requests that wait to be committed together.
pub(super) type WriteQueue = CommitQueue<WriteRequest<'static>, Result<WriteReply>>;

/// A change to be made. It borrows its document or key from a caller who waits, or owns it.
#[derive(Clone, Debug)]
pub(crate) enum WriteRequest<'a> {
    Insert(NewDocument<'a>),
    Upsert(NewDocument<'a>),
    InsertIfNew {
        new: NewDocument<'a>,
        /// The id below which neither the document's key nor a near-duplicate was found.
        searched_below: Option<u64>,
    },
    Remove(Cow<'a, [u8]>),
    Touch(Cow<'a, [u8]>, u64),
    SetPosition {
        name: Cow<'a, str>,
        position: Option<Cow<'a, [u8]>>,
    },
    /// A request without a change: its reply confirms that the requests before it are durable.
    Flush,
}

/// A document to be stored.
#[derive(Clone, Debug)]
pub(crate) struct NewDocument<'a> {
    pub(super) document: Document<'a>,
    pub(super) signature: Cow<'a, Signature>,
}

impl<'a> NewDocument<'a> {
    fn new(document: Document<'a>, signature: &'a Signature) -> Self {
        Self {
            document,
            signature: Cow::Borrowed(signature),
        }
    }

    fn into_owned(self) -> NewDocument<'static> {
        NewDocument {
            document: Document {
                key: self.document.key.map(|key| Cow::Owned(key.into_owned())),
                stamp: self.document.stamp,
                payload: Cow::Owned(self.document.payload.into_owned()),
            },
            signature: Cow::Owned(self.signature.into_owned()),
        }
    }

    fn size_bytes(&self) -> usize {
        let key = self.document.key().map_or(0, <[u8]>::len);
        key + self.document.payload.len() + self.signature.value_count() * size_of::<u64>()
    }
}

/// The result of a write request.
#[derive(Clone, Debug)]
pub(crate) enum WriteReply {
    Inserted(DocumentId),
    Upserted(Upserted),
    Novelty(Novelty),
    /// The document that was removed or touched, if there was one.
    Found(Option<DocumentId>),
    Done(()),
}

/// Each request has its own kind of reply: any other is a bug.
macro_rules! replies {
    ($($kind:ident: $variant:ident($answer:ty),)+) => {
        impl WriteReply {$(
            pub(crate) fn $kind(self) -> Result<$answer> {
                match self {
                    Self::$variant(answer) => Ok(answer),
                    other => Err(bug(format!("the reply to another kind of request: {other:?}"))),
                }
            }
        )+}
    };
}

replies! {
    inserted: Inserted(DocumentId),
    upserted: Upserted(Upserted),
    novelty: Novelty(Novelty),
    found: Found(Option<DocumentId>),
    done: Done(()),
}

impl<'a> WriteRequest<'a> {
    pub(crate) fn insert(document: Document<'a>, signature: &'a Signature) -> Self {
        Self::Insert(NewDocument::new(document, signature))
    }

    pub(crate) fn upsert(document: Document<'a>, signature: &'a Signature) -> Self {
        Self::Upsert(NewDocument::new(document, signature))
    }

    pub(crate) fn insert_if_new(document: Document<'a>, signature: &'a Signature) -> Self {
        Self::InsertIfNew {
            new: NewDocument::new(document, signature),
            searched_below: None,
        }
    }

    pub(crate) fn set_position(name: &'a str, position: Option<&'a [u8]>) -> Self {
        Self::SetPosition {
            name: name.into(),
            position: position.map(Cow::Borrowed),
        }
    }

    /// Copies borrowed data.
    pub(super) fn into_owned(self) -> WriteRequest<'static> {
        match self {
            Self::Insert(new) => WriteRequest::Insert(new.into_owned()),
            Self::Upsert(new) => WriteRequest::Upsert(new.into_owned()),
            Self::InsertIfNew {
                new,
                searched_below,
            } => WriteRequest::InsertIfNew {
                new: new.into_owned(),
                searched_below,
            },
            Self::Remove(key) => WriteRequest::Remove(Cow::Owned(key.into_owned())),
            Self::Touch(key, stamp) => WriteRequest::Touch(Cow::Owned(key.into_owned()), stamp),
            Self::SetPosition { name, position } => WriteRequest::SetPosition {
                name: Cow::Owned(name.into_owned()),
                position: position.map(|position| Cow::Owned(position.into_owned())),
            },
            Self::Flush => WriteRequest::Flush,
        }
    }

    /// Returns about the number of bytes of memory that the request takes while it waits.
    pub(super) fn size_bytes(&self) -> usize {
        let borrowed = match self {
            Self::Remove(key) | Self::Touch(key, _) => key.len(),
            Self::SetPosition { name, position } => {
                name.len() + position.as_ref().map_or(0, |position| position.len())
            }
            _ => self.stored().map_or(0, NewDocument::size_bytes),
        };
        size_of::<Self>() + borrowed
    }

    /// Returns the document that the request stores, if it stores one.
    pub(super) fn stored(&self) -> Option<&NewDocument<'a>> {
        match self {
            Self::Insert(new) | Self::Upsert(new) | Self::InsertIfNew { new, .. } => Some(new),
            Self::Remove(_) | Self::Touch(..) | Self::SetPosition { .. } | Self::Flush => None,
        }
    }

    /// Makes the change in a transaction.
    fn make(&self, transaction: &mut WriteTransaction) -> Result<WriteReply> {
        Ok(match self {
            Self::Insert(new) => {
                WriteReply::Inserted(transaction.insert(&new.document, &new.signature)?)
            }
            Self::Upsert(new) => {
                WriteReply::Upserted(transaction.upsert(&new.document, &new.signature)?)
            }
            Self::InsertIfNew {
                new,
                searched_below,
            } => WriteReply::Novelty(transaction.insert_if_new_since(
                &new.document,
                &new.signature,
                *searched_below,
            )?),
            Self::Remove(key) => WriteReply::Found(transaction.remove(key)?),
            Self::Touch(key, stamp) => WriteReply::Found(transaction.touch(key, *stamp)?),
            Self::SetPosition { name, position } => {
                WriteReply::Done(transaction.set_position(name, position.as_deref())?)
            }
            Self::Flush => WriteReply::Done(()),
        })
    }

    /// Returns the document if it may be looked up together with its neighbours in the queue.
    fn sweepable(&self) -> Option<(Document<'_>, &Signature)> {
        match self {
            Self::InsertIfNew {
                new,
                searched_below: None,
            } => Some(((&new.document).into(), &new.signature)),
            _ => None,
        }
    }
}

/// Why requests that were to be committed together have no replies.
enum CommitFailure {
    /// No transaction could be begun, and trying again for each request would wait again.
    Begin(Error),
    /// The error occurred before anything was changed.
    Before(Error),
    /// It is not known whether the changes were made.
    Commit(Error),
}

/// Commits requests in one transaction, in their order, and returns one reply for each.
///
/// An error of one request concerns only that request. If the transaction fails, each request is
/// tried separately, so that it gets the reply that it would have got alone. If the commit fails,
/// requests are not tried again, because its outcome is unknown.
pub(super) fn commit_together(
    store: &Arc<OpenStore>,
    queue: &WriteQueue,
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
        Err(
            CommitFailure::Begin(error)
            | CommitFailure::Before(error)
            | CommitFailure::Commit(error),
        ) => {
            let others = requests.iter().skip(1).map(|_| Err(error.repeated()));
            let mut replies: Vec<_> = others.collect();
            replies.push(Err(error));
            replies
        }
    }
}

fn try_commit_together(
    store: &Arc<OpenStore>,
    queue: &WriteQueue,
    requests: &[&WriteRequest<'_>],
) -> std::result::Result<Vec<Result<WriteReply>>, CommitFailure> {
    // Earlier requests are committed, so these have nothing to write and no turn to wait for.
    if requests.iter().all(|it| matches!(it, WriteRequest::Flush)) {
        let health = &store.context.health;
        health.check_writes().map_err(CommitFailure::Begin)?;
        let replies = requests.iter().map(|_| Ok(WriteReply::Done(())));
        return Ok(replies.collect());
    }
    let mut transaction = WriteTransaction::begin(store).map_err(CommitFailure::Begin)?;
    let mut replies = Vec::with_capacity(requests.len());
    let mut rest = requests;
    while let [first, others @ ..] = rest {
        let sweepable: Vec<_> = rest.iter().map_while(|it| it.sweepable()).collect();
        if sweepable.len() < MIN_TOGETHER {
            replies.push(first.make(&mut transaction));
            rest = others;
        } else {
            let novelties = transaction
                .insert_new(&sweepable, Arbiter::Estimate)
                .map_err(CommitFailure::Before)?;
            replies.extend(novelties.into_iter().map(|it| Ok(WriteReply::Novelty(it))));
            (_, rest) = rest.split_at(sweepable.len());
        }
        if let Err(failed) = transaction.check_usable() {
            // The request has the cause of the failure, the transaction only knows that something
            // failed.
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

/// Checks, before the commit, that each request has a reply. If one were missing, others would get
/// the replies of their neighbours.
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

    /// Equal documents are stored if that was requested, and looked up otherwise.
    #[test]
    fn consecutive_requests_each_get_their_answer() {
        let folder = tempfile::tempdir().unwrap();
        let (store, signature) = testing::store(&folder, &StoreOptions::new());
        let queue = CommitQueue::default();
        let check = |request: &WriteRequest<'_>, is_its_own: fn(&WriteReply) -> bool| {
            let requests = vec![request; 2 * MIN_TOGETHER];
            let replies = commit_together(&store, &queue, &requests);
            assert!(
                replies
                    .iter()
                    .all(|reply| is_its_own(reply.as_ref().unwrap()))
            );
        };
        let new = NewDocument::new(Document::without_key(), &signature);
        check(&WriteRequest::Insert(new.clone()), |reply| {
            matches!(reply, WriteReply::Inserted(_))
        });
        check(&WriteRequest::Upsert(new), |reply| {
            matches!(reply, WriteReply::Upserted(_))
        });
        check(
            &WriteRequest::insert_if_new(Document::without_key(), &signature),
            |reply| matches!(reply, WriteReply::Novelty(Novelty::NearDuplicate(_))),
        );
    }
}
