//! Encodes schemas as bytes, for programs that pass them to other processes.

use crate::error::{Result, SketchError};
use crate::metadata;
use crate::schema::Schema;
use crate::sketch::DocumentFrequencies;

const MAGIC: [u8; 8] = *b"RESEMSC\x1a";

/// The version of these bytes.
const VERSION: u16 = 1;

/// The parameter that errors name.
const BYTES: &str = "schema bytes";

impl Schema {
    /// Returns the schema as bytes, [weights](Self::with_weights) included, for another process or
    /// another program. Section 14 of `format-spec.md` specifies them.
    ///
    /// # Errors
    ///
    /// Only [`SketchError::Bug`].
    ///
    /// ```
    /// use resemblance_sketch::{MinHash, Schema, Text};
    /// let schema = Schema::builder().text(Text::words(3)).minhash(MinHash::new(64)).build()?;
    /// let bytes = schema.to_bytes()?;
    /// assert_eq!(Schema::from_bytes(&bytes)?, schema);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let body = metadata::encode("a schema", self)?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.sketcher().recipe_mark().fingerprint.to_le_bytes());
        bytes.extend((body.len() as u64).to_le_bytes());
        bytes.extend(body);
        if let Some(weights) = self.weights() {
            weights.save(&mut bytes)?;
        }
        Ok(bytes)
    }

    /// Reads a schema from the bytes that [`to_bytes`](Self::to_bytes) returned, and checks that
    /// this release could have built it.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] if the bytes are not a schema or a setting is out of
    /// range; [`SketchError::NewerFormat`] if a newer release wrote them; [`SketchError::SelfTest`]
    /// if the schema reads texts by another version of Unicode; [`SketchError::MissingFeature`] if
    /// the schema requires a feature that is not part of this build.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(64)).build()?;
    /// let sketcher = Schema::from_bytes(&schema.to_bytes()?)?.sketcher(); // in another process
    /// assert_eq!(sketcher.hashes([7])?, schema.sketcher().hashes([7])?);
    /// assert!(Schema::from_bytes(b"something else").is_err());
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or_else(|| other(bytes))?;
        let (version, rest) = rest.split_first_chunk().ok_or_else(|| other(bytes))?;
        let version = u16::from_le_bytes(*version);
        if version > VERSION {
            return Err(SketchError::NewerFormat {
                found: version,
                supported: VERSION,
            });
        }
        let (fingerprint, rest) = rest.split_first_chunk().ok_or_else(|| other(bytes))?;
        let (length, rest) = rest.split_first_chunk().ok_or_else(|| other(bytes))?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| other(bytes))?;
        let (body, weights) = rest.split_at_checked(length).ok_or_else(|| other(bytes))?;
        let schema = metadata::decode::<Self>("a schema", body).map_err(|error| match error {
            SketchError::Corrupt { detail, .. } => {
                SketchError::invalid(BYTES, detail, "those of a schema")
            }
            error => error,
        })?;
        schema.validate()?;
        let schema = match weights {
            [] => schema,
            weights => schema.with_weights(DocumentFrequencies::load(weights)?)?,
        };
        let found = schema.sketcher().recipe_mark().fingerprint;
        if version == 0 || found != u64::from_le_bytes(*fingerprint) {
            return Err(other(bytes));
        }
        Ok(schema)
    }

    /// Returns a hash of everything that determines how signatures are made. Signatures of two
    /// schemas can be compared if this hash is the same for both. Section 5.8 of `format-spec.md`
    /// specifies it.
    ///
    /// ```
    /// use resemblance_sketch::{MinHash, Schema};
    /// let schema = |threshold| {
    ///     let minhash = MinHash::new(64).threshold(threshold);
    ///     Schema::builder().minhash(minhash).build()
    /// };
    /// assert_eq!(schema(0.8)?.recipe_fingerprint(), schema(0.6)?.recipe_fingerprint());
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn recipe_fingerprint(&self) -> u64 {
        self.sketcher().recipe_mark().fingerprint
    }
}

fn other(bytes: &[u8]) -> SketchError {
    let found = format!("{} bytes of something else", bytes.len());
    SketchError::invalid(BYTES, found, "those that to_bytes returned")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::SimHash;
    use crate::text::Text;

    fn schema() -> Schema {
        let builder = Schema::builder().text(Text::words(2)).seed(42);
        builder.simhash(SimHash::bits64()).build().unwrap()
    }

    #[test]
    fn schema_bytes_include_weights() {
        let mut frequencies = DocumentFrequencies::new();
        frequencies.add([1, 2, 3]);
        let weighted = schema().with_weights(frequencies).unwrap();
        let read = Schema::from_bytes(&weighted.to_bytes().unwrap()).unwrap();
        assert_eq!(read.weights(), weighted.weights());
        assert_eq!(read, weighted);
        assert_ne!(read.recipe_fingerprint(), schema().recipe_fingerprint());
    }

    #[test]
    fn schema_bytes_refuse_foreign_data() {
        let bytes = schema().to_bytes().unwrap();
        for length in 0..bytes.len() {
            let cut = Schema::from_bytes(&bytes[..length]);
            assert!(
                matches!(cut, Err(SketchError::InvalidParameter { .. })),
                "{cut:?}"
            );
        }
        let mut newer = bytes.clone();
        newer[MAGIC.len()] = 2;
        assert!(matches!(
            Schema::from_bytes(&newer),
            Err(SketchError::NewerFormat { found: 2, .. })
        ));
        for place in MAGIC.len() + 2..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            // A threshold or a number of documents may still be valid after the change.
            if let Ok(read) = Schema::from_bytes(&changed) {
                assert_eq!(
                    read.recipe_fingerprint(),
                    schema().recipe_fingerprint(),
                    "{place}"
                );
            }
        }
    }
}
