//! A damaged file, and everything that can be done with it.

use std::collections::BTreeMap;

use resemblance::{Error, Store, StoreOptions};

use crate::corruption::image::{Image, OneFile, PATH};
use crate::corruption::questions::Content;
use crate::corruption::stores::{Case, State};

/// The outcome of an attempt.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The errors that damage explains, by their messages.
    pub(crate) errors: BTreeMap<String, u64>,
    /// Outcomes that must not happen.
    pub(crate) wrong: Vec<String>,
    /// The answers were those of the commit before the last one.
    pub(crate) is_previous: bool,
    /// Which is allowed.
    may_fall_back: bool,
    pub(crate) is_clean: bool,
}

impl Outcome {
    pub(crate) fn is_harmless(&self) -> bool {
        self.errors.is_empty() && self.is_clean
    }

    fn wrong(&mut self, phase: &str, what: impl Into<String>) {
        self.wrong.push(format!("{phase}: {}", what.into()));
    }

    pub(crate) fn error(&mut self, phase: &str, error: &Error) {
        match kind(error) {
            Ok(kind) => *self.errors.entry(kind).or_default() += 1,
            Err(what) => self.wrong(phase, what),
        }
    }

    /// That the answers are those of one of the contents; which one.
    pub(crate) fn compare(&mut self, phase: &str, found: &Content, allowed: &[&Content]) -> usize {
        let mut first = None;
        for (place, content) in allowed.iter().enumerate() {
            match found.difference(content) {
                None => return place,
                Some(difference) => _ = first.get_or_insert(difference),
            }
        }
        self.wrong(phase, first.unwrap_or_default());
        0
    }

    /// Opens and reads; the handle, if there is one.
    fn read(
        &mut self,
        (phase, case): (&str, &Case),
        opened: Result<Store, Error>,
        allowed: &[&Content],
    ) -> Option<Store> {
        let store = opened.map_err(|error| self.error(phase, &error)).ok()?;
        let snapshot = match store.snapshot() {
            Ok(snapshot) => snapshot,
            Err(error) => {
                self.error(phase, &error);
                return Some(store);
            }
        };
        let mut errors = Vec::new();
        let found = Content::read(&snapshot, &case.questions, &mut errors);
        for error in &errors {
            self.error(phase, error);
        }
        let place = self.compare(phase, &found, allowed);
        if !place.is_multiple_of(case.states.len()) {
            self.is_previous = true;
            if !self.may_fall_back {
                self.wrong(phase, "the last commit is gone");
            }
        }
        Some(store)
    }

    fn note(&mut self, phase: &str, result: Result<(), Error>) -> bool {
        result.map_err(|error| self.error(phase, &error)).is_ok()
    }
}

/// Returns the message of an error without numbers, or why the error must not occur.
fn kind(error: &Error) -> Result<String, String> {
    let unnamed = || Err(format!("an error that does not say where: {error:?}"));
    let kind = match error {
        Error::Corrupt { place, detail } if place.is_empty() || detail.is_empty() => {
            return unnamed();
        }
        Error::Corrupt { place, .. } => format!("Corrupt, {place}"),
        Error::NotAStore { reason, .. } => format!("NotAStore, {reason}"),
        Error::Closed { reason } => format!("Closed, {reason}"),
        _ => return Err(format!("an error of another kind: {error:?}")),
    };
    let mut short = String::new();
    for letter in kind.chars().take(120) {
        let letter = if letter.is_ascii_digit() { '#' } else { letter };
        if letter != '#' || !short.ends_with('#') {
            short.push(letter);
        }
    }
    Ok(short)
}

fn contents(case: &Case, of: impl Fn(&State) -> &Content) -> Vec<&Content> {
    case.states.iter().map(of).collect()
}

/// Runs everything on a separate copy of the file: reads through both kinds of handles, writes,
/// `check`, and if requested also operations that move and replace much of the file.
pub(crate) fn attempt(case: &Case, image: &Image, is_full: bool, may_fall_back: bool) -> Outcome {
    let mut outcome = Outcome {
        may_fall_back: case.may_fall_back || may_fall_back,
        ..Outcome::default()
    };
    let read = contents(case, |state| &state.read);
    let file = || {
        let file = OneFile::new(image.clone());
        let options = file.options(&case.options);
        (file, options)
    };
    let (_file, options) = file();
    let opened = options.open_read_only(PATH);
    outcome.read(("reading", case), opened, &read);
    write(&mut outcome, case, &file().1);
    check(&mut outcome, case, &file().1, is_full);
    if is_full {
        let (_file, options) = file();
        let compacted = options.compact(PATH).run().map(drop);
        let mut allowed = contents(case, |state| &state.compacted);
        if !outcome.note("compact", compacted) {
            allowed.extend(&read);
        }
        let opened = options.open(PATH);
        outcome.read(("after compact", case), opened, &allowed);

        let (_file, options) = file();
        let mut allowed = contents(case, |state| &state.rebanded);
        if !outcome.note("reband", case.reband(&options)) {
            allowed.extend(&read);
        }
        let opened = options.open(PATH);
        outcome.read(("after reband", case), opened, &allowed);
    }
    if outcome.is_clean && !outcome.errors.is_empty() {
        let errors = format!("it was clean in spite of {:?}", outcome.errors);
        outcome.wrong("check", errors);
    }
    outcome
}

fn write(outcome: &mut Outcome, case: &Case, options: &StoreOptions) {
    let read = contents(case, |state| &state.read);
    let opened = options.open(PATH);
    let Some(store) = outcome.read(("opened", case), opened, &read) else {
        return;
    };
    let done = outcome.note("writing", case.write(&store));
    drop(store);
    let mut allowed = contents(case, |state| &state.written);
    if !done {
        allowed.extend(&read);
    }
    let opened = options.open(PATH);
    outcome.read(("after writing", case), opened, &allowed);
}

fn check(outcome: &mut Outcome, case: &Case, options: &StoreOptions, is_full: bool) {
    match options.check(PATH).run() {
        Ok(report) => {
            outcome.is_clean = report.is_clean();
            let unnamed = report
                .problems
                .iter()
                .find(|problem| problem.place.is_empty());
            if let Some(problem) = unnamed {
                outcome.wrong("check", format!("{problem:?} has no place"));
            }
        }
        Err(error) => outcome.error("check", &error),
    }
    if is_full {
        let read = contents(case, |state| &state.read);
        let opened = options.open(PATH);
        outcome.read(("after check", case), opened, &read);
    }
}
