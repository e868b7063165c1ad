//! The contents of a store as text: what a user can see, without how it is stored.

use std::fmt::Write;

use resemblance::schema::{EmptyDocuments, Linkage};
use resemblance::{ClusterEvent, ClusterId, Combine, Record, Schema, Snapshot, Store};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Similarities as millionths: the text of a floating-point number is not part of a format.
fn similarity(similarity: Option<f64>) -> String {
    similarity.map_or("-".into(), |similarity| {
        format!("{}", (similarity * 1e6).round() as u64)
    })
}

fn distance(distance: Option<u32>) -> String {
    distance.map_or("-".into(), |distance| distance.to_string())
}

fn document(text: &mut String, record: &Record) {
    let key = record.key().map_or("none".into(), |key| {
        format!("{:?}", String::from_utf8_lossy(key))
    });
    let (id, stamp, payload) = (record.id().get(), record.stamp(), hex(record.payload()));
    writeln!(
        text,
        "document {id} key {key} stamp {stamp} payload [{payload}]"
    )
    .unwrap();
    let signature = record.signature();
    if signature.is_empty() {
        writeln!(text, "  empty").unwrap();
    }
    if let Some(values) = signature.minhash() {
        let values: Vec<String> = values.iter().map(|value| format!("{value:x}")).collect();
        writeln!(text, "  minhash {}", values.join(" ")).unwrap();
    }
    if let Some(hashes) = signature.bottom_k() {
        let hashes: Vec<String> = hashes.iter().map(|hash| format!("{hash:x}")).collect();
        writeln!(text, "  bottom-k {}", hashes.join(" ")).unwrap();
    }
    if let Some(fingerprint) = signature.simhash() {
        writeln!(text, "  simhash {fingerprint:x}").unwrap();
    } else if let Some(fingerprint) = signature.fingerprint() {
        let digits = fingerprint.to_string();
        writeln!(text, "  simhash {:0>1}", digits.trim_start_matches('0')).unwrap();
    }
    if let Some(hashes) = signature.kept_hashes() {
        let hashes: Vec<String> = hashes.iter().map(|hash| format!("{hash:x}")).collect();
        writeln!(text, "  kept {}", hashes.join(" ")).unwrap();
    }
    if let Some(vector) = signature.vector() {
        let bits = vector.iter().map(|component| component.to_bits());
        let bits: Vec<String> = bits.map(|bits| format!("{bits:x}")).collect();
        writeln!(text, "  vector {}", bits.join(" ")).unwrap();
    } else if let Some(set) = signature.exact_set() {
        let hashes: Vec<String> = set
            .hashes()
            .iter()
            .map(|hash| format!("{hash:x}"))
            .collect();
        writeln!(text, "  set {}", hashes.join(" ")).unwrap();
        let weights: Vec<String> = set.weights().iter().map(u64::to_string).collect();
        writeln!(text, "  weights {}", weights.join(" ")).unwrap();
    }
}

fn near(text: &mut String, snapshot: &Snapshot, record: &Record) {
    let found = snapshot.query(record.signature()).run().unwrap();
    let found = found.iter().map(|found| {
        let (similarity, distance) = (similarity(found.similarity()), distance(found.distance()));
        format!("{}:{similarity}:{distance}", found.id().get())
    });
    let found: Vec<String> = found.collect();
    writeln!(text, "near {}: {}", record.id().get(), found.join(" ")).unwrap();
}

fn overlapping(text: &mut String, snapshot: &Snapshot, record: &Record) {
    let found = snapshot.overlaps(record.signature()).run().unwrap();
    let found = found.iter().map(|found| {
        let (shared, of) = (found.shared_hashes(), found.document_hashes());
        let mut text = format!("{}:{shared}:{of}", found.id().get());
        for passage in found.passages().into_iter().flatten() {
            let (query, document) = (&passage.query, &passage.document);
            write!(text, ":{query:?}={document:?}").unwrap();
        }
        text
    });
    let found: Vec<String> = found.collect();
    writeln!(text, "overlap {}: {}", record.id().get(), found.join(" ")).unwrap();
}

/// Numbers only: how a schema is printed is not part of a format either.
fn schema(schema: &Schema) -> String {
    let mut text = String::new();
    let (seed, lanes) = (schema.seed(), schema.lanes());
    let is_alike = schema.empty_documents() == EmptyDocuments::Alike;
    let needs_both = schema.near() == Combine::Both;
    let reads_texts = schema.text().is_some();
    writeln!(
        text,
        "schema seed {seed} lanes {lanes} alike {is_alike} both {needs_both} texts {reads_texts}"
    )
    .unwrap();
    if let Some(minhash) = schema.minhash() {
        let (values, value_bits) = (minhash.values(), minhash.value_bits());
        let (bands, rows, code_bits) = (minhash.bands(), minhash.rows(), minhash.code_bits());
        let threshold = similarity(Some(minhash.threshold()));
        writeln!(text, "schema minhash {values} of {value_bits} bits, {bands} x {rows}, {code_bits}, {threshold}").unwrap();
    }
    if let Some(simhash) = schema.simhash() {
        let (bits, distance) = (simhash.bits(), simhash.max_distance());
        let groups = simhash.groups();
        writeln!(text, "schema simhash {bits} within {distance}, {groups:?}").unwrap();
    }
    if let Some(containment) = schema.containment() {
        let units = containment.shingle_units();
        let (window, scale) = (containment.window_shingles(), containment.scale());
        writeln!(text, "schema containment {units} {window:?} {scale:?}").unwrap();
    }
    text
}

/// The clusters that the store keeps, the ids that lead to them, and how they have changed.
fn kept_clusters(text: &mut String, snapshot: &Snapshot) {
    let Some(bounds) = snapshot.schema().clusters() else {
        return;
    };
    let (least, most) = (similarity(bounds.min_similarity), bounds.max_distance);
    let is_star = bounds.linkage == Linkage::Star;
    writeln!(text, "schema clusters {least} {most:?} star {is_star}").unwrap();
    // No cluster has begun or ended without a change.
    let ids = 0..=snapshot.cluster_position().unwrap();
    for id in ids.map(ClusterId::new) {
        let members = snapshot.members(id).unwrap();
        let Some(first) = members.first() else {
            continue;
        };
        let now = snapshot.cluster_of_id(*first).unwrap().unwrap();
        if now != id {
            writeln!(text, "former {id} is {now}").unwrap();
            continue;
        }
        let members: Vec<String> = members.iter().map(|id| id.get().to_string()).collect();
        let edges = snapshot.cluster_edges(id).unwrap().len();
        writeln!(text, "kept {id}: {}, {edges} edges", members.join(" ")).unwrap();
    }
    for change in snapshot.cluster_changes(0).unwrap() {
        let change = change.unwrap();
        let (position, commit, cluster) = (change.position, change.commit, change.cluster);
        let event = match change.event {
            ClusterEvent::Joined { document } => format!("joined by {document}"),
            ClusterEvent::Left { document } => format!("left by {document}"),
            ClusterEvent::United { into } => format!("united with {into}"),
            ClusterEvent::SplitFrom { from } => format!("split from {from}"),
            ClusterEvent::Ended => "ended".into(),
            other => panic!("{other:?}"),
        };
        writeln!(text, "change {position} in {commit}: {cluster} {event}").unwrap();
    }
}

/// All documents, who is near whom, and the schema.
pub(crate) fn of(store: &Store) -> String {
    let mut text = schema(store.schema());
    let snapshot = store.snapshot().unwrap();
    if let Some(weights) = store.schema().weights() {
        writeln!(text, "weights of {} documents", weights.documents()).unwrap();
        for (feature, documents) in weights.iter() {
            writeln!(text, "  feature {feature:x} in {documents}").unwrap();
        }
    }
    writeln!(text, "documents {}", snapshot.len()).unwrap();
    let records: Vec<Record> = snapshot.iter().map(Result::unwrap).collect();
    for record in &records {
        document(&mut text, record);
    }
    if store.schema().containment().is_some() {
        for record in records.iter().step_by(5) {
            overlapping(&mut text, &snapshot, record);
        }
    }
    kept_clusters(&mut text, &snapshot);
    if store.schema().minhash().is_none() && store.schema().simhash().is_none() {
        return text;
    }
    for record in records.iter().step_by(5) {
        near(&mut text, &snapshot, record);
    }
    for pair in snapshot.pairs().run().unwrap() {
        let pair = pair.unwrap();
        let (similarity, distance) = (similarity(pair.similarity), distance(pair.distance));
        let (a, b) = (pair.a.get(), pair.b.get());
        writeln!(text, "pair {a} {b} {similarity} {distance}").unwrap();
    }
    for cluster in snapshot.clusters().run().unwrap() {
        let ids: Vec<String> = cluster.iter().map(|id| id.get().to_string()).collect();
        writeln!(text, "cluster {}", ids.join(" ")).unwrap();
    }
    text
}
