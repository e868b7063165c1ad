//! From the buckets of the lanes to batches that fit into memory.

use std::ops::Range;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::error::Result;
use crate::format::Posting;
use crate::invariant::OrBug;
use crate::join::batch::{BucketPiece, CutBuckets, JoinBatch, MIN_DOCUMENTS, NotedDocuments};
use crate::join::join_lanes::BucketStream;
use crate::join::partners::Partners;
use crate::join::settings::{LeftOut, Settings};
use crate::join::signature_batch::stopped;
use crate::join::source::{JoinSource, LiveDocuments};
use crate::threads::spawn;

/// Maximum number of documents in a batch whose signatures need not be read.
const MAX_MEMBERS: usize = 1 << 18;

/// Different fingerprints of a bucket up to which those without a partner are left out first. More
/// are compared by several threads, and only once.
const FEW_FINGERPRINTS: usize = 1 << 10;

/// The documents of a bucket, before their signatures are read.
struct BucketCandidates {
    lane: u16,
    low_code: u64,
    ids: Range<usize>,
}

/// Makes batches of the buckets of the lanes, in the order of the lanes.
pub(super) struct Gatherer {
    lanes: Range<u16>,
    stream: Option<BucketStream>,
    /// The next lane, which another thread opens: one in memory is sorted for it.
    opening: Option<JoinHandle<Result<BucketStream>>>,
    live: LiveDocuments,
    bucket: Vec<Posting>,
    partners: Partners,
    candidates: Vec<BucketCandidates>,
    ids: Vec<u64>,
    /// A bucket that is too large to be in a batch with others.
    large: Option<(u16, u64, Vec<u64>)>,
    pub(super) cut: CutBuckets,
    pub(super) left_out: LeftOut,
}

impl Gatherer {
    pub(crate) fn new(source: &dyn JoinSource, settings: &Settings) -> Result<Self> {
        Ok(Self {
            lanes: settings.lanes.clone(),
            stream: None,
            opening: None,
            live: source.live()?,
            bucket: Vec::new(),
            partners: Partners::default(),
            candidates: Vec::new(),
            ids: Vec::new(),
            large: None,
            cut: CutBuckets::new(),
            left_out: LeftOut::default(),
        })
    }

    /// Returns the number of lanes that are still to be read, the current one included.
    pub(super) fn lanes_left(&self) -> usize {
        let at_hand = self.stream.is_some() || self.large.is_some();
        self.lanes.len() + usize::from(at_hand) + usize::from(self.opening.is_some())
    }

    /// Returns the next batch with anything to compare, or `None` at the end of the last lane.
    pub(crate) fn next(
        &mut self,
        shared_source: &Arc<dyn JoinSource>,
        settings: &Settings,
    ) -> Result<Option<JoinBatch>> {
        let source = &**shared_source;
        let mut batch = JoinBatch::default();
        loop {
            if let Some((lane, low_code, ids)) = self.large.take() {
                self.read_large(source, settings, &mut batch, (lane, low_code, ids))?;
            } else if let Some(stream) = self.stream.take() {
                self.fill(settings, stream, &mut batch)?;
                self.read_candidates(source, settings, &mut batch)?;
            } else {
                self.stream = self.next_lane(shared_source, settings)?;
                if self.stream.is_none() {
                    return Ok(None);
                }
            }
            if !batch.pieces.is_empty() {
                return Ok(Some(batch));
            }
        }
    }

    /// Opens the next lane, and has another thread open the one after it.
    fn next_lane(
        &mut self,
        source: &Arc<dyn JoinSource>,
        settings: &Settings,
    ) -> Result<Option<BucketStream>> {
        let stream = match self.opening.take() {
            Some(opening) => Some(opening.join().map_err(|_| stopped())??),
            None => match self.lanes.next() {
                Some(lane) => Some(BucketStream::open(source, &settings.join_lanes, lane)?),
                None => None,
            },
        };
        if settings.threads > 1
            && let Some(lane) = self.lanes.next()
        {
            let source = Arc::clone(source);
            let lanes = Arc::clone(&settings.join_lanes);
            let open = move || {
                let context = source.context();
                context.run_checked(|| BucketStream::open(&source, &lanes, lane))
            };
            self.opening = Some(spawn("gather", open)?);
        }
        Ok(stream)
    }

    /// Takes buckets of one lane until there are enough.
    fn fill(
        &mut self,
        settings: &Settings,
        mut stream: BucketStream,
        batch: &mut JoinBatch,
    ) -> Result<()> {
        let lanes = settings.join_lanes.set();
        let lane = stream.lane();
        let mut bucket = std::mem::take(&mut self.bucket);
        while stream.read(lanes, &self.live, &mut bucket)? {
            if let [first, _, ..] = bucket.as_slice() {
                let low_code = lanes.bucket_range(lane, first.code).0;
                if settings.reads_signatures {
                    self.take_documents(settings, lane, low_code, &bucket);
                } else {
                    self.take_fingerprints(settings, batch, lane, &bucket);
                }
            }
            if self.ids.len() >= settings.batch_documents || batch.members.len() >= MAX_MEMBERS {
                self.stream = Some(stream);
                break;
            }
        }
        self.bucket = bucket;
        Ok(())
    }

    /// Notes the documents of a bucket whose signatures are to be read: of a table those alone
    /// that have a fingerprint near enough beside them.
    fn take_documents(
        &mut self,
        settings: &Settings,
        lane: u16,
        low_code: u64,
        bucket: &[Posting],
    ) {
        let start = self.ids.len();
        // All postings of a bucket that may be cut short are read, to count those left out.
        let may_be_cut = settings.representatives(bucket.len()) < bucket.len();
        let distance = settings.bounds.max_distance;
        if let Some(table) = settings.table(lane).filter(|_| !may_be_cut) {
            let is_first = |a, b| !self.cut.is_empty() || table.may_meet_first(a, b);
            self.partners.find(bucket, distance, is_first);
            let near = self.partners.runs().filter(|(_, is_near)| *is_near);
            let near = near.filter_map(|(run, _)| bucket.get(run)).flatten();
            self.ids.extend(near.map(|posting| posting.id));
        } else {
            self.ids.extend(bucket.iter().map(|posting| posting.id));
        }
        if self.ids.len() > start {
            self.candidates.push(BucketCandidates {
                lane,
                low_code,
                ids: start..self.ids.len(),
            });
        }
    }

    /// Takes a bucket of a table whose codes say all: they are the signatures.
    fn take_fingerprints(
        &mut self,
        settings: &Settings,
        batch: &mut JoinBatch,
        lane: u16,
        bucket: &[Posting],
    ) {
        let Some(table) = settings.table(lane) else {
            return;
        };
        let few = settings.representatives(FEW_FINGERPRINTS);
        let is_first = |a, b| !self.cut.is_empty() || table.may_meet_first(a, b);
        let distance = settings.bounds.max_distance;
        let is_searched = self.partners.find_if_few(bucket, distance, few, is_first);
        let mut bucket_start = None;
        for (run, is_near) in self.partners.runs() {
            debug_assert!(run.end <= bucket.len());
            let documents = bucket.get(run).unwrap_or_default();
            if let Some(posting) = documents.first()
                && (is_near || !is_searched)
            {
                bucket_start = bucket_start.or(Some((
                    batch.groups.len(),
                    batch.members.len(),
                    posting.code,
                )));
                let ids = documents.iter().map(|posting| posting.id);
                batch.push_group(ids, table.fingerprint(posting.code).into());
            }
        }
        if let Some((groups, members, code)) = bucket_start {
            let low_code = settings.join_lanes.set().bucket_range(lane, code).0;
            let start = (groups, members);
            if let Some(piece) = self.finish_bucket(settings, batch, lane, low_code, start) {
                batch.pieces.push(piece);
            }
        }
    }

    /// Reads the signatures of the documents that were noted, in the order of their ids.
    fn read_candidates(
        &mut self,
        source: &dyn JoinSource,
        settings: &Settings,
        batch: &mut JoinBatch,
    ) -> Result<()> {
        if self.ids.len() > 2 * settings.batch_documents
            && !source.holds_signatures()
            && let Some(last) = self.candidates.pop()
        {
            // All others together are no more than a batch.
            let ids = self.ids.split_off(last.ids.start);
            self.large = Some((last.lane, last.low_code, ids));
        }
        if self.candidates.is_empty() {
            return Ok(());
        }
        let noted = self.read_signatures(source, settings, batch)?;
        for candidates in std::mem::take(&mut self.candidates) {
            let ids = self.ids.get(candidates.ids);
            let ids = ids.or_bug("the documents of a bucket")?;
            let documents = ids.iter().map(|id| {
                if let Some(digest) = noted.digest(*id) {
                    return Ok((digest, *id));
                }
                let slot = batch.signatures.slot(*id)?;
                Ok((batch.signatures.digest(slot)?, *id))
            });
            let documents = documents.collect::<Result<Vec<_>>>()?;
            let start = (batch.groups.len(), batch.members.len());
            batch.group(documents);
            let (lane, low_code) = (candidates.lane, candidates.low_code);
            if let Some(piece) = self.finish_bucket(settings, batch, lane, low_code, start) {
                batch.find_slots(piece.b.clone())?;
                batch.pieces.push(piece);
            }
        }
        self.ids.clear();
        Ok(())
    }

    /// Reads the signatures of the documents that were noted, but for those of which it is known which
    /// they equal.
    fn read_signatures(
        &self,
        source: &dyn JoinSource,
        settings: &Settings,
        batch: &mut JoinBatch,
    ) -> Result<NotedDocuments> {
        let (threads, with_codes) = (settings.threads, settings.with_codes);
        if source.holds_signatures() {
            batch.signatures = source.signatures(&self.ids, with_codes, threads)?;
            return Ok(NotedDocuments::default());
        }
        let noted = self.noted(source)?;
        let unknown = self.ids.iter().filter(|id| noted.digest(**id).is_none());
        let mut distinct: Vec<u64> = unknown.copied().chain(noted.firsts()).collect();
        distinct.sort_unstable();
        distinct.dedup();
        batch.signatures = source.signatures(&distinct, with_codes, threads)?;
        Ok(noted)
    }

    /// Looks the documents of the larger buckets up among those that are noted to be equal.
    fn noted(&self, source: &dyn JoinSource) -> Result<NotedDocuments> {
        let buckets = self.candidates.iter().map(|bucket| bucket.ids.clone());
        let large = buckets.filter(|ids| ids.len() >= MIN_DOCUMENTS);
        let large = large.filter_map(|ids| self.ids.get(ids)).flatten();
        let mut ids: Vec<u64> = large.copied().collect();
        ids.sort_unstable();
        NotedDocuments::read(source, &ids)
    }

    /// Reads the signatures of a large bucket a share at a time, to find which are equal, unless that is noted. If the
    /// different ones are still too many, they are read again for each two shares to compare.
    fn read_large(
        &mut self,
        source: &dyn JoinSource,
        settings: &Settings,
        batch: &mut JoinBatch,
        (lane, low_code, mut ids): (u16, u64, Vec<u64>),
    ) -> Result<()> {
        let threads = settings.threads;
        let mut documents = Vec::with_capacity(ids.len());
        ids.sort_unstable();
        let noted = NotedDocuments::read(source, &ids)?;
        drop(ids);
        documents.extend(noted.digests());
        for share in noted.others.chunks(settings.batch_documents) {
            let signatures = source.signatures(share, false, threads)?;
            documents.extend(signatures.documents().map(|(id, digest)| (digest, id)));
        }
        drop(noted);
        batch.group(documents);
        let Some(piece) = self.finish_bucket(settings, batch, lane, low_code, (0, 0)) else {
            return Ok(());
        };
        let end = piece.b.end;
        let share = if end <= 2 * settings.batch_documents {
            end
        } else {
            settings.batch_documents
        };
        let shares = || {
            (0..end)
                .step_by(share.max(1))
                .map(|start| start..end.min(start + share))
        };
        for b in shares() {
            let is_compared = |a: &Range<usize>| {
                a.start <= b.start && (a.start == 0 || a.start < piece.representatives_end)
            };
            // The signatures of those that are not compared with all need not be read again.
            let compared = |a: Range<usize>| a.start..a.end.min(piece.representatives_end.max(1));
            let a = shares().filter(is_compared).map(compared);
            batch.pieces.extend(a.map(|a| BucketPiece {
                a,
                b: b.clone(),
                is_read_alone: true,
                ..piece
            }));
        }
        Ok(())
    }

    /// Puts the groups of a bucket in order, from the indexes of its first group and its first
    /// member on. `None`: there is nothing to compare, and its groups and members are removed from the batch.
    fn finish_bucket(
        &mut self,
        settings: &Settings,
        batch: &mut JoinBatch,
        lane: u16,
        low_code: u64,
        (start, members): (usize, usize),
    ) -> Option<BucketPiece> {
        debug_assert!(start <= batch.groups.len() && members <= batch.members.len());
        let groups = batch.groups.get_mut(start..).unwrap_or_default();
        groups.sort_unstable_by_key(|group| group.first);
        let representatives = settings.representatives(groups.len());
        if let Some((compared, rest)) = groups.split_at_checked(representatives)
            && let (Some(last), false) = (compared.last(), rest.is_empty())
        {
            self.cut.insert((lane, low_code), last.first);
            self.left_out
                .add(rest.iter().map(|group| group.members.len() as u64));
        }
        let has_equal =
            lane == settings.lanes.start && groups.iter().any(|group| group.members.len() > 1);
        if groups.len() < 2 && !has_equal {
            batch.groups.truncate(start);
            batch.members.truncate(members);
            return None;
        }
        if settings.has_fingerprints {
            let fingerprints = groups.iter().map(|group| group.fingerprint.word(0));
            batch.fingerprints.extend(fingerprints);
        }
        if has_equal && settings.hides_equal {
            // They are linked to the first of them here, which stands for them from now on.
            for index in start..batch.groups.len() {
                let equal = batch.members_of(index).iter().skip(1);
                equal.for_each(|id| self.live.hide(*id));
            }
        }
        let groups = start..batch.groups.len();
        Some(BucketPiece {
            lane,
            a: groups.clone(),
            representatives_end: start + representatives,
            b: groups,
            is_read_alone: false,
        })
    }
}
