"""Weighted MinHash (improved consistent weighted sampling, Ioffe 2010) with datasketch's verbs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


class WeightedMinHash:
    """The samples of a weighted set: a row of dimension and level for each hash function."""

    def __init__(self, seed: int, hashvalues: NDArray[Any], dim: int | None = None) -> None:
        self.seed = seed
        self.hashvalues = hashvalues
        self.dim = dim

    def jaccard(self, other: WeightedMinHash) -> float:
        """Estimates the weighted Jaccard similarity."""
        dims = {self.dim, getattr(other, "dim", None)} - {None}
        if other.seed != self.seed or len(self) != len(other) or len(dims) > 1:
            raise ValueError("cannot compare WeightedMinHash with different seeds, dimensions or numbers of samples")
        return float(np.mean(np.all(self.hashvalues == other.hashvalues, axis=1)))

    def digest(self) -> NDArray[Any]:
        """A copy of the samples."""
        return self.hashvalues.copy()

    def copy(self) -> WeightedMinHash:
        """The same samples again."""
        return WeightedMinHash(self.seed, self.digest(), self.dim)

    def __len__(self) -> int:
        return len(self.hashvalues)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, WeightedMinHash)
            and self.seed == other.seed
            and np.array_equal(self.hashvalues, other.hashvalues)
        )

    __hash__ = None  # type: ignore[assignment]


class WeightedMinHashGenerator:
    """Makes samples of vectors of `dim` weights, `sample_size` of each."""

    def __init__(self, dim: int, sample_size: int = 128, seed: int = 1) -> None:
        self.dim = dim
        self.sample_size = sample_size
        self.seed = seed
        chance = np.random.RandomState(seed=seed)
        shape = (sample_size, dim)
        self.rs = chance.gamma(2, 1, shape).astype(np.float32)
        self.ln_cs = np.log(chance.gamma(2, 1, shape)).astype(np.float32)
        self.betas = chance.uniform(0, 1, shape).astype(np.float32)

    def minhash(self, v: ArrayLike) -> WeightedMinHash:
        """The samples of one vector. As in datasketch, weights that are negative or NaN count as 0; one of
        the others is above 0, and all are finite.
        """
        if not hasattr(v, "__len__"):
            raise TypeError("v: found a single value, expected a vector")
        if len(v) != self.dim:  # type: ignore[arg-type]
            raise ValueError(f"v: found another dimension, expected {self.dim}")
        weights = np.array(v, dtype=np.float32)
        if np.isinf(weights).any():
            raise ValueError("v: found an infinite weight, expected numbers that a float32 can hold")
        present = np.flatnonzero(weights > 0)
        if not present.size:
            raise ValueError("v: found no weight above 0, expected one or more")
        logs = np.log(weights[present])
        rs, betas = self.rs[:, present], self.betas[:, present]
        levels = np.floor(logs / rs + betas)
        scores = self.ln_cs[:, present] - (levels - betas) * rs - rs
        best = np.argmin(scores, axis=1)
        samples = np.empty((self.sample_size, 2), dtype=int)
        samples[:, 0] = present[best]
        samples[:, 1] = levels[np.arange(self.sample_size), best]
        return WeightedMinHash(self.seed, samples, self.dim)

    def minhash_many(self, X: Any) -> list[WeightedMinHash | None]:
        """The samples of each row of a matrix, dense or sparse; `None` for one of zeros."""
        if not hasattr(X, "ndim") or not hasattr(X, "shape"):
            raise TypeError("X: found something else, expected a NumPy or SciPy matrix")
        if X.ndim != 2 or X.shape[1] != self.dim:
            raise ValueError(f"X: found the shape {X.shape}, expected rows of {self.dim}")
        rows = X.tocsr() if hasattr(X, "tocsr") else X
        made: list[WeightedMinHash | None] = []
        for index in range(X.shape[0]):
            row = rows[index]
            dense = row.toarray() if hasattr(row, "toarray") else row
            weights = np.asarray(dense, dtype=np.float32).ravel()
            made.append(self.minhash(weights) if np.any(weights) else None)
        return made


def words_of(samples: NDArray[Any]) -> NDArray[np.uint32]:
    """One number of 32 bits for each sample, equal for equal samples."""
    pairs = samples.astype(np.int64).astype(np.uint64)
    mixed = pairs[:, 0] * np.uint64(0x9E3779B97F4A7C15) + pairs[:, 1]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed >> np.uint64(32)).astype(np.uint32)
