//! The only place that encodes structures as bytes, with serde and bincode.
//!
//! The encoding is fixed. Integers are little-endian and have their natural width; an `f64` is its
//! bits; an `Option` begins with one byte; an enum begins with its variant as a `u32`; a sequence
//! is a `u64` count and its elements; a structure is its fields in order. `format-spec.md`
//! documents it, so that a different encoder could replace this one.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Result, SketchError};

/// The maximum size of an encoded structure. Real ones are far smaller; the limit keeps a damaged
/// count from allocating memory.
const SIZE_LIMIT_BYTES: usize = 1 << 24;

fn configuration() -> impl bincode::config::Config {
    bincode::config::legacy().with_limit::<SIZE_LIMIT_BYTES>()
}

/// Encodes a value; `place` names it in errors.
pub fn encode(place: &str, value: &impl Serialize) -> Result<Vec<u8>> {
    bincode::serde::encode_to_vec(value, configuration())
        .map_err(|error| SketchError::corrupt(place, format!("cannot be encoded: {error}")))
}

/// Decodes all of `bytes`; left-over bytes count as damage. `place` names the bytes in errors.
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
