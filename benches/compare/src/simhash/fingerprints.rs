//! Generated fingerprints, the same in every run.

use crate::documents::mix;

/// Returns the fingerprint of document `number`. One in ten differs from that of an earlier
/// document in at most four bits, one more than the queries allow.
pub fn fingerprint(number: u64) -> u64 {
    if number % 10 != 9 {
        return random(number);
    }
    let earlier = random(mix(number) % number);
    flip(earlier, random(number), mix(!number) % 5)
}

fn random(number: u64) -> u64 {
    mix(mix(number))
}

/// Turns up to `bits` bits, in places that six bits each of `places` name.
fn flip(fingerprint: u64, places: u64, bits: u64) -> u64 {
    (0..bits).fold(fingerprint, |changed, bit| {
        changed ^ 1 << (places >> (6 * bit) & 63)
    })
}

/// Up to three bits from documents that are among the first `documents`.
pub fn near_earlier(documents: u64, count: u64) -> Vec<u64> {
    let probe = |probe| flip(fingerprint(mix(probe) % documents), mix(!probe), probe % 4);
    (0..count).map(probe).collect()
}

/// Returns fingerprints that belong to no document.
pub fn strangers(documents: u64, count: u64) -> Vec<u64> {
    (0..count)
        .map(|probe| random(10 * (documents + probe)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_have_the_intended_similarity() {
        let documents: Vec<u64> = (0..500).map(fingerprint).collect();
        let nearest = |probe: &u64| {
            let distances = documents.iter().map(|one| (one ^ probe).count_ones());
            distances.min()
        };
        let hits = near_earlier(500, 100);
        assert!(hits.iter().all(|probe| nearest(probe) <= Some(3)));
        assert!(hits.iter().any(|probe| nearest(probe) == Some(3)));
        let misses = strangers(500, 100);
        assert!(misses.iter().all(|probe| nearest(probe) > Some(3)));
    }
}
