//! Three years of daily crawls, which arrive as the records of WARC files do: is every quarter like the others?

use std::path::Path;
use std::time::Instant;

use resemblance::metrics::Metrics;
use resemblance::{Document, EvictPolicy, Novelty, Signature, Store};

use super::world::signature_of;
use crate::Result;
use crate::documents::{batches, mix};
use crate::engine::cache_bytes;
use crate::options::Options;
use crate::ours::store_options;
use crate::process::{allocated_bytes, resident_bytes};

const QUARTERS: u64 = 12;
const QUARTER_DAYS: u64 = 91;
/// A page that was not seen for this number of days is evicted.
const KEPT_DAYS: u64 = 90;

/// Among a hundred pages, the number that were seen, and of these the number that come under their own address. The
/// others are near-duplicates under another one.
const SEEN: u64 = 30;
const SAME_ADDRESS: u64 = 15;

/// The quarters that are compared: in earlier ones the store still grows.
const FIRST_FLAT: usize = 2;

/// The default of the store: postings of this number of documents are in memory before they are flushed.
const FLUSH_AFTER: u64 = 65_536;

/// The index of the memory among the measures.
const MEMORY: usize = 3;

/// Names each measure of a quarter, and bounds its greatest value as a multiple of its least one.
const MEASURES: [(&str, f64); 7] = [
    ("documents", 1.05),
    ("pages a second", 2.0),
    ("file, MB", 1.25),
    ("memory, MB", 1.25),
    ("lanes probed a page", 1.25),
    ("blocks a page", 1.25),
    ("candidates a page", 1.25),
];

/// A page that the store has.
struct CrawledPage {
    number: u64,
    day: u64,
}

struct Years<'a> {
    store: &'a Store,
    options: &'a Options,
    pages: Vec<CrawledPage>,
    arrived: u64,
}

pub fn run(options: &Options) -> Result<()> {
    println!(
        "## years: {} pages a day for {} days, {SEEN} % of them seen before, {} a durable commit; evicted is what \
         was not seen for {KEPT_DAYS} days; {} values of {} bits\n",
        options.day_pages,
        QUARTERS * QUARTER_DAYS,
        options.batch,
        options.values,
        options.value_bits
    );
    let folder = tempfile::tempdir_in(&options.folder)?;
    let path = folder.path().join("years.rsm");
    let schema = super::schema(options)?;
    // Cache and memtable fill over years if few pages come. Only memory beyond them has to be flat.
    let budget = cache_bytes() + 2 * 16 * FLUSH_AFTER * schema.lanes() as u64;
    let store = store_options()
        .flush_after(FLUSH_AFTER)
        .create(&path, schema)?;
    let room = usize::try_from(options.day_pages * 2 * KEPT_DAYS)?;
    let mut years = Years {
        store: &store,
        options,
        pages: Vec::with_capacity(room),
        arrived: 0,
    };
    let names = MEASURES.map(|(name, _)| name).join(" | ");
    println!(
        "| quarter | {names} |\n|---|{}",
        "---:|".repeat(MEASURES.len())
    );
    let mut quarters = Vec::new();
    for quarter in 0..QUARTERS {
        let mut values = years.quarter(quarter, &path)?;
        println!(
            "| {} | {} |",
            quarter + 1,
            values.map(|value| format!("{value:.1}")).join(" | ")
        );
        values[MEMORY] = values[MEMORY].max(budget as f64 / 1e6);
        quarters.push(values);
    }
    println!(
        "\nMost by least of quarters {} to {QUARTERS}, memory of less than cache and memtable ({:.1} MB) as these:",
        FIRST_FLAT + 1,
        budget as f64 / 1e6
    );
    must_be_flat(&quarters)?;
    drop(store);
    match Store::check(&path).run()? {
        report if report.is_clean() => Ok(()),
        report => Err(format!("the store is damaged: {:?}", report.problems).into()),
    }
}

/// Prints how far apart the quarters are, and fails if that is too far.
fn must_be_flat(quarters: &[[f64; MEASURES.len()]]) -> Result<()> {
    let mut uneven = Vec::new();
    for (measure, (name, bound)) in MEASURES.into_iter().enumerate() {
        let ratio = spread(
            quarters
                .iter()
                .skip(FIRST_FLAT)
                .map(|values| values[measure]),
        );
        println!("- {name}: {ratio:.2}, at most {bound}");
        if ratio > bound {
            uneven.push(name);
        }
    }
    match uneven.is_empty() {
        true => Ok(()),
        false => Err(format!("not flat: {}", uneven.join(", ")).into()),
    }
}

/// Divides the greatest value by the least one. Values that are all 0 are equal.
fn spread(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = values.clone().fold(0.0, f64::max);
    let least = values.fold(f64::INFINITY, f64::min);
    if most == least { 1.0 } else { most / least }
}

impl Years<'_> {
    fn quarter(&mut self, quarter: u64, path: &Path) -> Result<[f64; MEASURES.len()]> {
        let (start, before) = (Instant::now(), self.store.metrics());
        for day in quarter * QUARTER_DAYS..(quarter + 1) * QUARTER_DAYS {
            self.crawl(day)?;
            self.evict(day)?;
        }
        let pages = (QUARTER_DAYS * self.options.day_pages) as f64;
        let after = self.store.metrics();
        let a_page = |count: fn(&Metrics) -> u64| (count(&after) - count(&before)) as f64 / pages;
        Ok([
            after.documents as f64,
            pages / start.elapsed().as_secs_f64(),
            allocated_bytes(path)? as f64 / 1e6,
            resident_bytes()? as f64 / 1e6,
            a_page(|metrics| metrics.lanes_probed),
            a_page(|metrics| metrics.blocks_read),
            a_page(|metrics| metrics.candidates),
        ])
    }

    /// Adds the pages of a day, and checks each answer.
    fn crawl(&mut self, day: u64) -> Result<()> {
        let known = self.pages.len() as u64;
        for numbers in batches(0..self.options.day_pages, self.options.batch) {
            let arrivals: Vec<Arrival> = numbers.map(|_| self.arrive(day, known)).collect();
            let documents: Vec<(Document<'_>, &Signature)> = arrivals
                .iter()
                .map(|arrival| {
                    let document = Document::new(&arrival.key).stamp(day);
                    (
                        document.payload(arrival.place.as_bytes()),
                        &arrival.signature,
                    )
                })
                .collect();
            let mut transaction = self.store.begin_write()?;
            let novelties = transaction.insert_many(&documents).if_new().run()?;
            for (arrival, novelty) in arrivals.iter().zip(&novelties) {
                let found = match novelty {
                    Novelty::New { .. } => None,
                    Novelty::KeyExists(found) | Novelty::NearDuplicate(found) => found.key(),
                    other => return Err(format!("{}: {other:?}", arrival.key).into()),
                };
                if found != arrival.seen.as_deref().map(str::as_bytes) {
                    return Err(format!("{}: {novelty:?}", arrival.key).into());
                }
                if let Some(seen) = &arrival.seen {
                    transaction.touch(seen, day)?;
                }
            }
            transaction.commit()?;
        }
        Ok(())
    }

    /// Draws the next page of a day: a new one, or one of the first `known`.
    fn arrive(&mut self, day: u64, known: u64) -> Arrival {
        let (number, chance) = (self.arrived, mix(self.arrived));
        self.arrived += 1;
        let mut arrival = Arrival {
            key: key(number),
            place: format!(
                "{{\"file\":\"crawl-{day}.warc.gz\",\"offset\":{},\"length\":{}}}",
                number * 9_973,
                chance % 50_000
            ),
            signature: signature_of(number, 0, self.options.values),
            seen: None,
        };
        let fate = chance % 100;
        if fate >= SEEN || known == 0 {
            self.pages.push(CrawledPage { number, day });
            return arrival;
        }
        let page = &mut self.pages[(mix(chance) % known) as usize];
        page.day = day;
        arrival.seen = Some(key(page.number));
        let is_copy = fate >= SAME_ADDRESS;
        arrival.signature = signature_of(page.number, u16::from(is_copy), self.options.values);
        if !is_copy {
            arrival.key = key(page.number);
        }
        arrival
    }

    fn evict(&mut self, day: u64) -> Result<()> {
        let before = day.saturating_sub(KEPT_DAYS);
        let count = self.pages.len();
        self.pages.retain(|page| page.day >= before);
        let report = self.store.evict(EvictPolicy::OlderThan(before)).run()?;
        match report.evicted == (count - self.pages.len()) as u64 {
            true => Ok(()),
            false => {
                Err(format!("day {day}: {report:?}, {} pages are left", self.pages.len()).into())
            }
        }
    }
}

/// A page as a crawl finds it.
struct Arrival {
    key: String,
    /// Its record in the archive.
    place: String,
    signature: Signature,
    /// The key of the page that the store must find.
    seen: Option<String>,
}

fn key(number: u64) -> String {
    format!("https://site-{}.example/{number}", number % 997)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarters_are_flat_if_all_are_alike() {
        let even = [[0.0; MEASURES.len()]; 4];
        assert!(must_be_flat(&even).is_ok());
        let mut uneven = even;
        uneven[3] = [0.1; MEASURES.len()];
        assert!(must_be_flat(&uneven).is_err());
        // The store still grows in the first quarters.
        uneven.reverse();
        assert!(must_be_flat(&uneven).is_ok());
        assert_eq!(spread([2.0, 3.0].into_iter()), 1.5);
    }
}
