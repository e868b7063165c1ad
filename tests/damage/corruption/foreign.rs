//! Files of other kinds.

use resemblance::Error;

use crate::common::Random;
use crate::common::engine::seal;
use crate::corruption::guards::guarded;
use crate::corruption::image::{Image, OneFile, PATH};
use crate::corruption::{CASES, is_long};

/// The first bytes of files of redb.
const MAGIC: &[u8] = b"redb\x1a\x0a\xa9\x0d\x0a";

/// All ways of opening refuse it, and leave it as it is; with which errors.
fn refused(name: &str, bytes: &[u8]) -> Vec<Error> {
    let file = OneFile::new(Image::new(bytes.to_vec()));
    let options = file.options(&CASES[0].options);
    let attempts = guarded(name, || {
        [
            options.open(PATH).err(),
            options.open_read_only(PATH).err(),
            options.check(PATH).run().err(),
            options.compact(PATH).run().err(),
            CASES[0].reband(&options).err(),
        ]
    });
    let errors = attempts.unwrap_or_else(|what| panic!("{name}: {what}"));
    let after = file.image.read().unwrap();
    assert!(
        after.bytes(0..after.len()).unwrap() == bytes,
        "{name}: the file was changed"
    );
    let errors = errors.map(|error| error.unwrap_or_else(|| panic!("{name} was let in")));
    errors.into()
}

#[test]
fn foreign_files_are_not_stores() {
    let mut sqlite = b"SQLite format 3\0".to_vec();
    sqlite.resize(1 << 20, 0);
    let plain = {
        let memory = OneFile::new(Image::new(Vec::new()));
        let database = redb::Database::builder()
            .create_with_backend(memory.clone())
            .unwrap();
        let write = database.begin_write().unwrap();
        let table = redb::TableDefinition::<u64, u64>::new("rows");
        write.open_table(table).unwrap().insert(1, 2).unwrap();
        write.commit().unwrap();
        drop(database);
        let image = memory.image.read().unwrap();
        image.bytes(0..image.len()).unwrap()
    };
    let mut old = MAGIC.to_vec();
    old.resize(1 << 20, 0);
    // The version of both slots.
    (old[64], old[192]) = (2, 2);
    let text = b"some words, again and again ".repeat(900);
    let others: [(&str, &[u8]); 9] = [
        ("nothing", b""),
        ("SQLite", &sqlite),
        ("gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\x03 and so on"),
        ("a text", &text),
        ("zeros", &[0; 100_000]),
        ("a part of the magic", &MAGIC[..8]),
        ("the magic alone", MAGIC),
        ("a database of someone else", &plain),
        ("the engine's old format", &old),
    ];
    for (name, bytes) in others {
        for error in refused(name, bytes) {
            assert!(
                matches!(error, Error::NotAStore { .. }),
                "{name}: {error:?}"
            );
        }
    }
}

/// Noise behind the magic, and noise in a head whose seal is good, is an error.
#[test]
fn noise_after_a_valid_magic_number_is_an_error() {
    let mut random = Random(11);
    for number in 0..if is_long() { 20_000 } else { 300 } {
        let length = 336 + random.below(1 << 17) as usize;
        let mut bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        let name = format!("noise {number}");
        bytes[..MAGIC.len()].copy_from_slice(MAGIC);
        if number % 3 > 0 {
            // A sealed head in which all but a few bytes are random, with the engine's sizes.
            let intact = CASES[number % CASES.len()].image.bytes(0..320).unwrap();
            if number % 3 == 2 {
                bytes[..320].copy_from_slice(&intact);
                for _ in 0..1 + random.below(4) {
                    bytes[9 + random.below(311) as usize] = random.next() as u8;
                }
            }
            let sealed = seal(&bytes[..320]);
            bytes[320..336].copy_from_slice(&sealed);
        }
        refused_or_changed(&name, &bytes);
    }
}

/// With a forged head, the engine may repair what the head refers to.
fn refused_or_changed(name: &str, bytes: &[u8]) {
    for attempt in 0..4 {
        let file = OneFile::new(Image::new(bytes.to_vec()));
        let options = file.options(&CASES[0].options);
        let result = guarded(name, || match attempt {
            0 => options.open(PATH).is_err(),
            1 => options.open_read_only(PATH).is_err(),
            2 => options.compact(PATH).run().is_err(),
            _ => !options
                .check(PATH)
                .run()
                .is_ok_and(|report| report.is_clean()),
        });
        let refused = result.unwrap_or_else(|what| panic!("{name}: {what}"));
        assert!(refused, "{name} was let in, attempt {attempt}");
    }
}
