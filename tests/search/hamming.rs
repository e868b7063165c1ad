//! Fingerprints within any distance that a query asks for, against brute force: by whole buckets, by the
//! buckets near them, and by a scan.

use crate::common::sample::{is_all, one_in};
use crate::common::{Place, Random, check_clean, sealing_after};
use resemblance::schema::TableDesign;
use resemblance::search::Scope;
use resemblance::{
    Bounds, Closed, Document, Matches, MinHash, Novelty, Schema, SearchOptions, Signature, SimHash,
    Snapshot, Store, Text,
};

/// A fingerprint, its lowest word first.
type Words = [u64; 4];

/// The bits of fingerprints, the greatest distance that is asked, and the groups of tables.
struct Case {
    bits: u16,
    max_distance: u32,
    groups: &'static [(u8, u8)],
}

const CASES: [Case; 11] = [
    case(32, 6, &[(1, 1), (1, 1)]),
    case(32, 6, &[(3, 2)]),
    case(64, 10, &[(1, 1), (1, 1), (1, 1), (1, 1)]),
    case(64, 10, &[(3, 2), (2, 2), (2, 2)]),
    case(64, 10, &[(1, 1)]),
    case(64, 10, &[(5, 2)]),
    case(128, 16, &[(1, 1), (1, 1), (1, 1), (1, 1), (1, 1), (1, 1)]),
    case(128, 16, &[(4, 2), (3, 2)]),
    case(256, 31, &[(1, 1); 16]),
    case(256, 31, &[(1, 1); 11]),
    case(256, 31, &[(6, 2), (5, 1)]),
];

const fn case(bits: u16, max_distance: u32, groups: &'static [(u8, u8)]) -> Case {
    Case {
        bits,
        max_distance,
        groups,
    }
}

impl Case {
    fn schema(&self) -> Schema {
        let simhash = match self.bits {
            32 => SimHash::bits32(),
            64 => SimHash::bits64(),
            bits => SimHash::external(bits),
        };
        let builder = Schema::builder().simhash(simhash.tables(self.groups));
        builder.build().unwrap()
    }

    fn signature(&self, words: Words) -> Signature {
        match self.bits {
            32 => Signature::from_fingerprint(words[0] as u32),
            64 => Signature::from_simhash(words[0]),
            128 => Signature::from_fingerprint(u128::from(words[1]) << 64 | u128::from(words[0])),
            _ => {
                let mut bytes = [0; 32];
                for (eight, word) in bytes.chunks_exact_mut(8).rev().zip(words) {
                    eight.copy_from_slice(&word.to_be_bytes());
                }
                Signature::from_fingerprint(bytes)
            }
        }
    }

    fn random(&self, random: &mut Random) -> Words {
        let words = [(); 4].map(|()| random.next());
        let mut kept = [0; 4];
        for bit in 0..usize::from(self.bits) {
            kept[bit / 64] |= words[bit / 64] & 1 << (bit % 64);
        }
        kept
    }

    /// Returns this fingerprint with `bits` bits changed.
    fn changed(&self, random: &mut Random, words: Words, bits: u32) -> Words {
        let mut changed = words;
        while distance(&changed, &words) < bits {
            let bit = random.below(self.bits.into()) as usize;
            changed[bit / 64] ^= 1 << (bit % 64);
        }
        changed
    }
}

fn distance(a: &Words, b: &Words) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

/// The contents of a store: ids with fingerprints.
type Held = Vec<(u64, Words)>;

fn expected(held: &Held, asked: &Words, max_distance: u32) -> Vec<(u64, u32)> {
    let near = held.iter().map(|(id, words)| (*id, distance(words, asked)));
    let mut near: Vec<(u64, u32)> = near.filter(|(_, d)| *d <= max_distance).collect();
    near.sort_unstable_by_key(|(id, distance)| (*distance, *id));
    near
}

fn found(matches: &resemblance::Matches) -> Vec<(u64, u32)> {
    let found = matches
        .iter()
        .map(|m| (m.id().get(), m.distance().unwrap()));
    found.collect()
}

/// Fills a store: random fingerprints, and clusters of near ones, of which some are removed again. Postings
/// are in runs and in memory.
fn fill(case: &Case, store: &Store, random: &mut Random) -> Held {
    let mut held = Held::new();
    for _ in 0..25 {
        let centre = case.random(random);
        let mut transaction = store.begin_write().unwrap();
        for member in 0..16 {
            let words = match member % 4 {
                3 => case.random(random),
                _ => {
                    let bits = random.below(u64::from(case.max_distance) + 3) as u32;
                    case.changed(random, centre, bits)
                }
            };
            let signature = case.signature(words);
            let id = transaction
                .insert(Document::without_key(), &signature)
                .unwrap();
            held.push((id.get(), words));
        }
        transaction.commit().unwrap();
    }
    let mut transaction = store.begin_write().unwrap();
    held.retain(|(id, _)| {
        let is_kept = id % 7 != 3;
        if !is_kept {
            assert!(
                transaction
                    .remove_id(resemblance::DocumentId::new(*id))
                    .unwrap()
            );
        }
        is_kept
    });
    transaction.commit().unwrap();
    held
}

/// Returns the queries: stored fingerprints, changed ones and unrelated ones.
fn asked(case: &Case, held: &Held, random: &mut Random) -> Vec<Words> {
    let mut asked = vec![case.random(random)];
    for index in 0..8 {
        let (_, words) = held[random.below(held.len() as u64) as usize];
        asked.push(case.changed(random, words, index % 5));
    }
    asked
}

/// Queries one distance in seven, one by one and all at once, with the cheapest method, and one
/// query in three also by tables. With `RESEMBLANCE_TESTS=all`, queries every distance, and each
/// query also by tables.
fn assert_complete(case: &Case, snapshot: &Snapshot, held: &Held, asked: &[Words]) -> Vec<Scope> {
    let design = case.schema().simhash().unwrap().clone();
    let signatures: Vec<Signature> = asked.iter().map(|words| case.signature(*words)).collect();
    let mut scopes = Vec::new();
    // The greatest is one of them.
    for max_distance in (0..=case.max_distance).rev().step_by(one_in(7)) {
        let reported = || format!("{design}, distance {max_distance}");
        let all: Vec<_> = asked
            .iter()
            .map(|w| expected(held, w, max_distance))
            .collect();
        for (number, (signature, expected)) in (max_distance..).zip(signatures.iter().zip(&all)) {
            let matches = snapshot
                .query(signature)
                .max_distance(max_distance)
                .run()
                .unwrap();
            assert_eq!(&found(&matches), expected, "{}", reported());
            assert_eq!((matches.recall(), matches.budget_exceeded()), (None, None));
            if max_distance <= TableDesign::complete_distance(design.groups()).into() {
                assert_eq!(matches.scope(), Scope::Candidates, "{}", reported());
            }
            scopes.push(matches.scope());
            if !(number as usize).is_multiple_of(one_in(3)) {
                continue;
            }
            // A caller who verifies is not asked about all documents, so that tables answer.
            let by_tables = snapshot.query(signature).max_distance(max_distance);
            match by_tables.verify(|_| Ok(None)).run() {
                Ok(matches) => {
                    assert_eq!(matches.scope(), Scope::Candidates);
                    assert_eq!(&found(&matches), expected, "tables of {}", reported());
                }
                Err(error) => {
                    assert!(error.to_string().contains("a million buckets"), "{error}");
                }
            }
        }
        let answers = snapshot
            .query(&signatures)
            .max_distance(max_distance)
            .run()
            .unwrap();
        assert!(answers.iter().map(found).eq(all), "many of {}", reported());
    }
    let is_varied = scopes.contains(&Scope::Candidates) && scopes.contains(&Scope::Scan);
    assert!(is_varied || !is_all());
    scopes
}

#[test]
fn hamming_queries_agree_with_brute_force() {
    let mut scopes = Vec::new();
    for (number, case) in (1..).zip(&CASES) {
        let place = Place::new();
        let mut random = Random(number);
        let store = sealing_after(100)
            .create(place.store(), case.schema())
            .unwrap();
        let held = fill(case, &store, &mut random);
        let asked = asked(case, &held, &mut random);
        let snapshot = store.snapshot().unwrap();
        scopes.extend(assert_complete(case, &snapshot, &held, &asked));
        drop(snapshot);
        assert_eq!(store.close().unwrap(), Closed::File);
        let store = Store::open(place.store()).unwrap();
        assert_complete(case, &store.snapshot().unwrap(), &held, &asked[..3]);
        assert_eq!(store.close().unwrap(), Closed::File);
        Store::compact(place.store()).run().unwrap();
        let store = Store::open(place.store()).unwrap();
        assert_complete(case, &store.snapshot().unwrap(), &held, &asked[..3]);
        assert_eq!(store.close().unwrap(), Closed::File);
        check_clean(&place.store());
    }
    assert!(scopes.contains(&Scope::Candidates) && scopes.contains(&Scope::Scan));
}

/// A budget is kept beyond whole buckets, where a scan would compare all documents. Where only a
/// scan could answer, the store reports that. A signature without an index is compared with
/// nothing.
#[test]
fn a_budget_does_not_trigger_a_scan() {
    let case = case(64, 10, &[(1, 1); 4]);
    let mut random = Random(5);
    let store = Store::in_memory(case.schema()).unwrap();
    let held = fill(&case, &store, &mut random);
    let snapshot = store.snapshot().unwrap();
    let asked = case.signature(held[0].1);
    let query = || snapshot.query(&asked).max_distance(10);
    let all = query().run().unwrap();
    assert_eq!((all.scope(), all.candidates()), (Scope::Scan, held.len()));
    let few = query().probe_budget(3).run().unwrap();
    assert_eq!(few.scope(), Scope::Candidates);
    assert!(
        few.candidates() <= 3 && few.budget_exceeded().is_some(),
        "{few:?}"
    );

    let empty = case.schema().sketcher().hashes([]).unwrap();
    let scanned = snapshot
        .query(&empty)
        .max_distance(10)
        .scan()
        .run()
        .unwrap();
    assert_eq!((scanned.scope(), scanned.candidates()), (Scope::Scan, 0));
    assert_eq!(store.metrics().candidates, 3 + held.len() as u64);
}

/// Pairs and clusters within distances that the stored tables prove, and within others: one distance in fourteen, one in two
/// with `RESEMBLANCE_TESTS=all`.
#[test]
fn hamming_joins_find_pairs_at_every_distance() {
    for (number, case) in (1..).zip(&CASES) {
        let mut random = Random(number);
        let store = sealing_after(100).create_in_memory(case.schema()).unwrap();
        let held = fill(case, &store, &mut random);
        let snapshot = store.snapshot().unwrap();
        for max_distance in (0..=case.max_distance).rev().step_by(2 * one_in(7)) {
            let mut expected = Vec::new();
            for (index, (b, second)) in held.iter().enumerate() {
                let near = held[..index]
                    .iter()
                    .map(|(a, first)| (*a, *b, distance(first, second)));
                expected.extend(near.filter(|(_, _, d)| *d <= max_distance));
            }
            expected.sort_unstable();
            for threads in [1, 3] {
                let pairs = snapshot.pairs().max_distance(max_distance).threads(threads);
                let pairs = pairs.run().unwrap().map(|pair| {
                    let pair = pair.unwrap();
                    (pair.a.get(), pair.b.get(), pair.distance.unwrap())
                });
                let mut pairs: Vec<_> = pairs.collect();
                pairs.sort_unstable();
                assert_eq!(
                    pairs, expected,
                    "{} bits, distance {max_distance}",
                    case.bits
                );
            }
            let clusters = snapshot
                .clusters()
                .max_distance(max_distance)
                .run()
                .unwrap();
            let clustered: usize = clusters.map(|cluster| cluster.len()).sum();
            let mut members: Vec<u64> = expected.iter().flat_map(|(a, b, _)| [*a, *b]).collect();
            members.sort_unstable();
            members.dedup();
            assert_eq!(clustered, members.len());
        }
        let expected = if case.bits == 32 {
            "at most 31"
        } else {
            "at most 63"
        };
        for distance in [64, u32::MAX] {
            let refused = snapshot.pairs().max_distance(distance).run();
            assert!(refused.err().unwrap().to_string().contains(expected));
        }
    }
}

/// A code holds a fingerprint of at most 64 bits, so that no signature of a flushed document is read. Of wider
/// ones it holds a part.
#[test]
fn whole_codes_need_no_signature_reads() {
    let cases = [
        (case(32, 3, &[(1, 1); 4]), true),
        (case(64, 3, &[(1, 1); 4]), true),
        (case(128, 3, &[(1, 1); 4]), false),
    ];
    for (case, codes_hold_all) in cases {
        let store = sealing_after(1).create_in_memory(case.schema()).unwrap();
        let mut random = Random(case.bits.into());
        let held = fill(&case, &store, &mut random);
        let asked = asked(&case, &held, &mut random);
        let signatures: Vec<Signature> = asked.iter().map(|words| case.signature(*words)).collect();
        let snapshot = store.snapshot().unwrap();
        let stats = snapshot.stats().run().unwrap();
        assert_eq!(stats.memtable_documents, 0);

        let before = store.metrics();
        let at_once = snapshot.query(&signatures).max_distance(3).run().unwrap();
        for ((signature, words), at_once) in signatures.iter().zip(&asked).zip(at_once.iter()) {
            let query = || snapshot.query(signature).max_distance(3);
            let alone = query().run().unwrap();
            let within_budget = query().probe_budget(100_000).run().unwrap();
            let expected = expected(&held, words, 3);
            for answer in [&alone, &within_budget, at_once] {
                assert_eq!(found(answer), expected);
                assert_eq!(answer.candidates(), alone.candidates());
            }
        }
        let after = store.metrics();
        assert!(after.candidates > before.candidates);
        let read = after.signatures_read - before.signatures_read;
        assert_eq!(read == 0, codes_hold_all, "{} bits: {read}", case.bits);
    }
}

/// A schema of four tables whose distance they prove only with the buckets near: nothing within the distance
/// gets in twice, alone, in batches, in groups, and in memory.
#[test]
fn hamming_probes_find_duplicates_in_other_buckets() {
    let simhash = SimHash::bits64().tables(&[(1, 1); 4]).max_distance(8);
    let schema = || Schema::builder().simhash(simhash.clone()).build().unwrap();
    let case = case(64, 8, &[(1, 1); 4]);
    let mut random = Random(77);
    let mut texts: Vec<Words> = (0..40).map(|_| case.random(&mut random)).collect();
    for index in 0..120 {
        let bits = random.below(12) as u32;
        texts.push(case.changed(&mut random, texts[index % 40], bits));
    }
    // The first within the distance keeps the later ones out.
    let mut kept: Vec<Words> = Vec::new();
    let mut is_new = Vec::new();
    for words in &texts {
        is_new.push(kept.iter().all(|other| distance(other, words) > 8));
        if is_new.last() == Some(&true) {
            kept.push(*words);
        }
    }
    assert!(kept.len() > 45 && kept.len() < 120, "{}", kept.len());
    let signatures: Vec<Signature> = texts.iter().map(|words| case.signature(*words)).collect();
    let news = |novelties: &[Novelty]| novelties.iter().map(Novelty::is_new).collect::<Vec<_>>();
    for batch in [1, 50, 160] {
        let place = Place::new();
        let store = sealing_after(30).create(place.store(), schema()).unwrap();
        let mut novelties = Vec::new();
        for (start, signatures) in (0..).step_by(batch).zip(signatures.chunks(batch)) {
            let keys: Vec<String> = (start..)
                .take(batch)
                .map(|n: usize| n.to_string())
                .collect();
            let documents: Vec<_> = keys.iter().map(Document::new).zip(signatures).collect();
            let mut transaction = store.begin_write().unwrap();
            novelties.extend(transaction.insert_many(&documents).if_new().run().unwrap());
            transaction.commit().unwrap();
        }
        assert_eq!(news(&novelties), is_new, "batches of {batch}");
        assert_eq!(store.snapshot().unwrap().pairs().run().unwrap().count(), 0);
        assert_eq!(store.close().unwrap(), Closed::File);
        check_clean(&place.store());
    }
}

/// Where either family suffices, a scan that only costs less keeps what the buckets hold: bands miss some documents of
/// the similarity, and the number of signatures that are asked together must not decide whether they are found.
#[test]
fn cheaper_scan_answers_as_buckets_do() {
    let minhash = MinHash::new(64).threshold(0.6);
    let simhash = SimHash::bits64().tables(&[(1, 1); 4]);
    let builder = Schema::builder().text(Text::words(1)).minhash(minhash);
    let store = Store::in_memory(builder.simhash(simhash).build().unwrap()).unwrap();
    let mut random = Random(17);
    let mut signatures = Vec::new();
    for _ in 0..400 {
        // Half of the words are the same in each tenth text.
        let family = random.below(40);
        let mut words: Vec<String> = (0..30).map(|n| format!("f{family}n{n}")).collect();
        for _ in 0..random.below(12) {
            let place = random.below(30) as usize;
            words[place] = format!("r{}", random.next());
        }
        let signature = store.sketch_text(&words.join(" ")).unwrap();
        store.insert(Document::without_key(), &signature).unwrap();
        signatures.push(signature);
    }
    let snapshot = store.snapshot().unwrap();
    let answers = |scan| {
        let mut options = SearchOptions::default();
        options.bounds = Bounds::new().min_similarity(0.6).max_distance(8);
        options.scan = scan;
        snapshot.query(&signatures).options(options).run().unwrap()
    };
    let (buckets, usual, everything) = (answers(Some(false)), answers(None), answers(Some(true)));
    assert!(usual.iter().all(|matches| matches.scope() == Scope::Scan));
    let found = |answers: &[Matches]| answers.iter().map(found).collect::<Vec<_>>();
    assert_eq!(found(&usual), found(&buckets));
    // The bands miss some, or this would show nothing.
    let count = |answers: &[Matches]| answers.iter().map(|matches| matches.len()).sum::<usize>();
    assert!(count(&everything) > count(&usual));
}
