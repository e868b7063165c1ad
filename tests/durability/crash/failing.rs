//! Files whose n-th call fails.

use std::io::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicU64, Ordering};

use redb::StorageBackend;

use crate::common::memory::{Call, FileNumber, MemoryFiles, Watch, WatchedFiles};

/// The kind of call that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Open,
    Read,
    Write,
    SetLen,
    Len,
    Sync,
    Close,
    Publish,
    Remove,
    Look,
}

pub(crate) const KINDS: [Kind; 10] = [
    Kind::Open,
    Kind::Read,
    Kind::Write,
    Kind::SetLen,
    Kind::Len,
    Kind::Sync,
    Kind::Close,
    Kind::Publish,
    Kind::Remove,
    Kind::Look,
];

/// Which calls fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Calls of one kind, or of any.
    pub(crate) kind: Option<Kind>,
    /// The first that fails, from 0.
    pub(crate) nth: u64,
    /// All after it fail as well.
    pub(crate) for_ever: bool,
    /// A write that fails leaves its first half.
    pub(crate) is_torn: bool,
}

/// The text of the errors.
pub(crate) const TEXT: &str = "the disk of the test fails";

/// Files in memory, of which some calls fail.
pub(crate) type FailingFiles = WatchedFiles<Plan>;

#[derive(Debug)]
pub(crate) struct Plan {
    failure: Option<Failure>,
    /// Calls until now, of each kind.
    calls: [AtomicU64; KINDS.len()],
    failed: AtomicU64,
}

impl Plan {
    fn fails(&self, kind: Kind) -> bool {
        let calls = &self.calls[kind as usize];
        let of_kind = calls.fetch_add(1, Ordering::SeqCst);
        let Some(failure) = self.failure else {
            return false;
        };
        let number = match failure.kind {
            Some(failing) if failing == kind => of_kind,
            Some(_) => return false,
            None => {
                let all = self.calls.iter().map(|calls| calls.load(Ordering::SeqCst));
                all.sum::<u64>() - 1
            }
        };
        let fails = number == failure.nth || failure.for_ever && number > failure.nth;
        if fails {
            self.failed.fetch_add(1, Ordering::SeqCst);
        }
        fails
    }
}

impl Watch for Plan {
    fn call(
        &self,
        call: Call<'_>,
        file: Option<(FileNumber, &dyn StorageBackend)>,
        make: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let (kind, error) = match call {
            Call::Open(..) => (Kind::Open, ErrorKind::Other),
            Call::Remove(_) => (Kind::Remove, ErrorKind::Other),
            Call::Publish(..) => (Kind::Publish, ErrorKind::Other),
            Call::Look => (Kind::Look, ErrorKind::Other),
            Call::Len => (Kind::Len, ErrorKind::Other),
            Call::Read(..) => (Kind::Read, ErrorKind::Other),
            Call::Write(..) => (Kind::Write, ErrorKind::StorageFull),
            Call::SetLen(_) => (Kind::SetLen, ErrorKind::StorageFull),
            Call::Sync => (Kind::Sync, ErrorKind::Other),
            Call::Lock => return make(),
            Call::Close => (Kind::Close, ErrorKind::Other),
        };
        if !self.fails(kind) {
            return make();
        }
        match (call, file) {
            (Call::Close, _) => make()?,
            (Call::Write(offset, data), Some((_, file))) => {
                // The head is in one sector, which is there or not.
                let is_torn = self.failure.is_some_and(|it| it.is_torn) && offset > 0;
                let written = if is_torn { data.len() / 2 } else { 0 };
                file.write(offset, &data[..written])?;
            }
            _ => {}
        }
        Err(Error::new(error, TEXT))
    }
}

impl FailingFiles {
    pub(crate) fn failing(files: MemoryFiles, failure: Option<Failure>) -> Self {
        let plan = Plan {
            failure,
            calls: Default::default(),
            failed: AtomicU64::new(0),
        };
        Self::new(files, plan)
    }

    pub(crate) fn calls(&self, kind: Kind) -> u64 {
        self.watch.calls[kind as usize].load(Ordering::SeqCst)
    }

    pub(crate) fn failed(&self) -> u64 {
        self.watch.failed.load(Ordering::SeqCst)
    }
}
