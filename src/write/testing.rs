//! A small store for unit tests.

use std::sync::Arc;

use crate::options::StoreOptions;
use crate::state::{OpenStore, create};
use resemblance_sketch::schema::{MinHash, Schema};
use resemblance_sketch::sketch::Signature;

/// Makes an empty store in a folder, and a signature that fits it.
pub(crate) fn store(
    folder: &tempfile::TempDir,
    options: &StoreOptions,
) -> (Arc<OpenStore>, Signature) {
    let schema = Schema::builder().minhash(MinHash::new(16).banding(4, 2));
    let path = folder.path().join("store.rsm");
    let store = create(&path, schema.build().unwrap(), options).unwrap();
    let signature = store.context.sketcher.hashes([1, 2, 3]).unwrap();
    (Arc::new(store), signature)
}
