"""Exact similarities, from 0 to 1, of sets of features and of weighted sets, and the passages that
texts share.

Features are `str` or `bytes`, repeats count once. Two empty sets have similarity 1, an empty one and
another 0 (but all of an empty set is in any other: `containment` is 1).

    >>> from resemblance import exact
    >>> exact.jaccard(["a", "b", "c"], ["b", "c", "d"])
    0.5
    >>> exact.probability_jaccard({"a": 1, "b": 1}, {"a": 20, "b": 20})
    1.0

`shared_spans` finds the parts that two texts share:

    >>> shared = exact.shared_spans("the cat sat here", "The cat sat!", Text.words(2))
    >>> shared.jaccard, shared.spans_a
    (0.6666666666666666, [(0, 11)])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ._native import (
    WholeTexts,
    passage_of_texts,
    similarity_of_sets,
    similarity_of_weights,
    spans_of_texts,
)
from .schema import Text

__all__ = [
    "SharedPassage",
    "SharedSpans",
    "WholeTexts",
    "containment",
    "cosine",
    "dice",
    "jaccard",
    "longest_shared_passage",
    "overlap",
    "probability_jaccard",
    "shared_spans",
    "weighted_cosine",
    "weighted_jaccard",
]

_Features = Iterable[str | bytes]
_Weights = Mapping[str, float] | Mapping[bytes, float]


def jaccard(a: _Features, b: _Features) -> float:
    """The number of shared features, divided by the number of features in either set."""
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
    """The share of the features of `a` that are in `b`."""
    return similarity_of_sets("containment", a, b)


def weighted_jaccard(a: _Weights, b: _Weights) -> float:
    """The sum of the smaller weights, divided by the sum of the greater ones."""
    return similarity_of_weights("jaccard", dict(a), dict(b))


def weighted_cosine(a: _Weights, b: _Weights) -> float:
    """The cosine of the angle between two vectors of weights."""
    return similarity_of_weights("cosine", dict(a), dict(b))


def probability_jaccard(a: _Weights, b: _Weights) -> float:
    """The probability Jaccard similarity of the distributions that are proportional to the weights
    (Moulton and Jiang 2018). `MinHash(kind="probability")` estimates it.
    """
    return similarity_of_weights("probability", dict(a), dict(b))


@dataclass(frozen=True)
class SharedSpans:
    """The passages that two texts share, as `shared_spans` finds them.

    `spans_a` and `spans_b` are the parts of each text that shingles cover which the other text has, too:
    `a[start:end]` for each `(start, end)`. `shingles_a` and `shingles_b` count the distinct shingles of
    each, `shared` those that both have. `jaccard`, `cosine`, `dice`, `overlap`, `share_of_a` and `share_of_b`
    follow from these.
    """

    spans_a: list[tuple[int, int]]
    spans_b: list[tuple[int, int]]
    shingles_a: int
    shingles_b: int
    shared: int
    jaccard: float
    cosine: float
    dice: float
    overlap: float
    share_of_a: float
    share_of_b: float


@dataclass(frozen=True)
class SharedPassage:
    """The longest passage that two texts share: `a[start:end]` and `b[start:end]` for the positions in
    `a` and `b`. `shingles` is the number of consecutive shingles that are the same in both.
    """

    a: tuple[int, int]
    b: tuple[int, int]
    shingles: int


def shared_spans(a: str, b: str, text: Text | None = None) -> SharedSpans:
    """Finds the parts that two texts share, and their similarities.

    `text` defines a shingle (default: `Text.auto()`). A span includes the marks of its letters and the
    text between its words.

    >>> from resemblance.exact import shared_spans
    >>> a, b = "He said: “Not today!”", "not TODAY, she said"
    >>> [a[start:end] for start, end in shared_spans(a, b, Text.words(2)).spans_a]
    ['Not today']
    """
    return spans_of_texts(a, b, text or Text.auto())


def longest_shared_passage(a: str, b: str, text: Text | None = None) -> SharedPassage | None:
    """The longest passage that two texts share: shingles that follow each other in both. `None` if they
    share none.

    >>> from resemblance.exact import longest_shared_passage
    >>> longest_shared_passage("one two three four", "zero two three five", Text.words(1))
    SharedPassage(a=(4, 13), b=(5, 14), shingles=2)
    """
    return passage_of_texts(a, b, text or Text.auto())
