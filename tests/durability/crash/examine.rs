//! Opens the files after a crash: nothing acknowledged is missing, nothing is incomplete, and work
//! continues.

use std::path::Path;
use std::sync::Arc;

use resemblance::{Error, Files, Store, StoreOptions};

use crate::common::Random;
use crate::common::memory::MemoryFiles;
use crate::common::oracle::{Entry, Model};
use crate::common::verify::{holds, some_queries};
use crate::crash::disk::{Disk, Image, Kept, State, files_of};
use crate::crash::workload::{World, options, signature};

/// A description of what is wrong with an image.
pub(crate) type Found<T> = Result<T, String>;

/// The possible contents of a file: a store, or none.
type Possible = Vec<Option<Arc<Model>>>;

/// Which of the models a store holds.
pub(crate) fn which(store: &Store, possible: &[Option<Arc<Model>>]) -> Found<Arc<Model>> {
    for model in possible.iter().flatten() {
        if holds(store, model).map_err(|error| format!("reading: {error}"))? {
            model.same_clusters(&store.snapshot().map_err(|error| error.to_string())?);
            return Ok(Arc::clone(model));
        }
    }
    let found = store.snapshot().map(|snapshot| snapshot.len());
    let expected: Vec<_> = possible
        .iter()
        .flatten()
        .map(|model| model.documents.len())
        .collect();
    Err(format!(
        "found other contents, {found:?} documents of {expected:?}"
    ))
}

pub(crate) fn is_clean(path: &Path, options: &StoreOptions) -> Found<()> {
    match options.check(path).run() {
        Ok(report) if report.is_clean() => Ok(()),
        found => Err(format!("check: {found:?}")),
    }
}

/// A file after a crash, with the steps of its recovery. Each step reports the position that it
/// reached.
struct Recovery<'a> {
    path: &'a Path,
    options: StoreOptions,
    random: Random,
}

impl Recovery<'_> {
    /// A look at the file before it is opened for writing.
    fn look(&mut self, possible: &Possible) -> Found<()> {
        match self.random.below(6) {
            0 => match self.options.open_read_only(self.path) {
                Ok(store) => which(&store, possible).map(drop),
                Err(error) => Err(format!("read-only: {error}")),
            },
            1 => is_clean(self.path, &self.options),
            2 => {
                let compacted = self.options.compact(self.path).run();
                compacted
                    .map(drop)
                    .map_err(|error| format!("compact: {error}"))
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, possible: &Possible) -> Found<(Store, Arc<Model>)> {
        let store = self.options.open(self.path);
        let store = store.map_err(|error| format!("opening: {error}"))?;
        let model = which(&store, possible)?;
        Ok((store, model))
    }

    /// One more document, and everything is read again.
    fn go_on(&mut self, store: Store, model: &Model) -> Found<Model> {
        let failed = |error: Error| format!("going on: {error}");
        if self.random.below(8) == 0 {
            let snapshot = store.snapshot().map_err(failed)?;
            let strangers = [signature(&model.schema, &mut self.random)];
            some_queries(&snapshot, model, &strangers, &mut self.random, 1);
        }
        let mut after = model.clone();
        let key = b"after the crash".to_vec();
        let signature = signature(&model.schema, &mut self.random);
        let upserted = store.upsert(&key, &signature).map_err(failed)?;
        after
            .upsert(Entry::new(Some(key), signature))
            .same(&upserted);
        if holds(&store, &after).map_err(failed)? {
            Ok(after)
        } else {
            Err("an insert after the crash went wrong".into())
        }
    }
}

fn recovery<'a>(path: &'a Path, files: Arc<dyn Files>, random: &mut Random) -> Recovery<'a> {
    Recovery {
        path,
        options: options(files, random),
        random: Random(random.next()),
    }
}

/// Returns true if an error means that there is no store yet.
fn is_not_there(error: &Error) -> bool {
    matches!(error, Error::NotFound { .. } | Error::NotAStore { .. })
}

/// Returns whether a file that may not contain a store contains none.
fn not_there(path: &Path, files: &MemoryFiles, possible: &Possible) -> Found<bool> {
    if !possible.iter().any(Option::is_none) {
        return Ok(false);
    }
    let options = StoreOptions::new().files(Arc::new(files.clone()));
    match options.open(path) {
        Ok(_) if possible.iter().any(Option::is_some) => return Ok(false),
        Ok(_) => return Err("found a store where there was none".into()),
        Err(error) if is_not_there(&error) => {}
        Err(error) => return Err(format!("no store yet, but: {error}")),
    }
    let schema = crate::crash::workload::schemas().remove(0).1;
    match options.create(path, schema.clone()) {
        Err(Error::AlreadyExists { .. }) => {
            files.remove(path).map_err(|error| error.to_string())?;
            let again = options.create(path, schema);
            again
                .map(|_| true)
                .map_err(|error| format!("creating: {error}"))
        }
        Ok(_) => Ok(true),
        Err(error) => Err(format!("creating again: {error}")),
    }
}

/// Examines one store of an image.
pub(crate) fn one_store(
    image: &Image,
    path: &Path,
    possible: &Possible,
    random: &mut Random,
) -> Found<()> {
    let files = files_of(image);
    if possible.iter().all(Option::is_some) || !not_there(path, &files, possible)? {
        // as the crash left it
        let files = files_of(image);
        let mut recovery = recovery(path, Arc::new(files), random);
        recovery.look(possible)?;
        let (store, model) = recovery.open(possible)?;
        let after = recovery.go_on(store, &model)?;
        is_clean(path, &recovery.options)?;
        recovery.open(&vec![Some(Arc::new(after))])?;
    }
    Ok(())
}

/// A file that an unfinished build left: whatever is in it, looking at it does no harm.
pub(crate) fn left_over(image: &Image, path: &Path) -> Found<()> {
    let options = StoreOptions::new().files(Arc::new(files_of(image)));
    match options.open(path) {
        Ok(_) => is_clean(path, &options),
        Err(error) if is_not_there(&error) => Ok(()),
        Err(error) => Err(format!("left over: {error}")),
    }
}

/// Crashes again while the store is opened after a crash, or right afterwards.
pub(crate) fn crash_again(
    image: &Image,
    path: &Path,
    possible: &Possible,
    random: &mut Random,
) -> Found<u64> {
    if possible.iter().any(Option::is_none) {
        return Ok(0);
    }
    let disk = Disk::with(image);
    let mut recovery = recovery(path, Arc::new(disk.clone()), random);
    recovery.look(possible)?;
    let (store, model) = recovery.open(possible)?;
    let opened = disk.position();
    let after = recovery.go_on(store, &model)?;
    let changes = disk.changes();
    let after = Some(Arc::new(after));
    let possible_at = |position: usize| -> Possible {
        let mut possible = match position <= opened {
            true => possible.clone(),
            false => vec![Some(Arc::clone(&model))],
        };
        if position > opened {
            possible.push(after.clone());
        }
        possible
    };
    let mut crashes = 0;
    for _ in 0..2 {
        let position = random.below(changes.len() as u64 + 1) as usize;
        let mut state = State::of(image);
        changes[..position]
            .iter()
            .for_each(|change| state.take(change));
        let kept = Kept::draw(random);
        let image = state.image(kept, random);
        let in_crash = |error| {
            let of = (position, opened, changes.len());
            format!("again at {of:?}, {kept:?}: {error}")
        };
        one_store(&image, path, &possible_at(position), random).map_err(in_crash)?;
        crashes += 1;
        // Sometimes crashes a third time.
        if random.below(12) == 0 {
            let more = crash_again(&image, path, &possible_at(position), random);
            crashes += more.map_err(in_crash)?;
        }
    }
    Ok(crashes)
}

/// Returns the possible contents of each file of an image.
pub(crate) fn each_store<'w>(
    before: &'w World,
    after: &'w World,
) -> impl Iterator<Item = (&'w Path, Possible)> {
    after.iter().map(|(path, after)| {
        let mut possible: Possible = vec![before.get(path).cloned()];
        if !possible[0]
            .as_ref()
            .is_some_and(|before| Arc::ptr_eq(before, after))
        {
            possible.push(Some(Arc::clone(after)));
        }
        (path.as_path(), possible)
    })
}
