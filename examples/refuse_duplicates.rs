//! A web service that refuses articles like those it has, with axum.
//!
//! `cargo run -p resemblance-examples --features axum --bin refuse_duplicates` prints:
//!
//! ```text
//! /ap-1: 201 Created, stored
//! /blog-7: 409 Conflict, like ap-1, similarity 0.906
//! /ap-1: 200 OK, known
//! ```
//!
//! With an address, such as `127.0.0.1:8080`, it serves.

use axum::extract::{Path, State};
use axum::{Router, http::Request, http::StatusCode, routing::put};
use resemblance::{MinHash, Novelty, Schema, Store, Text};
use tower::ServiceExt;

const BRIDGE: &str = "The council set aside two million on Monday to repair the old bridge.";
const COPY: &str = "The council set aside two million on Monday to repair the old bridge. (AP)";

type Answer = (StatusCode, String);

/// Requests that arrive together share a transaction. Each is durable before it is answered.
async fn submit(store: &Store, key: &str, text: &str) -> resemblance::Result<Answer> {
    let signature = store.sketch_text(text)?;
    let ticket = store.queue().insert_if_new(key, &signature)?;
    Ok(match ticket.await? {
        Novelty::New { .. } => (StatusCode::CREATED, "stored".into()),
        Novelty::NearDuplicate(found) => (StatusCode::CONFLICT, format!("like {found}")),
        _ => (StatusCode::OK, "known".into()),
    })
}

async fn answer(State(store): State<Store>, Path(key): Path<String>, text: String) -> Answer {
    let answer = submit(&store, &key, &text).await;
    answer.unwrap_or_else(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let minhash = MinHash::new(128).threshold(0.8);
    let schema = Schema::builder()
        .text(Text::words(5))
        .minhash(minhash)
        .build()?;
    let store = Store::in_memory(schema)?; // on disk: Store::open_or_create("articles.rsm", schema)?
    let service = Router::new().route("/{key}", put(answer)).with_state(store);
    if let Some(address) = std::env::args().nth(1) {
        axum::serve(tokio::net::TcpListener::bind(address).await?, service).await?;
        return Ok(());
    }
    for (path, text) in [("/ap-1", BRIDGE), ("/blog-7", COPY), ("/ap-1", BRIDGE)] {
        let request = Request::put(path).body(text.to_owned())?;
        let response = service.clone().oneshot(request).await?;
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await?;
        println!("{path}: {status}, {}", String::from_utf8_lossy(&body));
    }
    Ok(())
}
