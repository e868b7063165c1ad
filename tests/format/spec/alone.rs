//! Schemas and signatures by themselves: section 14.

use resemblance::distributed::Codec;
use resemblance::{Bounds, Error, Family, MinHash, Schema, Signature, SimHash, Store, Text};

use super::{code_block, hex};

#[test]
fn schema_and_signature_bytes_follow_the_specification() {
    let minhash = MinHash::new(16).value_bits(32).threshold(0.8).banding(2, 2);
    let schema = Schema::builder()
        .text(Text::words(2))
        .seed(42)
        .minhash(minhash)
        .simhash(SimHash::bits64().max_distance(1))
        .expected_documents(1_000)
        .build()
        .unwrap();
    let codec = Codec::new(&schema).unwrap();
    let signature = schema.sketcher().text("The cat sat on the mat.").unwrap();
    let bytes = codec.encode(&signature).unwrap();
    let mut lines = vec![
        format!("schema {}", hex(&schema.to_bytes().unwrap())),
        format!("fingerprint {:016x}", schema.recipe_fingerprint()),
        format!("self-test {:016x}", codec.self_test().unwrap()),
        format!("signature {}", hex(&bytes)),
        format!("digest {:032x}", signature.digest()),
    ];
    let buckets = codec.bucket_codes(&signature).unwrap();
    lines.extend(buckets.iter().map(|bucket| format!("bucket {bucket:016x}")));
    assert_eq!(lines, code_block("alone"));
    assert_eq!(codec.decode(&bytes).unwrap(), signature);
    assert_eq!(codec.decode(&bytes).unwrap().digest(), signature.digest());
}

/// A store of both families with these texts, and their signatures.
fn stored(texts: impl Iterator<Item = String>) -> (Store, Vec<Signature>) {
    let minhash = MinHash::new(64).threshold(0.5);
    let simhash = SimHash::bits64().max_distance(3);
    let builder = Schema::builder().text(Text::words(1)).minhash(minhash);
    let store = Store::in_memory(builder.simhash(simhash).build().unwrap()).unwrap();
    let signatures: Vec<_> = texts
        .map(|text| store.sketch_text(&text).unwrap())
        .collect();
    for (number, signature) in signatures.iter().enumerate() {
        store.insert(number.to_string(), signature).unwrap();
    }
    (store, signatures)
}

#[test]
fn distributed_codes_group_candidates() {
    let texts = (0..60).map(|n: u32| {
        let words = (0..30).map(|k| format!("w{}", (n / 3) * 40 + k + n % 3 * 4));
        words.collect::<Vec<_>>().join(" ")
    });
    let (store, signatures) = stored(texts);
    let codec = Codec::new(store.schema()).unwrap();
    let buckets: Vec<_> = signatures
        .iter()
        .map(|signature| codec.bucket_codes(signature).unwrap())
        .collect();
    let snapshot = store.snapshot().unwrap();
    for (signature, own) in signatures.iter().zip(&buckets) {
        let shares = |other: &Vec<u64>| own.iter().zip(other).any(|(a, b)| a == b);
        let expected: Vec<u64> = (0..)
            .zip(&buckets)
            .filter(|(_, b)| shares(b))
            .map(|(n, _)| n)
            .collect();
        let found = snapshot.query(signature).candidates().unwrap();
        let found: Vec<u64> = found.into_iter().map(|id| id.get()).collect();
        assert_eq!(found, expected);
    }
    assert!(
        codec
            .bucket_codes(&store.sketch_text("").unwrap())
            .unwrap()
            .is_empty()
    );
}

/// As a job on many machines finds pairs: candidates by codes, then the rule.
#[test]
fn distributed_pairs_equal_those_of_a_join() {
    let texts = (0..90).map(|n: u32| {
        let words = (0..30).map(|k| format!("w{}", (n / 5) * 40 + k + n % 5 / 2 * 3));
        words.collect::<Vec<_>>().join(" ")
    });
    let (store, signatures) = stored(texts);
    let codec = Codec::new(store.schema()).unwrap();
    let codes: Vec<_> = signatures
        .iter()
        .map(|signature| codec.bucket_codes(signature).unwrap())
        .collect();
    let exact = |a: usize, b: usize| 1.0 - (a + b) as f64 / 400.0;
    for (by, is_exact) in [Family::MinHash, Family::SimHash, Family::Any, Family::Both]
        .into_iter()
        .flat_map(|by| [(by, false), (by, true)])
    {
        let bounds = Bounds::new().by(by);
        let rule = codec.pair_rule(bounds).unwrap();
        let mut expected = Vec::new();
        for b in 0..signatures.len() {
            for a in 0..b {
                let shares = |lane: &usize| codes[a][*lane] == codes[b][*lane];
                let shared: Vec<usize> = rule.lanes().filter(shares).collect();
                let shares_band = shared.iter().any(|lane| *lane < rule.bands());
                let exact = is_exact.then(|| exact(a, b));
                let score = rule
                    .compare(&signatures[a], &signatures[b], exact, shares_band)
                    .unwrap();
                if score.is_pair && !shared.is_empty() {
                    expected.push(((a, b), (score.similarity, score.distance)));
                }
            }
        }
        let mut join = store.snapshot().unwrap().pairs().bounds(bounds);
        if is_exact {
            join = join.verify(move |a, b| Ok(Some(exact(a.get() as usize, b.get() as usize))));
        }
        let found = join.run().unwrap().map(|pair| pair.unwrap());
        let mut found: Vec<_> = found
            .map(|p| {
                (
                    (p.a.get() as usize, p.b.get() as usize),
                    (p.similarity, p.distance),
                )
            })
            .collect();
        found.sort_by_key(|(ids, _)| (ids.1, ids.0));
        assert_eq!(found, expected, "{by:?}, exact: {is_exact}");
        assert!(found.len() > 20, "{by:?}: {}", found.len());
    }
}

#[test]
fn pair_rule_refuses_what_does_not_fit_the_schema() {
    let schema = Schema::builder().minhash(MinHash::new(64)).build().unwrap();
    let codec = Codec::new(&schema).unwrap();
    let rule = codec.pair_rule(Bounds::new()).unwrap();
    let own = schema.sketcher().features(["a", "b"]).unwrap();
    assert!(rule.compare(&own, &own, Some(0.9), true).unwrap().is_pair);
    for other in [
        Signature::from_bottom_k(64, vec![1, 2]),
        Signature::from_minhash(vec![7; 32]),
        Signature::from_simhash(7),
    ] {
        for (a, b) in [(&own, &other), (&other, &own)] {
            let refused = rule.compare(a, b, Some(0.9), true);
            assert!(matches!(refused, Err(Error::SignatureMismatch { .. })));
        }
    }
    for exact in [f64::NAN, -0.1, 1.1] {
        let refused = rule.compare(&own, &own, Some(exact), true);
        assert!(matches!(refused, Err(Error::InvalidParameter { .. })));
    }
}

#[test]
fn impossible_signature_bytes_are_refused() {
    let schema = Schema::builder().minhash(MinHash::new(16)).build().unwrap();
    let codec = Codec::new(&schema).unwrap();
    let signature = schema.sketcher().features(["a", "b"]).unwrap();
    let bytes = codec.encode(&signature).unwrap();
    for length in 0..bytes.len() {
        assert!(codec.decode(&bytes[..length]).is_err());
    }
    for bit in 0..8 {
        let mut changed = bytes.clone();
        changed[0] ^= 1 << bit;
        // A signature without features is marked as one, and else is as any other.
        match codec.decode(&changed) {
            Ok(read) => assert_eq!((bit, codec.encode(&read).unwrap()), (4, changed)),
            Err(_) => assert_ne!(bit, 4),
        }
    }
    let other = Schema::builder().minhash(MinHash::new(32)).build().unwrap();
    let other = other.sketcher().features(["a", "b"]).unwrap();
    let read = codec.decode(&bytes).unwrap();
    assert!(codec.encode(&other).is_err() && other.jaccard(&read).is_err());
    assert_eq!(signature.jaccard(&read).unwrap(), 1.0);
}
