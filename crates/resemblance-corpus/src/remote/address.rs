//! Addresses of remote sources.

use std::path::PathBuf;

use url::{Host, Url};

use crate::error::CorpusError;

/// The address of a remote source.
#[derive(Debug, PartialEq)]
pub(super) enum Address {
    /// A key, a key prefix or a pattern of keys in an S3 bucket.
    Bucket {
        /// Its name.
        bucket: String,
        /// Everything after the slash that follows the bucket.
        key: String,
    },
    /// A file of a web server.
    Web {
        /// The URL of the object.
        url: Url,
        /// The file name in the URL.
        file_name: String,
    },
}

impl Address {
    pub(super) fn parse(argument: &str) -> Result<Self, CorpusError> {
        let wrong =
            |name: &str, reason: &str| CorpusError::io(format!("cannot read {name}: {reason}"));
        if let Some(place) = argument.strip_prefix("s3://") {
            let (bucket, key) = place.split_once('/').unwrap_or((place, ""));
            if bucket.is_empty() {
                let reason = "there is no bucket, expected s3://BUCKET/KEY";
                return Err(wrong(argument, reason));
            }
            let (bucket, key) = (bucket.to_owned(), key.to_owned());
            return Ok(Self::Bucket { bucket, key });
        }
        let mut url = Url::parse(argument).map_err(|error| wrong(argument, &error.to_string()))?;
        url.set_fragment(None);
        let path = shown(&url);
        let name = path.to_string_lossy();
        if url.scheme() == "http" && !is_loopback(&url) {
            let reason = "http:// is for servers on this machine; give https:// for others";
            return Err(wrong(&name, reason));
        }
        let Some(file_name) = file_name(&url) else {
            let reason = "there is no file name, and the files of a web server cannot be listed";
            return Err(wrong(&name, reason));
        };
        Ok(Self::Web { url, file_name })
    }
}

/// Returns the address for messages and keys, without a password and without the part after `?`,
/// which may also be a secret.
pub(super) fn shown(url: &Url) -> PathBuf {
    let mut shown = url.clone();
    shown.set_query(None);
    // This fails only for addresses without a host, which have no secrets.
    let _ = shown
        .set_username("")
        .and_then(|()| shown.set_password(None));
    shown.as_str().into()
}

/// Returns the parts of an address that are never shown: user name and password before the host,
/// and the query after `?`.
pub(super) fn secrets(url: &Url) -> Vec<String> {
    let authority = url.authority().rsplit_once('@');
    let account = authority.map(|(account, _)| format!("{account}@"));
    let query = url.query().map(|query| format!("?{query}"));
    account.into_iter().chain(query).collect()
}

/// Returns the last part of the path, decoded if it is then still a single name.
fn file_name(url: &Url) -> Option<String> {
    let last = url.path_segments()?.next_back()?;
    if last.is_empty() {
        return None;
    }
    let decoded = percent_decoded(last).filter(|name| {
        let is_plain = |c: char| c != '/' && c != '\\' && !c.is_control();
        name.chars().all(is_plain) && name != "." && name != ".."
    });
    Some(decoded.unwrap_or_else(|| last.to_owned()))
}

/// Decodes percent-encoded bytes, if the result is UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn address_splits_bucket_and_key() {
        for (argument, bucket, key) in [
            ("s3://b", "b", ""),
            ("s3://b/", "b", ""),
            ("s3://b/a b/%20#?.jsonl", "b", "a b/%20#?.jsonl"),
            ("s3://b/crawl/*.zst", "b", "crawl/*.zst"),
        ] {
            let expected = Address::Bucket {
                bucket: bucket.into(),
                key: key.into(),
            };
            assert_eq!(Address::parse(argument).unwrap(), expected);
        }
        assert!(Address::parse("s3:///key").is_err());
    }

    #[test]
    fn plain_http_is_for_this_machine_only() {
        for good in [
            "https://example.org/a.jsonl",
            "http://localhost:1/a",
            "http://127.3.2.1/a",
            "http://[::1]:8/a",
        ] {
            assert!(
                matches!(Address::parse(good), Ok(Address::Web { .. })),
                "{good}"
            );
        }
        for bad in [
            "http://example.org/a",
            "http://localhost.example.org/a",
            "http://10.0.0.1/a",
            "https://example.org/",
            "https://example.org/a/",
            "https://",
        ] {
            let error = Address::parse(bad).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("cannot read {bad}: ")),
                "{error}"
            );
        }
    }

    #[test]
    fn addresses_are_printed_without_secrets() {
        let url = Url::parse("https://me:secret@example.org/a%20b.jsonl?token=1").unwrap();
        assert_eq!(shown(&url), Path::new("https://example.org/a%20b.jsonl"));
        assert_eq!(file_name(&url).as_deref(), Some("a b.jsonl"));
        assert_eq!(secrets(&url), ["me:secret@", "?token=1"]);
        let open = Url::parse("https://example.org/a").unwrap();
        assert!(secrets(&open).is_empty());
        for refused in [
            "http://me:secret@example.org/a?token=1",
            "https://me:secret@b/?token=1",
        ] {
            let error = Address::parse(refused).unwrap_err().to_string();
            assert!(
                !error.contains("secret") && !error.contains("token"),
                "{error}"
            );
        }
    }

    #[test]
    fn address_encodes_a_name_as_one_path_segment() {
        for (path, name) in [
            ("a/%2e%2E%2Fb", "%2e%2E%2Fb"),
            ("a%5Cb", "a%5Cb"),
            ("100%", "100%"),
            ("%ff", "%ff"),
            ("%0a", "%0a"),
        ] {
            let url = Url::parse(&format!("https://example.org/{path}")).unwrap();
            assert_eq!(file_name(&url).as_deref(), Some(name));
        }
    }
}
