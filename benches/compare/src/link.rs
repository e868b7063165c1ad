//! The side of the process that measures one engine.

use std::io::Write;
use std::ops::Range;
use std::time::{Duration, Instant};

use crate::Result;
use crate::documents::batches;
use crate::options::Options;
use crate::outcome::{Answers, Commit, Figure, Message, Outcome};
use crate::process::{peak_bytes, resident_bytes, written_bytes};
use crate::table::grouped;

/// Sends figures to the process that started this one and schedules it. Without such a process,
/// prints them as a table.
pub struct Link {
    turns: bool,
    outcome: Outcome,
}

impl Link {
    pub fn new(name: &str, turns: bool) -> Result<Self> {
        let outcome = Outcome::new(name);
        let link = Self { turns, outcome };
        link.wait()?;
        Ok(link)
    }

    pub fn into_outcome(self) -> Outcome {
        self.outcome
    }

    /// Waits for a turn, and returns the message that begins it.
    fn wait(&self) -> Result<String> {
        let mut line = String::new();
        if self.turns && std::io::stdin().read_line(&mut line)? == 0 {
            return Err("nobody gives turns any more".into());
        }
        Ok(line)
    }

    pub fn send(&mut self, message: Message) -> Result<()> {
        if !self.turns {
            self.outcome.take(message);
            return Ok(());
        }
        let mut line = serde_json::to_vec(&message)?;
        line.push(b'\n');
        Ok(std::io::stdout().lock().write_all(&line)?)
    }

    /// Lets the others have their turns.
    pub fn pause(&mut self) -> Result<()> {
        self.send(Message::Turn)?;
        self.wait().map(drop)
    }

    /// Waits until all other processes have reached the same point.
    pub fn meet(&mut self) -> Result<()> {
        self.send(Message::Meet)?;
        self.wait().map(drop)
    }

    /// Waits as [`meet`](Self::meet), and returns how many documents all hold, of which this one holds
    /// those below a number.
    pub fn hold(&mut self, below: u64) -> Result<u64> {
        self.send(Message::Holds(below))?;
        self.send(Message::Meet)?;
        let held = self.wait()?;
        match self.turns {
            true => Ok(held.trim().parse()?),
            false => Ok(below),
        }
    }

    pub fn settings(&mut self, settings: String) -> Result<()> {
        self.send(Message::Settings(settings))
    }

    pub fn note(&mut self, note: impl Into<String>) -> Result<()> {
        self.send(Message::Note(note.into()))
    }

    /// A figure of which less is better.
    pub fn cost(&mut self, label: impl Into<String>, value: f64) -> Result<()> {
        self.figure(label.into(), value, false)
    }

    /// A figure of which more is better.
    pub fn rate(&mut self, label: impl Into<String>, value: f64) -> Result<()> {
        self.figure(label.into(), value, true)
    }

    fn figure(&mut self, label: String, value: f64, more_is_better: bool) -> Result<()> {
        self.send(Message::Figure(Figure {
            label,
            value,
            more_is_better,
        }))
    }

    /// The most memory that this process has had so far.
    pub fn peak_memory(&mut self, when: &str) -> Result<()> {
        let mebibytes = peak_bytes()? as f64 / f64::from(1 << 20);
        self.cost(format!("peak resident memory, {when}, MiB"), mebibytes)
    }

    /// Sends what probes found among the documents below a number. At least a share of the probes
    /// must find something there.
    pub fn answers(
        &mut self,
        label: &str,
        below: u64,
        min_share: f64,
        found: Vec<Vec<u64>>,
    ) -> Result<()> {
        self.send(Message::Answers(Answers {
            label: label.to_owned(),
            below,
            min_share,
            found,
            whole: false,
        }))
    }

    /// The pairs that a join found, ascending.
    pub fn pairs(&mut self, below: u64, pairs: Vec<(u64, u64)>) -> Result<()> {
        self.send(Message::Answers(Answers {
            label: "pairs".to_owned(),
            below,
            min_share: 0.0,
            found: pairs.into_iter().map(|(a, b)| vec![a, b]).collect(),
            whole: true,
        }))
    }
}

/// The sizes and limits of a run of commits.
pub struct Commits {
    pub documents: u64,
    /// Documents a commit.
    pub size: u64,
    /// Commits before the others have their turns.
    pub a_turn: usize,
}

impl Commits {
    /// The name of the table's part.
    fn phase(&self) -> String {
        format!("{} a commit", grouped(self.size as f64))
    }

    /// Inserts documents in commits, beginning with `first`, until all are inserted or a limit is
    /// reached. Returns the number of the next document. `insert` returns the duration of a commit.
    pub fn run(
        &self,
        options: &Options,
        link: &mut Link,
        first: u64,
        mut insert: impl FnMut(Range<u64>) -> Result<Duration>,
    ) -> Result<u64> {
        let (phase, mut spent) = (self.phase(), Duration::ZERO);
        let end = first + self.documents;
        for (place, numbers) in batches(first..end, self.size).enumerate() {
            let next = numbers.end;
            let before = written_bytes();
            let time = insert(numbers.clone())?;
            let commit = Commit {
                documents: numbers.end - numbers.start,
                nanoseconds: time.as_nanos().try_into()?,
                written_bytes: written_bytes() - before,
            };
            link.send(Message::Commit(phase.clone(), commit))?;
            spent += time;
            if next == end {
                break;
            }
            if let Some(why) = must_stop(options, spent)? {
                let reached = grouped((next - first) as f64);
                link.note(format!("{phase}: stopped at {reached} documents: {why}"))?;
                return Ok(next);
            }
            if place % self.a_turn == self.a_turn - 1 {
                link.pause()?;
            }
        }
        Ok(end)
    }
}

/// Why an engine must stop here.
fn must_stop(options: &Options, spent: Duration) -> Result<Option<String>> {
    if spent > options.time_limit {
        let limit = options.time_limit.as_secs();
        return Ok(Some(format!("the limit of {limit} s is reached")));
    }
    let (memory, limit) = (resident_bytes()? >> 20, options.memory_limit_bytes >> 20);
    let why = format!("it takes {memory} MiB of memory, the limit is {limit}");
    Ok((memory > limit).then_some(why))
}

/// Runs a function, and returns its result and duration.
pub fn timed<T>(run: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    let start = Instant::now();
    let value = run()?;
    Ok((value, start.elapsed()))
}

/// How often warm questions are asked after the first time.
const WARM_ROUNDS: usize = 3;

/// Asks all questions once to warm what can be warm, then again. Returns the answers, and how long
/// each of the later rounds took for each question, round after round.
pub fn ask_warm<Q, A>(
    questions: &[Q],
    mut ask: impl FnMut(&Q) -> Result<A>,
) -> Result<(Vec<A>, Vec<Duration>)> {
    let answers = questions.iter().map(&mut ask).collect::<Result<_>>()?;
    let mut times = Vec::with_capacity(WARM_ROUNDS * questions.len());
    for _ in 0..WARM_ROUNDS {
        for question in questions {
            times.push(timed(|| ask(question))?.1);
        }
    }
    Ok((answers, times))
}

/// The round that took the least time, of times that are those of several rounds.
pub fn best_round(times: &[Duration]) -> Duration {
    let rounds = times.chunks(times.len().div_ceil(WARM_ROUNDS).max(1));
    let totals = rounds.map(|round| round.iter().sum());
    totals.min().unwrap_or_default()
}
