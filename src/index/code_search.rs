//! Finds a code among sorted postings.

use std::sync::OnceLock;

use crate::error::Result;
use crate::format::Posting;
use crate::invariant::{OrBug, bug};

/// Fewer postings are searched without a table: it would save few steps.
const MIN_POSTINGS: u32 = 64;

/// About how many postings a share of the codes has.
const POSTINGS_PER_SHARE: u32 = 4;

/// The start of each equal share of a range of codes among sorted postings. Codes are hashes, so a
/// share has few postings, and a search in it takes few steps; where codes cluster, it takes more.
#[derive(Clone, Debug)]
struct RadixTable {
    first_code: u64,
    /// The bits by which the codes of a share differ.
    shift: u32,
    /// The number of postings before each share, before the end, and before the remainder after it.
    starts: Box<[u32]>,
}

impl RadixTable {
    /// Creates the search over sorted postings; `None` if there are too few or too many for it to
    /// help.
    fn new(postings: &[Posting]) -> Option<Self> {
        let (first_code, last_code) = (postings.first()?.code, postings.last()?.code);
        let fitting = u32::try_from(postings.len()).ok();
        let count = fitting.filter(|count| *count >= MIN_POSTINGS)?;
        // A share is a power of two of codes, so that a shift finds it.
        let width = u64::BITS - (last_code - first_code).leading_zeros();
        let shift = width.saturating_sub((count / POSTINGS_PER_SHARE).ilog2());
        let share_of = |code: u64| ((code - first_code) >> shift) as usize;
        let mut starts = Vec::with_capacity(share_of(last_code) + 3);
        for (place, posting) in (0..count).zip(postings) {
            let share = share_of(posting.code);
            if starts.len() <= share {
                starts.resize(share + 1, place);
            }
        }
        starts.extend([count, count]);
        Some(Self {
            first_code,
            shift,
            starts: starts.into_boxed_slice(),
        })
    }

    /// Returns the places between which the first posting of a code, or of a greater one, is;
    /// `None` if the table lacks the code's share.
    #[inline]
    fn places(&self, code: u64) -> Option<(usize, usize)> {
        let distance = code.saturating_sub(self.first_code) >> self.shift;
        // The last place is the end of what follows all shares.
        let behind = self.starts.len().checked_sub(2)?;
        let share = distance.min(behind as u64) as usize;
        let (start, end) = (self.starts.get(share)?, self.starts.get(share + 1)?);
        Some((*start as usize, *end as usize))
    }
}

/// The table of sorted postings, made when they are searched first: many never are.
#[derive(Clone, Debug, Default)]
pub(super) struct LazyTable(OnceLock<Option<RadixTable>>);

impl LazyTable {
    pub(super) fn heap_bytes(&self) -> usize {
        let table = self.0.get().and_then(Option::as_ref);
        table.map_or(0, |table| size_of_val(&*table.starts))
    }
}

/// Sorted postings, to be searched.
#[derive(Clone, Copy)]
pub(super) enum SortedPostings<'s> {
    /// They are searched about once.
    Plain(&'s [Posting]),
    /// The table is of the same postings.
    WithTable(&'s [Posting], &'s LazyTable),
    /// The postings are not in their place. The error is returned when the result is read, because
    /// beginning many searches is faster if beginning one cannot fail.
    Missing,
}

impl<'s> SortedPostings<'s> {
    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) if they are missing.
    #[inline]
    pub(super) fn all(self) -> Result<&'s [Posting]> {
        match self {
            Self::Plain(postings) | Self::WithTable(postings, _) => Ok(postings),
            Self::Missing => Err(bug("sorted postings are missing")),
        }
    }

    /// Begins a search for the first posting of a code or a greater one.
    #[inline]
    pub(super) fn search(self, code: u64) -> CodeSearch<'s> {
        let (postings, table): (&[Posting], _) = match self {
            Self::Plain(postings) => (postings, None),
            Self::WithTable(postings, lazy) => {
                let make = || RadixTable::new(postings);
                (postings, lazy.0.get_or_init(make).as_ref())
            }
            Self::Missing => return CodeSearch::failed(&[], code),
        };
        let places = match table {
            Some(table) => table.places(code),
            None => Some((0, postings.len())),
        };
        let Some((start, end)) = places else {
            return CodeSearch::failed(postings, code);
        };
        CodeSearch {
            postings,
            code,
            start,
            end,
        }
    }
}

/// A binary search under way: all postings before `start` have lower codes.
pub(super) struct CodeSearch<'s> {
    postings: &'s [Posting],
    code: u64,
    start: usize,
    /// The first posting that has no lower code is here, or before.
    end: usize,
}

impl<'s> CodeSearch<'s> {
    /// A search that finds no place.
    #[cold]
    fn failed(postings: &'s [Posting], code: u64) -> Self {
        let behind = postings.len() + 1;
        Self {
            postings,
            code,
            start: behind,
            end: behind,
        }
    }

    /// Makes searches, which advance in step: each waits for memory, so together they take little longer than one.
    pub(super) fn run(searches: &mut [Self]) {
        let lengths = searches.iter().map(|search| search.end - search.start);
        // Halving more often than its length allows leaves a shorter search where it is.
        let mut length = lengths.fold(0, usize::max).next_power_of_two();
        while length > 0 {
            for search in &mut *searches {
                search.skip(length);
            }
            length /= 2;
        }
    }

    /// Skips `length` postings if the last of them has been examined and has a lower code.
    #[inline]
    fn skip(&mut self, length: usize) {
        let last = self.start + length - 1;
        let posting = self.postings.get(last);
        let below = posting.is_some_and(|posting| posting.code < self.code);
        self.start += if below && last < self.end { length } else { 0 };
    }

    /// The postings from where a search has ended.
    ///
    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) if the postings are missing, or fewer than it has skipped.
    #[inline]
    pub(super) fn found(&self) -> Result<&'s [Posting]> {
        let found = self.postings.get(self.start..);
        found.or_bug("a search that skips only what is there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::index::testing::{Random, posting};

    /// Codes of all widths, crowded ones, and one alone: as a filter finds them, with a table and without.
    #[test]
    fn code_search_agrees_with_a_filter() {
        let mut random = Random(1);
        for round in 0..60 {
            let count = [0, 1, 2, 63, 64, 65, 500, 3_000][round % 8];
            let shift = [0, 24, 48, 60, 63][round % 5];
            let crowd = random.next() >> shift;
            let mut code = |id| match id % 3 {
                0 if round % 2 == 0 => crowd,
                _ => random.next() >> shift,
            };
            let mut postings: Vec<Posting> = (0..count).map(|id| posting(code(id), id)).collect();
            postings.sort_unstable();
            let table = RadixTable::new(&postings);
            assert_eq!(table.is_some(), count >= u64::from(MIN_POSTINGS));
            assert!(table.is_none_or(|table| table.starts.len() as u64 <= count / 2));
            let ends = [0, u64::MAX, crowd, crowd.wrapping_add(1)];
            let stored = postings.iter().flat_map(|p| [p.code, p.code ^ 1]);
            let codes: Vec<u64> = ends.into_iter().chain(stored.take(300)).collect();
            let lazy = LazyTable::default();
            for postings in [
                SortedPostings::Plain(&postings),
                SortedPostings::WithTable(&postings, &lazy),
            ] {
                let search = |code: &u64| postings.search(*code);
                let mut searches: Vec<CodeSearch<'_>> = codes.iter().map(search).collect();
                CodeSearch::run(&mut searches);
                for (search, code) in searches.iter().zip(&codes) {
                    let expected = postings
                        .all()
                        .unwrap()
                        .iter()
                        .filter(|posting| posting.code >= *code);
                    assert!(search.found().unwrap().iter().eq(expected), "{code:x}");
                }
            }
        }
    }

    /// Missing postings, and a table without the share, are never treated as an empty range.
    #[test]
    fn code_search_reports_missing_postings_as_a_bug() {
        let postings: Vec<Posting> = (0..100).map(|id| posting(id << 40, id)).collect();
        let lazy = LazyTable::default();
        let cut = RadixTable {
            starts: Box::default(),
            ..RadixTable::new(&postings).unwrap()
        };
        lazy.0.set(Some(cut)).unwrap();
        let lacking = [
            SortedPostings::Missing,
            SortedPostings::WithTable(&postings, &lazy),
        ];
        for postings in lacking {
            let mut searches = [postings.search(0), postings.search(5 << 40)];
            CodeSearch::run(&mut searches);
            for search in searches {
                assert!(matches!(search.found(), Err(Error::Bug { .. })));
            }
        }
        assert!(matches!(
            SortedPostings::Missing.all(),
            Err(Error::Bug { .. })
        ));
    }

    /// A share of uniform codes has few postings: that is the purpose of a table.
    #[test]
    fn code_search_narrows_uniform_codes() {
        let mut random = Random(2);
        for count in [64, 1_000, 50_000] {
            for shift in [0, 24] {
                let code = |_| random.next() >> shift;
                let mut codes: Vec<u64> = (0..count).map(code).collect();
                codes.sort_unstable();
                let postings: Vec<Posting> = codes.iter().map(|code| posting(*code, 1)).collect();
                let table = RadixTable::new(&postings).unwrap();
                let places = codes.iter().map(|code| table.places(*code).unwrap());
                let longest = places.map(|(start, end)| end - start).max().unwrap();
                // At most 16 are expected, and more than 60 have a chance of less than 10⁻¹⁵ in a share (Chernoff).
                assert!(longest <= 60, "{longest}");
            }
        }
    }
}
