//! Small stores of several kinds, and what they answer.

use std::collections::BTreeSet;
use std::ops::Range;

use resemblance::exact::ExactSet;
use resemblance::schema::{ClusterBounds, KeptVector, Rebanding};
use resemblance::{
    BulkOptions, Document, DocumentId, Error, MinHash, Schema, Signature, SimHash, Snapshot, Store,
    StoreOptions, Vector,
};

use crate::common::memory::MemoryFiles;
use crate::common::oracle::{Entry, Model};
use crate::common::verify::whole_snapshot;
use crate::common::{Random, sealing_after, stats};
use crate::corruption::image::{Image, NOTE, OneFile, PATH, SEALED_HEAD_BYTES};
use crate::corruption::questions::{Content, Questions};

/// A commit, and what is made of it: the answers after each.
pub(crate) struct State {
    pub(crate) read: Content,
    pub(crate) written: Content,
    pub(crate) compacted: Content,
    pub(crate) rebanded: Content,
}

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) image: Image,
    /// The file after each earlier commit.
    pub(crate) older: Vec<Vec<u8>>,
    pub(crate) options: StoreOptions,
    pub(crate) questions: Questions,
    /// The state after the last commit. If the file was not closed, also the state before it.
    pub(crate) states: Vec<State>,
    /// The bytes that are read, ascending, by pages.
    pub(crate) used: Vec<Range<usize>>,
    /// After a crash, the engine takes a damaged last commit for an incomplete one, unless it
    /// writes what a quick repair needs.
    pub(crate) may_fall_back: bool,
    has_keys: bool,
    oldest: DocumentId,
}

impl Case {
    /// Some documents more and one less, in one commit.
    pub(crate) fn write(&self, store: &Store) -> Result<(), Error> {
        let mut transaction = store.begin_write()?;
        for number in NEW_DOCUMENTS {
            let (key, signature) = (key(number), signature(store.schema(), number));
            let document = match self.has_keys {
                true => Document::new(&key),
                false => Document::without_key(),
            };
            transaction.insert(document.payload(b"new"), &signature)?;
        }
        transaction.remove_id(self.oldest)?;
        transaction.commit()
    }

    pub(crate) fn reband(&self, options: &StoreOptions) -> Result<(), Error> {
        let bulk = BulkOptions::new().store(options.clone());
        Store::reband(PATH, &rebanding(self.name))
            .bulk(bulk.clone())
            .run()
            .map(drop)
    }

    /// Returns true if the last commits are in a journal, which has a separate head.
    pub(crate) fn has_journal(&self) -> bool {
        self.image.bytes(NOTE..NOTE + 8) != Some(vec![0; 8])
    }

    /// How many bytes are in pages that are read.
    pub(crate) fn used_bytes(&self) -> usize {
        self.used.iter().map(Range::len).sum()
    }

    /// The place of a used byte in the file.
    pub(crate) fn used_byte(&self, mut number: usize) -> usize {
        for range in &self.used {
            if number < range.len() {
                return range.start + number;
            }
            number -= range.len();
        }
        panic!("no used byte has this number");
    }
}

fn rebanding(name: &str) -> Rebanding {
    if name.starts_with("fingerprints") {
        Rebanding::new().max_distance(2)
    } else {
        Rebanding::new().banding(8, 2)
    }
}

const NEW_DOCUMENTS: Range<u64> = 900..903;

fn key(number: u64) -> Vec<u8> {
    format!("document {number}").into_bytes()
}

/// Three at a time are near each other.
fn signature(schema: &Schema, number: u64) -> Signature {
    let mut random = Random(number / 3);
    if let Some(vector) = schema.vector() {
        let component = |_| (random.next() % 2_001) as f32 / 1_000.0 - 1.0;
        let mut vector: Vec<f32> = (0..vector.dimensions()).map(component).collect();
        vector[0] += (number % 3) as f32 / 100.0;
        return schema.sketcher().vector(&vector).unwrap();
    }
    let mut values: Vec<u32> = (0..16).map(|_| random.next() as u32).collect();
    values[15] = number as u32;
    let fingerprint = random.next() ^ (1 << (number % 64));
    let set = schema.has_sets().then(|| {
        let features: BTreeSet<u64> = values.iter().map(|value| u64::from(*value)).collect();
        ExactSet::from_sorted(features.into_iter().collect(), Vec::new())
    });
    let signature = Signature::from_parts(
        schema.minhash().map(|_| values),
        schema.simhash().map(|_| fingerprint),
    );
    signature.with_set(set)
}

struct Plan {
    name: &'static str,
    schema: Schema,
    flush_after: u64,
    quick_repair: bool,
    is_closed: bool,
    has_keys: bool,
    documents: u64,
    /// True if more documents are inserted until a merge is in progress.
    merges: bool,
}

fn minhash(minhash: MinHash) -> Schema {
    Schema::builder().minhash(minhash).build().unwrap()
}

fn simhash() -> SimHash {
    SimHash::bits64().max_distance(1)
}

/// All that differ in what is in their files.
pub(crate) fn all() -> Vec<Case> {
    let fingerprints = Schema::builder().simhash(simhash()).build().unwrap();
    let values = minhash(MinHash::new(16).banding(4, 4));
    let cut = Schema::builder().minhash(MinHash::new(16).banding(4, 4).value_bits(4));
    let cut = cut.exact().build().unwrap();
    let both = Schema::builder().simhash(simhash());
    let both = both
        .minhash(MinHash::new(16).banding(2, 8))
        .build()
        .unwrap();
    let vectors = Vector::cosine(6).values(64).threshold(0.9).banding(4, 6);
    let vectors = Schema::builder().vector(vectors.kept(KeptVector::F16));
    let vectors = vectors.clusters(ClusterBounds::default()).build().unwrap();
    let plan = |name, schema: &Schema| Plan {
        name,
        schema: schema.clone(),
        flush_after: 4,
        quick_repair: false,
        is_closed: true,
        has_keys: true,
        documents: 10,
        merges: false,
    };
    let plans = [
        Plan {
            flush_after: 1_000,
            has_keys: false,
            ..plan("fingerprints in memory", &fingerprints)
        },
        Plan {
            merges: true,
            documents: 14,
            ..plan("values in runs", &values)
        },
        Plan {
            quick_repair: true,
            ..plan("cut values and exact sets, quick repair", &cut)
        },
        plan("both", &both),
        plan("vectors in clusters", &vectors),
        Plan {
            is_closed: false,
            merges: true,
            ..plan("values, not closed", &values)
        },
        Plan {
            is_closed: false,
            quick_repair: true,
            ..plan("fingerprints, not closed, quick repair", &fingerprints)
        },
    ];
    plans.map(case).into()
}

/// The built store, and the files after each commit.
struct Built {
    files: Vec<Vec<u8>>,
    models: Vec<Model>,
}

fn insert(plan: &Plan, store: &Store, model: &mut Model, number: u64) {
    let signature = signature(&plan.schema, number);
    let key = plan.has_keys.then(|| key(number));
    // One takes several pages.
    let payload = vec![number as u8; if number == 5 { 9_000 } else { 90 }];
    let document = key.as_ref().map_or(Document::without_key(), Document::new);
    let document = document.payload(&payload);
    let mut transaction = store.begin_write().unwrap();
    transaction.insert(document, &signature).unwrap();
    // As soon as they can be in runs.
    if let Some(old) = number.checked_sub(7).filter(|old| old % 4 == 1) {
        transaction.remove_id(DocumentId::new(old)).unwrap();
        model.documents.remove(&old);
    }
    transaction.commit().unwrap();
    model.insert(Entry {
        key,
        signature,
        stamp: 0,
        payload,
    });
}

fn build(plan: &Plan) -> Built {
    let memory = MemoryFiles::default().alone();
    let options = memory.options(&options(plan));
    let store = options.create(PATH, plan.schema.clone()).unwrap();
    let mut model = Model::new(plan.schema.clone());
    let mut built = Built {
        files: Vec::new(),
        models: Vec::new(),
    };
    for number in 0.. {
        insert(plan, &store, &mut model, number);
        built.files.push(memory.read(PATH));
        built.models.push(model.clone());
        let stats = stats(&store);
        // While the engine lengthens the file it has no journal.
        let is_left = plan.is_closed || plan.quick_repair || {
            let image = Image::new(memory.read(PATH));
            image.bytes(NOTE..NOTE + 8) != Some(vec![0; 8])
        };
        if number >= plan.documents && stats.merges.is_empty() != plan.merges && is_left {
            break;
        }
        assert!(number < 200, "no merge is ever under way");
    }
    drop(store);
    if plan.is_closed {
        built.files.push(memory.read(PATH));
    }
    built
}

fn options(plan: &Plan) -> StoreOptions {
    let options = sealing_after(plan.flush_after).quick_repair(plan.quick_repair);
    // A loss in the journal looks like a crash, even with quick repair.
    let journal_bytes = if plan.quick_repair { 0 } else { 128 << 10 };
    options
        .merge_slice(3)
        .merge_in_parallel(false)
        .journal(journal_bytes, 2)
}

fn case(plan: Plan) -> Case {
    let mut built = build(&plan);
    let last = built.files.pop().unwrap();
    let model = built.models.pop().unwrap();
    let numbers = (0..model.next_id).chain(NEW_DOCUMENTS);
    let questions = Questions {
        keys: numbers.clone().map(key).collect(),
        signatures: numbers.map(|n| signature(&plan.schema, n)).collect(),
        ids: model.next_id + NEW_DOCUMENTS.end - NEW_DOCUMENTS.start,
    };
    let oldest = DocumentId::new(*model.documents.keys().next().unwrap());
    let mut case = Case {
        name: plan.name,
        image: Image::new(last),
        options: options(&plan),
        questions,
        states: Vec::new(),
        used: Vec::new(),
        may_fall_back: !plan.is_closed && !plan.quick_repair,
        has_keys: plan.has_keys,
        oldest,
        older: Vec::new(),
    };
    case.states.push(state(&case, &case.image, &model));
    if !plan.is_closed {
        let before = Image::new(built.files.last().unwrap().clone());
        let model = built.models.last().unwrap();
        case.states.push(state(&case, &before, model));
    }
    case.older = built.files;
    case.used = used(&case);
    case
}

fn snapshot(file: &OneFile, options: &StoreOptions) -> Snapshot {
    let store = file.options(options).open(PATH).unwrap();
    store.snapshot().unwrap()
}

fn content(case: &Case, file: &OneFile) -> Content {
    let mut errors = Vec::new();
    let snapshot = snapshot(file, &case.options);
    let content = Content::read(&snapshot, &case.questions, &mut errors);
    assert!(errors.is_empty(), "{}: {errors:?}", case.name);
    content
}

fn changed(case: &Case, image: &Image, change: impl FnOnce(&StoreOptions)) -> Content {
    let file = OneFile::new(image.clone());
    change(&file.options(&case.options));
    content(case, &file)
}

fn state(case: &Case, image: &Image, model: &Model) -> State {
    let file = OneFile::new(image.clone());
    let mut random = Random(1);
    let intact = snapshot(&file, &case.options);
    let keys = &case.questions.keys;
    whole_snapshot(
        &intact,
        model,
        keys,
        &case.questions.signatures,
        &mut random,
    );
    drop(intact);
    let rebanded = changed(case, image, |options| case.reband(options).unwrap());
    State {
        read: changed(case, image, |_| {}),
        written: changed(case, image, |options| {
            case.write(&options.open(PATH).unwrap()).unwrap();
        }),
        compacted: changed(case, image, |options| {
            options.compact(PATH).run().unwrap();
        }),
        rebanded,
    }
}

/// Returns the ranges of the file that are read, in whole pages: the check reads everything to
/// which the trees refer. The head is read first, and written.
fn used(case: &Case) -> Vec<Range<usize>> {
    let file = OneFile::watched(case.image.clone());
    let options = file.options(&case.options);
    let report = options.check(PATH).run().unwrap();
    assert!(report.is_clean(), "{}: {:?}", case.name, report.problems);
    let mut reads = file.reads.lock().unwrap().clone();
    reads.retain(|range| range.start > 0);
    reads.push(0..SEALED_HEAD_BYTES);
    reads.sort_unstable_by_key(|range| (range.start, range.end));
    let mut used: Vec<Range<usize>> = Vec::new();
    for read in reads {
        match used.last_mut().filter(|last| last.end >= read.start) {
            Some(last) => last.end = last.end.max(read.end),
            None => used.push(read),
        }
    }
    used
}
