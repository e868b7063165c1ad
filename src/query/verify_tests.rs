use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::engine::is_of_page;
use crate::error::Error;
use crate::query::bounds::Bounds;
use crate::query::verify::Earlier;
use crate::testing::{Random, append, kinds, signature, store, store_of};
use crate::types::{Document, Filter, Novelty};

/// The id of a stored document.
fn id_of(earlier: Earlier) -> u64 {
    match earlier {
        Earlier::Stored(id) => id.get(),
        Earlier::OfBatch(index) => panic!("{index} of the batch"),
    }
}

/// A panic of a filter is the caller's in every question, in the caller's thread and in others.
#[test]
fn panic_of_a_filter_does_not_damage_the_store() {
    let pages = vec![signature(&kinds()[0], &mut Random(1)); 100];
    let store = store_of(&kinds()[0], 10, pages.clone());
    let snapshot = store.snapshot().unwrap();
    let filter = || Filter::all().when(|_| panic!("mine"));
    let questions: [&dyn Fn(); 7] = [
        &|| drop(snapshot.query(&pages[0]).filter(filter()).run()),
        &|| drop(snapshot.query(&pages).threads(4).filter(filter()).run()),
        &|| drop(snapshot.query(&pages[0]).scan().filter(filter()).run()),
        &|| drop(snapshot.nearest(&pages, 5).filter(filter()).run()),
        &|| drop(snapshot.pairs().threads(2).filter(filter()).run()),
        &|| drop(snapshot.clusters().filter(filter()).run()),
        &|| drop(snapshot.iter().passing(filter()).next()),
    ];
    for question in questions {
        let panic = catch_unwind(AssertUnwindSafe(question)).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"mine"));
    }
    assert_eq!(snapshot.query(&pages[0]).run().unwrap().len(), 100);
}

/// A caller who verifies is asked about identical documents first. When it reports that one is
/// equal, or that it does not know, it is asked about no other.
#[test]
fn an_equal_document_ends_the_search() {
    for schema in [&kinds()[0], &kinds()[9]] {
        let page = signature(schema, &mut Random(1));
        let store = store(schema, 16_000);
        let mut transaction = store.begin_write().unwrap();
        for _ in 0..30 {
            append(&mut transaction, &page);
        }
        // The similarities reported for the first ids. All other ids are reported as equal.
        let cases = [
            (0, Some(1.0), 0, 1),
            (30, None, 0, 1),
            (3, Some(0.9), 3, 4),
            (20, Some(0.9), 20, 30),
        ];
        for (first, of_first, expected, asks) in cases {
            let reported = |id| if id < first { of_first } else { Some(1.0) };
            let batch = [(Document::without_key(), &page)];
            let asked = RefCell::new(Vec::new());
            let insertion = transaction.insert_many(&batch).if_new();
            let found = insertion.verify(|_, earlier| {
                asked.borrow_mut().push(id_of(earlier));
                Ok(reported(id_of(earlier)))
            });
            let found = found.run().unwrap().remove(0);
            let Novelty::NearDuplicate(found) = found else {
                panic!("{found:?}");
            };
            assert_eq!((found.id().get(), asked.borrow().len()), (expected, asks));
        }
    }
}

#[test]
fn wrong_verification_does_not_damage_the_store() {
    let page = signature(&kinds()[0], &mut Random(1));
    let store = store_of(&kinds()[0], 10, [page.clone()]);
    let snapshot = store.snapshot().unwrap();
    for wrong in [f64::NAN, f64::INFINITY, -0.5, 1.5] {
        let query = snapshot.query(&page).verify(|_| Ok(Some(wrong)));
        assert!(matches!(query.run(), Err(Error::InvalidParameter { .. })));
    }
    let query = snapshot.query(&page).verify(|_| Err(Error::ReadOnly));
    assert!(matches!(query.run(), Err(Error::ReadOnly)));
    let query = || snapshot.query(&page).verify(|_| panic!("mine")).run();
    let panic = catch_unwind(AssertUnwindSafe(query)).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"mine"));

    let batch = [(Document::without_key(), &page)];
    let mut transaction = store.begin_write().unwrap();
    let insertion = transaction.insert_many(&batch).if_new();
    let refused = insertion.verify(|_, _| Err(Error::ReadOnly)).run();
    assert!(matches!(refused, Err(Error::ReadOnly)));
    let plain =
        "the transaction failed and can only be rolled back: a closure of the caller has failed";
    assert_eq!(transaction.commit().unwrap_err().to_string(), plain);
    let mut transaction = store.begin_write().unwrap();
    let panicking = || {
        let insertion = transaction.insert_many(&batch).if_new();
        insertion.verify(|_, _| panic!("mine")).run()
    };
    let panic = catch_unwind(AssertUnwindSafe(panicking)).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"mine"));
    assert_eq!(transaction.commit().unwrap_err().to_string(), plain);
    // A zero of either sign is one.
    let zero = |_| Ok(Some(-0.0));
    let all = Bounds::new().min_similarity(0.0).accept_lower_recall();
    let found = snapshot.query(&page).bounds(all);
    let found = found.verify(zero).run().unwrap();
    assert_eq!(found[0].similarity().map(f64::to_bits), Some(0));
    assert_eq!(store.snapshot().unwrap().len(), 1);
}

/// An error that looks like one of a damaged page closed the store that asked.
#[test]
fn error_of_a_closure_that_verifies_is_the_callers() {
    let page = signature(&kinds()[0], &mut Random(1));
    let store = store_of(&kinds()[0], 10, vec![page.clone(); 3]);
    let snapshot = store.snapshot().unwrap();
    let damaged = || Error::corrupt("page at byte 4096", "in a store of texts");
    assert!(is_of_page(&damaged()));
    let mut transaction = store.begin_write().unwrap();
    let batch = [(Document::new("new"), &page)];
    let insert = transaction.insert_many(&batch).if_new();
    let errors = [
        snapshot.query(&page).verify(|_| Err(damaged())).run().err(),
        snapshot
            .nearest(&page, 1)
            .verify(|_| Err(damaged()))
            .run()
            .err(),
        insert.verify(|_, _| Err(damaged())).run().err(),
    ];
    for error in errors {
        assert_eq!(error.unwrap().to_string(), damaged().to_string());
    }
    drop(transaction);
    store.insert("new", &page).unwrap();
    assert_eq!(snapshot.query(&page).run().unwrap().len(), 3);
}
