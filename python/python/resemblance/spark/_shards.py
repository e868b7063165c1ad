"""Shards of a store, and questions to them."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from .._native import BulkBuild, Schema, Signatures, Store
from ..corpus import _schema
from ._job import Nulls, Work
from ._recipe import By, Recipe, Rule
from ._result import write_manifest
from ._steps import SKETCHED, Batches, Shard, Sketch

_MATCH_TYPES = [
    ("query", pa.int64()),
    ("key", pa.string()),
    ("ordinal", pa.int64()),
    ("similarity", pa.float64()),
    ("distance", pa.int32()),
]
_MATCHES = "query long, key string, ordinal long, similarity double, distance int"


def _file(folder: str, shard: int, shards: int) -> Path:
    return Path(folder) / f"shard-{shard:05}-of-{shards:05}.rsm"


@dataclass(frozen=True)
class _Build:
    """Rows, sorted by shard and ordinal, become the files of their shards."""

    recipe: Recipe
    folder: str
    shards: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        schema = self.recipe.open()
        with tempfile.TemporaryDirectory(prefix="resemblance-") as scratch:
            shard: int | None = None
            build: BulkBuild | None = None
            for batch in batches:
                for number, part in _by_shard(batch):
                    if number != shard:
                        if build is not None and shard is not None:
                            yield self._publish(build, shard, scratch)
                        shard = number
                        build = BulkBuild(Path(scratch) / f"{number}.rsm", schema)
                    if build is not None:
                        self._insert(build, schema, part)
            if build is not None and shard is not None:
                yield self._publish(build, shard, scratch)

    def _insert(self, build: BulkBuild, schema: Schema, rows: pa.RecordBatch) -> None:
        signatures = Signatures.from_bytes(schema, rows.column("signature").to_pylist())
        stamps = rows.column("ordinal").to_pylist()
        build.insert_many(signatures, rows.column("key"), stamps=stamps, threads=1)

    def _publish(self, build: BulkBuild, shard: int, scratch: str) -> pa.RecordBatch:
        documents = build.finish().documents
        publish(Path(scratch) / f"{shard}.rsm", _file(self.folder, shard, self.shards))
        return pa.RecordBatch.from_pydict(
            {
                "shard": pa.array([shard], pa.int32()),
                "documents": pa.array([documents], pa.int64()),
            }
        )


def publish(made: Path, target: Path) -> None:
    """Moves a whole file to its name, which another attempt at the same task may have given before."""
    beside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    shutil.copyfile(made, beside)
    os.replace(beside, target)
    made.unlink()


def _by_shard(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    numbers = batch.column("shard").to_pylist()
    start = 0
    for end in range(1, len(numbers) + 1):
        if end == len(numbers) or numbers[end] != numbers[start]:
            yield numbers[start], batch.slice(start, end - start)
            start = end


def build_shards(
    documents: DataFrame,
    schema: Schema | None = None,
    *,
    path: str,
    shards: int,
    work: str,
    key: str = "key",
    text: str = "text",
    ordinal: str = "ordinal",
    nulls: Nulls = "refuse",
) -> dict[str, Any]:
    """Makes stores of documents in a folder that all workers reach as a local one, and returns the manifest,
    which is beside it. A document is in the shard that the hash of its key says, with its ordinal as stamp;
    in a shard documents have the order of their ordinals. Any shard opens with `Store.open`, and
    `resemblance.merge` makes one store of them.
    """
    own, spark = _schema(schema), documents.sparkSession
    recipe = Recipe.of(own)
    if shards < 1:
        raise ValueError(f"shards: found {shards}, expected at least 1")
    Path(path).mkdir(parents=True, exist_ok=True)
    rows = documents.select(
        F.col(ordinal).cast("long").alias("ordinal"), F.col(key).alias("key"), F.col(text).alias("text")
    )
    nulled = int(rows.where("text IS NULL").count())
    if nulled and nulls == "refuse":
        raise ValueError(
            f"{text}: found null in {nulled} rows, expected a text in each; nulls='skip' leaves such rows "
            "out and counts them"
        )
    rows = rows.where("text IS NOT NULL").mapInArrow(
        Shard(shards), "ordinal long, key string, text string, shard int"
    )
    sketched = rows.mapInArrow(
        _SketchRows(Rule(recipe, exact=False)), "ordinal long, key string, shard int, signature binary"
    )
    sorted_rows = sketched.repartition(shards, "shard").sortWithinPartitions("shard", "ordinal")
    built = sorted_rows.mapInArrow(_Build(recipe, path, shards), "shard int, documents long")
    work_folder = Work(spark, work)
    made = work_folder.keep("shards", built)
    counts = {int(row["shard"]): int(row["documents"]) for row in made.collect()}
    for shard in range(shards):
        if shard not in counts:
            with tempfile.TemporaryDirectory(prefix="resemblance-") as scratch:
                empty = Path(scratch) / "empty.rsm"
                BulkBuild(empty, own).finish()
                publish(empty, _file(path, shard, shards))
    manifest = {
        "result": "shards",
        "version": recipe.version,
        "schema": recipe.schema.hex(),
        "recipe": f"{recipe.fingerprint:016x}",
        "self_test": f"{recipe.self_test:016x}",
        "shard_function": "XXH3 of the key's UTF-8 bytes, 64 bits, seed 0, modulo the number of shards",
        "shards": [
            {"file": _file(path, shard, shards).name, "documents": counts.get(shard, 0)}
            for shard in range(shards)
        ],
        "counts": {"documents": sum(counts.values()), "null_texts": nulled},
        "stages": work_folder.stages,
    }
    write_manifest(spark, path, manifest)
    return manifest


@dataclass(frozen=True)
class _SketchRows:
    """Rows with texts become rows with signatures."""

    rule: Rule

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        rule = self.rule.open()
        place = [part.split()[0] for part in SKETCHED.split(", ")].index("signature")
        for batch in batches:
            found = rule.sketch_batch(batch.column("text"), exact=False, threads=1)
            arrays = [batch.column("ordinal"), batch.column("key"), batch.column("shard")]
            arrays.append(pa.array(found[place]))
            yield pa.RecordBatch.from_arrays(arrays, names=["ordinal", "key", "shard", "signature"])


@dataclass(frozen=True)
class _Query:
    """Shards and signatures become the best matches of each shard."""

    recipe: Recipe
    queries: list[tuple[int, bytes]]
    limit: int | None
    threshold: float | None
    max_distance: int | None
    by: By | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        schema = self.recipe.open()
        signatures = Signatures.from_bytes(schema, [row for _, row in self.queries])
        for batch in batches:
            for path in batch.column("path").to_pylist():
                with Store.open(path, read_only=True) as store:
                    if store.schema.recipe_fingerprint != self.recipe.fingerprint:
                        raise ValueError(f"{path}: found another recipe, expected that of the questions")
                    answers = store.query_many(
                        signatures,
                        limit=self.limit,
                        threshold=self.threshold,
                        max_distance=self.max_distance,
                        by=self.by,
                        threads=1,
                    )
                found = [
                    (query, match.key, match.stamp, match.similarity, match.distance)
                    for (query, _), answer in zip(self.queries, answers, strict=True)
                    for match in answer
                ]
                yield pa.RecordBatch.from_pydict(
                    {
                        name: pa.array([match[column] for match in found], kind)
                        for column, (name, kind) in enumerate(_MATCH_TYPES)
                    }
                )


def query(
    documents: DataFrame,
    *,
    path: str,
    limit: int | None = None,
    text: str = "text",
    ordinal: str = "ordinal",
    threshold: float | None = None,
    max_distance: int | None = None,
    by: By | None = None,
) -> DataFrame:
    """The stored documents that are near each of some texts, from the shards of a folder: columns `query`,
    the ordinal of the text, and `key`, `ordinal`, `similarity`, `distance` and `rank` of a match. They are
    the answers of one store that has the documents in the order of their ordinals. All texts go to each
    shard, so they must fit into the memory of a worker.
    """
    spark = documents.sparkSession
    files = sorted(str(file) for file in Path(path).glob("shard-*.rsm"))
    if not files:
        raise ValueError(f"path: found no shards in {path}, expected files shard-*.rsm")
    with Store.open(files[0], read_only=True) as store:
        schema = store.schema
    recipe = Recipe.of(schema)
    rule = Rule(recipe, False)
    rows = documents.select(F.col(ordinal).cast("long").alias("ordinal"), F.col(text).alias("text"))
    sketched = rows.mapInArrow(Sketch(rule), f"ordinal long, {SKETCHED}").select("ordinal", "signature")
    questions = [(int(row["ordinal"]), bytes(row["signature"])) for row in sketched.collect()]
    paths = spark.createDataFrame([(file,) for file in files], "path string")
    asked = _Query(recipe, questions, limit, threshold, max_distance, by)
    found = paths.repartition(len(files), "path").mapInArrow(asked, _MATCHES)
    order = [F.coalesce("similarity", F.lit(0.0)).desc(), F.coalesce("distance", F.lit(0)), F.col("ordinal")]
    rank = F.row_number().over(Window.partitionBy("query").orderBy(*order))
    ranked = found.withColumn("rank", rank)
    return ranked if limit is None else ranked.where(F.col("rank") <= limit)
