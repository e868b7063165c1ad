//! Kept clusters against those that a join finds, after histories in which buckets are full.

use crate::snapshot::Snapshot;
use crate::testing::{Random, change, kinds, store};
use crate::types::DocumentId;
use resemblance_sketch::schema::ClusterBounds;

/// The clusters of at least two documents that a snapshot keeps, by their first members.
fn kept(snapshot: &Snapshot) -> Vec<Vec<DocumentId>> {
    let clusters = snapshot.largest_clusters(usize::MAX).unwrap();
    let members = clusters.into_iter().map(|(id, documents)| {
        let members = snapshot.members(id).unwrap();
        assert_eq!(members.len() as u64, documents);
        members
    });
    let mut kept: Vec<_> = members.filter(|members| members.len() > 1).collect();
    kept.sort_unstable();
    kept
}

#[test]
fn kept_clusters_of_full_buckets_are_those_of_a_join() {
    let mut tried = 0;
    for (seed, schema) in (0..).zip(kinds()) {
        let Ok(schema) = schema.with_clusters(Some(ClusterBounds::default())) else {
            continue;
        };
        let store = store(&schema, 40);
        let mut random = Random(seed);
        for round in 0..12 {
            let mut transaction = store.begin_write().unwrap();
            change(&mut transaction, &mut random, &schema, 30);
            match round % 4 {
                3 => drop(transaction),
                _ => transaction.commit().unwrap(),
            }
            let snapshot = store.snapshot().unwrap();
            let found: Vec<_> = snapshot.clusters().run().unwrap().collect();
            assert_eq!(kept(&snapshot), found, "{schema}, round {round}");
        }
        assert!(store.snapshot().unwrap().check().run().unwrap().is_clean());
        tried += 1;
    }
    assert!(tried >= 10, "{tried}");
}
