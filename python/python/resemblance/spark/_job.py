"""From documents to the pairs among them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Literal

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from .._native import PairRule, Schema
from ..corpus import _is_exact, _schema
from ._folder import ShardFolder
from ._recipe import By, Recipe, Rule
from ._steps import (
    COMPONENT,
    MATCHES,
    POSTED,
    SCORED,
    SKETCHED,
    Ask,
    Compare,
    Connect,
    Drop,
    Score,
    Sketch,
)

Nulls = Literal["refuse", "skip"]

_DIGEST = ("digest_high", "digest_low")
_CLASS = ("class_high", "class_low")


@dataclass
class Work:
    """A folder for what the stages of a job write, and what is known of them."""

    spark: SparkSession
    folder: str
    stages: list[dict[str, Any]] = field(default_factory=list)

    def keep(self, name: str, frame: DataFrame) -> DataFrame:
        """Writes the rows of a stage, and returns them as they are read back: no later stage works any
        of it out again, and its size is known to those that join it."""
        path = f"{self.folder.rstrip('/')}/{name}"
        begun = time.monotonic()
        context = self.spark.sparkContext
        described = context.getLocalProperty("spark.job.description") or ""
        context.setJobDescription(f"resemblance {name}")
        try:
            frame.write.mode("overwrite").parquet(path)
            kept = self.spark.read.schema(frame.schema).parquet(path)
            rows = kept.count()
        finally:
            context.setJobDescription(described)
        seconds = round(time.monotonic() - begun, 3)
        self.stages.append({"stage": name, "rows": rows, "seconds": seconds})
        return kept

    def rows(self, name: str) -> int:
        """The number of rows of a stage."""
        found = [stage["rows"] for stage in self.stages if stage["stage"] == name]
        return int(found[-1])


@dataclass(frozen=True)
class Options:
    """The options of a join."""

    text: str = "text"
    vector: str = "vector"
    ordinal: str = "ordinal"
    key: str | None = None
    threshold: float | None = None
    max_distance: int | None = None
    by: By | None = None
    exact: bool | None = None
    max_bucket: int | None = None
    nulls: Nulls = "refuse"
    block_pairs: int = 1 << 14
    one_task_pairs: int = 4_000_000
    against: str | None = None


class Join:
    """A join on its way: each of its frames is written before the next is begun."""

    def __init__(self, frame: DataFrame, schema: Schema | None, work: str, options: Options) -> None:
        self.options = options
        self.against = None if options.against is None else ShardFolder.open(options.against)
        self.schema = _schema(schema) if self.against is None else self.against.own_schema(schema)
        self.work = Work(frame.sparkSession, work)
        exact = _decides_by_texts(options.exact, frame, self.schema)
        recipe = Recipe.of(self.schema)
        self.rule = Rule(
            recipe, exact, options.threshold, options.max_distance, options.by, options.max_bucket
        )
        if options.max_bucket is not None and options.max_bucket < 1:
            raise ValueError(f"max_bucket: found {options.max_bucket}, expected at least 1")
        self.native: PairRule = self.rule.open()
        self.column = options.text if self.schema.vector is None else options.vector
        names = [options.ordinal, self.column, *([options.key] if options.key else [])]
        missing = [name for name in names if name not in frame.columns]
        if missing:
            raise ValueError(f"columns: found {frame.columns}, expected {missing} among them")
        self.frame = frame
        self.documents = frame.select(
            F.col(options.ordinal).cast("long").alias("ordinal"), F.col(self.column).alias("text")
        )
        self.known: DataFrame | None = None
        self.counts: dict[str, int] = {}
        self.left_out: dict[str, int] | None = None

    def run(self) -> DataFrame:
        """Returns the pairs of classes: of documents that no comparison can tell apart the first stands for
        all."""
        signatures = self._signatures()
        self._check(signatures)
        indexed = signatures.where(F.size("codes") > 0)
        if self.against is not None:
            self.known = self._known(self.against, indexed)
            indexed = indexed.join(self.known.select("ordinal"), "ordinal", "left_anti")
        self._equal(indexed)
        candidates = self._candidates(indexed)
        scored = self.score(candidates, "class_pairs")
        return scored

    def _signatures(self) -> DataFrame:
        keeps_signatures = not self.rule.exact or self.against is not None
        sketch = Sketch(self.rule, keeps_signatures)
        sketched = self.documents.mapInArrow(sketch, f"ordinal long, {SKETCHED}")
        return self.work.keep("signatures", sketched)

    def _known(self, against: ShardFolder, indexed: DataFrame) -> DataFrame:
        """The documents that are near stored ones, by their estimates: columns `ordinal`, `stored_key`,
        `similarity` and `distance` of the nearest."""
        options = self.options
        ask = Ask(
            against.recipe, against.files, 1, options.threshold, options.max_distance, options.by
        )
        found = indexed.select("ordinal", "signature").mapInArrow(ask, MATCHES)
        known = found.select(
            F.col("query").alias("ordinal"), F.col("key").alias("stored_key"), "similarity", "distance"
        )
        kept = self.work.keep("known", known)
        self.counts["known"] = self.work.rows("known")
        return kept

    def _check(self, signatures: DataFrame) -> None:
        is_null = F.col("digest_high").isNull()
        counted = signatures.agg(
            F.count("*").alias("documents"),
            F.count_distinct("ordinal").alias("ordinals"),
            F.coalesce(F.sum(is_null.cast("long")), F.lit(0)).alias("null_texts"),
            F.coalesce(F.sum(F.col("empty").cast("long")), F.lit(0)).alias("empty"),
        ).collect()[0]
        documents, ordinals = int(counted["documents"]), int(counted["ordinals"])
        self.counts = {
            "documents": documents,
            "null_texts": int(counted["null_texts"]),
            "empty": int(counted["empty"]),
        }
        if ordinals != documents:
            raise ValueError(
                f"{self.options.ordinal}: found {ordinals} different values in {documents} rows, expected "
                "a different one for each row and none that is null; number() makes such a column"
            )
        if self.counts["null_texts"] and self.options.nulls == "refuse":
            raise ValueError(
                f"{self.column}: found null in {self.counts['null_texts']} rows, expected a document in "
                "each; nulls='skip' leaves such rows out and counts them"
            )

    def _equal(self, indexed: DataFrame) -> None:
        """Finds the documents that are not the first of their class or of their signature."""
        of_class = Window.partitionBy(*_DIGEST, *_CLASS)
        of_digest = Window.partitionBy(*_DIGEST)
        ordinal = F.col("ordinal")
        equal = (
            indexed.select("ordinal", *_DIGEST, *_CLASS)
            .withColumn("leader", F.min("ordinal").over(of_digest))
            .withColumn("first", F.min("ordinal").over(of_class))
            .where((ordinal != F.col("first")) | (ordinal != F.col("leader")))
            .select("ordinal", "first", "leader")
        )
        self.equal = self.work.keep("equal", equal)
        self.copies = self.equal.where("ordinal != first").select("ordinal", "first")
        self.kin = self.equal.where("ordinal = first").select("ordinal", F.col("leader").alias("first"))
        self.counts["copies"] = self.copies.count()
        self.counts["kin"] = self.work.rows("equal") - self.counts["copies"]

    def _candidates(self, indexed: DataFrame) -> DataFrame:
        """Pairs of documents, each the first of its class, that share a bucket in which both are compared."""
        leaders = indexed.join(self.equal.select("ordinal"), "ordinal", "left_anti")
        postings = leaders.select("ordinal", F.posexplode("codes").alias("lane", "code"))
        # The engine may put several buckets into one partition, and none into two.
        sorted_postings = postings.repartition("lane", "code").sortWithinPartitions(
            "lane", "code", "ordinal"
        )
        compared = sorted_postings.mapInArrow(Compare(self.rule), POSTED)
        if self.options.max_bucket is not None:
            compared = self.work.keep("compared", compared)
            self.left_out = self._count_left_out(compared.where("a IS NULL"))
            compared = compared.where("a IS NOT NULL")
        lanes, bands = self.native.lanes
        if lanes == bands:
            pairs = compared.select("a", "b").distinct().withColumn("shares_band", F.lit(True))
        else:
            is_band = F.max(F.col("lane") < bands)
            pairs = compared.groupBy("a", "b").agg(is_band.alias("shares_band"))
        if self.counts["kin"]:
            pairs = self._with_kin(pairs)
        return self.work.keep("candidates", pairs)

    def _count_left_out(self, rest: DataFrame) -> dict[str, int]:
        """Counts what was not compared in buckets that were cut short, document by document."""
        others = self.equal.where("ordinal != leader").groupBy(F.col("leader").alias("b"))
        sizes = others.agg((F.count("*") + 1).alias("size"))
        size = F.coalesce(F.col("size"), F.lit(1)).cast("decimal(38, 0)")
        buckets = (
            rest.join(sizes, "b", "left")
            .groupBy("lane", "code")
            .agg(F.sum(size).alias("documents"), F.sum(size * size).alias("squares"))
        )
        documents = F.col("documents")
        pairs = (documents * documents - F.col("squares")) / 2
        nothing = F.lit(0)
        counted = buckets.agg(
            F.count("*").alias("buckets"),
            F.coalesce(F.sum("documents"), nothing).alias("documents"),
            F.coalesce(F.sum(pairs), nothing).alias("pairs"),
        ).collect()[0]
        return {name: int(counted[name]) for name in ("buckets", "documents", "pairs")}

    def _with_kin(self, pairs: DataFrame) -> DataFrame:
        """Adds the pairs of other classes with the same signatures."""
        same = self.kin.select(F.col("first").alias("a"), F.col("ordinal").alias("b"))
        left = self.kin.select(F.col("ordinal").alias("a"), "first")
        right = self.kin.select(F.col("ordinal").alias("b"), "first")
        both = left.join(right, "first").where("a < b").select("a", "b")
        within = same.unionByName(both).withColumn("shares_band", F.lit(True))
        return expand(pairs, self.kin).unionByName(within)

    def score(self, pairs: DataFrame, name: str, everything: bool = False) -> DataFrame:
        """Compares the documents of pairs: those within the bounds, or everything. Work is cut into blocks
        of pairs, and each block gets what it needs of its documents once."""
        blocks = max(1, -(-self.work.rows("candidates") // self.options.block_pairs))
        # Documents that are near each other mostly have the same first candidate: one block has them all.
        lead = pairs.groupBy(F.col("b").alias("a")).agg(F.min("a").alias("lead"))
        block = F.pmod(F.xxhash64(F.coalesce("lead", "a")), F.lit(blocks)).cast("int")
        pairs = pairs.join(lead, "a", "left").select(block.alias("block"), "a", "b", "shares_band")
        first = pairs.select("block", "a")
        needed = first.union(pairs.select("block", "b")).distinct()
        if self.rule.exact:
            payload, kind = self.documents, "text"
        else:
            path = f"{self.work.folder.rstrip('/')}/signatures"
            payload = self.work.spark.read.parquet(path).select("ordinal", "signature")
            kind = "signature"
        payload = payload.withColumnRenamed("ordinal", "a")
        documents = needed.join(payload, "a").select(
            "block",
            F.lit(False).alias("is_pair"),
            "a",
            F.lit(None).cast("long").alias("b"),
            F.lit(None).cast("boolean").alias("shares_band"),
            kind,
        )
        nothing = F.lit(None).cast(documents.schema[kind].dataType).alias(kind)
        rows = documents.unionByName(
            pairs.select("block", F.lit(True).alias("is_pair"), "a", "b", "shares_band", nothing)
        )
        rows = rows.repartition("block").sortWithinPartitions("block", "is_pair", "a")
        return self.work.keep(name, rows.mapInArrow(Score(self.rule, everything), SCORED))

    def identical(self) -> tuple[Column, Column]:
        """The similarity and the distance of two documents of one class."""
        has_similarity = self.rule.exact or self.schema.simhash is None or self.schema.minhash is not None
        similarity = F.lit(1.0 if has_similarity else None).cast("double")
        distance = F.lit(0 if self.schema.simhash is not None else None).cast("int")
        return similarity.alias("similarity"), distance.alias("distance")

    def all_pairs(self, class_pairs: DataFrame) -> DataFrame:
        """The pairs of all documents, from those of classes."""
        if not self.counts["copies"]:
            return class_pairs
        scores = self.identical()
        same = self.copies.select(F.col("first").alias("a"), F.col("ordinal").alias("b"))
        left = self.copies.select(F.col("ordinal").alias("a"), "first")
        right = self.copies.select(F.col("ordinal").alias("b"), "first")
        both = left.join(right, "first").where("a < b").select("a", "b")
        within = same.unionByName(both).select("a", "b", *scores)
        return expand(class_pairs, self.copies).unionByName(within)

    def components(self, class_pairs: DataFrame) -> DataFrame:
        """The documents of classes that are in pairs, with the first document of their component."""
        edges = class_pairs.select("a", "b")
        rows = self.work.rows("class_pairs")
        round_number = 0
        checksum: tuple[int, int] | None = None
        while rows > self.options.one_task_pairs:
            round_number += 1
            edges = self.work.keep(f"stars_{round_number}", _small_star(_large_star(edges)))
            rows = self.work.rows(f"stars_{round_number}")
            hashed = F.sum(F.xxhash64("a", "b").cast("decimal(38, 0)")).alias("hash")
            found = edges.agg(F.count("*").alias("rows"), hashed).collect()[0]
            now = (int(found["rows"]), int(found["hash"]))
            if now == checksum:
                firsts = edges.select(F.col("a").alias("document")).distinct()
                firsts = firsts.withColumn("first", F.col("document"))
                others = edges.select(F.col("b").alias("document"), F.col("a").alias("first"))
                return self.work.keep("components", firsts.unionByName(others))
            checksum = now
        connected = edges.coalesce(1).mapInArrow(Connect(), COMPONENT)
        return self.work.keep("components", connected)

    def clusters(self, class_pairs: DataFrame) -> DataFrame:
        """All documents that are in a cluster: columns `ordinal` and `cluster`, its least ordinal."""
        labels = self.components(class_pairs)
        clusters = labels.select(F.col("document").alias("ordinal"), F.col("first").alias("cluster"))
        if not self.counts["copies"]:
            return clusters
        of_first = clusters.withColumnRenamed("ordinal", "first")
        cluster = F.coalesce("cluster", "first").alias("cluster")
        copies = self.copies.join(of_first, "first", "left").select("ordinal", cluster, "first")
        alone = copies.where("cluster = first").select(F.col("first").alias("ordinal"), "cluster")
        return clusters.unionByName(alone).distinct().unionByName(copies.drop("first"))

    def first_dropped(self, class_pairs: DataFrame, by_count: bool = False) -> DataFrame:
        """The documents that are near one that is kept and is decided before: columns `ordinal`, `survivor`,
        `similarity` and `distance` of the nearest of those. Documents are decided in their order, or those
        with the most near-duplicates first."""
        ranks = self._ranks(class_pairs) if by_count else None
        ranked = _ranked(_ranked(class_pairs, "a", ranks), "b", ranks)
        one, two = F.struct("rank_a", "a"), F.struct("rank_b", "b")
        names = "struct<rank: long, ordinal: long>"
        decided = ranked.select(
            "a",
            F.least(one.cast(names), two.cast(names)).alias("earlier"),
            F.greatest(one.cast(names), two.cast(names)).alias("later"),
            "similarity",
            "distance",
        )
        labels = self.components(class_pairs)
        edges = decided.join(
            labels.select(F.col("document").alias("a"), F.col("first").alias("component")), "a"
        )
        # Each component is decided in one go, in the order of its documents: that of a chain of any
        # length too.
        ordered = edges.repartition("component").sortWithinPartitions("later", "earlier")
        ordered = ordered.select(F.col("earlier.ordinal").alias("a"), F.col("later.ordinal").alias("b"))
        gone = self.work.keep("gone", ordered.mapInArrow(Drop(), "document long"))
        near = [
            decided.select(
                F.col(f"{one}.ordinal").alias("first"),
                F.col(f"{two}.rank").alias("rank"),
                F.col(f"{two}.ordinal").alias("survivor"),
                "similarity",
                "distance",
            )
            for one, two in (("earlier", "later"), ("later", "earlier"))
        ]
        is_gone = gone.withColumnRenamed("document", "survivor")
        neighbours = near[0].unionByName(near[1]).join(is_gone, "survivor", "left_anti")
        dropped = gone.select(F.col("document").alias("ordinal"), F.col("document").alias("first"))
        dropped = _ranked(dropped.unionByName(self.copies), "first", ranks)
        found = dropped.join(neighbours, "first")
        kept_first = self.copies.join(gone.withColumnRenamed("document", "first"), "first", "left_anti")
        of_class = _ranked(kept_first, "first", ranks).withColumn("rank", F.col("rank_first"))
        same = of_class.withColumn("survivor", F.col("first")).select("*", *self.identical())
        is_earlier = F.struct("rank", "survivor") < F.struct("rank_first", "ordinal").cast(
            "struct<rank: long, survivor: long>"
        )
        found = found.unionByName(same).where(is_earlier)
        best = F.struct(
            (-F.coalesce("similarity", F.lit(0.0))).alias("unlike"),
            F.coalesce("distance", F.lit(0)).alias("far"),
            "rank",
            "survivor",
            "similarity",
            "distance",
        )
        found = found.groupBy("ordinal").agg(F.min(best).alias("best"))
        return found.select("ordinal", "best.survivor", "best.similarity", "best.distance")

    def _ranks(self, class_pairs: DataFrame) -> DataFrame:
        """The number of near-duplicates of the documents of each class that has any, the most first:
        columns `first` and `rank`."""
        sizes = self.copies.groupBy("first").agg(F.count("*").alias("copies"))
        both = class_pairs.select(F.col("a").alias("first"), F.col("b").alias("other")).unionByName(
            class_pairs.select(F.col("b").alias("first"), F.col("a").alias("other"))
        )
        of_other = sizes.select(F.col("first").alias("other"), "copies")
        near = both.join(of_other, "other", "left").select(
            "first", (F.coalesce("copies", F.lit(0)) + 1).alias("count")
        )
        counts = near.unionByName(sizes.withColumnRenamed("copies", "count"))
        counts = counts.groupBy("first").agg((-F.sum("count")).alias("rank"))
        return self.work.keep("ranks", counts)

    def cluster_dropped(self, class_pairs: DataFrame) -> DataFrame:
        """The documents that are not the first of their cluster, with that one."""
        clusters = self.work.keep("clusters", self.clusters(class_pairs))
        dropped = clusters.where("ordinal != cluster").withColumnRenamed("cluster", "survivor")
        of_class = dropped.join(self.copies, "ordinal", "left")
        of_class = of_class.withColumn("class", F.coalesce("first", "ordinal"))
        same = F.col("class") == F.col("survivor")
        stars = of_class.where(~same).select(F.col("survivor").alias("a"), F.col("class").alias("b"))
        stars = stars.distinct().withColumn("shares_band", F.lit(True))
        scored = self.score(self.work.keep("stars", stars), "star_pairs", everything=True)
        scored = scored.select(F.col("b").alias("class"), "similarity", "distance")
        scores = self.identical()
        others = of_class.where(~same).join(scored, "class")
        others = others.select("ordinal", "survivor", "similarity", "distance")
        equal = of_class.where(same).select("ordinal", "survivor", *scores)
        return others.unionByName(equal)

    def manifest(self, what: str) -> dict[str, Any]:
        """What the result was made by, and what it leaves out."""
        rule = self.rule
        return {
            "result": what,
            "version": rule.recipe.version,
            "schema": rule.recipe.schema.hex(),
            "recipe": f"{rule.recipe.fingerprint:016x}",
            "self_test": f"{rule.recipe.self_test:016x}",
            "families": [
                name
                for name in ("minhash", "vector", "simhash")
                if getattr(self.schema, name) is not None
            ],
            "exact": rule.exact,
            "threshold": rule.threshold,
            "max_distance": rule.max_distance,
            "by": rule.by,
            "max_bucket": rule.max_bucket,
            "against": self.options.against,
            "counts": dict(self.counts),
            "left_out": self.left_out,
            "stages": list(self.work.stages),
        }


def _decides_by_texts(exact: bool | None, frame: DataFrame, schema: Schema) -> bool:
    if schema.vector is None:
        return _is_exact(exact, frame, schema)
    if schema.text is not None:
        raise ValueError("schema: found vectors beside texts, expected vectors alone; stores have both")
    if exact is not None:
        raise ValueError(f"exact: found {exact}, expected None: `kept` of the vectors decides")
    # Signatures have the vectors that the schema keeps.
    return False


def expand(pairs: DataFrame, members: DataFrame) -> DataFrame:
    """Adds to the pairs of first documents those of the members that they represent."""
    columns = [name for name in pairs.columns if name not in ("a", "b")]
    of_a = members.select(F.col("first").alias("a"), F.col("ordinal").alias("member"))
    of_b = members.select(F.col("first").alias("b"), F.col("ordinal").alias("member"))
    with_a = pairs.join(of_a, "a").select(F.col("member").alias("a"), "b", *columns)
    pairs = pairs.select("a", "b", *columns).unionByName(with_a)
    with_b = pairs.join(of_b, "b").select("a", F.col("member").alias("b"), *columns)
    pairs = pairs.unionByName(with_b)
    return pairs.select(
        F.least("a", "b").alias("a"), F.greatest("a", "b").alias("b"), *columns
    )


def _ranked(frame: DataFrame, column: str, ranks: DataFrame | None) -> DataFrame:
    """Adds the rank of the class in a column; without ranks all have the same."""
    name = f"rank_{column}"
    if ranks is None:
        return frame.withColumn(name, F.lit(0).cast("long"))
    return frame.join(ranks.select(F.col("first").alias(column), F.col("rank").alias(name)), column)


def _large_star(edges: DataFrame) -> DataFrame:
    """Links each later neighbour of a document with the least of all its neighbours and itself."""
    both = edges.select("a", "b").union(edges.select(F.col("b").alias("a"), F.col("a").alias("b")))
    least = F.least("a", F.min("b").over(Window.partitionBy("a"))).alias("least")
    linked = both.select("a", "b", least).where("b > a")
    return linked.select(F.col("least").alias("a"), "b").distinct()


def _small_star(edges: DataFrame) -> DataFrame:
    """Links each document and its earlier neighbours with the least of these."""
    least = F.min("a").over(Window.partitionBy("b")).alias("least")
    linked = edges.select("a", "b", least)
    others = linked.where("a != least").select(F.col("least").alias("a"), F.col("a").alias("b"))
    own = linked.select(F.col("least").alias("a"), "b")
    return others.union(own).distinct()
