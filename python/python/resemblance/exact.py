"""Exact similarities of sets of features, from 0 to 1, and of features with weights.

Features are `str` or `bytes`, repeats count once. Two empty sets have similarity 1, an empty one and
another 0 (but all of an empty set is in any other: `containment` is 1).

    >>> from resemblance import exact
    >>> exact.jaccard(["a", "b", "c"], ["b", "c", "d"])
    0.5
    >>> exact.probability_jaccard({"a": 1, "b": 1}, {"a": 20, "b": 20})
    1.0
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ._native import similarity_of_sets, similarity_of_weights

__all__ = [
    "containment",
    "cosine",
    "dice",
    "jaccard",
    "overlap",
    "probability_jaccard",
    "weighted_cosine",
    "weighted_jaccard",
]

_Features = Iterable[str | bytes]
_Weights = Mapping[str, float] | Mapping[bytes, float]


def jaccard(a: _Features, b: _Features) -> float:
    """The share of the features of both together that both have."""
    return similarity_of_sets("jaccard", a, b)


def dice(a: _Features, b: _Features) -> float:
    """Twice the number of shared features, divided by the sum of both numbers."""
    return similarity_of_sets("dice", a, b)


def overlap(a: _Features, b: _Features) -> float:
    """The number of shared features, divided by that of the smaller set."""
    return similarity_of_sets("overlap", a, b)


def cosine(a: _Features, b: _Features) -> float:
    """The number of shared features, divided by the geometric mean of both numbers."""
    return similarity_of_sets("cosine", a, b)


def containment(a: _Features, b: _Features) -> float:
    """The share of the features of `a` that `b` has."""
    return similarity_of_sets("containment", a, b)


def weighted_jaccard(a: _Weights, b: _Weights) -> float:
    """The sum of the lesser weights, divided by that of the greater ones."""
    return similarity_of_weights("jaccard", dict(a), dict(b))


def weighted_cosine(a: _Weights, b: _Weights) -> float:
    """The cosine of the angle between two vectors of weights."""
    return similarity_of_weights("cosine", dict(a), dict(b))


def probability_jaccard(a: _Weights, b: _Weights) -> float:
    """The probability Jaccard similarity of the distributions which the weights are in proportion to
    (Moulton and Jiang 2018), which `MinHash(kind="probability")` estimates."""
    return similarity_of_weights("probability", dict(a), dict(b))
