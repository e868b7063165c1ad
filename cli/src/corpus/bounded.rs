//! Reading lines and texts that may be of any length, into memory that has a limit.

use std::io::{self, BufRead, BufReader, Read};

/// The next line with its end, and nothing at the end of the input; `None` for a longer one, which is
/// passed over.
pub(super) fn read_line(input: &mut impl BufRead, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let line = read_up_to(input, Some(b'\n'), max_bytes.saturating_add(1))?;
    if line.len() as u64 <= max_bytes {
        return Ok(Some(line));
    }
    if !line.ends_with(b"\n") {
        drop(line);
        pass_over_line(input)?;
    }
    Ok(None)
}

/// All that is left; `None` if that is more.
pub(super) fn read_all(input: &mut impl BufRead, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let bytes = read_up_to(input, None, max_bytes.saturating_add(1))?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= max_bytes))
}

/// All that an input holds; `None` if that is more than `max_bytes`, of which no more is held.
pub fn read_bounded(input: impl Read, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    read_all(&mut BufReader::new(input), max_bytes)
}

/// The bytes up to `end`, which is one of them, or to the limit.
fn read_up_to(input: &mut impl BufRead, end: Option<u8>, limit: u64) -> io::Result<Vec<u8>> {
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

/// Makes room, twice as much each time, but never for more than the limit.
fn reserve(bytes: &mut Vec<u8>, length: usize, limit: usize) -> io::Result<()> {
    if bytes.capacity() - bytes.len() >= length {
        return Ok(());
    }
    let room = bytes.len().min(limit - bytes.len()).max(length);
    let reserved = bytes.try_reserve_exact(room);
    reserved.map_err(|_| io::ErrorKind::OutOfMemory.into())
}

fn pass_over_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let found = memchr::memchr(b'\n', available);
        let length = found.map_or(available.len(), |index| index + 1);
        input.consume(length);
        if length == 0 || found.is_some() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_lines_are_passed_over() {
        let text = b"12345\n123\n\n1234\n12345";
        for capacity in [1, 2, 3, 7, 100] {
            let mut input = BufReader::with_capacity(capacity, &text[..]);
            let mut lines = Vec::new();
            loop {
                let line = read_line(&mut input, 5).unwrap();
                if line.as_ref().is_some_and(Vec::is_empty) {
                    break;
                }
                lines.push(line.map(|line| String::from_utf8(line).unwrap()));
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
    fn memory_is_not_taken_beyond_the_limit() {
        let line = vec![b'x'; 100_000];
        let read = read_up_to(&mut BufReader::new(&line[..]), Some(b'\n'), 70_000).unwrap();
        assert_eq!(read.len(), 70_000);
        assert_eq!(read.capacity(), 70_000);
    }
}
