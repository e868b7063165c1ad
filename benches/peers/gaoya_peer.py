"""gaoya: TASK CORPUS OUT. It is in memory, and cuts words itself, in Rust."""

import sys

from gaoya.minhash import MinHashStringIndex
from shared import BANDS, ROWS, THRESHOLD, documents, write_kept, write_pairs


def index():
    return MinHashStringIndex(
        hash_size=32,
        jaccard_threshold=THRESHOLD,
        num_bands=BANDS,
        band_size=ROWS,
        analyzer="word",
        lowercase=True,
        ngram_range=(5, 5),
        id_container="vec",
    )


def pairs(corpus, out):
    ids, texts = zip(*documents(corpus))
    gaoya = index()
    gaoya.par_bulk_insert_docs(list(range(len(ids))), list(texts))
    answers = enumerate(gaoya.par_bulk_query(list(texts)))
    found = ((ids[other], ids[own]) for own, others in answers for other in others if other < own)
    write_pairs(out, found)


def dedup(corpus, out):
    gaoya, kept = index(), set()
    for number, (id, text) in enumerate(documents(corpus)):
        if not gaoya.query(text):
            gaoya.insert_document(number, text)
            kept.add(id)
    write_kept(corpus, out, kept)


globals()[sys.argv[1]](*sys.argv[2:])
