//! Documents that move from one store to another as a stream: they are the same there, and found as
//! if they had been inserted.

mod damaged;
mod kinds;
mod rules;

use resemblance::report::ImportReport;
use resemblance::{Operation, Schema, Signature, Sketcher, Snapshot, Store};

use crate::common::oracle::{Entry, contents};
use crate::common::{Place, Random, sealing_after};

/// A signature of a few of the features of a family, now and then of none.
fn signature(sketcher: &Sketcher, random: &mut Random) -> Signature {
    let family = random.below(25) * 1_000;
    let missing = random.below(60);
    let features = match random.below(12) {
        0 => 0..0,
        _ => family..family + 40 + random.below(8),
    };
    let hashes = features
        .filter(|feature| feature % 60 != missing)
        .map(|feature| Random(feature).next());
    sketcher.hashes(hashes).unwrap()
}

fn entry(signature: Signature, number: u64, random: &mut Random) -> Entry {
    Entry {
        key: (random.below(4) > 0).then(|| number.to_le_bytes().to_vec()),
        stamp: random.below(50),
        payload: vec![number as u8; random.below(40) as usize],
        signature,
    }
}

fn create(place: &Place, name: &str, schema: Schema) -> Store {
    sealing_after(40).create(place.file(name), schema).unwrap()
}

/// Inserts documents in several transactions.
fn fill(store: &Store, entries: &[Entry]) {
    for entries in entries.chunks(30) {
        let mut transaction = store.begin_write().unwrap();
        for entry in entries {
            let inserted = transaction.insert(entry.document(), &entry.signature);
            inserted.unwrap();
        }
        transaction.commit().unwrap();
    }
}

fn export(snapshot: &Snapshot) -> Vec<u8> {
    let mut stream = Vec::new();
    let report = snapshot.export(&mut stream).run().unwrap();
    assert_eq!(report.documents, snapshot.len());
    assert_eq!(report.bytes, stream.len() as u64);
    stream
}

fn import(import: Operation<'_, ImportReport>) -> ImportReport {
    let report = import.run().unwrap();
    let counted = report.inserted + report.replaced + report.skipped + report.near_duplicates;
    assert_eq!(report.read, counted, "{report:?}");
    report
}

fn entries(snapshot: &Snapshot) -> Vec<Entry> {
    contents(snapshot).into_values().collect()
}
