//! The verb `pairs`.

use std::path::PathBuf;

use clap::Args;
use resemblance::{LeftOut, Pairs, Schema};

use super::Context;
use super::arguments::{BoundOptions, CorpusOptions, FormatOptions, JoinLimits};
use super::expect::{self, Product};
use super::failure::{Outcome, Result};
use super::keys::Keys;
use super::progress::Progress;
use super::results::{Column, Results, Value};
use super::schema::SchemaOptions;
use super::spill::{Label, Row, Sorted, Sorter};
use super::subject::{Subject, SubjectOptions};
use super::verify::VerifyOptions;

/// List all near-duplicate pairs of a store or a corpus
///
/// tsv columns: key_a, key_b, similarity_estimate (six decimals; from the signatures); key_a < key_b
/// in byte order, lines sorted by both, documents without a key last. With --verify exact the
/// column is called similarity and is exact. With SimHash alone the third column is the distance,
/// with both families the distance is a fourth. jsonl fields: id_a, key_a, id_b, key_b,
/// similarity_estimate or similarity, distance (null where there is none).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance pairs seen.rsm --threshold 0.9
  resemblance pairs a.jsonl b.jsonl.gz --chars 9 --threshold 0.7 --format jsonl
  resemblance pairs corpus.jsonl --verify exact --header
  resemblance pairs texts/ --include '*.md'")]
pub(crate) struct Arguments {
    /// One store (told by its content), or JSON Lines files, folders, - (see resemblance --help)
    #[arg(required = true, value_name = "STORE|CORPUS")]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    bounds: BoundOptions,
    #[command(flatten)]
    limits: JoinLimits,
    #[command(flatten)]
    verify: VerifyOptions,
    #[command(flatten)]
    schema: SchemaOptions,
    #[command(flatten)]
    options: CorpusOptions,
    #[command(flatten)]
    format: FormatOptions,
}

/// The columns that say how near two documents are, given the name of the similarity.
pub(crate) fn nearness_columns(schema: &Schema, similarity: &'static str) -> [Column; 2] {
    [
        Column::shown_if(similarity, schema.minhash().is_some()),
        Column::shown_if("distance", schema.simhash().is_some()),
    ]
}

/// A document in a result.
pub(crate) fn document(label: &Label) -> Value<'_> {
    Value::Document {
        id: label.id(),
        key: label.key(),
    }
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Result<Outcome> {
    let subject = Subject::open(
        context,
        &SubjectOptions {
            inputs: &arguments.inputs,
            corpus: &arguments.options,
            schema: &arguments.schema,
            bounds: &arguments.bounds,
            verify: arguments.verify,
        },
    )?;
    let snapshot = subject.snapshot.clone();
    let (bounds, features) = (subject.bounds, subject.features.clone());
    let join = arguments.limits.options(context);
    expect::announce(context, &snapshot, bounds, Product::Pairs)?;
    let (keys, sorter) = Keys::with_sorter(context, &snapshot);
    let mut progress = Progress::new("finding pairs", context.messages.quiet);
    let (rows, left_out) = context.interrupt.while_working(&mut progress, move || {
        let pairs = match features {
            Some(features) => {
                snapshot.pairs_verified(bounds, &join, move |a, b| features.similarity(a, b))?
            }
            None => snapshot.pairs_with(bounds, &join)?,
        };
        sorted_pairs(pairs, keys, sorter)
    })?;

    let name = arguments.verify.similarity_name();
    let [similarity, distance] = nearness_columns(subject.snapshot.schema(), name);
    let columns = vec![
        Column::new("key_a"),
        Column::new("key_b"),
        similarity,
        distance,
    ];
    let mut results = Results::new(&arguments.format, columns)?;
    let mut count = 0_u64;
    for row in rows {
        let row = row?;
        context.interrupt.check()?;
        results.row(&[
            document(&row.a),
            document(&row.b),
            Value::Similarity(row.similarity),
            Value::Distance(row.distance),
        ])?;
        count += 1;
    }
    results.finish()?;
    expect::tell_left_out(context, left_out);
    context.messages.note(format!("{count} pairs"));
    Ok(Outcome::found(count > 0))
}

fn sorted_pairs(mut pairs: Pairs, mut keys: Keys, mut sorter: Sorter) -> Result<(Sorted, LeftOut)> {
    for pair in pairs.by_ref() {
        let pair = pair?;
        let (a, b) = (keys.label(pair.a)?, keys.label(pair.b)?);
        let (a, b) = if a < b { (a, b) } else { (b, a) };
        sorter.push(Row {
            a,
            b,
            similarity: pair.similarity,
            distance: pair.distance,
        })?;
    }
    Ok((sorter.finish()?, pairs.left_out()))
}
