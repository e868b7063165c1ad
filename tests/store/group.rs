//! Changes of many threads, made together: each is answered as if it had been alone.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::common::sample::trials;
use crate::common::small::{schema, signature};
use crate::common::{Place, Random, check_clean, sealing_after};
use resemblance::{Closed, Document, DocumentId, Error, Novelty, Queue, Signature, Store, Ticket};

const _: () = {
    const fn shared_by_threads<T: Clone + Send + Sync + 'static>() {}
    const fn sent_to_threads<T: Send + 'static>() {}
    shared_by_threads::<Queue>();
    sent_to_threads::<Ticket<Novelty>>();
};

/// Signatures of one family are near each other, and of different values.
fn member(family: u32, number: u32) -> Signature {
    let mut values = vec![family; 16];
    values[15] = u32::MAX - 1 - number;
    Signature::from_parts(Some(values), Some(0)).with_simhash_of(&signature(family))
}

fn store(place: &Place, calls: usize, wait: Duration) -> Store {
    let options = sealing_after(64).group_calls(calls).group_wait(wait);
    options.create(place.store(), schema()).unwrap()
}

/// Drives a future on this thread, as the simplest of runtimes.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => thread::park(),
        }
    }
}

/// How a thread brings a document.
fn bring(store: &Store, way: u64, key: &[u8], page: &Signature) -> Novelty {
    match way {
        0 => store.insert_if_new(key, page).unwrap(),
        1 => store
            .queue()
            .insert_if_new(key, page)
            .unwrap()
            .wait()
            .unwrap(),
        2 => block_on(store.queue().insert_if_new(key, page).unwrap()).unwrap(),
        _ => {
            let mut transaction = store.begin_write().unwrap();
            let novelty = transaction.insert_if_new(key, page).unwrap();
            transaction.commit().unwrap();
            novelty
        }
    }
}

/// Threads insert near-duplicates at the same moment, again and again. Each time, one thread learns
/// that its document is new, and the others receive that document.
fn exactly_one_is_new(calls: usize, wait: Duration) {
    const THREADS: u32 = 8;
    const ROUNDS: u32 = 40;
    let place = Place::new();
    let store = store(&place, calls, wait);
    let barrier = Barrier::new(THREADS as usize);
    let bring_all = |thread: u32| {
        let mut random = Random(u64::from(thread));
        let mut reported = Vec::new();
        for round in 0..ROUNDS {
            let key = [round.to_be_bytes(), thread.to_be_bytes()].concat();
            let page = member(round, thread);
            barrier.wait();
            reported.push(bring(&store, random.below(4), &key, &page));
        }
        reported
    };
    let reported: Vec<Vec<Novelty>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || bring_all(thread)))
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    for round in 0..ROUNDS as usize {
        let mut new = Vec::new();
        for novelties in &reported {
            new.extend(match novelties[round] {
                Novelty::New { id, .. } => Some(id),
                _ => None,
            });
        }
        assert_eq!(new.len(), 1, "round {round}");
        for novelties in &reported {
            match &novelties[round] {
                Novelty::New { .. } => {}
                Novelty::NearDuplicate(found) => assert_eq!(found.id(), new[0]),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(store.snapshot().unwrap().len(), u64::from(ROUNDS));
    assert_eq!(store.close().unwrap(), Closed::File);
    check_clean(&place.store());
}

#[test]
fn exactly_one_of_concurrent_near_duplicates_is_new() {
    exactly_one_is_new(1_024, Duration::from_millis(1));
    exactly_one_is_new(1_024, Duration::ZERO);
    exactly_one_is_new(3, Duration::from_millis(1));
    exactly_one_is_new(1, Duration::ZERO);
}

/// The keys of one thread, each with its stamp and the number of its signature.
type Held = BTreeMap<Vec<u8>, (u64, u32)>;

/// Random changes under keys of the thread's own, compared with a map after each.
fn change_own_keys(store: &Store, thread: u32, changes: u64) -> Held {
    let mut random = Random(1_000 + u64::from(thread));
    let mut held = Held::new();
    let mut queued: Vec<Ticket<DocumentId>> = Vec::new();
    for stamp in 0..changes {
        let number = u32::try_from(random.below(6)).unwrap();
        let key = [thread.to_be_bytes(), number.to_be_bytes()].concat();
        // Unlike those of all other threads and changes.
        let content = 1 + thread * 100_000 + u32::try_from(stamp).unwrap();
        let (document, page) = (Document::new(&key).stamp(stamp), signature(content));
        let is_there = held.contains_key(&key);
        match random.below(5) {
            0 => match store.insert(document, &page) {
                Ok(_) => assert!(!is_there),
                Err(Error::KeyExists { key: found, .. }) => {
                    assert!(is_there && found == key);
                    continue;
                }
                Err(error) => panic!("{error}"),
            },
            1 => {
                let upserted = store.upsert(document, &page).unwrap();
                assert_eq!(upserted.replaced.is_some(), is_there);
            }
            2 => match store.insert_if_new(document, &page).unwrap() {
                Novelty::New { .. } => assert!(!is_there),
                Novelty::KeyExists(found) => {
                    assert!(is_there && found.key() == Some(&key[..]));
                    continue;
                }
                other => panic!("{other:?}"),
            },
            3 => {
                let removed = store.remove(&key).unwrap();
                assert_eq!(removed.is_some(), held.remove(&key).is_some());
                continue;
            }
            _ => {
                // No call waits for the ticket, but the next call of this thread still follows it.
                let ticket = store.queue().upsert(document, &page).unwrap();
                if random.below(2) == 0 {
                    let upserted = ticket.wait().unwrap();
                    assert_eq!(upserted.replaced.is_some(), is_there);
                } else {
                    drop(ticket);
                }
                queued.extend(
                    store
                        .queue()
                        .insert(Document::without_key(), &signature(content + 50_000)),
                );
            }
        }
        held.insert(key, (stamp, content));
    }
    for ticket in queued {
        store.remove_appended(ticket.wait().unwrap());
    }
    held
}

trait RemoveAppended {
    fn remove_appended(&self, id: DocumentId);
}

impl RemoveAppended for Store {
    fn remove_appended(&self, id: DocumentId) {
        let mut transaction = self.begin_write().unwrap();
        assert!(transaction.remove_id(id).unwrap());
        transaction.commit().unwrap();
    }
}

/// Each thread makes 60 changes, 150 with `RESEMBLANCE_TESTS=all`.
#[test]
fn group_commit_answers_every_thread_as_if_alone() {
    for (calls, threads) in [(1_024, 8), (2, 6), (1_024, 1)] {
        let place = Place::new();
        let store = store(&place, calls, Duration::from_millis(1));
        let mut expected = Held::new();
        thread::scope(|scope| {
            let store = &store;
            let changing: Vec<_> = (0..threads)
                .map(|thread| scope.spawn(move || change_own_keys(store, thread, trials(60, 150))))
                .collect();
            for thread in changing {
                expected.extend(thread.join().unwrap());
            }
        });
        let mut found = Held::new();
        for record in store.snapshot().unwrap().iter() {
            let record = record.unwrap();
            let content = record.signature().minhash().unwrap()[0];
            found.insert(record.key().unwrap().to_vec(), (record.stamp(), content));
        }
        assert_eq!(found, expected);
        assert_eq!(store.close().unwrap(), Closed::File);
        check_clean(&place.store());
    }
}

#[test]
fn group_commit_isolates_a_wrong_call() {
    let place = Place::new();
    let store = store(&place, 1_024, Duration::from_millis(1));
    store.insert("there", &signature(1)).unwrap();
    // Changes that are queued while a transaction is open are committed together.
    let transaction = store.begin_write().unwrap();
    let queue = store.queue();
    let before = queue.insert("a", &signature(2)).unwrap();
    let wrong = queue.insert("there", &signature(3)).unwrap();
    let twice = queue.insert("a", &signature(4)).unwrap();
    let after = queue.insert("b", &signature(5)).unwrap();
    let other_kind = queue.insert("c", &Signature::from_simhash(7));
    assert!(matches!(other_kind, Err(Error::SignatureMismatch { .. })));
    let long_key = queue.insert(vec![0; 5_000], &signature(6));
    assert!(matches!(long_key, Err(Error::InvalidParameter { .. })));
    drop(transaction);
    before.wait().unwrap();
    assert!(matches!(wrong.wait(), Err(Error::KeyExists { .. })));
    assert!(matches!(twice.wait(), Err(Error::KeyExists { .. })));
    after.wait().unwrap();
    assert_eq!(store.snapshot().unwrap().len(), 3);
}

#[test]
fn thread_holding_a_transaction_never_waits_for_itself() {
    let place = Place::new();
    let store = store(&place, 1_024, Duration::from_millis(1));
    let transaction = store.begin_write().unwrap();
    assert!(matches!(store.insert("a", &signature(1)), Err(Error::Busy)));
    assert!(matches!(store.flush(), Err(Error::Busy)));
    let ticket = store.queue().insert("a", &signature(1)).unwrap();
    assert!(matches!(ticket.wait(), Err(Error::Busy)));
    // The last handle does not wait either: queued changes are made after the transaction has
    // ended.
    drop(store);
    drop(transaction);
    let opened = loop {
        match Store::open(place.store()) {
            Err(Error::Locked { .. }) => thread::yield_now(),
            opened => break opened.unwrap(),
        }
    };
    assert!(opened.snapshot().unwrap().contains("a").unwrap());
}

#[test]
fn write_queue_is_bounded_and_loses_nothing() {
    let place = Place::new();
    let store = store(&place, 1_024, Duration::ZERO);
    let payload = vec![7; 1 << 20];
    let transaction = store.begin_write().unwrap();
    let mut tickets = Vec::new();
    let refused = loop {
        let number = u32::try_from(tickets.len()).unwrap();
        let key = number.to_be_bytes();
        let document = Document::new(&key).payload(&payload);
        match store.queue().insert(document, &signature(number)) {
            Ok(ticket) => tickets.push(ticket),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::QueueFull { .. }), "{refused}");
    // The thread that commits has taken 16 MiB and one call; 64 MiB wait.
    assert!((63..=81).contains(&tickets.len()), "{}", tickets.len());
    drop(transaction);
    store.flush().unwrap();
    let count = tickets.len() as u64;
    assert_eq!(store.snapshot().unwrap().len(), count);
    // Ids are given in the order of the queue.
    for (ticket, number) in tickets.into_iter().zip(0..) {
        assert_eq!(ticket.wait().unwrap(), DocumentId::new(number));
    }
}

#[test]
fn last_handle_waits_for_queued_writes() {
    let place = Place::new();
    for (round, closes) in [(0_u32, true), (100, false)] {
        let store = match round {
            0 => store(&place, 1_024, Duration::from_millis(1)),
            _ => Store::open(place.store()).unwrap(),
        };
        let queue = store.queue();
        for number in round..round + 50 {
            drop(
                queue
                    .insert(number.to_be_bytes(), &signature(number))
                    .unwrap(),
            );
        }
        let snapshot = store.snapshot().unwrap();
        assert_eq!(store.clone().close().unwrap(), Closed::HandleOnly);
        drop(queue);
        drop(snapshot);
        match closes {
            true => assert_eq!(store.close().unwrap(), Closed::File),
            false => drop(store),
        }
        let store = Store::open(place.store()).unwrap();
        assert_eq!(store.snapshot().unwrap().len(), u64::from(round / 2 + 50));
    }
    let store = Store::open_read_only(place.store()).unwrap();
    let queued = store.queue().insert("a", &signature(1));
    assert!(matches!(queued, Err(Error::ReadOnly)));
    assert_eq!(store.close().unwrap(), Closed::File);
}

/// A known document is answered while another thread's transaction is open.
#[test]
fn known_duplicates_are_answered_beside_an_open_transaction() {
    let place = Place::new();
    let store = store(&place, 1_024, Duration::from_millis(1));
    // A ticket that has its reply delays no call.
    let ticket = store.queue().insert("there", &signature(1)).unwrap();
    ticket.wait().unwrap();
    let (begun, answered) = (Barrier::new(2), AtomicBool::new(false));
    thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let transaction = store.begin_write().unwrap();
            begun.wait();
            let start = Instant::now();
            while !answered.load(Ordering::SeqCst) && start.elapsed() < Duration::from_secs(20) {
                thread::yield_now();
            }
            drop(transaction);
            answered.load(Ordering::SeqCst)
        });
        begun.wait();
        // It leads, and waits for the transaction.
        let leader = scope.spawn(|| store.insert("other", &signature(2)).unwrap());
        while store.metrics().calls_waiting == 0 {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(20));
        let same_key = store.insert_if_new("there", &signature(3)).unwrap();
        assert!(matches!(same_key, Novelty::KeyExists(_)), "{same_key:?}");
        let near = store.insert_if_new("again", &signature(1)).unwrap();
        assert!(matches!(near, Novelty::NearDuplicate(_)), "{near:?}");
        answered.store(true, Ordering::SeqCst);
        assert!(holder.join().unwrap(), "it waited for the transaction");
        leader.join().unwrap();
    });
}

/// A thread's queued changes precede its next call, even if the committed documents could answer
/// it.
#[test]
fn thread_reads_its_queued_writes() {
    let place = Place::new();
    let store = store(&place, 1_024, Duration::from_millis(1));
    store.insert("there", &signature(1)).unwrap();
    let (begun, answered) = (Barrier::new(2), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let transaction = store.begin_write().unwrap();
            begun.wait();
            // Until both calls below wait.
            while store.metrics().calls_waiting < 2 && !answered.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            drop(transaction);
        });
        begun.wait();
        let removed = store.queue().remove("there").unwrap();
        let novelty = store.insert_if_new("there", &signature(1)).unwrap();
        answered.store(true, Ordering::SeqCst);
        assert!(matches!(novelty, Novelty::New { .. }), "{novelty:?}");
        assert!(removed.wait().unwrap().is_some());
    });
}

/// Waiting threads, tickets and alternating transactions share one queue. Each is served.
#[test]
fn loop_of_transactions_starves_no_thread() {
    let place = Place::new();
    let store = store(&place, 1_024, Duration::from_millis(1));
    let inserted = AtomicU64::new(0);
    thread::scope(|scope| {
        for number in 0..4_u32 {
            let (store, inserted) = (&store, &inserted);
            scope.spawn(move || {
                for call in 0..20_u32 {
                    let number = 1_000 * number + call;
                    store
                        .insert(number.to_be_bytes(), &signature(number))
                        .unwrap();
                    inserted.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        // It would go on for ever if it kept the others out.
        let mut stamp = 0;
        while inserted.load(Ordering::SeqCst) < 80 {
            let mut transaction = store.begin_write().unwrap();
            stamp += 1;
            let progress = Document::new("progress").stamp(stamp);
            let page = signature(u32::MAX - 1);
            transaction.upsert(progress, &page).unwrap();
            transaction.commit().unwrap();
        }
    });
    assert_eq!(store.snapshot().unwrap().len(), 81);
}

#[test]
fn task_waits_for_room_in_the_queue() {
    let place = Place::new();
    let store = Store::options()
        .queue_bytes(1)
        .create(place.store(), schema())
        .unwrap();
    let queue = store.queue();
    // A transaction keeps the first change from being made.
    let transaction = store.begin_write().unwrap();
    let mut tickets = vec![queue.insert("0", &signature(0)).unwrap()];
    // The second one is taken once a leader has the first, and then waits itself.
    loop {
        match queue.insert("1", &signature(1)) {
            Err(Error::QueueFull { waiting_bytes: 1 }) => thread::yield_now(),
            ticket => break tickets.push(ticket.unwrap()),
        }
    }
    let full = queue.insert("2", &signature(2));
    assert!(matches!(full, Err(Error::QueueFull { .. })));
    {
        let mut ready = pin!(queue.ready());
        let waiting = ready.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(waiting.is_pending());
    }
    let task = {
        let queue = queue.clone();
        thread::spawn(move || block_on(queue.ready()))
    };
    drop(transaction);
    task.join().unwrap().unwrap();
    tickets.push(queue.insert("2", &signature(2)).unwrap());
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    assert_eq!(store.snapshot().unwrap().len(), 3);
    let none = Store::options().queue_bytes(0).open(place.store());
    assert!(matches!(none, Err(Error::InvalidParameter { .. })));
}
