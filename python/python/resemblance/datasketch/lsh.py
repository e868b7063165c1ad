"""MinHashLSH: which sets may be near one?"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator
from functools import lru_cache
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._native import Signature
from ._index import Index, agree, described
from ._keys import key_object

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)


def _integral(low: float, high: float, rows: NDArray[Any], bands: NDArray[Any]) -> NDArray[Any]:
    """The integral of the probability to share a band, for each pair of rows and bands."""
    similarities = (high - low) / 2 * _NODES + (high + low) / 2
    shared = 1 - (1 - similarities[None, :] ** rows[:, None]) ** bands[:, None]
    area: NDArray[Any] = (high - low) / 2 * (shared @ _WEIGHTS)
    return area


@lru_cache(maxsize=64)
def best_bands(threshold: float, num_perm: int, weights: tuple[float, float]) -> tuple[int, int]:
    """Bands and rows with the least weighted area of false positives and false negatives: datasketch's
    rule. It finds fewer of the pairs at the threshold than `MinHash(threshold=...)` of this package.
    """
    pairs = [(b, r) for b in range(1, num_perm + 1) for r in range(1, num_perm // b + 1)]
    bands, rows = (np.array(column, dtype=float) for column in zip(*pairs))
    false_positive = _integral(0.0, threshold, rows, bands)
    false_negative = (1.0 - threshold) - _integral(threshold, 1.0, rows, bands)
    return pairs[int(np.argmin(weights[0] * false_positive + weights[1] * false_negative))]


class _Keys:
    """The keys of an index, and of each the buckets that it is in."""

    def __init__(self, lsh: MinHashLSH) -> None:
        self._lsh = lsh

    def __contains__(self, key: Hashable) -> bool:
        return key in self._lsh

    def __iter__(self) -> Iterator[Hashable]:
        return self._lsh._index.keys()

    def __len__(self) -> int:
        return len(self._lsh._index)

    def __getitem__(self, key: Hashable) -> list[bytes]:
        values = self._lsh._index.values(key)
        if values is None:
            raise KeyError(key)
        return self._lsh._buckets(values)


class MinHashLSH:
    """An index of sets by their MinHash, on disk.

    `path` is the file, which is created if it does not exist. Without it the index is in memory, or in
    a temporary file if it is large. Any number of threads may use it. Keys are text, bytes, numbers,
    dates, datetimes, UUIDs, paths, enums, `None`, and tuples and frozen sets of these. They are equal if they
    are equal as dictionary keys, and a returned key equals the one that was passed. With `recall`, the bands are
    chosen to find that share of the pairs at the threshold. Otherwise they follow datasketch's rule, or
    `params`. `hashfunc` and `prepickle` have no effect.
    """

    def __init__(
        self,
        threshold: float = 0.9,
        num_perm: int = 128,
        weights: tuple[float, float] = (0.5, 0.5),
        params: tuple[int, int] | None = None,
        storage_config: dict[str, Any] | None = None,
        prepickle: bool | None = None,
        hashfunc: Callable[[bytes], bytes] | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        recall: float | None = None,
    ) -> None:
        kind = (storage_config or {"type": "dict"}).get("type")
        if kind != "dict":
            raise ValueError(f"storage_config: found {kind!r}, expected none: give path= a file's name")
        if not 0.0 <= threshold <= 1.0:
            raise ValueError(f"threshold: found {threshold}, expected 0 to 1")
        if num_perm < 2:
            raise ValueError(f"num_perm: found {num_perm}, expected 2 or more")
        if any(not 0.0 <= weight <= 1.0 for weight in weights) or sum(weights) != 1.0:
            raise ValueError(f"weights: found {weights}, expected two of a sum of 1")
        self.h = num_perm
        self.threshold = threshold
        self.b, self.r = params or self._choose(threshold, num_perm, weights, recall)
        if self.b * self.r > num_perm:
            raise ValueError(f"params: found {self.b} * {self.r}, expected at most {num_perm}")
        if self.b < 2:
            raise ValueError("threshold: found one for a single band, expected a lower one")
        self._index = Index(num_perm, self.b, self.r, path)
        self._asked: list[Signature] = []
        self.buffer_size = 50_000

    @staticmethod
    def _choose(
        threshold: float, num_perm: int, weights: tuple[float, float], recall: float | None
    ) -> tuple[int, int]:
        if recall is None:
            return best_bands(threshold, num_perm, tuple(weights))
        from .._native import banding_choice

        choice = banding_choice(num_perm, threshold, recall, 1, 0.0)
        return choice.bands, choice.rows

    @property
    def store(self) -> Any:
        """The store with all inserted sets, for reading with its methods."""
        return self._index.committed()

    def _signature(self, minhash: Any) -> Signature:
        if len(minhash) != self.h:
            raise ValueError(f"minhash: found {len(minhash)} values, expected {self.h}")
        return self._index.signature(minhash)

    def insert(self, key: Hashable, minhash: Any, check_duplication: bool = True) -> None:
        """Inserts a set under a key that must be new. It is durable on return if there is a `path`.

        While any thread has an insertion session, the changes of all threads are part of it: they are
        durable when it ends, and an exception in it undoes them.
        """
        if len(minhash) != self.h:
            raise ValueError(f"minhash: found {len(minhash)} values, expected {self.h}")
        if not check_duplication:
            self._index.upsert(key, minhash)
            return
        # It detects an existing key in the step that inserts.
        try:
            self._index.insert(key, minhash)
        except KeyError as error:
            raise ValueError("The given key already exists") from error

    def query(self, minhash: Any) -> list[Hashable]:
        """The keys of the sets that share a band with one: near ones, mostly."""
        return self._index.candidates(self._signature(minhash))

    def add_to_query_buffer(self, minhash: Any) -> None:
        """Notes a set for `collect_query_buffer`."""
        self._asked.append(self._signature(minhash))

    def collect_query_buffer(self) -> list[Hashable]:
        """The keys that each noted set shares a band with."""
        asked, self._asked = self._asked, []
        found = [set(self._index.candidates(signature)) for signature in asked]
        return list(set.intersection(*found)) if found else []

    def remove(self, key: Hashable) -> None:
        """Removes a set."""
        if not self._index.discard(key):
            raise ValueError("The given key does not exist")

    def merge(self, other: MinHashLSH, check_overlap: bool = False) -> None:
        """Inserts all sets of another index with the same bands."""
        if type(self) is not type(other) or (self.h, self.b, self.r) != (other.h, other.b, other.r):
            raise ValueError("Cannot merge MinHashLSH with different initialization parameters.")
        if not agree(self._index.mark, other._index.mark) and len(self) and len(other):
            marks = " and ".join(described(lsh._index.mark) for lsh in (self, other))
            raise ValueError(f"cannot merge MinHashLSH of {marks}")
        if check_overlap and any(key in self for key in other.keys):
            raise ValueError("The keys are overlapping, duplicate key exists.")
        if len(other):
            self._index.mark = max(self._index.mark, other._index.mark) if len(self) else other._index.mark
        with self.insertion_session():
            for record in other.store.records():
                self._index.write("upsert", record.key_bytes, record.signature, stamp=record.stamp)

    def insertion_session(self, buffer_size: int = 50_000) -> MinHashLSHInsertionSession:
        """A group of inserts that become durable together, which is much faster than one by one."""
        return MinHashLSHInsertionSession(self, buffer_size)

    def deletion_session(self, buffer_size: int = 50_000) -> MinHashLSHDeletionSession:
        """A group of removals that is durable together."""
        return MinHashLSHDeletionSession(self, buffer_size)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._index

    def __len__(self) -> int:
        return len(self._index)

    def __bool__(self) -> bool:
        return True

    def is_empty(self) -> bool:
        """Whether there are no sets."""
        return len(self) == 0

    @property
    def keys(self) -> _Keys:
        """All keys."""
        return _Keys(self)

    def _buckets(self, values: NDArray[np.uint32]) -> list[bytes]:
        bands = range(0, self.b * self.r, self.r)
        return [values[start : start + self.r].astype(">u4").tobytes() for start in bands]

    @property
    def hashtables(self) -> list[dict[bytes, set[Hashable]]]:
        """The contents of each bucket of each band, for inspection. Reads the whole index."""
        tables: list[dict[bytes, set[Hashable]]] = [{} for _ in range(self.b)]
        # Those of one moment, beside which others may be removed.
        for record in self.store.records():
            key, values = record.key_bytes, record.signature.minhash
            if key is None or values is None:
                continue
            for bucket, table in zip(self._buckets(values), tables):
                table.setdefault(bucket, set()).add(key_object(key))
        return tables

    def get_counts(self) -> list[dict[bytes, int]]:
        """How many sets each bucket of each band has. It reads the whole index."""
        return [{bucket: len(keys) for bucket, keys in table.items()} for table in self.hashtables]

    def get_subset_counts(self, *keys: Hashable) -> list[dict[bytes, int]]:
        """How many of some sets each bucket of each band has."""
        counts: list[dict[bytes, int]] = [{} for _ in range(self.b)]
        for key in set(keys):
            for bucket, count in zip(self.keys[key], counts):
                count[bucket] = count.get(bucket, 0) + 1
        return counts

    def close(self) -> None:
        """Closes the file; a temporary one goes."""
        self._index.close()

    def __enter__(self) -> MinHashLSH:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        if not self._index.is_temporary:
            raise TypeError(f"this index is in {self.store.path}: open it by its path, and do not pickle it")
        rows = [(r.key_bytes, r.signature.minhash, r.stamp) for r in self.store.records()]
        return {"own": (self.threshold, self.h, (self.b, self.r), self.buffer_size), "rows": rows}

    def __setstate__(self, state: dict[str, Any]) -> None:
        threshold, num_perm, params, buffer_size = state["own"]
        self.__init__(threshold, num_perm, params=params)  # type: ignore[misc]
        self.buffer_size = buffer_size
        for key, values, stamp in state["rows"]:
            self._index.write("insert", key, Signature.from_minhash(values), stamp=stamp)
            self._index.mark = stamp or self._index.mark


class _Session:
    """Changes that are committed together, when the block ends; an exception drops them."""

    def __init__(self, lsh: MinHashLSH, buffer_size: int) -> None:
        self.lsh = lsh
        lsh.buffer_size = buffer_size
        lsh._index.begin_session()
        self._is_open = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(keeps=kind is None)

    def close(self) -> None:
        """Commits."""
        self._end(keeps=True)

    def _end(self, *, keeps: bool) -> None:
        if self._is_open:
            self._is_open = False
            self.lsh._index.end_session(keeps=keeps)


class MinHashLSHInsertionSession(_Session):
    """See `MinHashLSH.insertion_session`."""

    def __enter__(self) -> MinHashLSHInsertionSession:
        return self

    def insert(self, key: Hashable, minhash: Any, check_duplication: bool = True) -> None:
        """Inserts a set under a key that must be new."""
        self.lsh.insert(key, minhash, check_duplication)


class MinHashLSHDeletionSession(_Session):
    """See `MinHashLSH.deletion_session`."""

    def __enter__(self) -> MinHashLSHDeletionSession:
        return self

    def remove(self, key: Hashable) -> None:
        """Removes a set."""
        self.lsh.remove(key)
