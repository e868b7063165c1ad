//! Changes in one call, durable when it returns, made together with those of other threads.

use std::sync::{Arc, PoisonError};

use crate::error::{Error, Result};
use crate::group_commit::line::{HandedOver, Joined, Limits, Waiting};
use crate::group_commit::reply::{Slot, Told};
use crate::group_commit::write_request::{Answer, Answered, Call, Kind, make_together, take};
use crate::sketch::Signature;
use crate::snapshot::Snapshot;
use crate::store::{Inner, Store};
use crate::sync::thread;
use crate::transaction::known;
use crate::types::{Document, DocumentId, Novelty, Upserted};

/// Bytes of keys, payloads and signatures that one group takes together, but for its last call.
const GROUP_BYTES: usize = 16 << 20;

impl Store {
    /// [`WriteTransaction::insert`] that is durable when it returns.
    ///
    /// This and the forms below may be called from any number of threads. What they bring at about
    /// the same time is made in one transaction and made durable by one sync, each as if it had been
    /// alone, in the order of their coming. See [`StoreOptions::group_calls`] and
    /// [`StoreOptions::group_wait`]; [`queue`](Self::queue) is for callers that do not wait.
    ///
    /// # Errors
    ///
    /// As [`begin_write`](Self::begin_write), [`WriteTransaction::insert`] and
    /// [`WriteTransaction::commit`]. So with the other forms below.
    ///
    /// [`WriteTransaction::insert`]: crate::WriteTransaction::insert
    /// [`WriteTransaction::commit`]: crate::WriteTransaction::commit
    /// [`StoreOptions::group_calls`]: crate::StoreOptions::group_calls
    /// [`StoreOptions::group_wait`]: crate::StoreOptions::group_wait
    pub fn insert(&self, key: impl AsRef<[u8]>, signature: &Signature) -> Result<DocumentId> {
        self.insert_document(Document::new(key.as_ref()), signature)
    }

    /// [`insert`](Self::insert) with stamp and payload, the key optional.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn insert_document(
        &self,
        document: Document<'_>,
        signature: &Signature,
    ) -> Result<DocumentId> {
        self.call(Call::store(Kind::Insert, document, signature))
    }

    /// [`WriteTransaction::upsert`](crate::WriteTransaction::upsert) that is durable when it returns.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn upsert(&self, key: impl AsRef<[u8]>, signature: &Signature) -> Result<Upserted> {
        self.upsert_document(Document::new(key.as_ref()), signature)
    }

    /// [`upsert`](Self::upsert) with stamp and payload. Without a key nothing is replaced.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn upsert_document(
        &self,
        document: Document<'_>,
        signature: &Signature,
    ) -> Result<Upserted> {
        self.call(Call::store(Kind::Upsert, document, signature))
    }

    /// [`WriteTransaction::insert_if_new`](crate::WriteTransaction::insert_if_new) that is durable
    /// when it returns: of two threads that bring near-duplicates at the same time, exactly one is told
    /// that its document is new.
    ///
    /// A thread that finds others writing looks through what is committed while it waits for them, and
    /// a document that is not new is told so without a transaction.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn insert_if_new(&self, key: impl AsRef<[u8]>, signature: &Signature) -> Result<Novelty> {
        self.insert_document_if_new(Document::new(key.as_ref()), signature)
    }

    /// [`insert_if_new`](Self::insert_if_new) with stamp and payload, the key optional.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn insert_document_if_new(
        &self,
        document: Document<'_>,
        signature: &Signature,
    ) -> Result<Novelty> {
        self.call(Call::store(Kind::InsertIfNew, document, signature))
    }

    /// [`WriteTransaction::append`](crate::WriteTransaction::append) that is durable when it returns.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn append(&self, signature: &Signature) -> Result<DocumentId> {
        self.insert_document(Document::without_key(), signature)
    }

    /// [`WriteTransaction::remove`](crate::WriteTransaction::remove) that is durable when it returns.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<Option<DocumentId>> {
        self.call(Call::remove(key.as_ref()))
    }

    /// [`WriteTransaction::touch`](crate::WriteTransaction::touch) that is durable when it returns, and
    /// writes and syncs nothing if the stamp is the same.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn touch(&self, key: impl AsRef<[u8]>, stamp: u64) -> Result<Option<DocumentId>> {
        self.call(Call::touch(key.as_ref(), stamp))
    }

    /// Waits until all that has been [queued](Self::queue) so far is made, and is durable unless its
    /// ticket says otherwise.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if this thread holds a write transaction; [`Error::Closed`] after a failed
    /// commit.
    pub fn flush(&self) -> Result<()> {
        self.call(Call::flush())
    }

    /// Waits for what has been queued, as [`flush`](Self::flush), and lets go of this handle. Whether
    /// the file is closed now: another handle, a snapshot or a transaction keeps it open. Dropping the
    /// last handle waits too, but cannot tell of errors.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), and those of closing the file.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// let ticket = store.queue().insert("a", &store.sketch_text("some text or other")?)?;
    /// assert!(store.close()?);
    /// assert_eq!(ticket.wait()?.get(), 0);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn close(self) -> Result<bool> {
        let flushed = match self.inner.writable {
            true => self.flush(),
            false => Ok(()),
        };
        let Self { inner, handles } = self;
        drop(handles);
        let closed = match Arc::into_inner(inner) {
            Some(inner) => inner.engine.close().map(|()| true),
            None => Ok(false),
        };
        flushed.and(closed)
    }

    fn call<T: Answered>(&self, call: Call<'_>) -> Result<T> {
        let store = &self.inner;
        let _counted = store.core.meters.call();
        store.check_call(&call)?;
        if store.group.try_lead() {
            return take(store.lead(&call));
        }
        let call = match store.look_ahead(call)? {
            LookedAhead::Known(known) => return take(Ok(Answer::Novelty(known))),
            LookedAhead::Queues(call) => call,
        };
        let size_bytes = call.size_bytes();
        match store.group.join(call.into_owned(), size_bytes) {
            Joined::Leads(call) => take(store.lead(&call)),
            Joined::Waits(slot) => take(store.wait(&slot)),
        }
    }
}

/// What a look at the committed documents has found.
enum LookedAhead<'a> {
    Known(Novelty),
    Queues(Call<'a>),
}

/// Lets the next one lead, whatever happens.
struct Leading<'s> {
    store: &'s Arc<Inner>,
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        if self.store.group.hand_over() == HandedOver::NeedsThread {
            self.store.make_leader();
        }
    }
}

impl Inner {
    /// What can be wrong with a call alone is its caller's error, and never others'.
    pub(crate) fn check_queued(&self, call: &Call<'_>) -> Result<()> {
        self.check_writable()?;
        self.core.health.check_writes()?;
        if let Some((document, signature)) = call.stored() {
            document.validate()?;
            self.core.check_signature(signature)?;
        }
        Ok(())
    }

    /// The same of a call whose thread will wait, which must not wait for itself.
    fn check_call(&self, call: &Call<'_>) -> Result<()> {
        self.check_queued(call)?;
        match self.gate.is_held_here() {
            true => Err(Error::Busy),
            false => Ok(()),
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            calls: self.core.options.group_calls,
            size_bytes: GROUP_BYTES,
            wait: self.core.options.group_wait,
        }
    }

    /// Makes a call of this thread, which leads, together with those that wait.
    fn lead(self: &Arc<Self>, call: &Call<'_>) -> Result<Answer> {
        let leading = Leading { store: self };
        let others = self.group.gather(1, self.limits());
        let calls: Vec<&Call<'_>> = [call]
            .into_iter()
            .chain(others.iter().map(|other| &other.call))
            .collect();
        let mut answers = make_together(self, &calls).into_iter();
        let own = answers.next();
        // The next one may begin while those who waited are told.
        drop(leading);
        self.answer(others, answers);
        own.unwrap_or_else(|| Err(abandoned()))
    }

    /// Makes calls that wait; whether there were any.
    fn lead_once(self: &Arc<Self>) -> bool {
        let others = self.group.gather(0, self.limits());
        let calls: Vec<&Call<'_>> = others.iter().map(|other| &other.call).collect();
        let answers = make_together(self, &calls);
        let is_any = !others.is_empty();
        self.answer(others, answers.into_iter());
        is_any
    }

    fn answer(
        &self,
        waiting: Vec<Waiting<Call<'static>, Result<Answer>>>,
        answers: impl Iterator<Item = Result<Answer>>,
    ) {
        let tickets = waiting.iter().filter(|waiting| !waiting.is_thread);
        self.group.note_answered(tickets.count());
        for (waiting, answer) in waiting.into_iter().zip(answers) {
            if !waiting.is_thread {
                self.core.meters.call_answered(waiting.call.age());
            }
            waiting.answer(answer);
        }
    }

    /// Waits for the answer to a call of this thread, and leads if it is told to.
    fn wait(self: &Arc<Self>, slot: &Slot<Result<Answer>>) -> Result<Answer> {
        match slot.wait() {
            Told::Answer(answer) => answer,
            Told::Abandoned => Err(abandoned()),
            Told::Lead => {
                let _leading = Leading { store: self };
                loop {
                    self.lead_once();
                    match slot.try_fetch() {
                        Some(Told::Answer(answer)) => return answer,
                        Some(Told::Abandoned) => return Err(abandoned()),
                        Some(Told::Lead) | None => {}
                    }
                }
            }
        }
    }

    /// Makes a thread that leads as long as something waits. If there can be none, those who wait are
    /// told.
    pub(crate) fn make_leader(self: &Arc<Self>) {
        let made = self.group.make_thread(|before| {
            let store = Arc::clone(self);
            let made = thread::Builder::new().name("resemblance-commit".into());
            made.spawn(move || {
                if let Some(before) = before {
                    let _ = before.join();
                }
                let _leading = Leading { store: &store };
                while store.lead_once() {}
            })
        });
        if let Err(error) = made {
            let error = Error::Io {
                action: "making a thread that commits what was queued".into(),
                source: error,
            };
            let all = Limits {
                calls: usize::MAX,
                size_bytes: usize::MAX,
                wait: std::time::Duration::ZERO,
            };
            let waiting = self.group.gather(0, all);
            let answers = std::iter::repeat_with(|| Err(error.repeated()));
            self.answer(waiting, answers);
            drop(Leading { store: self });
        }
    }

    /// Looks for what a document may resemble among those that are committed, while others write.
    fn look_ahead<'a>(self: &Arc<Self>, call: Call<'a>) -> Result<LookedAhead<'a>> {
        if call.kind != Kind::InsertIfNew {
            return Ok(LookedAhead::Queues(call));
        }
        let Some((document, signature)) = call.stored() else {
            return Ok(LookedAhead::Queues(call));
        };
        // What this thread has queued comes before: only if it is made does a snapshot have it.
        let may_answer = !self.group.has_tickets();
        let snapshot = self.shared_snapshot()?;
        let guarded = || known(snapshot.source(), &document, signature);
        let known = self.core.guarded(guarded)?;
        if let Some(novelty) = known.novelty {
            if !may_answer {
                return Ok(LookedAhead::Queues(call));
            }
            self.core.meters.known(&novelty);
            return Ok(LookedAhead::Known(novelty));
        }
        if known.beyond.is_some() {
            // What the budget allows is chosen from all candidates together.
            return Ok(LookedAhead::Queues(call));
        }
        let next_id = snapshot.inner.committed.state.next_id;
        Ok(LookedAhead::Queues(call.known_since(next_id)))
    }

    /// A snapshot of the last commit: that of another thread, if one has it.
    fn shared_snapshot(self: &Arc<Self>) -> Result<Snapshot> {
        let mut shared = self
            .shared_snapshot
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(inner) = shared.upgrade()
            && self.publication.is_current(inner.committed.state.commit)
        {
            return Ok(Snapshot { inner });
        }
        let snapshot = self.core.guarded(|| Snapshot::new(Arc::clone(self)))?;
        *shared = Arc::downgrade(&snapshot.inner);
        Ok(snapshot)
    }
}

pub(crate) fn abandoned() -> Error {
    Error::Closed {
        reason: "who was to make this change together with others stopped".into(),
    }
}
