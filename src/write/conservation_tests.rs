use std::sync::Arc;

use super::*;
use crate::error::Error;
use crate::options::StoreOptions;
use crate::read::SnapshotView;
use crate::state::OpenStore;
use crate::types::Document;
use crate::write::testing;
use crate::write::transaction::WriteTransaction;
use resemblance_sketch::sketch::Signature;

/// The damage that a bug in the store could do to a transaction.
type Slip = fn(&mut Writer);

fn store(folder: &tempfile::TempDir) -> (Arc<OpenStore>, Signature) {
    testing::store(folder, &StoreOptions::new().flush_after(4))
}

/// Documents 0 to 5 inserted, the first four of them flushed, and document 0 deleted.
fn changed(store: &Arc<OpenStore>, signature: &Signature) -> WriteTransaction {
    let mut transaction = WriteTransaction::begin(store).unwrap();
    for key in ["a", "b", "c", "d", "e", "f"] {
        let document = Document::new(key);
        transaction.insert(&document, signature).unwrap();
    }
    assert!(transaction.remove(b"a").unwrap().is_some());
    transaction
}

#[test]
fn wrong_document_count_is_a_bug_and_commits_nothing() {
    let slips: [Slip; 8] = [
        |writer| writer.state.documents += 1,
        |writer| {
            writer.counters.count.inserted.add(1);
        },
        |writer| {
            writer.counters.count.replaced.add(2);
        },
        |writer| writer.state.next_id += 1,
        |writer| writer.state.flushed_below += 9,
        |writer| writer.state.unflushed_documents += 1_000,
        |writer| Arc::make_mut(&mut writer.runs.current[0]).deleted += 1,
        |writer| drop(writer.runs.current.pop()),
    ];
    for (index, slip) in slips.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let (store, signature) = store(&folder);
        let mut transaction = changed(&store, &signature);
        slip(&mut transaction.writer);
        let result = transaction.commit();
        assert!(
            matches!(result, Err(Error::Bug { .. })),
            "slip {index}: {result:?}"
        );
        assert_eq!(SnapshotView::open(&store).unwrap().len(), 0);
        // Nothing was written, so the handle can go on.
        changed(&store, &signature).commit().unwrap();
        assert_eq!(SnapshotView::open(&store).unwrap().len(), 5);
    }
}

#[test]
fn after_a_bug_a_transaction_can_only_be_rolled_back() {
    let folder = tempfile::tempdir().unwrap();
    let (store, signature) = store(&folder);
    let mut transaction = changed(&store, &signature);
    transaction.writer.state.unflushed_documents = 0;
    let result = transaction.remove(b"f");
    assert!(matches!(result, Err(Error::Bug { .. })), "{result:?}");
    let refused = transaction.insert(Document::new("g"), &signature);
    assert!(matches!(refused, Err(Error::Closed { .. })));
    assert!(matches!(transaction.commit(), Err(Error::Closed { .. })));
    assert_eq!(SnapshotView::open(&store).unwrap().len(), 0);
}
