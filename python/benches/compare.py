"""Beside datasketch, rensa and gaoya: documents a second, and peak memory.

    pip install datasketch rensa gaoya
    python benches/compare.py [--documents 20000] [--bytes 400] [--threads 1]

Each measurement runs in a process of its own, which gets as many cores as threads where the system knows how
to say so, on the same documents, of which a quarter are like earlier ones. All sketch the same features, the
3-grams of words, with 128 values, and look for a similarity of 0.8.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any


def documents(count: int, size: int) -> list[str]:
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(20_000)]
    made: list[list[str]] = []
    for _ in range(count):
        if made and chance.random() < 0.25:
            text = list(chance.choice(made))
            text[chance.randrange(len(text))] = chance.choice(words)
        else:
            text = chance.choices(words, k=max(size // 7, 8))
        made.append(text)
    return [" ".join(text) for text in made]


def grams(text: str) -> list[str]:
    words = text.split()
    return [" ".join(words[i : i + 3]) for i in range(len(words) - 2)]


Measured = Callable[[list[str], int], int]


def ours(verb: str) -> Measured:
    def run(texts: list[str], threads: int) -> int:
        import resemblance as rs

        schema = rs.Schema(text=rs.Text.words(3), minhash=rs.MinHash(128, threshold=0.8))
        keys = [str(i) for i in range(len(texts))]
        begun = time.perf_counter()
        if verb == "sketch":
            schema.sketch_many(texts, threads=threads)
        elif verb == "dedup":
            rs.dedup(texts, schema, threads=threads)
        else:
            with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
                path = os.path.join(folder, "store.rsm")
                if verb == "bulk build":
                    rs.bulk_build(path, zip(keys, texts), schema, threads=threads)
                else:
                    store = rs.Store.create(path, schema)
                    if verb == "insert if new, one a call":
                        for key, text in zip(keys[:2_000], texts):
                            store.insert_if_new(key, text)
                    elif verb == "insert":
                        store.insert_many(texts, keys, threads=threads)
                    elif verb == "insert if new":
                        for start in range(0, len(texts), 4_096):
                            end = start + 4_096
                            store.insert_many(texts[start:end], keys[start:end], if_new=True, threads=threads)
                    else:
                        store.insert_many(texts, keys)
                        begun = time.perf_counter()
                        if verb == "query":
                            store.query_many(texts, threads=threads)
                        else:
                            for text in texts:
                                store.query(text)
                took = time.perf_counter() - begun
                return int((2_000 if "one a call" in verb and "insert" in verb else len(texts)) / took)
        return int(len(texts) / (time.perf_counter() - begun))

    return run


def datasketch(verb: str) -> Measured:
    def run(texts: list[str], threads: int) -> int:
        from datasketch import MinHash, MinHashLSH

        def sketch(text: str) -> Any:
            minhash = MinHash(128)
            minhash.update_batch([gram.encode() for gram in grams(text)])
            return minhash

        if verb == "query":
            lsh = MinHashLSH(0.8, 128)
            for i, text in enumerate(texts):
                lsh.insert(i, sketch(text))
            begun = time.perf_counter()
            for text in texts:
                lsh.query(sketch(text))
            return int(len(texts) / (time.perf_counter() - begun))
        begun = time.perf_counter()
        lsh = MinHashLSH(0.8, 128)
        for i, text in enumerate(texts):
            minhash = sketch(text)
            if verb == "sketch":
                continue
            if verb == "insert" or not lsh.query(minhash):
                lsh.insert(i, minhash)
        return int(len(texts) / (time.perf_counter() - begun))

    return run


def rensa(verb: str) -> Measured:
    def run(texts: list[str], threads: int) -> int:
        from rensa import RMinHash, RMinHashLSH

        def sketch(text: str) -> Any:
            minhash = RMinHash(num_perm=128, seed=1)
            minhash.update(grams(text))
            return minhash

        lsh = RMinHashLSH(threshold=0.8, num_perm=128, num_bands=16)
        begun = time.perf_counter()
        if verb == "query":
            for i, text in enumerate(texts):
                lsh.insert(i, sketch(text))
            begun = time.perf_counter()
            for text in texts:
                lsh.query(sketch(text))
            return int(len(texts) / (time.perf_counter() - begun))
        for i, text in enumerate(texts):
            minhash = sketch(text)
            if verb == "sketch":
                continue
            if verb == "insert" or not lsh.query(minhash):
                lsh.insert(i, minhash)
        return int(len(texts) / (time.perf_counter() - begun))

    return run


def gaoya(verb: str) -> Measured:
    def run(texts: list[str], threads: int) -> int:
        from gaoya.minhash import MinHashStringIndex

        index = MinHashStringIndex(
            hash_size=32, jaccard_threshold=0.8, num_bands=16, band_size=8, num_hashes=128,
            analyzer="word", lowercase=True, ngram_range=(3, 3),
        )
        if verb == "query":
            index.par_bulk_insert_docs(list(range(len(texts))), texts)
        begun = time.perf_counter()
        if verb == "insert":
            for i, text in enumerate(texts):
                index.insert_document(i, text)
        elif verb == "query":
            for text in texts:
                index.query(text)
        else:
            for i, text in enumerate(texts):
                if not index.query(text):
                    index.insert_document(i, text)
        return int(len(texts) / (time.perf_counter() - begun))

    return run


VERBS = ["sketch", "insert", "insert if new", "query"]
RUNS: list[tuple[str, str, Measured]] = [
    *(("resemblance", verb, ours(verb)) for verb in VERBS),
    *(("resemblance", verb, ours(verb)) for verb in ("query, one a call", "insert if new, one a call", "bulk build", "dedup")),
    *(("datasketch (memory)", verb, datasketch(verb)) for verb in VERBS),
    *(("rensa (memory)", verb, rensa(verb)) for verb in VERBS),
    *(("gaoya (memory)", verb, gaoya(verb)) for verb in VERBS[1:]),
]


def measure(number: int, count: int, size: int, threads: int, pipe: Any) -> None:
    texts = documents(count, size)
    if sys.platform == "linux":
        # Some calls have a thread beside those that they are told of.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        rate: int | str = RUNS[number][2](texts, threads)
    except Exception as error:
        rate = f"failed: {error}"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pipe.send((rate, (peak - before) // 1024))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--bytes", type=int, default=400)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    for number, (who, verb, _) in enumerate(RUNS):
        if given.only not in who:
            continue
        mine, theirs = context.Pipe()
        arguments = (number, given.documents, given.bytes, given.threads, theirs)
        process = context.Process(target=measure, args=arguments)
        process.start()
        rate, megabytes = mine.recv()
        process.join()
        print(f"{who:22} {verb:28} {rate!s:>10} a second, {megabytes:>5} MiB", flush=True)


if __name__ == "__main__":
    sys.exit(main())
