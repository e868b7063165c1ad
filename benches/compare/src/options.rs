//! The command line.

use std::path::PathBuf;

use crate::Result;
use crate::documents::Form;

/// What is measured, and how.
pub struct Options {
    pub documents: u64,
    pub batch: u64,
    pub forms: Vec<Form>,
    /// Whether SQLite keeps records where the store does.
    pub sqlite_records: bool,
    pub alone: bool,
    pub folder: PathBuf,
}

impl Options {
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            documents: 200_000,
            batch: 10_000,
            forms: vec![Form::Postings, Form::Records],
            sqlite_records: false,
            alone: false,
            folder: PathBuf::from("."),
        };
        while let Some(name) = arguments.next() {
            match name.as_str() {
                "--sqlite-records" => options.sqlite_records = true,
                "--alone" => options.alone = true,
                _ => {
                    let value = arguments.next().ok_or(format!("{name}: no value"))?;
                    options.set(&name, &value)?;
                }
            }
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match (name, value) {
            ("--documents", _) => self.documents = value.parse()?,
            ("--batch", _) => self.batch = value.parse()?,
            ("--form", "postings") => self.forms = vec![Form::Postings],
            ("--form", "records") => self.forms = vec![Form::Records],
            ("--form", "both") => self.forms = vec![Form::Postings, Form::Records],
            ("--folder", _) => self.folder = value.into(),
            _ => return Err(format!("{name} {value}: unknown").into()),
        }
        Ok(())
    }
}
