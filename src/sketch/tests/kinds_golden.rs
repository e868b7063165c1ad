//! Frozen: a value here changes only together with the format.

use crate::sketch::b_bit::{cut, pack};
use crate::sketch::bottom_k::{BottomK, rows};
use crate::sketch::one_pass::OnePass;
use crate::sketch::weighted::{WeightedMinHasher, negative_ln};

fn hex<T: std::fmt::LowerHex>(values: &[T], digits: usize) -> String {
    let words: Vec<String> = values
        .iter()
        .map(|value| format!("{value:0digits$x}"))
        .collect();
    words.join(" ")
}

fn one_pass(seed: u64, hashes: impl IntoIterator<Item = u64>) -> String {
    let sketch = OnePass::new(seed, 16);
    let mut state = sketch.state();
    sketch.update(&mut state, hashes);
    hex(&sketch.values(state)[..6], 8)
}

fn bottom_k(seed: u64, hashes: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let sketch = BottomK::new(seed, 16);
    let mut state = sketch.state();
    sketch.update(&mut state, hashes);
    sketch.values(&state)
}

fn weighted(seed: u64, features: &[(u64, u64)]) -> String {
    hex(&WeightedMinHasher::new(seed, 16).values(features)[..6], 8)
}

#[test]
fn one_pass_values() {
    let found = [
        one_pass(42, [0]),
        one_pass(42, 0..4),
        one_pass(42, 0..1_000),
        one_pass(1, [u64::MAX, 7]),
    ];
    let expected = [
        "c9dcbcc8 c06a4cd8 c801ccb0 c92de200 cd0f82d6 bea558f9",
        "c65557c8 c06a4cd8 c801ccb0 c36764de bce5fbda bea558f9",
        "a2b2ce0b a810bf81 a2fe16d2 a6e47646 a18adb12 962a1c94",
        "b845179c c06b32e4 c55ca6c2 c865182b c3bcf5fa bf83f34b",
    ];
    assert_eq!(found, expected);
}

#[test]
fn bottom_k_values() {
    let found = [
        hex(&bottom_k(42, 0..3), 16),
        hex(&bottom_k(42, 0..1_000)[..3], 16),
        hex(&rows(&bottom_k(42, 0..3), 2), 8),
        hex(&rows(&bottom_k(42, 0..1_000), 2), 8),
        hex(&rows(&bottom_k(42, []), 2), 8),
    ];
    let expected = [
        "65ef9452c080ead7 91b0f3eee40b871b f4f3f2f049ee7c77",
        "002db06243a31ac6 00928179eb7b6ade 009be646f070e9e4",
        "8b156804 ffffffff",
        "688bd948 cf129015",
        "ffffffff ffffffff",
    ];
    assert_eq!(found, expected);
}

#[test]
fn weighted_values() {
    let found = [
        weighted(42, &[(0, 65_536)]),
        weighted(42, &[(0, 65_536), (1, 65_536)]),
        weighted(42, &[(0, 1), (1, 100_000), (2, 1 << 32)]),
        weighted(1, &[(7, 3)]),
    ];
    let expected = [
        "85f0ae0d b5764f80 56f2dcc0 d8dc5e4c bb5b772a 79aadf8e",
        "445a1f04 672b86f1 ef30688a 13a8171e bb5b772a e700fe8e",
        "3c543c00 7adcf2fc 20dcd596 dac2ff65 0be9af53 b8a12b07",
        "6f2e57c7 d4442238 8538c109 81532b25 d3b3cfd8 b1e64415",
    ];
    assert_eq!(found, expected);
    let logarithms =
        [0.5, 0.1, 1.0 / 9_007_199_254_740_992.0, 0.999].map(|x| negative_ln(x).to_bits());
    assert_eq!(
        hex(&logarithms, 16),
        "3fe62e42fefa39ef 40026bb1bbb55515 40425e4f7b2737fa 3f5064670d979b73"
    );
}

#[test]
fn cut_values() {
    let values = [0, 1, 2, 3, 0xffff_fffe, u32::MAX];
    assert_eq!(
        hex(&values.map(|value| cut(value, 32)), 8),
        "00000000 514e28b7 30f4c306 85f0b427 7995c304 81f16f39"
    );
    assert_eq!(
        hex(&values.map(|value| cut(value, 16)), 4),
        "0000 28b7 c306 b427 c304 6f39"
    );
    assert_eq!(
        hex(&pack(values.map(|value| cut(value, 4)), 4), 2),
        "70 76 94"
    );
}
