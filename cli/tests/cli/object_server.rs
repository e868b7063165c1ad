//! A server of objects on this machine, as S3 and as plain files. It can be told to misbehave.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Keys that a list gives at a time.
const PAGE: usize = 3;

/// The objects of the server, and its behaviour.
#[derive(Default)]
pub struct Behaviour {
    /// By `/bucket/key`.
    pub objects: BTreeMap<String, Vec<u8>>,
    /// The contents of an object after a number of requests for it.
    pub changes: BTreeMap<String, (usize, Vec<u8>)>,
    /// The number of answers that end after `break_after` bytes.
    pub breaks: usize,
    pub break_after: usize,
    pub has_no_tags: bool,
    pub has_no_times: bool,
    pub has_no_ranges: bool,
    pub has_no_lengths: bool,
    /// The first line of each request, with its range behind it.
    pub requests: Vec<String>,
}

/// A server, until the test ends.
#[derive(Clone)]
pub struct ObjectServer {
    pub url: String,
    behaviour: Arc<Mutex<Behaviour>>,
}

impl ObjectServer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let behaviour = Arc::new(Mutex::new(Behaviour::default()));
        let server = Self { url, behaviour };
        let serving = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let server = serving.clone();
                std::thread::spawn(move || server.answer(&stream.unwrap()));
            }
        });
        server
    }

    pub fn set(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.behaviour.lock().unwrap());
    }

    pub fn put(&self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.set(|behaviour| drop(behaviour.objects.insert(path.into(), bytes.into())));
    }

    /// The requests so far, which are forgotten.
    pub fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.behaviour.lock().unwrap().requests)
    }

    fn answer(&self, mut stream: &TcpStream) {
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        let Some(first) = lines.next() else {
            return;
        };
        let headers: BTreeMap<String, String> = lines
            .take_while(|line| !line.is_empty())
            .filter_map(|line| {
                let (name, value) = line.split_once(": ")?;
                Some((name.to_lowercase(), value.to_owned()))
            })
            .collect();
        let answer = self.behaviour.lock().unwrap().answer(&first, &headers);
        // The client may have seen enough.
        let _ = stream.write_all(&answer);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    }
}

impl Behaviour {
    fn answer(&mut self, first: &str, headers: &BTreeMap<String, String>) -> Vec<u8> {
        let range = headers.get("range").map_or("", String::as_str);
        self.requests.push(format!("{first} {range}"));
        let target = first.split(' ').nth(1).unwrap();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = decoded(path);
        if query.contains("list-type=2") {
            return response("200 OK", &[], self.list(&path, query).as_bytes());
        }
        if path.contains("/forbidden/") {
            let said = b"<Error><Code>AccessDenied</Code>\n<Message>No; never</Message></Error>";
            return response("403 Forbidden", &[], said);
        }
        if let Some((left, changed)) = self.changes.get_mut(&path) {
            if *left == 0 {
                self.objects.insert(path.clone(), changed.clone());
            } else {
                *left -= 1;
            }
        }
        match self.objects.get(&path).cloned() {
            Some(bytes) => self.object(&bytes, headers),
            None => response(
                "404 Not Found",
                &[],
                b"<Error><Code>NoSuchKey</Code></Error>",
            ),
        }
    }

    fn object(&mut self, bytes: &[u8], headers: &BTreeMap<String, String>) -> Vec<u8> {
        let tag = tag(bytes);
        if headers.get("if-match").is_some_and(|wanted| *wanted != tag) {
            return response("412 Precondition Failed", &[], b"");
        }
        let mut with = Vec::new();
        if !self.has_no_tags {
            with.push(format!("ETag: {tag}"));
        }
        if !self.has_no_times {
            with.push(format!("Last-Modified: {}", time(bytes)));
        }
        let range = headers.get("range").filter(|_| !self.has_no_ranges);
        let (status, body) = match range.and_then(|range| range.strip_prefix("bytes=")) {
            Some(range) => {
                let (start, end) = range.split_once('-').unwrap();
                let start: usize = start.parse().unwrap();
                let end = end.parse::<usize>().map_or(bytes.len(), |end| end + 1);
                let end = end.min(bytes.len());
                let all = bytes.len();
                with.push(format!("Content-Range: bytes {start}-{}/{all}", end - 1));
                ("206 Partial Content", &bytes[start..end])
            }
            None => ("200 OK", bytes),
        };
        let mut whole = response(status, &with, body);
        if self.has_no_lengths {
            let text = format!("Content-Length: {}\r\n", body.len());
            let head =
                String::from_utf8_lossy(&whole[..whole.len() - body.len()]).replace(&text, "");
            return [head.as_bytes(), body].concat();
        }
        if self.breaks > 0 && body.len() > self.break_after {
            self.breaks -= 1;
            whole.truncate(whole.len() - body.len() + self.break_after);
        }
        whole
    }

    /// As `ListObjectsV2` of S3 gives it.
    fn list(&self, bucket: &str, query: &str) -> String {
        let parameters: BTreeMap<&str, String> = query
            .split('&')
            .filter_map(|part| part.split_once('='))
            .map(|(name, value)| (name, decoded(value)))
            .collect();
        let value = |name: &str| parameters.get(name).map_or("", String::as_str);
        let start = format!("{}/", bucket.trim_end_matches('/'));
        let keys = self.objects.iter().filter_map(|(path, bytes)| {
            let key = path.strip_prefix(&start)?;
            let rest = key.strip_prefix(value("prefix"))?;
            let is_flat = value("delimiter").is_empty() || !rest.contains('/');
            (is_flat && key > value("continuation-token")).then_some((key, bytes))
        });
        let keys: Vec<_> = keys.collect();
        let mut xml = String::from("<ListBucketResult>");
        for (key, bytes) in keys.iter().take(PAGE) {
            let (size, tag) = (bytes.len(), tag(bytes).replace('"', "&quot;"));
            let _ = write!(
                xml,
                "<Contents><Key>{key}</Key><Size>{size}</Size><ETag>{tag}</ETag>\
                 <LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            );
        }
        if let Some((last, _)) = keys.get(PAGE).and(keys.get(PAGE - 1)) {
            let _ = write!(xml, "<NextContinuationToken>{last}</NextContinuationToken>");
        }
        xml + "</ListBucketResult>"
    }
}

fn response(status: &str, headers: &[String], body: &[u8]) -> Vec<u8> {
    let mut head = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n",
        body.len()
    );
    for header in headers {
        let _ = write!(head, "{header}\r\n");
    }
    [head.as_bytes(), b"\r\n", body].concat()
}

fn tag(bytes: &[u8]) -> String {
    format!("\"{:08x}\"", crc32fast::hash(bytes))
}

/// Returns one of 3,600 times, which depends on the content.
fn time(bytes: &[u8]) -> String {
    let second = crc32fast::hash(bytes) % 3_600;
    format!(
        "Thu, 01 Jan 2026 00:{:02}:{:02} GMT",
        second / 60,
        second % 60
    )
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                let digits = std::str::from_utf8(&digits).unwrap();
                u8::from_str_radix(digits, 16).unwrap()
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).unwrap()
}
