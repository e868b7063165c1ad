//! Converts signatures to bytes and to codes of buckets, without a store.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::{decode_body, encode_signature};
use crate::maintain::transfer::pair_rule::PairRule;
use crate::options::StoreOptions;
use crate::query::Bounds;
use crate::state::{SharedContext, whole_shape_of};
use resemblance_sketch::lanes::TableDesign;
use resemblance_sketch::schema::Schema;
use resemblance_sketch::sketch::Signature;

/// Converts the signatures of a schema to bytes and back, and to the codes under which a store with
/// this schema indexes them. It serves programs that keep signatures elsewhere, or that sort them
/// into buckets on many machines. Sections 6 and 14 of `format-spec.md` specify both. A clone is
/// cheap, and all threads may use it.
///
/// ```
/// use resemblance::{MinHash, Schema, Text, distributed::Codec};
/// let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?;
/// let codec = Codec::new(&schema)?;
/// let signature = schema.sketcher().text("some text or other")?;
///
/// let bytes = codec.encode(&signature)?;
/// let read = codec.decode(&bytes)?;
/// assert_eq!(codec.encode(&read)?, bytes);
/// assert_eq!(codec.bucket_codes(&read)?, codec.bucket_codes(&signature)?);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone)]
pub struct Codec {
    /// That of a store which has this schema and no file.
    context: Arc<SharedContext>,
}

impl std::fmt::Debug for Codec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let schema = &self.context.schema;
        f.debug_struct("Codec").field("schema", schema).finish()
    }
}

impl Codec {
    /// Creates the codec of a schema.
    ///
    /// # Errors
    ///
    /// Only [`Error::Bug`].
    pub fn new(schema: &Schema) -> Result<Self> {
        let (path, options) = (PathBuf::new(), StoreOptions::new());
        let context = SharedContext::new(path, schema.clone(), options)?;
        Ok(Self {
            context: Arc::new(context),
        })
    }

    /// Returns a signature as bytes. Values are cut to the bits that the schema keeps. Signatures
    /// that are equal in a store with this schema therefore have equal bytes.
    ///
    /// # Errors
    ///
    /// [`Error::SignatureMismatch`] if the signature does not fit the schema.
    pub fn encode(&self, signature: &Signature) -> Result<Vec<u8>> {
        self.context.check_signature(signature)?;
        encode_signature(signature, &whole_shape_of(&self.context.schema))
    }

    /// Converts bytes to a signature.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if [`encode`](Self::encode) cannot have returned the bytes.
    pub fn decode(&self, bytes: &[u8]) -> Result<Signature> {
        let context = &self.context;
        let shape = whole_shape_of(&context.schema);
        let decoded = decode_body(bytes, &shape, context.recipe);
        let alone = decoded.filter(|(head, _)| !head.has_fields());
        let signature = alone.map(|(_, signature)| signature);
        signature.ok_or_else(|| {
            let found = format!("{} bytes of something else", bytes.len());
            Error::invalid("bytes", found, "those of a signature of this schema")
        })
    }

    /// Returns the bucket code of a signature in each band and then in each permuted table. Returns
    /// nothing for a signature that is not indexed and is near no other. Two signatures are
    /// candidates if they agree in at least one position.
    ///
    /// # Errors
    ///
    /// [`Error::SignatureMismatch`] if the signature does not fit the schema.
    pub fn bucket_codes(&self, signature: &Signature) -> Result<Vec<u64>> {
        let context = &self.context;
        context.check_signature(signature)?;
        let mut codes = Vec::new();
        if !context.is_filed(signature) {
            return Ok(codes);
        }
        context.band_codes(signature, &mut codes)?;
        if let Some(fingerprint) = signature.fingerprint() {
            context.lanes.table_codes(&fingerprint, &mut codes);
        }
        for (lane, code) in (1..).zip(&mut codes) {
            *code = context.lanes.bucket_bits(lane).bucket(*code);
        }
        Ok(codes)
    }

    /// Returns the rule by which two signatures with a bucket in common are a pair within bounds.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for bounds that the schema does not allow, and for a distance at
    /// which two documents need not share a bucket.
    ///
    /// ```
    /// # use resemblance::{Bounds, MinHash, Schema, distributed::Codec};
    /// # let schema = Schema::builder().minhash(MinHash::new(64).threshold(0.8)).build()?;
    /// let codec = Codec::new(&schema)?;
    /// assert!(codec.pair_rule(Bounds::new().min_similarity(0.9)).is_ok());
    /// assert!(codec.pair_rule(Bounds::new().max_distance(3)).is_err()); // there are no fingerprints
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn pair_rule(&self, bounds: Bounds) -> Result<PairRule> {
        let resolved = bounds.resolve(&self.context.schema, false)?;
        let proven = self
            .context
            .lanes
            .design()
            .map(TableDesign::bucket_distance);
        if let (Some(distance), Some(proven)) = (resolved.max_distance, proven)
            && distance > u32::from(proven)
        {
            let expected = format!("at most {proven}: within it two share the bucket of a table");
            return Err(Error::invalid("max_distance", distance, expected));
        }
        Ok(PairRule::new(&self.context, resolved))
    }

    /// Returns the digest of the signatures of fixed documents, which distinguishes builds that
    /// hash differently. Section 5.8 of `format-spec.md` specifies it. It takes about a
    /// millisecond.
    ///
    /// # Errors
    ///
    /// Only [`Error::Bug`].
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Text, distributed::Codec};
    /// let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?;
    /// let elsewhere = Schema::from_bytes(&schema.to_bytes()?)?; // another build of this crate
    /// assert_eq!(Codec::new(&schema)?.self_test()?, Codec::new(&elsewhere)?.self_test()?);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn self_test(&self) -> Result<u64> {
        Ok(self.context.sketcher.self_test()?)
    }
}
