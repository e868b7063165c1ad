"""Frames with ordinals: numbers of documents that do not depend on how an engine cuts the input."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ._job import Work
from ._steps import Position


def read_lines(
    spark: SparkSession, paths: str | Sequence[str], *, text: str = "text", key: str = "id"
) -> DataFrame:
    """Reads JSON Lines: columns `ordinal`, `line`, `key` and `text`. Ordinals count the lines that are not
    blank from 0 on, files by their paths in byte order; the input is read a second time to count them."""
    # Other ends of lines are part of them, as for the command-line tool.
    lines = spark.read.option("lineSep", "\n").text([paths] if isinstance(paths, str) else list(paths))
    lines = lines.where(F.col("value").rlike(r"\S")).select(
        F.col("_metadata.file_path").alias("file"),
        F.col("_metadata.file_block_start").alias("split"),
        F.col("value").alias("line"),
    )
    before = _before(lines)
    numbered = lines.mapInArrow(
        Position(before), "file string, split long, line string, ordinal long"
    )
    fields = F.from_json("line", f"`{key}` string, `{text}` string")
    numbered = numbered.select("ordinal", "line", fields.alias("fields"))
    return numbered.select(
        "ordinal",
        "line",
        F.col("fields").getField(key).alias("key"),
        F.col("fields").getField(text).alias("text"),
    )


def read_parquet(spark: SparkSession, paths: str | Sequence[str]) -> DataFrame:
    """Reads Parquet with a column `ordinal` beside its own: rows are counted from 0 on, files by their
    paths in byte order."""
    rows = spark.read.parquet(*([paths] if isinstance(paths, str) else paths))
    columns = rows.columns
    rows = rows.select(
        "*",
        F.col("_metadata.file_path").alias("_file"),
        F.col("_metadata.row_index").alias("_row"),
    )
    counts = rows.groupBy("_file").count().collect()
    total, starts = 0, []
    for row in sorted(counts, key=lambda row: str(row["_file"]).encode()):
        starts.append((str(row["_file"]), total))
        total += int(row["count"])
    if not starts:
        return rows.select(*columns, F.lit(0).cast("long").alias("ordinal"))
    start = F.broadcast(spark.createDataFrame(starts, "_file string, _start long"))
    rows = rows.join(start, "_file")
    return rows.select(*columns, (F.col("_start") + F.col("_row")).alias("ordinal"))


def number(frame: DataFrame, by: str | Sequence[str], *, work: str) -> DataFrame:
    """Adds a column `ordinal` to a frame: the rank of each row, from 0 on, in the order of some columns,
    which must differ in all rows and have no null. The columns are sorted, written to the folder `work`, and joined with
    the rest of the rows.

    >>> documents = number(spark.read.parquet("pages"), by="url", work="work")
    """
    columns = [by] if isinstance(by, str) else list(by)
    spark = frame.sparkSession
    keys = frame.select(*columns)
    is_null = F.lit(False)
    for column in columns:
        is_null = is_null | F.col(column).isNull()
    counted = keys.agg(
        F.count("*").alias("rows"),
        F.count_distinct(F.struct(*columns)).alias("distinct"),
        F.count_if(is_null).alias("nulls"),
    ).collect()[0]
    total, distinct = int(counted["rows"]), int(counted["distinct"])
    if counted["nulls"]:
        raise ValueError(
            f"by: found null among {columns} in {counted['nulls']} rows, expected a value in each"
        )
    if total != distinct:
        raise ValueError(
            f"by: found {distinct} different values of {columns} in {total} rows, expected columns that "
            "differ in all rows"
        )
    # Ranges of the order, each numbered by itself: no task sees all rows.
    ranged = keys.repartitionByRange(*columns).sortWithinPartitions(*columns)
    ranged = Work(spark, work).keep("order", ranged.withColumn("_at", F.monotonically_increasing_id()))
    part = F.shiftright("_at", 33).alias("_part")
    counts = ranged.groupBy(part).count().orderBy("_part").collect()
    starts, begun = [], 0
    for row in counts:
        starts.append((int(row["_part"]), begun))
        begun += int(row["count"])
    if not starts:
        return frame.withColumn("ordinal", F.lit(0).cast("long"))
    start = F.broadcast(spark.createDataFrame(starts, "_part long, _start long"))
    within = F.col("_at").bitwiseAND((1 << 33) - 1)
    ranked = ranged.select(*columns, part, within.alias("_within")).join(start, "_part")
    ranked = ranked.select(*columns, (F.col("_start") + F.col("_within")).alias("ordinal"))
    return frame.join(ranked, columns)


def _before(lines: DataFrame) -> dict[tuple[str, int], int]:
    """The number of rows before each split of each file."""
    counts = lines.groupBy("file", "split").count().collect()
    before: dict[tuple[str, int], int] = {}
    total = 0
    for row in sorted(counts, key=lambda row: (str(row["file"]).encode(), int(row["split"]))):
        before[str(row["file"]), int(row["split"])] = total
        total += int(row["count"])
    return before


__all__ = ["number", "read_lines", "read_parquet"]
