//! Every call to the disk fails in turn: a clear error, and the store is as before. Of the calls of each kind about
//! two fail in a usual run, 25 with `RESEMBLANCE_TESTS=all`, and all with `RESEMBLANCE_LONG=1`.

use std::path::Path;
use std::sync::Arc;

use resemblance::report::Problem;
use resemblance::{Document, Error, Result, Schema, Store, StoreOptions};

use crate::common::Random;
use crate::common::oracle::{Entry, Model};
use crate::common::sample::one_in;
use crate::common::verify::holds;
use crate::crash::disk::{Image, Kept, State, files_of};
use crate::crash::examine::{Found, is_clean, which};
use crate::crash::failing::{FailingFiles, Failure, KINDS, Kind, TEXT};
use crate::crash::workload::{
    BUILT, Change, FIRST, bulk_options, key, rebanded, rebanding, run, schemas, signature,
};
use crate::crash::{count_engine_panics, no_engine_panics};

/// The possible contents of a store.
type Possible = Vec<Option<Arc<Model>>>;

/// Calls of the library on failing files, and what they may have left.
struct Attempt {
    options: StoreOptions,
    possible: Possible,
    built: Possible,
    /// Descriptions of wrong answers.
    found: Vec<String>,
    errors: u64,
}

/// Returns true if an error says that the disk failed, now or before.
fn is_clear(error: &Error) -> bool {
    match error {
        Error::Io { action, source } => !action.is_empty() && source.to_string().contains(TEXT),
        Error::Closed { reason } => !reason.is_empty(),
        _ => false,
    }
}

impl Attempt {
    /// Takes an answer; none if it is an error.
    fn take<T>(&mut self, what: &str, result: Result<T>) -> Option<T> {
        match result {
            Ok(answer) => Some(answer),
            Err(error) => {
                self.errors += 1;
                if !is_clear(&error) {
                    self.found.push(format!("{what}: {error:?}"));
                }
                None
            }
        }
    }

    /// A call that leaves another store, if it succeeds for certain, if it fails perhaps.
    fn changes_to<T>(&mut self, what: &str, after: Arc<Model>, result: Result<T>) {
        let succeeded = self.take(what, result).is_some();
        if succeeded {
            self.possible.clear();
        }
        self.possible.push(Some(after));
    }

    /// Everything that is read must be in one of the models.
    fn reads(&mut self, store: &Store) {
        let mut is_held = false;
        for model in self.possible.clone().iter().flatten() {
            let held = holds(store, model);
            match self.take("reading", held) {
                Some(held) => is_held |= held,
                None => return,
            }
        }
        if !is_held {
            self.found.push("reading: found something else".into());
        }
    }

    /// The one model that there can be; none after a failure.
    fn model(&self) -> Option<Model> {
        match &self.possible[..] {
            [Some(model)] => Some(Model::clone(model)),
            _ => None,
        }
    }

    fn session(&mut self, store: &Store) {
        let mut random = Random(7);
        for changes in [3, 12, 30] {
            self.transaction(store, changes, &mut random);
            self.reads(store);
        }
        if let Some(mut model) = self.model() {
            let entry = model.documents.values().next().cloned();
            let entry_key = entry.and_then(|entry| entry.key.clone());
            let gone = entry_key.unwrap_or_else(|| key(1));
            let removed = store.remove(&gone);
            model.remove_key(&gone);
            self.changes_to("remove", Arc::new(model), removed);
        }
        self.reads(store);
        // An abort changes nothing.
        let begun = store.begin_write();
        if let Some(mut transaction) = self.take("beginning", begun) {
            let appended = transaction.insert(
                Document::without_key(),
                &signature(store.schema(), &mut random),
            );
            self.take("appending", appended);
        }
        self.reads(store);
    }

    fn transaction(&mut self, store: &Store, changes: u64, random: &mut Random) {
        let model = self.model();
        let begun = store.begin_write();
        let Some(mut transaction) = self.take("beginning", begun) else {
            return;
        };
        let Some(mut model) = model else {
            // Its outcome would be unknown: everything after a failed commit must fail.
            let inserted =
                transaction.insert(Document::without_key(), &signature(store.schema(), random));
            let ended = inserted.and_then(|_| transaction.commit());
            if self.take("after a failed commit", ended).is_some() {
                self.found.push("a commit after a failed commit".into());
            }
            return;
        };
        for _ in 0..changes {
            // Large ones are written before the commit.
            let payload_bytes = if changes > 20 { 12_000 } else { 100 };
            let change = Change::draw(&model, payload_bytes, random);
            let changed = change.make(Some(&mut transaction), &mut model);
            if self.take("a change", changed).is_none() {
                let committed = transaction.commit();
                if self
                    .take("committing half a transaction", committed)
                    .is_some()
                {
                    self.found.push("half a transaction was committed".into());
                }
                return;
            }
        }
        let committed = transaction.commit();
        self.changes_to("commit", Arc::new(model), committed);
    }
}

/// The operation under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Create,
    Session,
    Read,
    Check,
    Compact,
    Reband,
    Build,
    BackUp,
}

fn attempt(verb: Verb, schema: &Schema, attempt: &mut Attempt) {
    let path = Path::new(FIRST);
    let options = attempt.options.clone();
    match verb {
        Verb::Create => {
            let created = options.create(path, schema.clone());
            let empty = Arc::new(Model::new(schema.clone()));
            if let Some(store) = attempt.take("create", created) {
                attempt.possible = vec![Some(empty)];
                attempt.session(&store);
            } else {
                attempt.possible.push(Some(empty));
            }
        }
        Verb::Session => {
            let opened = options.open(path);
            if let Some(store) = attempt.take("open", opened) {
                attempt.session(&store);
            }
        }
        Verb::Read => {
            let opened = options.open_read_only(path);
            if let Some(store) = attempt.take("open read-only", opened) {
                attempt.reads(&store);
                let checked = store.snapshot().and_then(|snapshot| snapshot.check().run());
                clean(attempt, checked);
            }
        }
        Verb::Check => {
            let checked = options.check(path).run();
            clean(attempt, checked);
        }
        Verb::Compact => {
            let compacted = options.compact(path).run();
            attempt.take("compact", compacted);
        }
        Verb::Reband => {
            let model = attempt.model().unwrap();
            let rebanding = rebanding(schema, &mut Random(2));
            let rebanding_options = bulk_options(options);
            let result = Store::reband(path, &rebanding)
                .bulk(rebanding_options)
                .run();
            attempt.changes_to("reband", Arc::new(rebanded(&model, &rebanding)), result);
        }
        Verb::Build => build(schema, attempt),
        Verb::BackUp => back_up(attempt),
    }
}

fn clean(attempt: &mut Attempt, checked: Result<resemblance::report::CheckReport>) {
    let report = attempt.take("check", checked);
    // What the disk does not return is reported page by page as unreadable.
    let unread = |problem: &Problem| problem.detail.contains(TEXT);
    if let Some(report) = report.filter(|report| !report.problems.iter().all(unread)) {
        attempt.found.push(format!("check: {report:?}"));
    }
}

fn build(schema: &Schema, attempt: &mut Attempt) {
    let model = attempt.model().unwrap();
    let mut built = Model::new(schema.clone());
    let options = bulk_options(attempt.options.clone());
    let result = Store::bulk_build(BUILT, schema.clone(), &options).and_then(|mut build| {
        for entry in model.documents.values() {
            build.insert(entry.document(), &entry.signature)?;
        }
        build.finish()
    });
    for entry in model.documents.values() {
        built.insert(Entry::clone(entry));
    }
    built.link_at_once();
    let finished = attempt.take("build", result).is_some();
    attempt.built = if finished { vec![] } else { vec![None] };
    attempt.built.push(Some(Arc::new(built)));
}

fn back_up(attempt: &mut Attempt) {
    let model = attempt.model().unwrap();
    let options = attempt.options.clone();
    let opened = options.open(FIRST);
    let Some(store) = attempt.take("open", opened) else {
        return;
    };
    let snapshot = store.snapshot();
    let result = snapshot.and_then(|snapshot| snapshot.backup(BUILT).store(options).run());
    let finished = attempt.take("backup", result).is_some();
    attempt.built = if finished { vec![] } else { vec![None] };
    attempt.built.push(Some(Arc::new(model)));
}

/// A store as it is before each verb.
struct Base {
    schema: Schema,
    image: Image,
    model: Option<Arc<Model>>,
}

/// One failure in one verb. How many calls failed, or what is wrong.
fn fail(verb: Verb, base: &Base, failure: Failure) -> Found<u64> {
    let failing = FailingFiles::failing(files_of(&base.image), Some(failure));
    let mut tried = attempt_on(verb, base, &failing);
    if tried.errors > 0 && failing.failed() == 0 {
        tried.found.push("an error without a cause".into());
    }
    if let Some(found) = tried.found.first() {
        return Err(found.clone());
    }
    // On a good disk again.
    let files = failing.files.clone();
    let options = StoreOptions::new()
        .flush_after(8)
        .files(Arc::new(files.clone()));
    let removes_fail = failure.kind.is_none_or(|kind| kind == Kind::Remove);
    for (path, possible) in [(FIRST, &tried.possible), (BUILT, &tried.built)] {
        let path = Path::new(path);
        let is_there = files.names().iter().any(|name| name == path);
        if possible.iter().any(Option::is_none) {
            if !is_there || removes_fail {
                continue;
            }
            // A build whose file has its name is complete, even if its end was not reported.
            if verb == Verb::Create {
                return Err("a file is left of what was not created".into());
            }
        } else if !is_there {
            return Err(format!("{} is gone", path.display()));
        }
        let store = options.open(path);
        let store = store.map_err(|error| format!("opening again: {error}"))?;
        which(&store, possible)?;
        let mut random = Random(1);
        let inserted = store.insert("afterwards", &signature(&base.schema, &mut random));
        inserted.map_err(|error| format!("going on: {error}"))?;
        drop(store);
        is_clean(path, &options)?;
    }
    let scratch = |name: &std::path::PathBuf| name != Path::new(FIRST) && name != Path::new(BUILT);
    if !removes_fail && files.names().iter().any(scratch) {
        return Err(format!("left over: {:?}", files.names()));
    }
    Ok(failing.failed())
}

fn attempt_on(verb: Verb, base: &Base, failing: &FailingFiles) -> Attempt {
    let mut tried = Attempt {
        options: StoreOptions::new()
            .flush_after(8)
            .merge_slice(20)
            .merge_in_parallel(false)
            .cache_bytes(1 << 20)
            .files(Arc::new(failing.clone())),
        possible: vec![base.model.clone()],
        built: vec![None],
        found: Vec::new(),
        errors: 0,
    };
    attempt(verb, &base.schema, &mut tried);
    tried
}

/// A store of a workload, closed or as a crash left it.
fn base(verb: Verb, schema: &Schema, is_crashed: bool) -> Base {
    let schema = schema.clone();
    if verb == Verb::Create {
        let (image, model) = (Image::new(), None);
        return Base {
            schema,
            image,
            model,
        };
    }
    let course = run(&schema, 3, 2);
    let mut calls = course.calls.iter();
    let last = calls.rfind(|call| call.what != "backup").unwrap();
    let end = if is_crashed {
        last.end
    } else {
        course.changes.len()
    };
    let mut state = State::default();
    course.changes[..end]
        .iter()
        .for_each(|change| state.take(change));
    let mut image = state.image(Kept::Nothing, &mut Random(1));
    image.retain(|path, _| path == Path::new(FIRST));
    let model = Arc::clone(&last.after[Path::new(FIRST)]);
    Base {
        schema: model.schema.clone(),
        image,
        model: Some(model),
    }
}

fn is_long() -> bool {
    std::env::var_os("RESEMBLANCE_LONG").is_some()
}

/// With `RESEMBLANCE_TESTS=all`, one in this number of failing calls is tested.
fn share() -> u64 {
    one_in(13) as u64
}

/// Returns the distance between two failing calls.
fn stride(calls: u64) -> u64 {
    if is_long() {
        1
    } else {
        calls * share() / 25 + 1
    }
}

/// Every way in which calls of a kind, or of all, can fail.
fn failures_of(counted: &FailingFiles) -> Vec<Failure> {
    let kinds = KINDS.map(|kind| (Some(kind), counted.calls(kind)));
    let all = kinds.iter().map(|(_, calls)| calls).sum();
    let mut failures = Vec::new();
    for (kind, calls) in kinds.into_iter().chain([(None, all)]) {
        let ways: &[(bool, bool)] = match kind {
            Some(Kind::Write) => &[(false, false), (true, false), (false, true), (true, true)],
            Some(_) => &[(false, false), (true, false)],
            None => &[(true, false), (true, true)],
        };
        for nth in (0..calls).step_by(stride(calls) as usize) {
            failures.extend(ways.iter().map(|&(for_ever, is_torn)| Failure {
                kind,
                nth,
                for_ever,
                is_torn,
            }));
        }
    }
    failures
}

/// Lets calls fail in some verbs, with one of the schemas, in the long form with all.
fn fail_all(verbs: &[Verb], which: usize, is_crashed: bool) {
    count_engine_panics();
    let (mut tried, mut failed, mut found) = (0, 0, Vec::new());
    for (number, (name, schema)) in schemas().into_iter().enumerate() {
        if number != which && !is_long() {
            continue;
        }
        for &verb in verbs {
            let base = base(verb, &schema, is_crashed);
            let counted = FailingFiles::failing(files_of(&base.image), None);
            let good = attempt_on(verb, &base, &counted);
            assert_eq!((good.errors, &good.found), (0, &vec![]), "{verb:?}");
            for failure in failures_of(&counted) {
                tried += 1;
                match fail(verb, &base, failure) {
                    Ok(calls) => failed += u64::from(calls > 0),
                    Err(error) => found.push(format!("{verb:?}, {failure:?}: {error}")),
                }
            }
            let wrong = found.len();
            println!("{name}, {verb:?}: {tried} failures tried, {failed} happened, {wrong} wrong");
        }
    }
    found.truncate(20);
    assert_eq!(found, [""; 0]);
    // All but those that a run happened not to reach.
    assert!(
        failed > 500 / share() && failed * 10 > tried * 9,
        "{failed} of {tried}"
    );
    no_engine_panics();
}

#[test]
fn io_errors_leave_a_session_unchanged() {
    fail_all(&[Verb::Create, Verb::Session, Verb::Read], 2, false);
}

#[test]
fn io_errors_leave_a_store_unchanged() {
    use Verb::{BackUp, Build, Check, Compact, Reband};
    fail_all(&[Check, Compact, Reband, Build, BackUp], 0, false);
}

#[test]
fn io_errors_during_recovery_leave_it_to_the_next_open() {
    use Verb::{Check, Compact, Reband, Session};
    fail_all(&[Session, Check, Compact, Reband], 1, true);
}
