"""Whole corpora: every form of input, against an oracle and against the tool."""

from __future__ import annotations

import gzip
import json
import math
import os
import pickle
import sqlite3
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import resemblance as rs
from conftest import jaccard, near_pairs, shingles, texts, tool_lines

DOCUMENTS = texts(200, seed=21)
KEYS = [f"k{i}" for i in range(200)]


def _arrow(kind: str) -> Callable[[], Any]:
    def make() -> Any:
        pa = pytest.importorskip("pyarrow")
        table = pa.table({"id": KEYS, "text": DOCUMENTS})
        if kind == "chunks":
            return pa.concat_tables([table.slice(0, 70), table.slice(70)])
        if kind == "large":
            return table.set_column(1, "text", table["text"].cast(pa.large_string()))
        if kind == "view":
            return table.set_column(1, "text", table["text"].cast(pa.string_view()))
        return table["text"] if kind == "column" else table.to_reader(max_chunksize=33)

    return make


def _frame(package: str) -> Callable[[], Any]:
    def make() -> Any:
        return pytest.importorskip(package).DataFrame({"id": KEYS, "text": DOCUMENTS})

    return make


def _duckdb() -> Any:
    duckdb, pa = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    rows = pa.table({"id": KEYS, "text": DOCUMENTS, "row": range(200)})
    return duckdb.from_arrow(rows).order("row").project("id, text")


def _datasets(kind: str) -> Callable[[], Any]:
    def make() -> Any:
        Dataset = pytest.importorskip("datasets").Dataset
        rows = Dataset.from_dict({"id": KEYS[::-1], "text": DOCUMENTS[::-1]})
        # Rows in the order of a list of indices, as after `shuffle` or `select`.
        rows = rows.select(range(199, -1, -1))
        return rows.to_iterable_dataset() if kind == "stream" else rows.with_format(None if kind == "None" else kind)

    return make


FORMS: dict[str, Callable[[], Any]] = {
    "list": lambda: DOCUMENTS,
    "generator": lambda: (text for text in DOCUMENTS),
    "tuples": lambda: zip(KEYS, DOCUMENTS),
    "mappings": lambda: ({"id": k, "text": t} for k, t in zip(KEYS, DOCUMENTS)),
    "numpy": lambda: np.array(DOCUMENTS, dtype=object),
    "pandas": _frame("pandas"),
    "pandas column": lambda: _frame("pandas")()["text"],
    "polars": _frame("polars"),
    "polars column": lambda: _frame("polars")()["text"],
    "polars lazy": lambda: _frame("polars")().lazy(),
    "columns": lambda: {"id": KEYS, "text": DOCUMENTS},
    "pandas categories": lambda: _frame("pandas")().astype("category"),
    "arrow dictionary": lambda: _arrow("column")().dictionary_encode(),
    "duckdb": _duckdb,
    **{f"datasets {kind}": _datasets(kind) for kind in ("None", "arrow", "numpy", "stream")},
    **{f"arrow {kind}": _arrow(kind) for kind in ("column", "reader", "chunks", "large", "view")},
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_forms_of_a_corpus(form: Callable[[], Any], schema: rs.Schema, path: Path) -> None:
    has_keys = len(getattr(form(), "shape", (0,))) > 1
    key = "id"
    expected = [(p.a, p.b, p.similarity) for p in rs.pairs(DOCUMENTS, schema, exact=False)]
    assert expected
    assert [(p.a, p.b, p.similarity) for p in rs.pairs(form(), schema, exact=False)] == expected
    found = rs.dedup(form(), schema, key=key)
    assert found.positions.tolist() == rs.dedup(DOCUMENTS, schema).positions.tolist()
    if has_keys:
        assert [d.key for d in found.duplicates] == [f"k{d.position}" for d in found.duplicates]
        assert [d.survivor_key for d in found.duplicates] == [
            f"k{d.survivor}" for d in found.duplicates
        ]
    assert rs.bulk_build(path, form(), schema, key=key).documents == 200
    with rs.Store.open(path) as store:
        if has_keys:
            assert list(store) == KEYS
        assert [(p.a, p.b, p.similarity) for p in store.pairs()] == expected


def test_a_schema_goes_to_the_processes_of_datasets(schema: rs.Schema) -> None:
    rows = pytest.importorskip("datasets").Dataset.from_dict({"text": DOCUMENTS})

    def add(batch: dict[str, list[str]]) -> dict[str, list[bytes]]:
        return {"signature": schema.sketch_many(batch["text"], threads=1).to_bytes()}

    rows = rows.map(add, batched=True, batch_size=50, num_proc=2)
    signatures = rs.Signatures.from_bytes(schema, list(rows["signature"]))
    assert signatures.to_bytes() == schema.sketch_many(DOCUMENTS).to_bytes()


def test_signatures_are_a_corpus(schema: rs.Schema) -> None:
    signatures = schema.sketch_many(DOCUMENTS)
    by_text = [(p.a, p.b) for p in rs.pairs(DOCUMENTS, schema, exact=False)]
    assert [(p.a, p.b) for p in rs.pairs(signatures, schema)] == by_text
    with pytest.raises(rs.InvalidParameterError):
        rs.pairs(signatures, schema, exact=True)


def test_exact_pairs_are_those_of_brute_force(schema: rs.Schema) -> None:
    documents = texts(300, seed=8)
    expected = near_pairs(documents, 0.7)
    found = list(rs.pairs(documents, schema))
    assert all(pair.is_exact for pair in found)
    for pair in found:
        exact = jaccard(shingles(documents[pair.a]), shingles(documents[pair.b]))
        assert pair.similarity == pytest.approx(exact)
    pairs = {(pair.a, pair.b) for pair in found}
    assert pairs <= expected
    # The schema promises 0.95 at the threshold, and more above it.
    assert len(pairs) >= 0.95 * len(expected)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are not listed")
def test_half_read_pairs_that_are_dropped_have_no_files(schema: rs.Schema) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(150):
        assert next(rs.pairs(DOCUMENTS, schema, exact=False)).a < 200
    deadline = time.monotonic() + 30
    # The thread that finds pairs ends a moment later.
    while len(os.listdir("/proc/self/fd")) - before >= 20:
        assert time.monotonic() < deadline, "descriptors are left"
        time.sleep(0.05)


def test_exact_similarities_are_those_of_sets() -> None:
    weighted = rs.Schema(text=rs.Text.words(1), minhash=rs.MinHash(64, kind="weighted"))
    texts = ["a b c", "a a a b c"]
    for search in (rs.pairs, rs.clusters, rs.dedup):
        with pytest.raises(rs.InvalidParameterError, match="exact: found True"):
            search(texts, weighted, exact=True)
        search(texts, weighted)


def test_dedup_is_the_policy_that_it_names(schema: rs.Schema) -> None:
    documents = texts(300, seed=8)
    signatures = schema.sketch_many(documents)
    found = rs.dedup(documents, schema, exact=False)
    kept: list[int] = []
    for position in range(300):
        near = [i for i in kept if signatures[i].jaccard(signatures[position]) >= 0.7]
        assert found.kept[position] or near
        if found.kept[position]:
            kept.append(position)
    for duplicate in found.duplicates:
        assert duplicate.survivor is not None and found.kept[duplicate.survivor]
        estimate = signatures[duplicate.survivor].jaccard(signatures[duplicate.position])
        assert duplicate.similarity == pytest.approx(estimate) and estimate >= 0.7
    assert found.select(documents) == [documents[i] for i in found.positions]

    by_cluster = rs.dedup(documents, schema, policy="cluster", exact=False)
    firsts = {c.ids[0]: set(c.ids[1:]) for c in rs.clusters(documents, schema, exact=False)}
    dropped = {i for rest in firsts.values() for i in rest}
    assert set(np.flatnonzero(~by_cluster.kept).tolist()) == dropped
    assert all(d.position in firsts[d.survivor or 0] for d in by_cluster.duplicates)


@pytest.mark.parametrize("make", [list, tuple, iter, np.array, "arrow", "series"])
def test_numbers_that_decide_are_compared_exactly(schema: rs.Schema, make: Any) -> None:
    """Also those that a float does not hold: 2**53 + 1 is more than 2**53."""
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    if isinstance(make, str):
        make = pa.array if make == "arrow" else pd.Series
    least = Decimal("0.1000000000000000000001")
    rows: list[tuple[list[Any], list[int]]] = [
        ([2**53, 2**53 + 1, 2**53 - 1], [1]),
        ([-(2**53) - 1, -(2**53), -(2**53) - 2], [1]),
        ([Decimal("0.1"), least, Decimal("0.1000000000000000000000")], [1]),
        ([1, 2, 2], [1]),
        ([0.5, math.nan, 0.25], [0]),
        ([None, 0.0, None], [1]),
        ([False, True, False], [1]),
    ]
    for numbers, kept in rows:
        for policy in POLICIES:
            found = rs.dedup(["the same six words as before"] * 3, schema, policy=policy, keep=make(numbers))
            assert found.positions.tolist() == kept, numbers
    mixed: list[Any] = [2**53, float(2**53), Decimal(2**53 + 1)]
    assert rs.dedup(["the same six words"] * 3, schema, keep=mixed).positions.tolist() == [2]
    wrong: Any
    for wrong, found_in_it in (([1, "2", 3], "str at position 1"), ([1, 2], "2 numbers")):
        with pytest.raises(rs.InvalidParameterError, match=f"keep: found {found_in_it}, expected"):
            rs.dedup(["a", "b", "c"], schema, keep=wrong)


def test_dedup_loses_no_more_features_than_it_may(schema: rs.Schema) -> None:
    words = [f"w{number}" for number in range(400)]
    parts = [(0, 300), (10, 200), (0, 300), (150, 310), (320, 330), (5, 6)]
    texts = [" ".join(words[first:last]) for first, last in parts]
    features = [set(schema.features(text).tolist()) for text in texts]
    for lost, expected in ((0.0, {1: 0, 2: 0}), (0.1, {1: 0, 2: 0, 3: 0})):
        found = rs.dedup(texts, schema, lost=lost)
        assert {d.position: d.survivor for d in found.duplicates} == expected
        for d in found.duplicates:
            assert d.survivor is not None
            own, kept = features[d.position], features[d.survivor]
            assert d.held == len(own & kept) / len(own) >= 1 - lost
            assert d.covered == len(own & kept) / len(kept)
    for wrong in ({"policy": "cluster"}, {"exact": False}, {"budget": 3}, {"max_bucket": 3}):
        with pytest.raises(rs.InvalidParameterError, match="lost"):
            rs.dedup(texts, schema, lost=0.0, **wrong)
    for share in (1.0, -0.1, float("nan"), 2):
        with pytest.raises(rs.InvalidParameterError, match="^lost: found .*, expected a share"):
            rs.dedup(texts, schema, lost=share)


@pytest.mark.parametrize("containment", (None, rs.Containment(2, window=3)))
def test_dedup_drops_documents_that_a_store_holds(containment: Any, tmp_path: Path) -> None:
    text, minhash = rs.Text.words(2), rs.MinHash(128)
    schema = rs.Schema(text=text, minhash=minhash, containment=containment, exact=True)
    words = [f"w{number}" for number in range(400)]
    stored = {"a": words[:300], "b": words[200:]}
    texts = [" ".join(part) for part in (words[:298], words[40:60], ["own", *words[40:60]], words[:350])]
    store = rs.Store.create(tmp_path / "s.rsm", schema)
    store.insert_many([" ".join(part) for part in stored.values()], list(stored))
    features = [set(schema.features(text).tolist()) for text in texts]
    known = {key: set(schema.features(" ".join(part)).tolist()) for key, part in stored.items()}
    for lost in (0.0, 0.1):
        found = rs.dedup(texts, lost=lost, against=store, rejected=True)
        by_store = {d.position: d for d in found.duplicates if d.survivor is None}
        recall = found.holder_recall
        assert recall is not None and list(recall) == [1.0, 1.25, 2.0, 4.0]
        assert recall[1.0] > 0.9 and recall[4.0] < 0.1
        # The excerpt is no candidate by its bands.
        assert set(by_store) == ({0} if containment is None else {0, 1} if lost == 0 else {0, 1, 2})
        for d in by_store.values():
            own, other = features[d.position], known[str(d.survivor_key)]
            assert d.held == len(own & other) / len(own) >= 1 - lost
            assert (d.is_exact, d.rule) == (True, "contained")
        for r in found.rejected or []:
            other = known[str(r.candidate_key)] if r.candidate is None else features[r.candidate]
            own = features[r.position]
            assert r.held == len(own & other) / len(own) < 1 - lost
            assert (r.candidate is None) or found.kept[r.candidate]
        assert found.rejected or containment is None or lost > 0
        assert rs.dedup(texts, lost=lost, against=store).rejected is None
    assert rs.dedup(texts, schema, lost=0.0).holder_recall is rs.dedup(texts, against=store).holder_recall is None
    plain = rs.Store.create(tmp_path / "p.rsm", rs.Schema(text=text, minhash=minhash))
    wrong: Any
    for wrong in ({"lost": 0.0}, {"rejected": True}):
        with pytest.raises(rs.InvalidParameterError, match="against: found a store of signatures .* texts in against_texts"):
            rs.dedup(texts, against=plain, **wrong)
    for wrong in ({}, {"exact": False, "against": plain}, {"against": store}):
        with pytest.raises(rs.InvalidParameterError, match="^against_texts: "):
            rs.dedup(texts, against_texts={}, **wrong)


@pytest.mark.parametrize("policy", ("first", "representative"))
def test_dedup_compares_with_a_store_exactly(policy: Any, tmp_path: Path) -> None:
    """By the sets of an exact store, and by the texts of a store of signatures."""
    words = [f"w{number}" for number in range(400)]
    stored = {f"s{n}": " ".join(words[30 * n : 30 * n + 150]) for n in range(6)}
    texts = [" ".join(words[first : first + 150]) for first in range(0, 151, 6)]
    parts: dict[str, Any] = {"text": rs.Text.words(2), "minhash": rs.MinHash(128, threshold=0.8, recall=0.999)}
    answers = []
    for exact in (True, False):
        schema = rs.Schema(**parts, exact=exact)
        store = rs.Store.create(tmp_path / f"{exact}.rsm", schema)
        store.insert_many(stored.values(), stored.keys())
        known: Any = None if exact else list(stored.items())
        found = rs.dedup(texts, against=store, against_texts=known, rejected=True, policy=policy)
        answers.append((found.kept.tolist(), found.duplicates, found.rejected))
        assert found.texts_missing == 0
        features = {key: set(schema.features(text).tolist()) for key, text in stored.items()}
        by_store: list[Any] = [d for d in found.duplicates if d.survivor is None]
        assert len(by_store) > 5
        by_store += [r for r in found.rejected or [] if r.candidate is None]
        for d in by_store:
            own = set(schema.features(texts[d.position]).tolist())
            other = features[str(d.survivor_key if isinstance(d, rs.Duplicate) else d.candidate_key)]
            assert d.similarity == len(own & other) / len(own | other)
            assert (d.held, d.covered) == (len(own & other) / len(own), len(own & other) / len(other))
            assert (d.similarity >= 0.8) == isinstance(d, rs.Duplicate)
        if not exact:
            few = rs.dedup(texts, against=store, against_texts=known[:2], lost=0.0, policy=policy)
            assert few.texts_missing == 4 and few.holder_recall
            assert rs.dedup([], against=store, against_texts=known, lost=0.0).holder_recall == few.holder_recall
            assert {d.survivor_key for d in few.duplicates if d.survivor is None} <= {"s0", "s1"}
            held = rs.dedup(texts, against=store, against_texts=known, lost=0.0, policy=policy)
            assert len([d for d in held.duplicates if d.survivor is None]) >= 2
    assert answers[0][2] and answers[0] == answers[1]


@pytest.mark.parametrize("policy", ("first", "representative"))
def test_dedup_lists_the_candidates_it_rejected(schema: rs.Schema, policy: Any) -> None:
    words = [f"w{number}" for number in range(300)]
    documents = [" ".join(words[first : first + 200]) for first in range(0, 101, 20)]
    features = [set(schema.features(text).tolist()) for text in documents]
    found = rs.dedup(documents, schema, policy=policy, keep="last", rejected=True)
    assert found.rejected and found.duplicates == rs.dedup(documents, schema, policy=policy, keep="last").duplicates
    for r in found.rejected:
        assert r.candidate is not None and found.kept[r.candidate]
        own, kept = features[r.position], features[r.candidate]
        assert r.similarity == len(own & kept) / len(own | kept) < 0.7
    reviews = [found.review(0.7, pairs=pairs, within=0.3) for pairs in (3, 3, 1_000)]
    assert reviews[0] == reviews[1]
    assert (len(reviews[0].dropped), len(reviews[0].kept_apart)) == (2, 1)
    near = [d for d in found.duplicates if d.similarity is not None and abs(d.similarity - 0.7) < 0.3]
    assert sorted(reviews[2].dropped, key=lambda d: d.position) == near
    assert reviews[2].dropped_pairs == len(near) and reviews[2].kept_apart_pairs == len(reviews[2].kept_apart)
    assert all(pair in found.rejected for pair in reviews[2].kept_apart)
    lost = found.review(0.3, by="lost", pairs=1_000, within=0.25)
    held = [d for d in found.duplicates if d.held is not None and abs(1 - d.held - 0.3) < 0.25]
    assert held and sorted(lost.dropped, key=lambda d: d.position) == held
    with pytest.raises(rs.InvalidParameterError, match="^rejected: found a result without it"):
        rs.dedup(documents, schema).review(0.7)
    wrong: Any
    for wrong in ({"policy": "cluster"}, {"exact": False}, {"budget": 3}):
        with pytest.raises(rs.InvalidParameterError, match="^rejected: "):
            rs.dedup(documents, schema, rejected=True, **wrong)


@pytest.mark.parametrize("policy", ("first", "cluster", "representative"))
def test_dedup_has_evidence_for_each_drop(schema: rs.Schema, policy: Any, tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(300)]
    documents = [" ".join(words[first : first + 250]) for first in (0, 3, 6, 9, 12, 15, 18)]
    features = [set(schema.features(text).tolist()) for text in documents]
    found = rs.dedup(documents, schema, policy=policy)
    assert found.duplicates
    for d in found.duplicates:
        assert d.survivor is not None and d.is_exact
        own, kept = features[d.position], features[d.survivor]
        assert (d.held, d.covered) == (len(own & kept) / len(own), len(own & kept) / len(kept))
        assert d.similarity == len(own & kept) / len(own | kept)
        assert d.rule == ("similarity" if d.similarity >= 0.7 else "cluster")
    table = found.to_arrow()
    assert table["held"].to_pylist() == [d.held for d in found.duplicates]
    assert table["rule"].to_pylist() == [d.rule for d in found.duplicates]
    estimated = rs.dedup(documents, schema, policy=policy, exact=False)
    assert all(d.held is None and d.covered is None for d in estimated.duplicates)
    with rs.Store.create(tmp_path / "known.rsm", schema) as store:
        store.insert_many(documents[:1])
        against = rs.dedup(documents[:1], against=store).duplicates
    assert [(d.survivor, d.rule, d.held) for d in against] == [(None, "similarity", None)]


def test_dedup_within_a_budget_and_little_memory(schema: rs.Schema) -> None:
    documents = [f"{text} of many copies" for text in texts(40, seed=5) for _ in range(20)]
    whole = rs.dedup(documents, schema)
    small = rs.dedup(documents, schema, memory_bytes=1 << 20)
    assert small.kept.tolist() == whole.kept.tolist() and small.duplicates == whole.duplicates
    assert whole.budget_exceeded == 0
    few = rs.dedup(documents, schema, budget=1)
    assert set(whole.positions) <= set(few.positions) and not any(d.is_exact for d in few.duplicates)
    many = rs.dedup(documents, schema, budget=10_000)
    assert many.kept.tolist() == rs.dedup(documents, schema, exact=False).kept.tolist()
    assert many.budget_exceeded == 0
    with pytest.raises(rs.InvalidParameterError, match="budget"):
        rs.dedup(documents, schema, policy="cluster", budget=1)


def test_dedup_against_a_store(schema: rs.Schema, store: rs.Store) -> None:
    store.insert_many(DOCUMENTS[:100], KEYS[:100])
    rest = DOCUMENTS[100:]
    found = rs.dedup(rest, against=store, exact=False)
    whole = rs.dedup(rest, schema, exact=False)
    near = [bool(store.query(text, limit=1)) for text in rest]
    for position in range(100):
        if near[position]:
            assert not found.kept[position]
    assert found.kept.sum() <= whole.kept.sum() and len(store) == 100
    keys = {d.survivor_key for d in found.duplicates if d.survivor is None}
    assert keys and keys <= set(KEYS[:100])
    # The wait for the writer is over.
    store.insert("later", "some text")


def _shares(duplicate: rs.Duplicate) -> str:
    """The last columns of a report."""
    shares = ["" if it is None else f"{it:.6f}" for it in (duplicate.held, duplicate.covered)]
    return "\t".join([*shares, duplicate.rule])


def test_all_policies_against_a_store_are_those_of_the_tool(tmp_path: Path) -> None:
    # Later ones are longer, so that rules differ.
    documents = [text + " more" * (n % 4) for n, text in enumerate(DOCUMENTS)]
    old, new, one = tmp_path / "old.jsonl", tmp_path / "new.jsonl", tmp_path / "one.rsm"
    for file, part in ((old, slice(0, 60)), (new, slice(60, 200))):
        rows = zip(KEYS[part], documents[part])
        file.write_text("".join(json.dumps({"id": k, "text": t}) + "\n" for k, t in rows))
    tool_lines("build", one, old, "--words", "2", "--threshold", "0.7")
    report, told = tmp_path / "report.tsv", set()
    for policy in POLICIES:
        for keep in KEEPS:
            rules = ("--policy", policy, "--keep", keep, "--no-header", "--force")
            tool_lines("dedup", new, "--against", one, "-o", tmp_path / "kept", "--report", report, *rules)
            with rs.Store.open(one, read_only=True) as store:
                found = rs.dedup(new, against=store, policy=policy, keep=keep)
                if keep == "longest":
                    lengths = [len(text) for text in documents[60:]]
                    by_length = rs.dedup(new, against=store, policy=policy, keep=lengths)
                    assert by_length.duplicates == found.duplicates
            annotated = tmp_path / "annotated.jsonl"
            _same_annotations(new, annotated, found, "--against", one, *rules[:4], "--force")
            reported = [
                f"{d.key!s}\t{d.survivor_key!s}\t{d.similarity:.6f}\t"
                + ("exact" if d.is_exact else "estimate")
                + f"\t{_shares(d)}"
                for d in found.duplicates
            ]
            assert reported == report.read_text().splitlines()
            assert sum(d.survivor is None for d in found.duplicates) > 10
            told.add(tuple(reported))
    assert len(told) > 3


def test_a_deduplicator_takes_a_stream(schema: rs.Schema, tmp_path: Path) -> None:
    expected = rs.dedup(DOCUMENTS, schema, exact=False).kept.tolist()
    with rs.Deduplicator(schema, tmp_path) as stream:
        kept = [found is None for text in DOCUMENTS for found in stream.decide_many([text])]
        assert len(stream) == sum(expected)
    assert kept == expected


def test_files(tmp_path: Path, schema: rs.Schema) -> None:
    with gzip.open(tmp_path / "a.jsonl.gz", "wt") as file:
        for key, text in zip(KEYS, DOCUMENTS):
            file.write(json.dumps({"id": key, "text": text}) + "\n\n")
    (tmp_path / "texts").mkdir()
    for number in range(3):
        (tmp_path / "texts" / f"{number}.txt").write_text(DOCUMENTS[number])
    assert list(rs.read_files(tmp_path / "a.jsonl.gz")) == list(zip(KEYS, DOCUMENTS))
    names = [str(tmp_path / "texts" / f"{number}.txt") for number in range(3)]
    assert [key for key, _ in rs.read_files(tmp_path / "texts")] == names
    pairs = [(p.key_a, p.key_b) for p in rs.pairs(tmp_path / "a.jsonl.gz", schema)]
    assert pairs == [(KEYS[p.a], KEYS[p.b]) for p in rs.pairs(DOCUMENTS, schema)]
    (tmp_path / "bad.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(ValueError, match='bad.jsonl:1: field "text" is missing; its fields are "id": name one with text='):
        list(rs.read_files(tmp_path / "bad.jsonl"))


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "parquet", "arrow"])
def test_tables_in_files(tmp_path: Path, ending: str) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    import pyarrow.csv

    odd = ['a "quoted"\nline', "007", "x" * 3_000_000, *DOCUMENTS]
    table = pa.table({"n": range(len(odd)), "body": odd, "url": [f"0{n}" for n in range(len(odd))]})

    def write(table: Any, path: Path) -> None:
        if ending == "parquet":
            pq.write_table(table, path, row_group_size=70)
        elif ending == "arrow":
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table, max_chunksize=33)
        else:
            separator = "\t" if ending == "tsv" else ","
            options = pa.csv.WriteOptions(delimiter=separator)
            opened = gzip.open if ending.endswith("gz") else open
            with opened(path, "wb") as file:
                pa.csv.write_csv(table, file, options)

    path = tmp_path / f"a.{ending}"
    write(table, path)
    expected = list(zip(table["url"].to_pylist(), odd))
    assert list(rs.read_files(path, text="body", key="url")) == expected
    # Rows of CSV are numbered by their lines, as an editor shows them.
    lines = [1, 2, *range(3, len(odd) + 1)] if ending in ("parquet", "arrow") else [2, 4, *range(5, len(odd) + 3)]
    numbered = list(rs.read_files(path, text="body", key=None))
    assert numbered == [(f"{path}:{line}", text) for line, text in zip(lines, odd)]
    with pytest.raises(ValueError, match=f'{path.name}.*there is no column "text"; its columns are "n", "body", "url"'):
        list(rs.read_files(path))
    with pytest.raises(ValueError, match='there is no column "none"'):
        list(rs.read_files(path, text="body", key="none"))
    if ending in ("parquet", "arrow"):
        write(pa.table({"text": ["a", None, "b"]}), path)
        with pytest.raises(ValueError, match=f"{path.name}:2: field"):
            list(rs.read_files(path))
        assert [text for _, text in rs.read_files(path, nulls="skip")] == ["a", "b"]
        assert rs.dedup(path, nulls="skip").kept.tolist() == [True, False, True]


def test_databases_and_html_are_read(tmp_path: Path) -> None:
    """As the tool reads them; what this package does not read is refused with what to do."""
    path, page = tmp_path / "a.db", "<html><script>x()</script><p>%s</p><b>more</b></html>"
    with sqlite3.connect(path) as database:
        database.execute("create table pages (id, text)")
        database.executemany("insert into pages values (?, ?)", zip(KEYS, DOCUMENTS))
    assert list(rs.read_files(path)) == list(zip(KEYS, DOCUMENTS))
    assert rs.dedup(path).duplicates == rs.dedup(list(zip(KEYS, DOCUMENTS))).duplicates
    with sqlite3.connect(path) as database:
        database.execute("create table other (id, text)")
    database.close()
    assert list(rs.read_files(path, table="pages")) == list(zip(KEYS, DOCUMENTS))
    with pytest.raises(ValueError, match=r"a\.db.*table= of read_files"):
        list(rs.read_files(path))
    for address in ("s3://bucket/a.jsonl", "https://example.org/a.jsonl"):
        with pytest.raises(OSError, match="which this package does not have: download it"):
            rs.read_files(address).__next__()
    schema = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(128, threshold=0.7), html=True)
    plain = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(128, threshold=0.7), seed=schema.seed)
    assert schema.html and plain == schema and pickle.loads(pickle.dumps(schema)).html
    assert eval(repr(schema), vars(rs)) == schema and not rs.Schema(minhash=rs.MinHash(64)).html
    assert schema.extract(page % "one &amp; two").split() == ["one", "&", "two", "more"]
    pages = [page % text for text in DOCUMENTS]
    bare = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(128, threshold=0.7))
    taken = [schema.extract(text) for text in pages]
    assert schema.features(pages[0]).size == bare.features(taken[0]).size < bare.features(pages[0]).size
    for policy in POLICIES:
        found, expected = rs.dedup(pages, schema, policy=policy), rs.dedup(taken, bare, policy=policy)
        assert [d.similarity for d in found.duplicates] == pytest.approx([d.similarity for d in expected.duplicates])
    assert rs.explain(pages[0], pages[0], schema).a == taken[0]
    made, report = tmp_path / "html.rsm", tmp_path / "pages.jsonl"
    report.write_text("".join(json.dumps({"id": k, "text": t}) + "\n" for k, t in zip(KEYS, pages)))
    tool_lines("build", made, report, "--html", "--words", "2", "--threshold", "0.7")
    with rs.Store.open(made) as store:
        assert store.schema == schema and store.query(pages[3], limit=1)[0].similarity == 1.0
    with pytest.raises(rs.InvalidParameterError, match="html: found True, expected text, and no seed"):
        rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64), html=True, seed=1)


def test_results_are_compared(schema: rs.Schema) -> None:
    found = [rs.dedup(["a b c", "a b c", "d e f"][:count], schema) for count in (3, 3, 2)]
    assert found[0] == found[1] == pickle.loads(pickle.dumps(found[0]))
    assert found[0] != found[2] and found[0] != "another"


def test_what_is_no_text_is_refused(schema: rs.Schema) -> None:
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(rs.InvalidParameterError, match="null at position 70000"):
        schema.sketch_many(pa.array(["a"] * 70_000 + [None]))
    with pytest.raises(TypeError, match="strings"):
        schema.sketch_many(pa.array([1, 2]))
    with pytest.raises(TypeError, match="a document is a str or a Signature, and not int, as at position 9000"):
        schema.sketch_many(["a"] * 9_000 + [1])  # type: ignore[list-item]
    with pytest.raises(rs.InvalidParameterError, match="surrogates not allowed at position 1, expected .*replace"):
        schema.sketch_many(["a", "\udc80"])
    with pytest.raises(rs.InvalidParameterError, match="column"):
        rs.dedup(pa.table({"body": ["a"]}), schema)
    with pytest.raises(rs.RepeatedKeyError):
        rs.pairs([("same", "a b c"), ("same", "d e f")], schema)


def test_tune_and_evaluate(schema: rs.Schema) -> None:
    choices = rs.tune(0.7, values=(64, 128))
    assert [choice.values for choice in choices] == [64, 128]
    assert all(choice.recall >= 0.95 for choice in choices)
    found = rs.evaluate(DOCUMENTS, schema)
    assert found.documents == 200
    assert found.near_pairs == len(near_pairs(DOCUMENTS, 0.7))
    assert found.recall is not None and found.recall > 0.8


@pytest.fixture(params=["articles2500", "versions", "debian-docs"])
def corpus(request: pytest.FixtureRequest) -> Path:
    data = os.environ.get("RESEMBLANCE_DATA")
    if not data:
        pytest.skip("RESEMBLANCE_DATA names no corpora")
    return Path(data) / str(request.param) / "docs.jsonl.gz"


def test_pairs_and_clusters_are_those_of_the_tool(corpus: Path) -> None:
    expected = tool_lines("pairs", corpus, "--no-header")
    pairs = []
    for pair in rs.pairs(corpus):
        a, b = sorted([str(pair.key_a), str(pair.key_b)], key=str.encode)
        pairs.append(f"{a}\t{b}\t{pair.similarity:.6f}")
    assert sorted(pairs, key=lambda line: [p.encode() for p in line.split("\t")]) == expected
    rows = []
    for cluster in rs.clusters(corpus):
        # The tool names a cluster after its first document.
        keys = [str(key).encode() for key in cluster.keys]
        rows += [(keys[0], key) for key in keys]
    lines = [f"{name.decode()}\t{key.decode()}" for name, key in sorted(rows)]
    assert lines == tool_lines("clusters", corpus, "--no-header")


POLICIES: tuple[Literal["first", "cluster", "representative"], ...] = (
    "first",
    "cluster",
    "representative",
)
KEEPS: tuple[Literal["first", "last", "longest"], ...] = ("first", "last", "longest")


def _same_annotations(corpus: Path, path: Path, found: rs.Dedup, *options: str | Path) -> None:
    """Those of the tool count positions from 1, and say `equal` too."""
    tool_lines("dedup", corpus, "--annotate", path, *options)
    columns = found.annotations()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(rows) == len(columns["kept"])
    for index, row in enumerate(rows):
        own = {name: column[index] for name, column in columns.items()}
        assert own.pop("distance") is None
        evidence, is_exact = row["dedup_similarity_is"], own.pop("is_exact")
        assert is_exact == (None if evidence is None else evidence != "estimate")
        cluster, key = own.pop("cluster"), own.pop("survivor")
        expected = f"store:{row['dedup_cluster'].split(':')[1]}" if cluster is None else str(cluster + 1)
        assert row["dedup_cluster"] == expected
        assert (None if key is None else str(key)) == row["dedup_survivor"]
        similarity = own.pop("similarity")
        assert similarity == pytest.approx(row["dedup_similarity"], abs=1e-6)
        assert own == {name: row[f"dedup_{name}"] for name in ("kept", "size", "rank")}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("keep", KEEPS)
def test_dedup_is_that_of_the_tool(
    corpus: Path,
    tmp_path: Path,
    policy: Literal["first", "cluster", "representative"],
    keep: Literal["first", "last", "longest"],
) -> None:
    report, output = tmp_path / "report.tsv", tmp_path / "kept.jsonl"
    rules = ("--policy", policy, "--keep", keep)
    tool_lines("dedup", corpus, "-o", output, "--report", report, "--no-header", *rules)
    found = rs.dedup(corpus, policy=policy, keep=keep)
    assert all(d.is_exact for d in found.duplicates)
    texts = dict(rs.read_files(corpus))

    def evidence(key: object, survivor: object) -> str:
        return "equal" if texts[str(key)] == texts[str(survivor)] else "exact"

    rows = [
        f"{d.key!s}\t{d.survivor_key!s}\t{d.similarity:.6f}\t{evidence(d.key, d.survivor_key)}"
        f"\t{_shares(d)}"
        for d in found.duplicates
    ]
    assert rows == report.read_text().splitlines()
    kept = [json.loads(line)["id"] for line in output.read_text().splitlines()]
    assert found.select(list(texts)) == kept
    _same_annotations(corpus, tmp_path / "annotated.jsonl", found, *rules)
    if keep == "longest":
        lengths = rs.dedup(corpus, policy=policy, keep=[len(text) for text in texts.values()])
        assert lengths.duplicates == found.duplicates
        with pytest.raises(ValueError, match="one for each of"):
            rs.dedup(corpus, policy=policy, keep=[1.0])


@pytest.mark.parametrize("part", ["line", "paragraph"])
def test_repeated_parts_are_those_of_the_tool(
    corpus: Path, tmp_path: Path, part: Literal["paragraph", "line"]
) -> None:
    output = tmp_path / "trimmed.jsonl"
    tool_lines("dedup", corpus, "-o", output, "--level", part)
    seen = rs.RepeatedParts(part)
    expected = []
    for _, text in rs.read_files(corpus):
        trimmed = seen.trim(text)
        if not trimmed.is_emptied:
            expected.append(trimmed.text)
    assert [json.loads(line)["text"] for line in output.read_text().splitlines()] == expected
    assert len(seen) >= len(expected) > 0


def test_repeated_parts() -> None:
    seen = rs.RepeatedParts("line", rs.Text.words(1))
    assert seen and len(seen) == 0
    assert seen.trim("one\ntwo\n") == rs.Trimmed("one\ntwo\n", [], False)
    assert seen.trim("ONE!\n\nthree") == rs.Trimmed("\nthree", [0], False)
    assert seen.trim("Two") == rs.Trimmed("", [0], True)
    with pytest.raises(rs.InvalidParameterError, match="part"):
        rs.RepeatedParts("word")  # type: ignore[arg-type]
    with pytest.raises(rs.InvalidParameterError, match="memory_bytes"):
        rs.RepeatedParts("line", memory_bytes=31).trim("one\ntwo")


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "jsonl.zst", "csv", "parquet", "arrow", "bom.jsonl"])
def test_keys_of_files_are_those_of_the_tool(tmp_path: Path, ending: str) -> None:
    """Also of the same table in memory."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns: dict[str, list[Any]] = {
        "floats": [1.0, math.nan, 7.5, None, math.inf],
        "integers": [1, 2**53 + 1, -1, None, 0],
        "bytes": [b"ab", b"", b"\xff", None, b"x"],
        "strings": ["a", "\n", "", None, "é"],
    }
    for name, ids in columns.items():
        path, report = tmp_path / f"{name}.{ending}", tmp_path / "report.tsv"
        is_text = ending.startswith(("jsonl", "csv", "bom"))
        if is_text and name == "bytes":
            continue
        # All are alike, so that the report has every key.
        documents = ["one and the same text of six words"] * 5
        table = pa.table({"id": ids, "text": documents})
        if ending == "parquet":
            pq.write_table(table, path)
        elif ending == "arrow":
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
        elif ending == "csv":
            pytest.importorskip("pandas").DataFrame({"id": ids, "text": documents}).to_csv(path, index=False)
        else:
            rows: list[dict[str, Any]] = [
                {"id": i, "text": t} if i is not None else {"text": t} for i, t in zip(ids, documents)
            ]
            kept = [row for row in rows if not isinstance(row.get("id"), float) or math.isfinite(row["id"])]
            lines = "".join(json.dumps(row) + "\n" for row in kept).encode()
            if ending == "jsonl.zst":
                with pa.CompressedOutputStream(str(path), "zstd") as file:
                    file.write(lines)
            else:
                with (gzip.open if ending.endswith("gz") else open)(path, "wb") as file:
                    file.write(b"\xef\xbb\xbf" * (ending == "bom.jsonl") + lines)
        tool_lines("dedup", path, "-o", f"{tmp_path / 'out'}/", "--report", report, "--force", "--no-header")
        told = [line.split("\t")[0] for line in report.read_text().splitlines()]
        keys = [key for key, _ in rs.read_files(path)]
        assert [json.dumps(key, ensure_ascii=False)[1:-1].replace('\\"', '"') for key in keys[1:]] == told
        assert [d.key for d in rs.dedup(str(path)).duplicates] == keys[1:]
        if not is_text:
            in_memory = [d.key for d in rs.dedup(table).duplicates]
            made = f"{path}:"
            expected = [None if str(key).startswith(made) else key for key in keys[1:]]
            assert in_memory == expected
            if name == "bytes":
                # Those of lists are keys as they are.
                continue
            for form in (zip(ids, documents), [{"id": i, "text": t} for i, t in zip(ids, documents)]):
                assert [d.key for d in rs.dedup(form).duplicates] == expected


def test_a_path_is_a_path_and_a_mapping_keeps_its_ids(tmp_path: Path, schema: rs.Schema) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"id": key, "text": text, "more": [1]} for key, text in zip(KEYS, DOCUMENTS)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    forms: list[Any] = [str(path), path, [path], str(tmp_path), rows, {"id": KEYS, "text": np.array(DOCUMENTS)}]
    for number, form in enumerate(forms):
        built = tmp_path.parent / f"{tmp_path.name}-{number}.rsm"
        assert rs.bulk_build(built, form, schema).documents == 200
        with rs.Store.open(built) as store:
            assert list(store) == KEYS
        found = rs.dedup(form, schema).duplicates
        assert found and [d.key for d in found] == [f"k{d.position}" for d in found]
        assert [p.key_a for p in rs.pairs(form, schema)] == [f"k{p.a}" for p in rs.pairs(DOCUMENTS, schema)]
    assert {d.key for d in rs.dedup(rows, schema, key=None).duplicates} == {None}
    assert {d.key for d in rs.dedup({"text": DOCUMENTS}, schema).duplicates} == {None}
    refused: list[tuple[Any, type[Exception], str]] = [
        ("no/such.jsonl", FileNotFoundError, "no/such.jsonl does not exist"),
        ("some text or other", FileNotFoundError, "does not exist"),
        (b"some bytes", TypeError, "corpus: found bytes, expected a list"),
        ({"id": "a", "text": "one text"}, TypeError, "mapping of one document"),
        ({"a": "b"}, ValueError, "expected 'text'"),
        ({"id": ["a"], "text": ["a", "b"]}, ValueError, "1 of 'id'|2 of 'text'"),
        ([{"id": "a"}], ValueError, "expected 'text'"),
        ([("a", "text"), (True, "text")], TypeError, "key: found bool at position 1"),
        (["a", 1], TypeError, "documents: found int at position 1"),
        (["a"] * 70_000 + [None], ValueError, "found null at position 70000"),
        ([{"text": "a"}, {"text": None}], ValueError, "found null at position 1"),
        (tmp_path / "b.json", ValueError, "a JSON array, expected one object per line"),
    ]
    (tmp_path / "b.json").write_text('[{"text": "a"}]')
    for corpus, kind, message in refused:
        for call in (rs.dedup, rs.pairs, rs.clusters, rs.evaluate, lambda c, s: rs.bulk_build(tmp_path / "no.rsm", c, s)):
            with pytest.raises(kind, match=message):
                call(corpus, schema)
    assert not (tmp_path / "no.rsm").exists()


def test_only_named_columns_are_looked_at(schema: rs.Schema) -> None:
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    duckdb = pytest.importorskip("duckdb")
    numbers = list(range(200))
    mixed = [object() if n % 2 else {"a": n} for n in numbers]
    complex_numbers = [complex(n) for n in numbers]
    frame = pd.DataFrame({"id": numbers, "text": DOCUMENTS, "mixed": mixed, "complex": complex_numbers})
    frame["sparse"] = pd.arrays.SparseArray([0] * 200)
    frame.index = mixed
    huge = pl.DataFrame({"id": numbers, "text": DOCUMENTS}).with_columns(pl.lit(2**100, dtype=pl.Int128).alias("huge"))
    odd = pl.DataFrame({"id": numbers, "text": DOCUMENTS, "mixed": pl.Series(mixed, dtype=pl.Object)})
    lazy = pl.LazyFrame({"id": numbers, "text": DOCUMENTS, "list": [[1]] * 200})
    relation = duckdb.from_arrow(pa.table({"id": numbers, "text": DOCUMENTS})).project('id, "text", id::HUGEINT h').order("id")
    dictionary = pa.table({"id": pa.array(numbers), "text": pa.array(DOCUMENTS).dictionary_encode()})
    ids = frame.assign(id=[n if n % 2 else str(n) for n in numbers])
    categories = frame.assign(id=pd.Categorical(numbers))
    categories.index = numbers
    expected = rs.dedup(DOCUMENTS, schema).positions.tolist()
    for corpus in (frame, huge, huge.with_columns(pl.col("id").cast(pl.Int128)), odd, lazy, relation, dictionary, ids, categories):
        found = rs.dedup(corpus, schema)
        assert found.positions.tolist() == expected
        assert [d.key for d in found.duplicates] == [str(d.position) for d in found.duplicates]
    for corpus in (frame, huge, lazy, relation, dictionary):
        with pytest.raises(ValueError, match="column: found.*'url'"):
            rs.dedup(corpus, schema, key="url")
    with pytest.raises(TypeError, match="documents: found int at position 1"):
        rs.dedup(pd.DataFrame({"text": ["a", 1]}), schema)
    # Arrow's interface has the addresses of objects, which are neither keys nor texts.
    with pytest.raises(TypeError, match="key: found object at position 0"):
        rs.dedup(odd.select(pl.col("mixed").alias("id").shift(-1), "text").head(2), schema)

    class Failing(type(frame)):  # type: ignore[misc]
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise MemoryError

        _constructor = property(lambda self: Failing)

    with pytest.raises(MemoryError):
        rs.dedup(Failing({"text": ["a", "b"]}), schema)


def test_documents_without_a_text_are_left_out_where_asked(schema: rs.Schema, tmp_path: Path) -> None:
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    documents: list[Any] = [text if n % 7 else None for n, text in enumerate(DOCUMENTS)]
    present = [text for text in documents if text is not None]
    places = [n for n, text in enumerate(documents) if text is not None]
    expected = rs.dedup(present, schema)
    columns = {"id": KEYS, "text": documents}
    path = tmp_path / "a.jsonl"
    rows = [{"id": key, "text": text} for key, text in zip(KEYS, documents)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    forms = [documents, columns, rows, pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns), path]
    with rs.Store.create(tmp_path / "empty.rsm", schema) as store:
        for number, form in enumerate(forms):
            with pytest.raises(ValueError, match="null"):
                rs.dedup(form, schema)
            for found in (
                rs.dedup(form, schema, nulls="skip"),
                rs.dedup(form, schema, nulls="skip", policy="first", keep=[0.0] * 200),
                rs.dedup(form, against=store, nulls="skip"),
            ):
                assert found.positions.tolist() == [places[p] for p in expected.positions]
                assert len(found.duplicates) == len(expected.duplicates)
                annotations = found.annotations()
                assert [n for n, size in enumerate(annotations["size"]) if size is None] == list(range(0, 200, 7))
            pairs = [(p.a, p.b) for p in rs.pairs(form, schema, nulls="skip")]
            assert pairs == [(places[p.a], places[p.b]) for p in rs.pairs(present, schema)]
            built = rs.bulk_build(tmp_path / f"{number}.rsm", form, schema, nulls="skip")
            assert built.documents == len(present)
            assert rs.evaluate(form, schema, nulls="skip").documents == len(present)
    alike = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64), empty_documents="alike")
    with pytest.raises(ValueError, match="nulls"):
        rs.pairs(documents, alike, nulls="skip")
