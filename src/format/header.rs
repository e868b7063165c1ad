//! Rows of the table `meta` other than the schema: the header and the counters.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::format::bits::take;
use crate::format::checksum;
use resemblance_sketch::schema::Schema;
use resemblance_sketch::sketch::DocumentFrequencies;

pub(crate) const META: &str = "meta";
pub(crate) const HEADER: &str = "header";
pub(crate) const SCHEMA: &str = "schema";
pub(crate) const SELF_TEST: &str = "self_test";
pub(crate) const STATE: &str = "state";
pub(crate) const WEIGHTS: &str = "weights";
pub(crate) const TOMBSTONE_CHANGES: &str = "tombstone_changes";

/// Returns the name of the row of a named position.
pub(crate) fn position_row(name: &str) -> String {
    format!("position:{name}")
}

/// The bit of `refuse` of a store whose features have weights, in the row `weights`.
pub(crate) const HAS_WEIGHTS: u64 = 1 << 8;

/// The bit of `refuse` of a store with the table `sets`.
pub(crate) const HAS_SETS: u64 = 1 << 9;

/// The bit of `refuse` of a store that keeps clusters, in the tables `forest`, `members` and
/// `clusters`.
pub(crate) const HAS_CLUSTERS: u64 = 1 << 10;

/// The bits of `refuse` that this release knows.
const KNOWN_FEATURES: u64 = HAS_WEIGHTS | HAS_SETS | HAS_CLUSTERS;

/// The version of the file format that this release writes; it also reads all older ones.
///
/// ```
/// println!("stores have format {}", resemblance::stats::FORMAT_VERSION);
/// # assert!(resemblance::stats::FORMAT_VERSION > 0);
/// ```
pub const FORMAT_VERSION: u16 = 1;

const MAGIC: [u8; 8] = *b"RESEMBL\x1a";

/// Versions and feature flags, readable by every release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The version that wrote the file.
    pub(crate) version: u16,
    /// The oldest version that can read it.
    pub(crate) oldest_reader: u16,
    /// Features that a release may ignore.
    pub(crate) ignorable: u64,
    /// Features that a release must know to write.
    pub(crate) read_only: u64,
    /// Features that a release must know to open the file at all.
    pub(crate) refuse: u64,
}

impl Header {
    pub(crate) const CURRENT: Self = Self {
        version: FORMAT_VERSION,
        oldest_reader: 1,
        ignorable: 0,
        read_only: 0,
        refuse: 0,
    };

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&self.oldest_reader.to_le_bytes());
        for flags in [self.ignorable, self.read_only, self.refuse] {
            bytes.extend_from_slice(&flags.to_le_bytes());
        }
        checksum::seal(META, HEADER.as_bytes(), &mut bytes);
        bytes
    }

    /// Reads a header of any version: what follows the flags belongs to newer ones.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let bytes = checksum::open(META, HEADER.as_bytes(), bytes)?;
        Self::fields(bytes)
            .ok_or_else(|| Error::corrupt("header", "its magic or its length is wrong"))
    }

    fn fields(mut bytes: &[u8]) -> Option<Self> {
        let magic = take(&mut bytes)?;
        let header = Self {
            version: u16::from_le_bytes(take(&mut bytes)?),
            oldest_reader: u16::from_le_bytes(take(&mut bytes)?),
            ignorable: u64::from_le_bytes(take(&mut bytes)?),
            read_only: u64::from_le_bytes(take(&mut bytes)?),
            refuse: u64::from_le_bytes(take(&mut bytes)?),
        };
        (magic == MAGIC).then_some(header)
    }

    /// Returns the bits that this release does not know.
    pub(crate) fn unknown_flags(&self) -> u64 {
        self.ignorable | self.read_only | (self.refuse & !KNOWN_FEATURES)
    }

    /// Returns true if the store has weights of features.
    pub(crate) fn has_weights(&self) -> bool {
        self.refuse & HAS_WEIGHTS != 0
    }

    /// Returns true if the store has the table `sets`.
    pub(crate) fn has_sets(&self) -> bool {
        self.refuse & HAS_SETS != 0
    }

    /// Returns true if the store keeps clusters.
    pub(crate) fn has_clusters(&self) -> bool {
        self.refuse & HAS_CLUSTERS != 0
    }

    /// Checks that this release may open the file. Returns false if for reading only.
    pub(crate) fn admit(&self) -> Result<bool> {
        if self.oldest_reader > FORMAT_VERSION {
            return Err(Error::NewerFormat {
                found: self.oldest_reader,
                supported: FORMAT_VERSION,
            });
        }
        let flags = self.refuse & !KNOWN_FEATURES;
        if flags != 0 {
            return Err(Error::UnknownFeatures { flags });
        }
        Ok(self.read_only == 0 && self.version <= FORMAT_VERSION)
    }
}

/// The counters of the store as of one commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    /// Rises by one a commit; ties a snapshot to its memtable.
    pub(crate) commit: u64,
    /// The id of the next document.
    pub(crate) next_id: u64,
    /// Live documents.
    pub(crate) documents: u64,
    /// Documents below are in runs, the others in the memtable.
    pub(crate) flushed_below: u64,
    /// The number of the next run.
    pub(crate) next_run: u32,
    /// Live documents that are in no run: the number of rows that the memtable is built from.
    pub(crate) unflushed_documents: u64,
    /// Postings of all documents that were ever inserted or removed: what merges keep up with.
    pub(crate) postings_moved: u64,
    /// Deleted documents: the number of bits in the bitmaps. A lost one would bring its document
    /// back.
    pub(crate) deleted_documents: u64,
}

impl State {
    pub(crate) const INITIAL: Self = Self {
        commit: 0,
        next_id: 0,
        documents: 0,
        flushed_below: 0,
        next_run: 0,
        unflushed_documents: 0,
        postings_moved: 0,
        deleted_documents: 0,
    };

    /// Returns the number of the next commit.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if no number is left.
    pub(crate) fn next_commit(&self) -> Result<u64> {
        let next = self.commit.checked_add(1);
        next.ok_or_else(|| used_up("commits", self.commit, u64::BITS))
    }

    /// Counts the postings of a document that was inserted or removed, including that of a key that
    /// it lacks.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if the count has no room for them.
    pub(crate) fn count_moved(&mut self, postings: u64) -> Result<()> {
        let moved = self.postings_moved.checked_add(postings);
        self.postings_moved =
            moved.ok_or_else(|| used_up("postings moved", self.postings_moved, u64::BITS))?;
        Ok(())
    }

    /// Takes the number of the next run, and advances it.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if no number is left.
    pub(crate) fn take_run_number(&mut self) -> Result<u32> {
        let run = self.next_run;
        let next = run.checked_add(1);
        self.next_run = next.ok_or_else(|| used_up("runs", run.into(), u32::BITS))?;
        Ok(run)
    }

    /// Returns the contradiction between the counters of a file, if there is any: documents have
    /// ids below
    /// `next_id`, each at most once, and those that are in no run have one from `flushed_below` on.
    fn contradiction(&self) -> Option<String> {
        let ids_left = self.next_id.checked_sub(self.flushed_below);
        let all = self.documents.checked_add(self.deleted_documents);
        let is_possible = ids_left.is_some_and(|left| self.unflushed_documents <= left)
            && all.is_some_and(|all| all <= self.next_id)
            && self.unflushed_documents <= self.documents;
        (!is_possible).then(|| format!("found counters that contradict each other: {self:?}"))
    }
}

fn used_up(numbers: &'static str, found: u64, bits: u32) -> Error {
    let expected =
        format!("fewer than 2^{bits} in a store's life; build a new store of its documents");
    Error::invalid(numbers, found, expected)
}

/// Decodes the row `state` of `meta`, whose counters must not contradict each other.
///
/// # Errors
/// [`Error::Corrupt`].
pub(crate) fn decode_state(bytes: &[u8]) -> Result<State> {
    let state: State = decode_meta(STATE, bytes)?;
    match state.contradiction() {
        Some(detail) => Err(Error::corrupt(
            checksum::place(META, STATE.as_bytes()),
            detail,
        )),
        None => Ok(state),
    }
}

/// Encodes a structure as the checksummed row `name` of `meta`.
pub(crate) fn encode_meta(name: &str, value: &impl Serialize) -> Result<Vec<u8>> {
    checksum::encode(META, name.as_bytes(), name, value)
}

pub(crate) fn decode_meta<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T> {
    checksum::decode(META, name.as_bytes(), name, bytes)
}

/// Returns the row of a named position.
pub(crate) fn encode_position(name: &str, position: &[u8]) -> Vec<u8> {
    let mut row = position.to_vec();
    checksum::seal(META, position_row(name).as_bytes(), &mut row);
    row
}

pub(crate) fn decode_position(name: &str, row: &[u8]) -> Result<Vec<u8>> {
    checksum::open(META, position_row(name).as_bytes(), row).map(<[u8]>::to_vec)
}

/// Checks that a schema that was read is valid for this build.
pub(crate) fn check_schema(schema: &Schema) -> Result<()> {
    schema.validate().map_err(|error| match Error::from(error) {
        error @ Error::SelfTest { .. } => error,
        error => Error::corrupt("table meta, row schema", error.to_string()),
    })
}

/// Reads the weights of features. A large corpus has more of them than [`decode_meta`] accepts.
pub(crate) fn decode_weights(bytes: &[u8]) -> Result<DocumentFrequencies> {
    let body = checksum::encoded(META, WEIGHTS.as_bytes(), bytes)?;
    let words = body.as_chunks().0.iter();
    let mut numbers = words.map(|bytes| u64::from_le_bytes(*bytes));
    let mut pairs = std::iter::from_fn(|| numbers.next().zip(numbers.next()));
    let head = pairs.next();
    let of_features: Vec<_> = pairs.collect();
    let (found, whole) = (of_features.len(), 16 * (of_features.len() + 1));
    match head {
        Some((documents, features)) if features == found as u64 && body.len() == whole => {
            Ok(DocumentFrequencies::from_pairs(documents, of_features)?)
        }
        _ => {
            let detail = format!("found {} bytes, expected {whole}", body.len());
            Err(Error::corrupt("table meta, row weights", detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_versions_and_flags_determine_access() {
        let newer = Header {
            version: 9,
            oldest_reader: 9,
            ..Header::CURRENT
        };
        assert!(matches!(
            newer.admit(),
            Err(Error::NewerFormat { found: 9, .. })
        ));
        let readable = Header {
            version: 9,
            oldest_reader: 1,
            ..Header::CURRENT
        };
        assert!(
            !readable.admit().unwrap(),
            "a newer file that older releases read is not written"
        );
        assert!(
            Header {
                ignorable: 4,
                ..Header::CURRENT
            }
            .admit()
            .unwrap()
        );
        assert!(
            !Header {
                read_only: 4,
                ..Header::CURRENT
            }
            .admit()
            .unwrap()
        );
        let refused = Header {
            refuse: 4,
            ..Header::CURRENT
        };
        assert!(matches!(
            refused.admit(),
            Err(Error::UnknownFeatures { flags: 4 })
        ));
    }

    #[test]
    fn header_reports_damage_of_any_row() {
        use resemblance_sketch::schema::{MinHash, Schema, SimHash};
        let header = Header::CURRENT.encode();
        checksum::assert_damage_is_named(&header, Header::decode);
        let state = encode_meta(STATE, &State::INITIAL).unwrap();
        checksum::assert_damage_is_named(&state, |row| decode_meta::<State>(STATE, row));
        let schema = Schema::builder().simhash(SimHash::bits64());
        let schema = schema.minhash(MinHash::new(16)).build().unwrap();
        let row = encode_meta(SCHEMA, &schema).unwrap();
        checksum::assert_damage_is_named(&row, |row| decode_meta::<Schema>(SCHEMA, row));
        let row = encode_meta(SELF_TEST, &(1u64, 2u64)).unwrap();
        checksum::assert_damage_is_named(&row, |row| decode_meta::<(u64, u64)>(SELF_TEST, row));
    }

    #[test]
    fn header_state_round_trips() {
        let state = State {
            commit: 1,
            next_id: 2,
            documents: 3,
            flushed_below: 4,
            next_run: 5,
            unflushed_documents: 6,
            postings_moved: 7,
            deleted_documents: 8,
        };
        let bytes = encode_meta(STATE, &state).unwrap();
        assert_eq!(bytes.len(), 1 + 4 * 8 + 4 + 3 * 8 + 4);
        assert_eq!(decode_meta::<State>(STATE, &bytes).unwrap(), state);
    }
}
