//! Leases of open files. A store lends its file to snapshots, iterators and transactions, and takes
//! it back when it is closed. If a file is locked, an error names them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::ThreadId;

use resemblance::{Error, Records, Snapshot};

/// The files that this process has or had open.
static OPEN_FILES: Mutex<Vec<Weak<OpenFile>>> = Mutex::new(Vec::new());

/// Locks a mutex. In all uses here, data is consistent even after a panic of another thread.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the error for a value that was closed.
pub(crate) fn closed(what: &str) -> Error {
    let reason = format!("{what} was closed");
    Error::Closed { reason }
}

/// A file, and the objects that may keep it open.
pub(crate) struct OpenFile {
    path: PathBuf,
    /// The process that has it open. In a fork of it, this is only a copy.
    process: u32,
    holders: Mutex<Vec<(&'static str, Weak<dyn Holder>)>>,
}

/// An object that may keep a file open.
pub(crate) trait Holder: Send + Sync {
    fn holds(&self) -> bool;

    /// Returns the name of the object if a call of this thread uses it now.
    fn used_here(&self) -> Option<&'static str> {
        None
    }

    /// Lets go of the file.
    fn release(&self);
}

impl OpenFile {
    pub(crate) fn new(path: &Path) -> Arc<Self> {
        let file = Arc::new(Self {
            path: path.canonicalize().unwrap_or_else(|_| path.into()),
            process: std::process::id(),
            holders: Mutex::default(),
        });
        let mut files = lock(&OPEN_FILES);
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(&file));
        file
    }

    /// Registers an object that may keep the file open.
    pub(crate) fn note(&self, name: &'static str, holder: Weak<dyn Holder>) {
        let mut holders = lock(&self.holders);
        holders.retain(|(_, holder)| holder.strong_count() > 0);
        holders.push((name, holder));
    }

    /// Returns the name of an object that a call of this thread uses now.
    pub(crate) fn used_here(&self) -> Option<&'static str> {
        let holders = lock(&self.holders);
        holders
            .iter()
            .find_map(|(_, holder)| holder.upgrade()?.used_here())
    }

    /// Takes the file back from all objects that hold it.
    pub(crate) fn take_back(&self) {
        let holders = std::mem::take(&mut *lock(&self.holders));
        for holder in holders.iter().filter_map(|(_, holder)| holder.upgrade()) {
            holder.release();
        }
    }

    /// Returns the names of the objects in this process that keep a file open: `Store, Snapshot
    /// (2)`.
    pub(crate) fn holders_of(path: &Path) -> Option<String> {
        let path = path.canonicalize().ok()?;
        let files: Vec<_> = lock(&OPEN_FILES).iter().filter_map(Weak::upgrade).collect();
        let mut counts = BTreeMap::new();
        let here = |file: &&Arc<Self>| file.path == path && file.process == std::process::id();
        for file in files.iter().filter(here) {
            for (name, holder) in lock(&file.holders).iter() {
                if holder.upgrade().is_some_and(|holder| holder.holds()) {
                    *counts.entry(*name).or_insert(0) += 1;
                }
            }
        }
        let named = counts.iter().map(|(name, count)| match count {
            1 => (*name).to_owned(),
            count => format!("{name} ({count})"),
        });
        (!counts.is_empty()).then(|| named.collect::<Vec<_>>().join(", "))
    }
}

/// A value that has a file open until it is dropped.
pub(crate) trait Held: Send + 'static {
    /// The name of its class in Python.
    const NAME: &'static str;

    /// Lets go of the file.
    fn end(self)
    where
        Self: Sized,
    {
    }
}

impl Held for Snapshot {
    const NAME: &'static str = "Snapshot";
}

impl Held for Records {
    const NAME: &'static str = "Records";
}

/// A value that has a file open until it or the store is closed.
pub(crate) struct Lease<T: Held> {
    value: Mutex<Option<T>>,
    user: Mutex<Option<ThreadId>>,
    pub(crate) file: Arc<OpenFile>,
}

/// The value of a lease while a thread uses it.
struct Use<'a, T> {
    value: MutexGuard<'a, Option<T>>,
    user: &'a Mutex<Option<ThreadId>>,
}

impl<T> Drop for Use<'_, T> {
    fn drop(&mut self) {
        *lock(self.user) = None;
    }
}

impl<T: Held> Lease<T> {
    pub(crate) fn new(file: &Arc<OpenFile>, value: T) -> Arc<Self> {
        let lease = Arc::new(Self {
            value: Mutex::new(Some(value)),
            user: Mutex::default(),
            file: Arc::clone(file),
        });
        let holder: Weak<Self> = Arc::downgrade(&lease);
        file.note(T::NAME, holder);
        lease
    }

    /// Waits until no other thread uses the value.
    ///
    /// # Errors
    /// `Busy` if this thread uses it: a filter asks a Python callable, which may use anything.
    fn enter(&self) -> Result<Use<'_, T>, Error> {
        if self.used_here().is_some() {
            return Err(Error::Busy);
        }
        let value = lock(&self.value);
        *lock(&self.user) = Some(std::thread::current().id());
        Ok(Use {
            value,
            user: &self.user,
        })
    }

    /// # Errors
    /// `Closed` after it was closed, and `Busy` if this thread uses it.
    pub(crate) fn with<R>(
        &self,
        work: impl FnOnce(&mut T) -> Result<R, Error>,
    ) -> Result<R, Error> {
        match self.enter()?.value.as_mut() {
            Some(value) => work(value),
            None => Err(Self::closed()),
        }
    }

    /// # Errors
    /// `Closed` after it was closed, and `Busy` if this thread uses it.
    pub(crate) fn take(&self) -> Result<T, Error> {
        self.enter()?.value.take().ok_or_else(Self::closed)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.enter().map_or(true, |used| used.value.is_some())
    }

    fn closed() -> Error {
        closed(&format!("the {}, or its store,", T::NAME))
    }
}

impl<T: Held + Clone> Lease<T> {
    /// # Errors
    /// `Closed` after it was closed.
    pub(crate) fn get(&self) -> Result<T, Error> {
        self.with(|value| Ok(value.clone()))
    }
}

impl<T: Held> Holder for Lease<T> {
    fn holds(&self) -> bool {
        // The call in progress holds it.
        self.value.try_lock().map_or(true, |value| value.is_some())
    }

    fn used_here(&self) -> Option<&'static str> {
        let is_used = *lock(&self.user) == Some(std::thread::current().id());
        is_used.then_some(T::NAME)
    }

    fn release(&self) {
        if let Ok(value) = self.take() {
            value.end();
        }
    }
}
