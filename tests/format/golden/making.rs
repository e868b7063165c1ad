//! The stores that are kept, and how each was made. Nothing here may change once it is released.

use std::path::Path;

#[cfg(feature = "languages")]
use resemblance::schema::Language;
use resemblance::schema::{
    ClusterBounds, DocumentFrequencies, EmptyDocuments, KeptVector, Linkage, MinHashKind,
    Permutations, Rebanding, ShingleUnit,
};
use resemblance::{
    BulkOptions, Combine, Containment, Document, DocumentId, MinHash, Schema, Signature, SimHash,
    Store, StoreOptions, Text, Vector,
};

use crate::common::Random;

type Make = fn(&Path);

pub(crate) const STORES: &[(&str, Make)] = &[
    ("empty", |path| drop(Store::create(path, words()).unwrap())),
    ("one-document", |path| {
        let store = Store::create(path, words()).unwrap();
        let page = store.sketch_text("the only document there is").unwrap();
        store.insert("only", &page).unwrap();
    }),
    ("words", |path| filled(path, words())),
    ("characters", |path| {
        let builder = Schema::builder().text(Text::characters(4)).seed(u64::MAX);
        filled(path, builder.minhash(minhash()).build().unwrap());
    }),
    ("code", |path| {
        let builder = Schema::builder().text(Text::code(3)).seed(7);
        filled(path, builder.simhash(SimHash::bits64()).build().unwrap());
    }),
    ("simhash-128", |path| {
        let simhash = SimHash::bits128().max_distance(5);
        filled(path, Schema::builder().simhash(simhash).build().unwrap());
    }),
    ("both", |path| {
        let builder = Schema::builder()
            .minhash(minhash())
            .simhash(SimHash::bits64());
        let builder = builder
            .near(Combine::Both)
            .empty_documents(EmptyDocuments::Alike);
        filled(path, builder.build().unwrap());
    }),
    ("four-bits", |path| {
        filled(path, of(minhash().value_bits(4)))
    }),
    ("whole-values", |path| {
        filled(path, of(minhash().value_bits(32)))
    }),
    ("one-pass", |path| {
        filled(path, of(MinHash::one_pass(32).threshold(0.6).banding(8, 3)))
    }),
    ("bottom-k", |path| {
        filled(path, of(MinHash::bottom_k(64).threshold(0.6).banding(4, 2)))
    }),
    ("weighted", |path| {
        filled(path, of(MinHash::weighted(32).threshold(0.6).banding(8, 3)))
    }),
    ("probability", |path| {
        filled(
            path,
            of(MinHash::probability(32).threshold(0.6).banding(8, 3)),
        )
    }),
    ("steps", |path| {
        let text = Text::words(2).keep_case().unordered();
        let builder = Schema::builder().text(text).seed(3);
        filled(path, builder.minhash(minhash()).build().unwrap());
    }),
    ("frequencies", |path| filled(path, of_frequencies())),
    ("tabulation", |path| {
        filled(path, of(minhash().permutations(Permutations::Tabulation)));
    }),
    ("external", |path| {
        filled(path, of(MinHash::external(32).value_bits(8).banding(8, 3)));
    }),
    ("containment", |path| {
        let builder = Schema::builder().text(Text::words(2)).minhash(minhash());
        let containment = Containment::new(3).window(4);
        filled(path, builder.containment(containment).build().unwrap());
    }),
    ("positions", |path| {
        let builder = Schema::builder().text(Text::words(2)).minhash(minhash());
        let containment = Containment::new(3).window(4).positions(true);
        filled(path, builder.containment(containment).build().unwrap());
    }),
    ("scaled", |path| {
        let containment = Containment::new(1).scaled(3);
        filled(
            path,
            Schema::builder().containment(containment).build().unwrap(),
        );
    }),
    ("built", built),
    ("rebanded", |path| {
        filled(path, words());
        let rebanding = Rebanding::new().threshold(0.4).banding(16, 2);
        Store::reband(path, &rebanding).run().unwrap();
    }),
    ("auto", |path| {
        let builder = Schema::builder()
            .text(Text::auto().with_length(2))
            .minhash(minhash());
        filled(path, builder.build().unwrap());
    }),
    ("counted", |path| {
        let builder = Schema::builder().text(Text::words(1));
        let simhash = SimHash::bits64().term_counts(true);
        filled(path, builder.simhash(simhash).build().unwrap());
    }),
    ("exact", |path| {
        let builder = Schema::builder().text(Text::words(2)).minhash(minhash());
        filled(path, builder.exact().build().unwrap());
    }),
    ("exact-32", |path| {
        let minhash = MinHash::weighted(32).threshold(0.6).banding(8, 3);
        filled(
            path,
            Schema::builder()
                .minhash(minhash)
                .exact_bits(32)
                .build()
                .unwrap(),
        );
    }),
    ("vectors", |path| {
        let builder = Schema::builder().vector(vector());
        filled(path, builder.build().unwrap());
    }),
    ("estimated-vectors", |path| {
        let builder = Schema::builder().vector(vector().estimated());
        filled(path, builder.build().unwrap());
    }),
    ("vectors-and-texts", |path| {
        let builder = Schema::builder()
            .text(Text::words(1))
            .simhash(SimHash::bits64());
        let distant = Vector::euclidean(8, 0.05).values(64).banding(8, 4);
        let builder = builder.vector(distant.kept(KeptVector::I8));
        filled(path, builder.build().unwrap());
    }),
    ("clusters", |path| clustered(path, ClusterBounds::default())),
    ("stars", |path| {
        clustered(path, ClusterBounds::default().linkage(Linkage::Star));
    }),
    ("complete", |path| {
        clustered(path, ClusterBounds::default().linkage(Linkage::Complete));
    }),
    ("half-vectors", |path| {
        let distant = Vector::euclidean(8, 0.05).values(64).banding(8, 4);
        let builder = Schema::builder().vector(distant.kept(KeptVector::F16));
        let builder = builder.clusters(ClusterBounds::default());
        filled(path, builder.build().unwrap());
    }),
    ("multiply-shift", |path| {
        let minhash = minhash().permutations(Permutations::MultiplyShift);
        filled(path, of(minhash.value_bits(2)));
    }),
    ("modular", |path| {
        let minhash = minhash().permutations(Permutations::Modular);
        filled(path, of(minhash.value_bits(1)));
    }),
    ("jenkins", |path| {
        filled(path, of(minhash().permutations(Permutations::Jenkins)));
    }),
    ("simhash-32", |path| {
        let builder = Schema::builder().text(Text::characters(3).nfkc().strip_accents());
        filled(path, builder.simhash(SimHash::bits32()).build().unwrap());
    }),
    ("external-256", |path| {
        let simhash = SimHash::external(256).max_distance(31);
        filled(path, Schema::builder().simhash(simhash).build().unwrap());
    }),
    ("scaled-positions", |path| {
        let containment = Containment::new(2).scaled(2).positions(true);
        let builder = Schema::builder().text(Text::code(2));
        filled(path, builder.containment(containment).build().unwrap());
    }),
    #[cfg(feature = "languages")]
    ("languages", |path| {
        let english = Text::words(1).stop_words(Language::English);
        let builder = Schema::builder().text(english.stem(Language::English));
        filled(path, builder.minhash(minhash()).build().unwrap());
    }),
];

fn vector() -> Vector {
    Vector::cosine(8).values(64).threshold(0.9).banding(8, 6)
}

fn minhash() -> MinHash {
    MinHash::new(32).threshold(0.6).banding(8, 3)
}

fn of(minhash: MinHash) -> Schema {
    Schema::builder().minhash(minhash).build().unwrap()
}

/// Weights by the frequencies of some of the words that documents have.
fn of_frequencies() -> Schema {
    let minhash = MinHash::weighted(32).threshold(0.6).banding(8, 3);
    let schema = Schema::builder().text(Text::words(1)).minhash(minhash);
    let schema = schema.simhash(SimHash::bits64()).build().unwrap();
    let (sketcher, mut frequencies) = (schema.sketcher(), DocumentFrequencies::new());
    for number in 0..40_u64 {
        let mut random = Random(number % 24);
        let words = (0..50).map(|_| format!("w{:x}", random.next() % 4_096));
        let text: Vec<String> = words.collect();
        frequencies.add_text(&sketcher, &text.join(" ")).unwrap();
    }
    schema.with_weights(frequencies).unwrap()
}

fn words() -> Schema {
    let builder = Schema::builder().text(Text::words(2)).seed(42);
    builder.minhash(minhash()).build().unwrap()
}

/// Returns a signature. Three neighbours are near each other, and every eleventh document is empty.
/// Uses texts if the schema accepts them.
pub(crate) fn signature(schema: &Schema, number: u64) -> Signature {
    let mut random = Random(number / 3);
    let mut features: Vec<u64> = (0..60).map(|_| random.next()).collect();
    features[(number % 3) as usize] = number;
    features.truncate(if number % 11 == 10 { 0 } else { 60 });
    if schema
        .minhash()
        .is_some_and(|minhash| minhash.kind() == MinHashKind::External)
    {
        let values = features.iter().map(|feature| (feature % 256) as u32);
        let values = values.chain(std::iter::repeat(u32::MAX)).take(32);
        return Signature::from_minhash(values.collect());
    }
    if schema.vector().is_some() {
        return with_vector(schema, number);
    }
    if schema
        .simhash()
        .is_some_and(|simhash| simhash.bits() == 256)
    {
        let near = 1 << (number % 3);
        return Signature::from_fingerprint([random.next() as u8 ^ near; 32]);
    }
    let sketcher = schema.sketcher();
    if schema.text().is_some() {
        let is_auto = schema
            .text()
            .is_some_and(|text| text.unit() == ShingleUnit::Auto);
        let counts = schema.has_term_counts();
        // Words that occur more than once, and scripts without spaces, where they matter.
        let vocabulary = if counts { 32 } else { 4_096 };
        let words = features
            .iter()
            .map(|feature| match is_auto && feature % 3 == 0 {
                true => String::from(char::from_u32(0x4e00 + (feature % 4_096) as u32).unwrap()),
                false => format!("w{:x}", feature % vocabulary),
            });
        let text: Vec<String> = words.collect();
        return sketcher.text(&text.join(" ")).unwrap();
    }
    if number.is_multiple_of(4) {
        let weighted = features
            .iter()
            .map(|feature| (*feature, (feature % 7) as f64 / 2.0));
        return sketcher.weighted_hashes(weighted).unwrap();
    }
    sketcher.hashes(features).unwrap()
}

/// Returns the signature of a vector, with a text if the schema accepts texts.
fn with_vector(schema: &Schema, number: u64) -> Signature {
    let mut random = Random(number / 3);
    let dimensions = schema.vector().unwrap().dimensions();
    let component = |_| (random.next() % 2_001) as f32 / 1_000.0 - 1.0;
    let mut vector: Vec<f32> = (0..dimensions).map(component).collect();
    vector[(number % 3) as usize] += 0.015;
    let sketcher = schema.sketcher();
    let Some(beside) = sketcher.beside_vector() else {
        return sketcher.vector(&vector).unwrap();
    };
    let text = format!("the caption of page {} of book {}", number % 3, number / 3);
    let caption = beside.text(&text).unwrap();
    sketcher.with_vector(caption, &vector).unwrap()
}

/// Keys of all forms, and none.
fn insert(store: &Store, number: u64) {
    let signature = signature(store.schema(), number);
    let key = format!("https://example.org/{number}/\u{e9}");
    let document = match number % 7 {
        0 => Document::without_key(),
        _ => Document::new(&key),
    };
    let payload: Vec<u8> = (0..number % 20).map(|byte| (byte * number) as u8).collect();
    let mut transaction = store.begin_write().unwrap();
    let document = document.stamp(number * 1_000_003).payload(&payload);
    transaction.insert(document, &signature).unwrap();
    transaction.commit().unwrap();
}

/// Creates runs of several levels, a merge in progress, removed and replaced documents, and
/// documents that are not flushed.
fn filled(path: &Path, schema: Schema) {
    let options = StoreOptions::new().flush_after(8).merge_slice(40);
    let store = options.create(path, schema).unwrap();
    for number in 0..70 {
        insert(&store, number);
        let mut transaction = store.begin_write().unwrap();
        if number % 9 == 8 {
            let id = DocumentId::new(number / 2);
            transaction.remove_id(id).unwrap();
        }
        if number % 13 == 12 {
            let key = format!("https://example.org/{}/\u{e9}", number - 3);
            let replacement = signature(store.schema(), number + 300);
            transaction.upsert(key, &replacement).unwrap();
        }
        transaction.commit().unwrap();
    }
}

/// Creates clusters that grow, meet, split and end, and representatives that leave.
fn clustered(path: &Path, bounds: ClusterBounds) {
    let schema = Schema::builder().simhash(SimHash::bits64().max_distance(3));
    filled(path, schema.clusters(bounds).build().unwrap());
    let store = StoreOptions::new().flush_after(8).open(path).unwrap();
    // Neighbours on a line are two bits apart.
    let places = [0, 1, 4, 5, 6, 8, 9, 1, 2, 3, 7, 12, 12, 14, 15, 16];
    let ids = places.map(|place| {
        let signature = Signature::from_simhash(u64::MAX >> (2 * place));
        store.insert(Document::without_key(), &signature).unwrap()
    });
    for place in [3, 0, 11, 12, 14] {
        let mut transaction = store.begin_write().unwrap();
        assert!(transaction.remove_id(ids[place]).unwrap());
        transaction.commit().unwrap();
    }
}

fn built(path: &Path) {
    let schema = words();
    let mut build = Store::bulk_build(path, schema.clone(), &BulkOptions::new()).unwrap();
    for number in 0..70u64 {
        let key = number.to_be_bytes();
        let document = Document::new(&key).stamp(number);
        build.insert(document, &signature(&schema, number)).unwrap();
    }
    build.finish().unwrap();
}
