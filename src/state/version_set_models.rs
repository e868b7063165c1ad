//! Models of the publication of versions that try every order of the threads' steps.

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use super::*;
use crate::index::Memtable;
use crate::state::run_set::RunSet;
use crate::state::tombstones::Tombstones;

/// Replaces the file: the number of its last commit, which a reader sees immediately.
type File = AtomicU64;

fn version(commit: u64) -> Version {
    Version {
        state: State {
            commit,
            ..State::INITIAL
        },
        runs: RunSet::default(),
        memtable: Memtable::default(),
        deleted: Tombstones::default(),
    }
}

/// Takes snapshots, each of which must be whole, and none older than the one before.
fn read(publication: &VersionSet, file: &File, times: u64) {
    let mut last = 0;
    for _ in 0..times {
        let begin = || {
            let commit = file.load(Ordering::Acquire);
            Ok((commit, commit))
        };
        let (in_file, version) = publication.snapshot_of(begin).unwrap();
        assert_eq!(version.state.commit, in_file);
        assert!(in_file >= last);
        last = in_file;
    }
}

fn commit(publication: &VersionSet, file: &File, number: u64) {
    let latest = publication.latest().unwrap();
    assert_eq!(latest.state.commit, number - 1);
    let durable = || {
        file.store(number, Ordering::Release);
        Ok(())
    };
    publication.commit(version(number), durable).unwrap();
}

/// Runs a writer beside readers, each of which takes the given number of snapshots.
fn beside(readers: &'static [u64], write: fn(&VersionSet, &File)) {
    loom::model(move || {
        let shared = Arc::new((VersionSet::new(version(0)), File::new(0)));
        let spawned: Vec<_> = readers
            .iter()
            .map(|times| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || read(&shared.0, &shared.1, *times))
            })
            .collect();
        write(&shared.0, &shared.1);
        for reader in spawned {
            reader.join().unwrap();
        }
        assert_eq!(shared.0.lock().len(), 1, "what came before is forgotten");
    });
}

#[test]
fn loom_every_snapshot_has_the_version_of_its_commit() {
    let two = |publication: &VersionSet, file: &File| {
        commit(publication, file, 1);
        commit(publication, file, 2);
    };
    beside(&[2], two);
    beside(&[1, 1], two);
}

#[test]
fn loom_a_commit_that_fails_is_never_seen() {
    beside(&[1, 1], |publication, file| {
        let failing = || Err(Error::Busy);
        assert!(publication.commit(version(1), failing).is_err());
        assert_eq!(publication.latest().unwrap().state.commit, 0);
        assert_eq!(file.load(Ordering::Acquire), 0);
    });
}
