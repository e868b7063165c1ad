//! The scan of a search: all signatures, compared in threads.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use crate::error::Result;
use crate::format::SignatureRow;
use crate::query::bounds::ResolvedBounds;
use crate::query::collect::Found;
use crate::query::subject::Subject;
use crate::read::{ReadView, VisitShare};
use crate::sketch::Signature;
use crate::state::SharedContext;

/// The greatest number of threads: more would wait for memory.
const MAX_THREADS: usize = 8;

/// What is compared with every document.
pub(super) struct Scan<'s> {
    pub(super) signature: &'s Signature,
    /// `None` keeps what is within no bounds, too.
    pub(super) bounds: Option<&'s ResolvedBounds>,
    pub(super) exclude: Option<u64>,
}

impl Scan<'_> {
    /// Compares with all documents of a view. `nothing` is how each thread begins.
    pub(super) fn run(&self, view: &dyn ReadView, nothing: &Found) -> Result<Found> {
        let context = view.context();
        // Compared as bytes, which takes vector instructions.
        let mut values = Vec::new();
        if let Some(layout) = context.shape().values {
            self.signature.encode_values(layout, &mut values);
        }
        let values = values.as_slice();
        let threads = available_parallelism().map_or(1, NonZeroUsize::get);
        let mut shares = vec![nothing.clone(); threads.min(MAX_THREADS)];
        let visitors = shares.iter_mut().map(|found| {
            let visit = |id, bytes: &[u8]| self.compare(context, values, id, bytes, found);
            Box::new(visit) as VisitShare<'_>
        });
        view.share_signature_rows(visitors.collect())?;
        let mut all = nothing.clone();
        for share in shares {
            all.join(share);
        }
        Ok(all)
    }

    fn compare(
        &self,
        context: &SharedContext,
        values: &[u8],
        id: u64,
        bytes: &[u8],
        found: &mut Found,
    ) -> Result<()> {
        let shape = context.shape();
        let row = SignatureRow::decode(id, bytes, shape)?;
        if Some(id) == self.exclude {
            return Ok(());
        }
        found.compared += 1;
        if row.is_empty() == self.signature.is_empty() {
            let layout = shape.values;
            let agreement = layout.map_or(0, |layout| layout.agreement(values, row.values()));
            let subject = Subject::new(self.signature);
            let scored = subject.scored(context, id, agreement, row.fingerprint());
            if self.bounds.is_none_or(|bounds| scored.is_within(bounds)) {
                found.push(scored);
            }
        }
        Ok(())
    }
}
