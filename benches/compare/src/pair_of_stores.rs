//! Two stores that take the same texts in turns: an exact one beside an estimating one, and one that
//! keeps clusters beside one that takes no duplicates.

use std::path::Path;
use std::time::Duration;

use resemblance::schema::ClusterBounds;
use resemblance::{Document, MinHash, Schema, Signature, Snapshot, Store, Text};

use crate::Result;
use crate::documents::{batches, mix};
use crate::kept_sets::schema;
use crate::link::timed;
use crate::options::Options;
use crate::ours::store_options;
use crate::report::{microseconds, percentile};
use crate::shingle::english;

/// Words of a generated text, about 2 KB of English.
const WORDS: u64 = 340;

/// One of the two stores that are compared, and its times.
struct Side {
    name: &'static str,
    store: Store,
    /// True if near-duplicates are inserted as well.
    takes_all: bool,
    sketch: Duration,
    insert: Duration,
    new: u64,
}

impl Side {
    fn create(folder: &Path, name: &'static str, schema: Schema) -> Result<Self> {
        let path = folder.join(format!("{name}.rsm"));
        Ok(Self {
            name,
            takes_all: schema.clusters().is_some(),
            store: store_options().create(path, schema)?,
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
                if self.takes_all {
                    transaction.insert(Document::without_key(), signature)?;
                    new += 1;
                    continue;
                }
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

/// Compares an exact store with an estimating one.
pub fn exact_beside_estimates(options: &Options, english: &str) -> Result<()> {
    println!("\n## exact beside estimating: `insert_if_new`\n");
    let text = Text::words(5);
    let folder = tempfile::tempdir_in(&options.folder)?;
    let mut sides = [
        Side::create(folder.path(), "estimating", schema(text, None)?)?,
        Side::create(folder.path(), "exact", schema(text, Some(44))?)?,
    ];
    let words: Vec<&str> = english.split_whitespace().collect();
    load(options, &words, &mut sides)?;
    probe_strangers(options, &words, &sides)
}

/// Compares a store that keeps clusters with one that takes no near-duplicates.
pub fn run(options: &Options) -> Result<()> {
    println!("## clusters: `insert` with kept clusters beside `insert_if_new` without\n");
    let builder = || Schema::builder().text(Text::words(5));
    let minhash = || MinHash::new(128).threshold(0.8);
    let without = builder().minhash(minhash()).build()?;
    let with = builder()
        .minhash(minhash())
        .clusters(ClusterBounds::default());
    let folder = tempfile::tempdir_in(&options.folder)?;
    let mut sides = [
        Side::create(folder.path(), "without", without)?,
        Side::create(folder.path(), "clusters", with.build()?)?,
    ];
    let english = english()?;
    let words: Vec<&str> = english.split_whitespace().collect();
    load(options, &words, &mut sides)?;
    let [_, clusters] = &sides;
    let snapshot = clusters.store.snapshot()?;
    print_tables(&snapshot)?;
    let (found, time) = timed(|| Ok(snapshot.clusters().run()?.count()))?;
    println!(
        "\nrecomputing {found} clusters: {:.2} s",
        time.as_secs_f64()
    );
    Ok(())
}

/// Prints the size of the tables of clusters.
fn print_tables(snapshot: &Snapshot) -> Result<()> {
    let stats = snapshot.stats().run()?;
    println!("\ntable | rows | bytes | bytes a document");
    for name in ["forest", "members", "clusters"] {
        let table = stats.tables.iter().find(|table| table.name == name);
        let table = table.ok_or_else(|| format!("no table {name}"))?;
        let bytes = table.total_bytes();
        let each = bytes as f64 / snapshot.len() as f64;
        println!("{name} | {} | {bytes} | {each:.1}", table.rows);
    }
    Ok(())
}

/// Inserts the same texts into both stores in turns, and prints the rates.
fn load(options: &Options, words: &[&str], sides: &mut [Side; 2]) -> Result<()> {
    println!("texts of 2 KB, one in ten almost as an earlier one; the two stores in turns\n");
    println!("documents a commit | store | documents/s, insert and commit | with sketching | new");
    let bulk = 0..options.documents;
    let singles = options.documents..options.documents + options.singles;
    for (numbers, size) in [(bulk, options.batch), (singles, 1)] {
        let count = numbers.end - numbers.start;
        for batch in batches(numbers, size) {
            let is_even = (batch.start / size.max(1)).is_multiple_of(2);
            let texts: Vec<String> = batch.map(|number| text(words, number)).collect();
            for turn in [0, 1] {
                // Neither is always the first.
                sides[if is_even { turn } else { 1 - turn }].insert(&texts)?;
            }
        }
        report_inserts(size, count, sides);
    }
    Ok(())
}

fn report_inserts(size: u64, count: u64, sides: &mut [Side; 2]) {
    let rate = |time: Duration| count as f64 / time.as_secs_f64();
    let whole = |side: &Side| rate(side.insert + side.sketch);
    for side in &*sides {
        let (name, insert, whole) = (side.name, rate(side.insert), whole(side));
        println!("{size} | {name} | {insert:.0} | {whole:.0} | {}", side.new);
    }
    let [first, second] = &*sides;
    let insert = rate(second.insert) / rate(first.insert);
    let (whole, names) = (
        whole(second) / whole(first),
        format!("{} / {}", second.name, first.name),
    );
    println!("{size} | {names} | {insert:.2} | {whole:.2} |");
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
fn probe_strangers(options: &Options, words: &[&str], sides: &[Side; 2]) -> Result<()> {
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
    for (side, times) in sides.iter().zip(&mut times) {
        let median = microseconds(percentile(times, 0.5));
        println!("{} | {median:.1}", side.name);
    }
    Ok(())
}
