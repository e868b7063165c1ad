//! The shared context of a store's handles, which never changes, the codes that it gives a document, and the
//! store's health.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::engine::{OPENED_SINCE, catch_panic, is_of_page};
use crate::error::{Error, Result};
use crate::format::{Shape, VectorForm, check_packed, encode_document, encode_set};
use crate::index::RunCache;
use crate::invariant::{OrBug, invariant};
use crate::observe::SharedCounters;
use crate::options::StoreOptions;
use crate::sync::{HomeProcess, IgnorePoison};
use crate::types::Document;
use resemblance_sketch::exact::ExactSet;
use resemblance_sketch::lanes::{AgreementCurve, LaneCode, LaneSet, ProbeRadii, TableDesign};
use resemblance_sketch::schema::Schema;
use resemblance_sketch::sketch::{
    EmptyDocuments, KEPT_HASH_BITS, MinHashKind, RecipeMark, Signature, Sketcher,
};

/// Radii by distance and number of documents; none where buckets are too many.
type ChosenRadii = BTreeMap<(u32, u64), Option<Arc<ProbeRadii>>>;

/// The place of the exact sets of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetPlace {
    /// The sets have the table `sets`.
    Table,
    /// The sets are the kept hashes of containment, in the rows of documents.
    KeptHashes,
}

impl SetPlace {
    fn of(schema: &Schema) -> Option<Self> {
        match (schema.is_exact(), schema.has_sets()) {
            (true, true) => Some(Self::Table),
            (true, false) => Some(Self::KeptHashes),
            (false, _) => None,
        }
    }
}

/// Path, schema, options and counters of an open store. Everything but counters and health is fixed.
pub(crate) struct SharedContext {
    pub(crate) path: PathBuf,
    pub(crate) schema: Schema,
    pub(crate) lanes: LaneSet,
    pub(crate) sketcher: Sketcher,
    /// The mark that signatures made or read here carry.
    pub(crate) recipe: RecipeMark,
    shape: Shape,
    /// The place of the exact sets, in an exact store.
    pub(crate) exact: Option<SetPlace>,
    pub(crate) options: StoreOptions,
    pub(crate) health: Health,
    /// Cache of filters and blocks of runs.
    pub(crate) cache: RunCache,
    pub(crate) counters: Arc<SharedCounters>,
    radii: Mutex<ChosenRadii>,
}

impl SharedContext {
    pub(crate) fn new(path: PathBuf, schema: Schema, options: StoreOptions) -> Result<Self> {
        let sketcher = schema.sketcher();
        Ok(Self {
            path,
            shape: shape_of(&schema),
            exact: SetPlace::of(&schema),
            lanes: schema.lane_set()?,
            recipe: sketcher.recipe_mark(),
            sketcher,
            schema,
            health: Health::default(),
            cache: RunCache::new(options.run_cache_bytes(), options.filter_cache_bytes()),
            counters: Arc::default(),
            radii: Mutex::default(),
            options,
        })
    }

    /// Returns the radii by which a search finds every fingerprint within a distance among about
    /// this number of documents: see [`LaneSet::probe_radii`]. Choosing them takes longer than many
    /// a search, so they are chosen once for each power of two.
    pub(crate) fn probe_radii(&self, distance: u32, documents: u64) -> Option<Arc<ProbeRadii>> {
        let within = distance.min(self.shape.fingerprint_bits.into());
        // Beyond 2^63 documents there is no greater power.
        let about = documents.checked_next_power_of_two().unwrap_or(u64::MAX);
        let mut chosen = self.radii.lock().ignore_poison();
        let radii = chosen.entry((within, about));
        let choose = || self.lanes.probe_radii(within, about).map(Arc::new);
        radii.or_insert_with(choose).clone()
    }

    /// Returns the layout of the signatures in this store's rows.
    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns true if the code of a document in a table is its whole signature with the bits in
    /// another order, so that two codes determine the distance and no signature need be read.
    pub(crate) fn codes_are_signatures(&self) -> bool {
        let design = self.lanes.design();
        design.is_some_and(TableDesign::codes_are_exact)
            && self.shape.values.is_none()
            // Only the signature shows that a document has no features.
            && self.schema.empty_documents() == EmptyDocuments::Distinct
    }

    /// Checks that a signature can be stored here and compared with the stored ones.
    ///
    /// # Errors
    /// [`Error::SignatureMismatch`].
    pub(crate) fn check_signature(&self, signature: &Signature) -> Result<()> {
        self.check_values(signature)?;
        // A signature without a fingerprint has the same number of bits as a schema without one.
        let bits = signature.simhash_bits().unwrap_or(0);
        if bits != self.shape.fingerprint_bits {
            let fingerprint = |bits| match bits {
                0 => "none".to_owned(),
                bits => format!("one of {bits} bits"),
            };
            let expected = fingerprint(self.shape.fingerprint_bits);
            return Err(Error::signature(
                "SimHash fingerprint",
                fingerprint(bits),
                format!("{expected}, as in the schema"),
            ));
        }
        if signature.kept_hashes().is_some() != self.shape.has_kept_hashes {
            let words = |is_there| if is_there { "some" } else { "none" };
            let found = words(signature.kept_hashes().is_some());
            let expected = format!("{}, as in the schema", words(self.shape.has_kept_hashes));
            return Err(Error::signature("kept hashes", found, expected));
        }
        let has_hashes = signature
            .kept_hashes()
            .is_some_and(|hashes| !hashes.is_empty());
        if self.shape.has_positions && has_hashes && signature.kept_shingles().is_empty() {
            let expected = "hashes with their positions, as in the schema";
            return Err(Error::signature("kept hashes", "no positions", expected));
        }
        let has_sets = self.exact == Some(SetPlace::Table);
        if signature.exact_set().is_some() != has_sets {
            let words = |is_there| if is_there { "one" } else { "none" };
            let found = words(signature.exact_set().is_some());
            let expected = format!("{}, as in the schema", words(has_sets));
            return Err(Error::signature("exact set", found, expected));
        }
        check_packed(signature, &self.shape)?;
        match signature.recipe_mark() {
            Some(recipe) if recipe != self.recipe => {
                let part = self.recipe.differing_part(&recipe);
                let expected = match self.schema.recipe_part(part) {
                    Some(own) => format!("{own}, as in the schema"),
                    None => "the recipe of the schema".to_owned(),
                };
                Err(Error::signature(part, "one made with another", expected))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the MinHash values have the form of the schema, or can be cut to it.
    fn check_values(&self, signature: &Signature) -> Result<()> {
        let describe = |count: usize, bits: u8| match (count, bits) {
            (0, _) => "none".to_owned(),
            (count, 64) => format!("the smallest {count} hashes"),
            (count, bits) => format!("{count} of {bits} bits"),
        };
        let own = self
            .shape
            .values
            .map_or((0, 0), |layout| (layout.count().into(), layout.bits()));
        let found = signature.value_shape().unwrap_or((0, 0));
        let curve = self
            .shape
            .values
            .map_or(AgreementCurve::Identity, |layout| layout.curve());
        // Wider values are cut, but for those of vectors. The hashes of bottom-k have 64 bits, and
        // are another kind.
        let is_wider =
            curve == AgreementCurve::Identity && own.1 < 32 && own.1 <= found.1 && found.1 <= 32;
        if found.0 != own.0 || (found.1 != own.1 && !is_wider) {
            let expected = format!("{}, as in the schema", describe(own.0, own.1));
            let found = describe(found.0, found.1);
            return Err(Error::signature(curve.value_name(), found, expected));
        }
        Ok(())
    }

    /// Appends the codes of a signature, one for each band.
    pub(crate) fn band_codes(&self, signature: &Signature, codes: &mut Vec<u64>) -> Result<()> {
        if self.lanes.band_count() == 0 {
            return Ok(());
        }
        let rows = signature.rows(self.shape.values);
        Ok(self.lanes.band_codes(&rows, codes)?)
    }

    /// Encodes the row of a document.
    pub(crate) fn document_row(
        &self,
        id: u64,
        document: &Document<'_>,
        signature: &Signature,
    ) -> Result<Vec<u8>> {
        encode_document(id, document, signature, &self.shape)
    }

    /// Encodes the row of a document's exact set in a store with the table `sets`.
    pub(crate) fn set_row(&self, id: u64, signature: &Signature) -> Result<Option<Vec<u8>>> {
        match self.exact {
            Some(SetPlace::Table) => self.any_set_row(id, signature),
            _ => Ok(None),
        }
    }

    /// Encodes the exact set of a signature as a row, whatever its place in the store. Returns
    /// `None` unless the store is exact.
    pub(crate) fn any_set_row(&self, id: u64, signature: &Signature) -> Result<Option<Vec<u8>>> {
        let set = self.set_of(signature)?;
        set.map(|set| encode_set(id, &set, &self.shape)).transpose()
    }

    /// Returns the exact set of a signature; `None` unless the store is exact.
    pub(crate) fn set_of<'s>(&self, signature: &'s Signature) -> Result<Option<Cow<'s, ExactSet>>> {
        Ok(match self.exact {
            None => None,
            Some(SetPlace::Table) => {
                let set = signature.exact_set();
                Some(Cow::Borrowed(set.or_bug("the exact set of a signature")?))
            }
            Some(SetPlace::KeptHashes) => {
                let hashes = signature.kept_hashes();
                let hashes = hashes.or_bug("the kept hashes of a signature")?;
                Some(Cow::Owned(ExactSet::from_sorted(
                    hashes.to_vec(),
                    Vec::new(),
                )))
            }
        })
    }

    /// Returns the similarity of two exact sets. If it is below `floor`, returns any number below
    /// `floor`.
    pub(crate) fn compare_sets(&self, a: &ExactSet, b: &ExactSet, floor: f64) -> Result<f64> {
        Ok(a.similarity_from(floor, b, self.minhash_kind()?)?)
    }

    /// Returns the maximum similarity of two exact sets with these numbers of features.
    pub(crate) fn max_similarity(&self, a: &ExactSet, b_count: usize) -> Result<f64> {
        let kind = self.minhash_kind()?;
        Ok(ExactSet::max_similarity(a.hashes().len(), b_count, kind))
    }

    fn minhash_kind(&self) -> Result<MinHashKind> {
        let minhash = self.schema.minhash();
        Ok(minhash.or_bug("the MinHash of an exact schema")?.kind())
    }

    /// Returns the similarity of the sets of two signatures, or `None` unless the store is exact.
    /// If it is below `floor`, returns any number below `floor`.
    pub(crate) fn set_similarity(
        &self,
        a: &Signature,
        b: &Signature,
        floor: f64,
    ) -> Result<Option<f64>> {
        let sets = self.set_of(a)?.zip(self.set_of(b)?);
        sets.map(|(a, b)| self.compare_sets(&a, &b, floor))
            .transpose()
    }

    /// Returns true if a document with this signature is indexed in bands and tables, so that it can be
    /// near another one.
    pub(crate) fn is_filed(&self, signature: &Signature) -> bool {
        !signature.is_empty() || self.schema.empty_documents() == EmptyDocuments::Alike
    }

    /// Runs code that reads or writes the file. A panic becomes an error: `Corrupt` if the file has
    /// failed before, else `Bug` at the line of the caller. After a panic, or where a page is damaged,
    /// the store is not used any more.
    #[track_caller]
    pub(crate) fn run_checked<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<T> {
        self.health.check()?;
        let mut panicked = true;
        let result = catch_panic(&self.counters.file, || {
            let result = run();
            panicked = false;
            result
        });
        // After a damaged page the engine reads nothing more, and later errors would not give the
        // reason.
        if let Err(error) = &result {
            let is_last = panicked || is_of_page(error);
            self.note_error(error, is_last);
            if is_last {
                self.health.close(error.to_string());
            }
        }
        match result {
            // The first failure may have been another thread's. The engine does not repeat its reason.
            Err(Error::Closed { .. }) if !self.is_current() => Err(Error::Closed {
                reason: OPENED_SINCE.to_owned(),
            }),
            result => result,
        }
    }

    /// Returns false if the store was recovered in memory, and a writer has opened the file since.
    fn is_current(&self) -> bool {
        let files = self.options.shared_files();
        files.0.are_current().unwrap_or(true)
    }
}

/// Fills `row` with the codes of a document in the lanes of the store, in the order of the lanes.
/// The lane of keys has none for a document without a key. All other lanes have none for a document
/// that is not indexed by its signature. The lane of kept hashes has any number, ascending.
///
/// # Errors
/// [`Error::Bug`](crate::Error::Bug) if the signature does not have a code for each band and table.
pub(crate) fn document_codes(
    context: &SharedContext,
    key_code: Option<u64>,
    signature: &Signature,
    row: &mut Vec<LaneCode>,
) -> Result<()> {
    row.clear();
    row.extend(key_code.map(|code| LaneCode { lane: 0, code }));
    if !context.is_filed(signature) {
        return Ok(());
    }
    let mut codes = Vec::with_capacity(context.lanes.single_count().into());
    context.band_codes(signature, &mut codes)?;
    if let Some(fingerprint) = signature.fingerprint() {
        context.lanes.table_codes(&fingerprint, &mut codes);
    }
    let (found, expected) = (1 + codes.len(), usize::from(context.lanes.single_count()));
    invariant!(
        found == expected,
        "a signature has codes for {found} lanes of {expected}"
    );
    let lanes = (1..).zip(codes);
    row.extend(lanes.map(|(lane, code)| LaneCode { lane, code }));
    if let Some(lane) = context.lanes.kept_lane() {
        let hashes = signature
            .kept_hashes()
            .or_bug("kept hashes of a signature")?;
        row.extend(hashes.iter().map(|&code| LaneCode { lane, code }));
    }
    Ok(())
}

/// Returns the layout of complete signatures of a schema outside of a store's tables.
pub(crate) fn whole_shape_of(schema: &Schema) -> Shape {
    Shape {
        has_set: schema.has_sets(),
        ..shape_of(schema)
    }
}

/// Returns the layout of the signatures in the rows of a store with this schema.
pub(crate) fn shape_of(schema: &Schema) -> Shape {
    let minhash = schema.minhash();
    let layout = minhash.map(|minhash| minhash.layout());
    let bits = schema.simhash().map_or(0, |simhash| simhash.bits());
    Shape {
        values: layout,
        are_samples: minhash.is_some_and(|minhash| minhash.kind().is_weighted()),
        fingerprint_bits: bits,
        has_kept_hashes: schema.containment().is_some(),
        has_positions: schema.containment().is_some_and(|it| it.has_positions()),
        has_set: false,
        set_bits: schema.exact_bits().unwrap_or(KEPT_HASH_BITS),
        vector: schema.vector().and_then(|vector| {
            Some(VectorForm {
                dimensions: vector.dimensions(),
                kept: vector.kept()?,
            })
        }),
    }
}

/// The reasons for which a store may not be used any more, if there are any.
#[derive(Debug, Default)]
pub(crate) struct Health {
    home: HomeProcess,
    /// Closed for every use.
    closed: Mutex<Option<String>>,
    /// Closed for writing.
    writes_closed: Mutex<Option<String>>,
}

fn check(reason: &Mutex<Option<String>>) -> Result<()> {
    match reason.lock().ignore_poison().as_ref() {
        Some(reason) => Err(Error::Closed {
            reason: format!("the store must be opened again: {reason}"),
        }),
        None => Ok(()),
    }
}

impl Health {
    fn check(&self) -> Result<()> {
        // First: in another process a lock may never be released.
        self.check_home()?;
        check(&self.closed)
    }

    /// The process that opened the store.
    pub(crate) fn home(&self) -> HomeProcess {
        self.home.clone()
    }

    /// True in the process that opened the store.
    pub(crate) fn is_at_home(&self) -> bool {
        self.home.is_current()
    }

    /// # Errors
    /// [`Error::Forked`] in any process except the one that opened the store.
    pub(crate) fn check_home(&self) -> Result<()> {
        Ok(self.home.check()?)
    }

    pub(crate) fn check_writes(&self) -> Result<()> {
        self.check()?;
        check(&self.writes_closed)
    }

    fn close(&self, reason: String) {
        *self.closed.lock().ignore_poison() = Some(reason);
    }

    pub(crate) fn close_writes(&self, reason: String) {
        *self.writes_closed.lock().ignore_poison() = Some(reason);
    }
}
