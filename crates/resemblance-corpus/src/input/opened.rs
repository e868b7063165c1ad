//! A file opened for reading, decompressed.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::compression::Compression;
use crate::error::CorpusError;
use crate::settings::CorpusSettings;
use crate::store_file::STORE_MAGIC;

const BUFFER_BYTES: usize = 256 * 1024;

/// The decompressed bytes of a file.
pub(crate) type Decoded = BufReader<Box<dyn Read + Send>>;

/// Detects the compression of a file, and decompresses it.
pub(crate) fn decode(
    raw: Box<dyn Read + Send>,
    name: &Path,
    settings: &CorpusSettings,
) -> Result<(Compression, Decoded), CorpusError> {
    let failed = |error: io::Error| CorpusError::read(name, false, &error);
    let mut input = BufReader::with_capacity(BUFFER_BYTES, raw);
    let buffered = input.fill_buf().ok().and_then(|bytes| bytes.get(..16));
    let (start, input): (Vec<u8>, Box<dyn BufRead + Send>) = match buffered.map(<[u8]>::to_vec) {
        Some(start) => (start, Box::new(input)),
        // A pipe may return fewer bytes than requested.
        None => {
            let start = first_bytes(&mut input).map_err(failed)?;
            // The form of the file is detected from what one read returns, so that is kept in one piece.
            let mut read = start.clone();
            read.extend(input.buffer());
            input.consume(read.len() - start.len());
            let whole = io::Cursor::new(read).chain(input);
            (
                start,
                Box::new(BufReader::with_capacity(BUFFER_BYTES, whole)),
            )
        }
    };
    if start.starts_with(STORE_MAGIC) {
        let message = format!("{} is a store, not a corpus", name.display());
        return Err(CorpusError::bad(message));
    }
    let compression = detected_compression(name, &start)?;
    let decoder = compression
        .decoder(input, settings.window_bytes)
        .map_err(failed)?;
    Ok((compression, BufReader::with_capacity(BUFFER_BYTES, decoder)))
}

/// Returns up to six bytes, and fewer only at the end of the input. For a database, returns all
/// bytes that identify it; no other format needs more than six.
fn first_bytes(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    input.take(6).read_to_end(&mut start)?;
    if start == b"SQLite" {
        input.take(10).read_to_end(&mut start)?;
    }
    Ok(start)
}

/// Detects the compression by content. The name must not contradict it: a file that merely claims
/// to be compressed is more probably truncated or misnamed.
fn detected_compression(name: &Path, start: &[u8]) -> Result<Compression, CorpusError> {
    let by_name = Compression::from_name(name);
    let by_content = Compression::from_content(start);
    // An empty file is empty whatever its name.
    if by_name == Compression::None || by_name == by_content || start.is_empty() {
        return Ok(by_content);
    }
    // A Zstandard file may begin with a skippable frame.
    if by_name == Compression::Zstd && by_content == Compression::None {
        return Ok(by_name);
    }
    Err(CorpusError::bad(format!(
        "{} is not {}, as its name says",
        name.display(),
        by_name.name()
    )))
}
