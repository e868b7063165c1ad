"""Tables in and out of the command-line tool, against pyarrow, DuckDB, datasets and Python's csv."""

from __future__ import annotations

import csv
import datetime
import decimal
import gzip
import json
import math
import random
import re
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import resemblance as rs
from conftest import texts, tool_lines
from test_corpus import corpus

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ipc = pytest.importorskip("pyarrow.ipc")


def _write_arrow(table: Any, path: Path, *, stream: bool, codec: str | None = None) -> None:
    new = ipc.new_stream if stream else ipc.new_file
    with new(path, table.schema, options=ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table, max_chunksize=300)


def _read_arrow(path: Path, *, stream: bool) -> Any:
    return (ipc.open_stream if stream else ipc.open_file)(path.read_bytes()).read_all()


def _same(found: Any, expected: Any) -> bool:
    """Equal to the last bit of metadata; the numbers of values in a dictionary may be others."""
    if not found.schema.equals(expected.schema, check_metadata=True):
        return False
    for name, kind in zip(found.schema.names, found.schema.types):
        columns = [found[name], expected[name]]
        if pa.types.is_dictionary(kind):
            columns = [column.cast(kind.value_type) for column in columns]
        if not columns[0].equals(columns[1]):
            return False
    return True


def _csv_rows(path: Path, separator: str = ",") -> list[list[str]]:
    csv.field_size_limit(1 << 30)
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter=separator))


def test_real_texts_are_the_same_documents_in_every_form(
    corpus: Path,
    tmp_path: Path,
) -> None:
    duckdb = pytest.importorskip("duckdb")
    with gzip.open(corpus, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    table = pa.table(
        {
            "n": range(len(rows)),
            "id": [row["id"] for row in rows],
            "lengths": [[len(word) for word in row["text"].split()[:5]] for row in rows],
            "text": [row["text"] for row in rows],
            "meta": [{"first": row["text"][:9], "odd": i % 2 == 1} for i, row in enumerate(rows)],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd", row_group_size=700)
    _write_arrow(table, tmp_path / "a.arrow", stream=False, codec="lz4")
    _write_arrow(table, tmp_path / "a.arrows", stream=True)
    flat = table.drop_columns(["lengths", "meta"])
    flat = flat.filter(pa.compute.invert(pa.compute.match_substring(flat["text"], "\0")))
    assert len(flat) == len(table), "DuckDB writes no zeros"
    duckdb.sql("COPY (FROM flat ORDER BY n) TO '%s'" % (tmp_path / "a.csv"))
    duckdb.sql("COPY (FROM flat ORDER BY n) TO '%s' (DELIMITER '\t')" % (tmp_path / "a.tsv"))
    expected = None
    (tmp_path / "out").mkdir()
    for form in (corpus.name, "a.csv", "a.tsv", "a.parquet", "a.arrow", "a.arrows"):
        source = corpus if form == corpus.name else tmp_path / form
        report = tmp_path / "report.tsv"
        tool_lines("dedup", source, "-o", f"{tmp_path / 'out' / form}/", "--report", report, "--force")
        found = report.read_bytes()
        expected = expected or found
        assert found == expected, form
    assert expected is not None
    dropped = {line.split(b"\t")[0].decode() for line in expected.splitlines()[1:]}
    assert dropped
    kept = table.filter([id not in dropped for id in table["id"].to_pylist()])
    out = tmp_path / "out"
    parquet = out / "a.parquet" / "a.parquet"
    of_parquet = pq.read_table(tmp_path / "a.parquet").filter(pa.compute.is_in(table["n"], kept["n"]))
    assert pq.read_table(parquet).equals(of_parquet, check_metadata=True)
    assert _read_arrow(out / "a.arrow" / "a.arrow", stream=False).equals(kept, check_metadata=True)
    assert _read_arrow(out / "a.arrows" / "a.arrows", stream=True).equals(kept, check_metadata=True)
    for name, separator in (("a.csv", ","), ("a.tsv", "\t")):
        before = _csv_rows(tmp_path / name, separator)
        after = _csv_rows(out / name / name, separator)
        assert after == [row for row in before if row[1] not in dropped]
    # DuckDB reads what it wrote, and the same rows of Parquet.
    for one, other in (
        (f"FROM '{parquet}'", "FROM kept"),
        ("FROM kept", f"FROM '{parquet}'"),
        (f"SELECT id, text FROM '{out / 'a.csv' / 'a.csv'}'", "SELECT id, text FROM kept"),
    ):
        left = duckdb.sql(f"SELECT count(*) FROM (({one}) EXCEPT ALL ({other}))").fetchall()
        assert left == [(0,)], one


def _zoo(count: int) -> Any:
    """A column of every kind, with nulls at every level."""
    chance = random.Random(3)

    def some(make: Any) -> list[Any]:
        return [None if chance.random() < 0.2 else make(i) for i in range(count)]

    day = datetime.date(2020, 1, 1)
    now = datetime.datetime(2020, 1, 1, 12)
    pair = pa.struct([("a", pa.int16()), ("b", pa.list_(pa.string()))])
    columns = {
        "id": pa.array(range(count), pa.uint64()),
        "text": pa.array(texts(count)),
        "bool": pa.array(some(lambda i: i % 3 == 0)),
        "small": pa.array(some(lambda i: i % 100), pa.int8()),
        "float": pa.array(some(float), pa.float32()),
        "half": pa.array([float(i % 50) for i in range(count)], pa.float16()),
        "decimal": pa.array(some(lambda i: decimal.Decimal(i) / 8), pa.decimal128(20, 4)),
        "tiny": pa.array(some(lambda i: decimal.Decimal(i)), pa.decimal128(5, 0)),
        "date": pa.array(some(lambda i: day + datetime.timedelta(i))),
        "time": pa.array(some(lambda i: datetime.time(i % 24, 5)), pa.time64("us")),
        "stamp": pa.array(some(lambda i: now + datetime.timedelta(hours=i)), pa.timestamp("ns")),
        "zoned": pa.array(
            some(lambda i: now + datetime.timedelta(hours=i)), pa.timestamp("ms", tz="Europe/Berlin")
        ),
        "bytes": pa.array(some(lambda i: bytes([i % 256]) * (i % 7))),
        "fixed": pa.array(some(lambda i: bytes([i % 256]) * 5), pa.binary(5)),
        "kind": pa.array(some(lambda i: f"kind {i % 4}")).dictionary_encode(),
        "large": pa.array(some(lambda i: "x" * (i % 40)), pa.large_string()),
        "lists": pa.array(
            some(lambda i: [None if j == 1 else [j] * (j % 3) for j in range(i % 4)]),
            pa.list_(pa.list_(pa.int32())),
        ),
        "pairs": pa.array(
            some(lambda i: [{"a": j, "b": None if j == 2 else ["s"] * j} for j in range(i % 4)]),
            pa.list_(pair),
        ),
        "struct": pa.array(some(lambda i: {"a": None if i % 5 == 0 else i % 9, "b": ["", None]}), pair),
        "map": pa.array(some(lambda i: [(f"k{j}", j) for j in range(i % 3)]), pa.map_(pa.string(), pa.int64())),
        "nothing": pa.nulls(count),
    }
    schema = pa.schema(
        [pa.field(name, column.type, metadata={"of": name}) for name, column in columns.items()],
        metadata={"pandas": '{"columns": []}', "huggingface": '{"info": {"features": {}}}'},
    )
    return pa.table(columns, schema=schema)


PARQUET: list[dict[str, Any]] = [
    {"compression": "snappy"},
    {"compression": "none", "use_dictionary": False, "write_statistics": False},
    {"compression": "gzip", "data_page_version": "2.0"},
    {"compression": "zstd", "version": "1.0", "data_page_size": 200, "write_page_index": True},
    {"compression": "lz4", "use_deprecated_int96_timestamps": True},
    {"compression": {"text": "brotli", "id": "none"}, "use_compliant_nested_type": False},
    {
        "compression": "snappy",
        "use_dictionary": ["kind"],
        "column_encoding": {"id": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY", "float": "BYTE_STREAM_SPLIT"},
        "store_schema": False,
        "sorting_columns": [pq.SortingColumn(0)],
    },
]


@pytest.mark.parametrize("options", PARQUET)
def test_parquet_loses_rows_and_nothing_else(tmp_path: Path, options: dict[str, Any]) -> None:
    source, out, report = (tmp_path / name for name in ("a.parquet", "b.parquet", "report.tsv"))
    pq.write_table(_zoo(500), source, row_group_size=128, **options)
    bounds = ("--words", "2", "--threshold", "0.6")
    tool_lines("dedup", source, "-o", out, "--report", report, *bounds)
    dropped = {int(line.split("\t")[0]) for line in report.read_text().splitlines()[1:]}
    assert 50 < len(dropped) < 450
    before, after = pq.ParquetFile(source), pq.ParquetFile(out)
    kept = [id not in dropped for id in range(500)]
    assert _same(after.read(), before.read().filter(kept))
    assert after.schema.equals(before.schema)
    # Behind a first line with the place of the object.
    assert str(after.schema).splitlines()[1:] == str(before.schema).splitlines()[1:]
    assert after.metadata.metadata == before.metadata.metadata
    assert after.metadata.num_row_groups == before.metadata.num_row_groups
    for number in range(after.metadata.num_row_groups):
        old, new = before.metadata.row_group(number), after.metadata.row_group(number)
        assert new.num_rows == sum(kept[number * 128 : (number + 1) * 128])
        assert new.sorting_columns == old.sorting_columns
        for index in range(new.num_columns):
            was, now = old.column(index), new.column(index)
            assert now.compression == was.compression, was.path_in_schema
            # Values of fixed length are written without a dictionary.
            is_fixed = was.physical_type == "FIXED_LEN_BYTE_ARRAY"
            assert now.has_dictionary_page == (was.has_dictionary_page and not is_fixed)
            assert now.is_stats_set == was.is_stats_set, was.path_in_schema
            assert now.has_offset_index == was.has_offset_index
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql(f"SELECT id, text FROM '{out}' ORDER BY id").fetchall()
    expected = before.read(["id", "text"]).filter(kept).to_pylist()
    assert rows == [(row["id"], row["text"]) for row in expected]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_arrow_loses_rows_and_nothing_else(tmp_path: Path, stream: bool, codec: str | None) -> None:
    source, out, report = (tmp_path / name for name in ("a.arrow", "b.arrow", "report.tsv"))
    table = _zoo(500)
    _write_arrow(table, source, stream=stream, codec=codec)
    bounds = ("--words", "2", "--threshold", "0.6")
    tool_lines("dedup", source, "-o", out, "--report", report, *bounds)
    dropped = {int(line.split("\t")[0]) for line in report.read_text().splitlines()[1:]}
    kept = table.filter([id not in dropped for id in range(500)])
    assert _same(_read_arrow(out, stream=stream), kept)
    assert (out.stat().st_size < source.stat().st_size) and 0 < len(kept) < 500


def test_data_sets_on_disk(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    documents = texts(300, seed=8)
    rows = datasets.Dataset.from_dict({"id": range(300), "text": documents})
    rows.save_to_disk(str(tmp_path / "set"), num_shards=2)
    bounds = ("--words", "2", "--threshold", "0.6")
    tool_lines("dedup", tmp_path / "set", "-o", tmp_path / "out", *bounds)
    lines = "".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(documents))
    (tmp_path / "a.jsonl").write_text(lines)
    tool_lines("dedup", tmp_path / "a.jsonl", "-o", tmp_path / "b.jsonl", *bounds)
    expected = [json.loads(line)["id"] for line in (tmp_path / "b.jsonl").read_text().splitlines()]
    shards = sorted((tmp_path / "out").glob("*.arrow"))
    assert len(shards) == 2
    loaded = [datasets.Dataset.from_file(str(shard)) for shard in shards]
    assert [row["id"] for shard in loaded for row in shard] == expected
    assert all(shard.features == rows.features for shard in loaded)


# Words that readers of tables like to take for something else.
ODD_KEYS = [
    "1", "1.0", "007", "-0", "1e5", "9007199254740993", "NaN", "nan", "None", "null", "NA", "N/A", "true", "2024-01-31",
    "", " lead", "trail ", "tab\there", 'q"uote', '"', "it's", "back\\slash", "\\t", "\\#3", "new\nline", "a\r\nb", ",", ";",
    "\u2028", "\x1b[0m", "é", "e\u0301", "\U0001f600", "\ufeffmark", "#note", "=1+1",
]  # fmt: skip
SAME = "one and the same text of six words"


def _unescaped(key: str) -> str:
    """As the documentation says of tab-separated reports."""
    plain = {"\\": "\\", "t": "\t", "n": "\n", "r": "\r"}
    raw = re.sub(
        rb"\\(?:x(..)|(.))",
        lambda m: bytes([int(m[1], 16)]) if m[1] else plain[m[2].decode()].encode(),
        key.encode(),
    )
    return raw.decode()


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl", "json", "parquet"])
def test_keys_in_reports_are_those_of_the_corpus(tmp_path: Path, ending: str) -> None:
    """Read by pandas and DuckDB with the options that the documentation names, and joined with the corpus."""
    pd, duckdb = pytest.importorskip("pandas"), pytest.importorskip("duckdb")
    source, report = tmp_path / "a.parquet", tmp_path / f"report.{ending}"
    corpus = pd.DataFrame({"id": ["first", *ODD_KEYS], "text": SAME})
    pq.write_table(pa.Table.from_pandas(corpus), source)
    tool_lines("dedup", source, "-o", tmp_path / "b.parquet", "--report", report)
    strings: dict[str, Any] = {"dtype": str, "keep_default_na": False}
    if ending == "tsv":
        found = pd.read_csv(report, sep="\t", quoting=csv.QUOTE_NONE, **strings)
        found["dropped"] = found["dropped"].map(_unescaped)
        rows = duckdb.sql(f"FROM read_csv('{report}', delim='\t', quote='', escape='', all_varchar=true, nullstr='\\N')")
        keys = [_unescaped(key) for key in rows.df()["dropped"]]
    elif ending == "csv":
        found = pd.read_csv(report, lineterminator="\n", **strings)
        keys = duckdb.sql(f"FROM read_csv('{report}', all_varchar=true, nullstr='\\N')").df()["dropped"].tolist()
    elif ending == "parquet":
        found = pd.read_parquet(report)
        keys = duckdb.sql(f"FROM '{report}'").df()["dropped"].tolist()
    else:
        found = pd.read_json(report, lines=ending == "jsonl", dtype=False)
        kinds = "columns={dropped: 'VARCHAR', survivor: 'VARCHAR'}"
        keys = duckdb.sql(f"FROM read_json('{report}', {kinds})").df()["dropped"].tolist()
    # There a key that reads like the number of a document without a key has its printed form.
    printed = {r"\#3": r"\\#3"} if ending in ("csv", "parquet") else {}
    assert found["dropped"].tolist() == keys == [printed.get(key, key) for key in ODD_KEYS]
    joined = corpus.merge(found, left_on="id", right_on="dropped")
    assert joined["id"].tolist() == [key for key in ODD_KEYS if key not in printed]


def test_keys_of_every_type_join_with_their_table(tmp_path: Path) -> None:
    """A key is a string: of a number its shortest digits, as text; bytes outside UTF-8 stay bytes."""
    pd, duckdb = pytest.importorskip("pandas"), pytest.importorskip("duckdb")
    schema = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64))
    columns: dict[str, tuple[Any, Any]] = {
        "strings": (ODD_KEYS, ODD_KEYS),
        "integers": ([7, -1, 2**53 + 1], ["7", "-1", "9007199254740993"]),
        "unsigned": (np.array([7, 2**64 - 1], dtype=np.uint64), ["7", "18446744073709551615"]),
        "floats": ([1.0, 0.1, -2.5, math.nan, None], ["1.0", "0.1", "-2.5", None, None]),
        "large": ([1e22, 1e-7, 5e-324, 1.5e300, 1e16], None),
        "decimals": ([decimal.Decimal("1.10"), decimal.Decimal("2.00")], ["1.10", "2.00"]),
        "missing": ([None, "a", None], [None, "a", None]),
    }
    for name, (ids, expected) in columns.items():
        frame = pd.DataFrame({"id": pd.Series(["first", *ids][1:]), "text": SAME})
        table = pa.table({"id": ids, "text": [SAME] * len(ids)})
        if name == "large":
            pq.write_table(pa.table({"id": [0.5, *ids], "text": [SAME] * 6}), tmp_path / "a.parquet")
            expected = [key for key, _ in rs.read_files(tmp_path / "a.parquet")][1:]
        rows = [("first", SAME), *zip(ids, [SAME] * len(ids))]
        forms: dict[str, Any] = {"rows": rows, "frame": frame, "table": table}
        for form, corpus in forms.items():
            found = rs.dedup(corpus, schema)
            wanted = expected if form == "rows" else expected[1:]
            assert [d.key for d in found.duplicates] == wanted, (name, form)
            assert [key for key in found.annotations()["survivor"] if key is not None][:1] == (
                ["first"] if form == "rows" else expected[:1] if expected[0] is not None else []
            )
            report = found.to_arrow()
            assert report.schema.field("key").type == pa.string() and report["key"].to_pylist() == wanted
        keyed = frame.assign(id=expected).dropna(subset="id")
        report = rs.dedup(rows, schema).to_arrow()
        assert len(keyed.merge(report.to_pandas(), left_on="id", right_on="key")) == len(keyed)
        joined = duckdb.sql("select count(*) from keyed join report on keyed.id = report.key").fetchall()
        assert joined == [(len(keyed),)]
        pairs = pa.table(rs.pairs(rows, schema))
        assert set(pairs["key_b"].to_pylist()) == set(expected) and pairs.schema.field("key_b").type == pa.string()


def test_keys_outside_utf_8_stay_bytes(tmp_path: Path) -> None:
    keys = [b"first", b"a\xff", b"\xffb"]
    rows = [(key, SAME) for key in keys]
    schema = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64))
    found = rs.dedup(rows, schema)
    assert [d.key for d in found.duplicates] == keys[1:]
    assert [found.to_arrow()[name].to_pylist() for name in ("key", "survivor_key")] == [keys[1:], keys[:1] * 2]
    assert set(pa.table(rs.pairs(rows, schema))["key_b"].to_pylist()) == set(keys[1:])
    assert pa.table(rs.clusters(rows, schema))["key"].to_pylist() == keys
    path = tmp_path / "a.rsm"
    rs.bulk_build(path, rows, schema)
    for line in tool_lines("pairs", path, "--format", "jsonl"):
        pair = json.loads(line)
        names = ("key_a", "key_b")
        raw = [pair[name].encode() if pair[name] else bytes.fromhex(pair[f"{name}_hex"]) for name in names]
        assert set(raw) <= set(keys)
    pd = pytest.importorskip("pandas")
    with rs.Store.open(path) as store:
        assert [record.key_bytes for record in store.records()] == keys == [store[key].key_bytes for key in keys]
        assert list(pd.DataFrame.from_arrow(store.query(SAME))["key"]) == keys
        columns = list(pd.DataFrame.from_arrow(store.query("no such text"))), list(pd.DataFrame(store.query(SAME[:9])))
        assert columns == (["id", "key", "similarity", "is_exact", "distance", "stamp", "payload"], [])


@pytest.mark.parametrize("package", ["pandas", "polars", "csv"])
def test_csv_as_programs_write_it(tmp_path: Path, package: str) -> None:
    source, out = tmp_path / "a.csv", tmp_path / "b.csv"
    documents = [text.replace(" ", end, 2) for text, end in zip(texts(200), ["\n", '"', ",", "\r\n"] * 50)]
    columns = {"id": list(range(200)), "note": ['a "b", c\n'] * 200, "text": documents}
    if package == "pandas":
        pytest.importorskip("pandas").DataFrame(columns).to_csv(source, index=False)
    elif package == "polars":
        pytest.importorskip("polars").DataFrame(columns).write_csv(source)
    else:
        with source.open("w", newline="") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values()))
    report = tmp_path / "report.tsv"
    bounds = ("--words", "2", "--threshold", "0.6")
    tool_lines("dedup", source, "-o", out, "--report", report, *bounds)
    dropped = {line.split("\t")[0] for line in report.read_text().splitlines()[1:]}
    assert dropped
    before = _csv_rows(source)
    assert _csv_rows(out) == [row for row in before if row[0] not in dropped]
    assert [row[2] for row in before[1:]] == documents


def test_columns_of_hashes_are_the_same_bits(tmp_path: Path) -> None:
    """Parquet and SQLite keep hashes as signed numbers, Arrow as unsigned ones too, CSV as digits."""
    chance = random.Random(1)
    first = [chance.getrandbits(64) for _ in range(100)]
    flips = [sum({1 << chance.randrange(64) for _ in range(chance.randrange(8))}) for _ in first]
    hashes = first + [a ^ b for a, b in zip(first, flips)]
    near = {(a, b): (hashes[a] ^ hashes[b]).bit_count() for b in range(200) for a in range(b)}
    expected = {(a, b, bits) for (a, b), bits in near.items() if bits <= 4}
    assert len(expected) > 40
    keys, signed = [str(key) for key in range(200)], np.array(hashes, dtype=np.uint64).view(np.int64)
    assert signed.min() < 0
    pq.write_table(pa.table({"id": keys, "signature": signed}), tmp_path / "signed.parquet")
    _write_arrow(pa.table({"id": keys, "signature": np.array(hashes, dtype=np.uint64)}), tmp_path / "unsigned.arrow", stream=False)
    with sqlite3.connect(tmp_path / "signed.db") as database:
        database.execute("create table hashes (id text, signature integer)")
        database.executemany("insert into hashes values (?, ?)", zip(keys, signed.tolist()))
    rows = [f"{key},{number:016x}\n" for key, number in zip(keys, hashes)]
    (tmp_path / "digits.csv").write_text("".join(["id,signature\n", *rows]))
    for name in ("signed.parquet", "unsigned.arrow", "signed.db", "digits.csv"):
        lines = tool_lines("pairs", tmp_path / name, "--fingerprints", "64", "--distance", "4", "--no-header")
        found = [[int(field) for field in line.split("\t")] for line in lines]
        assert {(min(a, b), max(a, b), bits) for a, b, bits in found} == expected, name
