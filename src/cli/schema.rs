//! The options from which a schema is made.

use clap::{Args, ValueEnum};
use resemblance::{Bounds, EmptyDocuments, MinHash, Near, Schema, SimHash};

use super::arguments::BoundOptions;
use super::failure::{Failure, Result};
use super::text::TextOptions;

const DEFAULT_VALUES: u16 = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NearOption {
    /// Near by MinHash or by SimHash
    Any,
    /// Near by both
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EmptyOption {
    /// Documents without any feature resemble nothing
    Distinct,
    /// Documents without any feature resemble each other
    Alike,
}

/// How signatures are made and filed. Without --minhash and --simhash: 128 MinHash values.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Schema")]
pub(crate) struct SchemaOptions {
    #[command(flatten)]
    text: TextOptions,
    /// MinHash with K values [default: 128, unless --simhash is given alone]
    #[arg(long, value_name = "K")]
    minhash: Option<u16>,
    /// Share of the pairs right at the threshold that must be found [default: 0.95]
    #[arg(long, value_name = "R", conflicts_with_all = ["bands", "rows"])]
    recall: Option<f64>,
    /// Explicit number of bands
    #[arg(long, value_name = "B", requires = "rows")]
    bands: Option<u16>,
    /// Explicit number of rows a band
    #[arg(long, value_name = "R", requires = "bands")]
    rows: Option<u16>,
    /// SimHash fingerprints of this many bits: 64
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    simhash: Option<u16>,
    /// Number of documents to lay the store out for
    #[arg(long, value_name = "N")]
    expected: Option<u64>,
    /// Seed of all hashing [default: 1]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// With both families: near by any of them (default) or by both
    #[arg(long, value_name = "WHICH")]
    near: Option<NearOption>,
    /// Documents without any feature: distinct (default) or alike
    #[arg(long, value_name = "HOW")]
    empty: Option<EmptyOption>,
}

impl SchemaOptions {
    /// A new schema; `bounds` are its threshold and distance.
    pub(crate) fn build(&self, bounds: &BoundOptions) -> Result<Schema> {
        let mut schema = Schema::builder().text(self.text.text());
        if let Some(minhash) = self.minhash_options(bounds)? {
            schema = schema.minhash(minhash);
        }
        if self.simhash.is_some() {
            let mut simhash = SimHash::bits64();
            if let Some(distance) = bounds.distance {
                simhash = simhash.max_distance(distance);
            }
            schema = schema.simhash(simhash);
        } else if bounds.distance.is_some() {
            return Err(Failure::usage("--distance needs --simhash 64"));
        }
        if let Some(number) = self.expected {
            schema = schema.expected_documents(number);
        }
        if let Some(seed) = self.seed {
            schema = schema.seed(seed);
        }
        match self.near {
            None => {}
            Some(NearOption::Any) => schema = schema.near(Near::Any),
            Some(NearOption::Both) => schema = schema.near(Near::Both),
        }
        match self.empty {
            None => {}
            Some(EmptyOption::Distinct) => {
                schema = schema.empty_documents(EmptyDocuments::Distinct);
            }
            Some(EmptyOption::Alike) => schema = schema.empty_documents(EmptyDocuments::Alike),
        }
        Ok(schema.build()?)
    }

    fn minhash_options(&self, bounds: &BoundOptions) -> Result<Option<MinHash>> {
        if self.minhash.is_none() && self.simhash.is_some() {
            let needs_minhash = [
                ("--threshold", bounds.threshold.is_some()),
                ("--recall", self.recall.is_some()),
                ("--bands", self.bands.is_some()),
            ];
            return match needs_minhash.iter().find(|(_, is_given)| *is_given) {
                Some((name, _)) => Err(Failure::usage(format!(
                    "{name} needs MinHash: add --minhash K, or leave --simhash out"
                ))),
                None => Ok(None),
            };
        }
        let mut minhash = MinHash::new(self.minhash.unwrap_or(DEFAULT_VALUES));
        if let Some(threshold) = bounds.threshold {
            minhash = minhash.threshold(threshold);
        }
        if let Some(recall) = self.recall {
            minhash = minhash.recall(recall);
        }
        if let Some((bands, rows)) = self.bands.zip(self.rows) {
            minhash = minhash.banding(bands, rows);
        }
        Ok(Some(minhash))
    }

    /// The options that were given, each with whether it agrees with `schema`.
    fn given(&self, schema: Option<&Schema>) -> Vec<(&'static str, bool)> {
        let minhash = schema.and_then(Schema::minhash);
        let agreements = [
            (
                "--minhash",
                self.minhash
                    .map(|k| minhash.is_some_and(|m| m.values() == k)),
            ),
            ("--recall", self.recall.map(|_| false)),
            (
                "--bands",
                self.bands.map(|b| minhash.is_some_and(|m| m.bands() == b)),
            ),
            (
                "--rows",
                self.rows.map(|r| minhash.is_some_and(|m| m.rows() == r)),
            ),
            (
                "--simhash",
                self.simhash
                    .map(|_| schema.is_some_and(|s| s.simhash().is_some())),
            ),
            ("--expected", self.expected.map(|_| false)),
            (
                "--seed",
                self.seed.map(|n| schema.is_some_and(|s| s.seed() == n)),
            ),
            ("--near", self.near.map(|_| false)),
            ("--empty", self.empty.map(|_| false)),
        ];
        let text = self.text.agreements(schema);
        let given = text.into_iter().chain(agreements);
        given
            .filter_map(|(name, agrees)| Some((name, agrees?)))
            .collect()
    }

    /// An error if any option says otherwise than an existing store's schema.
    pub(crate) fn must_agree(&self, schema: &Schema) -> Result<()> {
        match self.given(Some(schema)).iter().find(|(_, agrees)| !agrees) {
            None => Ok(()),
            Some((name, _)) => Err(Failure::usage(format!(
                "{name}: the store has its own schema, which decides: {}",
                one_line(schema)
            ))),
        }
    }
}

fn one_line(schema: &Schema) -> String {
    let text = schema.to_string();
    text.split('\n')
        .map(str::trim)
        .collect::<Vec<_>>()
        .join("; ")
}

impl BoundOptions {
    /// Bounds on what is reported from a store.
    pub(crate) fn bounds(&self) -> Bounds {
        let mut bounds = Bounds::new();
        if let Some(threshold) = self.threshold {
            bounds = bounds.min_similarity(threshold);
        }
        if let Some(distance) = self.distance {
            bounds = bounds.max_distance(u32::from(distance));
        }
        bounds
    }

    /// True if any bound was given.
    pub(crate) fn is_given(&self) -> bool {
        self.threshold.is_some() || self.distance.is_some()
    }

    /// An error if a bound was given for a family that the store does not have.
    pub(crate) fn must_suit(&self, schema: &Schema) -> Result<()> {
        if self.threshold.is_some() && schema.minhash().is_none() {
            return Err(Failure::usage("--threshold: the store has no MinHash"));
        }
        if self.distance.is_some() && schema.simhash().is_none() {
            return Err(Failure::usage("--distance: the store has no SimHash"));
        }
        Ok(())
    }

    /// The same, and an error if a bound lies beyond the store's own.
    pub(crate) fn must_lie_within(&self, schema: &Schema) -> Result<()> {
        self.must_suit(schema)?;
        let own = schema.minhash().map(|minhash| minhash.threshold());
        if let Some((given, own)) = self.threshold.zip(own).filter(|(given, own)| given < own) {
            return Err(Failure::usage(format!(
                "--threshold {given} lies below {own}, for which the store was made"
            )));
        }
        let own = schema.simhash().map(|simhash| simhash.max_distance());
        if let Some((given, own)) = self.distance.zip(own).filter(|(given, own)| given > own) {
            return Err(Failure::usage(format!(
                "--distance {given} lies above {own}, for which the store was made"
            )));
        }
        Ok(())
    }
}

fn parse_bits(text: &str) -> Result<u16, String> {
    match text {
        "64" => Ok(64),
        _ => Err("expected 64".into()),
    }
}
