//! The folder that charts are drawn into.

use std::path::Path;

use resemblance_eval::NamedChart;

use crate::failure::{Failure, Result};
use crate::output::write_chart;
use crate::session::Context;

/// A folder that charts are drawn into.
pub(super) struct ChartFolder<'a> {
    pub(super) context: &'a Context,
    pub(super) path: &'a Path,
    /// The name of the corpus, which each title tells.
    pub(super) corpus: String,
    pub(super) force: bool,
}

impl ChartFolder<'_> {
    pub(super) fn write(&self, mut charts: Vec<NamedChart>) -> Result<()> {
        let folder = self.path;
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::io(format!("cannot make {}", folder.display()), &e))?;
        for (name, chart) in &mut charts {
            chart.title = format!("{} ({})", chart.title, self.corpus);
            write_chart(chart, &folder.join(name), self.force)?;
        }
        let names: Vec<&str> = charts.iter().map(|(name, _)| *name).collect();
        let (names, folder) = (names.join(", "), folder.display());
        self.context.note(format!("drew {names} in {folder}"));
        Ok(())
    }
}
