//! The options that every verb takes, and the forms of keys and sizes on the command line.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use crate::defaults::CONFIG_VARIABLE;
use crate::failure::{Failure, Result};
use crate::output::ColourChoice;
use crate::output::escape::{self, PrintedKey};

/// Options that every verb takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct CommonOptions {
    /// Cache of the store, such as 64M or 2G; build, reband and repair sort in what it leaves of --memory, and in half of
    /// that at least [default: a quarter of --memory, at least 16M]
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_size)]
    #[arg(env = "RESEMBLANCE_CACHE", hide_env = true)]
    pub(crate) cache: Option<u64>,
    /// Memory for documents, their features and sorting; anything larger goes to temporary files [default: a quarter of
    /// the memory of the machine or container]
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_positive_size)]
    #[arg(env = "RESEMBLANCE_MEMORY", hide_env = true)]
    pub(crate) memory: Option<u64>,
    /// Threads for sketching and comparing [default: one per core]
    #[arg(long, global = true, value_name = "N", value_parser = parse_threads)]
    #[arg(env = "RESEMBLANCE_THREADS", hide_env = true)]
    pub(crate) threads: Option<usize>,
    /// Folder for temporary files [default: the system's; for build, reband and repair the store's folder]
    #[arg(long, global = true, value_name = "DIR")]
    #[arg(env = "RESEMBLANCE_TEMP_DIR", hide_env = true)]
    pub(crate) temp_dir: Option<PathBuf>,
    /// Open stores even if the file system has no locks. Nothing then prevents a second process from opening the store:
    /// two processes that write at the same time lose documents and damage it
    #[arg(long, global = true)]
    pub(crate) no_lock: bool,
    /// Seconds to wait for a process that has the store open for writing; 0 does not wait
    #[arg(long, global = true, value_name = "SECONDS", value_parser = parse_wait, default_value = "10")]
    #[arg(env = "RESEMBLANCE_WAIT", hide_env = true)]
    pub(crate) wait: Duration,
    /// TOML file with defaults for options (see resemblance --help) [default: resemblance/config.toml in the user's
    /// configuration folder, if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    #[arg(env = CONFIG_VARIABLE, hide_env = true)]
    pub(crate) config: Option<OsString>,
    /// Use colours in tables, messages and the output of explain
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColourChoice,
    /// Print only errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Print more messages
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
}

/// A number of bytes as [`parse_size`] reads it, of at least 1.
pub(super) fn parse_positive_size(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        0 => Err("expected a size of at least 1, such as 64M".into()),
        bytes => Ok(bytes),
    }
}

/// A number of bytes with an optional suffix K, M, G or T (powers of 1,024).
pub(super) fn parse_size(text: &str) -> Result<u64, String> {
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
        _ => return Err(EXPECTED_SIZE.into()),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| EXPECTED_SIZE.into())
}

const EXPECTED_SIZE: &str = "expected a whole number, or one with K, M, G or T, such as 64M";

/// A positive number of seconds.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = parse_wait(text).ok().filter(|wait| !wait.is_zero());
    seconds.ok_or_else(|| "expected a number of seconds above 0, such as 5 or 0.5".into())
}

/// A number of seconds, which may be 0.
fn parse_wait(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok();
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "expected a number of seconds, such as 5 or 0".into())
}

/// A key on the command line.
pub(crate) fn parse_key(key: &OsStr, is_escaped: bool) -> Result<PrintedKey> {
    parse_key_bytes(key.as_encoded_bytes(), is_escaped)
}

fn parse_key_bytes(key: &[u8], is_escaped: bool) -> Result<PrintedKey> {
    if !is_escaped {
        return Ok(PrintedKey::Key(key.to_vec()));
    }
    escape::parse(key)
        .map_err(|reason| Failure::usage(format!("key {}: {reason}", String::from_utf8_lossy(key))))
}

/// The keys in the lines of a file, or of standard input if the path is `-`. An empty line is passed
/// over, unless keys have escapes: the empty key is printed so.
pub(crate) fn read_keys(path: &Path, are_escaped: bool) -> Result<Vec<PrintedKey>> {
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().lock().read_to_end(&mut bytes),
        false => File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)),
    };
    read.map_err(|error| Failure::io(format!("cannot read {}", path.display()), &error))?;
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let keys = lines.map(|line| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        // A carriage return that is part of a printed key is an escape.
        match line.strip_suffix(b"\r") {
            Some(key) if are_escaped => key,
            _ => line,
        }
    });
    keys.filter(|key| are_escaped || !key.is_empty())
        .map(|key| parse_key_bytes(key, are_escaped))
        .collect()
}

/// Several keys on the command line.
pub(crate) fn parse_keys(keys: &[OsString], are_escaped: bool) -> Result<Vec<PrintedKey>> {
    keys.iter().map(|key| parse_key(key, are_escaped)).collect()
}

/// More would take memory and time to start, and none would have work.
const MAX_THREADS: usize = 1_024;

fn parse_threads(text: &str) -> Result<usize, String> {
    let threads = text.parse().ok();
    threads
        .filter(|threads| (1..=MAX_THREADS).contains(threads))
        .ok_or_else(|| format!("expected 1 to {MAX_THREADS}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_options_parse_units_and_refuse_other_text() {
        assert_eq!(parse_size("17"), Ok(17));
        assert_eq!(parse_size("64M"), Ok(64 << 20));
        assert_eq!(parse_size("2GiB"), Ok(2 << 30));
        assert_eq!(parse_size("1k"), Ok(1024));
        for wrong in ["", "M", "-1", "1.5G", "1X", "99999999999T"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
