//! Records as they are stored, and their copies.

use std::collections::HashMap;
use std::io::{self, Write};

use bytes::Bytes;
use resemblance::schema::feature_hash;

use super::head::MessageHead;
use crate::archived_record::ArchivedRecord;
use crate::record::CorpusRecord;

/// The profile of a record in place of a page with the same payload.
const SAME_PAYLOAD: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
/// The profile of a record in place of a near-duplicate.
const NEAR_DUPLICATE: &str = "urn:x-resemblance:revisit:near-duplicate:1";
/// Records that wait for their pages take at most this number of bytes.
const MAX_HELD_BYTES: usize = 16 << 20;

/// The choice what to write for a page.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum PageFate<'a> {
    /// The page.
    Copied,
    /// Nothing.
    LeftOut,
    /// A revisit record that refers to this page, if it is one of a WARC file.
    Replaced(Option<&'a RevisitTarget>),
}

/// A page that revisit records refer to.
#[derive(Clone, Debug)]
pub struct RevisitTarget {
    id: String,
    uri: Option<String>,
    date: Option<String>,
    digest: Option<String>,
}

impl RevisitTarget {
    /// Returns the page of a record, unless it is not a response or has no id.
    pub fn of(record: &CorpusRecord) -> Option<Self> {
        let archived = record.archived.as_ref().filter(|it| it.http_bytes > 0)?;
        let head = MessageHead::parse(record.bytes.get(..archived.head_bytes)?)?;
        let owned = |name: &str| head.value(name).map(str::to_owned);
        Some(Self {
            id: owned("warc-record-id")?,
            uri: head.target_uri().map(str::to_owned),
            date: owned("warc-date"),
            digest: owned("warc-payload-digest"),
        })
    }
}

/// Numbers of copied records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArchiveCounts {
    /// Records other than pages.
    pub others: u64,
    /// Records that belong to pages that are left out, and are left out with them.
    pub left_out: u64,
    /// Records that refer to a page with the same payload.
    pub same_payload: u64,
    /// Records that refer to a near-duplicate.
    pub near: u64,
    /// Pages that were to be replaced, of which they or their survivors are not responses of HTTP.
    pub unreplaced: u64,
}

/// Copies the records of WARC files byte for byte, except for some pages and the records that
/// belong to them, such as their requests.
#[derive(Debug, Default)]
pub struct ArchiveCopy {
    /// True if records are copied that belong to no page. Information on files always is.
    takes_others: bool,
    /// Whether records are copied, by the hashes of their ids, in this file. Pages of earlier files
    /// that are left out remain.
    fates: HashMap<u64, bool>,
    /// Records before the page to which they may belong.
    held: Vec<HeldRecord>,
    held_bytes: usize,
    is_begun: bool,
    /// The numbers of records so far.
    pub counts: ArchiveCounts,
}

#[derive(Debug)]
struct HeldRecord {
    /// Hashes of ids, or of the target URI of a request that names no other record.
    names: Vec<u64>,
    bytes: Bytes,
}

impl ArchiveCopy {
    /// Creates a copy with or without the records that belong to no page.
    pub fn new(takes_others: bool) -> Self {
        Self {
            takes_others,
            ..Self::default()
        }
    }

    /// Writes what becomes of a record, in the order of the file.
    ///
    /// # Errors
    ///
    /// An error if the output cannot be written.
    pub fn copy(
        &mut self,
        record: &CorpusRecord,
        fate: PageFate<'_>,
        output: &mut impl Write,
    ) -> io::Result<()> {
        let archived = record.archived.as_deref();
        let Some((archived, stored)) = archived.and_then(|it| Some((it, it.stored.as_ref()?)))
        else {
            return Err(io::Error::other("a record was not read to be copied"));
        };
        if !std::mem::replace(&mut self.is_begun, true)
            && let Some((frame, _)) = &stored.form.dictionary
        {
            output.write_all(frame)?;
        }
        let head = &MessageHead::parse(&record.bytes).unwrap_or_default();
        let names = RecordNames::of(head);
        let kind = head.value("warc-type").unwrap_or("").to_ascii_lowercase();
        if !archived.is_page {
            let is_main = ["response", "resource", "revisit", "conversion", "warcinfo"]
                .contains(&kind.as_str());
            let known = names.fate(&self.fates, !is_main);
            if known.is_none() && !is_main && (kind == "request" || names.has_links()) {
                let names = names.all(!names.has_links());
                return self.hold(names, &stored.bytes, output);
            }
            let is_copied = known.unwrap_or(self.takes_others || kind == "warcinfo");
            self.decide(&names, is_main, is_copied, output)?;
            return self.other(known.is_some(), is_copied, &stored.bytes, output);
        }
        let revisit = match fate {
            PageFate::Replaced(Some(target)) if archived.http_bytes > 0 => {
                Some(self.revisit(record, head, archived, target))
            }
            _ => None,
        };
        self.counts.unreplaced +=
            u64::from(revisit.is_none() && matches!(fate, PageFate::Replaced(_)));
        let is_copied = revisit.is_some() || matches!(fate, PageFate::Copied);
        self.decide(&names, true, is_copied, output)?;
        match revisit {
            Some(revisit) => output.write_all(&stored.form.pack(revisit)?),
            None if is_copied => output.write_all(&stored.bytes),
            None => Ok(()),
        }
    }

    /// Completes a file.
    ///
    /// # Errors
    ///
    /// An error if the output cannot be written.
    pub fn end_file(&mut self, output: &mut impl Write) -> io::Result<()> {
        for held in std::mem::take(&mut self.held) {
            self.other(false, self.takes_others, &held.bytes, output)?;
        }
        self.held_bytes = 0;
        self.is_begun = false;
        // Records of other files may refer to these.
        self.fates.retain(|_, is_copied| !*is_copied);
        Ok(())
    }

    fn hold(&mut self, names: Vec<u64>, bytes: &Bytes, output: &mut impl Write) -> io::Result<()> {
        self.held_bytes += bytes.len();
        self.held.push(HeldRecord {
            names,
            bytes: bytes.clone(),
        });
        while self.held_bytes > MAX_HELD_BYTES && !self.held.is_empty() {
            let oldest = self.held.remove(0);
            self.held_bytes -= oldest.bytes.len();
            self.other(false, self.takes_others, &oldest.bytes, output)?;
        }
        Ok(())
    }

    /// Remembers the fate of a record, which that of records before it follows.
    fn decide(
        &mut self,
        names: &RecordNames,
        is_main: bool,
        is_copied: bool,
        output: &mut impl Write,
    ) -> io::Result<()> {
        let ids = names.id.iter().chain(&names.beside);
        self.fates.extend(ids.map(|id| (*id, is_copied)));
        let all = names.all(is_main);
        let is_related = |held: &mut HeldRecord| held.names.iter().any(|name| all.contains(name));
        let related: Vec<_> = self.held.extract_if(.., is_related).collect();
        for held in related {
            self.held_bytes -= held.bytes.len();
            self.other(true, is_copied, &held.bytes, output)?;
        }
        Ok(())
    }

    fn other(
        &mut self,
        has_page: bool,
        is_copied: bool,
        bytes: &Bytes,
        output: &mut impl Write,
    ) -> io::Result<()> {
        if is_copied {
            self.counts.others += 1;
            return output.write_all(bytes);
        }
        self.counts.left_out += u64::from(has_page);
        Ok(())
    }

    /// Returns a record in place of a page. With the same payload it has the head of HTTP. A
    /// near-duplicate has none, because the head may declare another encoding than that of the
    /// other page.
    fn revisit(
        &mut self,
        page: &CorpusRecord,
        head: &MessageHead,
        archived: &ArchivedRecord,
        target: &RevisitTarget,
    ) -> Vec<u8> {
        let digest = head.value("warc-payload-digest");
        let has_same =
            |of_target: &str| digest.is_some_and(|own| own.eq_ignore_ascii_case(of_target));
        let is_same = target.digest.as_deref().is_some_and(has_same);
        let http = archived.head_bytes..archived.head_bytes + archived.http_bytes;
        self.counts.same_payload += u64::from(is_same);
        self.counts.near += u64::from(!is_same);
        let (profile, block) = match is_same {
            true => (SAME_PAYLOAD, page.bytes.get(http).unwrap_or(&[])),
            false => (NEAR_DUPLICATE, &[][..]),
        };
        let replaced = head.value("warc-record-id");
        let mut record = "WARC/1.1\r\nWARC-Type: revisit\r\n".to_owned();
        let mut field = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                let shown: String = value.chars().filter(|c| !c.is_control()).collect();
                record += &format!("{name}: {shown}\r\n");
            }
        };
        field("WARC-Record-ID", Some(&new_id(replaced, page)));
        field("WARC-Target-URI", head.target_uri());
        for name in ["WARC-Date", "WARC-IP-Address", "WARC-Warcinfo-ID"] {
            field(name, head.value(name));
        }
        for id in replaced
            .into_iter()
            .chain(head.values("warc-concurrent-to"))
        {
            field("WARC-Concurrent-To", Some(id));
        }
        field("WARC-Profile", Some(profile));
        // A replay would look for a page with the digest of a near-duplicate, and find none.
        field("WARC-Payload-Digest", digest.filter(|_| is_same));
        field("WARC-Refers-To", Some(&target.id));
        field("WARC-Refers-To-Target-URI", target.uri.as_deref());
        field("WARC-Refers-To-Date", target.date.as_deref());
        if is_same {
            field("WARC-Truncated", Some("length"));
            field("Content-Type", Some("application/http; msgtype=response"));
        }
        field("Content-Length", Some(&block.len().to_string()));
        [record.as_bytes(), b"\r\n", block, b"\r\n\r\n"].concat()
    }
}

/// Returns the id of a record in place of another. It is always the same, so that copies are.
fn new_id(replaced: Option<&str>, page: &CorpusRecord) -> String {
    let place = (page.source, page.line);
    let half = |number: u8| feature_hash(format!("{number} {replaced:?} {place:?}").as_bytes());
    let bits = u128::from(half(0)) << 64 | u128::from(half(1));
    // A UUID of version 8 is made as its maker likes.
    let bits = bits & !(0xf << 76 | 0x3 << 62) | 0x8 << 76 | 0x2 << 62;
    let mut id = format!("<urn:uuid:{bits:032x}>");
    for digits in [20, 16, 12, 8] {
        id.insert("<urn:uuid:".len() + digits, '-');
    }
    id
}

/// Hashes of what a record is named, and of the records that it names.
struct RecordNames {
    id: Option<u64>,
    /// Records of the same capture.
    beside: Vec<u64>,
    /// Records of which this one is a part or that it refers to.
    of: Vec<u64>,
    uri: Option<u64>,
}

impl RecordNames {
    fn of(head: &MessageHead) -> Self {
        let hash = |value: &str| feature_hash(value.as_bytes());
        let hashes = |name: &str| head.values(name).map(hash).collect();
        let mut of: Vec<u64> = hashes("warc-refers-to");
        of.extend(head.values("warc-segment-origin-id").map(hash));
        Self {
            id: head.value("warc-record-id").map(hash),
            beside: hashes("warc-concurrent-to"),
            of,
            uri: head.target_uri().map(hash),
        }
    }

    fn has_links(&self) -> bool {
        !self.beside.is_empty() || !self.of.is_empty()
    }

    /// Returns whether the records are copied to which this one belongs, if that is known.
    fn fate(&self, fates: &HashMap<u64, bool>, is_beside: bool) -> Option<bool> {
        // A page that was read before may have named this record.
        let beside = self.beside.iter().chain(&self.id).filter(|_| is_beside);
        let known = self.of.iter().chain(beside).filter_map(|id| fates.get(id));
        known.copied().reduce(|a, b| a && b)
    }

    /// Returns all of them; the URI alone is no name of a record that names others.
    fn all(&self, with_uri: bool) -> Vec<u64> {
        let ids = self.id.iter().chain(&self.beside).chain(&self.of);
        let uri = self.uri.filter(|_| with_uri);
        ids.copied().chain(uri).collect()
    }
}
