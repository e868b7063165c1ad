"""The same answers from Spark: pairs, clusters, a corpus without its near-duplicates, and shards of a
store, of more documents than one machine takes. Needs `pyspark` 4 and `pyarrow`, and this wheel on each
worker.

Each answer is the one that `resemblance.pairs`, `clusters` and `dedup` give, and the command-line tool
byte for byte, however Spark cuts the rows:

    >>> from pyspark.sql import SparkSession
    >>> import resemblance as rs
    >>> from resemblance import spark as rss
    >>> spark = SparkSession.builder.getOrCreate()
    >>> documents = rss.read_parquet(spark, "s3a://corpus/pages")
    >>> schema = rs.Schema(text=rs.Text.words(5), minhash=rs.MinHash(128, threshold=0.8))
    >>> kept = rss.dedup(documents, schema, work="s3a://corpus/work")
    >>> kept.save("s3a://corpus/unique")

A frame of documents has a column `ordinal`: their order, which determines what comes first. `read_lines` and
`read_parquet` make it of the places of rows in files, `number` of the order of columns; any other frame
may bring a column of different numbers. `work` is a folder that all workers reach: each stage is written
there before the next begins. What a job did and left out is in the manifest of its result.

`python -m resemblance.spark` does it from a shell; `docs/spark.md` has every command.
"""

from __future__ import annotations

from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .._native import Schema
from ._job import Join, Nulls, Options
from ._read import number, read_lines, read_parquet
from ._recipe import By
from ._result import Result, keyed, label
from ._shards import add_to_shards, build_shards, query

__all__ = [
    "Result",
    "add_to_shards",
    "build_shards",
    "clusters",
    "dedup",
    "number",
    "pairs",
    "query",
    "read_lines",
    "read_parquet",
]


def pairs(
    documents: DataFrame,
    schema: Schema | None = None,
    *,
    work: str,
    text: str = "text",
    vector: str = "vector",
    ordinal: str = "ordinal",
    key: str | None = None,
    threshold: float | None = None,
    max_distance: int | None = None,
    by: By | None = None,
    exact: bool | None = None,
    max_bucket: int | None = None,
    nulls: Nulls = "refuse",
    block_pairs: int = 1 << 14,
) -> Result:
    """All near pairs of documents: columns `a` and `b`, ordinals of which the first is less, `similarity`
    and `distance`; with `key`, a column of different strings, `key_a` and `key_b` too.

    Documents are the column `text` or, with a schema of vectors, the column `vector`, arrays of numbers.
    Similarities are exact unless `exact=False`; those of vectors are if the schema keeps vectors.

    `max_bucket` compares only the first documents of a bucket with all of it, and the manifest counts what that leaves out. Rows without a text are refused; with
    `nulls="skip"` they are left out, and counted. `block_pairs` is how many pairs a worker compares with
    their texts in memory.
    """
    options = Options(
        text, vector, ordinal, key, threshold, max_distance, by, exact, max_bucket, nulls, block_pairs
    )
    join = Join(documents, schema, work, options)
    found = join.work.keep("pairs", join.all_pairs(join.run()))
    join.counts["pairs"] = join.work.rows("pairs")
    manifest = join.manifest("pairs")
    if key is not None:
        found = label(found, keyed(join), "a", "b")
    return Result(found, manifest)


def clusters(
    documents: DataFrame,
    schema: Schema | None = None,
    *,
    work: str,
    text: str = "text",
    vector: str = "vector",
    ordinal: str = "ordinal",
    key: str | None = None,
    threshold: float | None = None,
    max_distance: int | None = None,
    by: By | None = None,
    exact: bool | None = None,
    max_bucket: int | None = None,
    nulls: Nulls = "refuse",
    block_pairs: int = 1 << 14,
    one_task_pairs: int = 4_000_000,
) -> Result:
    """The documents that near pairs link: columns `cluster`, the least ordinal of its members, and
    `ordinal`; with `key`, `key_cluster` and `key_ordinal` too. Documents without a partner are left out. See
    `pairs` for the rest.

    Up to `one_task_pairs` links are joined in the memory of one worker; more are brought down to that by
    rounds of large and small stars.
    """
    options = Options(
        text,
        vector,
        ordinal,
        key,
        threshold,
        max_distance,
        by,
        exact,
        max_bucket,
        nulls,
        block_pairs,
        one_task_pairs,
    )
    join = Join(documents, schema, work, options)
    found = join.work.keep("clusters", join.clusters(join.run()).select("cluster", "ordinal"))
    join.counts["members"] = join.work.rows("clusters")
    join.counts["clusters"] = found.where("cluster = ordinal").count()
    manifest = join.manifest("clusters")
    if key is not None:
        found = label(found, keyed(join), "cluster", "ordinal")
    return Result(found, manifest)


def dedup(
    documents: DataFrame,
    schema: Schema | None = None,
    *,
    work: str,
    policy: Literal["first", "cluster", "representative"] = "first",
    text: str = "text",
    vector: str = "vector",
    ordinal: str = "ordinal",
    key: str | None = None,
    threshold: float | None = None,
    max_distance: int | None = None,
    by: By | None = None,
    exact: bool | None = None,
    max_bucket: int | None = None,
    nulls: Nulls = "refuse",
    block_pairs: int = 1 << 14,
    one_task_pairs: int = 4_000_000,
    against: str | None = None,
) -> Result:
    """The rows of documents that remain without near-duplicates, with all their columns. `dropped` of the result
    has the others: `ordinal`, `survivor`, `similarity` and `distance`, and keys if there is a `key`.

    With the policy `"first"` a document is dropped if it is near an earlier one that is kept; with
    `"cluster"` the first document of each cluster is kept; with `"representative"` documents are decided in
    the order of the number of their near-duplicates, the most first. `against` is a folder of shards, whose
    schema is used: documents near stored ones go first, by the estimates of `query`, because shards have no
    texts. Of those `dropped` has no `survivor` but its `stored_key`. See `clusters` for the rest.
    """
    if policy not in ("first", "cluster", "representative"):
        raise ValueError(f"policy: found {policy!r}, expected 'first', 'cluster' or 'representative'")
    if policy != "cluster" and max_bucket is not None:
        raise ValueError(
            f"max_bucket: found {max_bucket} with policy {policy!r}, expected policy 'cluster': the others "
            "compare with what is kept"
        )
    options = Options(
        text,
        vector,
        ordinal,
        key,
        threshold,
        max_distance,
        by,
        exact,
        max_bucket,
        nulls,
        block_pairs,
        one_task_pairs,
        against,
    )
    join = Join(documents, schema, work, options)
    class_pairs = join.run()
    if policy == "cluster":
        found = join.cluster_dropped(class_pairs)
    else:
        found = join.first_dropped(class_pairs, by_count=policy == "representative")
    if join.known is not None:
        nothing = F.lit(None)
        found = found.withColumn("stored_key", nothing.cast("string")).unionByName(
            join.known.withColumn("survivor", nothing.cast("long"))
        )
    dropped = join.work.keep("dropped", found)
    gone = dropped.select(dropped["ordinal"].alias(ordinal))
    kept = documents.join(gone, ordinal, "left_anti").where(documents[join.column].isNotNull())
    join.counts["dropped"] = join.work.rows("dropped")
    join.counts["kept"] = (
        join.counts["documents"] - join.counts["null_texts"] - join.counts["dropped"]
    )
    manifest = join.manifest("dedup")
    manifest["policy"] = policy
    if key is not None:
        dropped = label(dropped, keyed(join), "ordinal", "survivor")
        if join.known is not None:
            dropped = dropped.withColumn("key_survivor", F.coalesce("key_survivor", "stored_key"))
    return Result(kept, manifest, dropped)
