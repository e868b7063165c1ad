//! Programs that are killed: this test binary, started again to run one of its tests as a program.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

const PROGRAM: &str = "RESEMBLANCE_PROGRAM";
const STORE: &str = "RESEMBLANCE_PROGRAM_STORE";

/// The store of a program, if this process is to be the program. A test that is a program does
/// nothing otherwise.
pub(crate) fn store_of(program: &str) -> Option<PathBuf> {
    let is_asked_for = std::env::var(PROGRAM).is_ok_and(|asked| asked == program);
    is_asked_for.then(|| std::env::var_os(STORE).unwrap().into())
}

/// How to start the program that is the test of this name, by `command`.
pub(crate) fn prepare(mut command: Command, program: &str, store: &Path) -> Command {
    command
        .args([program, "--exact", "--nocapture", "--test-threads=1"])
        .envs([(PROGRAM, Path::new(program)), (STORE, store)])
        .stdout(Stdio::null())
        .stderr(Stdio::inherit());
    command
}

pub(crate) fn command(program: &str, store: &Path) -> Command {
    let this = std::env::current_exe().unwrap();
    prepare(Command::new(this), program, store)
}

/// A program, whose whole lines end with a full stop.
pub(crate) struct Running {
    child: Child,
    said: Receiver<()>,
    reader: JoinHandle<Vec<String>>,
}

impl Running {
    pub(crate) fn start(program: &str, store: &Path) -> Self {
        let mut command = command(program, store);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Read on all the time: a full pipe would hold it up.
        let (sender, said) = channel();
        let reader = std::thread::spawn(move || {
            let mut whole = Vec::new();
            for line in lines.map_while(Result::ok) {
                if let Some(line) = line.strip_suffix('.') {
                    whole.push(line.to_owned());
                    let _ = sender.send(());
                }
            }
            whole
        });
        Self {
            child,
            said,
            reader,
        }
    }

    /// Waits until it has printed a number of further lines.
    pub(crate) fn wait_for(&self, lines: u64) {
        for _ in 0..lines {
            self.said.recv().unwrap();
        }
    }

    /// Sends it a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let mut command = Command::new("kill");
        command.args([format!("-{name}"), self.child.id().to_string()]);
        assert!(command.status().unwrap().success());
    }

    /// Kills the process some time after it has printed this number of lines. Returns everything it
    /// printed.
    pub(crate) fn kill_after(mut self, lines: u64, delay: Duration) -> Vec<String> {
        for _ in 0..lines {
            // If it ends without printing, it is dead, which shows below.
            let _ = self.said.recv();
        }
        std::thread::sleep(delay);
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), None, "it ended by itself");
        self.reader.join().unwrap()
    }
}

/// How often programs are killed.
pub(crate) fn kills(usual: u64) -> u64 {
    std::env::var("RESEMBLANCE_KILLS").map_or(usual, |kills| kills.parse().unwrap())
}
