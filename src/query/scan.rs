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
    pub(super) signatures: &'s [&'s Signature],
    /// `None` keeps what is within no bounds, too.
    pub(super) bounds: Option<&'s ResolvedBounds>,
    pub(super) exclude: Option<u64>,
}

impl Scan<'_> {
    /// Compares with all documents of a view. `nothing` is how each thread begins for each signature.
    pub(super) fn run(&self, view: &dyn ReadView, nothing: &Found) -> Result<Vec<Found>> {
        let context = view.context();
        // Compared as bytes, which takes vector instructions.
        let values = self.signatures.iter().map(|signature| {
            let mut values = Vec::new();
            if let Some(layout) = context.shape().values {
                signature.encode_values(layout, &mut values);
            }
            values
        });
        let values: Vec<Vec<u8>> = values.collect();
        let values = values.as_slice();
        let threads = available_parallelism().map_or(1, NonZeroUsize::get);
        let none = vec![nothing.clone(); self.signatures.len()];
        let mut shares = vec![none.clone(); threads.min(MAX_THREADS)];
        let visitors = shares.iter_mut().map(|found| {
            let visit = |id, bytes: &[u8]| self.compare(context, values, id, bytes, found);
            Box::new(visit) as VisitShare<'_>
        });
        view.share_signature_rows(visitors.collect())?;
        let mut all = none;
        for share in shares {
            all.iter_mut()
                .zip(share)
                .for_each(|(all, found)| all.join(found));
        }
        Ok(all)
    }

    fn compare(
        &self,
        context: &SharedContext,
        values: &[Vec<u8>],
        id: u64,
        bytes: &[u8],
        all: &mut [Found],
    ) -> Result<()> {
        let shape = context.shape();
        let row = SignatureRow::decode(id, bytes, shape)?;
        if Some(id) == self.exclude {
            return Ok(());
        }
        for ((signature, values), found) in self.signatures.iter().zip(values).zip(all) {
            found.compared += 1;
            if row.is_empty() != signature.is_empty() {
                continue;
            }
            let layout = shape.values;
            let agreement = layout.map_or(0, |layout| layout.agreement(values, row.values()));
            let subject = Subject::new(signature);
            let scored = subject.scored(context, id, agreement, row.fingerprint());
            if self.bounds.is_none_or(|bounds| scored.is_within(bounds)) {
                found.push(scored);
            }
        }
        Ok(())
    }
}
