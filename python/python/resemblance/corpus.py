"""Whole corpora: near pairs, clusters, a corpus without its near-duplicates, offline builds.

A corpus is one of these:

- an iterable of texts (or `Signature` objects), such as a list or a generator; it is read once;
- an iterable of `(key, text)` tuples, or of mappings such as `{"id": ..., "text": ...}` or named
  tuples with such fields; all items have the form of the first;
- a column: a pyarrow array, a pandas, polars or DuckDB one, NumPy strings;
- a table: pyarrow, pandas, polars (lazy frames too), DuckDB, `datasets` (streamed ones too), or a
  mapping of columns. `text` and `key` name the columns; others are ignored;
- a path, as `str` or `Path`, or a list of `Path` (strings in a list are texts). They are read as
  `read_files` and the command-line tool read them: JSON Lines, CSV, TSV, Parquet, Arrow, SQLite
  and WARC files, text files and folders of them, plain or compressed.

Positions count its documents from 0. The key of a document is its `id` if it has one. If you set
another `key`, every document must have it; `key=None` ignores ids. A key is a string, bytes, a number or
a time, in every container: a time is written in UTC, and bytes in a column of a table as hexadecimal
digits, as those of files. Keys must be different, but a document may have none. A document without a
text is an error; with `nulls="skip"` it is skipped, and is in no pair, cluster or store.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timezone
from decimal import Decimal
from hashlib import blake2b
from itertools import chain, islice
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from ._native import (
    ArrowBatches,
    BulkBuild,
    Clusters,
    CorpusFiles,
    Deduplicator,
    Pairs,
    Schema,
    Signature,
    Signatures,
    Snapshot,
    Store,
    StoreComparison,
    TemporaryCorpus,
    arrow_list,
    banding_choice,
    evaluate_sample,
    number_key,
    several,
)
from .errors import InvalidParameterError
from .reports import BandingChoice, BulkReport, Evaluation, Progress
from .schema import MinHash, Text

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Dedup",
    "Duplicate",
    "Rejected",
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
_Pair = TypeVar("_Pair", "Duplicate", "Rejected")
_Callback = Callable[[Progress], object]
_Nulls = Literal["refuse", "skip"]
# What a table raises whose columns Arrow's interface does not have, such as objects of several types and integers of
# 128 bits, or whose package finds no pyarrow.
_NOT_OF_ARROW = (TypeError, ValueError, OverflowError, NotImplementedError, ImportError)
# Documents that are read from an iterable at once, and from a list, whose documents are in memory anyway.
_TOGETHER = 2_048
_LISTED_TOGETHER = 65_536


def _invalid(parameter: str, found: str, expected: str) -> InvalidParameterError:
    error = InvalidParameterError(f"{parameter}: found {found}, expected {expected}")
    error.parameter, error.found, error.expected = parameter, found, expected
    return error


def _schema(schema: Schema | None) -> Schema:
    if not isinstance(schema, (Schema, type(None))):
        raise TypeError(f"schema: found {type(schema).__name__}, expected a Schema")
    return schema or Schema(text=Text.auto(), minhash=MinHash(128, threshold=0.8))


def read_files(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    text: str = "text",
    key: str | None = "id",
    table: str | None = None,
    nulls: _Nulls = "refuse",
    html: bool = False,
) -> Iterator[tuple[str, str]]:
    """Reads keys and texts from files as the command-line tool does. Lines of JSON Lines files have the
    fields `key` and `text`; rows of CSV, TSV, Parquet, Arrow and SQLite files have columns with these
    names. Pages of WARC files have their URI as `id` and their visible text as `text`; records without a
    page are skipped. For a schema with `html=True`, which would read the text as HTML again, set `html=True`:
    such a text is then returned as HTML, without its other markup. Any other file is one text whose key is
    its path. A folder contributes all of its files, by name. The content and the
    name of a file determine its format. Files other than Parquet, Arrow and SQLite may be compressed with
    gzip, Zstandard, bzip2 or xz. `table` names the table or view if a SQLite database has several. A
    document without an `id`, or any document with `key=None`, has its file and the number of its line or
    row as its key; a text file has its path. A bad document is a `ValueError` that names the file and the
    line; with `nulls="skip"`, documents without a text are skipped.

    >>> for key, text in read_files("corpus.jsonl.gz"): ...
    """
    for texts, keys in _files(paths, text, key, nulls, table, html):
        for own, found in zip(keys, texts):
            if own is not None and found is not None:
                yield own, found


def _files(
    paths: Any, text: str, key: str | None, nulls: _Nulls, table: str | None = None, html: bool = False
) -> CorpusFiles:
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(several("paths", paths))
    return CorpusFiles(listed, text, key, table=table, skip_nulls=nulls == "skip", html=html)


_Batch = tuple[Any, "list[str | bytes | None] | Any | None"]


def _batches(corpus: Any, text: str, key: str | None, nulls: _Nulls, schema: Schema | None) -> Iterator[_Batch]:
    """Yields the documents of a corpus and their keys in batches. Documents without a text are `None`
    if they are skipped.
    """
    if nulls not in ("refuse", "skip"):
        raise _invalid("nulls", repr(nulls), "'refuse' or 'skip'")
    position = 0
    for documents, keys in _unchecked(corpus, text, key, nulls, schema is not None and schema.html):
        if isinstance(documents, list):
            _check_texts(documents, position, nulls)
        if isinstance(keys, list):
            keys = [_key(found, position + index) for index, found in enumerate(keys)]
        yield documents, keys
        position += len(documents)


def _unchecked(corpus: Any, text: str, key: str | None, nulls: _Nulls, html: bool) -> Iterator[_Batch]:
    if isinstance(corpus, (str, os.PathLike)):
        yield from _files(corpus, text, key, nulls, html=html)
    elif isinstance(corpus, Signatures):
        yield corpus, None
    elif isinstance(corpus, Mapping):
        yield from _columns(corpus, text, key)
    elif hasattr(corpus, "with_format") and getattr(corpus, "column_names", None):
        # Of the package `datasets`: row by row it makes a dictionary of each.
        names = _named(corpus.column_names, text, key)
        for table in corpus.select_columns(names).with_format("arrow").iter(batch_size=_TOGETHER):
            yield from _arrow(ArrowBatches(table, text, key))
    elif hasattr(corpus, "collect_schema") or not callable(getattr(corpus, "columns", len)):
        yield from _frame(corpus, text, key)
    elif hasattr(corpus, "__arrow_c_stream__") or hasattr(corpus, "__arrow_c_array__"):
        yield from _arrow(ArrowBatches(corpus, text, key))
    else:
        items = several("corpus", corpus)
        together = _LISTED_TOGETHER if isinstance(corpus, (list, tuple)) else _TOGETHER
        batch = list(islice(items, together))
        if batch and isinstance(batch[0], os.PathLike):
            yield from _files(chain(batch, items), text, key, nulls, html=html)
            return
        form, position = _form(batch[0], text, key) if batch else None, 0
        while batch:
            yield _split(batch, position, form, text, key)
            position += len(batch)
            batch = list(islice(items, together))


def _named(names: Iterable[Any], text: str, key: str | None) -> list[str]:
    """The columns to read, of the existing ones. Ids may be missing."""
    found = list(names)
    wanted = [text] if key is None or (key == "id" and key not in found) else [text, key]
    for name in wanted:
        if name not in found:
            shown = ", ".join(map(str, found[:20])) + (" and more" if len(found) > 20 else "")
            raise _invalid("column", shown, f"{name!r} as well")
        if found.count(name) > 1:
            raise _invalid("column", f"several {name!r}", "one")
    return wanted


def _arrow(batches: ArrowBatches) -> Iterator[_Batch]:
    for texts, keys in batches:
        yield (arrow_list(texts) if texts.null_count else texts), keys


def _frame(frame: Any, text: str, key: str | None) -> Iterator[_Batch]:
    """Converts a table of pandas, polars, DuckDB or pyarrow. Its other columns may have any type."""
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):
        names = _named(frame.collect_schema().names(), text, key)
        yield from _frame(frame.select(names).collect(), text, key)
        return
    names = _named(getattr(frame, "column_names", None) or frame.columns, text, key)
    if hasattr(frame, "iloc"):
        # The index of pandas may be anything, too.
        chosen = frame[names].reset_index(drop=True)
    elif hasattr(frame, "project"):
        chosen = frame.project(", ".join('"' + name.replace('"', '""') + '"' for name in names))
    else:
        chosen = frame.select(names)
    # Of pandas and polars values can be read one by one.
    is_frame = hasattr(chosen, "iloc") or hasattr(chosen, "to_dict")
    # For objects Arrow's interface of polars has their addresses.
    if not is_frame or not any(str(chosen[name].dtype) == "Object" for name in names):
        try:
            batches = ArrowBatches(chosen, text, key)
        except _NOT_OF_ARROW:
            if not is_frame:
                raise
        else:
            yield from _arrow(batches)
            return
    yield from _columns({name: chosen[name].__iter__() for name in names}, text, key)


def _of_polars(values: Any) -> Any:
    """A frame or a column without the type Null, which polars exports in a form that others refuse."""
    import polars as pl

    if isinstance(values, pl.DataFrame):
        return values.cast({pl.Null: pl.String})
    return values.cast(pl.String) if values.dtype == pl.Null else values


def _columns(columns: Mapping[str, Any], text: str, key: str | None) -> Iterator[_Batch]:
    """A mapping of names to columns."""
    names = _named(columns, text, key)
    if any(isinstance(columns[name], (str, bytes)) for name in names):
        raise TypeError("corpus: found a mapping of one document, expected a list of them, or columns")
    values = [list(columns[name]) for name in names]
    if len({len(column) for column in values}) > 1:
        found = " and ".join(f"{len(column)} of {name!r}" for name, column in zip(names, values))
        raise _invalid("corpus", found, "columns of one length")
    for start in range(0, len(values[0]), _LISTED_TOGETHER):
        parts = [column[start : start + _LISTED_TOGETHER] for column in values]
        yield parts[0], parts[1] if len(parts) > 1 else None


def _form(first: Any, text: str, key: str | None) -> str | None:
    """What the items of an iterable are, by the first: named tuples, as `itertuples` of pandas makes
    them, mappings, tuples, or, if it is `None`, documents.
    """
    if isinstance(first, tuple) and text in getattr(first, "_fields", ()):
        _named(first._fields, text, key)  # type: ignore[attr-defined, unused-ignore]
        return "a named tuple"
    if isinstance(first, Mapping):
        _named(first, text, key)
        return "a mapping"
    return "(key, text)" if isinstance(first, tuple) else None


def _split(batch: list[Any], position: int, form: str | None, text: str, key: str | None) -> _Batch:
    """The documents of items of one form, and their keys."""
    if form is None:
        return batch, None
    documents, keys = [], []
    for place, item in enumerate(batch, position):
        if form == "(key, text)":
            fits = isinstance(item, tuple) and len(item) == 2
            own, document = item if fits else (None, None)
        else:
            fields = item._asdict() if form == "a named tuple" and hasattr(item, "_asdict") else item
            fits = isinstance(fields, Mapping)
            if fits and key is not None and key != "id" and key not in fields:
                raise _invalid("documents", f"no {key!r} at position {place}", "one in every document")
            own, document = (fields.get(key), fields.get(text)) if fits else (None, None)
        if not fits:
            found = f"{len(item)} values" if isinstance(item, tuple) else type(item).__name__
            raise TypeError(f"documents: found {found} at position {place}, expected {form} as at the first")
        documents.append(document)
        keys.append(own)
    return documents, None if key is None else keys


def _is_null(value: Any) -> bool:
    # Of pandas a missing value may be a float that is no number, or a special object.
    is_nan = isinstance(value, (float, np.floating, Decimal)) and math.isnan(value)
    is_no_time = isinstance(value, np.datetime64) and bool(np.isnat(value))
    return value is None or is_nan or is_no_time or type(value).__name__ in ("NAType", "NaTType")


def _number(found: Any) -> int | float | Decimal | None:
    """Converts a number to a Python number, which compares exactly with numbers of other types. Returns
    `None` for anything else.
    """
    if isinstance(found, (Integral, np.bool_)):
        return int(found)
    if isinstance(found, Real):
        return float(found)
    return found if isinstance(found, Decimal) else None


def _check_texts(documents: list[Any], position: int, nulls: _Nulls) -> None:
    for index, document in enumerate(documents):
        if isinstance(document, (str, Signature)):
            continue
        place = f"position {position + index}"
        if not _is_null(document):
            found = type(document).__name__
            raise TypeError(f"documents: found {found} at {place}, expected a str or a Signature")
        if nulls == "refuse":
            raise _invalid("documents", f"null at {place}", "a text; nulls='skip' leaves such out")
        documents[index] = None


def _key(found: Any, position: int) -> str | bytes | None:
    """The key that the tool makes from an id."""
    if isinstance(found, (str, bytes)):
        return found
    if _is_null(found):
        return None
    if isinstance(found, (date, np.datetime64)):
        return _time_key(found)
    number = None if isinstance(found, (bool, np.bool_)) else _number(found)
    if number is None:
        kind = type(found).__name__
        raise TypeError(f"key: found {kind} at position {position}, expected a string, a number or a time")
    if isinstance(number, float):
        return number_key("float" if isinstance(found, np.float32) else "double", number)
    return str(number)


def _time_key(found: Any) -> str | None:
    """A time in UTC. One without a zone counts as UTC."""
    if getattr(found, "tzinfo", None) is not None:
        found = found.astimezone(timezone.utc).replace(tzinfo=None)
    # That of pandas has nanoseconds.
    moment = found.to_datetime64() if hasattr(found, "to_datetime64") else np.datetime64(found)
    unit = "ns" if np.datetime_data(moment.dtype)[0] == "ns" else "us"
    return number_key(unit, int(moment.astype(f"datetime64[{unit}]").astype(np.int64)))


def _key_bytes(key: str | bytes | None) -> bytes | None:
    return key.encode("utf-8", "surrogateescape") if isinstance(key, str) else key


def _present(documents: Any, keys: Any) -> tuple[Any, Any, list[int] | None]:
    """The documents with a text, their keys, and their indices if other documents have none."""
    if not isinstance(documents, list) or None not in documents:
        return documents, keys, None
    indices = [index for index, document in enumerate(documents) if document is not None]
    own_keys = None if keys is None else _key_list(keys)
    picked = None if own_keys is None else [own_keys[index] for index in indices]
    return [documents[index] for index in indices], picked, indices


@contextmanager
def _temporary(folder: str | os.PathLike[str] | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="resemblance-", dir=folder) as path:
        yield Path(path)


def _is_exact(exact: bool | None, corpus: Any, schema: Schema) -> bool:
    """Whether similarities are exact. By default they are if the corpus has texts and its features no weights."""
    minhash = schema.minhash
    is_weighted = minhash is not None and minhash.kind in ("weighted", "probability")
    if exact and is_weighted:
        raise _invalid("exact", "True", "False for a schema with weights: exact similarities are of sets")
    if exact is not None:
        return exact
    has_texts = schema.text is not None and not isinstance(corpus, Signatures)
    return has_texts and minhash is not None and not is_weighted


@contextmanager
def _joined(
    corpus: Any,
    schema: Schema | None,
    *,
    text: str,
    key: str | None,
    nulls: _Nulls,
    exact: bool | None,
    threads: int | None,
    memory_bytes: int | None,
    temp_dir: str | os.PathLike[str] | None,
    progress: _Callback | None,
) -> Iterator[TemporaryCorpus]:
    """The corpus in a temporary store. Its file is open and has no name when the block ends."""
    own = _schema(schema)
    if nulls == "skip" and own.empty_documents == "alike":
        raise _invalid("nulls", "'skip'", "'refuse': with this schema empty documents are alike")
    exact = _is_exact(exact, corpus, own)
    with _temporary(temp_dir) as folder:
        stored = TemporaryCorpus(
            folder / "corpus.rsm", own, exact=exact, memory_bytes=memory_bytes
        )
        for documents, keys in _batches(corpus, text, key, nulls, own):
            if isinstance(documents, list):
                # Positions are those of the corpus, and an empty text is near no other.
                documents = ["" if document is None else document for document in documents]
            stored.insert_many(documents, keys, threads=threads)
        stored.finish(progress=progress)
        yield stored


def pairs(
    corpus: Any,
    schema: Schema | None = None,
    *,
    text: str = "text",
    key: str | None = "id",
    nulls: _Nulls = "refuse",
    threshold: float | None = None,
    max_distance: int | None = None,
    by: Literal["minhash", "vector", "simhash", "any", "both"] | None = None,
    exact: bool | None = None,
    max_bucket: int | None = None,
    threads: int | None = None,
    memory_bytes: int | None = None,
    temp_dir: str | os.PathLike[str] | None = None,
    progress: _Callback | None = None,
) -> Pairs:
    """All near pairs of a corpus, as an iterator: `a` and `b` of a pair are positions.

    The default schema is that of the command-line tool: word 5-grams, 128 MinHash values, similarity
    0.8. If the corpus has texts, similarities are computed from them, and every returned pair is within
    the bound. With `exact=False` they are estimates from the signatures, which is faster. Memory does
    not grow with the corpus, which is kept in a temporary store in `temp_dir`.

    >>> for pair in pairs(["one two three", "one two three", "four"], schema):
    ...     print(pair.a, pair.b, pair.similarity)
    """
    with _joined(
        corpus,
        schema,
        text=text,
        key=key,
        nulls=nulls,
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
    key: str | None = "id",
    nulls: _Nulls = "refuse",
    threshold: float | None = None,
    max_distance: int | None = None,
    by: Literal["minhash", "vector", "simhash", "any", "both"] | None = None,
    exact: bool | None = None,
    max_bucket: int | None = None,
    threads: int | None = None,
    memory_bytes: int | None = None,
    temp_dir: str | os.PathLike[str] | None = None,
    progress: _Callback | None = None,
) -> Clusters:
    """Finds the documents of a corpus that near pairs link. The `ids` of a cluster are positions.
    Documents without a partner are in no cluster. The other parameters are those of `pairs`.
    """
    with _joined(
        corpus,
        schema,
        text=text,
        key=key,
        nulls=nulls,
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
    """A dropped document: its position, the position of its survivor (`None` if the survivor is in the
    store `against`, under `survivor_key`), and how near they are. `held` is the share of the dropped
    document's features that its survivor has, and `covered` the share of the survivor's features that
    the dropped document has; `None` unless the features of both are known. `rule` is what decided:
    `"similarity"`, `"distance"`, `"both"`, `"cluster"` (other documents link the two) or `"contained"`
    (with `lost`).
    """

    position: int
    survivor: int | None
    similarity: float | None
    is_exact: bool
    distance: int | None
    key: str | bytes | None = None
    survivor_key: str | bytes | None = None
    held: float | None = None
    covered: float | None = None
    rule: Literal["similarity", "distance", "both", "cluster", "contained"] = "similarity"


@dataclass(frozen=True)
class Rejected:
    """A document, and one that it was compared with exactly and not dropped for: their positions (`None`
    for a candidate in the store `against`), similarity, shares as in `Duplicate`, and keys.
    """

    position: int
    candidate: int | None
    similarity: float
    held: float
    covered: float
    key: str | bytes | None = None
    candidate_key: str | bytes | None = None


@dataclass(frozen=True)
class Review:
    """Pairs around a bound for a person to judge, and the numbers of pairs that they were chosen from:
    `dropped` of `dropped_pairs`, and `kept_apart` of `kept_apart_pairs`.
    """

    dropped: list[Duplicate]
    kept_apart: list[Rejected]
    dropped_pairs: int
    kept_apart_pairs: int


@dataclass(frozen=True, eq=False)
class Dedup:
    """A corpus without its near-duplicates: `kept` has `True` for each document that is kept, and
    `False` for those that are dropped and those without a text. With a budget, `budget_exceeded`
    documents were compared with only some of their candidates, so some of their near-duplicates may
    remain. `rejected` has the candidates that were compared and kept apart; it is `None` unless they
    were asked for. Of `texts_missing` documents of the store `against`, `against_texts` has no text:
    similarities to them are estimates, and with `lost` nothing is dropped for them. With `against` and
    `lost`, `holder_recall` has the probability that buckets find a document of the store that has the
    features of a new one, if it has 1, 1.25, 2 or 4 times their number. `Containment` finds more. It is
    `None` without MinHash.
    """

    kept: NDArray[np.bool_]
    duplicates: list[Duplicate]
    budget_exceeded: int = 0
    rejected: list[Rejected] | None = None
    texts_missing: int = 0
    holder_recall: dict[float, float] | None = None

    def __eq__(self, other: object) -> bool:
        # NumPy compares arrays number by number.
        return isinstance(other, Dedup) and all(
            np.array_equal(own, its) if isinstance(own, np.ndarray) else own == its
            for own, its in zip(vars(self).values(), vars(other).values())
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def positions(self) -> NDArray[np.int64]:
        """The positions of the documents that are kept."""
        return np.flatnonzero(self.kept)

    def select(self, documents: Sequence[_T]) -> list[_T]:
        """Returns those of `documents` that are kept; it must have one entry for each document of the
        corpus.
        """
        if len(documents) != len(self.kept):
            raise _invalid("documents", str(len(documents)), str(len(self.kept)))
        return [document for document, kept in zip(several("documents", documents), self.kept) if kept]

    def review(
        self,
        bound: float,
        *,
        by: Literal["similarity", "lost"] = "similarity",
        pairs: int = 20,
        within: float = 0.05,
        seed: int = 0,
    ) -> Review:
        """Returns pairs around a bound for a person to judge: the similarity, or the share of features
        that a dropped document would lose, is less than `within` away from `bound`. Half of the pairs
        were dropped and half kept apart, so `rejected=True` must have been given. They are chosen by
        hashes of `seed` and the positions, so the same documents always give the same pairs.

        >>> found = dedup(texts, rejected=True)
        >>> for pair in found.review(0.8).kept_apart:
        ...     print(texts[pair.position], texts[pair.candidate], pair.similarity)
        """
        if self.rejected is None:
            raise _invalid("rejected", "a result without it", "one of dedup(..., rejected=True)")

        def value(pair: Duplicate | Rejected) -> float | None:
            held = None if pair.held is None else 1 - pair.held
            return held if by == "lost" else pair.similarity

        def near(all_pairs: Sequence[_Pair]) -> list[_Pair]:
            values = [(pair, value(pair)) for pair in all_pairs]
            return [pair for pair, at in values if at is not None and abs(at - bound) < within]

        def place(pair: Duplicate | Rejected) -> bytes:
            other = pair.survivor if isinstance(pair, Duplicate) else pair.candidate
            return blake2b(repr((seed, pair.position, other)).encode()).digest()

        dropped, apart = near(self.duplicates), near(self.rejected)
        return Review(
            sorted(dropped, key=place)[: (pairs + 1) // 2],
            sorted(apart, key=place)[: pairs // 2],
            len(dropped),
            len(apart),
        )

    def to_arrow(self) -> Any:
        """Returns the duplicates as a pyarrow table with a row for each and the fields of `Duplicate`
        as columns. Keys are strings, or bytes if one of them is not UTF-8.
        """
        import pyarrow as pa

        rows, names = self.duplicates, ("key", "survivor_key")
        keys = {name: pa.array([_key_bytes(getattr(row, name)) for row in rows], pa.binary()) for name in names}
        kinds = {
            "position": pa.uint64(),
            "survivor": pa.uint64(),
            "similarity": pa.float64(),
            "is_exact": pa.bool_(),
            "distance": pa.uint32(),
            "held": pa.float64(),
            "covered": pa.float64(),
            "rule": pa.string(),
        }
        columns = {name: pa.array([getattr(row, name) for row in rows], kind) for name, kind in kinds.items()}
        try:
            return pa.table(columns | {name: column.cast(pa.string()) for name, column in keys.items()})
        except pa.ArrowInvalid:
            return pa.table(columns | keys)

    def annotations(self) -> dict[str, list[Any]]:
        """Returns the result for each document as columns that you can add to those of the corpus, in
        its order:

        - `kept`: whether it is kept;
        - `cluster`: the position of its survivor, or its own if kept; `None` if its survivor is in the store of
          `against`;
        - `size` and `rank`: the number of documents in the cluster, and the document's place in it: 1
          for the survivor, then in the order of the corpus;
        - `survivor`: for a dropped document, the key of its survivor, if that has one;
        - `similarity`, `distance`, `is_exact`: for a dropped document.

        >>> table = table.append_column("size", [found.annotations()["size"]])
        """
        count = len(self.kept)
        clusters: list[int | None] = list(range(count))
        sizes: list[int | None] = [1] * count
        ranks: list[int | None] = [1] * count
        gone = {duplicate.position for duplicate in self.duplicates}
        for place in np.flatnonzero(~self.kept).tolist():
            if place not in gone:
                # Without a text it is in no cluster.
                clusters[place] = sizes[place] = ranks[place] = None
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
    key: str | None = "id",
    nulls: _Nulls = "refuse",
    policy: Literal["first", "cluster", "representative"] = "first",
    keep: Literal["first", "last", "longest"] | Iterable[float | Decimal | None] = "first",
    exact: bool | None = None,
    lost: float | None = None,
    rejected: bool = False,
    against: Store | Snapshot | None = None,
    against_texts: Any = None,
    budget: int | None = None,
    max_bucket: int | None = None,
    threads: int | None = None,
    memory_bytes: int | None = None,
    temp_dir: str | os.PathLike[str] | None = None,
    progress: _Callback | None = None,
) -> Dedup:
    """Finds the documents of a corpus that remain without near-duplicates.

    With the policy `"first"` a document is dropped if it is near an earlier one that is kept; with
    `"cluster"` one document of each cluster is kept; with `"representative"` documents are decided in
    the order of the number of their near-duplicates, the most first. `keep` selects which of several
    near-duplicates is kept: the `"first"`, the `"last"`, the `"longest"`, or, if you pass a number for
    each document, the one with the greatest number. Integers and decimals are compared exactly. A
    document with `None` or NaN is last. `against` is a store to compare with, whose schema is used.
    Documents near one of its documents are dropped first, by estimates unless the store is exact or
    `against_texts` has its texts: the corpus that it was built from, or a part of it, with the keys of
    the store. Nothing is written to it. Keys need not be different here.

    With `lost`, similarity plays no part: a document is dropped only if a document that is kept has its
    features, all but this share of its distinct ones. 0 loses nothing. A short document that is
    contained in a long one is dropped, and of two that contain each other `keep` selects one. It goes
    with the policies `"first"` and `"representative"`, and needs texts or features. With `against`,
    documents whose features one of the store has are dropped first; that needs an exact store or
    `against_texts`. A document of the store is compared if it shares a bucket with the new one, or, with
    `Containment` in its schema, a kept hash. Without that, most of the stored documents that are much
    longer are missed, and the new one is kept. `holder_recall` of the result has the probabilities.

    `rejected` lists the kept documents, and those of `against`, that a document was compared with and
    not dropped for. It needs exact similarities and another policy than `"cluster"`.

    `budget` is the maximum number of candidates to compare with a document: those that share the most
    buckets with it. They are compared by estimates unless `exact` is set. A budget requires the policy
    `"first"`. `memory_bytes` limits the memory for documents, and again that amount for their features;
    the rest goes to files in `temp_dir`.

    >>> found = dedup(texts)
    >>> unique = found.select(texts)
    >>> [(d.position, d.survivor, d.similarity) for d in found.duplicates]
    """
    snapshot = against.snapshot() if isinstance(against, Store) else against
    if not isinstance(snapshot, (Snapshot, type(None))):
        found = type(against).__name__
        raise TypeError(f"against: found {found}, expected a Store or a Snapshot; Store.open(path) opens one")
    own = snapshot.schema if snapshot is not None else _schema(schema)
    if snapshot is not None and schema is not None and schema != own:
        raise _invalid("schema", "another than that of the store", "the same or none")
    named = keep if isinstance(keep, str) else None
    is_first = policy == named == "first"
    if budget is not None and not is_first:
        raise _invalid("budget", "another policy or rule", "'first' of both")
    if lost is not None:
        if not 0 <= lost < 1:
            raise _invalid("lost", repr(lost), "a share of at least 0 and below 1")
        is_first = False
        others = {"budget": budget, "max_bucket": max_bucket}
        given = [name for name, value in others.items() if value is not None]
        if given:
            raise _invalid("lost", f"it beside {given[0]}", "one of them")
        if policy == "cluster":
            raise _invalid("lost", "it beside policy 'cluster'", "another policy")
        if exact is False:
            raise _invalid("lost", "it beside exact=False", "exact features")
        exact = True
    else:
        exact = _is_exact(False if budget is not None and exact is None else exact, corpus, own)
    if rejected:
        is_first = False
        if budget is not None or policy == "cluster" or not exact:
            raise _invalid("rejected", "a budget, 'cluster' or estimates", "none of them")
    if against_texts is not None and (snapshot is None or own.exact or not exact):
        found = "no store" if snapshot is None else "an exact store" if own.exact else "estimates"
        raise _invalid("against_texts", f"it with {found}", "a store of signatures and exact similarities")
    if snapshot is not None and (lost is not None or rejected) and not own.exact and against_texts is None:
        found = f"a store of signatures beside {'rejected' if lost is None else 'lost'}"
        raise _invalid("against", found, "an exact one, or its texts in against_texts")
    batches = _Unknown(_batches(corpus, text, key, nulls, own), snapshot, threads, lost, rejected)
    with _temporary(temp_dir) as folder:
        if snapshot is not None and against_texts is not None:
            known = StoreComparison(snapshot, folder, memory_bytes=memory_bytes)
            batches.read_texts(_batches(against_texts, text, key, nulls, own), known, len(snapshot))
        elif snapshot is not None and (lost is not None or rejected):
            batches.compare_with(StoreComparison(snapshot))
        if is_first:
            with Deduplicator(
                own, folder, exact=exact, memory_bytes=memory_bytes, budget=budget
            ) as kept:
                return _first(batches, kept, threads)
        stored = TemporaryCorpus(
            folder / "corpus.rsm", own, exact=exact, memory_bytes=memory_bytes
        )
        positions: list[int] = []
        all_keys: list[str | bytes | None] = []
        lengths: list[float] = []
        for batch in batches:
            # Without their keys, which need not differ.
            stored.insert_many(batch.documents, threads=threads)
            if named == "longest":
                texts: list[Any] = _key_list(batch.documents)
                lengths.extend(len(own.extract(text) if own.html else text) for text in texts)
            positions.extend(batch.positions)
            all_keys.extend(() if batch.keys is None else batch.keys)
        stored.finish(progress=progress)
        rule = lengths if named == "longest" else _keep_rule(keep, batches.count, positions)
        rows, apart = stored.duplicates(
            policy,
            rule,
            lost=lost,
            rejected=rejected,
            threads=threads,
            max_bucket=max_bucket,
            progress=progress,
        )
        stored.close()
    for row in rows:
        keys = (all_keys[row[0]], all_keys[row[1]]) if all_keys else (None, None)
        batches.duplicates.append(
            Duplicate(positions[row[0]], positions[row[1]], *row[2:5], *keys, row[5], row[6], row[7])
        )
    for a, b, similarity, held, covered in apart:
        keys = (all_keys[a], all_keys[b]) if all_keys else (None, None)
        batches.rejected.append(
            Rejected(positions[a], positions[b], similarity, held, covered, *keys)
        )
    return batches.deduplicated()


@dataclass(frozen=True)
class _UnknownBatch:
    """The documents without a near-duplicate in the store `against`, their positions and their keys."""

    documents: Any
    positions: list[int]
    keys: list[str | bytes | None] | None


class _Unknown:
    """Yields the documents of a corpus without a near-duplicate in a store, batch by batch. The others
    are duplicates.
    """

    def __init__(
        self,
        batches: Iterator[_Batch],
        against: Snapshot | None,
        threads: int | None,
        lost: float | None,
        lists_rejected: bool,
    ) -> None:
        self._batches, self._against, self._threads = batches, against, threads
        self._lost, self._lists_rejected = lost, lists_rejected
        self.count = 0
        self.duplicates: list[Duplicate] = []
        self.rejected: list[Rejected] = []
        self.missing: list[int] = []
        self._known: StoreComparison | None = None
        self.texts_missing = 0

    def __iter__(self) -> Iterator[_UnknownBatch]:
        for batch, batch_keys in self._batches:
            start, self.count = self.count, self.count + len(batch)
            documents, keys, indices = _present(batch, batch_keys)
            own_keys = None if keys is None else _key_list(keys)
            positions = list(range(start, self.count))
            if indices is not None:
                present = [start + index for index in indices]
                self.missing.extend(sorted(set(positions) - set(present)))
                positions = present
            if self._against is not None:
                unknown = self._find(self._against, documents, positions, own_keys)
                if len(unknown) < len(positions):
                    documents = _take(documents, unknown)
                    positions = [positions[index] for index in unknown]
                    own_keys = None if own_keys is None else [own_keys[index] for index in unknown]
            if positions:
                yield _UnknownBatch(documents, positions, own_keys)

    def compare_with(self, known: StoreComparison) -> None:
        """Compares with the stored documents exactly."""
        self._known = known

    def read_texts(self, texts: Iterator[_Batch], known: StoreComparison, stored: int) -> None:
        """Compares with the stored documents exactly whose texts these are."""
        self._known, self.texts_missing = known, stored
        for batch, batch_keys in texts:
            documents, keys, _ = _present(batch, batch_keys)
            if keys is None:
                raise _invalid("against_texts", "no keys", "those of the store")
            self.texts_missing -= known.add_texts(documents, keys, threads=self._threads)

    def _find(
        self,
        against: Snapshot,
        documents: Any,
        positions: list[int],
        keys: list[str | bytes | None] | None,
    ) -> list[int]:
        """Returns the indices of the documents that are unknown."""

        def key_pair(index: int, stored: int) -> tuple[str | bytes | None, str | bytes | None]:
            record = against.get_id(stored)
            return None if keys is None else keys[index], None if record is None else record.key

        found: Sequence[Any]
        apart: list[tuple[int, int, float, float, float]] = []
        if self._known is None:
            signatures = against.schema.sketch_many(documents, threads=self._threads)
            rule, answers = against.schema.drop_rule, against.query_many(signatures, limit=1, threads=self._threads)
            matches = [answer[0] if answer else None for answer in answers]
            found = [m and (m.id, m.similarity, m.is_exact, m.distance, None, None, rule(m)) for m in matches]
        elif self._lost is None:
            found, apart = self._known.near(documents, threads=self._threads)
        else:
            holders, apart = self._known.holders(documents, self._lost, threads=self._threads)
            found = [h and (h[1], h[2], True, None, h[3], h[4], "contained") for h in holders]
        for index, stored, similarity, held, covered in apart if self._lists_rejected else []:
            pair = key_pair(index, stored)
            self.rejected.append(
                Rejected(positions[index], None, similarity, held, covered, *pair)
            )
        for index, it in enumerate(found):
            if it is not None:
                stored, similarity, is_exact, distance, held, covered, rule = it
                place, pair = positions[index], key_pair(index, stored)
                self.duplicates.append(
                    Duplicate(place, None, similarity, is_exact, distance, *pair, held, covered, rule)
                )
        return [index for index, it in enumerate(found) if it is None]

    def deduplicated(self, budget_exceeded: int = 0) -> Dedup:
        mask = np.ones(self.count, dtype=np.bool_)
        mask[[duplicate.position for duplicate in self.duplicates]] = False
        mask[self.missing] = False
        rejected = self.rejected if self._lists_rejected else None
        recall: dict[float, float] = {}
        for times in (1.0, 1.25, 2.0, 4.0):
            chance = None if self._known is None or self._lost is None else self._known.recall(self._lost, times)
            if chance is not None:
                recall[times] = chance
        return Dedup(mask, self.duplicates, budget_exceeded, rejected, self.texts_missing, recall or None)


def _keep_rule(keep: Any, documents: int, positions: list[int]) -> Any:
    """Returns the rule as a word, or as the ranks of the numbers, because a float cannot represent
    every integer and decimal.
    """
    if isinstance(keep, str):
        return keep
    scores: list[int | float | Decimal | None] = []
    for position, score in enumerate(several("keep", keep)):
        # Those of a column of pyarrow are objects of its own.
        value = score.as_py() if hasattr(score, "as_py") else score
        number = None if _is_null(value) else _number(value)
        if number is None and not _is_null(value):
            raise _invalid("keep", f"{type(value).__name__} at position {position}", "a number, or None for the last")
        scores.append(number)
    if len(scores) != documents:
        raise _invalid("keep", f"{len(scores)} numbers", f"one for each of {documents} documents")
    ranks = {score: float(rank) for rank, score in enumerate(sorted({score for score in scores if score is not None}))}
    return [math.nan if score is None else ranks[score] for score in (scores[position] for position in positions)]


def _key_list(keys: Any) -> list[str | bytes | None]:
    if isinstance(keys, list):
        return keys
    return arrow_list(keys)


def _first(batches: _Unknown, kept: Deduplicator, threads: int | None) -> Dedup:
    # Keys of kept documents: those of the others are available.
    survivor_keys: dict[int, str | bytes] = {}
    for batch in batches:
        decided = kept.decide_with_evidence(batch.documents, stamps=batch.positions, threads=threads)
        for index, (position, found) in enumerate(zip(batch.positions, decided)):
            key = None if batch.keys is None else batch.keys[index]
            if found is not None:
                survivor, similarity, is_exact, distance, held, covered, rule = found
                keys = (key, survivor_keys.get(survivor))
                batches.duplicates.append(
                    Duplicate(
                        position, survivor, similarity, is_exact, distance, *keys, held, covered, rule
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
    key: str | None = "id",
    nulls: _Nulls = "refuse",
    duplicate_keys: Literal["refuse", "keep-first", "keep-last"] = "refuse",
    threads: int | None = None,
    memory_bytes: int | None = None,
    temp_dir: str | os.PathLike[str] | None = None,
    progress: _Callback | None = None,
) -> BulkReport:
    """Builds a store from a corpus, offline. This is several times faster than inserting, and needs
    limited memory. The file gets its name when it is complete. All near-duplicates are stored.

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
    for documents, keys in _batches(corpus, text, key, nulls, _schema(schema)):
        present, own_keys, _ = _present(documents, keys)
        build.insert_many(present, own_keys, threads=threads)
    return build.finish(progress=progress)


def tune(
    threshold: float = 0.8,
    *,
    recall: float = 0.95,
    documents: int = 1_000_000,
    values: Iterable[int] = (64, 128, 256, 512),
    background: float = 0.02,
) -> list[BandingChoice]:
    """Returns what schemas cost and find, one for each number of MinHash values. Each finds pairs whose
    similarity reaches `threshold` with the probability `recall`. `background` is the similarity of
    unrelated documents.

    >>> for choice in tune(0.7, documents=10_000_000):
    ...     print(choice.values, choice.bands, choice.rows, choice.candidates)
    """
    return [banding_choice(count, threshold, recall, documents, background) for count in several("values", values)]


def evaluate(
    corpus: Any,
    schema: Schema | None = None,
    *,
    text: str = "text",
    key: str | None = "id",
    nulls: _Nulls = "refuse",
    floor: float = 0.1,
    max_missed: int = 100,
    temp_dir: str | os.PathLike[str] | None = None,
    progress: _Callback | None = None,
) -> Evaluation:
    """Measures how much a schema finds in a sample of texts. It computes all exact similarities of at
    least `floor`, and compares them with what a store of the sample returns. It takes about 40 bytes of
    memory for each feature; ten thousand documents are usually enough. `resemblance eval --svg` of
    the command-line tool draws charts of the same figures.

    >>> evaluate(random.sample(texts, 10_000), schema).recall
    """
    texts: list[Any] = []
    keys: list[str | bytes | None] = []
    for batch, batch_keys in _batches(corpus, text, key, nulls, _schema(schema)):
        documents, own_keys, _ = _present(batch, batch_keys)
        texts.extend(documents if isinstance(documents, list) else _key_list(documents))
        keys.extend([None] * len(documents) if own_keys is None else _key_list(own_keys))
    with _temporary(temp_dir) as folder:
        return evaluate_sample(
            texts,
            _schema(schema),
            folder,
            keys=keys if any(own is not None for own in keys) else None,
            floor=floor,
            max_missed=max_missed,
            progress=progress,
        )
