//! Files that change under a handle.

use resemblance::{Document, MinHash, Schema, Signature, Store, StoreOptions};

use crate::common::Random;
use crate::common::memory::MemoryFiles;
use crate::common::sample::trials;
use crate::corruption::attempt::Outcome;
use crate::corruption::guards::{guarded, take_panics};
use crate::corruption::image::{Image, OneFile, PATH};
use crate::corruption::questions::{Content, Questions};
use crate::corruption::{Tally, is_long};

const DOCUMENTS: u64 = 120;

fn signature(number: u64) -> Signature {
    let mut random = Random(number / 3);
    Signature::from_minhash((0..16).map(|_| random.next() as u32).collect())
}

/// The least that a cache can have: the pages of the store do not all fit.
fn options() -> StoreOptions {
    StoreOptions::new().cache_bytes(0).flush_after(20)
}

fn insert(store: &Store, numbers: impl Iterator<Item = u64>) -> resemblance::Result<()> {
    let mut transaction = store.begin_write()?;
    for number in numbers {
        let payload = vec![number as u8; 20_000];
        let key = number.to_le_bytes();
        let document = Document::new(&key).payload(&payload);
        transaction.insert(document, &signature(number))?;
    }
    transaction.commit()
}

struct Large {
    image: Image,
    questions: Questions,
    before: Content,
    /// After inserting, through the handle that inserted.
    after: Content,
    reopened: Content,
}

fn content(file: &OneFile, questions: &Questions, errors: &mut Vec<resemblance::Error>) -> Content {
    let store = file.options(&options()).open(PATH).unwrap();
    Content::read(&store.snapshot().unwrap(), questions, errors)
}

fn large() -> Large {
    let memory = MemoryFiles::default();
    let schema = Schema::builder().minhash(MinHash::new(16).banding(2, 8));
    let created = memory
        .options(&options())
        .create(PATH, schema.build().unwrap());
    insert(&created.unwrap(), 0..DOCUMENTS).unwrap();
    let image = Image::new(memory.read(PATH));
    let numbers = (0..DOCUMENTS).step_by(5);
    let questions = Questions {
        keys: numbers.clone().map(|n| n.to_le_bytes().to_vec()).collect(),
        signatures: numbers.map(signature).collect(),
        ids: DOCUMENTS + 5,
    };
    let mut errors = Vec::new();
    let file = OneFile::new(image.clone());
    let before = content(&file, &questions, &mut errors);
    let store = file.options(&options()).open(PATH).unwrap();
    insert(&store, DOCUMENTS..DOCUMENTS + 5).unwrap();
    let snapshot = store.snapshot().unwrap();
    let after = Content::read(&snapshot, &questions, &mut errors);
    drop((snapshot, store));
    let reopened = content(&file, &questions, &mut errors);
    assert!(errors.is_empty());
    Large {
        image,
        questions,
        before,
        after,
        reopened,
    }
}

/// One handle, and what was done to the file under it.
struct Episode<'a> {
    large: &'a Large,
    file: OneFile,
    random: Random,
    outcome: Outcome,
}

impl Episode<'_> {
    fn options(&self) -> StoreOptions {
        self.file.options(&options())
    }

    fn read(&mut self, phase: &str, allowed: &[&Content], store: &Store) {
        let mut errors = Vec::new();
        match store.snapshot() {
            Ok(snapshot) => {
                let found = Content::read(&snapshot, &self.large.questions, &mut errors);
                let place = self.outcome.compare(phase, &found, allowed);
                self.outcome.is_previous |= place > 0;
            }
            Err(error) => errors.push(error),
        }
        for error in &errors {
            self.outcome.error(phase, error);
        }
    }

    fn flip(&mut self, flips: u64) {
        let mut image = self.file.image.write().unwrap();
        for _ in 0..flips {
            let at = self.random.below(image.len() as u64) as usize;
            image.flip(at, 1 << self.random.below(8));
        }
    }

    fn reading(&mut self, flips: u64) {
        let before = [&self.large.before];
        let store = self.options().open_read_only(PATH).unwrap();
        self.flip(flips);
        self.read("read-only, after the flips", &before, &store);
        self.flip(flips);
        self.read("read-only, after more flips", &before, &store);
    }

    fn writing(&mut self, flips: u64) {
        let large = self.large;
        let store = self.options().open(PATH).unwrap();
        if self.random.below(2) == 0 {
            self.read("before the flips", &[&large.before], &store);
        }
        self.flip(flips);
        self.read("after the flips", &[&large.before], &store);
        let inserted = insert(&store, DOCUMENTS..DOCUMENTS + 5);
        let is_inserted = inserted.is_ok();
        if let Err(error) = inserted {
            self.outcome.error("inserting", &error);
        }
        self.flip(1 + flips / 8);
        let both = [&large.after, &large.before];
        let allowed = if is_inserted { &both[..1] } else { &both[..] };
        self.read("after inserting", allowed, &store);
        drop(store);
        // Without a clean end, the engine takes a damaged last commit for an incomplete one.
        let flags = self.file.image.read().unwrap().bytes(9..10).unwrap()[0];
        let is_closed = flags & 2 == 0;
        let both = [&large.reopened, &large.before];
        let is_certain = is_inserted && is_closed;
        let allowed = if is_certain { &both[..1] } else { &both[..] };
        match self.options().open(PATH) {
            Ok(store) => self.read("opened again", allowed, &store),
            Err(error) => self.outcome.error("opening again", &error),
        }
    }
}

/// Answers come from the cache or from the file. Bytes from the file are verified whenever they are
/// read, so later damage is also detected.
fn episode(large: &Large, seed: u64) -> Outcome {
    let mut episode = Episode {
        large,
        file: OneFile::new(large.image.clone()),
        random: Random(seed),
        outcome: Outcome::default(),
    };
    let flips = 1 << (seed % 10);
    if seed.is_multiple_of(3) {
        episode.reading(flips);
    } else {
        episode.writing(flips);
    }
    let mut outcome = episode.outcome;
    outcome.is_clean = outcome.errors.is_empty();
    outcome
}

/// Twelve episodes, 30 with `RESEMBLANCE_TESTS=all`. Ten have every number of flips.
#[test]
fn flips_under_an_open_store_are_detected() {
    let large = large();
    let mut tally = Tally::default();
    for seed in 0..if is_long() { 2_000 } else { trials(12, 30) } {
        let name = format!("flips under an open store, seed {seed}");
        let outcome = guarded(&name, || episode(&large, seed));
        tally.add(name, outcome);
        tally.panics += take_panics();
    }
    tally.end("stores flipped while they are open");
    assert!(tally.noticed > tally.tried / 4);
}
