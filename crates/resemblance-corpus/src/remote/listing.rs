//! What an address means: one object, those below a prefix, or those that a pattern matches.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobBuilder;

use super::address::{self, Address};
use super::object::{RemoteObject, cause};
use super::transfers::{ObjectServer, ObjectVersion, Refusal};
use crate::error::CorpusError;
use crate::form;
use crate::settings::{CorpusSettings, SourceKind};
use crate::source::{CorpusSource, SourceOrigin};

/// The sources that an address stands for, in the byte order of their names.
pub(crate) fn list(
    argument: &Path,
    settings: &CorpusSettings,
) -> Result<Vec<CorpusSource>, CorpusError> {
    let shown = argument.display();
    let Some(argument) = argument.to_str() else {
        return Err(CorpusError::Io(format!(
            "{shown} is not read: it is not UTF-8"
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

/// A bucket whose objects are looked for.
struct ListedBucket {
    server: ObjectServer,
    /// The beginning of their names.
    place: String,
}

impl ListedBucket {
    fn name(&self, key: &str) -> PathBuf {
        format!("{}/{key}", self.place).into()
    }

    /// One object.
    fn object(&self, key: &str, settings: &CorpusSettings) -> Result<CorpusSource, CorpusError> {
        let file_name = key.rsplit('/').next().unwrap_or(key).to_owned();
        let (server, name) = (self.server.clone(), self.name(key));
        one(server, key, name, Vec::new(), file_name, settings).map_err(|error| match error {
            CorpusError::Io(message) if message.ends_with("does not exist") => CorpusError::Io(
                format!("{message}; a slash behind it stands for all objects below it"),
            ),
            error => error,
        })
    }

    /// The objects below a prefix, as the files of a folder.
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
        let mut sources = Vec::new();
        for (key, version) in self.listed(prefix, false)? {
            let Some(relative) = key.strip_prefix(&start) else {
                // What stands for a folder has the name of the prefix.
                continue;
            };
            let mut globs = settings.include.iter();
            let is_wanted = globs.all(|globs| globs.is_match(relative))
                && (settings.hidden || !relative.split('/').any(is_hidden_name));
            if !is_wanted || relative.is_empty() {
                continue;
            }
            let object = self.found(key.clone(), version);
            if object.bytes() == 0 && !object.is_there()? {
                // So does what stands for a folder below it.
                continue;
            }
            sources.push(looked_into(object, relative, settings)?);
        }
        Ok(sources)
    }

    /// The objects whose keys a pattern matches.
    fn matching(
        &self,
        key: &str,
        settings: &CorpusSettings,
    ) -> Result<Vec<CorpusSource>, CorpusError> {
        let name = self.name(key);
        let glob = GlobBuilder::new(key)
            .literal_separator(true)
            .build()
            .map_err(|error| {
                CorpusError::Io(format!("{} is no pattern: {error}", name.display()))
            })?;
        let glob = glob.compile_matcher();
        let is_pattern = |part: &&str| part.contains(['*', '?', '[', '{']);
        let before: Vec<&str> = key
            .split('/')
            .take_while(|part| !is_pattern(part))
            .collect();
        let is_flat = before.len() + 1 == key.split('/').count() && !key.contains("**");
        let mut sources = Vec::new();
        for (key, version) in self.listed(&before.join("/"), is_flat)? {
            let is_hidden = key.split('/').skip(before.len()).any(is_hidden_name);
            if !glob.is_match(&key) || is_hidden {
                continue;
            }
            let object = self.found(key.clone(), version);
            if object.bytes() == 0 && !object.is_there()? {
                continue;
            }
            let file_name = key.rsplit('/').next().unwrap_or(&key);
            let kind = match settings.kind.or_else(|| form::named_kind(object.name())) {
                Some(kind) => kind,
                None => content(object.open()?, &object, settings)?,
            };
            let origin = SourceOrigin::Remote(object);
            sources.push(CorpusSource::new(kind, origin, file_name));
        }
        if sources.is_empty() {
            let message = format!("no object has a name like {}", name.display());
            return Err(CorpusError::Io(message));
        }
        Ok(sources)
    }

    fn listed(
        &self,
        prefix: &str,
        is_flat: bool,
    ) -> Result<Vec<(String, ObjectVersion)>, CorpusError> {
        let mut listed = self
            .server
            .list(prefix, is_flat)
            .map_err(|refusal| failed(self.name(prefix), &refusal))?;
        listed.sort_by(|(a, _), (b, _)| a.as_bytes().cmp(b.as_bytes()));
        Ok(listed)
    }

    fn found(&self, key: String, version: ObjectVersion) -> Arc<RemoteObject> {
        let name = self.name(&key);
        Arc::new(RemoteObject::new(self.server.clone(), key, name, version))
    }
}

/// An object that is named by itself.
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

/// What an object that is named by itself is, by its first bytes and its name.
fn content(
    input: Box<dyn Read + Send>,
    object: &RemoteObject,
    settings: &CorpusSettings,
) -> Result<SourceKind, CorpusError> {
    let told =
        form::mark(input).map_err(|error| CorpusError::read(object.name(), false, &error))?;
    Ok(form::of_named(object.name(), told, settings))
}

/// An object below a prefix: what it is, its name tells, or its content.
fn looked_into(
    object: Arc<RemoteObject>,
    relative: &str,
    settings: &CorpusSettings,
) -> Result<CorpusSource, CorpusError> {
    let mut source = CorpusSource::new(
        SourceKind::Text,
        SourceOrigin::Remote(Arc::clone(&object)),
        relative,
    );
    // Only names that tell spare a request each.
    let told = form::named_kind(object.name()).filter(|_| settings.kind.is_none());
    match told {
        Some(kind) => source.kind = kind,
        None => match form::look_into(object.open()?, object.name(), settings)? {
            Ok(kind) => source.kind = kind,
            Err(problem) => source.problem = Some(Arc::new(problem)),
        },
    }
    Ok(source)
}

fn is_hidden_name(part: &str) -> bool {
    part.starts_with('.')
}

fn failed(name: impl AsRef<Path>, refusal: &Refusal) -> CorpusError {
    CorpusError::Io(cause(refusal, name.as_ref(), &[]).to_string())
}
