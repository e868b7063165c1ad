//! Streams that are damaged, cut short or made up.

use std::io::{Error as IoError, ErrorKind, Read, Result as IoResult, Write};

use resemblance::{Document, Error, MinHash, Schema, Signature, SimHash, Store};

use crate::common::{Place, Random};
use crate::transfer::{create, entries, export};

fn schema() -> Schema {
    let builder = Schema::builder().minhash(MinHash::new(16).banding(4, 3));
    builder.simhash(SimHash::bits64()).build().unwrap()
}

fn small(place: &Place) -> (Store, Vec<u8>) {
    let store = create(place, "old.rsm", schema());
    let mut random = Random(6);
    let mut transaction = store.begin_write().unwrap();
    for number in 0..4u8 {
        let values = (0..16).map(|_| random.next() as u32).collect();
        let signature = Signature::from_parts(Some(values), Some(random.next()));
        let (key, payload) = ([number], [number; 9]);
        let document = match number {
            2 => Document::without_key(),
            _ => Document::new(&key),
        };
        let document = document.stamp(random.next()).payload(&payload);
        transaction.insert(document, &signature).unwrap();
    }
    transaction.commit().unwrap();
    let stream = export(&store.snapshot().unwrap());
    (store, stream)
}

/// Imports an incomplete stream. Returns the number of documents that the error reports before the
/// damage.
fn refused(store: &Store, stream: &[u8], what: impl Fn() -> String) -> u64 {
    let error = match store.import(stream).run() {
        Err(Error::ImportStopped {
            documents: 0,
            source,
        }) => *source,
        Err(error) => error,
        Ok(report) => panic!("{}: {report:?}", what()),
    };
    match error {
        Error::DamagedStream { documents, .. } => documents,
        other => panic!("{}: {other}", what()),
    }
}

#[test]
fn import_detects_every_flipped_bit() {
    let place = Place::new();
    let (_, stream) = small(&place);
    let store = create(&place, "new.rsm", schema());
    for bit in 0..8 * stream.len() {
        let mut damaged = stream.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        refused(&store, &damaged, || format!("bit {bit}"));
    }
    assert!(store.snapshot().unwrap().is_empty());
    assert_eq!(store.import(&stream[..]).run().unwrap().read, 4);
}

/// Where each frame ends.
fn ends(stream: &[u8]) -> Vec<usize> {
    let mut ends = vec![8];
    while let Some(start) = ends.last().copied().filter(|end| *end < stream.len()) {
        let length = u32::from_le_bytes(stream[start + 1..start + 5].try_into().unwrap());
        ends.push(start + 5 + length as usize + 4);
    }
    ends
}

#[test]
fn import_detects_every_truncation() {
    let place = Place::new();
    let (_, stream) = small(&place);
    let store = create(&place, "new.rsm", schema());
    let ends = ends(&stream);
    assert_eq!(ends.len(), 1 + 1 + 4 + 1);
    for length in 0..stream.len() {
        let documents = refused(&store, &stream[..length], || format!("{length} bytes"));
        let whole = ends[2..].iter().filter(|end| **end <= length).count();
        assert_eq!(documents, whole as u64, "{length} bytes");
    }
    for more in [&b"\0"[..], b"RESEMBX\x1a", &stream] {
        refused(&store, &[&stream, more].concat(), || "more".into());
    }
    assert!(store.snapshot().unwrap().is_empty());
}

#[test]
fn import_detects_missing_or_swapped_frames() {
    let place = Place::new();
    let (_, stream) = small(&place);
    let store = create(&place, "new.rsm", schema());
    let ends = ends(&stream);
    let frames: Vec<&[u8]> = ends.windows(2).map(|two| &stream[two[0]..two[1]]).collect();
    let head = &stream[..8];
    for left_out in 0..frames.len() {
        let mut some = frames.clone();
        some.remove(left_out);
        refused(&store, &[head, &some.concat()].concat(), || {
            format!("without {left_out}")
        });
        let mut twice = frames.clone();
        twice.insert(left_out, frames[left_out]);
        refused(&store, &[head, &twice.concat()].concat(), || {
            format!("twice {left_out}")
        });
        let mut swapped = frames.clone();
        swapped.swap(left_out, (left_out + 1) % frames.len());
        refused(&store, &[head, &swapped.concat()].concat(), || {
            format!("swapped {left_out}")
        });
    }
    // Frames of two streams, each in its place, are no stream: the end is of one of them.
    let other = create(&place, "other.rsm", schema());
    other.import(&stream[..]).run().unwrap();
    let signature = entries(&other.snapshot().unwrap())[0].signature.clone();
    other.upsert([3], &signature).unwrap();
    let second = export(&other.snapshot().unwrap());
    let last = self::ends(&second);
    let third = [&stream[..ends[4]], &second[last[4]..last[5]], frames[5]].concat();
    refused(&store, &third, || "mixed".into());
    assert!(store.snapshot().unwrap().is_empty());
}

/// Lengths that promise more than there is take no memory; what is there is read.
#[test]
fn import_refuses_forged_lengths() {
    let place = Place::new();
    let (_, stream) = small(&place);
    let store = create(&place, "new.rsm", schema());
    let ends = ends(&stream);
    for end in &ends[..ends.len() - 1] {
        for length in [u32::MAX, 1 << 31, 65 << 20, 64 << 20, 1 << 20, 1_000, 0] {
            let mut forged = stream.clone();
            forged[end + 1..end + 5].copy_from_slice(&length.to_le_bytes());
            refused(&store, &forged, || format!("{length} at {end}"));
        }
    }
}

/// A reader that fails after some bytes.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> IoResult<usize> {
        match self.0.read(bytes) {
            Ok(0) => Err(IoError::other("the line is dead")),
            read => read,
        }
    }
}

#[test]
fn import_reports_a_failing_reader() {
    let place = Place::new();
    let (_, stream) = small(&place);
    let store = create(&place, "new.rsm", schema());
    for length in (0..stream.len()).step_by(7) {
        let error = store.import(Failing(&stream[..length])).run().unwrap_err();
        assert!(error.to_string().contains("the line is dead"), "{error}");
    }
    assert!(store.snapshot().unwrap().is_empty());
}

/// A writer that accepts this number of bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> IoResult<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        match taken {
            0 => Err(ErrorKind::StorageFull.into()),
            taken => Ok(taken),
        }
    }

    fn flush(&mut self) -> IoResult<()> {
        Ok(())
    }
}

#[test]
fn failed_export_leaves_the_store_unchanged() {
    let place = Place::new();
    let (store, stream) = small(&place);
    let snapshot = store.snapshot().unwrap();
    for room in (0..stream.len()).step_by(50) {
        let failed = snapshot.export(Full(room)).run();
        assert!(matches!(failed, Err(Error::Io { source, .. })
            if source.kind() == ErrorKind::StorageFull));
    }
    snapshot.export(Full(stream.len())).run().unwrap();
    assert!(export(&snapshot) == stream);
}
