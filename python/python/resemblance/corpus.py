"""Whole corpora: near pairs, clusters, a corpus without its near-duplicates, offline builds.

A corpus is anything of these:

- an iterable of texts (or `Signature` objects), such as a list or a generator; it is read once;
- an iterable of `(key, text)` tuples, or of mappings such as `{"id": ..., "text": ...}`;
- a column: a pyarrow array, a pandas, polars or DuckDB one, NumPy strings;
- a table: pyarrow, pandas, polars, DuckDB, `datasets` (streamed ones too), whose columns `text` and `key`
  name;
- a path, or what `read_files` returns: JSON Lines, CSV, TSV, Parquet and Arrow files, text files and folders of
  them.

Positions count its documents from 0. Keys are used where the corpus has them: they must differ.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from ._native import (
    ArrowBatches,
    BulkBuild,
    Clusters,
    Deduplicator,
    Pairs,
    Schema,
    Signatures,
    Snapshot,
    Store,
    TemporaryCorpus,
    arrow_list,
    banding_choice,
    evaluate_sample,
)
from .reports import BandingChoice, BulkReport, Evaluation, Progress
from .schema import MinHash, Text

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Dedup",
    "Duplicate",
    "Evaluation",
    "bulk_build",
    "clusters",
    "dedup",
    "evaluate",
    "pairs",
    "read_files",
    "tune",
]

_T = TypeVar("_T")
_Callback = Callable[[Progress], object]
# Documents that are read from an iterable at once, and from a list, whose documents are in memory anyway.
_TOGETHER = 2_048
_LISTED_TOGETHER = 65_536
_JSON_LINES = (".jsonl", ".ndjson")
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_PARQUET, _ARROW = (".parquet",), (".arrow", ".feather", ".ipc")
# Of a CSV file this much is decoded at once; no row may be longer.
_CSV_BLOCK_BYTES = 64 << 20


def _schema(schema: Schema | None) -> Schema:
    return schema or Schema(text=Text.words(5), minhash=MinHash(128, threshold=0.8))


def _open_text(path: Path) -> Any:
    if path.name.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8", newline="\n")
    return open(path, encoding="utf-8", newline="\n")


def read_files(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    text: str = "text",
    key: str = "id",
) -> Iterator[tuple[str, str]]:
    """Reads keys and texts of files: of each line of JSON Lines files the fields `key` and `text`, of each row of
    CSV, TSV, Parquet and Arrow files the columns of these names, of any other file its name and all of it; of a
    folder all its files, by name. All but Parquet and Arrow files may be compressed (`.gz`). Tables take pyarrow.

    A document without the field `key` has its file and the number of its line or row as key.

    >>> for key, text in read_files("corpus.jsonl.gz"): ...
    """
    several = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    for path in map(Path, several):
        if path.is_dir():
            inner = sorted(file for file in path.rglob("*") if file.is_file())
            for file in inner:
                yield from _read_file(file, str(file.relative_to(path)), text, key)
        else:
            yield from _read_file(path, str(path), text, key)


def _read_file(path: Path, name: str, text: str, key: str) -> Iterator[tuple[str, str]]:
    plain = path.name.removesuffix(".gz")
    if plain.endswith(_JSON_LINES):
        records, unit = _lines(path), "line"
    elif path.name.endswith((*_PARQUET, *_ARROW)) or plain.endswith(tuple(_SEPARATORS)):
        records, unit = enumerate(_rows(path, plain, text, key), 1), "row"
    else:
        with _open_text(path) as file:
            yield name, file.read()
        return
    for number, record in records:
        if not isinstance(record, dict) or not isinstance(record.get(text), str):
            raise ValueError(f"{path}, {unit} {number}: found no field {text!r} with a text")
        found = record.get(key)
        yield (f"{name}:{number}" if found is None else str(found)), record[text]


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    with _open_text(path) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, json.loads(line)


def _rows(path: Path, plain: str, text: str, key: str) -> Iterator[dict[str, Any]]:
    """The rows of a table, with the two columns if it has them."""
    try:
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(f"{path}: found a table, which takes pyarrow") from error
    if path.name.endswith(_PARQUET):
        with pa.parquet.ParquetFile(path) as file:
            columns = [name for name in file.schema_arrow.names if name in (text, key)]
            for batch in file.iter_batches(_TOGETHER, columns=columns):
                yield from batch.to_pylist()
    elif path.name.endswith(_ARROW):
        with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
            for index in range(reader.num_record_batches):
                batch = reader.get_batch(index)
                columns = [name for name in batch.schema.names if name in (text, key)]
                yield from batch.select(columns).to_pylist()
    else:
        options = pa.csv.ConvertOptions(
            include_columns=list(dict.fromkeys([text, key])),
            include_missing_columns=True,
            column_types={text: pa.string(), key: pa.string()},
        )
        with pa.csv.open_csv(
            path,
            read_options=pa.csv.ReadOptions(block_size=_CSV_BLOCK_BYTES),
            parse_options=pa.csv.ParseOptions(
                delimiter=_SEPARATORS[Path(plain).suffix], newlines_in_values=True
            ),
            convert_options=options,
        ) as batches:
            for batch in batches:
                yield from batch.to_pylist()


_Batch = tuple[Any, "list[str | bytes] | Any | None"]


def _batches(corpus: Any, text: str, key: str | None) -> Iterator[_Batch]:
    """The documents of a corpus and their keys, some at a time."""
    if isinstance(corpus, os.PathLike):
        corpus = read_files(corpus, text=text, key=key or "id")
    if isinstance(corpus, Signatures):
        yield corpus, None
    elif hasattr(corpus, "__arrow_c_stream__") or hasattr(corpus, "__arrow_c_array__"):
        for arrays in ArrowBatches(corpus, [text] if key is None else [text, key]):
            yield arrays[0], arrays[1] if len(arrays) > 1 else None
    elif hasattr(corpus, "with_format") and hasattr(corpus, "select_columns"):
        # Of the package `datasets`: row by row it makes a dictionary of each.
        columns = corpus.select_columns([text] if key is None else [text, key])
        for table in columns.with_format("arrow").iter(batch_size=_TOGETHER):
            yield from _batches(table, text, key)
    else:
        items = iter(corpus)
        together = _LISTED_TOGETHER if isinstance(corpus, (list, tuple)) else _TOGETHER
        while batch := list(islice(items, together)):
            yield _split(batch, text, key)


def _split(batch: list[Any], text: str, key: str | None) -> _Batch:
    first = batch[0]
    if isinstance(first, tuple):
        return [item[1] for item in batch], [item[0] for item in batch]
    if isinstance(first, Mapping):
        keys = None if key is None else [item[key] for item in batch]
        return [item[text] for item in batch], keys
    return batch, None


@contextmanager
def _temporary(folder: str | os.PathLike[str] | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="resemblance-", dir=folder) as path:
        yield Path(path)


def _is_exact(exact: bool | None, corpus: Any, schema: Schema) -> bool:
    """Whether similarities are exact: unless that is said, wherever a corpus has texts."""
    if exact is not None:
        return exact
    minhash = schema.minhash
    has_texts = schema.text is not None and not isinstance(corpus, Signatures)
    return has_texts and minhash is not None and minhash.kind not in ("weighted", "probability")


@contextmanager
def _joined(
    corpus: Any,
    schema: Schema | None,
    *,
    text: str,
    key: str | None,
    exact: bool | None,
    threads: int | None,
    memory_bytes: int | None,
    temp_dir: str | os.PathLike[str] | None,
    progress: _Callback | None,
) -> Iterator[TemporaryCorpus]:
    """The corpus in a temporary store. Its file is open and has no name when the block ends."""
    own = _schema(schema)
    exact = _is_exact(exact, corpus, own)
    with _temporary(temp_dir) as folder:
        stored = TemporaryCorpus(
            folder / "corpus.rsm", own, exact=exact, memory_bytes=memory_bytes
        )
        for documents, keys in _batches(corpus, text, key):
            stored.insert_many(documents, keys, threads=threads)
        stored.finish(progress=progress)
        yield stored


def pairs(
    corpus: Any,
    schema: Schema | None = None,
    *,
    text: str = "text",
    key: str | None = None,
    threshold: float | None = None,
    max_distance: int | None = None,
    by: Literal["minhash", "simhash", "any", "both"] | None = None,
    exact: bool | None = None,
    max_bucket: int | None = None,
    threads: int | None = None,
    memory_bytes: int | None = None,
    temp_dir: str | os.PathLike[str] | None = None,
    progress: _Callback | None = None,
) -> Pairs:
    """All near pairs of a corpus, as an iterator: `a` and `b` of a pair are positions.

    Without a schema it is that of the command-line tool: word 5-grams, 128 MinHash values, similarity
    0.8. Where the corpus has texts, similarities are computed from them, and no pair is returned that is
    not within the bound; with `exact=False` they are estimates from the signatures, which is quicker.
    Memory does not grow with the corpus: it is kept in a temporary store in `temp_dir`.

    >>> for pair in pairs(["one two three", "one two three", "four"], schema):
    ...     print(pair.a, pair.b, pair.similarity)
    """
    with _joined(
        corpus,
        schema,
        text=text,
        key=key,
        exact=exact,
        threads=threads,
        memory_bytes=memory_bytes,
        temp_dir=temp_dir,
        progress=progress,
    ) as stored:
        return stored.snapshot().pairs(
            threshold=threshold,
            max_distance=max_distance,
            by=by,
            threads=threads,
            max_bucket=max_bucket,
            progress=progress,
        )


def clusters(
    corpus: Any,
    schema: Schema | None = None,
    *,
    text: str = "text",
    key: str | None = None,
    threshold: float | None = None,
    max_distance: int | None = None,
    by: Literal["minhash", "simhash", "any", "both"] | None = None,
    exact: bool | None = None,
    max_bucket: int | None = None,
    threads: int | None = None,
    memory_bytes: int | None = None,
    temp_dir: str | os.PathLike[str] | None = None,
    progress: _Callback | None = None,
) -> Clusters:
    """The documents of a corpus that near pairs link: `ids` of a cluster are positions. Documents without
    a partner are in none. See `pairs` for the rest.
    """
    with _joined(
        corpus,
        schema,
        text=text,
        key=key,
        exact=exact,
        threads=threads,
        memory_bytes=memory_bytes,
        temp_dir=temp_dir,
        progress=progress,
    ) as stored:
        return stored.snapshot().clusters(
            threshold=threshold,
            max_distance=max_distance,
            by=by,
            threads=threads,
            max_bucket=max_bucket,
            progress=progress,
        )


@dataclass(frozen=True)
class Duplicate:
    """A document that is dropped: its position, that of the document that is kept in its place (`None` if
    that one is in the store of `against`, which has it under `survivor_key`), and how near they are.
    """

    position: int
    survivor: int | None
    similarity: float | None
    is_exact: bool
    distance: int | None
    key: str | bytes | None = None
    survivor_key: str | bytes | None = None


@dataclass(frozen=True)
class Dedup:
    """A corpus without its near-duplicates: `kept` has `True` for each document that stays. With a budget,
    `budget_exceeded` documents were compared with a part of their candidates only: some of their near-duplicates
    may stay.
    """

    kept: NDArray[np.bool_]
    duplicates: list[Duplicate]
    budget_exceeded: int = 0

    @property
    def positions(self) -> NDArray[np.int64]:
        """The positions of the documents that stay."""
        return np.flatnonzero(self.kept)

    def select(self, documents: Sequence[_T]) -> list[_T]:
        """Those of some documents, one for each of the corpus, that stay."""
        if len(documents) != len(self.kept):
            raise ValueError(f"documents: found {len(documents)}, expected {len(self.kept)}")
        return [document for document, kept in zip(documents, self.kept) if kept]

    def annotations(self) -> dict[str, list[Any]]:
        """What became of each document, as columns to put beside those of the corpus, in its order:

        - `kept`: whether it stays;
        - `cluster`: the position of its survivor, its own if it stays, `None` if its survivor is in the store of
          `against`;
        - `size` and `rank`: the number of documents in the cluster, and its place there: 1 for the survivor,
          then in the order of the corpus;
        - `survivor`: for one that goes, the key of its survivor, if that has one;
        - `similarity`, `distance`, `is_exact`: for one that goes.

        What does not apply is `None`.

        >>> table = table.append_column("size", [found.annotations()["size"]])
        """
        count = len(self.kept)
        clusters: list[int | None] = list(range(count))
        sizes, ranks = [1] * count, [1] * count
        beside: dict[str, list[Any]] = {
            name: [None] * count for name in ("survivor", "similarity", "distance", "is_exact")
        }
        # Those in a store have no position.
        members: dict[int | tuple[str, str | bytes | None], list[int]] = {}
        for duplicate in sorted(self.duplicates, key=lambda duplicate: duplicate.position):
            place, survivor = duplicate.position, duplicate.survivor
            clusters[place] = survivor
            cluster: int | tuple[str, str | bytes | None] = (
                ("store", duplicate.survivor_key) if survivor is None else survivor
            )
            together = members.setdefault(cluster, [] if survivor is None else [survivor])
            together.append(place)
            ranks[place] = len(together) + (survivor is None)
            beside["survivor"][place] = duplicate.survivor_key
            beside["similarity"][place] = duplicate.similarity
            beside["distance"][place] = duplicate.distance
            beside["is_exact"][place] = duplicate.is_exact
        for cluster, together in members.items():
            for place in together:
                sizes[place] = len(together) + isinstance(cluster, tuple)
        return {"kept": self.kept.tolist(), "cluster": clusters, "size": sizes, "rank": ranks, **beside}

    def __repr__(self) -> str:
        return f"<Dedup: {int(self.kept.sum())} of {len(self.kept)} documents kept>"


def dedup(
    corpus: Any,
    schema: Schema | None = None,
    *,
    text: str = "text",
    key: str | None = None,
    policy: Literal["first", "cluster", "representative"] = "first",
    keep: Literal["first", "last", "longest"] | Iterable[float] = "first",
    exact: bool | None = None,
    against: Store | Snapshot | None = None,
    budget: int | None = None,
    max_bucket: int | None = None,
    threads: int | None = None,
    memory_bytes: int | None = None,
    temp_dir: str | os.PathLike[str] | None = None,
    progress: _Callback | None = None,
) -> Dedup:
    """Says which documents of a corpus stay if near-duplicates go.

    With the policy `"first"` a document goes if it is near one that came before and stays; with
    `"cluster"` one document of each cluster stays; with `"representative"` documents are decided in
    the order of the number of their near-duplicates, the most first. `keep` says which of several
    near-duplicates stays: the `"first"`, the `"last"`, the `"longest"`, or the one with the greatest
    of the numbers that are given, one for each document. `against` is a store whose documents, and
    whose schema, count as well: documents near one of them go first, by estimates, because a store has
    no texts. Nothing is written to it. Keys need not differ here.

    `budget` compares a document with so many candidates at most, those that share the most buckets with it, by
    estimates unless `exact` is given; it is for the policy `"first"`. `memory_bytes` bounds the memory for
    documents, and as much for their features, before they go to files in `temp_dir`.

    >>> found = dedup(texts)
    >>> unique = found.select(texts)
    >>> [(d.position, d.survivor, d.similarity) for d in found.duplicates]
    """
    snapshot = against.snapshot() if isinstance(against, Store) else against
    own = snapshot.schema if snapshot is not None else _schema(schema)
    if snapshot is not None and schema is not None and schema != own:
        raise ValueError("schema: found another than that of the store, expected the same or none")
    is_first = policy == "first" and isinstance(keep, str) and keep == "first"
    if budget is not None and not is_first:
        raise ValueError("budget: found another policy or rule, expected 'first' of both")
    exact = _is_exact(False if budget is not None and exact is None else exact, corpus, own)
    batches = _Unknown(_batches(corpus, text, key), snapshot, threads)
    with _temporary(temp_dir) as folder:
        if is_first:
            with Deduplicator(
                own, folder, exact=exact, memory_bytes=memory_bytes, budget=budget
            ) as kept:
                return _first(batches, kept, threads)
        stored = TemporaryCorpus(
            folder / "corpus.rsm", own, exact=exact, memory_bytes=memory_bytes
        )
        positions: list[int] = []
        all_keys: list[str | bytes] = []
        lengths: list[float] = []
        for batch in batches:
            # Without their keys, which need not differ.
            stored.insert_many(batch.documents, threads=threads)
            if keep == "longest":
                lengths.extend(len(document) for document in _key_list(batch.documents))
            positions.extend(batch.positions)
            all_keys.extend(() if batch.keys is None else batch.keys)
        stored.finish(progress=progress)
        rule = lengths if keep == "longest" else _keep_rule(keep, batches.count, positions)
        rows = stored.duplicates(
            policy, rule, threads=threads, max_bucket=max_bucket, progress=progress
        )
        stored.close()
    for row in rows:
        keys = (all_keys[row[0]], all_keys[row[1]]) if all_keys else (None, None)
        batches.duplicates.append(
            Duplicate(positions[row[0]], positions[row[1]], *row[2:], *keys)
        )
    return batches.deduplicated()


@dataclass(frozen=True)
class _UnknownBatch:
    """Documents that the store of `against` does not know, their positions and their keys."""

    documents: Any
    positions: list[int]
    keys: list[str | bytes] | None


class _Unknown:
    """The documents of a corpus that no document of a store is like, batch by batch; the others are
    duplicates."""

    def __init__(
        self, batches: Iterator[_Batch], against: Snapshot | None, threads: int | None
    ) -> None:
        self._batches, self._against, self._threads = batches, against, threads
        self.count = 0
        self.duplicates: list[Duplicate] = []

    def __iter__(self) -> Iterator[_UnknownBatch]:
        for documents, keys in self._batches:
            own_keys = None if keys is None else _key_list(keys)
            start, self.count = self.count, self.count + len(documents)
            if self._against is None:
                yield _UnknownBatch(documents, list(range(start, self.count)), own_keys)
                continue
            unknown = self._find(self._against, documents, start, own_keys)
            if unknown:
                yield _UnknownBatch(
                    documents if len(unknown) == len(documents) else _take(documents, unknown),
                    [start + index for index in unknown],
                    None if own_keys is None else [own_keys[index] for index in unknown],
                )

    def _find(
        self, against: Snapshot, documents: Any, start: int, keys: list[str | bytes] | None
    ) -> list[int]:
        """Returns the indices of the documents that are unknown."""
        signatures = against.schema.sketch_many(documents, threads=self._threads)
        answers = against.query_many(signatures, limit=1, threads=self._threads)
        unknown: list[int] = []
        for index, answer in enumerate(answers):
            if not answer:
                unknown.append(index)
                continue
            found, key = answer[0], None if keys is None else keys[index]
            self.duplicates.append(
                Duplicate(
                    start + index,
                    None,
                    found.similarity,
                    found.is_exact,
                    found.distance,
                    key,
                    found.key,
                )
            )
        return unknown

    def deduplicated(self, budget_exceeded: int = 0) -> Dedup:
        mask = np.ones(self.count, dtype=np.bool_)
        mask[[duplicate.position for duplicate in self.duplicates]] = False
        return Dedup(mask, self.duplicates, budget_exceeded)


def _keep_rule(keep: Any, documents: int, positions: list[int]) -> Any:
    if isinstance(keep, str):
        return keep
    scores = [float(score) for score in keep]
    if len(scores) != documents:
        found = f"{len(scores)} numbers"
        raise ValueError(f"keep: found {found}, expected one for each of {documents} documents")
    return [scores[position] for position in positions]


def _key_list(keys: Any) -> list[str | bytes]:
    if isinstance(keys, list):
        return keys
    return arrow_list(keys)


def _first(batches: _Unknown, kept: Deduplicator, threads: int | None) -> Dedup:
    # Keys of kept documents: those of the others are at hand.
    survivor_keys: dict[int, str | bytes] = {}
    for batch in batches:
        decided = kept.decide_many(batch.documents, stamps=batch.positions, threads=threads)
        for index, (position, found) in enumerate(zip(batch.positions, decided)):
            key = None if batch.keys is None else batch.keys[index]
            if found is not None:
                batches.duplicates.append(
                    Duplicate(
                        position,
                        found.stamp,
                        found.similarity,
                        found.is_exact,
                        found.distance,
                        key,
                        survivor_keys.get(found.stamp),
                    )
                )
            elif key is not None:
                survivor_keys[position] = key
    # Those that the store knows come first of their batch.
    batches.duplicates.sort(key=lambda duplicate: duplicate.position)
    return batches.deduplicated(kept.budget_exceeded)


def _take(documents: Any, indices: list[int]) -> Any:
    if not isinstance(documents, (list, Signatures)):
        documents = arrow_list(documents)
    return [documents[index] for index in indices]


def bulk_build(
    path: str | os.PathLike[str],
    corpus: Any,
    schema: Schema | None = None,
    *,
    text: str = "text",
    key: str | None = None,
    duplicate_keys: Literal["refuse", "keep-first", "keep-last"] = "refuse",
    threads: int | None = None,
    memory_bytes: int | None = None,
    temp_dir: str | os.PathLike[str] | None = None,
    progress: _Callback | None = None,
) -> BulkReport:
    """Makes a store of a corpus, offline: several times faster than inserting, in bounded memory. The file
    has its name once it is complete. Near-duplicates are all stored.

    >>> bulk_build("pages.rsm", read_files("pages.jsonl.gz"), schema)
    """
    build = BulkBuild(
        path,
        _schema(schema),
        memory_bytes=memory_bytes,
        temp_dir=temp_dir,
        threads=threads,
        duplicate_keys=duplicate_keys,
    )
    for documents, keys in _batches(corpus, text, key):
        build.insert_many(documents, keys, threads=threads)
    return build.finish(progress=progress)


def tune(
    threshold: float = 0.8,
    *,
    recall: float = 0.95,
    documents: int = 1_000_000,
    values: Iterable[int] = (64, 128, 256, 512),
    background: float = 0.02,
) -> list[BandingChoice]:
    """What schemas cost and find, one for each number of MinHash values, for pairs whose similarity
    reaches `threshold` to be found with the probability `recall`. `background` is the similarity of
    documents that have nothing to do with each other.

    >>> for choice in tune(0.7, documents=10_000_000):
    ...     print(choice.values, choice.bands, choice.rows, choice.candidates)
    """
    return [banding_choice(count, threshold, recall, documents, background) for count in values]


def evaluate(
    corpus: Any,
    schema: Schema | None = None,
    *,
    text: str = "text",
    key: str | None = None,
    floor: float = 0.1,
    max_missed: int = 100,
    temp_dir: str | os.PathLike[str] | None = None,
    progress: _Callback | None = None,
) -> Evaluation:
    """Measures what a schema finds of a sample of texts: all exact similarities from `floor` on are
    computed and compared with what a store of the sample returns. It takes about 40 bytes of memory a
    feature; some ten thousand documents are enough. `resemblance eval --figures` of the command-line
    tool draws charts of the same figures.

    >>> evaluate(random.sample(texts, 10_000), schema).recall
    """
    texts: list[str] = []
    keys: list[str | bytes] = []
    for documents, own_keys in _batches(corpus, text, key):
        if not isinstance(documents, list):
            documents = _key_list(documents)
        texts.extend(documents)
        if own_keys is not None:
            keys.extend(_key_list(own_keys))
    with _temporary(temp_dir) as folder:
        return evaluate_sample(
            texts,
            _schema(schema),
            folder,
            keys=keys or None,
            floor=floor,
            max_missed=max_missed,
            progress=progress,
        )
