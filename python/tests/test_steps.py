"""The steps of a job on many machines, by themselves."""

from __future__ import annotations

import random
from typing import Any

import pytest
from conftest import texts

import resemblance as rs
from resemblance._native import (
    BucketPairs,
    Components,
    FirstKept,
    PairRule,
    shard_numbers,
    table_lines,
)

pa = pytest.importorskip("pyarrow")


def longs(numbers: list[int]) -> Any:
    return pa.array(numbers, pa.int64())


def lists(columns: list[Any]) -> list[list[Any]]:
    return [pa.array(column).to_pylist() for column in columns]


@pytest.mark.parametrize("exact", [True, False])
def test_steps_give_the_pairs_of_a_corpus(schema: rs.Schema, exact: bool) -> None:
    documents = [*texts(120), "", ""]
    rule = PairRule(schema)
    sketched = rule.sketch_batch(pa.array(documents), exact=exact, threads=1)
    codes = pa.array(sketched[6]).to_pylist()
    assert codes[-1] == [] and rule.lanes == (len(codes[0]), len(codes[0]))
    postings = sorted(
        (lane, code, n) for n, own in enumerate(codes) for lane, code in enumerate(own)
    )
    buckets = BucketPairs()
    candidates = set()
    # A bucket may stand across the end of a batch.
    for start in range(0, len(postings), 7):
        lane, code, document = zip(*postings[start : start + 7])
        buckets.push(pa.array(lane, pa.int32()), longs(list(code)), longs(list(document)))
        for columns in buckets:
            _, _, a, b = lists(columns)
            candidates |= set(zip(a, b))
    a, b = (longs([pair[side] for pair in sorted(candidates)]) for side in (0, 1))
    shares_band = pa.array([True] * len(candidates))
    if exact:
        scored = rule.exact_batch(pa.array(documents), a, b, shares_band, threads=2)
    else:
        scored = rule.compare_batch(sketched[5], a, b, shares_band)
    found = [
        (pair, similarity, distance)
        for pair, is_pair, similarity, distance in zip(sorted(candidates), *lists(scored))
        if is_pair
    ]
    expected = [((p.a, p.b), p.similarity, p.distance) for p in rs.pairs(documents, schema, exact=exact)]
    assert found == sorted(expected) and len(found) > 20


def test_nulls_and_other_types_are_told(schema: rs.Schema) -> None:
    rule = PairRule(schema)
    columns = rule.sketch_batch(pa.array(["a b c", None], pa.large_string()), exact=True)
    assert [len(column) for column in lists(columns)] == [2] * 7
    assert all(column[0] is not None and column[1] is None for column in lists(columns))
    one, true = longs([0]), pa.array([True])
    with pytest.raises(rs.InvalidParameterError, match="null"):
        rule.exact_batch(pa.array(["a", None]), one, one, true)
    with pytest.raises(rs.InvalidParameterError, match="0 to 1, without the end"):
        rule.exact_batch(pa.array(["a"]), one, longs([1]), true)
    with pytest.raises(rs.InvalidParameterError, match="columns of one length"):
        rule.exact_batch(pa.array(["a"]), one, longs([]), true)
    with pytest.raises(rs.InvalidParameterError, match="those of a signature"):
        rule.compare_batch(pa.array([b"x"]), one, one, true)
    with pytest.raises(rs.InvalidParameterError):
        PairRule(schema, max_distance=3)
    far = rs.Schema(simhash=rs.SimHash(64, max_distance=3))
    with pytest.raises(rs.InvalidParameterError, match="share the bucket of a table"):
        PairRule(far, max_distance=9)


def test_a_bucket_is_cut_short() -> None:
    buckets = BucketPairs(max_bucket=2)
    buckets.push(pa.array([0] * 5 + [1] * 2, pa.int32()), longs([7] * 7), longs([1, 2, 3, 4, 5, 1, 9]))
    rows = [row for columns in buckets for row in zip(*lists(columns))]
    own = [(a, b) for lane, _, a, b in rows if lane == 0]
    # Those that are compared with the first two alone stand without another.
    assert sorted(own, key=str) == sorted(
        [(1, 2), (1, 3), (2, 3), (None, 3), (1, 4), (2, 4), (None, 4), (1, 5), (2, 5), (None, 5)], key=str
    )
    assert [(a, b) for lane, _, a, b in rows if lane == 1] == [(1, 9)]


def test_the_first_of_a_chain_stay() -> None:
    kept = FirstKept()
    gone: list[int] = []
    for start in range(0, 10_000, 999):
        later = range(max(start, 1), min(start + 999, 10_000))
        gone += pa.array(kept.push(longs([n - 1 for n in later]), longs(list(later)))).to_pylist()
    assert gone == list(range(1, 10_000, 2))


def test_components_are_named_by_their_least() -> None:
    chance, edges = random.Random(1), []
    for group in range(20):
        members = [group + 20 * k for k in range(30)]
        chance.shuffle(members)
        edges += list(zip(members, members[1:]))
    chance.shuffle(edges)
    components = Components()
    components.push(longs([a for a, _ in edges]), longs([b for _, b in edges]))
    documents, firsts = lists(components.finish())
    assert documents == list(range(600)) and firsts == [n % 20 for n in range(600)]


def test_shards_and_lines() -> None:
    keys = pa.array([f"page/{n}" for n in range(1_000)])
    numbers = pa.array(shard_numbers(keys, 4)).to_pylist()
    assert numbers[:8] == pa.array(shard_numbers(keys.slice(0, 8), 4)).to_pylist()
    assert all(200 < numbers.count(shard) < 300 for shard in range(4))
    with pytest.raises(rs.InvalidParameterError, match="shards"):
        shard_numbers(keys, 0)
    lines = table_lines(
        pa.array(["a\tb", "c"]), pa.array(["ü", "d"]), pa.array([0.5, None]), pa.array([None, 3], pa.int32())
    )
    assert pa.array(lines).to_pylist() == ["a\\tb\tü\t0.500000\t", "c\td\t\t3"]
