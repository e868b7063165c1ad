//! Charts in files.

use std::path::Path;

use resemblance_eval::Chart;

use super::destination::Destination;
use crate::failure::{Failure, Result};

/// Writes a chart to a file, which must not exist unless `force`.
pub(crate) fn write_chart(chart: &Chart, path: &Path, force: bool) -> Result<()> {
    let svg = chart
        .svg()
        .map_err(|reason| Failure::refused(format!("cannot draw {}: {reason}", path.display())))?;
    let mut destination = Destination::create(path, force)?;
    destination.write(svg.as_bytes())?;
    destination.finish()
}
