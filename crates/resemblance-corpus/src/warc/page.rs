//! Converts records to lines of JSON.

use std::borrow::Cow;

use super::body;
use super::charset;
use super::head::{MediaType, MessageHead, ParsedHead};
use crate::bad_document::BadDocument;
use crate::html::HtmlExtractor;
use crate::json_line::{push, push_name};

/// The result of a record.
#[derive(Debug)]
pub(super) enum Converted {
    /// A line of JSON.
    Line(Vec<u8>),
    /// The type of a record that is passed over.
    PassedOver(String),
}

/// Where a record is in its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordPlace {
    /// The offset of its member in the compressed file, or of the record in an uncompressed one.
    pub(super) offset: u64,
    /// The number of bytes from there, unless the member has other records too.
    pub(super) length: Option<u64>,
    /// The offset of the record in the decompressed member.
    pub(super) within: u64,
}

/// Converts the records of a file.
pub(super) struct PageConverter {
    /// The path of the file as it was given.
    pub(super) file: String,
    /// The maximum length of a page.
    pub(super) max_bytes: u64,
}

impl PageConverter {
    /// Converts a record with its text.
    pub(super) fn convert(
        &self,
        head: &MessageHead,
        block: &[u8],
        place: RecordPlace,
    ) -> Result<Converted, BadDocument> {
        let kind = head.value("warc-type").unwrap_or("").to_ascii_lowercase();
        let media = MediaType::parse(head.value("content-type"));
        match kind.as_str() {
            "response" if media.name == "application/http" => {}
            "conversion" => return self.page(head, block, &media, place),
            "response" => return Ok(passed_over(&format!("response of type {}", media.name))),
            kind => return Ok(passed_over(kind)),
        }
        let http =
            MessageHead::parse(block).filter(|http| http.head.first_line.starts_with("HTTP/"));
        let Some(ParsedHead { head: http, length }) = http else {
            return Err(BadDocument::new("it has no head of an HTTP response"));
        };
        let status = http.first_line.split_ascii_whitespace().nth(1);
        if status != Some("200") {
            let status = status.unwrap_or("none");
            return Ok(passed_over(&format!("response with status {status}")));
        }
        let media = MediaType::parse(http.value("content-type"));
        if is_html(&media).is_none() {
            return Ok(passed_over(&media.name));
        }
        let body = block.get(length..).unwrap_or(&[]);
        let is_cut = head.value("warc-truncated").is_some();
        let decoded =
            body::decode(&http, body, is_cut, self.max_bytes).map_err(BadDocument::new)?;
        self.page(head, &decoded, &media, place)
    }

    /// Converts a page to its visible text. Plain text remains as it is.
    fn page(
        &self,
        head: &MessageHead,
        body: &[u8],
        media: &MediaType,
        place: RecordPlace,
    ) -> Result<Converted, BadDocument> {
        let Some(is_html) = is_html(media) else {
            return Ok(passed_over(&media.name));
        };
        let characters = charset::decode(body, media.charset.as_deref(), is_html);
        let text = match is_html {
            true => HtmlExtractor::CURRENT.text(&characters)?.into(),
            false => characters,
        };
        Ok(Converted::Line(self.line(head, &text, place)))
    }

    /// Returns the line with the fields that the options read.
    fn line(&self, head: &MessageHead, text: &str, place: RecordPlace) -> Vec<u8> {
        let mut json = vec![b'{'];
        let mut field = |name: &str, value: &str| {
            push_name(&mut json, name);
            push(&mut json, value);
        };
        if let Some(uri) = head.value("warc-target-uri") {
            // Older writers put it in angle brackets.
            let bare = uri.strip_prefix('<').and_then(|uri| uri.strip_suffix('>'));
            field("id", bare.unwrap_or(uri));
        }
        if let Some(id) = head.value("warc-record-id") {
            field("record_id", id);
        }
        let date = head.value("warc-date").map(whole_date);
        if let Some(date) = date.filter(|date| crate::parse_stamp(date).is_some()) {
            field("stamp", &date);
        }
        push_name(&mut json, "record");
        json.push(b'{');
        push_name(&mut json, "file");
        push(&mut json, &self.file);
        let within = Some(place.within).filter(|within| *within > 0);
        for (name, value) in [
            ("offset", Some(place.offset)),
            ("length", place.length),
            ("within", within),
        ] {
            if let Some(value) = value {
                push_name(&mut json, name);
                push(&mut json, &value);
            }
        }
        json.push(b'}');
        push_name(&mut json, "text");
        push(&mut json, text);
        json.extend_from_slice(b"}\n");
        json
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

fn passed_over(kind: &str) -> Converted {
    // A hostile file has names of any length.
    let shown: String = kind.chars().take(60).filter(|c| !c.is_control()).collect();
    Converted::PassedOver(match shown.is_empty() {
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
