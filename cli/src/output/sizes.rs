//! Sizes as they are printed in messages.

use std::fmt;

/// Bytes in MiB, or in GiB from 10 GiB on.
pub(crate) struct BinarySize(pub(crate) u64);

impl fmt::Display for BinarySize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.div_ceil(1 << 20) {
            size @ ..10_240 => write!(f, "{size} MiB"),
            size => write!(f, "{:.1} GiB", size as f64 / 1024.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        let size = |bytes| BinarySize(bytes).to_string();
        assert_eq!(
            [size(1), size(500 << 20), size(25 << 29)],
            ["1 MiB", "500 MiB", "12.5 GiB"]
        );
    }
}
