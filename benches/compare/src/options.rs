//! The command line.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Result;
use crate::documents::Form;
use crate::engine::{how_to_build, set_cache_bytes};
use crate::process::available_bytes;

/// The order in which documents are replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Random,
    Ascending,
}

/// Prints the name on the command line.
impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Random => "random",
            Self::Ascending => "ascending",
        })
    }
}

/// The measurements and their settings. The usage text explains each.
#[derive(Clone)]
pub struct Options {
    pub documents: u64,
    pub base: Option<u64>,
    pub batch: u64,
    pub singles: u64,
    /// The memory of each engine in MiB. Each engine is measured with each of these.
    pub memories: Vec<u64>,
    pub rounds: u64,
    pub threads: Vec<usize>,
    pub sync_delay: Duration,
    pub visits: u64,
    pub pages: u64,
    pub site_pages: u64,
    pub day_pages: u64,
    pub values: u16,
    pub value_bits: u8,
    pub without_check: bool,
    pub output: PathBuf,
    pub order: Order,
    pub probes: u64,
    pub cold_rounds: u64,
    pub scan_limit: u64,
    pub expected: Option<u64>,
    pub pairs: u64,
    /// The number of features of the largest sets.
    pub most_features: u64,
    pub bulk: bool,
    forms: Vec<Form>,
    engines: Option<Vec<String>>,
    sqlite_records: bool,
    pub time_limit: Duration,
    pub memory_limit_bytes: u64,
    /// The memory that each engine may take while it is probed, pages of its files included.
    pub group_bytes: Option<u64>,
    pub alone: Option<String>,
    /// True if another process schedules this one.
    pub turns: bool,
    /// The work of this process, if another one started it as one of several.
    pub work: Option<String>,
    pub folder: PathBuf,
}

impl Options {
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            documents: 200_000,
            base: None,
            batch: 10_000,
            singles: 2_000,
            memories: vec![64],
            rounds: 10,
            threads: vec![1, 4, 32, 256],
            sync_delay: Duration::ZERO,
            visits: 50_000_000,
            pages: 2_000_000,
            site_pages: 1_000,
            day_pages: 30_000,
            values: 64,
            value_bits: 16,
            without_check: false,
            output: PathBuf::from("soak"),
            order: Order::Random,
            probes: 2_000,
            cold_rounds: 8,
            scan_limit: 100_000,
            expected: None,
            pairs: 10_000,
            most_features: u64::MAX,
            bulk: false,
            forms: vec![Form::Postings, Form::Records],
            engines: None,
            sqlite_records: false,
            time_limit: Duration::from_secs(600),
            // Doubling must not take all memory.
            memory_limit_bytes: available_bytes()? / 20 * 9,
            group_bytes: None,
            alone: None,
            turns: false,
            work: None,
            folder: PathBuf::from("."),
        };
        while let Some(name) = arguments.next() {
            match name.as_str() {
                "--bulk" => options.bulk = true,
                "--sqlite-records" => options.sqlite_records = true,
                "--without-check" => options.without_check = true,
                "--turns" => options.turns = true,
                _ => {
                    let value = arguments.next().ok_or(format!("{name}: no value"))?;
                    options
                        .set(&name, &value)
                        .map_err(|error| format!("{name} {value}: {error}"))?;
                }
            }
        }
        let counts = [
            options.documents,
            options.batch,
            options.probes,
            options.pairs,
            options.visits,
            options.pages,
            options.site_pages,
            options.day_pages,
        ];
        if counts.contains(&0) {
            return Err("counts are at least 1".into());
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "--documents" => self.documents = value.parse()?,
            "--base" => self.base = Some(value.parse()?),
            "--batch" => self.batch = value.parse()?,
            "--singles" => self.singles = value.parse()?,
            "--rounds" => self.rounds = value.parse()?,
            "--threads" => {
                let threads = value.split(',').map(str::parse);
                self.threads = threads.collect::<std::result::Result<_, _>>()?;
                if self.threads.contains(&0) {
                    return Err("at least 1".into());
                }
            }
            "--memory" => {
                let memories = value.split(',').map(str::parse);
                self.memories = memories.collect::<std::result::Result<_, _>>()?;
                if self.memories.contains(&0) {
                    return Err("at least 1".into());
                }
            }
            "--sync-delay" => self.sync_delay = Duration::from_micros(value.parse()?),
            "--visits" => self.visits = value.parse()?,
            "--pages" => self.pages = value.parse()?,
            "--day-pages" => self.day_pages = value.parse()?,
            "--site-pages" => self.site_pages = value.parse()?,
            "--values" => self.values = value.parse()?,
            "--value-bits" => self.value_bits = value.parse()?,
            "--output" => self.output = value.into(),
            "--order" => {
                self.order = match value {
                    "random" => Order::Random,
                    "ascending" => Order::Ascending,
                    _ => return Err("not one of random, ascending".into()),
                }
            }
            "--probes" => self.probes = value.parse()?,
            "--cold-rounds" => self.cold_rounds = value.parse()?,
            "--scan-limit" => self.scan_limit = value.parse()?,
            "--pairs" => self.pairs = value.parse()?,
            "--most-features" => self.most_features = value.parse()?,
            "--expected" => self.expected = Some(value.parse()?),
            "--seconds-limit" => self.time_limit = Duration::from_secs(value.parse()?),
            "--memory-limit" => self.memory_limit_bytes = value.parse::<u64>()? << 20,
            "--cgroup" => self.group_bytes = Some(value.parse::<u64>()? << 20),
            "--engines" => self.engines = Some(value.split(',').map(str::to_owned).collect()),
            "--alone" => self.alone = Some(value.to_owned()),
            "--work" => self.work = Some(value.to_owned()),
            "--folder" => self.folder = value.into(),
            "--form" => {
                self.forms = match value {
                    "postings" => vec![Form::Postings],
                    "records" => vec![Form::Records],
                    "both" => vec![Form::Postings, Form::Records],
                    _ => return Err("not one of postings, records, both".into()),
                }
            }
            _ => return Err("unknown".into()),
        }
        Ok(())
    }

    /// Returns these options with files in another folder.
    pub fn inside(&self, folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            ..self.clone()
        }
    }

    /// Returns these options with one memory size for every engine.
    pub fn with_memory(&self, mebibytes: u64) -> Self {
        set_cache_bytes(mebibytes << 20);
        Self {
            memories: vec![mebibytes],
            ..self.clone()
        }
    }

    /// Returns the memory sizes as the command line states them.
    pub fn memory(&self) -> String {
        let memories: Vec<String> = self.memories.iter().map(u64::to_string).collect();
        memories.join(",")
    }

    /// Returns all requested forms.
    pub fn forms(&self) -> &[Form] {
        &self.forms
    }

    /// Returns the form for measurements that have only one.
    pub fn form(&self) -> Form {
        self.forms.first().copied().unwrap_or(Form::Postings)
    }

    /// Returns true if SQLite keeps records when the store does.
    pub fn with_records(&self) -> bool {
        self.with_records_of(self.form())
    }

    /// The same for a given form.
    pub fn with_records_of(&self, form: Form) -> bool {
        self.sqlite_records && form == Form::Records
    }

    /// Returns the requested engines, which must all be known, or the default.
    pub fn engines(&self, known: &[String], default: &[String]) -> Result<Vec<String>> {
        let Some(engines) = &self.engines else {
            return Ok(default.to_vec());
        };
        let Some(name) = engines.iter().find(|name| !known.contains(name)) else {
            return Ok(engines.clone());
        };
        match how_to_build(name) {
            Some(how) => Err(format!("--engines {name}: {how}").into()),
            None => Err(format!("--engines {name}: not one of {}", known.join(", ")).into()),
        }
    }
}
