//! The command-line tool `resemblance`: see `resemblance --help`.
//!
//! [`run`] is the whole tool; [`corpus`] reads documents from JSON Lines and folders of texts, and can
//! be used by other programs.
//!
//! # Floors
//!
//! A floor imports only those below it: `tool`, `verbs`, `session`, `options`, `output`, `failure`; then
//! what does not know the command line: [`corpus`]; and `tune`, `eval`, `dedup`, `exact`, `pipeline`,
//! which know the library alone.

mod bug;
pub mod corpus;
mod dedup;
mod eval;
mod exact;
mod failure;
mod options;
mod output;
mod pipeline;
mod session;
mod tool;
mod tune;
mod verbs;

pub use tool::run;
