"""rensa: TASK CORPUS OUT [STATE]. The index is in memory; between processes it is a pickle.

It takes a number of bands that divides the values: 16 bands of 8 rows. Its keys are numbers.
"""

import pickle
import sys

from rensa import RMinHash, RMinHashLSH
from shared import THRESHOLD, VALUES, documents, shingles, write_kept, write_pairs

SEED = 42


def sketches(corpus):
    for id, text in documents(corpus):
        sketch = RMinHash(num_perm=VALUES, seed=SEED)
        sketch.update(shingles(text))
        yield id, sketch


def index():
    return RMinHashLSH(threshold=THRESHOLD, num_perm=VALUES, num_bands=16)


def near(lsh, known, sketch):
    return [n for n in lsh.query(sketch) if known[n][1].jaccard(sketch) >= THRESHOLD]


def pairs(corpus, out):
    lsh, known, found = index(), [], []
    for id, sketch in sketches(corpus):
        found.extend((known[number][0], id) for number in near(lsh, known, sketch))
        lsh.insert(len(known), sketch)
        known.append((id, sketch))
    write_pairs(out, found)


def dedup(corpus, out):
    lsh, known = index(), []
    for id, sketch in sketches(corpus):
        if not near(lsh, known, sketch):
            lsh.insert(len(known), sketch)
            known.append((id, sketch))
    write_kept(corpus, out, {id for id, _ in known})


def build(corpus, out, state):
    lsh, known = index(), list(sketches(corpus))
    for number, (_, sketch) in enumerate(known):
        lsh.insert(number, sketch)
    with open(state, "wb") as file:
        pickle.dump((lsh, known), file)


def query(corpus, out, state):
    with open(state, "rb") as file:
        lsh, known = pickle.load(file)
    found = (
        (id, known[number][0])
        for id, sketch in sketches(corpus)
        for number in near(lsh, known, sketch)
    )
    write_pairs(out, found)


globals()[sys.argv[1]](*sys.argv[2:])
