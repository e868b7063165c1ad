//! Records of WARC files: their places, and the bytes that store them.

use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use zstd::stream::write::Encoder as ZstdEncoder;

use crate::input::{Compression, Encoder};

/// The level of frames that are compressed with a dictionary.
const ZSTD_LEVEL: i32 = 3;

/// Where a record is in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordPlace {
    /// The offset of its member in the compressed file, or of the record in an uncompressed one.
    pub(crate) offset: u64,
    /// The number of bytes from there, unless the member has other records too.
    pub(crate) length: Option<u64>,
    /// The offset of the record in the decompressed member.
    pub(crate) within: u64,
}

/// A record of a WARC file, as its reader found it. The bytes of the
/// [`CorpusRecord`](crate::CorpusRecord) are the head of the record, and for a page the head of HTTP and
/// the decoded body.
#[derive(Debug, PartialEq, Eq)]
pub struct ArchivedRecord {
    pub(crate) place: RecordPlace,
    pub(crate) head_bytes: usize,
    /// The length of the head of HTTP, 0 if there is none.
    pub(crate) http_bytes: usize,
    pub(crate) is_page: bool,
    /// The record as it is stored, if it is read to be copied.
    pub(crate) stored: Option<StoredRecord>,
}

impl ArchivedRecord {
    /// Returns true for a page, which is a document of the corpus, and false for another record.
    pub fn is_page(&self) -> bool {
        self.is_page
    }
}

/// The bytes that store a record and nothing else.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StoredRecord {
    pub(crate) bytes: Bytes,
    pub(crate) form: Arc<MemberForm>,
}

/// How the members of a file are compressed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MemberForm {
    pub(crate) compression: Compression,
    /// The frame with the dictionary, as it is stored, and the dictionary.
    pub(crate) dictionary: Option<(Bytes, Bytes)>,
}

impl MemberForm {
    /// Returns a member with these bytes.
    pub(crate) fn pack(&self, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        if self.compression == Compression::None {
            return Ok(bytes);
        }
        if let Some((_, dictionary)) = &self.dictionary {
            let mut encoder = ZstdEncoder::with_dictionary(Vec::new(), ZSTD_LEVEL, dictionary)?;
            encoder.write_all(&bytes)?;
            return encoder.finish();
        }
        let mut encoder = Encoder::new(self.compression, Vec::new())?;
        encoder.write_all(&bytes)?;
        encoder.finish()
    }
}
