//! Log events of stores: records of the crate `log` if that feature is enabled, and otherwise
//! nothing.

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

macro_rules! levels {
    ($($(#[$doc:meta])+ $name:ident: $level:ident,)+) => {$(
        $(#[$doc])+
        pub(crate) fn $name(topic: Topic, path: &Path, message: Arguments<'_>) {
            #[cfg(feature = "log")]
            log::log!(target: topic, log::Level::$level, "{}: {message}", path.display());
            #[cfg(not(feature = "log"))]
            let _ = (topic, path, message);
        }
    )+};
}

levels! {
    /// Logs that something does not work any more.
    error: Error,
    /// Logs something that needs attention.
    warn: Warn,
    /// Logs a rare event, such as opening a store.
    info: Info,
    /// Logs an event of normal work, such as a merge.
    debug: Debug,
}
