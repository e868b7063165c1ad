//! Distinguishes stores from corpora by content.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The first bytes of the storage engine's files.
pub(crate) const STORE_MAGIC: &[u8] = b"redb";

/// Returns the argument if it is the only one and is a store.
pub fn only_store(arguments: &[PathBuf]) -> Option<&Path> {
    match arguments {
        [path] if is_store(path) => Some(path),
        _ => None,
    }
}

/// Returns true if the file begins as a store does. Only the content decides, never the name.
pub fn is_store(path: &Path) -> bool {
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut start = Vec::new();
    let begin = |file: File| file.take(STORE_MAGIC.len() as u64).read_to_end(&mut start);
    is_file && File::open(path).and_then(begin).is_ok() && start == STORE_MAGIC
}
