//! The open store, which handles, snapshots and transactions share.

use std::sync::Arc;

use crate::engine::{RedbFile, file_size};
use crate::error::{Error, Result};
use crate::schema::Schema;
use crate::state::context::SharedContext;
use crate::state::session::Session;
use crate::state::version_set::VersionSet;
use crate::state::writer_lock::WriterLock;

/// Less that was never written is not worth the commits that packing takes.
const MIN_UNWRITTEN_BYTES: u64 = 1 << 20;

/// One in so many bytes of the file may be unwritten.
const MIN_UNWRITTEN_PART: u64 = 32;

/// An open file with everything that its handles, snapshots and transactions share.
pub(crate) struct OpenStore {
    pub(crate) context: SharedContext,
    pub(crate) engine: RedbFile,
    pub(crate) versions: VersionSet,
    pub(crate) writer_lock: Arc<WriterLock>,
    /// True if this release and this handle may write.
    pub(crate) writable: bool,
    /// Declared, and so dropped, after the engine: the file is closed before that is logged.
    pub(super) session: Option<Session>,
}

impl OpenStore {
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.context.health.check_home()?;
        match self.writable {
            true => Ok(()),
            false => Err(Error::ReadOnly),
        }
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.context.schema
    }

    /// Closes the file, and packs it before if a good part of it was never written.
    pub(crate) fn close(self) -> Result<()> {
        let may_write = self.writable && self.context.health.check_writes().is_ok();
        if may_write && self.is_sparse()? {
            return self.engine.close_packed();
        }
        self.engine.close()
    }

    /// Returns true if a good part of the file was never written: the engine has doubled it to have room,
    /// and filled it from both ends. To pack it then costs about as much as was written since.
    fn is_sparse(&self) -> Result<bool> {
        let (length_bytes, disk_bytes) = file_size(&self.context.path, &self.context.options)?;
        let unwritten_bytes = length_bytes.saturating_sub(disk_bytes);
        Ok(unwritten_bytes > MIN_UNWRITTEN_BYTES.max(length_bytes / MIN_UNWRITTEN_PART))
    }
}
