//! The fingerprints and self-tests of recipes, and their encoding in the row `schema`.

use resemblance::schema::EmptyDocuments;
use resemblance::{Schema, Store, Text};

use crate::spec::code_block;
use crate::spec::dense::Dense;
use crate::spec::minhash::Kind;
use crate::spec::reader;
use crate::spec::recipe::{Containment, Recipe, Shingles, Unit};
use crate::spec::signatures::{minhash_of, simhash_of, vector_of};
use crate::spec::vectors::{check, number, string, text_of};

/// Returns the text after `name=`.
fn field<'a>(input: &'a str, name: &str) -> &'a str {
    let mut fields = input.split(' ').filter_map(|field| field.split_once('='));
    fields.find(|(found, _)| *found == name).unwrap().1
}

fn parse_recipe(input: &str) -> Recipe {
    let text = field(input, "text").split_once(':');
    let minhash = field(input, "minhash").split_once(':');
    Recipe {
        text: text.map(|(unit, n)| Shingles::new(Unit::named(unit), n.parse().unwrap())),
        seed: number(field(input, "seed")),
        alike: field(input, "empty") == "alike",
        minhash: minhash.map(|(kind, values)| (kind_of(kind), values.parse().unwrap())),
        simhash_bits: field(input, "simhash")
            .trim_end_matches('+')
            .parse()
            .unwrap(),
        counts: field(input, "simhash").ends_with('+'),
        containment: containment_of(input),
        set_bits: match input.split(' ').find_map(|it| it.strip_prefix("exact")) {
            None => 0,
            Some("") => 44,
            Some(bits) => bits.trim_start_matches('=').parse().unwrap(),
        },
    }
}

/// A kind of features by its name; vectors as `cosine/3`, or as `distance/3/0.5`.
fn kind_of(name: &str) -> Kind {
    let Some((measure, rest)) = name.split_once('/') else {
        return Kind::named(name);
    };
    let (dimensions, distance) = rest.split_once('/').unwrap_or((rest, ""));
    assert_eq!(measure == "cosine", distance.is_empty());
    Kind::Vector(Dense {
        dimensions: dimensions.parse().unwrap(),
        width: distance.parse().ok().map(|distance: f64| 4.0 * distance),
    })
}

/// Written as the other fields, if there is any: `containment=5/8`, `containment=5:100`; with a `+` with
/// positions.
fn containment_of(input: &str) -> Option<Containment> {
    let fields = input
        .split(' ')
        .find_map(|field| field.strip_prefix("containment="))?;
    let (fields, has_positions) = match fields.strip_suffix('+') {
        Some(fields) => (fields, true),
        None => (fields, false),
    };
    let is_scaled = fields.contains(':');
    let (units, number) = fields.split_once([':', '/']).unwrap();
    Some(Containment {
        units: units.parse().unwrap(),
        is_scaled,
        number: number.parse().unwrap(),
        has_positions,
    })
}

fn schema_of(recipe: &Recipe, text: Option<Text>) -> Schema {
    let mut schema = Schema::builder().seed(recipe.seed);
    if let Some(text) = text {
        schema = schema.text(text);
    }
    if recipe.alike {
        schema = schema.empty_documents(EmptyDocuments::Alike);
    }
    match recipe.minhash {
        None => {}
        Some((Kind::Vector(dense), values)) => {
            schema = schema.vector(vector_of(dense, values, recipe.set_bits).banding(1, 1));
        }
        Some((kind, values)) => {
            schema = schema.minhash(minhash_of(kind, values).banding(1, 1));
        }
    }
    if recipe.simhash_bits > 0 {
        schema = schema.simhash(simhash_of(recipe.simhash_bits).term_counts(recipe.counts));
    }
    if let Some(containment) = recipe.containment {
        let (units, number) = (containment.units, containment.number);
        let new = resemblance::Containment::new(units).positions(containment.has_positions);
        schema = schema.containment(match containment.is_scaled {
            true => new.scaled(number),
            false => new.window(number.try_into().unwrap()),
        });
    }
    if recipe.set_bits > 0 {
        schema = schema.exact_bits(recipe.set_bits);
    }
    schema.build().unwrap()
}

/// A new store of a recipe, as the independent reader sees it.
fn created(recipe: &Recipe, text: Option<Text>) -> reader::Store {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recipe.rsm");
    drop(Store::create(&path, schema_of(recipe, text)).unwrap());
    reader::Store::read(&path)
}

#[test]
fn schema_recipes_follow_the_specification() {
    let texts: Vec<String> = code_block("self-test").into_iter().map(string).collect();
    check("recipes", |input| {
        let recipe = parse_recipe(input);
        let own = (recipe.fingerprint(), recipe.self_test(&texts));
        let store = created(&recipe, recipe.text.map(text_of));
        assert_eq!(store.schema.recipe, recipe);
        if char::UNICODE_VERSION == (17, 0, 0) {
            assert_eq!(store.self_test, own, "{input}");
        }
        format!("{:016x} {:016x}", store.self_test.0, store.self_test.1)
    });
}

/// The block `languages`: letters, and the checksums of stop words and stems.
fn languages() -> Vec<([u8; 2], u64, u64)> {
    let parse = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let checksum = |digits| u64::from_str_radix(digits, 16).unwrap();
        let letters = fields[0].as_bytes().try_into().unwrap();
        (letters, checksum(fields[1]), checksum(fields[2]))
    };
    code_block("languages").into_iter().map(parse).collect()
}

/// Parses a field `text` of a recipe with steps, such as `words:2+nfkc+stem:en`.
fn parse_steps(input: &str) -> Shingles {
    let mut parts = input.split('+');
    let (unit, n) = parts.next().unwrap().split_once(':').unwrap();
    let mut shingles = Shingles::new(Unit::named(unit), n.parse().unwrap());
    for part in parts {
        let (step, letters) = part.split_once(':').unwrap_or((part, ""));
        let mut all = languages().into_iter();
        let language = all.find(|language| language.0 == letters.as_bytes());
        shingles.steps |= match step {
            "case" => 4,
            "spaces" | "unordered" => 8,
            "nfkc" => 16,
            "accents" => 32,
            "stop" => 64,
            "stem" => 128,
            other => panic!("no step {other}"),
        };
        let Some((letters, stop_words, stem)) = language else {
            continue;
        };
        match step {
            "stop" => shingles.stop_words = Some((letters, stop_words)),
            _ => shingles.stem = Some((letters, stem)),
        }
    }
    shingles
}

fn of_steps(input: &str) -> Recipe {
    Recipe {
        text: Some(parse_steps(field(input, "text"))),
        seed: 0,
        alike: false,
        minhash: Some((Kind::PairMultiply, 128)),
        simhash_bits: 0,
        counts: false,
        containment: None,
        set_bits: 0,
    }
}

/// Containment and seed: hashes -> kept hashes.
#[test]
fn kept_hashes_follow_the_specification() {
    check("kept", |input| {
        let (of, hashes) = input.rsplit_once(':').unwrap();
        let hashes: Vec<u64> = match hashes.split_once(" to ") {
            Some((first, last)) => (number(first.trim())..=number(last)).collect(),
            None => hashes.split_whitespace().map(number).collect(),
        };
        let recipe = Recipe {
            text: None,
            seed: number(field(of, "seed")),
            alike: false,
            minhash: None,
            simhash_bits: 0,
            counts: false,
            containment: containment_of(of),
            set_bits: 0,
        };
        let own = recipe.hashes(hashes.iter().copied()).kept.unwrap();
        let found = schema_of(&recipe, None).sketcher().hashes(hashes).unwrap();
        assert_eq!(found.kept_hashes().unwrap(), own, "{input}");
        own.iter()
            .map(|hash| format!("{hash:011x}"))
            .collect::<Vec<_>>()
            .join(" ")
    });
}

#[test]
fn text_steps_follow_the_specification() {
    check("recipes-with-steps", |input| {
        format!("{:016x}", of_steps(input).fingerprint())
    });
}

#[cfg(feature = "languages")]
mod with_languages {
    use resemblance::schema::Language;

    use super::*;

    fn text(shingles: Shingles) -> Text {
        let language = |(letters, _): ([u8; 2], u64)| -> Language {
            std::str::from_utf8(&letters).unwrap().parse().unwrap()
        };
        let mut text = text_of(shingles);
        if shingles.steps & 4 != 0 {
            text = text.keep_case();
        }
        if shingles.steps & 8 != 0 {
            text = match shingles.unit {
                Unit::Characters => text.remove_spaces(),
                Unit::Auto | Unit::Words | Unit::Code => text.unordered(),
            };
        }
        if shingles.steps & 16 != 0 {
            text = text.nfkc();
        }
        if shingles.steps & 32 != 0 {
            text = text.strip_accents();
        }
        if let Some(found) = shingles.stop_words {
            text = text.stop_words(language(found));
        }
        if let Some(found) = shingles.stem {
            text = text.stem(language(found));
        }
        text
    }

    #[test]
    fn stores_record_text_steps_as_specified() {
        for input in code_block("recipes-with-steps") {
            let recipe = of_steps(input);
            let store = created(&recipe, recipe.text.map(text));
            assert_eq!(store.schema.recipe, recipe);
            assert_eq!(store.self_test.0, recipe.fingerprint());
        }
    }

    #[test]
    fn stores_record_languages_as_specified() {
        let languages = languages();
        assert_eq!(languages.len(), Language::ALL.len());
        for (letters, stop_words, stem) in languages {
            let recipe = Recipe {
                text: Some(Shingles {
                    steps: 64 + 128,
                    stop_words: Some((letters, stop_words)),
                    stem: Some((letters, stem)),
                    ..Shingles::new(Unit::Words, 3)
                }),
                ..of_steps("text=words:3")
            };
            let store = created(&recipe, recipe.text.map(text));
            assert_eq!(store.schema.recipe, recipe);
        }
    }
}
