//! Shared passages, against brute force over the texts.

mod brute_force;
mod corpora;
mod paths;
mod positions;

use std::collections::{BTreeMap, BTreeSet};

use resemblance::{Containment, MinHash, Schema, SimHash, Store, StoreOptions, Text};

use crate::common::{Place, Random, sealing_after};
use brute_force::Documents;

/// A store of documents that share passages, in many runs, and what is in it.
fn store_of(place: &Place, schema: &Schema, documents: u64) -> (Store, Documents) {
    let store = sealing_after(8)
        .create(place.store(), schema.clone())
        .unwrap();
    let mut held = Documents::new(schema);
    for number in 0..documents {
        let text = brute_force::text(number);
        store
            .insert(number.to_be_bytes(), &store.sketch_text(&text).unwrap())
            .unwrap();
        held.insert(number, &text);
    }
    (store, held)
}

fn schema(containment: Containment) -> Schema {
    let builder = Schema::builder().text(Text::words(5)).seed(11);
    builder.containment(containment).build().unwrap()
}

/// Words that no other text has.
fn filler(random: &mut Random, words: u64) -> String {
    let words = (0..words).map(|_| format!("x{:x}", random.next()));
    words.collect::<Vec<_>>().join(" ")
}

/// Every passage of w shingles that is planted in a page is found by a query that contains it
/// between other words. `RESEMBLANCE_PLANTED` sets the number of passages.
#[test]
fn containment_finds_every_planted_passage() {
    let planted =
        std::env::var("RESEMBLANCE_PLANTED").map_or(3_000, |count| count.parse().unwrap());
    let containment = Containment::new(4).window(6);
    let units = u64::from(containment.min_shared_units().unwrap());
    assert_eq!(units, 9);
    let store = Store::in_memory(schema(containment)).unwrap();
    let mut random = Random(7);
    let mut queries = Vec::new();
    let mut transaction = store.begin_write().unwrap();
    for number in 0..planted {
        let passage = filler(&mut random, units + number % 3);
        let mut around = |words| filler(&mut random, words);
        let page = format!("{} {passage} {}", around(number % 7), around(number % 11));
        let query = format!("{} {passage} {}", around(number % 5), around(number % 3));
        transaction
            .insert(number.to_be_bytes(), &store.sketch_text(&page).unwrap())
            .unwrap();
        queries.push(store.sketch_text(&query).unwrap());
    }
    transaction.commit().unwrap();
    let answers = store.snapshot().unwrap().overlaps(&queries).run().unwrap();
    for (number, answer) in (0_u64..).zip(answers) {
        let keys: Vec<_> = answer
            .iter()
            .map(|overlap| overlap.key().unwrap())
            .collect();
        assert!(keys.contains(&&number.to_be_bytes()[..]), "{number}");
        let own = &answer[0];
        assert!(own.longest_run() >= Some(1) && own.query_share() > 0.0);
    }
}

/// A query that a page contains as a whole has a share of one, whatever surrounds it.
#[test]
fn quotation_has_a_share_of_one() {
    let store = Store::in_memory(schema(Containment::new(3).window(5))).unwrap();
    let mut random = Random(3);
    for number in 0..50_u64 {
        let quotation = filler(&mut random, 7 + number);
        let page = format!(
            "{} {quotation} {}",
            filler(&mut random, 9),
            filler(&mut random, 9)
        );
        store
            .insert("page", &store.sketch_text(&page).unwrap())
            .unwrap();
        let query = store.sketch_text(&quotation).unwrap();
        let found = store
            .snapshot()
            .unwrap()
            .contained_in(&query)
            .min_share(1.0)
            .run()
            .unwrap();
        assert_eq!((found.len(), found[0].query_share()), (1, 1.0), "{number}");
        let page = store.sketch_text(&page).unwrap();
        let transaction = store.begin_write().unwrap();
        assert_eq!(
            transaction.contents_of(&page).run().unwrap()[0].document_share(),
            1.0
        );
        drop(transaction);
        store.remove("page").unwrap();
    }
}

/// Capped hashes are those that more documents have, removed ones not counted, on disk and in memory.
#[test]
fn containment_caps_boilerplate_and_reports_it() {
    let place = Place::new();
    let schema = schema(Containment::new(2).window(1));
    for flush_after in [4, 1_000] {
        let options = StoreOptions::new().flush_after(flush_after);
        let store = options
            .create(place.file(&flush_after.to_string()), schema.clone())
            .unwrap();
        for number in 0..10_u32 {
            let text = format!("all rights reserved page number{number} is own{number}");
            store
                .insert(number.to_be_bytes(), &store.sketch_text(&text).unwrap())
                .unwrap();
        }
        let query = store
            .sketch_text("all rights reserved page number3 is own3")
            .unwrap();
        let ask = |most| {
            let snapshot = store.snapshot().unwrap();
            let found = snapshot
                .overlaps(&query)
                .max_document_frequency(most)
                .run()
                .unwrap();
            (found.len(), found.capped_hashes(), found[0].query_share())
        };
        // "all rights", "rights reserved" and "reserved page" are in all, three more in one.
        assert_eq!(ask(10), (10, 0, 1.0));
        assert_eq!(ask(9), (1, 3, 1.0));
        store.remove(9_u32.to_be_bytes()).unwrap();
        assert_eq!(ask(9), (9, 0, 1.0));
        assert_eq!(ask(8), (1, 3, 1.0));
    }
}

#[test]
fn containment_refuses_unanswerable_queries() {
    let place = Place::new();
    let alone = Store::create(place.file("alone"), schema(Containment::new(2))).unwrap();
    let page = alone.sketch_text("one two three four five six").unwrap();
    alone.insert("page", &page).unwrap();
    let snapshot = alone.snapshot().unwrap();
    let refusal = |error: resemblance::Error| error.to_string();
    for error in [
        refusal(snapshot.query(&page).run().unwrap_err()),
        refusal(snapshot.nearest(&page, 3).run().unwrap_err()),
        refusal(snapshot.pairs().run().map(drop).unwrap_err()),
        refusal(alone.insert_if_new("other", &page).map(drop).unwrap_err()),
    ] {
        assert!(error.contains("containment alone"), "{error}");
    }
    assert!(snapshot.overlaps(&page).min_share(1.5).run().is_err());
    assert!(snapshot.overlaps(&page).min_shared(0).run().is_err());
    assert!(
        snapshot
            .overlaps(&page)
            .max_document_frequency(0)
            .run()
            .is_err()
    );

    let minhash = Schema::builder()
        .text(Text::words(2))
        .minhash(MinHash::new(64));
    let without = Store::create(place.file("without"), minhash.build().unwrap()).unwrap();
    let other = without.sketch_text("one two three").unwrap();
    let refused = refusal(
        without
            .snapshot()
            .unwrap()
            .overlaps(&other)
            .run()
            .unwrap_err(),
    );
    assert!(refused.contains("keeps no hashes"), "{refused}");
    assert!(alone.insert("other", &other).is_err() && without.insert("page", &page).is_err());
    for wrong in [
        Containment::new(0),
        Containment::new(257),
        Containment::new(5).window(0),
        Containment::new(5).window(1_025),
        Containment::new(5).scaled(0),
    ] {
        assert!(
            Schema::builder().containment(wrong).build().is_err(),
            "{wrong:?}"
        );
    }
    let external = Schema::builder().minhash(MinHash::external(16));
    assert!(external.containment(Containment::new(5)).build().is_err());
}

/// The mean of the estimates is the exact share, and their spread that of the theory.
#[test]
fn containment_estimates_are_unbiased_with_the_stated_error() {
    let (sets, size, shared) = (300_u64, 2_000_u64, 600_u64);
    let exact = shared as f64 / size as f64;
    let (mut sum, mut squares, mut variances) = (0.0, 0.0, 0.0);
    let builder = Schema::builder().containment(Containment::new(1).scaled(20));
    let store = Store::in_memory(builder.build().unwrap()).unwrap();
    for set in 0..sets {
        let first = set * 10 * size;
        let document = store.sketcher().hashes(first..first + size).unwrap();
        store.insert(set.to_be_bytes(), &document).unwrap();
        let start = first + size - shared;
        let query = store.sketcher().hashes(start..start + size).unwrap();
        let found = store.snapshot().unwrap().overlaps(&query).run().unwrap();
        let overlap = &found[0];
        sum += overlap.query_share() - exact;
        squares += (overlap.query_share() - exact).powi(2);
        variances += overlap.query_share_variance().unwrap();
    }
    let sets = sets as f64;
    let (bias, variance, said) = (sum / sets, squares / sets, variances / sets);
    // About 100 of 2,000 are kept: 0.3 x 0.7 / 100 x 0.95 = 0.002.
    assert!(bias.abs() < 4.0 * (variance / sets).sqrt(), "{bias}");
    assert!(
        (variance / said - 1.0).abs() < 4.0 * (2.0 / sets).sqrt(),
        "{variance} {said}"
    );
}

/// Beside other families, kept hashes change nothing of what these find.
#[test]
fn containment_leaves_other_families_unchanged() {
    let place = Place::new();
    let builder = || {
        let builder = Schema::builder().text(Text::words(2));
        let builder = builder.minhash(MinHash::new(32).banding(8, 2));
        builder.simhash(SimHash::bits64())
    };
    let with = builder()
        .containment(Containment::new(3).window(4))
        .build()
        .unwrap();
    let with = store_of(&place, &with, 120).0;
    let other = Place::new();
    let without = store_of(&other, &builder().build().unwrap(), 120).0;
    let (with, without) = (with.snapshot().unwrap(), without.snapshot().unwrap());
    for number in 0..120_u64 {
        let text = brute_force::text(number + 60);
        let ask = |snapshot: &resemblance::Snapshot| {
            let signature = snapshot.schema().sketcher().text(&text).unwrap();
            let found = snapshot.query(&signature).scan().run().unwrap();
            let near = snapshot.query(&signature).run().unwrap();
            let key =
                |found: &resemblance::Match| (found.id(), found.similarity(), found.distance());
            (
                found.iter().map(key).collect::<Vec<_>>(),
                near.iter().map(key).collect::<Vec<_>>(),
            )
        };
        assert_eq!(ask(&with), ask(&without));
    }
    let pairs = |snapshot: &resemblance::Snapshot| {
        let pairs = snapshot.pairs().run().unwrap();
        pairs
            .map(|pair| format!("{:?}", pair.unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(pairs(&with), pairs(&without));
}

/// The passages that a cap leaves out are the runs of shingles that more documents have, by counting all
/// texts; removed documents do not count, and a stored signature has no order.
#[test]
fn frequent_passages_are_runs_of_shingles_that_many_documents_have() {
    let place = Place::new();
    let units = 3;
    let schema = schema(Containment::new(units).window(1));
    let (store, _) = store_of(&place, &schema, 60);
    for number in (0..60_u64).step_by(7) {
        store.remove(number.to_be_bytes()).unwrap();
    }
    let shingles = |number: u64| {
        let mut shingles = Vec::new();
        let text = brute_force::text(number);
        let visit = |shingle: &str| shingles.push(shingle.to_owned());
        Text::words(units).for_each_shingle(&text, visit);
        shingles
    };
    let mut frequencies: BTreeMap<String, u64> = BTreeMap::new();
    for number in (0..60).filter(|number| number % 7 != 0) {
        for shingle in BTreeSet::from_iter(shingles(number)) {
            *frequencies.entry(shingle).or_insert(0) += 1;
        }
    }
    let snapshot = store.snapshot().unwrap();
    let mut passages = 0;
    for max_frequency in [1, 3, 10] {
        for number in 0..70 {
            let mut expected: Vec<(u64, u64, u64)> = Vec::new();
            for (position, shingle) in (0..).zip(shingles(number)) {
                let documents = frequencies.get(&shingle).map_or(0, |documents| *documents);
                if documents <= max_frequency {
                    continue;
                }
                match expected.last_mut().filter(|last| last.1 + 1 == position) {
                    Some(last) => (last.1, last.2) = (position, last.2.min(documents)),
                    None => expected.push((position, position, documents)),
                }
            }
            let query = store.sketch_text(&brute_force::text(number)).unwrap();
            let found = snapshot
                .overlaps(&query)
                .max_document_frequency(max_frequency);
            let found = found.frequent_passages().unwrap();
            let found = found[0].iter();
            let found = found.map(|it| (it.first_shingle, it.last_shingle, it.documents));
            passages += expected.len();
            assert_eq!(found.collect::<Vec<_>>(), expected, "{number}");
        }
    }
    assert!(passages > 20, "{passages}");
    let stored = snapshot.get(1_u64.to_be_bytes()).unwrap().unwrap();
    let refused = snapshot.overlaps(stored.signature()).frequent_passages();
    assert!(refused.unwrap_err().to_string().contains("from a store"));
}
