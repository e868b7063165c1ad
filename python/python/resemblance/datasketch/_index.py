"""The parts that all indexes share: the values of both kinds of MinHash, and the store."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._native import Schema, Signature, Store, Transaction
from ..schema import MinHash as MinHashPart
from ._keys import key_bytes, key_object
from .weighted import words_of

# The library takes 16 values or more; those beyond the bands are not looked at.
_MIN_VALUES = 16
# An index without a path is in memory while it has fewer documents, some 20 MB: many small ones need no files.
_IN_MEMORY = 16_384
_SCHEMES = {1: "affine32", 2: "legacy", 3: "weighted"}


def values_of(minhash: Any) -> NDArray[np.uint32]:
    """The values of a `MinHash` or `WeightedMinHash`, of this package or of datasketch."""
    values, bits = minhash.hashvalues, getattr(minhash, "b", None)
    if values.ndim == 2:
        return words_of(values)
    if bits is not None:
        raise ValueError(f"minhash: found values cut to {bits} bits, expected the MinHash that they were cut from")
    is_wide = values.dtype == np.uint64 and values.size and int(values.max()) >> 32
    if is_wide or getattr(minhash, "scheme", None) == "affine64":
        raise ValueError("minhash: found values of 64 bits, expected 32: scheme 'affine32' or 'legacy'")
    return values.astype(np.uint32)  # type: ignore[no-any-return]


def signature_of(minhash: Any, count: int | None = None) -> Signature:
    """The signature of the first `count` values, of all if it is `None`."""
    values = values_of(minhash)[:count]
    if len(values) < _MIN_VALUES:
        values = np.concatenate([values, np.zeros(_MIN_VALUES - len(values), dtype=np.uint32)])
    return Signature.from_minhash(values)


def mark_of(minhash: Any) -> int:
    """The scheme, the seed, and the dimension of weighted sets as the stamp of a document; 0 if they are
    not known. That of datasketch before 2.0 has no scheme, and is `legacy`.
    """
    scheme = "weighted" if minhash.hashvalues.ndim == 2 else getattr(minhash, "scheme", "legacy")
    number = next((number for number, name in _SCHEMES.items() if name == scheme), 0)
    seed = getattr(minhash, "seed", None)
    dim = min(getattr(minhash, "dim", None) or 0, 0xFF_FFFF)
    return 0 if number == 0 or seed is None else dim << 40 | number << 32 | int(seed) & 0xFFFF_FFFF


def agree(one: int, other: int) -> bool:
    """Whether sets of two marks can be compared, as far as is known."""
    has_dims = one >> 40 and other >> 40
    return not one or not other or (one == other if has_dims else (one ^ other) & 0xFF_FFFF_FFFF == 0)


def described(mark: int) -> str:
    dim = f" and dimension {mark >> 40}" if mark >> 40 else ""
    return f"scheme {_SCHEMES.get(mark >> 32 & 0xFF)!r} and seed {mark & 0xFFFF_FFFF}{dim}"


class Index:
    """A store in the caller's file or in a temporary one, for any number of threads.

    In the caller's file, each change is durable when the call returns. A temporary store is in memory
    while it is small, and its changes share one transaction, for which no call waits.
    """

    def __init__(
        self,
        num_perm: int,
        bands: int,
        rows: int,
        path: str | os.PathLike[str] | None,
        *,
        sessions: int = 0,
    ) -> None:
        self._bands, self._rows = bands, rows
        self._values = max(num_perm, _MIN_VALUES)
        self._padding = self._values - num_perm
        part = MinHashPart(self._values, bands=bands, rows=rows, kind="external", value_bits=32)
        # As in datasketch, sets without features are like each other.
        schema = Schema(minhash=part, empty_documents="alike")
        self._open_transaction: Transaction | None = None
        self._lock = threading.RLock()
        self._sessions = sessions
        self.is_temporary = path is None
        self._is_in_memory = path is None
        self.store = Store.in_memory(schema) if path is None else Store.open_or_create(path, schema)
        first = next(iter(self.store.records()), None)
        self.mark = 0 if first is None else first.stamp

    def signature(self, minhash: Any, count: int | None = None) -> Signature:
        """The signature of a set.

        Raises:
            ValueError: It was made by another scheme or seed than those of the index.
        """
        mark = mark_of(minhash)
        if not agree(mark, self.mark) and len(self.read()):
            expected = described(self.mark)
            raise ValueError(f"minhash: found {described(mark)}, expected {expected}, as those of the index")
        return signature_of(minhash, count)

    def insert(self, key: Hashable, minhash: Any, count: int | None = None) -> None:
        """Inserts a set under a key that must be new."""
        self._put("insert", key, minhash, count)

    def upsert(self, key: Hashable, minhash: Any) -> None:
        """Inserts a set, and replaces the one with this key if it exists."""
        self._put("upsert", key, minhash, None)

    def _put(self, verb: str, key: Hashable, minhash: Any, count: int | None) -> None:
        name, mark = key_bytes(key), mark_of(minhash)
        with self._lock:
            signature = self.signature(minhash, count)
            # One that agrees may lack the dimension.
            self.mark = max(mark, self.mark) if agree(mark, self.mark) else mark
        self.write(verb, name, signature, stamp=mark)

    def discard(self, key: Hashable) -> bool:
        """Removes a set, and returns whether it existed."""
        return bool(self.write("discard", key_bytes(key)))

    def write(self, verb: str, *arguments: Any, **named: Any) -> Any:
        """Applies a change to the store or the open transaction."""
        with self._lock:
            if self.is_temporary or self._sessions:
                # In a session too: what reads the whole index has committed the changes before.
                self.begin()
                if self._is_in_memory and not self._sessions and len(self.read()) >= _IN_MEMORY:
                    self.commit()
                    self.begin()
            if self._open_transaction is not None:
                return getattr(self._open_transaction, verb)(*arguments, **named)
        return getattr(self.store, verb)(*arguments, **named)

    def begin(self) -> None:
        with self._lock:
            if self._open_transaction is None:
                self._open_transaction = self.store.transaction()

    def begin_session(self) -> None:
        """Begins a group of changes. Earlier changes are kept if they are rolled back."""
        with self._lock:
            self._sessions += 1
            self.commit()
            self.begin()

    def end_session(self, *, keeps: bool) -> None:
        with self._lock:
            self._sessions -= 1
            if keeps:
                self.commit()
            else:
                self.rollback()

    def _move_to_file(self) -> None:
        folder = tempfile.mkdtemp(prefix="resemblance-")
        self._cleaner = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        path = Path(folder) / "index.rsm"
        self.store.backup(path)
        # The one in memory is not closed: another thread may read it, or iterate over its keys.
        self.store, self._is_in_memory = Store.open(path), False

    def commit(self) -> None:
        with self._lock:
            if self._open_transaction is not None:
                self._open_transaction.commit()
                self._open_transaction = None
            if self._is_in_memory and len(self.store) >= _IN_MEMORY:
                self._move_to_file()

    def rollback(self) -> None:
        with self._lock:
            if self._open_transaction is not None:
                self._open_transaction.rollback()
                self._open_transaction = None

    def read(self) -> Store | Transaction:
        """The reader that sees the newest changes."""
        with self._lock:
            return self._open_transaction or self.store

    def committed(self) -> Store:
        """The store with all changes committed, for operations that a transaction does not support."""
        with self._lock:
            self.commit()
            return self.store

    def candidates(self, signature: Signature) -> list[Hashable]:
        """The keys of the documents that share a band."""
        with self._lock:
            reader = self._open_transaction
            if reader is not None:
                return self._candidates(reader, signature)
        return self._candidates(self.store, signature)

    def _candidates(self, reader: Store | Transaction, signature: Signature) -> list[Hashable]:
        found = reader.query(signature, threshold=0.0, accept_lower_recall=True)
        keys: list[Hashable] = []
        for match in found:
            equal = round((match.similarity or 0.0) * self._values)
            name = match.key_bytes
            # Buckets are numbered by a part of what is in a band, so that some have nothing else in common.
            if name is None or equal - self._padding < self._rows:
                continue
            # Values that differ are in fewer places than there are bands, or one band is compared with the other.
            if self._values - equal < self._bands or self._shares_band(reader, signature, name):
                keys.append(key_object(name))
        return keys

    def _shares_band(self, reader: Store | Transaction, signature: Signature, name: bytes) -> bool:
        record, own = reader.get(name), signature.minhash
        if record is None or own is None:
            return False
        agree = (own == record.signature.minhash)[: self._bands * self._rows]
        return bool(agree.reshape(self._bands, self._rows).all(axis=1).any())

    def keys(self) -> Iterator[Hashable]:
        for key in self.committed():
            if key is not None:
                yield key_object(key.encode("utf-8", "surrogateescape"))

    def values(self, key: Hashable) -> NDArray[np.uint32] | None:
        with self._lock:
            record = self.read().get(key_bytes(key))
        return None if record is None else record.signature.minhash

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key_bytes(key) in self.read()

    def __len__(self) -> int:
        with self._lock:
            return len(self.read())

    def close(self) -> None:
        with self._lock:
            if self._open_transaction is not None:
                self._open_transaction.commit()
                self._open_transaction = None
            self.store.close()
            if self.is_temporary and not self._is_in_memory:
                self._cleaner()
