//! Streams of documents that move from one store to another. Each frame has a checksum, and a
//! checksum of everything is at the end.

use std::io::{ErrorKind, Read};

use xxhash_rust::xxh3::Xxh3;

use crate::error::{Error, Result};
use crate::format::bits::take;
#[cfg(any(test, fuzzing))]
use crate::format::document_row::encode_body;
use crate::format::document_row::{PACKED_LIMIT_BYTES, RowHead, Shape, decode_body};
#[cfg(any(test, fuzzing))]
use crate::invariant::OrBug;
use crate::types::{Document, KEY_LIMIT_BYTES, PAYLOAD_LIMIT_BYTES};
use resemblance_sketch::metadata;
use resemblance_sketch::schema::Schema;
use resemblance_sketch::sketch::{RecipeMark, Signature};

const MAGIC: [u8; 8] = *b"RESEMBX\x1a";

/// The version of the stream that this release writes, and the newest that it reads.
pub(super) const STREAM_VERSION: u16 = 1;

const HEADER: u8 = 1;
const DOCUMENT: u8 = 2;
const END: u8 = 3;

/// Kind and length of a frame, in front of its body.
const HEAD_BYTES: usize = 5;

/// The maximum size of a header. No real one is nearly as large.
const HEADER_LIMIT_BYTES: usize = 1 << 20;

/// Bytes of the end frame: the number of documents, and the checksum of the stream.
const END_BYTES: usize = 16;

/// Fields in front of the row and the payload of a document: its id, and the length of the row.
const DOCUMENT_HEAD_BYTES: usize = 12;

/// The bytes of the fields of a row, besides its key and its signature's values and fingerprint.
const ROW_FIELDS_BYTES: usize = 16;

/// The first frame of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StreamHeader {
    /// Documents in the store when the stream was begun.
    pub(crate) documents: u64,
    /// Fingerprint and self-test of the recipe.
    pub(crate) self_test: (u64, u64),
    pub(crate) schema: Schema,
}

impl StreamHeader {
    fn encode(&self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        for version in [STREAM_VERSION, 1] {
            body.extend_from_slice(&version.to_le_bytes());
        }
        for number in [self.documents, self.self_test.0, self.self_test.1] {
            body.extend_from_slice(&number.to_le_bytes());
        }
        body.extend(metadata::encode("the schema of a stream", &self.schema)?);
        Ok(body)
    }

    fn decode(body: &[u8]) -> Result<Self> {
        let cut = || damaged(0, "its header is truncated");
        let mut rest = body;
        let [_, _, version @ ..] = take::<4>(&mut rest).ok_or_else(cut)?;
        // The meaning of the following bytes depends on the version.
        let found = u16::from_le_bytes(version);
        if found > STREAM_VERSION {
            return Err(Error::NewerFormat {
                found,
                supported: STREAM_VERSION,
            });
        }
        let mut number = || take(&mut rest).map(u64::from_le_bytes).ok_or_else(cut);
        let (documents, self_test) = (number()?, (number()?, number()?));
        let decoded = metadata::decode::<Schema>("its schema", rest);
        let valid = decoded.and_then(|schema| schema.validate().map(|()| schema));
        let schema = valid.map_err(|error| match Error::from(error) {
            error @ (Error::SelfTest { .. } | Error::MissingFeature { .. }) => error,
            error => damaged(0, format!("its schema: {error}")),
        })?;
        Ok(Self {
            documents,
            self_test,
            schema,
        })
    }
}

/// A document as it is encoded in a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StreamDocument {
    /// Its id in the store that it is from.
    pub(crate) id: u64,
    /// The body of its row, already validated.
    row: Vec<u8>,
    payload: Vec<u8>,
    pub(crate) signature: Signature,
}

impl StreamDocument {
    /// Returns the document without its signature.
    pub(crate) fn document(&self) -> Option<Document<'_>> {
        let (head, _) = RowHead::split(&self.row)?;
        Some(head.to_document(&self.payload))
    }

    pub(crate) fn size_bytes(&self) -> usize {
        let values = self.signature.value_shape().map_or(0, |(count, _)| count);
        self.row.len() + self.payload.len() + 8 * values
    }

    /// Decodes a document and marks its signature with `recipe`; `None` if the body is damaged.
    fn decode(body: &[u8], shape: &Shape, recipe: RecipeMark) -> Option<Self> {
        let mut rest = body;
        let id = u64::from_le_bytes(take(&mut rest)?);
        let length = usize::try_from(u32::from_le_bytes(take(&mut rest)?)).ok()?;
        let (row, payload) = rest.split_at_checked(length)?;
        let (head, signature) = decode_body(row, shape, recipe)?;
        let fits = head.key.is_none_or(|key| key.len() <= KEY_LIMIT_BYTES)
            && payload.len() <= PAYLOAD_LIMIT_BYTES
            && head.has_payload != payload.is_empty();
        fits.then_some(())?;
        Some(Self {
            id,
            row: row.to_vec(),
            payload: payload.to_vec(),
            signature,
        })
    }
}

/// Makes the bytes of a stream, frame by frame.
pub(crate) struct StreamWriter {
    frames: u64,
    hasher: Xxh3,
    body: Vec<u8>,
}

impl StreamWriter {
    /// Appends the beginning of a stream.
    pub(crate) fn begin(header: &StreamHeader, out: &mut Vec<u8>) -> Result<Self> {
        let mut writer = Self {
            frames: 0,
            hasher: Xxh3::new(),
            body: header.encode()?,
        };
        writer.hasher.update(&MAGIC);
        out.extend_from_slice(&MAGIC);
        writer.frame(HEADER, out)?;
        Ok(writer)
    }

    /// Appends a document: the body of its row, and its payload.
    pub(crate) fn document(
        &mut self,
        id: u64,
        row: &[u8],
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.body.clear();
        self.body.extend_from_slice(&id.to_le_bytes());
        self.body.extend_from_slice(&length_of(row)?);
        self.body.extend_from_slice(row);
        self.body.extend_from_slice(payload);
        self.frame(DOCUMENT, out)
    }

    /// Appends a frame of any kind.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn any_frame(&mut self, kind: u8, body: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.body.clear();
        self.body.extend_from_slice(body);
        self.frame(kind, out)
    }

    /// Appends a document that was read.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn again(
        &mut self,
        document: &StreamDocument,
        shape: &Shape,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let (head, _) = RowHead::split(&document.row).or_bug("a row that was read")?;
        let row = encode_body(&head, &document.signature, shape)?;
        self.document(document.id, &row, &document.payload, out)
    }

    /// Appends the end frame, and returns the number of documents.
    pub(crate) fn end(mut self, out: &mut Vec<u8>) -> Result<u64> {
        let documents = self.frames.saturating_sub(1);
        let digest = self.hasher.digest();
        self.body.clear();
        self.body.extend_from_slice(&documents.to_le_bytes());
        self.body.extend_from_slice(&digest.to_le_bytes());
        self.frame(END, out)?;
        Ok(documents)
    }

    /// Appends the body as a frame.
    fn frame(&mut self, kind: u8, out: &mut Vec<u8>) -> Result<()> {
        let mut head = [kind; HEAD_BYTES];
        let (_, length) = head.split_at_mut(1);
        length.copy_from_slice(&length_of(&self.body)?);
        let crc = checksum(self.frames, &head, &self.body).to_le_bytes();
        for part in [head.as_slice(), &self.body, &crc] {
            self.hasher.update(part);
            out.extend_from_slice(part);
        }
        self.frames += 1;
        Ok(())
    }
}

fn length_of(bytes: &[u8]) -> Result<[u8; 4]> {
    let length = u32::try_from(bytes.len());
    let long = |_| Error::corrupt("a row", "it is longer than 4 GiB");
    Ok(length.map_err(long)?.to_le_bytes())
}

/// Returns the checksum of a frame, which covers its number in the stream.
fn checksum(number: u64, head: &[u8], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(head);
    hasher.update(body);
    hasher.finalize()
}

/// Reads a stream without trusting its contents. Takes the memory of one frame.
pub(crate) struct StreamReader<R> {
    reader: R,
    /// Whole frames that were read.
    frames: u64,
    hasher: Xxh3,
    body: Vec<u8>,
    /// Maximum length of the body of a document, in bytes.
    limit_bytes: usize,
}

impl<R: Read> StreamReader<R> {
    /// Reads the header; `shape_of` returns the shape of the signatures of a schema.
    ///
    /// # Errors
    /// [`Error::DamagedStream`] if it is not a stream; [`Error::NewerFormat`]; [`Error::SelfTest`]
    /// and [`Error::MissingFeature`] for texts that this build does not treat as its writer did;
    /// [`Error::Io`].
    pub(crate) fn begin(
        reader: R,
        shape_of: impl FnOnce(&Schema) -> Shape,
    ) -> Result<(Self, StreamHeader, Shape)> {
        let mut stream = Self {
            reader,
            frames: 0,
            hasher: Xxh3::new(),
            body: Vec::new(),
            limit_bytes: 0,
        };
        let mut magic = [0; MAGIC.len()];
        stream.fill(&mut magic)?;
        if magic != MAGIC {
            return Err(damaged(0, "its first bytes are not the expected ones"));
        }
        stream.hasher.update(&magic);
        let kind = stream.frame()?;
        if kind != HEADER {
            return Err(
                stream.corrupt(format!("found a frame of kind {kind}, expected its header"))
            );
        }
        let header = StreamHeader::decode(&stream.body)?;
        let shape = shape_of(&header.schema);
        let packed_parts = usize::from(shape.has_kept_hashes) + usize::from(shape.has_set);
        let kept_limit_bytes = packed_parts * PACKED_LIMIT_BYTES;
        stream.limit_bytes = DOCUMENT_HEAD_BYTES
            + ROW_FIELDS_BYTES
            + KEY_LIMIT_BYTES
            + PAYLOAD_LIMIT_BYTES
            + kept_limit_bytes
            + shape.size_bytes();
        Ok((stream, header, shape))
    }

    /// Returns the next document; `None` after the last, if the stream is complete.
    ///
    /// # Errors
    /// [`Error::DamagedStream`] and [`Error::Io`]: nothing more can be read.
    pub(crate) fn next_document(
        &mut self,
        shape: &Shape,
        recipe: RecipeMark,
    ) -> Result<Option<StreamDocument>> {
        let digest = self.hasher.clone();
        match self.frame()? {
            DOCUMENT => {
                let document = StreamDocument::decode(&self.body, shape, recipe);
                let unknown = || self.corrupt("the last of them follows no known layout".into());
                document.ok_or_else(unknown).map(Some)
            }
            END => self.end(digest.digest()).map(|()| None),
            kind => Err(self.corrupt(format!("found a frame of kind {kind}, expected a document"))),
        }
    }

    /// Checks that the last frame counts the documents that were read.
    fn end(&mut self, digest: u64) -> Result<()> {
        let documents = self.frames.saturating_sub(2);
        let expected = [documents.to_le_bytes(), digest.to_le_bytes()].concat();
        if self.body != expected {
            return Err(self.corrupt("its end is that of another stream".into()));
        }
        match self.fill(&mut [0]) {
            Ok(()) => Err(self.corrupt("found more bytes after its end".into())),
            Err(Error::DamagedStream { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Reads a frame into the body; its kind.
    fn frame(&mut self) -> Result<u8> {
        let mut head = [0; HEAD_BYTES];
        self.fill(&mut head)?;
        let [kind, length @ ..] = head;
        let length = u32::from_le_bytes(length) as usize;
        let limit = match kind {
            HEADER => HEADER_LIMIT_BYTES,
            DOCUMENT => self.limit_bytes,
            _ => END_BYTES,
        };
        if length > limit {
            let detail = format!("found a length of {length} bytes, expected at most {limit}");
            return Err(self.corrupt(detail));
        }
        self.body.clear();
        // Grows with the available bytes: the length may be wrong.
        let mut body = (&mut self.reader).take(length as u64);
        let found = body.read_to_end(&mut self.body).map_err(unreadable)?;
        if found < length {
            return Err(self.cut_short());
        }
        let mut found = [0; 4];
        self.fill(&mut found)?;
        let expected = checksum(self.frames, &head, &self.body);
        if u32::from_le_bytes(found) != expected {
            let found = u32::from_le_bytes(found);
            let detail = format!("found checksum {found:08x}, expected {expected:08x}");
            return Err(self.corrupt(detail));
        }
        for part in [head.as_slice(), &self.body, &found] {
            self.hasher.update(part);
        }
        self.frames += 1;
        Ok(kind)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        match self.reader.read_exact(bytes) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(self.cut_short()),
            Err(error) => Err(unreadable(error)),
        }
    }

    fn cut_short(&self) -> Error {
        self.corrupt("it is truncated".into())
    }

    fn corrupt(&self, detail: String) -> Error {
        damaged(self.frames.saturating_sub(1), detail)
    }
}

fn damaged(documents: u64, detail: impl Into<String>) -> Error {
    Error::DamagedStream {
        documents,
        detail: detail.into(),
    }
}

fn unreadable(source: std::io::Error) -> Error {
    Error::Io {
        action: "reading the stream".into(),
        source,
    }
}
