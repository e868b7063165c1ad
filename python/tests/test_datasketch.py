"""datasketch's classes over a store: its values, its bands, its answers; and durability."""

from __future__ import annotations

import pickle
import random
from collections.abc import Hashable
from pathlib import Path

import numpy as np
import pytest

from resemblance.datasketch import MinHash, MinHashLSH, MinHashLSHForest, WeightedMinHashGenerator
from resemblance.datasketch.lsh import best_bands


def minhashes(count: int, num_perm: int = 64) -> list[MinHash]:
    chance = random.Random(1)
    sets = [chance.sample(range(60 if i % 3 else 120), 40) for i in range(count)]
    return MinHash.bulk([[b"%d" % n for n in s] for s in sets], num_perm=num_perm)


def test_values_are_those_of_datasketch() -> None:
    """Made once with datasketch 2.0.0; those of `legacy` are those of all releases before."""
    expected = {
        "affine32": [3231258861, 1388533999, 831950533, 1845606703],
        "legacy": [734825475, 960773806, 359816889, 342714745],
    }
    for scheme, values in expected.items():
        minhash = MinHash(4, 1, scheme=scheme)
        minhash.update(b"Hello")
        assert minhash.hashvalues.tolist() == values
    assert [best_bands(t, 128, (0.5, 0.5)) for t in (0.5, 0.7, 0.8, 0.9)] == [
        (25, 5),
        (14, 9),
        (9, 13),
        (5, 25),
    ]
    weighted = WeightedMinHashGenerator(4, 4, seed=1).minhash([1, 2, 3, 0])
    assert weighted.hashvalues.tolist() == [[2, 1], [0, 0], [1, 1], [2, 0]]


def test_minhash() -> None:
    a, b, c = minhashes(3)
    assert pickle.loads(pickle.dumps(a)) == a and a.copy() == a != b
    assert MinHash.union(a, b) == MinHash.union(b, a)
    merged = a.copy()
    merged.merge(b)
    assert merged == MinHash.union(a, b) and 20 < a.count() < 80
    assert a.jaccard(a) == 1.0 and 0 <= a.jaccard(c) < 1
    assert MinHash().is_empty() and not a.is_empty()
    for other in (MinHash(32), MinHash(64, seed=2), MinHash(64, scheme="legacy")):
        with pytest.raises(ValueError):
            a.jaccard(other)
    with pytest.raises(ValueError, match="scheme"):
        MinHash(hashvalues=a.hashvalues)


def test_answers_are_those_of_datasketch() -> None:
    """Against the definition: those that agree in all values of a band."""
    sets = minhashes(300)
    lsh = MinHashLSH(threshold=0.6, num_perm=64)
    keys: list[Hashable] = [i if i % 3 else f"k{i}" if i % 2 else (i, b"x") for i in range(300)]
    with lsh.insertion_session() as session:
        for key, minhash in zip(keys, sets):
            session.insert(key, minhash)
    for minhash in sets:
        expected = {
            keys[i]
            for i, other in enumerate(sets)
            for start in range(0, lsh.b * lsh.r, lsh.r)
            if (minhash.hashvalues == other.hashvalues)[start : start + lsh.r].all()
        }
        assert set(lsh.query(minhash)) == expected
    assert set(lsh.keys) == set(keys) and len(lsh) == 300
    assert sum(lsh.get_counts()[0].values()) == 300
    again = pickle.loads(pickle.dumps(lsh))
    assert all(sorted(map(str, lsh.query(m))) == sorted(map(str, again.query(m))) for m in sets)
    datasketch = pytest.importorskip("datasketch")
    theirs = datasketch.MinHashLSH(threshold=0.6, num_perm=64)
    for key, minhash in zip(keys, sets):
        theirs.insert(key, datasketch.MinHash(hashvalues=minhash.hashvalues, scheme="affine32"))
    assert all(set(theirs.query(m)) == set(lsh.query(m)) for m in sets)


def test_an_index_in_a_file_survives(path: Path) -> None:
    a, b, c = minhashes(3)
    with MinHashLSH(0.5, 64, path=path) as lsh:
        lsh.insert("a", a)
        with pytest.raises(ValueError, match="exists"):
            lsh.insert("a", b)
        with pytest.raises(ZeroDivisionError), lsh.insertion_session() as session:
            session.insert("b", b)
            raise ZeroDivisionError
        assert "b" not in lsh and "a" in lsh
        with pytest.raises(TypeError, match="path"):
            pickle.dumps(lsh)
        lsh.insert("a", c, check_duplication=False)
    with MinHashLSH(0.5, 64, path=path) as lsh:
        assert lsh.query(c) == ["a"] and "a" in lsh
        lsh.remove("a")
        with pytest.raises(ValueError, match="not exist"):
            lsh.remove("a")
        assert lsh.is_empty()
    with pytest.raises(ValueError, match="path="):
        MinHashLSH(storage_config={"type": "redis"})


def test_a_session_that_fails_keeps_what_came_before() -> None:
    a, b, _ = minhashes(3)
    lsh = MinHashLSH(0.5, 64)
    lsh.insert("a", a)
    with pytest.raises(ZeroDivisionError), lsh.insertion_session() as session:
        session.insert("b", b)
        raise ZeroDivisionError
    assert list(lsh.keys) == ["a"]


def test_merge_and_buffers() -> None:
    sets = minhashes(40)
    one, two = MinHashLSH(0.5, 64), MinHashLSH(0.5, 64)
    for i, minhash in enumerate(sets):
        (one if i % 2 else two).insert(i, minhash)
    one.merge(two, check_overlap=True)
    assert len(one) == 40
    with pytest.raises(ValueError, match="overlap"):
        one.merge(two, check_overlap=True)
    one.add_to_query_buffer(sets[0])
    one.add_to_query_buffer(sets[1])
    both = set(one.query(sets[0])) & set(one.query(sets[1]))
    assert set(one.collect_query_buffer()) == both and one.collect_query_buffer() == []


def test_recall_finds_more_than_the_area_rule() -> None:
    area, recall = MinHashLSH(0.8, 128), MinHashLSH(0.8, 128, recall=0.95)
    found = [1 - (1 - 0.8**lsh.r) ** lsh.b for lsh in (area, recall)]
    assert found[0] < 0.7 and found[1] >= 0.95


def test_forest(path: Path) -> None:
    sets = minhashes(100, 128)
    forest = MinHashLSHForest(num_perm=128, l=8, path=path)
    for i, minhash in enumerate(sets):
        forest.add(i, minhash)
    assert forest.is_empty() and 3 in forest
    forest.index()
    estimates = np.array([[a.jaccard(b) for b in sets] for a in sets])
    for i in range(0, 100, 7):
        found = forest.query(sets[i], 5)
        assert found[0] == i and len(found) == 5
        # The best five of all, by estimates.
        assert sorted(estimates[i][found])[0] >= sorted(estimates[i])[-5]
    assert np.array_equal(forest.get_minhash_hashvalues(4), sets[4].hashvalues)
    with pytest.raises(ValueError, match="already"):
        forest.add(4, sets[4])
    forest.close()
    assert not MinHashLSHForest(num_perm=128, l=8, path=path).is_empty()


def test_weighted_sets() -> None:
    generator = WeightedMinHashGenerator(20, 64)
    chance = np.random.RandomState(2)
    vectors = [chance.uniform(0, 10, 20) for _ in range(30)]
    samples = [generator.minhash(vector) for vector in vectors]
    lsh = MinHashLSH(0.5, 64)
    for i, sample in enumerate(samples):
        lsh.insert(i, sample)
    assert all(i in lsh.query(sample) for i, sample in enumerate(samples))
    # The functions of one generator err alike for all vectors, so that many are needed.
    many = WeightedMinHashGenerator(20, 1024)
    samples = [many.minhash(vector) for vector in vectors]
    errors = []
    for a, b, x, y in zip(vectors, vectors[1:], samples, samples[1:]):
        errors.append(x.jaccard(y) - np.minimum(a, b).sum() / np.maximum(a, b).sum())
    assert abs(np.mean(errors)) < 0.03
    assert generator.minhash_many(np.vstack([vectors[0], np.zeros(20)]))[1] is None
