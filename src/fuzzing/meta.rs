//! Rows of the tables `meta`, `runs` and `lanes`.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::format::{
    FilterShape, HEADER, Header, LANES, LaneRow, META, RUNS, RunDescriptor, SCHEMA, SELF_TEST,
    STATE, State, decode_body, decode_meta, decode_run, encode_meta, encode_run, encode_signature,
    filter_key, split_filter_key,
};
use crate::fuzzing::Input;
use crate::state::shape_of;
use resemblance_sketch::schema::{DesignReport, Schema};
use resemblance_sketch::sketch::{MinHashKind, Signature, Sketcher};

/// Reads bytes as rows of `meta`. An accepted row has only one encoding, and an accepted schema can
/// be used.
pub fn header(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 4 {
        0 => {
            for value in input.values(META, HEADER.as_bytes()) {
                any_header(&value);
            }
        }
        1 => {
            for value in input.values(META, SCHEMA.as_bytes()) {
                if let Some(schema) = one_form::<Schema>(SCHEMA, &value) {
                    any_schema(&schema);
                }
            }
        }
        2 => {
            for value in input.values(META, SELF_TEST.as_bytes()) {
                one_form::<(u64, u64)>(SELF_TEST, &value);
            }
        }
        _ => {
            for value in input.values(META, STATE.as_bytes()) {
                one_form::<State>(STATE, &value);
            }
        }
    }
}

fn any_header(value: &[u8]) {
    let Ok(header) = Header::decode(value) else {
        return;
    };
    // The bytes after the flags belong to newer versions and are not read.
    let fields = header.encode().len() - 4;
    assert_eq!(header.encode()[..fields], value[..fields]);
    // Section 10 of the specification: version 1 knows bits 8 to 10 of `refuse`.
    let is_newer = header.oldest_reader > 1 || header.refuse & !0x700 != 0;
    let may_write = header.admit();
    let is_refused = matches!(
        may_write,
        Err(Error::UnknownFeatures { .. } | Error::NewerFormat { .. })
    );
    assert_eq!(is_refused, is_newer, "{header:?}: {may_write:?}");
}

/// A decoded value encodes to the same bytes.
fn one_form<T: Serialize + DeserializeOwned>(name: &str, value: &[u8]) -> Option<T> {
    let decoded = decode_meta::<T>(name, value).ok()?;
    assert_eq!(encode_meta(name, &decoded).unwrap(), value, "row {name}");
    Some(decoded)
}

fn any_schema(schema: &Schema) {
    if schema.validate().is_err() {
        return;
    }
    let lanes = schema.lane_set().unwrap();
    assert_eq!(usize::from(lanes.count()), schema.lanes());
    assert_eq!(lanes.roles().count(), schema.lanes());
    assert!(!schema.to_string().is_empty());
    for documents in [0, 1, schema.expected_documents(), u64::MAX] {
        assert!(!format!("{:?}", DesignReport::new(schema, documents)).is_empty());
    }
    let values = schema.minhash().map_or(0, |minhash| minhash.values());
    if values > 128 {
        // It is valid, but takes too long for a fuzzer.
        return;
    }
    let sketcher = schema.sketcher();
    sketcher.self_test().unwrap();
    if schema.minhash().map(|minhash| minhash.kind()) == Some(MinHashKind::External) {
        return;
    }
    let signature = any_signature(schema, &sketcher);
    if signature.fingerprint().is_none() && schema.simhash().is_some() {
        // Its fingerprints are external.
        return;
    }
    let shape = shape_of(schema);
    let mut codes = Vec::new();
    lanes
        .band_codes(&signature.rows(shape.values), &mut codes)
        .unwrap();
    let row = encode_signature(&signature, &shape).unwrap();
    let (_, read) = decode_body(&row, &shape, sketcher.recipe_mark()).unwrap();
    if schema.minhash().is_some() {
        assert_eq!(read.jaccard(&signature).unwrap(), 1.0);
    }
    assert_eq!(read.fingerprint(), signature.fingerprint());
    assert_eq!(read.kept_hashes(), signature.kept_hashes());
}

fn any_signature(schema: &Schema, sketcher: &Sketcher) -> Signature {
    let Some(vector) = schema.vector() else {
        return sketcher.hashes(0..40).unwrap();
    };
    let components = vec![1.0; vector.dimensions().into()];
    match sketcher.beside_vector() {
        None => sketcher.vector(&components).unwrap(),
        Some(beside) => {
            let rest = beside.hashes(0..40).unwrap();
            sketcher.with_vector(rest, &components).unwrap()
        }
    }
}

/// Reads bytes as rows of `runs` and `lanes`. An accepted row has only one encoding, and its
/// numbers can be added up.
pub fn descriptor(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 3 {
        0 => {
            let lane = input.number(2) as u16;
            for value in input.values(LANES, &lane.to_be_bytes()) {
                if let Ok(row) = LaneRow::decode(lane, &value) {
                    assert_eq!(row.encode(lane).unwrap(), value);
                }
            }
        }
        1 => filter_shape(&mut input),
        _ => {
            // A run's number is in its descriptor too, after the kind.
            let mut peeked = Input::new(input.rest.get(1..).unwrap_or_default());
            let run = peeked.number(4) as u32;
            for value in input.values(RUNS, &run.to_be_bytes()) {
                if let Ok(descriptor) = decode_run(run, None, &value) {
                    assert_eq!(encode_run(&descriptor).unwrap(), value);
                    any_run(&descriptor);
                }
            }
        }
    }
}

fn filter_shape(input: &mut Input<'_>) {
    let (run, lane, piece) = (input.number(4), input.number(2), input.number(4));
    let (run, lane, piece) = (run as u32, lane as u16, piece as u32);
    let key = filter_key(run, lane, piece);
    assert_eq!(split_filter_key(&key), (run, lane, piece));
    let shape = FilterShape::new(input.number(8), u64::from(input.byte()));
    let (a, b) = (input.number(8), input.number(8));
    let (low, high) = (shape.piece(a.min(b)), shape.piece(a.max(b)));
    assert!(low <= high && high < shape.pieces, "{shape:?}");
}

fn any_run(run: &RunDescriptor) {
    let mut counted = [0; 2];
    for (place, summary) in run.lanes.iter().enumerate() {
        assert_eq!(run.lane(summary.lane), Some(summary));
        let is_last = place + 1 == run.lanes.len();
        let grows = is_last && !run.inputs.is_empty();
        assert_eq!(run.is_growing(summary.lane), grows);
        assert!(
            summary
                .after
                .is_none_or(|after| after < summary.first_possible())
        );
        counted = [counted[0] + summary.postings, counted[1] + summary.blocks];
    }
    assert_eq!([run.postings(), run.blocks()], counted);
    debug(run);
}

/// Printing must not fail either.
fn debug(value: &impl Debug) {
    assert!(!format!("{value:?}").is_empty());
}
