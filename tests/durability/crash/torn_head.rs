//! The head of a file, written in part: no disk sector is torn like that, but a file system or a virtual
//! disk may do it. Opening refuses the file and names `repair`, which brings back every document.

use std::path::Path;
use std::sync::Arc;

use resemblance::{BulkOptions, Error, Store, StoreOptions};

use crate::common::Random;
use crate::common::oracle::Model;
use crate::common::sample::one_in;
use crate::crash::disk::{Change, Image, Kept, State, files_of};
use crate::crash::examine::{Found, each_store, which};
use crate::crash::workload::{run, schemas};

/// The head and its seal.
const HEAD_BYTES: usize = 336;

/// With the note behind them, in the same sector.
const WRITTEN_BYTES: usize = 368;

/// Takes two images that differ only in the head of one file. Returns that file with the first
/// bytes of one image and the rest of the other, both ways.
fn torn(before: &Image, after: &Image, at: usize) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for (path, new) in after {
        let Some(old) = before.get(path).filter(|old| *old != new) else {
            continue;
        };
        if old.len() < HEAD_BYTES || new.len() < HEAD_BYTES {
            continue;
        }
        let (mut first, mut second) = (new.clone(), new.clone());
        first[at..WRITTEN_BYTES].copy_from_slice(&old[at..WRITTEN_BYTES]);
        second[..at].copy_from_slice(&old[..at]);
        found.extend([first, second].map(|bytes| (path.clone(), bytes)));
    }
    found
}

/// Opens a file with a torn head, or repairs it; returns true if it had to be repaired.
fn survives(image: &Image, path: &Path, possible: &[Option<Arc<Model>>]) -> Found<bool> {
    let files = Arc::new(files_of(image));
    let options = StoreOptions::new().files(files);
    match options.open(path) {
        Ok(store) => which(&store, possible).map(|_| false),
        Err(error @ Error::Corrupt { .. }) => {
            if !error.to_string().contains("repair") {
                return Err(format!("it does not say what to do: {error}"));
            }
            let target = Path::new("repaired.rsm");
            let bulk = BulkOptions::new().store(options.clone());
            let repaired = Store::repair(path, target).bulk(bulk).run();
            let report = repaired.map_err(|error| format!("repair: {error}"))?;
            let store = options.open(target);
            let store = store.map_err(|error| format!("opening: {error}"))?;
            let found = which(&store, possible);
            found.map_err(|found| format!("{found} after {report:#?}"))?;
            Ok(true)
        }
        Err(error) => Err(format!("another error: {error}")),
    }
}

/// One in 13 heads, all with `RESEMBLANCE_TESTS=all`.
#[test]
fn torn_head_loses_no_document() {
    let (mut opened, mut repaired, mut found) = (0, 0, Vec::new());
    let (distance, mut heads) = (one_in(13), 0);
    for (number, (name, schema)) in schemas().into_iter().enumerate() {
        let course = run(&schema, 7_000 + number as u64, 3);
        let mut state = State::default();
        for (change, position) in course.changes.iter().zip(1..) {
            let before = state.clone();
            state.take(change);
            if !matches!(change, Change::Write(_, 0, data) if data.len() == WRITTEN_BYTES) {
                continue;
            }
            heads += 1;
            if heads % distance != 0 {
                continue;
            }
            let (first, second, what) = course.expected(position);
            for kept in [Kept::Everything, Kept::HeadAlone] {
                let at = [168, 8 * (position % 42)][position % 2].max(8);
                let image = |state: &State| state.image(kept, &mut Random(position as u64));
                for (path, bytes) in torn(&image(&before), &image(&state), at) {
                    let stores = each_store(&first, &second);
                    let mut stores = stores.into_iter();
                    let Some((_, possible)) = stores.find(|(store, _)| **store == *path) else {
                        continue;
                    };
                    // A store that is not there yet need not be readable.
                    if possible.iter().any(Option::is_none) {
                        continue;
                    }
                    let image = Image::from([(path.clone(), bytes)]);
                    match survives(&image, &path, &possible) {
                        Ok(false) => opened += 1,
                        Ok(true) => repaired += 1,
                        Err(error) => found.push(format!(
                            "{name}, position {position} in {what}, {kept:?}, torn at {at}: {error}"
                        )),
                    }
                }
            }
        }
    }
    println!("{opened} were opened, {repaired} repaired");
    assert!(
        found.is_empty(),
        "{} failed, such as {:#?}",
        found.len(),
        &found[..found.len().min(3)]
    );
    assert!(
        repaired > 100 / distance,
        "{opened} opened, {repaired} repaired"
    );
}
