//! Undoes the transfer and content codings of an HTTP body.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

use flate2::bufread::{DeflateDecoder, GzDecoder, ZlibDecoder};

use super::head::MessageHead;

const GZIP_MAGIC: &[u8] = b"\x1f\x8b";
const ZSTD_MAGIC: &[u8] = b"\x28\xb5\x2f\xfd";
/// RFC 9659 limits the windows of Zstandard in HTTP to 8 MiB.
const HTTP_WINDOW_LOG: u32 = 23;
const BUFFER_BYTES: usize = 64 << 10;

/// Undoes the codings of a body, which may be at most `max_bytes` long. If the crawler `is_cut` it,
/// returns what can be decoded.
pub(super) fn decode<'a>(
    http: &MessageHead,
    body: &'a [u8],
    is_cut: bool,
    max_bytes: u64,
) -> Result<Cow<'a, [u8]>, String> {
    let mut codings = http.codings("content-encoding");
    codings.extend(http.codings("transfer-encoding"));
    let mut decoded = Cow::Borrowed(body);
    for coding in codings.iter().rev() {
        let mut bytes = Vec::new();
        match undo(coding, &decoded, max_bytes, &mut bytes) {
            Ok(false) => continue,
            Ok(true) => {}
            Err(error) if is_cut && error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(format!("its body cannot be decoded ({coding}): {error}")),
        }
        decoded = bytes.into();
    }
    Ok(decoded)
}

/// Undoes one coding. Returns false if the bytes do not have it: some crawlers decode bodies, and
/// keep the fields that declare how they were encoded. What was decoded before an error is in
/// `bytes`.
fn undo(coding: &str, body: &[u8], max_bytes: u64, bytes: &mut Vec<u8>) -> io::Result<bool> {
    match coding {
        "chunked" if chunk_size(&mut &*body).is_ok() => join_chunks(body, bytes)?,
        "gzip" | "x-gzip" if body.starts_with(GZIP_MAGIC) => read_gzip(body, max_bytes, bytes)?,
        "zstd" if body.starts_with(ZSTD_MAGIC) => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(body)?;
            decoder.window_log_max(HTTP_WINDOW_LOG)?;
            read_up_to(decoder, max_bytes, bytes)?;
        }
        "identity" | "chunked" | "gzip" | "x-gzip" | "zstd" => return Ok(false),
        "deflate" if is_zlib(body) => read_up_to(ZlibDecoder::new(body), max_bytes, bytes)?,
        // Servers send raw DEFLATE under the same name.
        "deflate" => read_up_to(DeflateDecoder::new(body), max_bytes, bytes)?,
        "br" => {
            let decoder = brotli_decompressor::Decompressor::new(body, BUFFER_BYTES);
            read_up_to(decoder, max_bytes, bytes)?;
        }
        _ => return Err(io::Error::other("this encoding is not supported")),
    }
    Ok(true)
}

/// Returns true if the bytes begin like a zlib stream.
fn is_zlib(body: &[u8]) -> bool {
    let [method, check, ..] = body else {
        return false;
    };
    method & 0xf == 8 && u16::from_be_bytes([*method, *check]).is_multiple_of(31)
}

/// Reads to the end. What was read before an error remains in `bytes`.
fn read_up_to(decoder: impl Read, max_bytes: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    decoder.take(max_bytes + 1).read_to_end(bytes)?;
    match bytes.len() as u64 > max_bytes {
        true => Err(io::Error::other(format!(
            "it is longer than {max_bytes} bytes, which --max-line SIZE sets"
        ))),
        false => Ok(()),
    }
}

/// Reads all members. Servers put other bytes after the last one.
fn read_gzip(mut body: &[u8], max_bytes: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    while body.starts_with(GZIP_MAGIC) {
        let mut decoder = GzDecoder::new(body);
        read_up_to(&mut decoder, max_bytes, bytes)?;
        body = decoder.into_inner();
    }
    Ok(())
}

/// Reads the line that declares the length of a chunk.
fn chunk_size(body: &mut &[u8]) -> io::Result<usize> {
    let mut line = Vec::new();
    body.read_until(b'\n', &mut line)?;
    let digits = line.split(|byte| *byte == b';').next().unwrap_or(&[]);
    let size = std::str::from_utf8(digits.trim_ascii())
        .ok()
        .and_then(|digits| usize::from_str_radix(digits, 16).ok());
    size.ok_or_else(|| io::Error::other("found no length of a chunk"))
}

fn join_chunks(mut body: &[u8], bytes: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let size = chunk_size(&mut body)?;
        if size == 0 {
            return Ok(());
        }
        let Some((chunk, rest)) = body.split_at_checked(size) else {
            bytes.extend_from_slice(body);
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        bytes.extend_from_slice(chunk);
        body = rest
            .strip_prefix(b"\r\n")
            .or_else(|| rest.strip_prefix(b"\n"))
            .unwrap_or(rest);
    }
}
