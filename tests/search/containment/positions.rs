//! Compares the positions of shared passages with the texts themselves.

use std::ops::Range;

use resemblance::distributed::Codec;
use resemblance::exact::{longest_shared_passage, shared_spans, span_of_shingles};
use resemblance::{Containment, Overlaps, Schema, Snapshot, Store, Text};

use super::brute_force;
use super::store_of;
use crate::common::sample::one_in;
use crate::common::{Place, check_clean, sealing_after};

fn schemas() -> [Schema; 5] {
    let words = Text::words(4);
    let kinds = [
        (words, Containment::new(3).window(1)),
        (words, Containment::new(3).window(5)),
        (words.unordered(), Containment::new(2).window(3)),
        (Text::characters(5), Containment::new(6).window(9)),
        (words, Containment::new(2).scaled(3)),
    ];
    kinds.map(|(text, containment)| {
        let schema = Schema::builder().text(text).seed(3);
        let schema = schema.containment(containment.positions(true));
        schema.build().unwrap()
    })
}

fn shingles(cut: &Text, text: &str) -> Vec<String> {
    let mut shingles = Vec::new();
    cut.for_each_shingle(text, |shingle| shingles.push(shingle.to_owned()));
    shingles
}

/// Every passage is one of both texts, and all kept shingles that both have are in passages.
fn assert_placed(schema: &Schema, query: &str, answer: &Overlaps) -> usize {
    let cut = schema.containment_text().unwrap();
    let containment = schema.containment().unwrap();
    let mut passages = 0;
    for overlap in answer {
        let number = u64::from_be_bytes(overlap.key().unwrap().try_into().unwrap());
        let text = brute_force::text(number);
        let (of_query, of_text) = (shingles(&cut, query), shingles(&cut, &text));
        let shared = shared_spans(&cut, query, &text).unwrap();
        let span = |of: &str, range: &Range<usize>| {
            span_of_shingles(&cut, of, range.clone()).unwrap().unwrap()
        };
        let is_within = |span: Range<usize>, spans: &[Range<usize>]| {
            let mut spans = spans.iter();
            spans.any(|all| all.start <= span.start && span.end <= all.end)
        };
        let placed = overlap.passages().unwrap();
        for passage in placed {
            let here = &of_query[passage.query.clone()];
            let there = &of_text[passage.document.clone()];
            if cut == cut.unordered() {
                assert_eq!((here.first(), here.last()), (there.first(), there.last()));
            } else {
                assert_eq!(here, there, "{query} {text}");
            }
            assert!(is_within(span(query, &passage.query), &shared.spans_a));
            assert!(is_within(span(&text, &passage.document), &shared.spans_b));
        }
        let lengths = placed.iter().map(|passage| passage.query.len());
        let longest = lengths.max().unwrap();
        if containment.window_shingles() == Some(1) {
            let expected = longest_shared_passage(&cut, query, &text).unwrap().unwrap();
            assert_eq!(longest, expected.shingles, "{query} {text}");
            for (index, shingle) in of_query.iter().enumerate() {
                let is_detected = placed.iter().any(|it| it.query.contains(&index));
                assert_eq!(
                    is_detected,
                    of_text.contains(shingle),
                    "{query} {text} {index}"
                );
            }
        }
        passages += placed.len();
    }
    passages
}

/// For one in three of all texts, each with `RESEMBLANCE_TESTS=all`. Returns the number of passages.
fn assert_all_placed(schema: &Schema, snapshot: &Snapshot) -> usize {
    let texts: Vec<String> = (0..70).map(brute_force::text).collect();
    let sketcher = schema.sketcher();
    let queries: Vec<_> = texts
        .iter()
        .map(|text| sketcher.text(text).unwrap())
        .collect();
    let answers = snapshot.overlaps(&queries).run().unwrap();
    let asked = texts.iter().zip(&answers).step_by(one_in(3));
    let passages = asked
        .map(|(text, answer)| assert_placed(schema, text, answer))
        .sum();
    // A stored signature has its positions, and queries with it give the same answers as the text.
    let stored = (0_u64..60).zip(&queries).zip(&answers);
    for ((number, query), answer) in stored.step_by(one_in(3)) {
        let Some(stored) = snapshot.get(number.to_be_bytes()).unwrap() else {
            continue;
        };
        assert_eq!(stored.signature(), query);
        let again = snapshot.overlaps(stored.signature()).run().unwrap();
        assert_eq!(&again, answer);
    }
    passages
}

#[test]
fn passages_are_located_in_the_texts() {
    for schema in schemas() {
        let place = Place::new();
        let (store, _) = store_of(&place, &schema, 60);
        store.remove(7_u64.to_be_bytes()).unwrap();
        let found = assert_all_placed(&schema, &store.snapshot().unwrap());
        assert!(found > 300 / one_in(3), "{found}");
    }
}

/// Positions are part of a signature. They survive files, streams, repairs and encoding, and a text
/// in a different order has a different signature.
#[test]
fn positions_survive_copy_export_and_import() {
    let place = Place::new();
    let [schema, ..] = schemas();
    let (store, _) = store_of(&place, &schema, 60);
    let found = assert_all_placed(&schema, &store.snapshot().unwrap());

    let mut stream = Vec::new();
    store.snapshot().unwrap().export(&mut stream).run().unwrap();
    let imported = sealing_after(5)
        .create(place.file("imported"), schema.clone())
        .unwrap();
    imported.import(&stream[..]).run().unwrap();
    assert_eq!(
        assert_all_placed(&schema, &imported.snapshot().unwrap()),
        found
    );
    drop((store, imported));
    check_clean(&place.store());
    Store::compact(place.store()).run().unwrap();
    let store = Store::open(place.store()).unwrap();
    assert_eq!(
        assert_all_placed(&schema, &store.snapshot().unwrap()),
        found
    );
    drop(store);
    Store::repair(place.store(), place.file("repaired"))
        .run()
        .unwrap();
    let store = Store::open(place.file("repaired")).unwrap();
    assert_eq!(
        assert_all_placed(&schema, &store.snapshot().unwrap()),
        found
    );

    let codec = Codec::new(&schema).unwrap();
    let [there, turned] =
        ["a b c a b c", "b c a b c a"].map(|text| store.sketch_text(text).unwrap());
    assert_eq!(codec.decode(&codec.encode(&there).unwrap()).unwrap(), there);
    assert_eq!(there.kept_hashes(), turned.kept_hashes());
    assert!(there != turned && there.digest() != turned.digest());
    store.insert("turning", &there).unwrap();
    store.upsert("turning", &turned).unwrap();
    let stored = store.snapshot().unwrap().get("turning").unwrap().unwrap();
    assert_eq!(stored.signature(), &turned);

    // Without positions no passages are reported, and signatures of one schema do not fit the
    // other.
    let plain = Containment::new(3).window(1);
    let plain = Schema::builder()
        .text(Text::words(4))
        .seed(3)
        .containment(plain);
    let plain = Store::create(place.file("plain"), plain.build().unwrap()).unwrap();
    let page = plain.sketch_text("one two three four").unwrap();
    plain.insert("page", &page).unwrap();
    let found = plain.snapshot().unwrap().overlaps(&page).run().unwrap();
    assert_eq!((found.len(), found[0].passages()), (1, None));
    assert!(store.insert("page", &page).is_err());
}

/// Only the first positions of an endlessly repeated shingle are followed, so the search ends, and
/// it finds the longest passage.
#[test]
fn endless_repeats_are_located_at_their_first_places() {
    let [schema, ..] = schemas();
    let store = Store::in_memory(schema).unwrap();
    let repeated = "again ".repeat(20_000);
    store
        .insert(
            "page",
            &store.sketch_text(&format!("{repeated} end")).unwrap(),
        )
        .unwrap();
    let query = store.sketch_text(&format!("begin {repeated}")).unwrap();
    let found = store.snapshot().unwrap().overlaps(&query).run().unwrap();
    let passages = found[0].passages().unwrap();
    assert_eq!(passages.len(), 1);
    assert_eq!(
        (passages[0].query.clone(), passages[0].document.clone()),
        (1..19_999, 0..19_998)
    );
}
