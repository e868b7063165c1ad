"""Exact similarities, against sets of Python, and vectors for linear models."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

import resemblance as rs
from resemblance import exact


def test_similarities_are_those_of_the_sets() -> None:
    draws = random.Random(1)
    for _ in range(200):
        a, b = ({str(draws.randrange(40)) for _ in range(draws.randrange(1, 30))} for _ in "ab")
        shared = len(a & b)
        assert exact.jaccard(a, b) == shared / len(a | b)
        assert exact.dice(a, b) == pytest.approx(2 * shared / (len(a) + len(b)))
        assert exact.overlap(a, b) == shared / min(len(a), len(b))
        assert exact.cosine(a, b) == pytest.approx(shared / math.sqrt(len(a) * len(b)))
        assert exact.containment(a, b) == shared / len(a)
    for measure in (exact.jaccard, exact.dice, exact.overlap, exact.cosine):
        assert measure([], []) == 1 and measure(["a"], []) == 0


def test_weighted_similarities_are_as_defined() -> None:
    draws = random.Random(2)
    for _ in range(100):
        a, b = ({str(draws.randrange(20)): draws.uniform(0.1, 9) for _ in range(12)} for _ in "ab")
        names = a.keys() | b.keys()
        x, y = (np.array([part.get(name, 0.0) for name in names]) for part in (a, b))
        assert exact.weighted_jaccard(a, b) == pytest.approx(
            np.minimum(x, y).sum() / np.maximum(x, y).sum()
        )
        assert exact.weighted_cosine(a, b) == pytest.approx(
            x @ y / math.sqrt((x @ x) * (y @ y))
        )
        both = np.flatnonzero((x > 0) & (y > 0))
        expected = sum(1 / np.maximum(x / x[i], y / y[i]).sum() for i in both)
        assert exact.probability_jaccard(a, b) == pytest.approx(expected)
    with pytest.raises(rs.InvalidParameterError):
        exact.weighted_cosine({"a": -1.0}, {"a": 1.0})


def test_samples_of_distributions_agree_by_their_similarity() -> None:
    schema = rs.Schema(minhash=rs.MinHash(1024, kind="probability"))
    a, b = {"x": 1.0, "y": 2.0, "z": 1.0}, {"x": 30.0, "y": 20.0, "w": 10.0}
    estimate = schema.sketch_weighted(a).jaccard(schema.sketch_weighted(b))
    similarity = exact.probability_jaccard(a, b)
    # Five standard deviations.
    assert abs(estimate - similarity) < 5 * math.sqrt(similarity * (1 - similarity) / 1024)


def test_inner_products_of_one_hot_vectors_count_equal_values() -> None:
    schema = rs.Schema(minhash=rs.MinHash(64, value_bits=4))
    a, b = (schema.sketch_features(map(str, range(first, first + 50))) for first in (0, 10))
    assert a.minhash is not None and b.minhash is not None
    hot = a.one_hot()
    assert hot.tolist() == [16 * i + int(value) for i, value in enumerate(a.minhash)]
    assert len(np.intersect1d(hot, b.one_hot())) == int((a.minhash == b.minhash).sum())
    with pytest.raises(rs.SignatureMismatchError):
        rs.Signature.from_simhash(7).one_hot()


def test_families_are_compared() -> None:
    documents = [f"{n % 30} " + " ".join(str(7 * n % 30 + i) for i in range(60)) for n in range(90)]
    schema = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(128), simhash=rs.SimHash(64))
    found = rs.evaluate(documents, schema)
    assert found.families.keys() == {"minhash", "simhash", "both", "any"}
    returned = {name: pairs for name, (pairs, _, _) in found.families.items()}
    expected = {name: pairs for name, (_, _, pairs) in found.families.items()}
    assert expected["both"] == expected["simhash"] <= expected["any"] <= found.near_pairs
    assert found.expected_recall == pytest.approx(expected["minhash"] / found.near_pairs)
    assert sum(step[1] for step in found.steps[8:]) == found.near_pairs
    assert sum(step[4] for step in found.steps) == returned["minhash"]
    assert all(pairs >= max(candidates, returned) for _, pairs, candidates, _, returned in found.steps)
    assert returned["minhash"] > 0 and returned["both"] <= returned["simhash"] <= returned["any"]
    for by in ("minhash", "simhash", "both", "any"):
        pairs = list(rs.pairs(documents, schema, by=by, exact=False))
        assert len(pairs) == returned[by]
