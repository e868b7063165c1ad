//! The scan of a search: all signatures, compared in threads.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use crate::error::Result;
use crate::format::DocumentRow;
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

/// One signature, with its values as bytes: those are compared by vector instructions.
struct EncodedSignature<'s> {
    signature: &'s Signature,
    values: Vec<u8>,
}

impl Scan<'_> {
    /// Compares with all documents of a view: what is found for each signature. `nothing` is how each
    /// thread begins.
    pub(super) fn run(&self, view: &dyn ReadView, nothing: &Found) -> Result<Vec<Found>> {
        let context = view.context();
        let scanned = self.signatures.iter().map(|signature| {
            let mut values = Vec::new();
            if let Some(layout) = context.shape().values {
                signature.encode_values(layout, &mut values);
            }
            EncodedSignature { signature, values }
        });
        let scanned: Vec<EncodedSignature<'_>> = scanned.collect();
        let threads = available_parallelism().map_or(1, NonZeroUsize::get);
        let nothing = vec![nothing.clone(); scanned.len()];
        let mut shares = vec![nothing.clone(); threads.min(MAX_THREADS)];
        let visitors = shares.iter_mut().map(|all| {
            let visit = |id, bytes: &[u8]| self.compare(context, &scanned, id, bytes, all);
            Box::new(visit) as VisitShare<'_>
        });
        view.share_document_rows(visitors.collect())?;
        let mut all = nothing;
        for share in shares {
            for (found, share) in all.iter_mut().zip(share) {
                found.join(share);
            }
        }
        Ok(all)
    }

    fn compare(
        &self,
        context: &SharedContext,
        scanned: &[EncodedSignature<'_>],
        id: u64,
        bytes: &[u8],
        all: &mut [Found],
    ) -> Result<()> {
        let shape = context.shape();
        let row = DocumentRow::decode(id, bytes, shape)?;
        if Some(id) == self.exclude {
            return Ok(());
        }
        let layout = shape.values;
        for (EncodedSignature { signature, values }, found) in scanned.iter().zip(all) {
            found.compared += 1;
            if row.is_empty() == signature.is_empty() {
                let agreement = layout.map_or(0, |layout| layout.agreement(values, row.values()));
                let subject = Subject::new(signature);
                let scored = subject.scored(context, id, agreement, row.fingerprint());
                if self.bounds.is_none_or(|bounds| scored.is_within(bounds)) {
                    found.push(scored);
                }
            }
        }
        Ok(())
    }
}
