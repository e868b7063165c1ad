//! The verb `evict`.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use resemblance::report::EvictReport;
use resemblance::{EvictPolicy, Store};
use resemblance_corpus::time_of_stamp;

use crate::failure::{Failure, Outcome, Result};
use crate::options::{FormatOptions, now, parse_age};
use crate::output::{Counted, GroupedNumber, Results, Value};
use crate::session::{Context, change_store, open_to_read};
use resemblance::invariant::bug;

/// Remove documents by their age or number
///
/// Documents with smaller stamps are older; of documents with equal stamps, the one added first is the oldest.
/// Documents are removed in commits of 1,000, so you can stop the command and give it again. Columns: examined,
/// evicted, left, slices (commits), longest_slice_ms.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance evict seen.rsm --keep-newest 1000000
  resemblance evict seen.rsm --older-than 14d
  resemblance evict seen.rsm --older-than 1700000000 --dry-run")]
#[command(group(ArgGroup::new("which").required(true).args(["older_than", "keep_newest"])))]
pub(crate) struct EvictArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// Remove the documents whose stamps are smaller than this age such as 14d (s, m, h, d, w, mo, y), stamp, or time such as
    /// 2026-01-31T08:00:00Z
    #[arg(long, value_name = "AGE|STAMP", value_parser = parse_age)]
    older_than: Option<u64>,
    /// Remove all but the N newest documents
    #[arg(long, value_name = "N")]
    keep_newest: Option<u64>,
    /// Remove the documents even if they are more than nine tenths of the store
    #[arg(long)]
    force: bool,
    /// Remove nothing, and print how many documents would be removed
    #[arg(long)]
    dry_run: bool,
    /// Remove at most N documents per commit
    #[arg(long, value_name = "N", default_value = "1000")]
    slice: NonZeroUsize,
    #[command(flatten)]
    format: FormatOptions,
}

pub(crate) fn evict(context: &Context, arguments: &EvictArguments) -> Result<Outcome> {
    let path = &arguments.store;
    if arguments.dry_run {
        evict_from(context, arguments, &open_to_read(context, path)?)?;
    } else {
        let options = &context.store_options;
        change_store(context, path, options, |store| {
            evict_from(context, arguments, store)
        })?;
    }
    Ok(Outcome::Done)
}

fn evict_from(context: &Context, arguments: &EvictArguments, store: &Store) -> Result<()> {
    let path = &arguments.store;
    let before = store.snapshot()?.len();
    let survey = Survey::of(context, arguments, store)?;
    if !arguments.force {
        survey.must_leave_some(context, arguments)?;
    }
    let evict = store
        .evict(policy(arguments)?)
        .dry_run(arguments.dry_run)
        .slice_documents(arguments.slice.get());
    let (done, stopped) = context.carry_out(evict);
    if let Some(stopped) = stopped {
        let evicted = store.metrics().evicted;
        let evicted = Counted(evicted, "document");
        let note = format!("evicted {evicted}; give the command again for the rest");
        return Err(stopped.with_note(note));
    }
    let evicted = done.map_err(|error| Failure::unfinished(path.display(), error))?;
    // Other processes may write at the same time.
    let left = match arguments.dry_run {
        true => before.saturating_sub(evicted.evicted),
        false => store.snapshot()?.len(),
    };
    print(context, arguments, &evicted, [before, left])?;
    if let Some(note) = arguments.older_than.and_then(|stamp| survey.doubt(stamp)) {
        context.note(note);
    }
    Ok(())
}

/// The stamps of a store, and the number of documents that an eviction would remove.
#[derive(Default)]
struct Survey {
    documents: u64,
    removed: u64,
    /// Documents whose stamps are at least a day ahead of the clock.
    future: u64,
    oldest: Option<u64>,
    newest: u64,
}

impl Survey {
    fn of(context: &Context, arguments: &EvictArguments, store: &Store) -> Result<Self> {
        if let Some(kept) = arguments.keep_newest {
            // No stamp is looked at.
            let documents = store.snapshot()?.len();
            return Ok(Self {
                documents,
                removed: documents.saturating_sub(kept),
                ..Self::default()
            });
        }
        let tomorrow = now() + 86_400;
        let mut survey = Self::default();
        let counted = store
            .evict(EvictPolicy::Where(Box::new(|document| {
                let stamp = document.stamp();
                let is_older = arguments.older_than.is_some_and(|least| stamp < least);
                survey.documents += 1;
                survey.removed += u64::from(is_older);
                survey.future += u64::from(stamp > tomorrow);
                survey.oldest = Some(survey.oldest.map_or(stamp, |oldest| oldest.min(stamp)));
                survey.newest = survey.newest.max(stamp);
                false
            })))
            .dry_run(true)
            .on_progress(|_| match context.interrupt.check() {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            })
            .run();
        context.interrupt.check()?;
        counted.map_err(|error| Failure::store(arguments.store.display(), error))?;
        Ok(survey)
    }

    /// Fails if so large a part of the documents would be removed that the stamps, the age or the
    /// number must be wrong.
    fn must_leave_some(&self, context: &Context, arguments: &EvictArguments) -> Result<()> {
        let (removed, documents) = (self.removed, self.documents);
        // All but a tenth; nothing is lost where nothing is.
        if u128::from(removed) * 10 <= u128::from(documents) * 9 {
            return Ok(());
        }
        let is_by_age = arguments.older_than.is_some();
        let message = if is_by_age && self.newest == 0 {
            let documents = match documents {
                1 => "the only document".to_owned(),
                all => format!("all {all} documents"),
            };
            format!("all stamps are 0, so --older-than would remove {documents}")
        } else {
            let option = match is_by_age {
                true => "--older-than",
                false => "--keep-newest",
            };
            format!(
                "{option} would remove {removed} of {}, more than nine tenths",
                Counted(documents, "document")
            )
        };
        if arguments.dry_run {
            context.note(format!(
                "warning: {message}; without --dry-run this requires --force"
            ));
            return Ok(());
        }
        let failure = Failure::usage(message).with_note("--force removes them anyway");
        if !is_by_age {
            return Err(failure);
        }
        Err(failure.with_note("add --stamp or --stamp-field sets stamps, and touch changes them"))
    }

    /// Returns why an eviction by age may be a mistake: nothing was old enough, or the unit of the
    /// stamps is not seconds.
    fn doubt(&self, stamp: u64) -> Option<String> {
        let (future, documents) = (self.future, self.documents);
        let shown = |stamp| match time_of_stamp(stamp) {
            Some(time) => format!("{stamp} ({time})"),
            None => format!("{stamp} (after the year 9999)"),
        };
        // A number alone is a stamp. One of the first years of the epoch was probably meant as an age.
        let is_like_an_age = (1..FIRST_PLAUSIBLE_STAMP).contains(&stamp);
        if is_like_an_age && self.removed > 0 && self.newest >= FIRST_PLAUSIBLE_STAMP {
            return Some(format!(
                "warning: --older-than {stamp} is a stamp; for an age add a unit, such as {stamp}d"
            ));
        }
        if future > 0 && stamp <= now() && !is_like_an_age {
            return Some(format!(
                "warning: stamps in the future: {future} of {documents}, up to {}; --older-than compares \
                 stamps as seconds since 1970",
                shown(self.newest)
            ));
        }
        let oldest = self.oldest.filter(|_| self.removed == 0)?;
        let unit = match is_like_an_age {
            true => format!("; for an age add a unit, such as {stamp}d"),
            false => String::new(),
        };
        Some(format!(
            "no document has a stamp before {}; the oldest has {}{unit}",
            shown(stamp),
            shown(oldest)
        ))
    }
}

/// 1973-03-03: no crawl has pages from before, and no age in days is as large.
const FIRST_PLAUSIBLE_STAMP: u64 = 100_000_000;

fn policy(arguments: &EvictArguments) -> Result<EvictPolicy<'static>> {
    match (arguments.older_than, arguments.keep_newest) {
        (Some(stamp), _) => Ok(EvictPolicy::OlderThan(stamp)),
        (None, Some(documents)) => Ok(EvictPolicy::KeepNewest(documents)),
        (None, None) => Err(bug("an eviction without a rule").into()),
    }
}

fn print(
    context: &Context,
    arguments: &EvictArguments,
    report: &EvictReport,
    [before, left]: [u64; 2],
) -> Result<()> {
    let (verb, note) = match arguments.dry_run {
        true => ("would remove", " (a dry run: nothing was removed)"),
        false => ("removed", ""),
    };
    context.note(format!(
        "{verb} {} of {}; {} {}{note}",
        GroupedNumber(report.evicted),
        Counted(before, "document"),
        GroupedNumber(left),
        if left == 1 { "remains" } else { "remain" }
    ));
    let longest_ms = report.longest_slice.as_secs_f64() * 1_000.0;
    let fields = [
        ("examined", Value::Count(report.examined)),
        ("evicted", Value::Count(report.evicted)),
        ("left", Value::Count(left)),
        ("slices", Value::Count(report.slices)),
        ("longest_slice_ms", Value::Number(longest_ms)),
    ];
    Results::print_one(arguments.format.layout(), &fields)
}
