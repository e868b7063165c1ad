"""MinHash with datasketch's hash functions and verbs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._native import Signature
from .hashes import sha1_hash32

Scheme = Literal["affine32", "legacy"]
_PRIME = np.uint64((1 << 61) - 1)
_LARGEST = (1 << 32) - 1
_TYPES: dict[str, Any] = {"affine32": np.uint32, "legacy": np.uint64}


def _check_scheme(scheme: str | None, has_values: bool) -> Scheme:
    if scheme is None:
        if has_values:
            raise ValueError(
                "scheme: found none, expected the one by which the hash values were made: 'affine32', "
                "or 'legacy' for those of datasketch before 2.0"
            )
        return "affine32"
    if scheme == "affine32" or scheme == "legacy":
        return scheme  # type: ignore[return-value, unused-ignore]
    raise ValueError(f"scheme: found {scheme!r}, expected 'affine32' or 'legacy': a store keeps 32 bits")


def _mixed(hashes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """MurmurHash3's finalizer of 32 bits."""
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    mixed: NDArray[np.uint32] = hashes ^ (hashes >> np.uint32(16))
    return mixed


class MinHash:
    """The minima of `num_perm` hash functions over a set of features.

    `scheme` is `"affine32"`, as of datasketch 2, or `"legacy"`, as before. `hashfunc` makes a number of 32
    bits of a feature.
    """

    def __init__(
        self,
        num_perm: int = 128,
        seed: int = 1,
        gpu_mode: str = "disable",
        hashfunc: Callable[[Any], int] | None = None,
        hashobj: object | None = None,
        hashvalues: ArrayLike | None = None,
        permutations: Any = None,
        scheme: str | None = None,
    ) -> None:
        self.scheme = _check_scheme(scheme, hashvalues is not None or permutations is not None)
        if gpu_mode == "always":
            raise RuntimeError("gpu_mode: found 'always', expected 'disable': there is no such code here")
        self.hashvalues = self._empty(num_perm) if hashvalues is None else self._array(hashvalues)
        num_perm = len(self.hashvalues)
        if num_perm < 1:
            raise ValueError("num_perm: found none, expected 1 or more")
        self.seed = seed
        self.num_perm = num_perm
        self.hashfunc = sha1_hash32 if hashfunc is None else hashfunc
        if not callable(self.hashfunc):
            raise ValueError("hashfunc: found what cannot be called, expected a function")
        self.permutations = self._make_permutations() if permutations is None else permutations
        if len(self.permutations[0]) != num_perm:
            raise ValueError("permutations: found another number of them than of hash values")

    def _empty(self, num_perm: int) -> NDArray[Any]:
        if num_perm < 1:
            raise ValueError(f"num_perm: found {num_perm}, expected 1 or more")
        return np.full(num_perm, _LARGEST, dtype=_TYPES[self.scheme])

    def _array(self, values: ArrayLike) -> NDArray[Any]:
        if np.ma.is_masked(values):
            raise ValueError("hashvalues: found masked elements, expected all values")
        given = np.asarray(values)
        if given.size and (int(given.max()) > _LARGEST or int(given.min()) < 0):
            raise ValueError("hashvalues: found some out of range, expected values of 32 bits")
        return given.astype(_TYPES[self.scheme])

    def _make_permutations(self) -> NDArray[Any]:
        chance = np.random.RandomState(self.seed)
        if self.scheme == "legacy":
            draws = [
                (
                    chance.randint(1, int(_PRIME), dtype=np.uint64),
                    chance.randint(0, int(_PRIME), dtype=np.uint64),
                )
                for _ in range(self.num_perm)
            ]
            return np.array(draws, dtype=np.uint64).T
        odd = chance.randint(0, 1 << 31, self.num_perm, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
        shifts = chance.randint(0, 1 << 32, self.num_perm, dtype=np.uint32)
        return np.array([odd, shifts])

    def update(self, b: Any) -> None:
        """Adds a feature."""
        self.update_batch([b])

    def update_batch(self, b: Iterable[Any]) -> None:
        """Adds features."""
        hashed = [self.hashfunc(feature) for feature in b]
        if not hashed:
            return
        if min(hashed) < 0 or (self.scheme == "affine32" and max(hashed) > _LARGEST):
            raise ValueError("hashfunc: found a value out of range, expected one of 32 bits")
        factors, shifts = self.permutations
        column = np.array(hashed, dtype=_TYPES[self.scheme]).reshape(-1, 1)
        if self.scheme == "legacy":
            values = ((column * factors + shifts) % _PRIME) & np.uint64(_LARGEST)
        else:
            values = _mixed(column) * factors + shifts
        self.hashvalues = np.minimum(self.hashvalues, values.min(axis=0))

    def _must_match(self, other: MinHash, verb: str) -> None:
        for name in ("scheme", "seed"):
            if getattr(other, name, None) != getattr(self, name):
                raise ValueError(f"cannot {verb} MinHash with different {name}s")
        if len(self) != len(other):
            raise ValueError(f"cannot {verb} MinHash with different numbers of permutation functions")

    def jaccard(self, other: MinHash) -> float:
        """Estimates the Jaccard similarity of the two sets."""
        self._must_match(other, "compare")
        return float(np.count_nonzero(self.hashvalues == other.hashvalues)) / len(self)

    def count(self) -> float:
        """Estimates the number of different features."""
        return float(len(self) / np.sum(self.hashvalues / float(_LARGEST)) - 1.0)

    def merge(self, other: MinHash) -> None:
        """Makes this the MinHash of the union of both sets."""
        self._must_match(other, "merge")
        self.hashvalues = np.minimum(other.hashvalues, self.hashvalues)

    def digest(self) -> NDArray[Any]:
        """A copy of the hash values."""
        return self.hashvalues.copy()

    def is_empty(self) -> bool:
        """Whether no feature was added."""
        return bool(np.all(self.hashvalues == _LARGEST))

    def clear(self) -> None:
        """Forgets all features."""
        self.hashvalues = self._empty(len(self))

    def copy(self) -> MinHash:
        """A MinHash of the same features."""
        return MinHash(
            seed=self.seed,
            hashfunc=self.hashfunc,
            hashvalues=self.digest(),
            permutations=self.permutations,
            scheme=self.scheme,
        )

    def signature(self) -> Signature:
        """The values as a signature of `resemblance`."""
        return Signature.from_minhash(self.hashvalues.astype(np.uint32))

    @classmethod
    def union(cls, *mhs: MinHash) -> MinHash:
        """The MinHash of the union of several sets."""
        if len(mhs) < 2:
            raise ValueError("union: found less than 2 MinHash, expected 2 or more")
        merged = mhs[0].copy()
        for other in mhs[1:]:
            merged.merge(other)
        return merged

    @classmethod
    def bulk(cls, b: Iterable[Iterable[Any]], **minhash_kwargs: Any) -> list[MinHash]:
        """A MinHash of each of many sets."""
        return list(cls.generator(b, **minhash_kwargs))

    @classmethod
    def generator(cls, b: Iterable[Iterable[Any]], **minhash_kwargs: Any) -> Iterator[MinHash]:
        """A MinHash of each of many sets, one by one."""
        empty = cls(**minhash_kwargs)
        for features in b:
            made = empty.copy()
            made.update_batch(features)
            yield made

    def __len__(self) -> int:
        return len(self.hashvalues)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MinHash)
            and (self.scheme, self.seed) == (other.scheme, other.seed)
            and np.array_equal(self.hashvalues, other.hashvalues)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<MinHash: {len(self)} values, seed {self.seed}, {self.scheme}>"
