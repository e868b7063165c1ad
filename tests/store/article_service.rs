//! The example web service, asked over loopback.

#[allow(dead_code, reason = "what is not asked of it here")]
#[path = "../../examples/articles/main.rs"]
mod example;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

const TEXT: &str = "It was the best of times, it was the worst of times, it was the age of wisdom, \
                    it was the age of foolishness, it was the epoch of belief";

#[test]
fn articles_are_stored_found_forgotten_and_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("articles.rsm");
    let store = Arc::new(example::article_store::Articles::open(&path).unwrap());
    let server = Arc::new(tiny_http::Server::http("127.0.0.1:0").unwrap());
    let address = server.server_addr().to_ip().unwrap();
    let served = {
        let (server, store) = (Arc::clone(&server), Arc::clone(&store));
        std::thread::spawn(move || example::serve(&server, &store))
    };
    let post = |path: &str, body: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n");
        write!(stream, "{head}Connection: close\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    };
    let taken = post("/articles?address=a/1&title=A+tale%21", TEXT);
    assert_eq!(taken, (201, "stored\n".into()));
    let again = TEXT.replace("belief", "BELIEF …");
    let refused = post("/articles?address=a/2&title=Again", &again);
    assert_eq!(refused.0, 409);
    assert!(refused.1.ends_with("\ta/1\n"), "{refused:?}");
    let other =
        "Call me Ishmael. Some years ago, never mind how long precisely, having little money";
    assert_eq!(post("/articles?address=m/1&title=Whale", other).0, 201);

    let similar = post("/similar", &again);
    let lines: Vec<&str> = similar.1.lines().collect();
    assert!(lines[0].ends_with("\ta/1\tA tale!"), "{similar:?}");
    assert!(lines[1].starts_with("0.00\tm/1\t"), "{similar:?}");
    let copy = folder.path().join("copy.rsm");
    let copied = post(&format!("/backup?path={}", copy.display()), "");
    assert_eq!(copied, (200, "2 copied\n".into()));
    assert_eq!(post("/forget?before=9999999999", "").1, "2 forgotten\n");
    assert_eq!(
        (store.len().unwrap(), post("/similar", TEXT).1.as_str()),
        (0, "")
    );
    assert_eq!(
        resemblance::Store::open(&copy)
            .unwrap()
            .snapshot()
            .unwrap()
            .len(),
        2
    );

    for _ in 0..8 {
        server.unblock();
    }
    served.join().unwrap();
}
