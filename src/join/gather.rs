//! Gathers the buckets of the lanes into batches that fit into memory.

use std::ops::Range;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::error::Result;
use crate::format::Posting;
use crate::invariant::OrBug;
use crate::join::batch::{BucketPiece, CutBuckets, JoinBatch, MIN_DOCUMENTS, NotedDocuments};
use crate::join::join_lanes::BucketStream;
use crate::join::partners::Partners;
use crate::join::settings::{DEFAULT_MEMORY_BYTES, LeftOut, Settings};
use crate::join::signature_batch::SignatureBatch;
use crate::join::source::{JoinSource, LiveDocuments};
use crate::threads::spawn;

/// Number of ids that are gathered before repeated ones are removed.
const MIN_ROOM: usize = 1 << 20;

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

struct LargeBucket {
    lane: u16,
    low_code: u64,
    ids: Vec<u64>,
}

/// A bucket whose groups are being appended to a batch, and where they begin.
struct OpenBucket {
    lane: u16,
    low_code: u64,
    groups: usize,
    members: usize,
}

impl OpenBucket {
    fn new(batch: &JoinBatch, lane: u16, low_code: u64) -> Self {
        Self {
            lane,
            low_code,
            groups: batch.groups.len(),
            members: batch.members.len(),
        }
    }
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
    large: Option<LargeBucket>,
    /// The signatures of all documents that share a bucket with another, where they are in memory.
    held: Option<Arc<SignatureBatch>>,
    pub(super) cut: CutBuckets,
    pub(super) left_out: LeftOut,
}

impl Gatherer {
    pub(crate) fn new(source: &Arc<dyn JoinSource>, settings: &Settings) -> Result<Self> {
        Ok(Self {
            lanes: settings.lanes.clone(),
            stream: None,
            opening: None,
            live: settings.live(&**source)?,
            bucket: Vec::new(),
            partners: Partners::default(),
            candidates: Vec::new(),
            ids: Vec::new(),
            large: None,
            held: held_signatures(source, settings)?,
            cut: CutBuckets::new(),
            left_out: LeftOut::default(),
        })
    }

    /// Returns the number of lanes that are still to be read, the current one included.
    pub(super) fn lanes_left(&self) -> usize {
        // A lane that is being opened has left `lanes` already.
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
            if let Some(bucket) = self.large.take() {
                self.read_large(source, settings, &mut batch, bucket)?;
            } else if let Some(stream) = self.stream.take() {
                self.fill(settings, stream, &mut batch)?;
                self.read_candidates(source, settings, &mut batch)?;
            } else {
                self.stream = self.next_lane(shared_source, settings)?;
                if self.stream.is_none() {
                    return Ok(None);
                }
            }
            // Buckets without a pair add no piece, because an empty batch must not be compared.
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
            Some(opening) => Some(opening.join().ok().or_bug("an opened lane")??),
            None => match self.lanes.next() {
                Some(lane) => Some(BucketStream::open(source, &settings.join_lanes, lane)?),
                None => None,
            },
        };
        // A lane in memory is sorted when it is opened, which takes as long as comparing one.
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
            // A bucket of one document has no pair.
            if let [first, _, ..] = bucket.as_slice() {
                let low_code = lanes.bucket_range(lane, first.code).0;
                if settings.reads_signatures {
                    self.take_documents(settings, lane, low_code, &bucket);
                } else {
                    let open = OpenBucket::new(batch, lane, low_code);
                    self.take_fingerprints(settings, batch, open, &bucket)?;
                }
            }
            if self.ids.len() >= settings.batch_documents || batch.members.len() >= MAX_MEMBERS {
                // Only a lane that may have more buckets is put back; without it the next lane follows.
                self.stream = Some(stream);
                break;
            }
        }
        self.bucket = bucket;
        Ok(())
    }

    /// Records the documents of a bucket whose signatures must be read. For a table, only those
    /// whose bucket contains a near enough fingerprint.
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
            let all = usize::MAX;
            self.partners.find_if_few(bucket, distance, all, is_first);
            let near = self.partners.runs(bucket).filter(|(_, is_near)| *is_near);
            self.ids
                .extend(near.flat_map(|(run, _)| run).map(|posting| posting.id));
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

    /// Takes a bucket of a table whose codes are the signatures.
    fn take_fingerprints(
        &mut self,
        settings: &Settings,
        batch: &mut JoinBatch,
        open: OpenBucket,
        bucket: &[Posting],
    ) -> Result<()> {
        let table = settings.table(open.lane).or_bug("a table")?;
        let few = settings.representatives(FEW_FINGERPRINTS);
        let is_first = |a, b| !self.cut.is_empty() || table.may_meet_first(a, b);
        let distance = settings.bounds.max_distance;
        let is_searched = self.partners.find_if_few(bucket, distance, few, is_first);
        for (documents, is_near) in self.partners.runs(bucket) {
            if let Some(posting) = documents.first()
                && (is_near || !is_searched)
            {
                let ids = documents.iter().map(|posting| posting.id);
                batch.push_group(ids, table.fingerprint(posting.code).into());
            }
        }
        if batch.groups.len() > open.groups {
            let piece = self.finish_bucket(settings, batch, open)?;
            batch.pieces.extend(piece);
        }
        Ok(())
    }

    /// Reads the signatures of the documents that were noted, in the order of their ids.
    fn read_candidates(
        &mut self,
        source: &dyn JoinSource,
        settings: &Settings,
        batch: &mut JoinBatch,
    ) -> Result<()> {
        // Where all signatures are in memory no bucket is too large.
        if self.ids.len() > 2 * settings.batch_documents
            && self.held.is_none()
            && let Some(last) = self.candidates.pop()
        {
            // All others together are at most a batch.
            let ids = self.ids.split_off(last.ids.start);
            self.large = Some(LargeBucket {
                lane: last.lane,
                low_code: last.low_code,
                ids,
            });
        }
        if self.candidates.is_empty() {
            return Ok(());
        }
        let noted = self.read_signatures(source, settings, batch)?;
        for candidates in std::mem::take(&mut self.candidates) {
            let ids = self.ids.get(candidates.ids);
            let mut documents = Vec::new();
            for id in ids.or_bug("the documents of a bucket")? {
                let digest = match noted.digest(*id) {
                    Some(digest) => digest,
                    None => batch.signatures.digest(batch.signatures.slot(*id)?)?,
                };
                documents.push((digest, *id));
            }
            let open = OpenBucket::new(batch, candidates.lane, candidates.low_code);
            batch.group(documents);
            if let Some(piece) = self.finish_bucket(settings, batch, open)? {
                batch.find_slots(piece.b.clone())?;
                batch.pieces.push(piece);
            }
        }
        self.ids.clear();
        Ok(())
    }

    /// Reads the signatures of the recorded documents, except for those that are known to equal
    /// others.
    fn read_signatures(
        &self,
        source: &dyn JoinSource,
        settings: &Settings,
        batch: &mut JoinBatch,
    ) -> Result<NotedDocuments> {
        if let Some(held) = &self.held {
            batch.signatures = Arc::clone(held);
            return Ok(NotedDocuments::default());
        }
        // Documents that runs record as equal share one signature, that of the first. In large
        // buckets most documents are of this kind.
        let noted = self.noted(source)?;
        let unknown = self.ids.iter().filter(|id| noted.digest(**id).is_none());
        let mut distinct: Vec<u64> = unknown.copied().chain(noted.firsts()).collect();
        distinct.sort_unstable();
        distinct.dedup();
        batch.signatures = source.signatures(&distinct, settings.with_codes, settings.threads)?;
        Ok(noted)
    }

    /// Looks the documents of the larger buckets up among those that are noted to be equal.
    fn noted(&self, source: &dyn JoinSource) -> Result<NotedDocuments> {
        let buckets = self.candidates.iter().map(|bucket| bucket.ids.clone());
        let mut ids: Vec<u64> = Vec::new();
        for large in buckets.filter(|ids| ids.len() >= MIN_DOCUMENTS) {
            ids.extend(self.ids.get(large).or_bug("the documents of a bucket")?);
        }
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
        mut bucket: LargeBucket,
    ) -> Result<()> {
        let open = OpenBucket::new(batch, bucket.lane, bucket.low_code);
        let mut documents = Vec::with_capacity(bucket.ids.len());
        bucket.ids.sort_unstable();
        let noted = NotedDocuments::read(source, &bucket.ids)?;
        // Large lists are dropped before the next one is made.
        drop(bucket);
        documents.extend(noted.digests());
        for share in noted.others.chunks(settings.batch_documents) {
            // Only digests are kept here, so that signatures of one share at a time are in memory, and no codes are
            // computed for them.
            let signatures = source.signatures(share, false, settings.threads)?;
            documents.extend(signatures.documents().map(|(id, digest)| (digest, id)));
        }
        drop(noted);
        batch.group(documents);
        let Some(piece) = self.finish_bucket(settings, batch, open)? else {
            return Ok(());
        };
        let end = piece.b.end;
        // Two batches fit where one is read alone.
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

    /// Puts the groups of a bucket in order. Returns `None` if there is nothing to compare, and removes its
    /// groups and members from the batch.
    fn finish_bucket(
        &mut self,
        settings: &Settings,
        batch: &mut JoinBatch,
        bucket: OpenBucket,
    ) -> Result<Option<BucketPiece>> {
        let start = bucket.groups;
        let groups = batch
            .groups
            .get_mut(start..)
            .or_bug("the groups of a bucket")?;
        groups.sort_unstable_by_key(|group| group.first);
        let representatives = settings.representatives(groups.len());
        if let Some((compared, rest)) = groups.split_at_checked(representatives)
            && let (Some(last), false) = (compared.last(), rest.is_empty())
        {
            self.cut.insert((bucket.lane, bucket.low_code), last.first);
            self.left_out
                .add(rest.iter().map(|group| group.members.len() as u64));
        }
        // Equal documents share all their buckets, so the first lane has them all.
        let has_equal = bucket.lane == settings.lanes.start
            && groups.iter().any(|group| group.members.len() > 1);
        if groups.len() < 2 && !has_equal {
            batch.groups.truncate(start);
            batch.members.truncate(bucket.members);
            return Ok(None);
        }
        if settings.has_fingerprints {
            let fingerprints = groups.iter().map(|group| group.fingerprint.word(0));
            batch.fingerprints.extend(fingerprints);
        }
        if has_equal && settings.hides_equal {
            // They are linked to the first of them here, which represents them from now on.
            for index in start..batch.groups.len() {
                let equal = batch.members_of(index).iter().skip(1);
                equal.for_each(|id| self.live.hide(*id));
            }
        }
        let groups = start..batch.groups.len();
        Ok(Some(BucketPiece {
            lane: bucket.lane,
            a: groups.clone(),
            representatives_end: start + representatives,
            b: groups,
            is_read_alone: false,
        }))
    }
}

/// Returns the signatures that a join needs, if they are in memory, or else if they take no more of it than
/// they may: a document is in a bucket of nearly every lane, so each is read once, in the order of the file.
fn held_signatures(
    source: &Arc<dyn JoinSource>,
    settings: &Settings,
) -> Result<Option<Arc<SignatureBatch>>> {
    if !settings.reads_signatures {
        return Ok(None);
    }
    if let Some(held) = source.held_signatures() {
        return Ok(Some(held));
    }
    let memory_bytes = settings
        .options
        .memory_bytes
        .unwrap_or(DEFAULT_MEMORY_BYTES);
    let most = memory_bytes / settings.document_bytes;
    let Some(ids) = documents_with_partners(source, settings, most)? else {
        return Ok(None);
    };
    let signatures = source.signatures(&ids, settings.with_codes, settings.threads)?;
    Ok(Some(signatures))
}

/// Returns the documents that share a bucket with another, ascending; `None` if there are more than
/// `most`.
fn documents_with_partners(
    source: &Arc<dyn JoinSource>,
    settings: &Settings,
    most: u64,
) -> Result<Option<Vec<u64>>> {
    let live = settings.live(&**source)?;
    let lanes = settings.join_lanes.set();
    let (mut ids, mut room) = (Vec::new(), MIN_ROOM);
    let mut bucket = Vec::new();
    for lane in settings.lanes.clone() {
        let mut stream = BucketStream::open(source, &settings.join_lanes, lane)?;
        while stream.read(lanes, &live, &mut bucket)? {
            if bucket.len() < 2 {
                continue;
            }
            ids.extend(bucket.iter().map(|posting| posting.id));
            if ids.len() >= room {
                ids.sort_unstable();
                ids.dedup();
                if ids.len() as u64 > most {
                    return Ok(None);
                }
                // Half of the room has to be free, or the list would be sorted again too soon.
                room = MIN_ROOM.max(2 * ids.len());
            }
        }
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(Some(ids).filter(|ids| ids.len() as u64 <= most))
}
