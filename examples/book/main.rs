//! Makes one page of HTML that teaches near-duplicate search from the documents of a corpus.
//!
//! ```text
//! cargo run --release --bin book -- book.html [CORPUS [DOCUMENTS]]
//! ```
//!
//! `CORPUS` is whatever the tool reads: a JSON Lines file, a folder of texts. The book uses its first `DOCUMENTS`
//! documents, 200 unless stated. The prose is in `book.html`, where `{{name}}` stands for a number, a table or a
//! figure. Each chapter computes what its prose names, with the library, when the page is made.
#![allow(clippy::print_stdout, reason = "it prints what it does")]

mod accuracy;
mod bits;
mod curve;
mod matrix;
mod parts;
mod reading;
mod rivals;
mod shingling;

use std::error::Error;
use std::path::PathBuf;

use self::parts::PageParts;
use self::reading::BookTexts;

const PROSE: &str = include_str!("book.html");

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let usage = "usage: book PAGE.html [CORPUS [DOCUMENTS]]";
    // An option, such as a request for help, is not a page.
    let page = arguments.next().map(PathBuf::from);
    let page = page
        .filter(|page| !page.to_string_lossy().starts_with('-'))
        .ok_or(usage)?;
    let own = || concat!(env!("CARGO_MANIFEST_DIR"), "/stories/articles.jsonl").into();
    let corpus = arguments.next().unwrap_or_else(own);
    let documents = match arguments.next() {
        Some(number) => number.to_str().and_then(|n| n.parse().ok()).ok_or(usage)?,
        None => 200,
    };
    let texts = BookTexts::read(corpus.as_ref(), documents)?;
    let mut parts = PageParts::default();
    for chapter in [
        shingling::write,
        matrix::write,
        accuracy::write,
        curve::write,
        bits::write,
        rivals::write,
    ] {
        chapter(&texts, &mut parts)?;
    }
    std::fs::write(&page, parts.fill(PROSE)?)?;
    let (used, skipped) = (texts.keys.len(), texts.skipped);
    println!("{used} documents, {skipped} records without a text left out");
    println!("drawn to {}", page.display());
    Ok(())
}
