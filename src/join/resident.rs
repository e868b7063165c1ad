//! Signatures that are read once, before a join, where they fit into memory.

use std::sync::Arc;

use crate::error::Result;
use crate::join::join_lanes::BucketStream;
use crate::join::settings::Settings;
use crate::join::signature_batch::SignatureBatch;
use crate::join::source::{JoinSource, LanePostings, LiveDocuments, VisitFingerprints, VisitNotes};
use crate::read::PostingTable;
use crate::state::SharedContext;
use crate::types::Record;

/// A source, with the signatures of all documents that share a bucket with another.
pub(super) struct ResidentSource {
    source: Arc<dyn JoinSource>,
    signatures: Arc<SignatureBatch>,
}

/// Reads the signatures that a join needs, each once and in the order of the file, if they take no more
/// memory than they may: a document is in a bucket of nearly every lane.
pub(super) fn with_signatures(
    source: Arc<dyn JoinSource>,
    settings: &Settings,
) -> Result<Arc<dyn JoinSource>> {
    if !settings.reads_signatures || source.holds_signatures() {
        return Ok(source);
    }
    let most = settings.options.memory_bytes / settings.document_bytes;
    let Some(ids) = documents_with_partners(&source, settings, most)? else {
        return Ok(source);
    };
    let threads = settings.threads;
    let signatures = source.signatures(&ids, settings.with_codes, threads)?;
    Ok(Arc::new(ResidentSource { source, signatures }))
}

/// Returns the documents that share a bucket with another, ascending; `None` if there are more than
/// `most`.
fn documents_with_partners(
    source: &Arc<dyn JoinSource>,
    settings: &Settings,
    most: u64,
) -> Result<Option<Vec<u64>>> {
    let live = source.live()?;
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

/// So many ids are held before those that come twice are removed.
const MIN_ROOM: usize = 1 << 20;

impl JoinSource for ResidentSource {
    fn context(&self) -> &SharedContext {
        self.source.context()
    }

    fn len(&self) -> u64 {
        self.source.len()
    }

    fn live(&self) -> Result<LiveDocuments> {
        self.source.live()
    }

    fn lane(&self, table: PostingTable, lane: u16) -> Result<LanePostings> {
        self.source.lane(table, lane)
    }

    fn fingerprints(&self, visit: &mut VisitFingerprints<'_>) -> Result<()> {
        self.source.fingerprints(visit)
    }

    fn lane_postings(&self, lane: u16) -> u64 {
        self.source.lane_postings(lane)
    }

    fn holds_signatures(&self) -> bool {
        true
    }

    fn signatures(&self, _: &[u64], _: bool, _: usize) -> Result<Arc<SignatureBatch>> {
        Ok(Arc::clone(&self.signatures))
    }

    fn notes(&self, chunk: u64, visit: &mut VisitNotes<'_>) -> Result<()> {
        self.source.notes(chunk, visit)
    }

    fn record(&self, id: u64) -> Result<Option<Record>> {
        self.source.record(id)
    }

    fn key(&self, id: u64) -> Result<Option<Vec<u8>>> {
        self.source.key(id)
    }
}
