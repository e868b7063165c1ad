"""What the indexes share: keys of any kind, values of either MinHash, and the store."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import weakref
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._native import Schema, Signature, Store, Transaction
from ..schema import MinHash as MinHashPart
from .weighted import words_of

# The library takes 16 values or more; those beyond the bands are not looked at.
_MIN_VALUES = 16


def key_bytes(key: Hashable) -> bytes:
    """A key as the store has it: text and bytes as they are, after a letter; others pickled."""
    if isinstance(key, str):
        return b"s" + key.encode("utf-8", "surrogatepass")
    if isinstance(key, bytes):
        return b"b" + key
    if type(key) is int:
        return b"i%d" % key
    return b"p" + pickle.dumps(key, protocol=4)


def key_object(key: bytes) -> Hashable:
    """The key that `key_bytes` made these bytes of."""
    kind, rest = key[:1], key[1:]
    if kind == b"s":
        return rest.decode("utf-8", "surrogatepass")
    if kind == b"b":
        return rest
    if kind == b"i":
        return int(rest)
    unpickled: Hashable = pickle.loads(rest)
    return unpickled


def values_of(minhash: Any) -> NDArray[np.uint32]:
    """The values of a `MinHash` or `WeightedMinHash`, of this package or of datasketch."""
    values = minhash.hashvalues
    if values.ndim == 2:
        return words_of(values)
    if values.dtype == np.uint64 and values.size and int(values.max()) >> 32:
        raise ValueError("minhash: found values of 64 bits, expected 32: scheme 'affine32' or 'legacy'")
    return values.astype(np.uint32)  # type: ignore[no-any-return]


def signature_of(minhash: Any, count: int | None = None) -> Signature:
    """The signature of the first `count` values, of all if it is `None`."""
    values = values_of(minhash)[:count]
    if len(values) < _MIN_VALUES:
        values = np.concatenate([values, np.zeros(_MIN_VALUES - len(values), dtype=np.uint32)])
    return Signature.from_minhash(values)


class Index:
    """A store, in a file of the caller's or a temporary one.

    A file of the caller's has every change when the call returns. A temporary one is written in one
    transaction, which is never waited for.
    """

    def __init__(
        self, num_perm: int, bands: int, rows: int, path: str | os.PathLike[str] | None
    ) -> None:
        values = max(num_perm, _MIN_VALUES)
        part = MinHashPart(values, bands=bands, rows=rows, kind="external", value_bits=32)
        # As in datasketch, sets without features are like each other.
        schema = Schema(minhash=part, empty_documents="alike")
        self._open_transaction: Transaction | None = None
        self.is_temporary = path is None
        if path is None:
            folder = tempfile.mkdtemp(prefix="resemblance-")
            self._cleaner = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            path = Path(folder) / "index.rsm"
        self.store = Store.open_or_create(path, schema)

    def write(self) -> Store | Transaction:
        """Where changes go."""
        if self.is_temporary and self._open_transaction is None:
            self.begin()
        return self._open_transaction or self.store

    def begin(self) -> None:
        if self._open_transaction is None:
            self._open_transaction = self.store.transaction()

    def commit(self) -> None:
        if self._open_transaction is not None:
            self._open_transaction.commit()
            self._open_transaction = None

    def rollback(self) -> None:
        if self._open_transaction is not None:
            self._open_transaction.rollback()
            self._open_transaction = None

    def read(self) -> Store | Transaction:
        """Where the newest changes are found."""
        return self._open_transaction or self.store

    def committed(self) -> Store:
        """The store, with all changes, for what a transaction cannot do."""
        self.commit()
        return self.store

    def candidates(self, signature: Signature) -> list[Hashable]:
        """The keys of the documents that share a band."""
        found = self.read().query(signature, threshold=0.0, accept_lower_recall=True)
        return [key_object(match.key_bytes) for match in found if match.key_bytes is not None]

    def keys(self) -> Iterator[Hashable]:
        for key in self.committed():
            if key is not None:
                yield key_object(key.encode("utf-8", "surrogateescape"))

    def values(self, key: Hashable) -> NDArray[np.uint32] | None:
        record = self.read().get(key_bytes(key))
        return None if record is None else record.signature.minhash

    def close(self) -> None:
        self.commit()
        self.store.close()
        if self.is_temporary:
            self._cleaner()
