"""What workers do: each step takes batches of rows and gives batches of rows. Steps are sent to the
workers by their names and fields, and they depend on nothing but their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .._native import (
    BucketPairs,
    Components,
    FirstKept,
    Match,
    Matches,
    Signatures,
    Store,
    shard_numbers,
    table_lines,
)
from ._recipe import By, Recipe, Rule

Batches = Iterator[pa.RecordBatch]

SKETCHED = (
    "digest_high long, digest_low long, class_high long, class_low long, empty boolean, "
    "signature binary, codes array<long>"
)
POSTED = "lane int, code long, a long, b long"
SCORED = "a long, b long, similarity double, distance int"
COMPONENT = "document long, first long"
MATCHES = (
    "query long, key string, ordinal long, similarity double, distance int, rank int"
)
_MATCHES = [
    ("query", pa.int64()),
    ("key", pa.string()),
    ("ordinal", pa.int64()),
    ("similarity", pa.float64()),
    ("distance", pa.int32()),
    ("rank", pa.int32()),
]
_SKETCHED = [
    "digest_high",
    "digest_low",
    "class_high",
    "class_low",
    "empty",
    "signature",
    "codes",
]


def _batch(columns: dict[str, Any]) -> pa.RecordBatch:
    arrays = [pa.array(column) for column in columns.values()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


@dataclass(frozen=True)
class Sketch:
    """Ordinals and texts become signatures, digests and codes."""

    rule: Rule
    keeps_signatures: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        rule = self.rule.open()
        for batch in batches:
            found = rule.sketch_batch(batch.column("text"), exact=self.rule.exact, threads=1)
            columns = dict(zip(_SKETCHED, found, strict=True))
            if not self.keeps_signatures:
                # The texts decide, and are available.
                columns["signature"] = pa.nulls(len(batch), pa.binary())
            yield _batch({"ordinal": batch.column("ordinal"), **columns})


@dataclass(frozen=True)
class Compare:
    """Postings, sorted by lane, code and ordinal, become the pairs to compare."""

    rule: Rule

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        pairs = BucketPairs(max_bucket=self.rule.max_bucket)
        for batch in batches:
            pairs.push(batch.column("lane"), batch.column("code"), batch.column("ordinal"))
            for columns in pairs:
                yield _batch(dict(zip(["lane", "code", "a", "b"], columns, strict=True)))


@dataclass(frozen=True)
class Score:
    """Blocks, of documents first and then of pairs of them, become scored pairs: those within the bounds,
    or all of them."""

    rule: Rule
    everything: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        block: int | None = None
        held: list[pa.RecordBatch] = []
        for batch in batches:
            blocks = batch.column("block").to_numpy()
            ends = [*(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(blocks)]
            start = 0
            for end in ends:
                if start == end:
                    continue
                if held and blocks[start] != block:
                    yield from self._scored(held)
                    held = []
                block = blocks[start]
                held.append(batch.slice(start, end - start))
                start = end
        if held:
            yield from self._scored(held)

    def _scored(self, held: list[pa.RecordBatch]) -> Batches:
        table = pa.Table.from_batches(held)
        is_pair = table.column("is_pair")
        documents, pairs = table.filter(pc.invert(is_pair)), table.filter(is_pair)
        if not len(pairs):
            return
        known = documents.column("a").to_numpy()
        a, b = pairs.column("a").to_numpy(), pairs.column("b").to_numpy()
        places = [np.searchsorted(known, ordinals) for ordinals in (a, b)]
        for ordinals, place in zip((a, b), places, strict=True):
            found = known[np.minimum(place, max(len(known) - 1, 0))] if len(known) else place - 1
            if not np.array_equal(found, ordinals):
                raise ValueError(
                    "documents: found rows that change from one reading to the next, expected the same "
                    "rows each time; write the frame to Parquet first"
                )
        rule, shares_band = self.rule.open(), pairs.column("shares_band").combine_chunks()
        at_a, at_b = (pa.array(place.astype(np.int64)) for place in places)
        if self.rule.exact:
            texts = documents.column("text").cast(pa.large_string()).combine_chunks()
            scored = rule.exact_batch(texts, at_a, at_b, shares_band, threads=1)
        else:
            signatures = documents.column("signature").cast(pa.large_binary()).combine_chunks()
            scored = rule.compare_batch(signatures, at_a, at_b, shares_band)
        near, similarity, distance = (pa.array(column) for column in scored)
        made = _batch({"a": a, "b": b, "similarity": similarity, "distance": distance})
        yield made if self.everything else made.filter(near)


@dataclass(frozen=True)
class Connect:
    """Links become components, in the memory of one task."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        components = Components()
        for batch in batches:
            components.push(batch.column("a"), batch.column("b"))
        documents, firsts = components.finish()
        yield _batch({"document": documents, "first": firsts})


@dataclass(frozen=True)
class Drop:
    """The pairs of whole components, sorted by the later document, become the documents that go."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        kept = FirstKept()
        for batch in batches:
            yield _batch({"document": kept.push(batch.column("a"), batch.column("b"))})


@dataclass(frozen=True)
class Lines:
    """Rows of keys and scores become lines as the command-line tool prints them."""

    similarity: bool
    distance: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            yield _batch(
                {
                    "value": table_lines(
                        batch.column("key_a"),
                        batch.column("key_b"),
                        batch.column("similarity") if self.similarity else None,
                        batch.column("distance") if self.distance else None,
                    )
                }
            )


@dataclass(frozen=True)
class Shard:
    """Adds the number of its shard to each row."""

    shards: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            numbers = pa.array(shard_numbers(batch.column("key"), self.shards))
            yield batch.append_column("shard", numbers)


@dataclass(frozen=True)
class Position:
    """Rows with a file, the start of a split and a position become rows with an ordinal: the number of rows
    before the split, and the row's position in it."""

    before: dict[tuple[str, int], int]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        split: tuple[str, int] | None = None
        position = 0
        for batch in batches:
            files, starts = batch.column("file").to_pylist(), batch.column("split").to_pylist()
            ordinals = np.empty(len(batch), np.int64)
            for row, here in enumerate(zip(files, starts, strict=True)):
                if here != split:
                    split, position = here, self.before[here]
                ordinals[row] = position
                position += 1
            yield batch.append_column("ordinal", pa.array(ordinals))


@dataclass(frozen=True)
class Ask:
    """Ordinals and signatures become the stored documents near each, from all shards, best first. One shard
    is open at a time."""

    recipe: Recipe
    files: tuple[str, ...]
    limit: int | None = None
    threshold: float | None = None
    max_distance: int | None = None
    by: By | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        schema = self.recipe.open()
        for batch in batches:
            asked = Signatures.from_bytes(schema, batch.column("signature").to_pylist())
            found: list[list[tuple[float, int, int, Match]]] = [[] for _ in asked]
            for path in self.files:
                for near, answer in zip(found, self._ask(path, asked), strict=True):
                    near.extend(
                        (-(match.similarity or 0.0), match.distance or 0, match.stamp, match)
                        for match in answer
                    )
            rows = []
            for query, near in zip(batch.column("ordinal").to_pylist(), found, strict=True):
                near.sort(key=lambda match: match[:3])
                rows += [
                    (query, match.key, match.stamp, match.similarity, match.distance, rank)
                    for rank, (_, _, _, match) in enumerate(near[: self.limit], 1)
                ]
            columns = {
                name: pa.array([row[place] for row in rows], kind)
                for place, (name, kind) in enumerate(_MATCHES)
            }
            yield _batch(columns)

    def _ask(self, path: str, asked: Signatures) -> list[Matches]:
        with Store.open(path, read_only=True) as store:
            if store.schema.recipe_fingerprint != self.recipe.fingerprint:
                raise ValueError(f"{path}: found another recipe, expected that of the first shard")
            return store.query_many(
                asked,
                limit=self.limit,
                threshold=self.threshold,
                max_distance=self.max_distance,
                by=self.by,
                threads=1,
            )
