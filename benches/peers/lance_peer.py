"""Lance with its MINHASHLSH index: TASK CORPUS OUT STATE."""

import sys

import lance
import pyarrow as pa
from lance.indices import IndexConfig
from lance.query import MinHashQuery
from shared import THRESHOLD, VALUES, documents, write_pairs

# The answers are the most similar rows, this many.
LIMIT = 300
PARAMETERS = {"num_hashes": VALUES, "num_bands": 16, "shingle_size": 5}


def table(rows):
    ids, texts = zip(*rows)
    return pa.table({"id": pa.array(ids), "text": pa.array(texts, pa.large_string())})


def add_index(dataset):
    config = IndexConfig(index_type="minhashlsh", parameters=PARAMETERS)
    dataset.create_scalar_index("text", config)


def near(dataset, text, limit=LIMIT):
    if not text:
        return []
    answer = dataset.to_table(columns=["id", "_distance"], nearest=MinHashQuery(text, "text"), limit=limit)
    rows = zip(answer["id"].to_pylist(), answer["_distance"].to_pylist())
    return [id for id, distance in rows if distance <= 1 - THRESHOLD + 1e-6]


def build(corpus, out, state):
    dataset = lance.write_dataset(table(documents(corpus)), state)
    add_index(dataset)


def query(corpus, out, state):
    dataset = lance.dataset(state)
    found = ((id, other) for id, text in documents(corpus) for other in near(dataset, text))
    write_pairs(out, found)


def insert(corpus, out, state):
    """Asks, then appends, one document at a time. Nothing keeps two processes from doing both at once."""
    rows = documents(corpus)
    dataset = lance.write_dataset(table([next(rows)]), state)
    add_index(dataset)
    for id, text in rows:
        if not near(dataset, text, limit=1):
            dataset = lance.write_dataset(table([(id, text)]), state, mode="append")


globals()[sys.argv[1]](*sys.argv[2:])
