//! Creates and opens a store, with all checks that are required before it may be used.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::engine::folder_of;
use crate::engine::{
    BANDS, CLUSTERS, DEAD, DOCUMENTS, EQUAL, EngineError, EngineResult, FEED, FILTERS, FOREST,
    FileOptions, KEYS, LANES, MEMBERS, META, PAYLOADS, PERMUTED, RUNS, ReadOnlyTable,
    ReadTransaction, ReadableTable, RedbFile, SETS, TableError, TemporaryFile, WriteTransaction,
    catch_panic, must_not_exist, overlay,
};
use crate::error::{Error, Result};
use crate::format::{Header, LaneRow, State, header};
use crate::index::Memtable;
use crate::observe::{STORE, SharedCounters, log as events};
use crate::options::StoreOptions;
use crate::state::context::SharedContext;
use crate::state::load::{check_tombstones, load_memtable, load_runs};
use crate::state::open_store::{OpenStore, Recovered, Session};
use crate::state::run_set::RunSet;
use crate::state::tombstones::Tombstones;
use crate::state::version_set::{Version, VersionSet, read_state};
use crate::state::writer_lock::WriterLock;
use crate::sync::{IgnorePoison, Mutex};
use resemblance_sketch::schema::{Schema, UncheckedSchema};

/// Creates a store under a temporary name and renames it when it is complete: a process that is killed
/// before leaves nothing under the name `path`.
pub(crate) fn create(path: &Path, schema: Schema, options: &StoreOptions) -> Result<OpenStore> {
    let began = Instant::now();
    let files = options.shared_files();
    must_not_exist(path, files)?;
    let make = |file: &Path| create_in(file, path, schema.clone(), options);
    let made = TemporaryFile::create(&folder_of(path), files, make);
    let (scratch, made) = made.map_err(|error| match error {
        // The requested name helps the user more than the temporary one.
        Error::Io { source, .. } => Error::io("creating", path, source),
        error => error,
    })?;
    scratch.publish(path, None)?;
    Ok(begin_session(made, "created", began))
}

/// Creates a store in memory, which ends with its last handle.
pub(crate) fn create_in_memory(schema: Schema, options: &StoreOptions) -> Result<OpenStore> {
    let began = Instant::now();
    let path = Path::new(":memory:");
    let made = create_in(path, path, schema, &options.in_memory(path))?;
    Ok(begin_session(made, "created", began))
}

/// Creates a store in `file`, which will be renamed to `path`.
pub(crate) fn create_in(
    file: &Path,
    path: &Path,
    schema: Schema,
    options: &StoreOptions,
) -> Result<OpenStore> {
    options.validate()?;
    let lasting = options.shared_files().lasting(path)?;
    let context = SharedContext::new(lasting, schema, options.clone())?;
    let file_options = FileOptions {
        final_path: Some(path.into()),
        ..options.file_options()
    };
    let engine = RedbFile::create(file, &file_options)?;
    let laid_out = catch_panic(&engine.counters, || lay_out(&engine, &context));
    if let Err(error) = laid_out {
        // The file is ours and holds nothing: a second attempt must not meet it.
        drop(engine);
        let _ = options.shared_files().0.remove(file);
        return Err(error);
    }
    let version = Version {
        state: State::INITIAL,
        runs: RunSet::default(),
        memtable: Memtable::default(),
        deleted: Tombstones::default(),
    };
    Ok(open_store(context, engine, version, true))
}

fn open_store(
    mut context: SharedContext,
    engine: RedbFile,
    version: Version,
    writable: bool,
) -> OpenStore {
    context.counters = Arc::new(SharedCounters::of(&engine.counters));
    context.note_documents(version.state.documents);
    OpenStore {
        context,
        engine,
        versions: VersionSet::new(version),
        writer_lock: Arc::new(WriterLock::default()),
        full_buckets: Mutex::default(),
        writable,
        recovered: None,
        session: None,
    }
}

/// Begins the session of a store that is open now, which logs it.
fn begin_session(mut store: OpenStore, how: &str, began: Instant) -> OpenStore {
    store.session = Some(Session::begin(&store.context, how, began));
    store
}

/// Writes the tables and rows of a store without documents.
fn lay_out(engine: &RedbFile, context: &SharedContext) -> Result<()> {
    let write = engine.begin_write()?;
    write_schema(&write, context)?;
    {
        let mut meta = write.open_table(META).engine()?;
        if let Some(weights) = context.schema.weights() {
            let pairs: Vec<(u64, u64)> = weights.iter().collect();
            let row = (weights.documents(), pairs);
            let row = header::encode_meta(header::WEIGHTS, &row)?;
            meta.insert(header::WEIGHTS, row.as_slice()).engine()?;
        }
        let state = header::encode_meta(header::STATE, &State::INITIAL)?;
        meta.insert(header::STATE, state.as_slice()).engine()?;
        let mut lanes = write.open_table(LANES).engine()?;
        for (role, lane) in context.lanes.roles().zip(0u16..) {
            lanes
                .insert(lane, LaneRow::from_role(role).encode(lane)?.as_slice())
                .engine()?;
        }
        // Empty tables are created now too, because a reader cannot open a table that was never
        // created.
        for rows in [DOCUMENTS, PAYLOADS, DEAD, EQUAL] {
            write.open_table(rows).engine()?;
        }
        if context.schema.has_sets() {
            write.open_table(SETS).engine()?;
        }
        if context.schema.clusters().is_some() {
            write.open_table(FOREST).engine()?;
            write.open_table(MEMBERS).engine()?;
            write.open_table(CLUSTERS).engine()?;
            write.open_table(FEED).engine()?;
        }
        for blocks in [KEYS, BANDS, PERMUTED] {
            write.open_table(blocks).engine()?;
        }
        write.open_table(RUNS).engine()?;
        write.open_table(FILTERS).engine()?;
    }
    write.commit().engine()
}

/// Writes the rows of a schema, and of what follows from it: the header's flags and the self-test.
pub(crate) fn write_schema(write: &WriteTransaction, context: &SharedContext) -> Result<()> {
    let features = [
        (context.schema.weights().is_some(), header::HAS_WEIGHTS),
        (context.schema.has_sets(), header::HAS_SETS),
        (context.schema.clusters().is_some(), header::HAS_CLUSTERS),
    ];
    let set = features.iter().filter(|(is_set, _)| *is_set);
    let refuse = set.fold(0, |all, (_, bit)| all | bit);
    let mut meta = write.open_table(META).engine()?;
    let old = meta.get(header::HEADER).engine()?;
    let old = old.map(|row| Header::decode(row.value())).transpose()?;
    let mut put = |name, row: &[u8]| meta.insert(name, row).engine().map(drop);
    // A header that need not change may have fields of newer releases.
    if old.as_ref().is_none_or(|old| old.refuse != refuse) {
        let current = Header {
            refuse,
            ..old.unwrap_or(Header::CURRENT)
        };
        put(header::HEADER, &current.encode())?;
    }
    let schema = header::encode_meta(header::SCHEMA, &context.schema)?;
    put(header::SCHEMA, &schema)?;
    let self_test = header::encode_meta(header::SELF_TEST, &self_test(context)?)?;
    put(header::SELF_TEST, &self_test)
}

/// Returns the fingerprint of the recipe, and a hash of the signatures that it makes of the test
/// documents.
fn self_test(context: &SharedContext) -> Result<(u64, u64)> {
    Ok((context.recipe.fingerprint, context.sketcher.self_test()?))
}

pub(crate) fn open(path: &Path, options: &StoreOptions) -> Result<OpenStore> {
    let began = Instant::now();
    options.validate()?;
    let found = peek(path, options)?;
    if let Some(are_many) = options.wants_shared_writers().filter(|_| found.may_write) {
        RedbFile::set_many_writers(path, &options.file_options(), are_many)?;
    }
    if !found.may_write {
        let engine = RedbFile::open_read_only(path, &options.file_options())?;
        let store = load(path, engine, options, false)?;
        return Ok(begin_session(store, "opened for reading", began));
    }
    let engine = RedbFile::open(path, &options.file_options())?;
    let store = load(path, engine, options, true)?;
    let how = if found.needs_recovery {
        "recovered after a crash, and opened"
    } else {
        "opened"
    };
    Ok(begin_session(store, how, began))
}

/// Returns true if the file is a store that this release may write, and false if it may only read it.
///
/// The engine changes a file as soon as it opens it for writing, so this looks through a handle
/// that cannot write. After a crash only a writer can look: then it is let in, and looks itself.
pub(crate) fn may_write(path: &Path, options: &StoreOptions) -> Result<bool> {
    let found = peek(path, options)?;
    if found.needs_recovery {
        let message = format_args!("was not closed, and is being recovered");
        events::info(STORE, path, message);
    }
    Ok(found.may_write)
}

/// The result of examining a file without changing it.
struct Peek {
    /// True if this release may write the store.
    may_write: bool,
    /// True if the file was not closed.
    needs_recovery: bool,
}

fn peek(path: &Path, options: &StoreOptions) -> Result<Peek> {
    let few_pages = options.clone().cache_bytes(0);
    let engine = match RedbFile::open_read_only(path, &few_pages.file_options()) {
        Err(EngineError::NeedsRecovery { .. }) => {
            // Nothing can be read before the engine's recovery, which writes. `load` reads the header after
            // it, and decides then whether this release may write the store.
            return Ok(Peek {
                may_write: true,
                needs_recovery: true,
            });
        }
        engine => engine?,
    };
    catch_panic(&engine.counters, || {
        let meta = meta(path, &engine.begin_read()?)?;
        let may_write = admit(path, &meta)?;
        Ok(Peek {
            may_write,
            needs_recovery: false,
        })
    })
}

type MetaTable = ReadOnlyTable<&'static str, &'static [u8]>;

fn meta(path: &Path, read: &ReadTransaction) -> Result<MetaTable> {
    read.open_table(META).map_err(|error| match error {
        TableError::Storage(error) => EngineError::from(error).into(),
        _ => not_a_store(path, "it is a redb database without the tables of a store"),
    })
}

fn not_a_store(path: &Path, reason: &str) -> Error {
    Error::NotAStore {
        path: path.into(),
        reason: reason.into(),
    }
}

/// Returns true if the header lets this release write, and false if it lets it read only.
fn admit(path: &Path, meta: &MetaTable) -> Result<bool> {
    let Some(found) = meta.get(header::HEADER).engine()? else {
        return Err(not_a_store(
            path,
            "it is a redb database without the header of a store",
        ));
    };
    Header::decode(found.value())?.admit()
}

pub(crate) fn open_read_only(path: &Path, options: &StoreOptions) -> Result<OpenStore> {
    let began = Instant::now();
    options.validate()?;
    let file = options.file_options();
    let (store, how) = file.wait_for(|| open_or_recover(path, options))?;
    Ok(begin_session(store?, how, began))
}

/// Opens a store for reading. A store that was not closed, and that no process writes, is recovered
/// in memory, and the file does not change. The outer error is that of a writer that appears
/// meanwhile.
fn open_or_recover(
    path: &Path,
    options: &StoreOptions,
) -> std::result::Result<(Result<OpenStore>, &'static str), EngineError> {
    let file = options.file_options();
    match RedbFile::open_read_only(path, &file) {
        Err(EngineError::NeedsRecovery { .. }) => {}
        engine => return Ok((load(path, engine?, options, false), "opened for reading")),
    }
    let in_memory = options.clone().files(overlay(path, &file, false)?);
    let is_current = || in_memory.shared_files().0.are_current().unwrap_or(true);
    let recovered = RedbFile::open(path, &in_memory.file_options())
        .map_err(Error::from)
        .and_then(|engine| load(path, engine, &in_memory, false));
    if !is_current() {
        // A writer recovers the file itself, and this handle reads while it writes.
        return Err(EngineError::locked(path));
    }
    let how = "recovered in memory after a crash, and opened for reading";
    let store = recovered.map(|store| OpenStore {
        recovered: Some(Recovered::new(options.clone())),
        ..store
    });
    Ok((store, how))
}

/// Returns the handle to take snapshots from. It is this one, unless it was recovered in memory and
/// a writer has opened the file since; then it is one that follows that writer.
pub(crate) fn current(store: &Arc<OpenStore>) -> Result<Arc<OpenStore>> {
    let Some(recovered) = &store.recovered else {
        return Ok(Arc::clone(store));
    };
    let mut replacement = recovered.replacement.lock().ignore_poison();
    if let Some(replacement) = &*replacement {
        return Ok(Arc::clone(replacement));
    }
    let path = &store.context.path;
    let are_current = store.context.options.shared_files().0.are_current();
    if are_current.map_err(|error| Error::io("reading", path, error))? {
        return Ok(Arc::clone(store));
    }
    let opened = Arc::new(open_read_only(path, &recovered.options)?);
    *replacement = Some(Arc::clone(&opened));
    Ok(opened)
}

/// Reads and checks what every handle keeps in memory. Writes nothing.
fn load(
    path: &Path,
    engine: RedbFile,
    options: &StoreOptions,
    for_writing: bool,
) -> Result<OpenStore> {
    let counters = Arc::clone(&engine.counters);
    catch_panic(&counters, || {
        load_unguarded(path, engine, options, for_writing)
    })
}

fn load_unguarded(
    path: &Path,
    engine: RedbFile,
    options: &StoreOptions,
    for_writing: bool,
) -> Result<OpenStore> {
    let read = engine.begin_read()?;
    let meta = meta(path, &read)?;
    let row = |name: &str| -> Result<Vec<u8>> {
        let row = meta.get(name).engine()?.map(|row| row.value().to_vec());
        row.ok_or_else(|| {
            Error::corrupt(
                format!("table meta, row {name}"),
                "found none, expected one",
            )
        })
    };
    let may_write = admit(path, &meta)?;
    let found: UncheckedSchema = header::decode_meta(header::SCHEMA, &row(header::SCHEMA)?)?;
    let mut schema = found.into_unchecked();
    header::check_schema(&schema)?;
    let header = Header::decode(&row(header::HEADER)?)?;
    if header.has_sets() != schema.has_sets() {
        let (found, expected) = (header.has_sets(), schema.has_sets());
        let detail = format!("found exact sets {found}, expected {expected} as in the schema");
        return Err(Error::corrupt("header", detail));
    }
    if header.has_clusters() != schema.clusters().is_some() {
        let (found, expected) = (header.has_clusters(), schema.clusters().is_some());
        let detail = format!("found kept clusters {found}, expected {expected} as in the schema");
        return Err(Error::corrupt("header", detail));
    }
    if header.has_weights() {
        schema = header::decode_weights(&row(header::WEIGHTS)?)
            .and_then(|weights| Ok(schema.with_weights(weights)?))
            .map_err(|error| Error::corrupt("table meta, row weights", error.to_string()))?;
    }
    let lasting = options.shared_files().lasting(path)?;
    let context = SharedContext::new(lasting, schema, options.clone())?;
    let expected: (u64, u64) = header::decode_meta(header::SELF_TEST, &row(header::SELF_TEST)?)?;
    let found = self_test(&context)?;
    // Signatures that differ would be near no stored one, without any error.
    if found != expected {
        let detail = format!("found {found:016x?}, expected {expected:016x?}");
        return Err(Error::SelfTest { detail });
    }
    check_lanes(&read, &context)?;
    let state = read_state(&read)?;
    let deleted = Tombstones::read(&read.open_table(DEAD).engine()?)?;
    check_tombstones(&deleted, &state)?;
    let runs = load_runs(&read, &state, context.lanes.kept_lane(), &deleted)?;
    let memtable = load_memtable(&read, &context, &state, None)?;
    drop(meta);
    let version = Version {
        state,
        runs,
        memtable,
        deleted,
    };
    Ok(open_store(
        context,
        engine,
        version,
        for_writing && may_write,
    ))
}

fn check_lanes(read: &ReadTransaction, context: &SharedContext) -> Result<()> {
    let table = read.open_table(LANES).engine()?;
    let mut roles = context.lanes.roles().zip(0u16..);
    for entry in table.iter().engine()? {
        let (lane, row) = entry.engine()?;
        let found = (LaneRow::decode(lane.value(), row.value())?, lane.value());
        let expected = roles
            .next()
            .map(|(role, lane)| (LaneRow::from_role(role), lane));
        if expected != Some(found) {
            let detail = format!("found {found:?}, expected {expected:?}");
            return Err(Error::corrupt("table lanes", detail));
        }
    }
    match roles.next() {
        None => Ok(()),
        Some((_, lane)) => Err(Error::corrupt(
            "table lanes",
            format!("lane {lane} is missing"),
        )),
    }
}
