//! The languages with stop words and stems.

use std::fmt;
use std::str::FromStr;

use crate::error::{Result, SketchError};

/// Defines the languages: name, ISO 639-1 code, and the frozen checksums of stop words and of
/// stems.
macro_rules! languages {
    ($($name:ident $code:literal $stop_words:literal $stem:literal)*) => {
        /// A language with a list of stop words and a Snowball stemmer.
        ///
        /// `Display` and `FromStr` use the ISO 639-1 code. Texts with a language require the
        /// feature `languages`.
        ///
        /// ```
        /// use resemblance_sketch::Language;
        /// assert_eq!("en".parse::<Language>()?, Language::English);
        /// assert_eq!((Language::Greek.code(), Language::Greek.to_string().as_str()), ("el", "el"));
        /// assert!("xx".parse::<Language>().is_err());
        /// # Ok::<(), resemblance_sketch::SketchError>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Language {
            $(#[doc = concat!("The language with the code `", $code, "`.")] $name,)*
        }

        impl Language {
            /// All languages.
            pub const ALL: [Self; [$($code),*].len()] = [$(Self::$name),*];

            /// The ISO 639-1 code of two letters.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }

            /// The checksum of the stop words with which stores are made.
            pub(super) const fn stop_words_checksum(self) -> u64 {
                match self {
                    $(Self::$name => $stop_words,)*
                }
            }

            /// The code as two bytes, as files contain it.
            pub(super) const fn code_bytes(self) -> [u8; 2] {
                match self {
                    $(Self::$name => const { two_letters($code) },)*
                }
            }

            /// The stemmer, which has the same name.
            #[cfg(feature = "languages")]
            pub(super) fn stemmer(self) -> frostem::Stemmer {
                frostem::Stemmer::new(match self {
                    $(Self::$name => frostem::Algorithm::$name,)*
                })
            }

            /// The checksum of the stems with which stores are made.
            pub(super) const fn stem_checksum(self) -> u64 {
                match self {
                    $(Self::$name => $stem,)*
                }
            }
        }
    };
}

languages! {
    Arabic "ar" 0x44ff_de27_f575_334a 0xbe7f_2d1e_212f_9f0d
    Danish "da" 0xd49f_46d5_e857_db8f 0xf324_b30e_e598_8dc9
    Dutch "nl" 0x1fc8_42b7_9435_162a 0x0a4d_fb10_27be_48e1
    English "en" 0xe2f2_6bbe_8afa_b251 0xdcbc_3a8e_ec3f_97ea
    Finnish "fi" 0x03b8_c070_26c2_44a3 0xee23_bc8f_6522_1861
    French "fr" 0x1035_e1b8_5020_d19c 0xb702_0b3e_28bd_b3c0
    German "de" 0x6e87_dfb0_d8b0_c399 0xeb3a_4bd0_e1b0_b436
    Greek "el" 0x9d66_c212_12e1_5bf3 0xd005_2fac_7b23_a674
    Hungarian "hu" 0x603e_6f02_91ee_b04a 0xd4f6_0dda_5bbd_129a
    Italian "it" 0x608f_5416_fa08_e240 0x7d03_c7a1_b329_a028
    Norwegian "no" 0xaa90_8238_64f1_3b57 0x3945_b151_491d_269e
    Portuguese "pt" 0xc42f_4f7e_b551_8fe0 0x9083_36d4_b123_855f
    Romanian "ro" 0x5ba8_eb1c_baee_7cea 0x2adf_9351_102a_80df
    Russian "ru" 0x4f9d_3cb1_f443_d74b 0x5a03_7b7f_fd4a_0f30
    Spanish "es" 0xa586_56e0_359f_0ee7 0x9270_a0b0_988b_cc31
    Swedish "sv" 0xcb4d_bb98_da88_4cef 0x3cbb_10fe_cf53_70ac
    Turkish "tr" 0x1f2f_a5e2_af01_505b 0x75a6_10bc_b710_9c35
}

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn two_letters(code: &str) -> [u8; 2] {
    assert!(code.len() == 2);
    [code.as_bytes()[0], code.as_bytes()[1]]
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl FromStr for Language {
    type Err = SketchError;

    fn from_str(code: &str) -> Result<Self> {
        let found = Self::ALL
            .into_iter()
            .find(|language| language.code() == code);
        found.ok_or_else(|| {
            let codes = Self::ALL.map(Self::code).join(", ");
            SketchError::invalid("language", format!("{code:?}"), format!("one of {codes}"))
        })
    }
}
