//! Streams of documents.

use crate::format::{Shape, StreamDocument, StreamHeader, StreamReader, StreamWriter};
use crate::fuzzing::Input;
use crate::state::shape_of;
use resemblance_sketch::Text;
use resemblance_sketch::schema::{ClusterBounds, MinHash, Schema, SimHash, Vector};
use resemblance_sketch::sketch::{Containment, KeptVector, RecipeMark};

/// Frames that one input may be cut into.
const MOST_FRAMES: usize = 64;

/// Reads bytes as a stream, or as frames that get the right checksums.
pub fn stream(data: &[u8]) {
    let mut input = Input::new(data);
    if input.byte().is_multiple_of(2) {
        read(input.rest);
        return;
    }
    let header = header(&mut input);
    let mut stream = Vec::new();
    let mut writer = StreamWriter::begin(&header, &mut stream).unwrap();
    for _ in 0..MOST_FRAMES {
        if input.rest.is_empty() {
            break;
        }
        let (kind, length) = (input.byte() % 5, input.number(2) as usize);
        let (body, rest) = input.rest.split_at(length.min(input.rest.len()));
        input.rest = rest;
        // Most frames are documents: others end the reading.
        let kind = if kind == 4 { 1 } else { kind.max(2) };
        writer.any_frame(kind, body, &mut stream).unwrap();
    }
    writer.end(&mut stream).unwrap();
    read(&stream);
    if let Some((_, rest)) = stream.split_last() {
        assert!(read(rest).is_none());
    }
}

/// One schema for each layout of signatures.
fn header(input: &mut Input<'_>) -> StreamHeader {
    let minhash = |minhash| Schema::builder().minhash(minhash);
    let few = MinHash::new(16).value_bits(4).banding(2, 3).code_bits(33);
    let distant = |kept| Vector::euclidean(5, 0.5).values(64).kept(kept);
    let schemas = [
        minhash(MinHash::new(16)),
        minhash(few),
        minhash(MinHash::bottom_k(64)).simhash(SimHash::bits64()),
        minhash(MinHash::external(16).value_bits(2)),
        Schema::builder().simhash(SimHash::bits128()),
        Schema::builder().containment(Containment::new(2)),
        minhash(MinHash::weighted(16).threshold(0.6)).exact_bits(32),
        Schema::builder().vector(Vector::cosine(5).values(64)),
        Schema::builder().vector(distant(KeptVector::F16)),
        Schema::builder()
            .text(Text::words(1))
            .simhash(SimHash::bits32())
            .vector(distant(KeptVector::I8)),
        Schema::builder()
            .simhash(SimHash::external(256))
            .clusters(ClusterBounds::default()),
    ];
    let number = usize::from(input.byte()) % schemas.len();
    let schema = schemas.into_iter().nth(number).unwrap().build().unwrap();
    let self_test = (schema.sketcher().recipe_mark().fingerprint, 0);
    StreamHeader {
        documents: input.number(1),
        self_test,
        schema,
    }
}

/// A stream that was read is written as the same stream.
fn read(bytes: &[u8]) -> Option<Vec<StreamDocument>> {
    let mut shape_read = Shape::default();
    let (mut reader, header, shape) = StreamReader::begin(bytes, |schema| {
        shape_read = shape_of(schema);
        shape_read
    })
    .ok()?;
    assert_eq!(shape, shape_read);
    let mut documents = Vec::new();
    while let Some(document) = reader.next_document(&shape, RecipeMark::default()).ok()? {
        assert!(document.document().is_some());
        documents.push(document);
    }
    let mut again = Vec::new();
    let mut writer = StreamWriter::begin(&header, &mut again).unwrap();
    for document in &documents {
        writer.again(document, &shape, &mut again).unwrap();
    }
    writer.end(&mut again).unwrap();
    assert_eq!(again, bytes);
    Some(documents)
}
