//! The gate in every order in which threads can take their steps.

use loom::cell::UnsafeCell;
use loom::thread;

use super::*;

/// What the gate guards: loom reports two at a time as a race.
struct Guarded(UnsafeCell<u32>);

impl Guarded {
    fn change(&self, _permit: &WriterGuard) {
        self.0.with_mut(|_| ());
    }
}

fn at_once(writers: Vec<fn(&Arc<WriterLock>, &Guarded)>) {
    loom::model(move || {
        let gate = Arc::new(WriterLock::default());
        let run_checked = Arc::new(Guarded(UnsafeCell::new(0)));
        let spawned: Vec<_> = writers
            .iter()
            .map(|writer| {
                let (gate, run_checked, writer) =
                    (Arc::clone(&gate), Arc::clone(&run_checked), *writer);
                thread::spawn(move || writer(&gate, &run_checked))
            })
            .collect();
        // The thread that waits for the others is one more that writes.
        wait(&gate, &run_checked);
        for writer in spawned {
            writer.join().unwrap();
        }
        assert!(gate.try_enter().is_ok(), "the last one has left");
    });
}

fn wait(gate: &Arc<WriterLock>, run_checked: &Guarded) {
    let permit = gate.enter().unwrap();
    assert!(matches!(gate.enter(), Err(Error::Busy)));
    assert!(matches!(gate.try_enter(), Err(Error::Busy)));
    run_checked.change(&permit);
}

fn attempt(gate: &Arc<WriterLock>, run_checked: &Guarded) {
    match gate.try_enter() {
        Ok(permit) => run_checked.change(&permit),
        Err(error) => assert!(matches!(error, Error::Busy)),
    }
}

fn wait_twice(gate: &Arc<WriterLock>, run_checked: &Guarded) {
    wait(gate, run_checked);
    wait(gate, run_checked);
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
