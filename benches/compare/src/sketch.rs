//! Texts to signatures.

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use resemblance::{MinHash, Schema, SimHash, Text};

use crate::Result;
use crate::options::Options;

/// Each case is measured this often and the best is printed.
const ROUNDS: usize = 3;

/// Texts of real documents.
fn texts(options: &Options) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    match std::env::var_os("RESEMBLANCE_DATA") {
        Some(root) => {
            for name in ["versions", "debian-docs", "articles2500"] {
                let path = Path::new(&root).join(name).join("docs.jsonl.gz");
                let mut lines = String::new();
                GzDecoder::new(File::open(path)?).read_to_string(&mut lines)?;
                for line in lines.lines() {
                    let document: serde_json::Value = serde_json::from_str(line)?;
                    texts.extend(document["text"].as_str().map(str::to_owned));
                }
            }
        }
        None => sources(&options.folder.join("src"), &mut texts)?,
    }
    Ok(texts)
}

fn sources(folder: &Path, texts: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, texts)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            texts.push(std::fs::read_to_string(path)?);
        }
    }
    Ok(())
}

pub fn run(options: &Options) -> Result<()> {
    let texts = texts(options)?;
    let bytes: usize = texts.iter().map(String::len).sum();
    println!(
        "{} texts, {:.1} MB, one thread",
        texts.len(),
        bytes as f64 / 1e6
    );
    println!("{:<26} {:>10} {:>14}", "", "MB a second", "texts a second");
    for size_bytes in [400, 2_000, 200_000] {
        pieces(&texts, size_bytes)?;
    }
    println!("the texts as they are:");
    for text in [Text::words(5), Text::characters(9)] {
        let time = best(|| {
            for document in &texts {
                let mut shingles = 0_u64;
                text.for_each_shingle(document, |shingle| shingles += shingle.len() as u64);
                black_box(shingles);
            }
            Ok(())
        })?;
        print(&format!("{text}, shingles only"), time, bytes, texts.len());
        let minhash = MinHash::new(128);
        let simhash = SimHash::bits64();
        let builder = Schema::builder().text(text);
        for (label, schema) in [
            ("MinHash 128", builder.clone().minhash(minhash)),
            ("SimHash 64", builder.clone().simhash(simhash.clone())),
            ("both", builder.minhash(minhash).simhash(simhash)),
        ] {
            let sketcher = schema.build()?.sketcher();
            let time = best(|| {
                for document in &texts {
                    black_box(sketcher.text(document)?);
                }
                Ok(())
            })?;
            print(&format!("{text}, {label}"), time, bytes, texts.len());
        }
    }
    Ok(())
}

/// Documents of one size, cut from all texts one after the other: word shingles to signatures of
/// several kinds.
fn pieces(texts: &[String], size_bytes: usize) -> Result<()> {
    let whole = texts.join(" ");
    let mut rest = whole.as_str();
    let mut documents = Vec::new();
    while rest.len() > size_bytes {
        let (document, others) = rest.split_at(rest.floor_char_boundary(size_bytes));
        documents.push(document);
        rest = others;
    }
    let bytes: usize = documents.iter().map(|document| document.len()).sum();
    println!("cut to {size_bytes} bytes each:");
    let minhash = |minhash| Schema::builder().minhash(minhash);
    for (label, builder) in [
        ("MinHash 128", minhash(MinHash::new(128))),
        ("MinHash 256", minhash(MinHash::new(256))),
        ("MinHash 1024", minhash(MinHash::new(1_024))),
        ("one-pass 128", minhash(MinHash::one_pass(128))),
        ("one-pass 1024", minhash(MinHash::one_pass(1_024))),
        ("bottom-k 128", minhash(MinHash::bottom_k(128))),
        ("weighted 128", minhash(MinHash::weighted(128))),
        ("SimHash 64", Schema::builder().simhash(SimHash::bits64())),
        ("SimHash 128", Schema::builder().simhash(SimHash::bits128())),
    ] {
        let sketcher = builder.text(Text::words(5)).build()?.sketcher();
        let time = best(|| {
            for document in &documents {
                black_box(sketcher.text(document)?);
            }
            Ok(())
        })?;
        print(label, time, bytes, documents.len());
    }
    let sketcher = minhash(MinHash::new(128))
        .text(Text::words(5))
        .build()?
        .sketcher();
    let time = best(|| {
        for document in &documents {
            black_box(sketcher.text_and_feature_hashes(document)?);
        }
        Ok(())
    })?;
    print("MinHash 128 and features", time, bytes, documents.len());
    Ok(())
}

fn best(run: impl Fn() -> Result<()>) -> Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}

fn print(label: &str, time: Duration, bytes: usize, texts: usize) {
    let seconds = time.as_secs_f64();
    println!(
        "{label:<26} {:>10.1} {:>14.0}",
        bytes as f64 / 1e6 / seconds,
        texts as f64 / seconds
    );
}
