"""Shards of a store, and questions to them."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .._native import BulkBuild, Schema, Signatures, Store
from ..corpus import _schema
from ._folder import ShardFolder, shard_file
from ._job import Nulls, Work
from ._recipe import By, Recipe, Rule
from ._result import manifest_path, write_manifest
from ._steps import MATCHES, SKETCHED, Ask, Batches, Shard, Sketch

_KEYED = "ordinal long, key string, shard int, signature binary"
_BUILT = "shard int, documents long, last long"


@dataclass(frozen=True)
class _Build:
    """Rows, sorted by shard and ordinal, become the files of their shards: new ones, or those of other
    shards with the rows added."""

    recipe: Recipe
    folder: str
    shards: int
    old: tuple[str, ...] | None
    first_stamp: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        schema = self.recipe.open()
        with tempfile.TemporaryDirectory(prefix="resemblance-") as scratch:
            made = Path(scratch) / "shard.rsm"
            shard: int | None = None
            target: BulkBuild | Store | None = None
            last = 0
            for batch in batches:
                for number, part in _by_shard(batch):
                    if number != shard:
                        if target is not None and shard is not None:
                            yield self._publish(target, made, shard, last)
                        shard, target = number, self._begin(schema, made, number)
                    if target is not None:
                        last = self._insert(target, schema, part)
            if target is not None and shard is not None:
                yield self._publish(target, made, shard, last)

    def _begin(self, schema: Schema, made: Path, shard: int) -> BulkBuild | Store:
        if self.old is None:
            return BulkBuild(made, schema)
        shutil.copyfile(self.old[shard], made)
        store = Store.open(made)
        if store.schema.recipe_fingerprint != self.recipe.fingerprint:
            raise ValueError(
                f"{self.old[shard]}: found another recipe, expected that of the first shard"
            )
        return store

    def _insert(self, target: BulkBuild | Store, schema: Schema, rows: pa.RecordBatch) -> int:
        """Inserts rows, and returns the last stamp."""
        signatures = Signatures.from_bytes(schema, rows.column("signature").to_pylist())
        ordinals: list[int] = rows.column("ordinal").to_pylist()
        stamps = [self.first_stamp + ordinal for ordinal in ordinals]
        target.insert_many(signatures, rows.column("key"), stamps=stamps, threads=1)
        return stamps[-1]

    def _publish(
        self, target: BulkBuild | Store, made: Path, shard: int, last: int
    ) -> pa.RecordBatch:
        if isinstance(target, Store):
            documents = len(target)
            target.close()
        else:
            documents = target.finish().documents
        publish(made, shard_file(self.folder, shard, self.shards))
        return pa.RecordBatch.from_pydict(
            {
                "shard": pa.array([shard], pa.int32()),
                "documents": pa.array([documents], pa.int64()),
                "last": pa.array([last], pa.int64()),
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


def _rows(
    documents: DataFrame, text: str, ordinal: str, nulls: Nulls, *keys: str
) -> tuple[DataFrame, int]:
    """The ordinals, texts and keys of the documents that have a text, and how many have none."""
    columns = [F.col(ordinal).cast("long").alias("ordinal"), F.col(text).alias("text")]
    rows = documents.select(*columns, *(F.col(key).alias("key") for key in keys))
    nulled = int(rows.where("text IS NULL").count())
    if nulled and nulls == "refuse":
        raise ValueError(
            f"{text}: found null in {nulled} rows, expected a text in each; nulls='skip' leaves such rows "
            "out and counts them"
        )
    return rows.where("text IS NOT NULL"), nulled


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
    which is beside it. A document is in the shard that the hash of its key selects, with its ordinal as stamp;
    in a shard documents have the order of their ordinals. Any shard opens with `Store.open`, and
    `resemblance.merge` makes one store of them.
    """
    if shards < 1:
        raise ValueError(f"shards: found {shards}, expected at least 1")
    if schema is not None and schema.vector is not None:
        raise ValueError("schema: found vectors, expected texts; insert vectors into one store")
    recipe = Recipe.of(_schema(schema))
    rows, nulled = _rows(documents, text, ordinal, nulls, key)
    return _write(rows, nulled, _Build(recipe, path, shards, None, 0), Work(rows.sparkSession, work))


def add_to_shards(
    documents: DataFrame,
    *,
    path: str,
    to: str,
    work: str,
    key: str = "key",
    text: str = "text",
    ordinal: str = "ordinal",
    nulls: Nulls = "refuse",
) -> dict[str, Any]:
    """Makes shards of those of a folder and of more documents, in another folder, and returns their
    manifest. The shards of `path` do not change, so that a task may be repeated. Keys must be new. The
    stamp of a new document is its ordinal plus one more than the greatest stamp before, so new documents
    come after all stored ones.

    >>> kept = rss.dedup(more, against="shards/1", work="work")
    >>> rss.add_to_shards(kept.frame, path="shards/1", to="shards/2", work="work")
    """
    if Path(path).resolve() == Path(to).resolve():
        raise ValueError(f"to: found the folder of the old shards, {path}, expected another one")
    old = ShardFolder.open(path)
    beside = manifest_path(path)
    if not os.path.exists(beside):
        raise ValueError(f"path: found no {beside}, expected the manifest of the shards beside them")
    first_stamp = int(json.loads(Path(beside).read_text(encoding="utf-8"))["next_stamp"])
    rows, nulled = _rows(documents, text, ordinal, nulls, key)
    build = _Build(old.recipe, to, len(old.files), old.files, first_stamp)
    return _write(rows, nulled, build, Work(rows.sparkSession, work))


def _write(rows: DataFrame, nulled: int, build: _Build, work: Work) -> dict[str, Any]:
    recipe, shards = build.recipe, build.shards
    Path(build.folder).mkdir(parents=True, exist_ok=True)
    numbered = rows.select("ordinal", "key", "text").mapInArrow(
        Shard(shards), "ordinal long, key string, text string, shard int"
    )
    sketched = numbered.mapInArrow(_SketchRows(Rule(recipe, exact=False)), _KEYED)
    sorted_rows = sketched.repartition(shards, "shard").sortWithinPartitions("shard", "ordinal")
    made = work.keep("shards", sorted_rows.mapInArrow(build, _BUILT)).collect()
    counts = {int(row["shard"]): int(row["documents"]) for row in made}
    for shard in set(range(shards)) - set(counts):
        counts[shard] = _publish_without_rows(build, shard)
    manifest = {
        "result": "shards",
        "version": recipe.version,
        "schema": recipe.schema.hex(),
        "recipe": f"{recipe.fingerprint:016x}",
        "self_test": f"{recipe.self_test:016x}",
        "shard_function": "XXH3 of the key's UTF-8 bytes, 64 bits, seed 0, modulo the number of shards",
        "shards": [
            {"file": shard_file(build.folder, shard, shards).name, "documents": counts[shard]}
            for shard in range(shards)
        ],
        "next_stamp": max([build.first_stamp, *(int(row["last"]) + 1 for row in made)]),
        "counts": {"documents": sum(counts.values()), "null_texts": nulled},
        "stages": work.stages,
    }
    write_manifest(rows.sparkSession, build.folder, manifest)
    return manifest


def _publish_without_rows(build: _Build, shard: int) -> int:
    """Makes a shard that gets no rows, and returns the number of its documents."""
    target = shard_file(build.folder, shard, build.shards)
    with tempfile.TemporaryDirectory(prefix="resemblance-") as scratch:
        made = Path(scratch) / "shard.rsm"
        if build.old is None:
            BulkBuild(made, build.recipe.open()).finish()
        else:
            shutil.copyfile(build.old[shard], made)
        with Store.open(made, read_only=True) as store:
            documents = len(store)
        publish(made, target)
    return documents


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
    nulls: Nulls = "refuse",
) -> DataFrame:
    """The stored documents that are near each of some texts, from the shards of a folder: columns `query`,
    the ordinal of the text, and `key`, `ordinal`, `similarity`, `distance` and `rank` of a match. They are
    the answers of one store that has the documents in the order of their ordinals. Each task asks all
    shards, one after the other, about some texts at a time, and nothing is shuffled.
    """
    shards = ShardFolder.open(path)
    rows, _ = _rows(documents, text, ordinal, nulls)
    sketched = rows.mapInArrow(
        Sketch(Rule(shards.recipe, exact=False), True), f"ordinal long, {SKETCHED}"
    )
    ask = Ask(shards.recipe, shards.files, limit, threshold, max_distance, by)
    return sketched.select("ordinal", "signature").mapInArrow(ask, MATCHES)
