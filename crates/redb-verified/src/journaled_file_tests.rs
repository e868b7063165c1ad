use std::sync::RwLock;

use redb::{StorageBackend, backends::InMemoryBackend};

use super::*;
use crate::page_layout::{HEAD_BYTES, seal_head};

const LIMITS: JournalLimits = JournalLimits {
    bytes: 1 << 16,
    after_syncs: 0,
};

/// Bytes that outlive the handles that open them, on a disk with room for this number of pages.
#[derive(Clone, Debug)]
struct SmallDisk {
    bytes: Arc<InMemoryBackend>,
    /// The pages that were written, and the maximum number of them.
    taken: Arc<RwLock<(std::collections::BTreeSet<u64>, usize)>>,
}

impl SmallDisk {
    fn new(pages: usize) -> Self {
        Self {
            bytes: Arc::default(),
            taken: Arc::new(RwLock::new((Default::default(), pages))),
        }
    }

    fn open(&self) -> JournaledFile {
        JournaledFile::new(self.clone().into(), LIMITS, Role::Alone)
    }

    /// Returns a page as it is in the file, without the journal.
    fn raw(&self, page: u64) -> Vec<u8> {
        let mut bytes = vec![0; PAGE_BYTES];
        self.bytes.read(page * PAGE, &mut bytes).unwrap();
        bytes
    }
}

impl StorageBackend for SmallDisk {
    fn len(&self) -> Result<u64> {
        self.bytes.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.bytes.read(offset, out)
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.taken
            .write()
            .unwrap()
            .0
            .retain(|page| page * PAGE < length);
        self.bytes.set_len(length)
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut taken = self.taken.write().unwrap();
        for page in offset / PAGE..(offset + data.len() as u64).div_ceil(PAGE) {
            if taken.0.len() >= taken.1 && !taken.0.contains(&page) {
                return Err(ErrorKind::StorageFull.into());
            }
            taken.0.insert(page);
        }
        self.bytes.write(offset, data)
    }
}

/// Creates a file of 64 pages, of which the first four are full of sevens.
fn begun(disk: &SmallDisk) -> JournaledFile {
    let file = disk.open();
    file.set_len(64 * PAGE).unwrap();
    let mut head = [0; HEAD_BYTES];
    head.iter_mut()
        .zip(ENGINE_MAGIC)
        .for_each(|(to, from)| *to = *from);
    file.write(0, &seal_head(&head)).unwrap();
    file.write(PAGE, &[7; 4 * PAGE_BYTES]).unwrap();
    file.sync_data().unwrap();
    file
}

fn has_journal(disk: &SmallDisk) -> bool {
    disk.len().unwrap() > 64 * PAGE
}

#[test]
fn pages_of_zeros_reach_the_file() {
    let disk = SmallDisk::new(1_000);
    let file = begun(&disk);
    // A long page, in which the second and the last part are zeros.
    let mut long = vec![0; 4 * PAGE_BYTES];
    long[0] = 1;
    long[2 * PAGE_BYTES] = 3;
    for round in 0..2 {
        file.write(PAGE, &[9; 4 * PAGE_BYTES]).unwrap();
        file.sync_data().unwrap();
        file.write(PAGE, &long).unwrap();
        file.sync_data().unwrap();
        assert!(has_journal(&disk), "round {round}");
    }
    let mut found = vec![1; 4 * PAGE_BYTES];
    file.read(PAGE, &mut found).unwrap();
    assert_eq!(found, long);
    file.close().unwrap();
    assert!(!has_journal(&disk));
    let raw: Vec<u8> = (1..5).flat_map(|page| disk.raw(page)).collect();
    assert_eq!(raw, long);
}

#[test]
fn journaled_pages_reserve_room_in_the_file() {
    // The head, four pages, and the journal of 16 pages; then three more pages.
    let disk = SmallDisk::new(5 + 16 + 3);
    let file = begun(&disk);
    let mut committed = 0;
    let failed = (10..20).find_map(|page| {
        file.write(page * PAGE, &[page as u8; PAGE_BYTES]).unwrap();
        let synced = file.sync_data();
        committed += u64::from(synced.is_ok());
        synced.err()
    });
    assert!(is_full(&failed.unwrap()));
    assert!((1..=3).contains(&committed), "{committed}");
    drop(file);
    // No further page finds room, and none has to.
    let most = disk.taken.read().unwrap().0.len() - 1;
    disk.taken.write().unwrap().1 = most;
    disk.taken.write().unwrap().0.pop_last();
    let file = disk.open();
    file.write(PAGE, &[8; PAGE_BYTES]).unwrap();
    file.sync_data().unwrap();
    for page in 10..10 + committed {
        assert_eq!(disk.raw(page), [page as u8; PAGE_BYTES], "page {page}");
    }
}

/// A small commit does not write to places that a large commit or the file's first commits wrote.
/// It does write to places that were never written, and reserves those that follow them.
#[test]
fn reserved_room_is_written_only_at_a_checkpoint() {
    let disk = SmallDisk::new(1_000);
    let file = begun(&disk);
    let large: Vec<u8> = (0..20 * PAGE_BYTES).map(|at| at as u8 | 1).collect();
    file.write(10 * PAGE, &large).unwrap();
    file.sync_data().unwrap();
    for page in [2, 12, 40] {
        file.write(page * PAGE, &[5; PAGE_BYTES]).unwrap();
    }
    file.sync_data().unwrap();
    assert!(has_journal(&disk));
    let fives = [2, 12, 40].map(|page| disk.raw(page) == [5; PAGE_BYTES]);
    // Page 2 was written before the file had a head, and a journal needs a head.
    assert_eq!(fives, [false, false, true]);
    assert!((40..64).all(|page| disk.taken.read().unwrap().0.contains(&page)));
    file.write(41 * PAGE, &[6; PAGE_BYTES]).unwrap();
    file.sync_data().unwrap();
    assert_eq!(disk.raw(41), [0; PAGE_BYTES]);
    file.close().unwrap();
    assert!(
        [2, 12, 40]
            .iter()
            .all(|page| disk.raw(*page) == [5; PAGE_BYTES])
    );
    assert_eq!(disk.raw(41), [6; PAGE_BYTES]);
}

/// The bytes at which the last record of a file's journal ends and its mark may begin.
fn end_of_journal(file: &JournaledFile) -> u64 {
    let writing = file.writing.lock().unwrap();
    writing.note.offset + writing.used_bytes
}

/// A crash leaves a record without its mark, and a writer that has the file for itself writes none.
#[test]
fn reader_after_a_crash_reads_unpublished_records() {
    let disk = SmallDisk::new(1_000);
    let opened = |role| JournaledFile::new(disk.clone().into(), LIMITS, role);
    begun(&disk).close().unwrap();
    for (role, value) in [(Role::Publisher, 1), (Role::Alone, 2), (Role::Publisher, 3)] {
        let writer = opened(role);
        // The first commit of a page is also written to its place.
        for (page, value) in [(2, 9), (50, 9), (2, value), (50, value)] {
            writer.write(page * PAGE, &[value; PAGE_BYTES]).unwrap();
            writer.sync_data().unwrap();
        }
        assert!(has_journal(&disk));
        disk.bytes
            .write(end_of_journal(&writer), &[0; PAGE_BYTES])
            .unwrap();
        drop(writer);
        for role in [Role::Follower, Role::Alone] {
            let reader = opened(role);
            for page in [2, 50] {
                let mut found = [0; PAGE_BYTES];
                reader.read(page * PAGE, &mut found).unwrap();
                assert!(found == [value; PAGE_BYTES], "{role:?}, page {page}");
            }
        }
    }
}

/// Returns the page as a process sees it that reads beside a writer.
fn followed(reader: &JournaledFile, page: u64) -> Result<u8> {
    reader.read(0, &mut [0; SEALED_HEAD_BYTES])?;
    let mut found = [0; PAGE_BYTES];
    reader.read(page * PAGE, &mut found)?;
    Ok(found[0])
}

/// A record is read once its mark or another record is behind it, in each round of the journal.
#[test]
fn reader_beside_a_writer_reads_published_records_alone() {
    let disk = SmallDisk::new(1_000);
    begun(&disk).close().unwrap();
    let opened = |role| JournaledFile::new(disk.clone().into(), LIMITS, role);
    let (writer, known) = (opened(Role::Publisher), opened(Role::Peer));
    let mut rounds = 0;
    for value in 1..=100 {
        let before = end_of_journal(&writer);
        writer.write(2 * PAGE, &[value; PAGE_BYTES]).unwrap();
        writer.sync_data().unwrap();
        let end = end_of_journal(&writer);
        let mut mark = [0; PAGE_BYTES];
        disk.read(end, &mut mark).unwrap();
        // In a new round, the records of the last one are no longer there to be read.
        let is_next_round = end < before;
        rounds += usize::from(is_next_round);
        if value > 1 && !is_next_round {
            // What a crash before the mark leaves.
            disk.write(end, &[0; PAGE_BYTES]).unwrap();
            assert_eq!(followed(&opened(Role::Peer), 2).unwrap(), value - 1);
            assert_eq!(followed(&known, 2).unwrap(), value - 1);
            disk.write(end, &mark).unwrap();
        }
        assert_eq!(followed(&opened(Role::Peer), 2).unwrap(), value);
        assert_eq!(followed(&known, 2).unwrap(), value);
    }
    assert!(rounds > 5, "{rounds}");
}

#[test]
fn lost_sector_of_a_published_record_is_damage() {
    let disk = SmallDisk::new(1_000);
    begun(&disk).close().unwrap();
    let opened = |role| JournaledFile::new(disk.clone().into(), LIMITS, role);
    let writer = opened(Role::Publisher);
    let mut ends = Vec::new();
    for value in 1..=3 {
        writer.write(2 * PAGE, &[value; PAGE_BYTES]).unwrap();
        writer.sync_data().unwrap();
        ends.push(end_of_journal(&writer));
    }
    assert_eq!(followed(&opened(Role::Follower), 2).unwrap(), 3);
    // Of the second record and of the last one, the first sector and a later one.
    for place in [ends[0], ends[0] + 512, ends[1], ends[1] + 512] {
        let mut sector = [0; 512];
        disk.read(place, &mut sector).unwrap();
        disk.write(place, &[0; 512]).unwrap();
        for role in [Role::Follower, Role::Peer, Role::Alone] {
            let error = followed(&opened(role), 2).unwrap_err();
            assert!(error.to_string().contains("journal"), "{error}");
        }
        disk.write(place, &sector).unwrap();
    }
}

#[test]
fn pages_of_an_aborted_turn_are_not_journaled_over_those_of_others() {
    let disk = SmallDisk::new(1_000);
    begun(&disk).close().unwrap();
    let peer = || JournaledFile::new(disk.clone().into(), LIMITS, Role::Peer);
    let (one, other) = (peer(), peer());
    let page_five = |file: &JournaledFile| {
        // The first read of the head shows the last commit.
        file.read(0, &mut [0; SEALED_HEAD_BYTES]).unwrap();
        let mut page = [0; PAGE_BYTES];
        file.read(5 * PAGE, &mut page).unwrap();
        page
    };
    one.begin_turn().unwrap();
    one.write(5 * PAGE, &[1; PAGE_BYTES]).unwrap();
    one.end_turn();
    other.begin_turn().unwrap();
    other.write(5 * PAGE, &[2; PAGE_BYTES]).unwrap();
    other.sync_data().unwrap();
    other.end_turn();
    assert_eq!(page_five(&one), [2; PAGE_BYTES]);
    one.begin_turn().unwrap();
    one.write(6 * PAGE, &[3; PAGE_BYTES]).unwrap();
    one.sync_data().unwrap();
    one.end_turn();
    assert_eq!(page_five(&other), [2; PAGE_BYTES]);
}
