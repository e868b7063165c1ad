//! The functions of the fuzzer, one for each target. Each accepts any bytes, and panics if a
//! promise is broken. The package in the folder `fuzz` passes generated inputs to these functions.
//! The tests pass the inputs in `fuzz/corpus`.
//!
//! Rows have checksums, which random bytes never match. Each function therefore tries its input
//! unchanged, and with the right checksum appended.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken promise should stop the fuzzer"
)]

mod block;
mod meta;
mod recipe;
mod rows;
mod stream;
#[cfg(test)]
mod tests;

pub use crate::fuzzing::block::block;
pub use crate::fuzzing::meta::{descriptor, header};
pub use crate::fuzzing::recipe::recipe;
pub use crate::fuzzing::rows::rows;
pub use crate::fuzzing::stream::stream;

use crate::format::checksum;

/// Numbers from the front of an input, and the rest of it. Beyond the end there are zeros.
struct Input<'d> {
    rest: &'d [u8],
}

impl<'d> Input<'d> {
    fn new(rest: &'d [u8]) -> Self {
        Self { rest }
    }

    fn byte(&mut self) -> u8 {
        self.number(1) as u8
    }

    /// A number of up to eight bytes, the least significant first.
    fn number(&mut self, bytes: usize) -> u64 {
        let (taken, rest) = self.rest.split_at(bytes.min(self.rest.len()));
        self.rest = rest;
        taken
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()]
    }

    /// The rest as the value of a row: as it is, and with the checksum of its place.
    fn values(&self, table: &str, key: &[u8]) -> [Vec<u8>; 2] {
        let mut sealed = self.rest.to_vec();
        checksum::seal(table, key, &mut sealed);
        [self.rest.to_vec(), sealed]
    }
}
