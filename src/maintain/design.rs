//! Whether the documents of a store are still as many as its schema was made for.

use crate::error::Result;
use crate::schema::DesignReport;
use crate::snapshot::Snapshot;
use crate::store::Store;

impl Store {
    /// How the bands and tables fit the number of documents after the last commit. Worth a look
    /// after inserting many.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store};
    /// # let folder = tempfile::tempdir().unwrap();
    /// let schema = Schema::builder().minhash(MinHash::new(64)).expected_documents(1).build()?;
    /// let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// for number in 0..2 {
    ///     store.append(&store.sketcher().hashes([number])?)?;
    /// }
    /// if let Some(advice) = store.design()?.advice {
    ///     eprintln!("{advice}");
    /// }
    /// # assert!(store.design()?.is_outgrown);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`snapshot`](Self::snapshot).
    pub fn design(&self) -> Result<DesignReport> {
        Ok(self.snapshot()?.design())
    }
}

impl Snapshot {
    /// How the bands and tables fit the number of documents.
    #[must_use]
    pub fn design(&self) -> DesignReport {
        DesignReport::new(self.schema(), self.len())
    }
}
