//! What whoever runs a program is told of its stores: events of the crate `log`, if the feature of that
//! name is on. Without it nothing is done.

use std::fmt::Arguments;
use std::path::Path;

/// What an event is about: the target that it is logged under.
pub(crate) type Topic = &'static str;

/// Opening, closing, and what keeps a handle from being used.
pub(crate) const STORE: Topic = "resemblance::store";
/// Seals and merges.
pub(crate) const MERGE: Topic = "resemblance::merge";
/// What is done to a store as a whole.
pub(crate) const UPKEEP: Topic = "resemblance::upkeep";
/// Commits that fail or take long.
pub(crate) const COMMIT: Topic = "resemblance::commit";
/// Damage.
pub(crate) const DAMAGE: Topic = "resemblance::damage";

#[derive(Clone, Copy)]
enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

/// Something does not work any more.
pub(crate) fn error(topic: Topic, path: &Path, message: Arguments<'_>) {
    tell(Level::Error, topic, path, message);
}

/// Something should be looked at.
pub(crate) fn warn(topic: Topic, path: &Path, message: Arguments<'_>) {
    tell(Level::Warn, topic, path, message);
}

/// Something that happens once in a while.
pub(crate) fn info(topic: Topic, path: &Path, message: Arguments<'_>) {
    tell(Level::Info, topic, path, message);
}

/// Something that happens in the course of things.
pub(crate) fn debug(topic: Topic, path: &Path, message: Arguments<'_>) {
    tell(Level::Debug, topic, path, message);
}

#[cfg(feature = "log")]
fn tell(level: Level, topic: Topic, path: &Path, message: Arguments<'_>) {
    let level = match level {
        Level::Error => log::Level::Error,
        Level::Warn => log::Level::Warn,
        Level::Info => log::Level::Info,
        Level::Debug => log::Level::Debug,
    };
    log::log!(target: topic, level, "{}: {message}", path.display());
}

#[cfg(not(feature = "log"))]
fn tell(_: Level, _: Topic, _: &Path, _: Arguments<'_>) {}
