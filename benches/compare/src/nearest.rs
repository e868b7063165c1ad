//! Measures searches for the nearest documents: recall, signatures read and time. Uses real texts,
//! compared with brute force and an LSH forest, and a large store of generated signatures.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use resemblance::exact::jaccard_of_sorted;
use resemblance::search::Scope;
use resemblance::{
    BulkOptions, Document, DocumentId, Matches, MinHash, Schema, Signature, SimHash, Store, Text,
};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::Result;
use crate::options::Options;

/// The number of documents to search for.
const N: usize = 10;

/// Trees and depth of datasketch's `MinHashLSHForest(num_perm=128)`.
const TREES: usize = 8;
const DEPTH: usize = 16;

pub fn run(options: &Options) -> Result<()> {
    match std::env::var_os("RESEMBLANCE_DATA") {
        Some(root) => {
            for corpus in ["articles2500", "debian-docs", "versions"] {
                let texts = texts(&Path::new(&root).join(corpus).join("docs.jsonl.gz"))?;
                for text in [Text::words(5), Text::characters(9)] {
                    real(options, corpus, &texts, text)?;
                }
            }
        }
        None => println!("RESEMBLANCE_DATA is not set: no real texts are measured"),
    }
    let minhash = MinHash::new(128).threshold(0.8);
    generated(options, minhash)?;
    generated(options, minhash.banding(32, 4))
}

fn texts(path: &Path) -> Result<Vec<String>> {
    let mut lines = String::new();
    GzDecoder::new(File::open(path)?).read_to_string(&mut lines)?;
    let mut texts = Vec::new();
    for line in lines.lines() {
        let document: serde_json::Value = serde_json::from_str(line)?;
        texts.extend(document["text"].as_str().map(str::to_owned));
    }
    Ok(texts)
}

/// The cost of answers, and how many of the right documents they contain.
#[derive(Default)]
struct Tally {
    answers: usize,
    times: Vec<Duration>,
    signatures: usize,
    scans: usize,
    /// The number of right documents found, from two similarities upwards.
    found: [usize; 2],
    present: [usize; 2],
}

/// The exact similarities from which documents are counted.
const COUNTED_FROM: [f64; 2] = [0.5, 0.3];

impl Tally {
    /// Counts how many of the exact nearest documents, which must be sorted, an answer contains. A
    /// document as near as the last of them counts in place of another.
    fn add(&mut self, ids: &[u64], exact: &[f64], own: u64) {
        self.answers += 1;
        let mut sorted: Vec<f64> = (0..)
            .zip(exact)
            .filter(|(id, _)| *id != own)
            .map(|(_, s)| *s)
            .collect();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let last = sorted.get(N - 1).copied().unwrap_or(0.0);
        for (place, from) in COUNTED_FROM.into_iter().enumerate() {
            let present = sorted.iter().take(N).filter(|s| **s >= from).count();
            let found = ids
                .iter()
                .filter(|id| exact[**id as usize] >= from.max(last))
                .count();
            self.present[place] += present;
            self.found[place] += found.min(present);
        }
    }

    fn cost(&mut self, matches: &Matches, time: Duration) {
        self.times.push(time);
        self.signatures += matches.candidates();
        self.scans += usize::from(matches.scope() == Scope::Scan);
    }

    fn print(&mut self, name: &str) {
        self.times.sort_unstable();
        let at = |share: f64| {
            let place = (self.times.len() as f64 * share) as usize;
            self.times.get(place).map_or("-".into(), |time| {
                format!("{:.3}", time.as_secs_f64() * 1e3)
            })
        };
        let recall = |place: usize| match self.present[place] {
            0 => "-".to_owned(),
            present => format!("{:.4}", self.found[place] as f64 / present as f64),
        };
        let count = self.times.len().max(1) as f64;
        let [signatures, scans] = match self.times.is_empty() {
            true => ["-".to_owned(), "-".to_owned()],
            false => [
                format!("{:.0}", self.signatures as f64 / count),
                format!("{:.3}", self.scans as f64 / count),
            ],
        };
        println!(
            "{name:<34} {:>8} {:>8} {:>10} {:>8} {:>9} {:>9}",
            recall(0),
            recall(1),
            signatures,
            scans,
            at(0.5),
            at(0.99)
        );
    }
}

fn header(title: &str) {
    println!("\n{title}");
    println!(
        "{:<34} {:>8} {:>8} {:>10} {:>8} {:>9} {:>9}",
        "", "J >= 0.5", "J >= 0.3", "signatures", "scans", "median ms", "99 % ms"
    );
}

/// The distinct shingles of a text.
fn shingles(text: Text, document: &str) -> Vec<u64> {
    let mut hashes = Vec::new();
    text.for_each_shingle(document, |shingle| hashes.push(xxh3_64(shingle.as_bytes())));
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

/// The documents that have each shingle.
struct Inverted {
    sizes: Vec<usize>,
    documents: HashMap<u64, Vec<u32>>,
}

impl Inverted {
    fn new(sets: &[Vec<u64>]) -> Self {
        let mut documents: HashMap<u64, Vec<u32>> = HashMap::new();
        for (id, set) in (0..).zip(sets) {
            for hash in set {
                documents.entry(*hash).or_default().push(id);
            }
        }
        Self {
            sizes: sets.iter().map(Vec::len).collect(),
            documents,
        }
    }

    /// The exact similarity of every document to this set.
    fn similarities(&self, set: &[u64]) -> Vec<f64> {
        let mut shared = vec![0_usize; self.sizes.len()];
        for hash in set {
            for id in self.documents.get(hash).into_iter().flatten() {
                shared[*id as usize] += 1;
            }
        }
        let similarity = |(shared, size): (&usize, &usize)| {
            let union = set.len() + size - shared;
            if union == 0 {
                0.0
            } else {
                *shared as f64 / union as f64
            }
        };
        shared.iter().zip(&self.sizes).map(similarity).collect()
    }
}

/// Returns the answer of an LSH forest: documents by the length of the prefix that they share in
/// some tree, in the order in which datasketch visits them, tree by tree.
fn forest(signatures: &[Vec<u32>], own: usize) -> Vec<u64> {
    let mut depths: Vec<(usize, usize, u64)> = Vec::new();
    for (id, other) in signatures.iter().enumerate().filter(|(id, _)| *id != own) {
        let depth = |tree: usize| {
            let range = tree * DEPTH..(tree + 1) * DEPTH;
            let pairs = signatures[own][range.clone()].iter().zip(&other[range]);
            pairs.take_while(|(a, b)| a == b).count()
        };
        let deepest = (0..TREES).map(|tree| (DEPTH - depth(tree), tree)).min();
        if let Some((missing, tree)) = deepest.filter(|(missing, _)| *missing < DEPTH) {
            depths.push((missing, tree, id as u64));
        }
    }
    depths.sort_unstable();
    depths.into_iter().take(N).map(|(_, _, id)| id).collect()
}

fn real(options: &Options, corpus: &str, texts: &[String], text: Text) -> Result<()> {
    let folder = tempfile::tempdir_in(&options.folder)?;
    let minhash = MinHash::new(128).threshold(0.8);
    let builder = Schema::builder().text(text).minhash(minhash);
    let schema = builder.simhash(SimHash::bits64()).build()?;
    let sketcher = schema.sketcher();
    let store = Store::create(folder.path().join("store"), schema)?;
    let sketched: std::result::Result<Vec<Signature>, _> =
        texts.iter().map(|text| sketcher.text(text)).collect();
    let signatures = sketched?;
    let mut transaction = store.begin_write()?;
    for signature in &signatures {
        transaction.insert(Document::without_key(), signature)?;
    }
    transaction.commit()?;
    let snapshot = store.snapshot()?;
    let sets: Vec<Vec<u64>> = texts
        .iter()
        .map(|document| shingles(text, document))
        .collect();
    let inverted = Inverted::new(&sets);
    let values: Vec<Vec<u32>> = signatures
        .iter()
        .filter_map(|s| s.minhash().map(<[u32]>::to_vec))
        .collect();

    let queries = (0..texts.len()).filter(|id| !sets[*id].is_empty());
    let step = (texts.len() / options.probes as usize).max(1);
    let queries: Vec<usize> = queries
        .step_by(step)
        .take(options.probes as usize)
        .collect();
    header(&format!(
        "{corpus}, {text}: {} of {} documents ask, each for {N} others",
        queries.len(),
        texts.len()
    ));
    let mut rows: [(&str, Tally); 7] = [
        ("nearest", Tally::default()),
        ("nearest, verified", Tally::default()),
        ("verified, without scan", Tally::default()),
        ("nearest, without scan", Tally::default()),
        ("all signatures compared", Tally::default()),
        ("query (threshold 0.8)", Tally::default()),
        ("LSH forest of 8 trees", Tally::default()),
    ];
    for own in queries {
        let exact = inverted.similarities(&sets[own]);
        let signature = &signatures[own];
        let id = own as u64;
        let ask = |run: &dyn Fn() -> resemblance::Result<Matches>| -> Result<(Matches, Duration)> {
            let begun = Instant::now();
            let matches = run()?;
            Ok((matches, begun.elapsed()))
        };
        let nearest = || snapshot.nearest(signature, N + 1);
        // As the tool does, from the sets of both.
        let verified = || {
            let similarity = |id: DocumentId| {
                let other = &sets[id.get() as usize];
                Ok(Some(jaccard_of_sorted(&sets[own], other)))
            };
            nearest().verify(similarity)
        };
        let answers = [
            ask(&|| nearest().run())?,
            ask(&|| verified().run())?,
            ask(&|| verified().without_scan().run())?,
            ask(&|| nearest().without_scan().run())?,
            ask(&|| nearest().min_recall(1.0).run())?,
            ask(&|| {
                snapshot
                    .query(signature)
                    .min_similarity(0.8)
                    .limit(N + 1)
                    .run()
            })?,
        ];
        for ((_, tally), (matches, time)) in rows.iter_mut().zip(answers) {
            let others = matches
                .iter()
                .map(|found| found.id().get())
                .filter(|other| *other != id);
            let others: Vec<u64> = others.take(N).collect();
            tally.add(&others, &exact, id);
            tally.cost(&matches, time);
        }
        rows[6].1.add(&forest(&values, own), &exact, id);
    }
    for (name, tally) in &mut rows {
        tally.print(name);
    }
    Ok(())
}

/// The similarities of the ten neighbours that a generated query has; 0 for none.
const PLANTED: [f64; 6] = [0.9, 0.7, 0.5, 0.4, 0.3, 0.0];

fn random(seed: u64, number: u64) -> u64 {
    xxh3_64_with_seed(&number.to_le_bytes(), seed)
}

fn values(number: u64) -> Vec<u32> {
    (0..128).map(|place| random(place, number) as u32).collect()
}

/// A signature that shares a value with another with this probability.
fn neighbour(of: &[u32], number: u64, similarity: f64) -> Vec<u32> {
    let own = values(number);
    let keeps =
        |place: usize| (random(1_000 + place as u64, number) as f64) < similarity * u64::MAX as f64;
    (0..of.len())
        .map(|place| if keeps(place) { of[place] } else { own[place] })
        .collect()
}

fn minhash_shape(store: &Store) -> (u16, u16) {
    let minhash = store.schema().minhash();
    minhash.map_or((0, 0), |minhash| (minhash.bands(), minhash.rows()))
}

fn generated(options: &Options, minhash: MinHash) -> Result<()> {
    let folder = tempfile::tempdir_in(&options.folder)?;
    let queries = 50;
    let planted = (PLANTED.len() * queries * N) as u64;
    let documents = options.documents.max(2 * planted);
    let path = folder.path().join("store");
    let schema = Schema::builder().minhash(minhash).build()?;
    let mut build = Store::bulk_build(&path, schema, &BulkOptions::new())?;
    let every = documents / planted;
    for number in 0..documents {
        let place = number / every;
        let signature = if number % every == 0 && place < planted {
            let query = place / N as u64;
            let similarity = PLANTED[(query / queries as u64) as usize];
            neighbour(&values(u64::MAX - query), number, similarity)
        } else {
            values(number)
        };
        build.insert(Document::without_key(), &Signature::from_minhash(signature))?;
    }
    build.finish()?;
    let store = Store::open(&path)?;
    let snapshot = store.snapshot()?;
    let bytes = std::fs::metadata(&path)?.len() / documents;
    let (bands, rows) = minhash_shape(&store);
    header(&format!(
        "{documents} generated documents, {bands} bands of {rows} rows, {bytes} bytes each; a query has {N} \
         neighbours"
    ));
    for (group, similarity) in PLANTED.into_iter().enumerate() {
        for round in ["", " again"] {
            let mut tally = Tally::default();
            for query in 0..queries {
                let query = (group * queries + query) as u64;
                let signature = Signature::from_minhash(values(u64::MAX - query));
                let begun = Instant::now();
                let matches = snapshot.nearest(&signature, N).run()?;
                tally.cost(&matches, begun.elapsed());
                let own = |id: u64| id.is_multiple_of(every) && id / every / N as u64 == query;
                let found = matches.iter().filter(|found| own(found.id().get())).count();
                for (place, from) in COUNTED_FROM.into_iter().enumerate() {
                    if similarity >= from {
                        tally.present[place] += N;
                        tally.found[place] += found;
                    }
                }
            }
            tally.print(&format!("of similarity {similarity}{round}"));
        }
        let numbers = (group * queries) as u64..((group + 1) * queries) as u64;
        let asked = numbers.map(|query| Signature::from_minhash(values(u64::MAX - query)));
        let asked: Vec<Signature> = asked.collect();
        let begun = Instant::now();
        let answers = snapshot.nearest(&asked, N).run()?;
        let each = begun.elapsed() / queries as u32;
        let mut tally = Tally::default();
        for matches in &answers {
            tally.cost(matches, each);
        }
        tally.print(&format!(
            "of similarity {similarity}, {queries} at once, each"
        ));
    }
    Ok(())
}
