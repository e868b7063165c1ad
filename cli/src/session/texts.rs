//! Texts that are looked at themselves: those of files, and some of a corpus.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use resemblance::exact::{SharedPassage, longest_shared_passage};
use resemblance::{Overlap, Schema, Snapshot, Text};
use resemblance_corpus::verification::FeatureSets;
use resemblance_corpus::{
    BadDocument, ContentRule, Corpus, CorpusDocument, HtmlExtractor, ReadTotals, SourceKind,
    named_kind, read_bounded,
};
use serde::de::IgnoredAny;

use super::context::Context;
use super::copying::must_be_same;
use super::documents::{CorpusDocuments, resolve, resolve_corpus};
use super::tally::DocumentTally;
use crate::failure::{Failure, Result};
use crate::options::CorpusOptions;

/// Reads the text of a file, or of standard input without a file, and removes a byte order mark. If it
/// looks like a corpus, a note says how `corpus`, an option of the verb, reads its documents.
pub(crate) fn read_text(
    context: &Context,
    file: Option<&Path>,
    max_bytes: u64,
    corpus: &str,
) -> Result<String> {
    let name = match file {
        Some(path) => path.display().to_string(),
        None => "standard input".into(),
    };
    let note = |form: &str| {
        context.note(format!(
            "warning: {name} looks like {form}, and is compared as one text; {corpus}"
        ));
    };
    let of_name = file.and_then(named_kind).map(SourceKind::name);
    of_name.iter().for_each(|form| note(form));
    let mut progress = context.progress("reading");
    let bytes = context
        .interrupt
        .while_working(&mut progress, {
            let (name, file) = (name.clone(), file.map(Path::to_path_buf));
            move || {
                let bytes = match file {
                    Some(path) => {
                        std::fs::File::open(path).and_then(|f| read_bounded(f, max_bytes))
                    }
                    None => read_bounded(std::io::stdin(), max_bytes),
                };
                bytes.map_err(|e| Failure::io(format!("cannot read {name}"), &e))
            }
        })?
        .ok_or_else(|| {
            let failure = Failure::bad_input("the text is longer than --max-line").at(name.clone());
            failure.with_note("--max-line SIZE sets the limit")
        })?;
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let bad = BadDocument::of_utf8(error.as_bytes(), &error.utf8_error());
        Failure::from(bad).at(name.as_str())
    })?;
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    if of_name.is_none() && begins_with_objects(&text) {
        note(SourceKind::Lines.name());
    }
    Ok(text)
}

/// Returns true if the first lines of a text are JSON objects.
fn begins_with_objects(text: &str) -> bool {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let mut first = lines.take(2).map(|line| {
        let object = serde_json::from_str::<HashMap<String, IgnoredAny>>(line);
        object.is_ok()
    });
    first.next() == Some(true) && first.next() != Some(false)
}

/// A text as a schema takes it: that of HTML, if its texts are that.
pub(crate) fn taken_text(schema: &Schema, text: String) -> Result<String> {
    let Some(html) = HtmlExtractor::of(schema) else {
        return Ok(text);
    };
    html.must_be_here()?;
    html.text(&text)
        .map_err(|bad| Failure::bad_input(bad.reason))
}

/// Returns the texts of the documents of a corpus that have these keys, and holds all of them in
/// memory. If several have the same key, returns the first. Leaves out content other than text, and
/// texts longer than `max_bytes`. Calls `on_text` with the number, the key and the bytes of every text.
pub(crate) fn read_texts_of(
    context: &Context,
    inputs: &[PathBuf],
    options: &CorpusOptions,
    schema: &Schema,
    mut wanted: BTreeSet<Vec<u8>>,
    max_bytes: usize,
    mut on_text: impl FnMut(u64, &[u8], usize) -> Result<()>,
) -> Result<BTreeMap<Vec<u8>, String>> {
    let mut texts = BTreeMap::new();
    for_each_text(context, inputs, options, schema, |number, key, text| {
        on_text(number, &key, text.len())?;
        if wanted.remove(&key) && text.len() <= max_bytes {
            texts.insert(key, text);
        }
        Ok(())
    })?;
    Ok(texts)
}

/// Rereads a corpus, and returns the texts of the documents with these numbers, except those longer
/// than `max_bytes`. All are held in memory.
pub(crate) fn read_numbered_texts(
    context: &Context,
    corpus: &Arc<Corpus>,
    totals: ReadTotals,
    wanted: BTreeSet<u64>,
    max_bytes: usize,
) -> Result<BTreeMap<u64, String>> {
    let mut texts = BTreeMap::new();
    if wanted.is_empty() {
        return Ok(texts);
    }
    let work = move |document: &CorpusDocument<'_>| {
        let is_wanted = wanted.contains(&document.number);
        let text = document.content.text().filter(|_| is_wanted);
        Ok(text
            .filter(|text| text.len() <= max_bytes)
            .map(str::to_owned))
    };
    let repeated = context.repeated();
    let mut documents = CorpusDocuments::start(&repeated, "reading texts", corpus, 0, work);
    while let Some(read) = documents.next()? {
        // What cannot be read was skipped before.
        if let Ok(document) = read.document
            && let Some(text) = document.value
        {
            texts.insert(read.number, text);
        }
    }
    must_be_same(totals, documents.totals())?;
    Ok(texts)
}

/// Reads a corpus, and visits the keys and the texts of its documents in their order, those that have one.
fn for_each_text(
    context: &Context,
    inputs: &[PathBuf],
    options: &CorpusOptions,
    schema: &Schema,
    mut visit: impl FnMut(u64, Vec<u8>, String) -> Result<()>,
) -> Result<()> {
    let corpus = resolve_corpus(context, inputs, options, ContentRule::texts_of(schema))?;
    let corpus = Arc::new(corpus);
    let work = |document: &CorpusDocument<'_>| Ok(document.content.text().map(str::to_owned));
    let mut documents = CorpusDocuments::start(context, "reading texts", &corpus, 0, work);
    let mut tally = DocumentTally::default();
    while let Some(read) = documents.next()? {
        let number = read.number;
        if let Some(document) = read.take(context, &corpus, &mut tally, options.skip_bad)?
            && let Some(text) = document.value
        {
            visit(number, document.key, text)?;
        }
    }
    tally.must_be_mostly_good()
}

/// Returns the name of a source of these corpora that can be read once only.
fn unrereadable_source(
    context: &Context,
    inputs: &[PathBuf],
    options: &CorpusOptions,
) -> Result<Option<String>> {
    let corpus = resolve(context, inputs, context.corpus_settings(options)?)?;
    let found = corpus.sources.iter().find(|source| !source.is_rereadable());
    Ok(found.map(|source| source.name().display().to_string()))
}

/// An error if some of these corpora can be read once only, by a verb that reads them twice.
pub(crate) fn must_be_rereadable(
    context: &Context,
    inputs: &[PathBuf],
    options: &CorpusOptions,
) -> Result<()> {
    match unrereadable_source(context, inputs, options)? {
        None => Ok(()),
        Some(source) => Err(Failure::usage(format!(
            "the corpus is read twice, and {source} can be read only once"
        ))
        .with_note("give a file")),
    }
}

/// Texts in memory, by the keys of their documents.
pub(crate) struct KnownTexts {
    texts: HashMap<Vec<u8>, Box<str>>,
    /// The rules by which passages are cut into shingles.
    text: Text,
}

/// The approximate memory of a text besides its bytes.
const ENTRY_BYTES: u64 = 100;

/// All texts together take at most this part of the memory.
const TEXTS_SHARE: u64 = 2;

impl KnownTexts {
    /// Reads the texts of these corpora, and prints how many do not fit into memory.
    pub(crate) fn read(
        context: &Context,
        inputs: &[PathBuf],
        options: &CorpusOptions,
        schema: &Schema,
    ) -> Result<Self> {
        let text = schema.containment_text().ok_or_else(|| {
            Failure::usage("positions are those of texts, and the schema has no rule for texts")
        })?;
        let mut texts = HashMap::new();
        let (mut room, mut left_out) = (context.memory_bytes / TEXTS_SHARE, 0_u64);
        for_each_text(context, inputs, options, schema, |_, key, text| {
            let bytes = (key.len() + text.len()) as u64 + ENTRY_BYTES;
            match room.checked_sub(bytes) {
                Some(left) => {
                    room = left;
                    texts.entry(key).or_insert(text.into_boxed_str());
                }
                None => left_out += 1,
            }
            Ok(())
        })?;
        if left_out > 0 {
            context.note(format!(
                "texts that do not fit into --memory: {left_out}; passages shared with them have no positions"
            ));
        }
        Ok(Self { texts, text })
    }

    /// The longest passage that a text shares with a document that was found; `None` if the document's text is
    /// not here.
    pub(crate) fn passage(&self, text: &str, found: &Overlap) -> Result<Option<SharedPassage>> {
        let known = found.key().and_then(|key| self.texts.get(key));
        match known {
            Some(known) => Ok(longest_shared_passage(&self.text, text, known)?),
            None => Ok(None),
        }
    }
}

/// The treatment of a document of a store whose text is not there.
#[derive(Clone, Copy)]
pub(crate) enum MissingText {
    /// Similarities to it are estimates.
    IsEstimated,
    /// It is not compared.
    IsLeftOut,
}

/// The texts of the documents of a store, in corpora.
pub(crate) struct StoredTexts<'a> {
    /// The path of the store, which messages name.
    pub(crate) store: &'a Path,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) texts: &'a [PathBuf],
    pub(crate) options: &'a CorpusOptions,
    pub(crate) missing: MissingText,
}

impl StoredTexts<'_> {
    /// Puts the features of the documents whose texts are there into `features`, prints how many texts
    /// are missing, and returns how many are there. A text belongs to the document with its key if it
    /// has the same signature.
    pub(crate) fn read(&self, context: &Context, features: &mut FeatureSets) -> Result<u64> {
        let documents = self.snapshot.len();
        let known = match self.texts.is_empty() || documents == 0 {
            true => 0,
            false => self.put_features(context, features)?,
        };
        let unknown = documents.saturating_sub(known);
        if unknown > 0 {
            let name = self.store.display();
            let which = match known {
                0 if documents == 1 => "the document".to_owned(),
                0 => format!("the {documents} documents"),
                _ => format!("{unknown} of the {documents} documents"),
            };
            context.note(match self.missing {
                MissingText::IsEstimated => format!(
                    "{name} has no texts: similarities to {which} in it are estimates; --texts CORPUS reads the \
                     texts and makes them exact"
                ),
                MissingText::IsLeftOut => format!(
                    "{name} has no texts of {which}: nothing is dropped for a document without a text"
                ),
            });
        }
        Ok(known)
    }

    /// Returns how many documents have their texts here.
    fn put_features(&self, context: &Context, features: &mut FeatureSets) -> Result<u64> {
        let (snapshot, skip_bad) = (self.snapshot, self.options.skip_bad);
        let content = ContentRule::new(snapshot.schema(), true);
        let corpus = resolve_corpus(context, self.texts, self.options, content)?;
        let sketcher = snapshot.schema().sketcher();
        let work =
            move |document: &CorpusDocument<'_>| Ok(document.content.sketch(&sketcher, true)?);
        let mut documents =
            CorpusDocuments::start(context, "reading texts", &Arc::new(corpus), 0, work);
        let mut tally = DocumentTally::default();
        let mut known = 0;
        while let Some(document) = documents.next_good(context, &mut tally, skip_bad)? {
            let text = &document.value;
            let is_known = text.put_as_stored(features, snapshot, &document.key)?;
            known += u64::from(is_known);
        }
        documents.end(context, &tally)?;
        features.flush()?;
        Ok(known)
    }
}
