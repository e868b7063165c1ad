//! The documents of a corpus, or a sample of them, as features and signatures in memory.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use resemblance::{Schema, Signature, SimHash, Sketcher, Text};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Context;
use super::arguments::CorpusOptions;
use super::exact_join::FEATURE_BYTES;
use super::failure::{Failure, Result};
use super::pipeline::Pipeline;
use super::subject::warn_if_nothing_included;
use super::tally::Tally;
use crate::corpus::Corpus;

/// Seeds the hash that decides who is in a sample, so that it has nothing to do with any other:
/// the bytes "sample" as a big-endian number.
const SAMPLE_SEED: u64 = 0x7361_6d70_6c65;
/// What a document takes beside its features, key and signature, about.
const DOCUMENT_BYTES: u64 = 300;

/// How texts are cut where the options do not say otherwise.
pub(crate) fn text_rule(words: Option<u16>, chars: Option<u16>) -> Text {
    match chars {
        Some(length) => Text::characters(length),
        None => Text::words(words.unwrap_or(5)),
    }
}

/// What is read, and how.
pub(crate) struct SampleOptions<'a> {
    pub(crate) inputs: &'a [PathBuf],
    pub(crate) corpus: &'a CorpusOptions,
    pub(crate) text: Text,
    /// What makes the signatures, if there are to be any.
    pub(crate) sketcher: Option<Sketcher>,
    /// Bytes that a document is going to take for its signatures.
    pub(crate) signature_bytes: u64,
    /// The most documents.
    pub(crate) size: Option<usize>,
}

/// Documents in corpus order.
pub(crate) struct Sample {
    pub(crate) keys: Vec<Vec<u8>>,
    /// Different hashes of each document's features, ascending.
    pub(crate) features: Vec<Vec<u64>>,
    /// Empty without a sketcher.
    pub(crate) signatures: Vec<Signature>,
    /// How many documents the corpus has, those outside the sample included.
    pub(crate) read: u64,
}

/// A document that is in the sample until now.
struct Held {
    key: Vec<u8>,
    features: Vec<u64>,
    signature: Option<Signature>,
}

/// What becomes of a text; `hash` is that of its key.
struct Sketch {
    hash: u64,
    features: Vec<u64>,
    signature: Option<Signature>,
}

/// Which sketches are made: all whose key's hash is not above the limit, which only falls.
struct Worker {
    /// What cuts texts into features.
    cutter: Sketcher,
    sketcher: Option<Sketcher>,
    limit: Arc<AtomicU64>,
}

impl Worker {
    fn work(&self, key: &[u8], text: &str) -> Result<Option<Sketch>> {
        let hash = xxh3_64_with_seed(key, SAMPLE_SEED);
        // Only spares work: who is in the sample is decided where the results are taken.
        if hash > self.limit.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let mut features = self.cutter.feature_hashes(text)?;
        features.shrink_to_fit();
        let signature = self.sketcher.as_ref().map(|sketcher| sketcher.text(text));
        Ok(Some(Sketch {
            hash,
            features,
            signature: signature.transpose()?,
        }))
    }
}

impl Sample {
    /// Reads a corpus. Of more than `size` documents those are kept whose keys hash lowest: a
    /// random sample, the same each time and whatever the order of the documents.
    pub(crate) fn read(context: &Context, options: SampleOptions<'_>) -> Result<Self> {
        // A schema needs signatures; none are made by it.
        let cutter = Schema::builder().text(options.text);
        let cutter = cutter.simhash(SimHash::bits64()).build()?.sketcher();
        let corpus = Corpus::resolve(options.inputs, options.corpus.settings()?)?;
        warn_if_nothing_included(context, &corpus);
        let corpus = Arc::new(corpus);
        let limit = Arc::new(AtomicU64::new(u64::MAX));
        let worker = Worker {
            cutter,
            sketcher: options.sketcher,
            limit: Arc::clone(&limit),
        };
        let mut items = Pipeline::start(context, "reading", &corpus, 0, move |document| {
            worker.work(&document.key, &document.text)
        });
        let skip_bad = options.corpus.skip_bad;
        let mut tally = Tally::default();
        // By the hash of the key, then in corpus order.
        let mut held: BTreeMap<(u64, u64), Held> = BTreeMap::new();
        let mut held_bytes = 0;
        while let Some(item) = items.next()? {
            let (number, source, line) = (item.number, item.source, item.line);
            let Some(document) = tally.take(context, &corpus, item, skip_bad)? else {
                continue;
            };
            tally.kept += 1;
            let Some(sketch) = document.value else {
                continue;
            };
            let hash = sketch.hash;
            let mut same_hash = held.range((hash, 0)..=(hash, u64::MAX));
            if same_hash.any(|(_, other)| other.key == document.key) {
                let key = String::from_utf8_lossy(&document.key);
                let place = corpus.place(source, line);
                let failure = Failure::bad_input(format!("{place}: key {key:?} came before"));
                tally.skip(context, failure, skip_bad)?;
                tally.kept -= 1;
                continue;
            }
            let document = Held {
                key: document.key,
                features: sketch.features,
                signature: sketch.signature,
            };
            held_bytes += document.bytes() + options.signature_bytes;
            held.insert((hash, number), document);
            if options.size.is_some_and(|size| held.len() > size)
                && let Some(((highest, _), left_out)) = held.pop_last()
            {
                held_bytes -= left_out.bytes() + options.signature_bytes;
                limit.fetch_min(highest, Ordering::Relaxed);
            }
            must_fit(held_bytes, held.len(), context.memory_bytes)?;
        }
        context.messages.note(tally.summary("good", items.totals()));
        Ok(Self::of(held, tally.kept))
    }

    fn of(held: BTreeMap<(u64, u64), Held>, read: u64) -> Self {
        let mut held: Vec<(u64, Held)> = held
            .into_iter()
            .map(|((_, number), document)| (number, document))
            .collect();
        held.sort_unstable_by_key(|(number, _)| *number);
        let mut sample = Self {
            keys: Vec::with_capacity(held.len()),
            features: Vec::with_capacity(held.len()),
            signatures: Vec::with_capacity(held.len()),
            read,
        };
        for (_, document) in held {
            sample.keys.push(document.key);
            sample.features.push(document.features);
            sample.signatures.extend(document.signature);
        }
        sample
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }
}

impl Held {
    /// With what the join is going to take for it.
    fn bytes(&self) -> u64 {
        let features = FEATURE_BYTES * self.features.len() as u64;
        features + self.key.len() as u64 + DOCUMENT_BYTES
    }
}

fn must_fit(bytes: u64, documents: usize, memory_bytes: u64) -> Result<()> {
    if bytes <= memory_bytes {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "comparing {documents} documents exactly takes more than the {} MiB of --memory: raise it, \
         or take fewer with --sample N",
        memory_bytes >> 20
    )))
}
