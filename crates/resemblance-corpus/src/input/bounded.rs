//! Reads lines and texts of any length into limited memory.

use std::io::{self, BufRead, BufReader, Read};

use bytes::{Bytes, BytesMut};

/// The size of the buffer that lines share.
const BLOCK_BYTES: usize = 64 << 10;

/// The lines of an input.
#[derive(Default)]
pub(crate) struct Lines {
    /// The buffer for the next lines. A line is a slice of it, so few lines need an allocation.
    block: BytesMut,
}

impl Lines {
    /// Returns the next line with its end, or an empty one at the end of the input. Returns `None`
    /// for a line that is too long, and skips it.
    pub(crate) fn next(
        &mut self,
        input: &mut impl BufRead,
        max_bytes: u64,
    ) -> io::Result<Option<Bytes>> {
        if let Some(line) = self.next_buffered(input, max_bytes)? {
            return Ok(Some(line));
        }
        let mut line = read_up_to(input, Some(b'\n'), max_bytes.saturating_add(1))?;
        if line.len() as u64 <= max_bytes {
            line.shrink_to(line.len().saturating_mul(2));
            return Ok(Some(line.into()));
        }
        if !line.ends_with(b"\n") {
            drop(line);
            input.skip_until(b'\n')?;
        }
        Ok(None)
    }

    /// Returns the next line if the input has buffered all of it and it is not too long.
    fn next_buffered(
        &mut self,
        input: &mut impl BufRead,
        max_bytes: u64,
    ) -> io::Result<Option<Bytes>> {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            Err(error) => return Err(error),
        };
        let end = memchr::memchr(b'\n', available);
        let line = end.and_then(|end| available.get(..=end));
        let Some(line) = line.filter(|line| line.len() as u64 <= max_bytes) else {
            return Ok(None);
        };
        if self.block.capacity() < line.len() {
            self.block = BytesMut::with_capacity(BLOCK_BYTES.max(line.len()));
        }
        self.block.extend_from_slice(line);
        let length = line.len();
        input.consume(length);
        Ok(Some(self.block.split().freeze()))
    }
}

/// Returns the rest of the input, or `None` if it is too long.
pub(crate) fn read_all(input: &mut impl BufRead, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let bytes = read_up_to(input, None, max_bytes.saturating_add(1))?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= max_bytes))
}

/// Returns all bytes of an input, or `None` if there are more than `max_bytes`. Never holds more
/// than that.
pub fn read_bounded(input: impl Read, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    read_all(&mut BufReader::new(input), max_bytes)
}

/// Returns the bytes up to and including `end`, or up to the limit.
fn read_up_to(input: &mut impl BufRead, end: Option<u8>, limit: u64) -> io::Result<Vec<u8>> {
    // On 32-bit machines, memory is smaller than this.
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    loop {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let room = limit - bytes.len();
        let piece = available.get(..room).unwrap_or(available);
        let found = end.and_then(|end| memchr::memchr(end, piece));
        let piece = found.and_then(|index| piece.get(..=index)).unwrap_or(piece);
        reserve(&mut bytes, piece.len(), limit)?;
        bytes.extend_from_slice(piece);
        let length = piece.len();
        input.consume(length);
        if length == 0 || found.is_some() || bytes.len() == limit {
            return Ok(bytes);
        }
    }
}

/// Reserves room. Doubles the capacity each time, but never beyond the limit.
fn reserve(bytes: &mut Vec<u8>, length: usize, limit: usize) -> io::Result<()> {
    if bytes.capacity() - bytes.len() >= length {
        return Ok(());
    }
    let room = bytes.len().min(limit - bytes.len()).max(length);
    let reserved = bytes.try_reserve_exact(room);
    reserved.map_err(|_| io::ErrorKind::OutOfMemory.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_limit_are_skipped() {
        let text = b"12345\n123\n\n1234\n12345";
        for capacity in [1, 2, 3, 7, 100] {
            let mut input = BufReader::with_capacity(capacity, &text[..]);
            let mut reader = Lines::default();
            let mut lines = Vec::new();
            loop {
                let line = reader.next(&mut input, 5).unwrap();
                if line.as_ref().is_some_and(Bytes::is_empty) {
                    break;
                }
                lines.push(line.map(|line| String::from_utf8(line.into()).unwrap()));
            }
            let expected = [
                None,
                Some("123\n"),
                Some("\n"),
                Some("1234\n"),
                Some("12345"),
            ];
            assert_eq!(lines, expected.map(|line| line.map(str::to_owned)));
            assert_eq!(read_all(&mut &text[..], 21).unwrap().unwrap().len(), 21);
            assert_eq!(read_all(&mut &text[..], 20).unwrap(), None);
        }
    }

    #[test]
    fn line_buffer_stays_within_the_limit() {
        let line = vec![b'x'; 100_000];
        let read = read_up_to(&mut BufReader::new(&line[..]), Some(b'\n'), 70_000).unwrap();
        assert_eq!(read.len(), 70_000);
        assert_eq!(read.capacity(), 70_000);
    }
}
