//! What every verb can use.

use std::path::PathBuf;

use resemblance::StoreOptions;

use super::interrupt::Interrupt;
use crate::options::CommonOptions;
use crate::output::Messages;

/// The options that every verb takes, as they are used.
pub(crate) struct Context {
    pub(crate) messages: Messages,
    pub(crate) interrupt: Interrupt,
    pub(crate) threads: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) temp_dir: PathBuf,
    /// The value of `--temp-dir`, if it was given.
    pub(crate) given_temp_dir: Option<PathBuf>,
    pub(crate) store_options: StoreOptions,
}

impl Context {
    pub(crate) fn new(options: &CommonOptions, interrupt: Interrupt) -> Self {
        let available = || std::thread::available_parallelism().map_or(1, usize::from);
        let mut store_options = StoreOptions::new();
        if let Some(bytes) = options.cache {
            store_options = store_options.cache_bytes(bytes);
        }
        if options.no_lock {
            store_options = store_options.without_lock();
        }
        Self {
            messages: Messages {
                quiet: options.quiet,
                verbose: options.verbose,
            },
            interrupt,
            threads: options.threads.map_or_else(available, usize::from),
            memory_bytes: options.memory,
            temp_dir: options.temp_dir.clone().unwrap_or_else(std::env::temp_dir),
            given_temp_dir: options.temp_dir.clone(),
            store_options,
        }
    }
}
