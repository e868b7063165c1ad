//! As much of HTTP as a crawl over loopback needs. On the web, use a library.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Answers requests on a free port of the loopback interface until the process ends, with one
/// thread for each connection.
pub(crate) fn serve(
    answer: impl Fn(&str) -> Response + Send + Sync + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            // A client that disconnects sends no further requests.
            std::thread::spawn(move || serve_one(stream, &*answer));
        }
    });
    Ok(address)
}

fn serve_one(stream: TcpStream, answer: &impl Fn(&str) -> Response) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(head) = read_head(&mut stream)? {
        let path = head[0].split(' ').nth(1).unwrap_or_default();
        let host = field(&head, "host").unwrap_or_default();
        let Response { status, body } = answer(&format!("http://{host}{path}"));
        let length = body.len();
        let reply = format!("HTTP/1.1 {status} -\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.get_mut().write_all(reply.as_bytes())?;
    }
    Ok(())
}

/// A connection to the server, which plays the role of every host.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(server: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        let stream = BufReader::new(stream);
        Ok(Self { stream })
    }

    pub(crate) fn get(&mut self, url: &str) -> io::Result<Response> {
        let address = url.strip_prefix("http://").unwrap_or(url);
        let (host, path) = address.split_once('/').unwrap_or((address, ""));
        let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        self.stream.get_mut().write_all(request.as_bytes())?;
        let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("{url}: {what}"));
        let head = read_head(&mut self.stream)?.ok_or_else(|| bad("no answer"))?;
        let status = head[0].split(' ').nth(1).and_then(|text| text.parse().ok());
        let length = field(&head, "content-length").and_then(|text| text.parse().ok());
        let mut body = vec![0; length.ok_or_else(|| bad("an answer without a length"))?];
        self.stream.read_exact(&mut body)?;
        Ok(Response {
            status: status.ok_or_else(|| bad("an answer without a status"))?,
            body: String::from_utf8(body).map_err(|_| bad("an answer that is not UTF-8"))?,
        })
    }
}

/// The lines before the body, at least one; `None` where the connection has ended.
fn read_head(stream: &mut impl BufRead) -> io::Result<Option<Vec<String>>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim_end() {
            "" if !lines.is_empty() => return Ok(Some(lines)),
            "" => {}
            line => lines.push(line.to_owned()),
        }
    }
}

fn field<'a>(head: &'a [String], name: &str) -> Option<&'a str> {
    let mut fields = head.iter().filter_map(|line| line.split_once(':'));
    let found = fields.find(|(found, _)| found.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim())
}
