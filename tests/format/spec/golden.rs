//! The stores that are kept for ever, read by the independent reader.

use std::io::Read;
use std::path::Path;

use crate::spec::{reader, stored};

#[test]
fn golden_stores_follow_the_specification() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format-1");
    let place = tempfile::tempdir().unwrap();
    let (mut stores, mut with_clusters) = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "gz") {
            continue;
        }
        let mut bytes = Vec::new();
        let packed = std::fs::File::open(&path).unwrap();
        flate2::read::GzDecoder::new(packed)
            .read_to_end(&mut bytes)
            .unwrap();
        let unpacked = place.path().join("store");
        std::fs::write(&unpacked, bytes).unwrap();
        let store = reader::Store::read(&unpacked);
        stored::check(&store, &store.documents);
        let text = std::fs::read_to_string(path.with_extension("").with_extension("txt")).unwrap();
        let documents = text
            .lines()
            .filter_map(|line| line.strip_prefix("document "));
        let ids: Vec<u64> = documents
            .map(|line| line.split(' ').next().unwrap().parse().unwrap())
            .collect();
        assert!(store.documents.keys().eq(&ids), "{}", path.display());
        let mut clusters = String::new();
        for (id, members) in &store.clusters {
            let members: Vec<String> = members.iter().map(u64::to_string).collect();
            let edges = members.len() - 1;
            clusters += &format!("kept {id}: {}, {edges} edges\n", members.join(" "));
        }
        let kept = text.lines().filter(|line| line.starts_with("kept "));
        let kept: String = kept.map(|line| line.to_owned() + "\n").collect();
        assert_eq!(clusters, kept, "{}", path.display());
        with_clusters += u8::from(!kept.is_empty());
        let mut weights = String::new();
        if let Some((documents, counts)) = &store.weights {
            weights += &format!("weights of {documents} documents\n");
            for (feature, count) in counts {
                weights += &format!("  feature {feature:x} in {count}\n");
            }
        }
        let is_of_weights = |line: &&str| line.starts_with("weights") || line.contains(" feature ");
        let expected = text
            .lines()
            .filter(is_of_weights)
            .map(|line| line.to_owned() + "\n");
        assert_eq!(weights, expected.collect::<String>(), "{}", path.display());
        stores += 1;
    }
    assert!(stores >= 16, "only {stores} stores were found");
    assert!(with_clusters >= 2, "only {with_clusters} have clusters");
}
