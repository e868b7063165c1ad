//! Sections 2.11 and 2.12: the clusters that a store keeps, and their changes.

use std::collections::{BTreeMap, BTreeSet};

use crate::spec::bytes::Bytes;
use crate::spec::reader::Tables;

fn number(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().unwrap())
}

/// Reads a number without zeros at the end.
fn short(bytes: &[u8]) -> u64 {
    assert!(bytes.len() <= 8 && bytes.last() != Some(&0));
    bytes
        .iter()
        .rev()
        .fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// Reads the edges, each once, with the lower id first.
fn edges(tables: &Tables) -> BTreeSet<(u64, u64)> {
    let forest = &tables["forest"];
    let mut edges = BTreeSet::new();
    for (key, value) in forest {
        let (a, b) = (number(&key[..8]), number(&key[8..]));
        let mut bytes = Bytes::open("forest", key, value);
        let similarity = f64::from_bits(bytes.u64());
        assert!((-0.1..=1.0).contains(&similarity) && bytes.u16() <= 256);
        assert!(bytes.rest().is_empty() && a != b);
        let reverse = [&key[8..], &key[..8]].concat();
        let body = |key: &[u8]| Bytes::open("forest", key, &forest[key]).rest().to_vec();
        assert_eq!(body(key), body(&reverse));
        edges.insert((a.min(b), a.max(b)));
    }
    edges
}

/// Reads all changes, and returns the clusters with members to which they lead.
fn replay(tables: &Tables) -> BTreeMap<u64, BTreeSet<u64>> {
    let mut of = BTreeMap::new();
    let mut next = None;
    for (key, value) in &tables["feed"] {
        let mut bytes = Bytes::open("feed", key, value);
        let (first, _commit) = (number(key), bytes.u64());
        assert!(next.is_none_or(|next| next == first));
        let mut changes = 0;
        while !bytes.rest().is_empty() {
            changes += 1;
            let (kind, cluster) = (bytes.u8(), bytes.varint());
            match kind {
                0 => _ = of.insert(bytes.varint(), cluster),
                1 => assert_eq!(of.remove(&bytes.varint()), Some(cluster)),
                2 => {
                    let into = bytes.varint();
                    of.values_mut()
                        .filter(|it| **it == cluster)
                        .for_each(|it| *it = into);
                }
                3 => assert_ne!(bytes.varint(), cluster),
                kind => assert_eq!(kind, 4),
            }
        }
        next = Some(first + changes);
    }
    let mut members: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for (document, cluster) in of {
        members.entry(cluster).or_default().insert(document);
    }
    members
}

/// Reads the members of each cluster that has any; checks that its edges are a tree, of the form that
/// the linkage asks for.
pub(crate) fn read_clusters(tables: &Tables, linkage: u32) -> BTreeMap<u64, BTreeSet<u64>> {
    if !tables.contains_key("members") {
        return BTreeMap::new();
    }
    let (mut forwards, mut kept) = (BTreeMap::new(), BTreeMap::new());
    for (expected, (key, value)) in (0..).zip(&tables["clusters"]) {
        let mut bytes = Bytes::open("clusters", key, value);
        assert_eq!(number(key), expected);
        let kind = bytes.u8();
        let (documents, last) = bytes.rest().split_at(usize::from(kind / 4));
        let (documents, last) = (short(documents), short(last));
        match kind % 4 {
            0 => assert_eq!((documents, last), (0, 0)),
            kind @ (1 | 2) => _ = kept.insert(expected, (kind, documents, last)),
            _ => {
                assert_eq!(documents, 0);
                forwards.insert(expected, last);
            }
        }
    }
    let mut members: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for (key, value) in &tables["members"] {
        let mut cluster = short(Bytes::open("members", key, value).rest());
        while let Some(to) = forwards.get(&cluster) {
            cluster = *to;
        }
        members.entry(cluster).or_default().insert(number(key));
    }
    assert!(kept.keys().eq(members.keys()));
    let edges = edges(tables);
    for (cluster, found) in &members {
        let (kind, documents, first) = kept[cluster];
        assert_eq!(found.len() as u64, documents);
        assert!(found.contains(&first) && (kind == 2 || found.first() == Some(&first)));
        let mut tree = BTreeSet::from([first]);
        for _ in found {
            let near = edges
                .iter()
                .filter(|(a, b)| tree.contains(a) || tree.contains(b));
            let near: Vec<u64> = near.flat_map(|(a, b)| [*a, *b]).collect();
            tree.extend(near);
        }
        assert_eq!(&tree, found);
        let sorted: Vec<u64> = found.iter().copied().collect();
        let expected: BTreeSet<(u64, u64)> = match linkage {
            2 => {
                let others = sorted.iter().filter(|other| **other != first);
                others
                    .map(|other| (first.min(*other), first.max(*other)))
                    .collect()
            }
            3 => {
                assert_eq!(sorted[0], first);
                sorted.windows(2).map(|pair| (pair[0], pair[1])).collect()
            }
            _ => continue,
        };
        assert!(expected.is_subset(&edges));
    }
    let of_trees: usize = members.values().map(|members| members.len() - 1).sum();
    assert_eq!(edges.len(), of_trees);
    assert_eq!(replay(tables), members);
    members
}
