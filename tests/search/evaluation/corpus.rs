//! Reading the corpora.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;

use flate2::read::GzDecoder;

/// A pair of documents, by their places in the corpus, the lesser first.
pub(crate) type Places = (usize, usize);

/// Texts, and all pairs of them whose exact Jaccard similarity by word 5-grams is at least 0.5.
pub(crate) struct Corpus {
    pub(crate) ids: Vec<String>,
    pub(crate) texts: Vec<String>,
    pub(crate) truth: HashMap<Places, f64>,
    folder: PathBuf,
}

/// Prints past the test harness, which would swallow it.
pub(crate) fn say(text: &str) {
    let mut out = std::io::stderr().lock();
    writeln!(out, "{text}").unwrap();
}

impl Corpus {
    /// Returns `None`, and prints a line about it, if there are no corpora.
    pub(crate) fn read(name: &'static str) -> Option<Self> {
        let Some(root) = std::env::var_os("RESEMBLANCE_DATA") else {
            say(&format!(
                "skipped: RESEMBLANCE_DATA is not set, so there is no corpus {name}"
            ));
            return None;
        };
        let folder = PathBuf::from(root).join(name);
        let mut corpus = Self {
            ids: Vec::new(),
            texts: Vec::new(),
            truth: HashMap::new(),
            folder,
        };
        for line in corpus.contents("docs.jsonl").lines() {
            let document: serde_json::Value = serde_json::from_str(line).unwrap();
            corpus.ids.push(document["id"].as_str().unwrap().to_owned());
            corpus
                .texts
                .push(document["text"].as_str().unwrap().to_owned());
        }
        corpus.truth = corpus.pairs("truth_word5_j50.tsv").into_iter().collect();
        Some(corpus)
    }

    /// The pairs of a file of two ids and perhaps a similarity a line; without one it counts as 1.
    pub(crate) fn pairs(&self, file: &str) -> Vec<(Places, f64)> {
        let places: HashMap<&str, usize> = self.ids.iter().map(String::as_str).zip(0..).collect();
        let contents = self.contents(file);
        let pairs = contents.lines().map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let (a, b) = (places[fields[0]], places[fields[1]]);
            let similarity = fields.get(2).map_or(1.0, |field| field.parse().unwrap());
            ((a.min(b), a.max(b)), similarity)
        });
        pairs.collect()
    }

    /// A file of the corpus, packed or not.
    fn contents(&self, file: &str) -> String {
        let mut contents = String::new();
        let plain = self.folder.join(file);
        if plain.exists() {
            File::open(plain)
                .unwrap()
                .read_to_string(&mut contents)
                .unwrap();
        } else {
            let packed = File::open(self.folder.join(format!("{file}.gz"))).unwrap();
            GzDecoder::new(packed)
                .read_to_string(&mut contents)
                .unwrap();
        }
        contents
    }
}
