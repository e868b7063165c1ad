//! Clusters that a store keeps: refusals, damage of their tables, and clusters of many documents.

use std::collections::BTreeMap;
use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableHandle};
use resemblance::schema::{ClusterBounds, Linkage, Rebanding};
use resemblance::{
    ClusterEvent, ClusterId, Document, DocumentId, Error, EvictPolicy, MinHash, Representative,
    Schema, Signature, SimHash, Store, StoreOptions,
};

use crate::common::engine::{database, sealed_row};
use crate::common::oracle::{Entry, Model};
use crate::common::sample::trials;
use crate::common::{Place, Random, append_all, check_clean, refused, remove_all};

const FOREST: TableDefinition<'static, &[u8; 16], &[u8]> = TableDefinition::new("forest");
const MEMBERS: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("members");
const CLUSTERS: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("clusters");
const FEED: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("feed");

fn schema() -> Schema {
    let builder = Schema::builder().simhash(SimHash::bits64().max_distance(3));
    builder.clusters(ClusterBounds::default()).build().unwrap()
}

/// A fingerprint at a place of a line on which neighbours are two bits apart.
fn on_line(place: u32) -> Signature {
    Signature::from_simhash(u64::MAX >> (2 * place))
}

fn key(a: u64, b: u64) -> [u8; 16] {
    (u128::from(a) << 64 | u128::from(b)).to_be_bytes()
}

/// Changes the tables of a store in which documents 0 to 4 are a chain in cluster 0.
type Damage = fn(&Database);

#[test]
fn kept_clusters_damage_is_found() {
    fn without<K: redb::Key + 'static>(
        database: &Database,
        table: TableDefinition<'static, K, &'static [u8]>,
        key: K::SelfType<'_>,
    ) {
        let write = database.begin_write().unwrap();
        let mut rows = write.open_table(table).unwrap();
        assert!(rows.remove(key).unwrap().is_some());
        drop(rows);
        write.commit().unwrap();
    }
    let damages: [(&str, Damage); 7] = [
        ("in the other direction", |it| {
            without(it, FOREST, &key(0, 1))
        }),
        ("with 2 documents that edges connect and Some(5)", |it| {
            without(it, FOREST, &key(2, 1));
            without(it, FOREST, &key(1, 2));
        }),
        ("found cluster None, expected 0 for its edges", |it| {
            without(it, MEMBERS, 2)
        }),
        ("found no members, expected document 4", |it| {
            without(it, CLUSTERS, 0)
        }),
        ("found changes from 3 on", |it| {
            // The first two joined in one commit, and the others one by one.
            without(it, FEED, 2);
        }),
        ("document 4 is in cluster None, expected Some(0)", |it| {
            without(it, MEMBERS, 4);
        }),
        ("found checksum", |it| {
            // A row under another key has the wrong checksum.
            let write = it.begin_write().unwrap();
            let mut rows = write.open_table(FOREST).unwrap();
            let row = rows.get(&key(0, 1)).unwrap().unwrap().value().to_vec();
            rows.insert(&key(7, 8), row.as_slice()).unwrap();
            rows.insert(&key(8, 7), row.as_slice()).unwrap();
            drop(rows);
            write.commit().unwrap();
        }),
    ];
    for (expected, damage) in damages {
        let place = Place::new();
        let store = Store::create(place.store(), schema()).unwrap();
        for place in 0..5 {
            store
                .insert(Document::without_key(), &on_line(place))
                .unwrap();
        }
        drop(store);
        check_clean(&place.store());
        damage(&database(place.store()));
        let report = Store::check(place.store()).run().unwrap();
        let mut found = report.problems.iter();
        let is_found = found.any(|it| it.detail.contains(expected));
        assert!(is_found, "{expected}: {:#?}", report.problems);
        // Repair finds the clusters of the documents again, and keeps the ids that it can read.
        let repaired = place.file("repaired.rsm");
        assert!(
            Store::repair(place.store(), &repaired)
                .run()
                .unwrap()
                .is_complete()
        );
        check_clean(&repaired);
        let snapshot = Store::open(&repaired).unwrap().snapshot().unwrap();
        assert_eq!(snapshot.members(ClusterId::new(0)).unwrap().len(), 5);
    }
}

/// Forged rows, with right checksums, made numbers wrap and repair give up.
#[test]
fn kept_clusters_forged_rows_are_damage_that_repair_leaves_out() {
    type Rows = TableDefinition<'static, u64, &'static [u8]>;
    fn put(database: &Database, table: Rows, key: u64, body: &[u8]) {
        let write = database.begin_write().unwrap();
        let row = sealed_row(table.name(), &key.to_be_bytes(), body.to_vec());
        let mut rows = write.open_table(table).unwrap();
        rows.insert(key, row.as_slice()).unwrap();
        drop(rows);
        write.commit().unwrap();
    }
    let damages: [(&str, Damage); 8] = [
        ("found 2 rows up to this one", |it| {
            put(it, CLUSTERS, u64::MAX, &[0])
        }),
        ("found 2 rows up to this one", |it| {
            put(it, CLUSTERS, 1 << 40, &[0])
        }),
        (
            "found KeptCluster { documents: 18446744073709551615",
            |it| put(it, CLUSTERS, 0, &[&[1 + 4 * 8][..], &[255; 8]].concat()),
        ),
        ("found a circle of ids that forward", |it| {
            put(it, CLUSTERS, 1, &[3, 2]);
            put(it, CLUSTERS, 2, &[3, 1]);
            put(it, MEMBERS, 0, &[1]);
        }),
        ("found no row, expected one", |it| {
            put(it, CLUSTERS, 1, &[3, 0, 0, 0, 0, 0, 1]);
        }),
        ("found no members, expected document 0", |it| {
            put(it, MEMBERS, 0, &[255; 8]);
        }),
        ("found position 18446744073709551614", |it| {
            put(it, FEED, u64::MAX - 1, &[0; 8])
        }),
        ("found changes from 9223372036854775807 on", |it| {
            put(it, FEED, u64::MAX >> 1, &[0; 8])
        }),
    ];
    let reband = Rebanding::new().max_distance(2);
    for (index, (expected, damage)) in damages.into_iter().enumerate() {
        let place = Place::new();
        let store = Store::create(place.store(), schema()).unwrap();
        append_all(&store, (0..5).map(on_line));
        drop(store);
        damage(&database(place.store()));
        let report = Store::check(place.store()).run().unwrap();
        let is_found = report
            .problems
            .iter()
            .any(|it| it.detail.contains(expected));
        assert!(is_found, "{expected}: {:#?}", report.problems);
        let repaired = place.file("repaired.rsm");
        let report = Store::repair(place.store(), &repaired).run().unwrap();
        assert!(report.is_complete());
        // The row of a cluster with members is rebuilt in any case.
        assert!(index == 2 || !report.damage.is_empty(), "{expected}");
        check_clean(&repaired);
        let snapshot = Store::open(&repaired).unwrap().snapshot().unwrap();
        assert_eq!(snapshot.members(ClusterId::new(0)).unwrap().len(), 5);

        let is_named = |error: &Error| matches!(error, Error::Corrupt { .. });
        let rebanded = place.file("rebanded.rsm");
        std::fs::copy(place.store(), &rebanded).unwrap();
        let ended = Store::reband(&rebanded, &reband).run();
        assert!(ended.as_ref().err().is_none_or(is_named), "{ended:?}");
        let store = Store::open(place.store()).unwrap();
        let far = Signature::from_simhash(0x5555_5555_5555_5555);
        let results =
            [on_line(5), far.clone(), far].map(|it| store.insert(Document::without_key(), &it));
        let mut errors = results.iter().filter_map(|it| it.as_ref().err());
        assert!(errors.all(is_named), "{expected}: {results:?}");
    }
}

/// Forged edges contradict the other rows: they are damage where a question or a change meets them.
#[test]
fn kept_clusters_forged_edges_are_damage() {
    type Ask = fn(&Store) -> resemblance::Result<()>;
    fn put(database: &Database, edges: [[u64; 2]; 2], is_there: bool) {
        let write = database.begin_write().unwrap();
        let mut rows = write.open_table(FOREST).unwrap();
        for key in edges.map(|[a, b]| key(a, b)) {
            let row = sealed_row("forest", &key, vec![0, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
            let old = match is_there {
                true => rows.insert(&key, row.as_slice()).unwrap(),
                false => rows.remove(&key).unwrap(),
            };
            assert_eq!(old.is_some(), !is_there);
        }
        drop(rows);
        write.commit().unwrap();
    }
    fn remove(store: &Store, id: u64) -> resemblance::Result<()> {
        let mut transaction = store.begin_write()?;
        transaction.remove_id(DocumentId::new(id)).map(drop)
    }
    /// Links a document that does not exist, as a sixth member.
    fn link_missing(database: &Database) {
        put(database, [[4, 99], [99, 4]], true);
        let write = database.begin_write().unwrap();
        let row = sealed_row("clusters", &[0; 8], vec![1 + 4, 6]);
        let mut rows = write.open_table(CLUSTERS).unwrap();
        rows.insert(0, row.as_slice()).unwrap();
        drop(rows);
        write.commit().unwrap();
    }
    let cases: [(Linkage, Damage, Ask); 6] = [
        (Linkage::Single, link_missing, |store| {
            let first = ClusterId::new(0);
            store
                .snapshot()?
                .representative(first, Representative::Latest)
                .map(drop)
        }),
        (Linkage::Single, link_missing, |store| {
            let first = ClusterId::new(0);
            store
                .snapshot()?
                .representative(first, Representative::Medoid)
                .map(drop)
        }),
        (
            Linkage::Single,
            |it| put(it, [[1, 2], [2, 1]], false),
            |store| {
                let [from, to] = [0, 4].map(DocumentId::new);
                store.snapshot()?.cluster_path(from, to).map(drop)
            },
        ),
        (
            Linkage::Single,
            |it| put(it, [[0, 4], [4, 0]], true),
            |store| remove(store, 2),
        ),
        (
            Linkage::Single,
            |it| put(it, [[5, 4], [4, 5]], true),
            |store| store.insert(Document::without_key(), &on_line(5)).map(drop),
        ),
        (
            Linkage::Complete,
            |it| {
                put(it, [[1, 2], [2, 1]], false);
                put(it, [[1, 99], [99, 1]], true);
            },
            |store| remove(store, 1),
        ),
    ];
    for (index, (linkage, damage, ask)) in cases.into_iter().enumerate() {
        let place = Place::new();
        let bounds = ClusterBounds::default().linkage(linkage);
        let schema = Schema::builder().simhash(SimHash::bits64().max_distance(3));
        let store = Store::create(place.store(), schema.clusters(bounds).build().unwrap()).unwrap();
        let step = u32::from(linkage == Linkage::Single);
        append_all(&store, (0..5).map(|it| on_line(it * step)));
        drop(store);
        check_clean(&place.store());
        damage(&database(place.store()));
        assert!(!Store::check(place.store()).run().unwrap().is_clean());
        let found = ask(&Store::open(place.store()).unwrap());
        assert!(
            matches!(found, Err(Error::Corrupt { .. })),
            "case {index}: {found:?}"
        );
    }
}

#[test]
fn kept_clusters_need_a_schema_that_keeps_them() {
    let place = Place::new();
    let plain = schema().with_clusters(None).unwrap();
    let store = Store::create(place.store(), plain).unwrap();
    let snapshot = store.snapshot().unwrap();
    refused(snapshot.cluster_of("a"), "schema");
    refused(snapshot.members(ClusterId::new(0)), "schema");
    refused(store.begin_write().unwrap().cluster_of("a"), "schema");
}

/// Clusters keep their ids when more documents are near, and when fewer are.
#[test]
fn kept_clusters_keep_their_ids_when_a_store_is_rebanded() {
    let place = Place::new();
    let store = Store::create(place.store(), schema()).unwrap();
    // Groups of neighbours, 6 and 4 bits apart: cluster 0 has two documents, 1 and 2 have three.
    append_all(&store, [0, 1, 4, 5, 6, 8, 9, 10].map(on_line));
    remove_all(&store, [2]);
    drop(store);
    let members = |distance, expected: &[&[u64]]| {
        let rebanding = Rebanding::new().max_distance(distance);
        Store::reband(place.store(), &rebanding).run().unwrap();
        check_clean(&place.store());
        let snapshot = Store::open(place.store()).unwrap().snapshot().unwrap();
        for (id, expected) in (0..).zip(expected) {
            let members = snapshot.members(ClusterId::new(id)).unwrap();
            let members: Vec<u64> = members.into_iter().map(DocumentId::get).collect();
            assert_eq!(&members, expected, "distance {distance}, cluster {id}");
        }
        assert!(
            snapshot
                .members(ClusterId::new(expected.len() as u64))
                .unwrap()
                .is_empty()
        );
    };
    // Cluster 1 and the larger one, 2, become one.
    members(4, &[&[0, 1], &[3, 4, 5, 6, 7], &[3, 4, 5, 6, 7]]);
    members(1, &[&[0], &[3], &[3]]);
    members(3, &[&[0, 1], &[3, 4], &[3, 4], &[5, 6, 7]]);
}

/// Each removal splits a chain in the middle, or takes its oldest document.
#[test]
fn kept_clusters_of_a_chain_split_where_it_is_cut() {
    let store = Store::in_memory(schema()).unwrap();
    append_all(&store, (0..32).map(on_line));
    let cluster = |id| {
        let snapshot = store.snapshot().unwrap();
        snapshot
            .cluster_of_id(DocumentId::new(id))
            .unwrap()
            .map(ClusterId::get)
    };
    remove_all(&store, [16]);
    assert_eq!(
        (cluster(0), cluster(15), cluster(17), cluster(31)),
        (Some(0), Some(0), Some(1), Some(1))
    );
    remove_all(&store, [0, 17, 2]);
    assert_eq!(
        (cluster(1), cluster(3), cluster(18)),
        (Some(0), Some(2), Some(1))
    );
    remove_all(&store, [4]);
    assert_eq!((cluster(3), cluster(5)), (Some(2), Some(3)));
    remove_all(&store, [1]);
    let largest = store.snapshot().unwrap().largest_clusters(9).unwrap();
    let largest: Vec<(u64, u64)> = largest
        .into_iter()
        .map(|(id, size)| (id.get(), size))
        .collect();
    assert_eq!(largest, [(1, 14), (3, 11), (2, 1)]);
}

/// A store with a chain of six documents, and two more copies of the second one.
fn chain(path: &Path, linkage: Linkage) -> Store {
    let bounds = ClusterBounds::default().linkage(linkage);
    let schema = schema().with_clusters(Some(bounds)).unwrap();
    let store = Store::create(path, schema).unwrap();
    append_all(&store, (0..6).chain([1, 1]).map(on_line));
    store
}

#[test]
fn kept_clusters_of_other_linkages_do_not_join_chains() {
    for (linkage, before, after) in [
        (Linkage::Single, vec![(0, 8)], vec![(0, 7)]),
        // The representative is gone, and document 2 is near its members.
        (
            Linkage::Star,
            vec![(0, 4), (1, 2), (2, 2)],
            vec![(1, 5), (2, 2)],
        ),
        (
            Linkage::Complete,
            vec![(0, 4), (1, 2), (2, 2)],
            vec![(0, 3), (1, 2), (2, 2)],
        ),
    ] {
        let place = Place::new();
        let store = chain(&place.store(), linkage);
        let sizes = || {
            let largest = store.snapshot().unwrap().largest_clusters(9).unwrap();
            let largest = largest.into_iter().map(|(id, size)| (id.get(), size));
            let mut sizes: Vec<(u64, u64)> = largest.collect();
            sizes.sort_unstable();
            sizes
        };
        assert_eq!(sizes(), before, "{linkage:?}");
        remove_all(&store, [0]);
        assert_eq!(sizes(), after, "{linkage:?}");
        drop(store);
        check_clean(&place.store());
    }
}

/// A removal leaves three parts. One is connected with the largest again, and neither with the one
/// that has the oldest member.
#[test]
fn kept_clusters_split_beside_parts_that_are_connected_again() {
    let place = Place::new();
    let store = Store::create(place.store(), schema()).unwrap();
    // A ring, in which neighbours are two bits apart, and a document beside its second one.
    let upper = (0..8).map(|it| (1 << (2 * it)) - 1);
    let lower = (0..8).map(|it| 0xffff_u64 & !((1 << (2 * it)) - 1));
    let ring: Vec<u64> = upper.chain(lower).collect();
    let beside = ring[1] ^ (3 << 60);
    let all = [beside].into_iter().chain(ring);
    append_all(&store, all.map(Signature::from_simhash));
    let mut transaction = store.begin_write().unwrap();
    assert!(transaction.remove_id(DocumentId::new(2)).unwrap());
    transaction.commit().unwrap();
    let snapshot = store.snapshot().unwrap();
    let cluster = snapshot.cluster_of_id(DocumentId::new(1)).unwrap().unwrap();
    let members = snapshot.members(cluster).unwrap();
    let expected = [1].into_iter().chain(3..17).map(DocumentId::new);
    assert_eq!(members, expected.collect::<Vec<_>>());
    drop((snapshot, store));
    check_clean(&place.store());
}

/// Another tree over the same members is no star, or no path.
#[test]
fn kept_clusters_damage_of_their_form_is_found() {
    for (linkage, removed, added, distance) in [
        (Linkage::Star, [0, 7], [6, 7], 0_u16),
        (Linkage::Complete, [0, 1], [0, 6], 2),
    ] {
        let place = Place::new();
        drop(chain(&place.store(), linkage));
        check_clean(&place.store());
        let database = database(place.store());
        let write = database.begin_write().unwrap();
        let mut rows = write.open_table(FOREST).unwrap();
        let both = |[a, b]: [u64; 2]| [key(a, b), key(b, a)];
        for key in both(removed) {
            assert!(rows.remove(&key).unwrap().is_some());
        }
        for key in both(added) {
            let mut row = [&0.0_f64.to_le_bytes()[..], &distance.to_le_bytes()].concat();
            let sealed = [b"forest\0", &key[..], &row].concat();
            row.extend(crc32fast::hash(&sealed).to_le_bytes());
            rows.insert(&key, row.as_slice()).unwrap();
        }
        drop(rows);
        write.commit().unwrap();
        drop(database);
        let report = Store::check(place.store()).run().unwrap();
        let details: Vec<&str> = report.problems.iter().map(|it| &*it.detail).collect();
        let is_form = |it: &&str| it.starts_with("found edges to");
        assert!(
            !details.is_empty() && details.iter().all(is_form),
            "{details:?}"
        );
    }
}

/// A removal from among equal documents connects its neighbours without a walk: the oldest, the
/// newest and any other of many can go.
#[test]
fn kept_clusters_of_equal_documents_stay_whole() {
    let documents = 150 * trials(1, 10) as u64;
    let minhash = MinHash::new(16).banding(4, 3).threshold(0.5);
    let schema = Schema::builder()
        .minhash(minhash)
        .clusters(ClusterBounds::default());
    let store = Store::in_memory(schema.build().unwrap()).unwrap();
    let mut transaction = store.begin_write().unwrap();
    for stamp in 0..documents {
        // Some values differ, so that the documents are not all equal.
        let values = (0..16).map(|place| if place == stamp % 16 { stamp as u32 } else { 1 });
        let signature = Signature::from_minhash(values.collect());
        transaction
            .insert(Document::without_key().stamp(stamp), &signature)
            .unwrap();
    }
    transaction.commit().unwrap();
    let size = || store.snapshot().unwrap().largest_clusters(2).unwrap();
    assert_eq!(size(), [(ClusterId::new(0), documents)]);
    let oldest = EvictPolicy::OlderThan(documents / 4);
    store.evict(oldest).run().unwrap();
    remove_all(&store, (documents / 4..documents).filter(|id| id % 3 == 1));
    let left = store.snapshot().unwrap().len();
    assert_eq!(size(), [(ClusterId::new(0), left)]);
    assert!(store.snapshot().unwrap().check().run().unwrap().is_clean());
}

/// A document among many near ones is compared with few of them, whether it enters or leaves. None
/// are identical.
#[test]
fn kept_clusters_of_near_documents_take_few_comparisons() {
    let documents = 2_000 * trials(1, 10) as u64;
    let minhash = MinHash::new(16).banding(4, 3).threshold(0.5);
    let schema = Schema::builder()
        .minhash(minhash)
        .clusters(ClusterBounds::default());
    let options = StoreOptions::new().flush_after(3_000);
    let store = options.create_in_memory(schema.build().unwrap()).unwrap();
    let signature = |stamp: u64| {
        let changed = [stamp % 16, (stamp / 16) % 16];
        let value = |place| match changed.contains(&place) {
            true => 2 + stamp as u32,
            false => 1,
        };
        Signature::from_minhash((0..16).map(value).collect())
    };
    for first in (0..documents).step_by(500) {
        append_all(&store, (first..first + 500).map(signature));
    }
    let most = 2 * documents;
    let compared = store.metrics().candidates;
    assert!(
        compared < most,
        "{compared} comparisons for {documents} documents"
    );
    remove_all(&store, (0..documents).filter(|id| id % 4 == 1));
    let compared = store.metrics().candidates - compared;
    assert!(compared < most, "{compared} comparisons for removals");
    let (size, left) = (
        store.snapshot().unwrap().largest_clusters(2).unwrap(),
        documents * 3 / 4,
    );
    assert_eq!(size, [(ClusterId::new(0), left)]);
    assert!(store.snapshot().unwrap().check().run().unwrap().is_clean());
}

/// Stars and complete clusters in a bucket of hundreds of documents are those of the model. A document
/// is compared with representatives and lone documents, and with the members of complete clusters that
/// it may join.
#[test]
fn kept_clusters_of_full_buckets_follow_their_linkage() {
    for linkage in [Linkage::Star, Linkage::Complete] {
        let bounds = ClusterBounds::default().linkage(linkage);
        let schema = schema().with_clusters(Some(bounds)).unwrap();
        let options = StoreOptions::new().flush_after(300);
        let store = options.create_in_memory(schema.clone()).unwrap();
        let mut model = Model::new(schema);
        let mut random = Random(7);
        let steps = trials(800, 3_000) as u64;
        for step in 1..=steps {
            let id = random.below(model.next_id + 1);
            if step > 400 && random.below(6) == 0 {
                let mut transaction = store.begin_write().unwrap();
                let is_removed = transaction.remove_id(DocumentId::new(id)).unwrap();
                transaction.commit().unwrap();
                assert_eq!(is_removed, model.remove(id));
            } else {
                let signature = on_line(random.below(6) as u32);
                store.insert(Document::without_key(), &signature).unwrap();
                model.insert(Entry::new(None, signature));
            }
            if step % 100 == 0 {
                model.same_clusters(&store.snapshot().unwrap());
            }
        }
        assert!(store.snapshot().unwrap().check().run().unwrap().is_clean());
        let compared = store.metrics().candidates;
        let most = match linkage {
            Linkage::Star => 20 * steps,
            _ => 300 * steps,
        };
        assert!(compared < most, "{compared} comparisons in {steps} steps");
        println!("{linkage:?}: {compared} comparisons in {steps} steps");
    }
}

/// A writer forgets full buckets when another one has written.
#[test]
fn kept_clusters_of_a_full_bucket_are_those_of_all_writers() {
    let minhash = MinHash::new(16).banding(4, 3).threshold(0.5);
    let schema = Schema::builder()
        .minhash(minhash)
        .clusters(ClusterBounds::default());
    let place = Place::new();
    let options = StoreOptions::new().shared_writers(true);
    let store = options
        .create(place.store(), schema.build().unwrap())
        .unwrap();
    let other = options.open(place.store()).unwrap();
    let split_at = |value: u32, place: u32| {
        let values = (0..16).map(|at| if at < place { 1 } else { value });
        Signature::from_minhash(values.collect())
    };
    append_all(&store, (2..402).map(|value| split_at(value, 15)));
    // In their bucket, but near none of them.
    append_all(&other, [split_at(9_999, 3)]);
    let size = |store: &Store| store.snapshot().unwrap().largest_clusters(1).unwrap();
    assert_eq!(size(&store), [(ClusterId::new(0), 400)]);
    append_all(&store, [split_at(9_999, 9)]);
    assert_eq!(size(&other), [(ClusterId::new(0), 402)]);
}

/// Each of many identical documents is linked to the newest one before it, so that none has many
/// edges, also where buckets are read in part.
#[test]
fn kept_clusters_of_identical_documents_have_no_hub() {
    let place = Place::new();
    let options = StoreOptions::new().flush_after(100);
    let store = options.create(place.store(), schema()).unwrap();
    append_all(&store, (0..1_300).map(|_| on_line(3)));
    remove_all(&store, (0..1_300).filter(|id| id % 5 == 2));
    let size = store.snapshot().unwrap().largest_clusters(2).unwrap();
    assert_eq!(size, [(ClusterId::new(0), 1_040)]);
    drop(store);
    let copy = place.file("repaired.rsm");
    assert!(
        Store::repair(place.store(), &copy)
            .run()
            .unwrap()
            .is_complete()
    );
    for path in [place.store(), copy] {
        check_clean(&path);
        let opened = database(&path);
        let read = opened.begin_read().unwrap();
        let rows = read.open_table(FOREST).unwrap();
        let mut edges = BTreeMap::new();
        for row in rows.iter().unwrap() {
            let (key, _) = row.unwrap();
            *edges.entry(key.value()[..8].to_vec()).or_insert(0) += 1;
        }
        assert_eq!(edges.len(), 1_040);
        assert!(edges.values().all(|edges| *edges <= 8), "{edges:?}");
    }
}

/// Whoever reads what is kept of the feed again and again misses nothing, and is told when something
/// is gone; also if one transaction makes more changes than are kept.
#[test]
fn cluster_changes_are_kept_in_a_number() {
    let options = StoreOptions::new().kept_changes(1_000);
    let store = options.create_in_memory(schema()).unwrap();
    let mut random = Random(5);
    let (mut position, mut clusters) = (0, BTreeMap::new());
    let mut missed = 0;
    for documents in [1, 1, 1, 20, 300, 5, 900, 2_500, 1, 1, 700, 700, 40] {
        let signatures = (0..documents).map(|_| on_line(random.below(9) as u32 * 3));
        append_all(&store, signatures);
        let snapshot = store.snapshot().unwrap();
        let end = snapshot.cluster_position().unwrap();
        if let Ok(changes) = snapshot.cluster_changes(position) {
            for change in changes {
                let change = change.unwrap();
                let ClusterEvent::Joined { document } = change.event else {
                    panic!("{change:?}");
                };
                clusters.insert(document, change.cluster);
            }
        } else {
            missed += 1;
            assert!(end - position > 1_000);
            refused(snapshot.cluster_changes(position), "since");
            for (id, _) in snapshot.largest_clusters(usize::MAX).unwrap() {
                let members = snapshot.members(id).unwrap();
                clusters.extend(members.into_iter().map(|member| (member, id)));
            }
        }
        position = end;
        refused(snapshot.cluster_changes(end + 1), "since");
        let kept = (0..=end)
            .rev()
            .take_while(|at| snapshot.cluster_changes(*at).is_ok())
            .count();
        assert!(
            kept as u64 > end.min(1_000) && kept < 1_600,
            "{kept} of {end}"
        );
        for (document, cluster) in &clusters {
            assert_eq!(snapshot.cluster_of_id(*document).unwrap(), Some(*cluster));
        }
        let members = snapshot.largest_clusters(usize::MAX).unwrap();
        let members: u64 = members.iter().map(|(_, members)| members).sum();
        assert_eq!(clusters.len() as u64, members);
        assert!(snapshot.check().run().unwrap().is_clean());
    }
    assert_eq!(missed, 1);
}

/// Two handles write in turns, and a reader follows both.
#[test]
fn cluster_changes_of_several_writers_are_one_feed() {
    let place = Place::new();
    let shared = StoreOptions::new().shared_writers(true);
    let writers = [
        shared.create(place.store(), schema()).unwrap(),
        Store::open(place.store()).unwrap(),
    ];
    let reader = Store::open_read_only(place.store()).unwrap();
    let mut position = 0;
    let mut random = Random(3);
    for step in 0..200_u64 {
        let writer = &writers[random.below(2) as usize];
        match random.below(4) {
            0 => _ = writer.remove(random.below(step + 1).to_string()).unwrap(),
            _ => {
                _ = writer
                    .upsert(&*step.to_string(), &on_line(random.below(32) as u32))
                    .unwrap()
            }
        }
        let snapshot = reader.snapshot().unwrap();
        let mut changes = snapshot.cluster_changes(position).unwrap();
        assert!(
            changes
                .by_ref()
                .all(|change| change.unwrap().commit == snapshot.commits())
        );
        position = changes.position();
        let replayed: Vec<(u64, u64)> = Model::replay(&snapshot)
            .iter()
            .map(|(id, members)| (*id, members.len() as u64))
            .collect();
        let mut kept = snapshot.largest_clusters(usize::MAX).unwrap();
        kept.sort_unstable();
        assert!(
            kept.iter()
                .map(|(id, members)| (id.get(), *members))
                .eq(replayed)
        );
    }
}

/// Edges, paths and representatives against brute force.
#[test]
fn questions_about_kept_clusters_have_the_answers_of_brute_force() {
    let store = Store::in_memory(schema()).unwrap();
    let mut random = Random(11);
    let mut transaction = store.begin_write().unwrap();
    let mut stamps = Vec::new();
    for number in 0..120_u64 {
        stamps.push(random.below(1_000));
        let document = Document::without_key().stamp(stamps[number as usize]);
        transaction
            .insert(document, &on_line(random.below(32) as u32))
            .unwrap();
    }
    transaction.commit().unwrap();
    remove_all(&store, (0..120).filter(|id| id % 7 == 2));
    let snapshot = store.snapshot().unwrap();
    let distance = |a: DocumentId, b: DocumentId| {
        let fingerprint = |id| {
            snapshot
                .get_id(id)
                .unwrap()
                .unwrap()
                .signature()
                .simhash()
                .unwrap()
        };
        (fingerprint(a) ^ fingerprint(b)).count_ones()
    };
    let mut grown = Vec::new();
    let clusters = snapshot.largest_clusters(usize::MAX).unwrap();
    assert!(clusters.len() > 1, "{clusters:?}");
    for (cluster, documents) in clusters {
        let members = snapshot.members(cluster).unwrap();
        let edges = snapshot.cluster_edges(cluster).unwrap();
        assert_eq!(edges.len(), members.len() - 1);
        for edge in &edges {
            assert!(edge.a < edge.b && members.contains(&edge.a) && members.contains(&edge.b));
            assert_eq!(edge.distance, Some(distance(edge.a, edge.b)));
            assert!(edge.distance <= Some(3) && edge.similarity.is_none());
        }
        for to in &members {
            let path = snapshot.cluster_path(members[0], *to).unwrap().unwrap();
            let mut at = members[0];
            for edge in path {
                assert!(edges.contains(&edge));
                at = if edge.a == at { edge.b } else { edge.a };
            }
            assert_eq!(at, *to);
        }
        let rule = |rule| snapshot.representative(cluster, rule).unwrap().unwrap();
        assert_eq!(rule(Representative::First), members[0]);
        let stamp = |id: &DocumentId| stamps[id.get() as usize];
        let latest = members.iter().rev().max_by_key(|id| stamp(id)).unwrap();
        assert_eq!(rule(Representative::Latest), *latest);
        let apart = |id: &DocumentId| {
            members
                .iter()
                .map(|other| distance(*id, *other))
                .sum::<u32>()
        };
        if members.len() <= 64 {
            assert_eq!(
                rule(Representative::Medoid),
                *members.iter().min_by_key(|id| apart(id)).unwrap()
            );
        }
        refused(
            snapshot.representative(cluster, Representative::Longest),
            "representative",
        );
        let new_documents = members.iter().filter(|id| stamp(id) >= 950).count() as u64;
        if new_documents > 0 {
            grown.push((cluster, documents, new_documents, stamp(latest)));
        }
    }
    grown.sort_by_key(|(cluster, .., latest)| std::cmp::Reverse((*latest, *cluster)));
    let found = snapshot.clusters_since(950, 100).unwrap();
    let found = found
        .iter()
        .map(|it| (it.cluster, it.documents, it.new_documents, it.latest));
    assert!(found.eq(grown));
    assert_eq!(snapshot.clusters_since(950, 1).unwrap().len(), 1);
    let [first, last] = [0, 119].map(DocumentId::new);
    assert_eq!(
        snapshot.cluster_path(first, DocumentId::new(2)).unwrap(),
        None
    );
    assert_eq!(
        snapshot
            .cluster_path(last, last)
            .unwrap()
            .map(|path| path.len()),
        Some(0)
    );
    assert!(
        snapshot
            .cluster_edges(ClusterId::new(1_000))
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        snapshot
            .representative(ClusterId::new(1_000), Representative::First)
            .unwrap(),
        None
    );
}

#[test]
fn kept_clusters_that_are_too_large_are_named() {
    let store = Store::in_memory(schema()).unwrap();
    append_all(&store, (0..999).map(|_| on_line(0)));
    assert!(
        store
            .snapshot()
            .unwrap()
            .suspicious_clusters()
            .unwrap()
            .is_empty()
    );
    append_all(&store, [on_line(0), on_line(20)]);
    remove_all(&store, [0]);
    append_all(&store, [on_line(0)]);
    let found = store.snapshot().unwrap().suspicious_clusters().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].first.get(), found[0].documents), (1, 1_000));
    let clusters = store.snapshot().unwrap().clusters().run().unwrap();
    assert_eq!(clusters.suspicious(), found);
}
