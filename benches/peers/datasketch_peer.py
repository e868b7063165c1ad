"""datasketch: TASK CORPUS OUT [STATE]. The index is in memory; between processes it is a pickle."""

import pickle
import sys

from datasketch import MinHash, MinHashLSH
from shared import BANDS, ROWS, THRESHOLD, VALUES, documents, shingles, write_kept, write_pairs


def sketches(corpus):
    for id, text in documents(corpus):
        sketch = MinHash(num_perm=VALUES)
        sketch.update_batch([shingle.encode() for shingle in shingles(text)])
        yield id, sketch


def index():
    return MinHashLSH(num_perm=VALUES, params=(BANDS, ROWS))


def near(lsh, known, sketch):
    return [id for id in lsh.query(sketch) if known[id].jaccard(sketch) >= THRESHOLD]


def pairs(corpus, out):
    lsh, known, found = index(), {}, []
    for id, sketch in sketches(corpus):
        found.extend((other, id) for other in near(lsh, known, sketch))
        lsh.insert(id, sketch)
        known[id] = sketch
    write_pairs(out, found)


def dedup(corpus, out):
    lsh, known = index(), {}
    for id, sketch in sketches(corpus):
        if not near(lsh, known, sketch):
            lsh.insert(id, sketch)
            known[id] = sketch
    write_kept(corpus, out, known)


def build(corpus, out, state):
    lsh, known = index(), dict(sketches(corpus))
    for id, sketch in known.items():
        lsh.insert(id, sketch)
    with open(state, "wb") as file:
        pickle.dump((lsh, known), file)


def query(corpus, out, state):
    with open(state, "rb") as file:
        lsh, known = pickle.load(file)
    found = ((id, other) for id, sketch in sketches(corpus) for other in near(lsh, known, sketch))
    write_pairs(out, found)


globals()[sys.argv[1]](*sys.argv[2:])
