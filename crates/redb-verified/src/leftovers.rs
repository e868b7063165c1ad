//! Removes temporary files of processes that ended without removing them. The names of the files
//! identify the process.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

/// The prefix of the names. Three numbers follow: those of the system, the process, and the file.
const PREFIX: &str = ".resemblance-";

/// The last part of the name of an empty file that shows the mode of new files.
const PROBE: &str = "mode";

/// The age at which an unlocked file of an unknown process counts as left over. A live process
/// writes to its file, has it locked, or is about to rename it.
const UNKNOWN_AGE: Duration = Duration::from_secs(60 * 60);

/// The number in names if the system does not provide one.
const UNKNOWN_SYSTEM: u32 = 0;

/// Returns the name of a temporary file of this process.
pub(crate) fn temporary_name(number: u64) -> String {
    let (system, process) = (
        system_number().unwrap_or(UNKNOWN_SYSTEM),
        std::process::id(),
    );
    format!("{PREFIX}{system:08x}-{process}-{number}")
}

/// Returns the name of an empty file beside a temporary one.
pub(crate) fn probe_name(temporary: &Path) -> PathBuf {
    let mut name = temporary.as_os_str().to_owned();
    name.push(format!("-{PROBE}"));
    PathBuf::from(name)
}

/// Removes temporary files of ended processes from a folder, once for each folder in a process.
pub(crate) fn remove_leftovers(folder: &Path) {
    static SEEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    // After a fork, the lock may never become free.
    let Ok(mut seen) = SEEN.try_lock() else {
        return;
    };
    if !seen.insert(folder.into()) {
        return;
    }
    drop(seen);
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(run) = name.to_str().and_then(FormerRun::parse) else {
            continue;
        };
        let path = entry.path();
        if run.is_deleted(&path) {
            // Another process may have removed it just now.
            let _ = fs::remove_file(&path);
        }
    }
}

/// Opens a file for reading, but neither a link nor a pipe: where others may write to its folder, something of theirs
/// may have taken its name.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(target_os = "linux")]
    {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// The process that made a file, as the file's name identifies it.
#[derive(Debug, PartialEq, Eq)]
struct FormerRun {
    system: u32,
    process: u32,
}

impl FormerRun {
    fn parse(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix(PREFIX)?.split('-');
        let (system, process, number) = (parts.next()?, parts.next()?, parts.next()?);
        number.parse::<u64>().ok()?;
        if system.len() != 8 || parts.next().is_some_and(|part| part != PROBE) {
            return None;
        }
        Some(Self {
            system: u32::from_str_radix(system, 16).ok()?,
            process: process.parse().ok()?,
        })
    }

    /// Returns true if no process needs the file any more, as far as this can be determined.
    fn is_deleted(&self, path: &Path) -> bool {
        // Links and pipes are never ours.
        let Ok(metadata) = fs::symlink_metadata(path) else {
            return false;
        };
        if !metadata.is_file() {
            return false;
        }
        if Some(self.system) == system_number()
            && let Some(lives) = is_alive(self.process, Path::new("/proc"))
        {
            return !lives;
        }
        let age = metadata
            .modified()
            .ok()
            .and_then(|time| time.elapsed().ok());
        let is_old = age.is_some_and(|age| age > UNKNOWN_AGE);
        // A store that is being created is locked.
        is_old && open_regular(path).is_ok_and(|file| file.try_lock().is_ok())
    }
}

/// Returns true if a process of this system is running, or `None` if that is unknown.
fn is_alive(process: u32, processes: &Path) -> Option<bool> {
    // If this process is listed under its number, all are. In a new namespace without a `/proc` of its own, numbers are
    // those of other processes.
    let own = fs::read_link(processes.join("self")).ok()?;
    (own == Path::new(&std::process::id().to_string()))
        .then(|| processes.join(process.to_string()).exists())
}

/// Returns a number that identifies the boot of the system and its process namespace. Process
/// numbers can be compared only if it is the same. Returns `None` if the system does not provide
/// both: two namespaces could then not be distinguished, and a process of the other namespace would
/// seem to have ended.
fn system_number() -> Option<u32> {
    static NUMBER: OnceLock<Option<u32>> = OnceLock::new();
    *NUMBER.get_or_init(|| {
        let boot = fs::read("/proc/sys/kernel/random/boot_id").ok();
        let space = fs::read_link("/proc/self/ns/pid").ok();
        number_of(boot.as_deref(), space.as_deref())
    })
}

fn number_of(boot: Option<&[u8]>, space: Option<&Path>) -> Option<u32> {
    let hash = xxh3_64(&[boot?, space?.as_os_str().as_encoded_bytes()].concat());
    // The low half suffices. The last bit distinguishes it from the number of an unknown system.
    Some((hash & u64::from(u32::MAX)) as u32 | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_identify_their_process() {
        let own = FormerRun {
            system: system_number().unwrap_or(UNKNOWN_SYSTEM),
            process: std::process::id(),
        };
        assert_eq!(FormerRun::parse(&temporary_name(7)), Some(own));
        for other in [
            ".resemblance-",
            ".resemblance-1234-5",
            ".resemblance-aB3xY9",
            ".resemblance-00000001-5",
            ".resemblance-00000001-5-6-7",
            "x.resemblance-00000001-5-6",
        ] {
            assert_eq!(FormerRun::parse(other), None, "{other}");
        }
    }

    #[test]
    fn process_identity_needs_both_numbers() {
        let (boot, space) = (&b"1234"[..], Path::new("pid:[1]"));
        assert!(number_of(Some(boot), Some(space)).is_some_and(|n| n != UNKNOWN_SYSTEM));
        assert_eq!(number_of(None, Some(space)), None);
        assert_eq!(number_of(Some(boot), None), None);
    }

    /// The number of a process elsewhere was once taken for that of a process here, and a file in use was removed.
    #[cfg(unix)]
    #[test]
    fn processes_of_another_namespace_say_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let own = std::process::id();
        fs::create_dir(folder.path().join(own.to_string())).unwrap();
        let link = folder.path().join("self");
        std::os::unix::fs::symlink((own + 1).to_string(), &link).unwrap();
        assert_eq!(is_alive(own, folder.path()), None);
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(own.to_string(), &link).unwrap();
        assert_eq!(is_alive(own, folder.path()), Some(true));
        assert_eq!(is_alive(own + 1, folder.path()), Some(false));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_took_the_name_of_a_leftover_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, pipe] = ["file", "link", "pipe"].map(|name| folder.path().join(name));
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        open_regular(&file).unwrap();
        open_regular(&link).unwrap_err();
        // Opening it would wait for a writer.
        open_regular(&pipe).unwrap_err();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_leftovers_of_ended_processes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: String| {
            fs::write(folder.path().join(&name), "half a store").unwrap();
            folder.path().join(name)
        };
        let system = system_number().unwrap();
        // Greater than any process number.
        let dead = file(format!("{PREFIX}{system:08x}-4294967295-0"));
        let own = file(temporary_name(0));
        let elsewhere = file(format!("{PREFIX}{:08x}-4294967295-0", !system));
        let old = file(format!("{PREFIX}{:08x}-4294967295-1", !system));
        let unknown = file(format!("{PREFIX}{UNKNOWN_SYSTEM:08x}-4294967295-0"));
        let locked = file(format!("{PREFIX}{:08x}-4294967295-2", !system));
        let other = file(format!("{PREFIX}of-the-tool"));
        let long_ago = std::time::SystemTime::now() - 2 * UNKNOWN_AGE;
        for path in [&old, &locked] {
            let file = File::options().write(true).open(path).unwrap();
            file.set_modified(long_ago).unwrap();
        }
        let holder = File::open(&locked).unwrap();
        holder.lock().unwrap();
        remove_leftovers(folder.path());
        assert!(!dead.exists() && !old.exists());
        // It is unknown whether the process of an unknown system is running.
        assert!(unknown.exists());
        assert!(own.exists() && elsewhere.exists() && locked.exists() && other.exists());
    }
}
