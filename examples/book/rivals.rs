//! Chapter on Henzinger's comparison: MinHash, SimHash, and both, against exact similarities.

use resemblance::{MinHash, Schema, Signature, SimHash};

use crate::parts::{Chapter, PageParts, number};
use crate::reading::{BookTexts, NEAR, item};

/// The values, bands and rows of the paper, and the bands that must agree.
const VALUES: u16 = 84;
const ROWS: usize = 6;
const AGREEING: usize = 2;
/// The bits of a fingerprint, and the greatest distances: alone, and as a filter. The paper has 384 bits, of which 372
/// and 355 agree. These are the same shares of 128.
const BITS: u64 = 128;
const ALONE: u32 = 4;
const AS_FILTER: u32 = 9;
const SEEDS: u64 = 32;

/// The pairs that one of the algorithms returned, with all seeds.
#[derive(Clone, Copy, Default)]
struct Returned {
    all: u64,
    right: u64,
}

pub(crate) fn write(texts: &BookTexts, parts: &mut PageParts) -> Chapter {
    let mut returned = [Returned::default(); 3];
    for seed in 1..=SEEDS {
        let minhash = MinHash::new(VALUES).value_bits(32);
        let schema = Schema::builder()
            .minhash(minhash)
            .simhash(SimHash::bits128());
        let sketcher = schema.seed(seed).build()?.sketcher();
        let sketch = |hashes: &Vec<u64>| sketcher.hashes(hashes.iter().copied());
        let signatures = texts
            .features
            .iter()
            .map(sketch)
            .collect::<Result<Vec<_>, _>>()?;
        for pair in &texts.pairs {
            let (a, b) = (item(&signatures, pair.a)?, item(&signatures, pair.b)?);
            let by_values = agreeing(a, b).ok_or("they have values")? >= AGREEING;
            let distance = a.hamming(b)?;
            let finds = [
                by_values,
                distance <= ALONE,
                by_values && distance <= AS_FILTER,
            ];
            for (returned, _) in returned.iter_mut().zip(finds).filter(|(_, found)| *found) {
                returned.all += 1;
                returned.right += u64::from(pair.similarity >= NEAR);
            }
        }
    }
    let near = texts.pairs.iter().filter(|pair| pair.similarity >= NEAR);
    let (near, seeds) = (near.count() as f64, SEEDS as f64);
    let names = ["MinHash", "SimHash", "both in turn"];
    let rows = names
        .iter()
        .zip(returned)
        .map(|(name, Returned { all, right })| {
            let precision = if all > 0 {
                right as f64 / all as f64
            } else {
                0.0
            };
            vec![
                (*name).to_owned(),
                number("rival-returned", all as f64 / seeds, 1),
                number("rival-precision", precision, 3),
                number("rival-recall", right as f64 / (seeds * near), 3),
            ]
        });
    let columns = ["algorithm", "returned", "precision", "recall"];
    parts.table("rivals", &columns, rows.collect());
    for (name, value) in [
        ("rival-values", VALUES.into()),
        ("rival-bands", u64::from(VALUES) / ROWS as u64),
        ("rival-rows", ROWS as u64),
        ("rival-agreeing", AGREEING as u64),
        ("rival-bits", BITS),
        ("rival-alone", ALONE.into()),
        ("rival-filter", AS_FILTER.into()),
        ("rival-seeds", SEEDS),
    ] {
        parts.count(name, value);
    }
    Ok(())
}

/// Returns the number of bands in which two signatures agree.
fn agreeing(a: &Signature, b: &Signature) -> Option<usize> {
    let bands = a.minhash()?.chunks(ROWS).zip(b.minhash()?.chunks(ROWS));
    Some(bands.filter(|(a, b)| a == b).count())
}
