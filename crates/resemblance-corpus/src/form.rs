//! Detects the format of a file by its first bytes and its name.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use super::bad_document::BadDocument;
use super::content::CONTENT_FIELDS;
use super::error::CorpusError;
use super::fields::{self, FieldPath};
use super::input::{self, Compression, Decoded};
use super::settings::{CorpusSettings, SourceKind};

/// The number of bytes that are examined in every file.
const START_BYTES: u64 = 64 << 10;

/// The number of bytes that are examined in a file that may be JSON Lines. They usually contain two
/// lines.
const LINES_START_BYTES: u64 = 1 << 20;

/// The length of the longest signature of a format.
const MAGIC_BYTES: u64 = 16;

/// The first bytes of an array of NumPy.
pub(crate) const NPY_MAGIC: &[u8] = b"\x93NUMPY";

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

const INCLUDE: &str = "--include selects the files of a folder";

pub(crate) const AS_FILES: &str = "--as files reads each file as one text";

/// Examines a file of a folder.
pub(crate) fn look_into(
    file: Box<dyn Read + Send>,
    path: &Path,
    settings: &CorpusSettings,
) -> Result<Result<SourceKind, BadDocument>, CorpusError> {
    if named_kind(path) == Some(SourceKind::Warc)
        && settings.kind.is_none_or(|kind| kind == SourceKind::Warc)
    {
        // Frames of Zstandard may need a dictionary, which its reader finds.
        return Ok(readable(SourceKind::Warc));
    }
    let (compression, mut input) = input::decode(file, path, settings)?;
    let is_compressed = compression != Compression::None;
    let start =
        FileStart::read(&mut input).map_err(|e| CorpusError::read(path, is_compressed, &e))?;
    Ok(start.kind(path, settings, true))
}

/// The first bytes of a file, after decompression.
pub(crate) struct FileStart {
    pub(crate) bytes: Vec<u8>,
    /// True if the file has no other bytes.
    pub(crate) is_whole: bool,
}

impl FileStart {
    /// Reads the bytes that are needed to identify a file's format.
    pub(crate) fn read(input: &mut impl Read) -> io::Result<Self> {
        let mut start = Self {
            bytes: Vec::new(),
            is_whole: false,
        };
        start.read_up_to(input, START_BYTES)?;
        if without_mark(&start.bytes)
            .trim_ascii_start()
            .starts_with(b"{")
        {
            start.read_up_to(input, LINES_START_BYTES)?;
        }
        Ok(start)
    }

    /// Returns the bytes that the next read of a file provides, without waiting for more.
    pub(crate) fn buffered(input: &mut Decoded) -> io::Result<Self> {
        Ok(Self {
            bytes: input.fill_buf()?.to_vec(),
            is_whole: false,
        })
    }

    fn read_up_to(&mut self, input: &mut impl Read, length: u64) -> io::Result<()> {
        let wanted = length.saturating_sub(self.bytes.len() as u64);
        let found = input.take(wanted).read_to_end(&mut self.bytes)?;
        self.is_whole = (found as u64) < wanted;
        Ok(())
    }

    /// Returns the format of the file. With `may_be_text`, for a file of a folder, it is one text
    /// unless it is JSON Lines. A file that is named directly is JSON Lines.
    pub(crate) fn kind(
        &self,
        name: &Path,
        settings: &CorpusSettings,
        may_be_text: bool,
    ) -> Result<SourceKind, BadDocument> {
        if let Some(kind) = content_format(&self.bytes) {
            return match settings.kind {
                Some(other) if other != kind => Err(BadDocument::new(format!(
                    "{}, expected {} because of --as",
                    kind.name(),
                    other.name()
                ))),
                _ => readable(kind),
            };
        }
        // A file with only the name of a database is not a database.
        let is_detected =
            |kind: &SourceKind| !matches!(kind, SourceKind::Lines | SourceKind::Sqlite);
        let of_table = named_kind(name).filter(is_detected);
        let reported = settings.kind.or(of_table);
        if let Some(kind) = reported.filter(|kind| kind.needs_file()) {
            return match self.bytes.is_empty() && self.is_whole {
                true => Err(empty(kind)),
                false => readable(kind),
            };
        }
        if let Some(bad) = wide_characters(&self.bytes).or_else(|| binary(&self.bytes, name)) {
            return Err(bad);
        }
        if reported.is_none_or(|kind| kind == SourceKind::Lines)
            && ends_lines_with_returns(&self.bytes)
        {
            return Err(carriage_returns());
        }
        if let Some(kind) = reported {
            return Ok(kind);
        }
        if let Some(bad) = refused_name(name) {
            return Err(bad.with_advice(AS_FILES));
        }
        let is_lines_name = named_kind(name) == Some(SourceKind::Lines);
        if is_array(&self.bytes, is_lines_name || is_json_name(name)) {
            return Err(json_array());
        }
        if !may_be_text || is_lines_name || self.looks_like_lines(settings) {
            return Ok(SourceKind::Lines);
        }
        match memchr::memchr(0, &self.bytes) {
            Some(place) => Err(BadDocument::new(format!(
                "a zero byte at {place}, expected JSON Lines, a table or text in UTF-8"
            ))
            .with_advice(INCLUDE)
            .with_advice(AS_FILES)),
            None => Ok(SourceKind::Text),
        }
    }

    /// Returns true if the first two nonblank lines are JSON objects, or if there is only one, an
    /// object with the field of the text.
    fn looks_like_lines(&self, settings: &CorpusSettings) -> bool {
        let bytes = without_mark(&self.bytes);
        let mut objects = 0;
        let mut has_text = false;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let is_cut = !line.ends_with(b"\n") && !self.is_whole;
            if is_cut {
                // If a line exceeds the examined bytes, its beginning decides.
                return objects == 1 || begins_object(line);
            }
            let Some(found) = text_fields_found(line, settings) else {
                return false;
            };
            has_text |= found;
            objects += 1;
            if objects == 2 {
                return true;
            }
        }
        objects == 1 && has_text
    }
}

/// Returns the format of a file argument if its name or its first bytes identify it.
pub(crate) fn of_argument(path: &Path, settings: &CorpusSettings) -> SourceKind {
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let file = is_file.then(|| File::open(path).ok()).flatten();
    // An unreadable file is reported when it is read.
    let content = file.and_then(|file| mark(file).ok()).flatten();
    match of_named(path, content, settings) {
        SourceKind::Lines if is_file => {
            compressed_kind(path, settings).unwrap_or(SourceKind::Lines)
        }
        kind => kind,
    }
}

/// Returns the format of a compressed file whose name identifies none, if it is WARC or NumPy.
fn compressed_kind(path: &Path, settings: &CorpusSettings) -> Option<SourceKind> {
    if settings.kind.is_some() || named_kind(path).is_some() {
        return None;
    }
    let file = File::open(path).ok()?;
    let (_, decoded) = input::decode(Box::new(file), path, settings).ok()?;
    let content = mark(decoded).ok()?;
    content.filter(|kind| matches!(kind, SourceKind::Warc | SourceKind::Npy))
}

/// Returns the format of a file that is named directly, by its content and its name.
pub(crate) fn of_named(
    name: &Path,
    content: Option<SourceKind>,
    settings: &CorpusSettings,
) -> SourceKind {
    let kind = settings.kind.or(content).or_else(|| named_kind(name));
    kind.unwrap_or(SourceKind::Lines)
}

/// Returns the format whose signature is at the beginning, if there is one.
pub(crate) fn mark(input: impl Read) -> io::Result<Option<SourceKind>> {
    let mut start = Vec::new();
    input.take(MAGIC_BYTES).read_to_end(&mut start)?;
    Ok(content_format(&start))
}

/// Returns the format that the first bytes identify.
fn content_format(bytes: &[u8]) -> Option<SourceKind> {
    const FORMATS: [(&[u8], SourceKind); 5] = [
        (b"PAR1", SourceKind::Parquet),
        (b"ARROW1", SourceKind::Arrow),
        (b"SQLite format 3\0", SourceKind::Sqlite),
        (b"WARC/1.", SourceKind::Warc),
        (NPY_MAGIC, SourceKind::Npy),
    ];
    let reported = FORMATS.iter().find(|(magic, _)| bytes.starts_with(magic));
    reported.map(|(_, kind)| *kind)
}

/// Returns the format that a file name's extension implies.
pub fn named_kind(name: &Path) -> Option<SourceKind> {
    let name = plain_name(name);
    let (_, end) = name.rsplit_once('.')?;
    match end {
        "jsonl" | "ndjson" | "jl" => Some(SourceKind::Lines),
        "csv" => Some(SourceKind::Csv),
        "tsv" | "tab" => Some(SourceKind::Tsv),
        "parquet" | "parq" | "pq" => Some(SourceKind::Parquet),
        "arrow" | "arrows" | "feather" | "ipc" => Some(SourceKind::Arrow),
        "sqlite" | "sqlite3" | "db" => Some(SourceKind::Sqlite),
        "warc" | "wet" => Some(SourceKind::Warc),
        "npy" => Some(SourceKind::Npy),
        _ => None,
    }
}

/// Returns true if a file name's extension, apart from that of a compression, is `.json`.
pub fn is_json_name(name: &Path) -> bool {
    plain_name(name).ends_with(".json")
}

/// Returns true if a file of a folder that is read as one text has a JSON object, by its name and its
/// first byte.
pub(crate) fn is_object_file(path: &Path) -> bool {
    let starts_object = || {
        let mut start = Vec::new();
        let file = File::open(path).ok()?;
        file.take(MAGIC_BYTES).read_to_end(&mut start).ok()?;
        Some(without_mark(&start).trim_ascii_start().starts_with(b"{"))
    };
    is_json_name(path) && starts_object() == Some(true)
}

/// Returns the feature that such files require, if it is not part of this build.
pub(crate) fn missing_feature(kind: SourceKind) -> Option<&'static str> {
    match kind {
        SourceKind::Parquet | SourceKind::Arrow if !cfg!(feature = "tables") => Some("tables"),
        SourceKind::Sqlite if !cfg!(feature = "sqlite") => Some("sqlite"),
        SourceKind::Warc if !cfg!(feature = "warc") => Some("warc"),
        _ => None,
    }
}

/// Creates the error for an empty table.
pub(crate) fn empty(kind: SourceKind) -> BadDocument {
    BadDocument::new(format!("an empty file, expected {}", kind.name()))
}

fn readable(kind: SourceKind) -> Result<SourceKind, BadDocument> {
    match missing_feature(kind) {
        Some(feature) => Err(BadDocument::requires(kind.name(), feature)),
        None => Ok(kind),
    }
}

/// Returns the bytes without a byte order mark at their beginning.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}

/// Creates the error for a line that is not an object, with a guess at its format.
pub(crate) fn not_an_object(line: &str) -> BadDocument {
    let trimmed = line.trim_ascii();
    if trimmed.starts_with('[') {
        return json_array();
    }
    let bad = BadDocument::new("not a JSON object");
    let separators = [('\t', "tab-separated values", "tsv"), (',', "CSV", "csv")];
    let is_short = trimmed.len() < 1000;
    // A sentence may have one comma; the names of two columns have no space beside theirs.
    let least = if trimmed.contains(' ') { 2 } else { 1 };
    let mut of_table = separators
        .iter()
        .filter(|(separator, ..)| is_short && trimmed.matches(*separator).count() >= least);
    match of_table.next() {
        _ if trimmed.starts_with('<') => {
            bad.with_advice(format!("it looks like XML or HTML: {AS_FILES}"))
        }
        Some((_, name, option)) => bad
            .with_advice(format!("it looks like {name}, which --as {option} reads"))
            .with_advice(AS_FILES),
        None => bad.with_advice(AS_FILES),
    }
}

fn json_array() -> BadDocument {
    BadDocument::new("a JSON array, expected one object per line")
        .with_advice("jq -c '.[]' FILE > FILE.jsonl converts it")
        .with_advice(AS_FILES)
}

/// Returns the lower-case name without the extension of the compression.
fn plain_name(name: &Path) -> String {
    let file_name = name.file_name().unwrap_or(name.as_os_str());
    let lower = PathBuf::from(file_name.to_string_lossy().to_lowercase());
    let plain = match Compression::from_name(&lower) {
        Compression::None => lower,
        _ => lower.with_extension(""),
    };
    plain.to_string_lossy().into_owned()
}

/// Returns true if a line is an object with a field of the text, the vector or what may replace them,
/// false if it is an object without such a field, and `None` if it is not an object.
fn text_fields_found(line: &[u8], settings: &CorpusSettings) -> Option<bool> {
    let json = std::str::from_utf8(line).ok()?;
    let paths = settings.text_fields.iter().chain([&settings.vector_field]);
    let names: Vec<_> = paths.map(FieldPath::name).chain(CONTENT_FIELDS).collect();
    let found = fields::find(json, &names).ok()?;
    Some(found.iter().any(Option::is_some))
}

/// Returns true if these bytes can be the beginning of an object.
fn begins_object(bytes: &[u8]) -> bool {
    let valid = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let found = serde_json::from_str::<serde::de::IgnoredAny>(valid);
    bytes.trim_ascii_start().starts_with(b"{") && found.is_err_and(|error| error.is_eof())
}

fn is_array(bytes: &[u8], is_json_name: bool) -> bool {
    let bytes = without_mark(bytes).trim_ascii_start();
    let Some(inner) = bytes.strip_prefix(b"[") else {
        return false;
    };
    let object = inner.trim_ascii_start().strip_prefix(b"{");
    is_json_name || object.is_some_and(|fields| fields.trim_ascii_start().starts_with(b"\""))
}

/// Detects UTF-16 and UTF-32, with or without a byte order mark.
fn wide_characters(bytes: &[u8]) -> Option<BadDocument> {
    let zeros = |offset: usize, step: usize| {
        let characters = bytes.iter().skip(offset).step_by(step).take(64);
        let (zeros, all) = characters.fold((0, 0), |(zeros, all), byte| {
            (zeros + usize::from(*byte == 0), all + 1)
        });
        all > 1 && zeros * 10 > all * 9
    };
    let name = match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => "UTF-32",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "UTF-16",
        _ if zeros(0, 2) != zeros(1, 2) => "UTF-16",
        _ => return None,
    };
    let advice = format!("iconv -f {name} -t UTF-8 FILE > FILE.utf8 converts it");
    Some(BadDocument::new(format!("{name}, expected UTF-8")).with_advice(advice))
}

/// Returns true if lines of JSON end with carriage returns alone, as those of CSV may.
fn ends_lines_with_returns(bytes: &[u8]) -> bool {
    memchr::memchr(b'\n', bytes).is_none() && memchr::memmem::find(bytes, b"}\r{").is_some()
}

/// Creates the error for lines that end with carriage returns alone, as old programs write them.
pub(crate) fn carriage_returns() -> BadDocument {
    BadDocument::new("lines that end with only CR, expected LF or CR LF")
        .with_advice("tr '\\r' '\\n' < FILE > NEW converts them")
}

/// Returns an error if the first bytes identify a binary format.
fn binary(bytes: &[u8], name: &Path) -> Option<BadDocument> {
    const FORMATS: [(&[u8], &str); 22] = [
        (b"FEA1", ".feather"),
        (b"Obj\x01", ".avro"),
        (b"ORC", ".orc"),
        (b"PK\x03\x04", ".zip"),
        (b"7z\xbc\xaf\x27\x1c", ".7z"),
        (b"Rar!\x1a\x07", ".rar"),
        (b"%PDF-", ".pdf"),
        (b"\x89PNG\r\n", ".png"),
        (b"\xff\xd8\xff", ".jpg"),
        (b"\x89HDF\r\n", ".h5"),
        (b"\x7fELF", ".elf"),
        (b"WARC/", ".warc"),
        (b"filedesc://", ".arc"),
        (b"PK\x05\x06", ".zip"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", ".doc"),
        (b"{\\rtf", ".rtf"),
        (b"%!PS", ".ps"),
        (b"GIF8", ".gif"),
        (b"ID3", ".mp3"),
        (b"\x04\x22\x4d\x18", ".lz4"),
        (b"\xff\x06\x00\x00sNaPpY", ".sz"),
        (b"\x1f\x9d", ".z"),
    ];
    let reported = FORMATS.iter().find(|(magic, _)| bytes.starts_with(magic));
    let is_tar = bytes.get(257..262) == Some(b"ustar".as_slice());
    let end = reported.map(|(_, end)| *end).or(is_tar.then_some(".tar"))?;
    // A spreadsheet is also a zip file.
    refused_name(name).or_else(|| refused_name(Path::new(end)))
}

/// Returns an error for names of formats other than text, with advice.
fn refused_name(name: &Path) -> Option<BadDocument> {
    let name = plain_name(name);
    let (_, end) = name.rsplit_once('.')?;
    let (format, advice) = match end {
        "psv" | "ssv" => (
            "a table",
            "--as csv reads it, with the separator that --separator sets",
        ),
        "feather" => (
            "Feather of version 1",
            "convert it to Parquet, for example with pandas or pyarrow",
        ),
        "avro" | "orc" => (
            "a table",
            "convert it to Parquet, for example with duckdb or pandas",
        ),
        "xlsx" | "xls" | "ods" => ("a spreadsheet", "save it as CSV"),
        "zip" | "tar" | "tgz" | "tbz" | "txz" | "tzst" | "7z" | "rar" => {
            ("an archive", "unpack it, and give the folder")
        }
        "warc" | "wat" | "arc" => (
            "an archive of web pages",
            "read its records, for example with the Python package warcio, and write the text of each as a \
             line of JSON",
        ),
        "lz4" | "sz" | "br" | "z" | "lzma" => (
            "compressed in an unsupported format",
            "unpack it, or compress it with gzip, Zstandard, bzip2 or xz",
        ),
        "pdf" | "ps" | "rtf" | "doc" | "docx" | "odt" | "epub" | "pptx" => (
            "a typeset document",
            "extract its text first, for example with pandoc or pdftotext",
        ),
        "npz" => (
            "an archive of arrays",
            "unpack it, and give the file of one array",
        ),
        "sqlite" | "sqlite3" | "db" | "h5" | "pkl" | "pickle" | "elf" | "exe" | "so" | "bin" => {
            ("binary", "a corpus is text")
        }
        "png" | "jpg" | "jpeg" | "gif" | "webp" | "mp3" | "mp4" | "wav" => {
            ("not text", "a corpus is text")
        }
        _ => return None,
    };
    let reason = format!("{format} (.{end}), expected JSON Lines, a table or text in UTF-8");
    let bad = BadDocument::new(reason).with_advice(advice);
    Some(bad.with_advice(INCLUDE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str, bytes: &[u8]) -> Result<SourceKind, String> {
        let start = FileStart::read(&mut &*bytes).unwrap();
        let settings = CorpusSettings::default();
        let kind = start.kind(Path::new(name), &settings, true);
        kind.map_err(|bad| bad.reason)
    }

    #[test]
    fn content_identifies_json_lines() {
        let two = b"\xef\xbb\xbf\n {\"text\": \"a\", \"url\": 1}\n\n{\"text\": \"b\"}\n";
        for name in ["a", "a.json", "a.ndjson", "a.txt", "a.json.gz"] {
            assert_eq!(kind(name, two), Ok(SourceKind::Lines), "{name}");
        }
        let lines: [&[u8]; 3] = [
            b"{\"text\": \"a\"}",
            b"{\"body\": \"a\"}\n{\"body\": \"b\"}\n",
            b"{\"text\": \"a\"}\n{\"text\"",
        ];
        assert_eq!(kind("a", lines[0]), Ok(SourceKind::Lines));
        assert_eq!(kind("a", lines[1]), Ok(SourceKind::Lines));
        assert_eq!(kind("a", lines[2]), Ok(SourceKind::Text));
        assert_eq!(kind("a.jsonl", lines[2]), Ok(SourceKind::Lines));
        for text in [
            "",
            "words",
            "{\"a\": 1}",
            "{\n  \"text\": \"a\"\n}\n",
            "[1] see there",
        ] {
            assert_eq!(kind("a", text.as_bytes()), Ok(SourceKind::Text), "{text}");
        }
        let long = format!("{{\"text\": \"{}\"}}", "x".repeat(3 << 20));
        assert_eq!(kind("a", long.as_bytes()), Ok(SourceKind::Lines));
    }

    #[test]
    fn non_text_files_are_refused_by_name() {
        let utf16: Vec<u8> = "{\"id\": 1}"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        for (name, bytes, reported) in [
            ("a.json", &b" [\n{\"text\": \"a\"}]"[..], "a JSON array"),
            ("a", b"[{\"text\": \"a\"}]", "a JSON array"),
            ("a.orc.gz", b"ORC", "a table (.orc)"),
            ("a", b"FEA1\x15", "Feather of version 1 (.feather)"),
            ("a.txt", b"\xff\xfea\0b\0", "UTF-16"),
            ("a.txt", &utf16, "UTF-16"),
            ("a.docx", b"", "a typeset document (.docx)"),
            (
                "a",
                b"WARC/0.18\r\nWARC-Type: x",
                "an archive of web pages (.warc)",
            ),
            (
                "a.txt",
                b"filedesc://a.arc 0.0.0.0",
                "an archive of web pages (.arc)",
            ),
            (
                "a.arc.gz",
                b"filedesc://a.arc",
                "an archive of web pages (.arc)",
            ),
            ("a.xlsx", b"PK\x03\x04", "a spreadsheet (.xlsx)"),
            ("a", b"PK\x05\x06", "an archive (.zip)"),
            ("a.dat", b"%PDF-1.7", "a typeset document (.pdf)"),
            ("a", b"Obj\x01", "a table (.avro)"),
            ("a.npz", b"PK\x03\x04", "an archive of arrays (.npz)"),
            ("a", b"text and \0", "a zero byte at 9"),
        ] {
            let found = kind(name, bytes).unwrap_err();
            assert!(found.starts_with(reported), "{name}: {found}");
        }
    }
}
