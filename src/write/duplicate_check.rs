//! The duplicate check of one document, before it is inserted.

use crate::error::Result;
use crate::query::{Bounds, Budget, Collector, Search, Subject};
use crate::read::ReadView;
use crate::sketch::Signature;
use crate::types::{BudgetExceeded, Document, Novelty};

/// The result of looking for a document's key and for near-duplicates of it.
pub(crate) struct DuplicateCheck {
    /// Why the document is not new; `None` if neither its key nor a near-duplicate was found.
    pub(crate) novelty: Option<Novelty>,
    /// Candidates that the store's budget left out of a check that found nothing.
    pub(crate) beyond: Option<BudgetExceeded>,
}

/// Looks for the document's key first, and then for the best match within the schema's bounds.
///
/// # Errors
/// Those of reading.
pub(crate) fn find_duplicate(
    source: &dyn ReadView,
    document: &Document<'_>,
    signature: &Signature,
) -> Result<DuplicateCheck> {
    if let Some(key) = document.key()
        && let Some(id) = source.find_key(key)?
    {
        let same = Subject::new(signature).compare(source, id)?;
        return Ok(DuplicateCheck {
            novelty: Some(Novelty::KeyExists(same)),
            beyond: None,
        });
    }
    let context = source.context();
    let bounds = Bounds::new().resolve(&context.schema, false)?;
    let search = Search::new(source, Some(&bounds), Collector::BestOne);
    let budget = Budget::from_options(&context.options)?;
    let matches = search.budget(budget).one(0, signature)?;
    Ok(DuplicateCheck {
        beyond: matches.budget_exceeded(),
        novelty: matches.into_iter().next().map(Novelty::NearDuplicate),
    })
}
