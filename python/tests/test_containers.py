"""Documents and keys are the same, or refused, whatever container has them."""

from __future__ import annotations

import datetime
import inspect
import io
import math
import random
import re
from collections import deque, namedtuple
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import resemblance as rs
from resemblance import _native

# The parameters of the native half that take several values.
SEVERAL = {"documents", "texts", "sets", "rows", "keys", "payloads", "stamps", "features", "shards"}
# Those of the Spark job take columns, and others take one number.
OTHERS = {"PairRule", "shard_numbers", "banding_choice", "table_choice", "reband"}
UTC = datetime.timezone.utc
Refusal = (TypeError, ValueError)


def _pandas(values: list[Any]) -> Any:
    return pytest.importorskip("pandas").Series(values, dtype=object)


def _polars(values: list[Any]) -> Any:
    return pytest.importorskip("polars").Series(values, strict=True)


def _arrow(values: list[Any]) -> Any:
    return pytest.importorskip("pyarrow").array(values)


def _chunks(values: list[Any]) -> Any:
    pa = pytest.importorskip("pyarrow")
    whole = pa.array(values)
    return pa.chunked_array([whole[:3], whole[3:]])


def _numpy(values: list[Any]) -> Any:
    return np.array(values, dtype=object)


LISTS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "generator": lambda values: (value for value in values),
    "deque": deque,
    "values of a dict": lambda values: dict(enumerate(values)).values(),
    "NumPy": _numpy,
}
COLUMNS: dict[str, Callable[[list[Any]], Any]] = {
    "pandas": _pandas,
    "polars": _polars,
    "Arrow": _arrow,
    "chunks": _chunks,
}

_day = datetime.datetime(2020, 1, 1)


def _moment(chance: random.Random) -> datetime.datetime:
    return _day + datetime.timedelta(seconds=chance.randrange(10**9), microseconds=chance.choice([0, 1, 500_000]))


# Of each kind a key, and whether it is one.
KINDS: dict[str, tuple[Callable[[random.Random], Any], bool]] = {
    "text": (lambda chance: chance.choice(["a", "", "é\n", "x\0y", "7", "1.0"]) + str(chance.random()), True),
    "integer": (lambda chance: chance.choice([1, -1]) * chance.randrange(2**62), True),
    "float": (lambda chance: chance.choice([chance.random() * 10.0**chance.randrange(-20, 40), float(chance.randrange(99))]), True),
    "moment": (_moment, True),
    "zoned": (lambda chance: _moment(chance).replace(tzinfo=UTC), True),
    "date": (lambda chance: _moment(chance).date(), True),
    "bool": (lambda chance: chance.random() < 0.5, False),
    "list": (lambda chance: [str(chance.random())], False),
    "span": (lambda chance: datetime.timedelta(chance.randrange(99)), False),
    "mapping": (lambda chance: {"a": chance.randrange(9)}, False),
}


def _keys(values: Any, count: int) -> list[str | None] | None:
    """The keys that a store makes of a container, or `None` if they are refused by name."""
    schema = rs.Schema(text=rs.Text.words(1), minhash=rs.MinHash(16))
    with rs.Store.in_memory(schema) as store:
        try:
            store.insert_many([f"text {n}" for n in range(count)], values)
        except Refusal as error:
            assert str(error).startswith("key"), error
            return None
        return list(store)


@pytest.mark.parametrize("seed", range(10))
def test_keys_do_not_depend_on_their_container(seed: int) -> None:
    chance = random.Random(seed)
    for make, is_key in KINDS.values():
        values = list({repr(value): value for value in (make(chance) for _ in range(9))}.values())
        for place in chance.sample(range(len(values)), chance.choice([0, 1]) * is_key):
            values[place] = None
        expected = _keys(values, len(values))
        assert (expected is not None) == is_key
        for name, container in (LISTS | COLUMNS).items():
            assert _keys(container(values), len(values)) == expected, (name, values)


@pytest.mark.parametrize("seed", range(5))
def test_ids_of_a_corpus_do_not_depend_on_its_form(seed: int) -> None:
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    chance = random.Random(seed)
    for make, is_key in KINDS.values():
        ids = [make(chance) for _ in range(6)]
        if is_key:
            ids[chance.randrange(1, 6)] = None
        documents = ["one and the same text"] * 6
        columns = {"id": ids, "text": documents}
        rows = [{"id": key, "text": text} for key, text in zip(ids, documents)]
        frame = pd.DataFrame({"id": pd.Series(ids, dtype=object), "text": documents})
        forms = {
            "tuples": list(zip(ids, documents)),
            "generator": (pair for pair in zip(ids, documents)),
            "rows": rows,
            "named tuples": frame.itertuples(),
            "columns": columns,
            "NumPy": {"id": _numpy(ids), "text": _numpy(documents)},
            "pandas": frame,
            "polars": pl.DataFrame(columns),
            "lazy": pl.LazyFrame(columns),
            "Arrow": pa.table(columns),
            "reader": pa.table(columns).to_reader(),
        }
        found = {}
        for name, form in forms.items():
            try:
                duplicates = rs.dedup(form, exact=False).duplicates
                found[name] = [d.survivor_key for d in duplicates[:1]] + [d.key for d in duplicates]
            except Refusal as error:
                assert re.match("key|column", str(error)), (name, error)
                found[name] = []
        assert all(keys == found["tuples"] for keys in found.values()), found
        assert len(found["tuples"]) == 6 * is_key


@pytest.mark.parametrize("seed", range(10))
def test_texts_do_not_depend_on_their_container(seed: int, schema: rs.Schema) -> None:
    chance = random.Random(seed)
    documents: list[Any] = [chance.choice(["", "é", "a b c ", "\n"]) * chance.randrange(1, 9) for _ in range(9)]
    expected = schema.sketch_many(documents)
    for name, container in (LISTS | COLUMNS).items():
        assert schema.sketch_many(container(documents)) == expected, name
        assert rs.dedup(container(documents), schema).kept.tolist() == rs.dedup(documents, schema).kept.tolist()
    place = chance.randrange(9)
    for wrong in (None, 1, b"bytes", ["list"]):
        with_one = documents[:place] + [wrong] + documents[place + 1 :]
        only = [wrong] * 9
        for name, container in LISTS.items():
            for call in (schema.sketch_many, lambda it: rs.dedup(it, schema)):
                with pytest.raises(Refusal, match=f"position {place}"):
                    call(container(with_one))
        for name, container in COLUMNS.items():
            for call in (schema.sketch_many, lambda it: rs.dedup(it, schema)):
                with pytest.raises(Refusal, match="position|texts are"):
                    call(container(only))
                if wrong is None:
                    with pytest.raises(Refusal, match=f"null at position {place}"):
                        call(container(with_one))


def test_ids_of_other_types_of_a_container() -> None:
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    moments = pd.DatetimeIndex(["2020-01-01T00:00:00.000000001", "2021-05-05T12:00:00.000000000", None])
    zone = datetime.timezone(datetime.timedelta(hours=2))
    noon = datetime.datetime(2021, 5, 5, 12)
    same: list[tuple[list[str | None], list[Any]]] = [
        (["1", None], [[1, Decimal("nan")], [1, np.datetime64("NaT")], [1, None], pd.array([1, None], dtype="Int64")]),
        (["1", "2"], [[1, 2], [np.int8(1), np.uint64(2)], np.array([1, 2]), pd.Series([1, 2]), [Decimal(1), 2]]),
        (["0.1", None], [np.array([0.1, np.nan], np.float32), pd.Series([0.1, None], dtype=np.float32), [0.1, math.nan]]),
        (["1.0", None], [[1.0, None], [1.0, np.float64("inf")], pl.Series([1.0, None]), [np.float16(1), pd.NA]]),
        (
            ["2020-01-01T00:00:00.000000001Z", "2021-05-05T12:00:00Z", None],
            [moments, list(moments), pd.Series(moments), moments.to_numpy(), list(moments.to_numpy())],
        ),
        (["2021-05-05T10:00:00Z"], [[noon.replace(tzinfo=zone)], [pd.Timestamp(noon, tz=zone)], pl.Series([noon.replace(tzinfo=zone)])]),
        (["ab", "\udcff"], [[b"ab", b"\xff"], pa.array([b"ab", b"\xff"]), pl.Series([b"ab", b"\xff"]), np.array([b"ab", b"\xff"])]),
        ([None, None], [[None, None], pa.nulls(2), pl.Series([None, None]), pd.Series([None, None])]),
    ]
    for expected, containers in same:
        for container in containers:
            assert _keys(container, len(expected)) == expected, container
    periods = pd.period_range("2020", periods=2, freq="M")
    for refused in (periods, list(periods), pd.Series(periods), [1, True], np.array([True, False]), [object(), "a"]):
        assert _keys(refused, 2) is None, refused
    for frame in (pd.DataFrame({"id": periods, "text": ["a", "b"]}), zip(periods, ["a", "b"])):
        with pytest.raises(TypeError, match="[Pp]eriod"):
            rs.dedup(frame)


def test_columns_of_polars_without_values(schema: rs.Schema) -> None:
    pl = pytest.importorskip("polars")
    texts = ["one two three", "one two three"]
    assert [d.key for d in rs.dedup(pl.DataFrame({"id": [None, None], "text": texts}), schema).duplicates] == [None]
    assert rs.dedup(pl.DataFrame({"id": [], "text": []}), schema).kept.tolist() == []
    assert rs.dedup(pl.DataFrame({"text": [None, None]}), schema, nulls="skip").kept.tolist() == [False, False]
    with pytest.raises(ValueError, match="null at position 0"):
        rs.dedup(pl.DataFrame({"text": [None, None]}).lazy(), schema)
    with pytest.raises(ValueError, match="null at position 0"):
        schema.sketch_many(pl.Series([None, None]))
    assert len(schema.sketch_many(pl.Series([]))) == 0


def test_columns_of_nulls_alone(tmp_path: Path, schema: rs.Schema) -> None:
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    columns = [pa.nulls(2), pa.table({"text": pa.nulls(2)}), pd.DataFrame({"text": [None, None]}), pd.Series([None] * 2)]
    for number, column in enumerate(columns):
        assert rs.dedup(column, schema, nulls="skip").kept.tolist() == [False, False]
        assert rs.bulk_build(tmp_path / f"{number}.rsm", column, schema, nulls="skip").documents == 0
        with pytest.raises(rs.InvalidParameterError, match="null at position 0, expected a text; nulls='skip'"):
            rs.dedup(column, schema)


def _objects(folder: Path, schema: rs.Schema) -> dict[str, Any]:
    """An object of each class that takes several values, by its name."""
    store = rs.Store.in_memory(schema)
    other = rs.Store.in_memory(schema)
    build = rs.BulkBuild(folder / "build.rsm", schema)
    corpus = _native.TemporaryCorpus(folder / "corpus.rsm", schema)
    return {
        "Store": store,
        "Snapshot": store.snapshot(),
        "StoreComparison": _native.StoreComparison(store.snapshot(), folder),
        "Transaction": other.transaction(),
        "BulkBuild": build,
        "Deduplicator": _native.Deduplicator(schema, folder),
        "TemporaryCorpus": corpus,
        "Schema": schema,
        "Signatures": rs.Signatures,
    }


def _calls(folder: Path) -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Each function of the native half and each of its parameters that takes several values."""
    schema = rs.Schema(
        text=rs.Text.words(2), minhash=rs.MinHash(16), containment=rs.Containment(2)
    )
    objects = _objects(folder, schema)
    others = {"documents": ["a"], "texts": ["a"], "schema": schema, "folder": folder, "target": folder / "m.rsm"}
    others |= {"max_document_frequency": 1, "stamps": [0], "lost": 0.0, "keys": ["a"], "vectors": [[1.0, 2.0]]}
    functions: list[tuple[str, Any]] = []
    for name, value in vars(_native).items():
        if name in OTHERS or name.startswith("_"):
            continue
        if inspect.isclass(value):
            methods = [method for method in dir(value) if not method.startswith("_")]
            functions += [(f"{name}.{method}", (name, method)) for method in methods]
        elif callable(value):
            functions.append((name, value))
    for name, value in functions:
        if isinstance(value, tuple):
            value = getattr(objects.get(value[0], getattr(_native, value[0])), value[1])
        try:
            parameters = inspect.signature(value).parameters
        except (TypeError, ValueError):
            continue
        for parameter in SEVERAL.intersection(parameters):
            if parameters[parameter].default in (None, inspect.Parameter.empty):
                needed = {
                    other: others[other]
                    for other, its in parameters.items()
                    if other != parameter and its.default is inspect.Parameter.empty
                }
                positional = parameters[parameter].kind is inspect.Parameter.POSITIONAL_ONLY

                def call(values: Any, value: Any = value, needed: Any = needed, parameter: str = parameter, positional: bool = positional) -> Any:
                    return value(values, **needed) if positional else value(**needed, **{parameter: values})

                yield name, parameter, call


def test_one_value_is_not_several(tmp_path: Path) -> None:
    """A text is not its characters, a mapping not its keys, and an open file not its lines."""
    seen = set()
    for name, parameter, call in _calls(tmp_path):
        seen.add((name.split(".")[0], parameter))
        refused = ["abc", b"abc", bytearray(b"abc"), {"a": "b"}, io.StringIO("a\nb\n"), 5]
        for wrong in refused:
            named = "(documents|texts)" if parameter == "texts" else parameter
            with pytest.raises(TypeError, match=f"{named}: found {type(wrong).__name__}, expected a list"):
                call(wrong)
        if parameter in ("keys", "payloads", "stamps"):
            with pytest.raises(TypeError, match=f"{parameter}: found a set"):
                call({"a"})
    assert {"Store", "Snapshot", "Transaction", "BulkBuild", "Deduplicator", "TemporaryCorpus", "Schema", "Signatures", "merge"} <= {
        name for name, _ in seen
    }
    assert {parameter for _, parameter in seen} == SEVERAL


def test_a_corpus_is_not_one_value(schema: rs.Schema, tmp_path: Path) -> None:
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    twice = pd.DataFrame([["a", "b"], ["c", "d"]], columns=["text", "text"])
    both = pa.table([["a"], ["b"]], names=["text", "text"])
    Row = namedtuple("Row", "id text")
    frame = pd.DataFrame({"more": [1, 2], "text": ["a b", "a b"], "id": ["x", "y"]})
    assert [d.key for d in rs.dedup(frame.itertuples(), schema).duplicates] == ["y"]
    assert [d.key for d in rs.dedup(frame.itertuples(index=False), schema, key="more").duplicates] == ["2"]
    assert [d.key for d in rs.dedup([("x", "a b"), ("y", "a b")], schema, key=None).duplicates] == [None]

    class Result(list):  # type: ignore[type-arg]
        """As that of SQLAlchemy: its rows are named tuples."""

        def columns(self) -> None: ...

    assert [d.key for d in rs.dedup(Result([Row("x", "a b"), Row("y", "a b")]), schema).duplicates] == ["y"]
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (b"some bytes", {}, "corpus: found bytes"),
        (io.StringIO("a\nb\n"), {}, "corpus: found StringIO"),
        (5, {}, "corpus: found int"),
        (frame.rename(columns={"text": "body"}).itertuples(), {}, r"found 4 values at position 0, expected \(key, text\)"),
        ([("a", "b"), ("c", "d", "e")], {}, r"found 3 values at position 1, expected \(key, text\)"),
        ([("a", "b"), "zb"], {}, r"found str at position 1, expected \(key, text\)"),
        ([("a",)], {}, r"found 1 values at position 0, expected \(key, text\)"),
        ([("a", "b"), {"text": "a"}], {}, "found dict at position 1"),
        ([("a", "b")] * 70_000 + ["zb"], {}, "found str at position 70000"),
        ((("a", "b") if n < 5_000 else "zb" for n in range(5_001)), {}, "found str at position 5000"),
        (["a"] * 70_000 + [("zb", "a")], {}, "found tuple at position 70000"),
        ([("a", "b")] * 70_000 + [(True, "b")], {}, "key: found bool at position 70000"),
        ({"id": ["a"] * 70_000 + [True], "text": ["b"] * 70_001}, {}, "key: found bool at position 70000"),
        (pa.table({"id": [None] * 700 + [True], "text": ["b"] * 701}).to_reader(max_chunksize=100), {}, "key: .* row 700,"),
        ([{"text": "a"}, ("a", "b")], {}, "found 2 values at position 1, expected a mapping"),
        ([{"text": "a"}, "b"], {}, "found str at position 1, expected a mapping"),
        ([{"text": "a", "url": 1}] * 3 + [{"text": "a"}], {"key": "url"}, "found no 'url' at position 3"),
        ([Row("a", "b"), "zb"], {}, "found str at position 1, expected a named tuple"),
        (twice, {}, "column: found several 'text'"),
        (both, {}, "column: found several 'text'"),
        (both.to_reader(), {}, "column: found several \"text\""),
        ({f"k{n}": "text" for n in range(1_000)}, {}, "column: found k0, .* and more, expected 'text' as well"),
        ([Path("a"), 3], {}, "while processing 'paths'"),
    ]
    for corpus, options, message in refused:
        with pytest.raises((TypeError, ValueError), match=message):
            rs.dedup(corpus, schema, **options)
    for keep in ({1: 2, 2: 3}, b"ab"):
        with pytest.raises(TypeError, match="keep: found (dict|bytes)"):
            rs.dedup(["a", "b"], schema, keep=keep)
    with pytest.raises(TypeError, match="paths: found dict"):
        next(rs.read_files({"a": "b"}))
    found = rs.dedup(frame, schema)
    tables: list[Any] = [frame, pa.table(frame), {0: "a", 1: "b"}]
    for table in tables:
        with pytest.raises(TypeError, match="documents: found (DataFrame|Table|dict), expected a list"):
            found.select(table)
    assert found.select(frame["id"]) == ["x"]
    with pytest.raises(TypeError, match="values: found bytes"):
        rs.tune(0.8, values=b"ab")
    for one in ("which river", {"which river": 1}):
        with pytest.raises(TypeError, match="texts: found (str|dict)"):
            rs.exact.WholeTexts(one)


def test_no_exception_of_a_container_is_lost(schema: rs.Schema) -> None:
    """Ctrl-C, for one, may be noticed anywhere in Python code that tells what a value is."""

    class Columns(list[str]):
        @property
        def columns(self) -> None:
            raise KeyboardInterrupt

    class Classless(list[str]):
        @property  # type: ignore[misc]
        def __class__(self) -> type:
            raise KeyboardInterrupt

    for container in (Columns(["a text"]), Classless(["a text"])):
        with pytest.raises(KeyboardInterrupt):
            schema.sketch_many(container)
