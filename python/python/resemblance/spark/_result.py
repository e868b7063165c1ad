"""Results, and their files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ._job import Join
from ._steps import Lines


@dataclass(frozen=True)
class Result:
    """Rows, the manifest that records how they were made and what they leave out, and for `dedup` the
    documents that were dropped."""

    frame: DataFrame
    manifest: dict[str, Any]
    dropped: DataFrame | None = None

    def save(self, path: str) -> None:
        """Writes the rows as Parquet, and the manifest beside them: `path` with `.manifest.json`. Of a
        local path that is a file, elsewhere a folder with one file, as Spark writes texts."""
        self.frame.write.mode("overwrite").parquet(path)
        write_manifest(self.frame.sparkSession, path, self.manifest)

    def lines(self) -> DataFrame:
        """The rows of pairs or clusters, or those that `dedup` dropped, as lines of the command-line tool,
        which prints them after a line of names: a column `value`, in its order. Needs a `key`."""
        if self.dropped is not None:
            return self._lines(self.dropped, "ordinal", "survivor", by_key=False)
        if self.manifest["result"] == "pairs":
            return self._lines(self.frame, "a", "b", by_key=True)
        return self._lines(self.frame, "cluster", "ordinal", by_key=True)

    def save_lines(self, path: str) -> None:
        """Writes `lines()` as text files, which are in their order one after the other, and the manifest
        beside them."""
        self.lines().write.mode("overwrite").option("lineSep", "\n").text(path)
        write_manifest(self.frame.sparkSession, path, self.manifest)

    def save_rows(self, path: str) -> None:
        """Writes the lines of `read_lines` that are kept, byte for byte and in their order, as text files one
        after the other, and the manifest beside them."""
        rows = self.frame.orderBy("ordinal").select("line")
        rows.write.mode("overwrite").option("lineSep", "\n").text(path)
        write_manifest(self.frame.sparkSession, path, self.manifest)

    def _lines(self, frame: DataFrame, one: str, two: str, *, by_key: bool) -> DataFrame:
        if f"key_{one}" not in frame.columns:
            raise ValueError(f"columns: found {frame.columns}, expected keys; give a key column")
        first = F.struct(F.col(f"key_{one}").alias("key"), F.col(one).alias("ordinal"))
        second = F.struct(F.col(f"key_{two}").alias("key"), F.col(two).alias("ordinal"))
        scores = [F.lit(None).cast("double").alias("similarity"), F.lit(None).cast("int").alias("distance")]
        if "similarity" in frame.columns:
            scores = [F.col("similarity"), F.col("distance")]
        is_pair = one == "a"
        least, greatest = (F.least(first, second), F.greatest(first, second)) if is_pair else (first, second)
        rows = frame.select(least.alias("one"), greatest.alias("two"), *scores)
        order = ["one", "two"] if by_key else ["one.ordinal"]
        rows = rows.orderBy(*order).select(
            F.col("one.key").alias("key_a"), F.col("two.key").alias("key_b"), "similarity", "distance"
        )
        schema = self.manifest["families"]
        has_scores = "similarity" in frame.columns
        has_similarity = "minhash" in schema or "vector" in schema
        made = Lines(has_scores and has_similarity, has_scores and "simhash" in schema)
        return rows.mapInArrow(made, "value string")


def keyed(join: Join) -> DataFrame:
    """The ordinals and keys of all documents."""
    if join.options.key is None:
        raise ValueError("key: found None, expected the name of a column")
    return join.frame.select(
        F.col(join.options.ordinal).cast("long").alias("ordinal"), F.col(join.options.key).alias("key")
    )


def label(frame: DataFrame, keys: DataFrame, *columns: str) -> DataFrame:
    """Adds the keys of the documents in some columns, null where there is none."""
    for column in columns:
        named = keys.select(F.col("ordinal").alias(column), F.col("key").alias(f"key_{column}"))
        frame = frame.join(named, column, "left")
    return frame


def local_path(path: str) -> Path | None:
    """The local path that a path or `file:` address names; `None` for another place."""
    parsed = urlparse(path)
    if parsed.scheme == "":
        return Path(path)
    return Path(unquote(parsed.path)) if parsed.scheme == "file" else None


def manifest_path(path: str) -> str:
    """The path of the manifest of a result, which is beside it."""
    return path.rstrip("/") + ".manifest.json"


def write_manifest(spark: SparkSession, path: str, manifest: dict[str, Any]) -> None:
    """Writes a manifest beside a result."""
    text = json.dumps(manifest, indent=2)
    beside = manifest_path(path)
    local = local_path(beside)
    if local is not None:
        local.write_text(text + "\n", encoding="utf-8")
        return
    rows = spark.createDataFrame([(text,)], "value string").coalesce(1)
    rows.write.mode("overwrite").text(beside)
