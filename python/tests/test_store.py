"""Stores: what is written is found, by all verbs."""

from __future__ import annotations

import copy
import gc
import inspect
import io
import itertools
import json
import pickle
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import resemblance as rs
import resemblance.datasketch
import resemblance.exact
from conftest import in_time, jaccard, near_pairs, shingles, texts
from resemblance.reports import StoredDocument

TEXT = "it was the best of times it was the worst of times it was the age of wisdom"


def test_clusters_are_kept(tmp_path: Path) -> None:
    with pytest.raises(rs.InvalidParameterError, match="clusters"):
        rs.Schema(minhash=rs.MinHash(64), cluster_threshold=0.9)
    schema = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64), clusters=True)
    assert schema.clusters and schema.cluster_threshold is None
    with rs.Store.create(tmp_path / "news.rsm", schema) as store:
        store.insert("a", TEXT)
        assert store.cluster_of("a") is None and store.largest_clusters() == []
        with store.transaction() as transaction:
            transaction.insert("b", TEXT)
            assert transaction.cluster_of("b") == 0
        new = store.insert_if_new("c", TEXT)
        assert new.found is not None and new.found.key == "a"
        assert store.cluster_of("a") == 0 and store.cluster_of("c") is None
        assert list(store.members(0)) == [0, 1] and store.members(0).keys == ["a", "b"]
        snapshot = store.snapshot()
        store.remove("a")
        assert store.largest_clusters(1) == [(0, 1)] and snapshot.largest_clusters() == [(0, 2)]
        assert len(store.members(7)) == 0
        store.remove("b")
        store.insert_many([TEXT, TEXT])
        assert store.largest_clusters() == [(1, 2)]
        assert not store.check().problems
    with rs.Store.in_memory(rs.Schema(minhash=rs.MinHash(64))) as plain:
        with pytest.raises(rs.InvalidParameterError, match="clusters"):
            plain.members(0)


def test_clusters_change(tmp_path: Path) -> None:
    schema = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64), exact=True, clusters=True)
    with rs.Store.create(tmp_path / "news.rsm", schema) as store:
        other = " ".join(reversed(TEXT.split()))
        for key, text in [("a", TEXT), ("x", other), ("b", TEXT), ("y", other)]:
            store.insert(key, text, stamp=ord(key))
        changes = store.cluster_changes()
        assert changes.position == 0
        found = [(it.position, it.commit, it.cluster, it.event, it.key) for it in changes]
        assert found == [
            (1, 3, 0, "joined", "b"),
            (2, 3, 0, "joined", "a"),
            (3, 4, 1, "joined", "y"),
            (4, 4, 1, "joined", "x"),
        ]
        assert changes.position == store.cluster_position() == 4
        store.remove("a")
        store.remove("b")
        events = [(it.event, it.document, it.other, it.key) for it in store.cluster_changes(4)]
        assert events == [("left", 0, None, None), ("left", 2, None, None), ("ended", None, None, None)]
        assert "event='left'" in repr(next(store.cluster_changes(4))).replace('"', "'")
        with pytest.raises(rs.InvalidParameterError, match="read all clusters again"):
            store.cluster_changes(8)
        assert store.clusters_since(ord("y")) == [(1, 2, 1, ord("y"))]
        for rule, key in [("first", "x"), ("latest", "y"), ("longest", "x"), ("medoid", "x")]:
            record = store.representative(1, rule)
            assert record is not None and record.key == key
        assert store.representative(0) is None
        numbers = {"x": None, "y": None, "z1": 3, "z2": -4.5, "z3": 10**30, "z4": 10**30 + 1}
        for key, number in list(numbers.items())[2:]:
            store.insert(key, other, payload=json.dumps({"meta": {"price": number}}).encode())
        for rule, best in [("meta.price:max", "z4"), ("meta.price:min", "z2"), ("none:max", "x")]:
            record = store.representative(1, rule)
            assert record is not None and record.key == best
        with pytest.raises(rs.InvalidParameterError, match='rule: found "best", expected first, latest, .* :max'):
            store.representative(1, "best")
        store.insert("z5", other, payload=b"[1]")
        with pytest.raises(rs.InvalidParameterError, match="that of document 8 has a fault: not a JSON object"):
            store.representative(1, "meta.price:max")
        for key in list(numbers)[2:] + ["z5"]:
            store.remove(key)
        assert [(it.key_a, it.key_b, it.similarity) for it in store.cluster_edges(1)] == [("x", "y", 1.0)]
        assert store.cluster_path("y", "x") == store.cluster_edges(1)
        assert store.cluster_path("x", "z") is None and store.suspicious_clusters() == []


def test_the_verbs(store: rs.Store) -> None:
    assert store.insert("a", TEXT, payload=b"A", stamp=3) == 0
    new = store.insert_if_new("b", TEXT)
    assert not new and new.found is not None and new.found.key == "a"
    assert new.found.similarity == 1.0 and not new.key_exists
    assert store.insert_if_new("a", "something else entirely, with other words").key_exists
    assert store.insert_if_new(b"c\xff", "something else entirely, with other words")
    assert len(store) == 2 and "a" in store and b"c\xff" in store and "b" not in store
    assert list(store) == ["a", "c\udcff"]
    # A key that is no UTF-8 comes back as it can be given.
    assert store["c\udcff"].key_bytes == b"c\xff"
    record = store["a"]
    assert (record.payload, record.stamp, record.id) == (b"A", 3, 0)
    assert record.signature == store.schema.sketch(TEXT)
    assert store.get("x") is None
    for missing in (lambda: store["x"], lambda: store.remove("x"), lambda: store.touch("x", 1)):
        with pytest.raises(KeyError):
            missing()
    assert store.upsert("a", TEXT, stamp=4).revision == "unchanged"
    changed = store.upsert("a", TEXT + " it was")
    assert changed.revision == "near" and changed.last is not None
    assert store.touch("a", 9) == changed.id and store["a"].stamp == 9
    assert store.remove("a") == changed.id
    assert not store.discard("a") and len(store) == 1
    assert [record.key for record in store.records(filter=rs.Filter(key_prefix="c"))] == ["c\udcff"]


def test_queries(store: rs.Store) -> None:
    documents = texts(400)
    store.insert_many(documents, [f"k{i}" for i in range(400)], payloads=[b"p"] * 400)
    expected = near_pairs(documents, 0.7)
    answers = store.query_many(documents, threshold=0.7)
    found = {
        (min(i, match.id), max(i, match.id))
        for i, answer in enumerate(answers)
        for match in answer
        if match.id != i
    }
    # Estimates differ from what they estimate; most pairs are beyond doubt.
    assert len(found ^ expected) < 0.1 * len(expected)
    for i in (0, 17, 399):
        alone = store.query(documents[i], payloads=True)
        assert [match.id for match in alone] == [match.id for match in answers[i]]
        assert alone[0].payload == b"p" and alone.recall is not None and alone.recall > 0.9
        by_key = store.query(key=f"k{i}")
        assert [m.id for m in by_key] == [m.id for m in alone if m.id != i]
        scanned = store.query(documents[i], scan=True)
        assert {m.id for m in alone} <= {m.id for m in scanned}
        assert store.query(store.schema.sketch(documents[i]), limit=1)[0].similarity == 1.0
    nearest = store.nearest(documents[5], 3)
    assert nearest[0].id == 5 and nearest.recall is not None and nearest.recall >= 0.9
    everything = store.snapshot().nearest("nothing like any of them", 500, min_recall=1.0)
    assert len(everything) == len(store) and everything.scope == "scan" and everything.recall == 1.0
    near = store.near(documents[5], 0.1, 1.5)
    assert len(near) == 1 and near[0].similarity is not None and near[0].similarity >= 0.85
    assert len(store.near("nothing like any of them", 0.1)) == 0
    hurried = store.nearest("nothing like any of them", 3, scan=False)
    assert len(hurried) < 3 and hurried.recall == 0.0
    with pytest.raises(rs.InvalidParameterError):
        store.nearest(documents[5], by="simhash")
    assert store.snapshot().candidates(documents[5])
    with pytest.raises(rs.InvalidParameterError):
        store.query(documents[0], threshold=0.2)
    assert store.query(documents[0], threshold=0.2, accept_lower_recall=True)
    with pytest.raises(KeyError):
        store.query(key="nobody")
    with pytest.raises(rs.InvalidParameterError):
        store.query()
    with pytest.raises(rs.InvalidParameterError):
        store.query(documents[0], by="luck")  # type: ignore[arg-type]


def test_answers_state_how_sure_they_are(store: rs.Store) -> None:
    documents = texts(50)
    store.insert_many(documents)
    by_estimate = store.query(documents[0]).certainty
    assert by_estimate is not None and by_estimate[0] == "estimate" and by_estimate[1] < 0.05
    truly = store.query_many(documents[:1], margin=3.0)[0].certainty
    assert truly is not None and truly[0] == "truth" and truly[1] < 0.06
    assert store.nearest(documents[0], 2, min_recall=1.0).certainty == ("estimate", 0.0)
    with pytest.raises(rs.InvalidParameterError):
        store.query(documents[0], margin=11.0)
    pairs = store.pairs(margin=1.0)
    assert pairs.certainty is None  # before the last pair
    list(pairs)
    assert pairs.certainty is not None and pairs.certainty[0] == "truth"
    clusters = store.clusters()
    assert clusters.certainty is not None and clusters.certainty[0] == "estimate"


def test_exact_similarities_decide_which_are_the_nearest(store: rs.Store) -> None:
    documents = texts(300)
    store.insert_many(documents)
    sets = [shingles(text) for text in documents]
    asked = [shingles(text) for text in documents[:40]]
    exact = [[jaccard(a, b) for b in sets] for a in asked]
    many = store.nearest_many(
        documents[:40], 7, min_recall=1.0, verify=lambda index, id: exact[index][id]
    )
    for index, answer in enumerate(many):
        similarities = sorted(exact[index], reverse=True)[:7]
        assert [found.similarity for found in answer] == similarities
        assert all(found.is_exact for found in answer) and answer.recall == 1.0
        one = store.nearest(documents[index], 7, min_recall=1.0, verify=exact[index].__getitem__)
        assert [found.id for found in one] == [found.id for found in answer]
    estimated = store.snapshot().nearest_many(documents[:40], 7)
    assert [len(answer) for answer in estimated] == [7] * 40
    alone = store.nearest(documents[3], 7)
    assert [found.id for found in alone] == [found.id for found in estimated[3]]
    unknown = store.nearest(documents[3], 2, verify=lambda id: None)
    assert not any(found.is_exact for found in unknown)
    assert not store.near(documents[3], 0.2, verify=lambda id: 0.1)

    class Own(Exception):
        pass

    def fails(*ids: int) -> float:
        raise Own

    with pytest.raises(Own):
        store.nearest(documents[3], 2, verify=fails)
    with pytest.raises(Own):
        store.nearest_many(documents[:3], 2, verify=fails)
    with pytest.raises(rs.InvalidParameterError):
        store.nearest(documents[3], 2, verify=lambda id: 1.5)



def test_pairs_and_clusters(store: rs.Store) -> None:
    documents = texts(500, seed=5)
    store.insert_many(documents, [f"k{i}" for i in range(500)])
    pairs = list(store.pairs(threads=2))
    by_query = {
        (i, match.id)
        for i, answer in enumerate(store.query_many(documents))
        for match in answer
        if i < match.id
    }
    assert {(pair.a, pair.b) for pair in pairs} == by_query
    assert all(pair.key_a == f"k{pair.a}" and pair.key_b == f"k{pair.b}" for pair in pairs)
    arrays = store.pairs().arrays()
    assert arrays["a"].tolist() == [pair.a for pair in store.pairs(keys=False)]
    # The components of these pairs, by the simplest way there is.
    group = list(range(500))
    for a, b in by_query:
        old, new = group[b], group[a]
        group = [new if g == old else g for g in group]
    components = {frozenset(i for i in range(500) if group[i] == g) for g in group}
    clusters = store.clusters()
    assert {frozenset(c.ids) for c in clusters} == {c for c in components if len(c) > 1}
    assert clusters[0].keys == [f"k{i}" for i in clusters[0]]
    assert clusters.left_out.pairs == 0 and clusters.suspicious == []


def test_one_bound_selects_its_family() -> None:
    text = "a b c d e f g h i j k l"
    families: dict[str, Any] = {"minhash": rs.MinHash(128, threshold=0.5), "simhash": rs.SimHash(max_distance=3)}
    for near in ("any", "both"):
        schema = rs.Schema(text=rs.Text.words(1), exact=True, near=near, **families)
        store = rs.Store.in_memory(schema)
        store.insert_many([text, text + " m", "a b c d e f g h i z y"], ["same", "near", "far"])
        distances = {m.key: m.distance for m in store.query(text, threshold=0.5)}
        assert list(distances) == ["same", "near", "far"]
        assert any((it or 0) > 3 for it in distances.values())
        within = [key for key, distance in distances.items() if distance is not None and distance <= 3]
        assert [m.key for m in store.query(text, max_distance=3)] == within
        assert [m.key for m in store.query(text, threshold=0.5, by="both")] == within
        assert [m.key for m in store.query(text, threshold=0.5, max_distance=3, by="both")] == within
        both = store.query(text, threshold=0.5, max_distance=3)
        assert [m.key for m in both] == [m.key for m in store.query(text)]
        assert [m.key for m in both] == (within if near == "both" else list(distances))
    assert rs.Store.query.__doc__ is not None and "one bound alone selects" in rs.Store.query.__doc__


def test_transactions(store: rs.Store, path: Path) -> None:
    with store.transaction() as transaction:
        transaction.insert("a", TEXT)
        assert not transaction.insert_if_new("b", TEXT)
        assert "a" in transaction and len(transaction) == 1 and len(store) == 0
        assert transaction.query(TEXT)[0].key == "a"
        with pytest.raises(rs.BusyError):
            store.insert("c", TEXT)
        with pytest.raises(rs.BusyError):
            store.transaction()
    assert list(store) == ["a"]
    with pytest.raises(ZeroDivisionError), store.transaction() as transaction:
        transaction.remove("a")
        raise ZeroDivisionError
    assert "a" in store
    with store.transaction() as transaction:
        assert transaction.insert_many(["x y z", "u v w"], ["d", "e"]) == [1, 2]
        transaction.rollback()
    with pytest.raises(rs.ClosedError):
        transaction.commit()
    before = store.snapshot()
    store.insert("f", TEXT)
    assert len(before) == 1 and len(store) == 2
    store.close()
    del before
    with rs.Store.open(path) as again:
        assert list(again) == ["a", "f"]


@pytest.mark.parametrize("is_of_thread", [False, True])
def test_a_block_whose_store_was_closed_raises(store: rs.Store, path: Path, is_of_thread: bool) -> None:
    with pytest.raises(rs.ClosedError, match="Transaction, or its store"), store.transaction() as transaction:
        transaction.insert("a", TEXT)
        if is_of_thread:
            closing = threading.Thread(target=store.close)
            closing.start()
            closing.join()
        else:
            store.close()
    with rs.Store.open(path) as again:
        assert list(again) == []
        with again.transaction() as transaction:
            transaction.insert("b", TEXT)
            transaction.commit()
        with again.transaction() as transaction:
            transaction.insert("c", TEXT)
            transaction.rollback()
        with pytest.raises(ZeroDivisionError), again.transaction():
            again.close()
            raise ZeroDivisionError
    with rs.Store.open(path) as again:
        assert list(again) == ["b"]


def test_a_transaction_lets_others_wait(store: rs.Store) -> None:
    done: list[str] = []

    def insert(key: str) -> None:
        store.insert(key, TEXT)
        done.append(key)

    with store.transaction() as transaction:
        threads = [threading.Thread(target=insert, args=(str(i),)) for i in range(4)]
        for thread in threads:
            thread.start()
        transaction.insert("first", TEXT)
        assert done == []
    for thread in threads:
        thread.join()
    assert sorted(done) == ["0", "1", "2", "3"] and len(store) == 5


def test_many_threads_insert_one(store: rs.Store) -> None:
    new: list[bool] = []

    def insert(number: int) -> None:
        new.append(bool(store.insert_if_new(f"k{number}", TEXT)))

    threads = [threading.Thread(target=insert, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(new) == [False] * 7 + [True]


def test_threads_share_every_object(store: rs.Store, tmp_path: Path) -> None:
    """Each document and each pair goes to exactly one of eight threads, whether or not they have a lock."""
    documents = texts(600, seed=5)
    schema = store.schema
    store.insert_many(documents, [str(number) for number in range(600)])
    snapshot = store.snapshot()
    alone = (set(snapshot), [(pair.a, pair.b) for pair in snapshot.pairs()])
    records, pairs = snapshot.records(), snapshot.pairs()
    decided = rs.Deduplicator(schema, tmp_path)
    parts = rs.RepeatedParts("paragraph")
    keys: list[str | bytes | None] = []
    found: list[tuple[int, int]] = []
    failures: list[BaseException] = []
    start = threading.Barrier(8)

    def work(number: int) -> None:
        try:
            start.wait()
            for text in documents[number::8]:
                keys.extend(record.key for record in itertools.islice(records, 1))
                assert schema.sketch(text) == schema.sketch(text)
                assert snapshot.query(text, limit=1)[0].similarity == 1.0
                store.upsert(f"new/{number}", text)
                parts.trim(text)
                decided.decide_many([text])
            keys.extend(record.key for record in records)
            found.extend((pair.a, pair.b) for pair in pairs)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(parts) == len(set(documents)) and len(decided) <= len(parts)
    assert len(keys) == 600 and set(keys) == alone[0]
    assert sorted(found) == sorted(alone[1]) and len(store) == 608
    assert not store.check().problems


def test_a_build_is_identified() -> None:
    details = rs.version_details()
    assert details["version"] == rs.__version__
    assert details["store format"] == str(rs.FORMAT_VERSION)
    assert details["commit"] == "unknown" or re.fullmatch("[0-9a-f]{40}", details["commit"])
    assert set(details) >= {"features", "target", "Unicode", "vector instructions"}


def test_inserting_many_if_new_is_inserting_one_by_one(store: rs.Store, tmp_path: Path) -> None:
    documents = texts(300, seed=9)
    keys = [f"k{i}" for i in range(300)]
    together = store.insert_many(documents, keys, if_new=True, commit_every=100)
    with rs.Store.create(tmp_path / "other.rsm", store.schema) as other:
        alone = [other.insert_if_new(key, text) for key, text in zip(keys, documents)]
        assert [bool(n) for n in together] == [bool(n) for n in alone]
        assert list(store) == list(other)


@pytest.mark.parametrize("every", [1_000, 2_048, 3_001])
def test_commits_come_after_so_many_documents(store: rs.Store, every: int) -> None:
    documents: list[str] = [f"{number} is a text of its own" for number in range(7_000)]
    broken: Any = [*documents, 7]
    for threads in (1, 2):
        with pytest.raises(TypeError):
            store.insert_many(broken, threads=threads, commit_every=every)
        # Of the batches before the one that is broken, the whole transactions.
        whole = 6_144 // every * every
        assert len(store) == (whole if threads == 1 else 2 * whole)
    with store.transaction() as transaction:
        assert transaction.insert_many(documents, threads=2) == list(range(2 * whole, 2 * whole + 7_000))
        with pytest.raises(TypeError):
            transaction.insert_many([7])  # type: ignore[list-item]


def test_all_or_nothing(store: rs.Store) -> None:
    def broken() -> Iterator[str]:
        yield from texts(5_000)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.insert_many(broken())
    assert len(store) == 0
    with pytest.raises(rs.InvalidParameterError, match="keys"):
        store.insert_many(["a", "b"], ["only one"])
    with pytest.raises(rs.InvalidParameterError, match="keys"):
        store.insert_many(["a"], ["one", "two"])
    with pytest.raises(TypeError, match="documents: found str, expected a list"):
        store.insert_many("a text")
    with pytest.raises(TypeError, match="a key is str or bytes"):
        store.insert(7, TEXT)  # type: ignore[arg-type]
    for call in (store.query, lambda text: store.insert("k", text), lambda text: store.queue_insert_if_new("k", text)):
        with pytest.raises(rs.InvalidParameterError, match="document: found .*surrogates not allowed, expected .*replace"):
            call("a \ud800 b")
    for every in (0, -1):
        with pytest.raises(rs.InvalidParameterError, match=f"^commit_every: found {every}, expected 1 or more"):
            store.insert_many(["a"], commit_every=every)
    with pytest.raises(rs.KeyExistsError):
        store.insert_many(["a", "b"], ["same", "same"])
    assert len(store) == 0


def test_stamps_are_parsed_as_the_tool_parses_them() -> None:
    for text in ("Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T09:49:37+01:00", "784111777"):
        assert rs.parse_stamp(text) == 784_111_777
    for text in ("Mon, 06 Nov 1994 08:49:37 GMT", "-1", ""):
        with pytest.raises(rs.InvalidParameterError, match="text: found"):
            rs.parse_stamp(text)


def test_eviction(store: rs.Store) -> None:
    store.insert_many(texts(100), stamps=range(100), payloads=[bytes([i % 2]) for i in range(100)])
    assert store.evict(older_than=10, dry_run=True).evicted == 10 and len(store) == 100
    assert store.evict(older_than=10).evicted == 10
    assert store.evict(keep_newest=50).evicted == 40
    report = store.evict(matching=lambda document: document.payload == b"\x01")
    assert (report.examined, report.evicted, len(store)) == (50, 25, 25)
    with pytest.raises(ZeroDivisionError):
        store.evict(matching=lambda document: bool(1 / 0))
    with pytest.raises(rs.InvalidParameterError):
        store.evict()
    assert len(store) == 25


@pytest.mark.parametrize("documents", [10, 3_000])
def test_eviction_ends_when_its_callable_raises(store: rs.Store, documents: int) -> None:
    ids = store.insert_many(f"a{n} b{n} c{n}" for n in range(documents))
    asked: list[int] = []

    def fails_at_6(document: StoredDocument) -> bool:
        asked.append(document.id)
        if document.id == ids[6]:
            raise RuntimeError("boom")
        return True

    with pytest.raises(RuntimeError, match="boom"):
        store.evict(matching=fails_at_6)
    assert len(store) == documents and asked == ids[:7]
    asked.clear()

    def fails_when_asked_again(document: StoredDocument) -> bool:
        asked.append(document.id)
        if asked.count(ids[6]) == 2:
            raise RuntimeError("boom")
        return True

    with pytest.raises(RuntimeError, match="boom"):
        store.evict(matching=fails_when_asked_again)
    assert [record.id for record in store.records()] == ids[6:]
    assert asked[-1] == ids[6]


def test_eviction_asks_again_for_what_it_selected(store: rs.Store) -> None:
    store.insert_many(texts(10))
    answers = itertools.count()
    report = store.evict(matching=lambda document: next(answers) < 3)
    assert (report.examined, report.evicted, report.spared, next(answers)) == (10, 0, 3, 13)


def test_a_callable_of_a_change_does_not_wait_for_that_change(store: rs.Store, tmp_path: Path) -> None:
    """Single documents may be changed. What needs the store alone would wait for the call that asks."""
    store.insert_many(texts(4_000), stamps=range(4_000))
    store.export(tmp_path / "all")
    answers: dict[str, list[object]] = {}

    def tries(where: str) -> Callable[[object], bool]:
        def asked(_: object) -> bool:
            if where not in answers:
                found = answers.setdefault(where, [store.insert(where, "one document of the callable")])
                for change in (store.transaction, lambda: store.insert_many(["a b c"]), store.deduplicator):
                    try:
                        found.append(change())
                    except rs.BusyError as error:
                        found.append(str(error))
            return True

        return asked

    def work() -> None:
        store.evict(matching=tries("matching"))
        store.import_(tmp_path / "all", progress=tries("import"))
        store.evict(older_than=3_999, progress=tries("progress"))

    in_time(work)
    assert "matching" in answers
    for found in answers.values():
        assert isinstance(found[0], int) and len(found) == 4
        assert all("runs this code" in str(answer) for answer in found[1:])
    in_time(lambda: store.transaction().rollback())


def test_a_call_within_a_call_does_not_wait_for_a_transaction(store: rs.Store) -> None:
    """A transaction of another thread waits for the eviction, and must not keep its callable waiting."""
    store.insert_many(texts(3))
    begins = threading.Thread(target=lambda: store.transaction().rollback())
    asked = itertools.count()

    def matching(document: StoredDocument) -> bool:
        if next(asked) == 0:
            begins.start()
            time.sleep(0.2)
            store.insert("a key", "one document of the callable")
        return False

    assert in_time(lambda: store.evict(matching=matching)).evicted == 0
    begins.join()
    assert "a key" in store


def becomes_exact(path: Path, documents: list[str], schema: rs.Schema) -> None:
    """Reband an estimating store with the sets of another one."""
    assert schema.minhash is not None and schema.text is not None
    exact = rs.Schema(
        text=schema.text,
        minhash=rs.MinHash(schema.minhash.values, threshold=schema.minhash.threshold),
        exact_bits=32,
    )
    source = rs.Store.in_memory(exact)
    with pytest.raises(rs.InvalidParameterError, match="sets_from"):
        rs.reband(path, exact=True)
    with pytest.raises(rs.InvalidParameterError, match="k0"):
        rs.reband(path, exact_bits=32, sets_from=source.snapshot())
    source.insert_many(documents, [f"k{i}" for i in range(len(documents))])
    assert rs.reband(path, exact_bits=32, sets_from=source.snapshot()).schema.exact_bits == 32


def test_filters(store: rs.Store) -> None:
    """Each question answers as if the store held only the documents that pass."""
    count = 60
    payloads = [bytes([i % 3]) for i in range(count)]
    store.insert_many([TEXT] * count, [f"k{i % 2}/{i}" for i in range(count)], stamps=range(count), payloads=payloads)

    def is_odd(document: StoredDocument) -> bool:
        return document.payload == b"\x01" and document.key is not None and document.id % 2 == 1

    filters = {
        rs.Filter(): range(count),
        rs.Filter(newer_than=10, older_than=20): range(10, 20),
        rs.Filter(key_prefix="k1/", newer_than=30): range(31, count, 2),
        rs.Filter(matching=is_odd): range(1, count, 6),
        rs.Filter(matching=lambda document: False): range(0),
    }
    with store.snapshot() as snapshot, store.transaction() as transaction:
        for filter, passing in filters.items():
            ids = list(passing)
            for reader in (store, snapshot):
                assert [found.id for found in reader.query(TEXT, filter=filter)] == ids
                assert [found.id for found in reader.query(TEXT, filter=filter, limit=3)] == ids[:3]
                many = reader.query_many([TEXT] * 3, filter=filter, threads=2)
                assert [[found.id for found in matches] for matches in many] == [ids] * 3
                assert [found.id for found in reader.nearest(TEXT, 4, filter=filter)] == ids[:4]
                assert [found.id for found in reader.nearest_many([TEXT], 4, filter=filter)[0]] == ids[:4]
                assert [found.id for found in reader.near(TEXT, 0.1, filter=filter)] == ids[:1]
                assert [record.id for record in reader.records(filter=filter)] == ids
                assert len(list(reader.pairs(filter=filter))) == len(ids) * (len(ids) - 1) // 2
                assert [list(cluster) for cluster in reader.clusters(filter=filter)] == [ids] * (len(ids) > 1)
            assert snapshot.candidates(TEXT, filter=filter) == ids
            by_key = store.query(key="k0/0", filter=filter)
            assert [found.id for found in by_key] == [id for id in ids if id > 0]
            assert [found.id for found in transaction.query(TEXT, filter=filter)] == ids
        raising = rs.Filter(matching=lambda document: bool(1 / 0))
        questions: list[Callable[[], object]] = [
            lambda: store.query(TEXT, filter=raising),
            lambda: store.query_many([TEXT] * 1_000, filter=raising, threads=4),
            lambda: store.nearest(TEXT, filter=raising),
            lambda: store.nearest_many([TEXT], filter=raising),
            lambda: store.near(TEXT, 0.5, filter=raising),
            lambda: snapshot.candidates(TEXT, filter=raising),
            lambda: list(store.records(filter=raising)),
            lambda: list(store.pairs(filter=raising)),
            lambda: store.clusters(filter=raising),
            lambda: transaction.query(TEXT, filter=raising),
        ]
        for question in questions:
            with pytest.raises(ZeroDivisionError):
                question()
        assert len(store.query(TEXT)) == count


def test_a_filter_does_not_wait_for_the_call_that_asks_it(schema: rs.Schema) -> None:
    store = rs.Store.in_memory(schema)
    store.insert_many(texts(20), [f"k{i}" for i in range(20)])
    records: list[Iterator[rs.Record]] = []

    def ask(use: Callable[[rs.Transaction], object]) -> int:
        with store.transaction() as transaction:
            transaction.insert(None, TEXT)
            filter = rs.Filter(matching=lambda document: bool(use(transaction)) or True)
            return len(transaction.query(TEXT, filter=filter))

    def read(use: Callable[[], object]) -> int:
        records[:] = [store.records(filter=rs.Filter(matching=lambda document: bool(use()) or True))]
        return len(list(records[0]))

    assert in_time(lambda: ask(lambda _: store.query(TEXT))) == 1
    uses: list[Callable[[rs.Transaction], object]] = [
        lambda transaction: transaction.get("k0"),
        lambda transaction: "k0" in transaction,
        lambda transaction: transaction.query(TEXT),
        lambda transaction: transaction.commit(),
        lambda transaction: transaction.__exit__(None, None, None),
        lambda _: store.close(),
    ]
    for use in uses:
        with pytest.raises(rs.BusyError, match="Transaction is in use by"):
            in_time(lambda: ask(use))
    assert in_time(lambda: read(lambda: store.get("k0"))) == 21
    for call in (store.close, lambda: next(records[0])):
        with pytest.raises(rs.BusyError, match="Records is in use by"):
            in_time(lambda: read(call))
    assert len(store) == 21


@pytest.mark.parametrize("holder", ["filter", "records", "pairs"])
def test_a_store_in_a_cycle_is_freed(path: Path, schema: rs.Schema, holder: str) -> None:
    class Seen:
        def __init__(self) -> None:
            self.hidden = {"b"}
            self.store = rs.Store.open_or_create(path, schema, wait=0)
            self.store.insert("a", TEXT)
            filter = rs.Filter(matching=lambda document: document.key not in self.hidden)
            holders: dict[str, Callable[[], object]] = {
                "filter": lambda: filter,
                "records": lambda: self.store.records(filter=filter),
                "pairs": lambda: self.store.pairs(progress=lambda _: bool(self.hidden)),
            }
            self.held = holders[holder]()

    seen = Seen()
    gc.collect()
    assert "a" in seen.store
    del seen
    gc.collect()
    rs.Store.open(path, wait=5).close()


def test_upkeep(store: rs.Store, path: Path, tmp_path: Path) -> None:
    documents = texts(200)
    store.insert_many(documents, [f"k{i}" for i in range(200)])
    told: list[rs.Progress] = []
    assert store.check(progress=told.append)
    assert told and told[-1].unit in {"documents", "postings"}
    assert store.stats().documents == 200
    assert store.backup(tmp_path / "copy.rsm").documents == 200
    assert store.export(tmp_path / "stream").documents == 200
    with pytest.raises(FileExistsError):
        store.export(tmp_path / "stream")
    store.close()
    assert rs.check(path).documents == 200
    assert rs.compact(path).size_after_bytes > 0
    report = rs.reband(path, threshold=0.5)
    assert report.schema.minhash is not None and report.schema.minhash.threshold == 0.5
    with rs.Store.open(path) as looser, rs.Store.open(tmp_path / "copy.rsm") as copy:
        assert list(looser) == list(copy)
        with pytest.raises(rs.ImportStoppedError):
            looser.import_(tmp_path / "stream")
        assert looser.import_(tmp_path / "stream", existing_keys="skip").skipped == 200
    becomes_exact(path, documents, report.schema)
    assert rs.repair(path, tmp_path / "repaired.rsm").is_complete
    with pytest.raises(rs.StoppedError):
        rs.check(path, progress=lambda progress: False)
    with pytest.raises(ZeroDivisionError):
        rs.check(path, progress=lambda progress: 1 / 0)


def test_pairs_and_clusters_say_how_far_they_are(store: rs.Store) -> None:
    store.insert_many(texts(300))
    told: list[rs.Progress] = []
    pairs = store.pairs(progress=told.append)
    found = list(pairs)
    assert found and told[-1].done == told[-1].total == store.schema.minhash.bands  # type: ignore[union-attr]
    assert {step.unit for step in told} == {"lanes"}
    told.clear()
    assert len(store.clusters(progress=told.append)) and told[-1].done == told[-1].total
    assert list(rs.pairs(texts(50), store.schema, progress=told.append))
    with pytest.raises(rs.StoppedError):
        list(store.pairs(progress=lambda progress: False))
    with pytest.raises(ZeroDivisionError):
        list(store.pairs(progress=lambda progress: 1 / 0))



def test_progress_is_drawn_if_there_is_tqdm(
    store: rs.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tqdm")
    store.insert_many(texts(300))
    drawn = io.StringIO()
    with rs.progress_bar(file=drawn, mininterval=0) as progress:
        store.clusters(progress=progress)
        store.check(progress=progress)
    assert "comparing documents: 100%" in drawn.getvalue() and "checking" in drawn.getvalue()
    with rs.progress_bar(disable=True) as progress:
        store.clusters(progress=progress)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with rs.progress_bar() as progress:
        assert len(store.clusters(progress=progress))


def test_every_name_has_a_docstring() -> None:
    missing = []
    for module in (rs, rs.datasketch, rs.exact, rs.errors):
        for name in module.__all__:
            named = getattr(module, name)
            if inspect.isclass(named) or callable(named):
                missing += [name] if not inspect.getdoc(named) else []
            if inspect.isclass(named):
                # Fields of dataclasses are told of in the docstring of their class.
                own = {n: v for n, v in vars(named).items() if not n.startswith("_")}
                for field in getattr(named, "__dataclass_fields__", ()):
                    own.pop(field, None)
                missing += [f"{name}.{n}" for n, value in own.items() if not inspect.getdoc(value)]
    assert missing == []


def test_shards_become_one(store: rs.Store, tmp_path: Path) -> None:
    documents = texts(300, seed=14)
    keys = [f"k{i}" for i in range(300)]
    store.insert_many(documents, keys)
    paths = []
    for start in range(0, 300, 100):
        paths.append(tmp_path / f"shard-{start}")
        end = start + 100
        rs.bulk_build(paths[-1], zip(keys[start:end], documents[start:end]), store.schema)
    assert rs.merge(tmp_path / "all", paths).documents == 300
    with rs.Store.open(tmp_path / "all") as merged:
        assert list(merged) == keys
        assert [(p.a, p.b) for p in merged.pairs()] == [(p.a, p.b) for p in store.pairs()]
    with pytest.raises(rs.RepeatedKeyError):
        rs.merge(tmp_path / "twice", [paths[0], paths[0]])


def test_open(path: Path, schema: rs.Schema, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        rs.Store.open(path)
    assert isinstance(missing.value, rs.NotFoundError) and str(path) in str(missing.value)
    with rs.Store.open_or_create(path, schema) as store:
        store.insert("a", TEXT)
        with pytest.raises(rs.LockedError, match=r"several-processes\.md"):
            rs.Store.open(path, wait=0)
    with pytest.raises(FileExistsError):
        rs.Store.create(path, schema)
    other = rs.Schema(text=rs.Text.words(3), minhash=rs.MinHash(64))
    with pytest.raises(rs.InvalidParameterError):
        rs.Store.open_or_create(path, other)
    with rs.Store.open(path, read_only=True) as reader:
        assert list(reader) == ["a"]
        with pytest.raises(rs.ReadOnlyError):
            reader.insert("b", TEXT)
    with pytest.raises(rs.ClosedError):
        reader.get("a")
    (tmp_path / "text").write_text("something else")
    with pytest.raises(rs.NotAStoreError):
        rs.Store.open(tmp_path / "text")
    with pytest.raises(rs.SignatureMismatchError), rs.Store.open(path) as store:
        store.insert("b", other.sketch(TEXT))


def test_every_error_of_the_library_has_an_exception() -> None:
    source = Path(__file__).parents[2] / "src" / "error.rs"
    mapping = Path(__file__).parents[1] / "src" / "errors.rs"
    if not source.exists():
        pytest.skip("the source of the library is not beside this")
    kinds = source.read_text().split("pub enum Error {")[1].split("\nimpl")[0]
    mapped = mapping.read_text()
    for line in kinds.splitlines():
        name = line.strip().rstrip(",{ (").split("(")[0]
        if line.startswith("    ") and line[4].isupper():
            assert f"Error::{name}" in mapped, name
    for name in rs.errors.__all__:
        assert issubclass(getattr(rs, name), rs.ResemblanceError)
        assert getattr(rs, name).__doc__


def test_columns_of_pairs_are_those_of_the_schema() -> None:
    """Also of no pairs at all."""
    similar, distant = rs.MinHash(64, threshold=0.5), rs.SimHash(64, max_distance=3)
    for expected, schema in (
        (["a", "b", "similarity"], rs.Schema(text=rs.Text.words(2), minhash=similar)),
        (["a", "b", "distance"], rs.Schema(text=rs.Text.words(2), simhash=distant)),
        (["a", "b", "similarity", "distance"], rs.Schema(text=rs.Text.words(2), minhash=similar, simhash=distant)),
    ):
        for documents in ([], ["one two three"], ["one two three four", "one two three four"]):
            store = rs.Store.in_memory(schema)
            store.insert_many(documents)
            for pairs in (store.pairs(), store.snapshot().pairs(threshold=None), rs.pairs(documents, schema)):
                arrays = pairs.arrays()
                assert list(arrays) == expected
                assert {len(column) for column in arrays.values()} == {len(documents) // 2}
                assert [str(column.dtype) for column in arrays.values()][:2] == ["uint64", "uint64"]


def test_close_closes(path: Path, schema: rs.Schema) -> None:
    """Also beside snapshots, half-read iterators and an open transaction; these say that they are closed."""
    documents = texts(400)
    store = rs.Store.create(path, schema)
    store.insert_many(documents * 3, [f"k{n}" for n in range(1200)])
    snapshot, pairs, records = store.snapshot(), store.pairs(), store.records()
    old_pairs, clusters, finished = store.snapshot().pairs(), store.clusters(), list(store.pairs())
    next(pairs), next(records), next(old_pairs)
    transaction = store.transaction()
    transaction.insert("rolled back", "some text")
    store.close()
    store.close()
    with rs.Store.open(path) as again:
        assert len(again) == 1200 and "rolled back" not in again
    for use in (
        lambda: len(snapshot),
        lambda: snapshot.query(TEXT),
        lambda: snapshot.candidates(TEXT),
        lambda: list(pairs),
        lambda: list(old_pairs),
        lambda: list(records) if len(list(records)) else None,
        lambda: clusters[0].keys,
        lambda: transaction.commit(),
        lambda: store.query(TEXT),
    ):
        with pytest.raises(rs.ClosedError, match="closed"):
            use()
    assert len(clusters) and clusters[0].ids and finished
    assert "closed" in repr(snapshot)
    with store.open(path) as store, store.snapshot() as snapshot:
        assert len(snapshot) == 1200
    with pytest.raises(rs.ClosedError):
        len(snapshot)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not show the memory of a process")
def test_half_read_pairs_take_no_memory(store: rs.Store) -> None:
    """A thread finds pairs. Its stack goes when the pairs are dropped."""
    store.insert_many(["the same words in both"] * 50)

    def pages() -> int:
        return int(Path("/proc/self/statm").read_text().split()[0])

    for round in range(2):
        before = pages()
        for _ in range(300):
            next(store.pairs())
    assert (pages() - before) * 4_096 < 200 << 20


def test_relative_paths_last(schema: rs.Schema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may change its folder while objects are open. Others of the same name are not touched."""
    (tmp_path / "later").mkdir()
    rs.Store.create(tmp_path / "later" / "s.rsm", schema).close()
    monkeypatch.chdir(tmp_path)
    store, other = (rs.Store.create(name, schema) for name in ("s.rsm", "other.rsm"))
    build = rs.BulkBuild("b.rsm", schema)
    decider = rs.Deduplicator(schema, ".", memory_bytes=1 << 20)
    monkeypatch.chdir("later")
    store.insert_many(texts(50))
    build.insert_many(texts(50))
    decider.decide_many(texts(50))
    assert other.stats().file_bytes > 0
    assert build.finish().documents == 50
    for opened in (store, other, decider):
        opened.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.rsm", "later", "other.rsm", "s.rsm"]
    assert len(rs.Store.open("s.rsm")) == 0 and len(rs.Store.open("../s.rsm")) == 50


def test_a_lock_of_this_process_is_named(path: Path, schema: rs.Schema) -> None:
    store = rs.Store.create(path, schema)
    store.insert_many(texts(400) * 3)
    snapshots, pairs = [store.snapshot(), store.snapshot()], store.pairs()
    with pytest.raises(rs.LockedError, match=r"this process, which has not closed: Pairs, Snapshot \(2\), Store;"):
        rs.Store.open(path)
    link = path.with_name("link.rsm")
    link.symlink_to(path)
    with pytest.raises(rs.LockedError, match="this process"):
        rs.Store.open(link, wait=0)
    del store, pairs
    with pytest.raises(rs.LockedError, match=r"closed: Snapshot \(2\);"):
        rs.Store.open(path, wait=0)
    snapshots[0].close()
    with pytest.raises(rs.LockedError, match="closed: Snapshot;"):
        rs.Store.open(path, wait=0)
    snapshots[1].close()
    rs.Store.open(path).close()
    program = f"import resemblance as rs; store = rs.Store.open({str(path)!r}); print('open', flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == b"open\n"
    with pytest.raises(rs.LockedError, match="in use by") as locked:
        rs.Store.open(path, wait=0.1)
    if sys.platform == "linux":
        assert f"(process {child.pid})" in locked.value.holder
    with rs.Store.open(path, read_only=True) as reader:
        assert rs.check(path).while_written
        assert "later" not in reader
    child.communicate(b"\n")


INSERTS = """
import sys
import resemblance as rs

with rs.Store.open(sys.argv[1], wait=60) as store:
    print("open", flush=True)
    input()
    texts = [" ".join(f"w{n * k % 991}" for k in range(1, 40)) for n in range(50)]
    for n, text in enumerate(texts):
        if store.insert_if_new(f"{sys.argv[2]}/{n}", text).is_new:
            print(n)
"""


def test_several_processes_write_in_turns(path: Path) -> None:
    schema = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(128, threshold=0.7))
    rs.Store.create(path, schema, shared_writers=True).close()
    with rs.Store.open(path, read_only=True) as reader:
        children = [
            subprocess.Popen(
                [sys.executable, "-c", INSERTS, str(path), str(number)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(4)
        ]
        for child in children:
            assert child.stdout is not None and child.stdout.readline() == "open\n"
        # All have it open for writing, and begin together.
        for child in children:
            assert child.stdin is not None
            child.stdin.write("\n")
            child.stdin.flush()
        new = [line for child in children for line in child.communicate()[0].split()]
        assert all(child.returncode == 0 for child in children)
        assert len(new) == len(set(new)) == len(reader) > 0
    assert rs.check(path)
    with rs.Store.open(path, shared_writers=False):
        with pytest.raises(rs.LockedError):
            rs.Store.open(path, wait=0)
    with rs.Store.open(path, shared_writers=True) as first, rs.Store.open(path) as second:
        assert first.evict(keep_newest=1).evicted == len(new) - 1
        assert len(second) == len(first) == 1
    with pytest.raises(rs.InvalidParameterError, match="wait"):
        rs.Store.open(path, wait=-1)


def test_every_answer_is_pickled_and_copied(path: Path) -> None:
    schema = rs.Schema(text=rs.Text.words(1), minhash=rs.MinHash(64), clusters=True)
    store = rs.Store.create(path, schema)
    answers: list[object] = [store.insert_if_new("a", TEXT, payload=b"A"), store.insert_if_new("b", TEXT)]
    answers += [store.insert_if_new("a", TEXT), store.upsert(b"\xff", TEXT), store.upsert(b"\xff", TEXT + " more")]
    answers += [store.query(TEXT, payloads=True), store.query("nothing of that kind"), store.nearest(TEXT, 5)]
    clusters, kept = store.clusters(), store.members(0)
    answers += [clusters, clusters[0], kept, *store.pairs(), *store.records(), *store.cluster_changes(0)]
    answers += [store.check(), store.stats()]
    travelled = [pickle.loads(pickle.dumps(answer)) for answer in answers]
    for answer, again in zip(answers, travelled):
        for other in (again, copy.copy(answer), copy.deepcopy(answer)):
            assert other == answer and repr(other) == repr(answer) and type(other) is type(answer)
            assert not other != answer and other != 1
    matches = travelled[5]
    assert isinstance(matches, rs.Matches)
    described = ("recall", "certainty", "scope", "candidates", "budget_exceeded")
    assert [getattr(matches, name) for name in described] == [getattr(answers[5], name) for name in described]
    assert matches != store.query("nothing of that kind") and matches.to_arrow() == store.query(TEXT, payloads=True).to_arrow()
    store.close()
    # Keys were read before the store was closed. In this process they are not kept.
    again = pickle.loads(pickle.dumps(travelled))
    for found in (again[8], again[9], again[10]):
        assert isinstance(found, (rs.Clusters, rs.Cluster))
    assert again[8][0].keys == again[9].keys == ["a", "\udcff"] and again[8].to_arrow()["key"].to_pylist() == [b"a", b"\xff"]
    assert again[8].left_out == clusters.left_out and again[8].certainty == clusters.certainty
    assert hash(again[9]) == hash(clusters[0])
    with pytest.raises(rs.ClosedError):
        pickle.dumps(clusters)


def test_an_exception_of_progress_loses_no_pairs(store: rs.Store) -> None:
    store.insert_many(["the same words in both"] * 60)
    raised, found = 0, set()

    def progress(_progress: object) -> None:
        raise KeyError("mine")

    pairs = store.pairs(progress=progress)
    while True:
        try:
            found.add((pair := next(pairs)).a * 60 + pair.b)
        except KeyError:
            raised += 1
        except StopIteration:
            break
    assert raised > 0 and len(found) == 60 * 59 // 2 and pairs.left_out is not None


def test_every_error_is_pickled(path: Path, schema: rs.Schema) -> None:
    def raised(call: Callable[[], object]) -> BaseException:
        with pytest.raises(rs.ResemblanceError) as caught:
            call()
        return caught.value

    store = rs.Store.create(path, schema)
    store.insert("a", TEXT)
    calls: list[Callable[[], object]] = [
        lambda: rs.Store.open(path, wait=0),
        lambda: rs.Store.create(path, schema),
        lambda: rs.Store.open(path.with_name("none.rsm")),
        lambda: store.insert("a", TEXT),
        lambda: store.query(TEXT, threshold=7),
    ]
    for error in map(raised, calls):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error) and vars(again) == vars(error)


def test_answers_travel_and_become_columns(store: rs.Store, schema: rs.Schema) -> None:
    pa, pd, pl, duckdb = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars", "duckdb"))
    store.insert_many([TEXT, TEXT + " more", "other words than these"], ["a", b"\xff", None], payloads=[b"A", b"", b""])
    for made in (*store.query(TEXT, payloads=True), *store.query(TEXT), *store.records()):
        again = pickle.loads(pickle.dumps(made))
        assert again == made and repr(again) == repr(made) and type(again) is type(made)
        assert (again.key_bytes, again.payload) == (made.key_bytes, made.payload)
    # A key that is not UTF-8 makes bytes of its column; without such a key it has strings.
    clusters, pairs, matches = store.clusters(), list(store.pairs()), store.query(TEXT, payloads=True)
    members = {"cluster": [0, 0], "id": [0, 1], "key": [b"a", b"\xff"]}
    assert clusters.to_arrow().to_pydict() == pl.DataFrame(clusters).to_dict(as_series=False) == members
    assert {name: column.tolist() for name, column in clusters.arrays().items()} | {"key": members["key"]} == members
    assert pd.DataFrame(clusters).to_dict("list") == {"ids": [[0, 1]], "keys": [["a", "\udcff"]]}
    of_pairs = {name: [getattr(pair, name) for pair in pairs] for name in
                ("a", "b", "key_a", "key_b", "similarity", "is_exact", "distance")}  # fmt: skip
    as_bytes = {"key_a": [b"a"], "key_b": [b"\xff"]}
    assert store.pairs().to_arrow().to_pydict() == of_pairs | as_bytes
    assert pl.DataFrame(store.pairs()).to_dict(as_series=False) == of_pairs | as_bytes
    fields = ("id", "key", "similarity", "is_exact", "distance", "stamp", "payload")
    of_matches = {name: [getattr(match, name) for match in matches] for name in fields}
    assert matches.to_arrow().to_pydict() == of_matches | {"key": [b"a", b"\xff"]}
    assert pl.DataFrame(matches).columns == list(fields)
    assert duckdb.sql("select id, key from matches").fetchall() == [(0, b"a"), (1, b"\xff")]
    # pandas takes no strings that are not UTF-8.
    store.discard(b"\xff")
    store.insert("b", TEXT)
    of_pairs = {name: [getattr(pair, name) for pair in store.pairs()] for name in of_pairs}
    for rows in (list(store.pairs()), store.pairs()):
        assert pd.DataFrame(rows).drop(columns="distance").to_dict("list").items() <= of_pairs.items()
    assert list(pd.DataFrame(store.query(TEXT))) == list(fields)
    assert list(pd.DataFrame(store.records())) == ["id", "key", "stamp", "payload"]
    store.discard("b")
    for empty in (store.pairs(), store.clusters(), store.query("nothing of the kind")):
        table = pa.table(empty)
        assert table.num_rows == 0 and pa.string() in table.schema.types
    assert list(clusters[0][:1]) == [0] and clusters[0:][0].ids == [0, 1] and matches[1:] == [matches[1]]


def test_many_sets_of_features_are_sketched_at_once(schema: rs.Schema) -> None:
    sets: list[list[str | bytes]] = [[f"f{n * k}" for k in range(n % 40)] + [b"\xff"] * (n % 2) for n in range(3000)]
    many = schema.sketch_features_many((features for features in sets), threads=3)
    assert list(many) == [schema.sketch_features(features) for features in sets]
    assert len(schema.sketch_features_many([])) == 0
    with pytest.raises(TypeError, match="str or bytes"):
        schema.sketch_features_many([["a", 1]])  # type: ignore[list-item]
    # One string is no set of its characters.
    for text in ("abc", b"abc"):
        for call in (schema.sketch_features, lambda s: schema.sketch_features_many([s]), lambda s: rs.exact.jaccard(s, s)):
            with pytest.raises(TypeError, match="features: found (str|bytes), expected a list"):
                call(text)  # type: ignore[arg-type]


def test_values_that_do_not_fit_name_their_parameter(store: rs.Store) -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"stamps": ["x"]}, "stamps: "),
        ({"stamps": [-1]}, "stamps: "),
        ({"payloads": ["x"]}, "payloads: "),
        ({"payloads": [[1, 2]]}, "payloads: "),
        ({"keys": [[3]]}, "key: found list at position 0, expected a string, a number or a time"),
    ]
    for values, message in refused:
        with pytest.raises((TypeError, OverflowError), match=message):
            store.insert_many(["a"], **values)
    with pytest.raises(TypeError, match="stamps: .* at position 3000"):
        store.insert_many(["a"] * 3_001, stamps=[*range(3_000), "x"])  # type: ignore[list-item]
    one, many = rs.Signature, rs.Signatures
    array: Any = np.ones((2, 3))
    misfits: list[tuple[Callable[[], object], str]] = [
        (lambda: many.from_minhash([[1]]), "values: found <class 'list'>, expected a NumPy array of two dimensions"),  # type: ignore[arg-type]
        (lambda: many.from_minhash(array), r"found an array of type float64 and shape \(2, 3\), .*asarray"),
        (lambda: many.from_minhash(array[0].astype(np.uint32)), r"values: .* shape \(3,\), expected .* two dimensions"),
        (lambda: one.from_minhash(array), "values: found an array of type float64"),
        (lambda: one.from_minhash([2**32]), "values: found .*, expected whole numbers of 32 bits"),
        (lambda: one.from_minhash([-1]), "values: found .*, expected whole numbers of 32 bits"),
        (lambda: one.from_minhash(np.arange(16, dtype=np.uint32).tobytes()), "values: found <class 'bytes'>"),
        (lambda: one.from_bottom_k(16, bytearray(128)), "hashes: found <class 'bytearray'>, expected whole numbers of 64"),
        (lambda: one.from_bottom_k(16, [2**64]), "hashes: found <class 'list'>, expected whole numbers of 64"),
        (lambda: many.from_simhash([1.5]), "fingerprint: found <class 'float'>, expected an integer"),  # type: ignore[list-item]
        (lambda: many.from_simhash(array), "fingerprints: found an array of type float64"),
        (lambda: one.from_simhash(1.5), "fingerprint: found <class 'float'>, expected an integer"),  # type: ignore[arg-type]
        (lambda: one.from_simhash("xyz"), 'fingerprint: found "xyz", expected 8, 16, 32 or 64 hexadecimal digits$'),
        (lambda: one.from_simhash(2**64), "fingerprint: found 18446744073709551616, expected an integer of 64 bits"),
        (lambda: one.from_simhash(1, 576), "bits: found 576, expected .* 256; compute a larger hash again"),
        (lambda: many.from_simhash(["f" * 144]), r"\(144 digits\), expected .*; compute a larger hash again"),
        (lambda: many.from_simhash(["f" * 15], 64), r"\(15 digits\), expected 16 .*; pad a shorter hash with leading zeros"),
        (lambda: many.from_bytes(store.schema, ["a"]), "rows: found <class 'str'>, expected bytes"),  # type: ignore[list-item]
    ]
    for make, message in misfits:
        with pytest.raises(rs.InvalidParameterError, match=message) as raised:
            make()
        assert raised.value.parameter and raised.value.found and raised.value.expected
    assert "payload=b''" in str(inspect.signature(rs.Store.insert))
    assert "payload=b''" in str(inspect.signature(rs.Transaction.upsert))


def test_arrays_of_no_signatures_have_columns(schema: rs.Schema) -> None:
    none = schema.sketch_many([])
    for empty in (none, none[:0], schema.sketch_many(["a"])[1:], rs.Signatures.from_minhash(np.zeros((0, 128), np.uint32))):
        assert empty.minhash is not None and empty.minhash.shape == np.asarray(empty).shape == (0, 128)
        assert empty.simhash is None and len(pickle.loads(pickle.dumps(empty))) == 0
        assert pickle.loads(pickle.dumps(empty)).minhash.shape == (0, 128)
    both = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64), simhash=rs.SimHash())
    fingerprints = rs.Schema(text=rs.Text.words(2), simhash=rs.SimHash())
    for empty in (fingerprints.sketch_many([]), rs.Signatures.from_simhash(np.zeros(0, np.uint64))):
        assert empty.minhash is None
        assert empty.simhash is not None and empty.simhash.shape == np.asarray(empty).shape == (0,)
    assert both.sketch_many([]).minhash.shape == (0, 64)  # type: ignore[union-attr]
    assert both.sketch_many([]).simhash.shape == (0,)  # type: ignore[union-attr]


def test_errors_of_files_name_them(store: rs.Store, tmp_path: Path) -> None:
    existing, missing, inside = tmp_path / "existing", tmp_path / "missing", tmp_path / "existing" / "x"
    existing.write_text("kept")
    for call in (store.export, store.backup):
        with pytest.raises(rs.AlreadyExistsError, match=re.escape(str(existing))):
            call(existing)
        with pytest.raises(rs.ResemblanceError, match=re.escape(str(inside))):
            call(inside)
    with pytest.raises(rs.NotFoundError, match=re.escape(str(missing))):
        store.import_(missing)
    assert existing.read_text() == "kept"


def test_fingerprints_of_every_form_are_the_same_bits() -> None:
    one, many = rs.Signature.from_simhash, rs.Signatures.from_simhash
    for bits in (32, 64, 128, 256):
        for number in (0, 5, 2 ** (bits - 1), 2**bits - 1):
            signed = number - (number >> (bits - 1) << bits)
            forms = [one(number, bits), one(signed, bits), one(f"{number:0{bits // 4}x}")]
            forms += [*many([number, signed], bits), *many([f"{number:0{bits // 4}x}"])]
            assert {(it.simhash, it.simhash_bits) for it in forms} == {(number, bits)}
        for outside in (-(2 ** (bits - 1)) - 1, 2**bits):
            with pytest.raises(rs.InvalidParameterError):
                one(outside, bits)
        wide = many([f"{number:0{bits // 4}x}" for number in range(3)])
        assert pickle.loads(pickle.dumps(wide)) == wide
    # As SQL and Arrow keep them, and as programs print them.
    numbers = [2**64 - 1, 5, 2**63]
    signed = np.array(numbers, dtype=np.uint64).view(np.int64)
    digits = [f"{number:016x}" for number in numbers]
    expected = many(np.array(numbers, dtype=np.uint64))
    for form in (signed, signed.tolist(), digits, np.array(digits)):
        assert many(form) == expected
    pyarrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    for values in (signed, signed.view(np.uint64), digits):
        assert many(pyarrow.array(values)) == many(polars.Series(values)) == expected
    with pytest.raises(rs.InvalidParameterError, match="found a column of Float64, expected 64-bit integers"):
        many(pyarrow.array([1.5]))
    with pytest.raises(rs.InvalidParameterError, match="found null, expected a fingerprint in each row"):
        many(pyarrow.array([1, None]))


def test_matches_and_clusters_have_the_methods_of_sequences() -> None:
    text = " ".join(f"word{number}" for number in range(50))
    schema = rs.Schema(text=rs.Text.words(5), minhash=rs.MinHash(128))
    with rs.Store.in_memory(schema) as store:
        store.insert_many([text, text, "other words than these"], keys=["a", "b", "c"])
        for answers in (store.query(text), store.clusters(), next(iter(store.clusters()))):
            assert len(answers) > 0
            for position, answer in enumerate(answers):
                assert answers.index(answer) == position
                assert answers.count(answer) == 1
            assert answers.count(None) == 0
            with pytest.raises(ValueError):
                answers.index(None)


CONSUMER = """
import resemblance as rs

schema = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64))
with rs.Store.open_or_create("store.rsm", schema) as store:
    position = store.position("pages-0")
    start = 0 if position is None else int(position) + 1
    print("begun", flush=True)
    for first in range(start, 3_000, 20):
        offsets = range(first, min(first + 20, 3_000))
        texts = [f"message {n} of {n * n} and {n + 7}" for n in offsets]
        position = ("pages-0", str(offsets[-1]).encode())
        store.insert_many(texts, [f"m/{n}" for n in offsets], position=position)
"""


def test_a_consumer_that_is_killed_continues_behind_its_position(path: Path) -> None:
    """A repeated message would be an error, because its key would be in the store."""
    chance = random.Random(5)
    code = None
    for kill in range(40):
        command = [sys.executable, "-c", CONSUMER]
        consumer = subprocess.Popen(command, cwd=path.parent, stdout=subprocess.PIPE)
        assert consumer.stdout is not None and consumer.stdout.readline() == b"begun\n"
        if kill < 6:
            time.sleep(chance.random() * 0.2)
            consumer.kill()
        code = consumer.wait()
        consumer.stdout.close()
        with rs.Store.open(path) as store:
            position = store.position("pages-0")
            assert len(store) == (0 if position is None else int(position) + 1)
        if code == 0:
            break
    assert code == 0
    with rs.Store.open(path) as store:
        assert len(store) == 3_000
        with pytest.raises(rs.InvalidParameterError, match="name"):
            store.insert_many(["a text"], ["new"], position=("", b"1"))
        assert "new" not in store
        store.set_position("pages-0", None)
        assert store.position("pages-0") is None
