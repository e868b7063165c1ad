//! Finds the process that has a file open for writing, to name it in errors.

use std::fmt;
use std::path::Path;

/// A process that has a file open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// The number of the process.
    pub process: u32,
    /// The name of its program, as the system shows it.
    pub program: String,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.program, self.process)
    }
}

/// Describes who has a file.
#[must_use]
pub fn describe_holder(holder: Option<&LockHolder>) -> String {
    match holder {
        Some(holder) if holder.process == std::process::id() => {
            "another handle of this process".to_owned()
        }
        Some(holder) => holder.to_string(),
        None => "another process or handle".to_owned(),
    }
}

/// Returns a process that has the file open for writing, or if there is none, one that has it open for reading.
/// `None` where the system does not show the open files of other processes.
#[cfg(target_os = "linux")]
pub(crate) fn find_holder(path: &Path) -> Option<LockHolder> {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    let wanted = fs::metadata(path).ok()?;
    let mut reader = None;
    for process in fs::read_dir("/proc").ok()?.flatten() {
        let Some(number) = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // Those of other users cannot be listed.
        let Ok(open_files) = fs::read_dir(process.path().join("fd")) else {
            continue;
        };
        for open_file in open_files.flatten() {
            let found = fs::metadata(open_file.path());
            if !found.is_ok_and(|found| (found.dev(), found.ino()) == (wanted.dev(), wanted.ino()))
            {
                continue;
            }
            let holder = || {
                let program = fs::read_to_string(process.path().join("comm")).ok()?;
                Some(LockHolder {
                    process: number,
                    program: program.trim_end().to_owned(),
                })
            };
            let info = process.path().join("fdinfo").join(open_file.file_name());
            match fs::read_to_string(info).is_ok_and(|info| holds_write_lock(&info)) {
                true => return holder(),
                false => reader = reader.or_else(holder),
            }
        }
    }
    reader.filter(|holder| holder.process != std::process::id())
}

/// Returns true if the description of an open file names a lock for writing.
#[cfg(target_os = "linux")]
fn holds_write_lock(info: &str) -> bool {
    let mut locks = info.lines().filter(|line| line.starts_with("lock:"));
    locks.any(|line| line.contains(" WRITE "))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn find_holder(_: &Path) -> Option<LockHolder> {
    None
}
