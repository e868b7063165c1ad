//! The gate in every order in which threads can take their steps.

use loom::cell::UnsafeCell;
use loom::thread;

use super::*;

/// What the gate guards: loom reports two at a time as a race.
struct Guarded(UnsafeCell<u32>);

impl Guarded {
    fn change(&self, _permit: &Permit) {
        self.0.with_mut(|_| ());
    }
}

fn at_once(writers: Vec<fn(&Arc<Gate>, &Guarded)>) {
    loom::model(move || {
        let gate = Arc::new(Gate::default());
        let guarded = Arc::new(Guarded(UnsafeCell::new(0)));
        let spawned: Vec<_> = writers
            .iter()
            .map(|writer| {
                let (gate, guarded, writer) = (Arc::clone(&gate), Arc::clone(&guarded), *writer);
                thread::spawn(move || writer(&gate, &guarded))
            })
            .collect();
        // The thread that waits for the others is one more that writes.
        wait(&gate, &guarded);
        for writer in spawned {
            writer.join().unwrap();
        }
        assert!(gate.try_enter().is_ok(), "the last one has left");
    });
}

fn wait(gate: &Arc<Gate>, guarded: &Guarded) {
    let permit = gate.enter().unwrap();
    assert!(matches!(gate.enter(), Err(Error::Busy)));
    assert!(matches!(gate.try_enter(), Err(Error::Busy)));
    guarded.change(&permit);
}

fn attempt(gate: &Arc<Gate>, guarded: &Guarded) {
    match gate.try_enter() {
        Ok(permit) => guarded.change(&permit),
        Err(error) => assert!(matches!(error, Error::Busy)),
    }
}

fn wait_twice(gate: &Arc<Gate>, guarded: &Guarded) {
    wait(gate, guarded);
    wait(gate, guarded);
}

#[test]
fn loom_three_writers_take_turns_and_none_is_forgotten() {
    at_once(vec![wait, wait]);
}

#[test]
fn loom_a_writer_that_comes_again_keeps_none_out() {
    at_once(vec![wait_twice]);
}

#[test]
fn loom_attempts_never_wait_and_never_share() {
    at_once(vec![attempt, wait]);
    at_once(vec![attempt, attempt]);
}
