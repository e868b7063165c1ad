//! The kinds of MinHash, written from `format-spec.md` alone: the plainest form of each.

use std::collections::{BTreeMap, BTreeSet};

use crate::spec::dense::Dense;
use crate::spec::recipe::{GAMMA, derive, mix64};

/// Distinct hashes of features, each with a weight.
pub(crate) type Features = BTreeMap<u64, u64>;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    PairMultiply,
    MultiplyShift,
    Modular,
    Tabulation,
    Jenkins,
    OnePass,
    BottomK,
    Weighted,
    External,
    Probability,
    Vector(Dense),
}

impl Kind {
    /// All kinds of features.
    pub(crate) const ALL: [Self; 10] = [
        Self::PairMultiply,
        Self::MultiplyShift,
        Self::Modular,
        Self::Tabulation,
        Self::Jenkins,
        Self::OnePass,
        Self::BottomK,
        Self::Weighted,
        Self::External,
        Self::Probability,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PairMultiply => "pair-multiply",
            Self::MultiplyShift => "multiply-shift",
            Self::Modular => "modular",
            Self::Tabulation => "tabulation",
            Self::Jenkins => "jenkins",
            Self::OnePass => "one-pass",
            Self::BottomK => "bottom-k",
            Self::Weighted => "weighted",
            Self::External => "external",
            Self::Probability => "probability",
            Self::Vector(_) => "vectors",
        }
    }

    /// Appends the kind as the fingerprint of a recipe has it.
    pub(crate) fn append_to(self, bytes: &mut Vec<u8>) {
        match self {
            Self::PairMultiply => bytes.push(0),
            Self::MultiplyShift => bytes.push(1),
            Self::Modular => bytes.push(2),
            Self::Tabulation => bytes.push(3),
            Self::Jenkins => bytes.push(4),
            Self::OnePass => bytes.push(16),
            Self::BottomK => bytes.push(17),
            Self::Weighted => bytes.push(18),
            Self::External => bytes.push(19),
            Self::Probability => bytes.push(20),
            Self::Vector(dense) => dense.append_to(bytes),
        }
    }

    pub(crate) fn named(name: &str) -> Self {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.unwrap_or_else(|| panic!("no kind {name}"))
    }

    /// All but those of bottom-k, of vectors, and of external ones, which are not made.
    pub(crate) fn values(self, seed: u64, count: u16, features: &Features) -> Vec<u32> {
        match self {
            Self::BottomK | Self::External | Self::Vector(_) => Vec::new(),
            Self::OnePass => one_pass(seed, count.into(), features),
            Self::Weighted => weighted(seed, count.into(), features, offer_events),
            Self::Probability => weighted(seed, count.into(), features, offer_at_rate),
            family => minima(family, seed, count, features),
        }
    }
}

fn minima(family: Kind, seed: u64, count: u16, features: &Features) -> Vec<u32> {
    let key = derive(seed, 0);
    let mixed: Vec<u64> = features.keys().map(|hash| mix64(hash ^ key)).collect();
    let value = |i: u16| {
        let function = function(family, seed, i.into());
        mixed.iter().map(|u| function(*u)).min().unwrap_or(u32::MAX)
    };
    (0..count).map(value).collect()
}

fn function(family: Kind, seed: u64, i: u64) -> Box<dyn Fn(u64) -> u32> {
    let whole = move |n| derive(seed, n);
    let high = move |n| derive(seed, n) >> 32;
    match family {
        Kind::PairMultiply => {
            let (column, row) = (i % 16, i / 16);
            let a = high(16 + column) >> 5 << 5 | (2 * column + 1);
            let c = high(32 + 2 * row) >> 7 << 7 | (2 * row + 1);
            let b = high(33 + 2 * row);
            let sum = move |u: u64| {
                let (x, y) = (u128::from(u as u32), u128::from(u >> 32));
                u128::from(a) * x + u128::from(c) * y + u128::from(b)
            };
            Box::new(move |u| sum(u) as u32)
        }
        Kind::MultiplyShift => {
            let (a, b) = (whole(16 + 2 * i) | 1, whole(17 + 2 * i));
            Box::new(move |u| (a.wrapping_mul(u).wrapping_add(b) >> 32) as u32)
        }
        Kind::Modular => {
            let p = (1 << 61) - 1;
            let a = u128::from(whole(16 + 2 * i) % (p - 1) + 1);
            let b = u128::from(whole(17 + 2 * i) % p);
            Box::new(move |u| (((a * u128::from(u) + b) % u128::from(p)) >> 29) as u32)
        }
        Kind::Tabulation => {
            let place = |n: u64| high(16 + 2_048 * i + n);
            let table: Vec<u64> = (0..2_048).map(place).collect();
            Box::new(move |u: u64| {
                let bytes = u.to_le_bytes().into_iter().enumerate();
                let words = bytes.map(|(m, byte)| table[256 * m + usize::from(byte)]);
                words.fold(0, |value, word| value ^ word as u32)
            })
        }
        Kind::Jenkins => {
            let key = (high(16 + i) >> 10 << 10 | i) as u32;
            Box::new(move |u| jenkins(key, u as u32, (u >> 32) as u32))
        }
        other => panic!("{other:?} is no family"),
    }
}

fn jenkins(mut a: u32, mut b: u32, mut c: u32) -> u32 {
    for (r, s, t) in [(13, 8, 13), (12, 16, 5), (3, 10, 15)] {
        a = a.wrapping_sub(b).wrapping_sub(c) ^ (c >> r);
        b = b.wrapping_sub(c).wrapping_sub(a) ^ (a << s);
        c = c.wrapping_sub(a).wrapping_sub(b) ^ (b >> t);
    }
    c
}

/// The integer part of a product by 2⁶⁴, and the product modulo 2⁶⁴.
fn halves(a: u64, b: u64) -> (u64, u64) {
    let product = u128::from(a) * u128::from(b);
    ((product >> 64) as u64, product as u64)
}

fn one_pass(seed: u64, places: u64, features: &Features) -> Vec<u32> {
    let key = derive(seed, 2);
    let mut earliest = vec![u64::MAX; places as usize];
    for hash in features.keys() {
        let first = mix64(hash ^ key);
        for round in 0..2 * places {
            let word = match round {
                0 => first,
                _ => mix64(first.wrapping_add(round.wrapping_mul(GAMMA))),
            };
            let (place, time) = if round < places {
                let (place, time) = halves(word, places);
                (place, time >> 17)
            } else {
                (round - places, word >> 17)
            };
            let earliest = &mut earliest[place as usize];
            *earliest = (*earliest).min((round << 47) + time);
        }
    }
    let cut = |&arrival: &u64| match arrival {
        u64::MAX => u32::MAX,
        0 => 0,
        _ => {
            let exponent = arrival.ilog2();
            let above = u128::from(arrival - (1 << exponent));
            (exponent << 26) + (above << 26 >> exponent) as u32
        }
    };
    earliest.iter().map(cut).collect()
}

/// The hashes of bottom-k, at most `most`.
pub(crate) fn smallest(seed: u64, most: u16, features: &Features) -> Vec<u64> {
    let key = derive(seed, 3);
    let value = |hash: &u64| mix64(hash ^ key).min(u64::MAX - 1);
    let values: BTreeSet<u64> = features.keys().map(value).collect();
    values.into_iter().take(most.into()).collect()
}

/// The rows of bands that are made of the hashes of bottom-k.
pub(crate) fn rows_of_smallest(hashes: &[u64], most: u16) -> Vec<u32> {
    let count = u64::from(most / 8);
    let row = |j: u64| {
        let mixed = hashes.iter().map(|hash| mix64(hash.wrapping_add(GAMMA)));
        let mut bin = mixed.filter(|mixed| ((mixed >> 32) * count) >> 32 == j);
        bin.next()
            .map_or(u32::MAX, |mixed| below_last(mixed as u32))
    };
    (0..count).map(row).collect()
}

fn below_last(number: u32) -> u32 {
    number.min(u32::MAX - 1)
}

/// An event's time and word.
type Event = (f64, u64);

/// Offers the events of a feature until a time to the places.
type Offer = fn(u64, (u64, u64), f64, &mut [Event]);

/// Weights are in steps.
fn weighted(seed: u64, places: usize, features: &Features, offer: Offer) -> Vec<u32> {
    if features.is_empty() {
        return vec![u32::MAX; places];
    }
    // Events after every place's first event change nothing, so any bound suffices.
    let total: f64 = features.values().map(|weight| *weight as f64).sum();
    let mut last = 8.0 * places as f64 / total;
    loop {
        let mut firsts = vec![(f64::INFINITY, 0); places];
        for (hash, weight) in features {
            offer(seed, (*hash, *weight), last, &mut firsts);
        }
        if firsts.iter().all(|(time, _)| *time <= last) {
            let value = |(_, word): Event| below_last(mix64(word) as u32);
            return firsts.into_iter().map(value).collect();
        }
        last *= 2.0;
    }
}

/// Offers the events of a feature until the time `last`.
fn offer_events(seed: u64, (hash, weight): (u64, u64), last: f64, firsts: &mut [Event]) {
    let feature = mix64(hash ^ derive(seed, 4));
    let mut first_step = 0;
    for (block, end_bits) in (0..).zip([8, 12, 14].into_iter().chain(16..=63)) {
        if first_step >= weight {
            return;
        }
        let size = (1_u64 << end_bits) - first_step;
        for (time, word) in events(feature, block, size as f64, last) {
            if first_step + halves(mix64(word), size).0 < weight {
                offer_event((time, word), firsts);
            }
        }
        first_step += size;
    }
}

/// Offers the events of a feature of a distribution until the time `last`.
fn offer_at_rate(seed: u64, (hash, weight): (u64, u64), last: f64, firsts: &mut [Event]) {
    for event in events(mix64(hash ^ derive(seed, 6)), 0, weight as f64, last) {
        offer_event(event, firsts);
    }
}

/// The events of one block until the time `last`.
fn events(feature: u64, block: u64, rate: f64, last: f64) -> impl Iterator<Item = Event> {
    let mut sum = 0.0;
    let event = move |p: u64| {
        let word = mix64(feature.wrapping_add(((block << 32) + p).wrapping_mul(GAMMA)));
        sum += gap((word >> 32) as u32);
        (sum * (1.0 / rate), word)
    };
    (0..).map(event).take_while(move |(time, _)| *time <= last)
}

fn offer_event(event: Event, firsts: &mut [Event]) {
    let place = ((event.1 % (1 << 32)) * firsts.len() as u64) >> 32;
    let first = &mut firsts[place as usize];
    if event < *first {
        *first = event;
    }
}

pub(crate) fn gap(v: u32) -> f64 {
    let rest = (1 << 33) - 2 * u64::from(v) - 1;
    let e = rest.ilog2() as i32;
    // Both are exact: the number has 33 bits.
    let scaled = rest as f64 / 2_f64.powi(e) * 256.0 - 256.0;
    let (i, f) = (scaled.floor(), scaled.fract());
    let logarithm = |j: f64| negative_ln(1.0 + j / 256.0);
    let d = logarithm(i + 1.0) - logarithm(i);
    let c = 1.0 - (d * 0.5) * (1.0 - f);
    f64::from(33 - e) * f64::from_bits(0x3fe6_2e42_fefa_39ef) + (logarithm(i) + (d * f) * c)
}

pub(crate) fn negative_ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = f64::from((bits >> 52) as u32) - 1_023.0;
    let mut m = f64::from_bits(bits << 12 >> 12 | 1_023 << 52);
    if m > f64::from_bits(0x3ff6_a09e_667f_3bcd) {
        m *= 0.5;
        exponent += 1.0;
    }
    let a = (m - 1.0) / (m + 1.0);
    let z = a * a;
    let mut sum = 0.0;
    for odd in (1..=21).rev().step_by(2) {
        sum = sum * z + 1.0 / f64::from(odd);
    }
    -(exponent * f64::from_bits(0x3fe6_2e42_fefa_39ef) + (2.0 * a) * sum)
}

/// tf-idf for one occurrence, of a feature that `with` of `all` documents have.
pub(crate) fn rarity(all: u64, with: u64) -> f64 {
    negative_ln((1.0 + with as f64) / (1.0 + all as f64)) + 1.0
}

pub(crate) fn mix32(number: u32) -> u32 {
    let number = (number ^ (number >> 16)).wrapping_mul(0x85eb_ca6b);
    let number = (number ^ (number >> 13)).wrapping_mul(0xc2b2_ae35);
    number ^ (number >> 16)
}

pub(crate) fn low_bits(number: u32, bits: u8) -> u32 {
    (u64::from(number) % (1_u64 << bits)) as u32
}

pub(crate) fn cut(value: u32, bits: u8) -> u32 {
    match bits {
        32 => value,
        bits => low_bits(mix32(value), bits),
    }
}

pub(crate) fn pack(values: &[u32], bits: u8) -> Vec<u8> {
    let mut bytes = vec![0_u8; (values.len() * usize::from(bits)).div_ceil(8)];
    for (i, value) in values.iter().enumerate() {
        for j in 0..usize::from(bits) {
            let at = i * usize::from(bits) + j;
            bytes[at / 8] |= ((value >> j & 1) as u8) << (at % 8);
        }
    }
    bytes
}

pub(crate) fn unpack(bytes: &[u8], count: u16, bits: u8) -> Vec<u32> {
    let bit = |at: usize| u32::from(bytes[at / 8] >> (at % 8) & 1);
    let width = usize::from(bits);
    let value = |i: usize| (0..width).fold(0, |value, j| value | bit(i * width + j) << j);
    (0..count.into()).map(value).collect()
}
