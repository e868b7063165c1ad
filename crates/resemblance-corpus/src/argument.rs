//! Arguments that do not name a single local file: patterns and remote addresses.

use std::borrow::Cow;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern, PatternError};
use walkdir::{DirEntry, WalkDir};

use super::error::CorpusError;
use super::settings::CorpusSettings;

/// Returns a relative path as the bytes of a key: the parts joined by `/`.
pub(crate) fn path_bytes(path: &Path) -> Cow<'_, [u8]> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        Cow::Borrowed(path.as_os_str().as_bytes())
    }
    #[cfg(not(unix))]
    {
        let parts: Vec<_> = path
            .components()
            .map(|part| part.as_os_str().to_string_lossy())
            .collect();
        Cow::Owned(parts.join("/").into_bytes())
    }
}

/// Returns the scheme of an argument that is an address, such as `s3://bucket/key`.
fn scheme(argument: &Path) -> Option<&str> {
    let (scheme, _) = argument.to_str()?.split_once("://")?;
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    scheme.chars().all(is_scheme).then_some(scheme)
}

/// Returns true for arguments that name something on a server rather than a path.
pub fn is_remote(argument: &Path) -> bool {
    matches!(scheme(argument), Some("s3" | "https" | "http"))
}

/// Returns true for files, links to files, and dangling links.
pub(crate) fn is_file(entry: &DirEntry) -> bool {
    if !entry.file_type().is_symlink() {
        return entry.file_type().is_file();
    }
    std::fs::metadata(entry.path()).map_or(true, |metadata| metadata.is_file())
}

/// Counts what a folder or a pattern has besides files and folders.
#[derive(Debug, Default)]
pub(crate) struct PassedOver {
    folder_links: usize,
    special: usize,
}

impl PassedOver {
    /// Counts an entry that [`is_file`] refuses.
    pub(crate) fn note(&mut self, entry: &DirEntry) {
        let kind = entry.file_type();
        // A link counts as what it leads to.
        let leads_to_folder =
            || std::fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_dir());
        if kind.is_symlink() && leads_to_folder() {
            self.folder_links += 1;
        } else if !kind.is_dir() {
            self.special += 1;
        }
    }

    /// Returns a note for each kind that was found below `root`.
    pub(crate) fn notes(&self, root: &dyn Display) -> Vec<String> {
        let counted = [
            ("links to folders", self.folder_links),
            ("pipes, sockets and devices", self.special),
        ];
        let found = counted.into_iter().filter(|(_, count)| *count > 0);
        let note = |(what, count)| format!("skipped {what} below {root}: {count}");
        found.map(note).collect()
    }
}

/// The maximum number of patterns that one with alternatives stands for.
const MAX_PATTERNS: usize = 1_000;

/// Returns the patterns of a text: several if it has alternatives such as `{a,b}`, which can contain
/// others.
///
/// # Errors
///
/// An error with the place of what is wrong, and for more than 1,000 patterns.
///
/// ```
/// let patterns = resemblance_corpus::patterns("*.{txt,md}").unwrap();
/// assert!(patterns.iter().any(|pattern| pattern.matches("a/b.md")));
/// assert!(resemblance_corpus::patterns("*.{txt").is_err());
/// ```
pub fn patterns(text: &str) -> Result<Vec<Pattern>, PatternError> {
    let (mut open, mut patterns) = (vec![text.to_owned()], Vec::new());
    while let Some(next) = open.pop() {
        match alternatives(&next)? {
            None => patterns.push(Pattern::new(&next)?),
            Some(texts) => open.extend(texts),
        }
        if open.len() + patterns.len() > MAX_PATTERNS {
            let msg = "more than 1,000 patterns";
            return Err(PatternError { pos: 0, msg });
        }
    }
    Ok(patterns)
}

/// Returns a pattern with each of its first alternatives, or `None` if there are none.
fn alternatives(text: &str) -> Result<Option<Vec<String>>, PatternError> {
    let (mut depth, mut is_class, mut ends) = (0_u32, false, Vec::new());
    for (place, c) in text.char_indices() {
        match c {
            '[' => is_class = true,
            ']' => is_class = false,
            _ if is_class => {}
            '{' => {
                depth += 1;
                if depth == 1 {
                    ends.push(place);
                }
            }
            ',' if depth == 1 => ends.push(place),
            '}' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    ends.push(place);
                    break;
                }
            }
            _ => {}
        }
    }
    if depth > 0 {
        let msg = "a { without its }";
        return Err(PatternError { pos: 0, msg });
    }
    let (Some(first), Some(last)) = (ends.first(), ends.last()) else {
        return Ok(None);
    };
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let (before, after) = (part(0, *first), part(last + 1, text.len()));
    let alternatives = ends.iter().zip(ends.iter().skip(1));
    let texts = alternatives.map(|(from, to)| format!("{before}{}{after}", part(from + 1, *to)));
    Ok(Some(texts.collect()))
}

/// Returns true if a path matches one of the patterns, whose `*` and `?` match no `/`.
pub(crate) fn is_in_parts(patterns: &[Pattern], path: &str) -> bool {
    let options = MatchOptions {
        require_literal_separator: true,
        ..MatchOptions::new()
    };
    patterns
        .iter()
        .any(|pattern| pattern.matches_with(path, options))
}

/// Returns the files that match a pattern such as `data/train-*.parquet`, in the byte order of
/// their paths, or an error that explains why no file matches. `*` matches a part of a name, `**`
/// any folders. The result includes dangling links, which fail when they are read. Also returns
/// notes about matches that are neither files nor folders.
pub(crate) fn matching(
    argument: &Path,
    missing: io::Error,
    settings: &CorpusSettings,
) -> Result<(Vec<PathBuf>, Vec<String>), CorpusError> {
    let name = argument.display();
    let Some(text) = argument.to_str() else {
        return Err(CorpusError::open(argument, missing));
    };
    if let Some(scheme) = scheme(argument) {
        let advice = match scheme {
            "hf" => "hf download --repo-type dataset NAME --local-dir FOLDER fetches a data set",
            _ => "download it first, or pass it through standard input",
        };
        let reason = format!("{name} is neither a local file nor an s3:// or https:// address");
        return Err(CorpusError::io(reason).with_advice(advice));
    }
    let is_pattern = |part: &Path| {
        let mut bytes = part.as_os_str().as_encoded_bytes().iter();
        bytes.any(|byte| b"*?[{".contains(byte))
    };
    if missing.kind() != io::ErrorKind::NotFound || !is_pattern(argument) {
        return Err(CorpusError::open(argument, missing));
    }
    let Ok(patterns) = patterns(text) else {
        // The name is not a pattern either.
        return Err(CorpusError::open(argument, missing));
    };
    let root: PathBuf = argument
        .components()
        .take_while(|part| !is_pattern(part.as_ref()))
        .collect();
    let below = argument.components().count() - root.components().count();
    let any_depth = text.contains("**").then_some(usize::MAX);
    let is_here = root.as_os_str().is_empty();
    let start = if is_here { Path::new(".") } else { &root };
    let is_shown = |entry: &DirEntry| {
        entry.depth() == 0 || !entry.file_name().as_encoded_bytes().starts_with(b".")
    };
    let (mut found, mut passed) = (Vec::new(), PassedOver::default());
    let walk = WalkDir::new(start)
        .max_depth(any_depth.unwrap_or(below))
        .into_iter();
    for walked in walk.filter_entry(is_shown) {
        let entry = match walked {
            Ok(entry) => entry,
            Err(error) => {
                settings.pass_over(CorpusError::walk(start, error))?;
                continue;
            }
        };
        let walked_path = entry.path();
        let path = match walked_path.strip_prefix(".") {
            Ok(plain) if is_here => plain,
            _ => walked_path,
        };
        if !is_in_parts(&patterns, &path.to_string_lossy()) {
            continue;
        }
        match is_file(&entry) {
            true => found.push(path.to_path_buf()),
            false => passed.note(&entry),
        }
    }
    if found.is_empty() {
        return Err(CorpusError::io(format!("no file matches {name}")));
    }
    found.sort_by(|a, b| path_bytes(a).cmp(&path_bytes(b)));
    Ok((found, passed.notes(&start.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_are_patterns_of_their_own() {
        let texts = |text: &str| {
            let mut texts: Vec<String> = patterns(text)
                .unwrap()
                .iter()
                .map(|pattern| pattern.as_str().to_owned())
                .collect();
            texts.sort();
            texts
        };
        assert_eq!(texts("a.txt"), ["a.txt"]);
        assert_eq!(texts("{a,b{c,}}.{x}"), ["a.x", "b.x", "bc.x"]);
        assert_eq!(texts("[{,]}"), ["[{,]}"]);
        for wrong in ["{a", "a[", &"{a,b}".repeat(10)] {
            assert!(patterns(wrong).is_err(), "{wrong}");
        }
        let every = patterns("d/**/*.{x,y}").unwrap();
        assert!(is_in_parts(&every, "d/x.y") && is_in_parts(&every, "d/e/f.x"));
        assert!(!is_in_parts(&every, "d/x.z") && !is_in_parts(&patterns("d/*").unwrap(), "d/e/f"));
    }
}
