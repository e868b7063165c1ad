//! Turns bytes into pieces of text.

use std::io::{ErrorKind, Read};
use std::str::{Utf8Error, from_utf8};

use crate::error::{Result, SketchError};

/// The number of bytes to read at once.
const BUFFER_BYTES: usize = 1 << 16;

/// Calls `visit` with the text of `reader`, piece by piece. Memory holds one piece.
///
/// # Errors
///
/// [`SketchError::Io`] if `reader` fails, [`SketchError::NotUtf8`] at the first invalid byte. The
/// text before that byte has been visited.
pub fn for_each_piece(mut reader: impl Read, mut visit: impl FnMut(&str)) -> Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    // The bytes of a scalar value that the last read cut, and their offset in the text.
    let mut held = 0;
    let mut offset_bytes = 0;
    loop {
        // A scalar value has at most 4 bytes, so at most 3 are held.
        let (_, room) = buffer.split_at_mut(held);
        let read = match reader.read(room) {
            Ok(0) if held == 0 => return Ok(()),
            Ok(0) => return Err(SketchError::NotUtf8 { offset_bytes }),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(source) => return Err(cannot_read(source)),
        };
        let Some(filled) = buffer.get(..held + read) else {
            // Any type may implement `Read`, and may return a length beyond the buffer.
            let detail = "the reader returned a length beyond its buffer";
            return Err(cannot_read(std::io::Error::other(detail)));
        };
        let (text, error) = valid_part(filled);
        visit(text);
        offset_bytes += text.len() as u64;
        if error.is_some_and(|error| error.error_len().is_some()) {
            return Err(SketchError::NotUtf8 { offset_bytes });
        }
        let (from, to) = (text.len(), filled.len());
        buffer.copy_within(from..to, 0);
        held = to - from;
    }
}

fn cannot_read(source: std::io::Error) -> SketchError {
    SketchError::io("cannot read the text", source)
}

/// Returns the longest valid text at the beginning of `bytes`, and the error that ends it.
fn valid_part(bytes: &[u8]) -> (&str, Option<Utf8Error>) {
    match from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            let first = bytes.utf8_chunks().next();
            (first.map_or("", |chunk| chunk.valid()), Some(error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns at most a given number of bytes at once, and is interrupted before
    /// each read.
    struct Slow<'a> {
        bytes: &'a [u8],
        step: usize,
        ready: bool,
    }

    impl Read for Slow<'_> {
        fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
            self.ready = !self.ready;
            if self.ready {
                return Err(ErrorKind::Interrupted.into());
            }
            let read = self.step.min(room.len()).min(self.bytes.len());
            room[..read].copy_from_slice(&self.bytes[..read]);
            self.bytes = &self.bytes[read..];
            Ok(read)
        }
    }

    fn read(bytes: &[u8], step: usize) -> (String, Result<()>) {
        let mut text = String::new();
        let ready = false;
        let slow = Slow { bytes, step, ready };
        let result = for_each_piece(slow, |piece| text.push_str(piece));
        (text, result)
    }

    #[test]
    fn utf8_reader_returns_the_text_for_any_read_size() {
        let text = "a é 日本 𝔄\u{301} ".repeat(30_000);
        for step in [1, 2, 3, 5, 4096, usize::MAX] {
            let (found, result) = read(text.as_bytes(), step);
            assert!(result.is_ok() && found == text, "{step}");
        }
    }

    #[test]
    fn utf8_reader_names_the_first_wrong_byte() {
        let bad: [(&[u8], u64); 6] = [
            (b"abc\xff", 3),
            (b"\xc3", 0),
            (b"ab\xc3(", 2),
            (b"\xe6\x97\xa5\xe6\x97", 3),
            (b"a\xed\xa0\x80", 1),
            (b"\xf0\x9f\x98", 0),
        ];
        for (bytes, expected) in bad {
            for step in [1, 2, 100] {
                let (found, result) = read(bytes, step);
                assert_eq!(found.as_bytes(), &bytes[..expected as usize]);
                assert!(
                    matches!(result, Err(SketchError::NotUtf8 { offset_bytes }) if offset_bytes == expected)
                );
            }
        }
        let long = [b"x".repeat(200_000), b"\x80".to_vec()].concat();
        let refused = read(&long, usize::MAX).1;
        assert!(
            matches!(refused, Err(SketchError::NotUtf8 { offset_bytes }) if offset_bytes == 200_000)
        );
    }

    #[test]
    fn utf8_reader_reports_a_failing_source() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(ErrorKind::PermissionDenied.into())
            }
        }
        let refused = for_each_piece(Broken, |_| {});
        assert!(
            matches!(refused, Err(SketchError::Io { source, .. }) if source.kind() == ErrorKind::PermissionDenied)
        );
    }
}
