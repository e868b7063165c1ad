//! The one place that turns structures into bytes with serde and bincode.
//!
//! The encoding is fixed: little-endian integers of their natural width, `f64` as its bits,
//! `Option` as one byte, enum variants as `u32`, sequences as a `u64` count and their elements,
//! structures as their fields in order. `format-spec.md` documents it, so that another encoder
//! could take over.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Result, SketchError};

/// The maximum size of a descriptor. No real one is nearly as large; a damaged count must not ask
/// for more.
const SIZE_LIMIT_BYTES: usize = 1 << 24;

fn configuration() -> impl bincode::config::Config {
    bincode::config::legacy().with_limit::<SIZE_LIMIT_BYTES>()
}

/// Encodes a value; `place` names it in errors.
pub fn encode(place: &str, value: &impl Serialize) -> Result<Vec<u8>> {
    bincode::serde::encode_to_vec(value, configuration())
        .map_err(|error| SketchError::corrupt(place, format!("cannot be encoded: {error}")))
}

/// Decodes all of `bytes`: something left over is damage.
pub fn decode<T: DeserializeOwned>(place: &str, bytes: &[u8]) -> Result<T> {
    let (value, used) = bincode::serde::decode_from_slice(bytes, configuration())
        .map_err(|error| SketchError::corrupt(place, format!("cannot be decoded: {error}")))?;
    if used == bytes.len() {
        Ok(value)
    } else {
        let detail = format!("found {} bytes, expected {used}", bytes.len());
        Err(SketchError::corrupt(place, detail))
    }
}
