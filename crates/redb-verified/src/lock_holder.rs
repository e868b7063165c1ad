//! Finds the process that has a file open for writing, to name it in errors.

use std::path::Path;

/// Returns the process that has the file open for writing, or else one that has it open for
/// reading, as the name of its program and its process number. Returns `None` if the system does
/// not show the open files of other processes.
#[cfg(target_os = "linux")]
pub(crate) fn find_holder(path: &Path) -> Option<String> {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    let wanted = fs::metadata(path).ok()?;
    let mut reader = None;
    for process in fs::read_dir("/proc").ok()?.flatten() {
        let name = process.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // Open files of other users cannot be listed.
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
                if number == std::process::id() {
                    return Some("another handle of this process".to_owned());
                }
                let program = fs::read_to_string(process.path().join("comm")).ok()?;
                Some(format!("{} (process {number})", program.trim_end()))
            };
            let info = process.path().join("fdinfo").join(open_file.file_name());
            match fs::read_to_string(info).is_ok_and(|info| holds_write_lock(&info)) {
                true => return holder(),
                // The process that asks also has the file open for reading.
                false if number != std::process::id() => reader = reader.or_else(holder),
                false => {}
            }
        }
    }
    reader
}

/// Returns true if the description of an open file names a lock for writing.
#[cfg(target_os = "linux")]
fn holds_write_lock(info: &str) -> bool {
    let mut locks = info.lines().filter(|line| line.starts_with("lock:"));
    locks.any(|line| line.contains(" WRITE "))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn find_holder(_: &Path) -> Option<String> {
    None
}
