//! The command-line tool `resemblance`: see `resemblance --help`.
//!
//! [`run`] is the whole tool. The crate `resemblance-corpus` reads its documents, and `resemblance-eval` measures and
//! draws.
//!
//! # Floors
//!
//! A floor imports only those below it: `tool`, `verbs`, `session`, `options`, `output`, `help`, `defaults`,
//! `usage`, `failure`; then the crates, which do not know the command line. What is done with documents (deduplication, exact
//! verification, evaluation, the choice of a schema, sketching on all cores) is in the library.

mod defaults;
mod failure;
mod help;
mod options;
mod output;
#[cfg(test)]
mod reference;
mod session;
mod tool;
mod usage;
mod verbs;

pub use tool::run;
