//! Requests to servers. Futures stay in this file: they run on a separate thread, for which callers
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

/// The time of silence after which a request is repeated.
const SILENCE: &str = "30 s";

/// No limit for a whole transfer, whose duration depends on its reader.
const WHOLE_TRANSFER: &str = "1000 days";

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The number of received pieces, about 16 KiB each, that wait for their reader.
const PIECES_AHEAD: usize = 64;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Refusal {
    /// No object has this name.
    Missing,
    /// The object has a version other than the requested one.
    Changed,
    /// The server does not send ranges.
    NoRanges,
    /// Everything else.
    Other(String),
}

/// The length and the version of an object, as its server reports them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ObjectVersion {
    pub(super) bytes: u64,
    pub(super) tag: Option<String>,
    /// Seconds since 1970, or `None` if the server does not report the time.
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

    /// Returns false if the other object certainly has a different version.
    fn may_be(&self, other: &Self) -> bool {
        let are_same = match (&self.tag, &other.tag) {
            (Some(tag), Some(other)) => tag == other,
            _ => self.modified == other.modified,
        };
        are_same && self.bytes == other.bytes
    }
}

/// A bucket, or one file of a web server.
#[derive(Clone, Debug)]
pub(super) struct ObjectServer(Arc<dyn ObjectStore>);

impl ObjectServer {
    /// Opens an S3 bucket with the settings of the environment.
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

    /// Opens a file of a web server, whose key is empty.
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

    /// Returns the objects whose keys begin with `prefix` and a slash, or all if it is empty. If
    /// `is_flat`, only those without another slash.
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

    /// Begins to receive an object from its beginning, in a given version if there is one.
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
                    // The reader has stopped.
                    if sender.send(piece.map_err(Refusal::from)).await.is_err() {
                        return;
                    }
                }
            });
            Ok((version, Transfer(receiver)))
        })?
    }

    /// Requests a range of bytes of a version of an object.
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

/// Requests an object or a range of it, in a given version if there is one.
async fn get(
    store: &dyn ObjectStore,
    path: &Path,
    expected: Option<&ObjectVersion>,
    range: Option<Range<u64>>,
) -> Result<(ObjectVersion, GetResult), Refusal> {
    // By the rules of HTTP, a weak tag matches nothing.
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
    /// Returns the next piece when it arrives, or `None` after the last.
    pub(super) fn next(&mut self) -> Option<Result<Bytes, Refusal>> {
        self.0.blocking_recv()
    }
}

/// Bytes that have been requested.
#[derive(Debug)]
pub(super) struct PendingBytes(mpsc::Receiver<Result<Bytes, Refusal>>);

impl PendingBytes {
    /// Waits for the bytes and returns them.
    pub(super) fn wait(self) -> Result<Bytes, Refusal> {
        self.0.recv().map_err(|_| ended())?
    }
}

/// Runs a future on the thread of transfers, and waits for its result.
fn wait<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Result<T, Refusal> {
    start(future)?.recv().map_err(|_| ended())
}

fn start<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> Result<mpsc::Receiver<T>, Refusal> {
    let (sender, receiver) = mpsc::channel();
    runtime()?.spawn(async move {
        // If a command has ended, nothing waits for the result.
        let _ = sender.send(future.await);
    });
    Ok(receiver)
}

/// The transfer ended without a result, which only a panic causes.
fn ended() -> Refusal {
    Refusal::Other("the transfer gave up".into())
}

/// Returns the thread that runs transfers. It starts with the first one and runs until the process
/// ends.
fn runtime() -> Result<&'static Handle, Refusal> {
    static RUNTIME: OnceLock<Result<Handle, String>> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| start_runtime().map_err(|error| error.to_string()));
    let failed = |error: &String| Refusal::Other(format!("no thread for transfers: {error}"));
    runtime.as_ref().map_err(failed)
}

fn start_runtime() -> std::io::Result<Handle> {
    // An error means that the process has already chosen its cryptography.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let thread = thread::Builder::new().name("rsm-remote".into());
    thread.spawn(move || runtime.block_on(pending::<()>()))?;
    Ok(handle)
}

/// Limits how often a request is repeated. There is no time limit, because a transfer may be hours
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
            // The cause of a network failure is several errors below.
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
