//! The open store, which handles, snapshots and transactions share.

use std::sync::Arc;

use crate::engine::{EngineResult, RedbFile};
use crate::error::{Error, Result};
use crate::schema::Schema;
use crate::state::context::SharedContext;
use crate::state::session::Session;
use crate::state::version_set::VersionSet;
use crate::state::writer_lock::WriterLock;

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

    /// Closes the file, and packs it if a good part of it was never written.
    pub(crate) fn close(self) -> Result<()> {
        let may_write = self.writable && self.context.health.check_writes().is_ok();
        match may_write {
            true => {
                let Self {
                    context, engine, ..
                } = self;
                engine.close_packed(&context.path, &context.options.file_options())
            }
            false => self.engine.close(),
        }
        .engine()
    }
}
