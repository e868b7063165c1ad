//! The verb `pairs`.

use std::path::PathBuf;

use clap::Args;
use resemblance::search::{Certainty, LeftOut};
use resemblance::{MissedPairs, Pair, Pairs, take_behind};
use resemblance_corpus::is_store;
use resemblance_corpus::verification::verify_exact;

use crate::failure::{Outcome, Result};
use crate::options::{
    FilterOptions, FormatOptions, JoinOptions, ReadOptions, euclidean, similarity_name,
};
use crate::output::{
    Column, ColumnKind, Counted, PairSorter, Results, SortedPairs, UnsortedPair, Value,
    euclidean_column, euclidean_distance, nearness_columns,
};
use crate::session::{
    Context, JoinProduct, JoinProgress, Subject, missed_pairs, prepare_join, print_certainty,
    print_left_out,
};

/// List all near-duplicate pairs of a store or a corpus
///
/// --prefix, --older-than and --newer-than choose the documents of a store that take part.
///
/// tsv columns: key_a, key_b, similarity (six decimals). key_a is less than key_b in byte order; lines are sorted by
/// both, with documents without a key last. Similarities are exact for a corpus. For a store, which has no texts, and
/// with --verify estimate they are estimates from the signatures, and the column is named similarity_estimate. With
/// SimHash alone the third column is the distance; with both families the fourth column is. jsonl fields: id_a, key_a,
/// id_b, key_b, similarity or similarity_estimate, distance (null if the schema has none).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance pairs seen.rsm --threshold 0.9
  resemblance pairs a.jsonl b.jsonl.gz --chars 9 --threshold 0.7 --format jsonl
  resemblance pairs corpus.jsonl --verify estimate --no-header
  resemblance pairs texts/ --include '*.md'")]
pub(crate) struct PairsArguments {
    /// One store (recognized by its content), or JSON Lines files, tables, folders or - (see resemblance --help)
    #[arg(required = true, value_name = "STORE|CORPUS")]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    join: JoinOptions,
    #[command(flatten)]
    filter: FilterOptions,
    #[command(flatten)]
    reading: ReadOptions,
    #[command(flatten)]
    format: FormatOptions<true>,
}

impl PairsArguments {
    /// An error if the values of options contradict each other, whatever the corpus is.
    pub(crate) fn must_agree(&self) -> Result<()> {
        match self.inputs.iter().any(|input| is_store(input)) {
            true => Ok(()),
            false => self.join.must_agree(),
        }
    }
}

pub(crate) fn pairs(context: &Context, arguments: &PairsArguments) -> Result<Outcome> {
    let subject = Subject::open(
        context,
        &arguments.inputs,
        &arguments.join,
        &arguments.filter,
        &arguments.reading,
    )?;
    let (documents, features) = (&subject.documents, subject.features.clone());
    let (pairs, limits) = (documents.pairs(), arguments.join.limits);
    let passing = match subject.filter.clone() {
        Some(filter) => pairs.filter(filter),
        None => pairs,
    };
    let (join, joining) =
        prepare_join(context, passing, subject.bounds, limits, JoinProduct::Pairs)?;
    let sorter = documents.pair_sorter(context).ordering_documents();
    let mut progress = joining.display("finding pairs", context.messages.quiet);
    let is_exact = subject.features.is_some() || documents.schema().is_exact();
    let missed = missed_pairs(documents.schema(), subject.bounds, is_exact);
    let found = context.interrupt.while_working(&mut progress, move || {
        sorted_pairs(
            verify_exact(join, features).run()?,
            sorter,
            missed,
            &joining,
        )
    })?;

    let name = similarity_name(is_exact);
    let [similarity, distance] = nearness_columns(subject.documents.schema(), name);
    let vector = euclidean(subject.documents.schema());
    let mut columns = vec![
        Column::of("key_a", ColumnKind::Document),
        Column::of("key_b", ColumnKind::Document),
        similarity,
        distance,
    ];
    columns.extend(vector.map(|_| euclidean_column()));
    let mut results = Results::new(arguments.format.layout(), columns)?;
    let mut count = 0_u64;
    for row in found.rows {
        let row = row?;
        context.interrupt.check()?;
        let mut values = vec![
            row.a.value(),
            row.b.value(),
            Value::Similarity(row.similarity),
            Value::Distance(row.distance),
        ];
        values.extend(vector.map(|vector| euclidean_distance(vector, row.similarity)));
        results.row(&values)?;
        count += 1;
    }
    results.finish()?;
    print_left_out(context, found.left_out);
    print_certainty(context, "a pair", found.certainty, found.missed.as_ref());
    context.note(Counted(count, "pair"));
    Ok(Outcome::found(count > 0))
}

struct FoundPairs {
    rows: SortedPairs,
    left_out: LeftOut,
    certainty: Certainty,
    missed: Option<MissedPairs>,
}

/// The number of pairs that are sorted at a time, while the next ones are found.
const SENT_PAIRS: usize = 1 << 12;

fn sorted_pairs(
    mut pairs: Pairs,
    mut sorter: PairSorter,
    mut missed: Option<MissedPairs>,
    joining: &JoinProgress,
) -> Result<FoundPairs> {
    let find = |send: &mut dyn FnMut(Vec<Pair>) -> resemblance::Result<()>| {
        let mut found = Vec::with_capacity(SENT_PAIRS);
        while let Some(pair) = pairs.next() {
            joining.add_pair(pairs.lanes_read());
            found.push(pair?);
            if found.len() == SENT_PAIRS {
                send(std::mem::replace(
                    &mut found,
                    Vec::with_capacity(SENT_PAIRS),
                ))?;
            }
        }
        send(found)
    };
    take_behind("sort", find, |found| {
        found.into_iter().try_for_each(|pair| {
            if let Some((missed, similarity)) = missed.as_mut().zip(pair.similarity) {
                missed.add(pair.a.get(), pair.b.get(), similarity);
            }
            sorter.push(UnsortedPair {
                a: pair.a,
                b: pair.b,
                similarity: pair.similarity,
                distance: pair.distance,
            })
        })
    })?;
    Ok(FoundPairs {
        rows: sorter.finish()?,
        left_out: pairs.left_out(),
        certainty: pairs.certainty(),
        missed,
    })
}
