//! Files whose n-th call fails.

use std::io::{Error, ErrorKind, Result};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use redb::StorageBackend;
use resemblance::{Access, Files};

use crate::common::memory::MemoryFiles;

/// What is called.
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

/// What the errors say.
pub(crate) const TEXT: &str = "the disk of the test fails";

/// Files in memory, of which some calls fail.
#[derive(Clone, Debug)]
pub(crate) struct FailingFiles {
    pub(crate) files: MemoryFiles,
    plan: Arc<Plan>,
}

#[derive(Debug)]
struct Plan {
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

    fn call(&self, kind: Kind) -> Result<()> {
        if !self.fails(kind) {
            return Ok(());
        }
        Err(Error::new(
            match kind {
                Kind::Write | Kind::SetLen => ErrorKind::StorageFull,
                _ => ErrorKind::Other,
            },
            TEXT,
        ))
    }
}

impl FailingFiles {
    pub(crate) fn new(files: MemoryFiles, failure: Option<Failure>) -> Self {
        let plan = Arc::new(Plan {
            failure,
            calls: Default::default(),
            failed: AtomicU64::new(0),
        });
        Self { files, plan }
    }

    pub(crate) fn calls(&self, kind: Kind) -> u64 {
        self.plan.calls[kind as usize].load(Ordering::SeqCst)
    }

    pub(crate) fn failed(&self) -> u64 {
        self.plan.failed.load(Ordering::SeqCst)
    }
}

impl Files for FailingFiles {
    fn open(&self, path: &Path, access: Access) -> Result<Box<dyn StorageBackend>> {
        self.plan.call(Kind::Open)?;
        Ok(Box::new(FailingFile {
            file: self.files.open(path, access)?,
            plan: Arc::clone(&self.plan),
        }))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.plan.call(Kind::Remove)?;
        self.files.remove(path)
    }

    fn publish(&self, from: &Path, to: &Path) -> Result<()> {
        self.plan.call(Kind::Publish)?;
        self.files.publish(from, to)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.plan.call(Kind::Look)?;
        self.files.exists(path)
    }

    fn size_bytes(&self, path: &Path) -> Result<(u64, u64)> {
        self.plan.call(Kind::Look)?;
        self.files.size_bytes(path)
    }
}

#[derive(Debug)]
struct FailingFile {
    file: Box<dyn StorageBackend>,
    plan: Arc<Plan>,
}

impl StorageBackend for FailingFile {
    fn len(&self) -> Result<u64> {
        self.plan.call(Kind::Len)?;
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.plan.call(Kind::Read)?;
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.plan.call(Kind::SetLen)?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> Result<()> {
        self.plan.call(Kind::Sync)?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let written = self.plan.call(Kind::Write);
        if written.is_err() && self.plan.failure.is_some_and(|failure| failure.is_torn) {
            // The head is in one sector, which is there or not.
            let half = if offset == 0 { 0 } else { data.len() / 2 };
            self.file.write(offset, &data[..half])?;
        }
        written?;
        self.file.write(offset, data)
    }

    fn close(&self) -> Result<()> {
        let closed = self.plan.call(Kind::Close);
        self.file.close()?;
        closed
    }
}
