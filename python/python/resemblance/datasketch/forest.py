"""MinHashLSHForest: which sets are nearest to one?"""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._index import Index
from ._keys import key_object


class MinHashLSHForest:
    """Finds the nearest sets by their estimates: by bands of two values, or by all signatures if bands
    would miss some.

    The `l` trees of datasketch's forest find sets that share a long prefix. Here nearness decides, and
    `l` only determines which arguments are refused. A query returns `k` keys if that many exist.
    """

    def __init__(
        self, num_perm: int = 128, l: int = 8, *, path: str | os.PathLike[str] | None = None
    ) -> None:
        if l <= 0 or num_perm <= 0:
            raise ValueError("num_perm and l must be positive")
        if l > num_perm:
            raise ValueError("l cannot be greater than num_perm")
        self.l = l
        self.k = num_perm // l
        self._values = self.k * l
        bands, rows = max(self._values // 2, 1), 2 if self._values > 1 else 1
        # Sets wait for `index`.
        self._index = Index(self._values, bands, rows, path, sessions=1)
        self._indexed = len(self._index)

    def add(self, key: Hashable, minhash: Any) -> None:
        """Adds a set under a key that must be new. `index` lets queries find it."""
        if len(minhash) < self._values:
            raise ValueError("The num_perm of MinHash out of range")
        self._index.begin()
        try:
            self._index.insert(key, minhash, self._values)
        except KeyError as error:
            raise ValueError("The given key has already been added") from error

    def index(self) -> None:
        """Makes all added sets visible to queries, and durable if there is a `path`."""
        self._indexed = len(self._index.committed())

    def query(self, minhash: Any, k: int) -> list[Hashable]:
        """The keys of up to `k` sets, nearest first."""
        if k <= 0:
            raise ValueError("k must be positive")
        if len(minhash) < self._values:
            raise ValueError("The num_perm of MinHash out of range")
        found = self._index.store.nearest(self._index.signature(minhash, self._values), k)
        return [key_object(match.key_bytes) for match in found if match.key_bytes is not None]

    def get_minhash_hashvalues(self, key: Hashable) -> NDArray[np.uint32]:
        """The values of a set that was added."""
        values = self._index.values(key)
        if values is None:
            raise KeyError(f"The provided key does not exist in the LSHForest: {key!r}")
        return values[: self._values]

    def is_empty(self) -> bool:
        """Whether no set can be found."""
        return self._indexed == 0

    def __contains__(self, key: Hashable) -> bool:
        return key in self._index

    def close(self) -> None:
        """Closes the file; a temporary one goes."""
        self._index.close()

    def __enter__(self) -> MinHashLSHForest:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
