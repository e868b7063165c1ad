//! The options that say how much of a passage counts.

use clap::Args;
use resemblance::ContainmentQuery;

/// How much must be shared.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Shared passages")]
pub(crate) struct PassageOptions {
    /// At least so many shared hashes [default: 1]
    #[arg(long, value_name = "N")]
    min_shared: Option<u32>,
    /// Leave out hashes that more than N documents of the store have, such as those of menus and licences:
    /// passages of such hashes alone are not found, and documents that have any are counted
    #[arg(long, value_name = "N")]
    max_frequency: Option<u64>,
}

impl PassageOptions {
    /// The query within these bounds.
    pub(crate) fn apply<'q, A>(
        self,
        mut query: ContainmentQuery<'q, A>,
        min_share: Option<f64>,
    ) -> ContainmentQuery<'q, A> {
        if let Some(hashes) = self.min_shared {
            query = query.min_shared(hashes);
        }
        if let Some(documents) = self.max_frequency {
            query = query.max_document_frequency(documents);
        }
        match min_share {
            Some(share) => query.min_share(share),
            None => query,
        }
    }
}
