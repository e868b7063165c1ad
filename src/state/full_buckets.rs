//! Full buckets that the writer remembers, so that it links a document among a million near ones
//! without reading them.

use std::collections::{HashMap, HashSet};

use crate::format::Posting;

/// The lane and the lowest code of a bucket.
pub(crate) type BucketKey = (u16, u64);

/// The number of postings above which a bucket is full.
const FULL: usize = if cfg!(test) { 20 } else { 256 };

/// The number of the newest documents that represent the leading part of a bucket.
const NEWEST: usize = 15;

/// The number of postings that are kept, at 16 bytes each, before all are forgotten.
const MAX_KEPT: usize = if cfg!(test) { 200 } else { 1 << 20 };

/// Full buckets by their keys. A part is a set of documents that are connected: a cluster.
///
/// They are complete: a document that enters the store is added to the buckets that it enters.
#[derive(Default)]
pub(crate) struct FullBuckets {
    buckets: HashMap<BucketKey, FullBucket>,
    /// The buckets that a part leads.
    led: HashMap<u64, Vec<BucketKey>>,
    /// Documents that have been removed since. Buckets may still have them.
    removed: HashSet<u64>,
    /// The number of postings in all buckets.
    kept: usize,
}

enum FullBucket {
    /// Most documents are of one part.
    Led(LedBucket),
    /// No part has most of the documents. It is examined again once it has this number of postings.
    Mixed(usize),
}

/// A bucket of which most documents are of one part.
struct LedBucket {
    part: u64,
    /// The newest documents of the part, and others to which one was near; not all of them.
    newest: Vec<Posting>,
    /// All other documents. Some may have joined the part since they were added.
    others: Vec<Posting>,
    /// With more others the bucket is forgotten, and examined again when it is read.
    most_others: usize,
}

impl FullBuckets {
    pub(crate) fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Returns true if a bucket with this number of postings must be examined.
    pub(crate) fn is_due(&self, key: BucketKey, postings: usize) -> bool {
        match self.buckets.get(&key) {
            Some(FullBucket::Led(_)) => false,
            Some(FullBucket::Mixed(due)) => postings >= *due,
            None => postings > FULL,
        }
    }

    /// Returns the part that leads a bucket, if one does.
    pub(crate) fn leader(&self, key: BucketKey) -> Option<u64> {
        self.bucket(key).map(|bucket| bucket.part)
    }

    /// Returns some documents of the part that leads a bucket.
    pub(crate) fn newest(&self, key: BucketKey) -> impl Iterator<Item = Posting> {
        let newest = self.bucket(key).map(|bucket| &bucket.newest);
        self.left(newest)
    }

    /// Returns all documents of a bucket that are not of the part that leads it.
    pub(crate) fn others(&self, key: BucketKey) -> impl Iterator<Item = Posting> {
        let others = self.bucket(key).map(|bucket| &bucket.others);
        self.left(others)
    }

    fn left(&self, postings: Option<&Vec<Posting>>) -> impl Iterator<Item = Posting> {
        let left = |posting: &&Posting| !self.removed.contains(&posting.id);
        postings.into_iter().flatten().filter(left).copied()
    }

    fn bucket(&self, key: BucketKey) -> Option<&LedBucket> {
        match self.buckets.get(&key) {
            Some(FullBucket::Led(bucket)) => Some(bucket),
            _ => None,
        }
    }

    fn led_mut(&mut self, key: BucketKey) -> Option<&mut LedBucket> {
        match self.buckets.get_mut(&key) {
            Some(FullBucket::Led(bucket)) => Some(bucket),
            _ => None,
        }
    }

    /// Remembers a bucket, given all of its postings, each with its part if that has other
    /// documents. `postings` is the number to which [`is_due`](Self::is_due) refers.
    pub(crate) fn examine(
        &mut self,
        key: BucketKey,
        postings: usize,
        content: &[(Posting, Option<u64>)],
    ) {
        self.forget_bucket(key);
        let mut sizes: HashMap<u64, usize> = HashMap::new();
        for part in content.iter().filter_map(|(_, part)| *part) {
            *sizes.entry(part).or_default() += 1;
        }
        let largest = sizes.into_iter().max_by_key(|(part, size)| (*size, *part));
        self.make_room(content.len());
        let Some((part, size)) = largest.filter(|(_, size)| 2 * size > content.len()) else {
            self.buckets.insert(key, FullBucket::Mixed(2 * postings));
            return;
        };
        let others = content.iter().filter(|(_, of)| *of != Some(part));
        let mut bucket = LedBucket {
            part,
            newest: Vec::new(),
            others: others.map(|(posting, _)| *posting).collect(),
            most_others: 2 * (content.len() - size) + FULL,
        };
        let mut members = content.to_vec();
        members.retain(|(_, of)| *of == Some(part));
        members.sort_unstable_by_key(|(posting, _)| posting.id);
        for (posting, _) in members {
            bucket.push_newest(posting);
        }
        self.kept += bucket.kept();
        self.led.entry(part).or_default().push(key);
        self.buckets.insert(key, FullBucket::Led(bucket));
    }

    /// Adds a document that has entered a bucket.
    pub(crate) fn add(&mut self, key: BucketKey, posting: Posting, part: Option<u64>) {
        let Some(bucket) = self.led_mut(key) else {
            return;
        };
        let before = bucket.kept();
        match part == Some(bucket.part) {
            true => bucket.push_newest(posting),
            false => bucket.others.push(posting),
        }
        let (after, is_led) = (bucket.kept(), bucket.others.len() <= bucket.most_others);
        self.kept = self.kept + after - before;
        if !is_led {
            self.forget_bucket(key);
        }
    }

    /// Notes that a document has been removed from the store.
    pub(crate) fn remove(&mut self, id: u64) {
        if !self.is_empty() {
            self.make_room(1);
            self.removed.insert(id);
        }
    }

    fn make_room(&mut self, count: usize) {
        if self.kept + self.buckets.len() + self.removed.len() + count > MAX_KEPT {
            *self = Self::default();
        }
    }

    /// Leaves out of the others of a bucket those that have joined the part.
    pub(crate) fn retain_others(&mut self, key: BucketKey, is_other: impl Fn(u64) -> bool) {
        if let Some(bucket) = self.led_mut(key) {
            let before = bucket.others.len();
            bucket.others.retain(|posting| is_other(posting.id));
            let left_out = before - bucket.others.len();
            self.kept -= left_out;
        }
    }

    /// Notes that a part has become one with another.
    pub(crate) fn unite(&mut self, part: u64, into: u64) {
        let Some(keys) = self.led.remove(&part) else {
            return;
        };
        for key in &keys {
            if let Some(bucket) = self.led_mut(*key) {
                bucket.part = into;
            }
        }
        self.led.entry(into).or_default().extend(keys);
    }

    /// Forgets the buckets that a part leads: it has been split.
    pub(crate) fn forget(&mut self, part: u64) {
        for key in self.led.remove(&part).unwrap_or_default() {
            self.forget_bucket(key);
        }
    }

    fn forget_bucket(&mut self, key: BucketKey) {
        if let Some(FullBucket::Led(bucket)) = self.buckets.remove(&key) {
            self.kept -= bucket.kept();
            if let Some(keys) = self.led.get_mut(&bucket.part) {
                keys.retain(|led| *led != key);
            }
        }
    }
}

impl LedBucket {
    fn kept(&self) -> usize {
        self.newest.len() + self.others.len()
    }

    /// Adds a document of the part. The one that was added first makes room for it.
    fn push_newest(&mut self, posting: Posting) {
        if self.newest.len() == NEWEST {
            self.newest.remove(0);
        }
        self.newest.push(posting);
    }
}
