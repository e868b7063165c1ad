#!/usr/bin/env python3
"""Near-duplicate vectors: our store beside FAISS, hnswlib and usearch, each on one core.

    pip install numpy faiss-cpu hnswlib usearch              # and our wheel
    benches/peers/vector_peer.py make FOLDER clusters 200000 # or `texts`: pieces of the texts in RESEMBLANCE_DATA
    benches/peers/vector_peer.py all FOLDER [ENGINE,...]     # tables of Markdown

`make` writes vectors of 384 dimensions, queries, and what lies within the bound by brute force: all pairs, and the
neighbours of the queries. `all` runs each engine in its own process and prints tables: building, queries, the join of all
vectors with themselves, and inserting what is new in batches. An engine without a search by distance is asked for the
NEAREST nearest. Seconds are processor time, except for durable inserts, which wait for the disk.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

# Before NumPy is loaded: its products are to use one thread, too.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
if sys.argv[1:2] == ["engine"]:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import numpy as np  # noqa: E402
from shared import WORD, documents  # noqa: E402

DIMENSIONS = 384
BOUND = 0.95
NEAREST = 32
BLOCK = 1_000
QUERIES = 1_000
BATCH, BATCHES = 256, 16
PIECE_WORDS = 100


def unit(vectors):
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / lengths).astype(np.float32)


def copies(vectors, cosines, chance):
    """Vectors at these cosines from the given ones, in directions of their own."""
    noise = chance.standard_normal(vectors.shape)
    noise -= (noise * vectors).sum(axis=1, keepdims=True) * vectors
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    near = cosines[:, None]
    return unit(near * vectors + np.sqrt(1 - near**2) * noise)


def clusters(count, chance):
    """Four fifths are normal background. The others are copies of it, at cosines from 0.85 to 1."""
    background = unit(chance.standard_normal((count * 4 // 5, DIMENSIONS)))
    origins = chance.integers(0, len(background), count - len(background))
    cosines = chance.uniform(0.85, 1, len(origins))
    vectors = np.concatenate([background, copies(background[origins], cosines, chance)])
    planted = np.stack([origins, np.arange(len(background), count)], axis=1)
    return vectors, planted[cosines >= BOUND + 1e-6]


def texts(count, chance):
    """Pieces of texts, their words weighted by tf-idf and projected to normal directions."""
    pieces = []
    for corpus in sorted(Path(os.environ["RESEMBLANCE_DATA"]).glob("*/docs.jsonl.gz")):
        for _, text in documents(corpus):
            words = WORD.findall(text.lower())
            pieces += (Counter(words[at : at + PIECE_WORDS]) for at in range(0, len(words), PIECE_WORDS))
    pieces = [piece for piece in pieces if piece.total() > PIECE_WORDS // 2][:count]
    occurrences = Counter(word for piece in pieces for word in piece)
    places = {word: place for place, word in enumerate(occurrences)}
    rarity = np.log(len(pieces) / np.array(list(occurrences.values())))
    directions = chance.standard_normal((len(places), DIMENSIONS), dtype=np.float32)
    vectors = np.empty((len(pieces), DIMENSIONS), np.float32)
    for vector, piece in zip(vectors, pieces):
        found = [places[word] for word in piece]
        vector[:] = (np.array(list(piece.values())) * rarity[found]) @ directions[found]
    return unit(vectors[np.linalg.norm(vectors, axis=1) > 0]), np.empty((0, 2), int)


def brute(queries, vectors=None):
    """Rows of both within the bound, in double precision where the product of floats is near it. Without vectors, pairs of
    the queries themselves."""
    found = []
    for start in range(0, len(queries), BLOCK):
        offset = start if vectors is None else 0
        others = queries[start:] if vectors is None else vectors
        products = queries[start : start + BLOCK] @ others.T
        rows, ids = np.nonzero(products >= BOUND - 1e-4)
        near = products[rows, ids]
        for at in np.nonzero(near < BOUND + 1e-4)[0]:
            exact = queries[start + rows[at]].astype(float) @ others[ids[at]].astype(float)
            near[at] = exact >= BOUND
        kept = near > 0
        found.append(np.stack([rows[kept] + start, ids[kept] + offset], axis=1))
    return np.concatenate(found)


def pairs(found):
    """Numbers of pairs, each one once and none of a vector with itself."""
    low, high = found.min(axis=1), found.max(axis=1)
    return np.unique((low.astype(np.int64) << 32 | high)[low < high])


def make(folder, kind, count):
    folder, chance = Path(folder), np.random.default_rng(1)
    folder.mkdir(parents=True, exist_ok=True)
    vectors, planted = {"clusters": clusters, "texts": texts}[kind](int(count), chance)
    order = chance.permutation(len(vectors))
    vectors, planted = vectors[order], np.argsort(order)[planted]
    picked = vectors[chance.integers(0, len(vectors), QUERIES)]
    queries = copies(picked, chance.uniform(0.9, 1, QUERIES), chance)
    fresh = unit(chance.standard_normal((BATCH * BATCHES, DIMENSIONS)))
    fresh[::2] = copies(vectors[: len(fresh) // 2], chance.uniform(0.9, 1, len(fresh) // 2), chance)
    start = time.process_time()
    truth = pairs(brute(vectors))
    print(f"{len(vectors):,} vectors, {len(truth):,} pairs, by NumPy in {time.process_time() - start:.1f} s")
    missing = np.setdiff1d(pairs(planted), truth)
    assert not len(missing), "brute force misses pairs that were made within the bound"
    written = {"vectors": vectors, "queries": queries, "fresh": fresh, "truth": truth, "near": brute(queries, vectors)}
    for name, array in written.items():
        np.save(folder / f"{name}.npy", array)


class Flat:
    """FAISS, all vectors one by one."""

    settings, keeps_vectors = [0], True

    def __init__(self, size):
        import faiss

        faiss.omp_set_num_threads(1)
        self.faiss = faiss
        self.index = self.made()

    def made(self):
        return self.faiss.IndexFlatIP(DIMENSIONS)

    def add(self, vectors):
        self.index.add(vectors)

    def near(self, vectors, setting):
        """Rows of the vectors, and what is within the bound of each."""
        limits, _, ids = self.index.range_search(vectors, BOUND - 1e-6)
        return np.repeat(np.arange(len(vectors)), np.diff(limits.astype(int))), ids

    def save(self, path):
        self.faiss.write_index(self.index, path)


def within(ids, products):
    rows, places = np.nonzero((products >= BOUND - 1e-6) & (ids >= 0))
    return rows, ids[rows, places]


class Lsh(Flat):
    """FAISS, codes of 768 random projections; a setting is the number of vectors that are compared."""

    settings, keeps_vectors = [4, NEAREST, 4 * NEAREST], False

    def made(self):
        self.vectors = np.empty((0, DIMENSIONS), np.float32)
        return self.faiss.IndexLSH(DIMENSIONS, 2 * DIMENSIONS)

    def add(self, vectors):
        self.index.add(vectors)
        self.vectors = np.concatenate([self.vectors, vectors])

    def near(self, vectors, setting):
        _, ids = self.index.search(vectors, setting)
        return within(ids, np.einsum("id,ikd->ik", vectors, self.vectors[ids]))


class Ivf(Flat):
    """FAISS, inverted lists; a setting is the number of lists that are read."""

    settings = [1, 4, 16, 64]

    def __init__(self, size):
        self.lists = int(4 * size**0.5)
        super().__init__(size)

    def made(self):
        flat = self.faiss.IndexFlatIP(DIMENSIONS)
        return self.faiss.IndexIVFFlat(flat, DIMENSIONS, self.lists, self.faiss.METRIC_INNER_PRODUCT)

    def add(self, vectors):
        if not self.index.is_trained:
            self.index.train(vectors[: 40 * self.lists])
        super().add(vectors)

    def near(self, vectors, setting):
        self.index.nprobe = setting
        return super().near(vectors, setting)


class Hnsw(Flat):
    """FAISS, a graph; a setting is the length of the list of candidates."""

    settings = [NEAREST, 64, 256]

    def made(self):
        index = self.faiss.IndexHNSWFlat(DIMENSIONS, 32, self.faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = 200
        return index

    def near(self, vectors, setting):
        self.index.hnsw.efSearch = setting
        products, ids = self.index.search(vectors, NEAREST)
        return within(ids, products)


class Hnswlib:
    """hnswlib, a graph; a setting is the length of the list of candidates."""

    settings, keeps_vectors = [NEAREST, 64, 256], True

    def __init__(self, size):
        import hnswlib

        self.index = hnswlib.Index(space="ip", dim=DIMENSIONS)
        self.index.init_index(size + BATCH * BATCHES, ef_construction=200, M=16)
        self.index.set_num_threads(1)

    def add(self, vectors):
        self.index.add_items(vectors)

    def near(self, vectors, setting):
        self.index.set_ef(setting)
        ids, distances = self.index.knn_query(vectors, NEAREST)
        return within(ids.astype(int), 1 - distances)

    def save(self, path):
        self.index.save_index(path)


class Usearch:
    """usearch, a graph; a setting is the length of the list of candidates."""

    settings, keeps_vectors = [NEAREST, 64, 256], True

    def __init__(self, size):
        from usearch.index import Index

        self.index = Index(ndim=DIMENSIONS, metric="ip", dtype="f32", connectivity=16, expansion_add=200)

    def add(self, vectors):
        first = len(self.index)
        self.index.add(np.arange(first, first + len(vectors)), vectors, threads=1)

    def near(self, vectors, setting):
        self.index.expansion_search = setting
        found = self.index.search(vectors, NEAREST, threads=1)
        is_there = np.arange(NEAREST) < np.asarray(found.counts).reshape(-1, 1)
        ids = np.where(is_there, np.asarray(found.keys).astype(int).reshape(-1, NEAREST), -1)
        return within(ids, 1 - np.asarray(found.distances).reshape(-1, NEAREST))

    def save(self, path):
        self.index.save(path)


class Ours:
    """Our store, on disk; a setting is the recall at the bound for which bands were chosen."""

    settings, keeps_vectors = [0.99], True

    def __init__(self, size, path=None):
        import resemblance as rs

        vector = rs.Vector.cosine(DIMENSIONS, threshold=BOUND, recall=self.settings[0])
        self.schema = rs.Schema(vector=vector, expected_documents=size)
        self.store = rs.Store.create(path, self.schema) if path else rs.Store.in_memory(self.schema)

    def sketched(self, vectors):
        return self.schema.sketch_vectors(vectors, threads=1)

    def add(self, vectors):
        self.store.insert_many(self.sketched(vectors), threads=1)

    def add_new(self, vectors):
        self.store.insert_many(self.sketched(vectors), if_new=True, threads=1)

    def near(self, vectors, setting):
        answers = self.store.query_many(self.sketched(vectors), threads=1)
        found = [(row, match.id) for row, matches in enumerate(answers) for match in matches]
        return np.array(found, int).reshape(-1, 2).T

    def join(self):
        found = self.store.pairs(threads=1, keys=False).arrays()
        return np.stack([found["a"], found["b"]], axis=1).astype(np.int64)


ENGINES = {
    "resemblance": Ours,
    "FAISS flat": Flat,
    "FAISS LSH": Lsh,
    "FAISS IVF": Ivf,
    "FAISS HNSW": Hnsw,
    "hnswlib": Hnswlib,
    "usearch": Usearch,
}


class Report:
    """Writes the figures of an engine as JSON Lines."""

    def __init__(self, engine):
        self.engine = engine

    def row(self, table, **fields):
        print(json.dumps({"table": table, "engine": self.engine, **fields}), flush=True)


def timed(work):
    """Returns what some work returns, and its processor time and wall time."""
    cpu, wall = time.process_time(), time.perf_counter()
    answer = work()
    return answer, time.process_time() - cpu, time.perf_counter() - wall


def near_in_blocks(made, vectors, setting):
    found = []
    for start in range(0, len(vectors), BLOCK):
        rows, ids = made.near(vectors[start : start + BLOCK], setting)
        found.append(np.stack([rows + start, ids], axis=1))
    return np.concatenate(found)


def share(found, truth):
    return len(np.intersect1d(found, truth)) / max(1, len(truth))


def numbered(found):
    return np.unique(found[:, 0].astype(np.int64) << 32 | found[:, 1])


def sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def insert_new(made, fresh, path):
    """Asks and adds, a batch at a time. An engine without commits writes its whole index if a path is given."""
    for start in range(0, len(fresh), BATCH):
        batch = fresh[start : start + BATCH]
        if isinstance(made, Ours):
            made.add_new(batch)
            continue
        rows, _ = made.near(batch, made.settings[-1])
        made.add(np.delete(batch, np.unique(rows), axis=0))
        if path:
            made.save(path)
            sync(path)


def engine(folder, name):
    folder, report, kind = Path(folder), Report(name), ENGINES[name]
    vectors, queries, fresh, truth, near = (
        np.load(folder / f"{part}.npy") for part in ("vectors", "queries", "fresh", "truth", "near")
    )
    path = folder / "state"
    path.unlink(missing_ok=True)
    count, is_ours = len(vectors), kind is Ours
    made = kind(count, str(path)) if is_ours else kind(count)
    _, cpu, wall = timed(lambda: made.add(vectors))
    if not is_ours:
        _, saved, _ = timed(lambda: made.save(str(path)))
        cpu += saved
    size = path.stat().st_size / count + (0 if made.keeps_vectors else 4 * DIMENSIONS)
    report.row("build", cpu=cpu, wall=wall, bytes=size)
    for setting in made.settings:
        found, cpu, _ = timed(lambda: near_in_blocks(made, queries, setting))
        recall = share(numbered(found), numbered(near))
        report.row("query", setting=setting, microseconds=cpu / len(queries) * 1e6, recall=recall)
    for setting in made.settings:
        join = made.join if is_ours else lambda: near_in_blocks(made, vectors, setting)
        found, cpu, _ = timed(lambda: pairs(join()))
        report.row("join", setting=setting, cpu=cpu, pairs=len(found), recall=share(found, truth))
    # Durably first: what is inserted again afterwards is no longer new.
    if not is_ours:
        _, _, wall = timed(lambda: insert_new(made, fresh[: 2 * BATCH], str(path)))
        rates = {"durable": 2 * BATCH / wall}
        _, cpu, _ = timed(lambda: insert_new(made, fresh[2 * BATCH :], None))
        rates["not_durable"] = (len(fresh) - 2 * BATCH) / cpu
    else:
        _, _, wall = timed(lambda: insert_new(made, fresh, None))
        memory = kind(count)
        memory.add(vectors)
        _, cpu, _ = timed(lambda: insert_new(memory, fresh, None))
        rates = {"durable": len(fresh) / wall, "not_durable": len(fresh) / cpu}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    report.row("insert if new", **rates, peak_mib=peak)
    path.unlink(missing_ok=True)


TABLES = {
    "build": ["engine", "cpu", "wall", "bytes"],
    "query": ["engine", "setting", "microseconds", "recall"],
    "join": ["engine", "setting", "cpu", "pairs", "recall"],
    "insert if new": ["engine", "durable", "not_durable", "peak_mib"],
}


def shown(value):
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 1_000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def all_engines(folder, only=None):
    rows = []
    for name in only.split(",") if only else ENGINES:
        command = [sys.executable, __file__, "engine", folder, name]
        ran = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        print(f"{name}: {'done' if ran.returncode == 0 else 'failed'}", file=sys.stderr)
        rows += (json.loads(line) for line in ran.stdout.splitlines())
    for table, columns in TABLES.items():
        print(f"\n{table}\n\n| " + " | ".join(columns) + " |\n|---" + "|---:" * (len(columns) - 1) + "|")
        for row in rows:
            if row["table"] == table:
                print("| " + " | ".join(shown(row[column]) for column in columns) + " |")


{"make": make, "all": all_engines, "engine": engine}[sys.argv[1]](*sys.argv[2:])
