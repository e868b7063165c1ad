//! Joins of a snapshot with itself: near-duplicate pairs, and the clusters that they form.

mod clusters;
mod pairs;

pub use clusters::Clusters;
pub use pairs::{Pair, Pairs};

use crate::error::Result;
use crate::store::{Bounds, Snapshot};

impl Snapshot {
    /// All pairs of documents within bounds, each pair once.
    ///
    /// The pairs are exactly those that a query for each document would give. They come in the
    /// order of the lanes in which they meet first, the same in every run over the same store.
    /// Memory holds one bucket of signatures at a time.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`](crate::Error::InvalidParameter) for bounds outside the schema;
    /// the iterator yields an error and ends where the file cannot be read.
    ///
    /// ```
    /// # use resemblance::{Bounds, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// for key in ["a", "b"] {
    ///     store.insert(key, &store.sketch_text("the same text under two keys")?)?;
    /// }
    /// let pairs: Vec<_> = store.snapshot()?.pairs(Bounds::new())?.collect::<Result<_, _>>()?;
    /// assert_eq!(pairs.len(), 1);
    /// assert_eq!(pairs[0].similarity, Some(1.0));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn pairs(&self, bounds: Bounds) -> Result<Pairs> {
        Pairs::new(self.clone(), bounds, false)
    }

    /// The connected components of the documents under the pairs within bounds: every link is a
    /// verified pair. Documents without a partner are left out.
    ///
    /// Memory holds a few dozen bytes a clustered document, whatever the number of pairs.
    ///
    /// # Errors
    ///
    /// As [`pairs`](Self::pairs), and [`Error::Corrupt`](crate::Error::Corrupt) and
    /// [`Error::Io`](crate::Error::Io) if the file cannot be read.
    ///
    /// ```
    /// # use resemblance::{Bounds, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// for key in ["a", "b", "c"] {
    ///     store.insert(key, &store.sketch_text("the same text under three keys")?)?;
    /// }
    /// let clusters: Vec<_> = store.snapshot()?.clusters(Bounds::new())?.collect();
    /// assert_eq!(clusters.len(), 1);
    /// assert_eq!(clusters[0].len(), 3);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn clusters(&self, bounds: Bounds) -> Result<Clusters> {
        Clusters::of(Pairs::new(self.clone(), bounds, true)?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::schema::{MinHash, Schema, SimHash};
    use crate::sketch::Signature;
    use crate::store::{Store, StoreOptions};

    /// Many documents that are alike and few that are not: linear where they are collapsed. The
    /// clusters must be those of all pairs.
    #[test]
    fn collapsing_documents_that_are_alike_leaves_clusters_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let schema = Schema::builder().minhash(MinHash::new(32).threshold(0.7));
        let schema = schema.simhash(SimHash::bits64()).build().unwrap();
        let options = StoreOptions::new().seal_after(100);
        let store = Store::create_with(folder.path().join("s"), schema, &options).unwrap();
        let mut transaction = store.begin_write().unwrap();
        for number in 0..600u32 {
            let (family, member) = (number % 7, (number / 7) % 3);
            let mut values: Vec<u32> = (0..32).map(|i| family * 1_000 + i).collect();
            for value in values.iter_mut().take(member as usize * 4) {
                *value += 500;
            }
            let fingerprint = u64::from(family).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let signature = Signature::from_parts(Some(values), Some(fingerprint ^ 1 << member));
            transaction.append(&signature).unwrap();
        }
        transaction.commit().unwrap();
        let snapshot = store.snapshot().unwrap();
        let mut forest: Vec<BTreeSet<_>> = Vec::new();
        for pair in snapshot.pairs(Bounds::new()).unwrap() {
            let pair = pair.unwrap();
            let (mut joined, apart): (Vec<_>, Vec<_>) = std::mem::take(&mut forest)
                .into_iter()
                .partition(|set: &BTreeSet<_>| set.contains(&pair.a) || set.contains(&pair.b));
            joined.push(BTreeSet::from([pair.a, pair.b]));
            forest = apart;
            forest.push(joined.into_iter().flatten().collect());
        }
        forest.sort();
        let clusters = snapshot.clusters(Bounds::new()).unwrap();
        let clusters: Vec<BTreeSet<_>> = clusters.map(BTreeSet::from_iter).collect();
        assert_eq!(clusters.len(), 7);
        assert_eq!(clusters, forest);
    }
}
