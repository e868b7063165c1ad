//! The options that say how documents are found in a corpus.

use clap::Args;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::corpus::CorpusSettings;
use crate::failure::{Failure, Result};

/// How documents are found in a corpus.
#[derive(Debug, Args)]
#[command(next_help_heading = "Corpus")]
pub(crate) struct CorpusOptions {
    /// JSON field that holds the key
    #[arg(long, value_name = "NAME", default_value = "id")]
    pub(crate) id_field: String,
    /// JSON field that holds the text
    #[arg(long, value_name = "NAME", default_value = "text")]
    pub(crate) text_field: String,
    /// In folders, only files whose relative path matches, such as '*.txt' (* also matches /);
    /// may be given several times
    #[arg(long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,
    /// In folders, also names that begin with a dot
    #[arg(long)]
    pub(crate) hidden: bool,
    /// Skip and count bad documents instead of stopping at the first; a file that cannot be read or
    /// decompressed stops all the same
    #[arg(long)]
    pub(crate) skip_bad: bool,
}

impl CorpusOptions {
    pub(crate) fn settings(&self) -> Result<CorpusSettings> {
        if self.id_field == self.text_field {
            return Err(Failure::usage(
                "--id-field and --text-field must be two different fields",
            ));
        }
        Ok(CorpusSettings {
            id_field: self.id_field.clone(),
            text_field: self.text_field.clone(),
            include: if self.include.is_empty() {
                None
            } else {
                Some(self.globs()?)
            },
            hidden: self.hidden,
        })
    }

    fn globs(&self) -> Result<GlobSet> {
        let mut set = GlobSetBuilder::new();
        for pattern in &self.include {
            let glob = GlobBuilder::new(pattern)
                .literal_separator(false)
                .build()
                .map_err(|e| Failure::usage(format!("--include: {e}")))?;
            set.add(glob);
        }
        set.build()
            .map_err(|e| Failure::usage(format!("--include: {e}")))
    }
}
