//! Differences between the recipes of two schemas.

use std::fmt::Display;

use super::definition::Schema;
use crate::sketch::KEPT_HASH_BITS;

/// A part of the recipe in which two schemas differ.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecipeDifference {
    /// The name of the part.
    pub part: &'static str,
    /// The value of the other schema.
    pub found: String,
    /// The value of this schema.
    pub expected: String,
}

fn or_none(part: Option<impl Display>) -> String {
    part.map_or_else(|| "none".into(), |part| part.to_string())
}

impl Schema {
    /// Returns the first part of the recipe in which the schemas differ: `found` is the value of
    /// the other schema, `expected` that of this one. Returns `None` if both make the same
    /// signatures.
    pub fn recipe_difference(&self, other: &Self) -> Option<RecipeDifference> {
        let bits = |schema: &Self| schema.simhash().map(|simhash| simhash.bits());
        let are_equal = self.recipe == other.recipe && bits(self) == bits(other);
        if are_equal && self.unicode_version == other.unicode_version {
            return None;
        }
        let own = self.recipe_parts();
        let mut parts = other.recipe_parts().into_iter().zip(own);
        let named = parts.find(|((_, found), (_, expected))| found != expected);
        Some(match named {
            Some(((part, found), (_, expected))) => RecipeDifference {
                part,
                found,
                expected,
            },
            // The texts print equally, but the data of their stop words or stems differ.
            None => RecipeDifference {
                part: "text",
                found: format!("{:?}", other.recipe.text),
                expected: format!("{:?}", self.recipe.text),
            },
        })
    }

    /// The fingerprint of the weights of features, in words.
    pub fn weights_in_words(&self) -> String {
        or_none(
            self.weights()
                .map(|weights| format!("{:016x}", weights.fingerprint())),
        )
    }

    /// Returns the part of the recipe with this name, in words.
    pub fn recipe_part(&self, name: &str) -> Option<String> {
        if name == "weights" {
            return Some(self.weights_in_words());
        }
        let mut parts = self.recipe_parts().into_iter();
        parts
            .find(|(part, _)| *part == name)
            .map(|(_, words)| words)
    }

    fn recipe_parts(&self) -> [(&'static str, String); 8] {
        let recipe = &self.recipe;
        let minhash = recipe
            .minhash
            .map(|minhash| format!("{} values, {}", minhash.values, minhash.kind));
        let simhash = self.simhash().map(|simhash| {
            let made = match recipe.simhash_bits {
                Some(_) => "",
                None => ", external",
            };
            let counted = if recipe.simhash_counts {
                ", repeats count"
            } else {
                ""
            };
            format!("{} bits{made}{counted}", simhash.bits())
        });
        [
            ("text", or_none(recipe.text)),
            ("seed", recipe.seed.to_string()),
            ("MinHash", or_none(minhash)),
            ("SimHash", or_none(simhash)),
            ("empty documents", format!("{:?}", recipe.empty)),
            ("containment", or_none(recipe.containment)),
            (
                "exact sets",
                match recipe.exact_bits {
                    None => "none".into(),
                    Some(KEPT_HASH_BITS) => "kept".into(),
                    Some(bits) => format!("kept, of {bits} bits"),
                },
            ),
            ("Unicode version", format!("{:?}", self.unicode_version)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use crate::schema::{MinHash, Schema, SchemaBuilder, SimHash};
    use crate::sketch::{Containment, EmptyDocuments};
    use crate::text::Text;

    #[test]
    fn schema_difference_names_the_part() {
        let base = || {
            let builder = Schema::builder().text(Text::words(2));
            builder.minhash(MinHash::new(64)).simhash(SimHash::bits64())
        };
        let build = |builder: SchemaBuilder| builder.build().unwrap();
        let own = build(base());
        for (builder, part) in [
            (base().text(Text::words(3)), "text"),
            (base().seed(7), "seed"),
            (base().minhash(MinHash::new(128)), "MinHash"),
            (base().minhash(MinHash::one_pass(64)), "MinHash"),
            (base().simhash(SimHash::bits128()), "SimHash"),
            (base().containment(Containment::new(3)), "containment"),
            (base().exact(), "exact sets"),
            (
                base().empty_documents(EmptyDocuments::Alike),
                "empty documents",
            ),
        ] {
            let found = own.recipe_difference(&build(builder)).unwrap();
            assert_eq!(found.part, part);
            assert_ne!(found.found, found.expected);
        }
        for builder in [
            base(),
            base().minhash(MinHash::new(64).banding(5, 3).threshold(0.6)),
            base().minhash(MinHash::new(64).value_bits(4)),
            base().simhash(SimHash::bits64().max_distance(5)),
            base().expected_documents(7),
        ] {
            assert_eq!(own.recipe_difference(&build(builder)), None);
        }
    }
}
