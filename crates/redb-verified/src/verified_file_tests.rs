//! Tests the entries of pages without the engine.

use std::collections::BTreeMap;
use std::iter;
use std::sync::RwLock as Lock;
use std::thread;

use super::*;
use std::io::Error;

use crate::engine_error::PAGE_PLACE;

/// The written bytes by offset.
type Written = BTreeMap<u64, Vec<u8>>;

/// A file that may be longer than the part that was written.
#[derive(Clone, Debug, Default)]
struct Sparse(Arc<Lock<(u64, Written)>>);

impl StorageBackend for Sparse {
    fn len(&self) -> Result<u64> {
        Ok(self.0.read().unwrap().0)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let file = self.0.read().unwrap();
        if offset + out.len() as u64 > file.0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        out.fill(0);
        if let Some(bytes) = file.1.get(&offset) {
            let length = bytes.len().min(out.len());
            out[..length].copy_from_slice(&bytes[..length]);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.0.write().unwrap().0 = len;
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.0.write().unwrap().1.insert(offset, data.to_vec());
        Ok(())
    }
}

const PAGE: u64 = PAGE_BYTES as u64;

fn file(pages: u64) -> (VerifiedFile, Arc<Verification>, Sparse) {
    let sparse = Sparse::default();
    let file = VerifiedFile::new(sparse.clone().into(), JournalLimits::NONE, Role::Alone);
    let verification = Arc::clone(&file.verification);
    file.set_len(pages * PAGE).unwrap();
    (file, verification, sparse)
}

fn chunks(verification: &Verification) -> usize {
    let chunks = verification.expectations.chunks.read().unwrap();
    chunks.iter().flatten().count()
}

fn read(file: &VerifiedFile, page: u64, pages: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; pages * PAGE_BYTES];
    file.read(page * PAGE, &mut bytes).map(|()| bytes)
}

fn is_damage(result: Result<Vec<u8>>, offset: u64) -> bool {
    let expected = format!("{PAGE_PLACE}{offset}");
    matches!(engine_error(result), EngineError::Corrupt { place, .. } if place == expected)
}

/// Returns true if nothing understood leads to the page, which is not damage.
fn is_unreferenced(result: Result<Vec<u8>>) -> bool {
    matches!(engine_error(result), EngineError::UnknownLayout { .. })
}

fn engine_error(result: Result<Vec<u8>>) -> EngineError {
    result.unwrap_err().downcast().unwrap()
}

#[test]
fn page_table_grows_with_referenced_pages_only() {
    let (file, verification, _) = file(1 << 40);
    assert_eq!(chunks(&verification), 0);
    for page in [1, 5, 1_023, 1_024, 900_000] {
        file.write(page * PAGE, &[page as u8; PAGE_BYTES]).unwrap();
    }
    assert_eq!(chunks(&verification), 3);
    for page in [1, 5, 1_023, 1_024, 900_000] {
        assert_eq!(read(&file, page, 1).unwrap(), [page as u8; PAGE_BYTES]);
    }
    assert!(is_unreferenced(read(&file, 6, 1)));
    assert_eq!(chunks(&verification), 3);
}

/// A forged head once created an entry for each page up to one that no file can contain, which took
/// gigabytes.
#[test]
fn pages_beyond_the_end_of_the_file_take_no_memory() {
    let (_, verification, _) = file(100);
    let mut head = [0u8; HEAD_BYTES];
    head[..9].copy_from_slice(crate::page_layout::ENGINE_MAGIC);
    head[12..16].copy_from_slice(&4_096u32.to_le_bytes());
    head[20..24].copy_from_slice(&(1u32 << 20).to_le_bytes());
    for slot in [64, 192] {
        head[slot] = 3;
        head[slot + 1] = 1;
        // The last page of the last region.
        head[slot + 8..slot + 16].copy_from_slice(&0xff_ffff_ffffu64.to_le_bytes());
    }
    verification.read_head(&head).unwrap();
    assert_eq!(chunks(&verification), 0);
    // A page within the file gets an entry.
    head[64 + 8..64 + 16].copy_from_slice(&50u64.to_le_bytes());
    verification.read_head(&head).unwrap();
    assert_eq!(chunks(&verification), 1);
}

/// A file that was truncated and has grown again is damaged.
#[test]
fn a_truncated_and_regrown_file_is_damaged() {
    let (file, verification, _) = file(100);
    let geometry = Geometry::USUAL;
    let child = |number| Child {
        number,
        checksum: 0,
    };
    let learn = |number| {
        let children = iter::once(child(number));
        verification
            .expectations
            .learn_children(&geometry, children, TABLES);
    };
    learn(98);
    assert!(is_unreferenced(read(&file, 60, 1)));
    learn(149);
    file.set_len(200 * PAGE).unwrap();
    assert!(is_damage(read(&file, 150, 1), 150 * PAGE));
    // A page that no file can contain is not a newer layout either.
    assert!(is_damage(read(&file, 60, 1), 60 * PAGE));
}

/// Reads and writes of anything but whole pages would look like damage.
#[test]
fn only_whole_pages_and_the_head_are_read_and_written() {
    let (file, _, sparse) = file(100);
    for (offset, length) in [
        (0, 321),
        (0, PAGE_BYTES),
        (9, 100),
        (PAGE + 1, PAGE_BYTES),
        (PAGE, 100),
    ] {
        let refused = |error: Error| error.kind() == ErrorKind::Unsupported;
        assert!(refused(file.write(offset, &vec![1; length]).unwrap_err()));
        assert!(refused(
            file.read(offset, &mut vec![0; length]).unwrap_err()
        ));
    }
    assert!(
        sparse.0.read().unwrap().1.is_empty(),
        "something was written"
    );
}

#[test]
fn longer_page_replaces_the_pages_it_overlaps() {
    let (file, verification, sparse) = file(64);
    for page in 8..12 {
        file.write(page * PAGE, &[1; PAGE_BYTES]).unwrap();
    }
    file.write(8 * PAGE, &[2; 4 * PAGE_BYTES]).unwrap();
    assert_eq!(read(&file, 8, 4).unwrap(), [2; 4 * PAGE_BYTES]);
    for page in 9..12 {
        assert_eq!(verification.expectations.get(page), 0);
        assert!(is_unreferenced(read(&file, page as u64, 1)));
    }
    // The last byte is covered too, and a part of the page does not match.
    assert!(is_damage(read(&file, 8, 2), 8 * PAGE));
    let mut damaged = vec![2; 4 * PAGE_BYTES];
    *damaged.last_mut().unwrap() ^= 1;
    sparse.write(8 * PAGE, &damaged).unwrap();
    assert!(is_damage(read(&file, 8, 4), 8 * PAGE));
}

#[test]
fn truncated_pages_are_forgotten() {
    let (file, verification, _) = file(4_000);
    for page in 1..3_000 {
        file.write(page * PAGE, &[3; PAGE_BYTES]).unwrap();
    }
    assert_eq!(chunks(&verification), 3);
    file.set_len(1_500 * PAGE).unwrap();
    assert_eq!(chunks(&verification), 2);
    file.set_len(4_000 * PAGE).unwrap();
    for page in [1, 1_023, 1_024, 1_499] {
        assert!(read(&file, page, 1).is_ok());
    }
    for page in [1_500, 2_047, 2_048, 2_999] {
        assert_eq!(verification.expectations.get(page), 0, "page {page}");
    }
    file.set_len(1_024 * PAGE).unwrap();
    assert_eq!(chunks(&verification), 1);
    assert!(
        is_damage(read(&file, 1_024, 1), 1_024 * PAGE),
        "it is behind the end"
    );
}

/// The checksum of a written page remains, whatever a page that was read before states.
#[test]
fn learning_never_replaces_a_known_checksum() {
    let expectations = Expectations::default();
    let page = |page, expected| iter::once((page, expected));
    expectations.set(page(7, 0x100 | WRITTEN));
    expectations.learn(page(7, 0x200 | FIRST_KIND));
    assert_eq!(expectations.get(7), 0x100 | WRITTEN);
    expectations.learn(page(8, 0x200 | FIRST_KIND));
    assert_eq!(expectations.get(8), 0x200 | FIRST_KIND);
    expectations.set(page(8, 0x300 | WRITTEN));
    assert_eq!(expectations.get(8), 0x300 | WRITTEN);
}

#[test]
fn tree_kinds_are_bounded() {
    let expectations = Expectations::default();
    let kind = |width| TreeKind {
        widths: Widths {
            key: Some(width),
            value: None,
        },
        is_of_tables: false,
    };
    let numbers: Vec<Option<u64>> = (0..300).map(|w| expectations.number_of(kind(w))).collect();
    let most = (KIND_BITS - FIRST_KIND) as usize;
    assert_eq!(numbers[most], Some(most as u64));
    assert!(numbers[most + 1..].iter().all(Option::is_none));
    assert!((0..=most).all(|w| expectations.kind(w as u64) == Some(kind(w))));
}

/// Many threads record and query at once. No entry is lost, and none is invented.
#[test]
fn threads_share_learned_checksums() {
    let expectations = Expectations::default();
    let noted = |page: usize| (page as u64) << 8 | FIRST_KIND;
    thread::scope(|scope| {
        for thread in 0..4 {
            let expectations = &expectations;
            scope.spawn(move || {
                for step in 0..20_000 {
                    let page = (step * 7_919 + thread * 31) % 50_000;
                    let found = expectations.get(page);
                    assert!(found == 0 || found == noted(page));
                    expectations.learn(iter::once((page, noted(page))));
                    assert_eq!(expectations.get(page), noted(page));
                    let widths = Widths {
                        key: Some(step % 5),
                        value: None,
                    };
                    let kind = TreeKind {
                        widths,
                        is_of_tables: false,
                    };
                    let number = expectations.number_of(kind).unwrap();
                    assert_eq!(expectations.kind(number), Some(kind));
                }
            });
        }
    });
    assert_eq!(expectations.kinds.read().unwrap().len(), 5);
}
