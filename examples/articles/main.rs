//! A small web service that keeps articles and refuses near-duplicates.
//!
//! ```text
//! cargo run --release --example articles -- articles.rsm 127.0.0.1:8080
//! curl -d 'It was the best of times, …' 'http://127.0.0.1:8080/articles?address=a/1&title=Tale'
//! curl -d 'It was the best of times; …' 'http://127.0.0.1:8080/similar'
//! curl -X POST 'http://127.0.0.1:8080/forget?before=1700000000'
//! curl -X POST 'http://127.0.0.1:8080/backup?path=copy.rsm'
//! ```
//!
//! `article_store.rs` is where the store is used; this file is the web.
#![allow(clippy::print_stdout, reason = "it says where it listens")]

pub(crate) mod article_store;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tiny_http::{Method, Request, Response, Server};

use self::article_store::{Added, Articles};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const THREADS: usize = 8;
const MAX_TEXT_BYTES: u64 = 1 << 20;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), address) = (arguments.next(), arguments.next()) else {
        return Err("usage: cargo run --release --example articles -- STORE [ADDRESS]".into());
    };
    let articles = Arc::new(Articles::open(Path::new(&path))?);
    let server = Server::http(address.as_deref().unwrap_or("127.0.0.1:8080"))?;
    println!("{} articles, at {}", articles.len()?, server.server_addr());
    serve(&Arc::new(server), &articles);
    Ok(())
}

/// Serves until the server is unblocked. Threads share a sync when their articles come together.
pub(crate) fn serve(server: &Arc<Server>, articles: &Arc<Articles>) {
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Ok(mut request) = server.recv() {
                    let (status, text) = match answer(&mut request, articles) {
                        Ok(answer) => answer,
                        Err(error) => (500, format!("{error}\n")),
                    };
                    // Who asked may have gone.
                    let _ = request.respond(Response::from_string(text).with_status_code(status));
                }
            });
        }
    });
}

fn answer(request: &mut Request, articles: &Articles) -> Result<(u16, String)> {
    let url = request.url().to_owned();
    let (path, query) = url.split_once('?').unwrap_or((&url, ""));
    let field = |name: &str| {
        let mut fields = query.split('&').filter_map(|field| field.split_once('='));
        let field = fields.find(|(field, _)| *field == name);
        field.map_or(String::new(), |(_, value)| decoded(value))
    };
    if *request.method() != Method::Post {
        return Ok((200, format!("{} articles\n", articles.len()?)));
    }
    let mut text = String::new();
    let mut body = request.as_reader().take(MAX_TEXT_BYTES);
    body.read_to_string(&mut text)?;
    Ok(match path {
        "/articles" => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
            match articles.add(&field("address"), &field("title"), &text, now)? {
                Added::Stored => (201, "stored\n".into()),
                Added::Refused(address, similarity) => {
                    (409, format!("{similarity:.2}\t{address}\n"))
                }
            }
        }
        "/similar" => {
            let similar = articles.top_ten(&text)?.into_iter();
            let line = |s: article_store::Similar| {
                format!("{:.2}\t{}\t{}\n", s.similarity, s.address, s.title)
            };
            (200, similar.map(line).collect())
        }
        "/forget" => {
            let forgotten = articles.forget_before(field("before").parse()?)?;
            (200, format!("{forgotten} forgotten\n"))
        }
        "/backup" => {
            let copied = articles.backup(Path::new(&field("path")))?;
            (200, format!("{copied} copied\n"))
        }
        _ => (404, "no such thing\n".into()),
    })
}

/// Decodes `%20` and the like, and `+`.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let coded = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        (rest, _) = match (byte, coded) {
            (b'%', Some(coded)) => (after.get(2..).unwrap_or_default(), bytes.push(coded)),
            (b'+', _) => (after, bytes.push(b' ')),
            _ => (after, bytes.push(byte)),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
