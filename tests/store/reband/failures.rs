//! Whatever stops a rebanding, the store is as it was.

use std::ops::ControlFlow;
use std::path::Path;

use resemblance::schema::Rebanding;
use resemblance::{Document, Error, Phase, Store};

use crate::common::{Place, check_clean};
use crate::reband::{answers, answers_of, create, go_on, open, schemas, signature, small};

/// An image of the file in the middle of the work is what a crash there leaves.
#[test]
fn interrupted_reband_leaves_the_store_unchanged() {
    let schema = schemas().swap_remove(3);
    let place = Place::new();
    let store = create(&place.store(), &schema);
    go_on(&store, 0..400);
    drop(store);
    let before = answers_of(&place.store(), 120);
    let rebanding = Rebanding::new().threshold(0.5).max_distance(5);
    let reband = |stop: u32, image: Option<&Path>| {
        let mut seen = Vec::new();
        let result = Store::reband(place.store(), &rebanding).bulk(small());
        let result = result.on_progress(|progress| {
            seen.push(progress);
            if seen.len() as u32 != stop {
                return ControlFlow::Continue(());
            }
            if let Some(image) = image {
                std::fs::copy(place.store(), image).unwrap();
            }
            ControlFlow::Break(())
        });
        (result.run(), seen)
    };
    let copy = place.file("copy.rsm");
    std::fs::copy(place.store(), &copy).unwrap();
    let (result, events) = reband(u32::MAX, None);
    let postings = result.unwrap().postings;
    let last = events.last().unwrap();
    assert_eq!(
        (last.phase, last.done),
        (Phase::WritingPostings, postings),
        "{events:?}"
    );
    assert!(events.len() > 16, "{events:?}");
    let after = answers_of(&place.store(), 120);
    assert_ne!(before, after);

    // The first two, the last two, and some of those between.
    let last = events.len() as u32;
    for stop in [1, 2, 3, 5, 9, 14, last - 1, last] {
        std::fs::copy(&copy, place.store()).unwrap();
        let image = place.file("image.rsm");
        // On other systems, a locked file cannot be read.
        let (result, _) = reband(stop, cfg!(unix).then_some(&image));
        match result.unwrap_err() {
            Error::Stopped { work } => assert_eq!(work, "the rebanding"),
            error => panic!("{error}"),
        }
        check_clean(&place.store());
        assert_eq!(answers_of(&place.store(), 120), before);
        if cfg!(unix) {
            assert_eq!(answers_of(&image, 120), before, "crashed at {stop}");
            check_clean(&image);
            Store::reband(&image, &rebanding)
                .bulk(small())
                .run()
                .unwrap();
            assert_eq!(answers_of(&image, 120), after);
        }
    }
    let (result, _) = reband(u32::MAX, None);
    result.unwrap();
    assert_eq!(answers_of(&place.store(), 120), after);
    check_clean(&place.store());
}

#[test]
fn failed_reband_leaves_the_store_unchanged() {
    let schema = &schemas()[0];
    let place = Place::new();
    let mut build = Store::bulk_build(place.store(), schema.clone(), &small()).unwrap();
    for number in 0..20_000 {
        build
            .insert(Document::without_key(), &signature(schema, number))
            .unwrap();
    }
    build.finish().unwrap();
    let before = answers_of(&place.store(), 100);
    let rebanding = Rebanding::new().threshold(0.4);
    let options = small().temp_dir(place.file("nowhere"));
    let refused = Store::reband(place.store(), &rebanding)
        .bulk(options.clone())
        .run();
    assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
    let wrong = Rebanding::new().max_distance(2);
    let refused = Store::reband(place.store(), &wrong).bulk(small()).run();
    assert!(
        matches!(refused, Err(Error::InvalidParameter { .. })),
        "{refused:?}"
    );
    let nothing = Store::reband(place.file("nothing.rsm"), &rebanding)
        .bulk(small())
        .run();
    assert!(
        matches!(nothing, Err(Error::NotFound { .. })),
        "{nothing:?}"
    );

    let store = open(&place.store());
    let impatient = small().store(crate::common::impatient());
    let locked = Store::reband(place.store(), &rebanding)
        .bulk(impatient)
        .run();
    assert!(matches!(locked, Err(Error::Locked { .. })), "{locked:?}");
    assert_eq!(answers(&store.snapshot().unwrap(), 100), before);
    drop(store);
    check_clean(&place.store());

    // Values of signatures are on most pages.
    let mut bytes = std::fs::read(place.store()).unwrap();
    let middle = bytes.len() / 2;
    for place in (0..200).map(|step| middle + step * 4_096) {
        if let Some(byte) = bytes.get_mut(place) {
            *byte ^= 1;
        }
    }
    let damaged = place.file("damaged.rsm");
    std::fs::write(&damaged, bytes).unwrap();
    let refused = Store::reband(&damaged, &rebanding).bulk(small()).run();
    assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
}
