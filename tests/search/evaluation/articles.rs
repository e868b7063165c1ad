//! The smoke test: an easy corpus with labels.

use std::collections::BTreeSet;

use crate::evaluation::corpus::Corpus;
use crate::evaluation::default_schema;
use crate::evaluation::stored::Stored;

#[test]
fn articles_yield_exactly_their_labelled_pairs() {
    let Some(corpus) = Corpus::read("articles2500") else {
        return;
    };
    let stored = Stored::new(&corpus, default_schema().build().unwrap(), 65_536);
    let labels = corpus.pairs("labels_plagiarism.tsv");
    let labels: BTreeSet<_> = labels.into_iter().map(|(pair, _)| pair).collect();
    assert_eq!((corpus.texts.len(), labels.len()), (2_500, 20));
    let found: BTreeSet<_> = stored.pairs().into_keys().collect();
    assert_eq!(found, labels);
    assert_eq!(stored.queried(), stored.pairs());
}
