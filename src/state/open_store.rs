//! What all handles of an open file share.

use std::sync::Arc;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::schema::Schema;
use crate::state::context::Core;
use crate::state::session::Session;
use crate::state::version_set::Publication;
use crate::state::writer_lock::Gate;

/// An open file: what its handles, snapshots and transactions share.
pub(crate) struct OpenStore {
    pub(crate) core: Core,
    pub(crate) engine: Engine,
    pub(crate) publication: Publication,
    pub(crate) gate: Arc<Gate>,
    /// Whether this release, and this handle, may write.
    pub(crate) writable: bool,
    /// After the file, which is closed before that is told.
    pub(crate) session: Option<Session>,
}

impl OpenStore {
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.writable {
            true => Ok(()),
            false => Err(Error::ReadOnly),
        }
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.core.schema
    }
}
