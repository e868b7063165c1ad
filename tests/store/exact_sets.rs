//! Exact stores: sets of features decide, not estimates.

use std::collections::BTreeSet;

use crate::common::{Place, Random, check_clean, refused, sealing_after};
use resemblance::schema::Rebanding;
use resemblance::search::Earlier;
use resemblance::{
    Bounds, BulkOptions, Collection, Containment, Document, DocumentId, Error, Family, MinHash,
    Novelty, Schema, SchemaBuilder, Signature, SimHash, Store, Text,
};

/// Sixteen bands of one row from 16 values. Of the pairs with a similarity of 0.5 or more, only one
/// in 65,536 is no candidate. The estimates have a standard error of about 0.1.
fn schema(change: impl Fn(SchemaBuilder) -> SchemaBuilder) -> Schema {
    let minhash = MinHash::new(16).threshold(0.6).banding(16, 1);
    let builder = Schema::builder().text(Text::words(1)).minhash(minhash);
    change(builder.exact()).build().unwrap()
}

/// Texts of a few families: about half of the pairs of a family are near.
fn texts(count: u64) -> Vec<String> {
    let mut random = Random(7);
    let mut text = |number: u64| {
        let mut words: BTreeSet<u64> = (0..40).map(|word| number % 9 * 1_000 + word).collect();
        for _ in 0..random.below(12) {
            let word = number % 9 * 1_000 + random.below(40);
            words.remove(&word);
            words.insert(random.next() % 1_000_000 + 10_000);
        }
        let words: Vec<String> = words.iter().map(|word| format!("w{word}")).collect();
        words.join(" ")
    };
    (0..count).map(&mut text).collect()
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split(' ').collect()
}

fn jaccard(a: &str, b: &str) -> f64 {
    let (a, b) = (words(a), words(b));
    let shared = a.intersection(&b).count();
    shared as f64 / (a.len() + b.len() - shared) as f64
}

/// The documents that a store should have: texts by id, `None` if removed.
type Texts = Vec<Option<String>>;

/// Returns the documents within the bound of a text, the most similar first.
fn near(texts: &Texts, text: &str, least: f64) -> Vec<(u64, f64)> {
    let there = (0..)
        .zip(texts)
        .filter_map(|(id, text)| Some((id, text.as_deref()?)));
    let scored = there.map(|(id, other)| (id, jaccard(text, other)));
    let mut near: Vec<(u64, f64)> = scored
        .filter(|(_, similarity)| *similarity >= least)
        .collect();
    near.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    near
}

/// Asks every question of a store, and compares the answers with those of all texts.
fn answers_like(store: &Store, texts: &Texts, asked: &[String]) {
    let snapshot = store.snapshot().unwrap();
    let signatures: Vec<Signature> = asked
        .iter()
        .map(|text| store.sketch_text(text).unwrap())
        .collect();
    let answers = snapshot.query(&signatures).run().unwrap();
    let scanned = snapshot.query(&signatures).scan().run().unwrap();
    let two = snapshot.query(&signatures).scan().limit(2).run().unwrap();
    for ((text, all), two) in asked.iter().zip(&scanned).zip(&two) {
        let expected = near(texts, text, 0.6);
        let found = all
            .iter()
            .map(|found| (found.id().get(), found.similarity().unwrap()));
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert!(all.iter().all(|found| found.is_exact()));
        assert!(two.iter().eq(all.iter().take(2)));
    }
    for ((text, signature), answer) in asked.iter().zip(&signatures).zip(&answers) {
        let expected = near(texts, text, 0.6);
        let one = snapshot.query(signature).run().unwrap();
        assert_eq!(&one, answer);
        let found = one
            .iter()
            .map(|found| (found.id().get(), found.similarity().unwrap()));
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert!(one.iter().all(|found| found.is_exact()));
        let nearest = snapshot
            .nearest(signature, 5)
            .min_recall(1.0)
            .run()
            .unwrap();
        let found = nearest
            .iter()
            .map(|found| (found.id().get(), found.similarity().unwrap()));
        let all = near(texts, text, 0.0);
        assert_eq!(found.collect::<Vec<_>>(), all[..all.len().min(5)]);
    }
    let mut expected = Vec::new();
    for (a, text) in (0..)
        .zip(texts)
        .filter_map(|(id, text)| Some((id, text.as_deref()?)))
    {
        let later = near(texts, text, 0.6).into_iter().filter(|(b, _)| *b > a);
        expected.extend(later.map(|(b, similarity)| (a, b, similarity.to_bits())));
    }
    expected.sort_unstable();
    let pairs = snapshot
        .pairs()
        .threads(2)
        .run()
        .unwrap()
        .map(Result::unwrap);
    let mut found: Vec<(u64, u64, u64)> = pairs
        .inspect(|pair| assert!(pair.is_exact))
        .map(|pair| {
            (
                pair.a.get(),
                pair.b.get(),
                pair.similarity.unwrap().to_bits(),
            )
        })
        .collect();
    found.sort_unstable();
    assert_eq!(found, expected);
    let clustered: usize = snapshot
        .clusters()
        .run()
        .unwrap()
        .map(|cluster| cluster.len())
        .sum();
    let in_pairs: BTreeSet<u64> = expected.iter().flat_map(|(a, b, _)| [*a, *b]).collect();
    assert_eq!(clustered, in_pairs.len());
}

/// Checks the novelty of a text against the expected one. Adds the text to the others if it is new.
fn same_novelty(texts: &mut Texts, text: &str, novelty: &Novelty) {
    match (near(texts, text, 0.6).first(), novelty) {
        (None, Novelty::New { id, .. }) => {
            texts.resize(id.get() as usize, None);
            texts.push(Some(text.to_owned()));
        }
        (Some((id, similarity)), Novelty::NearDuplicate(found)) => {
            assert_eq!(
                (found.id().get(), found.similarity()),
                (*id, Some(*similarity))
            );
            assert!(found.is_exact());
        }
        (expected, found) => panic!("{found:?}, expected {expected:?}"),
    }
}

fn history(schema: &Schema) {
    let place = Place::new();
    let options = sealing_after(40);
    let mut store = options.create(place.store(), schema.clone()).unwrap();
    let all = texts(360);
    let (mut kept, mut random) = (Texts::new(), Random(3));
    for (round, texts) in all.chunks(24).enumerate() {
        let sketch = |text: &String| store.sketch_text(text).unwrap();
        match round % 4 {
            // The arms insert by single calls, in a transaction, in a batch, and by the queue.
            0 => {
                for text in texts {
                    let novelty = store
                        .insert_if_new(Document::without_key(), &sketch(text))
                        .unwrap();
                    same_novelty(&mut kept, text, &novelty);
                }
            }
            1 => {
                let mut transaction = store.begin_write().unwrap();
                for text in texts {
                    let document = Document::without_key();
                    let novelty = transaction.insert_if_new(&document, &sketch(text)).unwrap();
                    same_novelty(&mut kept, text, &novelty);
                }
                transaction.commit().unwrap();
            }
            2 => {
                let signatures: Vec<Signature> = texts.iter().map(sketch).collect();
                let batch = signatures
                    .iter()
                    .map(|signature| (Document::without_key(), signature));
                let batch: Vec<_> = batch.collect();
                let mut transaction = store.begin_write().unwrap();
                let novelties = transaction.insert_many(&batch).if_new().run().unwrap();
                for (text, novelty) in texts.iter().zip(&novelties) {
                    same_novelty(&mut kept, text, novelty);
                }
                transaction.commit().unwrap();
            }
            _ => {
                for text in texts {
                    let id = store
                        .insert(Document::without_key(), &sketch(text))
                        .unwrap();
                    kept.resize(id.get() as usize, None);
                    kept.push(Some(text.clone()));
                }
            }
        }
        let mut transaction = store.begin_write().unwrap();
        for _ in 0..8 {
            let id = random.below(kept.len() as u64);
            let is_there = kept[id as usize].take().is_some();
            assert_eq!(
                transaction.remove_id(DocumentId::new(id)).unwrap(),
                is_there
            );
        }
        transaction.commit().unwrap();
        if round % 5 == 4 {
            answers_like(&store, &kept, texts);
            let _ = store.close().unwrap();
            store = options.open(place.store()).unwrap();
        }
    }
    answers_like(&store, &kept, &all[..40]);
    everywhere(&place, store, &kept, &all[..20]);
}

/// Passes the documents of a store through every operation that makes another file of them.
fn everywhere(place: &Place, store: Store, kept: &Texts, asked: &[String]) {
    let snapshot = store.snapshot().unwrap();
    let mut stream = Vec::new();
    snapshot.export(&mut stream).run().unwrap();
    snapshot.backup(place.file("backup")).run().unwrap();
    let schema = store.schema().clone();
    drop(snapshot);
    let _ = store.close().unwrap();
    check_clean(&place.store());
    let imported = Store::create(place.file("imported"), schema.clone()).unwrap();
    imported.import(&stream[..]).run().unwrap();
    let dense: Texts = kept.iter().filter(|text| text.is_some()).cloned().collect();
    answers_like(&imported, &dense, asked);
    let _ = imported.close().unwrap();
    Store::repair(place.store(), place.file("repaired"))
        .run()
        .unwrap();
    Store::repair(place.store(), place.file("scanned"))
        .scan(true)
        .run()
        .unwrap();
    Store::merge(place.file("merged"), [place.file("backup")])
        .run()
        .unwrap();
    for name in ["backup", "repaired"] {
        answers_like(&Store::open(place.file(name)).unwrap(), kept, asked);
        check_clean(&place.file(name));
    }
    // Removed documents may reappear, with their sets.
    let scanned = Store::open(place.file("scanned"))
        .unwrap()
        .snapshot()
        .unwrap();
    for record in scanned.iter().map(Result::unwrap) {
        let Some(Some(text)) = kept.get(record.id().get() as usize) else {
            continue;
        };
        assert_eq!(record.signature(), &schema.sketcher().text(text).unwrap());
    }
    answers_like(&Store::open(place.file("merged")).unwrap(), &dense, asked);
    Store::compact(place.file("repaired")).run().unwrap();
    let rebanding = Rebanding::new().banding(8, 2);
    Store::reband(place.file("repaired"), &rebanding)
        .run()
        .unwrap();
    let rebanding = Rebanding::new().banding(16, 1);
    Store::reband(place.file("repaired"), &rebanding)
        .run()
        .unwrap();
    answers_like(&Store::open(place.file("repaired")).unwrap(), kept, asked);
}

#[test]
fn exact_store_answers_like_brute_force() {
    history(&schema(|builder| builder));
}

#[test]
fn exact_store_takes_kept_hashes_of_all_features_for_its_sets() {
    let schema = schema(|builder| builder.containment(Containment::new(1).window(1)));
    history(&schema);
}

#[test]
fn exact_store_of_another_width_answers_like_brute_force() {
    let narrow = |builder: SchemaBuilder| builder.exact_bits(32);
    // Kept hashes have 44 bits, so the sets are stored beside them.
    let beside = |builder: SchemaBuilder| {
        let containment = Containment::new(1).window(1);
        builder.exact_bits(64).containment(containment)
    };
    let schemas = [schema(narrow), schema(beside)];
    let usual = schema(|builder| builder);
    for schema in &schemas {
        assert!(schema.has_sets());
        history(schema);
        let store = Store::in_memory(schema.clone()).unwrap();
        let page = usual.sketcher().text("a b c").unwrap();
        assert!(store.insert("a", &page).is_err());
    }
    // A thousand features.
    let bytes = |schema: &Schema| {
        let store = Store::in_memory(schema.clone()).unwrap();
        let text: Vec<String> = (0..1_000).map(|word| format!("w{word}")).collect();
        let page = store.sketch_text(&text.join(" ")).unwrap();
        store.insert("a", &page).unwrap();
        let stats = store.snapshot().unwrap().stats().run().unwrap();
        let table = stats.tables.into_iter().find(|table| table.name == "sets");
        table.unwrap().stored_bytes
    };
    assert_eq!(bytes(&usual) - bytes(&schemas[0]), 1_000 * 12 / 8);
    refused(
        Schema::builder()
            .minhash(MinHash::new(16))
            .exact_bits(31)
            .build(),
        "exact_bits",
    );
}

/// Returns the numbers of rows of the tables `sets` and `documents`.
fn rows_of_sets(store: &Store) -> [u64; 2] {
    let stats = store.snapshot().unwrap().stats().run().unwrap();
    ["sets", "documents"].map(|name| {
        let table = stats.tables.iter().find(|table| table.name == name);
        table.unwrap().rows
    })
}

/// The sets of these texts take about 220 bytes, so that 70 to 80 fill a chunk.
#[test]
fn exact_store_packs_the_sets_of_a_commit() {
    let (place, schema) = (Place::new(), schema(|builder| builder));
    let store = sealing_after(200)
        .create(place.store(), schema.clone())
        .unwrap();
    let all = texts(170);
    for texts in all.chunks(85) {
        let sketches = texts.iter().map(|text| store.sketch_text(text).unwrap());
        let signatures: Vec<Signature> = sketches.collect();
        let (batch, singles) = signatures.split_at(81);
        let mut transaction = store.begin_write().unwrap();
        for signature in batch {
            transaction
                .insert(Document::without_key(), signature)
                .unwrap();
        }
        transaction.commit().unwrap();
        for signature in singles {
            store.insert(Document::without_key(), signature).unwrap();
        }
    }
    // Each batch takes two chunks, one more if it is flushed midway, and each single document one.
    let [chunks, documents] = rows_of_sets(&store);
    assert!((2 * 6..2 * 7).contains(&chunks), "{chunks} chunks");
    assert_eq!(documents, 170);
    let mut kept: Texts = all.iter().cloned().map(Some).collect();
    let mut transaction = store.begin_write().unwrap();
    // The first of a chunk, some within it, the last, whole chunks and parts of those beside them.
    for id in [0, 3, 4, 50, 169].into_iter().chain(70..100) {
        kept[id as usize] = None;
        assert!(transaction.remove_id(DocumentId::new(id)).unwrap());
    }
    transaction.commit().unwrap();
    answers_like(&store, &kept, &all[95..105]);
    let _ = store.close().unwrap();
    check_clean(&place.store());
    Store::compact(place.store()).run().unwrap();
    check_clean(&place.store());
    let store = Store::open(place.store()).unwrap();
    let [chunks, documents] = rows_of_sets(&store);
    assert_eq!(documents, 170 - 35);
    assert!(chunks < 2 * 6 - 5, "{chunks} chunks");
    everywhere(&place, store, &kept, &all[95..105]);
}

#[test]
fn exact_store_weighs_features_where_minhash_does() {
    for minhash in [MinHash::weighted(64), MinHash::probability(64)] {
        let builder = Schema::builder().text(Text::words(1));
        let schema = builder
            .minhash(minhash.threshold(0.5).banding(64, 1))
            .exact()
            .build()
            .unwrap();
        let store = Store::in_memory(schema).unwrap();
        store
            .insert("a", &store.sketch_text("rose rose rose thorn").unwrap())
            .unwrap();
        let asked = store.sketch_text("rose rose thorn thorn").unwrap();
        let found = store.snapshot().unwrap().query(&asked).run().unwrap();
        // The similarity is 3 / 5 for weights and 3 / 4 for distributions. It would be 1 for sets.
        let expected = if minhash == MinHash::weighted(64) {
            3.0 / 5.0
        } else {
            3.0 / 4.0
        };
        let similarity = found[0].similarity().unwrap();
        assert!(
            (similarity - expected).abs() < 1e-12 && found[0].is_exact(),
            "{similarity}"
        );
    }
}

#[test]
fn exact_store_tells_versions_of_one_signature_apart() {
    let builder = Schema::builder().text(Text::words(1));
    tell_versions_apart(builder.clone());
    // The kept hashes are the sets.
    tell_versions_apart(builder.containment(Containment::new(1).window(1)));
}

fn tell_versions_apart(builder: SchemaBuilder) {
    // Many documents have equal signatures, because these have 16 values of one bit each.
    let minhash = MinHash::new(16).value_bits(1).threshold(0.5).banding(16, 1);
    let schema = builder.minhash(minhash).exact().build().unwrap();
    let store = Store::in_memory(schema).unwrap();
    let numbers: Vec<String> = (0..2_000_u64).map(|number| format!("w{number}")).collect();
    let mut by_values = std::collections::BTreeMap::new();
    let twin = numbers.iter().find_map(|text| {
        let signature = store.sketch_text(text).unwrap();
        let values = signature.minhash().unwrap().to_vec();
        by_values.insert(values, text).map(|other| (other, text))
    });
    let (a, b) = twin.expect("two of 2,000 in 65,536 are equal");
    let [a, b] = [a, b].map(|text| store.sketch_text(text).unwrap());
    assert_eq!(a.minhash(), b.minhash());
    store.upsert("key", &a).unwrap();
    let same = store.upsert("key", &a).unwrap();
    assert!(matches!(same.revision, resemblance::Revision::Unchanged(found) if found.is_exact()));
    let other = store.upsert("key", &b).unwrap();
    assert!(
        matches!(other.revision, resemblance::Revision::Different(found) if found.similarity() == Some(0.0))
    );
    assert!(store.insert_if_new("other", &a).unwrap().is_new());
    let same = store.insert_if_new("key", &a).unwrap();
    assert!(
        matches!(same, Novelty::KeyExists(found) if found.is_exact() && found.similarity() == Some(0.0))
    );
    assert_eq!(store.snapshot().unwrap().pairs().run().unwrap().count(), 0);
    assert_eq!(
        store.snapshot().unwrap().clusters().run().unwrap().count(),
        0
    );
}

/// Inserts texts under the keys 0, 1, 2 and so on.
fn insert_keyed<'t>(store: &Store, texts: impl IntoIterator<Item = (usize, &'t String)>) {
    let mut transaction = store.begin_write().unwrap();
    for (number, text) in texts {
        let signature = store.sketch_text(text).unwrap();
        transaction
            .insert(number.to_string().as_str(), &signature)
            .unwrap();
    }
    transaction.commit().unwrap();
}

/// An estimating store of all texts but those of a few removed documents.
fn estimating(place: &Place, schema: &Schema, all: &[String]) -> Texts {
    let store = sealing_after(40)
        .create(place.store(), schema.clone())
        .unwrap();
    let mut kept: Texts = all.iter().cloned().map(Some).collect();
    for piece in all.chunks(32).enumerate() {
        insert_keyed(&store, (piece.0 * 32..).zip(piece.1));
    }
    for id in [3, 30, 70, 149] {
        assert!(store.remove(id.to_string().as_str()).unwrap().is_some());
        kept[id as usize] = None;
    }
    let _ = store.close().unwrap();
    kept
}

#[test]
fn estimating_store_becomes_exact_from_its_texts() {
    let minhash = MinHash::new(16).threshold(0.6).banding(16, 1);
    let builder = Schema::builder().text(Text::words(1)).minhash(minhash);
    let schema = builder.clone().build().unwrap();
    let (place, all) = (Place::new(), texts(150));
    let mut kept = estimating(&place, &schema, &all);
    let rebanding = Rebanding::new().exact_bits(48);
    let exact = schema.rebanded(&rebanding).unwrap();
    let sets_of = |texts: &mut dyn Iterator<Item = (usize, &String)>| {
        let store = Store::in_memory(exact.clone()).unwrap();
        insert_keyed(&store, texts);
        store.snapshot().unwrap()
    };
    let reband = || Store::reband(place.store(), &rebanding);
    let is_as_before = |path: &std::path::Path| {
        let store = Store::open(path).unwrap();
        assert!(!store.schema().is_exact());
        assert_eq!(store.snapshot().unwrap().len(), 146);
        let _ = store.close().unwrap();
        check_clean(path);
    };
    let none = sets_of(&mut std::iter::empty());
    // In the other order, with a text that the store never had.
    let more = String::from("another text");
    let mut reversed: Vec<(usize, &String)> = all.iter().chain([&more]).enumerate().collect();
    reversed.reverse();
    let whole = sets_of(&mut reversed.into_iter());
    let part = sets_of(&mut all.iter().enumerate().filter(|(number, _)| *number != 77));
    let mut edited = all.clone();
    edited[77].push_str(" and more words that were added to this text later");
    let other = sets_of(&mut edited.iter().enumerate());
    let foreign = Store::in_memory(builder.seed(9).exact_bits(48).build().unwrap()).unwrap();
    let refusals = [
        (reband(), "found none"),
        (reband().sets_from(&none), "for 146 of 146: 0, 1, 2, 4,"),
        (reband().sets_from(&part), "for 1 of 146: 77"),
        (reband().sets_from(&other), "for 1 of 146: 77"),
        (reband().sets_from(&foreign.snapshot().unwrap()), "seed"),
    ];
    for (reband, expected) in refusals {
        let error = reband.run().unwrap_err();
        assert!(matches!(&error, Error::InvalidParameter { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        is_as_before(&place.store());
    }
    // Interrupted, and cut off, at each step that is reported.
    for stop in 0.. {
        let (mut step, image) = (0, place.file("image.rsm"));
        let done = reband().sets_from(&whole).on_progress(|_| {
            step += 1;
            if step <= stop {
                return std::ops::ControlFlow::Continue(());
            }
            std::fs::copy(place.store(), &image).unwrap();
            std::ops::ControlFlow::Break(())
        });
        match done.run() {
            Ok(report) => {
                assert!(report.is_rewritten && report.schema == exact);
                break;
            }
            Err(error) => assert!(matches!(error, Error::Stopped { .. }), "{error}"),
        }
        is_as_before(&image);
        is_as_before(&place.store());
    }
    check_clean(&place.store());
    let store = sealing_after(40).open(place.store()).unwrap();
    answers_like(&store, &kept, &all[..40]);
    store
        .insert("more", &store.sketch_text(&more).unwrap())
        .unwrap();
    kept.push(Some(more));
    everywhere(&place, store, &kept, &all[..20]);
    assert!(reband().sets_from(&whole).run().is_err()); // it is exact
}

#[test]
fn estimating_store_becomes_exact_only_if_all_documents_have_keys() {
    let minhash = MinHash::new(16).threshold(0.6).banding(16, 1);
    let builder = Schema::builder().text(Text::words(1)).minhash(minhash);
    let rebanding = Rebanding::new().exact();
    // The kept hashes are the sets: no other store is needed.
    let kept = builder.clone().containment(Containment::new(1).window(1));
    for (builder, is_possible) in [(kept, true), (builder, false)] {
        let (place, schema) = (Place::new(), builder.build().unwrap());
        let store = Store::create(place.store(), schema.clone()).unwrap();
        let page = store.sketch_text("a b c d").unwrap();
        let id = store.insert(Document::without_key(), &page).unwrap();
        let _ = store.close().unwrap();
        let texts = Store::in_memory(schema.rebanded(&rebanding).unwrap()).unwrap();
        let reband = Store::reband(place.store(), &rebanding);
        if is_possible {
            assert!(!reband.run().unwrap().is_rewritten);
            check_clean(&place.store());
            let store = Store::open(place.store()).unwrap();
            let page = store.sketch_text("a b c d e").unwrap();
            let found = store.snapshot().unwrap().query(&page).run().unwrap();
            assert_eq!((found[0].id(), found[0].similarity()), (id, Some(0.8)));
            assert!(found[0].is_exact());
        } else {
            let error = reband.sets_from(&texts.snapshot().unwrap()).run();
            let error = error.unwrap_err().to_string();
            assert!(error.contains("document 0, without a key"), "{error}");
        }
    }
}

#[test]
fn exact_store_asks_the_caller_first() {
    let store = Store::in_memory(schema(|builder| builder)).unwrap();
    let page = store.sketch_text("a b c d e").unwrap();
    let id = store.insert("a", &page).unwrap();
    let snapshot = store.snapshot().unwrap();
    let said = |similarity: Option<f64>| {
        let found = snapshot
            .query(&page)
            .verify(move |_| Ok(similarity))
            .run()
            .unwrap();
        found.first().and_then(|found| found.similarity())
    };
    assert_eq!(
        (said(Some(0.75)), said(Some(0.1)), said(None)),
        (Some(0.75), None, Some(1.0))
    );
    let mut transaction = store.begin_write().unwrap();
    let batch = [(Document::new("b"), &page)];
    let insert = transaction
        .insert_many(&batch)
        .if_new()
        .verify(|_, earlier| {
            assert_eq!(earlier, Earlier::Stored(id));
            Ok(None)
        });
    assert!(matches!(&insert.run().unwrap()[0], Novelty::NearDuplicate(found) if found.is_exact()));
}

#[test]
fn exact_collection_joins_by_sets() {
    let schema = schema(|builder| builder);
    let folder = tempfile::tempdir().unwrap();
    let all = texts(120);
    let store = Store::in_memory(schema.clone()).unwrap();
    for memory_bytes in [1 << 20, 1 << 30] {
        let options = BulkOptions::new().memory_bytes(memory_bytes);
        let mut collection = Collection::new(folder.path(), schema.clone(), &options).unwrap();
        for text in &all {
            collection
                .insert(Document::without_key(), &store.sketch_text(text).unwrap())
                .unwrap();
        }
        let collected = collection.finish().unwrap();
        let pairs = collected.pairs().run().unwrap().map(Result::unwrap);
        let found: BTreeSet<(u64, u64)> = pairs.map(|pair| (pair.a.get(), pair.b.get())).collect();
        let kept: Texts = all.iter().cloned().map(Some).collect();
        let of = |(a, text): (u64, &String)| {
            let later = near(&kept, text, 0.6)
                .into_iter()
                .filter(move |(b, _)| *b > a);
            later.map(move |(b, _)| (a, b)).collect::<Vec<_>>()
        };
        assert_eq!(found, (0..).zip(&all).flat_map(of).collect());
    }
}

#[test]
fn exact_schema_refuses_what_it_cannot_decide() {
    let builder = || Schema::builder().text(Text::words(1)).exact();
    refused(builder().simhash(SimHash::bits64()).build(), "exact");
    refused(
        Schema::builder()
            .minhash(MinHash::external(16))
            .exact()
            .build(),
        "exact",
    );
    let schema = schema(|builder| builder);
    let options = BulkOptions::new();
    refused(options.estimate(&schema, 1_000_000, 30, 0), "kept_hashes");
    let bytes_of = |features| {
        let options = options.clone().kept_hashes(features);
        options
            .estimate(&schema, 1_000_000, 30, 0)
            .unwrap()
            .disk_bytes
    };
    assert!((470_000_000..530_000_000).contains(&(bytes_of(100) - bytes_of(0))));
    let store = Store::in_memory(schema.clone()).unwrap();
    let bare = Signature::from_minhash(vec![1; 16]);
    let found = store.insert("a", &bare).unwrap_err();
    assert!(
        matches!(&found, Error::SignatureMismatch { part, .. } if *part == "exact set"),
        "{found}"
    );
    let snapshot = store.snapshot().unwrap();
    assert!(snapshot.query(&bare).run().is_err());
    let page = store.sketch_text("a b c").unwrap();
    let minhash = MinHash::new(16).threshold(0.6).banding(16, 1);
    let estimating = Schema::builder()
        .text(Text::words(1))
        .minhash(minhash)
        .build()
        .unwrap();
    let other = Store::in_memory(estimating).unwrap();
    assert!(other.insert("a", &page).is_err());
    let mut stream = Vec::new();
    snapshot.export(&mut stream).run().unwrap();
    assert!(matches!(
        other.import(&stream[..]).run(),
        Err(Error::OtherRecipe { part, .. }) if part == "exact sets"
    ));
    assert!(
        snapshot
            .query(&page)
            .bounds(Bounds::new())
            .run()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn exact_store_compares_with_all_documents_where_that_costs_less() {
    let schema = schema(|builder| builder.simhash(SimHash::bits64().max_distance(3)));
    let store = Store::in_memory(schema).unwrap();
    let all = texts(150);
    let sketch = |text: &String| store.sketch_text(text).unwrap();
    let signatures: Vec<Signature> = all.iter().map(sketch).collect();
    for signature in &signatures {
        store.insert(Document::without_key(), signature).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    for by in [Family::Any, Family::Both, Family::SimHash] {
        let bounds = Bounds::new().by(by).max_distance(30);
        let together = snapshot.query(&signatures).bounds(bounds).run().unwrap();
        for ((text, signature), answer) in all.iter().zip(&signatures).zip(&together) {
            let one = snapshot.query(signature).bounds(bounds).run().unwrap();
            assert_eq!(&one, answer);
            let is_near = |(other, found): &(&String, &Signature)| {
                let close = signature.hamming(found).unwrap() <= 30;
                let similar = jaccard(text, other) >= 0.6;
                match by {
                    Family::Any => close || similar,
                    Family::Both => close && similar,
                    _ => close,
                }
            };
            let expected = all.iter().zip(&signatures).filter(is_near).count();
            assert_eq!(one.len(), expected, "{by:?}");
            assert!(one.iter().all(|found| found.is_exact()));
        }
    }
}

/// The pairs of ids that a search returns, each with the lower id first.
type IdPairs = BTreeSet<(u64, u64)>;

/// Returns what pairs, queries of all documents and clusters find by a family, which must agree.
fn found_by(store: &Store, pages: &[Signature], by: Family) -> IdPairs {
    let (snapshot, bounds) = (store.snapshot().unwrap(), Bounds::new().by(by));
    let pairs = snapshot.pairs().bounds(bounds).run().unwrap();
    let ordered = |a: u64, b: u64| (a.min(b), a.max(b));
    let joined: IdPairs = pairs
        .map(|pair| pair.map(|pair| ordered(pair.a.get(), pair.b.get())))
        .collect::<Result<_, _>>()
        .unwrap();
    let mut asked = IdPairs::new();
    for (id, page) in (0..).zip(pages) {
        let found = snapshot.query(page).bounds(bounds).run().unwrap();
        let others = found.iter().map(|found| found.id().get());
        asked.extend(
            others
                .filter(|other| *other != id)
                .map(|other| ordered(id, other)),
        );
    }
    assert_eq!(joined, asked, "{by:?}");
    let clusters = snapshot.clusters().bounds(bounds).run().unwrap();
    let mut first_of: Vec<u64> = (0..pages.len() as u64).collect();
    for (a, b) in &joined {
        let [a, b] = [first_of[*a as usize], first_of[*b as usize]];
        let (least, other) = (a.min(b), a.max(b));
        for first in first_of.iter_mut().filter(|first| **first == other) {
            *first = least;
        }
    }
    let mut members = BTreeSet::new();
    for cluster in clusters {
        let ids: Vec<u64> = cluster.iter().map(|id| id.get()).collect();
        assert!(
            ids.iter().all(|id| first_of[*id as usize] == ids[0]),
            "{by:?}"
        );
        members.extend(ids);
    }
    let paired: BTreeSet<u64> = joined.iter().flat_map(|(a, b)| [*a, *b]).collect();
    assert_eq!(members, paired, "{by:?}");
    joined
}

/// A pair is near by either family if it is near by one of them, in every search, with and
/// without sets, and with fingerprints that are wider than the codes of tables.
#[test]
fn either_family_finds_what_one_of_them_finds() {
    let all = texts(90);
    for (simhash, distance, is_exact) in [
        (SimHash::bits64(), 3, false),
        (SimHash::bits64(), 8, true),
        (SimHash::bits128(), 6, true),
        (SimHash::bits128(), 18, false),
        (SimHash::bits64(), 10, false),
    ] {
        let minhash = MinHash::new(32).threshold(0.6).banding(8, 4);
        let simhash = simhash.max_distance(distance);
        let builder = Schema::builder().text(Text::words(1));
        let builder = builder.minhash(minhash).simhash(simhash);
        let schema = if is_exact { builder.exact() } else { builder };
        let place = Place::new();
        let store = sealing_after(40)
            .create(place.store(), schema.build().unwrap())
            .unwrap();
        let pages: Vec<Signature> = all
            .iter()
            .map(|text| store.sketch_text(text).unwrap())
            .collect();
        for page in &pages {
            store.insert(Document::without_key(), page).unwrap();
        }
        let by = |family| found_by(&store, &pages, family);
        let (similar, close) = (by(Family::MinHash), by(Family::SimHash));
        let either: IdPairs = similar.union(&close).copied().collect();
        assert_eq!(by(Family::Any), either, "distance {distance}");
        let both = by(Family::Both);
        assert!(both.is_subset(&close) && similar.intersection(&close).all(|it| both.contains(it)));
        let fingerprint = |id: u64| pages[id as usize].fingerprint().unwrap();
        let ids = (0..90).flat_map(|b| (0..b).map(move |a| (a, b)));
        let within =
            |(a, b): &(u64, u64)| fingerprint(*a).distance(&fingerprint(*b)) <= distance.into();
        assert_eq!(close, ids.filter(within).collect(), "distance {distance}");
        assert!(similar.len() > 100 && !similar.is_subset(&close));
    }
}
