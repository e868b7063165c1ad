//! Log events of stores: records of the crate `log` if the feature of that name is on, else nothing.

use std::fmt::Arguments;
use std::path::Path;

/// Subject of an event: the target that it is logged under.
pub(crate) type Topic = &'static str;

/// Opening, closing, and what keeps a handle from being used.
pub(crate) const STORE: Topic = "resemblance::store";
/// Flushes and merges.
pub(crate) const MERGE: Topic = "resemblance::merge";
/// Work on a store as a whole, such as a backup or an eviction.
pub(crate) const UPKEEP: Topic = "resemblance::upkeep";
/// Commits that fail or take long.
pub(crate) const COMMIT: Topic = "resemblance::commit";
/// Damage that was found in a file.
pub(crate) const DAMAGE: Topic = "resemblance::damage";

#[derive(Clone, Copy)]
enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

/// Logs that something does not work any more.
pub(crate) fn error(topic: Topic, path: &Path, message: Arguments<'_>) {
    log_event(Level::Error, topic, path, message);
}

/// Logs something that should be looked at.
pub(crate) fn warn(topic: Topic, path: &Path, message: Arguments<'_>) {
    log_event(Level::Warn, topic, path, message);
}

/// Logs a rare event, such as opening a store.
pub(crate) fn info(topic: Topic, path: &Path, message: Arguments<'_>) {
    log_event(Level::Info, topic, path, message);
}

/// Logs an event of normal work, such as a merge.
pub(crate) fn debug(topic: Topic, path: &Path, message: Arguments<'_>) {
    log_event(Level::Debug, topic, path, message);
}

#[cfg(feature = "log")]
fn log_event(level: Level, topic: Topic, path: &Path, message: Arguments<'_>) {
    let level = match level {
        Level::Error => log::Level::Error,
        Level::Warn => log::Level::Warn,
        Level::Info => log::Level::Info,
        Level::Debug => log::Level::Debug,
    };
    log::log!(target: topic, level, "{}: {message}", path.display());
}

#[cfg(not(feature = "log"))]
fn log_event(_: Level, _: Topic, _: &Path, _: Arguments<'_>) {}
