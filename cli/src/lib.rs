//! The command-line tool `resemblance`: see `resemblance --help`.
//!
//! [`run`] is the whole tool; [`corpus`] reads documents from JSON Lines and folders of texts, and can
//! be used by other programs.
//!
//! # Floors
//!
//! A floor imports only those below it: `tool`, `verbs`, `session`, `options`, `output`, `help`, `defaults`,
//! `failure`; then [`corpus`], which does not know the command line. What is done with documents (deduplication, exact
//! verification, evaluation, the choice of a schema, sketching on all cores) is in the library.

mod bug;
pub mod corpus;
mod defaults;
mod failure;
mod help;
mod options;
mod output;
mod session;
mod tool;
mod verbs;

pub use tool::run;
