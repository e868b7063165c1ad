//! Remembers where pages of runs are in the file. A block or a piece of a filter that is not in
//! memory can then be read without descending the engine's tree.
//!
//! A place is a hint. The page may have moved, and other data may be there now. But the rows of
//! runs never change, and the key and the checksum identify each row. If the row at a place is not
//! the right one, the place is forgotten and the engine reads the row.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::engine::{LeafPlaces, PageFinder, PagePlace, WantedRow};
use crate::format::{
    BlockKey, FILTERS, FilterKey, Posting, block_key, filter_key, split_block_key, split_filter_key,
};
use crate::index::lane_index::{LaneIndex, position_in};
use crate::index::mixer::Mixer;
use crate::sync::IgnorePoison;

/// The approximate number of additional bytes for the pages below one page.
const NAMED_BYTES: usize = 96;

/// A page, and the greatest position that it can have.
type PageOf = (Posting, PagePlace);

/// The rows of a lane of a run in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LaneRows {
    pub(super) run: u32,
    pub(super) lane: u16,
    /// True for pieces of filters, in the order of their numbers; false for blocks, in the order of
    /// their last postings. A number is represented by the code of a posting.
    pub(super) are_filters: bool,
}

impl LaneRows {
    fn position_of(&self, key: &[u8]) -> LanePosition {
        let found = if self.are_filters {
            let key = <&FilterKey>::try_from(key).ok().map(split_filter_key);
            key.map(|(run, lane, number)| (run, lane, Posting::lowest_of(number.into())))
        } else {
            <&BlockKey>::try_from(key).ok().map(split_block_key)
        };
        match found {
            Some((run, lane, position)) if (run, lane) == (self.run, self.lane) => {
                LanePosition::Within(position)
            }
            Some((run, lane, _)) if (run, lane) < (self.run, self.lane) => LanePosition::Before,
            _ => LanePosition::Behind,
        }
    }
}

/// The first block or piece of a filter from a position on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunRow {
    table: &'static str,
    rows: LaneRows,
    target: Posting,
}

impl RunRow {
    pub(crate) fn block(table: &'static str, (run, lane): (u32, u16), target: Posting) -> Self {
        Self {
            table,
            rows: LaneRows {
                run,
                lane,
                are_filters: false,
            },
            target,
        }
    }

    pub(crate) fn piece((run, lane): (u32, u16), number: u32) -> Self {
        Self {
            table: FILTERS,
            rows: LaneRows {
                run,
                lane,
                are_filters: true,
            },
            target: Posting::lowest_of(number.into()),
        }
    }

    fn wanted(&self) -> WantedRow {
        let LaneRows {
            run,
            lane,
            are_filters,
        } = self.rows;
        let key = match are_filters {
            // It was a number of 32 bits.
            true => filter_key(run, lane, self.target.code as u32).to_vec(),
            false => block_key(run, lane, self.target).to_vec(),
        };
        WantedRow {
            table: self.table,
            key,
        }
    }
}

/// Places in the file of pages of runs, within a limit of bytes. Where not all find room, lanes are forgotten in turn.
#[derive(Debug)]
pub(crate) struct PagePlaces {
    lanes: RwLock<Lanes>,
    /// The sum over all lanes.
    size_bytes: AtomicUsize,
    max_bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct Lanes {
    by_rows: HashMap<LaneRows, LanePlaces, BuildHasherDefault<Mixer>>,
    /// Number of lanes that were dropped for want of room.
    dropped: usize,
}

impl Lanes {
    fn page_of(&self, row: &RunRow) -> Option<PagePlace> {
        let (_, named) = self.by_rows.get(&row.rows)?.named.first_from(row.target)?;
        named.page_of(row.target)
    }

    /// Drops one, each in its turn, and returns the bytes that it took; `None` if nothing is left.
    fn drop_one(&mut self) -> Option<usize> {
        // In turn and not by use: recording each use would cost more than learning a lane again.
        let index = self.dropped.checked_rem(self.by_rows.len())?;
        let rows = self.by_rows.keys().nth(index).copied()?;
        self.dropped += 1;
        let dropped = self.by_rows.remove(&rows)?;
        Some(dropped.size_bytes)
    }
}

/// Pages of a lane that one page above them names.
#[derive(Debug)]
struct NamedPages {
    /// The positions up to this one are in other pages.
    after: Option<Posting>,
    pages: Box<[PageOf]>,
}

impl NamedPages {
    /// Returns the pages of a lane among those that one page names.
    fn of_lane(leaves: &LeafPlaces, rows: LaneRows) -> Self {
        let mut after = match leaves.after().map(|key| rows.position_of(key)) {
            Some(LanePosition::Within(position)) => Some(position),
            _ => None,
        };
        let mut pages: Vec<PageOf> = Vec::new();
        for (last, place) in leaves.pages() {
            match last.map_or(LanePosition::Behind, |key| rows.position_of(key)) {
                LanePosition::Before => after = None,
                LanePosition::Within(last) => pages.push((last, place)),
                // It has the last rows of the lane, if any, before those of others.
                LanePosition::Behind => {
                    pages.push((Posting::MAX, place));
                    break;
                }
            }
        }
        Self {
            after,
            pages: pages.into(),
        }
    }

    fn page_of(&self, target: Posting) -> Option<PagePlace> {
        if self.after.is_some_and(|after| after >= target) {
            return None;
        }
        // The last page may be unbounded, which shows nothing about the spread of codes.
        let (_, bounded) = self.pages.split_last()?;
        let index = position_in(bounded, target);
        let found = self.pages.get(index).filter(|(last, _)| *last >= target);
        found.map(|(_, place)| *place)
    }

    fn size_bytes(&self) -> usize {
        self.pages.len() * size_of::<PageOf>() + NAMED_BYTES
    }
}

/// The pages of the rows of a lane.
#[derive(Debug, Default)]
struct LanePlaces {
    /// Named pages by the greatest position that the last of the pages can have.
    named: LaneIndex<NamedPages>,
    /// The sum over them.
    size_bytes: usize,
    /// The commit in whose pages a row of this lane was looked for without effect.
    futile_commit: Option<u128>,
}

/// The position of a key in a lane.
enum LanePosition {
    Before,
    Within(Posting),
    Behind,
}

impl LanePlaces {
    /// Removes the pages that were learned together, and returns the bytes that they took.
    fn remove(&mut self, last: Posting) -> usize {
        let removed = self.named.remove(last);
        let freed = removed.map_or(0, |named| named.size_bytes());
        self.size_bytes -= freed;
        freed
    }
}

impl PagePlaces {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            lanes: RwLock::default(),
            size_bytes: AtomicUsize::new(0),
            max_bytes: AtomicUsize::new(max_bytes),
        }
    }

    /// Sets how many bytes may be held, and drops lanes beyond that.
    pub(super) fn set_max_bytes(&self, max_bytes: usize) {
        self.max_bytes.store(max_bytes, Ordering::Relaxed);
        if self.size_bytes() > max_bytes {
            self.drop_beyond(&mut self.lanes.write().ignore_poison(), max_bytes);
        }
    }

    fn drop_beyond(&self, lanes: &mut Lanes, max_bytes: usize) {
        while self.size_bytes() > max_bytes
            && let Some(freed) = lanes.drop_one()
        {
            self.size_bytes.fetch_sub(freed, Ordering::Relaxed);
        }
    }

    /// Returns the page that contains a row, if it is known.
    pub(super) fn page_of(&self, row: &RunRow) -> Option<PagePlace> {
        self.lanes.read().ignore_poison().page_of(row)
    }

    /// Searches for the page that contains a row, and records it and its neighbours. Does not
    /// search if that is futile before the next commit, because no page contains the row, or
    /// because the page that should contain it is the one that failed. A transaction that reads its
    /// own writes then does not search over and over.
    pub(super) fn learn(&self, finder: &PageFinder, row: &RunRow, failed: Option<PagePlace>) {
        let Some(commit) = finder.commit_mark() else {
            return;
        };
        let is_futile = |places: &LanePlaces| places.futile_commit == Some(commit);
        let lanes = self.lanes.read().ignore_poison();
        if lanes.by_rows.get(&row.rows).is_some_and(is_futile) {
            return;
        }
        drop(lanes);
        self.find(finder, std::slice::from_ref(row));
        let mut lanes = self.lanes.write().ignore_poison();
        let place = lanes.page_of(row);
        if place.is_none() || place == failed {
            lanes.by_rows.entry(row.rows).or_default().futile_commit = Some(commit);
        }
    }

    /// Requests the pages of rows that will be read, and records those that were not known.
    pub(super) fn read_ahead(&self, finder: &PageFinder, rows: &[RunRow]) {
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        let lanes = self.lanes.read().ignore_poison();
        for row in rows {
            match lanes.page_of(row) {
                Some(place) => known.push(place),
                None => unknown.push(*row),
            }
        }
        drop(lanes);
        finder.ask(&known);
        self.find(finder, &unknown);
    }

    fn find(&self, finder: &PageFinder, rows: &[RunRow]) {
        let wanted: Vec<WantedRow> = rows.iter().map(RunRow::wanted).collect();
        for leaves in finder.find(&wanted) {
            let found = leaves.rows().iter().filter_map(|index| rows.get(*index));
            let mut found: Vec<LaneRows> = found.map(|row| row.rows).collect();
            found.dedup();
            let mut lanes = self.lanes.write().ignore_poison();
            for rows in found {
                self.note(&mut lanes, rows, NamedPages::of_lane(&leaves, rows));
            }
        }
    }

    fn note(&self, lanes: &mut Lanes, rows: LaneRows, named: NamedPages) {
        let Some((last, _)) = named.pages.last().copied() else {
            return;
        };
        let size = named.size_bytes();
        // If they alone do not fit, no others have to be dropped.
        let Some(others) = self.max_bytes.load(Ordering::Relaxed).checked_sub(size) else {
            return;
        };
        self.drop_beyond(lanes, others);
        let lane = lanes.by_rows.entry(rows).or_default();
        let freed = lane.remove(last);
        lane.named.insert(last, named);
        lane.size_bytes += size;
        self.size_bytes.fetch_add(size, Ordering::Relaxed);
        self.size_bytes.fetch_sub(freed, Ordering::Relaxed);
    }

    /// Forgets the page that did not have a row, and those that were learned with it.
    pub(super) fn forget(&self, row: &RunRow) {
        let mut lanes = self.lanes.write().ignore_poison();
        if let Some(lane) = lanes.by_rows.get_mut(&row.rows)
            && let Some((last, _)) = lane.named.first_from(row.target)
        {
            let freed = lane.remove(*last);
            self.size_bytes.fetch_sub(freed, Ordering::Relaxed);
        }
    }

    /// Forgets the pages of all runs but these.
    pub(super) fn retain_runs(&self, is_kept: impl Fn(u32) -> bool) {
        let mut lanes = self.lanes.write().ignore_poison();
        lanes.by_rows.retain(|rows, _| is_kept(rows.run));
        let size_bytes = lanes.by_rows.values().map(|lane| lane.size_bytes).sum();
        self.size_bytes.store(size_bytes, Ordering::Relaxed);
    }

    /// Bytes held.
    pub(super) fn size_bytes(&self) -> usize {
        self.size_bytes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
#[cfg(unix)]
#[path = "page_places_tests.rs"]
mod tests;
