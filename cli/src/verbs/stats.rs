//! The verb `stats`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use resemblance::schema::{VectorMetric, VectorSchema};
use resemblance::stats::{BucketSample, BucketStats, Stats};
use resemblance::{Snapshot, Store};
use serde_json::{Map, json};

use crate::failure::{FailureKind, Outcome, Result};
use crate::options::parse_seconds;
use crate::output::{
    Column, Counted, Format, Layout, Results, Section, SectionItem, SectionRow, Value, escape,
};
use crate::session::{Context, INTERRUPT, open_to_read, print_suspicious};

/// Show the size and structure of a store
///
/// json is one object: schema, store, runs, merges, tables, lanes and buckets. tsv and jsonl have one measure per line:
/// section, item, measure, value. Each of the largest buckets names up to five of its documents, each by a line
/// sample_id and, if it has a key, a line sample_key, whose value is the key; all other values are numbers. The format
/// table explains each measure in words.
///
/// --follow prints a line each second until it is interrupted. Columns: documents, commits (ever made), and since the
/// line before documents_per_second (inserted) and commits_per_second.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance stats seen.rsm
  resemblance stats seen.rsm --format json
  resemblance stats seen.rsm --follow")]
pub(crate) struct StatsArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// Print a line of documents, commits and their rates every SECONDS (by default 1) until interrupted
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, value_parser = parse_seconds)]
    #[arg(default_missing_value = "1")]
    follow: Option<Duration>,
    /// Format of the results [default: table on a terminal, otherwise tsv]
    #[arg(long, value_name = "FORMAT", help_heading = "Output")]
    format: Option<StatsFormat>,
    /// Omit the header line of tsv and csv
    #[arg(long, help_heading = "Output")]
    no_header: bool,
    /// Print the header line even if --no-header is the default of the configuration file
    #[arg(long, hide = true, conflicts_with = "no_header")]
    header: bool,
}

/// The forms of results, and one object for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StatsFormat {
    /// Aligned columns
    Table,
    /// Tab-separated values
    Tsv,
    /// Comma-separated values, quoted where necessary
    Csv,
    /// One JSON object per line
    Jsonl,
    /// One JSON object
    Json,
}

impl StatsFormat {
    fn format(self) -> Format {
        match self {
            Self::Table => Format::Table,
            Self::Tsv => Format::Tsv,
            Self::Csv => Format::Csv,
            Self::Jsonl | Self::Json => Format::Jsonl,
        }
    }
}

/// The headline advises to compact a file if more than half of it, and more than this, can be freed.
const COMPACT_FROM_BYTES: u64 = 64 << 20;

pub(crate) fn stats(context: &Context, arguments: &StatsArguments) -> Result<Outcome> {
    let store = open_to_read(context, &arguments.store)?;
    let format = arguments.format.map(StatsFormat::format);
    let layout = Layout::new(format, arguments.header || !arguments.no_header);
    if let Some(interval) = arguments.follow {
        return follow(context, &store, interval, layout);
    }
    let snapshot = store.snapshot()?;
    let mut progress = context.progress("counting");
    let notify = progress.reporter();
    let counted = snapshot.clone();
    let stats = context.interrupt.while_working(&mut progress, move || {
        Ok(counted.stats().on_progress(notify).run()?)
    })?;
    context.note(headline(&store, &stats));
    if store.schema().clusters().is_some() {
        for cluster in snapshot.suspicious_clusters()? {
            let key = snapshot.key(cluster.first)?;
            print_suspicious(context, &cluster, key.as_deref());
        }
    }
    if arguments.format == Some(StatsFormat::Json) {
        layout.json(&object(&store, &stats))?;
    } else if layout.is_table() {
        print_tables(layout, &store, &stats)?;
    } else {
        write_measures(layout, &store, &stats)?;
    }
    context.messages.advise(&stats.design);
    Ok(Outcome::Done)
}

/// The counts of a store at one moment.
struct Moment {
    time: Instant,
    documents: u64,
    inserted: u64,
    commits: u64,
}

impl Moment {
    fn of(snapshot: &Snapshot) -> Self {
        Self {
            time: Instant::now(),
            documents: snapshot.len(),
            inserted: snapshot.next_id().get(),
            commits: snapshot.commits(),
        }
    }

    /// Returns the values of a line, with the rates since an earlier moment.
    fn values(&self, before: &Self) -> [Value<'static>; 4] {
        let seconds = (self.time - before.time).as_secs_f64();
        let rate = |count: u64| Value::Number((10.0 * count as f64 / seconds).round() / 10.0);
        [
            Value::Count(self.documents),
            Value::Count(self.commits),
            rate(self.inserted.saturating_sub(before.inserted)),
            rate(self.commits.saturating_sub(before.commits)),
        ]
    }
}

const FOLLOWED: &str = "documents commits documents_per_second commits_per_second";

/// Prints a line in each interval until an interrupt, which is the usual end.
fn follow(context: &Context, store: &Store, interval: Duration, layout: Layout) -> Result<Outcome> {
    // A table is laid out once it is complete: its lines are aligned here.
    let align = |cells: &[String]| {
        let aligned = cells.iter().map(|cell| format!("{cell:>20}"));
        layout.paragraph(&aligned.collect::<String>())
    };
    let mut lines = None;
    if layout.is_table() {
        align(
            &FOLLOWED
                .replace("_per_", "/")
                .split(' ')
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )?;
    } else {
        lines = Some(Results::new(layout, Column::list(FOLLOWED))?);
    }
    let mut before = Moment::of(&store.snapshot()?);
    loop {
        match context.interrupt.sleep_until(before.time + interval) {
            Err(failure) if failure.kind == FailureKind::Signal(INTERRUPT) => break,
            slept => slept?,
        }
        let now = Moment::of(&store.snapshot()?);
        let values = now.values(&before);
        match &mut lines {
            Some(lines) => {
                lines.row(&values)?;
                lines.pass_on()?;
            }
            None => align(&values.each_ref().map(|value| value.text().into_owned()))?,
        }
        before = now;
    }
    lines.map_or(Ok(()), Results::finish)?;
    Ok(Outcome::Done)
}

/// The store in one sentence, with what should be done about it.
fn headline(store: &Store, stats: &Stats) -> String {
    let schema = store.schema();
    let threshold = schema.minhash().map(|it| match schema.vector() {
        Some(vector) => near_vectors(vector, it.threshold()),
        None => format!("threshold {}", it.threshold()),
    });
    let distance = schema
        .simhash()
        .map(|it| format!("distance up to {}", it.max_distance()));
    let containment = schema.containment().map(|_| "shared passages".to_owned());
    let bounds = [threshold, distance, containment].into_iter().flatten();
    let gain = stats.compact_gain_bytes;
    let health = match &stats.design.advice {
        Some(_) => "more documents than it was designed for".to_owned(),
        None if gain > stats.file_bytes / 2 && gain > COMPACT_FROM_BYTES => {
            format!("compact would free {}", escape::byte_size(gain))
        }
        None => "healthy".to_owned(),
    };
    let writers = match store.has_shared_writers() {
        true => "shared writers, ",
        false => "",
    };
    format!(
        "{}, {}, {}{writers}{health}",
        Counted(stats.documents, "document"),
        escape::byte_size(stats.file_bytes),
        bounds.map(|bound| bound + ", ").collect::<String>()
    )
}

/// Describes which vectors are near.
fn near_vectors(vector: VectorSchema, threshold: f64) -> String {
    match vector.metric() {
        VectorMetric::Cosine => format!("cosine {threshold} or more"),
        VectorMetric::Euclidean(_) => {
            let distance = Value::Significant(vector.distance_at(threshold));
            format!("Euclidean distance up to {}", distance.text())
        }
        _ => format!("similarity {threshold} or more"),
    }
}

/// The meanings of the store's measures, in the order of [`summary`].
const MEANINGS: [&str; 11] = [
    "in the store now",
    "that bands and tables were chosen for; beyond them, see reband",
    "the id of the next document: the number of documents ever added",
    "not in a run yet; in memory while the store is open",
    "removed, but in the file until a merge or compact drops them",
    "length of the file; it may have holes",
    "taken on disk",
    "about what compact would free on disk",
    "about how much shorter compact would make the file, with its holes",
    "content and bookkeeping of all tables, divided by the documents",
    "1 if several processes take turns in writing it, else 0",
];

/// The measures of the whole store.
fn summary(store: &Store, stats: &Stats) -> Section<'static> {
    let values = vec![
        Value::Count(stats.documents),
        Value::Count(stats.design.expected_documents),
        Value::Count(stats.next_id),
        Value::Count(stats.memtable_documents),
        Value::Count(stats.dead_rows),
        Value::Count(stats.file_bytes),
        Value::Count(stats.allocated_bytes),
        Value::Count(stats.compact_gain_bytes),
        Value::Count(stats.compact_length_gain_bytes),
        Value::Number(stats.bytes_per_document),
        Value::Count(store.has_shared_writers().into()),
    ];
    let item = SectionItem::Name(String::new());
    Section {
        name: "store",
        title: String::new(),
        measures: "documents expected_documents next_id memtable_documents dead_rows file_bytes \
                   allocated_bytes compact_gain_bytes compact_length_gain_bytes bytes_per_document \
                   shared_writers",
        rows: vec![SectionRow { item, values }],
    }
}

fn runs(stats: &Stats) -> Section<'static> {
    let mut title = "Runs: sorted pieces of the index, each for a range of documents.".to_owned();
    if stats.runs.is_empty() {
        title += "\n none yet";
    }
    let measures = "level first_id last_id postings blocks dead";
    let rows = stats.runs.iter().map(|run| {
        let level = u64::from(run.level);
        let counts = [
            level,
            run.first_id,
            run.last_id,
            run.postings,
            run.blocks,
            run.dead,
        ];
        (SectionItem::Number(run.run.into()), counts)
    });
    Section::of_counts("run", title, measures, rows)
}

fn merges(stats: &Stats) -> Section<'static> {
    let title = "Merges under way: commits go on with them, a slice at a time.".into();
    let measures = "level inputs postings blocks postings_left rows_left";
    let rows = stats.merges.iter().map(|merge| {
        let (level, inputs) = (u64::from(merge.level), merge.inputs.len() as u64);
        let (postings, blocks) = (merge.postings, merge.blocks);
        let counts = [
            level,
            inputs,
            postings,
            blocks,
            merge.postings_left,
            merge.rows_left,
        ];
        (SectionItem::Number(merge.run.into()), counts)
    });
    Section::of_counts("merge", title, measures, rows)
}

fn tables(stats: &Stats) -> Section<'static> {
    let title = "Tables of the file: bytes of content, of bookkeeping, and unused in pages.".into();
    let measures = "rows stored_bytes metadata_bytes fragmented_bytes";
    let rows = stats.tables.iter().map(|table| {
        let unused = table.fragmented_bytes;
        let counts = [table.rows, table.stored_bytes, table.metadata_bytes, unused];
        (SectionItem::Name(table.name.clone()), counts)
    });
    Section::of_counts("table", title, measures, rows)
}

fn lanes(stats: &Stats) -> Section<'_> {
    let rows = stats.lanes.iter().map(|lane| SectionRow {
        item: SectionItem::Number(lane.lane.into()),
        values: vec![
            Value::Text(&lane.role),
            Value::Count(lane.postings),
            Value::Count(lane.blocks),
        ],
    });
    Section {
        name: "lane",
        title: "Lanes: the indexes that find documents; each has one posting per document.".into(),
        measures: "role postings blocks",
        rows: rows.collect(),
    }
}

/// All measures as one object.
fn object(store: &Store, stats: &Stats) -> serde_json::Value {
    let schema = store.schema();
    json!({
        "schema": format!("{schema:#}"),
        "store": summary(store, stats).measured(),
        "runs": runs(stats).objects(),
        "merges": merges(stats).objects(),
        "tables": tables(stats).objects(),
        "lanes": lanes(stats).objects(),
        "buckets": stats.buckets.iter().map(bucket_object).collect::<Vec<_>>(),
    })
}

/// Returns a bucket as an object; a key outside UTF-8 is null, and written in hexadecimal in
/// `key_hex`.
fn bucket_object(bucket: &BucketStats) -> serde_json::Value {
    let samples = bucket.samples.iter().map(|sample| {
        let document = Value::document(sample.id, sample.key.as_deref());
        document.json_fields("key").collect::<Map<_, _>>()
    });
    json!({
        "lane": bucket.lane,
        "role": bucket.role,
        "documents": bucket.documents,
        "samples": samples.collect::<Vec<_>>(),
    })
}

/// Prints one line per measure.
fn write_measures(layout: Layout, store: &Store, stats: &Stats) -> Result<()> {
    let mut lines = Results::of_measures(layout)?;
    for section in [
        summary(store, stats),
        runs(stats),
        merges(stats),
        tables(stats),
    ] {
        section.write_measures(&mut lines)?;
    }
    for lane in &stats.lanes {
        lines.measure("lane", &lane.role, "postings", Value::Count(lane.postings))?;
        lines.measure("lane", &lane.role, "blocks", Value::Count(lane.blocks))?;
    }
    for (rank, bucket) in (1..).zip(&stats.buckets) {
        let item = format!("{rank}: {}", bucket.role);
        let documents = Value::Count(bucket.documents);
        lines.measure("bucket", &item, "documents", documents)?;
        for sample in &bucket.samples {
            let id = Value::Count(sample.id.get());
            lines.measure("bucket", &item, "sample_id", id)?;
            if let Some(key) = &sample.key {
                lines.measure("bucket", &item, "sample_key", Value::Key(key))?;
            }
        }
    }
    lines.finish()
}

/// Prints tables with a sentence above each.
fn print_tables(layout: Layout, store: &Store, stats: &Stats) -> Result<()> {
    layout.paragraph(&format!("{}\n", store.schema()))?;
    let summary = summary(store, stats);
    let measures = summary.measures.split_whitespace().zip(MEANINGS);
    let mut results = Results::new(layout, Column::list("measure value meaning"))?;
    let values = summary.rows.iter().flat_map(|row| &row.values);
    for ((measure, meaning), value) in measures.zip(values) {
        results.row(&[Value::Text(measure), *value, Value::Text(meaning)])?;
    }
    results.finish()?;
    runs(stats).print_table()?;
    if !stats.merges.is_empty() {
        merges(stats).print_table()?;
    }
    tables(stats).print_table()?;
    lanes(stats).print_table()?;
    layout.paragraph(
        "\nLargest buckets: documents that share a code; a query reads all of them, unless it has a budget.",
    )?;
    let columns = ["lane", "role", "documents", "the first of them"].map(Column::new);
    let mut results = Results::new(layout, columns.into())?;
    for bucket in &stats.buckets {
        let name = |sample: &BucketSample| match &sample.key {
            Some(key) => escape::key(key).into_owned(),
            None => escape::without_key(sample.id.get()),
        };
        let names: Vec<String> = bucket.samples.iter().map(name).collect();
        results.row(&[
            Value::Count(bucket.lane.into()),
            Value::Text(&bucket.role),
            Value::Count(bucket.documents),
            Value::Text(&names.join(", ")),
        ])?;
    }
    results.finish()
}
