//! Charts in files.

use resemblance_eval::Chart;

use super::destination::Destination;
use crate::failure::{Failure, Result};

/// Writes a chart to a file.
pub(crate) fn write_chart(chart: &Chart, mut destination: Destination) -> Result<()> {
    let svg = chart.svg().map_err(|reason| {
        let path = destination.path.display();
        Failure::refused(format!("cannot draw {path}: {reason}"))
    })?;
    destination.write(svg.as_bytes())?;
    destination.finish()
}
