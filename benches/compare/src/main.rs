//! Measurements: `load` beside SQLite, and `sketch`.

mod documents;
mod engine;
mod load;
mod options;
mod report;
mod sketch;
mod sqlite;

use std::error::Error;
use std::process::ExitCode;

/// Whatever goes wrong ends the measurement.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

const USAGE: &str = "\
usage: resemblance-compare load [--documents 200000] [--batch 10000] [--form postings|records|both]
                                [--sqlite-records] [--alone] [--folder .]
       resemblance-compare sketch [--folder .]

load    inserts generated documents of 20 lanes, a durable commit a batch, into a store and twice
        into SQLite (once with the rows of each batch as the documents come, once with them sorted
        by primary key), batch by batch in turn, and asserts that all then answer alike
  --form            postings: 20 values a document and no key; records: 128 values and a key
  --sqlite-records  SQLite keeps keys and signatures of the form `records` as well
  --alone           the store only, for a profiler
  --folder          where the files are made: their file system is what is measured
sketch  measures texts to signatures, on the corpora of RESEMBLANCE_DATA or the sources of --folder";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments
        .iter()
        .any(|argument| argument == "--help" || argument == "-h")
    {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("resemblance-compare: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Vec<String>) -> Result<()> {
    let mut arguments = arguments.into_iter();
    let verb = arguments.next().unwrap_or_default();
    let options =
        options::Options::parse(arguments).map_err(|error| format!("{error}\n{USAGE}"))?;
    match verb.as_str() {
        "load" => load::run(&options),
        "sketch" => sketch::run(&options),
        _ => Err(USAGE.into()),
    }
}
