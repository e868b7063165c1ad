//! The damages that are done to files.

use std::ops::Range;

use crate::common::Random;
use crate::corruption::image::{Image, PAGE_BYTES};
use crate::corruption::stores::Case;

#[derive(Clone, Debug)]
pub(crate) enum Damage {
    Flip {
        at: usize,
        mask: u8,
    },
    /// Two pages in each other's places, by their offsets.
    Swap(usize, usize),
    /// A page that is another's.
    Copy {
        from: usize,
        to: usize,
    },
    /// A page as it was after an earlier commit.
    Stale {
        at: usize,
        commit: usize,
    },
    Zero(Range<usize>),
    Random(Range<usize>, u64),
    /// A branch that is its own first child.
    Circle(usize),
    Length(usize),
    /// Extends the file by bytes other than zeros.
    Longer(usize),
}

impl Damage {
    /// Returns true for the head of an earlier commit whose pages may all still exist. Such a file
    /// is an earlier store, and nothing in it shows that there was a later commit.
    pub(crate) fn is_old_head(&self) -> bool {
        matches!(self, Self::Stale { at: 0, .. })
    }

    /// None if it changes nothing.
    pub(crate) fn apply(&self, case: &Case) -> Option<Image> {
        let mut image = case.image.clone();
        let page = |at: usize| image.bytes(at..at + PAGE_BYTES);
        match self {
            Self::Flip { at, mask } => image.flip(*at, *mask),
            Self::Swap(a, b) => {
                let (first, second) = (page(*a)?, page(*b)?);
                image.write(*a, &second);
                image.write(*b, &first);
            }
            Self::Copy { from, to } => {
                let copied = page(*from)?;
                image.write(*to, &copied);
            }
            Self::Stale { at, commit } => {
                let stale = case.older[*commit].get(*at..*at + PAGE_BYTES)?;
                image.write(*at, stale);
            }
            Self::Zero(range) => image.write(range.start, &vec![0; range.len()]),
            Self::Random(range, seed) => {
                let mut random = Random(*seed);
                let bytes = range.clone().map(|_| random.next() as u8);
                image.write(range.start, &bytes.collect::<Vec<_>>());
            }
            Self::Circle(at) => {
                let branch = page(*at)?;
                let keys = usize::from(u16::from_le_bytes([branch[2], branch[3]]));
                // Behind the checksums of all children, the numbers of their pages.
                let first = 8 + 16 * (keys + 1);
                let child = branch.get(first..first + 8)?;
                let number = u64::from_le_bytes(child.try_into().unwrap());
                // The first page of the file belongs to no region.
                let own = number & !0xf_ffff | (*at / PAGE_BYTES - 1) as u64;
                image.write(at + first, &own.to_le_bytes());
            }
            Self::Length(len) => image.set_len(*len),
            Self::Longer(bytes) => {
                let len = image.len();
                image.set_len(len + bytes);
                image.write(len, &vec![0xa5; *bytes]);
            }
        }
        let len = image.len();
        let is_changed = len != case.image.len() || image.bytes(0..len) != case.image.bytes(0..len);
        is_changed.then_some(image)
    }
}

/// Numbers below `end`, each once, the first of them spread over all.
pub(crate) fn spread(end: usize, count: usize) -> impl Iterator<Item = usize> {
    let golden = (end as f64 * 0.618_033_988_75) as usize;
    let step = (golden.max(1)..).find(|step| greatest_common_divisor(*step, end) == 1);
    let step = step.unwrap();
    (0..end.min(count)).map(move |number| (number as u128 * step as u128 % end as u128) as usize)
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}
