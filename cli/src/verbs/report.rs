//! The verb `report`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use resemblance::invariant::{OrBug, bug};
use resemblance::search::LeftOut;
use resemblance::{Bounds, Collected};
use resemblance_corpus::dedup::{EqualDocuments, FeatureShares};
use resemblance_corpus::verification::{FeatureSets, verify_exact};
use resemblance_eval::report::{
    ClusterFigures, DropOrder, DroppedDocuments, DroppedSample, Findings, Likeness, MAX_TEXT_BYTES,
    PairBands, SurvivorRule, likeness,
};

use crate::failure::{Failure, Outcome, Result};
use crate::options::{
    JoinLimits, JoinOptions, KeepRule, PolicyName, ReadOptions, SurvivorOptions, parse_part,
};
use crate::output::escape::{PrintedKey, printed};
use crate::output::{Counted, Destination, Evidence, GroupedNumber, SurvivorPlace, escape};
use crate::session::{
    BitList, Context, DocumentTally, JoinProduct, JoinProgress, ReportedRow, Subject, document_key,
    limited, must_be_rereadable, prepare_join, read_report, read_texts_of, resolve_corpus,
};
use crate::verbs::dedup::{DecidedRecord, DedupBasis, DedupChoices, decide};
use resemblance_corpus::{ContentRule, only_store};

/// Write one page of HTML about the near-duplicates of a corpus
///
/// The page begins with the share of the corpus that dedup would remove with the same --policy, --keep, --against and
/// --budget. It shows how similar the pairs are, the sizes of the clusters, and some pairs of each band of similarity
/// with their differences marked. Then it lists clusters to check: chains whose members have little in common, and the
/// largest ones. Removed documents are shown beside those that stay, with what would be lost marked. The page is one
/// file that loads nothing and works without scripts. Samples are chosen by hashes, so the same corpus always gives the
/// same page. The corpus is read three times and compared three times.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance report corpus.jsonl.gz -o report.html
  resemblance report a.jsonl b.jsonl -o report.html --chars 9 --threshold 0.7 --samples 10
  resemblance report corpus.jsonl -o report.html --policy representative --keep quality:max
  resemblance report more.jsonl -o report.html --against seen.rsm
  resemblance report corpus.jsonl -o report.html --decisions dropped.tsv
  resemblance report texts/ -o report.html --simhash 64 --distance 3")]
pub(crate) struct ReportArguments {
    /// JSON Lines files, tables, or folders (see resemblance --help)
    #[arg(required = true, value_name = "CORPUS")]
    inputs: Vec<PathBuf>,
    /// The page: a file, or - for standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Maximum number of pairs to show of each band of similarity
    #[arg(long, value_name = "N", default_value_t = 3)]
    samples: usize,
    /// Remove documents as dedup --lost does: those whose features a document that stays has, all but this share. Pairs
    /// and clusters are shown by similarity all the same
    #[arg(long, value_name = "SHARE", value_parser = parse_part, conflicts_with_all = ["budget", "verify"])]
    lost: Option<f64>,
    /// Show the documents that a run of dedup has removed, whose --report, with a header, this is, instead of deciding
    /// again. The corpus is that of the run. Pairs and clusters are those of these options all the same
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["lost", "against", "texts", "policy", "keep", "budget"]
    )]
    decisions: Option<PathBuf>,
    /// Maximum number of removed documents to show beside those that stay
    #[arg(long, value_name = "N", default_value_t = 20)]
    drops: usize,
    /// Which of them to show first: those that lose the greatest share of their features, or those that are least like
    /// what stays
    #[arg(
        long,
        value_name = "ORDER",
        default_value = "lost",
        value_parser = PossibleValuesParser::new(["lost", "similarity"]).map(|name| drop_order(&name))
    )]
    order: DropOrder,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    pub(crate) survivors: SurvivorOptions,
    #[command(flatten)]
    join: JoinOptions,
}

impl ReportArguments {
    /// Returns the choices that dedup's decision depends on.
    fn choices(&self) -> DedupChoices<'_> {
        // For the policy first, dedup joins nothing that could be limited; the joins of the report can be.
        let limits = match self.survivors.policy {
            PolicyName::First => JoinLimits::default(),
            PolicyName::Cluster | PolicyName::Representative => self.join.limits,
        };
        DedupChoices {
            inputs: &self.inputs,
            survivors: &self.survivors,
            join: &self.join,
            limits,
            lost: self.lost,
            with_rejected: false,
        }
    }

    /// An error if the values of options contradict each other, whatever the corpus is.
    pub(crate) fn must_agree(&self) -> Result<()> {
        self.choices().must_agree()
    }

    /// Returns the rule by which documents survive, and its options as they are printed.
    fn survivor_rule(&self) -> SurvivorRule {
        if let Some(path) = &self.decisions {
            return SurvivorRule {
                options: format!("--report {}", path.display()),
                reason: "the decisions of that run, which its report lists",
                is_one_of_each_cluster: false,
            };
        }
        let SurvivorOptions {
            against,
            policy,
            keep,
            budget,
            ..
        } = &self.survivors;
        let keep = match keep {
            KeepRule::First => None,
            rule => Some(format!(" --keep {rule}")),
        };
        let against = against
            .as_ref()
            .map(|path| format!(" --against {}", path.display()));
        let limit = budget.map(|budget| format!(" --budget {budget}"));
        let lost = self.lost.map(|share| format!(" --lost {share}"));
        let others = [keep, against, limit, lost].into_iter().flatten();
        SurvivorRule {
            options: format!("--policy {policy}{}", others.collect::<String>()),
            reason: match self.lost {
                Some(_) => "what stays has the features of each, but for that share",
                None => policy.reason(),
            },
            is_one_of_each_cluster: *policy == PolicyName::Cluster,
        }
    }
}

fn drop_order(name: &str) -> DropOrder {
    match name {
        "similarity" => DropOrder::Similarity,
        _ => DropOrder::Lost,
    }
}

pub(crate) fn report(context: &Context, arguments: &ReportArguments) -> Result<Outcome> {
    if let Some(store) = only_store(&arguments.inputs) {
        return Err(Failure::usage(format!(
            "{} is a store, which has no texts to show",
            store.display()
        ))
        .with_note("give its corpus"));
    }
    let (inputs, options) = (&arguments.inputs, &arguments.join.corpus);
    arguments.choices().check_limits()?;
    must_be_rereadable(context, inputs, options)?;
    let mut destination = Destination::create(&arguments.output, arguments.force)?;
    let (mut found, dropped) = find(context, arguments)?;
    let (keys, schema) = (found.shown_keys()?, found.collected.schema());
    let add_dropped = |number, key: &[u8], bytes| {
        if dropped.has(number, key)? {
            found.dropped.bytes += bytes as u64;
        }
        Ok(())
    };
    let texts = read_texts_of(
        context,
        inputs,
        options,
        schema,
        keys,
        MAX_TEXT_BYTES,
        add_dropped,
    )?;
    let names: Vec<_> = inputs
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let drawn = found.page(&names, &texts, &arguments.survivor_rule())?;
    let page = drawn.map_err(|reason| Failure::refused(format!("cannot draw: {reason}")))?;
    destination.write(page.as_bytes())?;
    destination.finish()?;
    context.note(format!(
        "dedup would remove {} of {}: {} in {}, see {}",
        GroupedNumber(found.dropped.dropped),
        Counted(found.dropped.kept + found.dropped.dropped, "document"),
        Counted(found.bands.pairs, "pair"),
        Counted(found.clusters.clusters, "cluster"),
        arguments.output.display()
    ));
    Ok(Outcome::Done)
}

/// The subject of the report: the documents that are joined.
struct ReportSubject {
    collected: Collected,
    bounds: Bounds,
    features: Option<Arc<FeatureSets>>,
}

/// The documents that are removed.
enum Removed {
    Numbers(BitList),
    Keys(HashSet<Vec<u8>>),
}

impl Removed {
    fn has(&self, number: u64, key: &[u8]) -> Result<bool> {
        match self {
            Self::Numbers(numbers) => numbers.get(number),
            Self::Keys(keys) => Ok(keys.contains(key)),
        }
    }
}

fn find(context: &Context, arguments: &ReportArguments) -> Result<(Findings, Removed)> {
    let choices = arguments.choices();
    let basis = choices.weigh(context, choices.basis(context)?)?;
    let (collected, features) = Subject::collect(
        context,
        &arguments.inputs,
        &arguments.join.corpus,
        &ReadOptions::default(),
        &basis.schema,
        basis.is_exact,
    )?;
    let subject = ReportSubject {
        collected,
        bounds: choices.join_bounds(),
        features,
    };
    let (bands, left_out) = find_pairs(context, arguments, &subject)?;
    let clusters = find_clusters(context, arguments, &subject)?;
    let collected = subject.collected;
    // Their memory is for those of dedup.
    drop(subject.features);
    let listed = DroppedDocuments::new(arguments.order, arguments.drops);
    let (dropped, removed) = match &arguments.decisions {
        Some(path) => read_dropped(context, path, &collected, listed)?,
        None => find_dropped(&context.repeated(), choices, &basis, listed)?,
    };
    let found = Findings {
        collected,
        is_exact: basis.is_exact || basis.schema.is_exact(),
        bands,
        clusters,
        dropped,
        left_out,
    };
    Ok((found, removed))
}

fn find_pairs(
    context: &Context,
    arguments: &ReportArguments,
    subject: &ReportSubject,
) -> Result<(PairBands, LeftOut)> {
    let (join, joining) = prepare_join(
        context,
        subject.collected.pairs(),
        subject.bounds,
        arguments.join.limits,
        JoinProduct::Clusters,
    )?;
    let mut progress = joining.display("finding pairs", context.messages.quiet);
    let mut bands = PairBands::new(subject.collected.schema(), arguments.samples);
    let features = subject.features.clone();
    context.interrupt.while_working(&mut progress, move || {
        let equal = EqualDocuments::find(&join, features.as_deref())?;
        let mut pairs = verify_exact(equal.join_two_of_each(join), features).run()?;
        while let Some(pair) = pairs.next() {
            let pair = pair?;
            joining.add_pair(pairs.lanes_read());
            let weight = equal.weight(&pair);
            if weight > 0 {
                bands.add(&pair, weight)?;
            }
        }
        Ok((bands, pairs.left_out()))
    })
}

fn find_clusters(
    context: &Context,
    arguments: &ReportArguments,
    subject: &ReportSubject,
) -> Result<ClusterFigures> {
    let clusters = subject.collected.clusters();
    let joining = JoinProgress::default();
    let join = joining.follow(limited(
        context,
        clusters,
        subject.bounds,
        arguments.join.limits,
    ));
    let mut progress = joining.display("finding clusters", context.messages.quiet);
    let (features, collected) = (subject.features.clone(), subject.collected.clone());
    context.interrupt.while_working(&mut progress, move || {
        let mut figures = ClusterFigures::default();
        for cluster in verify_exact(join, features.clone()).run()? {
            let likeness = |a, b| likeness(&collected, features.as_deref(), a, b);
            figures.add(&cluster, likeness)?;
        }
        Ok(figures)
    })
}

/// Reads the documents that a run of dedup has dropped from its report.
fn read_dropped(
    context: &Context,
    path: &Path,
    collected: &Collected,
    mut found: DroppedDocuments,
) -> Result<(DroppedDocuments, Removed)> {
    let (mut rows, mut removed) = (Vec::new(), HashSet::new());
    read_report(context, path, &mut |row| {
        found.equal += u64::from(row.text("similarity_is").as_deref() == Some("equal"));
        let sample = reported_drop(row)?;
        if !removed.insert(sample.document.clone()) {
            let key = escape::key(&sample.document);
            return Err(Failure::bad_input(format!("{key} is dropped twice")));
        }
        found.estimated += u64::from(sample.is_estimate);
        rows.push(sample);
        Ok(())
    })?;
    let survivors = rows.iter().filter_map(|row| row.survivor.as_ref());
    let named: HashSet<&Vec<u8>> = removed.iter().chain(survivors).collect();
    let mut present = HashSet::new();
    for id in collected.pairs().ids()? {
        present.extend(collected.key(id)?.filter(|key| named.contains(key)));
    }
    if let Some(other) = removed.iter().find(|key| !present.contains(*key)) {
        let (name, key) = (path.display(), escape::key(other));
        return Err(Failure::bad_input(format!(
            "{name} drops {key}, which the corpus does not have"
        ))
        .with_note("give the corpus that dedup has read, and the same --id-field"));
    }
    for mut row in rows {
        row.survivor = row.survivor.filter(|key| present.contains(key));
        found.in_store += u64::from(row.survivor.is_none());
        found.add(row);
    }
    found.dropped = removed.len() as u64;
    found.kept = collected.len() - found.dropped;
    Ok((found, Removed::Keys(removed)))
}

/// Returns the document that a row of a report drops.
fn reported_drop(row: ReportedRow) -> Result<DroppedSample> {
    let similarity = row.number("similarity");
    let estimate = similarity.or_else(|| row.number("similarity_estimate"));
    let distance = row.number("distance").map(|bits| bits as u32);
    let shares = row.number("held").zip(row.number("covered"));
    let rule = row
        .text("rule")
        .filter(|_| estimate.is_some() || distance.is_some());
    let Some(rule) = rule else {
        return Err(Failure::bad_input(
            "expected the columns of dedup --report, with their names",
        ));
    };
    let is_estimate = row.text("similarity_is").as_deref() == Some("estimate");
    let [document, survivor] = row.keys;
    Ok(DroppedSample {
        likeness: Likeness::of(estimate, distance)?,
        is_estimate: is_estimate && similarity.is_some(),
        shares: shares.map(|(held, covered)| FeatureShares::reported(held, covered)),
        rule,
        document: document_key(document)?,
        survivor_label: printed(&survivor),
        survivor: match survivor {
            PrintedKey::Key(key) => Some(key),
            PrintedKey::Id(_) => None,
        },
    })
}

/// Decides as dedup does, and writes nothing. Returns the numbers of the documents that it drops, too.
fn find_dropped(
    context: &Context,
    choices: DedupChoices<'_>,
    basis: &DedupBasis,
    mut found: DroppedDocuments,
) -> Result<(DroppedDocuments, Removed)> {
    let content = ContentRule::new(&basis.schema, basis.is_exact);
    let mut corpus = resolve_corpus(context, choices.inputs, &choices.join.corpus, content)?;
    choices.survivors.keep.apply(&mut corpus);
    let mut on_drop = |decided: DecidedRecord<'_>| {
        let DecidedRecord::Dropped(dropped) = decided else {
            return Err(bug("candidates were not asked for").into());
        };
        // Texts lose no parts here.
        let survivor = dropped
            .survivor
            .or_bug("something is left of a whole text")?;
        let is_in_store = matches!(survivor.place, SurvivorPlace::Store(_));
        found.in_store += u64::from(is_in_store);
        found.add(DroppedSample {
            likeness: Likeness::of(survivor.similarity, survivor.distance)?,
            is_estimate: basis.is_exact && survivor.evidence == Evidence::Estimate,
            shares: survivor.shares,
            rule: survivor.rule.name().to_owned(),
            document: dropped.key.to_vec(),
            survivor: survivor.key.clone().filter(|_| !is_in_store),
            survivor_label: survivor.label(),
        });
        Ok(())
    };
    let (corpus, tally) = (Arc::new(corpus), DocumentTally::default());
    let decided = decide(context, choices, basis, &corpus, None, tally, &mut on_drop)?;
    let tally = decided.tally;
    (found.kept, found.dropped) = (tally.kept, tally.dropped);
    (found.equal, found.estimated) = (tally.equal, tally.estimated);
    found.budget_exceeded = tally.budget_exceeded;
    Ok((found, Removed::Numbers(decided.dropped)))
}
