//! Stores in other files than those of the operating system answer as the others do.
#![allow(clippy::unwrap_used, reason = "a broken test should stop")]

mod common;

use common::memory::MemoryFiles;
use resemblance::{BulkOptions, Document, Error, MinHash, Rebanding, Schema, Signature, Store};

fn signature(number: u64) -> Signature {
    let mut random = common::Random(number);
    Signature::from_minhash((0..16).map(|_| random.next() as u32).collect())
}

#[test]
fn a_store_lives_in_memory() {
    let files = MemoryFiles::default();
    let options = files.options(&common::sealing_after(8));
    let schema = || {
        let minhash = MinHash::new(16).banding(4, 4);
        Schema::builder().minhash(minhash).build().unwrap()
    };
    let store = options.create("a", schema()).unwrap();
    for number in 0..50u64 {
        store
            .insert(number.to_le_bytes(), &signature(number))
            .unwrap();
    }
    drop(store);
    let again = options.create("a", schema());
    assert!(matches!(again, Err(Error::AlreadyExists { .. })));
    assert!(options.check("a").unwrap().is_clean());
    options.compact("a").unwrap();
    let bulk = BulkOptions::new().store(options.clone());
    let rebanding = Rebanding::new().banding(8, 2);
    Store::reband("a", &rebanding, &bulk).unwrap();
    let store = options.open("a").unwrap();
    for number in 0..50 {
        let found = store.snapshot().unwrap().query(&signature(number)).run();
        assert_eq!(found.unwrap().len(), 1);
    }
    let mut build = Store::bulk_build("b", schema(), &bulk.temp_dir(std::env::temp_dir())).unwrap();
    build.insert(Document::new("key"), &signature(1)).unwrap();
    build.finish().unwrap();
    assert_eq!(files.names().len(), 2);
    assert!(matches!(options.open("c"), Err(Error::NotFound { .. })));
    let kept = options.open_read_only("b").unwrap();
    assert_eq!(kept.snapshot().unwrap().len(), 1);
}
