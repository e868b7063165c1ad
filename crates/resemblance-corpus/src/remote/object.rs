//! One object in the version that was found, and its bytes in order.

use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Buf, Bytes};

use super::transfers::{ObjectServer, ObjectVersion, PendingBytes, Refusal, Transfer};
use crate::error::{CorpusError, RemoteError};

/// The maximum number of characters of a server's message to show.
const MAX_SAID: usize = 500;

/// An S3 object or a file of a web server, in its version when the corpus was resolved.
#[derive(Debug)]
pub struct RemoteObject {
    server: ObjectServer,
    key: String,
    /// The name of the object in messages.
    name: PathBuf,
    /// The parts of the address that the name hides. No message shows them.
    secrets: Vec<String>,
    version: ObjectVersion,
}

impl RemoteObject {
    /// Creates an object from a listing.
    pub(super) fn new(
        server: ObjectServer,
        key: String,
        name: PathBuf,
        version: ObjectVersion,
    ) -> Self {
        Self {
            server,
            key,
            name,
            secrets: Vec::new(),
            version,
        }
    }

    /// Queries a server for an object, and begins to read it.
    pub(super) fn find(
        server: ObjectServer,
        key: &str,
        name: PathBuf,
        secrets: Vec<String>,
    ) -> Result<(Arc<Self>, RemoteStream), CorpusError> {
        let begun = server.begin(key, None);
        let (version, transfer) = begun.map_err(|refusal| {
            let cause = cause(&refusal, &name, &secrets);
            CorpusError::io(cause.to_string())
        })?;
        let object = Arc::new(Self {
            server,
            key: key.to_owned(),
            name,
            secrets,
            version,
        });
        let stream = RemoteStream::new(Arc::clone(&object), transfer);
        Ok((object, stream))
    }

    /// The address, without passwords and other secrets.
    pub fn name(&self) -> &Path {
        &self.name
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// The length in bytes.
    pub fn bytes(&self) -> u64 {
        self.version.bytes
    }

    /// Returns the version, if the server reports one.
    pub fn version(&self) -> Option<String> {
        let ObjectVersion { tag, modified, .. } = &self.version;
        let modified = || modified.map(|seconds| format!("modified {seconds}"));
        tag.clone().or_else(modified)
    }

    /// Reads the object from its beginning.
    ///
    /// # Errors
    ///
    /// An error if the object no longer exists or has changed, or if the server does not respond.
    pub fn open(self: &Arc<Self>) -> Result<Box<dyn Read + Send>, CorpusError> {
        let begun = self.server.begin(&self.key, Some(&self.version));
        let (_, transfer) = begun.map_err(|refusal| self.failed(&refusal))?;
        Ok(Box::new(RemoteStream::new(Arc::clone(self), transfer)))
    }

    fn failed(&self, refusal: &Refusal) -> CorpusError {
        CorpusError::io(self.cause(refusal).to_string())
    }

    /// Returns true if the object still exists.
    pub(super) fn is_there(&self) -> Result<bool, CorpusError> {
        match self.server.begin(&self.key, Some(&self.version)) {
            Ok(_) => Ok(true),
            Err(Refusal::Missing) => Ok(false),
            Err(refusal) => Err(self.failed(&refusal)),
        }
    }

    /// Requests a range of its bytes.
    pub(super) fn range(&self, range: Range<u64>) -> Result<PendingBytes, RemoteError> {
        let asked = self.server.range(&self.key, &self.version, range);
        asked.map_err(|refusal| self.cause(&refusal))
    }

    /// Creates the error of a transfer, with the name of this object.
    pub(super) fn cause(&self, refusal: &Refusal) -> RemoteError {
        cause(refusal, &self.name, &self.secrets)
    }
}

/// The advice if neither the environment nor the machine provides a key.
const NO_KEY: &str =
    "; AWS_ACCESS_KEY_ID is not set, and neither is AWS_SKIP_SIGNATURE=true, for a public bucket";

/// Returns true if requests for an S3 object are signed, and the environment has no key for that.
fn lacks_key(name: &Path) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    name.starts_with("s3:") && !is_set("AWS_ACCESS_KEY_ID") && !is_set("AWS_SKIP_SIGNATURE")
}

/// Returns the message for a refusal, without the secrets that the name hides.
pub(super) fn cause(refusal: &Refusal, name: &Path, secrets: &[String]) -> RemoteError {
    let shown = name.display();
    RemoteError::new(match refusal {
        Refusal::Missing => format!("{shown} does not exist"),
        Refusal::Changed => format!("{shown} was changed while it was being read"),
        Refusal::NoRanges => format!(
            "cannot read {shown}: tables are read in ranges, which its server does not support; download \
             it first"
        ),
        Refusal::Other(said) => {
            let hide = |said: String, secret: &String| said.replace(secret, "");
            let open = secrets.iter().fold(said.clone(), hide);
            let start: String = open.chars().take(MAX_SAID).collect();
            let advice = if lacks_key(name) { NO_KEY } else { "" };
            format!("cannot read {shown}: {start}{advice}")
        }
    })
}

/// An object that is being read. Its end is an error unless all announced bytes have arrived.
pub(super) struct RemoteStream {
    object: Arc<RemoteObject>,
    transfer: Transfer,
    piece: Bytes,
    read_bytes: u64,
}

impl RemoteStream {
    pub(super) fn new(object: Arc<RemoteObject>, transfer: Transfer) -> Self {
        Self {
            object,
            transfer,
            piece: Bytes::new(),
            read_bytes: 0,
        }
    }

    fn failed(&self, cause: &str) -> io::Error {
        let (read, all) = (self.read_bytes, self.object.bytes());
        let said = format!("{cause}, after {read} of its {all} bytes");
        io::Error::other(RemoteError::new(said))
    }
}

impl Read for RemoteStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.transfer.next() {
                Some(Ok(piece)) => {
                    self.read_bytes += piece.len() as u64;
                    self.piece = piece;
                }
                Some(Err(refusal)) => {
                    return Err(self.failed(&self.object.cause(&refusal).to_string()));
                }
                None if self.read_bytes == self.object.bytes() => return Ok(0),
                None => {
                    let name = self.object.name().display();
                    return Err(self.failed(&format!("{name} does not have the announced length")));
                }
            }
        }
        let read = self.piece.as_ref().read(buffer)?;
        self.piece.advance(read);
        Ok(read)
    }
}
