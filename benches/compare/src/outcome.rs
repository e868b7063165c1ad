//! The results of a measurement, and the messages that carry them.

use serde::{Deserialize, Serialize};

use crate::Result;

/// A durable commit.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Commit {
    pub documents: u64,
    pub nanoseconds: u64,
    /// By calls of the whole process since the commit began.
    pub written_bytes: u64,
}

/// A figure in a row of the table.
#[derive(Clone, Serialize, Deserialize)]
pub struct Figure {
    pub label: String,
    pub value: f64,
    pub more_is_better: bool,
}

/// The answers of one engine, for comparison with those of others.
#[derive(Serialize, Deserialize)]
pub struct Answers {
    /// A description of the queries.
    pub label: String,
    /// How many documents there were.
    pub below: u64,
    /// The share of the questions that must find something among the documents that all engines hold.
    pub min_share: f64,
    /// The documents found by each question, ascending.
    pub found: Vec<Vec<u64>>,
    /// Whether each is one item, which only counts if all its documents are there.
    pub whole: bool,
}

/// From the process that measures an engine to the one that prints the table.
#[derive(Serialize, Deserialize)]
pub enum Message {
    Settings(String),
    Commit(String, Commit),
    Figure(Figure),
    Note(String),
    Answers(Answers),
    /// It holds the documents below this number.
    Holds(u64),
    /// It has had its turn.
    Turn,
    /// The engine has finished its turn, and waits for the others.
    Meet,
}

/// All that is known of an engine.
#[derive(Default)]
pub struct Outcome {
    pub name: String,
    pub settings: Vec<String>,
    /// By phase.
    pub commits: Vec<(String, Vec<Commit>)>,
    pub figures: Vec<Figure>,
    pub notes: Vec<String>,
    pub answers: Vec<Answers>,
    /// It holds the documents below this number, once that is known.
    pub holds: Option<u64>,
}

impl Outcome {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    pub fn take(&mut self, message: Message) {
        match message {
            Message::Settings(settings) => self.settings.push(settings),
            Message::Figure(figure) => self.figures.push(figure),
            Message::Note(note) => self.notes.push(note),
            Message::Answers(answers) => self.answers.push(answers),
            Message::Holds(below) => self.holds = Some(below),
            Message::Turn | Message::Meet => {}
            Message::Commit(phase, commit) => {
                match self.commits.iter_mut().find(|(name, _)| *name == phase) {
                    Some((_, commits)) => commits.push(commit),
                    None => self.commits.push((phase, vec![commit])),
                }
            }
        }
    }

    pub fn commits(&self, phase: &str) -> &[Commit] {
        let mut phases = self.commits.iter();
        phases
            .find(|(name, _)| name == phase)
            .map_or(&[], |(_, commits)| commits.as_slice())
    }

    pub fn figure(&self, label: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.label == label)
    }
}

impl Answers {
    /// Returns the answers restricted to the first `below` documents.
    fn among(&self, below: u64) -> Vec<Vec<u64>> {
        let found = self.found.iter();
        if self.whole {
            let inside = found.filter(|ids| ids.iter().all(|id| *id < below));
            return inside.cloned().collect();
        }
        let inside = |ids: &Vec<u64>| ids.iter().copied().filter(|id| *id < below).collect();
        found.map(inside).collect()
    }
}

/// Fails unless all engines found the same among the documents that all of them hold. Returns a
/// line for each question that several were asked.
pub fn compare_answers(outcomes: &[Outcome]) -> Result<Vec<String>> {
    let mut labels: Vec<&str> = Vec::new();
    for answers in outcomes.iter().flat_map(|outcome| &outcome.answers) {
        if !labels.contains(&answers.label.as_str()) {
            labels.push(&answers.label);
        }
    }
    labels
        .into_iter()
        .map(|label| compare_one(label, outcomes))
        .collect()
}

fn compare_one(label: &str, outcomes: &[Outcome]) -> Result<String> {
    let all: Vec<(&str, &Answers)> = outcomes
        .iter()
        .flat_map(|outcome| outcome.answers.iter().map(|one| (&*outcome.name, one)))
        .filter(|(_, answers)| answers.label == label)
        .collect();
    let below = all.iter().map(|(_, answers)| answers.below).min();
    let below = below.unwrap_or(0);
    let mut first: Option<(&str, Vec<Vec<u64>>)> = None;
    for (name, answers) in &all {
        let found = answers.among(below);
        match &first {
            None => first = Some((*name, found)),
            Some((_, expected)) if *expected == found => {}
            Some((other, expected)) => {
                let place = expected.iter().zip(&found).position(|(a, b)| a != b);
                return Err(format!(
                    "{label}: {name} and {other} differ, first at {place:?}, \
                     with {} and {} answers",
                    found.len(),
                    expected.len()
                )
                .into());
            }
        }
    }
    let found = first.map(|(_, found)| found).unwrap_or_default();
    let documents: usize = found.iter().map(Vec::len).sum();
    let without = found.iter().filter(|ids| ids.is_empty()).count();
    let min_share = all.iter().map(|(_, answers)| answers.min_share);
    let wanted = min_share.fold(0.0, f64::max) * found.len() as f64;
    if ((found.len() - without) as f64) < wanted {
        return Err(format!(
            "{label}: {without} of {} answers are empty: they say little of what finding costs",
            found.len()
        )
        .into());
    }
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    Ok(format!(
        "{label}: {} answers with {documents} documents of the first {below}, {without} without \
         any, the same from {}",
        found.len(),
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(name: &str, below: u64, found: &[&[u64]], whole: bool) -> Outcome {
        let mut outcome = Outcome::new(name);
        outcome.take(Message::Answers(Answers {
            label: "probes".into(),
            below,
            min_share: 0.5,
            found: found.iter().map(|ids| ids.to_vec()).collect(),
            whole,
        }));
        outcome
    }

    #[test]
    fn answers_are_compared_among_documents_that_all_engines_hold() {
        let all = outcome("a", 10, &[&[1, 8], &[9]], false);
        let fewer = outcome("b", 5, &[&[1], &[]], false);
        assert!(compare_answers(&[all, fewer]).is_ok());
        let all = outcome("a", 10, &[&[1, 8], &[9]], false);
        let wrong = outcome("b", 5, &[&[2], &[]], false);
        assert!(compare_answers(&[all, wrong]).is_err());
    }

    #[test]
    fn probes_must_find_something_in_half_of_the_answers() {
        let half = outcome("a", 10, &[&[1], &[]], false);
        assert!(compare_answers(&[half]).is_ok());
        let few = outcome("a", 10, &[&[1], &[], &[]], false);
        assert!(compare_answers(&[few]).is_err());
    }

    #[test]
    fn pairs_count_only_if_both_documents_are_loaded() {
        let all = outcome("a", 10, &[&[1, 3], &[1, 8]], true);
        let fewer = outcome("b", 5, &[&[1, 3]], true);
        assert!(compare_answers(&[all, fewer]).is_ok());
        let all = outcome("a", 10, &[&[1, 3], &[1, 8]], true);
        let missing = outcome("b", 10, &[&[1, 3]], true);
        assert!(compare_answers(&[all, missing]).is_err());
    }
}
