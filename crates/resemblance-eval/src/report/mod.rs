//! An HTML page about the near-duplicates of a corpus, and pages about pairs of texts.
//!
//! [`Findings`] contains the results of a search, and [`ExplainedPair`] shows two texts side by
//! side.

mod bands;
mod dropped;
mod explained;
mod findings;
mod groups;
mod html;
mod page;

pub use bands::PairBands;
pub use dropped::{DropOrder, DroppedDocuments, DroppedSample};
pub use explained::{ExplainedPair, explained_page};
pub use findings::{Findings, SurvivorRule, likeness};
pub use groups::{ClusterFigures, Likeness};
pub use page::MAX_TEXT_BYTES;
