//! Compares numbers and widths of MinHash values: bytes of a document, speed, and what unverified
//! searches find.
//!
//! `RESEMBLANCE_DATA=FOLDER cargo bench -p resemblance-eval --bench widths -- 20` runs with 20
//! seeds, which is also the default, and reads `docs.jsonl.gz` in each subfolder of the folder as a
//! corpus. Another corpus consists of the first 400 bytes of all documents, without repeats. The
//! results are compared with the exact similarities of all pairs: recall and precision at the
//! default threshold, averaged over the seeds. The bytes of a document are measured by the length
//! of a store's file. The store contains pieces of 750 bytes with keys of 12 bytes, and is built in
//! bulk and by commits of 1,000.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark stops at an error"
)]

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Instant;

use resemblance::{
    BulkOptions, Closed, Document, MinHash, Schema, Signature, Sketcher, Store, Text,
};
use resemblance_corpus::verification::exact_partners;

const THRESHOLD: f64 = 0.8;
const SHORT_BYTES: usize = 400;
const PIECE_BYTES: usize = 750;
/// The minimum length of a piece. Shorter ones are left out.
const MIN_PIECE_BYTES: usize = 200;
const COMMIT_DOCUMENTS: usize = 1_000;
/// The number of bytes of text for measuring the speed.
const TIMED_BYTES: usize = 8 << 20;

/// The features of a corpus's documents, and the near pairs.
struct Corpus {
    name: String,
    features: Vec<Vec<u64>>,
    near: HashSet<(usize, usize)>,
}

fn main() {
    let seeds = std::env::args().find_map(|argument| argument.parse().ok());
    let seeds: u64 = seeds.unwrap_or(20);
    let Some(folder) = std::env::var_os("RESEMBLANCE_DATA") else {
        eprintln!("skipped: RESEMBLANCE_DATA does not name a folder of corpora");
        return;
    };
    let texts = texts(Path::new(&folder));
    let all: Vec<&str> = texts
        .iter()
        .flat_map(|(_, texts)| texts)
        .map(String::as_str)
        .collect();
    let mut corpora: Vec<Corpus> = texts
        .iter()
        .map(|(name, texts)| corpus(name, &texts.iter().map(String::as_str).collect::<Vec<_>>()))
        .collect();
    let short: Vec<&str> = all
        .iter()
        .map(|text| beginning(text, SHORT_BYTES))
        .collect();
    corpora.push(corpus("400 bytes", &short));
    corpora[texts.len()].keep_different();
    let pieces: Vec<&str> = all.iter().flat_map(|text| pieces(text)).collect();

    print!("| k | bits | bands x rows | bytes in bulk | by commits | MB/s |");
    corpora.iter().for_each(|corpus| {
        print!(
            " {}, {} pairs: recall | precision |",
            corpus.name,
            corpus.near.len()
        )
    });
    println!("\n|{}", "---:|".repeat(6 + 2 * corpora.len()));
    for values in [112, 128, 192, 256] {
        let speed = speed(&schema(values, 32, 1).sketcher(), &all);
        let found = found(values, seeds, &corpora);
        for (bits, found) in [8, 16, 32].into_iter().zip(found) {
            let schema = schema(values, bits, 1);
            let minhash = schema.minhash().unwrap();
            let (bands, rows) = (minhash.bands(), minhash.rows());
            let [bulk, commits] = bytes(&schema, &pieces);
            print!(
                "| {values} | {bits} | {bands} x {rows} | {bulk:.1} | {commits:.1} | {speed:.0} |"
            );
            for [recall, precision] in found {
                print!(" {recall:.4} | {precision:.4} |");
            }
            println!();
        }
    }
}

fn schema(values: u16, bits: u8, seed: u64) -> Schema {
    let minhash = MinHash::new(values).value_bits(bits).threshold(THRESHOLD);
    let builder = Schema::builder().text(Text::words(5)).minhash(minhash);
    builder.seed(seed).build().unwrap()
}

/// Returns the texts of each corpus, by name.
fn texts(folder: &Path) -> Vec<(String, Vec<String>)> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = entries
        .filter(|path| path.join("docs.jsonl.gz").exists())
        .collect();
    folders.sort();
    let read = |path: &std::path::PathBuf| {
        let file = fs::File::open(path.join("docs.jsonl.gz")).unwrap();
        let lines = BufReader::new(flate2::read::MultiGzDecoder::new(file)).lines();
        let text = |line: std::io::Result<String>| {
            let document: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            document["text"].as_str().unwrap().to_owned()
        };
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, lines.map(text).collect())
    };
    folders.iter().map(read).collect()
}

/// Returns the longest prefix of at most this number of bytes.
fn beginning(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

fn pieces(text: &str) -> Vec<&str> {
    let mut rest = text;
    let mut pieces = Vec::new();
    while rest.len() >= MIN_PIECE_BYTES {
        let piece = beginning(rest, PIECE_BYTES);
        pieces.push(piece);
        rest = &rest[piece.len()..];
    }
    pieces
}

fn corpus(name: &str, texts: &[&str]) -> Corpus {
    let sketcher = schema(128, 32, 1).sketcher();
    let features = texts
        .iter()
        .map(|text| sketcher.feature_hashes(text).unwrap());
    let mut corpus = Corpus {
        name: name.to_owned(),
        features: features.collect(),
        near: HashSet::new(),
    };
    corpus.find_near();
    corpus
}

impl Corpus {
    fn find_near(&mut self) {
        self.near.clear();
        let partners = exact_partners(&self.features, THRESHOLD).unwrap();
        for (document, partners) in partners.enumerate() {
            let partners = partners.unwrap();
            let pairs = partners.iter().map(|partner| (partner.document, document));
            self.near.extend(pairs);
        }
    }

    fn keep_different(&mut self) {
        self.features.sort_unstable();
        self.features.dedup();
        self.find_near();
    }
}

/// Returns the speed in MB of text per second, with one thread, as the best of three runs.
fn speed(sketcher: &Sketcher, texts: &[&str]) -> f64 {
    let mut size = 0;
    let texts: Vec<&&str> = texts
        .iter()
        .take_while(|text| {
            size += text.len();
            size < TIMED_BYTES
        })
        .collect();
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    let times = (0..3).map(|_| {
        let start = Instant::now();
        for text in &texts {
            std::hint::black_box(sketcher.text(text).unwrap());
        }
        start.elapsed().as_secs_f64()
    });
    bytes as f64 / 1e6 / times.fold(f64::INFINITY, f64::min)
}

/// Returns recall and precision with 8, 16 and 32 bits, for each corpus, averaged over the seeds.
fn found(values: u16, seeds: u64, corpora: &[Corpus]) -> [Vec<[f64; 2]>; 3] {
    let mut sums = [(); 3].map(|()| vec![[0.0; 2]; corpora.len()]);
    for seed in 1..=seeds {
        let sketcher = schema(values, 32, seed).sketcher();
        for (number, corpus) in corpora.iter().enumerate() {
            let features = corpus.features.iter();
            let whole: Vec<Signature> = features
                .map(|features| sketcher.hashes(features.iter().copied()).unwrap())
                .collect();
            for (sums, bits) in sums.iter_mut().zip([8, 16, 32]) {
                let cut = |signature: &Signature| match bits {
                    32 => signature.clone(),
                    bits => signature.cut(bits).unwrap(),
                };
                let signatures: Vec<Signature> = whole.iter().map(cut).collect();
                let answers = answers(&schema(values, bits, seed), &signatures);
                let right = answers.intersection(&corpus.near).count() as f64;
                sums[number][0] += right / corpus.near.len() as f64 / seeds as f64;
                sums[number][1] += right / answers.len() as f64 / seeds as f64;
            }
        }
    }
    sums
}

/// Returns the pairs that share a band and whose estimate reaches the threshold.
fn answers(schema: &Schema, signatures: &[Signature]) -> HashSet<(usize, usize)> {
    let minhash = schema.minhash().unwrap();
    let rows = usize::from(minhash.rows());
    let mut candidates = HashSet::new();
    for band in 0..usize::from(minhash.bands()) {
        let of = |document: usize| &signatures[document].minhash().unwrap()[band * rows..][..rows];
        let mut documents: Vec<usize> = (0..signatures.len())
            .filter(|document| !signatures[*document].is_empty())
            .collect();
        documents.sort_by_key(|document| (of(*document), *document));
        for bucket in documents.chunk_by(|a, b| of(*a) == of(*b)) {
            for (place, a) in bucket.iter().enumerate() {
                candidates.extend(bucket[place + 1..].iter().map(|b| (*a, *b)));
            }
        }
    }
    candidates.retain(|(a, b)| signatures[*a].jaccard(&signatures[*b]).unwrap() >= THRESHOLD);
    candidates
}

/// Returns the bytes of a document in a store that is built in bulk, and in one that is built by
/// commits.
fn bytes(schema: &Schema, pieces: &[&str]) -> [f64; 2] {
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let sketcher = schema.sketcher();
    let key = |number: usize| format!("page/{number:07}");
    let signatures: Vec<Signature> = pieces
        .iter()
        .map(|piece| sketcher.text(piece).unwrap())
        .collect();
    let length = |path: &Path| fs::metadata(path).unwrap().len() as f64 / pieces.len() as f64;

    let bulk = folder.path().join("bulk.rsm");
    let mut build = Store::bulk_build(&bulk, schema.clone(), &BulkOptions::new()).unwrap();
    for (number, signature) in signatures.iter().enumerate() {
        build
            .insert(Document::new(&key(number)), signature)
            .unwrap();
    }
    build.finish().unwrap();

    let commits = folder.path().join("commits.rsm");
    let store = Store::create(&commits, schema.clone()).unwrap();
    let mut numbered = signatures.iter().enumerate().peekable();
    while numbered.peek().is_some() {
        let mut transaction = store.begin_write().unwrap();
        for (number, signature) in numbered.by_ref().take(COMMIT_DOCUMENTS) {
            transaction.insert(&*key(number), signature).unwrap();
        }
        transaction.commit().unwrap();
    }
    assert_eq!(store.close().unwrap(), Closed::File);
    [length(&bulk), length(&commits)]
}
