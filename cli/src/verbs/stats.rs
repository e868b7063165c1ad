//! The verb `stats`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use resemblance::{
    BucketSample, BucketStats, LaneStats, MergeStats, RunStats, Schema, Stats, TableStats,
};
use serde_json::{Map, json};

use crate::failure::{Outcome, Result};
use crate::output::{Column, Format, Layout, ProgressDisplay, Results, Value, escape};
use crate::session::{Context, open_to_read};

/// Show the size and structure of a store
///
/// json is one object: schema, store, runs, merges, tables, lanes and buckets.
/// tsv and jsonl give one measure per line: section, item, measure, value. Each of the largest buckets
/// names up to five of its documents, each by a line sample_id and, if it has a key, a line sample_key,
/// whose value is a key; all other values are numbers. The table form explains each measure in words.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance stats seen.rsm
  resemblance stats seen.rsm --format json")]
pub(crate) struct StatsArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// Form of the results [default: table on a terminal, else tsv]
    #[arg(long, value_name = "FORMAT", help_heading = "Output")]
    format: Option<StatsFormat>,
    /// Leave out the first line of tsv and csv, which has the names of the columns
    #[arg(long, help_heading = "Output")]
    no_header: bool,
    /// What --no-header turns off, for commands that were written before it was the default
    #[arg(long, hide = true, conflicts_with = "no_header")]
    header: bool,
}

/// The forms of results, and one object for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StatsFormat {
    /// Aligned columns for reading
    Table,
    /// Tab-separated values
    Tsv,
    /// Comma-separated values, quoted where need be
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

pub(crate) fn stats(context: &Context, arguments: &StatsArguments) -> Result<Outcome> {
    let store = open_to_read(context, &arguments.store)?;
    let snapshot = store.snapshot()?;
    let mut progress = ProgressDisplay::new("counting", context.messages.quiet);
    let tell = progress.teller();
    let stats = context.interrupt.while_working(&mut progress, move || {
        Ok(snapshot.stats().on_progress(tell).run()?)
    })?;
    let format = arguments.format.map(StatsFormat::format);
    let layout = Layout::new(format, arguments.header || !arguments.no_header);
    if arguments.format == Some(StatsFormat::Json) {
        layout.json(&object(store.schema(), &stats))?;
    } else if layout.is_table() {
        let tables = StatsTables { layout };
        tables.all(store.schema(), &stats)?;
    } else {
        measures(Results::new(layout, measure_columns())?, &stats)?;
    }
    context.messages.advise(&stats.design);
    Ok(Outcome::Done)
}

fn measure_columns() -> Vec<Column> {
    ["section", "item", "measure", "value"]
        .map(Column::new)
        .to_vec()
}

fn summary(stats: &Stats) -> [(&'static str, Value<'static>, &'static str); 9] {
    [
        (
            "documents",
            Value::Count(stats.documents),
            "in the store now",
        ),
        (
            "expected_documents",
            Value::Count(stats.design.expected_documents),
            "that bands and tables were chosen for; beyond them, see reband",
        ),
        (
            "next_id",
            Value::Count(stats.next_id),
            "the number that the next document gets: all that were ever added",
        ),
        (
            "memtable_documents",
            Value::Count(stats.memtable_documents),
            "not filed in a run yet; kept in memory while the store is open",
        ),
        (
            "dead_rows",
            Value::Count(stats.dead_rows),
            "removed, but their content is in the file until a merge or compact drops it",
        ),
        (
            "file_bytes",
            Value::Count(stats.file_bytes),
            "length of the file; it may have holes",
        ),
        (
            "allocated_bytes",
            Value::Count(stats.allocated_bytes),
            "taken on disk",
        ),
        (
            "compact_gain_bytes",
            Value::Count(stats.compact_gain_bytes),
            "about what compact would give back to the disk",
        ),
        (
            "bytes_per_document",
            Value::Number(stats.bytes_per_document),
            "content and bookkeeping of all tables, divided by the documents",
        ),
    ]
}

fn run_counts(run: &RunStats) -> [(&'static str, u64); 6] {
    [
        ("level", u64::from(run.level)),
        ("first_id", run.first_id),
        ("last_id", run.last_id),
        ("postings", run.postings),
        ("blocks", run.blocks),
        ("dead", run.dead),
    ]
}

fn merge_counts(merge: &MergeStats) -> [(&'static str, u64); 6] {
    [
        ("level", u64::from(merge.level)),
        ("inputs", merge.inputs.len() as u64),
        ("postings", merge.postings),
        ("blocks", merge.blocks),
        ("postings_left", merge.postings_left),
        ("rows_left", merge.rows_left),
    ]
}

fn table_counts(table: &TableStats) -> [(&'static str, u64); 4] {
    [
        ("rows", table.rows),
        ("stored_bytes", table.stored_bytes),
        ("metadata_bytes", table.metadata_bytes),
        ("fragmented_bytes", table.fragmented_bytes),
    ]
}

fn lane_counts(lane: &LaneStats) -> [(&'static str, u64); 2] {
    [("postings", lane.postings), ("blocks", lane.blocks)]
}

/// The documents of a bucket that are named, as results print them.
fn samples(bucket: &BucketStats) -> String {
    let name = |sample: &BucketSample| match &sample.key {
        Some(key) => escape::key(key).into_owned(),
        None => escape::without_key(sample.id.get()),
    };
    let names: Vec<String> = bucket.samples.iter().map(name).collect();
    names.join(", ")
}

/// All measures as one object.
fn object(schema: &Schema, stats: &Stats) -> serde_json::Value {
    let counts = |counts: &[(&'static str, u64)]| -> Map<String, serde_json::Value> {
        let named = counts
            .iter()
            .map(|(name, count)| ((*name).to_owned(), json!(count)));
        named.collect()
    };
    let with = |first: (&str, serde_json::Value), rest: Map<String, serde_json::Value>| {
        let first = std::iter::once((first.0.to_owned(), first.1));
        serde_json::Value::Object(first.chain(rest).collect())
    };
    let store = summary(stats).into_iter().map(|(name, value, _)| {
        let number = match value {
            Value::Count(count) => json!(count),
            Value::Number(number) => json!(number),
            _ => serde_json::Value::Null,
        };
        (name.to_owned(), number)
    });
    let store: Map<String, serde_json::Value> = store.collect();
    let runs = stats.runs.iter();
    let runs: Vec<_> = runs
        .map(|run| with(("run", json!(run.run)), counts(&run_counts(run))))
        .collect();
    let merges = stats.merges.iter();
    let merges: Vec<_> = merges
        .map(|merge| with(("run", json!(merge.run)), counts(&merge_counts(merge))))
        .collect();
    let tables = stats.tables.iter();
    let tables: Vec<_> = tables
        .map(|table| with(("table", json!(table.name)), counts(&table_counts(table))))
        .collect();
    let lanes = stats.lanes.iter().map(|lane| {
        let counts = with(("lane", json!(lane.lane)), counts(&lane_counts(lane)));
        with_role(counts, &lane.role)
    });
    let lanes: Vec<_> = lanes.collect();
    let buckets: Vec<_> = stats.buckets.iter().map(bucket_object).collect();
    json!({
        "schema": schema.to_string(),
        "store": store,
        "runs": runs,
        "merges": merges,
        "tables": tables,
        "lanes": lanes,
        "buckets": buckets,
    })
}

fn with_role(mut object: serde_json::Value, role: &str) -> serde_json::Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("role".into(), json!(role));
    }
    object
}

/// A bucket; a key outside UTF-8 is null, and stands in hexadecimal in `key_hex`.
fn bucket_object(bucket: &BucketStats) -> serde_json::Value {
    let samples = bucket.samples.iter().map(|sample| {
        let key = sample.key.as_deref();
        let text = key.and_then(|key| std::str::from_utf8(key).ok());
        let mut object = json!({ "id": sample.id.get(), "key": text });
        if let (Some(key), None, Some(fields)) = (key, text, object.as_object_mut()) {
            fields.insert("key_hex".into(), json!(Value::Bytes(key).text()));
        }
        object
    });
    json!({
        "lane": bucket.lane,
        "role": bucket.role,
        "documents": bucket.documents,
        "samples": samples.collect::<Vec<_>>(),
    })
}

/// Prints one line per measure.
fn measures(mut results: Results, stats: &Stats) -> Result<()> {
    let mut line = |section: &str, item: &str, measure: &str, value: Value<'_>| {
        results.row(&[
            Value::Text(section),
            Value::Text(item),
            Value::Text(measure),
            value,
        ])
    };
    for (measure, value, _) in summary(stats) {
        line("store", "", measure, value)?;
    }
    for run in &stats.runs {
        let item = run.run.to_string();
        for (measure, count) in run_counts(run) {
            line("run", &item, measure, Value::Count(count))?;
        }
    }
    for merge in &stats.merges {
        let item = merge.run.to_string();
        for (measure, count) in merge_counts(merge) {
            line("merge", &item, measure, Value::Count(count))?;
        }
    }
    for table in &stats.tables {
        for (measure, count) in table_counts(table) {
            line("table", &table.name, measure, Value::Count(count))?;
        }
    }
    for lane in &stats.lanes {
        for (measure, count) in lane_counts(lane) {
            line("lane", &lane.role, measure, Value::Count(count))?;
        }
    }
    for (rank, bucket) in (1..).zip(&stats.buckets) {
        let item = format!("{rank}: {}", bucket.role);
        line("bucket", &item, "documents", Value::Count(bucket.documents))?;
        for sample in &bucket.samples {
            let sample_id = Value::Count(sample.id.get());
            line("bucket", &item, "sample_id", sample_id)?;
            if let Some(key) = &sample.key {
                line("bucket", &item, "sample_key", Value::Key(key))?;
            }
        }
    }
    results.finish()
}

/// Tables with a sentence above each.
struct StatsTables {
    layout: Layout,
}

impl StatsTables {
    fn all(&self, schema: &Schema, stats: &Stats) -> Result<()> {
        self.heading(&format!("{schema}\n"))?;
        let mut results = self.table(&["measure", "value", "meaning"])?;
        for (measure, value, meaning) in summary(stats) {
            results.row(&[Value::Text(measure), value, Value::Text(meaning)])?;
        }
        results.finish()?;
        self.runs(&stats.runs)?;
        self.merges(&stats.merges)?;
        self.tables(&stats.tables)?;
        self.lanes(&stats.lanes)?;
        self.buckets(&stats.buckets)
    }

    fn runs(&self, runs: &[RunStats]) -> Result<()> {
        self.heading("\nRuns: sorted pieces of the index, each for a range of documents.")?;
        if runs.is_empty() {
            self.heading(" none yet")?;
        }
        let names = [
            "run", "level", "first_id", "last_id", "postings", "blocks", "dead",
        ];
        let mut results = self.table(&names)?;
        for run in runs {
            let counts = run_counts(run).map(|(_, count)| Value::Count(count));
            let mut row = vec![Value::Count(u64::from(run.run))];
            row.extend(counts);
            results.row(&row)?;
        }
        results.finish()
    }

    fn merges(&self, merges: &[MergeStats]) -> Result<()> {
        if merges.is_empty() {
            return Ok(());
        }
        self.heading("\nMerges under way: commits go on with them, a slice at a time.")?;
        let names = [
            "run",
            "level",
            "inputs",
            "postings",
            "blocks",
            "postings_left",
            "rows_left",
        ];
        let mut results = self.table(&names)?;
        for merge in merges {
            let mut row = vec![Value::Count(u64::from(merge.run))];
            row.extend(merge_counts(merge).map(|(_, count)| Value::Count(count)));
            results.row(&row)?;
        }
        results.finish()
    }

    fn tables(&self, tables: &[TableStats]) -> Result<()> {
        self.heading(
            "\nTables of the file: bytes of content, of bookkeeping, and unused in pages.",
        )?;
        let names = [
            "table",
            "rows",
            "stored_bytes",
            "metadata_bytes",
            "fragmented_bytes",
        ];
        let mut results = self.table(&names)?;
        for table in tables {
            let mut row = vec![Value::Text(&table.name)];
            row.extend(table_counts(table).map(|(_, count)| Value::Count(count)));
            results.row(&row)?;
        }
        results.finish()
    }

    fn lanes(&self, lanes: &[LaneStats]) -> Result<()> {
        self.heading("\nLanes: the ways by which a document is found, one posting a document.")?;
        let mut results = self.table(&["lane", "role", "postings", "blocks"])?;
        for lane in lanes {
            let mut row = vec![Value::Count(u64::from(lane.lane)), Value::Text(&lane.role)];
            row.extend(lane_counts(lane).map(|(_, count)| Value::Count(count)));
            results.row(&row)?;
        }
        results.finish()
    }

    fn buckets(&self, buckets: &[BucketStats]) -> Result<()> {
        self.heading(
            "\nLargest buckets: documents filed under one code; a query reads all of them, unless it has a \
             budget.",
        )?;
        let mut results = self.table(&["lane", "role", "documents", "the first of them"])?;
        for bucket in buckets {
            results.row(&[
                Value::Count(u64::from(bucket.lane)),
                Value::Text(&bucket.role),
                Value::Count(bucket.documents),
                Value::Text(&samples(bucket)),
            ])?;
        }
        results.finish()
    }

    fn table(&self, names: &[&'static str]) -> Result<Results> {
        Results::new(
            self.layout,
            names.iter().copied().map(Column::new).collect(),
        )
    }

    fn heading(&self, text: &str) -> Result<()> {
        self.layout.paragraph(text)
    }
}
