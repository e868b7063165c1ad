"""datasketch's classes over a store: its values, its bands, its answers; and durability."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import gc
import gzip
import json
import os
import pathlib
import pickle
import random
import threading
import uuid
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resemblance import Signatures
from resemblance.datasketch import MinHash, MinHashLSH, MinHashLSHForest, WeightedMinHashGenerator
from resemblance.datasketch import _index
from resemblance.datasketch._index import signature_of
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


def test_a_session_that_is_read_drops_what_follows(tmp_path: Path) -> None:
    lsh = MinHashLSH(0.5, path=tmp_path / "a.rsm")
    with pytest.raises(RuntimeError), lsh.insertion_session() as session:
        session.insert("before", MinHash())
        assert list(lsh.keys) == ["before"]
        session.insert("after", MinHash())
        raise RuntimeError
    assert list(lsh.keys) == ["before"]


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
    # As in datasketch, those that have no logarithm do not count.
    plain, odd = vectors[0].copy(), vectors[0].copy()
    plain[[3, 4]], odd[[3, 4]] = 0, (-1, np.nan)
    assert generator.minhash(odd) == generator.minhash(plain)
    for refused in (np.full(20, np.inf), np.full(20, 1e39), np.full(20, -1.0), np.full(20, np.nan)):
        with pytest.raises(ValueError, match="v: found"):
            generator.minhash(refused)


def real_texts(count: int) -> list[str]:
    """Passages of the texts of the corpora that `RESEMBLANCE_DATA` names."""
    folder = os.environ.get("RESEMBLANCE_DATA")
    if not folder:
        pytest.skip("RESEMBLANCE_DATA names no corpora")
    found: dict[str, None] = {}
    for path in sorted(Path(folder).rglob("docs.jsonl.gz")):
        with gzip.open(path, "rt") as file:
            for line in file:
                words = json.loads(line)["text"].split()
                found.update(dict.fromkeys(" ".join(words[i : i + 60]) for i in range(0, len(words), 60)))
    if len(found) < count:
        pytest.skip(f"RESEMBLANCE_DATA has {len(found)} passages of {count}")
    return list(found)[:: len(found) // count][:count]


def test_real_texts_have_the_candidates_of_datasketch() -> None:
    datasketch = pytest.importorskip("datasketch")
    ours, theirs = MinHashLSH(0.5, 128), datasketch.MinHashLSH(0.5, 128)
    differing = 0
    for number, text in enumerate(real_texts(20_000)):
        words = text.split()
        minhash = MinHash(128)
        minhash.update_batch({" ".join(words[i : i + 3]).encode() for i in range(max(len(words) - 2, 1))})
        expected = theirs.query(minhash)
        differing += set(ours.query(minhash)) != set(expected)
        if not expected:
            theirs.insert(number, minhash)
            ours.insert(number, minhash)
    assert differing == 0 and len(ours) > 15_000


def test_candidates_share_a_band_and_not_a_bucket_alone() -> None:
    """The number of a bucket has 16 bits for what comes after two rows: sets that agree in these share it by chance."""
    lsh = MinHashLSH(num_perm=64, params=(2, 32))
    chance = np.random.RandomState(1)
    rows = chance.randint(0, 1 << 32, (300_000, 64), dtype=np.uint32)
    rows[:, :2] = rows[0, :2]
    codes = [s.bucket_codes()[0] for s in Signatures.from_minhash(rows, schema=lsh.store.schema)]
    alike = [number for number in range(1, len(rows)) if codes[number] == codes[0]]
    assert alike, "no set shares a bucket"
    first, *others = (MinHash(hashvalues=rows[number], scheme="affine32") for number in (0, *alike))
    for number, other in enumerate(others):
        lsh.insert(number, other)
    assert lsh.query(first) == []
    # As many equal values as a band has, but not those of one band.
    chosen = rows[alike[0]]
    chosen[33:] = rows[0, 33:]
    lsh.insert("spread", MinHash(hashvalues=chosen, scheme="affine32"))
    assert (chosen == rows[0]).sum() > lsh.r
    assert lsh.query(first) == []
    lsh.insert("first", first)
    assert lsh.query(first) == ["first"]


@pytest.mark.parametrize("in_file", [False, True])
def test_many_threads_share_an_index(path: Path, in_file: bool) -> None:
    sets = minhashes(160)
    for _ in range(1 if in_file else 5):
        lsh = MinHashLSH(0.5, 64, path=path if in_file else None)
        barrier = threading.Barrier(8)

        def fill(share: int) -> None:
            barrier.wait()
            for number in range(share, 160, 8):
                lsh.insert(number, sets[number])
                assert number in lsh.query(sets[number])
                if number % 40 < 8:
                    assert len(list(lsh.keys)) <= 160

        threads = [threading.Thread(target=fill, args=(share,), daemon=True) for share in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a thread waits for ever"
        assert set(lsh.keys) == set(range(160))
        lsh.close()


def test_equal_keys_are_one_key() -> None:
    a, b, _ = minhashes(3)
    lsh = MinHashLSH(0.5, 64)
    word, same_word = "".join(["ab", "c"]), "".join(["a", "bc"])
    noon = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.timezone.utc)
    equal: list[tuple[Hashable, Hashable]] = [
        ((word, word), (word, same_word)),
        (1, 1.0),
        ((2, "x"), (2.0, "x")),
        (True, np.int64(1)),
        (decimal.Decimal("0.5"), 0.5),
        (frozenset("xyz"), frozenset("zyx")),
        (frozenset([0, 8]), frozenset([8, 0])),
        (float("inf"), np.float64("inf")),
        ((float("-inf"), 1), (decimal.Decimal("-Infinity"), np.True_)),
        (1 + 2j, np.complex128(1 + 2j)),
        (complex("inf"), np.float32("inf")),
        (b"ab", memoryview(b"ab")),
        (range(0), range(5, 5)),
        (range(0, 5, 3), range(0, 6, 3)),
        (range(3, 4), range(3, 9, 7)),
        (noon, noon.astimezone(datetime.timezone(datetime.timedelta(hours=5)))),
        ((noon.replace(tzinfo=None), "x"), (noon.replace(tzinfo=None, fold=1), "x")),
        (datetime.timedelta(1), datetime.timedelta(hours=24)),
        (uuid.UUID(int=5), uuid.UUID(int=5, is_safe=uuid.SafeUUID.safe)),
        (pathlib.Path("a/b"), pathlib.PurePath("a", "b")),
        ((None, ("x", (3, b"y"))), (None, ("x", (3.0, b"y")))),
    ]
    for one, other in equal:
        assert one == other
        lsh.insert(one, a)
        with pytest.raises(ValueError, match="exists"):
            lsh.insert(other, b)
        assert other in lsh and lsh.query(a) == [other]
        lsh.remove(other)
    class Color(enum.Enum):
        RED = ["a"]

    globals()["Color"] = Color
    Color.__qualname__ = "Color"
    for kept in (None, (), ("a", 1.5, None), float("inf"), 2**70, np.str_("x"), "\udc80", 1 + 2j, Color.RED, int):
        lsh.insert(kept, a)
        assert lsh.query(a) == [kept] == list(lsh.keys)
        lsh.remove(kept)
    lsh.insert((1, "1"), a)
    assert ("1", 1) not in lsh and ("1", "1") not in lsh and (1, 1) not in lsh


def test_keys_of_pandas_are_those_of_python() -> None:
    pd = pytest.importorskip("pandas")
    a, b, _ = minhashes(3)
    lsh = MinHashLSH(0.5, 64)
    for one, other in (
        (datetime.datetime(2026, 1, 1), pd.Timestamp("2026-01-01")),
        (pd.Timestamp("2026-01-01", tz="Europe/Berlin"), pd.Timestamp("2025-12-31 23:00", tz="UTC")),
        (datetime.timedelta(1), pd.Timedelta("1D")),
    ):
        assert one == other
        lsh.insert(one, a)
        with pytest.raises(ValueError, match="exists"):
            lsh.insert(other, b)
        assert lsh.query(a) == [other]
        lsh.remove(other)
    for refused in (pd.Timestamp("2026-01-01 00:00:00.000000001"), pd.Timedelta(1), pd.NaT):
        with pytest.raises(TypeError, match="key: found"):
            lsh.insert(refused, a)


def test_keys_that_cannot_be_compared_are_refused() -> None:
    @dataclasses.dataclass(frozen=True)
    class Point:
        x: int
        note: str = dataclasses.field(default="", compare=False)

    minhash = minhashes(1)[0]
    lsh = MinHashLSH(0.5, 64)
    for key in (Point(1), (1, Point(1)), object(), np.datetime64("2026-01-01"), np.timedelta64(5, "s"), len):
        with pytest.raises(TypeError, match="key: found .*, expected text, bytes"):
            lsh.insert(key, minhash)
    unhashable: Any
    for unhashable in ([], {}, (1, []), set(), bytearray(b"a")):
        with pytest.raises(TypeError, match="unhashable"):
            lsh.insert(unhashable, minhash)
        with pytest.raises(TypeError, match="unhashable"):
            unhashable in lsh
    assert lsh.is_empty()


def test_minhashes_without_a_scheme_are_those_of_old_releases(path: Path) -> None:
    """datasketch before 2.0 has one scheme, and no name of it."""

    class Old:
        def __init__(self, minhash: MinHash) -> None:
            self.seed, self.hashvalues = minhash.seed, minhash.hashvalues

        def __len__(self) -> int:
            return len(self.hashvalues)

    made = {
        (scheme, seed): MinHash.bulk([[b"a", b"b"]], num_perm=64, seed=seed, scheme=scheme)[0]
        for scheme in ("affine32", "legacy")
        for seed in (1, 2)
    }
    with MinHashLSH(0.5, 64, path=path) as lsh:
        lsh.insert("a", Old(made["legacy", 1]))
    with MinHashLSH(0.5, 64, path=path) as lsh:
        assert lsh.query(Old(made["legacy", 1])) == lsh.query(made["legacy", 1]) == ["a"]
        for other in (made["affine32", 1], made["legacy", 2], Old(made["legacy", 2])):
            with pytest.raises(ValueError, match="minhash: found scheme .*, expected scheme 'legacy' and seed 1"):
                lsh.query(other)
            with pytest.raises(ValueError, match="expected scheme 'legacy' and seed 1"):
                lsh.insert("b", other)


def test_weighted_sets_of_one_dimension_are_compared(path: Path) -> None:
    wide, narrow = (WeightedMinHashGenerator(dim, 64) for dim in (30, 20))
    one, other = wide.minhash(range(30)), narrow.minhash(range(20))
    with pytest.raises(ValueError, match="dimensions"):
        one.jaccard(other)
    assert pickle.loads(pickle.dumps(one)).copy() == one
    for _ in range(2):
        with MinHashLSH(0.5, 64, path=path) as lsh:
            lsh.insert("a", one, check_duplication=False)
            assert lsh.query(one) == ["a"]
            with pytest.raises(ValueError, match="dimension 20, expected .* dimension 30"):
                lsh.query(other)
            with pytest.raises(ValueError, match="dimension 20, expected .* dimension 30"):
                lsh.insert("b", other)
    with MinHashLSH(0.5, 64, path=path) as lsh:
        with pytest.raises(ValueError, match="dimension 20, expected .* dimension 30"):
            lsh.query(other)
        # The dimension of those of datasketch is not known.
        unknown = wide.minhash(range(30))
        unknown.dim = None
        lsh.insert("c", unknown)
        assert sorted(map(str, lsh.query(unknown))) == ["a", "c"]
        with pytest.raises(ValueError, match="dimension 20"):
            lsh.insert("b", other)
        for key in ("a", "c"):
            lsh.remove(key)
        lsh.insert("b", other)
        assert lsh.query(other) == ["b"]


def test_indexes_of_other_functions_are_not_merged() -> None:
    made = [MinHash.bulk([[b"a", b"b"]], num_perm=64, seed=seed)[0] for seed in (1, 2)]
    indexes = [MinHashLSH(0.5, 64) for _ in made]
    for lsh, minhash in zip(indexes, made):
        lsh.insert("a", minhash)
    with pytest.raises(ValueError, match="cannot merge MinHashLSH of .* seed 1 and .* seed 2"):
        indexes[0].merge(indexes[1])
    indexes[0].remove("a")
    indexes[0].merge(indexes[1])
    assert indexes[0].query(made[1]) == ["a"]
    with pytest.raises(ValueError, match="seed 1, expected .* seed 2"):
        indexes[0].insert("b", made[0])


def test_an_index_takes_one_scheme_and_seed_also_when_it_is_reopened(path: Path) -> None:
    made = {
        (scheme, seed): MinHash.bulk([[b"a", b"b"]], num_perm=64, seed=seed, scheme=scheme)[0]
        for scheme in ("affine32", "legacy")
        for seed in (1, 2)
    }
    with MinHashLSH(0.5, 64, path=path) as lsh:
        lsh.insert("a", made["affine32", 1])
    for (scheme, seed), minhash in made.items():
        with MinHashLSH(0.5, 64, path=path) as lsh:
            if (scheme, seed) == ("affine32", 1):
                assert lsh.query(minhash) == ["a"]
                continue
            for verb in (lsh.query, lsh.add_to_query_buffer, lambda m: lsh.insert("b", m)):
                with pytest.raises(ValueError, match=f"scheme '{scheme}' and seed {seed}, expected"):
                    verb(minhash)
    path.unlink()
    with MinHashLSHForest(64, path=path) as forest:
        forest.add("a", made["affine32", 1])
        forest.index()
    with MinHashLSHForest(64, path=path) as forest:
        with pytest.raises(ValueError, match="seed 2, expected"):
            forest.query(made["affine32", 2], 1)
        with pytest.raises(ValueError, match="seed 2, expected"):
            forest.add("b", made["affine32", 2])


def test_many_small_indexes_take_no_files() -> None:
    minhash = minhashes(1)[0]
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    indexes = [MinHashLSH(0.5, 64) for _ in range(200)]
    forests = [MinHashLSHForest(64) for _ in range(200)]
    for number, (lsh, forest) in enumerate(zip(indexes, forests)):
        lsh.insert(number, minhash)
        forest.add(number, minhash)
        forest.index()
    assert all(lsh.query(minhash) == [number] for number, lsh in enumerate(indexes))
    assert all(forest.query(minhash, 1) == [number] for number, forest in enumerate(forests))
    if before:
        assert len(os.listdir("/proc/self/fd")) - before < 50


def test_a_large_index_moves_to_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_index, "_IN_MEMORY", 20)
    sets = minhashes(50)
    lsh = MinHashLSH(0.5, 64)
    for number, minhash in enumerate(sets):
        lsh.insert(number, minhash)
    assert lsh.store.path.exists() and set(lsh.keys) == set(range(50))
    assert all(number in lsh.query(minhash) for number, minhash in enumerate(sets))
    folder = lsh.store.path.parent
    lsh.close()
    assert not folder.exists()


def test_an_index_is_read_while_it_moves_to_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_index, "_IN_MEMORY", 600)
    sets = minhashes(1200)
    lsh = MinHashLSH(0.5, 64)
    for number in range(500):
        lsh.insert(number, sets[number])
    keys, store = iter(lsh.keys), lsh.store
    found = [next(keys)]
    for number in range(500, 1200):
        lsh.insert(number, sets[number])
    assert lsh.store.path.exists() and lsh.store is not store
    assert set(found) | set(keys) == set(range(500))
    # A query of another thread may have the store of before.
    assert store.query(sets[3].signature(), threshold=0.0, accept_lower_recall=True)


def test_buckets_are_counted_while_sets_are_removed() -> None:
    sets = minhashes(400)
    lsh = MinHashLSH(0.5, 64)
    with lsh.insertion_session() as session:
        for number, minhash in enumerate(sets):
            session.insert(number, minhash)
    barrier = threading.Barrier(2)

    def remove() -> None:
        barrier.wait()
        for number in range(0, 400, 2):
            lsh.remove(number)

    thread = threading.Thread(target=remove, daemon=True)
    thread.start()
    barrier.wait()
    while thread.is_alive():
        assert 200 <= sum(lsh.get_counts()[0].values()) <= 400
    thread.join()
    assert sum(lsh.get_counts()[0].values()) == 200


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are not listed")
def test_indexes_that_are_dropped_have_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_index, "_IN_MEMORY", 4)
    sets = minhashes(8)
    before = len(os.listdir("/proc/self/fd"))
    folders = []
    for _ in range(100):
        lsh = MinHashLSH(0.5, 64)
        for number, minhash in enumerate(sets):
            lsh.insert(number, minhash)
        assert next(iter(lsh.keys)) == 0
        folders.append(lsh.store.path.parent)
    del lsh
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) - before < 20
    assert not any(folder.exists() for folder in folders)


def test_cut_and_wide_values_are_refused() -> None:
    ds = pytest.importorskip("datasketch")
    whole = ds.MinHash(num_perm=64)
    whole.update(b"a")
    wide = ds.MinHash(num_perm=64, scheme="affine64", hashvalues=[7] * 64)
    lsh = MinHashLSH(num_perm=64)
    for refused in (ds.bBitMinHash(whole, b=8), wide):
        with pytest.raises((ValueError, TypeError)):
            lsh.insert("a", refused)
        with pytest.raises(ValueError, match="values"):
            signature_of(refused)
    lsh.insert("a", whole)
    with pytest.raises(ValueError, match="masked"):
        MinHash(hashvalues=np.ma.masked_equal(whole.hashvalues, whole.hashvalues[0]), scheme="affine32")


@pytest.mark.parametrize("bits", [32, 64])
def test_hash_functions_of_any_width_give_the_values_of_datasketch(bits: int) -> None:
    """Before 2.0, datasketch cut permuted values to 32 bits, whatever the width of the hash function."""
    ds = pytest.importorskip("datasketch")

    def hashed(feature: int) -> int:
        return (feature * 0x9E37_79B9_7F4A_7C15 + 1) % (1 << bits)

    own, other = (kind(num_perm=64, scheme="legacy", hashfunc=hashed) for kind in (MinHash, ds.MinHash))
    for minhash in (own, other):
        minhash.update_batch(range(100))
        for feature in range(100, 120):
            minhash.update(feature)
    assert np.array_equal(own.hashvalues, other.hashvalues)
    assert signature_of(other) == own.signature()
