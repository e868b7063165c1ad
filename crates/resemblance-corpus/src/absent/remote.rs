//! What stands in the place of objects elsewhere in a build without the feature `remote`: nothing opens.

use std::convert::Infallible;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::error::CorpusError;
use super::settings::CorpusSettings;

/// Nothing: this build reads none.
#[derive(Debug)]
pub struct RemoteObject(Infallible);

impl RemoteObject {
    /// Nothing.
    pub fn name(&self) -> &Path {
        match self.0 {}
    }

    /// Nothing.
    pub fn bytes(&self) -> u64 {
        match self.0 {}
    }

    /// Nothing.
    pub fn version(&self) -> Option<String> {
        match self.0 {}
    }

    /// Nothing.
    ///
    /// # Errors
    ///
    /// None.
    pub fn open(self: &Arc<Self>) -> Result<Box<dyn Read + Send>, CorpusError> {
        match self.0 {}
    }
}

/// An error that says how a build reads such places.
pub(super) fn list<T>(argument: &Path, _: &CorpusSettings) -> Result<Vec<T>, CorpusError> {
    Err(CorpusError::Io(format!(
        "{} is not on this machine, and this build reads local files alone; cargo install --path cli \
         --features remote makes one that reads s3:// and https://",
        argument.display()
    )))
}
