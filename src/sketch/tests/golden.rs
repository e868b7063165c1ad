//! Frozen: a value here changes only together with the format.

use super::*;

#[test]
fn minhash_values() {
    let sketcher = sketcher(42, Some(16), None);
    let values = |hashes: &[u64]| {
        sketcher
            .hashes(hashes.iter().copied())
            .unwrap()
            .minhash()
            .unwrap()
            .to_vec()
    };
    assert_eq!(
        values(&[0]),
        [
            0xa26c_3ff7,
            0xaf28_baee,
            0x9ee4_df4e,
            0x9496_fed7,
            0xac42_e1a5,
            0xf14a_ef81,
            0x827d_31a9,
            0xa7ec_7ae5,
            0x6f84_09b2,
            0x66ec_c9e7,
            0xd988_8b38,
            0x9f82_1bdb,
            0xdffe_17f7,
            0xf73f_124a,
            0xf5b8_7576,
            0x3bbf_9aff
        ]
    );
    assert_eq!(
        values(&[0, 1, 2, 3]),
        [
            0x6ccc_463b,
            0x6f3c_460d,
            0x2c52_d759,
            0x34e9_089b,
            0x1a86_501a,
            0x40c0_59c4,
            0x03c2_5426,
            0x28db_1c0a,
            0x46fe_3fb5,
            0x4fb5_103c,
            0x21cd_65d9,
            0x74d0_42b1,
            0x060f_2b6f,
            0x2d9b_a477,
            0x3f94_afd2,
            0x39a9_2ded
        ]
    );
    let text = with_text(Text::words(5))
        .text("One two three four FIVE six")
        .unwrap();
    assert_eq!(
        text.minhash().unwrap()[..4],
        [0x4196_877a, 0x05da_31e2, 0x48d4_38c4, 0x0049_9f4b]
    );
    // Fewer values are the first ones of more.
    let more = super::sketcher(42, Some(128), None)
        .hashes([0, 1, 2, 3])
        .unwrap();
    assert_eq!(more.minhash().unwrap()[..16], values(&[0, 1, 2, 3]));
    assert_eq!(more.minhash().unwrap()[127], 0x30fe_7ab2);
}

#[test]
fn simhash_fingerprints() {
    let sketcher = sketcher(42, None, Some(64));
    let fingerprint = |hashes: &[u64]| sketcher.hashes(hashes.iter().copied()).unwrap().simhash();
    assert_eq!(fingerprint(&[0]), Some(0x3f34_2488_8a99_d4fd));
    assert_eq!(fingerprint(&[0, 1]), Some(0x3d20_3588_aab8_417f));
    assert_eq!(fingerprint(&[0, 1, 2, 3, 4]), Some(0xb4bc_0788_6efd_95f7));
    let weighted = sketcher.weighted_features([("a", 0.1), ("b", 2.5), ("c", 1e-3), ("a", 3.0)]);
    assert_eq!(weighted.unwrap().simhash(), Some(0x5410_24e3_3c55_3cd5));
    let text = with_text(Text::characters(9))
        .text("Σίσυφος rolls a STONE")
        .unwrap();
    assert_eq!(text.simhash(), Some(0x65c8_234e_7ee9_12c6));
}

fn recipes() -> [Recipe; 5] {
    let text = |text, recipe| Recipe {
        text: Some(text),
        ..recipe
    };
    [
        recipe(0, Some(128), None),
        text(Text::words(5), recipe(0, Some(128), None)),
        text(Text::characters(9), recipe(7, None, Some(64))),
        text(Text::words(256), recipe(u64::MAX, Some(16), Some(64))),
        Recipe {
            empty: EmptyDocuments::Alike,
            ..recipe(0, Some(128), None)
        },
    ]
}

#[test]
fn recipe_fingerprints() {
    let fingerprints = recipes().map(|recipe| recipe.fingerprint());
    assert_eq!(
        fingerprints,
        [
            0xc72c_da3b_3488_3eb7,
            0x0297_9ca6_5d43_9713,
            0x1f2b_6352_6a39_9709,
            0xb110_d746_44b3_0a46,
            0x4a23_733a_1d58_3727
        ]
    );
}

#[test]
fn self_tests() {
    let digests = recipes().map(|recipe| Sketcher::new(recipe).unwrap().self_test().unwrap());
    assert_eq!(
        digests,
        [
            0xa87e_3cc6_f520_868b,
            0x5fdf_0375_8816_9770,
            0xe1d2_40b5_3716_d449,
            0x61aa_3a9f_f2a2_062b,
            0xa87e_3cc6_f520_868b
        ]
    );
}

#[test]
fn every_part_of_the_recipe_is_in_its_fingerprint() {
    let base = recipe(0, Some(128), Some(64));
    let variants = [
        base.clone(),
        Recipe {
            text: Some(Text::words(5)),
            ..base.clone()
        },
        Recipe {
            text: Some(Text::words(6)),
            ..base.clone()
        },
        Recipe {
            text: Some(Text::characters(5)),
            ..base.clone()
        },
        Recipe {
            seed: 1,
            ..base.clone()
        },
        Recipe {
            empty: EmptyDocuments::Alike,
            ..base.clone()
        },
        Recipe {
            minhash_values: Some(64),
            ..base.clone()
        },
        Recipe {
            minhash_values: None,
            ..base.clone()
        },
        Recipe {
            simhash_bits: None,
            ..base
        },
    ];
    let mut fingerprints = variants.each_ref().map(Recipe::fingerprint);
    fingerprints.sort_unstable();
    assert!(fingerprints.windows(2).all(|two| two[0] != two[1]));
}
