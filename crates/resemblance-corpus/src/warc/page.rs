//! Converts records to lines of JSON.

use std::borrow::Cow;

use serde::Serialize;

use super::body;
use super::charset;
use super::head::{MediaType, MessageHead};
use crate::archived_record::{ArchivedRecord, RecordPlace};
use crate::bad_document::BadDocument;
use crate::html::HtmlExtractor;
use crate::json_line::{push, push_name};
use crate::record::CorpusRecord;

impl RecordPlace {
    /// Returns the fault of the record with its place.
    pub(super) fn named(&self, bad: BadDocument) -> BadDocument {
        let within = match self.within {
            0 => String::new(),
            within => format!(" (byte {within} of that member)"),
        };
        let reason = format!("the record at byte {}{within}: {}", self.offset, bad.reason);
        BadDocument { reason, ..bad }
    }
}

/// The parts of a page that the heads of a record show.
#[derive(Debug)]
pub(super) enum RecordPart {
    /// A page. Its head of HTTP has this length, 0 if there is none.
    Page(usize),
    /// The type of a record that is passed over.
    PassedOver(String),
}

/// Returns what a record is, without decoding its body.
pub(super) fn part(head: &MessageHead, block: &[u8]) -> Result<RecordPart, BadDocument> {
    let kind = head.value("warc-type").unwrap_or("").to_ascii_lowercase();
    let media = MediaType::parse(head.value("content-type"));
    match kind.as_str() {
        "response" if media.name == "application/http" => {}
        "conversion" if is_html(&media).is_some() => return Ok(RecordPart::Page(0)),
        "conversion" => return Ok(passed_over(&media.name)),
        "response" => return Ok(passed_over(&format!("response of type {}", media.name))),
        kind => return Ok(passed_over(kind)),
    }
    let parsed = MessageHead::parse(block).filter(|http| http.first_line.starts_with("HTTP/"));
    let Some(http) = parsed else {
        return Err(BadDocument::new("it has no head of an HTTP response"));
    };
    let status = http.first_line.split_ascii_whitespace().nth(1);
    if status != Some("200") {
        let status = status.unwrap_or("none");
        return Ok(passed_over(&format!("response with status {status}")));
    }
    let media = MediaType::parse(http.value("content-type"));
    Ok(match is_html(&media) {
        Some(_) => RecordPart::Page(http.length),
        None => passed_over(&media.name),
    })
}

/// Returns the body of a page without the codings of HTTP. Whoever reads ahead counts the bytes of
/// its record, which therefore must not grow later.
pub(super) fn decoded_body<'a>(
    head: &MessageHead,
    block: &'a [u8],
    http_bytes: usize,
    max_bytes: u64,
) -> Result<Cow<'a, [u8]>, BadDocument> {
    let (http, body) = block.split_at_checked(http_bytes).unwrap_or((&[], block));
    let http = MessageHead::parse(http).unwrap_or_default();
    let is_cut = head.value("warc-truncated").is_some();
    body::decode(&http, body, is_cut, max_bytes).map_err(BadDocument::new)
}

/// Converts a page to a line of JSON with its visible text. Plain text remains as it is.
pub(crate) fn line(
    record: &CorpusRecord,
    archived: &ArchivedRecord,
    file: &str,
) -> Result<Vec<u8>, BadDocument> {
    let head = MessageHead::parse(&record.bytes).unwrap_or_default();
    let block = record.bytes.get(archived.head_bytes..).unwrap_or(&[]);
    let http = MessageHead::parse(block).filter(|_| archived.http_bytes > 0);
    let body = block.get(archived.http_bytes..).unwrap_or(&[]);
    let media = MediaType::parse(http.as_ref().unwrap_or(&head).value("content-type"));
    let is_html = is_html(&media).unwrap_or_default();
    let characters = charset::decode(body, media.charset.as_deref(), is_html);
    let text = match is_html {
        true => {
            let extracted = HtmlExtractor::CURRENT.text(&characters);
            extracted.map_err(|bad| archived.place.named(bad))?.into()
        }
        false => characters,
    };
    Ok(json(&head, &text, archived.place, file))
}

/// Returns the line with the fields that the options read.
fn json(head: &MessageHead, text: &str, place: RecordPlace, file: &str) -> Vec<u8> {
    let mut json = vec![b'{'];
    let date = head.value("warc-date").map(whole_date);
    let stamp = date.filter(|date| crate::parse_stamp(date).is_some());
    push_field(&mut json, "id", head.target_uri());
    push_field(&mut json, "record_id", head.value("warc-record-id"));
    push_field(&mut json, "stamp", stamp.as_deref());
    push_name(&mut json, "record");
    json.push(b'{');
    push_field(&mut json, "file", Some(file));
    push_field(&mut json, "offset", Some(&place.offset));
    push_field(&mut json, "length", place.length.as_ref());
    let within = Some(&place.within).filter(|within| **within > 0);
    push_field(&mut json, "within", within);
    json.push(b'}');
    push_field(&mut json, "text", Some(text));
    json.extend_from_slice(b"}\n");
    json
}

fn push_field(json: &mut Vec<u8>, name: &str, value: Option<&(impl Serialize + ?Sized)>) {
    if let Some(value) = value {
        push_name(json, name);
        push(json, value);
    }
}

/// Returns true for HTML, false for plain text, and `None` for other media types.
fn is_html(media: &MediaType) -> Option<bool> {
    match media.name.as_str() {
        "text/html" | "application/xhtml+xml" => Some(true),
        "text/plain" => Some(false),
        _ => None,
    }
}

fn passed_over(kind: &str) -> RecordPart {
    // A hostile file has names of any length.
    let shown: String = kind.chars().take(60).filter(|c| !c.is_control()).collect();
    RecordPart::PassedOver(match shown.is_empty() {
        true => "no declared type".to_owned(),
        false => shown,
    })
}

/// Returns a date with a month and a day, which WARC 1.1 allows to be left out.
fn whole_date(date: &str) -> Cow<'_, str> {
    match date.len() {
        4 => format!("{date}-01-01").into(),
        7 => format!("{date}-01").into(),
        _ => date.into(),
    }
}
