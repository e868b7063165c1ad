//! Keys on the command line.

use std::ffi::OsStr;

use crate::failure::{Failure, Result};
use crate::output::escape::{self, PrintedKey};

/// A key on the command line.
pub(crate) fn parse_key(key: &OsStr, is_escaped: bool) -> Result<PrintedKey> {
    let bytes = key.as_encoded_bytes();
    if !is_escaped {
        return Ok(PrintedKey::Key(bytes.to_vec()));
    }
    escape::parse(bytes)
        .map_err(|reason| Failure::usage(format!("key {}: {reason}", key.to_string_lossy())))
}
