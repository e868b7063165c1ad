//! Which lanes a search probes, and what an exact code in one of them tells.

use crate::lanes::TableDesign;
use crate::query::bounds::ResolvedBounds;
use crate::read::PostingTable;
use crate::sketch::EmptyDocuments;
use crate::state::SharedContext;

/// The families whose lanes are probed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Families {
    pub(super) bands: bool,
    /// The tables are probed for fingerprints within this distance in bits; `None` if they are not probed.
    pub(super) max_distance: Option<u32>,
}

impl Families {
    pub(super) const ALL: Self = Self {
        bands: true,
        max_distance: Some(u32::MAX),
    };

    pub(crate) fn from_bounds(bounds: &ResolvedBounds) -> Self {
        Self {
            bands: bounds.probes_bands(),
            max_distance: bounds.max_distance,
        }
    }
}

/// Returns true if all documents identical to a signature share its exact code in a lane of `table`. Band
/// codes made from values that were cut before they were stored are the exception: equal stored values may
/// come from unequal ones.
pub(super) fn identical_share_codes(context: &SharedContext, table: PostingTable) -> bool {
    table == PostingTable::Permuted || context.shape().codes.is_none()
}

/// Returns true if documents that share an exact code in a lane of `table` are identical: the code is the
/// whole signature, and no document without features is indexed.
pub(super) fn exact_codes_are_identical(context: &SharedContext, table: PostingTable) -> bool {
    let design = context.lanes.design();
    table == PostingTable::Permuted
        && design.is_some_and(TableDesign::codes_are_exact)
        && context.shape().values.is_none()
        && context.schema.empty_documents() == EmptyDocuments::Distinct
}
