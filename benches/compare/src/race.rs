//! Runs engines side by side, each in a separate process, one at a time.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::Result;
use crate::options::Options;
use crate::outcome::{Message, Outcome};
use crate::process::remove_memory_group;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    /// The engine waits for the others to reach the same point.
    Waiting,
    Ended,
}

/// A process that measures one engine. Between its turns it is stopped with all its threads, so
/// that what it does in the background counts as its own time.
struct Racer {
    child: Child,
    turns: ChildStdin,
    messages: BufReader<ChildStdout>,
    state: State,
    outcome: Outcome,
}

/// However the race ends, no stopped process stays behind.
impl Drop for Racer {
    fn drop(&mut self) {
        if self.state != State::Ended {
            // Both fail only if the process has already ended, which is the goal.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        remove_memory_group(self.child.id());
    }
}

impl Racer {
    fn start(options: &Options, engine: &str, more: &[String]) -> Result<Self> {
        let folder = options.folder.join(engine);
        std::fs::create_dir(&folder)?;
        let mut child = Command::new(std::env::current_exe()?)
            .args(std::env::args_os().skip(1))
            .args(more)
            .args(["--memory", &options.memory()])
            .args(["--alone", engine, "--turns", "--folder"])
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let turns = child.stdin.take().ok_or("no pipe to the process")?;
        let messages = child.stdout.take().ok_or("no pipe from the process")?;
        Ok(Self {
            child,
            turns,
            messages: BufReader::new(messages),
            state: State::Ready,
            outcome: Outcome::new(engine),
        })
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }

    /// Lets the engine work for one turn. Sends it the number of documents that all engines hold,
    /// if that is known.
    fn turn(&mut self, held: Option<u64>) -> Result<()> {
        self.signal(Signal::CONT)?;
        let held = held.map_or(String::new(), |held| held.to_string());
        self.turns.write_all(format!("{held}\n").as_bytes())?;
        loop {
            let mut line = String::new();
            if self.messages.read_line(&mut line)? == 0 {
                let status = self.child.wait()?;
                self.state = State::Ended;
                let name = &self.outcome.name;
                return match status.success() {
                    true => Ok(()),
                    false => Err(format!("{name}: its process ended with {status}").into()),
                };
            }
            let message = serde_json::from_str(&line)?;
            match message {
                Message::Turn => break,
                Message::Meet => {
                    self.state = State::Waiting;
                    break;
                }
                message => self.outcome.take(message),
            }
        }
        self.signal(Signal::STOP)
    }
}

/// Measures engines in turns, so that each is first equally often. `more` are arguments for the
/// processes in addition to those of this one.
pub fn run(options: &Options, engines: &[String], more: &[String]) -> Result<Vec<Outcome>> {
    let folder = tempfile::tempdir_in(&options.folder)?;
    let inside = options.inside(folder.path());
    let mut racers = Vec::new();
    for engine in engines {
        racers.push(Racer::start(&inside, engine, more)?);
    }
    let count = racers.len().max(1);
    let mut held = None;
    for round in 0.. {
        let mut worked = false;
        for place in 0..racers.len() {
            let racer = &mut racers[(place + round) % count];
            if racer.state == State::Ready {
                racer.turn(held)?;
                worked = true;
                if racer.state == State::Ended {
                    // The others may need the space.
                    std::fs::remove_dir_all(inside.folder.join(&racer.outcome.name))?;
                }
            }
        }
        if worked {
            continue;
        }
        let mut waiting = false;
        for racer in racers.iter_mut().filter(|one| one.state == State::Waiting) {
            racer.state = State::Ready;
            waiting = true;
        }
        if !waiting {
            break;
        }
        held = racers.iter().filter_map(|one| one.outcome.holds).min();
    }
    let outcomes = racers.iter_mut();
    Ok(outcomes
        .map(|racer| std::mem::take(&mut racer.outcome))
        .collect())
}
