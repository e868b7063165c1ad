//! Exact stores: what a kept set costs beside a kept text, and an exact store beside an estimating one.

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use resemblance::exact::jaccard_of_sorted;
use resemblance::{Document, MinHash, Schema, Signature, Sketcher, Snapshot, Store, Text};

use crate::Result;
use crate::documents::{batches, mix};
use crate::link::timed;
use crate::options::Options;
use crate::ours::store_options;
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

/// Words of a generated text, about 2 KB of English.
const WORDS: u64 = 340;

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
    beside_estimates(options, &english)
}

fn schema(text: Text, exact_bits: Option<u8>) -> Result<Schema> {
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

/// One of the two stores that are compared, and its times.
struct Side {
    store: Store,
    sketch: Duration,
    insert: Duration,
    new: u64,
}

impl Side {
    fn create(folder: &Path, is_exact: bool) -> Result<Self> {
        let path = folder.join(if is_exact {
            "exact.rsm"
        } else {
            "estimating.rsm"
        });
        Ok(Self {
            store: store_options().create(path, schema(Text::words(5), is_exact.then_some(44))?)?,
            sketch: Duration::ZERO,
            insert: Duration::ZERO,
            new: 0,
        })
    }

    fn sketch(&self, text: &str) -> Result<Signature> {
        Ok(self.store.sketch_text(text)?)
    }

    fn insert(&mut self, texts: &[String]) -> Result<()> {
        let sketches = || texts.iter().map(|text| self.sketch(text)).collect();
        let (signatures, time) = timed(sketches)?;
        let signatures: Vec<Signature> = signatures;
        self.sketch += time;
        let (new, time) = timed(|| {
            let mut transaction = self.store.begin_write()?;
            let mut new = 0;
            for signature in &signatures {
                let novelty = transaction.insert_if_new(Document::without_key(), signature)?;
                new += u64::from(novelty.is_new());
            }
            transaction.commit()?;
            Ok(new)
        })?;
        self.new += new;
        self.insert += time;
        Ok(())
    }
}

fn beside_estimates(options: &Options, english: &str) -> Result<()> {
    println!(
        "\n## exact beside estimating: texts of 2 KB, one in ten almost as an earlier one; \
         `insert_if_new`; the two stores in turns\n"
    );
    println!("documents a commit | store | documents/s, insert and commit | with sketching | new");
    let words: Vec<&str> = english.split_whitespace().collect();
    let folder = tempfile::tempdir_in(&options.folder)?;
    let mut sides = [false, true]
        .into_iter()
        .map(|is_exact| Side::create(folder.path(), is_exact))
        .collect::<Result<Vec<Side>>>()?;
    let bulk = 0..options.documents;
    let singles = options.documents..options.documents + options.singles;
    for (numbers, size) in [(bulk, options.batch), (singles, 1)] {
        let count = numbers.end - numbers.start;
        for batch in batches(numbers, size) {
            let is_even = (batch.start / size.max(1)).is_multiple_of(2);
            let texts: Vec<String> = batch.map(|number| text(&words, number)).collect();
            for turn in 0..sides.len() {
                // Neither is always the first.
                sides[if is_even { turn } else { 1 - turn }].insert(&texts)?;
            }
        }
        report_inserts(size, count, &mut sides);
    }
    probe_strangers(options, &words, &sides)
}

fn report_inserts(size: u64, count: u64, sides: &mut [Side]) {
    let rate = |time: Duration| count as f64 / time.as_secs_f64();
    let whole = |side: &Side| rate(side.insert + side.sketch);
    for (name, side) in ["estimating", "exact"].iter().zip(&*sides) {
        let (insert, whole) = (rate(side.insert), whole(side));
        println!("{size} | {name} | {insert:.0} | {whole:.0} | {}", side.new);
    }
    if let [estimating, exact] = sides {
        let insert = rate(exact.insert) / rate(estimating.insert);
        let whole = whole(exact) / whole(estimating);
        println!("{size} | exact / estimating | {insert:.2} | {whole:.2} |");
    }
    for side in sides {
        (side.insert, side.sketch, side.new) = (Duration::ZERO, Duration::ZERO, 0);
    }
}

/// The text of a number. One in ten differs in three words from that of an earlier number.
fn text(words: &[&str], number: u64) -> String {
    let is_copy = number % 10 == 9;
    let of = if is_copy {
        mix(number) % number
    } else {
        number
    };
    let place = |word: u64| {
        let changed = is_copy && word % 120 == 60;
        let seed = if changed { number } else { of };
        mix(seed << 10 | word) % words.len() as u64
    };
    let words = (0..WORDS).filter_map(|word| words.get(usize::try_from(place(word)).ok()?));
    words.copied().collect::<Vec<_>>().join(" ")
}

/// Asks both stores for texts that no document is near to.
fn probe_strangers(options: &Options, words: &[&str], sides: &[Side]) -> Result<()> {
    println!("\nprobes that find nothing | median, us");
    let first = 10 * (options.documents + options.singles);
    let snapshots = sides.iter().map(|side| Ok(side.store.snapshot()?));
    let snapshots: Vec<Snapshot> = snapshots.collect::<Result<_>>()?;
    let mut times = vec![Vec::new(); sides.len()];
    for probe in 0..options.probes {
        let text = text(words, first + 10 * probe);
        for (turn, side) in sides.iter().enumerate() {
            let signature = side.sketch(&text)?;
            let (found, time) = timed(|| Ok(snapshots[turn].query(&signature).run()?))?;
            if !found.is_empty() {
                return Err("a probe found a document".into());
            }
            times[turn].push(time);
        }
    }
    for (name, times) in ["estimating", "exact"].iter().zip(&mut times) {
        println!("{name} | {:.1}", microseconds(percentile(times, 0.5)));
    }
    Ok(())
}
