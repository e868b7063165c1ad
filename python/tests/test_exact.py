"""Exact similarities, against sets of Python, and vectors for linear models."""

from __future__ import annotations

import math
import random
import re
from types import MappingProxyType

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


def test_texts_are_explained_by_every_measure() -> None:
    schema = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64), simhash=rs.SimHash(64))
    a, b = "Größe <b>to be or not to be", "nicht “Größe”: B; to be, to be!"
    found = rs.explain(a, b, schema)
    of_a = {"größe b", "b to", "to be", "be or", "or not", "not to"}
    of_b = {"nicht größe", "größe b", "b to", "to be", "be to"}
    shared, both = found.shared, of_a & of_b
    assert (shared.shingles_a, shared.shingles_b, shared.shared) == (len(of_a), len(of_b), len(both))
    for measure in ("jaccard", "cosine", "dice", "overlap"):
        assert getattr(shared, measure) == pytest.approx(getattr(exact, measure)(of_a, of_b))
    assert found.shared == exact.shared_spans(a, b, rs.Text.words(2))
    assert found.longest == exact.longest_shared_passage(a, b, rs.Text.words(2))
    assert found.weighted_cosine is None
    weighted = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64, kind="weighted"))
    counts_a, counts_b = dict.fromkeys(of_a, 1.0) | {"to be": 2}, dict.fromkeys(of_b, 1.0) | {"to be": 2}
    counted = rs.explain(a, b, weighted).weighted_cosine
    assert counted == pytest.approx(exact.weighted_cosine(counts_a, counts_b))
    sketches = [schema.sketch(text) for text in (a, b)]
    assert found.estimate == sketches[0].jaccard(sketches[1])
    assert found.distance == sketches[0].hamming(sketches[1])
    shown = found._repr_html_()
    assert "<b>" not in shown and ">Größe &lt;b&gt;to be</span>" in shown
    assert rs.explain(a, a).shared.jaccard == 1 and rs.explain(a, b).distance is None
    with pytest.raises(rs.InvalidParameterError, match="texts"):
        rs.explain(a, b, rs.Schema(minhash=rs.MinHash(64)))


def test_samples_of_distributions_agree_by_their_similarity() -> None:
    schema = rs.Schema(minhash=rs.MinHash(1024, kind="probability"))
    a, b = {"x": 1.0, "y": 2.0, "z": 1.0}, {"x": 30.0, "y": 20.0, "w": 10.0}
    estimate = schema.sketch_weighted(MappingProxyType(a)).jaccard(schema.sketch_weighted(b))
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


def shingles_of(text: str, size: int) -> list[tuple[int, int, str]]:
    """Positions and content of runs of words of letters, as a regular expression finds them."""
    words = list(re.finditer(r"[^\W_]+", text))
    runs = (words[start : start + size] for start in range(len(words) - size + 1))
    return [(run[0].start(), run[-1].end(), " ".join(w[0].lower() for w in run)) for run in runs]


def test_shared_spans_are_covered_by_shared_shingles() -> None:
    draws = random.Random(3)
    pieces = ["the", "Cat", "été", "日本", "😀 so", "x-y", "dog,", "to be"]
    spans = 0
    for _ in range(200):
        a, b = (" ".join(draws.choices(pieces, k=draws.randrange(4, 30))) for _ in "ab")
        shared = exact.shared_spans(a, b, rs.Text.words(3))
        of_a, of_b = shingles_of(a, 3), shingles_of(b, 3)
        both = {s for _, _, s in of_a} & {s for _, _, s in of_b}
        assert shared.shared == len(both)
        assert shared.jaccard == exact.jaccard([s for *_, s in of_a], [s for *_, s in of_b])
        assert shared.share_of_b == len(both) / len({s for *_, s in of_b})
        for text, found, of in ((a, shared.spans_a, of_a), (b, shared.spans_b, of_b)):
            covered = {at for start, end, s in of if s in both for at in range(start, end)}
            letters = {at for at in covered if text[at].isalnum()}
            inside = {at for start, end in found for at in range(start, end)}
            assert letters <= inside
            assert {at for at in inside if text[at].isalnum()} == letters
            spans += len(found)
    assert spans > 200


def test_the_longest_passage_is_in_both_texts() -> None:
    a, b = "😀 zero ONE two, three four", "é: one two three five"
    found = exact.longest_shared_passage(a, b, rs.Text.words(2))
    assert found is not None
    assert (a[slice(*found.a)], b[slice(*found.b)]) == ("ONE two, three", "one two three")
    assert found.shingles == 2
    assert exact.longest_shared_passage(a, b) is None
    with pytest.raises(rs.InvalidParameterError):
        exact.shared_spans(a, b, rs.Text.words(0))


def test_whole_texts_are_found_where_all_their_words_are() -> None:
    whole = exact.WholeTexts(["to be", "", "be or", "été"], rs.Text.words(5))
    text = "日本 TO be, or not to be: e\u0301te\u0301"
    found = [(number, text[slice(*place)]) for number, place in whole.find(text)]
    assert found == [(0, "TO be"), (2, "be, or"), (3, "e\u0301te\u0301")]
    assert whole.find("or be") == []
