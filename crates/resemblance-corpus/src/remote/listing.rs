//! Resolves an address to one object, to the objects below a prefix, or to those that match a
//! pattern.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::address::{self, Address};
use super::object::{RemoteObject, cause};
use super::transfers::{ObjectServer, Refusal};
use crate::argument::{is_in_parts, patterns};
use crate::error::CorpusError;
use crate::form;
use crate::settings::{CorpusSettings, SourceKind};
use crate::source::{CorpusSource, SourceOrigin};

/// Returns the sources at an address, in the byte order of their names.
pub(crate) fn list(
    argument: &Path,
    settings: &CorpusSettings,
) -> Result<Vec<CorpusSource>, CorpusError> {
    let shown = argument.display();
    let Some(argument) = argument.to_str() else {
        return Err(CorpusError::io(format!(
            "cannot read {shown}: its name is not UTF-8"
        )));
    };
    match Address::parse(argument)? {
        Address::Web { url, file_name } => {
            let name = address::shown(&url);
            let server = ObjectServer::file(url.as_str()).map_err(|e| failed(&name, &e))?;
            Ok(vec![one(
                server,
                "",
                name,
                address::secrets(&url),
                file_name,
                settings,
            )?])
        }
        Address::Bucket { bucket, key } => {
            let place = format!("s3://{bucket}");
            let server = ObjectServer::bucket(&bucket).map_err(|e| failed(argument, &e))?;
            let bucket = ListedBucket { server, place };
            if key.is_empty() || key.ends_with('/') {
                bucket.below(key.trim_end_matches('/'), settings)
            } else if key.contains(['*', '?', '[', '{']) {
                bucket.matching(&key, settings)
            } else {
                Ok(vec![bucket.object(&key, settings)?])
            }
        }
    }
}

/// A bucket in which objects are searched for.
struct ListedBucket {
    server: ObjectServer,
    /// The bucket's address, with which the names of its objects begin.
    place: String,
}

impl ListedBucket {
    fn name(&self, key: &str) -> PathBuf {
        format!("{}/{key}", self.place).into()
    }

    /// One object.
    fn object(&self, key: &str, settings: &CorpusSettings) -> Result<CorpusSource, CorpusError> {
        let file_name = file_name(key).to_owned();
        let (server, name) = (self.server.clone(), self.name(key));
        one(server, key, name, Vec::new(), file_name, settings).map_err(|error| match error {
            error @ CorpusError::Io { .. } if error.is_missing() => {
                error.with_advice("with a slash at its end it selects all objects below it")
            }
            error => error,
        })
    }

    /// Returns the objects below a prefix, treated like the files of a folder.
    fn below(
        &self,
        prefix: &str,
        settings: &CorpusSettings,
    ) -> Result<Vec<CorpusSource>, CorpusError> {
        let start = if prefix.is_empty() {
            String::new()
        } else {
            format!("{prefix}/")
        };
        let is_wanted = |key: &str| {
            // The key of the folder itself equals the prefix.
            let relative = key.strip_prefix(&start).filter(|rest| !rest.is_empty());
            relative.is_some_and(|relative| {
                settings.selects(Path::new(relative))
                    && (settings.hidden || !relative.split('/').any(is_hidden_name))
            })
        };
        let mut sources = Vec::new();
        for object in self.listed(prefix, false, is_wanted)? {
            match looked_into(object, &start, settings) {
                Ok(source) => sources.push(source),
                Err(error) => settings.pass_over(error)?,
            }
        }
        Ok(sources)
    }

    /// Returns the objects whose keys match a pattern.
    fn matching(
        &self,
        key: &str,
        settings: &CorpusSettings,
    ) -> Result<Vec<CorpusSource>, CorpusError> {
        let name = self.name(key);
        let no_pattern =
            |error| CorpusError::io(format!("{} is not a pattern: {error}", name.display()));
        let patterns = patterns(key).map_err(no_pattern)?;
        let is_pattern = |part: &&str| part.contains(['*', '?', '[', '{']);
        let before: Vec<&str> = key
            .split('/')
            .take_while(|part| !is_pattern(part))
            .collect();
        let is_flat = before.len() + 1 == key.split('/').count() && !key.contains("**");
        let is_wanted = |key: &str| {
            is_in_parts(&patterns, key) && !key.split('/').skip(before.len()).any(is_hidden_name)
        };
        let mut sources = Vec::new();
        for object in self.listed(&before.join("/"), is_flat, is_wanted)? {
            let kind = match settings.kind.or_else(|| form::named_kind(object.name())) {
                Some(kind) => kind,
                None => content(object.open()?, &object, settings)?,
            };
            let file_name = file_name(object.key()).to_owned();
            let origin = SourceOrigin::Remote(object);
            sources.push(CorpusSource::new(kind, origin, file_name));
        }
        if sources.is_empty() {
            let message = format!("no object matches {}", name.display());
            return Err(CorpusError::io(message));
        }
        Ok(sources)
    }

    /// Returns the selected objects below a prefix, in the byte order of their keys.
    fn listed(
        &self,
        prefix: &str,
        is_flat: bool,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<Arc<RemoteObject>>, CorpusError> {
        let listed = self.server.list(prefix, is_flat);
        let mut keys = listed.map_err(|refusal| failed(self.name(prefix), &refusal))?;
        keys.sort_by(|(a, _), (b, _)| a.as_bytes().cmp(b.as_bytes()));
        let mut objects = Vec::new();
        for (key, version) in keys.into_iter().filter(|(key, _)| is_wanted(key)) {
            let name = self.name(&key);
            let object = RemoteObject::new(self.server.clone(), key, name, version);
            // A key that represents a folder may be listed without an object.
            if object.bytes() > 0 || object.is_there()? {
                objects.push(Arc::new(object));
            }
        }
        Ok(objects)
    }
}

/// Returns an object that is named directly.
fn one(
    server: ObjectServer,
    key: &str,
    name: PathBuf,
    secrets: Vec<String>,
    file_name: String,
    settings: &CorpusSettings,
) -> Result<CorpusSource, CorpusError> {
    let (object, stream) = RemoteObject::find(server, key, name, secrets)?;
    let kind = content(Box::new(stream), &object, settings)?;
    Ok(CorpusSource::new(
        kind,
        SourceOrigin::Remote(object),
        file_name,
    ))
}

/// Returns the format of an object that is named directly, by its first bytes and its name.
fn content(
    input: Box<dyn Read + Send>,
    object: &RemoteObject,
    settings: &CorpusSettings,
) -> Result<SourceKind, CorpusError> {
    let reported =
        form::mark(input).map_err(|error| CorpusError::read(object.name(), false, &error))?;
    Ok(form::of_named(object.name(), reported, settings))
}

/// Returns an object below a prefix as a source. Its name or its content shows its format.
fn looked_into(
    object: Arc<RemoteObject>,
    prefix: &str,
    settings: &CorpusSettings,
) -> Result<CorpusSource, CorpusError> {
    // A name that shows the format saves a request.
    let named = form::named_kind(object.name()).filter(|_| settings.kind.is_none());
    let found = match named {
        Some(kind) => Ok(kind),
        None => form::look_into(object.open()?, object.name(), settings)?,
    };
    // Each key begins with the prefix.
    let relative = object.key().strip_prefix(prefix).unwrap_or(object.key());
    let origin = SourceOrigin::Remote(Arc::clone(&object));
    Ok(CorpusSource::found(found, origin, relative))
}

/// The part of a key after its last slash.
fn file_name(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(_, name)| name)
}

fn is_hidden_name(part: &str) -> bool {
    part.starts_with('.')
}

fn failed(name: impl AsRef<Path>, refusal: &Refusal) -> CorpusError {
    CorpusError::io(cause(refusal, name.as_ref(), &[]).to_string())
}
