//! Pages that change, go, and make room for others, as a crawler finds them when it visits all of them
//! round after round.

use resemblance::Signature;

use crate::documents::mix;

/// Among a thousand visits to a page that was visited before, the number that find another page in
/// its place, the number that find it rewritten, and the number that find small changes.
const GONE: u64 = 20;
const REWRITTEN: u64 = 10;
const EDITED: u64 = 50;

/// Values that an edit changes: one of them may stay the same when it is cut, and hardly two.
const EDITED_VALUES: usize = 2;

/// A place for a page. What is there depends on these numbers and nothing else.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// How many pages have been there before this one.
    generation: u16,
    /// How often it was rewritten, and how often a little was changed since.
    text: u16,
    edits: u16,
    is_known: bool,
    /// When it was visited last.
    stamp: u32,
}

/// The result of a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    First,
    Unchanged,
    Edited,
    Rewritten,
}

/// A visit to a page.
pub struct Visit {
    pub key: String,
    pub signature: Signature,
    pub stamp: u64,
    pub found: Found,
}

/// Returns the signature of a page after a number of edits.
pub fn signature_of(page: u64, edits: u16, count: u16) -> Signature {
    let seed = mix(page);
    let mut values: Vec<u32> = (0..u64::from(count))
        .map(|place| (mix(seed.wrapping_add(place)) >> 32) as u32)
        .collect();
    if edits > 0 {
        let first = usize::from(edits) * EDITED_VALUES;
        for place in first..first + EDITED_VALUES {
            let edited = &mut values[place % usize::from(count)];
            *edited = !*edited;
        }
    }
    Signature::from_minhash(values)
}

/// All pages: 12 bytes each.
pub struct World {
    slots: Vec<Slot>,
    values: u16,
    site_pages: u64,
    /// The sites in the order in which the round that is under way visits them.
    sites: Vec<u32>,
    round: u64,
    /// When pages that no longer exist were last visited.
    gone: Vec<u64>,
}

impl World {
    pub fn new(pages: u64, site_pages: u64, values: u16) -> Self {
        let sites = pages.div_ceil(site_pages);
        Self {
            slots: vec![Slot::default(); pages as usize],
            values,
            site_pages,
            sites: (0..sites as u32).collect(),
            round: 0,
            gone: Vec::new(),
        }
    }

    pub fn pages(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Returns the visit with a number from 0, which is also the time. Visits must be requested in
    /// order.
    pub fn visit(&mut self, number: u64) -> Visit {
        let slot_number = self.slot_of(number);
        let slot = &mut self.slots[slot_number as usize];
        let mut found = Found::Unchanged;
        if !slot.is_known {
            slot.is_known = true;
            found = Found::First;
        } else {
            let fate = mix(number) % 1_000;
            if fate < GONE {
                self.gone.push(slot.stamp.into());
                *slot = Slot {
                    generation: slot.generation + 1,
                    is_known: true,
                    ..Slot::default()
                };
                found = Found::First;
            } else if fate < GONE + REWRITTEN {
                (slot.text, slot.edits) = (slot.text + 1, 0);
                found = Found::Rewritten;
            } else if fate < GONE + REWRITTEN + EDITED {
                slot.edits += 1;
                found = Found::Edited;
            }
        }
        slot.stamp = number as u32;
        Visit {
            key: self.key(slot_number),
            signature: self.signature(slot_number),
            stamp: number,
            found,
        }
    }

    /// Every page once a round, the sites in another order each time.
    fn slot_of(&mut self, number: u64) -> u64 {
        let pages = self.pages();
        let (round, place) = (number / pages, number % pages);
        if round != self.round {
            self.round = round;
            // The shuffle of Fisher and Yates, from the end. The last site may be smaller, and stays.
            for last in (1..self.sites.len().saturating_sub(1)).rev() {
                let other = mix(round << 40 | last as u64) % (last as u64 + 1);
                self.sites.swap(last, other as usize);
            }
        }
        let site = self.sites[(place / self.site_pages) as usize];
        u64::from(site) * self.site_pages + place % self.site_pages
    }

    /// The key of what is in a slot now.
    pub fn key(&self, slot: u64) -> String {
        let generation = self.slots[slot as usize].generation;
        let (site, page) = (slot / self.site_pages, slot % self.site_pages);
        format!("https://site-{site}.example/{page}/{generation}")
    }

    /// Returns when the page in a slot was last visited, or `None` if it never was.
    pub fn stamp(&self, slot: u64) -> Option<u64> {
        let slot = &self.slots[slot as usize];
        slot.is_known.then_some(slot.stamp.into())
    }

    /// The signature of what is in a slot now. An edit leaves all but four values as they were; a page that was
    /// rewritten, or another page, has nothing in common with it.
    pub fn signature(&self, slot: u64) -> Signature {
        let Slot {
            generation,
            text,
            edits,
            ..
        } = self.slots[slot as usize];
        let page = slot << 32 | u64::from(generation) << 16 | u64::from(text);
        signature_of(page, edits, self.values)
    }

    /// Forgets pages that no longer exist and were last visited before this time. Returns their
    /// number.
    pub fn evict(&mut self, before: u64) -> u64 {
        let count = self.gone.len();
        self.gone.retain(|stamp| *stamp >= before);
        (count - self.gone.len()) as u64
    }

    /// Returns the number of documents in a store that has received all visits.
    pub fn documents(&self) -> u64 {
        let known = self.slots.iter().filter(|slot| slot.is_known).count();
        (known + self.gone.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn every_round_visits_each_page_once() {
        let mut world = World::new(2_500, 1_000, 64);
        let mut last: HashMap<String, Signature> = HashMap::new();
        let mut counts = [0; 4];
        for round in 0..8 {
            let mut keys: Vec<u64> = (0..2_500)
                .map(|place| {
                    let visit = world.visit(round * 2_500 + place);
                    let before = last.insert(visit.key, visit.signature.clone());
                    let similarity = before.map(|before| before.jaccard(&visit.signature).unwrap());
                    let expected = match similarity {
                        None => Found::First,
                        Some(1.0) => Found::Unchanged,
                        Some(0.9..) => Found::Edited,
                        Some(_) => Found::Rewritten,
                    };
                    assert_eq!(visit.found, expected);
                    counts[expected as usize] += 1;
                    world.slot_of(visit.stamp)
                })
                .collect();
            keys.sort_unstable();
            assert!(keys.into_iter().eq(0..2_500));
        }
        assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
        assert_eq!(world.documents(), last.len() as u64);
        let gone = world.gone.len() as u64;
        let evicted = world.evict(10_000);
        assert!(evicted > 0 && evicted < gone);
        assert_eq!(world.documents(), last.len() as u64 - evicted);
    }
}
