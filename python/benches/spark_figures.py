"""Seconds and shuffled bytes of each stage of a job on Spark, beside one process.

    python python/benches/spark_figures.py --documents 60000 [--words 60] [--master 'local-cluster[2,1,1024]']
        [--verb pairs|clusters|dedup|build]

Texts are made: a third of them is like an earlier one. Bytes are those that Spark notes as written for
shuffles, from its event log.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from pyspark.sql import SparkSession

import resemblance as rs
from resemblance import spark as rss


def texts(count: int, words: int) -> list[str]:
    """Texts of which a third is like one of the 1,000 before it, more or less."""
    chance = random.Random(1)
    vocabulary = [f"{a}{b}{c}" for a in "bdfgkst" for b in "aeiou" for c in "lmnrstxz"]
    made: list[str] = []
    for _ in range(count):
        if made and chance.random() < 0.33:
            kept = made[-1 - chance.randrange(min(1_000, len(made)))].split()
            for _ in range(chance.choice([0, 1, 2, 6])):
                kept[chance.randrange(len(kept))] = chance.choice(vocabulary)
        else:
            kept = chance.choices(vocabulary, k=words)
        made.append(" ".join(kept))
    return made


def shuffled(log: Path) -> dict[str, int]:
    """The bytes that the tasks of each described job wrote for shuffles."""
    named: dict[int, str] = {}
    written: dict[str, int] = defaultdict(int)
    for line in log.open(encoding="utf-8"):
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            name = event.get("Properties", {}).get("spark.job.description") or "counts"
            for stage in event["Stage IDs"]:
                named[stage] = name.removeprefix("resemblance ")
        if event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
            bytes_ = event["Task Metrics"]["Shuffle Write Metrics"]["Shuffle Bytes Written"]
            written[named.get(event["Stage ID"], "counts")] += bytes_
    return written


def main() -> None:
    """Runs one job and prints its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=60_000)
    parser.add_argument("--words", type=int, default=60)
    parser.add_argument("--master", default="local-cluster[2,1,1024]")
    parser.add_argument("--verb", choices=("pairs", "clusters", "dedup", "build"), default="clusters")
    options = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    corpus = texts(options.documents, options.words)
    schema = rs.Schema(text=rs.Text.words(3), minhash=rs.MinHash(128, threshold=0.7))
    begun = time.monotonic()
    if options.verb == "build":
        with tempfile.TemporaryDirectory() as folder:
            rs.bulk_build(f"{folder}/one.rsm", corpus, schema, threads=1)
        print(f"one process: build {time.monotonic() - begun:.1f} s")
    else:
        alone = rs.clusters(corpus, schema, threads=1)
        print(f"one process, one thread: clusters {time.monotonic() - begun:.1f} s, {len(alone)} clusters")
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder) / "events"
        events.mkdir()
        begun = time.monotonic()
        spark = (
            SparkSession.builder.master(options.master)
            .config("spark.executor.memory", "1g")
            .config("spark.sql.shuffle.partitions", "8")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.eventLog.enabled", "true")
            .config("spark.eventLog.rolling.enabled", "false")
            .config("spark.eventLog.compress", "false")
            .config("spark.eventLog.dir", events.as_uri())
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("ERROR")
        path = f"{folder}/corpus"
        rows = ((n, f"page/{n}", text) for n, text in enumerate(corpus))
        columns = "ordinal long, key string, text string"
        given = spark.createDataFrame(spark.sparkContext.parallelize(rows, 8), columns)
        given.write.parquet(path)
        print(f"start and corpus: {time.monotonic() - begun:.1f} s")
        begun = time.monotonic()
        documents, work = spark.read.parquet(path), f"{folder}/work"
        if options.verb == "build":
            manifest = rss.build_shards(
                documents, schema, path=f"{folder}/shards", shards=8, work=work
            )
        else:
            verb = {"pairs": rss.pairs, "clusters": rss.clusters, "dedup": rss.dedup}[options.verb]
            manifest = verb(documents, schema, work=work).manifest
        print(f"{options.verb} on {options.master}: {time.monotonic() - begun:.1f} s")
        stages = manifest["stages"]
        print(json.dumps(manifest["counts"]))
        spark.stop()
        log = next(file for file in events.iterdir() if file.is_file())
        written = shuffled(log)
    print(f"{'stage':<14}{'rows':>10}{'seconds':>10}{'shuffled bytes a document':>28}")
    for stage in stages:
        bytes_ = written.pop(stage["stage"], 0) / options.documents
        print(f"{stage['stage']:<14}{stage['rows']:>10}{stage['seconds']:>10.1f}{bytes_:>28.1f}")
    for name, bytes_ in sorted(written.items()):
        print(f"{name:<14}{'':>10}{'':>10}{bytes_ / options.documents:>28.1f}")


if __name__ == "__main__":
    main()
