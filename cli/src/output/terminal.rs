//! Writing documents to a terminal, which they must not drive.

use std::io::{self, Write};

use super::escape;

/// Passes text on line by line, with control characters escaped.
pub(super) struct TerminalWriter<W: Write> {
    inner: W,
    /// The beginning of a line whose end has not been written yet.
    line: Vec<u8>,
}

impl<W: Write> TerminalWriter<W> {
    pub(super) fn new(inner: W) -> Self {
        Self {
            inner,
            line: Vec::new(),
        }
    }

    fn pass_on(&mut self, length: usize) -> io::Result<()> {
        let bytes: Vec<u8> = self.line.drain(..length).collect();
        let text = String::from_utf8_lossy(&bytes);
        self.inner.write_all(escape::for_terminal(&text).as_bytes())
    }
}

impl<W: Write> Write for TerminalWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = memchr::memrchr(b'\n', bytes).map_or(0, |index| index + 1);
        let complete = self.line.len() + end;
        self.line.extend_from_slice(bytes);
        if end > 0 {
            self.pass_on(complete)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass_on(self.line.len())?;
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_do_not_drive_a_terminal() {
        let text = "a\x1b[2J\u{9b}1mb\u{202e}c\té\r\n";
        let mut writer = TerminalWriter::new(Vec::new());
        for byte in text.as_bytes() {
            writer.write_all(&[*byte]).unwrap();
        }
        writer.write_all(b"rest\x07").unwrap();
        writer.flush().unwrap();
        let expected = "a\\x1B[2J\\xC2\\x9B1mb\\xE2\\x80\\xAEc\té\\x0D\nrest\\x07";
        assert_eq!(String::from_utf8(writer.inner).unwrap(), expected);
    }
}
