//! Exact stores: what a kept set costs beside a kept text.

use std::hint::black_box;
use std::time::Duration;

use resemblance::exact::jaccard_of_sorted;
use resemblance::{Document, MinHash, Schema, Signature, Sketcher, Snapshot, Store, Text};

use crate::Result;
use crate::link::timed;
use crate::options::Options;
use crate::pair_of_stores;
use crate::report::{microseconds, percentile};
use crate::shingle::{documents, english};

/// Bytes of the texts whose sets are compared.
const TEXT_BYTES: [usize; 3] = [400, 2_000, 10_000];

/// The widths of hashes that are compared.
const WIDTHS: [u8; 3] = [32, 44, 64];

/// The most texts of one size.
const TEXTS: usize = 2_000;

/// Texts that are compared with all others, after one that warms up.
const PROBES: usize = 10;

/// The default of `zstd`.
const LEVEL: i32 = 3;

pub fn run(options: &Options) -> Result<()> {
    let english = english()?;
    println!(
        "## exact: bytes a document, and microseconds for each document that a text is compared with \
         completely (`scan` with a bound of 0, in memory, median of {PROBES})\n"
    );
    println!("shingles | bytes of text | kept | bytes a document | us a comparison");
    for text in [Text::words(5), Text::characters(9)] {
        for bytes in TEXT_BYTES {
            let mut texts = documents(&english, bytes);
            texts.truncate(TEXTS);
            compare_kept(text, bytes, &texts)?;
        }
    }
    pair_of_stores::exact_beside_estimates(options, &english)
}

pub fn schema(text: Text, exact_bits: Option<u8>) -> Result<Schema> {
    let builder = Schema::builder().text(text);
    let builder = builder.minhash(MinHash::new(128).threshold(0.8));
    let builder = match exact_bits {
        None => builder,
        Some(bits) => builder.exact_bits(bits),
    };
    Ok(builder.build()?)
}

/// Prints a line for each form in which features of these texts can be kept.
fn compare_kept(text: Text, bytes: usize, texts: &[&str]) -> Result<()> {
    let print = |kept: &str, bytes_each: f64, time: Duration| {
        let time = microseconds(time) / texts.len() as f64;
        println!("{text} | {bytes} | {kept} | {bytes_each:.0} | {time:.2}");
    };
    let (store, probes) = loaded(schema(text, None)?, texts)?;
    let snapshot = store.snapshot()?;
    let estimates = median_of_scans(&snapshot, &probes, None)?;
    print("signatures alone: estimates", 0.0, estimates);
    let packed: Vec<Vec<u8>> = texts
        .iter()
        .map(|text| zstd::bulk::compress(text.as_bytes(), LEVEL))
        .collect::<std::io::Result<_>>()?;
    let sketcher = store.sketcher();
    let asked: Vec<Vec<u64>> = probe_texts(texts)
        .map(|text| features(&sketcher, text))
        .collect::<Result<_>>()?;
    let again = |probe: usize, id: usize| {
        let unpacked = zstd::bulk::decompress(&packed[id], 4 * bytes)?;
        let features = features(&sketcher, std::str::from_utf8(&unpacked)?)?;
        Ok(jaccard_of_sorted(&asked[probe], &features))
    };
    let time = median_of_scans(&snapshot, &probes, Some(&again))?;
    let all_bytes: usize = packed.iter().map(Vec::len).sum();
    print("zstd", all_bytes as f64 / texts.len() as f64, time);
    for bits in WIDTHS {
        let (store, probes) = loaded(schema(text, Some(bits))?, texts)?;
        let snapshot = store.snapshot()?;
        let time = median_of_scans(&snapshot, &probes, None)?;
        let stats = snapshot.stats().run()?;
        let sets = stats.tables.iter().find(|table| table.name == "sets");
        let set_bytes = sets.ok_or("no table of sets")?.stored_bytes;
        let bytes_each = set_bytes as f64 / texts.len() as f64;
        print(&format!("hashes of {bits} bits"), bytes_each, time);
    }
    Ok(())
}

fn probe_texts<'t>(texts: &[&'t str]) -> impl Iterator<Item = &'t str> {
    texts.iter().copied().take(PROBES + 1)
}

fn features(sketcher: &Sketcher, text: &str) -> Result<Vec<u64>> {
    let mut features: Vec<u64> = sketcher.feature_hashes(text)?.into_iter().collect();
    features.sort_unstable();
    features.dedup();
    Ok(features)
}

fn loaded(schema: Schema, texts: &[&str]) -> Result<(Store, Vec<Signature>)> {
    let store = Store::in_memory(schema)?;
    let mut transaction = store.begin_write()?;
    for text in texts {
        transaction.insert(Document::without_key(), &store.sketch_text(text)?)?;
    }
    transaction.commit()?;
    let probes = probe_texts(texts).map(|text| store.sketch_text(text));
    let probes = probes.collect::<resemblance::Result<_>>()?;
    Ok((store, probes))
}

/// Computes the similarity of a probe and a document, by their indices.
type Verify<'v> = dyn Fn(usize, usize) -> Result<f64> + 'v;

/// Returns the median time in which a probe is compared with all documents.
fn median_of_scans(
    snapshot: &Snapshot,
    probes: &[Signature],
    verify: Option<&Verify<'_>>,
) -> Result<Duration> {
    let mut times = Vec::new();
    for (index, probe) in probes.iter().enumerate() {
        let query = snapshot.query(probe).min_similarity(0.0).scan();
        let query = match verify {
            None => query,
            Some(verify) => query.verify(move |id| {
                let place = usize::try_from(id.get()).expect("the id of a document in memory");
                Ok(Some(verify(index, place).expect("a text that was packed")))
            }),
        };
        let (found, time) = timed(|| Ok(query.run()?))?;
        black_box(found.len());
        times.push(time);
    }
    times.remove(0);
    Ok(percentile(&mut times, 0.5))
}
