//! Figures and how they are printed.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Result;

/// Bytes that the file takes on disk: allocated blocks, not its length.
pub fn allocated_bytes(path: &Path) -> Result<u64> {
    // Blocks of 512 bytes, whatever the file system's own are.
    Ok(std::fs::metadata(path)?.blocks() * 512)
}

/// The value below which a share of the samples lies. Sorts them.
pub fn percentile(samples: &mut [Duration], share: f64) -> Duration {
    samples.sort_unstable();
    let place = (samples.len() as f64 * share) as usize;
    samples
        .get(place.min(samples.len().saturating_sub(1)))
        .copied()
        .unwrap_or_default()
}

pub fn microseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// What it costs here to write one page durably, the median of many.
pub fn page_sync(folder: &Path) -> Result<Duration> {
    let path = folder.join("page");
    let mut file = File::create(&path)?;
    file.write_all(&[0; 1 << 16])?;
    file.sync_all()?;
    let mut samples = Vec::new();
    for round in 0..200_u64 {
        file.seek(SeekFrom::Start(round % 16 * 4096))?;
        let start = Instant::now();
        file.write_all(&[round as u8; 4096])?;
        file.sync_data()?;
        samples.push(start.elapsed());
    }
    std::fs::remove_file(path)?;
    Ok(percentile(&mut samples, 0.5))
}

/// The names of the columns: ours, then those it is compared with.
pub fn print_header(names: &[&str]) {
    print!("{:<24}", "");
    for name in names {
        print!(" {name:>14}");
    }
    println!("  ratio to each");
}

/// A row of figures, ours first, and how many times better ours is than each other.
pub fn print_row(label: &str, figures: &[f64], more_is_better: bool) {
    print!("{label:<24}");
    for figure in figures {
        let decimals = if *figure < 1e4 { 1 } else { 0 };
        print!(" {figure:>14.decimals$}");
    }
    print!(" ");
    if let Some((ours, others)) = figures.split_first() {
        for other in others {
            let ratio = if more_is_better {
                ours / other
            } else {
                other / ours
            };
            print!(" {ratio:>6.2}");
        }
    }
    println!();
}
