//! The command line: the verbs and the options that several of them share.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use resemblance::JoinOptions;

use super::Context;
use super::failure::{EXIT_CODES, Failure, Result};
use super::{
    add, backup, build, check, clusters, compact, completions, create, dedup, eval, evict, export,
    get, import, pairs, query, reband, remove, repair, stats, tune,
};
use crate::corpus;

/// Of a join.
const MOST_THREADS: usize = 1_024;

const CORPUS_HELP: &str = "\
A CORPUS is
  - a JSON Lines file, plain, gzip or Zstandard: one object a line with a string or integer
    field \"id\" (an integer counts as its decimal text) and a string field \"text\". Lines end at
    \\n; a \\r before it is allowed, blank lines are skipped, the last line needs no end, a byte
    order mark at the start of the file is ignored. A field that is there twice makes a line bad.
  - a folder: every file in it is one text in UTF-8 whose key is its relative path; files named
    *.jsonl, *.jsonl.gz or *.jsonl.zst are read as JSON Lines. Names that begin with a dot are
    left out, links to files are read, links to folders are not followed.
  - - for JSON Lines on standard input.
Documents count in this order: arguments as given, paths in a folder in byte order.

Keys are printed with \\\\ \\t \\n \\r for backslash, tab, newline and return, and \\xHH for bytes
outside UTF-8; a document without a key is printed as \\#ID. In jsonl a key is a JSON string; a key
outside UTF-8 is null and stands in hexadecimal in a further field, its name ending in _hex.";

const KILLED_HELP: &str = "\
A run that is killed, or stopped by a full disk, loses nothing: a store holds what was committed
before, and what is made under a new name is there whole or not at all. Killed, it can leave files
and folders whose names begin with .resemblance- beside what it was to make, or in --temp-dir: they
are part of nothing, and may be removed once no other run is at work there.";

fn after_help() -> String {
    format!(
        "{CORPUS_HELP}\n\n{KILLED_HELP}\n\n{EXIT_CODES}\n\n\
Examples:
  resemblance dedup corpus.jsonl.gz -o unique.jsonl.gz --report dropped.tsv
  resemblance pairs corpus.jsonl --threshold 0.9
  resemblance build seen.rsm corpus.jsonl --minhash 128 --threshold 0.8
  resemblance query seen.rsm --file page.txt
  curl -s https://example.org | resemblance query seen.rsm
  resemblance add seen.rsm more.jsonl --if-new
  resemblance dedup more.jsonl --against seen.rsm -o new.jsonl
  resemblance tune --threshold 0.7 --recall 0.99
  resemblance eval corpus.jsonl --sample 5000
  resemblance check seen.rsm || resemblance repair seen.rsm -o new.rsm"
    )
}

fn version() -> &'static str {
    static VERSION: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    VERSION.get_or_init(|| {
        let release = env!("CARGO_PKG_VERSION");
        let format = resemblance::FORMAT_VERSION;
        format!("{release} (store format {format})")
    })
}

/// Finds near-duplicates among documents, and keeps them found in a store on disk
#[derive(Debug, Parser)]
#[command(name = "resemblance", version = version(), after_long_help = after_help())]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Verb,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Create(create::Arguments),
    Build(build::Arguments),
    Add(add::Arguments),
    Query(query::Arguments),
    Get(get::Arguments),
    Remove(remove::Arguments),
    Evict(evict::Arguments),
    Pairs(pairs::Arguments),
    Clusters(clusters::Arguments),
    Dedup(dedup::Arguments),
    Stats(stats::Arguments),
    Tune(tune::Arguments),
    Eval(eval::Arguments),
    Check(check::Arguments),
    Compact(compact::Arguments),
    Reband(reband::Arguments),
    Repair(repair::Arguments),
    Backup(backup::Arguments),
    Export(export::Arguments),
    Import(import::Arguments),
    Completions(completions::Arguments),
}

impl Verb {
    /// The store that is named on the command line, which messages about damage must name.
    pub(crate) fn store(&self) -> Option<&Path> {
        match self {
            Self::Create(_)
            | Self::Build(_)
            | Self::Tune(_)
            | Self::Eval(_)
            | Self::Completions(_) => None,
            Self::Add(arguments) => Some(&arguments.store),
            Self::Query(arguments) => Some(&arguments.store),
            Self::Get(arguments) => Some(&arguments.store),
            Self::Remove(arguments) => Some(&arguments.store),
            Self::Evict(arguments) => Some(&arguments.store),
            Self::Stats(arguments) => Some(&arguments.store),
            Self::Check(arguments) => Some(&arguments.store),
            Self::Compact(arguments) => Some(&arguments.store),
            Self::Reband(arguments) => Some(&arguments.store),
            Self::Repair(arguments) => Some(&arguments.store),
            Self::Backup(arguments) => Some(&arguments.store),
            Self::Export(arguments) => Some(&arguments.store),
            Self::Import(arguments) => Some(&arguments.store),
            Self::Pairs(arguments) => corpus::only_store(&arguments.inputs),
            Self::Clusters(arguments) => corpus::only_store(&arguments.inputs),
            Self::Dedup(arguments) => arguments.against.as_deref(),
        }
    }
}

/// Options that every verb takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct CommonOptions {
    /// Cache of the store, such as 64M or 2G
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) cache: Option<u64>,
    /// Memory for sorting; what does not fit goes to temporary files
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_size, default_value = "256M")]
    pub(crate) memory: u64,
    /// Threads for sketching and comparing [default: one a core]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Folder for temporary files [default: the system's; of build, reband and repair: the
    /// store's]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) temp_dir: Option<PathBuf>,
    /// Say nothing but errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Say more about what is done
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
}

/// How documents are found in a corpus.
#[derive(Debug, Args)]
#[command(next_help_heading = "Corpus")]
pub(crate) struct CorpusOptions {
    /// JSON field that holds the key
    #[arg(long, value_name = "NAME", default_value = "id")]
    pub(crate) id_field: String,
    /// JSON field that holds the text
    #[arg(long, value_name = "NAME", default_value = "text")]
    pub(crate) text_field: String,
    /// In folders, only files whose relative path matches, such as '*.txt' (* also matches /);
    /// may be given several times
    #[arg(long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,
    /// In folders, also names that begin with a dot
    #[arg(long)]
    pub(crate) hidden: bool,
    /// Skip and count bad documents instead of stopping at the first; a file that cannot be read or
    /// decompressed stops all the same
    #[arg(long)]
    pub(crate) skip_bad: bool,
}

impl CorpusOptions {
    pub(crate) fn settings(&self) -> Result<corpus::Settings> {
        if self.id_field == self.text_field {
            return Err(Failure::usage(
                "--id-field and --text-field must be two different fields",
            ));
        }
        Ok(corpus::Settings {
            id_field: self.id_field.clone(),
            text_field: self.text_field.clone(),
            include: if self.include.is_empty() {
                None
            } else {
                Some(self.globs()?)
            },
            hidden: self.hidden,
        })
    }

    fn globs(&self) -> Result<GlobSet> {
        let mut set = GlobSetBuilder::new();
        for pattern in &self.include {
            let glob = GlobBuilder::new(pattern)
                .literal_separator(false)
                .build()
                .map_err(|e| Failure::usage(format!("--include: {e}")))?;
            set.add(glob);
        }
        set.build()
            .map_err(|e| Failure::usage(format!("--include: {e}")))
    }
}

/// How near is near: of a schema that is made, or of what is reported.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Bounds")]
pub(crate) struct BoundOptions {
    /// Least similarity of a near-duplicate, 0 to 1 (MinHash) [default: 0.8, or the store's]
    #[arg(long, value_name = "T")]
    pub(crate) threshold: Option<f64>,
    /// Greatest Hamming distance of a near-duplicate (SimHash) [default: 3, of 128 bits 6, or
    /// the store's]
    #[arg(long, value_name = "D")]
    pub(crate) distance: Option<u8>,
}

/// How all pairs are looked for.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Bounds")]
pub(crate) struct JoinLimits {
    /// Of documents that share a bucket, compare all with the first N different signatures only:
    /// quick where much is alike, but may miss some; what is left out is counted [default: all
    /// with all]
    #[arg(long, value_name = "N")]
    pub(crate) max_bucket: Option<NonZeroU32>,
}

impl JoinLimits {
    pub(crate) fn options(self, context: &Context) -> JoinOptions {
        // More threads than the library takes would be of no use.
        let options = JoinOptions::new().threads(context.threads.min(MOST_THREADS));
        match self.max_bucket {
            Some(most) => options.max_bucket(most.get() as usize),
            None => options,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns for reading
    Table,
    /// Tab-separated values
    Tsv,
    /// One JSON object a line
    Jsonl,
}

/// How results are written.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct FormatOptions {
    /// Form of the results [default: table on a terminal, else tsv]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Put the names of the columns into the first line of tsv
    #[arg(long)]
    pub(crate) header: bool,
}

/// A number of bytes with an optional suffix K, M, G or T (powers of 1,024).
fn parse_size(text: &str) -> Result<u64, String> {
    let digits_end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, suffix) = text.split_at(digits_end);
    let shift = match suffix.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err("expected a number with K, M, G or T, such as 64M".into()),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "expected a number with K, M, G or T, such as 64M".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("17"), Ok(17));
        assert_eq!(parse_size("64M"), Ok(64 << 20));
        assert_eq!(parse_size("2GiB"), Ok(2 << 30));
        assert_eq!(parse_size("1k"), Ok(1024));
        for wrong in ["", "M", "-1", "1.5G", "1X", "99999999999T"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
