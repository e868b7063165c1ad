//! The same postings in the memory of the process, lost when it ends.

use std::collections::HashMap;

use crate::Result;
use crate::batch::{Batch, Input, Row};
use crate::documents::{BANDS, Probe};
use crate::engine::Engine;

#[derive(Default)]
pub struct Map {
    documents: HashMap<(u16, u64), Vec<u64>>,
}

impl Map {
    fn extend(&mut self, rows: &[Row]) {
        for &(band, code, id) in rows {
            self.documents.entry((band, code)).or_default().push(id);
        }
    }
}

pub fn bulk_load(input: &mut Input) -> Map {
    let mut map = Map::default();
    let rows = input.documents * u64::from(BANDS);
    map.documents.reserve(usize::try_from(rows).unwrap_or(0));
    while let Some(rows) = input.next_band() {
        map.extend(&rows);
    }
    map
}

impl Engine for Map {
    fn settings(&self) -> Result<String> {
        Ok("HashMap<(u16, u64), Vec<u64>> of the standard library, in memory, not durable".into())
    }

    fn insert(&mut self, batch: &Batch) -> Result<()> {
        self.extend(&batch.rows);
        Ok(())
    }

    fn candidates(&self, probe: &Probe) -> Result<Vec<u64>> {
        let codes = (0..).zip(&probe.codes);
        let found = codes.filter_map(|(band, code)| self.documents.get(&(band, *code)));
        let mut ids: Vec<u64> = found.flatten().copied().collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
