//! The context that every verb can use.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use resemblance::report::Report;
use resemblance::{Operation, StoreOptions};
use resemblance_corpus::CorpusSettings;
use resemblance_corpus::verification::FeatureSets;

use super::interrupt::{Interrupt, Watched};
use crate::failure::{Failure, Result};
use crate::options::{CommonOptions, CorpusOptions};
use crate::output::{BinarySize, Messages, ProgressDisplay};
use sysinfo::System;

/// The options that every verb takes, as they are used.
pub(crate) struct Context {
    pub(crate) messages: Messages,
    pub(crate) interrupt: Interrupt,
    pub(crate) threads: usize,
    pub(crate) memory_bytes: u64,
    /// The memory in which the postings of a store are sorted: what its cache leaves of the whole, and at least half.
    pub(crate) sorting_bytes: u64,
    is_memory_given: bool,
    /// A corpus may be read several times.
    has_printed_memory: AtomicBool,
    pub(crate) temp_dir: PathBuf,
    /// The value of `--temp-dir`, if it was given.
    pub(crate) given_temp_dir: Option<PathBuf>,
    pub(crate) store_options: StoreOptions,
    /// The files that --skip-unreadable has skipped.
    pub(crate) unreadable: Arc<Mutex<BTreeSet<String>>>,
    /// True if the file system has no locks, so that none is needed.
    pub(crate) is_without_lock: bool,
}

/// The divisor of the default memory of a job: this part of the machine's, or of the container's if
/// it is limited.
const MACHINE_SHARES: u64 = 4;

/// The memory that a job takes where the machine's memory is unknown.
const UNKNOWN_MACHINE_BYTES: u64 = 256 << 20;

fn share_of_machine() -> u64 {
    let Ok(mut system) = System::new() else {
        return UNKNOWN_MACHINE_BYTES;
    };
    system.refresh_memory();
    let total = limits_of_process(Path::new("/"))
        .into_iter()
        .fold(system.total_memory(), u64::min);
    match total / MACHINE_SHARES {
        0 => UNKNOWN_MACHINE_BYTES,
        share => share,
    }
}

/// The limits of the memory of this process under Linux: of its control groups, each of which has those above it as
/// well, and of its address space. `root` is where the system's files are.
fn limits_of_process(root: &Path) -> Vec<u64> {
    let text = |path: &Path| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    let mut limits = Vec::new();
    for line in text(Path::new("proc/self/cgroup")).lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else {
            continue;
        };
        let mounted = match controllers {
            "" => Path::new("sys/fs/cgroup"),
            list if list.split(',').any(|name| name == "memory") => {
                Path::new("sys/fs/cgroup/memory")
            }
            _ => continue,
        };
        for above in Path::new(group.trim_start_matches('/')).ancestors() {
            for name in ["memory.max", "memory.high", "memory.limit_in_bytes"] {
                limits.extend(text(&mounted.join(above).join(name)).trim().parse::<u64>());
            }
        }
    }
    let address_space = text(Path::new("proc/self/limits"));
    let soft = |line: &str| {
        line.strip_prefix("Max address space")?
            .split_whitespace()
            .next()?
            .parse::<u64>()
            .ok()
    };
    limits.extend(address_space.lines().find_map(soft));
    limits
}

/// The divisor of a store's cache: this part of a job's memory, with a minimum.
const CACHE_SHARES: u64 = 4;
const MIN_CACHE_BYTES: u64 = 16 << 20;

/// The size from which a corpus is large: for less, hardly anybody asks how much memory it takes.
const LARGE_CORPUS_BYTES: u64 = 64 << 20;

/// How the memory of a job is shared out.
const SHARES: u64 = 8;

/// Returns the size of a store's cache in a job with this memory.
fn cache_share(memory_bytes: u64) -> u64 {
    (memory_bytes / CACHE_SHARES).max(MIN_CACHE_BYTES)
}

impl Context {
    /// See [`Messages::note`].
    pub(crate) fn note(&self, message: impl Display) {
        self.messages.note(message);
    }

    /// See [`Messages::counts`].
    pub(crate) fn counts(&self, message: impl Display) {
        self.messages.counts(message);
    }

    /// See [`Messages::detail`].
    pub(crate) fn detail(&self, message: impl Display) {
        self.messages.detail(message);
    }

    /// Returns the settings for reading a corpus, where decompressors may take half of the memory.
    pub(crate) fn corpus_settings(&self, options: &CorpusOptions) -> Result<CorpusSettings> {
        let passes_over = options.skip_unreadable;
        let mut settings = options.settings()?;
        settings.window_bytes = self.memory_bytes / 2;
        settings.unreadable = passes_over.then(|| Arc::clone(&self.unreadable));
        Ok(settings)
    }

    /// Prints the names of the files that --skip-unreadable has skipped. Returns true if there are
    /// any.
    pub(crate) fn print_unreadable(&self) -> bool {
        let unreadable = self
            .unreadable
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for message in unreadable.iter() {
            Messages::skipped(message);
        }
        !unreadable.is_empty()
    }

    /// A bar for a task, unless the run is quiet.
    pub(crate) fn progress(&self, task: &'static str) -> ProgressDisplay {
        ProgressDisplay::new(task, self.messages.quiet)
    }

    /// Shows that work continues; fails once a signal has arrived.
    pub(crate) fn tick(&self, progress: &mut ProgressDisplay) -> Result<()> {
        self.interrupt.check()?;
        progress.tick();
        Ok(())
    }

    /// The same, where the number of documents is known.
    pub(crate) fn count(&self, progress: &mut ProgressDisplay, documents: u64) -> Result<()> {
        self.interrupt.check()?;
        progress.update(documents, 0);
        Ok(())
    }

    /// Shows the progress of a long operation of the library, and breaks it off at a signal.
    pub(crate) fn watch(&self) -> Watched<'_> {
        Watched::new(&self.interrupt, self.progress("beginning"))
    }

    /// Carries out an operation of the library, shows its progress, and breaks it off at a signal, which is returned as
    /// well.
    pub(crate) fn carry_out<R: Report>(
        &self,
        operation: Operation<'_, R>,
    ) -> (resemblance::Result<R>, Option<Failure>) {
        let mut watched = self.watch();
        let done = operation
            .on_progress(|progress| watched.report(progress))
            .run();
        (done, watched.signal())
    }

    /// Prints how much memory work on a corpus of this size, if known, takes, unless it was given.
    pub(crate) fn print_memory(&self, corpus_bytes: Option<u64>) {
        if self.is_memory_given {
            return;
        }
        let is_large = corpus_bytes.is_some_and(|bytes| bytes >= LARGE_CORPUS_BYTES);
        let memory = BinarySize(self.memory_bytes);
        let text = format!(
            "using up to {memory} of memory, a quarter of what is available (change with \
                            --memory)"
        );
        if !is_large {
            self.messages.detail(text);
        } else if !self.has_printed_memory.swap(true, Relaxed) {
            self.messages.note(text);
        }
    }

    /// Fails if the folder for temporary files was given and is not a folder.
    pub(crate) fn must_have_temp_dir(&self) -> Result<()> {
        let Some(folder) = &self.given_temp_dir else {
            return Ok(());
        };
        let listed = std::fs::read_dir(folder);
        listed
            .map(drop)
            .map_err(|e| Failure::io(format!("cannot use {} (--temp-dir)", folder.display()), &e))
    }

    /// The memory for the documents of a corpus that is joined, and as much for their features.
    pub(crate) fn corpus_bytes(&self) -> u64 {
        3 * self.memory_bytes / SHARES
    }

    /// The memory in which results are sorted.
    pub(crate) fn results_bytes(&self) -> u64 {
        self.memory_bytes - 2 * self.corpus_bytes()
    }

    /// Room for the features of texts, if similarities are to be exact.
    pub(crate) fn features(&self, is_exact: bool) -> Option<FeatureSets> {
        let features = is_exact.then(|| FeatureSets::new(&self.temp_dir));
        features.map(|features| features.memory_bytes(self.corpus_bytes()))
    }

    /// Returns the same context for work that reads a corpus again, whose notes were printed
    /// before.
    pub(crate) fn repeated(&self) -> Self {
        Self {
            messages: Messages {
                is_repeated: true,
                ..self.messages
            },
            interrupt: self.interrupt.clone(),
            has_printed_memory: AtomicBool::new(true),
            temp_dir: self.temp_dir.clone(),
            given_temp_dir: self.given_temp_dir.clone(),
            store_options: self.store_options.clone(),
            unreadable: Arc::clone(&self.unreadable),
            ..*self
        }
    }

    pub(crate) fn new(options: &CommonOptions, interrupt: Interrupt) -> Self {
        let available = || std::thread::available_parallelism().map_or(1, usize::from);
        let memory_bytes = options.memory.unwrap_or_else(share_of_machine);
        let cache_bytes = options.cache.unwrap_or(cache_share(memory_bytes));
        let mut store_options = StoreOptions::new()
            .cache_bytes(cache_bytes)
            .wait(options.wait);
        if options.no_lock {
            store_options = store_options.without_lock();
        }
        Self {
            messages: Messages {
                quiet: options.quiet,
                verbose: options.verbose,
                is_repeated: false,
            },
            interrupt,
            threads: options.threads.unwrap_or_else(available),
            memory_bytes,
            sorting_bytes: memory_bytes
                .saturating_sub(cache_bytes)
                .max(memory_bytes / 2),
            is_memory_given: options.memory.is_some(),
            has_printed_memory: AtomicBool::default(),
            temp_dir: options.temp_dir.clone().unwrap_or_else(std::env::temp_dir),
            given_temp_dir: options.temp_dir.clone(),
            store_options,
            unreadable: Arc::default(),
            is_without_lock: options.no_lock,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process may take --memory and 100 MB more, of which its code and its threads take most.
    #[test]
    fn cache_beside_little_memory_is_small() {
        for (memory, cache) in [(50_u64 << 20, 16_u64 << 20), (4 << 30, 1 << 30)] {
            assert_eq!(cache_share(memory), cache);
        }
    }

    #[test]
    fn memory_limit_is_the_least_of_all_parent_cgroups() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert!(limits_of_process(root.path()).is_empty());
        write(
            "proc/self/cgroup",
            "4:cpu:/x\n3:memory,other:/job\n0::/slice/unit\n",
        );
        write("sys/fs/cgroup/memory.max", "max\n");
        write("sys/fs/cgroup/slice/memory.max", "500\n");
        write("sys/fs/cgroup/slice/unit/memory.high", "700\n");
        write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "900\n");
        write("sys/fs/cgroup/x/memory.max", "1\n");
        let limits = "Max open files 5 5 files\nMax address space         600                  unlimited bytes\n";
        write("proc/self/limits", limits);
        let mut found = limits_of_process(root.path());
        found.sort_unstable();
        assert_eq!(found, [500, 600, 700, 900]);
    }
}
