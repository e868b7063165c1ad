//! Reads what the system reports about this process and its files.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::Advice;

use crate::Result;

/// A field of a file of lines `name: value` in `/proc`.
fn field(path: &str, name: &str) -> Result<u64> {
    find(&std::fs::read_to_string(path)?, name).map_err(|error| format!("{path}: {error}").into())
}

fn find(text: &str, name: &str) -> Result<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines
        .find(|(found, _)| *found == name)
        .ok_or(format!("no {name}"))?;
    Ok(value.trim().trim_end_matches(" kB").parse()?)
}

/// The most memory that this process has had at a time: pages of mapped files are counted, too.
pub fn peak_bytes() -> Result<u64> {
    Ok(field("/proc/self/status", "VmHWM")? << 10)
}

/// The memory that this process has.
pub fn resident_bytes() -> Result<u64> {
    Ok(field("/proc/self/status", "VmRSS")? << 10)
}

/// Returns the memory of this process that is not mapped from files.
pub fn anonymous_bytes() -> Result<u64> {
    Ok(field("/proc/self/status", "RssAnon")? << 10)
}

/// The memory that could be had without swapping.
pub fn available_bytes() -> Result<u64> {
    Ok(field("/proc/meminfo", "MemAvailable")? << 10)
}

/// Returns the number of bytes that all threads of the process have passed to write calls, or 0 if
/// the system does not count them. The number includes writes to pipes, and excludes what a file
/// system writes by itself. Fewer bytes reach a disk if a page is rewritten in between, and the
/// system may attribute them to another process.
pub fn written_bytes() -> u64 {
    field("/proc/self/io", "wchar").unwrap_or(0)
}

/// Returns the number of read calls, including two of this function, and the number of bytes that
/// came from a disk.
pub fn reads() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let count = |name| find(&text, name).unwrap_or(0);
    (count("syscr"), count("read_bytes"))
}

/// All files in a folder and in those in it, or the one file.
fn files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    if !folder.is_dir() {
        found.push(folder.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(folder)? {
        files(&entry?.path(), found)?;
    }
    Ok(())
}

/// Bytes that a file or the files in a folder take on disk: allocated blocks, not lengths.
pub fn allocated_bytes(folder: &Path) -> Result<u64> {
    let mut paths = Vec::new();
    files(folder, &mut paths)?;
    let mut bytes = 0;
    for path in paths {
        // Blocks of 512 bytes, whatever the file system's own are.
        bytes += std::fs::metadata(path)?.blocks() * 512;
    }
    Ok(bytes)
}

/// Makes the next reads of the files in a folder come from disk. Returns a description of the
/// method.
pub fn drop_page_cache(folder: &Path) -> Result<&'static str> {
    rustix::fs::sync();
    if std::fs::write("/proc/sys/vm/drop_caches", "1").is_ok() {
        return Ok("the whole page cache dropped through /proc/sys/vm/drop_caches");
    }
    let mut paths = Vec::new();
    files(folder, &mut paths)?;
    for path in paths {
        rustix::fs::fadvise(File::open(path)?, 0, None, Advice::DontNeed)?;
    }
    Ok("/proc/sys/vm/drop_caches is not permitted: \
        the pages of the engine's files dropped with posix_fadvise instead")
}

/// A process that is given turns has nothing to do without the one that gives them, and could not
/// even notice while it is stopped.
pub fn die_with_parent(has_turns: bool) -> Result<()> {
    if has_turns {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    }
    Ok(())
}

/// Returns the folder of a group of processes whose memory is limited together, for one process: a child of the group
/// that this process is in or was started in.
fn memory_group(parent: &str, process: u32) -> PathBuf {
    // Version 1 of control groups has a hierarchy for memory alone, version 2 has one for everything.
    let (root, prefix) = match Path::new("/sys/fs/cgroup/memory").is_dir() {
        true => ("/sys/fs/cgroup/memory", ":memory:"),
        false => ("/sys/fs/cgroup", "0::"),
    };
    let line = parent.lines().find_map(|line| line.split_once(prefix));
    let own = line.map_or("", |(_, path)| path.trim_matches('/'));
    Path::new(root)
        .join(own)
        .join(format!("resemblance-compare-{process}"))
}

/// Moves this process into a group of its own, in which the pages of files that it reads or maps count as its memory.
pub fn enter_memory_group() -> Result<PathBuf> {
    let own = std::fs::read_to_string("/proc/self/cgroup")?;
    let group = memory_group(&own, std::process::id());
    std::fs::create_dir(&group).map_err(|error| format!("{}: {error}", group.display()))?;
    std::fs::write(group.join("cgroup.procs"), std::process::id().to_string())?;
    Ok(group)
}

/// Limits the memory of a group. The system drops pages of files until the rest fits.
pub fn limit_memory(group: &Path, bytes: u64) -> Result<()> {
    rustix::fs::sync();
    let names = ["memory.limit_in_bytes", "memory.max"];
    let name = names.iter().find(|name| group.join(name).exists());
    let file = group.join(name.ok_or("the system limits no memory of groups")?);
    Ok(std::fs::write(file, bytes.to_string())?)
}

/// Removes the group that a process of this one was in, if it was in one.
pub fn remove_memory_group(process: u32) {
    if let Ok(own) = std::fs::read_to_string("/proc/self/cgroup") {
        let _ = std::fs::remove_dir(memory_group(&own, process));
    }
}
