//! What all handles of a store share and never change, and whether the store may still be used.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::lanes::Lanes;
use crate::postings::FilterCache;
use crate::schema::Schema;
use crate::sketch::{EmptyDocuments, Signature, Sketcher};
use crate::store::engine::contained;
use crate::store::options::StoreOptions;
use crate::store::reads::ReadCounters;

pub(crate) struct Core {
    pub(crate) path: PathBuf,
    pub(crate) schema: Schema,
    pub(crate) lanes: Lanes,
    pub(crate) sketcher: Sketcher,
    /// The fingerprint of the recipe, which signatures made or read here carry.
    pub(crate) recipe: u64,
    pub(crate) options: StoreOptions,
    pub(crate) health: Health,
    /// Pieces of filters of runs.
    pub(crate) filters: FilterCache,
    pub(crate) reads: ReadCounters,
}

impl Core {
    pub(crate) fn new(path: PathBuf, schema: Schema, options: StoreOptions) -> Result<Self> {
        let sketcher = schema.sketcher();
        Ok(Self {
            path,
            lanes: schema.lane_set()?,
            recipe: sketcher.recipe_fingerprint(),
            sketcher,
            schema,
            health: Health::default(),
            filters: FilterCache::new(options.filter_cache_bytes()),
            reads: ReadCounters::default(),
            options,
        })
    }

    /// The widths of this store's signatures: MinHash values, and whether there is a fingerprint.
    pub(crate) fn shape(&self) -> (usize, bool) {
        let values = self.schema.minhash().map_or(0, |m| usize::from(m.values()));
        (values, self.schema.simhash().is_some())
    }

    /// Whether a signature can be stored here and compared with what is here.
    pub(crate) fn check_signature(&self, signature: &Signature) -> Result<()> {
        let (values, fingerprint) = self.shape();
        let found = signature.minhash().map_or(0, <[u32]>::len);
        if found != values {
            let expected = format!("{values}, as in the schema");
            return Err(Error::signature(
                format!("{found} MinHash values"),
                expected,
            ));
        }
        if signature.simhash().is_some() != fingerprint {
            let (found, expected) = if fingerprint {
                ("no SimHash fingerprint", "one, as in the schema")
            } else {
                ("a SimHash fingerprint", "none, as in the schema")
            };
            return Err(Error::signature(found, expected));
        }
        match signature.recipe_fingerprint() {
            Some(recipe) if recipe != self.recipe => {
                let found = format!("one made by recipe {recipe:016x}");
                Err(Error::signature(
                    found,
                    format!("recipe {:016x}, the store's", self.recipe),
                ))
            }
            _ => Ok(()),
        }
    }

    /// Whether the document is filed under bands and tables, and so can be near another.
    pub(crate) fn is_filed(&self, signature: &Signature) -> bool {
        !signature.is_empty() || self.schema.empty_documents() == EmptyDocuments::Alike
    }

    /// Runs something in the engine. A panic there, which damaged pages can cause, becomes an
    /// error, and the store is not used any more.
    pub(crate) fn guarded<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<T> {
        self.health.check()?;
        let mut panicked = true;
        let result = contained(|| {
            let result = run();
            panicked = false;
            result
        });
        if let Err(error) = &result
            && panicked
        {
            self.health.close(error.to_string());
        }
        result
    }
}

/// Why a store may not be used any more, once there is a reason.
#[derive(Debug, Default)]
pub(crate) struct Health {
    closed: Mutex<Option<String>>,
    writes_closed: Mutex<Option<String>>,
}

fn check(reason: &Mutex<Option<String>>) -> Result<()> {
    match reason
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .as_ref()
    {
        Some(reason) => Err(Error::Closed {
            reason: reason.clone(),
        }),
        None => Ok(()),
    }
}

impl Health {
    fn check(&self) -> Result<()> {
        check(&self.closed)
    }

    pub(crate) fn check_writes(&self) -> Result<()> {
        self.check()?;
        check(&self.writes_closed)
    }

    fn close(&self, reason: String) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }

    pub(crate) fn close_writes(&self, reason: String) {
        *self
            .writes_closed
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }
}
