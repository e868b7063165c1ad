//! Requests to servers. Futures do not leave this file: they run on a separate thread, and callers
//! wait.

use std::future::{Future, pending};
use std::ops::Range;
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{
    ClientConfigKey, ClientOptions, Error, GetOptions, GetRange, GetResult, ObjectMeta,
    ObjectStore, RetryConfig,
};
use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc as pieces;

/// The time after which a server that sends nothing is asked again.
const SILENCE: &str = "30 s";

/// No limit for a whole transfer: how long one takes depends on who reads it.
const WHOLE_TRANSFER: &str = "1000 days";

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Pieces of a transfer that wait for their reader, of some 16 KiB each.
const PIECES_AHEAD: usize = 64;

/// Why a request was not answered as it should be.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Refusal {
    /// There is no object of this name.
    Missing,
    /// It is not the version that was asked for.
    Changed,
    /// The server sends whole files alone.
    NoRanges,
    /// Everything else.
    Other(String),
}

/// The length and the version of an object, as its server reports them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ObjectVersion {
    pub(super) bytes: u64,
    pub(super) tag: Option<String>,
    /// Seconds since 1970; `None` if the server does not report it.
    pub(super) modified: Option<i64>,
}

impl ObjectVersion {
    fn of(meta: &ObjectMeta) -> Self {
        Self {
            bytes: meta.size,
            tag: meta.e_tag.clone(),
            modified: Some(meta.last_modified.timestamp()).filter(|seconds| *seconds != 0),
        }
    }

    /// Returns false if the other object is of another version, as far as servers report versions.
    fn may_be(&self, other: &Self) -> bool {
        let are_same = match (&self.tag, &other.tag) {
            (Some(tag), Some(other)) => tag == other,
            _ => self.modified == other.modified,
        };
        are_same && self.bytes == other.bytes
    }
}

/// A bucket, or the one file of a web server.
#[derive(Clone, Debug)]
pub(super) struct ObjectServer(Arc<dyn ObjectStore>);

impl ObjectServer {
    /// Opens a bucket of S3, with the settings of the environment.
    pub(super) fn bucket(name: &str) -> Result<Self, Refusal> {
        let _guard = runtime()?.enter();
        let whole = AmazonS3ConfigKey::Client(ClientConfigKey::Timeout);
        let silence = AmazonS3ConfigKey::Client(ClientConfigKey::ReadTimeout);
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(name)
            .with_config(whole, WHOLE_TRANSFER);
        if builder.get_config_value(&silence).is_none() {
            builder = builder.with_config(silence, SILENCE);
        }
        Ok(Self(Arc::new(builder.with_retry(retries()).build()?)))
    }

    /// A file of a web server, which is asked for by an empty key.
    pub(super) fn file(url: &str) -> Result<Self, Refusal> {
        let _guard = runtime()?.enter();
        let options = ClientOptions::new()
            .with_config(ClientConfigKey::Timeout, WHOLE_TRANSFER)
            .with_config(ClientConfigKey::ReadTimeout, SILENCE)
            .with_allow_http(url.starts_with("http://"));
        let builder = HttpBuilder::new()
            .with_url(url)
            .with_client_options(options)
            .with_retry(retries());
        Ok(Self(Arc::new(builder.build()?)))
    }

    /// The objects whose keys begin with `prefix` and a slash, or all where it is empty. `is_flat`: only those
    /// without another slash.
    pub(super) fn list(
        &self,
        prefix: &str,
        is_flat: bool,
    ) -> Result<Vec<(String, ObjectVersion)>, Refusal> {
        let (store, prefix) = (Arc::clone(&self.0), path(prefix)?);
        wait(async move {
            let found = |meta: ObjectMeta| (meta.location.to_string(), ObjectVersion::of(&meta));
            if is_flat {
                let listed = store.list_with_delimiter(Some(&prefix)).await?;
                return Ok(listed.objects.into_iter().map(found).collect());
            }
            Ok(store
                .list(Some(&prefix))
                .map_ok(found)
                .try_collect()
                .await?)
        })?
    }

    /// Begins to send an object, of a version if one is given, from its beginning.
    pub(super) fn begin(
        &self,
        key: &str,
        version: Option<&ObjectVersion>,
    ) -> Result<(ObjectVersion, Transfer), Refusal> {
        let (store, path) = (Arc::clone(&self.0), path(key)?);
        let expected = version.cloned();
        wait(async move {
            let (version, got) = get(&*store, &path, expected.as_ref(), None).await?;
            let (sender, receiver) = pieces::channel(PIECES_AHEAD);
            tokio::spawn(async move {
                let mut stream = got.into_stream();
                while let Some(piece) = stream.next().await {
                    // Nobody reads on.
                    if sender.send(piece.map_err(Refusal::from)).await.is_err() {
                        return;
                    }
                }
            });
            Ok((version, Transfer(receiver)))
        })?
    }

    /// Asks for some bytes of a version of an object.
    pub(super) fn range(
        &self,
        key: &str,
        version: &ObjectVersion,
        range: Range<u64>,
    ) -> Result<PendingBytes, Refusal> {
        let (store, path) = (Arc::clone(&self.0), path(key)?);
        let expected = version.clone();
        let started = start(async move {
            let (_, got) = get(&*store, &path, Some(&expected), Some(range)).await?;
            Ok(got.bytes().await?)
        })?;
        Ok(PendingBytes(started))
    }
}

/// Asks for an object, of a version if one is given, or for a part of it.
async fn get(
    store: &dyn ObjectStore,
    path: &Path,
    expected: Option<&ObjectVersion>,
    range: Option<Range<u64>>,
) -> Result<(ObjectVersion, GetResult), Refusal> {
    // A weak tag matches nothing, by the rules of HTTP.
    let tag = expected.and_then(|version| version.tag.clone());
    let options = GetOptions::new()
        .with_if_match(tag.filter(|tag| !tag.starts_with("W/")))
        .with_range(range.map(GetRange::Bounded));
    let got = store.get_opts(path, options).await?;
    let version = ObjectVersion::of(&got.meta);
    if expected.is_some_and(|expected| !version.may_be(expected)) {
        return Err(Refusal::Changed);
    }
    Ok((version, got))
}

/// The bytes of an object, which arrive piece by piece.
#[derive(Debug)]
pub(super) struct Transfer(pieces::Receiver<Result<Bytes, Refusal>>);

impl Transfer {
    /// The next piece, once it is here; `None` after the last.
    pub(super) fn next(&mut self) -> Option<Result<Bytes, Refusal>> {
        self.0.blocking_recv()
    }
}

/// Bytes that were asked for.
#[derive(Debug)]
pub(super) struct PendingBytes(mpsc::Receiver<Result<Bytes, Refusal>>);

impl PendingBytes {
    /// The bytes, once they are here.
    pub(super) fn wait(self) -> Result<Bytes, Refusal> {
        self.0.recv().map_err(|_| ended())?
    }
}

/// Waits for the result of a future, which the thread of transfers runs.
fn wait<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Result<T, Refusal> {
    start(future)?.recv().map_err(|_| ended())
}

fn start<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> Result<mpsc::Receiver<T>, Refusal> {
    let (sender, receiver) = mpsc::channel();
    runtime()?.spawn(async move {
        // Nobody waits for it if a verb has ended.
        let _ = sender.send(future.await);
    });
    Ok(receiver)
}

/// The transfer ended without a word, which only a panic does.
fn ended() -> Refusal {
    Refusal::Other("the transfer gave up".into())
}

/// The thread on which transfers run, from the first one until the process ends.
fn runtime() -> Result<&'static Handle, Refusal> {
    static RUNTIME: OnceLock<Result<Handle, String>> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| start_runtime().map_err(|error| error.to_string()));
    let failed = |error: &String| Refusal::Other(format!("no thread for transfers: {error}"));
    runtime.as_ref().map_err(failed)
}

fn start_runtime() -> std::io::Result<Handle> {
    // An error means that the process has chosen its cryptography already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let thread = thread::Builder::new().name("rsm-remote".into());
    thread.spawn(move || runtime.block_on(pending::<()>()))?;
    Ok(handle)
}

/// Returns how often a request is repeated. The number alone is a limit: a transfer may be hours
/// old when it breaks.
fn retries() -> RetryConfig {
    RetryConfig {
        retry_timeout: DAY,
        ..RetryConfig::default()
    }
}

fn path(key: &str) -> Result<Path, Refusal> {
    Path::parse(key).map_err(|error| Refusal::Other(error.to_string()))
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound { .. } => Self::Missing,
            Error::Precondition { .. } => Self::Changed,
            Error::NotSupported { .. } => Self::NoRanges,
            // A failure of the network has its cause several errors below.
            error => {
                let mut said = error.to_string();
                let mut cause = std::error::Error::source(&error);
                while let Some(inner) = cause {
                    let text = inner.to_string();
                    if !said.contains(&text) {
                        said = format!("{said}: {text}");
                    }
                    cause = inner.source();
                }
                let words = said.split_whitespace();
                Self::Other(words.collect::<Vec<_>>().join(" ").replace("; ", ", "))
            }
        }
    }
}
