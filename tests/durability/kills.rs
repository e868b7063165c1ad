//! Programs that write to one store endlessly, and are killed again and again. Each time the store
//! contains what was acknowledged, and work continues.
//!
//! `RESEMBLANCE_KILLS` sets the number of kills. By default, a normal run kills the programs 9 and
//! 4 times, and a run with `RESEMBLANCE_TESTS=all` 25 and 10 times.

mod together;

use resemblance::{Store, StoreOptions, WriteTransaction};

use crate::common::killing::{Running, kills, store_of};
use crate::common::oracle::{Entry, Model};
use crate::common::sample::trials;
use crate::common::verify::{holds, some_queries};
use crate::common::{Place, Random, check_clean, sealing_after};
use crate::crash::workload::{Change, schemas, signature};

/// The document whose payload is the number of transactions that are in the store.
const PROGRESS: &[u8] = b"progress";

const PROGRAM: &str = "kills::writer_in_a_child";

fn empty() -> Model {
    Model::new(schemas().remove(2).1)
}

/// Other ways to write, by turns.
fn options(turn: u64) -> StoreOptions {
    sealing_after(32)
        .quick_repair(turn % 2 == 1)
        .merge_in_parallel(turn % 3 == 1)
}

fn transactions_in(store: &Store) -> u64 {
    let record = store.snapshot().unwrap().get(PROGRESS).unwrap();
    record.map_or(0, |record| {
        u64::from_le_bytes(record.payload().try_into().unwrap())
    })
}

/// Makes the changes of a transaction, which are a matter of its number and of what is there.
fn write(mut transaction: Option<&mut WriteTransaction>, model: &mut Model, number: u64) {
    let mut random = Random(number);
    let count = match random.below(20) {
        0 => 120,
        few => 1 + few / 2,
    };
    for _ in 0..count {
        let payload_bytes = random.pick(&[0, 1, 30, 300, 9_000]);
        let change = Change::draw(model, payload_bytes, &mut random);
        change.make(transaction.as_deref_mut(), model).unwrap();
    }
    let mut progress = Entry::new(
        Some(PROGRESS.into()),
        signature(&model.schema, &mut Random(0)),
    );
    progress.payload = (number + 1).to_le_bytes().into();
    let change = Change::Upsert(progress);
    change.make(transaction, model).unwrap();
}

/// Not a test: the program that is killed. It prints the number of transactions after each commit.
#[test]
fn writer_in_a_child() {
    let Some(path) = store_of(PROGRAM) else {
        return;
    };
    let open = |turn| options(turn).open(&path).unwrap();
    let mut store = open(0);
    let (mut done, mut model) = (transactions_in(&store), empty());
    (0..done).for_each(|number| write(None, &mut model, number));
    println!();
    loop {
        if done.is_multiple_of(40) {
            drop(store);
            if done.is_multiple_of(80) {
                Store::compact(&path).run().unwrap();
            }
            store = open(done / 40);
        }
        let written = |model: &mut Model| {
            let mut transaction = store.begin_write().unwrap();
            write(Some(&mut transaction), model, done);
            transaction
        };
        if done % 9 == 5 {
            // Taken back, and then the same again.
            drop(written(&mut model.clone()));
        }
        written(&mut model).commit().unwrap();
        done += 1;
        println!("{done}.");
    }
}

#[test]
fn killed_writer_keeps_acknowledged_documents() {
    let (place, kills) = (Place::new(), kills(trials(9, 25)));
    let path = place.store();
    let mut model = empty();
    drop(Store::create(&path, model.schema.clone()).unwrap());
    let mut random = Random(0);
    let (mut transactions, mut one_more) = (0, 0);
    for kill in 0..kills {
        // Some before it has opened the store; most within its work.
        let (lines, delay) = (random.below(12), random.below(12_000));
        let program = Running::start(PROGRAM, &path);
        let said = program.kill_after(lines, std::time::Duration::from_micros(delay));
        if kill % 3 == 0 {
            check_clean(&path);
        }
        let store = options(kill).open(&path).unwrap();
        let found = transactions_in(&store);
        let acknowledged = said.last().map_or(transactions, |n| n.parse().unwrap());
        assert!(
            (acknowledged..=acknowledged + 1).contains(&found),
            "{acknowledged} transactions were acknowledged, {found} are there"
        );
        one_more += found - acknowledged;
        (transactions..found).for_each(|number| write(None, &mut model, number));
        transactions = found;
        assert!(
            holds(&store, &model).unwrap(),
            "other documents than expected"
        );
        let strangers = [signature(&model.schema, &mut random)];
        some_queries(
            &store.snapshot().unwrap(),
            &model,
            &strangers,
            &mut random,
            20,
        );
        drop(store);
        check_clean(&path);
    }
    assert!(transactions > 0, "it was never let do anything");
    eprintln!(
        "killed a writer {kills} times: {transactions} transactions, {one_more} of them unacknowledged"
    );
}
