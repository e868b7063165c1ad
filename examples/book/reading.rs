//! The documents of the book, and what is true of them without any sketch.

use std::error::Error;
use std::path::Path;

use resemblance::exact::jaccard_of_sorted;
use resemblance::{MinHash, Schema, Sketcher, Text};
use resemblance_corpus::{Content, CorpusReader, CorpusSettings};

/// How texts become sets.
pub(crate) const SHINGLES: Text = Text::words(3);
/// The similarity from which two documents are called near.
pub(crate) const NEAR: f64 = 0.5;
/// The similarity that the pair of the worked examples has, if the corpus has one.
const WORKED: f64 = 0.75;

/// Two documents and their Jaccard similarity.
#[derive(Clone, Copy)]
pub(crate) struct TextPair {
    pub(crate) a: usize,
    pub(crate) b: usize,
    pub(crate) similarity: f64,
}

/// The documents of the book.
pub(crate) struct BookTexts {
    pub(crate) name: String,
    pub(crate) keys: Vec<String>,
    pub(crate) texts: Vec<String>,
    /// The words of each text, in lower case.
    pub(crate) words: Vec<Vec<String>>,
    /// The sets of the hashes of shingles, ascending.
    pub(crate) features: Vec<Vec<u64>>,
    /// All pairs.
    pub(crate) pairs: Vec<TextPair>,
    /// The documents of the worked examples: two that are near, the nearest other one to the first, and one far from it.
    pub(crate) worked: [usize; 4],
    /// The number of records without a text.
    pub(crate) skipped: u64,
}

/// Returns the words of a text.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    Text::words(1).for_each_shingle(text, |word| words.push(word.to_owned()));
    words
}

/// Returns a schema's sketcher of MinHash values that are not cut, with a seed.
pub(crate) fn sketcher(minhash: MinHash, seed: u64) -> Result<Sketcher, Box<dyn Error>> {
    let schema = Schema::builder().text(SHINGLES);
    let schema = schema.minhash(minhash.value_bits(32)).seed(seed);
    Ok(schema.build()?.sketcher())
}

/// Returns an item that a worked example is about.
pub(crate) fn item<T>(items: &[T], place: usize) -> Result<&T, String> {
    items
        .get(place)
        .ok_or_else(|| format!("there is no item {place} of {}", items.len()))
}

impl BookTexts {
    /// Reads the first documents of a corpus.
    pub(crate) fn read(path: &Path, documents: usize) -> Result<Self, Box<dyn Error>> {
        let cutter = sketcher(MinHash::new(16), 0)?;
        let name = path.file_name().unwrap_or(path.as_os_str());
        let mut texts = Self {
            name: name.to_string_lossy().into_owned(),
            keys: Vec::new(),
            texts: Vec::new(),
            words: Vec::new(),
            features: Vec::new(),
            pairs: Vec::new(),
            worked: [0; 4],
            skipped: 0,
        };
        for entry in CorpusReader::open(&[path], CorpusSettings::default())? {
            if texts.keys.len() == documents {
                break;
            }
            let document = entry?.document.ok();
            let own = document.as_ref().map(|it| (&it.key, &it.content));
            let Some((key, Content::Text(text))) = own else {
                texts.skipped += 1;
                continue;
            };
            let features = cutter.feature_hashes(text)?;
            if features.is_empty() {
                texts.skipped += 1;
                continue;
            }
            texts.keys.push(String::from_utf8_lossy(key).into_owned());
            texts.words.push(words(text));
            texts.texts.push(text.to_string());
            texts.features.push(features);
        }
        texts.pairs = texts.all_pairs();
        texts.worked = texts.choose().ok_or(
            "the book needs four documents or more, two of them near (a similarity from 0.5 to below 1), and two that \
             are not: give another corpus, or more of its documents",
        )?;
        Ok(texts)
    }

    fn all_pairs(&self) -> Vec<TextPair> {
        let mut pairs = Vec::new();
        for (a, own) in self.features.iter().enumerate() {
            for (b, other) in self.features.iter().enumerate().skip(a + 1) {
                let similarity = jaccard_of_sorted(own, other);
                pairs.push(TextPair { a, b, similarity });
            }
        }
        pairs
    }

    /// Chooses the documents of the worked examples.
    fn choose(&self) -> Option<[usize; 4]> {
        let partial = |pair: &&TextPair| pair.similarity >= NEAR && pair.similarity < 1.0;
        self.pairs.iter().find(|pair| pair.similarity < NEAR)?;
        let off = |pair: &TextPair| (pair.similarity - WORKED).abs();
        let chosen = self.pairs.iter().filter(partial);
        let TextPair { a, b, .. } = *chosen.min_by(|x, y| off(x).total_cmp(&off(y)))?;
        let to_a = |c: usize| {
            let features = self.features.get(a).zip(self.features.get(c));
            features.map_or(0.0, |(a, c)| jaccard_of_sorted(a, c))
        };
        let others = || (0..self.keys.len()).filter(|c| *c != a && *c != b);
        let near = others().max_by(|c, d| to_a(*c).total_cmp(&to_a(*d)))?;
        let far = others().filter(|d| *d != near);
        let least = far.min_by(|c, d| to_a(*c).total_cmp(&to_a(*d)))?;
        Some([a, b, near, least])
    }

    /// Returns the two near documents of the worked examples.
    pub(crate) fn worked_pair(&self) -> [usize; 2] {
        let [a, b, ..] = self.worked;
        [a, b]
    }

    /// Returns the means of some pairs' values over steps of their positions, 0 to 1, as points for a chart.
    pub(crate) fn means(pairs: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
        let mut steps = vec![(0_u32, 0.0, 0.0); 41];
        for (position, value) in pairs {
            if let Some(step) = steps.get_mut((position * 40.0) as usize) {
                *step = (step.0 + 1, step.1 + position, step.2 + value);
            }
        }
        let filled = steps.into_iter().filter(|step| step.0 > 0);
        filled
            .map(|(n, x, y)| (x / f64::from(n), y / f64::from(n)))
            .collect()
    }
}
