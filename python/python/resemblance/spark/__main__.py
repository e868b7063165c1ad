"""Pairs, clusters, a corpus without its near-duplicates and shards of a store, from Spark.

Options are those of the command-line tool where they have the same names. `docs/spark.md` has examples.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import resemblance as rs
from resemblance import spark as rss

_JSON_LINES = (".jsonl", ".ndjson", ".json")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m resemblance.spark", description=__doc__)
    parser.add_argument("--master", help="where to run; spark-submit sets it itself")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, what in (
        ("pairs", "list all near-duplicate pairs"),
        ("clusters", "list the clusters of near-duplicates"),
        ("dedup", "write a corpus without its near-duplicates"),
        ("build", "make shards of a store"),
        ("add", "make shards of those of a folder and of more documents"),
        ("query", "ask shards of a store about each document"),
    ):
        _add_options(verbs.add_parser(verb, help=what, description=what), verb)
    return parser


def _add_options(verb: argparse.ArgumentParser, name: str) -> None:
    verb.add_argument("inputs", nargs="+", help="JSON Lines or Parquet, files or folders of one kind")
    verb.add_argument("-o", "--output", required=True, help="folder for the result")
    verb.add_argument("--work", required=True, help="folder for stages, which all workers reach")
    verb.add_argument("--text", default="text", help="column or field of the text [text]")
    verb.add_argument("--key", default="id", help="column or field of the key [id]")
    verb.add_argument("--order", help="columns of Parquet that order the rows, instead of their places")
    verb.add_argument("--skip-null", action="store_true", help="leave rows without a text out, counted")
    if name in ("query", "add"):
        verb.add_argument("--shards", required=True, help="folder of the shards")
    if name == "add":
        what = "leave out near-duplicates of stored documents, and of added ones, and count them"
        verb.add_argument("--if-new", action="store_true", help=what)
        return
    if name == "query":
        verb.add_argument("--limit", type=int, default=10, help="matches of each document [10]")
        verb.add_argument("--threshold", type=float)
        return
    verb.add_argument("--schema", type=Path, help="file with the bytes of a schema (Schema.to_bytes)")
    verb.add_argument("--words", type=int, help="words of a shingle [5 words, or characters of scripts without spaces]")
    verb.add_argument("--chars", type=int, help="characters of a shingle")
    verb.add_argument("--minhash", type=int, help="MinHash values [128, unless --simhash is given alone]")
    verb.add_argument("--threshold", type=float, help="least similarity of a pair [0.8]")
    verb.add_argument("--simhash", type=int, choices=(32, 64, 128), help="bits of fingerprints")
    verb.add_argument("--distance", type=int, help="greatest distance of fingerprints")
    verb.add_argument("--near", choices=("any", "both"), help="which family makes a pair of both [any]")
    if name == "build":
        verb.add_argument("--shards", type=int, required=True, help="number of shards")
        return
    verb.add_argument("--verify", choices=("exact", "estimate"), help="how candidates are compared")
    verb.add_argument("--max-bucket", type=int, help="compare only the first N of a bucket with all of it")
    if name == "dedup":
        verb.add_argument("--policy", choices=("first", "cluster", "representative"), default="first")
        verb.add_argument("--report", help="folder for a line for each dropped document")
        what = "folder of shards, whose schema is used: near-duplicates of stored documents go too"
        verb.add_argument("--against", metavar="SHARDS", help=what)


def _schema(options: argparse.Namespace) -> rs.Schema:
    if options.schema is not None:
        return rs.Schema.from_bytes(options.schema.read_bytes())
    text = rs.Text.words(options.words) if options.words else rs.Text.auto()
    text = rs.Text.characters(options.chars) if options.chars else text
    simhash = None
    if options.simhash:
        simhash = rs.SimHash(options.simhash, max_distance=options.distance)
    minhash = None
    if options.minhash or simhash is None:
        minhash = rs.MinHash(options.minhash or 128, threshold=options.threshold or 0.8)
    return rs.Schema(text=text, minhash=minhash, simhash=simhash, near=options.near or "any")


def _must_not_say_schema(options: argparse.Namespace) -> None:
    for name in ("schema", "words", "chars", "minhash", "simhash", "near"):
        if getattr(options, name) is not None:
            raise SystemExit(f"--{name}: found beside --against, expected only the schema of the shards")


def _documents(spark: SparkSession, options: argparse.Namespace) -> tuple[DataFrame, bool]:
    """The documents with a column `key`, and whether they are lines."""
    first = options.inputs[0].removesuffix(".gz").removesuffix(".zst").removesuffix(".bz2")
    if first.endswith(_JSON_LINES):
        if options.order is not None:
            raise SystemExit("--order: found JSON Lines, whose order is that of their lines")
        return rss.read_lines(spark, options.inputs, text=options.text, key=options.key), True
    if options.order is not None:
        rows = spark.read.parquet(*options.inputs)
        return rss.number(rows, options.order.split(","), work=options.work), False
    return rss.read_parquet(spark, options.inputs), False


def _say(what: str, manifest: dict[str, Any]) -> None:
    counts = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in manifest["counts"].items())
    print(f"{what}: {counts}", file=sys.stderr)
    left_out = manifest.get("left_out")
    if left_out and left_out["buckets"]:
        print(
            f"warning: --max-bucket left out comparisons in {left_out['buckets']} buckets: "
            f"{left_out['documents']} documents were compared with the first ones only, "
            f"{left_out['pairs']} pairs were not compared",
            file=sys.stderr,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one verb."""
    options = _parser().parse_args(arguments)
    # Where nothing is said, workers on this machine have the Python that has this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(f"resemblance {options.verb}")
    if options.master is not None:
        builder = builder.master(options.master)
    spark = builder.getOrCreate()
    try:
        _run(spark, options)
    finally:
        spark.stop()


def _run(spark: SparkSession, options: argparse.Namespace) -> None:
    documents, are_lines = _documents(spark, options)
    text, key = ("text", "key") if are_lines else (options.text, options.key)
    shared: dict[str, Any] = {"text": text, "nulls": "skip" if options.skip_null else "refuse"}
    if options.verb == "query":
        bounds = {"limit": options.limit, "threshold": options.threshold}
        found = rss.query(documents, path=options.shards, **bounds, **shared)
        found.orderBy("query", "rank").write.mode("overwrite").parquet(options.output)
        return
    shared["work"] = options.work
    if options.verb == "add":
        if options.if_new:
            result = rss.dedup(documents, against=options.shards, **shared)
            _say("new", result.manifest)
            documents = result.frame
        _say(
            "add",
            rss.add_to_shards(documents, path=options.shards, to=options.output, key=key, **shared),
        )
        return
    schema: rs.Schema | None = _schema(options)
    if options.verb == "build":
        made = rss.build_shards(
            documents, schema, path=options.output, shards=options.shards, key=key, **shared
        )
        _say("build", made)
        return
    exact = None if options.verify is None else options.verify == "exact"
    shared |= {"key": key, "exact": exact, "max_bucket": options.max_bucket}
    if options.verb == "dedup":
        if options.against is not None:
            _must_not_say_schema(options)
            schema = None
            shared |= {"threshold": options.threshold, "max_distance": options.distance}
        result = rss.dedup(
            documents, schema, policy=options.policy, against=options.against, **shared
        )
        if options.report is not None:
            result.save_lines(options.report)
        result.save_rows(options.output) if are_lines else result.save(options.output)
    else:
        join = rss.pairs if options.verb == "pairs" else rss.clusters
        result = join(documents, schema, **shared)
        result.save_lines(options.output)
    _say(options.verb, result.manifest)


if __name__ == "__main__":
    main()
