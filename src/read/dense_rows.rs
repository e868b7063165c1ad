//! Rows of many documents: those side by side by one walk, the others one by one.

use std::ops::RangeInclusive;

use crate::engine::{EngineResult, ReadableTable};
use crate::error::Result;
use crate::invariant::at;
use crate::read::view::VisitRows;

/// Number of documents for which a walk pays.
const MIN_WALKED: usize = 8;

/// Number of rows that a walk passes over rather than to end.
const MAX_PASSED: u64 = 8;

/// Shows the rows of documents in the order given, `None` where there is none or `is_dead` holds.
///
/// # Errors
/// Returns the errors of reading and of `visit`.
pub(crate) fn visit_rows<T: ReadableTable<u64, &'static [u8]>>(
    table: &T,
    ids: &[u64],
    is_dead: &dyn Fn(u64) -> bool,
    visit: &mut VisitRows<'_>,
) -> Result<()> {
    let are_near = |a: &u64, b: &u64| {
        b.checked_sub(*a)
            .is_some_and(|gap| (1..=MAX_PASSED).contains(&gap))
    };
    for ids in ids.chunk_by(are_near) {
        if ids.len() >= MIN_WALKED {
            let visit = &mut |id, row: Option<&[u8]>| visit(id, row.filter(|_| !is_dead(id)));
            walk(table, ids, *at(ids, 0)?..=*at(ids, ids.len() - 1)?, visit)?;
            continue;
        }
        for &id in ids {
            if is_dead(id) {
                visit(id, None)?;
                continue;
            }
            let row = table.get(id).engine()?;
            visit(id, row.as_ref().map(|row| row.value()))?;
        }
    }
    Ok(())
}

/// Shows the rows of documents whose ids ascend within a range.
fn walk<T: ReadableTable<u64, &'static [u8]>>(
    table: &T,
    ids: &[u64],
    range: RangeInclusive<u64>,
    visit: &mut VisitRows<'_>,
) -> Result<()> {
    let mut rows = table.range(range).engine()?;
    let mut row = rows.next().transpose().engine()?;
    for &id in ids {
        while row.as_ref().is_some_and(|(found, _)| found.value() < id) {
            row = rows.next().transpose().engine()?;
        }
        let found = row.as_ref().filter(|(found, _)| found.value() == id);
        visit(id, found.map(|(_, row)| row.value()))?;
    }
    Ok(())
}
