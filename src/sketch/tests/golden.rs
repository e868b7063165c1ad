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
            0x6298_7cb2,
            0xdade_afb8,
            0xfa9e_8b9e,
            0xe00c_3464,
            0x2c3e_d0ca,
            0xcd22_d250,
            0xd828_8fd6,
            0x0042_c0dc,
            0x0c04_2902,
            0x238b_8ee8,
            0x9124_14ae,
            0xacbb_81d4,
            0x13df_b1da,
            0x42e3_4000,
            0xb3a4_e646,
            0x5ea9_de4c
        ]
    );
    assert_eq!(
        values(&[0, 1, 2, 3]),
        [
            0x6298_7cb2,
            0x7ea9_c138,
            0x15ec_b877,
            0x63d9_335f,
            0x163e_14c3,
            0xa590_9b98,
            0x2ae3_4fef,
            0x0042_c0dc,
            0x0c04_2902,
            0x209e_b531,
            0x07dd_1f07,
            0x6e6c_2c7f,
            0x13df_b1da,
            0x42e3_4000,
            0x1a28_df70,
            0x1051_9388
        ]
    );
    let text = with_text(Text::words(5))
        .text("One two three four FIVE six")
        .unwrap();
    assert_eq!(
        text.minhash().unwrap()[..4],
        [0x18cf_4363, 0x011c_08c7, 0x46c4_55eb, 0xac6b_149e]
    );
    // Fewer values are the first ones of more.
    let more = crate::sketch::tests::sketcher(42, Some(128), None)
        .hashes([0, 1, 2, 3])
        .unwrap();
    assert_eq!(more.minhash().unwrap()[..16], values(&[0, 1, 2, 3]));
    assert_eq!(more.minhash().unwrap()[127], 0x0240_e7b2);
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

fn with_kind(kind: MinHashKind, recipe: Recipe) -> Recipe {
    let minhash = Some(MinHashRecipe { kind, values: 128 });
    Recipe { minhash, ..recipe }
}

/// Recipes with their fingerprints and digests.
fn recipes() -> [(Recipe, u64, u64); 14] {
    let text = |text, recipe| Recipe {
        text: Some(text),
        ..recipe
    };
    let family = |family| with_kind(MinHashKind::Functions(family), recipe(0, None, None));
    let of_words = |kind, simhash_bits| {
        let recipe = recipe(0, None, simhash_bits);
        with_kind(kind, text(Text::words(5), recipe))
    };
    let alike = Recipe {
        empty: EmptyDocuments::Alike,
        ..recipe(0, Some(128), None)
    };
    let long = text(Text::words(256), recipe(u64::MAX, Some(16), Some(64)));
    let external = with_kind(MinHashKind::External, recipe(0, None, None));
    let characters = text(Text::characters(9), recipe(7, None, Some(64)));
    let code = text(Text::code(5), recipe(0, None, Some(128)));
    [
        (
            family(Permutations::PairMultiply),
            0x14a0_638b_0d0d_d184,
            0x929d_eb99_f75a_7568,
        ),
        (alike, 0x9bd7_f6fa_331e_e359, 0x929d_eb99_f75a_7568),
        (
            text(Text::words(5), recipe(0, Some(128), None)),
            0xf557_9341_1d40_60c6,
            0x64e6_d0f0_3bbe_5199,
        ),
        (characters, 0x1f2b_6352_6a39_9709, 0xe1d2_40b5_3716_d449),
        (code, 0x6aa5_5ad3_251e_900d, 0xc20f_5ef3_02c6_1d89),
        (long, 0x9f0f_5ef0_06dd_a686, 0x2821_bc38_f34a_2c0d),
        (
            family(Permutations::MultiplyShift),
            0x6a5e_0a3a_659f_f91b,
            0xa87e_3cc6_f520_868b,
        ),
        (
            family(Permutations::Modular),
            0xda90_4661_b983_bdf0,
            0x0882_463e_48b8_8c0a,
        ),
        (
            family(Permutations::Tabulation),
            0xea9a_545c_56ff_365c,
            0x7be7_8fe4_8130_3b36,
        ),
        (
            family(Permutations::Jenkins),
            0x8a91_cf05_cd8d_60a7,
            0x1b45_d6e1_6d91_2f61,
        ),
        (
            of_words(MinHashKind::OnePass, None),
            0xc3a3_2991_487d_1dbf,
            0x6a83_46e7_ba88_ee4d,
        ),
        (
            of_words(MinHashKind::BottomK, Some(128)),
            0x60af_c1a5_52f6_304c,
            0x6f7b_a68c_2143_4723,
        ),
        (
            of_words(MinHashKind::Weighted, Some(64)),
            0x7f7d_580c_51bf_9efb,
            0xfedc_37aa_383b_0bc9,
        ),
        (external, 0x419c_7898_b56e_f171, 0x2d06_8005_38d3_94c2),
    ]
}

#[test]
fn recipe_fingerprints() {
    for (recipe, fingerprint, _) in recipes() {
        assert_eq!(recipe.fingerprint(), fingerprint, "{recipe:?}");
    }
}

#[test]
fn self_tests() {
    for (recipe, _, digest) in recipes() {
        let found = Sketcher::new(recipe.clone()).unwrap().self_test().unwrap();
        assert_eq!(found, digest, "{recipe:?}");
    }
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
            minhash: functions(64),
            ..base.clone()
        },
        Recipe {
            minhash: None,
            ..base.clone()
        },
        Recipe {
            simhash_bits: Some(128),
            ..base.clone()
        },
        Recipe {
            simhash_bits: None,
            ..base.clone()
        },
        with_kind(MinHashKind::Functions(Permutations::Jenkins), base.clone()),
        with_kind(MinHashKind::OnePass, base.clone()),
        with_kind(MinHashKind::External, base),
    ];
    let mut fingerprints = variants.each_ref().map(Recipe::fingerprint);
    fingerprints.sort_unstable();
    assert!(fingerprints.windows(2).all(|two| two[0] != two[1]));
}
