//! The heads of records and of HTTP messages: a line, then named fields.

use memchr::memmem;

/// The beginning of a record: its version without the last digit.
pub(super) const VERSION: &[u8] = b"WARC/1.";

/// The number of bytes that show whether a record begins.
pub(super) const START_BYTES: usize = VERSION.len() + 3 + FIRST_FIELDS[1].len();

/// The beginnings of the first field of a record that follows damaged ones.
const FIRST_FIELDS: [&[u8]; 2] = [b"warc-", b"content-"];

/// Returns true if the bytes begin with the first line of a record.
pub(super) fn is_first_line(bytes: &[u8]) -> bool {
    after_first_line(bytes).is_some()
}

/// Returns the place of the first record that begins in these bytes.
pub(super) fn find_start(bytes: &[u8]) -> Option<usize> {
    let mut places = memmem::find_iter(bytes, VERSION);
    places.find(|place| bytes.get(*place..).is_some_and(is_start))
}

/// Returns true if the bytes begin with the first line of a record and the name of a field.
fn is_start(bytes: &[u8]) -> bool {
    let begins = |fields: &[u8], name: &[u8]| {
        let start = fields.get(..name.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    after_first_line(bytes).is_some_and(|fields| FIRST_FIELDS.iter().any(|it| begins(fields, it)))
}

fn after_first_line(bytes: &[u8]) -> Option<&[u8]> {
    let (digit, rest) = bytes.strip_prefix(VERSION)?.split_first()?;
    let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
    rest.strip_prefix(b"\n").filter(|_| digit.is_ascii_digit())
}

/// The first line and the named fields before an empty line.
#[derive(Debug, Default)]
pub(super) struct MessageHead {
    pub(super) first_line: String,
    /// Names and values.
    fields: Vec<(String, String)>,
    /// The length in bytes, including the empty line.
    pub(super) length: usize,
}

impl MessageHead {
    /// Parses the head of a message, or returns `None` if the empty line at its end is missing.
    pub(super) fn parse(message: &[u8]) -> Option<Self> {
        let mut head = Self::default();
        for whole in message.split_inclusive(|byte| *byte == b'\n') {
            head.length += whole.len();
            let line = whole.strip_suffix(b"\n")?;
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                return Some(head);
            }
            let text = String::from_utf8_lossy(line);
            match text.split_once(':') {
                _ if head.length == whole.len() => head.first_line = text.into_owned(),
                // A line that begins with white space continues the field before it.
                _ if text.starts_with([' ', '\t']) => {
                    if let Some((_, value)) = head.fields.last_mut() {
                        *value += " ";
                        *value += text.trim();
                    }
                }
                Some((name, value)) => {
                    let field = (name.trim().to_owned(), value.trim().to_owned());
                    head.fields.push(field);
                }
                // A line that is no field is passed over, as browsers do.
                None => {}
            }
        }
        None
    }

    /// Returns the value of the first field with this name.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.values(name).next()
    }

    /// Returns the values of all fields with this name.
    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        let fields = self.fields.iter();
        let named = fields.filter(move |field| field.0.eq_ignore_ascii_case(name));
        named.map(|field| field.1.as_str())
    }

    /// Returns the target URI, which older writers put in angle brackets.
    pub(super) fn target_uri(&self) -> Option<&str> {
        let uri = self.value("warc-target-uri")?;
        let bare = uri.strip_prefix('<').and_then(|uri| uri.strip_suffix('>'));
        Some(bare.unwrap_or(uri))
    }

    /// Returns the lower-case codings in the order in which they were applied.
    pub(super) fn codings(&self, name: &str) -> Vec<String> {
        let listed = self.values(name).flat_map(|value| value.split(','));
        let lower = listed.map(|coding| coding.trim().to_ascii_lowercase());
        lower.filter(|coding| !coding.is_empty()).collect()
    }
}

/// A media type with its charset.
#[derive(Debug, Default)]
pub(super) struct MediaType {
    /// In lower case, without parameters. Empty if it is not declared.
    pub(super) name: String,
    pub(super) charset: Option<String>,
}

impl MediaType {
    pub(super) fn parse(value: Option<&str>) -> Self {
        let mut parts = value.unwrap_or("").split(';');
        let name = parts.next().unwrap_or("").trim().to_ascii_lowercase();
        let charset = parts.find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            let is_charset = name.trim().eq_ignore_ascii_case("charset");
            is_charset.then(|| value.trim().trim_matches(['"', '\'']).to_owned())
        });
        Self { name, charset }
    }
}
